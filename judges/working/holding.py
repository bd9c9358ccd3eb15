"""The items of a run in the hands of workers: taken, held, given back, settled; each one conditional update.

Whoever wants to change an item names the worker and the attempt that hold it: one that was lost and comes back
changes nothing any more. Functions here are called in a `database.DatabaseThread`, and may be run again after a commit
in doubt.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Count, Exists, F, Max, OuterRef, Q, QuerySet
from django.utils import timezone

from annotation import clock
from annotation.models.events import append, digest
from annotation.workflow.ground import lock_submission
from judges.models import JudgeRun, Judgment, RunItem
from judges.scorer import Score
from judges.working.ledger import Worth, storable
from judges.working.outcome import counts_of, outcome_facts

ITEMS_EACH = 25  # that one more worker is called for
MOST_WORKERS = 16  # that are called for one run
MOST_LOST = 10  # attempts; the item of a worker that is lost after so many fails
LOST_TOO_OFTEN = (
    f"It was begun {MOST_LOST} times, and the last worker that had it fell silent. It may be what ends the workers, or "
    "another one that they had at the same time: look into their logs and at their memory before you try it again."
)
CALMEST = 10  # silences between two calls for workers of a run that has some, or that nobody comes to
OPEN = Q(done_at__isnull=True, failed_at__isnull=True)
IN_WORK = Q(paused_at=None, cancelled_at=None, finished_at=None, stopped="")


@dataclass(frozen=True, slots=True)
class Held:
    """A run item in the hands of a worker, for the ``attempt``-th time."""

    pk: int
    attempt: int
    trajectory: int
    repetition: int


def workers_for(items: int) -> int:
    """How many workers are called for so many items."""
    return min(MOST_WORKERS, math.ceil(items / ITEMS_EACH))


def silent_since() -> datetime:
    """A worker that has not reported after this is lost."""
    return clock.now() - timedelta(seconds=settings.JUDGE_SILENCE_SECONDS)


def free() -> Q:
    """Open items that nobody is at."""
    return OPEN & (Q(taken_at__isnull=True) | Q(heartbeat_at__isnull=True) | Q(heartbeat_at__lt=silent_since()))


# --- taking and giving back ------------------------------------------------------------------------------------------


def take(run: int, worker: str, held: Collection[int]) -> list[Held]:
    """Take the first free item of a run in work that is not ``held``; none when there is none.

    Returns every item that is this worker's beside those of ``held``: after a commit in doubt that may be two. What it
    holds is not taken again, even where nobody could report for longer than a silence.
    """
    now, found = clock.now(), free()
    with transaction.atomic():
        # On PostgreSQL workers pass over what others are taking. Not as a part of the update: PostgreSQL may ask a
        # part with a limit and locks more than once, and the update would take more than one.
        waiting = RunItem.objects.filter(_in_work(), found, run=run).exclude(pk__in=held).order_by("pk")
        first = _first(waiting.select_for_update(skip_locked=True, of=("self",)), now)
        if first is not None:
            RunItem.objects.filter(found, pk=first).update(
                worker=worker, attempt=F("attempt") + 1, taken_at=now, heartbeat_at=now, error=""
            )
    mine = RunItem.objects.filter(OPEN, run=run, worker=worker).exclude(pk__in=held).order_by("pk")
    found_mine = [Held(*row) for row in mine.values_list("pk", "attempt", "trajectory_id", "repetition")]
    if found_mine:  # not while the item is locked: who cancels a run locks the run first, and then its items
        JudgeRun.objects.filter(pk=run, started_at__isnull=True).update(started_at=timezone.now())
    return found_mine


def _first(waiting: QuerySet[RunItem], now: datetime) -> int | None:
    """The first one that can be judged; what ends each worker that takes it fails, or the run would never end."""
    while (item := waiting.values_list("pk", "attempt", "taken_at").first()) is not None:
        pk, attempt, taken_at = item
        if taken_at is None or attempt < MOST_LOST:
            return pk
        RunItem.objects.filter(pk=pk).update(failed_at=now, error=LOST_TOO_OFTEN)
    return None


def beat(worker: str, held: Collection[int]) -> set[int]:
    """Report that the worker lives; returns which of ``held`` are its own still."""
    mine = RunItem.objects.filter(OPEN, worker=worker, pk__in=held)
    if mine.update(heartbeat_at=clock.now()) == len(held):
        return set(held)
    return set(mine.values_list("pk", flat=True))


def let_go(run: int, worker: str) -> None:
    """Let whatever a worker still holds wait again, at the end of its shift."""
    RunItem.objects.filter(OPEN, run=run, worker=worker).update(worker="", taken_at=None, heartbeat_at=None)


def _mine(item: Held, worker: str) -> QuerySet[RunItem]:
    """The item, unless somebody else has it, or its run was cancelled."""
    going_on = Exists(JudgeRun.objects.filter(pk=OuterRef("run"), cancelled_at=None))
    return RunItem.objects.filter(OPEN, going_on, pk=item.pk, worker=worker, attempt=item.attempt)


def give_back(item: Held, worker: str) -> None:
    """Let the item wait again; what was asked for it is in the cache."""
    _mine(item, worker).update(worker="", taken_at=None, heartbeat_at=None)


def fail(item: Held, worker: str, error: str, *, passing: bool = False) -> bool:
    """End the attempt without a judgment; return False if this worker has lost the item.

    ``passing``: a later attempt may succeed.
    """
    said = storable(error) or "Something went wrong, and nothing was said about it."
    return bool(_mine(item, worker).update(failed_at=timezone.now(), error=said[:2000], passing=passing))


def settle(item: Held, worker: str, score: Score, worth: Worth, fingerprint: str) -> bool:
    """Store the judgment and end the item, both or neither; False when the item is not this worker's any more."""
    now = timezone.now()
    with transaction.atomic():
        if not _mine(item, worker).update(done_at=now, heartbeat_at=clock.now(), error=""):
            return False
        row = RunItem.objects.select_related("run__submission", "trajectory").get(pk=item.pk)
        Judgment.objects.create(
            judge_id=row.run.judge_id,
            fingerprint=fingerprint,
            item=row,
            task_id=row.trajectory.task_id,
            agent_id=row.run.submission.agent_id,
            trajectory_id=row.trajectory_id,
            repetition=item.repetition,
            tokens=worth.tokens,
            cost=worth.cost,
            model=worth.model,
            made_at=now,
            **_said(score),
        )
    return True


def _said(score: Score) -> dict[str, Any]:
    """What a score says, in the columns of a judgment."""
    return {
        "verdict": None if score.verdict is None else int(score.verdict),
        "unscored": storable(score.unscored)[:500],
        "score": storable(score.score),
        "explanation": storable(score.explanation),
        "evidence": storable(score.evidence()),
        "response": storable(score.response),
        "status_not_stated": score.status_not_stated,
    }


# --- the run ---------------------------------------------------------------------------------------------------------


def wanted(run: int) -> bool:
    """Whether a run is in work and has items that nobody is at."""
    return RunItem.objects.filter(_in_work(), free(), run=run).exists()


def state_of(run: int) -> tuple[str, bool]:
    """The state of a run, and whether it has a budget now."""
    row = JudgeRun.objects.get(pk=run)
    return row.state, row.max_cost is not None


def _in_work() -> Q:
    """`IN_WORK` as it is asked of items."""
    return Q(run__paused_at=None, run__cancelled_at=None, run__finished_at=None, run__stopped="")


def stop(run: int, reason: str, recorded: str) -> None:
    """Let a run wait for its maintainer, and say why; once, whoever comes first.

    ``reason`` may name endpoints, settings and files, and stays here; ``recorded`` is a sentence of ours that names
    nothing: events go into evidence bundles, and nobody can take anything out of them.
    """
    with transaction.atomic():
        row = _locked(run)
        if JudgeRun.objects.filter(IN_WORK, pk=run).update(stopped=storable(reason)[:500]):
            append(row.submission, "judge_run_stopped", run=run, judge=str(row.judge), reason=recorded)


def end(run: int) -> bool:
    """Finish a run without open items; True for the one who did. The event has the digest of what judges said.

    In an active run, items that failed with a temporary error are opened once more instead.
    Asked after the commit that settled an item: of two workers with the last two, the later one sees both.
    """
    going_on = JudgeRun.objects.filter(pk=run, finished_at=None, cancelled_at=None)
    if not going_on.exists() or RunItem.objects.filter(OPEN, run=run).exists():
        return False
    said = ended(JudgeRun.objects.select_related("judge").get(pk=run))  # before the lock: all judgments are read
    with transaction.atomic():
        row = _locked(run)
        if RunItem.objects.filter(OPEN, run=run).exists():  # somebody wants the failed ones tried again
            return False
        if row.finished_at is not None or row.cancelled_at is not None:  # another worker was faster
            return False
        if _reopen_failed_items(row):
            return False
        row.finished_at, row.paused_at, row.stopped = timezone.now(), None, ""
        row.save(update_fields=["finished_at", "paused_at", "stopped"])
        if not counts(run).items() <= said.items():  # somebody did, and they have been
            said = ended(row)
        append(row.submission, "judge_run_finished", **said)
    return True


def _reopen_failed_items(run: JudgeRun) -> bool:
    """Open failed items that may succeed now, once for each run, when no other item is left."""
    if run.retried_at is not None or run.state not in ("waiting", "running"):
        return False
    failed = RunItem.objects.filter(run=run, failed_at__isnull=False, passing=True)
    if not failed.update(failed_at=None, passing=False, worker="", taken_at=None, heartbeat_at=None):
        return False
    run.retried_at = timezone.now()
    run.save(update_fields=["retried_at"])
    return True


def _locked(run: int) -> JudgeRun:
    """The run with its submission, locked in the order of all locks: the submission, then the run."""
    submission = lock_submission(JudgeRun.objects.values_list("submission_id", flat=True).get(pk=run))
    row = JudgeRun.objects.select_for_update(no_key=True, of=("self",)).select_related("judge").get(pk=run)
    row.submission = submission
    return row


def facts(run: JudgeRun) -> dict[str, Any]:
    """What every event of a run says."""
    return {"run": run.pk, "judge": str(run.judge), "fingerprint": run.judge.fingerprint, "test": run.test}


def ended(run: JudgeRun) -> dict[str, Any]:
    """What the event of its end says of a run: how many say what, how many wait, and the digest of all that was said.

    Nobody may be able to settle an open item meanwhile.
    """
    outcome = outcome_facts(run.pk)
    waiting = RunItem.objects.filter(OPEN, run=run).count()
    return {**facts(run), **counts_of(outcome, waiting), "judgments": digest(outcome)}


def counts(run: int) -> dict[str, Any]:
    """How many judgments of a run say what, how many items failed and how many have none."""
    made = Judgment.objects.filter(item__run=run).order_by().values_list("verdict").annotate(Count("pk"))
    by_verdict = {"unscored" if verdict is None else str(verdict): number for verdict, number in made}
    unscored = by_verdict.pop("unscored", 0)
    items = RunItem.objects.filter(run=run)
    failed, waiting = items.filter(failed_at__isnull=False).count(), items.filter(OPEN).count()
    return {"verdicts": by_verdict, "unscored": unscored, "failed": failed, "waiting": waiting}


def unfinished() -> list[int]:
    """The runs that have work and too few living workers, and whose workers were not called for a while (`_due`).

    A run whose last item was settled by a worker that died before it could end the run has work, too.
    """
    open_items = RunItem.objects.filter(OPEN, run=OuterRef("pk"))
    late = Q(called_at__isnull=True) | Q(called_at__lt=silent_since())
    runs = JudgeRun.objects.filter(IN_WORK, late).order_by("pk")
    asked = runs.filter(Exists(RunItem.objects.filter(free(), run=OuterRef("pk"))) | ~Exists(open_items))
    wanting = [run for run in asked if _due(run)]
    return [run.pk for run in wanting if _same(run).update(called_at=clock.now())]


def finish_settled_runs() -> None:
    """Finish paused and stopped runs without open items, whose last worker died before it could do this."""
    open_items = RunItem.objects.filter(OPEN, run=OuterRef("pk"))
    waiting = JudgeRun.objects.filter(~IN_WORK, ~Exists(open_items), finished_at=None, cancelled_at=None)
    for run in waiting.order_by("pk").values_list("pk", flat=True):
        end(run)


def _same(run: JudgeRun) -> QuerySet[JudgeRun]:
    """The run as long as nobody else has called for it."""
    never = Q(called_at__isnull=True)
    return JudgeRun.objects.filter(never if run.called_at is None else Q(called_at=run.called_at), pk=run.pk)


def _due(run: JudgeRun) -> bool:
    """Whether workers are called for a run now.

    Messages wait where nobody takes them: while nobody is at a run, each call waits twice as long as the one before
    it, from one silence to `CALMEST`; where some are at it and more could be, the others may well be busy elsewhere.
    """
    items, silence = RunItem.objects.filter(run=run), timedelta(seconds=settings.JUDGE_SILENCE_SECONDS)
    living = items.filter(OPEN, heartbeat_at__gte=silent_since()).values("worker").distinct().count()
    if living and living >= workers_for(items.filter(free()).count()):
        return False
    if run.called_at is None:
        return True
    seen = items.aggregate(seen=Max("heartbeat_at"))["seen"] or run.created_at
    pause = CALMEST * silence if living else min(max(run.called_at - seen, silence), CALMEST * silence)
    return clock.now() - run.called_at > pause
