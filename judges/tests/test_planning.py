"""What a run would cost, computed by hand; and that it is known soon."""

import time
from decimal import Decimal

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from annotation.models import Attachment, Screenshot, Step
from annotation.records import ActionStatus, AttachmentKind, Click
from annotation.tests import testing
from judges import planning
from judges.llm import ImageRef
from judges.models import JudgeRun, ModelCall, ModelTerms
from judges.ready_judges import RunRefused
from judges.tests.builders import defined_judge
from judges.tests.tiny import tiny_scorer
from judges.working.subjects import load_subject

pytestmark = pytest.mark.django_db


@pytest.fixture
def judge():
    with tiny_scorer():
        yield defined_judge("tiny", scorer="tiny", concurrency=4)


def with_pictures(submission):
    """A picture for every step of a bare submission, rows only."""
    steps = list(Step.objects.filter(trajectory__submission=submission).order_by("pk"))
    pictures = Screenshot.objects.bulk_create(
        Screenshot(sha256=f"{number:064x}", media_type="image/png", width=1, height=1, size=1)
        for number in range(len(steps))
    )
    for step, picture in zip(steps, pictures, strict=True):
        step.screenshot = picture
    Step.objects.bulk_update(steps, ["screenshot"], batch_size=500)
    return submission


def test_a_plan_counts_calls_pictures_and_tokens_of_the_scorers_forecast(judge):
    submission = with_pictures(testing.bare_submission(3, steps=2))
    planned = planning.plan(judge, submission, {}, repetitions=2)
    assert (planned.trajectories, planned.repetitions) == (3, 2)
    assert (planned.calls, planned.pictures) == (3 * 2 * 3, 3 * 2 * 2)
    # Three calls with the task and its key point, the last one with the actions too; four characters are a token.
    once = [
        (3 * (len(t.task_text) + len("cheapest by sorting")) + 2 * len("Click at (0, 0)")) // 4 + 2 * 1100
        for t in submission.trajectories.all()
    ]
    assert planned.prompt_tokens == 2 * sum(once)
    assert planned.completion_tokens == planned.calls * 300
    assert (planned.cost, planned.already_judged) == (None, 0)
    assert planned.seconds == 18 * 3.0 / 4  # no call was made yet: 3 s each, four at once


def test_a_short_run_lasts_as_long_as_its_stages_one_after_another(judge):
    submission = testing.bare_submission(1)
    assert planning.plan(judge, submission, {}).seconds == 9.0
    assert planning.plan(judge, submission, {"task_ids": []}).calls == 1


def test_the_latency_is_the_median_of_what_this_model_needed_lately(judge):
    submission = testing.bare_submission(1)
    run = JudgeRun.objects.create(judge=judge, submission=submission, started_at=timezone.now())
    item = run.items.create(trajectory=submission.trajectories.get())
    for latency in (400, 500, 60_000):
        ModelCall.objects.create(
            item=item, attempt=1, stage="verdict", key="k", latency=latency, made_at=timezone.now()
        )
    assert planning.plan(judge, submission, {}).seconds == 1.5


def test_a_plan_costs_what_the_terms_say_and_thoughts_of_a_reasoning_model_are_counted(judge):
    submission = testing.bare_submission(2)
    ModelTerms.objects.create(model="fake-model-1", input_price=Decimal(2), output_price=Decimal(10))
    planned = planning.plan(judge, submission, {})
    by_hand = (planned.prompt_tokens * 2 + 2 * 300 * 10) / Decimal(1_000_000)
    assert planned.cost == by_hand.quantize(Decimal("1e-4"))
    thinking = defined_judge("thinking", scorer="tiny", generation={"dialect": "reasoning"})
    assert _completion(planning.plan(thinking, submission, {})) == (2 * 300, 2 * 2 * (300 + 1200))


def _completion(planned):
    return planned.completion_tokens, planned.completion_tokens_high


@pytest.mark.parametrize(
    ("model", "generation", "thoughts"),
    [
        ("o4-mini", {}, 1200),
        ("gemini-2.5-flash", {}, 1200),
        ("gpt-4o", {}, 0),
        ("gpt-4o", {"reasoning": "yes"}, 1200),
        ("o4-mini", {"reasoning": "no"}, 0),
        ("gpt-5.2", {"reasoning_effort": "none"}, 0),
        ("gpt-5.2", {"reasoning_effort": "low"}, 1200),
    ],
)
def test_a_plan_states_a_range_from_no_thoughts_to_thoughts_in_every_call(model, generation, thoughts):
    submission = testing.bare_submission(2)
    ModelTerms.objects.create(model=model, input_price=Decimal(1), output_price=Decimal(4))
    upstream = defined_judge(model=model, generation=generation, scorer="webvoyager", parameters={"mode": "upstream"})
    planned = planning.plan(upstream, submission, {})
    assert planned.calls == planned.calls_high == 2  # upstream asks for no form
    assert _completion(planned) == (2 * 300, 2 * (300 + thoughts))
    assert planned.cost_high - planned.cost == Decimal(2 * thoughts * 4) / 1_000_000


def test_a_plan_knows_thoughts_from_earlier_replies_of_the_model(judge):
    submission = testing.bare_submission(1)
    assert _completion(planning.plan(judge, submission, {}))[1] == 2 * 300
    run = JudgeRun.objects.create(judge=judge, submission=submission, started_at=timezone.now())
    item = run.items.create(trajectory=submission.trajectories.get())
    ModelCall.objects.create(
        item=item, attempt=1, stage="verdict", key="k", latency=1, reasoning_tokens=500, made_at=timezone.now()
    )
    assert _completion(planning.plan(judge, submission, {}))[1] == 2 * (300 + 1200)


def test_a_plan_states_how_much_is_asked_when_every_answer_has_another_form(judge):
    submission = testing.bare_submission(3)
    planned = planning.plan(judge, submission, {}, repetitions=2)
    assert (planned.calls, planned.calls_high) == (6, 12)
    # The question again, with the first reply of 300 tokens.
    assert planned.prompt_tokens_high == 2 * planned.prompt_tokens + 6 * 300


def test_three_hundred_trajectories_are_planned_soon_and_in_few_queries(judge):
    submission = with_pictures(testing.bare_submission(300, steps=20))
    planning.plan(judge, submission, {"limit": 1})
    began = time.process_time()
    with CaptureQueriesContext(
        connection,
    ) as queries:
        planned = planning.plan(judge, submission, {})
    assert planned.calls == 300 * 21
    assert len(queries) <= 10
    assert time.process_time() - began < 2.0


def test_a_sample_is_drawn_from_what_is_chosen_in_its_order_and_again_by_the_same_seed():
    submission = testing.bare_submission(40)
    every = planning.choose(submission, {})
    few = {"task_ids": [trajectory.task.external_id for trajectory in every[10:30]]}

    drawn = planning.choose(submission, few | {"limit": 8, "seed": 7})

    # sorted(random.Random(7).sample(range(10, 30), 8)), computed apart
    assert [every.index(one) for one in drawn] == [11, 12, 14, 18, 20, 22, 23, 26]
    assert planning.choose(submission, few | {"limit": 8, "seed": 7}) == drawn
    assert planning.choose(submission, few | {"limit": 8, "seed": 0}) != drawn
    assert planning.choose(submission, few | {"limit": 8}) == every[10:18]
    assert planning.choose(submission, few | {"limit": 50, "seed": 7}) == every[10:30]
    assert planning.choose(submission, {"level": "impossible", "limit": 8, "seed": 7}) == []
    assert len(planning.choose(submission, {"limit": 8, "seed": 2**32 - 1})) == 8


@pytest.mark.parametrize("seed", [-1, 2**32, 1.0, "7", True])
def test_a_seed_that_is_none_is_refused(seed):
    with pytest.raises(RunRefused, match="seed must be a whole number from 0 to 4294967295"):
        planning.choose(testing.bare_submission(1), {"limit": 1, "seed": seed})


def test_a_seed_without_a_limit_is_refused():
    with pytest.raises(RunRefused, match="needs a limit"):
        planning.choose(testing.bare_submission(1), {"seed": 0})


def test_more_judgments_than_a_run_may_have_are_refused(judge, monkeypatch):
    submission = testing.bare_submission(3)
    monkeypatch.setattr(planning, "MOST_ITEMS", 5)
    with pytest.raises(RunRefused, match="Choose fewer"):
        planning.plan(judge, submission, {}, repetitions=2)


def test_a_subject_has_everything_that_the_rows_say():
    submission = testing.bare_submission(1, steps=3)
    trajectory = submission.trajectories.select_related("task").get()
    trajectory.final_answer, trajectory.reference_length = "Laptop added.", 4
    trajectory.save()
    picture = Screenshot.objects.create(sha256="a" * 64, media_type="image/png", width=1, height=1, size=1)
    first = trajectory.steps.get(index=0)
    first.screenshot, first.file_name, first.thought, first.url = picture, "0000.png", "I look.", "https://shop.example"
    first.status, first.click_x, first.click_y = "SUCCESS", 3.0, 4.0
    first.save()
    trajectory.steps.filter(index=2).update(screenshot=picture)
    trajectory.task.key_points.create(position=9, text="not accepted")
    for kind, name in ((AttachmentKind.NETWORK_TRACE, "network.har"), (AttachmentKind.INPUT_IMAGE, "given.png")):
        Attachment.objects.create(trajectory=trajectory, kind=kind, name=name, sha256=name[0] * 64, size=1)

    subject = load_subject(trajectory)
    record = subject.record
    assert (record.task_id, record.task_text) == ("task_0000", trajectory.task_text)
    assert (record.final_answer, record.reference_length) == ("Laptop added.", 4)
    assert [step.action for step in record.steps] == ["Click at (0, 0)", "Click at (1, 1)", "Click at (2, 2)"]
    step = record.steps[0]
    assert (step.thought, step.url, step.status) == ("I look.", "https://shop.example", ActionStatus.SUCCESS)
    assert (step.click, step.screenshot) == (Click(3.0, 4.0), "0000.png")
    assert (record.steps[1].thought, record.steps[1].url, record.steps[1].click) == (None, None, None)
    assert subject.screenshots == (ImageRef("a" * 64), None, ImageRef("a" * 64))
    assert subject.input_images == (ImageRef("g" * 64),)
    assert subject.key_points == ("cheapest by sorting",)
    assert subject.website == "https://shop0.example/"
