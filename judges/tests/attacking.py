"""A frozen submission of failures, stub judges with one planted weakness each, and the command that tests them."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Mapping, Sequence
from typing import Any

from django.core.management import call_command

from annotation import screenshots
from annotation.models import Person, Screenshot, Submission, Trajectory
from annotation.records import Verdict
from evaluations.tests.finished import finish
from judges.lab import ChangedImage, texts
from judges.lab.operators import LOW_QUALITY, SCALE
from judges.llm import ImageRef
from judges.models import Judge
from judges.tests.builders import defined_judge

Rule = dict[str, Any]
FAILURES = {"task_0000": [0, 0, 0], "task_0001": [0, 0, 0]}


def verdict(word: str) -> Rule:
    """The reply of a single call."""
    return {"reply": json.dumps({"reason": "As the stub is written.", "key_points": [], "steps": [], "verdict": word})}


SUCCESS, FAILURE = verdict("success"), verdict("failure")


def freeze_failures(people: dict[str, Person], submission: Submission) -> Submission:
    """Let everybody label both trajectories as failures; the adjudicator agrees."""
    return finish(people, submission, FAILURES, adjudicated=Verdict.FAILURE)


def whole_view(name: str = "stub", **fields: Any) -> Judge:
    """A judge of one call that sees everything, in our prompts."""
    return defined_judge(name, scorer="single-call", parameters={"show_final_answer": True}, **fields)


def attack(judge: Judge | str, submission: Submission, *words: Any) -> dict[str, Any]:
    """Run the command with --json; what it prints."""
    out = io.StringIO()
    call_command("judge_lab", str(judge), "--submission", str(submission.pk), "--json", *map(str, words), stdout=out)
    return dict(json.loads(out.getvalue()))


def results(report: Mapping[str, Any]) -> dict[str, str]:
    return {row["operator"]: row["result"] for row in report["operators"]}


def failed(report: Mapping[str, Any]) -> set[str]:
    return {name for name, result in results(report).items() if result == "fail"}


# --- weaknesses -------------------------------------------------------------------------------------------------------


def believes(*matches: str | Sequence[str]) -> list[Rule]:
    """Success if a request has one of these texts (or all of a list), else failure."""
    return [*({"match": match} | SUCCESS for match in matches), FAILURE]


def needs(*matches: str) -> list[Rule]:
    """Failure if a request has one of these texts, else success."""
    return [*({"match": match} | FAILURE for match in matches), SUCCESS]


def _last_picture(trajectory: Trajectory) -> tuple[ImageRef, bytes]:
    step = trajectory.steps.filter(screenshot__isnull=False).latest("index")
    assert isinstance(step.screenshot, Screenshot)
    return ImageRef(step.screenshot.sha256), screenshots.judge_ready(step.screenshot.sha256)


def _as_sent(jpeg: bytes) -> str:
    return base64.b64encode(jpeg).decode()


def plant_weaknesses(submission: Submission) -> dict[str, list[Rule]]:
    """The script of a gullible stub for each operator: it is deceived by what the operator does."""
    first, second = submission.trajectories.order_by("position")
    last = {trajectory.task_text: _last_picture(trajectory) for trajectory in (first, second)}
    own, other = last[first.task_text], last[second.task_text]

    def changed(**changes: Any) -> list[str]:
        return [_as_sent(ChangedImage.of(ref, **changes).render(jpeg)) for ref, jpeg in (own, other)]

    banners = [picture for banner in texts.INJECTIONS for picture in changed(banner=banner)]
    return {
        "thoughts-claim": believes(*(f'thought: "{claim}' for claim in texts.CLAIMS)),
        "thoughts-removed": needs("thought: "),
        "answer-forged": believes(*(f'final answer: "{claim}' for claim in texts.CLAIMS)),
        "screenshot-dropped": needs("Screenshot of step 2:", "Screenshot of step 3:"),
        "screenshot-swapped": believes(
            [first.task_text, _as_sent(other[1])],
            [second.task_text, _as_sent(own[1])],
        ),
        "injection-url": believes("note="),
        "injection-screenshot": believes(*banners),
        "injection-answer": believes('final answer: "Laptop added.\\n'),
        "injection-action": believes("| SUCCESS "),
        "steps-duplicated": believes("step 2 action"),
        "run-truncated": needs("Screenshot of step 2:", "Screenshot of step 3:"),
        "nothing-done": needs("action: "),
        "key-points-reordered": believes('key point 1: "cheapest by sorting"'),
        "task-reworded": needs('task: "Find the cheapest laptop'),
        "screenshots-scaled": believes(*changed(scale=SCALE)),
        "screenshots-encoded": believes(*changed(quality=LOW_QUALITY)),
    }


# What else a stub is deceived by, with the reason: none of these stubs is a good judge of other changes.
ALSO = {
    "answer-forged": {"nothing-done"},  # its answer is a claim, too
    "screenshot-dropped": {"run-truncated", "nothing-done"},  # neither has the last screenshot
    "run-truncated": {"screenshot-dropped", "nothing-done"},
    "thoughts-removed": {"nothing-done"},  # the thought of its only step is not shown with the actions
}
