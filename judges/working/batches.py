"""Rows of batches: commit them before they are submitted, follow them, and store their results in the trace.

A call in a batch is a row of the trace without a reply. Its item is not leased to a worker until the batch has ended
(`leases.match_free`); then another attempt at the item finds the reply in the cache. Functions here run in a
`database.DatabaseThread`, and may run again after an uncertain commit.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, cast

from django.db import transaction
from django.db.models import Avg, Exists, F, OuterRef, Q

from annotation import clock
from judges import quotas
from judges.llm import BudgetSpent, Call, Outcome, QuotaSpent, Usage
from judges.llm.apis.base import ReplyBody
from judges.models import JudgeRun, ModelBatch, ModelCall, ModelTerms, RunItem, Service
from judges.working.call_log import NO_USAGE, ItemCallLog, build_counts, compute_cost, make_storable, sum_cost
from judges.working.leases import OPEN, compute_silence_limit

if TYPE_CHECKING:  # they import the SDK, and web servers import this module
    from judges.llm.batch import Result
    from judges.llm.collecting import CollectedCall
    from judges.llm.transport import FailedAttempt

OPEN_ITEMS = 500  # in memory at once; they are dropped when their calls are submitted
SHORT_WAIT = 15.0  # seconds, longest wait for a poll; for longer ones, the reconciler calls a worker
FIRST_POLL, LAST_POLL = 2.0, 60.0  # seconds before the first poll of a batch, doubled up to the second
EXPECTED_REPLY = 300  # tokens, for the estimated cost of a call; those of a paragraph and a verdict
WAITING = Q(reply=None, error="")


class BatchStopped(Exception):
    """A run with batches cannot continue; ``recorded`` is the reason for the event."""

    def __init__(self, reason: str, recorded: str) -> None:
        super().__init__(reason)
        self.recorded = recorded


@dataclass(slots=True)
class BatchedCallLog(ItemCallLog):
    """`llm.collecting.BatchCallLog`: calls that this item has paid for are in the trace once, with their first attempt.

    Each attempt at the item reads them again.
    """

    _own: set[int] | None = None
    _read: set[int] = field(default_factory=set)

    def take_name(self) -> str:
        self._number += 1
        return f"{self.item}-{self.attempt}-{self._number}"

    async def find_failures(self, call: Call) -> list[str]:
        return await self.database.run(load_failures, self.item, call.key, self.sample)

    async def record(self, outcome: Outcome) -> Decimal | None:
        if outcome.hit_of is None:
            return await ItemCallLog.record(self, outcome)
        if outcome.hit_of in self._read:
            return self._found.get(outcome.hit_of)
        self._read.add(outcome.hit_of)
        if self._own is None:
            self._own = await self.database.run(load_replies, self.item)
        if outcome.hit_of not in self._own:
            return await ItemCallLog.record(self, outcome)
        row, cost = self._build_row(outcome)
        self.totals.add(row, cost)
        return cost


def load_replies(item: int) -> set[int]:
    return set(
        ModelCall.objects.filter(item=item, hit=False, reply__isnull=False, error="").values_list("pk", flat=True)
    )


def load_failures(item: int, key: str, sample: str) -> list[str]:
    """Return the results with which a call of an item failed in batches since it was last given up."""
    failed = ModelCall.objects.filter(item=item, key=key, sample=sample).exclude(error="").order_by("pk")
    lines: list[str] = []
    for batch, line in failed.values_list("batch", "reply"):
        if batch is None:  # the call was given up
            lines.clear()
        elif line is not None:
            lines.append(line)
    return lines


# --- before the submission -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Committed:
    """The names of calls that may be submitted, by token of their batch, and why others may not."""

    names: dict[str, set[str]]
    refused: BudgetSpent | None = None


def commit(
    run: int, worker: str, terms: ModelTerms | None, wanted: Sequence[tuple[str, Sequence[CollectedCall]]]
) -> Committed:
    """Create batches of an active run, by token, with their calls, and release their items.

    Calls of items that the worker has lost are left out, and all calls of items that the budget does not pay for.
    """
    with transaction.atomic():
        row = JudgeRun.objects.select_for_update(no_key=True, of=("self",)).select_related("submission").get(pk=run)
        tokens = [token for token, _ in wanted]
        if ModelBatch.objects.filter(run=run, token__in=tokens).exists():  # after an uncertain commit
            return Committed({token: _load_names(token) for token in tokens})
        if row.state not in ("waiting", "running"):
            return Committed({})
        calls = [call for _, each in wanted for call in each]
        owned = _lock_items(run, worker, calls)
        paid, refused = _choose_paid(
            row, terms, [call for call in calls if (_log(call).item, _log(call).attempt) in owned]
        )
        names: dict[str, set[str]] = {}
        for token, each in wanted:
            chosen = [call for call in each if _log(call).item in paid]
            if chosen:
                names[token] = {call.name for call in chosen}
                _create(row, token, terms, chosen)
        RunItem.objects.filter(pk__in=paid).update(worker="", taken_at=None, heartbeat_at=None)
    return Committed(names, refused)


def _log(call: CollectedCall) -> BatchedCallLog:
    return cast("BatchedCallLog", call.call_log)


def _load_names(token: str) -> set[str]:
    calls = ModelCall.objects.filter(batch__token=token).values_list("item", "attempt", "number")
    return {f"{item}-{attempt}-{number}" for item, attempt, number in calls}


def _lock_items(run: int, worker: str, calls: Iterable[CollectedCall]) -> set[tuple[int, int]]:
    items = RunItem.objects.filter(OPEN, run=run, worker=worker, pk__in={_log(call).item for call in calls})
    locked = items.order_by("pk").select_for_update(of=("self",))
    return set(locked.values_list("pk", "attempt"))


def _estimate(terms: ModelTerms | None, call: CollectedCall, mean: Decimal = Decimal(0)) -> Decimal | None:
    """Return the expected cost of a call, at least the ``mean`` of those that the run has paid for."""
    usage = Usage(prompt=call.tokens, completion=EXPECTED_REPLY + call.thoughts)
    cost = compute_cost(terms, usage, Service.BATCH)
    return None if cost is None else max(cost, mean)


def _compute_mean_cost(run: int) -> Decimal:
    answered = ModelCall.objects.filter(item__run=run, hit=False, reply__isnull=False, error="")
    return Decimal(answered.aggregate(mean=Avg("cost"))["mean"] or 0).quantize(Decimal("1e-8"))


def _choose_paid(
    run: JudgeRun, terms: ModelTerms | None, calls: Iterable[CollectedCall]
) -> tuple[set[int], BudgetSpent | None]:
    """Return the items, in their order, that budget and quotas pay for, and why not all."""
    left: dict[str, Decimal] = {}
    for kind in quotas.KINDS:
        limit, used = quotas.load_quota(run.submission.benchmark_id, kind)
        left |= {kind: limit - used} if limit.is_finite() else {}
    if run.max_cost is not None:
        left["budget"] = run.max_cost - sum_cost(run.pk)
        if _has_unknown_costs(run):
            return set(), BudgetSpent(NO_USAGE)
    by_item: dict[int, list[CollectedCall]] = {}
    for call in calls:
        by_item.setdefault(_log(call).item, []).append(call)
    paid: set[int] = set()
    mean = _compute_mean_cost(run.pk)
    for item in sorted(by_item):
        costs = [_estimate(terms, call, mean) for call in by_item[item]]
        cost = sum((each or Decimal(0) for each in costs), Decimal(0))
        needs = {quotas.CALLS: Decimal(len(costs)), quotas.COST: cost, "budget": cost}
        for kind, amount in left.items():
            if needs[kind] > amount or (kind != quotas.CALLS and None in costs):
                return paid, _describe_short(run.max_cost, kind, amount, needs[kind], unknown=None in costs)
        left = {kind: amount - needs[kind] for kind, amount in left.items()}
        paid.add(item)
    return paid, None


def _has_unknown_costs(run: JudgeRun) -> bool:
    paid = ModelCall.objects.filter(item__run=run, hit=False, reply__isnull=False, error="")
    return paid.filter(cost=None).exists()


def _describe_short(budget: Decimal | None, kind: str, left: Decimal, need: Decimal, *, unknown: bool) -> BudgetSpent:
    if kind == quotas.CALLS:
        return QuotaSpent(f"The next item has {need:,f} calls, and the quota of the benchmark has room for {left:,f}.")
    if unknown:
        return BudgetSpent(NO_USAGE)
    spent = f"would cost about {need:.4f} US dollars, and {max(left, Decimal(0)):.4f} are left"
    if kind == quotas.COST:
        return QuotaSpent(f"The next calls of one item {spent} of the quota of the benchmark.")
    return BudgetSpent(
        f"The next calls of one item {spent} of the budget of {budget or 0:.4f} US dollars. Resume the run with a "
        "higher one."
    )


def _create(run: JudgeRun, token: str, terms: ModelTerms | None, calls: Iterable[CollectedCall]) -> None:
    now, mean = clock.now(), _compute_mean_cost(run.pk)
    batch = ModelBatch.objects.create(run=run, token=token, heartbeat_at=now, poll_at=now)
    rows = (
        ModelCall(
            item_id=_log(call).item,
            attempt=_log(call).attempt,
            number=int(call.name.rpartition("-")[2]),
            stage=call.call.stage[:40],
            step=call.call.step,
            key=call.call.key,
            sample=_log(call).sample,
            request=make_storable(call.call.request),
            cost=_estimate(terms, call, mean),
            batch=batch,
            made_at=now,
        )
        for call in calls
    )
    ModelCall.objects.bulk_create(rows, batch_size=500)


# --- the submission --------------------------------------------------------------------------------------------------


def keep_alive(tokens: Collection[str]) -> None:
    """Renew the heartbeat of batches that are not submitted yet."""
    ModelBatch.objects.filter(token__in=tokens, provider_id="", ended_at=None).update(heartbeat_at=clock.now())


def prepare_submission(token: str, file_id: str) -> bool:
    """Store the uploaded file of a batch; return False if another worker has removed it or stored its id."""
    mine = ModelBatch.objects.filter(token=token, provider_id="", ended_at=None)
    return bool(mine.update(heartbeat_at=clock.now(), file_id=file_id))


def store_id(token: str, provider_id: str) -> bool:
    """Store that a batch is submitted; return False if it was removed or has another id."""
    poll_at = clock.now() + timedelta(seconds=FIRST_POLL)
    known = Q(provider_id="") | Q(provider_id=provider_id)
    return bool(ModelBatch.objects.filter(known, token=token).update(provider_id=provider_id, poll_at=poll_at))


def take_over(run: int) -> list[ModelBatch]:
    """Return the batches whose worker died before it could store that they are submitted; they are now ours."""
    silent = ModelBatch.objects.filter(run=run, ended_at=None, provider_id="", heartbeat_at__lt=compute_silence_limit())
    taken = []
    for batch in silent:
        before, batch.heartbeat_at = batch.heartbeat_at, clock.now()
        same = ModelBatch.objects.filter(pk=batch.pk, provider_id="", heartbeat_at=before)
        if same.update(heartbeat_at=batch.heartbeat_at):
            taken.append(batch)
    return taken


def discard_unsubmitted(taken: ModelBatch) -> None:
    """Discard a batch that was taken over, unless its worker lives after all and has continued."""
    with transaction.atomic():
        same = ModelBatch.objects.filter(pk=taken.pk, provider_id="", heartbeat_at=taken.heartbeat_at)
        if same.select_for_update().exists():
            discard(taken.token)


def discard(token: str) -> None:
    """Remove a batch without results, and its calls: the items are free, and their calls are collected again."""
    with transaction.atomic():
        batches = ModelBatch.objects.select_for_update().filter(token=token, ended_at=None)
        for batch in batches:
            batch.calls.filter(WAITING).delete()
            batch.delete()


# --- polls and results -----------------------------------------------------------------------------------------------


def compute_pause(polls: int) -> float:
    """Return the seconds after the given number of polls."""
    return min(LAST_POLL, FIRST_POLL * 2 ** min(polls, 20))


def _match_due() -> Q:
    submitted = ~Q(provider_id="") & Q(poll_at__lte=clock.now())
    return Q(ended_at=None) & (submitted | Q(provider_id="", heartbeat_at__lt=compute_silence_limit()))


def is_due(run: int) -> bool:
    return ModelBatch.objects.filter(_match_due(), run=run).exists()


def claim_polls(run: int) -> list[ModelBatch]:
    """Return the submitted batches whose next poll is due, and set the one after it: of several workers one polls."""
    due = ModelBatch.objects.filter(run=run, ended_at=None, poll_at__lte=clock.now()).exclude(provider_id="")
    claimed = []
    for batch in due:
        later = clock.now() + timedelta(seconds=compute_pause(batch.polls))
        same = ModelBatch.objects.filter(pk=batch.pk, polls=batch.polls, ended_at=None)
        if same.update(polls=F("polls") + 1, poll_at=later):
            claimed.append(batch)
    return claimed


def measure_wait(run: int) -> float | None:
    """Return the seconds until the next poll of a run, None if it has no submitted batch."""
    open_ones = ModelBatch.objects.filter(run=run, ended_at=None).exclude(provider_id="").order_by("poll_at")
    first = open_ones.values_list("poll_at", flat=True).first()
    return None if first is None else max(0.0, (first - clock.now()).total_seconds())


def claim_due_runs() -> list[int]:
    """Return the runs in any state with a batch that is due, and whose workers were not called for a while."""
    late = Q(called_at__isnull=True) | Q(called_at__lt=compute_silence_limit())
    runs = JudgeRun.objects.filter(Exists(ModelBatch.objects.filter(_match_due(), run=OuterRef("pk"))), late)
    chosen = list(runs.order_by("pk").values_list("pk", "called_at"))
    return [
        pk
        for pk, called_at in chosen
        if JudgeRun.objects.filter(pk=pk, called_at=called_at).update(called_at=clock.now())
    ]


def store_results(batch: int, terms: ModelTerms | None, results: Collection[Result]) -> None:
    """Store results in the trace; those of calls that have one already, or are of another batch, are ignored."""
    with transaction.atomic():
        for name, line, came in results:
            parts = re.fullmatch(r"(\d{1,18})-(\d{1,9})-(\d{1,9})", name, re.ASCII)
            if parts is None:
                continue
            item, attempt, number = map(int, parts.groups())
            call = ModelCall.objects.filter(WAITING, batch=batch, item=item, attempt=attempt, number=number)
            call.update(**_build_columns(line, came, terms), made_at=clock.now())


def _build_columns(line: str, came: ReplyBody | FailedAttempt, terms: ModelTerms | None) -> dict[str, object]:
    if not isinstance(came, ReplyBody):
        error = make_storable(came.message) or "An error without a message."
        return {"error": error, "reply": make_storable(line), "cost": 0}
    return {
        "reply": make_storable(came.raw),
        "model": make_storable(came.model)[:200],
        "finish": make_storable(came.finish)[:40],
        "cost": compute_cost(terms, came.usage, Service.BATCH),
        **build_counts(came.usage),
    }


def count_results(batch: int) -> int:
    return ModelCall.objects.filter(batch=batch).exclude(WAITING).count()


def count_reads(batch: int, status: str) -> int:
    """Note that the results of an ended batch are not complete; return the number of polls since this was first so."""
    now = clock.now()
    first = ModelBatch.objects.filter(pk=batch, ended_at=None, status="")
    first.update(status=make_storable(status)[:40], polls=0, poll_at=now + timedelta(seconds=FIRST_POLL))
    return ModelBatch.objects.values_list("polls", flat=True).get(pk=batch)


def end(batch: int, status: str, message: str) -> None:
    """End a batch: its calls without a result have failed with ``message``, and may be made again."""
    with transaction.atomic():
        for row in ModelBatch.objects.select_for_update().filter(pk=batch, ended_at=None):
            missing = ModelCall.objects.filter(WAITING, batch=row)
            missing.update(error=message, reply=_build_missing_result(status), cost=0)
            row.ended_at, row.status = clock.now(), make_storable(status)[:40]
            row.save(update_fields=["ended_at", "status"])


def _build_missing_result(status: str) -> str:
    """Return the result of a request that a batch has ended without."""
    reasons = {"expired": "it expired before the request was executed", "cancelled": "it was cancelled"}
    said = reasons.get(status, f"it ended ({status}) without a result of the request")
    return json.dumps({"response": None, "error": {"code": f"batch_{status}", "message": said}})
