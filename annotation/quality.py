"""Read-only quality figures of each annotator, for the maintainer only.

Only the first revisions of labels count, because these are always blind. Numbers about verdicts need at least `ENOUGH`
trajectories, so that they reveal nothing about a single one.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from statistics import median
from typing import Any, NamedTuple

from django.db.models import Count, QuerySet

from annotation.models import Flag, KnownAnswer, Label, Membership, Release, Step, Submission
from annotation.models.states import State, final_verdict, with_state

ENOUGH = 5
FAST = 3  # a label in less than the median time divided by this gets a hint
SEEN = 2  # so does a label with fewer opened steps than all steps divided by this
AT_ONCE = 2000  # rows in memory


@dataclass(slots=True)
class Share:
    """A part of ``whole`` cases. ``part`` and ``rate`` are None unless there are `ENOUGH` cases."""

    whole: int = 0
    _count: int = 0

    def add(self, case: bool) -> None:
        self.whole += 1
        self._count += case

    @property
    def part(self) -> int | None:
        return self._count if self.whole >= ENOUGH else None

    @property
    def rate(self) -> float | None:
        return None if self.part is None else self.part / self.whole

    def __str__(self) -> str:
        if self.rate is None:
            return f"too few ({self.whole})" if self.whole else "none yet"
        return f"{self.rate:.0%}"


@dataclass(frozen=True, slots=True)
class Hint:
    """A label that took less time than ``limit`` of `Report`, or had fewer opened steps than `SEEN` demands."""

    pseudonym: str
    trajectory: int
    task_id: str
    fast: bool
    few: bool
    seconds: int | None
    seen: int | None
    steps: int


@dataclass(frozen=True, slots=True)
class Row:
    """One annotator. Medians are in seconds, None if not measured; ``gold`` is the share of right answers.

    ``agreement``: labels equal to the final verdict, of all with a final verdict; too few while ``overturned`` is.
    ``overturned``: labels that differ from the final verdict, of those that an adjudicator decided. ``seen``: opened
    steps, of all steps of the labelled trajectories.
    """

    member: Membership
    labels: int
    agreement: Share
    overturned: Share
    gold: Share
    seconds: float | None
    seconds_per_step: float | None
    seen: float | None
    hints: int
    flags: int
    released: int


class Hints:
    """Sequence of hints for pages, with 8 bytes for each; it loads only the rows of a slice."""

    def __init__(self, submission: Submission, labels: array[int], limit: float | None) -> None:
        self._submission, self._labels, self._limit = submission, labels, limit

    def __len__(self) -> int:
        return len(self._labels)

    def __iter__(self) -> Iterator[Hint]:
        return iter(self[:])

    def __getitem__(self, shown: slice) -> list[Hint]:
        chosen = self._labels[shown]
        names = dict(self._submission.memberships.values_list("person_id", "pseudonym"))
        labels = {row.pk: row for row in _read_labels(Label.objects.filter(pk__in=chosen))}
        within = Step.objects.filter(trajectory__in={row.trajectory for row in labels.values()})
        steps = dict(within.order_by().values_list("trajectory").annotate(n=Count("pk")))
        found = ((label, steps.get(label.trajectory, 0)) for label in (labels[pk] for pk in chosen))
        return [
            Hint(
                pseudonym=names[label.person],
                trajectory=label.trajectory,
                task_id=label.task_id,
                fast=_is_fast(label, self._limit),
                few=_has_few(label, count),
                seconds=label.seconds,
                seen=None if label.seen is None else len(label.seen),
                steps=count,
            )
            for label, count in found
        ]


@dataclass(frozen=True, slots=True)
class Report:
    """Rows of all annotators, and hints. Labels below ``limit`` seconds get a hint; None below `ENOUGH` times."""

    rows: list[Row]
    hints: Hints
    limit: float | None
    gold: int


def report(submission: Submission) -> Report:
    limit = _find_limit(submission)
    known = dict(KnownAnswer.objects.filter(trajectory__submission=submission).values_list("trajectory", "verdict"))
    tallies: dict[int, _Tally] = defaultdict(_Tally)
    for label, final, adjudicated, steps in _read_first_labels(submission):
        tallies[label.person].add(label, final, adjudicated, steps, known.get(label.trajectory), limit)
    flags, released = _count_by_annotator(Flag, submission), _count_by_annotator(Release, submission)
    members = submission.memberships.filter(role=Membership.Role.ANNOTATOR).order_by("joined_at", "pk")
    rows, hints = [], array("q")
    for member in members:
        tally = tallies[member.person_id]
        rows.append(tally.row(member, flags.get(member.person_id, 0), released.get(member.person_id, 0)))
        hints += tally.hints
    return Report(rows, Hints(submission, hints, limit), limit, len(known))


def _find_limit(submission: Submission) -> float | None:
    """Return the median of all times, divided by `FAST`."""
    timed = _select_first_labels(submission).filter(active_seconds__gt=0).order_by("active_seconds")
    times = timed.values_list("active_seconds", flat=True)
    count = times.count()
    if count < ENOUGH:
        return None
    return median(time for time in times[(count - 1) // 2 : count // 2 + 1] if time is not None) / FAST


class _Label(NamedTuple):
    pk: int
    position: int
    trajectory: int
    task_id: str
    person: int
    verdict: int
    seconds: int | None
    seen: list[int] | None


def _select_first_labels(submission: Submission) -> QuerySet[Label]:
    return Label.objects.filter(assignment__trajectory__submission=submission, revision=1)


def _read_labels(labels: QuerySet[Label]) -> Iterator[_Label]:
    of_trajectory = ("position", "pk", "task__external_id")
    columns = ("pk", *(f"assignment__trajectory__{name}" for name in of_trajectory), "assignment__annotator")
    rows = labels.values_list(*columns, "verdict", "active_seconds", "steps_seen")
    return map(_Label._make, rows.iterator(chunk_size=AT_ONCE))


def _read_first_labels(submission: Submission) -> Iterator[tuple[_Label, int | None, bool, int]]:
    """Yield every first revision with the final verdict, whether it was adjudicated, and the steps of its trajectory.

    Three streams in the order of the submission, so that memory does not grow with it.
    """
    trajectories = with_state(submission.trajectories.order_by("position"))
    states = _InOrder(trajectories.values_list("position", *_FINAL, named=True).iterator(chunk_size=AT_ONCE))
    counted = Step.objects.filter(trajectory__submission=submission).values_list("trajectory__position")
    counts = counted.annotate(n=Count("pk")).order_by("trajectory__position")
    steps = _InOrder(counts.iterator(chunk_size=AT_ONCE))
    for label in _read_labels(_select_first_labels(submission).order_by("assignment__trajectory__position", "pk")):
        state, count = states.at(label.position), steps.at(label.position)
        adjudicated = state.state == State.ADJUDICATED
        yield label, final_verdict(state), adjudicated, 0 if count is None else count[1]


class _InOrder:
    """Rows in the order of their position, the first column; `at` must be called in the same order."""

    def __init__(self, rows: Iterator[Any]) -> None:
        self._rows = rows
        self._row = next(rows, None)

    def at(self, position: int) -> Any:
        while self._row is not None and self._row[0] < position:
            self._row = next(self._rows, None)
        return self._row if self._row is not None and self._row[0] == position else None


_FINAL = ("state", "decided", "lowest")


def _count_by_annotator(model: type[Flag] | type[Release], submission: Submission) -> dict[int, int]:
    rows = model.objects.filter(trajectory__submission=submission).order_by().values_list("annotator")
    return dict(rows.annotate(n=Count("trajectory", distinct=True)))


@dataclass(slots=True)
class _Tally:
    """The labels of one annotator while they are counted: 16 bytes for a label with a time, 8 for a hint."""

    labels: int = 0
    agreement: Share = field(default_factory=Share)
    overturned: Share = field(default_factory=Share)
    gold: Share = field(default_factory=Share)
    seen: int = 0
    steps: int = 0
    seconds: array[int] = field(default_factory=lambda: array("q"))
    per_step: array[float] = field(default_factory=lambda: array("d"))
    hints: array[int] = field(default_factory=lambda: array("q"))

    def add(
        self, label: _Label, final: int | None, adjudicated: bool, steps: int, known: int | None, limit: float | None
    ) -> None:
        self.labels += 1
        if final is not None:
            self.agreement.add(label.verdict == final)
            if adjudicated:
                self.overturned.add(label.verdict != final)
        if known is not None:
            self.gold.add(label.verdict == known)
        if label.seen is not None and steps:
            self.seen += len(label.seen)
            self.steps += steps
        if label.seconds:
            self.seconds.append(label.seconds)
            if label.seen:
                self.per_step.append(label.seconds / len(label.seen))
        if _is_fast(label, limit) or _has_few(label, steps):
            self.hints.append(label.pk)

    def row(self, member: Membership, flags: int, released: int) -> Row:
        # Nearly all other labels agree, being unanimous, so the difference would reveal the hidden share.
        is_hidden = self.overturned.whole and self.overturned.part is None
        return Row(
            member,
            labels=self.labels,
            agreement=self.overturned if is_hidden else self.agreement,
            overturned=self.overturned,
            gold=self.gold,
            seconds=median(self.seconds) if self.seconds else None,
            seconds_per_step=median(self.per_step) if self.per_step else None,
            seen=self.seen / self.steps if self.steps else None,
            hints=len(self.hints),
            flags=flags,
            released=released,
        )


def _is_fast(label: _Label, limit: float | None) -> bool:
    return limit is not None and label.seconds is not None and label.seconds < limit


def _has_few(label: _Label, steps: int) -> bool:
    return label.seen is not None and len(label.seen) * SEEN < steps
