"""Choose the next trajectory for a person. Read-only; `workflow.claim` reserves it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from heapq import nsmallest
from typing import Any, NamedTuple

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet, TextChoices

from annotation import clock
from annotation.models import Adjudication, Assignment, Person, Release, SamplePlan, Submission, Trajectory
from annotation.models.plans import find_to_label
from annotation.models.states import TO_ADJUDICATE, State, with_waiting
from annotation.records import Verdict

PRESSED_TWICE = timedelta(seconds=3)
AT_ONCE = 1000  # rows in memory
BEGIN = datetime.min.replace(tzinfo=UTC)
SUBMITTED = Q(lease_expires_at__isnull=True) | Q(submit_at__isnull=False)  # assignments; see `is_submitted`
MOST_POSITIONS = 2**32 - 1
MOST_CHOICES = 50  # no more people than this open trajectories at the same moment


def find_candidates(person: Person, submission: Submission) -> QuerySet[Trajectory]:
    """Return the trajectories with an open slot that the person has not reserved, labelled or declined, best first.

    Started trajectories come first (fewest open slots), then the order of the plan, or else that of the submission.
    Those that a plan did not draw have no open slot.
    """
    mine = Assignment.objects.filter(trajectory=OuterRef("pk"), annotator=person)
    given_back = Release.objects.filter(trajectory=OuterRef("pk"), annotator=person, lifted_at__isnull=True)
    free = Trajectory.objects.filter(submission=submission, open_slots__gt=0).filter(~Exists(mine), ~Exists(given_back))
    if SamplePlan.objects.filter(submission=submission).exists():
        return free.order_by("open_slots", "planned_item__position")
    return free.order_by("open_slots", "position")  # by an index, which a join would prevent


def lock_next(person: Person, submission: Submission) -> Trajectory | None:
    """Choose the next trajectory and lock its row in the caller's transaction; return None if nothing is left.

    Rows that others are claiming at this moment are skipped. If only such rows are left, it waits for them: a row may
    still have a slot after the other claim, and nobody may get "no work" while there is some.
    """
    open_to_me = find_candidates(person, submission).select_related("task")
    if not connection.features.has_select_for_update_skip_locked:
        return open_to_me.select_for_update().first()
    chosen = open_to_me.select_for_update(skip_locked=True, no_key=True, of=("self",)).first()
    while chosen is None and (waited_for := open_to_me.values_list("pk", flat=True).first()) is not None:
        # One row at a time, and unlocked if its last slot is gone: two people with such locks could deadlock.
        with transaction.atomic():
            chosen = open_to_me.select_for_update(no_key=True, of=("self",)).filter(pk=waited_for).first()
            transaction.set_rollback(chosen is None)
    return chosen


def find_held(person: Person, submission: Submission) -> Assignment | None:
    return find_all_held(person, submission).first()


def find_all_held(person: Person, submission: Submission) -> QuerySet[Assignment]:
    """Return the person's reservations, except those that they have put off."""
    return _find_reserved(person, submission).filter(put_off_until__isnull=True)


def find_put_off(person: Person, submission: Submission) -> QuerySet[Assignment]:
    return _find_reserved(person, submission).filter(put_off_until__isnull=False).select_related("trajectory__task")


def _find_reserved(person: Person, submission: Submission) -> QuerySet[Assignment]:
    reserved = Assignment.objects.filter(
        annotator=person,
        trajectory__submission=submission,
        lease_expires_at__gt=clock.now(),
        submit_at__isnull=True,
    )
    return reserved.select_related("trajectory").order_by("claimed_at", "pk")


def count_own(person: Person, submission: Submission) -> tuple[int, int]:
    """Count the trajectories that the person has submitted, and all to be labelled; nothing about other people."""
    done = Assignment.objects.filter(SUBMITTED, annotator=person, trajectory__submission=submission).count()
    return done, find_to_label(submission.trajectories.all()).count()


class Kind(TextChoices):
    """Reason why a trajectory waits for an adjudicator, hardest first, with its text in the queue.

    For trajectories to judge blind, it reveals only that the labels agree.
    """

    REOPENED = "reopened", "reopened"
    THREE_WAY = "three-way", "three-way split"
    OPPOSED = "opposed", "failure against success"
    NOT_EXECUTABLE = "not-executable", "not executable involved"
    FLAGGED = "flagged", "flagged"
    SPOT_CHECK = "spot-check", "spot check"


HARDEST_FIRST = list(Kind)
_OF_STATE = {State.REOPENED: Kind.REOPENED, State.FLAGGED: Kind.FLAGGED, State.SPOT_CHECK: Kind.SPOT_CHECK}


def find_kind(waiting: Any) -> Kind | None:
    state = State(waiting.state)
    if state is not State.DISPUTE:
        return _OF_STATE.get(state)
    if waiting.different > 2:
        return Kind.THREE_WAY
    return Kind.NOT_EXECUTABLE if waiting.highest == Verdict.NOT_EXECUTABLE else Kind.OPPOSED


def find_waiting_since(waiting: Any) -> datetime:
    last_label: datetime = waiting.labelled_at
    match State(waiting.state):
        case State.REOPENED:
            return waiting.reopened_at or last_label
        case State.FLAGGED:
            return max(waiting.flagged_at, last_label)
        case State.SPOT_CHECK:
            return waiting.drawn_at or last_label
    return last_label


def adjudications_expire_before() -> datetime:
    """Return the time since which an adjudicator must have been active to keep an opened trajectory."""
    return clock.now() - timedelta(minutes=settings.ADJUDICATION_MINUTES)


class _Waiting(NamedTuple):
    """The columns of `with_waiting` that decide the order, with the names that `find_kind` expects."""

    pk: int
    position: int
    state: str
    highest: int | None
    different: int | None
    labelled_at: Any
    flagged_at: Any
    drawn_at: Any
    reopened_at: Any
    opened_by: int | None
    opened_at: Any
    put_off_until: Any


class Waiting:
    """Trajectories that wait for an adjudicator, as a sequence for pages: hardest first, then oldest.

    It stores one number of about 45 bytes for each, and loads only the rows of a slice, with ``kind`` and ``since``;
    see `with_waiting` for the other columns. Trajectories that were decided meanwhile are left out.
    """

    def __init__(self, submission: Submission, keys: list[int]) -> None:
        self._trajectories, self._keys = submission.trajectories.select_related("task"), sorted(keys)

    def __len__(self) -> int:
        return len(self._keys)

    def __getitem__(self, shown: slice) -> list[Any]:
        found = []
        positions = [key & MOST_POSITIONS for key in self._keys[shown]]
        for start in range(0, len(positions), AT_ONCE):
            some = positions[start : start + AT_ONCE]
            loaded = {row.position: row for row in with_waiting(self._trajectories.filter(position__in=some))}
            found += [loaded[position] for position in some]
        for row in found:
            row.kind, row.since = find_kind(row), find_waiting_since(row)
        return [row for row in found if row.kind is not None]


@dataclass(frozen=True, slots=True)
class Queue:
    mine: Waiting
    put_off: Waiting  # by the person
    others: Waiting
    kinds: Counter[Kind]


def count_waiting(person: Person, submission: Submission) -> tuple[int, int, int]:
    """Count the trajectories that the person has opened, those that nobody has, and those that the person put off."""
    rows = _waiting(submission.trajectories.order_by()).values_list("opened_by", "put_off_until")
    opened = Counter((person_pk, is_put_off(until)) for person_pk, until in rows)
    return opened[person.pk, False], opened[None, False], opened[person.pk, True]


def find_newest_waiting(submission: Submission) -> tuple[int, datetime | None]:
    """Count the trajectories that no adjudicator has opened, and return since when the newest of them waits."""
    since = [find_waiting_since(row) for row, _ in _stream(submission) if row.opened_by is None]
    return len(since), max(since, default=None)


def is_put_off(until: datetime | None) -> bool:
    return until is not None and until > clock.now()


def load_queue(submission: Submission) -> list[Any]:
    """Load the whole queue. Opened trajectories are in it until they are decided."""
    return Waiting(submission, [_key(row, kind) for row, kind in _stream(submission)])[:]


def load_queue_of(person: Person, submission: Submission, kind: Kind | None = None) -> Queue:
    """Return the queue as ``person`` sees it. ``others`` has only ``kind`` if that is given; ``kinds`` counts all."""
    mine: list[int] = []
    put_off: list[int] = []
    others: list[int] = []
    kinds = Counter[Kind]()
    for row, found in _stream(submission):
        if row.opened_by == person.pk:
            (put_off if is_put_off(row.put_off_until) else mine).append(_key(row, found))
            continue
        kinds[found] += 1
        if kind is None or found is kind:
            others.append(_key(row, found))
    own, later, rest = (Waiting(submission, keys) for keys in (mine, put_off, others))
    return Queue(own, later, rest, kinds)


def find_longest_waiting(submission: Submission, count: int, *, spot_checks: bool) -> list[Any]:
    """Return the spot checks, or else the disputes and what else waits, that have waited longest, oldest first."""
    waiting = ((row, kind) for row, kind in _stream(submission) if (kind is Kind.SPOT_CHECK) is spot_checks)
    oldest = nsmallest(count, waiting, key=lambda each: (find_waiting_since(each[0]), each[0].position))
    found = Waiting(submission, [_key(*each) for each in oldest])[:]
    return sorted(found, key=lambda row: (row.since, row.position))


def _key(row: _Waiting, kind: Kind) -> int:
    """Return one number that sorts by kind, age and position."""
    age = (find_waiting_since(row) - BEGIN) // timedelta(microseconds=1)
    return (HARDEST_FIRST.index(kind) << 64 | age) << 32 | row.position


def _stream(submission: Submission) -> Iterator[tuple[_Waiting, Kind]]:
    rows = _waiting(submission.trajectories.order_by()).values_list(*_Waiting._fields).iterator(chunk_size=AT_ONCE)
    for row in map(_Waiting._make, rows):
        found = find_kind(row)
        if found is not None:
            yield row, found


def next_to_adjudicate(person: Person, submission: Submission, kind: str = "") -> list[Trajectory]:
    """List the next trajectories for an adjudicator, best first, of ``kind`` if given; others may open them first.

    At most `MOST_CHOICES`. Narrow rows of the whole queue are streamed, and only the chosen trajectories are loaded.
    First trajectories that nobody has opened, then the person's own open ones, and last those of others that can be
    taken over. A trajectory that the person opened just now comes before all, so that a double click opens only one.
    Trajectories that are put off are left out.
    """
    just_now, long_ago = clock.now() - PRESSED_TWICE, adjudications_expire_before()
    open_ones = Adjudication.objects.filter(trajectory__submission=submission, decided_at__isnull=True)
    at_work = open_ones.filter(
        trajectory__activities__person=F("adjudicator"), trajectory__activities__last_at__gt=long_ago
    )
    active = set(at_work.values_list("trajectory", flat=True))

    def turn(row: _Waiting) -> int:
        if row.opened_by == person.pk:
            return 0 if row.opened_at > just_now else 2
        return 1 if row.opened_by is None else 3

    def place(row: _Waiting) -> tuple[Any, ...]:
        found = find_kind(row)
        return turn(row), HARDEST_FIRST.index(found) if found else 0, find_waiting_since(row), row.position

    waiting = (row for row, found in _stream(submission) if not kind or found == kind or turn(row) == 0)
    waiting = (row for row in waiting if turn(row) < 3 or (row.opened_at <= long_ago and row.pk not in active))
    waiting = (row for row in waiting if not is_put_off(row.put_off_until))
    chosen = [row.pk for row in nsmallest(MOST_CHOICES, waiting, key=place)]
    loaded = submission.trajectories.select_related("task").in_bulk(chosen)
    return [loaded[pk] for pk in chosen if pk in loaded]


def _waiting(trajectories: QuerySet[Trajectory]) -> QuerySet[Any]:
    return with_waiting(trajectories).filter(state__in=[state.value for state in TO_ADJUDICATE])
