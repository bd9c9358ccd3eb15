"""Who is erased while their bundle is checked becomes no auditor, and nothing is called by the name of their file."""

from __future__ import annotations

from typing import Any

import pytest

from annotation import workflow
from annotation.models import Membership, Person, Submission
from annotation.tests.test_concurrency import just_before
from evaluations import jobs
from evaluations.models import Audit, AuditCheck, BundleUpload
from evaluations.tests.audited import auditor
from evaluations.tests.hand_made_bundle import HandMade
from evaluations.tests.test_audit_uploads import waiting_upload

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("store")]


@pytest.fixture(scope="module")
def data() -> bytes:
    return HandMade().complete().zipped()


def tells_how_far_it_is(sql: str) -> bool:
    return sql.startswith('UPDATE "evaluations_bundleupload"') and '"total" = ' in sql


def worked(upload: BundleUpload, meanwhile: Any) -> BundleUpload:
    """What came of it; ``meanwhile`` happens while it is checked."""
    with just_before(tells_how_far_it_is, meanwhile):
        jobs.open_bundle(str(upload.pk))
    upload.refresh_from_db()
    return upload


def sent(data: bytes) -> BundleUpload:
    upload = waiting_upload(data, "alice-smith")
    BundleUpload.objects.filter(pk=upload.pk).update(file_name="alice-smith.zip")
    upload.refresh_from_db()
    return upload


def erase_alice() -> None:
    workflow.erase(None, Person.objects.get(username="alice-smith"), "They asked for it.")


def test_a_bundle_of_somebody_who_is_erased_meanwhile_becomes_no_audit(data: bytes) -> None:
    found = worked(sent(data), erase_alice)

    assert "erased or closed" in found.refused
    assert (found.stage, found.file_name, found.audit) == ("finished", "file.zip", None)
    assert (Audit.objects.count(), Submission.objects.count(), Membership.objects.count()) == (0, 0, 0)


def test_a_bundle_of_somebody_whose_account_is_closed_or_has_no_right_any_more_becomes_no_audit(data: bytes) -> None:
    closed = worked(sent(data), lambda: Person.objects.update(is_active=False))
    Person.objects.update(is_active=True)
    without = worked(sent(data), lambda: Person.objects.update(is_staff=False))

    assert "erased or closed" in closed.refused
    assert "Only maintainers" in without.refused
    assert Audit.objects.count() == 0


def test_a_bundle_that_is_sent_again_is_not_checked_for_somebody_who_is_erased(data: bytes) -> None:
    first = worked(sent(data), lambda: None)
    assert first.audit is not None

    again = worked(sent(data), erase_alice)

    assert "erased or closed" in again.refused
    assert AuditCheck.objects.filter(audit=first.audit).count() == 1
    assert [each.file_name for each in Audit.objects.all()] == ["file.zip"]


def test_an_erasure_after_it_takes_the_name_of_the_file_as_well(data: bytes) -> None:
    found = worked(sent(data), lambda: None)
    assert (found.audit.file_name, found.audit.opened_by) == ("alice-smith.zip", auditor("alice-smith"))

    erase_alice()

    assert Audit.objects.get().file_name == "file.zip"
