"""Stored files with changed bytes: people and judges never get a screenshot that differs from the imported one."""

from __future__ import annotations

import hashlib
import io
import json
import os
import signal
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.core.management import call_command
from django.core.management.base import CommandError
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from PIL import Image

from annotation import ingest, jobs, screenshots, store_checks, workflow
from annotation.models import Attachment, Benchmark, Person, Screenshot, StoreCheck, Submission, Trajectory
from annotation.tests import testing

DAMAGED = "This screenshot is damaged"


@pytest.fixture(autouse=True)
def store(tmp_path: Path, settings: Any) -> None:
    """An image store of the test's own."""
    settings.MEDIA_ROOT = tmp_path / "images"


@pytest.fixture
def submission(db: Any, store: None, tmp_path: Path) -> Submission:
    return testing.submission(tmp_path / "package", trajectories=2)


@pytest.fixture
def held(people: dict[str, Person], submission: Submission) -> Trajectory:
    return workflow.claim(people["alice"], submission).trajectory


@pytest.fixture
def alice(client: Client, people: dict[str, Person]) -> Client:
    client.force_login(people["alice"])
    return client


def original_of(sha256: str) -> Path:
    return Path(default_storage.path(f"originals/{sha256[:2]}/{sha256}"))


def flip_byte(path: Path) -> None:
    """Change one bit in the middle, as a bad disk would: the size and the time of the file stay."""
    before, data = path.stat(), bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    os.utime(path, (before.st_atime, before.st_mtime))


def damage(trajectory: Trajectory, index: int = 0) -> str:
    sha256: str = trajectory.steps.get(index=index).screenshot.sha256
    flip_byte(original_of(sha256))
    return sha256


# --- on the desk -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["thumbnail", "display", "full"])
@pytest.mark.parametrize("how", ["flipped", "truncated", "differs from the digest in its name"])
def test_damaged_screenshot_is_answered_with_a_placeholder_that_is_not_cached(
    alice: Client, held: Trajectory, kind: str, how: str
) -> None:
    path = original_of(held.steps.get(index=0).screenshot.sha256)
    if how == "flipped":
        flip_byte(path)
    elif how == "truncated":
        path.write_bytes(path.read_bytes()[:50])
    else:
        path.write_bytes(original_of(held.steps.get(index=1).screenshot.sha256).read_bytes())
    response = alice.get(reverse("picture", args=[held.pk, 0, kind]))
    assert response.status_code == 404
    assert Image.open(io.BytesIO(response.content)).size == screenshots.PLACEHOLDER
    assert "no-store" in response["Cache-Control"]
    assert "max-age" not in response["Cache-Control"]
    assert "ETag" not in response
    assert not list(Path(default_storage.path("")).glob("renditions/*/*/*"))


def test_desk_shows_a_damaged_screenshot_only_at_its_step(alice: Client, held: Trajectory) -> None:
    damage(held)
    alice.get(reverse("picture", args=[held.pk, 0, "display"]))
    assert DAMAGED in alice.get(reverse("trajectory", args=[held.pk]), {"step": 0}).content.decode()
    assert DAMAGED not in alice.get(reverse("trajectory", args=[held.pk]), {"step": 1}).content.decode()


def test_desk_does_not_call_a_missing_screenshot_changed(alice: Client, held: Trajectory) -> None:
    original_of(held.steps.get(index=0).screenshot.sha256).unlink()
    check_store()

    page = alice.get(reverse("trajectory", args=[held.pk]), {"step": 0}).content.decode()

    assert f"{DAMAGED} or missing." in page
    assert "The stored file differs from the imported one, or it is gone." in page
    assert "Report this trajectory" not in page  # a report has no such kind


def test_sheet_marks_a_damaged_thumbnail_and_is_not_cached(alice: Client, held: Trajectory) -> None:
    address = reverse("sheet", args=[held.pk, 0])
    sha256 = damage(held, 1)
    response = alice.get(address)
    shown = Image.open(io.BytesIO(response.content)).convert("RGB")
    width, height = screenshots.TILE
    tiles = [shown.getpixel((width // 4, row * height + height // 6)) for row in range(3)]
    assert tiles[1][0] < 235 < min(tiles[0][2], tiles[2][2])  # the placeholder is grey, the screenshots nearly white
    assert "no-store" in response["Cache-Control"]
    assert Screenshot.objects.get(sha256=sha256).damaged_at is not None
    assert not Path(default_storage.path("renditions/sheet")).exists()


def test_damaged_rendition_is_rendered_again_from_the_intact_original(alice: Client, held: Trajectory) -> None:
    address = reverse("picture", args=[held.pk, 0, "display"])
    before = alice.get(address).content
    sha256 = held.steps.get(index=0).screenshot.sha256
    cached = Path(default_storage.path(f"renditions/display/{sha256[:2]}/{sha256}"))
    intact = cached.read_bytes()
    flip_byte(cached)
    assert alice.get(address).content == before
    assert cached.read_bytes() == intact


def test_rendition_of_an_earlier_version_is_rendered_again(alice: Client, held: Trajectory) -> None:
    """It has no digest of its own, so that it may show anything."""
    sha256 = held.steps.get(index=0).screenshot.sha256
    name = f"renditions/display/{sha256[:2]}/{sha256}"
    default_storage.save(name, ContentFile(b"differs from the digest in its name"))
    response = alice.get(reverse("picture", args=[held.pk, 0, "display"]))
    assert Image.open(io.BytesIO(response.content)).width == 320


def test_intact_rendition_is_shown_although_the_original_was_damaged_later(alice: Client, held: Trajectory) -> None:
    address = reverse("picture", args=[held.pk, 0, "display"])
    before = alice.get(address).content
    damage(held)
    response = alice.get(address)
    assert (response.status_code, response.content) == (200, before)


def test_damaged_attachment_is_refused_with_a_message(alice: Client, held: Trajectory) -> None:
    data = b"{}" * 500
    sha256 = hashlib.sha256(data).hexdigest()
    screenshots.keep_bytes(sha256, data)
    file = Attachment.objects.create(trajectory=held, kind="agent_response", name="a.json", sha256=sha256, size=1000)
    flip_byte(original_of(sha256))
    response = alice.get(reverse("attachment", args=[held.pk, file.pk]))
    assert response.status_code == 404
    assert b"The file a.json is damaged" in response.content


def test_damaged_screenshot_cannot_be_redacted(held: Trajectory, people: dict[str, Person]) -> None:
    screenshot = Screenshot.objects.get(sha256=damage(held))
    with pytest.raises(workflow.Conflict, match="damaged"):
        workflow.redact(people["mira"], held.submission, screenshot, [[0, 0, 5, 5]], "An address is shown.")


def test_import_replaces_a_damaged_file(held: Trajectory, tmp_path: Path) -> None:
    sha256 = damage(held)
    store_checks.record_damage([sha256])
    package = testing.write_submission(tmp_path / "again", trajectories=2)
    _, made = ingest.import_submission(package, benchmark=Benchmark.objects.get(), agent_name="Another Agent")
    assert made is not None
    assert hashlib.sha256(original_of(sha256).read_bytes()).hexdigest() == sha256
    assert Screenshot.objects.get(sha256=sha256).damaged_at is None


# --- check_store -----------------------------------------------------------------------------------------------------


def check_store(*words: str) -> dict[str, Any]:
    out = io.StringIO()
    try:
        call_command("check_store", "--json", *words, stdout=out)
        code = 0
    except CommandError as error:
        code = error.returncode
    return json.loads(out.getvalue()) | {"code": code}


def test_check_store_passes_when_every_file_is_intact(submission: Submission) -> None:
    found = check_store()
    sizes = list(Screenshot.objects.values_list("size", flat=True))
    assert (found["code"], found["files"], found["bytes"]) == (0, len(sizes), sum(sizes))
    assert (found["damaged"], found["missing"]) == ([], [])


def test_check_store_names_damaged_and_missing_files_with_their_places(held: Trajectory) -> None:
    damaged, missing = damage(held, 0), held.steps.get(index=1).screenshot.sha256
    original_of(missing).unlink()
    found = check_store()
    place = {"submission": held.submission_id, "task_id": held.task.external_id}
    assert found["code"] == 1
    assert found["damaged"] == [{"sha256": damaged, "places": [place | {"name": "screenshot of step 0"}]}]
    assert found["missing"] == [{"sha256": missing, "places": [place | {"name": "screenshot of step 1"}]}]
    assert Screenshot.objects.filter(damaged_at__isnull=False).count() == 2


def test_check_store_forgets_damage_that_was_repaired(held: Trajectory) -> None:
    flip_byte(original_of(damage(held)))  # damaged, and the same bit flipped back
    Screenshot.objects.update(damaged_at=timezone.now())
    assert check_store()["code"] == 0
    assert not Screenshot.objects.filter(damaged_at__isnull=False).exists()


def test_check_store_resumes_where_it_was_interrupted(submission: Submission, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_checks, "AT_ONCE", 2)
    read: list[str] = []
    opened, most = default_storage.open, [4]

    def open_until_away(name: str, mode: str) -> Any:
        if len(read) == most[0]:
            raise ConnectionError("The store is away.")
        read.append(Path(name).name)
        return opened(name, mode)

    monkeypatch.setattr(default_storage, "open", open_until_away)
    with pytest.raises(CommandError, match="--resume"):
        call_command("check_store")
    most[0] = 100
    assert check_store("--resume")["files"] == 6
    assert read == sorted(Screenshot.objects.values_list("sha256", flat=True))
    assert StoreCheck.objects.count() == 1


def test_check_store_resumes_at_once_after_sigterm(submission: Submission, monkeypatch: pytest.MonkeyPatch) -> None:
    opened, read = default_storage.open, []

    def open_until_told_to_end(name: str, mode: str) -> Any:
        read.append(name)
        if len(read) == 3:
            os.kill(os.getpid(), signal.SIGTERM)
        return opened(name, mode)

    monkeypatch.setattr(default_storage, "open", open_until_told_to_end)
    before = signal.signal(signal.SIGTERM, lambda *_: pytest.fail("SIGTERM would have ended the process"))
    try:
        with pytest.raises(CommandError, match="--resume"):
            call_command("check_store")
        assert signal.getsignal(signal.SIGTERM) is not signal.default_int_handler
    finally:
        signal.signal(signal.SIGTERM, before)
    assert check_store("--resume")["code"] == 0
    assert StoreCheck.objects.count() == 1


def test_check_store_starts_again_without_resume(submission: Submission, held: Trajectory) -> None:
    store_checks.start()
    StoreCheck.objects.update(position="f" * 64)
    damage(held)
    assert len(check_store()["damaged"]) == 1


def test_check_store_reads_no_faster_than_its_rate(submission: Submission, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr(store_checks, "monotonic", lambda: clock[0])
    monkeypatch.setattr(store_checks, "sleep", lambda seconds: clock.__setitem__(0, clock[0] + seconds))
    check = store_checks.start()
    store_checks.proceed(check, rate=100)
    assert clock[0] == pytest.approx(check.size / 100)


def test_job_checks_a_part_at_a_time_and_starts_once_a_week(
    submission: Submission, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_checks, "AT_ONCE", 1)
    monkeypatch.setattr(jobs, "CHECK_SECONDS", 0.0)
    for _ in range(6):
        jobs.check_store()
        assert StoreCheck.objects.get().finished_at is None
    jobs.check_store()
    first = StoreCheck.objects.get()
    assert (first.files, first.finished_at is not None) == (6, True)
    jobs.check_store()
    assert StoreCheck.objects.count() == 1
    StoreCheck.objects.update(started_at=timezone.now() - timedelta(days=7, minutes=1))
    jobs.check_store()
    assert StoreCheck.objects.count() == 2


def test_job_does_not_take_a_check_from_another_process(submission: Submission) -> None:
    assert store_checks.take(store_checks.start())
    jobs.check_store()
    assert StoreCheck.objects.get().files == 0
    StoreCheck.objects.update(heartbeat_at=timezone.now() - store_checks.SILENT - timedelta(seconds=1))
    jobs.check_store()
    assert StoreCheck.objects.get().files == 6


def test_check_of_a_large_file_reads_it_in_chunks(submission: Submission, monkeypatch: pytest.MonkeyPatch) -> None:
    data = bytes(3 * screenshots.CHUNK + 1)
    sha256 = hashlib.sha256(data).hexdigest()
    screenshots.keep_bytes(sha256, data)
    asked: list[int] = []

    class Counting(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            asked.append(size or -1)
            return super().read(size)

    monkeypatch.setattr(default_storage, "open", lambda *_: Counting(data))
    assert screenshots.check_original(sha256) == len(data)
    assert set(asked) == {screenshots.CHUNK}


# --- the operator's page ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "status"), [("alice", 404), ("mira", 404), ("dave", 404), ("olga", 200)])
def test_operators_page_is_for_superusers(client: Client, people: dict[str, Person], name: str, status: int) -> None:
    people["olga"] = testing.person("olga", is_superuser=True)
    client.force_login(people[name])
    assert client.get(reverse("operator")).status_code == status


def test_operators_page_shows_the_last_check(client: Client, held: Trajectory) -> None:
    client.force_login(testing.person("olga", is_superuser=True))
    assert "No check has finished yet." in client.get(reverse("operator")).content.decode()
    sha256 = damage(held)
    jobs.check_store()
    shown = client.get(reverse("operator")).content.decode()
    assert "1 damaged or missing" in shown
    assert sha256 in shown
    assert held.task.external_id in shown
