"""Wait for something to become true, with a deadline, and say what did not."""

import time
from collections.abc import Callable


def wait_until(condition: Callable[[], object], what: str, seconds: float = 40.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds:.0f} s: {what}"
        time.sleep(0.05)  # between two looks, never instead of looking
