"""Checking a whole bundle that was made by hand, and changing one thing of its package at a time."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from evaluations.evidence.documents import protocol
from evaluations.evidence.verification import RENDERERS
from evaluations.tests.checks import check
from evaluations.tests.hand_made_bundle import KEY, HandMade, explained, picture, sha256, signature, signed, zipped
from evaluations.verifier import checking
from evaluations.verifier.canonical import canonical_json, digest
from evaluations.verifier.findings import Finding, Result
from evaluations.verifier.rules import CLAIMS, PROTOCOL_DIGESTS
from evaluations.verifier.signature import BadKeys

pytestmark = pytest.mark.slow

PUBLIC = KEY.public_key().public_bytes_raw()
OTHER = Ed25519PrivateKey.from_private_bytes(bytes(32))
KEYS = {
    "keys": [
        {"key_id": "0" * 16, "algorithm": "Ed25519", "public_key": "11" * 32, "created_at": "x", "retired_at": None},
        {"key_id": "1" * 16, "algorithm": "Ed25519", "public_key": PUBLIC.hex(), "created_at": "x", "retired_at": None},
    ]
}


@pytest.fixture(scope="module")
def entries() -> dict[str, bytes]:
    """The files of the bundle, without manifest and signature."""
    return HandMade().complete().entries()


@pytest.fixture
def checked(tmp_path: Path) -> Callable[..., dict[str, Finding]]:
    """The findings about these files by name."""

    def findings(files: dict[str, bytes], **given: Any) -> dict[str, Finding]:
        path = tmp_path / "bundle.zip"
        path.write_bytes(zipped(files))
        return {finding.name: finding for finding in check(str(path), **{"renderers": RENDERERS} | given)}

    return findings


def failing(findings: dict[str, Finding]) -> list[str]:
    return [name for name, finding in findings.items() if finding.result is Result.FAIL]


Checked = Callable[..., dict[str, Finding]]


def test_nothing_fails_of_a_bundle_that_is_as_it_was_made(entries: dict[str, bytes], checked: Checked) -> None:
    findings = checked(signed(entries), keys=KEYS)
    assert failing(findings) == []
    assert findings["signature"].result is Result.PASS
    assert list(findings)[:3] == ["manifest", "signature", "shapes"]
    assert list(findings)[3 : 3 + len(CLAIMS)] == list(CLAIMS)
    assert list(findings)[-1] == "limits"


def test_a_changed_file_is_found(entries: dict[str, bytes], checked: Checked) -> None:
    findings = checked(signed(entries) | {"flags.jsonl": b" "})
    assert {"manifest", "shapes"} == set(failing(findings))
    assert findings["manifest"].places == ("flags.jsonl",)


def test_a_file_that_is_not_listed_is_found(entries: dict[str, bytes], checked: Checked) -> None:
    findings = checked(signed(entries) | {"labels-2.jsonl": b"hello"})
    assert failing(findings) == ["manifest", "companions"]  # the metadata list all files too
    assert findings["manifest"].places == ("labels-2.jsonl",)


def test_a_listed_file_that_is_missing_is_found(entries: dict[str, bytes], checked: Checked) -> None:
    files = signed(entries | {"verify.py": b"hello"})
    del files["verify.py"]
    assert failing(checked(files)) == ["manifest", "companions"]


def test_a_listed_file_that_no_bundle_has_is_found(entries: dict[str, bytes], checked: Checked) -> None:
    findings = checked(signed(entries | {"run_me.exe": b"MZ"}))
    assert findings["manifest"].places == ("run_me.exe",)


@pytest.mark.parametrize(
    "change",
    [
        lambda manifest: manifest["files"].reverse(),
        lambda manifest: manifest["files"].append(manifest["files"][-1]),
        lambda manifest: manifest["files"][0].update(size=1),
        lambda manifest: manifest["files"][0].update(sha256="0" * 64),
        lambda manifest: manifest["files"].pop(),
        lambda manifest: manifest.update(format="webverdict-evidence-0"),
    ],
)
def test_a_manifest_that_is_signed_and_wrong_is_found(
    change: Callable[[Any], None], entries: dict[str, bytes], checked: Checked
) -> None:
    manifest = json.loads(signed(entries)["MANIFEST.json"])
    change(manifest)
    data = json.dumps(manifest, sort_keys=True, separators=(",", ":")).encode() + b"\n"
    files = signed(entries) | {"MANIFEST.json": data, "SIGNATURE.json": signature(data)}
    assert failing(checked(files, keys=KEYS)) == ["manifest"]


def test_a_manifest_in_another_spelling_is_found(entries: dict[str, bytes], checked: Checked) -> None:
    data = json.dumps(json.loads(signed(entries)["MANIFEST.json"]), indent=1).encode()
    files = signed(entries) | {"MANIFEST.json": data, "SIGNATURE.json": signature(data)}
    assert failing(checked(files)) == ["manifest"]


@pytest.mark.parametrize("name", ["MANIFEST.json", "SIGNATURE.json"])
def test_a_bundle_without_manifest_or_signature_is_not_signed(
    name: str, entries: dict[str, bytes], checked: Checked
) -> None:
    files = signed(entries)
    del files[name]
    findings = checked(files)
    assert "signature" in failing(findings)
    assert ("manifest" in failing(findings)) == (name == "MANIFEST.json")


# --- signature -----------------------------------------------------------------------------------------------------


def test_without_keys_the_signature_is_noted_only(entries: dict[str, bytes], checked: Checked) -> None:
    finding = checked(signed(entries))["signature"]
    assert finding.result is Result.NOTE
    assert finding.says == (
        f"Signed by key {sha256(PUBLIC)[:16]}; to compare it with the submitter's published keys, give --keys."
    )


@pytest.mark.parametrize("keys", [KEYS, KEYS["keys"], PUBLIC.hex(), PUBLIC.hex().upper() + "\n", json.dumps(KEYS)])
def test_keys_are_taken_in_every_form(keys: Any, entries: dict[str, bytes], checked: Checked) -> None:
    assert checked(signed(entries), keys=keys)["signature"].result is Result.PASS


def test_a_retired_key_is_noted_in_the_sentence(entries: dict[str, bytes], checked: Checked) -> None:
    keys = [{"public_key": PUBLIC.hex(), "retired_at": "2026-02-01T00:00:00.000000+00:00"}]
    finding = checked(signed(entries), keys=keys)["signature"]
    assert finding.result is Result.PASS
    assert "retired at 2026-02-01" in finding.says


def test_a_signature_by_somebody_else_is_found(entries: dict[str, bytes], checked: Checked) -> None:
    findings = checked(signed(entries, OTHER), keys=KEYS)
    assert failing(findings) == ["signature"]
    assert "not one of the 2 given keys" in findings["signature"].says


@pytest.mark.parametrize(
    "change",
    [
        {"signature": "0" * 128},
        {"public_key": OTHER.public_key().public_bytes_raw().hex()},
        {"key_id": "0" * 16},
        {"signed": "README.md"},
        {"algorithm": "none"},
        {"signature": "zz"},
        {"more": 1},
    ],
)
def test_a_signature_that_was_tampered_with_is_found(
    change: dict[str, Any], entries: dict[str, bytes], checked: Checked
) -> None:
    files = signed(entries)
    files["SIGNATURE.json"] = json.dumps(json.loads(files["SIGNATURE.json"]) | change).encode()
    assert failing(checked(files, keys=KEYS)) == ["signature"]


def test_a_signature_over_another_manifest_is_found(entries: dict[str, bytes], checked: Checked) -> None:
    files = signed(entries)
    assert failing(checked(files | {"SIGNATURE.json": signature(b"another")}, keys=KEYS)) == ["signature"]


@pytest.mark.parametrize("keys", ["", "abc", "{}", '{"keys": []}', '{"keys": [1]}', "[" * 100_000, {"keys": [{}]}, 7])
def test_keys_that_are_none_are_refused(keys: Any, entries: dict[str, bytes], checked: Checked) -> None:
    with pytest.raises(BadKeys):
        checked(signed(entries), keys=keys)


# --- pictures ------------------------------------------------------------------------------------------------------


def screenshot(entries: dict[str, bytes]) -> str:
    return min(name for name in entries if name.startswith("screenshots/"))


def test_a_screenshot_with_other_content_is_found(entries: dict[str, bytes], checked: Checked) -> None:
    findings = checked(signed(entries | {screenshot(entries): b"another picture"}))
    assert failing(findings) == ["pictures"]
    assert findings["pictures"].places == (screenshot(entries),)


@pytest.mark.parametrize("prefix", ["screenshots/", "attachments/"])
def test_a_missing_file_of_a_trajectory_is_found(prefix: str, entries: dict[str, bytes], checked: Checked) -> None:
    gone = min(name for name in entries if name.startswith(prefix))
    findings = checked(signed({name: data for name, data in entries.items() if name != gone}))
    assert failing(findings) == ["pictures"]
    assert findings["pictures"].places == (gone,)


@pytest.mark.parametrize("name", [f"screenshots/{'0' * 64}.png", f"attachments/{'0' * 64}"])
def test_a_file_of_no_trajectory_is_found(name: str, entries: dict[str, bytes], checked: Checked) -> None:
    assert failing(checked(signed(entries | {name: b""}))) == ["pictures"]


def test_a_size_that_a_step_makes_up_is_found(checked: Checked) -> None:
    made = HandMade()
    made.documents["trajectories.jsonl"][0]["steps"][0]["screenshot"]["size"] += 1
    assert failing(checked(signed(made.complete().entries()))) == ["pictures"]


def redacted(made: HandMade, covered: bytes = b"", **change: Any) -> str:
    """Cover a part of the first picture; the digest of the original."""
    covered = covered or picture(7)
    original = made.documents["trajectories.jsonl"][0]["steps"][0]["screenshot"]["sha256"]
    at = made.tick()
    line = {"original": original, "revision": 1, "boxes": [[0, 0, 2, 2]], "reason": "A face.", "size": len(covered)}
    line |= {"redacted": sha256(covered), "redacted_by": "M1", "redacted_at": at}
    line |= change
    made.documents["redactions.jsonl"].append(line)
    payload = {name: line[name] for name in ("original", "revision", "boxes", "reason", "redacted", "size")}
    made.event("screenshot_redacted", "M1", **payload)
    made.rechain()
    del made.files[f"screenshots/{original}.png"]
    made.files[f"screenshots/{original}.redacted.png"] = covered
    return original


def test_a_redacted_picture_is_there_in_place_of_its_original(checked: Checked) -> None:
    made = HandMade()
    original = redacted(made)
    findings = checked(signed(made.complete().entries()))
    assert failing(findings) == []
    assert findings["redacted"].result is Result.NOTE
    assert findings["redacted"].places == (original,)
    # A box of 2 x 2 of the 4 x 3 pixels; the freeze was the event before.
    says = findings["redacted"].says
    assert says.startswith("Parts of 1 screenshot are covered: at most 33% of one. Covered after the freeze: 1.")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"boxes": [[3, 0, 2, 2]]}, "outside the 4 x 3 pixels"),
        ({"boxes": [[0, 2, 1, 2]]}, "outside the 4 x 3 pixels"),
        ({"boxes": [[0, 0, 0, 2]]}, "outside the 4 x 3 pixels"),
        ({"covered": picture(7)[:20]}, "is not a PNG of 4 x 3 pixels"),
        ({"covered": picture(7).replace(b"\0\0\0\4", b"\0\0\0\5", 1)}, "is not a PNG of 4 x 3 pixels"),
        ({"covered": b"GIF89a" + bytes(90)}, "is not a PNG of 4 x 3 pixels"),
    ],
)
def test_a_redaction_that_covers_no_part_of_its_picture_is_found(
    change: dict[str, Any], says: str, checked: Checked
) -> None:
    made = HandMade()
    redacted(made, **change)
    findings = checked(signed(made.complete().entries()))
    assert "pictures" in failing(findings)
    assert says in findings["pictures"].says


def test_an_attachment_is_not_hidden_as_a_picture(checked: Checked) -> None:
    made = HandMade()
    attached = made.documents["trajectories.jsonl"][0]["attachments"][0]["sha256"]
    redacted(made)
    made.documents["redactions.jsonl"][0]["original"] = attached
    del made.files[f"attachments/{attached}"]
    findings = checked(signed(made.complete().entries()))
    assert f"redaction 1 of {attached} has no screenshot of a step" in findings["pictures"].says


def test_a_screenshot_is_a_picture_of_its_type(checked: Checked) -> None:
    made = HandMade()
    shown = made.documents["trajectories.jsonl"][0]["steps"][0]["screenshot"]
    made.files[f"screenshots/{shown['sha256']}.jpg"] = made.files.pop(f"screenshots/{shown['sha256']}.png")
    shown["media_type"] = "image/jpeg"
    findings = checked(signed(made.complete().entries()))
    assert "is not an image of the type image/jpeg" in findings["pictures"].says


def test_the_protocol_is_that_of_its_version_word_for_word(checked: Checked) -> None:
    made = HandMade()
    made.documents["protocol.json"]["verdicts"][0]["definition"] += " Unless it was close."
    assert failing(checked(signed(made.complete().entries()))) == ["protocol"]


@pytest.mark.parametrize("version", PROTOCOL_DIGESTS)
def test_the_pinned_protocol_is_the_one_that_is_written(version: int) -> None:
    assert digest(protocol(version)) == PROTOCOL_DIGESTS[version]


@pytest.mark.parametrize(("same", "result"), [(True, Result.FAIL), (False, Result.NOTE)])
@pytest.mark.parametrize("name", ["stated_claims", "report_page", "companions"])
def test_another_wording_fails_only_where_the_bundle_is_of_this_version(
    name: str, same: bool, result: Result, tmp_path: Path
) -> None:
    made = HandMade().complete()
    made.documents["claims.json"]["claims"][0]["says"] = "Worded by another version."
    made.files |= {"reports/report.html": b"<p>Another page.", "README.md": b"# Another text\n"}
    made.files["verify.py"] = b"this" if same else b"another"
    (tmp_path / "bundle.zip").write_bytes(zipped(signed(made.entries())))
    given = checking.Given(program=b"this")
    outcome = checking.check_bundle(str(tmp_path / "bundle.zip"), given, renderers=RENDERERS)
    assert {each.name: each.result for each in outcome.findings}[name] is result
    assert outcome.good is not same


@pytest.mark.parametrize("gone", ["README.md", "ro-crate-metadata.json", "schemas/"])
def test_what_explains_a_bundle_is_there_whichever_version_made_it(gone: str, tmp_path: Path) -> None:
    entries = explained(HandMade().complete().entries() | {"verify.py": b"another"})
    left = {name: data for name, data in entries.items() if not name.startswith(gone)}
    (tmp_path / "bundle.zip").write_bytes(zipped(signed(left, explain=False)))
    outcome = checking.check_bundle(str(tmp_path / "bundle.zip"), checking.Given(program=b"this"))
    failing = {each.name: each.places for each in outcome.findings if each.result is Result.FAIL}
    assert failing == {"companions": (gone,)}


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("schemas/labels.schema.json", {}),
        ("schemas/notes.schema.json", {"schemas/notes.schema.json": b"{}"}),
        ("schemas/labels.schema.json", {"schemas/label.schema.json": b"{}"}),
    ],
)
def test_schemas_have_their_names_whichever_version_made_the_bundle(
    name: str, other: dict[str, bytes], tmp_path: Path
) -> None:
    entries = explained(HandMade().complete().entries() | {"verify.py": b"another"})
    left = {path: data for path, data in entries.items() if path != name} | other
    (tmp_path / "bundle.zip").write_bytes(zipped(signed(left, explain=False)))
    outcome = checking.check_bundle(str(tmp_path / "bundle.zip"), checking.Given(program=b"this"))
    failing = {each.name: each.places for each in outcome.findings if each.result is Result.FAIL}
    assert failing == {"companions": tuple(sorted({name, *other}))}


def test_other_shapes_of_another_version_are_said_to_be_perhaps_of_it(tmp_path: Path) -> None:
    made = HandMade().complete()
    made.files["verify.py"] = b"another"
    made.documents["submission.json"]["mood"] = "good"
    (tmp_path / "bundle.zip").write_bytes(zipped(signed(made.entries())))
    for program, told_of in ((b"this", True), (b"another", False)):
        outcome = checking.check_bundle(str(tmp_path / "bundle.zip"), checking.Given(program=program))
        [shapes] = [each for each in outcome.findings if each.name == "shapes"]
        assert shapes.result is Result.FAIL
        assert ("get that version of this program" in shapes.says) is told_of


def test_another_result_fails_whoever_made_the_bundle(tmp_path: Path) -> None:
    made = HandMade().complete()
    made.documents["claims.json"]["claims"][0]["result"] = "note"
    made.files["verify.py"] = b"another"
    (tmp_path / "bundle.zip").write_bytes(zipped(signed(made.entries())))
    outcome = checking.check_bundle(str(tmp_path / "bundle.zip"), checking.Given(program=b"this"))
    assert [each.name for each in outcome.findings if each.result is Result.FAIL] == ["stated_claims"]


def test_a_redacted_picture_whose_original_is_there_is_found(checked: Checked) -> None:
    made = HandMade()
    name = f"screenshots/{made.documents['trajectories.jsonl'][0]['steps'][0]['screenshot']['sha256']}.png"
    kept = made.files[name]
    redacted(made)
    made.files[name] = kept
    findings = checked(signed(made.complete().entries()))
    assert findings["pictures"].places == (name,)


def test_another_covered_picture_than_was_recorded_is_found(checked: Checked) -> None:
    made = HandMade()
    original = redacted(made)
    made.files[f"screenshots/{original}.redacted.png"] = b"Covered"
    assert failing(checked(signed(made.complete().entries()))) == ["pictures"]


def test_a_bundle_of_digests_has_no_pictures(checked: Checked) -> None:
    made = HandMade()
    made.documents["submission.json"]["contents"]["screenshots"] = "digests"
    files = made.complete().entries()
    assert failing(checked(signed(files))) == ["pictures"]
    kept = {name: data for name, data in files.items() if not name.startswith(("screenshots/", "attachments/"))}
    findings = checked(signed(kept))
    assert failing(findings) == []
    assert findings["pictures"].result is Result.NOTE


def test_statement_about_fewer_stored_files_than_the_documents_name_is_found(checked: Checked) -> None:
    made = HandMade()
    made.documents["submission.json"]["contents"]["screenshots"] = "digests"
    entries = made.complete().entries()
    files = {name: data for name, data in entries.items() if name.startswith(("screenshots/", "attachments/"))}
    whole = signed({name: data for name, data in entries.items() if name not in files})

    def finding_of(number: int) -> Finding:
        stated = {"verified_at": "2026-11-23T14:05:00.000000+00:00", "files": number, "damaged": [], "missing": []}
        document = json.loads(whole["MANIFEST.json"]) | {"stored_files": stated}
        manifest = canonical_json(document).encode() + b"\n"
        return checked(whole | {"MANIFEST.json": manifest, "SIGNATURE.json": signature(manifest)})["pictures"]

    stored = len(set(map(sha256, files.values())))
    assert finding_of(stored).result is Result.NOTE
    for number in (0, stored - 1):
        assert (finding_of(number).result, finding_of(number).places) == (Result.FAIL, ("MANIFEST.json",))


# --- what the product says -----------------------------------------------------------------------------------------


def test_claims_that_are_stated_otherwise_are_found(entries: dict[str, bytes], checked: Checked) -> None:
    document = json.loads(entries["claims.json"])
    document["claims"][0]["says"] = "All is well."
    findings = checked(signed(entries | {"claims.json": json.dumps(document).encode()}))
    assert "stated_claims" in failing(findings)
    assert findings["stated_claims"].places == (document["claims"][0]["name"],)


def test_a_claim_that_is_left_out_or_twice_is_found(entries: dict[str, bytes], checked: Checked) -> None:
    document = json.loads(entries["claims.json"])
    for stated in (document["claims"][1:], [*document["claims"], document["claims"][0]]):
        findings = checked(signed(entries | {"claims.json": json.dumps({"claims": stated}).encode()}))
        assert "stated_claims" in failing(findings)


@pytest.mark.parametrize("page", [None, b"<script>alert(1)</script>"])
def test_another_report_page_is_found(page: bytes | None, entries: dict[str, bytes], checked: Checked) -> None:
    files = {name: data for name, data in entries.items() if name != "reports/report.html"}
    findings = checked(signed(files if page is None else files | {"reports/report.html": page}))
    assert failing(findings) == ["report_page"]


def test_a_report_page_is_noted_when_nothing_renders_it(entries: dict[str, bytes], checked: Checked) -> None:
    """As in verify.py; a missing page fails there too."""
    forged = entries | {"reports/report.html": b"<script>alert(1)</script>"}
    finding = checked(signed(forged), renderers=None)["report_page"]
    assert finding.result is Result.NOTE
    assert finding.says.startswith("Not checked by verify.py")
    del forged["reports/report.html"]
    assert failing(checked(signed(forged), renderers=None)) == ["report_page"]


def test_readme_and_metadata_are_noted_when_nothing_renders_them(entries: dict[str, bytes], checked: Checked) -> None:
    """As in verify.py, which compares the schemas all the same."""
    forged = explained(entries) | {"README.md": b"# Another text\n"}
    assert failing(checked(signed(forged))) == ["companions"]
    finding = checked(signed(forged), renderers=None)["companions"]
    assert finding.result is Result.NOTE
    assert "verify.py does not render them" in finding.says
    forged["schemas/labels.schema.json"] = b"{}"
    assert failing(checked(signed(forged), renderers=None)) == ["companions"]


def test_a_figure_that_was_changed_is_found(entries: dict[str, bytes], checked: Checked) -> None:
    document = json.loads(entries["reports/agreement.json"])
    document["n_items"] += 1
    findings = checked(signed(entries | {"reports/agreement.json": json.dumps(document).encode()}))
    assert "agreement" in failing(findings)


def test_a_retired_key_signs_nothing_that_happened_later(entries: dict[str, bytes], checked: Checked) -> None:
    """The freeze of this bundle, its last event, was on 5 January 2026."""
    results = {}
    for retired in ("2026-01-05T09:30:00+00:00", "2026-02-01T00:00:00Z", "soon", None):
        keys = {"keys": [{"public_key": PUBLIC.hex(), "retired_at": retired}]}
        results[retired] = checked(signed(entries), keys=keys)["signature"].result
    assert list(results.values()) == [Result.FAIL, Result.PASS, Result.NOTE, Result.PASS]


def test_a_check_that_breaks_off_fails_and_names_itself(entries: dict[str, bytes], checked: Checked) -> None:
    def broken(*_: Any) -> str:
        raise KeyError("hostile\x1b[2J")

    findings = checked(signed(entries), renderers=RENDERERS | {"reports/report.html": broken})
    assert failing(findings) == ["internal"]
    assert findings["internal"].places == ("report_page",)
    assert findings["limits"].result is Result.NOTE
