"""Schemas and readers of the verifier's replies. A reader raises Mismatch, after which the question is repeated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any

from judges.scorers import framing, reading
from judges.scorers.detail_values import whole
from judges.scorers.verifier.model import (
    CATEGORIES,
    MOST_PENALTIES,
    MOST_POINTS,
    Blocker,
    Criterion,
    Findings,
    Grade,
    Mismatch,
    Penalty,
    format_points,
)

SIMILAR = 0.7  # lowest similarity of two names of the same criterion
COMPARED = 300  # characters of a name: comparing twenty long names with twenty others would take a minute
INTEGER, BOOLEAN = {"type": "integer"}, {"type": "boolean"}
POINTS = {"type": ["number", "null"]}
STEP = {"type": ["integer", "null"]}
CRITERIA_SCHEMA = reading.build_object_schema(
    criteria=reading.build_list_schema(
        reading.build_object_schema(
            criterion=reading.TEXT, description=reading.TEXT, max_points=INTEGER, condition=reading.TEXT
        )
    )
)
RELEVANCE_SCHEMA = reading.build_object_schema(
    screenshots=reading.build_list_schema(
        reading.build_object_schema(number=INTEGER, note=reading.TEXT, relevance=reading.build_list_schema(INTEGER))
    )
)
NAMED = {"number": INTEGER, "criterion": reading.TEXT, "reason": reading.TEXT, "applies": BOOLEAN}
GRADE_SCHEMA = reading.build_object_schema(**NAMED, points=POINTS)
FINDINGS = {
    "penalties": reading.build_list_schema(
        reading.build_object_schema(step=STEP, reason=reading.TEXT, points={"type": "number"})
    ),
    "blockers": reading.build_list_schema(
        reading.build_object_schema(criterion=INTEGER, step=STEP, reason=reading.TEXT)
    ),
    "critical_point": reading.build_object_schema(violated=BOOLEAN, step=STEP, reason=reading.TEXT),
    "first_failure": reading.build_object_schema(
        step=STEP, category={"type": "string", "enum": list(CATEGORIES)}, reason=reading.TEXT
    ),
    "validity": reading.build_object_schema(ambiguous=BOOLEAN, invalid=BOOLEAN, reason=reading.TEXT),
    "reason": reading.TEXT,
    "outcome": BOOLEAN,
}
FINDINGS_SCHEMA = reading.build_object_schema(**FINDINGS)
TOGETHER_SCHEMA = reading.build_object_schema(
    criteria=reading.build_list_schema(reading.build_object_schema(**NAMED, points_from_actions=POINTS, points=POINTS)),
    **FINDINGS,
)

Data = Mapping[str, Any]


def read_criteria(data: Data, most: int) -> tuple[Criterion, ...]:
    entries = data["criteria"]
    if not 1 <= len(entries) <= most:
        raise Mismatch(f"The reply lists {len(entries):,} criteria, not 1 to {most}.")
    found: list[Criterion] = []
    for number, entry in enumerate(entries, start=1):
        text, points = _text(entry["criterion"], framing.POINT), entry["max_points"]
        if not text:
            raise Mismatch(f"Criterion {number} has no text.")
        if not 1 <= points <= MOST_POINTS:
            raise Mismatch(f"Criterion {number} has {_show(points)} points, not 1 to {MOST_POINTS}.")
        if any(text.casefold() == one.text.casefold() for one in found):
            raise Mismatch(f"Criterion {number} repeats another one.")
        description, condition = (_text(entry[name], framing.POINT) for name in ("description", "condition"))
        found.append(Criterion(number, text, points, description, condition))
    return tuple(found)


def read_relevance(data: Data, shots: int, criteria: int) -> list[tuple[tuple[int, ...], str]]:
    """Return the ratings and the note of each screenshot of a call, in the order in which they were sent."""
    entries = {entry["number"]: entry for entry in data["screenshots"]}
    if len(data["screenshots"]) != shots or set(entries) != set(range(1, shots + 1)):
        raise Mismatch(f"The reply does not rate exactly the {shots} screenshots.")
    found = []
    for number in range(1, shots + 1):
        ratings = tuple(entries[number]["relevance"])
        if len(ratings) != criteria or not all(0 <= one <= 10 for one in ratings):
            raise Mismatch(f"Screenshot {number} does not have {criteria} ratings from 0 to 10.")
        found.append((ratings, _text(entries[number]["note"], framing.REASON)))
    return found


# --- grades -----------------------------------------------------------------------------------------------------------


def read_grade(data: Data, criterion: Criterion, criteria: Sequence[Criterion], final: bool) -> Grade:
    """Return the grade of a reply on one of the criteria; with ``final``, impossible points leave it ungraded."""
    if find_criterion(data["number"], data["criterion"], criteria) != criterion.number:
        raise Mismatch(f"The reply on criterion {criterion.number} grades {_text(data['criterion'], 100)!r}.")
    return _read_points(data, "points", criterion, final)


def read_grades(data: Data, criteria: Sequence[Criterion], final: bool) -> list[tuple[Grade, Grade]]:
    """Return the grades from actions and from images of each criterion, in the order of ``criteria``."""
    entries = _match(data["criteria"], criteria)
    return [
        (
            _read_points(entries[one.number], "points_from_actions", one, final),
            _read_points(entries[one.number], "points", one, final),
        )
        for one in criteria
    ]


def _match(entries: Sequence[Data], criteria: Sequence[Criterion]) -> dict[int, Data]:
    """Return the entries by number of criterion; raise Mismatch unless each criterion has exactly one."""
    if len(entries) != len(criteria):
        raise Mismatch(f"The reply grades {len(entries):,} criteria, not {len(criteria)}.")
    found: dict[int, Data] = {}
    for entry in entries:
        number = find_criterion(entry["number"], entry["criterion"], criteria)
        if number is None:
            raise Mismatch(f"The reply grades a criterion that was not asked for: {_text(entry['criterion'], 100)!r}.")
        if number in found:
            raise Mismatch(f"The reply grades criterion {number} twice.")
        found[number] = entry
    return found


def find_criterion(number: int, name: str, criteria: Sequence[Criterion]) -> int | None:
    """Return the number of the criterion that a reply means: the one with its number or with a similar name.

    Return None if there is none, or if number and name mean different ones.
    """
    alike = {one.number: compute_similarity(name, one.text) for one in criteria}
    least = 1.0 if 1.0 in alike.values() else SIMILAR  # similar criteria: one that is named exactly is meant
    named = [known for known, similarity in alike.items() if similarity >= least]
    if number in named or (number in alike and not named):
        return number
    if number in alike or not named:
        return None
    return max(named, key=lambda known: alike[known])


def compute_similarity(name: str, text: str) -> float:
    """Return the ratio of difflib's SequenceMatcher, 0 to 1, without regard to case and spaces.

    Only the first `COMPARED` characters count. A ratio below `SIMILAR` may be returned as 0.
    """
    pair = SequenceMatcher(None, _normalize(name), _normalize(text), autojunk=False)
    return pair.ratio() if pair.real_quick_ratio() >= SIMILAR and pair.quick_ratio() >= SIMILAR else 0.0


def _normalize(text: str) -> str:
    return " ".join(text.casefold().split())[:COMPARED]


def _read_points(entry: Data, field: str, criterion: Criterion, final: bool) -> Grade:
    points, reason, applies = entry[field], _text(entry["reason"], framing.REASON), entry["applies"]
    most = format_points(criterion.max_points)
    if points == float(most):
        points = criterion.max_points  # the prompt states rounded points
    if points is None or _is_within(points, 0, criterion.max_points):
        return Grade(points, reason, applies)
    wrong = f"Criterion {criterion.number} has {_show(points)} points, not 0 to {most}."
    if not final:
        raise Mismatch(wrong)
    return Grade(None, wrong, applies)


# --- findings ---------------------------------------------------------------------------------------------------------


def read_findings(data: Data, criteria: Sequence[Criterion], steps: int) -> Findings:
    critical, first, validity = data["critical_point"], data["first_failure"], data["validity"]
    violated = critical["violated"]
    went_wrong = first["category"] != "none"
    return Findings(
        outcome=data["outcome"],
        reason=_text(data["reason"], framing.REASON),
        penalties=_read_penalties(data["penalties"], steps),
        blockers=_read_blockers(data["blockers"], criteria, steps),
        critical_point=(_text(critical["reason"], framing.REASON) or "No reason was given.") if violated else "",
        critical_step=_read_step(critical["step"], steps) if violated else None,
        category=first["category"],
        first_step=_read_step(first["step"], steps) if went_wrong else None,
        first_reason=_text(first["reason"], framing.REASON) if went_wrong else "",
        is_ambiguous=validity["ambiguous"],
        is_invalid=validity["invalid"],
        validity_reason=_text(validity["reason"], framing.REASON),
    )


def _read_penalties(entries: Sequence[Data], steps: int) -> tuple[Penalty, ...]:
    if len(entries) > MOST_PENALTIES:
        raise Mismatch(f"The reply lists {len(entries):,} penalties, not at most {MOST_PENALTIES}.")
    for entry in entries:
        if not _is_within(entry["points"], 0, MOST_POINTS):
            raise Mismatch(f"A penalty has {_show(entry['points'])} points, not 0 to {MOST_POINTS}.")
    return tuple(
        Penalty(entry["points"], _read_step(entry["step"], steps), _text(entry["reason"], framing.REASON))
        for entry in entries
        if entry["points"]
    )


def _read_blockers(entries: Sequence[Data], criteria: Sequence[Criterion], steps: int) -> tuple[Blocker, ...]:
    known = {one.number for one in criteria}
    found: dict[int, Blocker] = {}
    for entry in entries:
        number = entry["criterion"]
        if number not in known:
            raise Mismatch("The reply names a blocked criterion that does not exist.")
        reason = _text(entry["reason"], framing.REASON)
        found.setdefault(number, Blocker(number, _read_step(entry["step"], steps), reason))
    return tuple(found.values())


def _read_step(value: Any, steps: int) -> int | None:
    """Return the step, None if no step of the trajectory has that number."""
    step = whole(value)
    return step if step is not None and 0 <= step < steps else None


def _is_within(value: Any, low: float, high: float) -> bool:
    return bool(low <= value <= high)


def _show(value: Any) -> str:
    return str(value)[:20]


def _text(value: str, limit: int) -> str:
    return value.strip()[:limit]
