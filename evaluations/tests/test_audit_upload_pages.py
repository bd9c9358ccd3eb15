"""Bundles on their way in, on the page and through the API: taken, followed, cancelled, refused; by their uploader."""

from __future__ import annotations

import re
import uuid
from typing import Any

import pytest
from django.core.files.storage import default_storage
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from annotation.models import Person
from annotation.tests import testing
from annotation.workflow.guards import LONGEST_NOTE
from evaluations.auditing.actions import LONGEST_SEED
from evaluations.auditing.reference_data import LONGEST_KEYS
from evaluations.models import Audit, AuditDecision, BundleUpload
from evaluations.tests.audited import auditor, client_of, work
from evaluations.tests.hand_made_bundle import HandMade
from evaluations.tests.test_audit_pages import run, text

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("store")]
BOTH = pytest.mark.parametrize("address", ["open-audit", "api-audits"])


def file(data: bytes = b"nothing") -> SimpleUploadedFile:
    return SimpleUploadedFile("theirs.zip", data, "application/zip")


def sent(client: Client, data: bytes = b"nothing") -> BundleUpload:
    client.post(reverse("open-audit"), {"bundle": file(data)})
    return BundleUpload.objects.latest("created_at")


def told(client: Client, upload: BundleUpload) -> Any:
    return client.get(reverse("api-bundle-upload", args=[upload.pk])).json()


def shown(client: Client, upload: BundleUpload, **headers: str) -> str:
    return text(client.get(reverse("bundle-upload", args=[upload.pk]), headers=headers))


@pytest.fixture
def arrived(amy: Client) -> Audit:
    upload = sent(amy, HandMade().complete().zipped())
    work()
    upload.refresh_from_db()
    assert upload.audit is not None
    return upload.audit


# --- following -------------------------------------------------------------------------------------------------------


def test_the_page_asks_again_until_there_is_an_outcome(amy: Client) -> None:
    upload = sent(amy)
    assert "Waiting for a worker" in shown(amy, upload)

    BundleUpload.objects.update(started_at=timezone.now(), done=3, total=9)
    page = shown(amy, upload)
    part = shown(amy, upload, hx_request="true")
    assert "<html" in page
    assert "<html" not in part
    for text_ in (page, part):
        assert "Reading file 3 of 9" in text_
        assert f'hx-get="{reverse("bundle-upload", args=[upload.pk])}" hx-trigger="every 1s"' in text_
        assert '<noscript><p><a href="">Reload' in text_
    BundleUpload.objects.update(done=9)
    assert "9 files are read" in shown(amy, upload)

    BundleUpload.objects.update(started_at=None)
    work()
    page = shown(amy, upload)
    assert "not a zip file" in page
    assert "hx-get" not in page


def test_a_refused_upload_shows_what_was_checked(amy: Client) -> None:
    made = HandMade().complete()
    made.documents["labels.jsonl"][0]["annotator"] = "<b>A1</b>"
    upload = sent(amy, made.zipped())
    work()

    page = shown(amy, upload)

    assert "Checks made before it was refused" in page
    assert '<table class="claims">' in page
    assert "<code" in page[page.index('class="claims"') :]
    assert "<b>A1</b>" not in page
    (shapes,) = [each for each in told(amy, upload)["findings"] if each["name"] == "shapes"]
    assert shapes["result"] == "fail"
    assert "refused" in text(amy.get(reverse("audits")))


def test_the_same_bundle_again_leads_to_its_audit(amy: Client, arrived: Audit) -> None:
    again = sent(amy, HandMade().complete().zipped())
    work()

    page = shown(amy, again)
    assert "<b>Checked again</b>" in page
    assert f'<a href="{reverse("audit", args=[arrived.pk])}#checked">' in page
    answer = told(amy, again)
    assert (answer["audit"], answer["again"], answer["refused"]) == (arrived.pk, True, "")


def test_the_api_tells_how_far_it_is(amy: Client) -> None:
    taken = amy.post(reverse("api-audits"), {"bundle": file()})
    upload = BundleUpload.objects.get()
    where = f"http://testserver/api/v1/audits/uploads/{upload.pk}"

    assert (taken.status_code, taken["Location"], taken.json()["stage"]) == (202, where, "waiting")
    BundleUpload.objects.update(started_at=timezone.now(), done=3, total=9)
    answer = amy.get(where).json()
    assert (answer["stage"], answer["done"], answer["total"], answer["audit"]) == ("running", 3, 9, None)


def test_the_own_uploads_are_listed_and_nobody_elses(amy: Client) -> None:
    sent(client_of(auditor("bea")))
    assert "theirs.zip" not in text(amy.get(reverse("audits")))

    upload = sent(amy)

    page = text(amy.get(reverse("audits")))
    assert re.findall(r'href="/audits/uploads/([^"]+)"', page) == [str(upload.pk)]


def test_an_upload_is_seen_and_cancelled_by_its_uploader_only(amy: Client) -> None:
    upload = sent(amy)
    root = Person.objects.create_superuser("root", "root@people.example", testing.PASSWORD)
    names = ("bundle-upload", "api-bundle-upload")
    for stranger, status in ((auditor("bea"), 404), (root, 404), (testing.person("dave"), 403)):
        other = client_of(stranger)
        assert [other.get(reverse(name, args=[upload.pk])).status_code for name in names] == [status, status]
        assert other.post(reverse("cancel-bundle", args=[upload.pk])).status_code == status
        assert other.delete(reverse("api-bundle-upload", args=[upload.pk])).status_code == status
    Person.objects.filter(username="amy").update(is_staff=False)
    assert [amy.get(reverse(name, args=[upload.pk])).status_code for name in names] == [403, 403]
    assert BundleUpload.objects.exists()
    assert Client().get(reverse("bundle-upload", args=[upload.pk])).status_code == 302
    assert Client().get(reverse("api-bundle-upload", args=[upload.pk])).status_code == 401


def test_an_unknown_upload_is_unknown(amy: Client) -> None:
    for name in ("bundle-upload", "api-bundle-upload"):
        assert amy.get(reverse(name, args=[uuid.uuid4()])).status_code == 404


# --- cancelling ------------------------------------------------------------------------------------------------------


def test_an_upload_is_cancelled_on_the_page_and_by_the_api(amy: Client) -> None:
    for cancel in (
        lambda upload: amy.post(reverse("cancel-bundle", args=[upload.pk])).status_code == 302,
        lambda upload: amy.delete(reverse("api-bundle-upload", args=[upload.pk])).status_code == 204,
    ):
        assert cancel(sent(amy))
        assert not BundleUpload.objects.exists()
        assert default_storage.listdir("bundles")[1] == []


def test_a_finished_upload_is_forgotten_and_its_audit_stays(amy: Client, arrived: Audit) -> None:
    said = text(amy.post(reverse("cancel-bundle", args=[BundleUpload.objects.get().pk]), follow=True))

    assert "It was already opened, and its audit remains." in said
    assert "Bundle deleted." not in said
    assert not BundleUpload.objects.exists()
    assert text(amy.get(reverse("audit", args=[arrived.pk])))


# --- limits ----------------------------------------------------------------------------------------------------------


def test_a_full_disk_takes_no_bundle(amy: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args: Any, **options: Any) -> Any:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(default_storage, "save", full)

    for name in ("open-audit", "api-audits"):
        says = text(amy.post(reverse(name), {"bundle": file()}), 507)
        assert "The bundle could not be stored: No space left on device." in says
    assert not BundleUpload.objects.exists()


@BOTH
def test_a_bundle_over_the_limit_is_refused(amy: Client, settings: Any, address: str) -> None:
    settings.WEBVERDICT_MAX_UPLOAD_BYTES = 6

    says = text(amy.post(reverse(address), {"bundle": file()}), 400)

    assert "The file has 7 bytes; at most 6 are accepted. The command import_audit accepts any number." in says
    assert not BundleUpload.objects.exists()


@BOTH
def test_keys_over_the_limit_are_refused(amy: Client, address: str) -> None:
    says = text(amy.post(reverse(address), {"bundle": file(), "keys": "a" * (LONGEST_KEYS + 1)}), 400)

    assert "Keys have at most 100,000 characters." in says
    assert not BundleUpload.objects.exists()


@pytest.mark.parametrize("address", ["decide-audit", "api-audit-decisions"])
def test_a_reason_over_the_limit_is_refused_and_never_cut(amy: Client, audit: Audit, address: str) -> None:
    asked = {"outcome": "query", "reason": "a" * (LONGEST_NOTE + 1)}

    assert "A reason has at most 2,000 characters." in text(amy.post(reverse(address, args=[audit.pk]), asked), 400)
    assert not AuditDecision.objects.exists()
    asked["reason"] = "a" * LONGEST_NOTE
    assert amy.post(reverse(address, args=[audit.pk]), asked).status_code in (201, 302)
    assert AuditDecision.objects.get().reason == asked["reason"]


def test_the_command_takes_no_longer_reason(audit: Audit) -> None:
    said = ("--outcome", "query", "--reason", "a" * (LONGEST_NOTE + 1), "--as", "amy")

    says, code = run("decide_audit", audit.pk, *said)[1:]

    assert ("A reason has at most 2,000 characters." in says, code) == (True, 2)
    assert not AuditDecision.objects.exists()


@pytest.mark.parametrize("address", ["draw-sample", "api-audit-sample"])
def test_a_seed_over_the_limit_is_refused(amy: Client, audit: Audit, address: str) -> None:
    asked = {"size": 1, "seed": "a" * (LONGEST_SEED + 1)}

    assert "A seed has at most 64 characters." in text(amy.post(reverse(address, args=[audit.pk]), asked), 400)
    assert audit.sample is None
