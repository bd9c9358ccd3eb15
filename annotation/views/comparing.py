"""Labels side by side, aligned by key point, with their differences and the values to adopt."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from django.db.models import QuerySet

from annotation.form_fields import VERDICT_NAMES
from annotation.label_fields import (
    ADJUDICATION_FIELDS,
    CONTENT_ORDER,
    LABEL_FIELDS,
    TEXT_FIELDS,
    BoxesField,
    CodeField,
    CodesField,
    LabelField,
    ProcessField,
    StepField,
    StepsField,
    TextField,
    VerdictField,
)
from annotation.models import Adjudication, HumanAttempt, KeyPointFinding, Label, Membership, Trajectory
from annotation.process_labels import RIGHT, Marks, find_majority, read_marks
from annotation.protocol import PATHS, PROCESS_LABELS
from annotation.records import Verdict

Decision = TypeVar("Decision", Label, Adjudication)
PATH_NAMES = {term.code: term.name for term in PATHS}
LONG = 240  # characters: a longer reasoning is folded; about five lines of a column


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of one annotator's label (``of``); ``steps`` that it names, ``lit`` if it differs from the majority.

    ``fields`` is JSON with the form fields to fill when the cell is adopted; empty if there is nothing to adopt. The
    field ``process`` can be {step: mark}, which leaves the marks of other steps alone.
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
    """A row of the comparison; ``measured`` on the desk, not entered."""

    title: str
    cells: list[Cell]
    measured: bool = False

    @property
    def differs(self) -> bool:
        return any(cell.lit for cell in self.cells)


@dataclass(frozen=True, slots=True)
class Column:
    """A label with its pseudonym; ``fields`` as in `Cell`, to adopt the whole label at once."""

    name: str
    label: Label
    fields: str

    @property
    def attempt(self) -> tuple[str, HumanAttempt] | None:
        """Return the annotator's own attempt, with the comparison of the agent's path; None if not required."""
        attempt = getattr(self.label, "attempt", None)
        return None if attempt is None else (PATH_NAMES.get(attempt.path, attempt.path).lower(), attempt)

    @property
    def texts(self) -> list[tuple[str, str]]:
        return _list_texts(self.label)

    @property
    def start(self) -> str:
        """Return the beginning of a long reasoning; empty if the whole is short enough to show."""
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

    @property
    def heads(self) -> list[tuple[Column, Cell]]:
        """Return each label with the cell of its verdict."""
        return list(zip(self.columns, self.row("Verdict").cells, strict=True)) if self.columns else []

    @property
    def votes(self) -> list[tuple[int, list[str]]]:
        """Return each verdict with the annotators who gave it, for the buttons of a form."""
        by = {verdict: [c.name for c in self.columns if c.label.verdict == verdict] for verdict in VERDICT_NAMES}
        return [(int(verdict), names) for verdict, names in by.items()]

    @property
    def differing(self) -> list[Row]:
        return [row for row in self.rows if row.differs and row.title != "Verdict"]

    @property
    def agreed(self) -> list[Row]:
        return [row for row in self.rows if not (row.differs or row.measured) and row.title != "Verdict"]

    @property
    def measures(self) -> list[Row]:
        return [row for row in self.rows if row.measured]

    @property
    def agreed_findings(self) -> dict[str, str]:
        """Return the form fields of findings on which all labels agree, with the step of the first."""
        found: dict[str, str] = {}
        given = [[_finding_fields(finding) for finding in column.label.findings.all()] for column in self.columns]
        for fields in given[0] if given else []:
            name, value = next(iter(fields.items()))
            if all(any(other.get(name) == value for other in label) for label in given):
                found |= fields
        return found

    @property
    def majority_process(self) -> dict[str, str]:
        """Return the form field with the marks on which a majority of the labels agrees; empty if there are none."""
        marks = [(step, mark) for step, mark in enumerate(self._majority_marks) if mark not in (RIGHT, None)]
        text = LABEL_FIELDS["process"].as_text([{"step": step, "mark": mark} for step, mark in marks])
        return {"process": text} if text else {}

    @property
    def contested_steps(self) -> list[int]:
        """Return the steps whose marks have no majority: in a form without marks on them, they are right."""
        return [step for step, mark in enumerate(self._majority_marks) if mark is None]

    @property
    def _majority_marks(self) -> list[str | None]:
        said = [read_marks(column.label.process) for column in self.columns]
        return find_majority(said, 1 + max((step for marks in said for step in marks), default=-1))

    @property
    def boxes(self) -> list[dict[str, Any]]:
        """Return the boxes of all labels as the desk draws them, each annotator's in their colour."""
        return [
            box
            for number, column in enumerate(self.columns, start=1)
            for box in _list_boxes(column.label, f"label-{number}", f"{column.name} · ")
        ]

    def row(self, title: str) -> Row:
        return next(row for row in self.rows if row.title == title)


def compare_labels(labels: QuerySet[Label], trajectory: Trajectory, *, measured: bool = False) -> Comparison:
    """Compare the current revisions of ``labels``, which the caller may see, in the order of pseudonyms.

    ``measured`` adds active time and opened steps of each annotator; do not show these to other annotators.
    """
    names = pseudonyms(trajectory)
    newest: dict[int, Label] = {}
    said = labels.select_related("assignment", "attempt").prefetch_related("findings")
    for label in said.order_by("revision"):
        newest[label.assignment.annotator_id] = label
    found = sorted(((names[pk], label) for pk, label in newest.items()), key=lambda pair: _sort_key(pair[0]))
    flags = [(names[flag.annotator_id], flag.note) for flag in trajectory.flags.all()]
    current = [label for _, label in found]
    rows = _build_rows(current) + (_build_measures(current, trajectory) if measured else [])
    columns = [Column(name, label, _encode_everything(label)) for name, label in found]
    return Comparison(columns, [_sign_cells(row, columns) for row in rows], flags)


def pseudonyms(trajectory: Trajectory) -> dict[int, str]:
    members = Membership.objects.filter(submission=trajectory.submission_id)
    return dict(members.values_list("person_id", "pseudonym"))


def _sort_key(pseudonym: str) -> tuple[str, int]:
    return pseudonym[:1], int(pseudonym[1:] or 0)


# --- rows ------------------------------------------------------------------------------------------------------------


def _build_rows(labels: list[Label]) -> list[Row]:
    rows = []
    for name in CONTENT_ORDER:
        declared = LABEL_FIELDS.get(name)
        if name == "findings":
            rows += _build_finding_rows(labels)
        elif isinstance(declared, ProcessField):
            rows += _build_process_rows(labels)
        elif declared is not None and not isinstance(declared, TextField):
            rows.append(_build_row(declared.title, [_build_cell(declared, label) for label in labels]))
    return [row for row in rows if any(cell.said for cell in row.cells)]


def _build_finding_rows(labels: list[Label]) -> list[Row]:
    rows = []
    texts = {f.key_point_id: f.key_point for label in labels for f in label.findings.all()}
    for number, point in enumerate(sorted(texts.values(), key=lambda p: (p.position, p.pk)), start=1):
        found = [{f.key_point_id: f for f in label.findings.all()}.get(point.pk) for label in labels]
        rows.append(_build_row(f"{number}. {point.text}", [_build_finding_cell(finding) for finding in found]))
    return rows


def _build_process_rows(labels: list[Label]) -> list[Row]:
    """Build a row for each step that a label marks; steps without a mark are right."""
    said = [read_marks(label.process) for label in labels]
    steps = sorted({step for marks in said for step in marks})
    rows = [_build_row(f"Step {step}", [_build_process_cell(marks, step) for marks in said]) for step in steps]
    # Marks on which all agree are in the form already, and a page can have hundreds.
    return [row if row.differs else replace(row, cells=[replace(c, fields="") for c in row.cells]) for row in rows]


def _build_process_cell(marks: Marks, step: int) -> Cell:
    names = {term.code: term.name.lower() for term in PROCESS_LABELS}
    mark = marks.get(step, RIGHT)
    return Cell(names.get(mark, mark), (step,), fields=json.dumps({"process": {step: names.get(mark, mark)}}))


def _build_cell(declared: LabelField, label: Label) -> Cell:
    """Build a cell; it can be adopted alone unless its field depends on the verdict."""
    value = getattr(label, declared.name)
    if isinstance(declared, VerdictField):
        return Cell(verdict_name(label), fields=json.dumps(_verdict_fields(label)))
    fields = json.dumps({declared.name: declared.as_text(value)}) if declared.of is None and value else ""
    match declared:
        case StepField():
            return Cell("", _as_steps(value), fields=fields)
        case StepsField():
            return Cell("", tuple(value), fields=fields)
        case BoxesField():
            return Cell("", tuple(box["step"] for box in value))
        case CodeField() | CodesField():
            return Cell(", ".join(sorted(declared.names_of(value))), fields=fields)
    raise TypeError(declared)


def _build_row(title: str, cells: list[Cell]) -> Row:
    """Build a row; ``lit`` are the cells that differ from the majority, or all if there is no majority."""
    # Key points are compared by finding alone: two steps may prove the same thing.
    values: list[Any] = [cell.text or cell.steps for cell in cells]
    value, count = Counter(values).most_common(1)[0] if values else (None, 0)
    majority = value if count * 2 > len(values) else object()
    return Row(title, [replace(c, lit=v != majority) for c, v in zip(cells, values, strict=True)])


def _sign_cells(row: Row, columns: list[Column]) -> Row:
    return replace(row, cells=[replace(cell, of=column.name) for cell, column in zip(row.cells, columns, strict=True)])


def _build_finding_cell(finding: KeyPointFinding | None) -> Cell:
    if finding is None:
        return Cell("")
    return Cell(finding.finding, _as_steps(finding.step), fields=json.dumps(_finding_fields(finding)))


def _as_steps(step: int | None) -> tuple[int, ...]:
    return () if step is None else (step,)


def _build_measures(labels: list[Label], trajectory: Trajectory) -> list[Row]:
    """Build the rows of active time and opened steps, if measured; never highlighted."""
    if all(label.active_seconds is None and label.steps_seen is None for label in labels):
        return []
    count = trajectory.steps.count()
    timed = Row("Active for", [Cell(duration(label.active_seconds)) for label in labels], measured=True)
    if count == 0:
        return [timed]
    seen = ["" if label.steps_seen is None else f"{len(label.steps_seen)} of {count}" for label in labels]
    return [
        timed,
        Row("Steps opened", [Cell(text) for text in seen], measured=True),
    ]


def duration(seconds: int | None) -> str:
    """Format a duration: 45 s, 12 min; empty if not measured."""
    if seconds is None:
        return ""
    return f"{seconds} s" if seconds < 60 else f"{round(seconds / 60)} min"


# --- values to adopt: fields of the form -----------------------------------------------------------------------------


def _verdict_fields(label: Label) -> dict[str, str]:
    """Return the verdict and its dependent fields; empty ones are cleared in the form, texts are left alone."""
    return _as_text(label, lambda each: each.of is not None or isinstance(each, VerdictField))


def _as_text(label: Label, wanted: Callable[[LabelField], bool]) -> dict[str, str]:
    return {
        name: each.as_text(getattr(label, name))
        for name, each in LABEL_FIELDS.items()
        if wanted(each) and not isinstance(each, TextField)
    }


def _finding_fields(finding: KeyPointFinding) -> dict[str, str]:
    name = f"finding_{finding.key_point_id}"
    return {name: finding.finding, f"{name}_step": "" if finding.step is None else str(finding.step)}


def _encode_everything(label: Label) -> str:
    fields = _as_text(label, lambda each: True)
    for finding in label.findings.all():
        fields |= _finding_fields(finding)
    return json.dumps(fields)


def verdict_name(decision: Label | Adjudication) -> str:
    return "" if decision.verdict is None else VERDICT_NAMES[Verdict(decision.verdict)]


@dataclass(frozen=True, slots=True)
class Summary:
    """A decision in words, without its verdict, failure step, findings and reasoning: pairs of title and content."""

    failure: str
    choices: list[tuple[str, str]]
    steps: list[tuple[str, list[int]]]
    texts: list[tuple[str, str]]
    path: str
    boxes: list[dict[str, Any]]


def summarise(decision: Decision | None) -> Decision | None:
    """Add the ``summary`` that templates show; None stays None."""
    if decision is not None:
        decision.summary = _build_summary(decision)  # type: ignore[attr-defined]
    return decision


def _build_summary(decision: Label | Adjudication) -> Summary:
    declared = ADJUDICATION_FIELDS if isinstance(decision, Adjudication) else LABEL_FIELDS
    given = [(each, value) for name, each in declared.items() if (value := getattr(decision, name))]
    codes = [(each, each.names_of(value)) for each, value in given if isinstance(each, CodeField | CodesField)]
    attempt = getattr(decision, "attempt", None)
    return Summary(
        failure=", ".join(name for each, names in codes if each.of is not None for name in names),
        choices=[(each.title, ", ".join(names)) for each, names in codes if each.of is None],
        steps=[(each.title, value) for each, value in given if isinstance(each, StepsField)]
        + [(each.title, [box["step"] for box in value]) for each, value in given if isinstance(each, BoxesField)]
        + _list_marks(decision),
        texts=_list_texts(decision),
        path=PATH_NAMES.get(attempt.path, attempt.path).lower() if isinstance(attempt, HumanAttempt) else "",
        boxes=_list_boxes(
            decision, *(("decided", "decision · ") if isinstance(decision, Adjudication) else ("own", ""))
        ),
    )


def _list_marks(decision: Label | Adjudication) -> list[tuple[str, list[int]]]:
    """Return each mark that the decision gives to steps, with these steps."""
    names = {term.code: term.name for term in PROCESS_LABELS}
    marked: dict[str, list[int]] = {name: [] for name in names.values()}
    for each in decision.process:  # an audited bundle can have any kind
        marked.setdefault(names.get(each["mark"], each["mark"]), []).append(each["step"])
    return [(name, steps) for name, steps in marked.items() if steps]


def _list_boxes(decision: Label | Adjudication, kind: str, whose: str) -> list[dict[str, Any]]:
    """Return the boxes of a decision with a name to show: the number of the key point, or the failure."""
    findings: Any = decision.findings.all()
    current = [finding.key_point.text for finding in findings if finding.key_point.retired_at is None]
    numbers = {text: str(number) for number, text in enumerate(current, start=1)}  # as the form numbers them
    return [
        {
            "step": box["step"],
            "box": box["box"],
            "kind": kind,
            "name": whose + ("failure" if box["key_point"] is None else numbers.get(box["key_point"], "key point")),
        }
        for box in decision.boxes
    ]


def _list_texts(decision: Label | Adjudication) -> list[tuple[str, str]]:
    texts = [(LABEL_FIELDS[name].title, getattr(decision, name)) for name in TEXT_FIELDS if name != "reasoning"]
    return [(title, text) for title, text in texts if text]


# --- a verdict and the labels -----------------------------------------------------------------------------------------


def join_names(names: Iterable[str]) -> str:
    """Join names: A1 / A1 and A2 / A1, A2 and A3."""
    *head, last = names
    return f"{', '.join(head)} and {last}" if head else last


def describe_effects(comparison: Comparison, before: Verdict | None) -> list[tuple[Verdict, str]]:
    """Return the effect of each verdict on the labels and on the final verdict ``before`` (None for none)."""
    return [(verdict, f"{_stand(comparison, verdict)} {_becomes(verdict, before)}") for verdict in VERDICT_NAMES]


def _stand(comparison: Comparison, verdict: Verdict) -> str:
    with_it = [column.name for column in comparison.columns if column.label.verdict == verdict]
    against = [column.name for column in comparison.columns if column.label.verdict != verdict]
    parts = [f"agrees with {join_names(with_it)}"] if with_it else []
    parts += [f"overturns {join_names(against)}"] if against else []
    return f"{VERDICT_NAMES[verdict]}: {', '.join(parts)}."


def _becomes(verdict: Verdict, before: Verdict | None) -> str:
    name = VERDICT_NAMES[verdict].lower()
    if before is None:
        return f"The final verdict becomes {name}."
    if before == verdict:
        return f"The final verdict stays {name}."
    return f"The final verdict becomes {name} (was {VERDICT_NAMES[before].lower()})."


@dataclass(frozen=True, slots=True)
class Agreement:
    """A decision compared with the labels, in words; ``points`` are (title, sentence) of differing key points."""

    verdict: str
    agrees: bool
    points: list[tuple[str, str]]
    same_points: int


def describe_agreement(comparison: Comparison, decision: Adjudication, *, own: bool) -> Agreement:
    """Compare a decision with the labels, key point by key point; ``own`` if the reader made it."""
    against = [column.name for column in comparison.columns if column.label.verdict != decision.verdict]
    with_it = [column.name for column in comparison.columns if column.label.verdict == decision.verdict]
    who = "You agree" if own else "The decision agrees"
    sentences = [f"{who} with {_all(with_it, comparison)}."] if with_it else []
    sentences += [f"{'Your verdict' if own else 'The verdict'} overturns {join_names(against)}."] if against else []
    points, same = _point_sentences(comparison, decision, own)
    return Agreement(" ".join(sentences), not against, points, same)


def _all(names: list[str], comparison: Comparison) -> str:
    if len(names) < len(comparison.columns) or len(names) < 2:
        return join_names(names)
    return "both labels" if len(names) == 2 else f"all {_number(len(names))} labels"


def _number(count: int) -> str:
    return {3: "three", 4: "four", 5: "five"}.get(count, str(count))


def _point_sentences(comparison: Comparison, decision: Adjudication, own: bool) -> tuple[list[tuple[str, str]], int]:
    points, same = [], 0
    said = [(c.name, {f.key_point_id: f.finding for f in c.label.findings.all()}) for c in comparison.columns]
    for number, finding in enumerate(decision.findings.all(), start=1):
        others: dict[str, list[str]] = {}
        for name, findings in said:
            if findings.get(finding.key_point_id, finding.finding) != finding.finding:
                others.setdefault(findings[finding.key_point_id], []).append(name)
        if not others:
            same += 1
            continue
        rest = "; ".join(
            f"{_all(names, comparison)} {'say' if len(names) > 1 else 'says'} {value}"
            for value, names in others.items()
        )
        who = "you say" if own else "the decision says"
        points.append((f"{number}. {finding.key_point.text}", f"{who} {finding.finding}; {rest}."))
    return points, same
