"""Importing rows from Multimodal-Mind2Web by page and by API: their tasks, then an upload of the rows themselves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from annotation import jobs, screenshots
from annotation.formats.external import multimodal_mind2web
from annotation.models import Attachment, Benchmark, Person, Submission, Upload
from annotation.tests import testing
from annotation.tests.mind2web_builders import ACTIONS, json_lines, parquet, rows
from annotation.tests.test_api_submissions import client, results

pytestmark = pytest.mark.django_db
FORMS = {
    "parquet": (parquet, "train.parquet"),
    "lines": (json_lines, "train.jsonl"),
    "packed": (json_lines, "train.jsonl.gz"),
}


@pytest.fixture
def mira(tmp_path: Path, settings: Any) -> Person:
    settings.MEDIA_ROOT = tmp_path / "media"
    return testing.person("mira", is_staff=True)


@pytest.fixture(params=FORMS)
def data(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, bytes]:
    """Name and content of a file with the rows of two tasks."""
    write, name = FORMS[request.param]
    return name, write(tmp_path / name, rows(2)).read_bytes()


def sent(data: tuple[str, bytes]) -> SimpleUploadedFile:
    return SimpleUploadedFile(*data)


def operation_of(kept: Attachment) -> tuple[int, str]:
    """The place of a step among those of its task, and what is done there."""
    with screenshots.open_original(kept.sha256) as stream:
        step = multimodal_mind2web.parse_reference(stream.read(), kept.name)
    return step.index, step.operation.op


def check(made: Submission) -> None:
    """Both tasks are there with all that their rows say of them."""
    assert (made.agent.name, made.benchmark.slug, made.trajectories.count()) == ("Reference", "rows", 2)
    for number, trajectory in enumerate(made.trajectories.order_by("position"), 1):
        assert (trajectory.task.external_id, trajectory.source_format) == (f"task-{number}", "multimodal-mind2web")
        assert (trajectory.task.website, trajectory.task.reference_length) == ("shop", 3)
        assert list(trajectory.steps.values_list("action", flat=True)) == list(ACTIONS)
        assert trajectory.steps.filter(screenshot__isnull=False).count() == 3
        kept = trajectory.attachments.filter(kind="reference_step").order_by("name")
        assert [operation_of(one) for one in kept] == [(0, "TYPE"), (1, "SELECT"), (2, "CLICK")]


def test_rows_are_imported_by_page(mira: Person, data: tuple[str, bytes]) -> None:
    browser = Client()
    browser.force_login(mira)
    page = browser.post(reverse("import-tasks"), {"name": "Rows", "tasks": sent(data)}, follow=True)
    assert "2 tasks read, 0 of them changed" in page.content.decode()

    form = {"agent_name": "Reference", "benchmark": Benchmark.objects.get().pk, "package": sent(data)}
    answer = browser.post(reverse("upload-package"), form)
    assert answer.status_code == 302, answer.content.decode()
    jobs.import_upload(str(Upload.objects.get().pk))  # what the worker does with the message

    made = Submission.objects.get()
    status = browser.get(answer["Location"]).content.decode()
    assert f'href="{reverse("submission", args=[made.pk])}"' in status
    check(made)


def test_rows_are_imported_by_api(mira: Person, data: tuple[str, bytes]) -> None:
    tasks = client(mira).post("/api/v1/benchmarks/rows/tasks", {"file": sent(data)}, format="multipart")
    assert tasks.status_code == 200, tasks.json()
    assert tasks.json()["accepted"] == ["task-1", "task-2"]
    assert [row["task_id"] for row in results(mira, "/benchmarks/rows/tasks")] == ["task-1", "task-2"]

    fields = {"benchmark": "rows", "agent": "Reference", "file": sent(data)}
    taken = client(mira).post("/api/v1/uploads", fields, format="multipart")
    assert taken.status_code == 202, taken.json()
    jobs.import_upload(taken.json()["id"])

    status = client(mira).get(taken["Location"]).json()
    assert (status["stage"], status["report"]["rejected"]) == ("finished", [])
    assert status["report"]["accepted"] == ["task-1", "task-2"]
    check(Submission.objects.get(pk=status["submission"]))
