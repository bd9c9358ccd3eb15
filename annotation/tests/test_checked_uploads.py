"""A package that was only checked is stored for a day, and imported from there once."""

from __future__ import annotations

import os
import shutil
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from annotation import arrivals, checked_uploads, jobs, workflow
from annotation.models import Submission, Upload
from annotation.tests import testing
from annotation.tests.test_concurrency import at_once

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def jobs_run_at_once(tmp_path: Path, settings: Any) -> Any:
    settings.MEDIA_ROOT = tmp_path / "images"
    conf = jobs.import_upload.app.conf
    eager, conf.task_always_eager = conf.task_always_eager, True
    yield
    conf.task_always_eager = eager


def check(folder: Path, **fields: Any) -> Upload:
    """Return a package of two trajectories after its check."""
    package = shutil.make_archive(str(folder / "package"), "zip", testing.write_submission(folder / "folder", 2))
    upload = Upload.objects.create(
        uploaded_by=testing.person("mira", is_staff=True),
        benchmark=testing.benchmark(2),
        agent_name="Careful Agent",
        file_name="package.zip",
        stored_as=default_storage.save("uploads/one", ContentFile(Path(package).read_bytes())),
        dry_run=True,
        **fields,
    )
    jobs.import_upload(str(upload.pk))
    upload.refresh_from_db()
    return upload


def browser_of(upload: Upload) -> Client:
    client = Client()
    client.force_login(upload.uploaded_by)
    return client


def press_import(client: Client, upload: Upload) -> str:
    answer = client.post(reverse("import-checked", args=[upload.pk]), follow=True)
    assert answer.redirect_chain == [(reverse("upload-status", args=[upload.pk]), 302)]
    return answer.content.decode()


def expire(upload: Upload) -> None:
    long_ago = timezone.now() - timedelta(hours=24, seconds=1)
    Upload.objects.filter(pk=upload.pk).update(finished_at=long_ago)
    upload.refresh_from_db()


def test_checked_package_is_imported_without_another_upload(
    tmp_path: Path, django_capture_on_commit_callbacks: Any
) -> None:
    upload = check(tmp_path)
    client = browser_of(upload)
    assert not Submission.objects.exists()
    assert "Import now" in client.get(reverse("upload-status", args=[upload.pk])).content.decode()

    with django_capture_on_commit_callbacks(execute=True):
        press_import(client, upload)

    name = upload.stored_as
    upload.refresh_from_db()
    assert upload.submission == Submission.objects.get()
    assert upload.submission.trajectories.count() == 2
    assert not default_storage.exists(name)
    page = client.get(reverse("upload-status", args=[upload.pk])).content.decode()
    assert "Imported" in page
    assert "Import now" not in page


def test_import_now_pressed_twice_imports_once(tmp_path: Path, django_capture_on_commit_callbacks: Any) -> None:
    upload = check(tmp_path)
    client = browser_of(upload)
    with django_capture_on_commit_callbacks(execute=True) as sent:
        press_import(client, upload)
        again = press_import(client, upload)
    assert len(sent) == 1
    assert "no longer stored" not in again
    assert "no longer stored" not in press_import(client, upload)
    assert not checked_uploads.start_import(upload, str)  # loaded before the first
    assert Submission.objects.count() == 1
    assert "already_imported" not in str(Submission.objects.get().import_report)


@pytest.mark.django_db(transaction=True)
def test_of_many_people_at_once_one_starts_the_import(tmp_path: Path) -> None:
    upload = check(tmp_path)
    sent: list[str] = []

    def start(number: int) -> bool:
        return checked_uploads.start_import(Upload.objects.get(pk=upload.pk), sent.append)

    assert sorted(at_once(6, start)) == [False] * 5 + [True]
    assert sent == [str(upload.pk)]


def test_expired_package_is_deleted_and_cannot_be_imported(
    tmp_path: Path, django_capture_on_commit_callbacks: Any
) -> None:
    upload = check(tmp_path)
    client = browser_of(upload)
    expire(upload)
    assert "upload it again to import it" in client.get(reverse("upload-status", args=[upload.pk])).content.decode()
    with django_capture_on_commit_callbacks(execute=True) as sent:
        assert "The checked file is no longer stored. Upload it again." in press_import(client, upload)
    assert sent == []

    name = upload.stored_as
    jobs.resume_uploads()
    assert not default_storage.exists(name)
    upload.refresh_from_db()
    assert upload.stored_as == ""
    assert not Submission.objects.exists()


def test_check_whose_file_an_earlier_version_has_deleted_asks_for_another_upload(tmp_path: Path) -> None:
    upload = check(tmp_path)
    default_storage.delete(upload.stored_as)
    client = browser_of(upload)
    page = client.get(reverse("upload-status", args=[upload.pk])).content.decode()

    assert "Import now" not in page
    assert "file is no longer stored: upload it again" in " ".join(page.split())
    press_import(client, upload)
    assert not Submission.objects.exists()
    upload.refresh_from_db()
    assert upload.dry_run


def test_clean_up_leaves_a_package_that_can_still_be_imported(tmp_path: Path) -> None:
    upload = check(tmp_path)
    path = Path(default_storage.path(upload.stored_as))
    before = (timezone.now() - arrivals.ORPHAN_AGE - timedelta(hours=1)).timestamp()
    os.utime(path, (before, before))
    jobs.resume_uploads()
    jobs.prune_images()
    assert path.exists()


def test_package_with_problems_is_not_stored(tmp_path: Path) -> None:
    testing.write_submission(tmp_path / "folder", 2)
    (tmp_path / "folder" / "task_0000" / "trajectory" / "0001.png").unlink()
    package = shutil.make_archive(str(tmp_path / "bad"), "zip", tmp_path / "folder")
    upload = Upload.objects.create(
        uploaded_by=testing.person("mira", is_staff=True),
        benchmark=testing.benchmark(2),
        agent_name="Careful Agent",
        file_name="bad.zip",
        stored_as=default_storage.save("uploads/bad", ContentFile(Path(package).read_bytes())),
        dry_run=True,
    )
    jobs.import_upload(str(upload.pk))
    assert not default_storage.exists("uploads/bad")
    upload.refresh_from_db()
    assert checked_uploads.find_expiry(upload) is None
    assert not checked_uploads.start_import(upload, str)


def test_import_counts_the_tries_of_the_check_too(tmp_path: Path) -> None:
    """A worker that was lost during the check must not take the row of the import for its own."""
    upload = check(tmp_path)
    assert checked_uploads.start_import(upload, str)
    taken = arrivals.claim(Upload, str(upload.pk))
    assert taken is not None
    assert (upload.tries, taken.tries) == (1, 2)


def test_import_of_an_erased_person_is_refused(tmp_path: Path) -> None:
    upload = check(tmp_path)
    assert checked_uploads.start_import(upload, str)
    workflow.erase(upload.uploaded_by, upload.uploaded_by, "at their own request")
    jobs.import_upload(str(upload.pk))
    upload.refresh_from_db()
    assert upload.report["rejected"][0]["problems"][0]["code"] == "account_closed"
    assert not Submission.objects.exists()
