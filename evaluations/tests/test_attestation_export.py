"""Attestations by command, page and API: of a bundle for maintainers, of a decided audit for its auditors."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.files.storage import default_storage
from django.test import Client
from django.urls import reverse

from annotation import workflow
from annotation.models import Person, Screenshot, Submission
from annotation.tests import testing
from annotation.tests.test_api_submissions import get as api_get
from annotation.tests.test_api_submissions import problem
from evaluations import signing
from evaluations.attestation import PROPERTIES
from evaluations.auditing import actions
from evaluations.auditing.importing import open_bundle
from evaluations.models import Audit, AuditDecision, SigningKey
from evaluations.tests.attesting import payload_of
from evaluations.tests.audited import auditor, bundle, client_of, relabel
from evaluations.tests.forging import once_for_the_same
from evaluations.tests.hand_made_bundle import HandMade, sha256
from evaluations.tests.test_export_commands import run
from evaluations.verifier import figures
from evaluations.verifier.agreement import collect_cases
from evaluations.verifier.attestations import ARCHIVE, AUDIT_RESULT
from evaluations.verifier.checking import Given

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("store")]
People = dict[str, Person]


@pytest.fixture(scope="module", autouse=True)
def figures_are_drawn_once() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(figures, "recompute_agreement", once_for_the_same(figures.recompute_agreement, collect_cases))
        yield


def get(person: Person | None, name: str, pk: Any, **query: str) -> Any:
    client = Client()
    if person is not None:
        client.force_login(person)
    return client.get(reverse(name, args=[pk]), query)


def digest_of(payload: Any, name: str) -> str:
    return next(str(each["digest"]["sha256"]) for each in payload["subject"] if each["name"] == name)


def attested(submission: Submission, path: Path) -> tuple[Path, str, int]:
    """Where the command wrote the attestation, what it said on stderr, and its exit code."""
    output = path.with_suffix(".intoto.json")
    _, err, code = run("export_attestation", submission.pk, "--bundle", path, "--output", output)
    return output, err, code


def verified(path: Path, attestation: Path, *more: Any) -> tuple[str, str, int]:
    return run("verify_evidence", path, "--attestation", attestation, *more)


# --- the command ----------------------------------------------------------------------------------------------------


def test_the_command_attests_the_zip_and_the_check_passes(frozen: Submission, tmp_path: Path) -> None:
    path = bundle(frozen, tmp_path)

    output, err, code = attested(frozen, path)

    assert (code, err) == (0, "")
    payload = payload_of(output.read_bytes())
    assert digest_of(payload, ARCHIVE) == sha256(path.read_bytes())
    out, _, code = verified(path, output)
    assert code == 0
    assert "PASS  attestation " in out


def test_a_key_that_was_rotated_meanwhile_is_known_here_without_keys(frozen: Submission, tmp_path: Path) -> None:
    path = bundle(frozen, tmp_path)
    signing.rotate()
    output, _, _ = attested(frozen, path)

    assert signing.active_key().key_id in output.read_text()
    assert "PASS  attestation " in verified(path, output)[0]


def test_given_keys_replace_those_of_the_instance(frozen: Submission, tmp_path: Path) -> None:
    path = bundle(frozen, tmp_path)
    signed_by = signing.active_key()
    signing.rotate()
    output, _, _ = attested(frozen, path)

    out, err, code = verified(path, output, "--keys", signed_by.public)

    assert code == 1
    assert "FAIL  attestation " in out
    assert err == "These checks failed: attestation."


def test_the_attestation_of_another_bundle_of_the_submission_is_caught(frozen: Submission, tmp_path: Path) -> None:
    path = bundle(frozen, tmp_path)
    (tmp_path / "other").mkdir()
    output, _, _ = attested(frozen, bundle(frozen, tmp_path / "other", screenshots="digests"))

    out, _, code = verified(path, output)

    assert code == 1
    assert "Its evidence.zip has a different SHA-256 from that of this bundle." in out


def test_before_the_freeze_nothing_is_attested(frozen: Submission, people: People, tmp_path: Path) -> None:
    path = bundle(frozen, tmp_path)
    workflow.reopen_submission(people["mira"], frozen, "A task was outdated.")

    output, err, code = attested(frozen, path)

    assert code == 1
    assert "labels_blind: The submission is not frozen." in err
    assert not output.exists()


def test_the_bundle_of_an_earlier_freeze_is_refused(frozen: Submission, people: People, tmp_path: Path) -> None:
    path = bundle(frozen, tmp_path)
    workflow.reopen_submission(people["mira"], frozen, "A task was outdated.")
    workflow.freeze(people["mira"], frozen)

    _, err, code = attested(frozen, path)

    assert code == 1
    assert "other_bundle: This is not a bundle of this submission and its current freeze." in err


def test_the_bundle_of_somebody_else_is_refused(frozen: Submission, tmp_path: Path) -> None:
    path = tmp_path / "theirs.zip"
    path.write_bytes(HandMade().complete().zipped())
    _, err, code = attested(frozen, path)
    assert code == 1
    assert "other_bundle" in err


def test_a_bundle_that_fails_a_check_is_refused_with_it(frozen: Submission, tmp_path: Path) -> None:
    path = bundle(frozen, tmp_path)
    signing.rotate()
    SigningKey.objects.filter(retired_at__isnull=False).update(retired_at=frozen.created_at)

    output, err, code = attested(frozen, path)

    assert code == 1
    assert "check_failed: The manifest was signed by a key of the submitter: Signed by key" in err
    assert err.endswith("Refused for 1 reason; nothing was written.")
    assert not output.exists()


def test_a_partial_bundle_is_refused(uncovered: Submission, tmp_path: Path) -> None:
    _, err, code = attested(uncovered, bundle(uncovered, tmp_path, partial=True))
    assert code == 1
    assert "check_failed: Every task of the catalogue has a trajectory" in err


@pytest.mark.parametrize("kind", ["none", "folder", "text"])
def test_what_is_no_bundle_is_refused(frozen: Submission, tmp_path: Path, kind: str) -> None:
    path = tmp_path / "bundle.zip"
    if kind == "folder":
        path.mkdir()
    elif kind == "text":
        path.write_text("no zip")
    _, err, code = attested(frozen, path)
    assert code == 1
    assert "bundle_unreadable" in err
    assert "Refused for 1 reason; nothing was written." in err


def test_wrong_usage_of_the_commands_exits_2(frozen: Submission, audit: Audit, tmp_path: Path) -> None:
    path = bundle(frozen, tmp_path)
    assert run("export_attestation", 999, "--bundle", path, "--output", tmp_path / "x")[2] == 2
    assert run("export_attestation", frozen.pk, "--bundle", path, "--output", tmp_path)[2] == 2
    assert run("attest_audit", 999, "--output", tmp_path / "x")[2] == 2
    assert run("attest_audit", audit.pk, "--output", tmp_path)[2] == 2
    assert run("verify_evidence", path, "--attestation", tmp_path / "none.json")[2] == 2


def test_a_key_that_cannot_be_opened_is_explained(frozen: Submission, tmp_path: Path, settings: Any) -> None:
    path = bundle(frozen, tmp_path)
    settings.SECRET_KEY = "another"
    _, err, code = attested(frozen, path)
    assert code == 1
    assert "rotate_signing_key" in err


# --- the page and the API -------------------------------------------------------------------------------------------


def test_page_and_api_attest_the_bundle_that_they_give(frozen: Submission, people: People, tmp_path: Path) -> None:
    zipped = get(people["mira"], "evidence-file", frozen.pk, without_judges="on").getvalue()
    (tmp_path / "bundle.zip").write_bytes(zipped)

    page = get(people["mira"], "evidence-attestation", frozen.pk, without_judges="on")
    by_api = api_get(people["mira"], f"/submissions/{frozen.pk}/attestation", judges="false")

    assert page["Content-Disposition"] == 'attachment; filename="shops.Careful-Agent.evidence.intoto.json"'
    assert page["Content-Type"] == "application/vnd.in-toto.human-protocol+dsse"
    assert "no-store" in page["Cache-Control"]
    assert page.content == by_api.content
    assert digest_of(payload_of(page.content), ARCHIVE) == sha256(zipped)
    (tmp_path / "attestation.json").write_bytes(page.content)
    assert verified(tmp_path / "bundle.zip", tmp_path / "attestation.json")[2] == 0


def test_page_and_api_refuse_a_bundle_that_differs_in_each_export(frozen: Submission, people: People) -> None:
    response = get(people["mira"], "evidence-attestation", frozen.pk, screenshots="digests")
    assert response.status_code == 409
    assert "attest that file with export_attestation" in response.content.decode()
    told = problem(api_get(people["mira"], f"/submissions/{frozen.pk}/attestation", screenshots="digests"), 409)
    assert [each["code"] for each in told["errors"]] == ["digest_changes"]


@pytest.mark.parametrize(("who", "code"), [("alice", 403), ("carol", 403), ("dave", 404), (None, 302)])
def test_only_maintainers_reach_the_attestation(frozen: Submission, people: People, who: str | None, code: int) -> None:
    assert get(people[who] if who else None, "evidence-attestation", frozen.pk).status_code == code
    if who:
        problem(api_get(people[who], f"/submissions/{frozen.pk}/attestation"), code)


def test_before_the_freeze_page_and_api_attest_not_even_a_part(submission: Submission, people: People) -> None:
    testing.label_all(people, submission, {"task_0000": [1, 0, 1]})
    response = get(people["mira"], "evidence-attestation", submission.pk, partial="on")
    assert response.status_code == 409
    assert "once the submission is frozen" in response.content.decode()
    told = problem(api_get(people["mira"], f"/submissions/{submission.pk}/attestation", partial="true"), 409)
    assert "labels_blind" in [each["code"] for each in told["errors"]]
    assert "Download attestation" not in get(people["mira"], "evidence", submission.pk).content.decode()


def test_a_partial_bundle_is_refused_on_page_and_api(uncovered: Submission, people: People) -> None:
    response = get(people["mira"], "evidence-attestation", uncovered.pk, partial="on")
    assert response.status_code == 409
    assert "Every task of the catalogue has a trajectory" in response.content.decode()
    told = problem(api_get(people["mira"], f"/submissions/{uncovered.pk}/attestation", partial="true"), 409)
    assert {each["code"] for each in told["errors"]} == {"check_failed"}
    problem(api_get(people["mira"], f"/submissions/{uncovered.pk}/attestation", pictures="files"), 400)


def test_a_screenshot_that_is_lost_meanwhile_is_reported(
    frozen: Submission, people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    from evaluations import download

    prepare = download.writing.prepare

    def prepare_and_lose(*args: Any, **options: Any) -> Any:
        found = prepare(*args, **options)
        lost = Screenshot.objects.order_by("sha256")[0].sha256
        default_storage.delete(f"originals/{lost[:2]}/{lost}")
        return found

    monkeypatch.setattr(download.writing, "prepare", prepare_and_lose)
    response = get(people["mira"], "evidence-attestation", frozen.pk)
    assert response.status_code == 409
    assert "cannot be read from the image store" in response.content.decode()


# --- audits ---------------------------------------------------------------------------------------------------------


def decide(audit: Audit, outcome: AuditDecision.Outcome = AuditDecision.Outcome.ACCEPT) -> AuditDecision:
    return actions.decide(auditor(), audit, outcome, "As the sample shows.")


def predicate_of(audit: Audit) -> Any:
    payload = payload_of(get(auditor(), "audit-attestation", audit.pk).content)
    assert (payload["predicateType"], digest_of(payload, "MANIFEST.json")) == (AUDIT_RESULT, audit.manifest)
    return payload["predicate"]


def short(properties: list[str]) -> set[str]:
    assert set(properties) <= PROPERTIES.keys()
    return {each.removeprefix("WEBVERDICT_") for each in properties}


def test_an_audit_is_attested_once_it_is_decided(audit: Audit, tmp_path: Path) -> None:
    client, address, output = client_of(auditor()), reverse("audit", args=[audit.pk]), tmp_path / "audit.json"
    assert get(auditor(), "audit-attestation", audit.pk).status_code == 409
    told = problem(api_get(auditor(), f"/audits/{audit.pk}/attestation"), 409)
    assert told["detail"].startswith("Nobody has decided this audit yet.")
    assert run("attest_audit", audit.pk, "--output", output)[2] == 1
    assert "Download attestation" not in client.get(address).content.decode()

    decision = decide(audit)

    assert "Download attestation" in client.get(address).content.decode()
    page = get(auditor(), "audit-attestation", audit.pk)
    assert page["Content-Disposition"].endswith('.audit.intoto.json"')
    assert run("attest_audit", audit.pk, "--output", output)[2] == 0
    assert output.read_bytes() == page.content == api_get(auditor(), f"/audits/{audit.pk}/attestation").content
    found = predicate_of(audit)
    assert found["verifier"] == {"id": f"urn:webverdict:auditor:v1:{signing.active_key().key_id}"}
    assert found["timeCreated"] == decision.decided_at.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def test_it_lists_only_what_the_checks_show(audit: Audit) -> None:
    """The fixture's bundle was signed elsewhere and opened without keys, so its signer and its time are not known."""
    decide(audit, AuditDecision.Outcome.QUERY)
    assert short(predicate_of(audit)["properties"]) == {"BUNDLE_UNCHANGED", "RULES_FOLLOWED"}
    decide(audit)
    assert short(predicate_of(audit)["properties"]) == {"BUNDLE_UNCHANGED", "RULES_FOLLOWED", "ACCEPTED"}


def test_it_lists_the_signer_and_the_time_when_they_are_known(frozen: Submission, tmp_path: Path) -> None:
    head = frozen.events.order_by("-sequence").values_list("hash", flat=True)[0]
    audit = open_bundle(bundle(frozen, tmp_path), auditor(), Given(keys=signing.published(), heads=[head]))
    decide(audit)
    shown = short(predicate_of(audit)["properties"])
    assert {"BUNDLE_UNCHANGED", "RULES_FOLLOWED", "SIGNER_KNOWN", "ACCEPTED"} <= shown
    times = next(each["result"] for each in audit.findings if each["name"] == "times")
    assert ("TIME_FIXED" in shown) == (times == "pass")


def test_it_lists_the_sample_once_it_is_frozen(audit: Audit) -> None:
    sample = actions.draw(audit, auditor(), 2)
    decide(audit)
    assert "SAMPLE_RELABELLED" not in short(predicate_of(audit)["properties"])

    relabel(sample)

    audit = Audit.objects.get(pk=audit.pk)
    found = predicate_of(audit)
    assert "SAMPLE_RELABELLED" in short(found["properties"])
    sample.refresh_from_db()
    assert sample.frozen_at is not None
    assert found["timeCreated"] == sample.frozen_at.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def test_an_audit_without_anything_that_passed_is_not_attested(audit: Audit) -> None:
    check = audit.newest_check
    failed = [each | {"result": "fail"} for each in check.findings]
    audit.checks.create(checked_by=auditor(), checked_at=check.checked_at, key_trusted=False, findings=failed)
    decide(audit, AuditDecision.Outcome.REJECT)
    response = get(auditor(), "audit-attestation", audit.pk)
    assert response.status_code == 409
    assert "there is nothing to attest" in response.content.decode()


@pytest.mark.parametrize(("who", "code"), [("dave", 404), (None, 302)])
def test_only_auditors_reach_the_attestation_of_an_audit(audit: Audit, who: str | None, code: int) -> None:
    decide(audit)
    person = testing.person(who) if who else None
    assert get(person, "audit-attestation", audit.pk).status_code == code
    if person:
        problem(api_get(person, f"/audits/{audit.pk}/attestation"), code)


def test_people_who_label_the_sample_reach_no_attestation_of_the_audit(audit: Audit) -> None:
    sample = actions.draw(audit, auditor(), 2)
    decide(audit)
    erin = testing.person("erin", is_staff=True)
    workflow.add_member(auditor(), sample, erin, "annotator")
    assert get(erin, "audit-attestation", audit.pk).status_code == 404
    problem(api_get(erin, f"/audits/{audit.pk}/attestation"), 404)


def test_the_result_of_an_audit_is_no_attestation_of_the_protocol(frozen: Submission, tmp_path: Path) -> None:
    path = bundle(frozen, tmp_path)
    audit = open_bundle(path, auditor())
    decide(audit)
    run("attest_audit", audit.pk, "--output", tmp_path / "audit.json")
    out, _, code = verified(path, tmp_path / "audit.json")
    assert code == 1
    assert "This is the result of an audit." in out
