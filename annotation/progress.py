"""Read-only progress figures of a submission: states, active people, pace, and what blocks the freeze.

Only the first revision of a label counts: a correction is not a second label.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, Exists, Func, IntegerField, Max, Min, OuterRef, Q, QuerySet, Sum

from annotation import clock, state_snapshots
from annotation.models import Activity, Adjudication, Assignment, Label, Submission, Trajectory
from annotation.models.plans import is_left_out
from annotation.models.states import FINAL, State, with_state

AT_WORK = timedelta(minutes=10)  # the desk reports every 20 seconds; reading a long page may take minutes
DAY, WEEK = timedelta(days=1), timedelta(days=7)
LEAST_MEASURED = 1 / 6  # hours; a rate over less time varies too much
OPENED = "opened, undecided"  # in addition to the states: an adjudicator has opened it
SLOT_STATES = ("open", "held", "filled", "expired")

# What must happen next in each state that is not final.
WAITS_FOR = {
    State.IN_REVIEW: "labels are missing",
    State.REOPENED: "an adjudicator must decide again",
    State.DISPUTE: "an adjudicator must decide",
    State.FLAGGED: "flagged by an annotator: an adjudicator must decide",
    State.SPOT_CHECK: "an adjudicator must judge them blind",
    State.AGREED: "the spot checks must be drawn",
}


# --- counts ----------------------------------------------------------------------------------------------------------


def count_done(submissions: Iterable[int]) -> dict[int, dict[str, int]]:
    """Count trajectories, those to be labelled and submitted labels, by the submission's primary key."""
    submissions = list(submissions)
    counted = Trajectory.objects.filter(submission__in=submissions).order_by().values("submission")
    rows = counted.annotate(
        trajectories=Count("pk", distinct=True),
        left_out=Count("pk", filter=Q(is_left_out()), distinct=True),
        filled=Count("assignments", filter=Q(assignments__lease_expires_at__isnull=True)),
    )
    found = {
        row["submission"]: {
            "trajectories": row["trajectories"],
            "to_label": row["trajectories"] - row["left_out"],
            "labels": row["filled"],
        }
        for row in rows
    }
    return {pk: found.get(pk, {"trajectories": 0, "to_label": 0, "labels": 0}) for pk in submissions}


@dataclass(frozen=True, slots=True)
class Standing:
    """Number of trajectories in each state, in the order of `State`, and how many are open for adjudication."""

    states: list[tuple[State, int]]
    opened: int

    @property
    def final(self) -> int:
        return sum(count for state, count in self.states if state in FINAL)

    @property
    def to_label(self) -> list[tuple[State, int]]:
        """Return the states without the trajectories that are not in the planned sample."""
        return [each for each in self.states if each[0] is not State.NOT_DRAWN]

    @property
    def is_ready(self) -> bool:
        """Return whether every trajectory to be labelled has a final verdict, and none is open for adjudication."""
        return bool(self.states) and self.final == sum(count for _, count in self.to_label) and not self.opened

    @property
    def blocks(self) -> list[tuple[str, int, str]]:
        """Return what blocks the freeze: filter value of the matrix, count, and what must happen."""
        waiting = [(state.value, count, WAITS_FOR[state]) for state, count in self.states if state in WAITS_FOR]
        return waiting + (
            [(OPENED, self.opened, "their adjudicators must decide or return them")] if self.opened else []
        )


def count_states(submission: Submission, size: int | None = None) -> Standing:
    """Count the states. ``size`` is the number of trajectories, if the caller has counted them."""
    states = state_snapshots.load_states(submission, size)
    if states is not None:
        opened = Adjudication.objects.filter(trajectory__submission=submission, decided_at__isnull=True).count()
        return Standing([each for each in state_snapshots.count(states).items() if each[1]], opened)
    rows = with_state(submission.trajectories.all()).order_by().values("state", "adjudicating")
    counts, opened = dict.fromkeys(State, 0), 0
    for row in rows.annotate(n=Count("pk")):
        counts[State(row["state"])] += row["n"]
        opened += row["n"] if row["adjudicating"] else 0
    return Standing([(state, count) for state, count in counts.items() if count], opened)


@dataclass(frozen=True, slots=True)
class _InState:
    """The trajectories at some positions, as a sequence for pages: only the rows of a slice are loaded."""

    rows: QuerySet[Any]
    positions: list[int]

    def __len__(self) -> int:
        return len(self.positions)

    def __getitem__(self, shown: slice) -> list[Any]:
        return list(self.rows.filter(position__in=self.positions[shown]))


def filter_matrix(
    submission: Submission, *, state: str = "", slot: str = "", who: int | None = None, q: str = ""
) -> QuerySet[Any] | _InState:
    """Return trajectories, with state, that match all filters; ``who`` is the key of a person who has or had a slot.

    ``slot`` is one of `SLOT_STATES`: at least one slot must be in this state, with ``who`` that person's slot.
    """
    rows = with_state(submission.trajectories.select_related("task"))
    if state == OPENED:
        rows = rows.filter(adjudicating=True)
    elif state and not (slot or who or q) and (states := state_snapshots.load_states(submission)) is not None:
        return _InState(rows, state_snapshots.positions(states, State(state)))
    elif state:
        rows = rows.filter(state=state)
    if q:
        rows = rows.filter(Q(task__external_id__icontains=q) | Q(task__text__icontains=q))
    if slot == "open":
        rows = rows.filter(open_slots__gt=0)
    taken = Assignment.objects.filter(trajectory=OuterRef("pk"))
    if who is not None:
        taken = taken.filter(annotator=who)
    if slot in ("held", "filled", "expired"):
        rows = rows.filter(Exists(taken.filter(_select_lease(slot))))
    elif who is not None:
        rows = rows.filter(Exists(taken))
    return rows


def _select_lease(slot: str) -> Q:
    # A submitted label that can still be undone has a lease too, which no queue takes away.
    expired = Q(lease_expires_at__lte=clock.now(), submit_at__isnull=True)
    return {
        "held": Q(lease_expires_at__isnull=False) & ~expired,
        "filled": Q(lease_expires_at__isnull=True),
        "expired": expired,
    }[slot]


class _Length(Func):
    output_field = IntegerField()

    def as_postgresql(self, compiler: Any, connection: Any, **context: Any) -> Any:
        return self.as_sql(compiler, connection, function="jsonb_array_length", **context)

    def as_sqlite(self, compiler: Any, connection: Any, **context: Any) -> Any:
        return self.as_sql(compiler, connection, function="json_array_length", **context)


def load_draws(submission: Submission) -> QuerySet[Any]:
    """Return the draws of spot checks with ``population_count`` and ``drawn_count``, without the lists of all tasks."""
    counted = submission.spot_check_draws.defer("population", "drawn").order_by("number")
    return counted.annotate(population_count=_Length("population"), drawn_count=_Length("drawn"))


# --- active people ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AtWork:
    """A person's latest sign of work; ``since`` is when they reserved or opened the trajectory, None if no longer."""

    pseudonym: str
    trajectory: Trajectory
    since: datetime | None
    last_at: datetime


def find_active_people(submission: Submission, names: dict[int, str]) -> list[AtWork]:
    """Return the people with a sign of work in the last `AT_WORK`, the latest first, each person once.

    Labels and decisions are signs of work too: after the last one, a person has no assignment.
    """
    begin = clock.now() - AT_WORK
    active = Activity.objects.filter(trajectory__submission=submission, last_at__gte=begin).order_by()
    labels = Label.objects.filter(assignment__trajectory__submission=submission, created_at__gte=begin).order_by()
    decided = Adjudication.objects.filter(trajectory__submission=submission, decided_at__gte=begin).order_by()
    signs = active.values_list("last_at", "person", "trajectory").union(
        labels.values_list("created_at", "assignment__annotator", "assignment__trajectory"),
        decided.values_list("decided_at", "adjudicator", "trajectory"),
    )
    latest: dict[int, tuple[datetime, int]] = {}
    for at, person, trajectory in sorted(signs, reverse=True):
        if person in names:
            latest.setdefault(person, (at, trajectory))
    shown = Trajectory.objects.select_related("task").in_bulk({trajectory for _, trajectory in latest.values()})
    held = Assignment.objects.filter(trajectory__in=shown, lease_expires_at__isnull=False)
    opened = Adjudication.objects.filter(trajectory__in=shown, decided_at__isnull=True)
    since = {(t, person): at for t, person, at in held.values_list("trajectory", "annotator", "claimed_at")}
    since |= {(t, person): at for t, person, at in opened.values_list("trajectory", "adjudicator", "opened_at")}
    return [
        AtWork(names[person], shown[trajectory], since.get((trajectory, person)), at)
        for person, (at, trajectory) in latest.items()
    ]


def find_last_signs(submission: Submission) -> dict[int, datetime]:
    seen = Activity.objects.filter(trajectory__submission=submission).order_by().values_list("person")
    return dict(seen.annotate(at=Max("last_at")))


# --- pace ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Speed:
    """Number of submitted labels, in total and in the last day and week.

    ``day_rate`` and ``week_rate`` are labels per hour of wall time, from the first claim on, over at least one hour.
    ``active_rate`` is labels per hour of measured activity in the last week, None below `LEAST_MEASURED`.
    """

    pseudonym: str
    labels: int
    day: int
    week: int
    day_rate: float
    week_rate: float
    active_hours: float
    active_rate: float | None


@dataclass(frozen=True, slots=True)
class Pace:
    """``overall`` speed and each person's, number of ``remaining`` labels, and ``estimate`` of the end in words."""

    overall: Speed
    people: list[Speed]
    remaining: int
    estimate: str


def measure_pace(submission: Submission, names: dict[int, str], remaining: int) -> Pace:
    """Measure the pace; ``names`` are pseudonyms by the person's key, ``remaining`` is the number of missing labels."""
    now = clock.now()
    week = Q(created_at__gte=now - WEEK)
    labels = Label.objects.filter(assignment__trajectory__submission=submission, revision=1)
    rows = list(
        labels.order_by()
        .values("assignment__annotator")
        .annotate(
            labels=Count("pk"),
            day=Count("pk", filter=Q(created_at__gte=now - DAY)),
            week=Count("pk", filter=week),
            timed=Count("pk", filter=week & Q(active_seconds__gt=0)),
            seconds=Sum("active_seconds", filter=week),
            began=Min("assignment__claimed_at"),
        )
    )
    began = min((row["began"] for row in rows), default=now)
    total = {key: sum(row[key] or 0 for row in rows) for key in ("labels", "day", "week", "timed", "seconds")}
    people = [_measure_speed(names[row["assignment__annotator"]], row, row["began"], now) for row in rows]
    people.sort(key=lambda speed: (len(speed.pseudonym), speed.pseudonym))
    overall = _measure_speed("", total, began, now)
    return Pace(overall, people, remaining, estimate_end(remaining, overall.week_rate, now))


def _measure_speed(pseudonym: str, row: Mapping[str, Any], began: datetime, now: datetime) -> Speed:
    hours = (row["seconds"] or 0) / 3600
    return Speed(
        pseudonym,
        labels=row["labels"],
        day=row["day"],
        week=row["week"],
        day_rate=row["day"] / _count_hours(min(DAY, now - began)),
        week_rate=row["week"] / _count_hours(min(WEEK, now - began)),
        active_hours=hours,
        active_rate=row["timed"] / hours if hours >= LEAST_MEASURED else None,
    )


def _count_hours(window: timedelta) -> float:
    return max(1.0, window.total_seconds() / 3600)


def estimate_end(remaining: int, per_hour: float, now: datetime) -> str:
    """Estimate when the labels will be complete at ``per_hour`` labels per hour of wall time, in words."""
    if remaining <= 0:
        return "All labels are submitted."
    if per_hour <= 0:
        return "No estimate: no labels in the last 7 days."
    hours = remaining / per_hour
    if hours > 24 * 365:
        return "More than a year at this pace."
    at = now + timedelta(hours=hours)
    if hours < 1.5:
        return "About an hour at this pace."
    if hours < 36:
        return f"About {hours:.0f} hours at this pace, until {at:%A}, about {at:%H}:00 UTC."
    return f"About {hours / 24:.0f} days at this pace, until {at:%A}, {at.day} {at:%B}."
