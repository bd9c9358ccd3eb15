"""Bundles on their way in: run twice, killed, cancelled, or without a disk, an upload ends in exactly one outcome."""

from __future__ import annotations

import io
import json
import logging
import os
import zipfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import InMemoryStorage, Storage, default_storage
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import IntegrityError, InterfaceError, OperationalError, connection
from django.utils import timezone

from annotation import arrivals, screenshots
from annotation.ingest import ImportStopped
from annotation.models import Person, Submission
from annotation.tests.full_disk import find_originals, limit_room
from annotation.workflow import Conflict, Incomplete
from evaluations import jobs
from evaluations.auditing import uploads
from evaluations.auditing.importing import open_bundle
from evaluations.auditing.reference_data import decode_reference_data, encode_reference_data, parse_reference_data
from evaluations.models import Audit, AuditCheck, BundleUpload
from evaluations.tests.audited import auditor
from evaluations.tests.hand_made_bundle import HandMade, sha256
from evaluations.tests.revoked import bundle_entry, revocations
from evaluations.verifier.checking import Given

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("store")]
NOTHING = encode_reference_data(Given())


class Killed(BaseException):
    """What no handler sees, as the end of a process."""


class Elsewhere(Storage):
    """Has no files of this machine, as S3 has none."""

    def __init__(self) -> None:
        inner: Any = InMemoryStorage()
        for name in ("_open", "_save", "exists", "delete", "listdir"):
            setattr(self, name, getattr(inner, name))


@pytest.fixture(scope="module")
def data() -> bytes:
    """A bundle of a review that was written by hand."""
    return HandMade().complete().zipped()


@pytest.fixture
def upload(data: bytes) -> BundleUpload:
    return waiting_upload(data)


@pytest.fixture
def eager() -> Iterator[None]:
    """Messages are worked on at once."""
    conf = jobs.open_bundle.app.conf
    before, conf.task_always_eager = conf.task_always_eager, True
    yield
    conf.task_always_eager = before


def waiting_upload(data: bytes, person: str = "amy", given: Given | None = None) -> BundleUpload:
    """Stored, and waiting for a worker."""
    made = BundleUpload(
        uploaded_by=auditor(person), file_name="theirs.zip", given=encode_reference_data(given or Given())
    )
    made.stored_as = default_storage.save(f"bundles/{made.pk}.zip", ContentFile(data))
    made.save(force_insert=True)
    return made


def worked(upload: BundleUpload) -> BundleUpload:
    """What it is after a worker had its message."""
    jobs.open_bundle(str(upload.pk))
    upload.refresh_from_db()
    return upload


def falls_silent(upload: BundleUpload) -> None:
    silent = timezone.now() - arrivals.HEARTBEAT_TIMEOUT - timedelta(seconds=1)
    BundleUpload.objects.filter(pk=upload.pk).update(heartbeat_at=silent)


def at(begins: str, error: BaseException, has: str = "") -> AbstractContextManager[None]:
    """Raises the error in place of every query that begins so."""

    def instead(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if sql.startswith(begins) and has in sql:
            raise error
        return execute(sql, params, many, context)

    return connection.execute_wrapper(instead)


def stored() -> list[str]:
    return default_storage.listdir("bundles")[1]


# --- one outcome -----------------------------------------------------------------------------------------------------


def test_an_upload_becomes_an_audit_of_its_uploader_once(upload: BundleUpload) -> None:
    found = worked(upload)

    audit = Audit.objects.get()
    assert (found.audit, found.refused, found.findings, found.given) == (audit, "", [], "")
    assert (audit.opened_by.username, audit.file_name) == ("amy", "theirs.zip")
    assert found.done == found.total != 0
    assert stored() == []
    ended = found.finished_at
    falls_silent(upload)
    assert worked(upload).finished_at == ended  # the message was delivered twice
    assert Audit.objects.count() == 1


def test_a_refusal_is_kept_with_what_was_checked(data: bytes) -> None:
    made = HandMade().complete()
    del made.documents["labels.jsonl"][0]["annotator"]
    found = worked(waiting_upload(made.zipped()))

    assert "labels.jsonl" in found.refused
    assert "shapes" in [each["name"] for each in found.findings if each["result"] == "fail"]
    assert (found.audit, Audit.objects.count(), stored()) == (None, 0, [])


def test_what_its_uploader_knows_is_held_against_it(data: bytes) -> None:
    tasks = [{"task_id": task} for task in ("task_a", "task_b", "task_c", "task_d")]
    found = worked(waiting_upload(data, given=Given(tasks=tasks)))

    assert found.audit is not None
    (told,) = [each for each in found.audit.findings if each["name"] == "tasks"]
    assert (told["result"], told["places"]) == ("fail", ["task_d"])


def test_list_of_revocations_is_taken_from_a_form_and_held_against_the_bundle(data: bytes) -> None:
    with zipfile.ZipFile(io.BytesIO(data)) as package:
        listed = revocations(bundle_entry(sha256(package.read("MANIFEST.json"))))
    given = parse_reference_data(revocations=io.BytesIO(json.dumps(listed).encode()))
    found = worked(waiting_upload(data, given=given))

    assert found.audit is not None
    assert "revocations" in [each["name"] for each in found.audit.findings if each["result"] == "fail"]
    assert found.audit.newest_check.given == ["revocations"]
    with pytest.raises(Incomplete) as caught:
        parse_reference_data(revocations=io.BytesIO(b"[]"))
    assert [problem.where for problem in caught.value.problems] == ["revocations"]


def test_what_somebody_knows_comes_through_the_database_unchanged() -> None:
    """Neither of the two characters can be stored as it is by PostgreSQL."""
    given = Given(
        keys=[{"public_key": "ab"}],
        anchors=[{"head": "\x00 \ud800", "n": 10**40}],
        tasks=["é", {"a": 1.5}],
        chain="0" * 64,
        revocations=[revocations()],
    )
    made = BundleUpload.objects.create(uploaded_by=auditor(), file_name="x.zip", given=encode_reference_data(given))

    assert decode_reference_data(BundleUpload.objects.get(pk=made.pk).given) == given


# --- workers that die ------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("eager")
def test_an_upload_whose_worker_was_killed_is_done_by_another(upload: BundleUpload) -> None:
    with at('INSERT INTO "annotation_trajectory"', Killed()), pytest.raises(Killed):
        worked(upload)
    assert Audit.objects.count() == 0
    jobs.resume_bundles()
    upload.refresh_from_db()
    assert upload.finished_at is None  # its worker may be alive

    falls_silent(upload)
    jobs.resume_bundles()

    upload.refresh_from_db()
    assert (upload.audit, upload.tries, stored()) == (Audit.objects.get(), 2, [])


def test_a_worker_that_dies_when_the_upload_ends_has_made_no_audit(upload: BundleUpload) -> None:
    with at('UPDATE "evaluations_bundleupload"', Killed(), '"finished_at" = '), pytest.raises(Killed):
        worked(upload)
    assert Audit.objects.count() == 0
    falls_silent(upload)

    found = worked(upload)

    assert (found.audit, found.refused) == (Audit.objects.get(), "")


@pytest.mark.parametrize("meanwhile", ["cancelled", "taken by another worker"])
def test_what_is_no_longer_a_workers_becomes_no_audit_of_it(upload: BundleUpload, meanwhile: str) -> None:
    """All of it is read by then, and nothing more of it will be told."""
    done: list[str] = []

    def instead(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if sql.startswith('INSERT INTO "annotation_trajectory"') and not done:
            done.append(meanwhile)
            if meanwhile == "cancelled":
                uploads.cancel(BundleUpload.objects.get())
            else:
                BundleUpload.objects.update(tries=2)
        return execute(sql, params, many, context)

    with connection.execute_wrapper(instead):
        jobs.open_bundle(str(upload.pk))

    assert done == [meanwhile]
    assert (Audit.objects.count(), Submission.objects.count()) == (0, 0)
    assert all(each.finished_at is None for each in BundleUpload.objects.all())


@pytest.mark.usefixtures("eager")
def test_an_upload_whose_message_was_lost_is_queued_again() -> None:
    upload = waiting_upload(b"nothing")
    jobs.resume_bundles()
    upload.refresh_from_db()
    assert upload.started_at is None  # its message may still be on its way

    BundleUpload.objects.update(created_at=timezone.now() - arrivals.MESSAGE_DELAY - timedelta(seconds=1))
    jobs.resume_bundles()

    upload.refresh_from_db()
    assert "not a zip file" in upload.refused


def test_a_worker_that_wakes_up_late_changes_nothing(upload: BundleUpload) -> None:
    late = arrivals.claim(BundleUpload, str(upload.pk))
    falls_silent(upload)
    assert late is not None
    assert arrivals.claim(BundleUpload, str(upload.pk)) is not None

    uploads.process_upload(late)

    upload.refresh_from_db()
    assert (upload.finished_at, Audit.objects.count(), len(stored())) == (None, 0, 1)


def test_a_bundle_that_ends_every_worker_is_given_up() -> None:
    upload = waiting_upload(b"nothing")
    BundleUpload.objects.update(tries=arrivals.MOST_TRIES, started_at=timezone.now())
    falls_silent(upload)

    assert "5 workers started this job" in worked(upload).refused
    assert stored() == []


@pytest.mark.parametrize("away", [OperationalError, InterfaceError])
def test_an_upload_during_which_the_database_was_away_waits(upload: BundleUpload, away: type[Exception]) -> None:
    with at('INSERT INTO "annotation_trajectory"', away("the server closed the connection")), pytest.raises(away):
        worked(upload)

    upload.refresh_from_db()
    assert (upload.finished_at, upload.given, len(stored())) == (None, NOTHING, 1)
    falls_silent(upload)
    assert arrivals.find_waiting(BundleUpload) == [str(upload.pk)]


# --- disks and mistakes ----------------------------------------------------------------------------------------------


def full(*args: Any, **options: Any) -> Any:
    raise OSError(28, "No space left on device")


def test_a_full_disk_is_said_and_nothing_is_kept(upload: BundleUpload, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(screenshots, "keep_bytes", full)

    found = worked(upload)

    assert "No space left on device. Nothing was saved. Upload the bundle again." in found.refused
    assert (Audit.objects.count(), Submission.objects.count(), stored()) == (0, 0, [])


def test_bundle_leaves_no_files_when_the_disk_is_full(upload: BundleUpload, settings: Any) -> None:
    limit_room(settings, 150)  # bytes; some of its screenshots fit

    found = worked(upload)

    assert "No space left on device" in found.refused
    assert find_originals() == []


def test_a_bundle_that_the_store_has_lost_is_said(upload: BundleUpload) -> None:
    default_storage.delete(upload.stored_as)

    assert "No such file or directory. Nothing was saved. Upload the bundle again." in worked(upload).refused


def test_a_bundle_in_a_store_elsewhere_is_fetched(data: bytes, settings: Any) -> None:
    settings.STORAGES = settings.STORAGES | {"default": {"BACKEND": f"{__name__}.Elsewhere"}}
    found = worked(waiting_upload(data))

    assert (found.audit, found.refused, stored()) == (Audit.objects.get(), "", [])


def test_a_mistake_of_our_own_ends_the_upload_and_says_so(
    upload: BundleUpload, caplog: pytest.LogCaptureFixture
) -> None:
    with at('INSERT INTO "annotation_trajectory"', KeyError("surprise")):
        found = worked(upload)

    assert found.refused == arrivals.SERVER_ERROR
    assert "surprise" in caplog.text
    assert (Audit.objects.count(), stored()) == (0, [])


def test_a_value_that_surprises_us_is_refused_and_logged_with_its_trace(
    upload: BundleUpload, caplog: pytest.LogCaptureFixture
) -> None:
    with at('INSERT INTO "annotation_trajectory"', ValueError("surprise")):
        found = worked(upload)

    assert "an impossible record: surprise" in found.refused
    (told,) = [each for each in caplog.records if each.levelno == logging.ERROR]
    assert told.exc_info is not None


def test_who_may_open_bundles_no_more_opens_none(upload: BundleUpload) -> None:
    Person.objects.filter(username="amy").update(is_staff=False)

    found = worked(upload)

    assert "Only maintainers" in found.refused
    assert Audit.objects.count() == 0


# --- the same bundle -------------------------------------------------------------------------------------------------


def test_the_same_bundle_again_names_the_audit_only_to_who_reads_it(data: bytes) -> None:
    audit = worked(waiting_upload(data)).audit
    assert audit is not None
    again, stranger = worked(waiting_upload(data)), worked(waiting_upload(data, "bea"))

    assert (again.audit, again.again, again.refused, again.given) == (audit, True, "", "")
    assert (stranger.audit, stranger.again, stranger.refused) == (None, False, "This bundle is already open here.")
    assert (Audit.objects.count(), AuditCheck.objects.count(), stored()) == (1, 2, [])


@pytest.mark.parametrize("meanwhile", [uploads.cancel, falls_silent])
def test_a_check_whose_upload_is_no_longer_a_workers_is_not_kept(
    data: bytes, meanwhile: Callable[[BundleUpload], None]
) -> None:
    worked(waiting_upload(data))
    late = arrivals.claim(BundleUpload, str(waiting_upload(data).pk))
    assert late is not None
    meanwhile(late)
    arrivals.claim(BundleUpload, str(late.pk))

    uploads.process_upload(late)

    assert AuditCheck.objects.count() == 1


def test_a_bundle_that_somebody_else_opens_meanwhile_is_open_already(
    upload: BundleUpload, data: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "same.zip").write_bytes(data)
    keep: Callable[..., None] = screenshots.keep_bytes
    opened: list[Audit] = []

    def opened_meanwhile(sha256: str, content: bytes) -> None:
        monkeypatch.setattr(screenshots, "keep_bytes", keep)
        opened.append(open_bundle(tmp_path / "same.zip", auditor("bea")))
        keep(sha256, content)

    monkeypatch.setattr(screenshots, "keep_bytes", opened_meanwhile)
    found = worked(upload)

    assert (found.audit, found.refused) == (None, "This bundle is already open here.")
    assert list(Audit.objects.all()) == opened


# --- taking in, cancelling, forgetting -------------------------------------------------------------------------------


def received(data: bytes = b"nothing") -> BundleUpload:
    return uploads.receive(auditor(), SimpleUploadedFile("../theirs.zip", data), Given(), jobs.open_bundle.delay)


def test_a_bundle_is_stored_under_a_name_of_our_own_and_sent_to_a_worker(
    django_capture_on_commit_callbacks: Any, eager: None
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        made = received()
        assert made.stored_as == f"bundles/{made.pk}.zip"
        assert stored() == [f"{made.pk}.zip"]

    made.refresh_from_db()
    assert "not a zip file" in made.refused


def test_a_full_disk_takes_no_bundle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(default_storage, "save", full)

    with pytest.raises(ImportStopped, match="No space left on device"):
        received()

    assert not BundleUpload.objects.exists()


def test_a_bundle_whose_row_the_database_refuses_is_not_kept() -> None:
    refusing = at('INSERT INTO "evaluations_bundleupload"', IntegrityError("no"))
    with refusing, pytest.raises(IntegrityError):
        received()

    assert stored() == []


@pytest.mark.django_db(transaction=True)  # the message is sent after the commit
def test_a_bundle_is_taken_while_the_broker_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*arguments: Any) -> None:
        raise ConnectionError("no broker")

    monkeypatch.setattr(jobs.open_bundle, "delay", away)
    made = received()

    made.refresh_from_db()
    assert (made.stage, len(stored())) == ("waiting", 1)


def test_a_cancelled_upload_goes_with_its_file_and_its_worker_stops(upload: BundleUpload) -> None:
    taken = arrivals.claim(BundleUpload, str(upload.pk))
    assert taken is not None
    uploads.cancel(taken)

    uploads.process_upload(taken)

    assert (BundleUpload.objects.count(), Audit.objects.count(), stored()) == (0, 0, [])


def test_what_ended_while_it_was_cancelled_is_not_said_to_be_deleted() -> None:
    upload = waiting_upload(b"nothing")
    jobs.open_bundle(str(upload.pk))

    with pytest.raises(Conflict, match="just finished"):
        uploads.cancel(upload)

    upload.refresh_from_db()
    uploads.cancel(upload)
    assert BundleUpload.objects.count() == 0


def test_old_uploads_and_files_of_none_are_forgotten() -> None:
    def aged(name: str) -> str:
        os.utime(default_storage.path(f"bundles/{name}"), (0, 0))
        return name

    waits, fresh = waiting_upload(b"waits"), default_storage.save("bundles/fresh.zip", ContentFile(b""))
    aged(Path(waits.stored_as).name)
    aged(Path(default_storage.save("bundles/left.zip", ContentFile(b""))).name)
    past = timezone.now() - uploads.RETENTION
    for name, ended in (("old", past - timedelta(seconds=9)), ("young", past + timedelta(hours=1))):
        BundleUpload.objects.create(uploaded_by=auditor(), file_name=name, refused="No.", finished_at=ended)

    jobs.forget_bundles()

    assert sorted(stored()) == sorted([Path(waits.stored_as).name, Path(fresh).name])
    assert set(BundleUpload.objects.values_list("file_name", flat=True)) == {"theirs.zip", "young"}


def test_before_the_first_bundle_there_is_nothing_to_forget() -> None:
    jobs.forget_bundles()


def test_a_file_that_cannot_be_deleted_now_does_not_keep_an_upload_from_its_end(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    upload = waiting_upload(b"nothing")
    monkeypatch.setattr(default_storage, "delete", full)

    assert worked(upload).finished_at is not None
    assert "could not be deleted" in caplog.text
