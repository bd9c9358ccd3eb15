"""Quotas of a benchmark for paid calls of models and their cost, over all judge runs; see `annotation.quotas`."""

from __future__ import annotations

from decimal import Decimal

from django.db.models import Sum

from annotation.models import Benchmark
from annotation.quotas import ASK
from judges.models import Judge, ModelCall, ModelTerms
from judges.ready_judges import RunRefused

UNLIMITED = Decimal("Infinity")
CALLS, COST = KINDS = ("quota_calls", "quota_cost")


def load_use(benchmark: int, kind: str) -> Decimal:
    """Return the number of answered calls, or the cost of all in US dollars; calls without a price cost nothing."""
    paid = ModelCall.objects.filter(item__run__submission__benchmark=benchmark, hit=False)
    used = paid.filter(error="").count() if kind == CALLS else paid.aggregate(cost=Sum("cost"))["cost"]
    return Decimal(used or 0)


def load_quota(benchmark: int, kind: str) -> tuple[Decimal, Decimal]:
    """Return the quota and what is used of it, which is not computed if there is no quota."""
    limit = Benchmark.objects.values_list(kind, flat=True).get(pk=benchmark)
    return (UNLIMITED, Decimal(0)) if limit is None else (Decimal(limit), load_use(benchmark, kind))


def describe_spent(kind: str, limit: Decimal, used: Decimal) -> str:
    if kind == CALLS:
        said = f"The benchmark has a quota of {limit:,f} model calls and has used {used:,f}."
    else:
        said = f"The benchmark has a quota of {limit.normalize():f} US dollars for judges and has spent {used:.4f}."
    return f"{said} {ASK}"


def require_room(judge: Judge, benchmark: int) -> None:
    """Raise RunRefused if a quota is used up, or a quota of cost cannot be kept because prices are unknown."""
    if not judge.asks_model:
        return
    for kind in KINDS:
        limit, used = load_quota(benchmark, kind)
        if used >= limit:
            raise RunRefused(describe_spent(kind, limit, used))
        terms = ModelTerms.of(judge)
        if kind == COST and limit != UNLIMITED and not (terms and terms.has_prices):
            raise RunRefused(
                f"The benchmark has a cost quota, but the prices of {judge.model} at the endpoint {judge.endpoint} are "
                "unknown. Ask a maintainer of the instance to set them under Prices and limits."
            )
