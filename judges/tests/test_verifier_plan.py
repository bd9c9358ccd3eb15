"""The cost that a plan states for the rubric verifier, compared with that of the run."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest

from annotation.models import Step
from annotation.tests import testing
from judges import planning
from judges.llm.wire import estimate_tokens
from judges.models import Judgment, ModelCall, ModelTerms
from judges.tests.builders import defined_judge, started_run, worked
from judges.tests.verifying import MARKS, TEXTS, findings, says

pytestmark = pytest.mark.django_db(transaction=True)

PRICES = {"input_price": Decimal(2), "output_price": Decimal(8)}  # US dollars for a million tokens
REASON = "The list is sorted by price, and the lamp in the first row costs 12.90, as the basket shows, too. " * 2
LONG = "The task asks for this, and a person can see it in the basket or in the list of results at the end. "
CRITERIA = 4
STEPS = 6


def entry(number, **fields):
    text = TEXTS[0] if number == 1 else f"{LONG}Part {number} of it."
    return {"number": number, "criterion": text, "reason": REASON, "applies": True, "points": 4} | fields


def script():
    """Replies as long as those of a model: two sentences for each reason, one for each note."""
    numbers = range(1, CRITERIA + 1)
    criteria = [
        {"criterion": entry(number)["criterion"], "description": LONG, "max_points": 5, "condition": ""}
        for number in numbers
    ]
    rated = [
        says(
            "relevance",
            {
                "screenshots": [
                    {"number": n, "note": REASON[:100], "relevance": [5] * CRITERIA} for n in range(1, shots + 1)
                ]
            },
            f"Screenshot {shots}, of",
        )
        for shots in (4, 2)
    ]
    grades = [says(stage, entry(n), f"criterion {n}: ") for stage in ("actions", "images") for n in numbers]
    last = findings(reason=REASON, first_failure={"step": 2, "category": "selection", "reason": REASON})
    together = {"criteria": [entry(n, points_from_actions=5) for n in numbers], **last}
    return [
        says("criteria", {"criteria": criteria}),
        *rated,
        *grades,
        says("verdict", last),
        says("together", together),
    ]


@pytest.mark.parametrize("mode", ["full", "cheap"])
def test_cost_of_the_plan_is_within_15_percent_of_the_run(fake, settings, tmp_path, mode):
    settings.JUDGE_ENDPOINTS = {"default": fake.url}
    fake.says(*script())
    submission = testing.submission(tmp_path, trajectories=1, steps=STEPS)
    Step.objects.update(thought=REASON * 7)  # 1,400 characters: the longest that a record has is 1,500
    mira = testing.cast(submission)["mira"]
    ModelTerms.objects.create(model="fake-model-1", **PRICES)
    judge = defined_judge(scorer="rubric-verifier", parameters={"mode": mode, "max_criteria": CRITERIA})
    planned = planning.plan(judge, submission, {})
    run = started_run(mira, submission, judge)
    worked(run)

    calls = list(ModelCall.objects.all())
    assert Judgment.objects.get().verdict == 1
    assert len(calls) == planned.calls == {"full": 1 + 2 + 2 * CRITERIA + 1, "cheap": 1 + 2 + 1}[mode]
    # What an endpoint would count: four characters are a token, and a screenshot has as many as in the plan.
    prompt = sum(_count_prompt(one.request) for one in calls)
    completion = sum(len(json.loads(one.reply)["choices"][0]["message"]["content"]) // 4 for one in calls)
    cost = float(prompt * PRICES["input_price"] + completion * PRICES["output_price"]) / 1_000_000
    assert float(planned.cost) == pytest.approx(cost, rel=0.15)
    assert planned.pictures == sum(json.dumps(one.request).count('"image_url":') for one in calls)
    assert {one.stage for one in calls} <= set(MARKS)


def _count_prompt(request):
    pictures = json.dumps(request["messages"]).count('"image_url":')
    alone = [
        message | {"content": [part for part in message["content"] if part["type"] == "text"]}
        if isinstance(message["content"], list)
        else message
        for message in request["messages"]
    ]
    return estimate_tokens({"messages": alone}) + pictures * planning.TOKENS_PER_PICTURE
