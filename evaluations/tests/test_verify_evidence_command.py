"""verify_evidence: the same check within the application, which knows its own keys and its own verify.py."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import nullcontext
from datetime import datetime
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from annotation.tests import testing
from evaluations import signing
from evaluations.evidence.verification import single_file
from evaluations.models import Audit, SigningKey
from evaluations.tests.hand_made_bundle import KEY, HandMade, sha256, signed, zipped
from evaluations.verifier import main

pytestmark = pytest.mark.django_db

Signed = Callable[..., Path]


@pytest.fixture(scope="module")
def entries() -> dict[str, bytes]:
    return HandMade().complete().entries()


@pytest.fixture
def bundle(entries: dict[str, bytes], tmp_path: Path) -> Signed:
    """A bundle of these files, signed by the key of this instance unless ``theirs``."""

    def made(more: dict[str, bytes] | None = None, *, theirs: bool = False) -> Path:
        files = signed(entries | (more or {}))
        if not theirs:
            key, signature = signing.sign(files["MANIFEST.json"])
            document = json.loads(files["SIGNATURE.json"])
            document |= {"key_id": key.key_id, "public_key": key.public, "signature": signature.hex()}
            files["SIGNATURE.json"] = json.dumps(document).encode()
        path = tmp_path / "bundle.zip"
        path.write_bytes(zipped(files))
        return path

    return made


def verified(path: Path, **options: Any) -> dict[str, Any]:
    out = StringIO()
    call_command("verify_evidence", str(path), stdout=out, json=True, **options)
    return {finding["name"]: finding for finding in json.loads(out.getvalue())["findings"]}


def test_a_bundle_of_this_instance_passes_without_keys(bundle: Signed) -> None:
    findings = verified(bundle())
    assert findings["signature"]["result"] == "pass"
    assert findings["signature"]["says"] == f"Signed by key {signing.active_key().key_id} of this instance."


def test_a_key_that_was_retired_is_still_one_of_this_instance(bundle: Signed) -> None:
    path = bundle()
    signing.rotate()
    assert verified(path)["signature"]["result"] == "pass"


def retired(stated: str) -> None:
    """Retire the key that signs here, at that time."""
    key = signing.active_key()
    signing.rotate()
    SigningKey.objects.filter(pk=key.pk).update(retired_at=datetime.fromisoformat(stated))


def last_event(entries: dict[str, bytes]) -> str:
    return max(json.loads(line)["at"] for line in entries["events.jsonl"].splitlines())


def test_a_retired_key_of_this_instance_signs_nothing_that_happened_later(
    bundle: Signed, entries: dict[str, bytes]
) -> None:
    path, at = bundle(), last_event(entries)
    created = json.loads(entries["submission.json"])["created_at"]
    assert created < at
    retired(created)

    with pytest.raises(CommandError, match="These checks failed: signature"):
        verified(path)


def test_a_key_that_was_retired_with_the_last_event_may_have_signed_it(
    bundle: Signed, entries: dict[str, bytes]
) -> None:
    path = bundle()
    retired(last_event(entries))

    assert "after the last event" in verified(path)["signature"]["says"]


def test_what_given_keys_leave_open_is_not_settled_by_those_of_this_instance(bundle: Signed, tmp_path: Path) -> None:
    path, keys = bundle(), signing.published()
    keys["keys"][0]["retired_at"] = "long ago"
    (tmp_path / "keys.json").write_text(json.dumps(keys))

    assert verified(path, keys=str(tmp_path / "keys.json"))["signature"]["result"] == "note"


def test_an_audit_does_not_trust_what_a_retired_key_of_this_instance_signed_later(
    bundle: Signed, entries: dict[str, bytes], tmp_path: Path, settings: Any
) -> None:
    settings.MEDIA_ROOT = tmp_path / "images"
    path, out = bundle(), StringIO()
    retired(json.loads(entries["submission.json"])["created_at"])

    call_command("import_audit", str(path), "--as", testing.person("amy", is_staff=True).username, stdout=out)

    audit = Audit.objects.get()
    assert "failed: signature" in out.getvalue()
    (signed_by,) = [each for each in audit.findings if each["name"] == "signature"]
    assert signed_by["says"].endswith("a retired key may no longer sign.")
    assert not audit.key_trusted


def test_a_bundle_of_somebody_else_is_not_compared_with_our_keys(bundle: Signed) -> None:
    signing.active_key()
    path = bundle(theirs=True)
    assert verified(path)["signature"]["result"] == "note"
    assert verified(path, keys=KEY.public_key().public_bytes_raw().hex())["signature"]["result"] == "pass"


def test_our_keys_do_not_stand_in_for_keys_that_are_given(bundle: Signed) -> None:
    with pytest.raises(CommandError, match="These checks failed: signature"):
        verified(bundle(), keys=KEY.public_key().public_bytes_raw().hex())


def test_it_says_whether_the_program_in_the_bundle_is_ours(bundle: Signed) -> None:
    assert "has no verify.py" in verified(bundle())["verifier"]["says"]
    same = verified(bundle({"verify.py": single_file().encode()}))["verifier"]
    assert same["says"] == "verify.py in the bundle is the program that checked it."
    other = verified(bundle({"verify.py": b"print('All is well.')"}))["verifier"]
    assert (other["result"], other["places"]) == ("note", ["verify.py"])


def test_the_table_is_that_of_the_single_file(bundle: Signed) -> None:
    out = StringIO()
    path = bundle()
    call_command("verify_evidence", str(path), stdout=out)
    table = out.getvalue().splitlines()
    assert table[1] == f"key       {signing.active_key().key_id}"
    assert [line.split()[1] for line in table[-4:-2]] == ["verifier", "limits"]
    assert table[-1].endswith(" noted.")


def test_what_fails_and_what_is_refused_end_with_exit_code_1(bundle: Signed, tmp_path: Path) -> None:
    path = bundle({"reports/report.html": b"forged"})
    with pytest.raises(CommandError, match="These checks failed: report_page") as failed:
        call_command("verify_evidence", str(path), stdout=StringIO())
    assert failed.value.returncode == 1
    (tmp_path / "bundle.zip").write_bytes(b"nothing")
    out = StringIO()
    with pytest.raises(CommandError, match="REFUSED  It is not a zip file") as refused:
        call_command("verify_evidence", str(path), stdout=out, json=True)
    assert refused.value.returncode == 1
    assert json.loads(out.getvalue())["good"] is False


@pytest.mark.parametrize("command", ["verify_evidence", "import_audit"])
def test_the_chain_that_was_asked_for_is_told_from_any_other(
    command: str, bundle: Signed, entries: dict[str, bytes], tmp_path: Path, settings: Any
) -> None:
    settings.MEDIA_ROOT = tmp_path / "images"
    words = ["--as", testing.person("amy", is_staff=True).username] if command == "import_audit" else []
    stated = json.loads(entries["submission.json"])["chain"]
    for chain, fails in ((stated["head"], True), (stated["id"], False)):
        out = StringIO()
        path = bundle({"verify.py": chain.encode()})  # no bundle is opened twice
        with pytest.raises(CommandError, match="failed: chain_id") if fails and not words else nullcontext():
            call_command(command, str(path), *words, "--chain", chain, stdout=out)
        assert ("FAIL  chain_id" in out.getvalue() or "failed: chain_id" in out.getvalue()) is fails


@pytest.mark.parametrize("command", ["verify_evidence", "import_audit"])
def test_what_is_no_id_of_a_chain_ends_with_exit_code_2(command: str, bundle: Signed) -> None:
    words = ["--as", testing.person("amy", is_staff=True).username] if command == "import_audit" else []
    with pytest.raises(CommandError, match="--chain nothing is not a chain id") as wrong:
        call_command(command, str(bundle()), *words, "--chain", "nothing", stdout=StringIO())
    assert wrong.value.returncode == 2


@pytest.mark.parametrize("option", ["keys", "anchors", "tasks"])
def test_arguments_that_make_no_sense_end_with_exit_code_2(option: str, bundle: Signed, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    (tmp_path / "huge").touch()
    os.truncate(tmp_path / "huge", main.LARGEST_GIVEN + 1)
    path, told = str(bundle()), {}
    for name in ("nothing", "folder", "bytes", "huge"):
        given = str(tmp_path / name)
        with pytest.raises(CommandError, match=f"^--{option} {given}: ") as wrong:
            call_command("verify_evidence", path, stdout=StringIO(), **{option: given})
        assert wrong.value.returncode == 2
        told[name] = str(wrong.value).partition(f"{given}: ")[2]
    assert told.pop("nothing").startswith("the file does not exist")
    assert told == {
        "folder": "this is not a file.",
        "bytes": "the file is not UTF-8 text.",
        "huge": "the file has more than 268,435,456 bytes.",
    }


def test_the_manifest_is_named_by_its_digest(bundle: Signed, entries: dict[str, bytes]) -> None:
    out = StringIO()
    call_command("verify_evidence", str(bundle()), stdout=out)
    assert out.getvalue().startswith(f"manifest  {sha256(signed(entries)['MANIFEST.json'])} (SHA-256)\n")
