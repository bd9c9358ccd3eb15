"""verify.py on the command line: its table, its exit codes, and what others say of the same bundle."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from evaluations.tests.hand_made_bundle import KEY, HandMade, sha256, signed, zipped
from evaluations.verifier.main import main

PUBLIC = KEY.public_key().public_bytes_raw()
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


def test_the_table_says_everything_in_ascii(
    entries: dict[str, bytes], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = signed(entries | {"r\u00e9sum\u00e9.txt": b"x"})
    path = tmp_path / "bundle.zip"
    path.write_bytes(zipped(files))
    assert main([str(path)]) == 1
    out = capsys.readouterr().out
    assert out.isascii()
    assert all(line.isprintable() for line in out.splitlines())
    assert out.startswith(
        f"manifest  {sha256(files['MANIFEST.json'])} (SHA-256)\nkey       {sha256(PUBLIC)[:16]}\n\nFAIL"
    )
    assert "\n        r\\xe9sum\\xe9.txt\n" in out
    assert out.splitlines()[-1].endswith(" noted.")


def test_exit_codes_tell_good_from_bad_from_wrong_usage(
    entries: dict[str, bytes], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good, bad, keys = tmp_path / "good.zip", tmp_path / "bad.zip", tmp_path / "keys.json"
    good.write_bytes(zipped(signed(entries)))
    bad.write_bytes(b"nothing")
    keys.write_text(json.dumps(KEYS))
    assert main([str(good)]) == 0
    assert main([str(good), "--keys", str(keys)]) == 0
    assert main([str(good), "--keys", PUBLIC.hex(), "--json"]) == 0
    assert main([str(good), "--keys", "11" * 32]) == 1
    capsys.readouterr()
    assert main([str(bad)]) == 1
    assert capsys.readouterr().out.startswith("REFUSED  It is no zip file")
    assert main([str(bad), "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["refused"].startswith("It is no zip file")
    assert main([]) == 2
    assert main([str(good), "--keys", "nothing"]) == 2
    assert main([str(good), "--tasks", str(bad)]) == 2
    assert main([str(good), "--tasks", str(tmp_path)]) == 2
    assert main([str(good), "--anchors", str(tmp_path / "none")]) == 2
    assert main(["--help"]) == 0


def test_the_findings_as_json_are_those_of_the_table(
    entries: dict[str, bytes], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, tasks = tmp_path / "bundle.zip", tmp_path / "tasks.json"
    path.write_bytes(zipped(signed(entries)))
    tasks.write_text('[{"task_id": "task_a"}, {"task_id": 7}]')
    assert main([str(path), "--json", "--tasks", str(tasks)]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["counts"]["fail"] == 1
    assert document["good"] is False
    assert [each for each in document["findings"] if each["result"] == "fail"] == [
        {
            "name": "tasks",
            "title": "Every task of the given list has a trajectory",
            "result": "fail",
            "says": "1 of the 2 given tasks have no trajectory.",
            "places": ["7"],
        }
    ]


def test_an_unpacked_bundle_is_checked_as_the_zip_is(entries: dict[str, bytes], tmp_path: Path) -> None:
    for name, data in signed(entries).items():
        path = tmp_path / "bundle" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    assert main([str(tmp_path / "bundle"), "--keys", PUBLIC.hex()]) == 0
    (tmp_path / "bundle" / "notes.txt").write_text("mine")
    assert main([str(tmp_path / "bundle")]) == 1


def test_openssl_says_the_same_of_the_signature(entries: dict[str, bytes], tmp_path: Path) -> None:
    """As docs/evidence.md tells to do it without any of our programs."""
    files = signed(entries)
    document = json.loads(files["SIGNATURE.json"])
    (tmp_path / "key.der").write_bytes(bytes.fromhex("302a300506032b6570032100" + document["public_key"]))
    (tmp_path / "signature.bin").write_bytes(bytes.fromhex(document["signature"]))
    (tmp_path / "MANIFEST.json").write_bytes(files["MANIFEST.json"])
    command = ["openssl", "pkeyutl", "-verify", "-pubin", "-keyform", "DER", "-inkey", "key.der", "-rawin"]
    command += ["-in", "MANIFEST.json", "-sigfile", "signature.bin"]
    assert subprocess.run(command, cwd=tmp_path, capture_output=True, check=False).returncode == 0
    (tmp_path / "MANIFEST.json").write_bytes(files["MANIFEST.json"] + b" ")
    assert subprocess.run(command, cwd=tmp_path, capture_output=True, check=False).returncode != 0
