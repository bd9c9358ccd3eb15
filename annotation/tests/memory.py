"""Peaks of memory, as `tracemalloc` measures them."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable

from annotation.models import Submission

SMALL, LARGE = 100, 500  # trajectories


def peak(work: Callable[[], object]) -> int:
    """Return the most bytes that Python allocated at once during ``work``, beyond those allocated before."""
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        work()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


def bytes_for_each(sizes: list[Submission], work: Callable[[Submission], object]) -> float:
    """Return the bytes of memory that each trajectory adds; ``sizes`` have `SMALL` and `LARGE` trajectories."""
    peaks = []
    for submission in sizes:
        work(submission)  # allocates what is loaded only once
        peaks.append(peak(lambda one=submission: work(one)))  # type: ignore[misc]
    return (peaks[1] - peaks[0]) / (LARGE - SMALL)
