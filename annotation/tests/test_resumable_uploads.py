"""Packages that arrive in parts: nothing that arrived is lost, and nothing counts twice."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.files.storage import default_storage
from django.urls import reverse
from django.utils import timezone

from annotation import arrivals, checked_uploads, jobs, resumable
from annotation.models import ApiToken, Benchmark, Person, ResumableUpload, Submission, Upload, UploadPart
from annotation.tests import testing
from annotation.tests.full_disk import mounted
from annotation.tests.shared_rows import shared_rows
from annotation.tests.test_api_submissions import problem
from annotation.tests.test_api_uploads import zip_of
from annotation.tests.test_concurrency import at_once
from annotation.tests.tus import FIELDS, PATH, Tus, metadata

BODY = bytes(range(256)) * 40


@shared_rows
def mira() -> Person:
    testing.benchmark(2)
    return testing.person("mira", is_staff=True)


@pytest.fixture(autouse=True)
def store(tmp_path: Path, settings: Any) -> None:
    settings.MEDIA_ROOT = tmp_path / "images"


def list_stored() -> list[str]:
    try:
        folders = default_storage.listdir(ResumableUpload.folder)[0]
    except FileNotFoundError:
        return []
    return [name for folder in folders for name in default_storage.listdir(f"{ResumableUpload.folder}/{folder}")[1]]


def test_package_in_parts_is_imported_under_the_address_known_from_the_start(
    mira: Person, tmp_path: Path, django_capture_on_commit_callbacks: Any
) -> None:
    data, tus = zip_of(testing.write_submission(tmp_path / "package")).read(), Tus(mira)
    started = tus.start(len(data), dry_run="false", keep_valid="true", protocol_version="2")
    assert started.status_code == 201
    assert started["Location"] == f"http://testserver{PATH}/{started.json()['id']}"
    report = started.json()["report"]
    assert tus.client.get(report).status_code == 404

    with django_capture_on_commit_callbacks(execute=True) as sent:
        for start in range(0, len(data), 1000):
            assert sent == []
            answer = tus.send(start, data[start : start + 1000])
            assert (answer.status_code, int(answer["Upload-Offset"])) == (204, min(start + 1000, len(data)))
            assert answer["Upload-Expires"].endswith("GMT")
    assert len(sent) == 1
    taken = tus.client.get(report).json()
    assert (taken["stage"], taken["keep_valid"], taken["protocol_version"]) == ("waiting", True, 2)
    assert (taken["id"], taken["file_name"]) == (started.json()["id"], "package.zip")

    jobs.import_upload(taken["id"])
    done = tus.client.get(report).json()
    assert done["report"]["accepted"] == ["task_0000", "task_0001"]
    assert Submission.objects.get(pk=done["submission"]).trajectories.count() == 2
    assert (list_stored(), UploadPart.objects.count()) == ([], 0)
    assert tus.offset() == len(data)  # a client that missed the last response learns that it is complete


def test_mistakes_are_reported_before_any_byte_is_sent(mira: Person) -> None:
    tus = Tus(mira)
    body = problem(tus.start(10, benchmark="no", agent=" ", protocol_version="9", keep_valid="perhaps"), 400)
    assert {each["where"] for each in body["errors"]} == {"benchmark", "agent", "protocol_version", "keep_valid"}
    for given in ("benchmark", "benchmark !!", "benchmark /w=="):
        malformed = tus.request("POST", PATH, Upload_Length=10, Upload_Metadata=given)
        assert problem(malformed, 400)["errors"][0]["where"] in ("Upload-Metadata", "benchmark")
    for length in (None, "0", "-1", "ten"):
        wrong = tus.request("POST", PATH, Upload_Length=length, Upload_Metadata=metadata(FIELDS))
        assert [each["where"] for each in problem(wrong, 400)["errors"]] == ["Upload-Length"]
    assert not ResumableUpload.objects.exists()


def test_limits_of_size_quota_and_disk_are_checked_at_the_start(
    mira: Person, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    tus = Tus(mira)
    settings.MAX_RESUMABLE_BYTES = 1000
    assert problem(tus.start(1001), 413)["errors"][0]["code"] == "file_too_large"
    settings.MAX_RESUMABLE_BYTES = 2**62
    refused = tus.start(2**60)
    assert (problem(refused, 507)["errors"][0]["code"], refused["Retry-After"]) == ("disk_too_small", "60")

    Benchmark.objects.update(quota_bytes=1000)
    assert tus.start(900).status_code == 201
    tus.send(0, BODY[:600])  # all 900 bytes count, or uploads that begin at the same time would exceed the quota
    assert problem(Tus(mira).start(101), 400)["errors"][0]["code"] == "quota_bytes"
    assert Tus(mira).start(100).status_code == 201
    tus.request("DELETE")
    assert Tus(mira).start(900).status_code == 201


def test_damaged_part_is_refused_and_can_be_sent_again(mira: Person) -> None:
    tus = Tus(mira)
    tus.start(len(BODY))
    wrong = tus.request("PATCH", body=BODY[:10], Upload_Offset=0, Upload_Checksum="sha256 " + "A" * 43 + "=")
    assert problem(wrong, 460)["errors"][0]["code"] == "checksum_differs"
    for checksum in ("md5 AAAA", "sha256 AAAA", "sha256 !"):
        problem(tus.request("PATCH", body=b"x", Upload_Offset=0, Upload_Checksum=checksum), 400)
    assert (tus.offset(), list_stored()) == (0, [])
    assert tus.send(0, BODY[:10]).status_code == 204


def test_cut_connection_counts_what_arrived_unless_it_cannot_be_verified(mira: Person) -> None:
    tus = Tus(mira)
    tus.start(1000)
    tus.send_cut(0, BODY[:300], 1000)
    assert tus.offset() == 300
    tus.send_cut(300, BODY[:300], 700, upload_checksum="sha256 " + "A" * 43 + "=")
    tus.send_cut(300, b"", 700)
    assert (tus.offset(), len(list_stored())) == (300, 1)


def test_wrong_requests_change_nothing(mira: Person) -> None:
    tus = Tus(mira)
    tus.start(1000)
    tus.send(0, BODY[:100])
    assert "100 bytes" in problem(tus.send(0, BODY[:100]), 409)["detail"]  # as after a lost response
    problem(tus.send(101, BODY[:100]), 409)
    problem(tus.send(100, BODY[:901]), 413)
    problem(tus.request("PATCH", body=b"x", Upload_Offset=100, Content_Type="text/plain"), 415)
    problem(tus.request("PATCH", body=b"x", Upload_Offset=None), 400)
    for version in ("0.2.2", None):
        assert tus.request("HEAD", Tus_Resumable=version).status_code == 412
    assert tus.request("PATCH", body=b"x", Upload_Offset=100, Tus_Resumable="2.0.0")["Tus-Version"] == "1.0.0"
    assert (tus.offset(), len(list_stored())) == (100, 1)


def test_others_and_small_scopes_are_refused(mira: Person, submission: Submission, people: dict[str, Person]) -> None:
    tus = Tus(mira)
    tus.start(1000)
    problem(Tus(people["alice"]).start(10), 403)
    other = Tus(testing.person("otto", is_staff=True))
    other.where = tus.where
    for method in ("GET", "HEAD", "PATCH", "DELETE"):
        assert other.request(method, Upload_Offset=0).status_code == 404
    reader = Tus(mira)
    reader.client.credentials(HTTP_AUTHORIZATION=f"Bearer {ApiToken.issue(mira, 'reader', 'read')[1]}")
    reader.where = tus.where
    for method in ("POST", "HEAD", "PATCH", "DELETE"):
        answer = reader.request(method, PATH if method == "POST" else "", Upload_Offset=0)
        assert answer.status_code == 403, method
    assert ResumableUpload.objects.get().offset == 0


def test_options_and_a_method_in_a_header_are_as_tus_defines_them(mira: Person) -> None:
    tus = Tus(mira)
    told = tus.request("OPTIONS", PATH, Tus_Resumable=None)
    assert told.status_code == 204
    assert told["Tus-Extension"] == "creation,checksum,expiration,termination"
    assert (told["Tus-Version"], told["Tus-Checksum-Algorithm"]) == ("1.0.0", "sha256")
    assert int(told["Tus-Max-Size"]) >= 20 * 10**9
    tus.start(1000)
    kind = "application/offset+octet-stream"
    sent = tus.request("POST", body=b"xy", X_HTTP_Method_Override="PATCH", Upload_Offset=0, Content_Type=kind)
    assert (sent.status_code, tus.offset()) == (204, 2)
    head = tus.request("HEAD")
    assert (head["Upload-Metadata"], head["Upload-Length"]) == (metadata(FIELDS), "1000")
    assert "no-store" in head["Cache-Control"]
    assert tus.request("DELETE").status_code == 204
    assert tus.request("HEAD").status_code == 404
    assert (list_stored(), ResumableUpload.objects.exists()) == ([], False)


def test_complete_upload_cannot_be_given_up_or_repeated(mira: Person) -> None:
    tus = Tus(mira)
    tus.start(4)
    tus.send(0, b"PK12")
    problem(tus.request("DELETE"), 409)
    problem(tus.send(0, b"PK12"), 409)
    assert Upload.objects.count() == 1


@pytest.mark.django_db
def test_full_disk_loses_no_part(mira: Person, tmp_path: Path, settings: Any) -> None:
    with mounted(tmp_path / "images", 1024) as is_mounted:
        if not is_mounted:
            pytest.skip("no small disk can be mounted here")
        tus, data = Tus(mira), BODY * 30
        tus.start(len(data))
        half = len(data) // 2
        tus.send(0, data[:half])
        filler = tmp_path / "images" / "filler"
        filler.write_bytes(bytes(1024 * 1024 - half - 50_000))
        full = tus.send(half, data[half:])
        assert (problem(full, 507)["errors"][0]["code"], full["Retry-After"]) == ("import_stopped", "60")
        assert (tus.offset(), len(list_stored())) == (half, 1)
        filler.unlink()
        assert tus.send(half, data[half:]).status_code == 204
        with arrivals.open_as_file(Upload.objects.get(), ".zip") as joined:
            assert joined.read_bytes() == data


def test_unfinished_upload_expires_with_its_parts(mira: Person, settings: Any) -> None:
    settings.UNFINISHED_UPLOAD_HOURS = 2
    tus, other = Tus(mira), Tus(mira)
    for each in (tus, other):
        each.start(1000)
        each.send(0, BODY[:10])
    ResumableUpload.objects.update(expires_at=timezone.now() + timedelta(minutes=1))
    other.send(10, BODY[:10])  # every part extends the time
    ResumableUpload.objects.filter(offset=10).update(expires_at=timezone.now())
    problem(tus.send(10, BODY[:10]), 404)
    jobs.resume_uploads()
    assert (ResumableUpload.objects.get().offset, len(list_stored())) == (20, 2)
    assert ResumableUpload.objects.get().expires_at > timezone.now() + timedelta(minutes=100)


def test_checked_package_in_parts_stays_until_it_is_imported(
    mira: Person, tmp_path: Path, django_capture_on_commit_callbacks: Any
) -> None:
    data, tus = zip_of(testing.write_submission(tmp_path / "package")).read(), Tus(mira)
    tus.start(len(data), dry_run="true")
    tus.send(0, data[:2000])
    tus.send(2000, data[2000:])
    pk = str(Upload.objects.get().pk)
    jobs.import_upload(pk)
    ResumableUpload.objects.update(expires_at=timezone.now())
    jobs.resume_uploads()
    with django_capture_on_commit_callbacks(execute=False):
        assert checked_uploads.start_import(Upload.objects.get(), str)
    jobs.import_upload(pk)
    assert Submission.objects.count() == 1
    assert list_stored() == []
    jobs.resume_uploads()
    assert not ResumableUpload.objects.exists()


def test_parts_of_killed_servers_are_deleted_after_a_day(mira: Person, tmp_path: Path) -> None:
    tus = Tus(mira)
    tus.start(1000)
    tus.send(0, BODY[:10])
    folder = tmp_path / "images" / ResumableUpload.objects.get().stored_as
    gone = folder.parent / "00000000-0000-4000-8000-000000000000"
    gone.mkdir()
    for path in (folder / "old", folder / "new", gone / "old"):
        path.write_bytes(b"x")
    long_ago = (timezone.now() - timedelta(hours=25)).timestamp()
    for path in [*folder.iterdir(), gone / "old"]:
        if path.name != "new":
            os.utime(path, (long_ago, long_ago))
    jobs.prune_images()
    assert sorted(path.name for path in folder.iterdir()) == [UploadPart.objects.get().name, "new"]
    jobs.prune_images()
    assert not gone.exists()


@pytest.mark.django_db(transaction=True)
def test_of_two_parts_at_one_offset_one_counts(tmp_path: Path) -> None:
    testing.benchmark(2)
    tus = Tus(testing.person("mira", is_staff=True))
    tus.start(2000)
    rows = [ResumableUpload.objects.get() for _ in range(4)]

    def send(number: int) -> None:
        resumable.append(rows[number], 0, 1000, lambda size: bytes([number]) * size, None, str)

    refused = [each for each in at_once(4, send) if each is not None]
    assert [type(each).__name__ for each in refused] == ["Conflict"] * 3
    assert (tus.offset(), len(list_stored()), UploadPart.objects.count()) == (1000, 1, 1)


def test_benchmark_with_an_unfinished_upload_is_not_deleted(mira: Person) -> None:
    tus = Tus(mira)
    tus.start(1000)
    page = reverse("delete-benchmark", args=["shops"])
    browser = tus.client
    browser.credentials()
    browser.force_login(mira)
    browser.post(page, {"name": str(Benchmark.objects.get())})
    assert Benchmark.objects.exists()
    ResumableUpload.objects.all().delete()
    browser.post(page, {"name": str(Benchmark.objects.get())})
    assert not Benchmark.objects.exists()
