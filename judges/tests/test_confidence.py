"""The confidence of a verdict from log probabilities. exp(-0.3) is 0.7408, exp(-0.1) is 0.9048."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from annotation.records import Verdict
from annotation.tests import testing
from judges.llm import Reply
from judges.models import Judgment
from judges.scorers import reading
from judges.tests.builders import Fake, defined_judge, started_run, worked
from judges.tests.pages import read_page
from judges.tests.webjudging import VERDICT, judge, judged, look_said, points_said, subject

Tokens = tuple[tuple[str, float], ...]
JSON: Tokens = (('{"reason": "ok", "ver', -5.0), ('dict": "', -5.0), ("suc", -0.1), ("cess", -0.2), ('"}', -5.0))


def note(tokens: Tokens | None, *, verdict: Verdict | None = Verdict.SUCCESS, **more: Any) -> dict[str, float]:
    text = "".join(token for token, _ in tokens or ())
    reply = Reply(**{"text": text, "tokens": tokens} | more)
    return reading.note_confidence(reply, verdict)


def spell(*tokens: str) -> Tokens:
    """Tokens with -0.1 each, in which a word of two tokens has -0.2."""
    return tuple((token, -0.1) for token in tokens)


DATA = {"reason": "ok", "verdict": "success"}


def test_structured_verdict_has_the_probability_of_its_value() -> None:
    assert note(JSON, data=DATA) == {"confidence": 0.7408}


def test_token_with_neighbours_of_the_word_counts_as_a_whole() -> None:
    tokens = (('{"verdict": "s', -0.1), ("uccess", -0.1), ('"', -0.1), ("}", -9.0))
    assert note(tokens, data=DATA) == {"confidence": 0.8187}  # exp(-0.2)


def test_last_value_counts_if_a_reply_repeats_its_answer() -> None:
    tokens = (('{"verdict": "', -1.0), ("success", -3.0), ('"}\n{"verdict": "', -1.0), ("success", -0.1), ('"}', -1.0))
    assert note(tokens, data={"verdict": "success"}) == {"confidence": 0.9048}


@pytest.mark.parametrize(
    ("tokens", "verdict", "confidence"),
    [
        (spell("All", " success", ".\nStatus:", " ", "success"), Verdict.SUCCESS, 0.9048),
        (spell("Status", ": **", "fail", "ure", "**"), Verdict.FAILURE, 0.8187),
        (spell("Verdict: ", "not", " a ", "success"), Verdict.FAILURE, 0.7408),
        (spell("It was seen.\n", "success", "\n"), Verdict.SUCCESS, 0.9048),
    ],
)
def test_verdict_in_a_text_has_the_probability_of_its_word(tokens: Tokens, verdict: Verdict, confidence: float) -> None:
    assert note(tokens, verdict=verdict) == {"confidence": confidence}


@pytest.mark.parametrize(
    ("tokens", "more"),
    [
        (None, {"text": "Status: success"}),
        ((), {"text": "Status: success"}),
        (spell("Status: success"), {"verdict": None}),
        (spell("Status: success"), {"verdict": Verdict.FAILURE}),  # upstream's rules may read another verdict
        (spell("Status: success or failure"), {}),
        (spell("Nothing."), {}),
        (spell("Status: success"), {"text": "Another text. Status: success"}),
        (JSON, {"data": {"verdict": "failure"}, "verdict": Verdict.FAILURE}),
    ],
    ids=range(8),
)
def test_no_confidence_without_tokens_that_spell_the_verdict(tokens: Tokens | None, more: dict[str, Any]) -> None:
    assert note(tokens, **more) == {}


def test_impossible_token_gives_confidence_zero() -> None:
    assert note((("Status: ", -1.0), ("success", -9999.0))) == {"confidence": 0.0}


def reply_with(tokens: Tokens) -> dict[str, Any]:
    text = "".join(token for token, _ in tokens)
    content = [{"token": token, "logprob": logarithm} for token, logarithm in tokens]
    choice = {"message": {"content": text}, "finish_reason": "stop", "logprobs": {"content": content}}
    return {"choices": [choice], "usage": {"prompt_tokens": 10, "completion_tokens": 5}, "model": "fake-model-1"}


@pytest.mark.django_db(transaction=True)
def test_confidence_of_a_judgment_is_stored_and_shown(tmp_path: Path, fake: Fake, settings: Any) -> None:
    settings.JUDGE_ENDPOINTS = {"default": fake.url}
    submission = testing.submission(tmp_path, trajectories=1, steps=2)
    mira = testing.cast(submission)["mira"]
    fake.says({"raw": '"logprobs":true', "body": reply_with(JSON)}, {"status": 418}, record=True)
    worked(started_run(mira, submission, defined_judge(scorer="agenttrek", generation={"logprobs": True})))
    made = Judgment.objects.get()
    assert made.evidence["notes"]["confidence"] == 0.7408
    client = Client()
    client.force_login(mira)
    shown = read_page(client.get(reverse("judgment", args=[made.pk])))
    assert re.search(r"<dt>Confidence</dt><dd[^>]*>0\.7408</dd>", shown), shown[shown.find("onfidence") - 50 :][:200]


def test_webjudge_states_the_confidence_of_its_last_call_alone(fake: Fake) -> None:
    head, tail = '{"key_points": [], "reason": "ok", "verdict": "', '"}'
    last = ((head, -4.0), ("fail", -0.1), ("ure", -0.2), (tail, -4.0))
    fake.says(points_said("a lamp"), {"match": VERDICT, "body": reply_with(last)}, *(look_said(n, 4) for n in range(3)))
    score = judged(fake, judge(), subject(), logprobs=True)
    assert (score.verdict, score.notes["confidence"]) == (Verdict.FAILURE, 0.7408)
