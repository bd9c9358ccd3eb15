"""Measure the result pages of a large benchmark: ``python -m bench.results``, a part of `make bench`.

Five agents with 2,000 trajectories each, reviewed by three people, and two judges, on SQLite as under `make run`. Each
page is requested by a signed-in maintainer from a web server that has answered other pages but not computed figures
(cold), and then again. Prints a table; a page over a second is not a failure, since times depend on the machine.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from bench.server import free_port, served
from config.processes import CannotRun, Stopped, stop_on_signals

AGENTS, TASKS = 5, 2000
SLUG = "large"
PAGES = ("agents", "judges", "agreement", "comparison?judge=kind", "differences?judge=kind")
BUDGET = 1.0  # seconds
WARMING = 8  # requests of another page


def make(folder: Path) -> str:
    """Create the benchmark with its judges; return the session cookie of its maintainer, mira."""
    from django.test import Client  # noqa: PLC0415 - after the setup

    from annotation.tests import testing  # noqa: PLC0415
    from evaluations.tests.builders import judged, reviewed  # noqa: PLC0415

    benchmark = reviewed(agents=AGENTS, tasks=TASKS, slug=SLUG)
    judged(benchmark, "kind", 0.85, 1)
    judged(benchmark, "strict", 0.8, 2)
    client = Client()
    client.force_login(testing.person("mira"))
    return client.cookies["sessionid"].value


def fetched(server: str, page: str, session: str) -> tuple[float, int]:
    """Return the seconds until the page has arrived, and its size in bytes."""
    asked = urllib.request.Request(f"{server}{page}", headers={"Cookie": f"sessionid={session}"})  # noqa: S310
    started = time.perf_counter()
    with urllib.request.urlopen(asked, timeout=120) as response:  # noqa: S310 - our own server
        body = response.read()
        if not response.url.endswith(page):
            raise CannotRun(f"{page} led to {response.url}: the session of the benchmark was not accepted.")
    return time.perf_counter() - started, len(body)


def measure(repeats: int) -> Iterator[tuple[str, float, float, int]]:
    """Yield each page with its seconds when cold, its median seconds after that, and its bytes."""
    with served(free_port(), make) as (server, session):
        for _ in range(WARMING):  # both web processes load the application at their first page
            fetched(server, f"/benchmarks/{SLUG}", session)
        for page in PAGES:
            cold, size = fetched(server, f"/benchmarks/{SLUG}/{page}", session)
            then = [fetched(server, f"/benchmarks/{SLUG}/{page}", session)[0] for _ in range(repeats)]
            yield page, cold, statistics.median(then), size


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    stop_on_signals()
    print(f"Pages of a benchmark of {AGENTS * TASKS:,} trajectories with three labels each and two judges, SQLite")  # noqa: T201
    print(f"{'page':<28}{'cold':>10}{'then (median)':>16}{'size':>10}")  # noqa: T201
    try:
        for page, cold, then, size in measure(options.repeats):
            over = "   over 1 s" if cold > BUDGET else ""
            print(f"{page:<28}{cold:>8.2f} s{then:>14.2f} s{size / 1000:>7.0f} kB{over}", flush=True)  # noqa: T201
    except (CannotRun, Stopped) as reason:
        print(reason or "Stopped.", file=sys.stderr)  # noqa: T201
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
