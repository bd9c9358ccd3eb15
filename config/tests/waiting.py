"""Wait for something to become true, with a deadline, and say what did not."""

import time
from collections.abc import Callable

HANG = 300.0  # seconds; a start takes more than one minute beside sixteen busy processes on two cores


def wait_until(condition: Callable[[], object], what: str, seconds: float = HANG) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds:.0f} s: {what}"
        time.sleep(0.05)  # between two looks, never instead of looking
