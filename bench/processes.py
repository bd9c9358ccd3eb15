"""Separate processes for measurements, and the memory of a process."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypeVar

Result = TypeVar("Result")


def run_apart(work: Callable[..., Result], *given: Any) -> Result:
    """Return the result of ``work``, called in a new process that has done nothing else."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(work, *given).result()


def read_memory(kind: str) -> float:
    """Return the MiB of this process, now (VmRSS) or at most so far (VmHWM), from Linux's /proc.

    The peak does not include memory that is shared with the parent process.
    """
    return int(Path("/proc/self/status").read_text(encoding="ascii").partition(f"{kind}:")[2].split()[0]) / 1024
