"""Runs in batches for tests: a submission, its judge, and short pauses."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from django.db import connection
from django.utils import timezone

from annotation.models import Person, Submission
from annotation.tests import testing
from judges.models import Judge, JudgeRun, ModelCall
from judges.tests.builders import Fake, defined_judge, started_run, worked
from judges.tests.tiny import tiny_scorer
from judges.working import batches, waves, worker

SUCCESS = {"reply": "All was done, so: success"}


class Here:
    """A submission of some trajectories with one screenshot each, which the judge ``tiny`` judges in two calls."""

    def __init__(self, folder: Path, fake: Fake, trajectories: int) -> None:
        self.fake = fake
        self.submission: Submission = testing.submission(folder, trajectories=trajectories, steps=1)
        self.mira: Person = testing.cast(self.submission)["mira"]
        self.judge: Judge = Judge.objects.filter(name="tiny").first() or defined_judge(
            "tiny", scorer="tiny", concurrency=2, attempts=2
        )

    def start(self, **options: Any) -> JudgeRun:
        return started_run(self.mira, self.submission, options.pop("judge", self.judge), service="batch", **options)


def work_to_end(run: JudgeRun, *, most: int = 50, name: str = "w") -> None:
    """Work as often as a worker is called, until the run is not at work any more."""
    for number in range(most):
        worked(run, worker=f"{name}{number}", seconds=60)
        if run.state not in ("waiting", "running"):
            return
    raise AssertionError(f"The run is still {run.state}.")


def work_once(run: JudgeRun) -> bool:
    """Work until everything that can be collected is submitted, and wait for no batch."""
    with patch.object(worker, "SHORT_WAIT", -1.0):
        return worked(run, worker="once")


def poll(run: JudgeRun) -> None:
    """Work once, as if the next poll of every batch were due."""
    run.batches.update(poll_at=timezone.now())
    work_once(run)


def list_calls(run: JudgeRun) -> list[tuple[str, int | None, bool, bool]]:
    """Stage, step, hit and whether there is a reply, of each call in the trace of a run."""
    rows = ModelCall.objects.filter(item__run=run).order_by("pk").values_list("stage", "step", "hit", "reply")
    return [(stage, step, hit, reply is not None) for stage, step, hit, reply in rows]


@contextmanager
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(batches, "FIRST_POLL", 0.01)
    monkeypatch.setattr(batches, "LAST_POLL", 0.05)
    monkeypatch.setattr(waves, "FIRST_PAUSE", 0.01)
    monkeypatch.setattr(worker, "LOOK", 0.1)
    with tiny_scorer():
        yield


CHILD = """
import sys
import django
from django.conf import settings
database, media, address, run = sys.argv[1:]
settings.DATABASES["default"]["NAME"] = database
settings.MEDIA_ROOT, settings.JUDGE_ENDPOINTS = media, {"default": address}
django.setup()
from judges.tests.tiny import tiny_scorer
from judges.working import batches, waves
from judges.working.worker import work
batches.FIRST_POLL, batches.LAST_POLL, waves.FIRST_PAUSE = 0.01, 0.05, 0.01
with tiny_scorer():
    work(int(run), "the worker of another process", seconds=600)
"""


@contextmanager
def other_worker(run: JudgeRun, settings: Any) -> Iterator[subprocess.Popen[bytes]]:
    """A worker in a process of its own, which is killed at the end of the block, as by kill -9."""
    database, address = str(connection.settings_dict["NAME"]), settings.JUDGE_ENDPOINTS["default"]
    command = [sys.executable, "-c", CHILD, database, str(settings.MEDIA_ROOT), address, str(run.pk)]
    with subprocess.Popen(command, cwd=settings.BASE_DIR) as process:
        try:
            yield process
        finally:
            process.kill()


def age(run: JudgeRun) -> None:
    """As if the workers of a run had been silent for an hour."""
    long_ago = timezone.now() - timedelta(hours=1)
    run.batches.update(heartbeat_at=long_ago)
    run.items.filter(heartbeat_at__isnull=False).update(heartbeat_at=long_ago)
