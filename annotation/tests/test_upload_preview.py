"""A check shows what logs gave, and the first trajectory as reviewers will see it; only to who may see the upload."""

from __future__ import annotations

import base64
import io
import json
from pathlib import Path
from typing import Any

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.test import Client
from django.urls import reverse
from PIL import Image

from annotation import jobs
from annotation.models import Benchmark, Task, Upload
from annotation.tests import testing
from annotation.tests.test_agent_logs import logged, zipped

pytestmark = pytest.mark.django_db


@pytest.fixture
def checked(tmp_path: Path, settings: Any) -> Upload:
    settings.MEDIA_ROOT = tmp_path / "images"
    logs = logged() | {"screenshots/b/a/t.0/screenshot_step_0.png": testing.png(0)}
    upload = Upload.objects.create(
        uploaded_by=testing.person("mira", is_staff=True),
        benchmark=Benchmark.objects.create(slug="logs", name="Logs"),
        agent_name="Agent",
        file_name="logs.zip",
        stored_as=default_storage.save("uploads/one", ContentFile(zipped(tmp_path / "logs.zip", logs).read_bytes())),
        dry_run=True,
        create_tasks=True,
    )
    jobs.import_upload(str(upload.pk))
    upload.refresh_from_db()
    return upload


def browser(name: str, **fields: Any) -> Client:
    client = Client()
    client.force_login(testing.person(name, **fields))
    return client


def test_the_page_shows_counts_and_the_first_trajectory(checked: Upload) -> None:
    client = Client()
    client.force_login(checked.uploaded_by)
    page = client.get(reverse("upload-status", args=[checked.pk])).content.decode()
    for text in (
        "What the logs gave", "Format: agent-reward-bench", "<li>steps: 3</li>", "Find the price", "24.50",
        "coords(12, 23) -&gt; CLICK -&gt; click(&#x27;8&#x27;)", 'cx="12.0"', "No action: the agent stopped here",
        "task ids with other characters than the log&#x27;s: 1",
    ):  # fmt: skip
        assert text in page
    picture = client.get(reverse("upload-preview", args=[checked.pk, 0]))
    assert picture["Content-Type"] == "image/webp"
    with Image.open(io.BytesIO(picture.content)) as image:
        assert image.size == Image.open(io.BytesIO(testing.png(0))).size
    assert client.get(reverse("upload-preview", args=[checked.pk, 4])).status_code == 404
    assert not Task.objects.exists()


def test_the_preview_is_gone_after_the_import(checked: Upload, django_capture_on_commit_callbacks: Any) -> None:
    client = Client()
    client.force_login(checked.uploaded_by)
    with django_capture_on_commit_callbacks(execute=True):
        client.post(reverse("import-checked", args=[checked.pk]))
    jobs.import_upload(str(checked.pk))
    checked.refresh_from_db()
    assert checked.preview is None
    assert checked.submission is not None
    assert checked.submission.import_report.keys() == {"accepted", "rejected", "warnings"}
    assert Task.objects.get().text == "Find the price"
    assert client.get(reverse("upload-preview", args=[checked.pk, 0])).status_code == 404


def test_others_do_not_see_the_preview(checked: Upload) -> None:
    for name in ("upload-status", "upload-preview"):
        address = reverse(name, args=[checked.pk, 0] if name == "upload-preview" else [checked.pk])
        assert browser(f"other-{name}").get(address).status_code == 404


def test_a_single_file_is_matched_with_its_task_by_its_own_name(tmp_path: Path, settings: Any) -> None:
    settings.MEDIA_ROOT = tmp_path / "images"
    picture = f"data:image/png;base64,{base64.b64encode(testing.png(0)).decode()}"
    log = [
        {"role": "user", "content": "Find the price"},
        {"type": "computer_call", "call_id": "c1", "action": {"type": "click", "x": 3, "y": 2}},
        {"type": "computer_call_output", "call_id": "c1", "output": {"type": "input_image", "image_url": picture}},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "24.50"}]},
    ]
    upload = Upload.objects.create(
        uploaded_by=testing.person("mira", is_staff=True),
        benchmark=Benchmark.objects.create(slug="logs", name="Logs"),
        agent_name="Agent",
        file_name="lamps.json",
        stored_as=default_storage.save("uploads/0b7c.json", ContentFile(json.dumps(log).encode())),
        create_tasks=True,
    )
    jobs.import_upload(str(upload.pk))
    upload.refresh_from_db()
    assert upload.report["accepted"] == ["lamps"], upload.report
