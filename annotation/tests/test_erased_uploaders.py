"""Who is erased while what they sent in is read gets nothing more of it, and leaves no name behind."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import PermissionDenied
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage

from annotation import jobs, workflow
from annotation.models import Membership, Person, Submission, Upload
from annotation.tests import testing
from annotation.tests.test_concurrency import at_once, connections_that_wait, just_before
from annotation.workflow.erasing import lock_account
from config.tests.waiting import wait_until


def erased(person: Person) -> None:
    workflow.erase(person, person, "at their own request")


def closed(person: Person) -> None:
    Person.objects.filter(pk=person.pk).update(is_active=False)


def tells_how_far_it_is(sql: str) -> bool:
    return sql.startswith('UPDATE "annotation_upload"') and '"total" = ' in sql


@pytest.fixture
def alice(db: Any, tmp_path: Path, settings: Any) -> Person:
    settings.MEDIA_ROOT = tmp_path / "images"
    return testing.person("alice-smith", is_staff=True)


def package_of(person: Person, folder: Path) -> Upload:
    """Two trajectories, stored and waiting for a worker."""
    shops = testing.benchmark(2)
    package = shutil.make_archive(str(folder / "package"), "zip", testing.write_submission(folder / "folder", 2))
    return Upload.objects.create(
        uploaded_by=person,
        benchmark=shops,
        agent_name="Careful Agent",
        file_name="alice-smith.zip",
        stored_as=default_storage.save("uploads/one", ContentFile(Path(package).read_bytes())),
    )


@pytest.mark.parametrize("end", [erased, closed])
def test_a_package_of_somebody_who_is_gone_becomes_no_submission(
    alice: Person, tmp_path: Path, end: Callable[[Person], None]
) -> None:
    upload = package_of(alice, tmp_path)

    with just_before(tells_how_far_it_is, lambda: end(Person.objects.get())):
        jobs.import_upload(str(upload.pk))

    upload.refresh_from_db()
    assert not Person.objects.get().is_active
    assert (upload.stage, upload.submission, upload.report["accepted"]) == ("finished", None, [])
    assert [each["code"] for each in upload.report["rejected"][0]["problems"]] == ["account_closed"]
    assert "erased or closed" in upload.report["rejected"][0]["problems"][0]["message"]
    assert (Submission.objects.count(), Membership.objects.count()) == (0, 0)
    assert not default_storage.exists(upload.stored_as)
    assert upload.file_name == ("file.zip" if end is erased else "alice-smith.zip")


def test_an_account_that_is_there_is_locked_and_one_that_is_gone_is_refused(alice: Person) -> None:
    assert lock_account(alice) == alice
    erased(Person.objects.get(pk=alice.pk))
    with pytest.raises(PermissionDenied, match="erased or closed"):
        lock_account(alice)


@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
def test_an_erasure_waits_for_the_submission_that_is_made_and_then_ends_the_part_in_it(
    tmp_path: Path, settings: Any
) -> None:
    settings.MEDIA_ROOT = tmp_path / "images"
    alice = testing.person("alice-smith", is_staff=True)
    upload = package_of(alice, tmp_path)
    held = threading.Barrier(2, timeout=30)

    def until_the_erasure_waits() -> None:
        held.wait()  # the account is held
        wait_until(lambda: connections_that_wait() == 1, "the erasure waits for the account")

    def act(number: int) -> Any:
        if number == 0:
            with just_before(
                lambda sql: sql.startswith('INSERT INTO "annotation_trajectory"'), until_the_erasure_waits
            ):
                return jobs.import_upload(str(upload.pk))
        held.wait()
        return workflow.erase(None, alice, "They asked for it.", accept_unmaintained=True)

    imported, gone = at_once(2, act)

    assert (imported, type(gone)) == (None, Person), (imported, gone)
    assert Membership.objects.get().deactivated_at is not None
    assert Upload.objects.get().file_name == "file.zip"
