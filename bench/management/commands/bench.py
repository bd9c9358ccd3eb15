"""Command `bench`: prints a table of waiting times and their cost. Uses a separate database and folder."""

from __future__ import annotations

import logging
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandParser
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from annotation.models import Assignment, Label, Submission
from annotation.tests import testing
from bench.scratch import mark_png

REPEATS = 15


class Command(BaseCommand):
    help = "Measure the queue, the submit and the import; prints a table."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--sizes", type=int, nargs="*", default=[300, 30_000], help="trajectories in the queue")
        parser.add_argument("--packages", type=int, nargs="*", default=[30, 300], help="trajectories of 20 steps")

    def handle(self, *args: Any, **options: Any) -> None:
        for name in ("config.access_log", "axes"):  # their lines would appear between the rows
            logging.getLogger(name).setLevel(logging.WARNING)
        call_command("collectstatic", interactive=False, verbosity=0)  # pages name their files by digest
        self.stdout.write(f"engine: {connection.vendor}; median of {REPEATS}; CPU is of the web process alone\n")
        # First, while this process is small: until a child executes, its parent's memory counts as its own.
        self._row("package", "screenshots", "wall s", "CPU s", "peak MB", "MB on disk")
        for size in options["packages"]:
            self._import(size)
        self.stdout.write("")
        self._row("trajectories", "action", "queries", "transactions", "wall ms", "CPU ms")
        for size in options["sizes"]:
            with scratch_database():
                self._queue(size)

    def _row(self, *cells: object) -> None:
        self.stdout.write("".join(f"{cell!s:>15}" for cell in cells))

    def _queue(self, size: int) -> None:
        submission = testing.bare_submission(size, steps=20)
        people = testing.cast(submission)
        half_done(submission, people)
        alice = Client(headers={"host": "localhost"})
        alice.force_login(people["alice"])
        claims, desks, submits = [], [], []
        for _ in range(REPEATS):
            claims.append(measured(lambda: alice.post(reverse("next-trajectory", args=[submission.pk]))))
            held = Assignment.objects.get(annotator=people["alice"], lease_expires_at__isnull=False)
            desk, submit = (reverse(name, args=[held.trajectory_id]) for name in ("trajectory", "submit"))
            desks.append(measured(lambda desk=desk: alice.get(desk)))  # type: ignore[misc]
            form = label_form(held)
            submits.append(measured(lambda submit=submit, form=form: alice.post(submit, form)))  # type: ignore[misc]
            assert held.labels.exists(), "the submit was not accepted"  # noqa: S101
        for name, rows in (("claim", claims), ("desk page", desks), ("submit", submits)):
            self._row(size, name, *(round(statistics.median(column), 1) for column in zip(*rows, strict=True)))

    def _import(self, size: int) -> None:
        with tempfile.TemporaryDirectory() as folder:
            package = Path(folder) / "package"
            write_package(package, size)
            environment = {k: v for k, v in os.environ.items() if k not in {"DATABASE_URL", "REDIS_URL", "S3_BUCKET"}}
            environment["WEBVERDICT_DATA"] = folder + "/data"
            run = [sys.executable, str(settings.BASE_DIR / "manage.py")]
            subprocess.run([*run, "migrate", "-v0"], env=environment, check=True)  # noqa: S603
            subprocess.run(  # noqa: S603
                [*run, "import_tasks", f"{folder}/tasks.json", "--benchmark", "shops"],
                env=environment,
                check=True,
                stdout=subprocess.DEVNULL,
            )
            command = [*run, "import_submission", str(package), "--benchmark", "shops", "--agent", "Bench"]
            wall, cpu, peak = run_measured(command, environment)
            stored = sum(f.stat().st_size for f in Path(folder, "data").rglob("*") if f.is_file())
            self._row(f"{size} x 20", size * 20, f"{wall:.1f}", f"{cpu:.1f}", f"{peak:.0f}", f"{stored / 2**20:.0f}")


@contextmanager
def scratch_database() -> Iterator[None]:
    """Provide a migrated database and delete it at the end; on SQLite it is a file, as in real use."""
    with tempfile.TemporaryDirectory() as folder:
        if connection.vendor == "sqlite":
            connection.settings_dict["TEST"]["NAME"] = f"{folder}/bench.sqlite3"
        name = connection.settings_dict["NAME"]
        connection.creation.create_test_db(verbosity=0, autoclobber=True)
        try:
            yield
        finally:
            connection.creation.destroy_test_db(name, verbosity=0)


def half_done(submission: Submission, people: dict[str, Any]) -> None:
    """Label the first half by three other people and the next tenth by two, as in the middle of a review."""
    others = [testing.person(f"other{n}") for n in range(3)]
    rows = list(submission.trajectories.all())
    now = timezone.now()
    for slot, person in enumerate(others, start=1):
        count = len(rows) // 2 + (len(rows) // 10 if slot < 3 else 0)
        assignments = Assignment.objects.bulk_create(
            (Assignment(trajectory=row, annotator=person, slot=slot, claimed_at=now) for row in rows[:count]),
            batch_size=1000,
        )
        Label.objects.bulk_create(
            (Label(assignment=a, verdict=1, reasoning="Seen.", created_at=now) for a in assignments), batch_size=1000
        )
    connection.cursor().execute("ANALYZE")


def label_form(held: Assignment) -> dict[str, str]:
    """Return the form fields of a complete label."""
    content = testing.content(held.trajectory)
    form = {"verdict": "1", "reasoning": content.reasoning}
    for finding in content.findings:
        form |= {f"finding_{finding.key_point}": "met", f"finding_{finding.key_point}_step": "0"}
    return form


def measured(request: Callable[[], Any]) -> tuple[int, int, float, float]:
    """Return the number of queries and of transactions, and wall and CPU milliseconds, of one request."""
    with CaptureQueriesContext(connection) as queries:
        wall, cpu = time.perf_counter(), time.process_time()
        response = request()
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    assert response.status_code in (200, 302), response.status_code  # noqa: S101
    statements = [q["sql"] for q in queries.captured_queries]
    transactions = sum(s.startswith(("BEGIN", "COMMIT")) for s in statements)
    begins = sum(s.startswith("BEGIN") for s in statements)
    return len(statements) - transactions, begins, wall * 1000, cpu * 1000


def run_measured(command: list[str], environment: dict[str, str]) -> tuple[float, float, float]:
    """Return wall and CPU seconds and peak megabytes of a whole process."""
    started = time.perf_counter()
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)  # noqa: S603
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, command  # noqa: S101
    kilobyte = 1 if sys.platform == "darwin" else 1024
    return time.perf_counter() - started, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * kilobyte / 2**20


def write_package(folder: Path, trajectories: int) -> None:
    """Write trajectories of 20 different screenshots of 1280 x 720, and their task list next to the folder."""
    picture = testing.png(0, (1280, 720))
    tasks = [testing.task(number) for number in range(trajectories)]
    (folder.parent / "tasks.json").write_text(testing.as_json(tasks), encoding="utf-8")
    for number in range(trajectories):
        images = {f"{n:04d}.png": mark_png(picture, number * 20 + n) for n in range(20)}
        testing.write_trajectory(folder, testing.result_v2(number, 20), images)
