"""An instance of its own: settings, data folder, database, broker and processes that a test may kill."""

from __future__ import annotations

import functools
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
from django.conf import settings

from config.processes import die_with
from config.tests.waiting import HANG

JUDGES = "webverdict-judges"
EVERYTHING_ELSE = "webverdict"


@dataclass
class Instance:
    """Without ``database_url`` it is embedded: SQLite and the broker of files, both in ``folder``.

    ``code`` is the checkout whose programs run.
    """

    folder: Path
    database_url: str = ""
    redis_url: str = ""
    further: dict[str, str] = field(default_factory=dict)
    code: Path = settings.BASE_DIR

    @property
    def environment(self) -> dict[str, str]:
        """As a new user has it, so that nothing of the test run gets in."""
        production = {
            "DATABASE_URL": self.database_url,
            "SECRET_KEY": "only for tests: 0123456789 abcdefghijklmnopqrstuvwxyz ABCDEFGHIJ",
            "ALLOWED_HOSTS": "localhost",
            "INSECURE_HTTP": "1",
        }
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "WEBVERDICT_DATA": str(self.folder / "var"),
            "REDIS_URL": self.redis_url,
            **(production if self.database_url else {}),
            **self.further,
        }

    def run(self, *arguments: str) -> str:
        """What a Python program prints that runs in this instance."""
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=self.code,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=HANG,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def migrate(self) -> None:
        """Create the tables; on SQLite by a copy of a migrated file, since all migrations take 10 s of CPU."""
        if self.database_url:
            self.run("manage.py", "migrate", "--verbosity", "0")
        else:
            (self.folder / "var").mkdir(exist_ok=True)
            shutil.copy(migrated_database(), self.folder / "var")

    def rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        """What the database says, beside the application; ``?`` stands for a value."""
        if self.database_url:
            with psycopg.connect(self.database_url) as connection:
                return connection.execute(query.replace("?", "%s"), values).fetchall()
        with closing(sqlite3.connect(self.folder / "var" / "webverdict.sqlite3", timeout=20)) as connection:
            return connection.execute(query, values).fetchall()

    def one(self, query: str, *values: Any) -> Any:
        return self.rows(query, *values)[0][0]

    @contextmanager
    def worker(self, name: str, queue: str, *options: str) -> Iterator[subprocess.Popen[bytes]]:
        """A Celery worker, as `process` starts it."""
        command = ["celery", "--app", "config.tests.quick_beat", "worker", "--queues", queue]
        command += ["--concurrency", "1", "--hostname", f"{name}@test", "--loglevel", "INFO"]
        with self.process(name, *command, "--without-gossip", "--without-mingle", *options) as process:
            yield process

    @contextmanager
    def process(self, name: str, *module: str) -> Iterator[subprocess.Popen[bytes]]:
        """A Python module with its arguments, in a process group of its own; all of it is gone afterwards.

        Its log is ``name``.log.
        """
        with self.log(name).open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", *module],
                cwd=self.code,
                env=self.environment,
                stdout=log,
                stderr=log,
                process_group=0,
                preexec_fn=die_with(os.getpid()),  # noqa: PLW1509 - as `config.processes` does
            )
        try:
            yield process
        finally:
            kill(process)

    def log(self, name: str) -> Path:
        return self.folder / f"{name}.log"


@functools.cache
def migrated_database() -> Path:
    made = Instance(Path(tempfile.mkdtemp(dir=settings.DATA)))
    made.run("manage.py", "migrate", "--verbosity", "0")
    return made.folder / "var" / "webverdict.sqlite3"


def kill(process: subprocess.Popen[bytes]) -> None:
    """As kill -9 or a power cut: nothing of the group can say a word."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(10)
