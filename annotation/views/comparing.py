"""Labels side by side, aligned by key point, with the cells that differ."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet

from annotation.forms import VERDICT_NAMES
from annotation.models import Adjudication, Label, Membership, Trajectory
from annotation.protocol import CAUSES, FAILURE_TYPES
from annotation.records import Verdict

NAMES = {term.code: term.name for term in (*CAUSES, *FAILURE_TYPES)}


@dataclass(frozen=True, slots=True)
class Cell:
    """What one label says; ``step`` when it names one, ``lit`` when it is not what most say."""

    text: str
    step: int | None = None
    lit: bool = False


@dataclass(frozen=True, slots=True)
class Comparison:
    """``columns`` are pseudonyms with their current label; a row is its title and a cell for every column."""

    columns: list[tuple[str, Label]]
    rows: list[tuple[str, list[Cell]]]
    flags: list[tuple[str, str]]


def compared(labels: QuerySet[Label], trajectory: Trajectory) -> Comparison:
    """The current revisions of ``labels``, which the caller has been allowed to see, in the order of pseudonyms."""
    names = pseudonyms(trajectory)
    newest: dict[int, Label] = {}
    for label in labels.select_related("assignment").prefetch_related("findings__key_point").order_by("revision"):
        newest[label.assignment.annotator_id] = label
    columns = sorted(((names[pk], label) for pk, label in newest.items()), key=lambda column: _natural(column[0]))
    flags = [(names[flag.annotator_id], flag.note) for flag in trajectory.flags.all()]
    return Comparison(columns, _rows([label for _, label in columns]), flags)


def pseudonyms(trajectory: Trajectory) -> dict[int, str]:
    """Pseudonym by the person's primary key."""
    members = Membership.objects.filter(submission=trajectory.submission_id)
    return dict(members.values_list("person_id", "pseudonym"))


def _natural(pseudonym: str) -> tuple[str, int]:
    return pseudonym[:1], int(pseudonym[1:] or 0)


def _rows(labels: list[Label]) -> list[tuple[str, list[Cell]]]:
    rows = [
        _row("Verdict", [Cell(verdict_name(label)) for label in labels]),
        _row("Failed at", [Cell("", label.failure_step) for label in labels]),
        _row("Failure type", [Cell(NAMES.get(label.failure_type, label.failure_type)) for label in labels]),
        _row("Cause", [Cell(NAMES.get(label.cause, label.cause)) for label in labels]),
    ]
    texts = {f.key_point_id: f.key_point for label in labels for f in label.findings.all()}
    for number, point in enumerate(sorted(texts.values(), key=lambda p: (p.position, p.pk)), start=1):
        found = [{f.key_point_id: f for f in label.findings.all()}.get(point.pk) for label in labels]
        rows.append(_row(f"{number}. {point.text}", [Cell(f.finding, f.step) if f else Cell("") for f in found]))
    return [row for row in rows if any(cell.text or cell.step is not None for cell in row[1])]


def _row(title: str, cells: list[Cell]) -> tuple[str, list[Cell]]:
    """Light the cells that most others do not share; all of them when no value has a majority."""
    # A key point is judged by its finding: two steps may prove the same thing.
    values: list[Any] = [cell.text or cell.step for cell in cells]
    value, count = Counter(values).most_common(1)[0] if values else (None, 0)
    majority = value if count * 2 > len(values) else object()
    return title, [Cell(c.text, c.step, lit=v != majority) for c, v in zip(cells, values, strict=True)]


def verdict_name(decision: Label | Adjudication) -> str:
    return "" if decision.verdict is None else VERDICT_NAMES[Verdict(decision.verdict)]


def named(decision: Any) -> Any:
    """The decision with the names of its failure type and cause, for the template; None stays None."""
    if decision is not None:
        decision.failure_type_name = NAMES.get(decision.failure_type, decision.failure_type)
        decision.cause_name = NAMES.get(decision.cause, decision.cause)
    return decision
