"""Ask a judge's model about judgments, outside of a run: the calls are recorded with a run item.

So they count in the budget and the quotas as calls of judges do, and the cache answers a repeated question.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from decimal import Decimal
from functools import partial
from typing import TypeVar

from django.conf import settings
from django.db.models import Max

from judges import quotas
from judges.llm import Asker
from judges.llm.client import Client
from judges.models import ModelCall, RunItem
from judges.ready_judges import find_endpoint, prepare
from judges.working import call_log
from judges.working.call_log import ItemCallLog
from judges.working.database import DatabaseThread
from judges.working.limits import Budget, SharedGate
from judges.working.subjects import StoredImages
from judges.working.worker import LONGEST_BEAT, build_quota

T = TypeVar("T")


def ask(
    item: RunItem,
    question: Callable[[Asker], Awaitable[T]],
    *,
    sample: str,
    limit: Decimal | None,
    spent: Callable[[], Decimal],
    beat: Callable[[], None],
) -> T:
    """Return the result of ``question``, which asks the model of the judge of ``item``.

    Replies are stored under ``sample`` (at most 40 characters). ``limit`` is a budget in US dollars of which ``spent``
    returns what is used. ``beat`` is called every few seconds. The caller makes sure that only one worker asks. Raises
    RunRefused, CallFailed and BudgetSpent.
    """
    with DatabaseThread() as database:
        return asyncio.run(_ask(database, item, question, sample, limit, spent, beat))


async def _ask(
    database: DatabaseThread,
    item: RunItem,
    question: Callable[[Asker], Awaitable[T]],
    sample: str,
    limit: Decimal | None,
    spent: Callable[[], Decimal],
    beat: Callable[[], None],
) -> T:
    judge, benchmark = item.run.judge, item.run.submission.benchmark_id
    ready, endpoint = await database.run(prepare, judge), await database.run(find_endpoint, judge)
    budgets = [] if limit is None else [Budget(limit, partial(database.run, spent))]
    shared = [build_quota(database, benchmark, kind) for kind in quotas.KINDS]
    gate = SharedGate(ready.terms, f"{judge.endpoint}:{judge.model}", None, *budgets, *shared)
    client = Client(endpoint, judge.model, ready.generation, ready.patience, gate, StoredImages())
    former = await database.run(call_log.find_former_endpoint, endpoint)
    attempt = await database.run(_count_attempts, item.pk) + 1
    calls = ItemCallLog(item.pk, attempt, sample, database, ready.terms, [*shared, *budgets], former)
    beating = asyncio.create_task(_beat(database, beat))
    try:
        return await question(client.asker(calls, item.pk))
    finally:
        beating.cancel()
        await client.close()
        await gate.close()


def _count_attempts(item: int) -> int:
    """Return the highest attempt of an item: rows of another attempt must not hide those of this one."""
    used = ModelCall.objects.filter(item=item).aggregate(most=Max("attempt"))["most"] or 0
    return max(used, RunItem.objects.values_list("attempt", flat=True).get(pk=item))


async def _beat(database: DatabaseThread, beat: Callable[[], None]) -> None:
    while True:
        await asyncio.sleep(min(LONGEST_BEAT, settings.JUDGE_SILENCE_SECONDS / 3))
        await database.run(beat)
