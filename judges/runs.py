"""Start, pause, resume, cancel and retry judge runs, and load their progress.

The rows define the work. A worker claims an item by one conditional update, sends heartbeats, and stores the judgment
and the end of the item in one transaction; the next worker claims the items of a dead worker (`working.leases`).

Every function that changes a run locks the submission, then the run, and appends an event to the submission's chain.
Judges do not change decisions of people, so a run may use a frozen submission or a practice set.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any

from django.db import transaction
from django.db.models import Count, Max, Min, Q, Sum

from annotation import clock
from annotation.models import Membership, Submission
from annotation.workflow import Conflict
from annotation.workflow.guards import Role, lock_submission, record, require_member
from judges import attacking, defining, jobs, quotas
from judges.models import Judge, JudgeRun, Judgment, ModelCall, ModelTerms, RunItem
from judges.planning import Plan, plan
from judges.ready_judges import RunRefused, find_endpoint
from judges.working.call_log import sum_cost
from judges.working.leases import OPEN, build_end_payload, build_payload, compute_silence_limit

RATE_WINDOW = timedelta(minutes=5)
MOST_ERRORS = 5  # that `Progress` lists
LARGEST_BUDGET = Decimal(10) ** 8  # as in the database column
A_CENT_OF_A_CENT = Decimal("0.0001")


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress of a run. ``rate``: judgments per minute over the last minutes; ``seconds_left``: None if unknown.

    ``calls``, ``tokens`` and ``cost`` count paid calls only; ``cache_hits`` cost nothing. ``errors`` are the most
    frequent ones with their number. ``status_not_stated`` counts verdicts of replies without one.
    """

    state: str
    total: int
    done: int
    unscored: int
    failed: int
    running: int
    calls: int
    cache_hits: int
    tokens: int
    cost: Decimal | None
    rate: float | None
    seconds_left: float | None
    status_not_stated: int = 0
    errors: tuple[tuple[str, int], ...] = ()


# --- transitions ------------------------------------------------------------------------------------------------------


def start(
    person: Any,
    judge: Judge,
    submission: Submission,
    selection: Mapping[str, Any],
    *,
    repetitions: int = 1,
    max_cost: Decimal | None = None,
    test: bool = False,
    fresh: bool = False,
    service: str = "",
) -> JudgeRun:
    """Freeze the judge, create the run with its items, append the event; raises RunRefused. `jobs.call_workers` calls
    workers after the commit; if that message is lost, the reconciler calls them."""
    planned = plan(judge, submission, selection, repetitions, service)
    if not planned.chosen:
        raise RunRefused("No trajectories are selected, so there is nothing to judge.")
    return _start(person, planned, submission, selection, max_cost, test=test, fresh=fresh, service=service)


def start_attack(
    person: Any,
    judge: Judge,
    submission: Submission,
    selection: Mapping[str, Any],
    operators: Sequence[str],
    *,
    seed: int = 0,
    max_cost: Decimal | None = None,
) -> JudgeRun:
    """Start a run that attacks the judge, as `start`; see `attacking.plan` for the arguments."""
    planned, robustness = attacking.plan(judge, submission, selection, operators, seed)
    return _start(person, planned, submission, selection, max_cost, test=True, fresh=False, robustness=robustness)


def _start(
    person: Any,
    planned: Plan,
    submission: Submission,
    selection: Mapping[str, Any],
    max_cost: Decimal | None,
    *,
    test: bool,
    fresh: bool,
    service: str = "",
    robustness: Mapping[str, Any] | None = None,
) -> JudgeRun:
    judge = planned.ready.judge
    with transaction.atomic():
        submission = lock_submission(submission.pk)
        member = require_member(person, submission, Role.MAINTAINER)
        if robustness is not None:
            attacking.require_frozen(submission)
        find_endpoint(judge)
        quotas.require_room(judge, submission.benchmark_id)
        budget = parse_budget(judge, planned.ready.terms, max_cost)
        defining.freeze(judge)
        run = JudgeRun.objects.create(
            judge=judge,
            submission=submission,
            selection=dict(selection),
            repetitions=planned.repetitions,
            test=test,
            fresh=fresh,
            service=service,
            robustness=robustness,
            max_cost=budget,
            estimate=planned.as_json(),
            created_by=person,
        )
        RunItem.objects.bulk_create(
            (
                RunItem(run=run, trajectory=trajectory, repetition=repetition)
                for trajectory, repetition in planned.items
            ),
            batch_size=1000,
        )
        # Changes that do not apply have no item: verifiers expect one of each trajectory and repetition.
        counts = (planned.trajectories, planned.repetitions) if robustness is None else (len(planned.items), 1)
        asked = {
            "trajectories": counts[0],
            "repetitions": counts[1],
            "fresh": fresh,
            "max_cost": _format_amount(budget),
            **({"service": service} if service else {}),
        }
        record(submission, member, "judge_run_started", **build_payload(run), **asked)
        _call_workers(run, len(planned.items))
        return run


def pause(person: Any, run: JudgeRun) -> None:
    with _lock_run(person, run) as (row, member):
        _require_state(row, "waiting", "running", because="Only a running run can be paused")
        row.paused_at = clock.now()
        row.save(update_fields=["paused_at"])
        record(row.submission, member, "judge_run_paused", **build_payload(row))


def resume(person: Any, run: JudgeRun, max_cost: Decimal | None = None) -> None:
    with _lock_run(person, run) as (row, member):
        _require_state(row, "paused", "stopped", because="Only a paused or stopped run can be resumed")
        find_endpoint(row.judge)
        if max_cost is not None:
            row.max_cost = parse_budget(row.judge, ModelTerms.of(row.judge), max_cost)
        _require_budget(row)
        quotas.require_room(row.judge, row.submission.benchmark_id)
        row.paused_at, row.stopped = None, ""
        row.save(update_fields=["paused_at", "stopped", "max_cost"])
        record(row.submission, member, "judge_run_resumed", **build_payload(row), max_cost=_format_amount(row.max_cost))
        _call_workers(row, row.items.filter(OPEN).count())


def cancel(person: Any, run: JudgeRun) -> None:
    """End a run permanently; its judgments stay, and the event has their digest.

    Workers lose their open items, so that no item is completed later and the event stays true.
    """
    with _lock_run(person, run) as (row, member):
        _require_state(
            row, "waiting", "running", "paused", "stopped", because="Only a run that has not ended can be cancelled"
        )
        row.cancelled_at = clock.now()
        row.save(update_fields=["cancelled_at"])
        row.items.filter(OPEN).update(worker="", taken_at=None, heartbeat_at=None)
        record(row.submission, member, "judge_run_cancelled", **build_end_payload(row))


def retry_failed(person: Any, run: JudgeRun) -> int:
    with _lock_run(person, run) as (row, member):
        states = ("waiting", "running", "paused", "stopped", "finished")
        _require_state(row, *states, because="A cancelled run cannot continue: start a new one")
        find_endpoint(row.judge)
        quotas.require_room(row.judge, row.submission.benchmark_id)
        failed = row.items.filter(failed_at__isnull=False)
        number = failed.update(failed_at=None, passing=False, worker="", taken_at=None, heartbeat_at=None)
        if number:
            row.finished_at = None
            row.save(update_fields=["finished_at"])
            record(row.submission, member, "judge_run_retried", **build_payload(row), items=number)
            _call_workers(row, number)
        return number


@contextmanager
def _lock_run(person: Any, run: JudgeRun) -> Iterator[tuple[JudgeRun, Membership]]:
    with transaction.atomic():
        submission = lock_submission(run.submission_id)
        member = require_member(person, submission, Role.MAINTAINER)
        row = JudgeRun.objects.select_for_update(no_key=True, of=("self",)).select_related("judge").get(pk=run.pk)
        row.submission = submission
        yield row, member
    run.refresh_from_db()


def _require_state(run: JudgeRun, *states: str, because: str) -> None:
    if run.state not in states:
        raise Conflict(f"{because}; this one is {run.state}.")


def parse_budget(judge: Judge, terms: ModelTerms | None, given: Decimal | None) -> Decimal | None:
    """Return the budget as the column stores it; raise RunRefused if it is invalid, or prices are unknown."""
    if given is None:
        return None
    try:
        budget = Decimal(given).quantize(A_CENT_OF_A_CENT)
    except (InvalidOperation, ValueError, TypeError):
        raise RunRefused("The budget must be an amount in US dollars.") from None
    if not budget.is_finite() or not 0 < budget < LARGEST_BUDGET:
        raise RunRefused(f"The budget must be between {A_CENT_OF_A_CENT} and {LARGEST_BUDGET:,} US dollars.")
    if terms is None or not terms.has_prices:
        raise RunRefused(
            f"A budget needs prices, and those of {judge.model} at the endpoint {judge.endpoint} are "
            "unknown. A maintainer of the instance can set its prices on the page of the model terms."
        )
    return budget


def _require_budget(run: JudgeRun) -> None:
    if run.max_cost is not None and (spent := sum_cost(run.pk)) >= run.max_cost:
        raise RunRefused(
            f"The budget of {run.max_cost.normalize():f} US dollars is spent ({spent:.4f} so far). Resume the run with "
            "a higher one."
        )


def _call_workers(run: JudgeRun, items: int) -> None:
    """Call workers after the commit; robust, since without a broker the rows wait and the reconciler calls again."""
    JudgeRun.objects.filter(pk=run.pk).update(called_at=clock.now())
    transaction.on_commit(lambda: jobs.call_workers(run.pk, items, alone=run.has_one_worker), robust=True)


def _format_amount(amount: Decimal | None) -> str | None:
    return None if amount is None else str(amount)


# --- progress ---------------------------------------------------------------------------------------------------------


def load_progress(run: JudgeRun) -> Progress:
    now = clock.now()
    row = JudgeRun.objects.get(pk=run.pk)
    items = row.items.aggregate(
        total=Count("pk"),
        done=Count("pk", filter=Q(done_at__isnull=False)),
        failed=Count("pk", filter=Q(failed_at__isnull=False)),
        running=Count("pk", filter=OPEN & Q(heartbeat_at__gte=compute_silence_limit())),
        lately=Count("pk", filter=Q(done_at__gte=now - RATE_WINDOW)),
        first_taken=Min("taken_at", filter=Q(done_at__gte=now - RATE_WINDOW)),
        last_done=Max("done_at"),
    )
    calls = ModelCall.objects.filter(item__run=row).aggregate(
        calls=Count("pk", filter=Q(hit=False)),
        cache_hits=Count("pk", filter=Q(hit=True)),
        prompt=Sum("prompt_tokens", filter=Q(hit=False)),
        completion=Sum("completion_tokens", filter=Q(hit=False)),
        cost=Sum("cost", filter=Q(hit=False)),
    )
    failed = row.items.filter(failed_at__isnull=False).order_by().values_list("error")
    errors = failed.annotate(number=Count("pk")).order_by("-number", "error")[:MOST_ERRORS]
    rate = _compute_rate(items, now)
    left = items["total"] - items["done"] - items["failed"]
    judged = Judgment.objects.filter(item__run=row).aggregate(
        unscored=Count("pk", filter=Q(verdict__isnull=True)),
        not_stated=Count("pk", filter=Q(status_not_stated=True)),
    )
    return Progress(
        state=row.state,
        total=items["total"],
        done=items["done"],
        unscored=judged["unscored"],
        failed=items["failed"],
        running=items["running"],
        calls=calls["calls"],
        cache_hits=calls["cache_hits"],
        tokens=(calls["prompt"] or 0) + (calls["completion"] or 0),
        cost=calls["cost"] if calls["calls"] else Decimal(0),
        rate=rate,
        seconds_left=left / rate * 60 if rate and left and row.state == "running" else None,
        status_not_stated=judged["not_stated"],
        errors=tuple(errors),
    )


def _compute_rate(items: Mapping[str, Any], now: datetime) -> float | None:
    """Return judgments per minute, from the first lease in `RATE_WINDOW` to now, or to the last judgment at the end."""
    if not items["lately"]:
        return None
    ended = items["total"] == items["done"] + items["failed"]
    begun = max(items["first_taken"] or now, now - RATE_WINDOW)
    minutes = ((items["last_done"] if ended else now) - begun).total_seconds() / 60
    return float(items["lately"] / max(minutes, 1 / 60))
