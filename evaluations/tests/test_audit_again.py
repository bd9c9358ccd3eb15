"""A bundle that is sent again: checked with what is known now, beside the checks before, which nobody can change."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import DatabaseError, transaction
from django.db.models import F
from django.test import Client
from django.urls import reverse

from annotation import screenshots
from annotation.models import Membership, Person
from annotation.tests import testing
from annotation.tests.test_concurrency import at_once
from evaluations.auditing import actions
from evaluations.auditing.importing import AuditRefused, open_bundle
from evaluations.models import Audit, AuditCheck, BundleUpload
from evaluations.tests.audited import add_people, auditor, client_of, work
from evaluations.tests.forging import Forged
from evaluations.tests.hand_made_bundle import KEY
from evaluations.tests.test_audit_pages import run, text, uploaded
from evaluations.verifier.checking import Given

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("store")]
HEAD = "ab" * 32
ADDRESSES = pytest.mark.parametrize("address", ["open-audit", "api-audits"])


@pytest.fixture
def published(bundles: dict[str, Path]) -> str:
    """What the submitter publishes: the key that signed `bundles`, which is none of this instance."""
    signature = json.loads(Forged(bundles["files"].read_bytes()).files["SIGNATURE.json"])
    return json.dumps({"keys": [{"public_key": signature["public_key"]}]})


def said(audit: Audit, name: str) -> list[str]:
    """What each check says by that name, oldest first; "" for nothing."""
    return [
        next((each["result"] for each in check.findings if each["name"] == name), "") for check in audit.checks.all()
    ]


def pages(client: Client, audit: Audit) -> list[str]:
    return [text(client.get(reverse(name, args=[audit.pk]))) for name in ("audit", "audit-report")]


# --- what is added ---------------------------------------------------------------------------------------------------


@ADDRESSES
def test_what_was_learnt_later_is_held_against_an_open_audit(
    amy: Client, audit: Audit, bundles: dict[str, Path], published: str, address: str
) -> None:
    assert all("not known to belong to the submitter" in page for page in pages(amy, audit))

    taken = amy.post(reverse(address), {"bundle": uploaded(bundles["files"]), "keys": published, "heads": f" {HEAD}\n"})
    work()

    assert (said(audit, "signature"), said(audit, "kept_heads")) == (["note", "pass"], ["", "fail"])
    assert [(each.given, each.key_trusted) for each in audit.checks.all()] == [([], False), (["keys", "heads"], True)]
    assert Audit.objects.get() == audit
    for page in pages(amy, audit):
        assert "one of the submitter's published keys" in page
        assert "by U1. Supplied for this check: published keys, kept heads." in page
        assert f"No event has the hash {HEAD}" in page
        assert "1 earlier check:" in page
        assert "given: nothing. None failed." in page
    told = amy.get(reverse("api-bundle-upload", args=[BundleUpload.objects.get().pk])).json()
    assert (told["audit"], told["again"], told["refused"]) == (audit.pk, True, "")
    if address == "open-audit":
        page = text(amy.get(taken["Location"]))
        assert "<b>Checked again</b>" in page
        assert f'{reverse("audit", args=[audit.pk])}#checked"' in page
        assert "checked again" in text(amy.get(reverse("audits")))


def test_a_check_that_failed_is_told_when_a_later_one_passes(
    amy: Client, audit: Audit, bundles: dict[str, Path]
) -> None:
    open_bundle(bundles["files"], auditor(), Given(chain=HEAD))
    actions.add_auditor(auditor(), audit, auditor("bea"))
    open_bundle(bundles["files"], auditor("bea"))

    assert said(audit, "chain_id") == ["", "fail", ""]
    for page in pages(amy, audit):
        assert "by U2. Supplied for this check: nothing." in page
        assert "2 earlier checks:" in page
        assert page.count(f"not the given {HEAD}") == 1
        assert page.index("given: id of the chain") < page.index(f"given {HEAD}") < page.index("None failed.")
    told = amy.get(reverse("api-audit", args=[audit.pk])).json()
    asked = [(each["checked_by"], each["given"], [one["name"] for one in each["failed"]]) for each in told["checks"]]
    assert asked == [("U2", [], []), ("U1", ["chain"], ["chain_id"]), ("U1", [], [])]
    assert "chain_id" not in [each["name"] for each in told["findings"]]
    assert json.loads(run("audit_report", audit.pk, "--json")[0])["checks"] == told["checks"]
    assert "by U1, given: id of the chain, key" in (report := run("audit_report", audit.pk)[0])
    assert "failed: chain_id." in report


def test_the_command_checks_again_too(audit: Audit, bundles: dict[str, Path]) -> None:
    said_of_opening = audit.findings

    out, err, code = run("import_audit", bundles["files"], "--as", "amy", "--head", HEAD, "--head", "CD" * 32)

    assert (err, code) == ("", 0)
    assert f"audit {audit.pk}: checked again, submission" in out
    assert "these checks failed: kept_heads." in out
    assert audit.newest_check.given == ["heads"]
    assert audit.checks.earliest("checked_at").findings == said_of_opening


def test_what_could_not_be_opened_is_told_by_every_check(frozen: Any, bundles: dict[str, Path], tmp_path: Path) -> None:
    package = Forged(bundles["files"].read_bytes())
    package["labels"][0]["annotator"] = "A9"
    path = tmp_path / "forged.zip"
    path.write_bytes(package.sealed(KEY))

    audit = open_bundle(path, auditor())
    open_bundle(path, auditor())

    assert said(audit, "opened") == ["fail", "fail"]


def test_the_key_is_that_of_the_signature_that_came_last(
    amy: Client, audit: Audit, bundles: dict[str, Path], tmp_path: Path
) -> None:
    """The same files can be signed by two: trust in one key is none in the other."""
    path = tmp_path / "resigned.zip"
    path.write_bytes(Forged(bundles["files"].read_bytes()).sealed(KEY))
    first = audit.key_id
    assert first in pages(amy, audit)[0]

    open_bundle(path, auditor(), Given(keys=KEY.public_key().public_bytes_raw().hex()))

    assert Audit.objects.get() == audit
    assert (audit.key_id != first, audit.key_trusted) == (True, True)
    assert [each.key_id for each in audit.checks.all()] == [first, audit.key_id]
    page = pages(amy, audit)[1]
    assert page.index(audit.key_id) < page.index(first)


@pytest.mark.parametrize("name", ["api-audits", "open-audit"])
def test_heads_that_are_none_are_refused_with_their_name(amy: Client, bundles: dict[str, Path], name: str) -> None:
    for heads, says in (("nonsense", "kept heads cannot be read"), ("a" * 20_001, "at most 20,000 characters")):
        answer = amy.post(reverse(name), {"bundle": uploaded(bundles["files"]), "heads": heads})
        assert says in text(answer, 400)
    assert not BundleUpload.objects.exists()


# --- what is not -----------------------------------------------------------------------------------------------------


def test_checks_are_neither_changed_nor_deleted(audit: Audit) -> None:
    for change in (lambda rows: rows.update(key_trusted=True), lambda rows: rows.delete()):
        with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
            change(AuditCheck.objects.all())


def former(audit: Audit) -> Person:
    bea = auditor("bea")
    actions.add_auditor(auditor(), audit, bea)
    Membership.objects.filter(person=bea).update(deactivated_at=F("joined_at"))
    return bea


def labels_the_sample(audit: Audit) -> Person:
    erin = add_people(actions.draw(audit, auditor(), 1))["erin"]
    Person.objects.filter(pk=erin.pk).update(is_superuser=True, is_staff=True)
    return Person.objects.get(pk=erin.pk)


@pytest.mark.parametrize("stranger", [lambda audit: auditor("bea"), former, labels_the_sample])
def test_who_may_not_read_the_audit_learns_nothing_and_adds_nothing(
    audit: Audit, bundles: dict[str, Path], stranger: Callable[[Audit], Person]
) -> None:
    with pytest.raises(AuditRefused) as refused:
        open_bundle(bundles["files"], stranger(audit), Given(chain=HEAD))

    assert str(refused.value) == "This bundle is already open here."
    assert audit.checks.count() == 1


def test_who_reads_the_audit_and_opens_no_bundles_is_refused_and_not_asked_to(
    audit: Audit, bundles: dict[str, Path]
) -> None:
    rita = testing.person("rita")
    actions.add_auditor(auditor(), audit, rita)

    assert client_of(rita).post(reverse("open-audit"), {"bundle": uploaded(bundles["files"])}).status_code == 403
    assert "upload the same bundle again" not in pages(client_of(rita), audit)[0]
    assert "upload the same bundle again" in pages(client_of(auditor()), audit)[0]


def test_who_runs_the_instance_is_named_so(amy: Client, audit: Audit, bundles: dict[str, Path]) -> None:
    root = Person.objects.create_superuser("root", "root@people.example", testing.PASSWORD)
    open_bundle(bundles["files"], root)
    actions.decide(root, audit, "query", "Why?")

    for page in pages(amy, audit):
        assert "by an operator of this instance. Supplied for this check" in page
        assert "by an operator of this instance, " in page


def test_a_bundle_with_other_files_is_not_checked_as_this_one(
    audit: Audit, bundles: dict[str, Path], tmp_path: Path
) -> None:
    package = Forged(bundles["files"].read_bytes())
    package["labels"][0]["facts"]["reasoning"] = "Another one."
    path = tmp_path / "changed.zip"
    path.write_bytes(package.unsealed())

    with pytest.raises(AuditRefused, match="fails the check manifest"):
        open_bundle(path, auditor())
    assert audit.checks.count() == 1


# --- two at once -----------------------------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_of_two_checks_at_once_none_is_lost(bundles: dict[str, Path]) -> None:
    amy = auditor()
    audit = open_bundle(bundles["files"], amy)

    made = at_once(2, lambda number: open_bundle(bundles["files"], amy, Given(chain=f"{number}" * 64)))

    assert made == [audit, audit]
    told = [each["says"] for check in audit.checks.all() for each in check.failed]
    assert len(told) == 2
    assert all(any(f"{number}" * 64 in says for says in told) for number in (0, 1))


def test_who_opens_a_bundle_twice_at_once_has_one_audit_and_both_checks(
    amy: Client, bundles: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    keep: Callable[..., None] = screenshots.keep_bytes

    def opened_meanwhile(sha256: str, content: bytes) -> None:
        monkeypatch.setattr(screenshots, "keep_bytes", keep)
        open_bundle(bundles["files"], auditor(), Given(chain=HEAD))
        keep(sha256, content)

    monkeypatch.setattr(screenshots, "keep_bytes", opened_meanwhile)
    amy.post(reverse("open-audit"), {"bundle": SimpleUploadedFile("b.zip", bundles["files"].read_bytes())})
    work()

    audit, upload = Audit.objects.get(), BundleUpload.objects.get()
    assert (upload.audit, upload.again, upload.refused) == (audit, True, "")
    assert said(audit, "chain_id") == ["fail", ""]
