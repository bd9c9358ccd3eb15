"""The zip of a bundle: what is in it, byte for byte the same, of a known size, whole or not at all."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage

from annotation import screenshots, workflow
from annotation.models import (
    Attachment,
    KeyPoint,
    Membership,
    Person,
    Redaction,
    Screenshot,
    Step,
    Submission,
    Task,
    Trajectory,
)
from annotation.tests import testing
from evaluations import exports, signing
from evaluations.evidence.companions import PARTS
from evaluations.evidence.writing import Evidence, prepare, write
from evaluations.exports import ExportRefused, ExportStopped
from evaluations.tests.builders import judged
from evaluations.tests.checks import check
from evaluations.verifier.documents import OF_JUDGES, read_bundle
from evaluations.verifier.findings import Result
from evaluations.verifier.package import open_package
from evaluations.verifier.signature import verify

People = dict[str, Person]


@pytest.fixture(autouse=True)
def own_store(tmp_path: Path, settings: Any) -> None:
    """What is broken here is not found by other tests."""
    settings.MEDIA_ROOT = tmp_path / "images"


def made(evidence: Evidence) -> bytes:
    return b"".join(evidence.chunks())


def opened_zip(evidence: Evidence) -> zipfile.ZipFile:
    return zipfile.ZipFile(io.BytesIO(made(evidence)))


def document(package: zipfile.ZipFile, name: str) -> Any:
    return json.loads(package.read(name))


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def covered(submission: Submission, person: Person) -> Redaction:
    """The first screenshot of a submission with another picture in its place."""
    original = Screenshot.objects.filter(steps__trajectory__submission=submission).order_by("sha256")[0]
    return workflow.redact(person, submission, original, [[0, 0, 50, 20]], "It shows an address.")


def removed(sha256: str) -> None:
    default_storage.delete(f"originals/{sha256[:2]}/{sha256}")


def replaced(sha256: str, data: bytes) -> None:
    removed(sha256)
    default_storage.save(f"originals/{sha256[:2]}/{sha256}", ContentFile(data))


# --- what is in it --------------------------------------------------------------------------------------------------


def test_the_manifest_lists_every_file_with_its_digest_and_size(frozen: Submission) -> None:
    package = opened_zip(prepare(frozen))
    stated = document(package, "MANIFEST.json")["files"]
    there = {info.filename: info for info in package.infolist()}
    assert [each["path"] for each in stated] == sorted(set(there) - {"MANIFEST.json", "SIGNATURE.json"})
    for each in stated:
        assert (each["sha256"], each["size"]) == (sha256(package.read(each["path"])), there[each["path"]].file_size)


def test_the_signature_is_over_the_manifest_by_the_active_key(frozen: Submission) -> None:
    package = opened_zip(prepare(frozen))
    stated = document(package, "SIGNATURE.json")
    assert stated["key_id"] == signing.active_key().key_id
    public, signature = bytes.fromhex(stated["public_key"]), bytes.fromhex(stated["signature"])
    assert verify(public, package.read("MANIFEST.json"), signature)


def test_the_documents_read_back_are_those_of_the_rows(frozen: Submission, tmp_path: Path) -> None:
    judged(frozen.benchmark, repetitions=1)
    evidence = prepare(frozen)
    write(evidence, tmp_path / "bundle.zip")
    with open_package(str(tmp_path / "bundle.zip")) as package:
        assert read_bundle(package) == evidence.bundle


def test_the_human_labels_are_the_file_of_the_other_export(frozen: Submission) -> None:
    other = b"".join(exports.prepare(frozen, exports.ExportFormat.HUMAN_LABEL).chunks())
    assert opened_zip(prepare(frozen)).read("human-label.json") == other


def test_every_claim_of_a_well_kept_submission_holds(frozen: Submission) -> None:
    stated = document(opened_zip(prepare(frozen)), "claims.json")["claims"]
    assert [claim for claim in stated if claim["result"] == "fail"] == []
    assert "coverage" in [claim["name"] for claim in stated]


def test_nothing_fails_when_the_bundle_is_checked(frozen: Submission, people: People, tmp_path: Path) -> None:
    covered(frozen, people["mira"])
    judged(frozen.benchmark, repetitions=2)
    write(prepare(frozen), tmp_path / "bundle.zip")
    findings = check(str(tmp_path / "bundle.zip"), signing.published())
    assert [finding for finding in findings if finding.result is Result.FAIL] == []


def test_screenshots_and_attachments_are_the_originals(db: Any, tmp_path: Path) -> None:
    answered = testing.answered(tmp_path / "answers", 2)
    package = opened_zip(prepare(answered, partial=True))
    attached = {f"attachments/{row.sha256}" for row in Attachment.objects.all()}
    assert attached
    assert attached <= set(package.namelist())
    for name in attached:
        assert package.read(name) == screenshots.original(name.removeprefix("attachments/"))


def test_with_digests_there_is_no_picture_and_the_documents_say_so(frozen: Submission, people: People) -> None:
    covered(frozen, people["mira"])
    package = opened_zip(prepare(frozen, screenshots="digests"))
    assert [name for name in package.namelist() if name.startswith(("screenshots/", "attachments/"))] == []
    assert document(package, "submission.json")["contents"]["screenshots"] == "digests"
    assert "only their SHA-256 are included" in package.read("README.md").decode()


def test_without_judges_there_is_no_file_of_them(frozen: Submission) -> None:
    judged(frozen.benchmark, repetitions=1)
    package = opened_zip(prepare(frozen, judges=False))
    assert set(OF_JUDGES).isdisjoint(package.namelist())
    assert set(OF_JUDGES) < set(opened_zip(prepare(frozen)).namelist())


def test_a_covered_picture_stands_for_its_original(frozen: Submission, people: People) -> None:
    redaction = covered(frozen, people["mira"])
    package = opened_zip(prepare(frozen))
    assert sha256(package.read(f"screenshots/{redaction.original}.redacted.png")) == redaction.redacted
    assert f"screenshots/{redaction.original}.png" not in package.namelist()


def test_a_covered_picture_is_not_attached_either(frozen: Submission, people: People) -> None:
    redaction = covered(frozen, people["mira"])
    trajectory = Trajectory.objects.filter(submission=frozen).order_by("position")[0]
    Attachment.objects.create(
        trajectory=trajectory, kind="cached_page", name="page.png", sha256=redaction.original, size=1
    )
    assert f"attachments/{redaction.original}" not in opened_zip(prepare(frozen)).namelist()


def test_a_redaction_that_was_taken_back_shows_the_original(frozen: Submission, people: People) -> None:
    redaction = covered(frozen, people["mira"])
    picture = Screenshot.objects.get(sha256=redaction.original)
    workflow.redact(people["mira"], frozen, picture, [], "It was nobody's address.")
    assert f"screenshots/{redaction.original}.png" in opened_zip(prepare(frozen)).namelist()


def test_the_readme_tells_of_every_file_and_of_no_other(frozen: Submission) -> None:
    package = opened_zip(prepare(frozen, judges=False))
    text = package.read("README.md").decode()
    for part in PARTS:
        there = any(name == part or (part[-1] == "/" and name.startswith(part)) for name in package.namelist())
        assert (f"| `{part}` |" in text) is there
    assert "python3 -I verify.py . --keys" in text
    assert "What it cannot prove" in text


def test_the_metadata_list_every_file(frozen: Submission) -> None:
    package = opened_zip(prepare(frozen))
    graph = {each["@id"]: each for each in document(package, "ro-crate-metadata.json")["@graph"]}
    listed = {part["@id"] for part in graph["./"]["hasPart"]}
    assert listed == set(package.namelist()) - {"ro-crate-metadata.json"}
    for name in listed - {"MANIFEST.json", "SIGNATURE.json"}:
        data = package.read(name)
        assert (graph[name]["sha256"], graph[name]["contentSize"]) == (sha256(data), str(len(data)))
    assert graph["./"]["datePublished"] == document(package, "submission.json")["frozen_at"]
    assert "SoftwareSourceCode" in graph["verify.py"]["@type"]


# --- the same bytes, of a known size --------------------------------------------------------------------------------


def test_the_same_state_gives_the_same_bytes(
    frozen: Submission, people: People, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    covered(frozen, people["mira"])
    judged(frozen.benchmark, repetitions=2)
    first = made(prepare(frozen))
    for model in (Step, Screenshot, Task, KeyPoint, Membership):  # PostgreSQL finds rows in the order of their writing
        for row in model.objects.order_by("-pk"):
            row.save()
    monkeypatch.setenv("TZ", "Pacific/Kiritimati")
    settings.TIME_ZONE = "Pacific/Kiritimati"
    assert made(prepare(Submission.objects.get(pk=frozen.pk))) == first


@pytest.mark.parametrize("pictures", ["files", "digests"])
@pytest.mark.parametrize("judges", [True, False])
def test_the_size_is_known_before(frozen: Submission, pictures: str, judges: bool) -> None:
    evidence = prepare(frozen, screenshots=pictures, judges=judges)
    assert evidence.size == len(made(evidence))


def test_progress_ends_at_the_size(frozen: Submission) -> None:
    heard: list[tuple[int, int]] = []
    evidence = prepare(frozen)
    for _ in evidence.chunks(lambda done, total: heard.append((done, total))):
        pass
    assert heard[-1] == (evidence.size, evidence.size)
    assert [done for done, _ in heard] == sorted(done for done, _ in heard)


def test_a_picture_is_never_in_memory_as_a_whole(frozen: Submission) -> None:
    data = bytes(5_000_000)
    screenshots.keep_bytes(sha256(data), data)
    Attachment.objects.create(
        trajectory=frozen.trajectories.order_by("position")[0],
        kind="network_trace",
        name="network.har",
        sha256=sha256(data),
        size=len(data),
    )
    assert max(len(chunk) for chunk in prepare(frozen).chunks()) < 1_200_000


# --- refused, or stopped --------------------------------------------------------------------------------------------


def test_an_incomplete_submission_is_refused_with_every_reason(submission: Submission) -> None:
    with pytest.raises(ExportRefused) as refused:
        prepare(submission)
    assert [problem.code for problem in refused.value.problems] == ["labels_missing", "labels_missing", "not_frozen"]


def test_a_partial_bundle_says_what_is_missing(submission: Submission, people: People) -> None:
    testing.label_all(people, submission, {"task_0000": [1, 0, 1]})
    evidence = prepare(submission, partial=True)
    package = opened_zip(evidence)
    stated = document(package, "submission.json")
    assert stated["partial"] is True
    assert "dispute_open" in [problem["code"] for problem in stated["missing"]]
    assert document(package, "human-label.json")["partial"] is True
    failing = [claim["name"] for claim in document(package, "claims.json")["claims"] if claim["result"] == "fail"]
    assert {"disputes", "frozen"} <= set(failing)
    assert evidence.file_name == "shops.Careful-Agent.evidence.partial.zip"


def test_a_submission_for_practice_is_refused_however_it_is_asked_for(submission: Submission) -> None:
    Submission.objects.filter(pk=submission.pk).update(practice=True)
    with pytest.raises(ExportRefused, match="practice submission"):
        prepare(Submission.objects.get(pk=submission.pk), partial=True, accept_names=True)


def test_texts_with_a_members_name_are_refused_unless_they_are_accepted(submission: Submission, people: People) -> None:
    first = submission.trajectories.order_by("position")[0]
    testing.label(people["alice"], first, reasoning="Carol told me that it is right.")
    with pytest.raises(ExportRefused) as refused:
        prepare(submission, partial=True)
    assert {problem.code for problem in refused.value.problems} == {"name_in_text"}
    assert prepare(submission, partial=True, accept_names=True).bundle.labels


def test_a_key_that_cannot_be_opened_refuses_before_anything_is_sent(frozen: Submission, settings: Any) -> None:
    signing.active_key()
    settings.SECRET_KEY = "another one"
    with pytest.raises(ExportRefused, match="cannot be opened"):
        prepare(frozen)


def test_a_lost_picture_stops_the_bundle_and_leaves_nothing(frozen: Submission, tmp_path: Path) -> None:
    evidence = prepare(frozen)
    removed(Screenshot.objects.order_by("sha256")[0].sha256)
    with pytest.raises(ExportStopped, match="cannot be read from the image store"):
        write(evidence, tmp_path / "bundle.zip")
    assert list(tmp_path.glob("*.zip")) + list(tmp_path.glob(".export-*")) == []


@pytest.mark.parametrize("data", [b"another", b"x" * 100_000])
def test_a_changed_picture_stops_the_bundle_and_leaves_nothing(frozen: Submission, tmp_path: Path, data: bytes) -> None:
    evidence = prepare(frozen)
    replaced(Screenshot.objects.order_by("sha256")[0].sha256, data)
    with pytest.raises(ExportStopped, match="is damaged in the image store"):
        write(evidence, tmp_path / "bundle.zip")
    assert list(tmp_path.glob("*.zip")) + list(tmp_path.glob(".export-*")) == []
