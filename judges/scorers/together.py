"""Concurrent calls that succeed or fail together."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

T = TypeVar("T")


async def run_together(calls: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Return the results in order, or raise the first failure unchanged once the other calls are cancelled and over."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(call) for call in calls]
    except BaseExceptionGroup as failed:
        raise failed.exceptions[0] from None
    return [task.result() for task in tasks]
