"""A submission whose images are in a bucket, with the options of the settings; and a store that is gone."""

import shutil
import time
from datetime import timedelta
from pathlib import Path

import pytest
from django.core.files.base import ContentFile
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from moto.core import DEFAULT_ACCOUNT_ID
from moto.s3.models import s3_backends

from annotation import checked_uploads, ingest, jobs, screenshots
from annotation.models import Agent, ApiToken, Benchmark, Screenshot, Submission, Trajectory, Upload
from annotation.tests import testing
from annotation.tests.tus import Tus
from config import s3
from config.tests.test_settings import setting

pytestmark = pytest.mark.django_db
PATIENCE = 20  # seconds until an import must have noticed that the store is gone


@pytest.fixture
def package(tmp_path):
    return testing.write_submission(tmp_path / "package", trajectories=2)


@pytest.fixture
def upload(bucket, package, tmp_path):
    zipped = Path(shutil.make_archive(str(tmp_path / "zipped"), "zip", package))
    return Upload.objects.create(
        uploaded_by=testing.person("mira", is_staff=True),
        benchmark=testing.benchmark(2),
        agent_name="Careful Agent",
        file_name="package.zip",
        stored_as=bucket.save("uploads/one", ContentFile(zipped.read_bytes())),
    )


def nothing_is_kept():
    return not any(model.objects.exists() for model in (Submission, Trajectory, Screenshot, Agent))


def test_the_settings_use_the_options_that_are_tested_here(tmp_path):
    given = {
        "bucket": "images",
        "endpoint_url": "http://store:8333",
        "access_key": "a",
        "secret_key": "b",
        "region": "us-east-1",
    }
    shown = setting(
        tmp_path,
        "{k: v for k, v in s.STORAGES['default']['OPTIONS'].items() if k != 'client_config'},"
        " s.STORAGES['default']['OPTIONS']['client_config']._user_provided_options",
        **{f"S3_{name.upper()}": value for name, value in given.items()},
    )
    options = s3.s3_options(**given)
    config = options.pop("client_config")
    assert shown == f"{options} {config._user_provided_options}"


def test_originals_and_pictures_go_into_the_bucket_and_come_back(bucket, package, client):
    report, submission = ingest.import_submission(package, benchmark=testing.benchmark(2), agent_name="Careful Agent")
    assert (report.rejected, Screenshot.objects.count()) == ({}, 6)
    for step in submission.trajectories.get(task__external_id="task_0001").steps.all():
        assert screenshots.original(step.screenshot.sha256) == testing.png(100 + step.index)
        for kind in screenshots.Rendition:
            made = screenshots.rendition(step.screenshot, kind)
            assert made == screenshots.rendition(step.screenshot, kind)  # once made, once fetched
            assert screenshots.inspect(made[0]).media_type == made[1]
    assert sorted(bucket.listdir("")[0]) == ["originals", "renditions"]

    people = testing.cast(submission)
    held = testing.workflow.claim(people["alice"], submission).trajectory
    client.force_login(people["alice"])
    picture = client.get(reverse("picture", args=[held.pk, 0, "thumbnail"]))
    assert (picture.status_code, picture["Content-Type"]) == (200, "image/webp")


def left_by_a_stopped_import(bucket, data, ago):
    """Keep ``data`` as an import did that stopped ``ago``; its SHA-256."""
    sha256 = screenshots.inspect(data).sha256
    screenshots.keep_bytes(sha256, data)
    keys = s3_backends[DEFAULT_ACCOUNT_ID]["aws"].buckets[bucket.bucket_name].keys
    keys[f"originals/{sha256[:2]}/{sha256}"].last_modified = (timezone.now() - ago).replace(tzinfo=None)
    return sha256


def test_an_old_object_that_an_import_takes_up_again_is_not_pruned_from_under_it(bucket):
    day = timedelta(days=1)
    sha256, other = (left_by_a_stopped_import(bucket, testing.png(n), 2 * day) for n in (1, 2))
    screenshots.keep_bytes(sha256, testing.png(1))
    assert screenshots.prune(day) == 1
    assert screenshots.original(sha256) == testing.png(1)
    assert not bucket.exists(f"originals/{other[:2]}/{other}")


def test_failed_import_leaves_no_objects(bucket, package):
    shops = testing.benchmark(2)
    calls = []

    def fail_with_all_files(done, total):
        calls.append(len(bucket.listdir("originals")[0]))
        if len(calls) == 4:  # two of the check, two of the files
            raise OSError(28, "No space left on device")

    with pytest.raises(ingest.ImportStopped):
        ingest.import_submission(package, benchmark=shops, agent_name="Careful Agent", progress=fail_with_all_files)

    assert calls[-1] > 0
    assert bucket.listdir("originals")[0] == []


def test_the_worker_imports_a_package_from_the_bucket_and_removes_it(upload, bucket, package):
    jobs.import_upload(str(upload.pk))
    upload.refresh_from_db()
    assert upload.report["accepted"] == ["task_0000", "task_0001"]
    assert not bucket.exists(upload.stored_as)


def test_a_store_that_is_gone_stops_the_import_with_one_line_and_no_rows(bucket, server, package):
    shops = testing.benchmark(2)
    server.stop()
    started = time.monotonic()
    with pytest.raises(ingest.ImportStopped) as stopped:
        ingest.import_submission(package, benchmark=shops, agent_name="Careful Agent")
    assert time.monotonic() - started < PATIENCE
    assert str(stopped.value).startswith("The import stopped: Could not connect")
    assert len(str(stopped.value).splitlines()) == 1
    assert nothing_is_kept()


def test_a_bucket_that_is_gone_stops_the_import_too(bucket, package):
    shops = testing.benchmark(2)
    bucket.connection.meta.client.delete_bucket(Bucket=bucket.bucket_name)
    with pytest.raises(ingest.ImportStopped, match="NoSuchBucket"):
        ingest.import_submission(package, benchmark=shops, agent_name="Careful Agent")
    assert nothing_is_kept()


def test_the_upload_of_a_worker_without_a_store_ends_with_a_report(upload, server):
    server.stop()
    jobs.import_upload(str(upload.pk))
    upload.refresh_from_db()
    (refusal,) = upload.report["rejected"]
    (problem,) = refusal["problems"]
    assert problem["code"] == "import_stopped"
    assert "\n" not in problem["message"]
    assert upload.finished_at is not None
    assert nothing_is_kept()


def test_a_package_that_cannot_be_stored_is_refused_in_words(bucket, server, client):
    mira, shops = testing.person("mira", is_staff=True), testing.benchmark(2)
    server.stop()
    client.force_login(mira)
    form = {"agent_name": "Agent", "benchmark": shops.pk, "package": SimpleUploadedFile("p.zip", b"PK")}
    page = client.post(reverse("upload-package"), form)
    assert (page.status_code, "The package could not be stored" in page.content.decode()) == (503, True)

    token = {"Authorization": f"Bearer {ApiToken.issue(mira, 'test', 'admin')[1]}"}
    sent = {"benchmark": "shops", "agent": "Agent", "file": SimpleUploadedFile("p.zip", b"PK")}
    answer = Client().post("/api/v1/uploads", sent, headers=token)
    assert (answer.status_code, answer.json()["errors"][0]["code"]) == (503, "import_stopped")
    assert page["Retry-After"] == answer["Retry-After"] == "10"
    assert not Upload.objects.exists()
    assert Benchmark.objects.get() == shops


def test_package_in_parts_is_read_from_the_bucket_and_removed(bucket, package, tmp_path):
    zipped = Path(shutil.make_archive(str(tmp_path / "zipped"), "zip", package)).read_bytes()
    testing.benchmark(2)
    tus = Tus(testing.person("mira", is_staff=True))
    tus.start(len(zipped), dry_run="true")
    tus.send(0, zipped[:1000])
    tus.send(0, zipped[:1000])  # after a lost answer
    tus.send(1000, zipped[1000:])
    upload = Upload.objects.get()
    assert len(bucket.listdir(upload.stored_as)[1]) == 2
    jobs.import_upload(str(upload.pk))
    assert checked_uploads.start_import(Upload.objects.get(), str)
    jobs.import_upload(str(upload.pk))
    assert Submission.objects.get().trajectories.count() == 2
    assert bucket.listdir(upload.stored_as)[1] == []
