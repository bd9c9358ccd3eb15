"""Claim, renew and release run items under a lease; each by one conditional update.

A change of an item names its worker and attempt, so a lost worker that comes back changes nothing. Functions here run
in a `database.DatabaseThread`, and may run again after an uncertain commit.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Count, Exists, F, Max, OuterRef, Q, QuerySet
from django.urls import reverse

from annotation import clock, mail, outbox
from annotation.models import MessageKind
from annotation.models.events import append, digest, instant
from annotation.workflow.guards import lock_submission
from judges.models import JudgeRun, Judgment, ModelCall, RunItem
from judges.scorer import Score
from judges.signals import run_finished
from judges.working.call_log import CallTotals, make_storable

ITEMS_EACH = 25  # items for each worker that is called
MOST_WORKERS = 16  # workers that are called for one run
MOST_LOST = 10  # attempts; an item fails if its worker is lost after this number
LOST_TOO_OFTEN = (
    f"It was started {MOST_LOST} times, and the last worker with it stopped responding. It may crash workers, or "
    "another item that they had at the same time does. Check their logs and their memory before you retry."
)
MOST_SILENCES = 10  # longest pause between two calls for workers of a run, in JUDGE_SILENCE_SECONDS
OPEN = Q(done_at__isnull=True, failed_at__isnull=True)
# The item of a call in a batch; no worker can continue it before the batch has ended.
WAITS = Exists(ModelCall.objects.filter(item=OuterRef("pk"), batch__isnull=False, batch__ended_at=None))
ACTIVE = Q(paused_at=None, cancelled_at=None, finished_at=None, stopped="")


@dataclass(frozen=True, slots=True)
class LeasedItem:
    """A run item leased to a worker, for the ``attempt``-th time."""

    pk: int
    attempt: int
    trajectory: int
    repetition: int


def count_workers_for(items: int, *, alone: bool = False) -> int:
    if alone:
        return min(1, items)
    return min(MOST_WORKERS, math.ceil(items / ITEMS_EACH))


def compute_silence_limit() -> datetime:
    return clock.now() - timedelta(seconds=settings.JUDGE_SILENCE_SECONDS)


def match_free() -> Q:
    unleased = Q(taken_at__isnull=True) | Q(heartbeat_at__isnull=True) | Q(heartbeat_at__lt=compute_silence_limit())
    return OPEN & unleased & Q(~WAITS)


# --- claim and release ------------------------------------------------------------------------------------------------


def claim(run: int, worker: str, held: Collection[int]) -> list[LeasedItem]:
    """Claim the first free item of an active run that is not in ``held``, if there is one.

    Returns every item of this worker that is not in ``held``: after an uncertain commit that may be two. Items in
    ``held`` are not claimed again, even if heartbeats were impossible for longer than JUDGE_SILENCE_SECONDS.
    """
    now, found = clock.now(), match_free()
    with transaction.atomic():
        # PostgreSQL: skip rows that other workers have locked. Not a subquery of the update: PostgreSQL may run one
        # with a limit and locks more than once, and the update would claim more than one item.
        waiting = RunItem.objects.filter(_match_active(), found, run=run).exclude(pk__in=held).order_by("pk")
        first = _find_first(waiting.select_for_update(skip_locked=True, of=("self",)), now)
        if first is not None:
            RunItem.objects.filter(found, pk=first).update(
                worker=worker, attempt=F("attempt") + 1, taken_at=now, heartbeat_at=now, error=""
            )
    mine = RunItem.objects.filter(OPEN, run=run, worker=worker).exclude(pk__in=held).order_by("pk")
    found_mine = [LeasedItem(*row) for row in mine.values_list("pk", "attempt", "trajectory_id", "repetition")]
    if found_mine:  # not while the item is locked: a cancellation locks the run first, and then its items
        JudgeRun.objects.filter(pk=run, started_at__isnull=True).update(started_at=clock.now())
    return found_mine


def _find_first(waiting: QuerySet[RunItem], now: datetime) -> int | None:
    """Return the first item that can be judged. An item that lost MOST_LOST workers fails, so that the run can end."""
    while (item := waiting.values_list("pk", "attempt", "taken_at").first()) is not None:
        pk, attempt, taken_at = item
        if taken_at is None or attempt < MOST_LOST:
            return pk
        submitted = ModelCall.objects.filter(item=pk, batch__isnull=False).values("attempt").distinct().count()
        if attempt - submitted < MOST_LOST:  # an attempt that ends with a batch is not lost
            return pk
        RunItem.objects.filter(pk=pk).update(failed_at=now, error=LOST_TOO_OFTEN)
    return None


def renew(worker: str, held: Collection[int]) -> set[int]:
    """Send a heartbeat of the worker; return those of ``held`` that are still leased to it."""
    mine = RunItem.objects.filter(OPEN, worker=worker, pk__in=held)
    if mine.update(heartbeat_at=clock.now()) == len(held):
        return set(held)
    return set(mine.values_list("pk", flat=True))


def release_all(run: int, worker: str) -> None:
    RunItem.objects.filter(OPEN, run=run, worker=worker).update(worker="", taken_at=None, heartbeat_at=None)


def _select_own(item: LeasedItem, worker: str) -> QuerySet[RunItem]:
    going_on = Exists(JudgeRun.objects.filter(pk=OuterRef("run"), cancelled_at=None))
    return RunItem.objects.filter(OPEN, going_on, pk=item.pk, worker=worker, attempt=item.attempt)


def release(item: LeasedItem, worker: str) -> None:
    """Let the item wait again; replies to its calls are in the cache."""
    _select_own(item, worker).update(worker="", taken_at=None, heartbeat_at=None)


def fail(item: LeasedItem, worker: str, error: str, *, passing: bool = False) -> bool:
    """End the attempt without a judgment; return False if this worker has lost the item.

    ``passing``: a later attempt may succeed.
    """
    said = make_storable(error) or "An error without a message."
    return bool(_select_own(item, worker).update(failed_at=clock.now(), error=said[:2000], passing=passing))


def settle(item: LeasedItem, worker: str, score: Score, totals: CallTotals, fingerprint: str) -> bool:
    """Store the judgment and end the item, both or neither; return False if this worker has lost the item."""
    now = clock.now()
    with transaction.atomic():
        if not _select_own(item, worker).update(done_at=now, heartbeat_at=clock.now(), error=""):
            return False
        rows = RunItem.objects.select_related("run__submission", "trajectory").defer("run__submission__import_report")
        row = rows.get(pk=item.pk)
        Judgment.objects.create(
            judge_id=row.run.judge_id,
            fingerprint=fingerprint,
            item=row,
            task_id=row.trajectory.task_id,
            agent_id=row.run.submission.agent_id,
            trajectory_id=row.trajectory_id,
            repetition=item.repetition,
            tokens=totals.tokens,
            cost=totals.cost,
            model=totals.model,
            made_at=now,
            **build_columns(score),
        )
    return True


def build_columns(score: Score) -> dict[str, Any]:
    """Return the columns of a judgment that its score fills."""
    return {
        "verdict": None if score.verdict is None else int(score.verdict),
        "unscored": make_storable(score.unscored)[:500],
        "score": make_storable(score.score),
        "explanation": make_storable(score.explanation),
        "evidence": make_storable(score.evidence()),
        "response": make_storable(score.response),
        "status_not_stated": score.status_not_stated,
    }


# --- the run ---------------------------------------------------------------------------------------------------------


def has_free_items(run: int) -> bool:
    return RunItem.objects.filter(_match_active(), match_free(), run=run).exists()


def load_state(run: int) -> tuple[str, bool]:
    """Return the state of a run, and whether it has a budget. An outdated run counts as stopped."""
    row = JudgeRun.objects.select_related("submission").defer("submission__import_report").get(pk=run)
    return "stopped" if row.is_outdated else row.state, row.max_cost is not None


def _match_active() -> Q:
    return Q(run__paused_at=None, run__cancelled_at=None, run__finished_at=None, run__stopped="")


def stop_run(run: int, reason: str, recorded: str) -> None:
    """Stop a run until its maintainer resumes it, and store the reason of the first caller.

    ``reason`` may name endpoints, settings and files, and stays on this instance. ``recorded`` is a sentence of ours
    without such names: events go into evidence bundles, and cannot be removed from them.
    """
    with transaction.atomic():
        row = _lock_run(run)
        if JudgeRun.objects.filter(ACTIVE, pk=run).update(stopped=make_storable(reason)[:500]):
            append(row.submission, "judge_run_stopped", run=run, judge=str(row.judge), reason=recorded)
            _write_end(row, "stopped")


def finish_run(run: int) -> bool:
    """Finish a run without open items; return True if this call did. The event has the digest of all outcomes.

    In an active run, items that failed with a temporary error are opened once more instead.
    Called after the commit that settled an item: of two workers with the last two items, the later one sees both.
    """
    going_on = JudgeRun.objects.filter(pk=run, finished_at=None, cancelled_at=None)
    if not going_on.exists() or RunItem.objects.filter(OPEN, run=run).exists():
        return False
    said = build_end_payload(
        JudgeRun.objects.select_related("judge").get(pk=run)
    )  # before the lock: all judgments are read
    with transaction.atomic():
        row = _lock_run(run)
        if RunItem.objects.filter(OPEN, run=run).exists():  # a maintainer has retried the failed items
            return False
        if row.finished_at is not None or row.cancelled_at is not None:  # another worker was faster
            return False
        if _reopen_failed_items(row):
            return False
        row.finished_at, row.paused_at, row.stopped = clock.now(), None, ""
        row.save(update_fields=["finished_at", "paused_at", "stopped"])
        if not count_outcomes(run).items() <= said.items():  # failed items were retried and have ended since
            said = build_end_payload(row)
        append(row.submission, "judge_run_finished", **said)
        outbox.write(row.submission, "judge_run_finished", said)
        run_finished.send(JudgeRun, run=row)
        _write_end(row, "finished")
    return True


def _write_end(run: JudgeRun, how: str) -> None:
    # The reason of a stop may name endpoints and files: it is only on the page.
    text = f"Judge run {run.pk} of submission {run.submission_id} has {how}. Its page has the details."
    link = reverse("judge-run", args=[run.pk])
    mail.write_end_of_job(run.created_by, MessageKind.RUN, run.created_at, f"Judge run {how}", text, link)


def _reopen_failed_items(run: JudgeRun) -> bool:
    """Open failed items that may succeed now, once for each run, when no other item is left."""
    if run.retried_at is not None or run.state not in ("waiting", "running"):
        return False
    failed = RunItem.objects.filter(run=run, failed_at__isnull=False, passing=True)
    if not failed.update(failed_at=None, passing=False, worker="", taken_at=None, heartbeat_at=None):
        return False
    run.retried_at = clock.now()
    run.save(update_fields=["retried_at"])
    return True


def _lock_run(run: int) -> JudgeRun:
    """Return the run with its submission, locked in the order of all locks: the submission, then the run."""
    submission = lock_submission(JudgeRun.objects.values_list("submission_id", flat=True).get(pk=run))
    row = JudgeRun.objects.select_for_update(no_key=True, of=("self",)).select_related("judge").get(pk=run)
    row.submission = submission
    return row


def build_payload(run: JudgeRun) -> dict[str, Any]:
    return {"run": run.pk, "judge": str(run.judge), "fingerprint": run.judge.fingerprint, "test": run.test}


def build_end_payload(run: JudgeRun) -> dict[str, Any]:
    """Build the payload of the event of a run's end: counts of verdicts and waiting items, digest of all outcomes.

    Open items must not be settled meanwhile.
    """
    outcome = collect_outcomes(run.pk)
    waiting = RunItem.objects.filter(OPEN, run=run).count()
    return {**build_payload(run), **count_verdicts(outcome, waiting), "judgments": digest(outcome)}


def count_outcomes(run: int) -> dict[str, Any]:
    made = Judgment.objects.filter(item__run=run).order_by().values_list("verdict").annotate(Count("pk"))
    by_verdict = {"unscored" if verdict is None else str(verdict): number for verdict, number in made}
    unscored = by_verdict.pop("unscored", 0)
    items = RunItem.objects.filter(run=run)
    failed, waiting = items.filter(failed_at__isnull=False).count(), items.filter(OPEN).count()
    return {"verdicts": by_verdict, "unscored": unscored, "failed": failed, "waiting": waiting}


def claim_idle_runs() -> list[int]:
    """Return the runs that have work and too few active workers, and whose workers were not called for a while.

    A run also has work if its last item was settled by a worker that died before it could finish the run.
    """
    open_items = RunItem.objects.filter(OPEN, run=OuterRef("pk"))
    late = Q(called_at__isnull=True) | Q(called_at__lt=compute_silence_limit())
    runs = JudgeRun.objects.filter(ACTIVE, late).order_by("pk")
    asked = runs.filter(Exists(RunItem.objects.filter(match_free(), run=OuterRef("pk"))) | ~Exists(open_items))
    wanting = [run for run in asked if _needs_workers(run)]
    return [run.pk for run in wanting if _match_unchanged(run).update(called_at=clock.now())]


def finish_settled_runs() -> None:
    """Finish paused and stopped runs without open items, whose last worker died before it could do this."""
    open_items = RunItem.objects.filter(OPEN, run=OuterRef("pk"))
    waiting = JudgeRun.objects.filter(~ACTIVE, ~Exists(open_items), finished_at=None, cancelled_at=None)
    for run in waiting.order_by("pk").values_list("pk", flat=True):
        finish_run(run)


def _match_unchanged(run: JudgeRun) -> QuerySet[JudgeRun]:
    never = Q(called_at__isnull=True)
    return JudgeRun.objects.filter(never if run.called_at is None else Q(called_at=run.called_at), pk=run.pk)


def _needs_workers(run: JudgeRun) -> bool:
    """Return True if workers should be called for a run now.

    Messages stay in the queue if no worker takes them. So without active workers, each pause is twice as long as the
    last one, from one silence to `MOST_SILENCES`. With too few, it is `MOST_SILENCES`: the others may be busy.
    """
    items, silence = RunItem.objects.filter(run=run), timedelta(seconds=settings.JUDGE_SILENCE_SECONDS)
    living = items.filter(OPEN, heartbeat_at__gte=compute_silence_limit()).values("worker").distinct().count()
    if living and living >= count_workers_for(items.filter(match_free()).count(), alone=run.has_one_worker):
        return False
    if run.called_at is None:
        return True
    seen = items.aggregate(seen=Max("heartbeat_at"))["seen"] or run.created_at
    pause = MOST_SILENCES * silence if living else min(max(run.called_at - seen, silence), MOST_SILENCES * silence)
    return clock.now() - run.called_at > pause


# --- outcomes --------------------------------------------------------------------------------------------------------


def collect_outcomes(run: int) -> list[dict[str, Any]]:
    """Return every judgment of a run and every item that failed, by task id and repetition.

    Keys and values are those of judges/judgments.jsonl in an evidence bundle. Reasons are omitted: the export removes
    addresses from them, and the rules for addresses may change, but this result must not change.
    """
    made = Judgment.objects.filter(item__run=run).order_by()
    judged = made.values_list("trajectory__task__external_id", "repetition", "verdict", "score", "made_at")
    failed = RunItem.objects.filter(run=run, failed_at__isnull=False).order_by()
    facts = [_build_outcome(task, number, verdict, score, instant(at)) for task, number, verdict, score, at in judged]
    facts += [
        _build_outcome(task, number, None, None, None, error=True)
        for task, number in failed.values_list("trajectory__task__external_id", "repetition")
    ]
    return sorted(facts, key=lambda fact: (fact["task_id"], fact["repetition"]))


def _build_outcome(
    task_id: str, repetition: int, verdict: int | None, score: float | None, at: str | None, *, error: bool = False
) -> dict[str, Any]:
    return {
        "task_id": task_id,
        "repetition": repetition,
        "verdict": verdict,
        "error": error,
        "score": score,
        "judged_at": at,
    }


def count_verdicts(outcome: Iterable[dict[str, Any]], waiting: int = 0) -> dict[str, Any]:
    """Count `collect_outcomes` by verdict, in the form of `count_outcomes`; ``waiting`` items are open.

    Judgments never change, and a failed item can only become a judgment: if these numbers are equal, so are the
    outcomes.
    """
    judged, failed = Counter[int | None](), 0
    for fact in outcome:
        failed += fact["error"]
        judged.update([] if fact["error"] else [fact["verdict"]])
    unscored = judged.pop(None, 0)
    verdicts = {str(verdict): number for verdict, number in judged.items()}
    return {"verdicts": verdicts, "unscored": unscored, "failed": failed, "waiting": waiting}
