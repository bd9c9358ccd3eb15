"""The tables of a dataset: their columns with types and descriptions, for Parquet, the card and Croissant.

The type of a column is the name of a scalar (see `SCALARS`), a list with the type of its items, or a dictionary with
the types of its fields.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from annotation import screenshots
from annotation.models import Submission
from annotation.workflow.facts import catalogue_facts
from evaluations.evidence.judging import runs_and_judgments
from evaluations.exports_labels import records
from evaluations.exports_v2 import EXTENSIONS
from evaluations.publication.content import Reviewed, load
from evaluations.verifier.documents import Document

Type = str | list[Any] | dict[str, Any]
TEXT, INTEGER, NUMBER, BOOLEAN, TIME, IMAGE = "text", "integer", "number", "boolean", "time", "image"
SCALARS = {TEXT: "sc:Text", INTEGER: "sc:Integer", NUMBER: "sc:Float", BOOLEAN: "sc:Boolean", TIME: "sc:DateTime"}
VERDICT = "0 failure, 1 success, 2 not executable"


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    name: str
    description: str
    columns: dict[str, tuple[Type, str]]

    @property
    def path(self) -> str:
        return f"data/{self.name}.parquet"


OF_TASK: dict[str, tuple[Type, str]] = {
    "task_id": (TEXT, "The benchmark's id of the task."),
    "task_version": (INTEGER, "The version of the task's text, from 1."),
}
TRAJECTORIES = Table(
    "trajectories",
    "One row for each trajectory with a final verdict.",
    OF_TASK
    | {
        "task": (TEXT, "The instruction, as the agent's files state it."),
        "website": (TEXT, "The website of the task; empty if not stated."),
        "level": (TEXT, "The level of the task; empty if not stated."),
        "reference_length": (INTEGER, "The number of steps that a person needed; null if not stated."),
        "key_points": ([TEXT], "Requirements of the task that people checked."),
        "agent": (TEXT, "The agent."),
        "attempt": (INTEGER, "The number of this submission of the agent, from 1."),
        "final_answer": (TEXT, "The agent's final answer; null if it gave none."),
        "source_format": (TEXT, "The format of the uploaded files."),
        "digest": (TEXT, "SHA-256 of the uploaded files of the trajectory."),
        "steps": (INTEGER, "The number of steps."),
        "verdict": (INTEGER, f"The final verdict: {VERDICT}."),
        "decided_by": (TEXT, "agreement: the labels are unanimous. adjudication: an adjudicator decided."),
        "votes": ([INTEGER], f"The verdicts of the blind labels, by slot: {VERDICT}."),
        "failure_step": (INTEGER, "The step that decides a failure; null without one."),
        "failure_type": (TEXT, "The code of the main type of a failure; empty without one."),
    },
)
STEPS = Table(
    "steps",
    "One row for each step: what the agent saw and did.",
    OF_TASK
    | {
        "step": (INTEGER, "The number of the step, from 0."),
        "action": (TEXT, "The action; empty for a last observation without an action."),
        "thought": (TEXT, "The agent's thought; null if not stated."),
        "url": (TEXT, "The address of the page; null if not stated."),
        "status": (TEXT, "SUCCESS or FAILED; null if not stated."),
        "click": ([NUMBER], "x and y of the action's target in pixels of the agent's viewport; null without one."),
        "screenshot": (IMAGE, "The page before the action; null if it is missing."),
        "screenshot_sha256": (TEXT, "SHA-256 of the image file."),
        "redacted": (BOOLEAN, "Whether areas of the image are covered; null without a screenshot."),
        "warnings": ([TEXT], "What the import found doubtful about the step."),
        "mark": (TEXT, "The final process label: right, wrong, unnecessary or side_effect; null without one."),
    },
)
LABELS = Table(
    "labels",
    "One row for each revision of a label or an adjudication.",
    {
        "type": (TEXT, "label or adjudication."),
        **OF_TASK,
        "task_digest": (TEXT, "SHA-256 of the task's text."),
        "person": (TEXT, "The pseudonym of the annotator (A1, ...) or adjudicator (Q1, ...)."),
        "slot": (INTEGER, "The slot of a label, from 1; null for an adjudication."),
        "blind": (BOOLEAN, "Whether the decision was made without seeing any label."),
        "revision": (INTEGER, "The revision, from 1; the last one counts."),
        "revision_reason": (TEXT, "Why it was revised; null for the first revision."),
        "verdict": (INTEGER, f"{VERDICT.capitalize()}."),
        "reasoning": (TEXT, "The person's reasons."),
        "failure_step": (INTEGER, "The step that decides a failure."),
        "failure_type": (TEXT, "The code of the main type of the failure."),
        "further_failure_types": ([TEXT], "Codes of further types."),
        "cause": (TEXT, "Why the task was not executable."),
        "criterion": (TEXT, "The criterion that decides an adjudication."),
        "exception_reason": (TEXT, "Why it is a success although a key point is unmet."),
        "findings": ([{"key_point": TEXT, "finding": TEXT, "step": INTEGER}], "met, unmet or unclear by key point."),
        "evidence_missing": ([INTEGER], "Steps whose recording lacks evidence."),
        "boxes": (
            [{"key_point": TEXT, "step": INTEGER, "box": [INTEGER]}],
            "Areas that prove a key point, or the failure (null): x, y, width and height in pixels.",
        ),
        "process": ([{"step": INTEGER, "mark": TEXT}], "Marks on steps that were not right."),
        "own_attempt": (
            {"steps": INTEGER, "notes": TEXT, "link": TEXT, "path": TEXT, "seconds": INTEGER},
            "The person's own attempt at the task, before the label; null without one.",
        ),
        "informed": (
            {
                "judgments": [{"judge": TEXT, "fingerprint": TEXT, "verdict": INTEGER}],
                "shown_at": TIME,
                "verdict": INTEGER,
                "changed": BOOLEAN,
                "reason": TEXT,
                "decided_at": TIME,
            },
            "The person's opinion after seeing judgments; null if none were shown. It is no label.",
        ),
        "active_seconds": (INTEGER, "Seconds of activity; null if not measured."),
        "steps_seen": ([INTEGER], "The steps that were opened; null if not measured."),
        "opened_at": (TIME, "When an adjudication was opened; null for a label."),
        "decided_at": (TIME, "When the label was submitted or the adjudication decided."),
    },
)
JUDGMENTS = Table(
    "judgments",
    "One row for each result of an automatic judge. Judges decide nothing.",
    {
        "run": (INTEGER, "The number of the run, from 1."),
        "judge": (TEXT, "The judge, as name@version."),
        "fingerprint": (TEXT, "SHA-256 of scorer, model, prompts and parameters."),
        "scorer": (TEXT, "The kind of the judge."),
        "model": (TEXT, "The model; empty without one."),
        "prompts": (TEXT, "The prompt set; empty without one."),
        "task_id": OF_TASK["task_id"],
        "repetition": (INTEGER, "The repetition, from 1."),
        "counts": (BOOLEAN, "Whether comparisons with people count it: the newest run, the lowest repetition."),
        "error": (BOOLEAN, "Whether the judge failed."),
        "verdict": (INTEGER, f"{VERDICT.capitalize()}; null if there is no usable verdict."),
        "reason": (TEXT, "Why there is no verdict."),
        "score": (NUMBER, "The judge's score, if it gives one."),
        "judged_at": (TIME, "When it was judged; null if not stated."),
    },
)
TABLES = (TRAJECTORIES, STEPS, LABELS, JUDGMENTS)

Row = dict[str, Any]


def trajectory_rows(submission: Submission) -> Iterator[Row]:
    until = submission.frozen_at
    if until is None:
        raise ValueError("Only a frozen submission has a dataset.")
    points = {
        (task["task_id"], task["version"]): [each["text"] for each in task["key_points"] if each["retired_at"] is None]
        for task in catalogue_facts(submission.benchmark, until)
    }
    for reviewed in load(submission):
        case, told = reviewed.case, reviewed.document
        yield {
            **reviewed.about_task,
            "task": told["task_text"],
            "website": case.website,
            "level": case.level,
            "key_points": points[told["task_id"], told["task_version"]],
            "agent": case.agent,
            "attempt": case.attempt,
            **{name: told[name] for name in ("reference_length", "final_answer", "source_format", "digest")},
            "steps": len(reviewed.steps),
            "verdict": int(reviewed.verdict),
            "decided_by": reviewed.decided_by,
            "votes": reviewed.votes,
            "failure_step": reviewed.failure_step,
            "failure_type": case.failure_type,
        }


def step_rows(submission: Submission, unreadable: frozenset[str]) -> Iterator[Row]:
    """Yield the rows with their images; an ``unreadable`` one (SHA-256) is null."""
    for reviewed in load(submission):
        for step, mark in zip(reviewed.steps, reviewed.marks, strict=True):
            yield _step_row(reviewed, step, unreadable) | {"mark": mark}


def _step_row(reviewed: Reviewed, step: Document, unreadable: frozenset[str]) -> Row:
    shown = step["screenshot"]
    image = None
    if shown is not None and shown["sha256"] not in unreadable:
        name = f"{shown['sha256']}.{EXTENSIONS[shown['media_type']]}"
        image = {"bytes": screenshots.original(shown["sha256"]), "path": name}
    return {
        **reviewed.about_task,
        "step": step["index"],
        **{name: step[name] for name in ("action", "thought", "url", "status", "click")},
        "screenshot": image,
        "screenshot_sha256": shown and shown["sha256"],
        "redacted": shown and shown["redacted"],
        "warnings": [warning["message"] for warning in step["warnings"]],
    }


def label_rows(submission: Submission) -> Iterator[Row]:
    """Yield labels with their informed opinions, and adjudications; flags and reports have no row."""
    waiting: dict[Any, Row] = {}  # labels of one trajectory; its opinions follow them
    for record in records(submission):
        task = record["task_id"], record["task_version"]
        if record["type"] == "label":
            if waiting and next(iter(waiting))[0] != task:
                yield from _release(waiting)
            waiting[task, record["slot"], record["revision"]] = _label_row(record)
        elif record["type"] == "informed":
            waiting[task, record["slot"], record["follows_revision"]]["informed"] = record
        elif record["type"] == "adjudication":
            yield from _release(waiting)
            yield record | {"person": record["adjudicator"]}
    yield from _release(waiting)


def _release(waiting: dict[Any, Row]) -> list[Row]:
    rows = list(waiting.values())
    waiting.clear()
    return rows


def _label_row(record: Row) -> Row:
    return record | {
        "person": record["annotator"],
        "blind": True,
        "own_attempt": record["attempt"],
        "decided_at": record["created_at"],
    }


def judgment_rows(submission: Submission) -> Iterator[Row]:
    runs, judgments = runs_and_judgments(submission)
    told = {run["run"]: {name: run[name] for name in ("scorer", "model", "prompts")} for run in runs}
    for judgment in judgments:
        yield told[judgment["run"]] | judgment
