"""Separate processes for measurements, and what processes use."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypeVar

Result = TypeVar("Result")
CLOCK_TICKS = os.sysconf("SC_CLK_TCK")


def run_apart(work: Callable[..., Result], *given: Any) -> Result:
    """Return the result of ``work``, called in a new process that has done nothing else."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(work, *given).result()


def read_memory(kind: str) -> float:
    """Return the MiB of this process, now (VmRSS) or at most so far (VmHWM), from Linux's /proc.

    The peak does not include memory that is shared with the parent process.
    """
    return int(Path("/proc/self/status").read_text(encoding="ascii").partition(f"{kind}:")[2].split()[0]) / 1024


@dataclass(frozen=True, slots=True)
class Used:
    """CPU seconds of a process group since its start, and its current memory in MB; shared memory counts once."""

    cpu: float
    memory: float


def used_by(group: int) -> Used:
    """Return the usage of a process group, from /proc of Linux."""
    cpu = memory = 0.0
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # a process may end in the meantime
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            if int(fields[2]) != group:
                continue
            cpu += sum(int(field) for field in fields[11:15]) / CLOCK_TICKS
            memory += int((folder / "smaps_rollup").read_text().partition("\nPss:")[2].split()[0]) / 1024
    return Used(cpu, memory)
