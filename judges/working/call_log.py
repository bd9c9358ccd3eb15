"""The trace of every call, which is also the cache of replies."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from django.db.models import Sum

from annotation import clock
from judges.llm import BudgetSpent, Call, Endpoint, Outcome, Usage
from judges.llm.apis.base import strip_unstorable
from judges.models import EndpointAddress, JudgeRun, ModelCall, ModelTerms, Service
from judges.working.database import DatabaseThread
from judges.working.limits import Budget

LARGEST = 2**31 - 1  # count of tokens or milliseconds, as in the database columns
A_MILLION = 1_000_000
NO_USAGE = (
    "The endpoint does not report its token usage, or the model no longer has a price, so a budget cannot be enforced. "
    "Start a run without a budget, or set the prices of the model and resume."
)
# of the usual price; assumed at every endpoint
PRICE_FACTORS: dict[str, Decimal] = {Service.BATCH: Decimal("0.5"), Service.FLEX: Decimal("0.5")}
CACHE_WRITE = Decimal("1.25")


@dataclass(slots=True)
class CallTotals:
    """Sums over the calls of one judgment, cache hits included: ``cost`` None if one had no known price."""

    tokens: int | None = None
    cost: Decimal | None = Decimal(0)
    model: str = ""

    def add(self, call: ModelCall, cost: Decimal | None) -> None:
        used = [count for count in (call.prompt_tokens, call.completion_tokens) if count is not None]
        if used:
            self.tokens = (self.tokens or 0) + sum(used)
        self.cost = None if cost is None or self.cost is None else self.cost + cost
        self.model = call.model or self.model


@dataclass(slots=True)
class ItemCallLog:
    """`llm.CallLog` for one attempt at a run item.

    ``sample`` separates repetitions: a reply is found under its own only (`name_sample`). ``terms`` are the current
    prices. Payments are subtracted from ``budgets`` and added up in ``totals``. ``former_endpoint`` names the endpoint
    whose replies are also found under their former keys (`find_former_endpoint`). ``service`` is that of the run.
    """

    item: int
    attempt: int
    sample: str
    database: DatabaseThread
    terms: ModelTerms | None = None
    budgets: Sequence[Budget] = ()
    former_endpoint: str = ""
    service: str = ""
    totals: CallTotals = field(default_factory=CallTotals)
    _found: dict[int, Decimal | None] = field(default_factory=dict)
    _number: int = 0

    async def find_reply(self, call: Call) -> tuple[int, str] | None:
        wanted = ReplyLookup(call.key, self.sample, call.former_key, self.former_endpoint)
        found = await self.database.run_batched(look_up, wanted)
        if found is None:
            return None
        pk, reply, cost = found
        self._found[pk] = cost
        return pk, reply

    async def record(self, outcome: Outcome) -> Decimal | None:
        row, cost = self._build_row(outcome)
        if row.hit:
            await self.database.run_batched(insert_calls, row)
        else:
            await self._record_and_pay(row, cost)
        if outcome.reply is not None and not outcome.error:
            self.totals.add(row, cost)
        return cost

    async def _record_and_pay(self, row: ModelCall, cost: Decimal | None) -> None:
        amounts = [(budget, budget.measure(cost)) for budget in self.budgets]
        for budget, amount in amounts:
            budget.owe(amount)
        try:
            await self.database.run_batched(insert_calls, row)
            for budget, amount in amounts:
                budget.pay(amount)
        finally:
            for budget, amount in amounts:
                budget.owe(-amount if amount else None)
        unknown = any(amount is None and budget.limit.is_finite() for budget, amount in amounts)
        if unknown and row.reply is not None and not row.error:
            raise BudgetSpent(NO_USAGE)

    def _compute_cost(self, outcome: Outcome) -> Decimal | None:
        service = self.service
        if service == Service.FLEX and _read_tier(outcome.reply or "") not in ("", Service.FLEX):
            service = ""  # the endpoint has answered at its usual price
        return compute_cost(self.terms, outcome.usage, service)

    def _build_row(self, outcome: Outcome) -> tuple[ModelCall, Decimal | None]:
        self._number += 1
        hit = outcome.hit_of is not None
        cost = self._found.get(outcome.hit_of or 0) if hit else self._compute_cost(outcome)
        row = ModelCall(
            item_id=self.item,
            attempt=self.attempt,
            number=self._number,
            stage=outcome.call.stage[:40],
            step=outcome.call.step,
            key=outcome.call.key,
            sample=self.sample,
            request=None if hit else make_storable(outcome.call.request),
            reply=None if hit or outcome.reply is None else make_storable(outcome.reply),
            hit_of_id=outcome.hit_of,
            hit=hit,
            model=make_storable(outcome.model)[:200],
            finish=make_storable(outcome.finish)[:40],
            **build_counts(outcome.usage),
            cost=Decimal(0) if hit else cost,
            latency=_clip_count(outcome.latency),
            retries=min(max(outcome.retries, 0), 32_767),
            error=make_storable(outcome.error),
        )
        return row, cost


def _read_tier(reply: str) -> str:
    """Return the service tier that a reply states, "" if it states none."""
    try:
        whole = json.loads(reply)
    except (ValueError, RecursionError):
        return ""
    tier = whole.get("service_tier") if isinstance(whole, dict) else None
    return tier if isinstance(tier, str) else ""


def name_sample(run: int, repetition: int, fresh: bool) -> str:
    """Return the sample under which a run's replies are stored; no other run uses the sample of a fresh run."""
    return f"{run}/{repetition}" if fresh else str(repetition)


@dataclass(frozen=True, slots=True)
class ReplyLookup:
    """A reply to look up. Under ``former_key`` only replies of ``former_endpoint`` count; "" means none."""

    key: str
    sample: str
    former_key: str = ""
    former_endpoint: str = ""


def look_up(wanted: list[ReplyLookup]) -> list[tuple[int, str, Decimal | None] | None]:
    """Return the first reply for each key: its row, its body and its cost. One query."""
    keys = {one.key for one in wanted} | {one.former_key for one in wanted if one.former_endpoint}
    calls = ModelCall.objects.filter(
        key__in=keys, sample__in={one.sample for one in wanted}, reply__isnull=False, error=""
    )
    found: dict[tuple[str, ...], tuple[int, str, Decimal | None]] = {}
    columns = ("item__run__judge__endpoint", "key", "sample", "pk", "reply", "cost")
    for endpoint, key, sample, pk, reply, cost in calls.order_by("-pk").values_list(*columns):
        found[key, sample] = found[key, sample, endpoint] = (pk, str(reply), cost)
    return [
        found.get((one.key, one.sample)) or found.get((one.former_key, one.sample, one.former_endpoint))
        for one in wanted
    ]


def find_former_endpoint(endpoint: Endpoint) -> str:
    """Return the name of the endpoint if it still has the address of the first call of this function, else "".

    Replies with a former key belong to the judge's endpoint, but its address at that time is unknown.
    """
    first, _ = EndpointAddress.objects.get_or_create(name=endpoint.name, defaults={"address": endpoint.base_url})
    return endpoint.name if first.address == endpoint.base_url else ""


def insert_calls(rows: list[ModelCall]) -> list[None]:
    """Insert rows in one transaction; a row that exists already, after an uncertain commit, does not change."""
    now = clock.now()  # not where the rows are built: the event loop must not wait for the database
    for row in rows:
        row.made_at = now
    ModelCall.objects.bulk_create(rows, ignore_conflicts=True)
    return [None] * len(rows)


def sum_cost(run: int) -> Decimal:
    """Sum the cost of a run's calls, in US dollars; calls without a price count 0."""
    total = ModelCall.objects.filter(item__run=run, hit=False).aggregate(cost=Sum("cost"))["cost"]
    return Decimal(total or 0)


def load_spending(run: int) -> tuple[Decimal, Decimal | None]:
    return sum_cost(run), JudgeRun.objects.values_list("max_cost", flat=True).get(pk=run)


def compute_cost(terms: ModelTerms | None, usage: Usage, service: str = "") -> Decimal | None:
    """Return the cost in US dollars: tokens times prices per million, times that of the service (`PRICE_FACTORS`).

    None if a price or a count is unknown. A shipped price is unknown for a longer prompt than it is stated for.
    Tokens that the endpoint writes to its cache cost `CACHE_WRITE` times the price of the prompt, as at Anthropic (for
    5 minutes) and at OpenAI since GPT-5.6.
    """
    if terms is None or terms.input_price is None or terms.output_price is None:
        return None
    prompt, completion = _clip_count(usage.prompt), _clip_count(usage.completion)
    if prompt is None or completion is None:
        return None
    if terms.shipped is not None and terms.shipped.longest is not None and prompt > terms.shipped.longest:
        return None
    cached = min(_clip_count(usage.cached) or 0, prompt)
    cached_price = terms.input_price if terms.cached_price is None else terms.cached_price
    written = min(_clip_count(usage.written) or 0, prompt - cached)
    total = (prompt - cached) * terms.input_price + cached * cached_price + completion * terms.output_price
    total += written * terms.input_price * (CACHE_WRITE - 1)
    cost = (total * PRICE_FACTORS.get(service, 1) / A_MILLION).quantize(Decimal("1e-8"))
    return cost if cost < A_MILLION else None  # no correct token count has such a cost


def build_counts(usage: Usage) -> dict[str, int | None]:
    """Return the columns of a call with its tokens."""
    return {
        "prompt_tokens": _clip_count(usage.prompt),
        "cached_tokens": _clip_count(usage.cached),
        "completion_tokens": _clip_count(usage.completion),
        "reasoning_tokens": _clip_count(usage.reasoning),
    }


def _clip_count(value: int | None) -> int | None:
    """Return a count that fits into a column, None for an impossible one."""
    return value if value is not None and 0 <= value <= LARGEST else None


def make_storable(value: Any) -> Any:
    """Remove what a database refuses from texts and JSON: NUL, halves of surrogate pairs, infinite numbers."""
    if isinstance(value, str):
        return strip_unstorable(value)
    if isinstance(value, Mapping):
        return {make_storable(str(name)): make_storable(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [make_storable(each) for each in value]
    if isinstance(value, float) and not abs(value) < float("inf"):
        return None
    return value
