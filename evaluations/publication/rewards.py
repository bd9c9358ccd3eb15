"""Sets for training reward models, as JSON Lines: one line for each trajectory with a final verdict.

``prompt``, ``completion`` and ``label`` of outcomes, and ``prompt``, ``completions`` and ``labels`` of steps, are the
columns that TRL reads as unpaired preferences and as stepwise supervision. The JSON Schemas of the lines are
schemas/reward-outcomes.schema.json and schemas/reward-steps.schema.json.
"""

from __future__ import annotations

from collections.abc import Iterator

from annotation.models import Submission
from annotation.process_labels import RIGHT
from annotation.records import Verdict
from evaluations.exports_labels import encode_json
from evaluations.publication.content import Reviewed, describe_step, load
from evaluations.verifier.documents import Document

OUTCOMES = "webverdict-reward-outcomes-v1"
STEPS = "webverdict-reward-steps-v1"


def outcome_lines(submission: Submission, *, partial: bool) -> Iterator[bytes]:
    """Yield lines whose ``label`` is the final verdict: null if the task was not executable."""
    for reviewed in load(submission):
        label = None if reviewed.verdict is Verdict.NOT_EXECUTABLE else reviewed.verdict is Verdict.SUCCESS
        answer = reviewed.document["final_answer"]
        completion = [describe_step(step) for step in reviewed.steps] + ([f"Answer: {answer}"] if answer else [])
        own = {"prompt": reviewed.document["task_text"], "completion": "\n\n".join(completion), "label": label}
        yield _line(OUTCOMES, submission, reviewed, own, partial)


def step_lines(submission: Submission, *, partial: bool) -> Iterator[bytes]:
    """Yield lines whose ``labels`` are true for each right step, false for any other mark, and null without a label.

    A step has a label if the submission asks for process labels, and an adjudication or a majority gives one.
    """
    for reviewed in load(submission):
        own = {
            "prompt": reviewed.document["task_text"],
            "completions": [describe_step(step) for step in reviewed.steps],
            "labels": [None if mark is None else mark == RIGHT for mark in reviewed.marks],
            "marks": list(reviewed.marks),
            "failure_step": reviewed.failure_step,
            "failure_steps": list(reviewed.failure_steps),
        }
        yield _line(STEPS, submission, reviewed, own, partial)


def _line(name: str, submission: Submission, reviewed: Reviewed, own: Document, partial: bool) -> bytes:
    line = {
        "format": name,
        "benchmark": submission.benchmark.stated_slug,
        "agent": submission.agent.name,
        "attempt": submission.attempt,
        "partial": partial,
        **reviewed.about_task,
        **own,
        "verdict": int(reviewed.verdict),
        "decided_by": reviewed.decided_by,
        "votes": reviewed.votes,
        "final_answer": reviewed.document["final_answer"],
        "steps": [_step(step) for step in reviewed.steps],
    }
    return encode_json(line).encode() + b"\n"


def _step(step: Document) -> Document:
    shown = step["screenshot"]
    told = {name: step[name] for name in ("action", "thought", "url", "status")}
    return {"step": step["index"], **told, "screenshot": shown and shown["sha256"]}
