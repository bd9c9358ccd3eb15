"""The jobs: run twice, killed in between, or without a disk, an upload ends in exactly one outcome."""

import os
import shutil
from datetime import timedelta
from pathlib import Path

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import IntegrityError, InterfaceError, OperationalError, connection
from django.utils import timezone

from annotation import arrivals, ingest, jobs, screenshots, workflow
from annotation.models import Assignment, Benchmark, Screenshot, Submission, Upload
from annotation.records import ImportReport
from annotation.tests import testing
from config.celery import app

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def jobs_run_at_once(tmp_path, settings):
    settings.MEDIA_ROOT = tmp_path / "images"
    before = app.conf.task_always_eager
    app.conf.task_always_eager = True
    yield
    app.conf.task_always_eager = before


@pytest.fixture
def upload(tmp_path):
    """A package of two trajectories, stored and waiting for a worker."""
    shops = testing.benchmark(2)
    package = shutil.make_archive(str(tmp_path / "package"), "zip", testing.write_submission(tmp_path / "folder", 2))
    return Upload.objects.create(
        uploaded_by=testing.person("mira", is_staff=True),
        benchmark=shops,
        agent_name="Careful Agent",
        file_name="package.zip",
        stored_as=default_storage.save("uploads/one", ContentFile(Path(package).read_bytes())),
    )


def test_an_upload_becomes_a_submission_of_its_uploader_with_its_pictures(upload):
    jobs.import_upload(str(upload.pk))
    upload.refresh_from_db()
    assert upload.report["accepted"] == ["task_0000", "task_0001"]
    assert (upload.done, upload.total) == (2, 2)
    assert upload.submission.memberships.get().person == upload.uploaded_by
    assert not default_storage.exists(upload.stored_as)
    for screenshot in Screenshot.objects.all():
        for kind in ("thumbnail", "display"):
            assert default_storage.exists(f"renditions/{kind}/{screenshot.sha256[:2]}/{screenshot.sha256}")


def test_a_job_delivered_twice_imports_once(upload):
    jobs.import_upload(str(upload.pk))
    jobs.import_upload(str(upload.pk))
    assert Submission.objects.count() == 1


def test_an_upload_that_another_worker_is_reading_is_left_alone(upload):
    now = timezone.now()
    Upload.objects.filter(pk=upload.pk).update(started_at=now, heartbeat_at=now)
    jobs.import_upload(str(upload.pk))
    assert Submission.objects.count() == 0


def test_an_upload_whose_worker_was_killed_is_taken_up_again(upload):
    silent = timezone.now() - arrivals.HEARTBEAT_TIMEOUT - timedelta(seconds=1)
    Upload.objects.filter(pk=upload.pk).update(started_at=silent, heartbeat_at=silent, done=1, total=2)
    jobs.resume_uploads()
    upload.refresh_from_db()
    assert upload.finished_at is not None
    assert Submission.objects.count() == 1


def test_an_upload_whose_message_was_lost_is_queued_again(upload):
    jobs.resume_uploads()
    assert Submission.objects.count() == 0  # its message may still be on its way
    Upload.objects.filter(pk=upload.pk).update(created_at=timezone.now() - timedelta(minutes=2))
    jobs.resume_uploads()
    assert Submission.objects.count() == 1


def test_a_full_disk_is_said_in_the_report_and_nothing_is_kept(upload, monkeypatch):
    def full(sha256, data):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(screenshots, "keep_bytes", full)
    jobs.import_upload(str(upload.pk))
    upload.refresh_from_db()
    (refusal,) = upload.report["rejected"]
    assert "No space left on device" in refusal["problems"][0]["message"]
    assert Submission.objects.count() == 0


def test_a_refused_package_ends_with_its_report(upload):
    with default_storage.open(upload.stored_as, "wb") as stream:
        stream.write(b"this is no zip")
    jobs.import_upload(str(upload.pk))
    upload.refresh_from_db()
    assert upload.finished_at is not None
    assert "zip" in upload.report["rejected"][0]["problems"][0]["message"]
    assert upload.submission is None


def test_expired_leases_return_without_anybody_asking(submission, people):
    held = workflow.claim(people["alice"], submission)
    Assignment.objects.filter(pk=held.pk).update(lease_expires_at=timezone.now() - timedelta(seconds=1))
    jobs.return_leases()
    assert not Assignment.objects.exists()


def test_a_mistake_of_our_own_ends_the_upload_and_says_so(upload, monkeypatch):
    def broken(*args, **options):
        raise KeyError("surprise")

    monkeypatch.setattr(ingest, "import_all", broken)
    jobs.import_upload(str(upload.pk))
    upload.refresh_from_db()
    assert upload.report["rejected"][0]["problems"][0]["code"] == "import_failed"


@pytest.mark.parametrize("away", [OperationalError, InterfaceError])
def test_an_import_during_which_the_database_was_away_is_finished_by_the_next_run(upload, away):
    def fail(execute, sql, params, many, context):
        if sql.startswith('INSERT INTO "annotation_trajectory"'):
            raise away("the server closed the connection unexpectedly")
        return execute(sql, params, many, context)

    with connection.execute_wrapper(fail), pytest.raises(away):
        jobs.import_upload(str(upload.pk))
    upload.refresh_from_db()
    assert (upload.finished_at, upload.report, upload.submission) == (None, None, None)
    assert default_storage.exists(upload.stored_as)
    assert Submission.objects.count() == 0
    Upload.objects.update(heartbeat_at=timezone.now() - arrivals.HEARTBEAT_TIMEOUT - timedelta(seconds=1))
    jobs.resume_uploads()
    upload.refresh_from_db()
    assert upload.report["accepted"] == ["task_0000", "task_0001"]
    assert upload.submission.trajectories.count() == 2
    assert not default_storage.exists(upload.stored_as)


@pytest.mark.django_db(transaction=True)
def test_a_package_whose_row_the_database_refuses_is_not_kept():
    gone = Benchmark(pk=999_999, slug="gone", name="Deleted meanwhile")
    file = SimpleUploadedFile("package.zip", b"PK")
    with pytest.raises(IntegrityError):
        testing.receive_upload(testing.person("mira", is_staff=True), benchmark=gone, agent="Agent", file=file)
    assert not Upload.objects.exists()
    assert not default_storage.exists("uploads") or default_storage.listdir("uploads")[1] == []


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("lost", [OperationalError, InterfaceError])
def test_package_is_removed_when_the_connection_is_lost_before_its_row_is_saved(lost):
    def refuse_inserts(execute, sql, *details):
        if sql.startswith("INSERT"):
            raise lost("connection lost")
        return execute(sql, *details)

    mira, file = testing.person("mira", is_staff=True), SimpleUploadedFile("package.zip", b"PK")
    shops = testing.benchmark(1)
    with connection.execute_wrapper(refuse_inserts), pytest.raises(lost):
        testing.receive_upload(mira, benchmark=shops, agent="Agent", file=file)
    assert not default_storage.exists("uploads") or default_storage.listdir("uploads")[1] == []


def test_a_worker_that_wakes_up_late_imports_nothing(upload, monkeypatch):
    """Another one has taken the upload while it read the package, and it is told so when it reports."""
    read = ingest.import_all

    def taken_meanwhile(*args, **options):
        Upload.objects.update(tries=2)
        return read(*args, **options)

    monkeypatch.setattr(ingest, "import_all", taken_meanwhile)
    jobs.import_upload(str(upload.pk))
    upload.refresh_from_db()
    assert (upload.finished_at, upload.report, Submission.objects.count()) == (None, None, 0)
    assert default_storage.exists(upload.stored_as)


def test_the_first_outcome_of_an_upload_stays(upload):
    late = arrivals.claim(Upload, str(upload.pk))
    Upload.objects.update(started_at=None)
    jobs.import_upload(str(upload.pk))
    with pytest.raises(arrivals.ArrivalLost):
        arrivals.finish(late, report=ImportReport().as_json(), submission=None)
    upload.refresh_from_db()
    assert upload.submission is not None


def test_a_package_that_ends_every_worker_is_given_up(upload):
    silent = timezone.now() - arrivals.HEARTBEAT_TIMEOUT - timedelta(seconds=1)
    Upload.objects.update(tries=arrivals.MOST_TRIES, started_at=silent, heartbeat_at=silent)
    jobs.resume_uploads()
    upload.refresh_from_db()
    (refusal,) = upload.report["rejected"]
    assert refusal["problems"][0]["code"] == "import_given_up"
    assert "5 workers started this job" in refusal["problems"][0]["message"]
    assert "import_submission" in refusal["problems"][0]["message"]
    assert Submission.objects.count() == 0
    assert not default_storage.exists(upload.stored_as)


def test_packages_that_nobody_waits_for_are_deleted_after_a_day(upload):
    left, fresh = (default_storage.save(f"uploads/{name}", ContentFile(b"PK")) for name in ("left", "fresh"))
    for name in (left, upload.stored_as):
        os.utime(default_storage.path(name), (0, 0))
    jobs.prune_images()
    assert [default_storage.exists(name) for name in (left, fresh, upload.stored_as)] == [False, True, True]


def test_originals_that_no_row_names_are_given_back_after_a_day(upload):
    jobs.import_upload(str(upload.pk))
    orphan = testing.png(999)
    facts = screenshots.inspect(orphan)
    screenshots.keep_bytes(facts.sha256, orphan)
    assert screenshots.prune(timedelta(days=1)) == 0  # an import may be about to name it
    assert screenshots.prune(timedelta(0)) == 1
    assert all(screenshots.original(s.sha256) for s in Screenshot.objects.all())
