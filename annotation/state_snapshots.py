"""The states of all trajectories of a large submission; only those with a later event are derived again.

The database derives a state from some ten rows of a trajectory (`models.states`), which takes seconds for all of
300,000. A snapshot stores one byte for each, and the head of the chain at that time. Every change of a state appends
an event in the same transaction. Rows that were changed without an event are noticed after `FRESH`.
"""

from __future__ import annotations

from datetime import timedelta

from django.db.models import QuerySet

from annotation import clock
from annotation.models import Event, StateSnapshot, Submission, Trajectory
from annotation.models.states import State, with_state

LARGE = 1000  # trajectories; for fewer no snapshot is needed: their states are derived in 0.1 s
FRESH = timedelta(days=1)
SPARSE = 4  # positions per trajectory: with more, one byte for each position would waste memory
STORE_AFTER = 200  # events
BATCH = 500  # trajectories in a query; SQLite has a limit
# These events name no trajectory and change no state. After any other that names none, all states are derived again.
WITHOUT_EFFECT = ("judge_run_", "member_", "password_", "screenshot_redacted")

_STATES = list(State)
_CODES = {state.value: code for code, state in enumerate(_STATES, 1)}  # 0: no trajectory has this position


def load_states(submission: Submission, size: int | None = None) -> bytes | None:
    """Return the code of the state at each position.

    None for a submission that is not `LARGE`, has no events, or has positions far apart, as an audited one may.
    ``size`` is the number of its trajectories, if the caller has counted them.
    """
    size = submission.trajectories.count() if size is None else size
    if size < LARGE:
        return None
    last = submission.trajectories.order_by("-position").values_list("position", flat=True)[0]
    if last >= SPARSE * size:
        return None
    head = Event.objects.filter(submission=submission).order_by("-sequence").values("sequence", "hash").first()
    if head is None:
        return None
    snapshot = StateSnapshot.objects.filter(submission=submission).first()
    touched = None if snapshot is None or not _is_usable(snapshot) else _find_touched(snapshot)
    if snapshot is None or touched is None:
        states = _derive(submission.trajectories.all(), bytearray(last + 1))
        defaults = head | {"states": bytes(states), "computed_at": clock.now()}
        StateSnapshot.objects.update_or_create(submission=submission, defaults=defaults)
        return bytes(states)
    states = bytearray(snapshot.states)
    for start in range(0, len(touched), BATCH):
        _derive(submission.trajectories.filter(task__external_id__in=touched[start : start + BATCH]), states)
    if head["sequence"] - snapshot.sequence >= STORE_AFTER:
        newer = StateSnapshot.objects.filter(pk=snapshot.pk, sequence=snapshot.sequence)
        newer.update(**head, states=bytes(states))
    return bytes(states)


def count(states: bytes) -> dict[State, int]:
    return {state: states.count(_CODES[state.value]) for state in _STATES}


def positions(states: bytes, state: State) -> list[int]:
    code = _CODES[state.value]
    return [position for position, found in enumerate(states) if found == code]


def _derive(trajectories: QuerySet[Trajectory], states: bytearray) -> bytearray:
    rows = with_state(trajectories).order_by().values_list("position", "state")
    for position, state in rows.iterator(chunk_size=2000):
        states[position] = _CODES[state]
    return states


def _is_usable(snapshot: StateSnapshot) -> bool:
    """Return whether it is fresh and belongs to this chain: a restored backup may have another chain."""
    at = Event.objects.filter(submission=snapshot.submission_id, sequence=snapshot.sequence, hash=snapshot.hash)
    return snapshot.computed_at > clock.now() - FRESH and at.exists()


def _find_touched(snapshot: StateSnapshot) -> list[str] | None:
    """Return the tasks with a later event; None if all states have to be derived again."""
    since = Event.objects.filter(submission=snapshot.submission_id, sequence__gt=snapshot.sequence)
    found: set[str] = set()
    for kind, task_id in since.order_by().values_list("kind", "payload__task_id").iterator():
        if isinstance(task_id, str):
            found.add(task_id)
        elif not kind.startswith(WITHOUT_EFFECT):
            return None
    return sorted(found) if len(found) * 4 < len(snapshot.states) else None
