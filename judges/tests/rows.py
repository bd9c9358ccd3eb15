"""Rows of judges, runs and judgments as they are after somebody worked, without anybody working."""

from __future__ import annotations

import json
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

from django.utils import timezone

from annotation.models import Submission, Trajectory
from annotation.records import Finding
from judges.models import Judge, JudgeRun, Judgment, ModelCall, RobustnessCard, RunItem
from judges.scorer import KeyPointEvidence, Score, StepEvidence


def judge_row(name: str = "careful", **fields: Any) -> Judge:
    """A frozen judge; the same one when it is there already."""
    found = Judge.own.filter(name=name).first()
    base = {"scorer": "webjudge", "model": "small-model", "prompts": "webjudge/1", "frozen_at": timezone.now()}
    return found or Judge.objects.create(name=name, **(base | fields))


def run_row(submission: Submission, judge: Judge | None = None, **fields: Any) -> JudgeRun:
    """A run with a waiting item for every trajectory and repetition."""
    made = JudgeRun.objects.create(
        judge=judge or judge_row(), submission=submission, started_at=timezone.now(), **fields
    )
    RunItem.objects.bulk_create(
        RunItem(run=made, trajectory=trajectory, repetition=number)
        for trajectory in submission.trajectories.order_by("position")
        for number in range(1, made.repetitions + 1)
    )
    return made


def score(verdict: int | None = 1, mark: str = "", **fields: Any) -> Score:
    """A score as WebJudge gives one: two key points, three screenshots, the last the same as the first."""
    base: dict[str, Any] = {
        "verdict": verdict,
        "unscored": "" if verdict is not None else f"{mark}The model refused: no.",
        "score": None if verdict is None else 0.75,
        "explanation": f"{mark}The filter was applied at step 1.",
        "key_points": (
            KeyPointEvidence(f"{mark}at least 16 GB", Finding.MET, (1,), f"{mark}The filter shows it."),
            KeyPointEvidence(f"{mark}cheapest by sorting", Finding.UNMET, (0, 2), f"{mark}Nothing was sorted."),
        ),
        "steps": (
            StepEvidence(0, 2, f"{mark}A start page.", False, f"{mark}Reasoning: a start page. Score: 2"),
            StepEvidence(1, 5, f"{mark}The filter is set.", True, f"{mark}Reasoning: the filter. Score: 5"),
            StepEvidence(2, 2, f"{mark}A start page.", False, f"{mark}Reasoning: a start page. Score: 2", same_as=0),
        ),
        "response": f"{mark}Thoughts: it is there. Status: success",
        "notes": {"key points": f"{mark}from people"},
    }
    return Score(**(base | fields))


def judgment_row(item: RunItem, verdict: int | None = 1, mark: str = "", **fields: Any) -> Judgment:
    """The judgment of an item, which is done by it."""
    given = score(verdict, mark)
    now = timezone.now()
    RunItem.objects.filter(pk=item.pk).update(done_at=now, taken_at=now, heartbeat_at=now, attempt=1, worker="w")
    judge = item.run.judge
    base: dict[str, Any] = {
        "judge": judge,
        "fingerprint": judge.fingerprint,
        "item": item,
        "task": item.trajectory.task,
        "agent": item.run.submission.agent,
        "trajectory": item.trajectory,
        "repetition": item.repetition,
        "verdict": given.verdict,
        "unscored": given.unscored,
        "score": given.score,
        "explanation": given.explanation,
        "evidence": given.evidence(),
        "response": given.response,
        "model": "small-model-2026",
        "tokens": 1234,
        "cost": Decimal("0.00123"),
        "made_at": now,
    }
    return Judgment.objects.create(**(base | fields))


def imported_row(trajectory: Trajectory, verdict: int | None = 0, mark: str = "", **fields: Any) -> Judgment:
    """A judgment that was made elsewhere."""
    judge = judge_row("elsewhere", scorer="imported", model="", prompts="")
    base: dict[str, Any] = {
        "judge": judge,
        "fingerprint": judge.fingerprint,
        "task": trajectory.task,
        "agent": trajectory.submission.agent,
        "trajectory": trajectory,
        "verdict": verdict,
        "unscored": "" if verdict is not None else "no verdict in the file",
        "explanation": f"{mark}An imported explanation.",
        "evidence": {"key_points": [], "steps": [], "notes": {}},
        "imported": {"run": f"{mark}run of somebody"},
        "made_at": timezone.now(),
    }
    return Judgment.objects.create(**(base | fields))


def call_row(item: RunItem, stage: str = "verdict", mark: str = "", **fields: Any) -> ModelCall:
    """A call with its prompt, which holds a picture where the step has one, and a chat completion as its reply."""
    step = fields.get("step")
    parts: list[dict[str, Any]] = [{"type": "text", "text": f"{mark}Judge this: <b>task</b>"}]
    shown = item.trajectory.steps.filter(index=step, screenshot__isnull=False).first() if step is not None else None
    if shown is not None and shown.screenshot is not None:
        digests = {"sha256": "ab" * 32, "screenshot": shown.screenshot.sha256}
        parts.append({"type": "image_url", "image_url": digests | {"media_type": "image/jpeg", "detail": "high"}})
    message = {"role": "assistant", "content": f"{mark}Status: success"}
    base: dict[str, Any] = {
        "item": item,
        "attempt": 1,
        "number": item.calls.count() + 1,
        "stage": stage,
        "key": f"{item.pk:032d}{item.calls.count():032d}",
        "request": {
            "model": "small-model",
            "messages": [{"role": "system", "content": f"{mark}You judge."}, {"role": "user", "content": parts}],
            "temperature": 0,
        },
        "reply": json.dumps({"choices": [{"message": message, "finish_reason": "stop"}]}),
        "model": "small-model-2026",
        "finish": "stop",
        "prompt_tokens": 1000,
        "completion_tokens": 20,
        "cost": Decimal("0.0005"),
        "latency": 812,
        "made_at": timezone.now(),
    }
    return ModelCall.objects.create(**(base | fields))


# --- robustness ------------------------------------------------------------------------------------------------------

_RATE = {"low": 0.0, "high": 0.5, "n": 2}
_ROW = {
    "operator": "thoughts-claim",
    "expects": "same",
    "n": 2,
    "flips": 1,
    "added_false_positives": 1,
    "false_positive_rate": {"original": _RATE | {"value": 0.0}, "changed": _RATE | {"value": 0.5}},
    "difference": {"value": 0.5, "low": -0.25, "high": 0.75, "n": 2},
    "unscored": 0,
    "not_applicable": {"It has no steps.": 3},
    "result": "fail",
}
REPORT: dict[str, Any] = {"trajectories": 2, "passed": 0, "failed": 1, "not_tested": 0, "operators": [_ROW]}


def card_row(judge: Judge, submission: Submission, **fields: Any) -> RobustnessCard:
    """A card of one operator, which the judge failed."""
    base = {"fingerprint": judge.fingerprint, "operators_version": 1, "seed": 0, "report": REPORT}
    run = run_row(submission, judge, test=True)
    return RobustnessCard.objects.create(judge=judge, submission=submission, run=run, **(base | fields))


def card_rows(judge: Judge, submissions: Iterable[Submission], operator: str) -> None:
    """Add a card to each submission; only those of frozen ones count."""
    for submission in submissions:
        card_row(judge, submission, report=REPORT | {"operators": [_ROW | {"operator": operator}]})
