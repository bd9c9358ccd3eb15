"""Network traces in packages: three forms, one thing that is stored, and never what is secret."""

from __future__ import annotations

import hashlib
import json
import zipfile

import pytest

from annotation import ingest, screenshots
from annotation.formats.archive import FolderPackage, PackageError
from annotation.models import Attachment, Submission
from annotation.tests import testing
from annotation.tests.traces import entry, gzipped, har_of, redacted_bytes, snapshots, zipped

pytestmark = pytest.mark.django_db

ENTRIES = (
    entry("http://shop.example/?sid=hunter2", headers={"Cookie": "sid=hunter2", "Accept": "text/html"}),
    entry("http://shop.example/c", content={"size": 8, "mimeType": "text/html", "text": "<p>1</p>"}),
)
FORMS = {
    "network.har": har_of(*ENTRIES),
    "network.har.gz": gzipped(har_of(*ENTRIES)),
    "trace.zip": zipped({"trace.network": snapshots(*ENTRIES), "resources/unused.zip": b"PK"}),
}


@pytest.fixture(autouse=True)
def images_in_a_folder_of_their_own(tmp_path, settings):
    settings.MEDIA_ROOT = tmp_path / "images"


@pytest.fixture
def package(tmp_path):
    return testing.write_submission(tmp_path / "package", 1)


def read(path):
    return ingest.import_submission(path, benchmark=testing.benchmark(1), agent_name="Agent")


def packed(folder):
    target = folder.with_suffix(".zip")
    with zipfile.ZipFile(target, "w") as made:
        for file in sorted(folder.rglob("*")):
            made.write(file, file.relative_to(folder))
    return target


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("form_of_package", ["folder", "zip"])
def test_each_form_is_stored_as_redacted_json_under_its_name(package, name, form_of_package):
    (package / "task_0000" / name).write_bytes(FORMS[name])
    report, submission = read(package if form_of_package == "folder" else packed(package))
    assert (report.rejected, report.warnings) == ({}, [])
    kept = Attachment.objects.get(trajectory__submission=submission)
    data = screenshots.original(kept.sha256)
    assert (kept.kind, kept.name, kept.size) == ("network_trace", name, len(data))
    assert kept.sha256 == hashlib.sha256(data).hexdigest()
    assert b"hunter2" not in data
    assert data == redacted_bytes(FORMS[name])
    assert [one["request"]["url"] for one in json.loads(data)["log"]["entries"]] == [
        "http://shop.example/?sid=[redacted]",
        "http://shop.example/c",
    ]


def test_the_same_trace_again_is_the_same_submission(package):
    (package / "task_0000" / "trace.zip").write_bytes(FORMS["trace.zip"])
    _, first = read(package)
    report, second = read(package)
    assert first == second
    assert [warning.code for _, warning in report.warnings] == ["already_imported"]
    assert Submission.objects.count() == 1


def test_what_is_no_trace_is_left_out_with_a_warning_and_the_rest_is_taken(package):
    home = package / "task_0000"
    (home / "network.har").write_bytes(FORMS["network.har"])
    for name, data in {
        "a.har": b"[]",
        "b.har.gz": b"\x1f\x8bx",
        "c.zip": zipped({"a.txt": b"x"}),
        "d.zip": b"PK",
    }.items():
        (home / name).write_bytes(data)
    report, submission = read(package)
    assert report.accepted == ["task_0000"]
    said = {warning.where: warning for _, warning in report.warnings}
    assert {where: warning.code for where, warning in said.items()} == dict.fromkeys(
        ["a.har", "b.har.gz", "c.zip", "d.zip"], "attachment_unreadable"
    )
    assert "is not a Playwright trace: it has no *.network file" in said["c.zip"].message
    assert [kept.name for kept in Attachment.objects.filter(trajectory__submission=submission)] == ["network.har"]


def test_other_archives_are_refused_as_before(package):
    (package / "inner.zip").write_bytes(FORMS["trace.zip"])
    (package / "task_0000" / "more.tar.gz").write_bytes(b"x")
    report, submission = read(package)
    assert submission is None
    assert {problem.code for found in report.rejected.values() for problem in found} == {"nested_archive"}


def test_a_trace_that_changes_between_the_two_passes_stops_the_import(package, monkeypatch):
    file = package / "task_0000" / "network.har"
    file.write_bytes(FORMS["network.har"])
    opened = []
    stream = FolderPackage.stream

    def changing(self, name, limit):
        opened.append(name)
        if opened.count("task_0000/network.har") == 2:
            file.write_bytes(b"[]")
        return stream(self, name, limit)

    monkeypatch.setattr(FolderPackage, "stream", changing)
    report, submission = read(package)
    assert submission is None
    assert [problem.code for problem in report.rejected[""]] == ["changed_while_reading"]
    assert not Submission.objects.exists()


def test_a_file_is_streamed_up_to_its_limit_and_no_further(package):
    (package / "task_0000" / "network.har").write_bytes(b"x" * 1000)
    opened = FolderPackage(package)
    with opened.stream("task_0000/network.har", 1000) as stream:
        assert stream.read() == b"x" * 1000
    with opened.stream("task_0000/network.har", 999) as stream, pytest.raises(PackageError) as refused:
        stream.read()
    assert refused.value.problem.code == "file_too_large"
    with pytest.raises(PackageError), opened.stream("task_0000/other.har", 1000):
        pass
