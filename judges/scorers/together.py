"""Several calls at once, all or nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

T = TypeVar("T")


async def run_together(calls: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """The results in order. The first failure is raised as it is, after the other calls were cancelled and ended."""
    tasks = [asyncio.ensure_future(call) for call in calls]
    try:
        return await asyncio.gather(*tasks)
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise
