"""One task of two agents: both trajectories at a step, what they have in common, and what people decided."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.db.models.functions import Left
from django.urls import reverse

from annotation.models import Adjudication, KeyPoint, Label, Trajectory
from annotation.models.states import current_labels, final_verdict, with_state
from annotation.views.viewer import Thumb, Viewer, find_own_page, view_step
from evaluations.comparison.alignment import LONGEST_ACTION, LONGEST_URL, Alignment, Move, align, parse_move
from evaluations.comparison_tables import verdict_name
from evaluations.naming import failure_type_name

SIDES = "left", "right"
AROUND = 20  # steps of a strip on each side of the current one
Address = Callable[[int, int], str]  # of the page at a left and a right step


@dataclass(frozen=True, slots=True)
class Tile:
    """A step in a strip; ``same`` is the step of the other agent that does the same, None if there is none."""

    thumb: Thumb
    words: str
    address: str
    same: int | None
    parts: bool


@dataclass(frozen=True, slots=True)
class Point:
    """What people found about a key point: met, unmet, unclear, or counts of these; "" if nothing."""

    text: str
    step: int | None = None
    address: str = ""

    @property
    def kind(self) -> str:
        return self.text if self.text in ("met", "unmet") else ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The final verdict with its ``basis`` and reasons, each with a title; ``verdict`` is None while undecided."""

    verdict: int | None
    name: str
    basis: str
    failure: str
    failure_step: int | None
    failure_address: str
    reasons: list[tuple[str, str]]
    points: dict[int, Point]


@dataclass(frozen=True, slots=True)
class Side:
    """One agent; ``key`` is left or right, ``steps`` the number of steps, ``reader`` the address of its own page."""

    key: str
    trajectory: Trajectory
    viewer: Viewer
    tiles: list[Tile]
    reader: str
    previous: str
    next: str
    earlier: str
    later: str
    parts_at: int | None
    outcome: Outcome | None

    @property
    def steps(self) -> int:
        return len(self.viewer.rows)


@dataclass(frozen=True, slots=True)
class TaskPairView:
    """Both sides, and the addresses to which both move together; "" if there is none."""

    sides: list[Side]
    previous: str
    next: str
    first: str
    last: str
    parting: str
    says: str
    points: list[tuple[KeyPoint, Point, Point]]
    same_points: list[tuple[KeyPoint, Point, Point]]


def build(
    person: Any,
    left: Trajectory,
    right: Trajectory,
    asked: Sequence[int],
    path: str,
    kept: str,
    *,
    verdicts: bool,
) -> TaskPairView:
    """Return the page at the ``asked`` steps; ``kept`` is the rest of its query, ``path`` its address.

    Nothing that people decided is loaded without ``verdicts``.
    """
    rows = left, right
    moves = [_load_moves(row) for row in rows]
    found = align(*moves)
    at = [min(step, max(len(own) - 1, 0)) for step, own in zip(asked, moves, strict=True)]

    def address(one: int, other: int) -> str:
        return f"{path}?left={one}&right={other}" + (f"&{kept}" if kept else "")

    outcomes = _load_outcomes(rows, at, address) if verdicts else [None, None]
    sides = [_side(person, n, rows[n], moves[n], found, at, address, outcomes[n]) for n in (0, 1)]
    together = [found.move(at[0], at[1], by) for by in (-1, 1)]
    parting, last = found.parting, [max(len(own) - 1, 0) for own in moves]
    points = _compare_points(left, outcomes) if verdicts else []
    return TaskPairView(
        sides=sides,
        previous=address(*together[0]) if together[0] else "",
        next=address(*together[1]) if together[1] else "",
        first=address(0, 0),
        last=address(*last),
        parting=address(*found.meet(parting)) if parting else "",
        says=_say(found, [str(row.submission) for row in rows]),
        points=[row for row in points if row[1].text != row[2].text],
        same_points=[row for row in points if row[1].text == row[2].text],
    )


def _load_moves(trajectory: Trajectory) -> list[Move]:
    texts = Left("action", LONGEST_ACTION + 20), Left("url", LONGEST_URL)
    rows = trajectory.steps.order_by("index").values_list(*texts, "click_x", "click_y")
    return [parse_move(action, url, None if None in (x, y) else (x, y)) for action, url, x, y in rows]


def _say(found: Alignment, names: Sequence[str]) -> str:
    """Return the first difference in words."""
    row, same = found.parting, sum(each.same for each in found.rows)
    if row is None:
        return "Both do the same at every step." if found.rows else "Neither agent has steps."
    alike = "1 step is the same." if same == 1 else f"{same} steps are the same."
    if row.left is None or row.right is None:
        step, at, other = (row.left, *names) if row.right is None else (row.right, *reversed(names))
        return f"First difference: step {step} of {at}, which {other} does not have. {alike}"
    where = f"step {row.left}" if row.left == row.right else f"steps {row.left} and {row.right}"
    return f"First difference: {where}. {alike}"


def _side(
    person: Any,
    key: int,
    row: Trajectory,
    moves: Sequence[Move],
    found: Alignment,
    at: Sequence[int],
    address: Address,
    outcome: Outcome | None,
) -> Side:
    seen = view_step(row, at[key], AROUND)
    same, parting = found.matched()[key], found.parting
    parts_at = None if parting is None else (parting.left, parting.right)[key]

    def step(index: int | None) -> str:
        return "" if index is None else _one_moved(address, at, key, index)

    first, last = (seen.strip[0].step.index, seen.strip[-1].step.index) if seen.strip else (0, 0)
    return Side(
        key=SIDES[key],
        trajectory=row,
        viewer=seen,
        tiles=[
            Tile(
                thumb,
                moves[thumb.step.index].words,
                step(thumb.step.index),
                same.get(thumb.step.index),
                thumb.step.index == parts_at,
            )
            for thumb in seen.strip
        ],
        reader=_reader(person, row, at[key], f"{address(at[0], at[1])}&moves={SIDES[key]}&"),
        previous=step(seen.previous),
        next=step(seen.next),
        earlier=step(max(first - AROUND - 1, 0)) if first > 0 else "",
        later=step(min(last + AROUND + 1, seen.last)) if last < seen.last else "",
        parts_at=parts_at,
        outcome=outcome,
    )


def _one_moved(address: Address, at: Sequence[int], key: int, index: int) -> str:
    return address(index, at[1]) if key == 0 else address(at[0], index)


def _reader(person: Any, row: Trajectory, index: int, here: str) -> str:
    """Return the address of the person's own page at the step: for people without one, of a transcript of ``here``."""
    own = find_own_page(person, row)
    if own:
        return f"{own}step={index}"
    return f"{reverse('transcript', args=[row.pk])}?{urlencode({'from': index, 'desk': here})}"


# --- what people decided ---------------------------------------------------------------------------------------------


def _load_outcomes(rows: Sequence[Trajectory], at: Sequence[int], address: Address) -> list[Outcome]:
    keys = [row.pk for row in rows]
    states = {each.pk: each for each in with_state(Trajectory.objects.filter(pk__in=keys))}
    labels = current_labels().filter(assignment__trajectory__in=keys).order_by("assignment__slot")
    decided = Adjudication.objects.filter(trajectory__in=keys, decided_at__isnull=False).order_by("revision")
    said = list(labels.select_related("assignment").prefetch_related("findings"))
    last = {each.trajectory_id: each for each in decided.prefetch_related("findings")}
    return [
        _outcome(
            final_verdict(states[row.pk]),
            [label for label in said if label.assignment.trajectory_id == row.pk],
            last.get(row.pk),
            lambda step, key=key: _one_moved(address, at, key, step),  # type: ignore[misc]
        )
        for key, row in enumerate(rows)
    ]


def _outcome(
    final: int | None, labels: Sequence[Label], decision: Adjudication | None, address: Callable[[int], str]
) -> Outcome:
    """Return the outcome; without a final verdict nothing that people said."""
    if final is None:
        return Outcome(None, "undecided", "", "", None, "", [], {})
    sources: Sequence[Label | Adjudication] = labels if decision is None else [decision]
    agreed = sum(label.verdict == final for label in labels)
    failing = next((each for each in sources if each.failure_type), None)
    step = failing.failure_step if failing else None
    return Outcome(
        verdict=final,
        name=verdict_name(final),  # type: ignore[arg-type]
        basis=f"{agreed} of {len(labels)} people" + ("" if decision is None else ", decided by an adjudicator"),
        failure=failure_type_name(failing.failure_type) if failing else "",
        failure_step=step,
        failure_address="" if step is None else address(step),
        reasons=[("Decision", decision.reasoning)]
        if decision
        else [(f"Label {label.assignment.slot}", label.reasoning) for label in labels],
        points=_find_points(sources, address),
    )


def _find_points(sources: Sequence[Label | Adjudication], address: Callable[[int], str]) -> dict[int, Point]:
    said: dict[int, list[Any]] = {}
    for source in sources:
        for finding in source.findings.all():
            said.setdefault(finding.key_point_id, []).append(finding)
    return {key: _point(findings, address) for key, findings in said.items()}


def _point(findings: Sequence[Any], address: Callable[[int], str]) -> Point:
    counted = Counter(finding.finding for finding in findings)
    if len(counted) > 1:
        return Point(", ".join(f"{count} {name}" for name, count in counted.most_common()))
    step = next((finding.step for finding in findings if finding.step is not None), None)
    return Point(findings[0].finding, step, "" if step is None else address(step))


def _compare_points(row: Trajectory, outcomes: Sequence[Outcome | None]) -> list[tuple[KeyPoint, Point, Point]]:
    points = [each.points if each else {} for each in outcomes]
    shown = KeyPoint.objects.filter(pk__in={*points[0], *points[1]}, task=row.task)
    return [(each, points[0].get(each.pk, Point("")), points[1].get(each.pk, Point(""))) for each in shown]
