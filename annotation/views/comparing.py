"""Labels side by side, aligned by key point: what differs, and what can be adopted."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

from django.db.models import QuerySet

from annotation.forms import VERDICT_NAMES
from annotation.models import Adjudication, HumanAttempt, Label, Membership, Trajectory
from annotation.protocol import CAUSES, DECIDING, FAILURE_TYPES, PATHS
from annotation.records import Verdict

NAMES = {term.code: term.name for term in (*CAUSES, *FAILURE_TYPES)}
CRITERION_NAMES = {term.code: term.name for term in DECIDING}
PATH_NAMES = {term.code: term.name for term in PATHS}
LONG = 240  # characters of a reasoning from which it is folded; about five lines of a column


@dataclass(frozen=True, slots=True)
class Cell:
    """What the label ``of`` one annotator says; ``steps`` that it names, ``lit`` when it is not what most say.

    ``fields`` are the form's fields that adopting the cell fills, as JSON; empty where there is nothing to adopt.
    """

    text: str
    steps: tuple[int, ...] = ()
    lit: bool = False
    fields: str = ""
    of: str = ""

    @property
    def said(self) -> bool:
        return bool(self.text or self.steps)


@dataclass(frozen=True, slots=True)
class Row:
    """One thing that the labels say, with a cell for every column."""

    title: str
    cells: list[Cell]


@dataclass(frozen=True, slots=True)
class Column:
    """A label by its pseudonym; ``fields`` as those of a cell, for everything that can be adopted at once."""

    name: str
    label: Label
    fields: str

    @property
    def attempt(self) -> tuple[str, HumanAttempt] | None:
        """How the annotator did the task themselves, with how the agent's way compares; None where it is not asked."""
        attempt = getattr(self.label, "attempt", None)
        return None if attempt is None else (PATH_NAMES.get(attempt.path, attempt.path).lower(), attempt)

    @property
    def start(self) -> str:
        """The beginning of a long reasoning; empty when the whole is short enough to stand there."""
        lines = self.label.reasoning.splitlines()
        if len(self.label.reasoning) <= LONG and len(lines) <= 5:
            return ""
        return " ".join(lines)[: LONG - 40].rstrip() + "…"


@dataclass(frozen=True, slots=True)
class Comparison:
    """``columns`` are the current labels in the order of pseudonyms; ``flags`` are (pseudonym, note)."""

    columns: list[Column]
    rows: list[Row]
    flags: list[tuple[str, str]]

    def row(self, title: str) -> Row:
        return next(row for row in self.rows if row.title == title)


def compared(labels: QuerySet[Label], trajectory: Trajectory, *, measured: bool = False) -> Comparison:
    """The current revisions of ``labels``, which the caller has been allowed to see, in the order of pseudonyms.

    ``measured`` adds how long each annotator was active and how many steps they opened: not for their fellows.
    """
    names = pseudonyms(trajectory)
    newest: dict[int, Label] = {}
    said = labels.select_related("assignment", "attempt").prefetch_related("findings__key_point")
    for label in said.order_by("revision"):
        newest[label.assignment.annotator_id] = label
    found = sorted(((names[pk], label) for pk, label in newest.items()), key=lambda pair: _natural(pair[0]))
    flags = [(names[flag.annotator_id], flag.note) for flag in trajectory.flags.all()]
    current = [label for _, label in found]
    rows = _rows(current) + (_measures(current, trajectory) if measured else [])
    columns = [Column(name, label, _everything(label)) for name, label in found]
    return Comparison(columns, [_signed(row, columns) for row in rows], flags)


def pseudonyms(trajectory: Trajectory) -> dict[int, str]:
    """Pseudonym by the person's primary key."""
    members = Membership.objects.filter(submission=trajectory.submission_id)
    return dict(members.values_list("person_id", "pseudonym"))


def _natural(pseudonym: str) -> tuple[str, int]:
    return pseudonym[:1], int(pseudonym[1:] or 0)


# --- rows ------------------------------------------------------------------------------------------------------------


def _rows(labels: list[Label]) -> list[Row]:
    rows = [
        _row("Verdict", [Cell(verdict_name(label), fields=json.dumps(_verdict_fields(label))) for label in labels]),
        _row("Failed at", [Cell("", _steps(label.failure_step)) for label in labels]),
        _row("Failure type", [Cell(NAMES.get(label.failure_type, label.failure_type)) for label in labels]),
        _row("Also failed by", [Cell(_further(label)) for label in labels]),
        _row("Cause", [Cell(NAMES.get(label.cause, label.cause)) for label in labels]),
    ]
    texts = {f.key_point_id: f.key_point for label in labels for f in label.findings.all()}
    for number, point in enumerate(sorted(texts.values(), key=lambda p: (p.position, p.pk)), start=1):
        found = [{f.key_point_id: f for f in label.findings.all()}.get(point.pk) for label in labels]
        rows.append(_row(f"{number}. {point.text}", [_finding_cell(finding) for finding in found]))
    rows.append(_row("Evidence missing", [_evidence_cell(label) for label in labels]))
    return [row for row in rows if any(cell.said for cell in row.cells)]


def _row(title: str, cells: list[Cell]) -> Row:
    """Light the cells that most others do not share; all of them when no value has a majority."""
    # A key point is judged by its finding: two steps may prove the same thing.
    values: list[Any] = [cell.text or cell.steps for cell in cells]
    value, count = Counter(values).most_common(1)[0] if values else (None, 0)
    majority = value if count * 2 > len(values) else object()
    return Row(title, [replace(c, lit=v != majority) for c, v in zip(cells, values, strict=True)])


def _signed(row: Row, columns: list[Column]) -> Row:
    return Row(row.title, [replace(cell, of=column.name) for cell, column in zip(row.cells, columns, strict=True)])


def _finding_cell(finding: Any) -> Cell:
    if finding is None:
        return Cell("")
    return Cell(finding.finding, _steps(finding.step), fields=json.dumps(_finding_fields(finding)))


def _evidence_cell(label: Label) -> Cell:
    steps = tuple(label.evidence_missing)
    return Cell("", steps, fields=json.dumps(_evidence_fields(label)) if steps else "")


def _steps(step: int | None) -> tuple[int, ...]:
    return () if step is None else (step,)


def _further(label: Label) -> str:
    return ", ".join(sorted(NAMES.get(code, code) for code in label.further_failure_types))


def _measures(labels: list[Label], trajectory: Trajectory) -> list[Row]:
    """How the labels were made, where the desk measured it; never lit, for it decides nothing."""
    if all(label.active_seconds is None and label.steps_seen is None for label in labels):
        return []
    count = trajectory.steps.count()
    timed = Row("Active for", [Cell(duration(label.active_seconds)) for label in labels])
    if count == 0:
        return [timed]
    seen = ["" if label.steps_seen is None else f"{len(label.steps_seen)} of {count}" for label in labels]
    return [
        timed,
        Row("Steps opened", [Cell(text) for text in seen]),
    ]


def duration(seconds: int | None) -> str:
    """As people say it: 45 s, 12 min; nothing for what was not measured."""
    if seconds is None:
        return ""
    return f"{seconds} s" if seconds < 60 else f"{round(seconds / 60)} min"


# --- what can be adopted: values of the form's fields ----------------------------------------------------------------


def _verdict_fields(label: Label) -> dict[str, str]:
    """The verdict with what belongs to it; what it lacks is emptied in the form, words stay the reader's own."""
    return {
        "verdict": str(int(label.verdict)),
        "failure_step": "" if label.failure_step is None else str(label.failure_step),
        "failure_type": label.failure_type,
        "further_failure_types": " ".join(label.further_failure_types),
        "cause": label.cause,
    }


def _finding_fields(finding: Any) -> dict[str, str]:
    name = f"finding_{finding.key_point_id}"
    return {name: finding.finding, f"{name}_step": "" if finding.step is None else str(finding.step)}


def _evidence_fields(label: Label) -> dict[str, str]:
    return {"evidence_missing": ", ".join(map(str, label.evidence_missing))}


def _everything(label: Label) -> str:
    fields = _verdict_fields(label) | _evidence_fields(label)
    for finding in label.findings.all():
        fields |= _finding_fields(finding)
    return json.dumps(fields)


def verdict_name(decision: Label | Adjudication) -> str:
    return "" if decision.verdict is None else VERDICT_NAMES[Verdict(decision.verdict)]


def named(decision: Any) -> Any:
    """The decision with the names of its types, cause and criterion, for the template; None stays None."""
    if decision is not None:
        decision.failure_type_name = NAMES.get(decision.failure_type, decision.failure_type)
        decision.further_names = [NAMES.get(code, code) for code in decision.further_failure_types]
        decision.cause_name = NAMES.get(decision.cause, decision.cause)
        criterion = getattr(decision, "criterion", "")
        decision.criterion_name = CRITERION_NAMES.get(criterion, criterion)
        attempt = getattr(decision, "attempt", None)
        decision.way = PATH_NAMES.get(attempt.path, attempt.path).lower() if isinstance(attempt, HumanAttempt) else ""
    return decision
