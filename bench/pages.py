"""Measure every page of a large instance: ``python -m bench.pages``, a part of `make bench`.

Builds submissions of 300 and of 30,000 trajectories on SQLite, each before the freeze, after it and as an audit, with
200 people and long lists of reports, questions, comments, redactions and import problems. Every address is requested by
every role. For each page the table shows the largest HTML, the most queries and the longest time, and marks a page over
200 kB, over a second, or with more queries for more rows. The exit code is always 0: times depend on the machine.
"""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from bench.processes import run_apart
from bench.scratch import set_up

SIZES = (300, 30_000)  # trajectories
BYTES, SECONDS = 200_000, 1.0  # the budget of a page
MORE_QUERIES = 3  # that a page of the larger size may have
ROLES = ("alice", "carol", "mira", "amy")  # annotator, adjudicator, maintainer, auditor and operator
# Not pages: files to download, and images.
FILES = (
    ".well-known",
    "account/data",
    "export/<",
    "evidence/bundle",
    "send/<",
    "report.csv",
    "report.json",
    "rendition",
)
LEFT_OUT = ("admin/", "api/", "static", "sign-out", "trace.json", "redacted.png", *FILES)
# What people ask of long lists, for the pages that have filters.
ASKED = {
    "submissions/<int:pk>/tasks": ("state=dispute", "slot=open", "who=A2", "q=laptop", "state=agreed&q=12", "page=3"),
    "submissions/<int:pk>/events": ("page=2",),
    "submissions/<int:pk>/reports": ("page=2",),
    "work/<int:pk>": ("page=2",),
    "benchmarks/<slug:slug>/two-agents": ("group=first", "q=laptop&page=3"),
}


@dataclass(frozen=True, slots=True)
class Cost:
    """Cost of one page: its HTML, the statements of its queries, and seconds."""

    html: str
    statements: list[str]
    seconds: float

    @property
    def size(self) -> int:
        return len(self.html.encode())

    @property
    def queries(self) -> int:
        return len(self.statements)


def walk(rows: dict[str, list[Any]], roles: Iterable[str] = ROLES) -> Iterator[tuple[str, str, str, Cost]]:
    """Yield state, route, role and cost of every page; ``rows`` are trajectories of each state."""
    from django.db import connection  # noqa: PLC0415 - after the setup
    from django.test import Client  # noqa: PLC0415

    from annotation.models import Person  # noqa: PLC0415
    from config.tests.addresses import addresses  # noqa: PLC0415

    for state, some in rows.items():
        pages = [pair for pair in addresses(some) if not any(part in pair[0] for part in LEFT_OUT)]
        for role in roles:
            client = Client(headers={"host": "localhost"})
            client.force_login(Person.objects.get(username=role))
            for route, address in pages:
                for query in ("", *ASKED.get(route, ())):
                    asked = f"{address}{'&' if '?' in address else '?'}{query}" if query else address
                    statements: list[str] = []
                    with connection.execute_wrapper(collect(statements)):
                        began = time.perf_counter()
                        response = client.get(asked)
                        seconds = time.perf_counter() - began
                    if response.status_code == 200 and response["Content-Type"].startswith("text/html"):
                        name = f"{route}?{query}" if query else route
                        yield state, name, role, Cost(response.content.decode(), statements, seconds)


def collect(statements: list[str]) -> Callable[..., Any]:
    def execute(run: Callable[..., Any], sql: str, *given: Any) -> Any:
        statements.append(sql)
        return run(sql, *given)

    return execute


def measure(size: int) -> dict[tuple[str, str, str], Cost]:
    """Build an instance and return the largest cost of each page by state, route and role; call it in a new process."""
    with tempfile.TemporaryDirectory(prefix="webverdict-pages-") as folder:
        set_up(folder)
        from django.core.management import call_command  # noqa: PLC0415 - after the setup
        from django.db import connection  # noqa: PLC0415

        from bench.pages_rows import build  # noqa: PLC0415

        logging.disable(logging.ERROR)
        call_command("migrate", verbosity=0, interactive=False)
        call_command("collectstatic", interactive=False, verbosity=0)
        rows = build(size)
        connection.cursor().execute("ANALYZE")
        found: dict[tuple[str, str, str], Cost] = {}
        for state, route, role, cost in walk(rows):
            key = (state, route, role)
            if key not in found or cost.size > found[key].size:
                found[key] = cost
        return found


def faults(small: Cost | None, large: Cost) -> str:
    """Return what is over the budget, in words."""
    found = ["over 200 kB"] if large.size > BYTES else []
    if large.seconds > SECONDS:
        found.append("over 1 s")
    if small is not None and large.queries > small.queries + MORE_QUERIES:
        found.append(f"{small.queries} queries with fewer rows")
    return ", ".join(found)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.pages", description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="trajectories; 300 and 30,000 without it")
    chosen = parser.parse_args(arguments)
    results = [run_apart(measure, size) for size in chosen.sizes]
    print(f"Pages of submissions of {chosen.sizes[-1]:,} trajectories, SQLite")  # noqa: T201
    print(f"{'state':<9}{'role':<7}{'kB':>7}{'queries':>9}{'s':>7}  page")  # noqa: T201
    for (state, route, role), cost in sorted(results[-1].items(), key=lambda each: (each[0][1], each[0])):
        words = faults(results[0].get((state, route, role)), cost)
        line = f"{state:<9}{role:<7}{cost.size / 1000:>7.0f}{cost.queries:>9}{cost.seconds:>7.2f}  {route}"
        print(f"{line}   {words.upper()}".rstrip(), flush=True)  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main())
