"""Measure the public registry: ``python -m bench.registry``.

Builds 1,000 entries of 300 rows each on SQLite, one in ten rescored, and requests every public address. The table shows
CPU time (the median of five requests), queries and size of each page, the cost of an answer 304, and marks pages that
need more than 100 ms. The exit code is always 0: times depend on the machine.
"""

from __future__ import annotations

import argparse
import logging
import statistics
import sys
import tempfile
import time
from typing import Any

from bench.pages import collect
from bench.processes import run_apart
from bench.scratch import set_up

ENTRIES, ROWS = 1000, 300
MILLISECONDS = 100.0  # the budget of a page
REPEATED = 5


def measure(entries: int, rows: int) -> list[tuple[str, float, float, int, int]]:
    """Return address, CPU milliseconds of a page and of a 304, queries and bytes; call it in a new process."""
    with tempfile.TemporaryDirectory(prefix="webverdict-registry-") as folder:
        set_up(folder)
        from django.core.management import call_command  # noqa: PLC0415 - after the setup
        from django.db import connection  # noqa: PLC0415
        from django.test import Client  # noqa: PLC0415

        from evaluations.tests.public_pages import list_addresses  # noqa: PLC0415

        logging.disable(logging.ERROR)
        call_command("migrate", verbosity=0, interactive=False)
        call_command("collectstatic", interactive=False, verbosity=0)
        keys = build(entries, rows)
        connection.cursor().execute("ANALYZE")
        client = Client(headers={"host": "localhost"})
        found = []
        for address in list_addresses("shops", *keys):
            if client.get(address).status_code != 200:
                continue
            statements: list[str] = []
            with connection.execute_wrapper(collect(statements)):
                response = client.get(address)
            page = statistics.median(_time(client, address) for _ in range(REPEATED))
            same = statistics.median(_time(client, address, response["ETag"]) for _ in range(REPEATED))
            found.append((address, page, same, len(statements), len(response.content)))
        return found


def _time(client: Any, address: str, etag: str = "") -> float:
    began = time.process_time()
    client.get(address, headers={"If-None-Match": etag} if etag else {})
    return 1000 * (time.process_time() - began)


def build(entries: int, rows: int) -> list[str]:
    """Create the entries, and return the keys of two of them, of which the first is rescored."""
    from django.db import transaction  # noqa: PLC0415 - after the setup

    from evaluations.tests.builders import registered  # noqa: PLC0415

    with transaction.atomic():
        benchmark = registered.registry()
        keys = []
        for number in range(entries):
            entry = registered.submitted(benchmark, f"Agent {number}")
            registered.accepted(entry, [int((row * 7 + number) % 10 < 1 + number % 9) for row in range(rows)])
            if number % 10 == 0:
                registered.rescored(entry, {f"task_{row:04d}": 1 for row in range(min(rows, 30))})
            keys.append(entry.key)
    return keys[:2]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.registry", description=__doc__)
    parser.add_argument("--entries", type=int, default=ENTRIES)
    parser.add_argument("--rows", type=int, default=ROWS)
    chosen = parser.parse_args(arguments)
    results = run_apart(measure, chosen.entries, chosen.rows)
    print(f"Public registry of {chosen.entries:,} entries with {chosen.rows:,} rows each, SQLite")  # noqa: T201
    print(f"{'CPU ms':>7}{'304 ms':>8}{'queries':>9}{'kB':>7}  page")  # noqa: T201
    for address, page, same, queries, size in results:
        words = f"   OVER {MILLISECONDS:.0f} MS" if page > MILLISECONDS else ""
        print(f"{page:>7.0f}{same:>8.0f}{queries:>9}{size / 1000:>7.1f}  {address}{words}")  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main())
