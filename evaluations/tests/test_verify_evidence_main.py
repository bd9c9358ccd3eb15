"""verify.py on the command line: its table, its exit codes, and what others say of the same bundle."""

from __future__ import annotations

import json
import re
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
    files = signed(entries | {"notes.txt": b"x"})
    path, tasks = tmp_path / "bundle.zip", tmp_path / "tasks.json"
    path.write_bytes(zipped(files))
    tasks.write_text('[{"task_id": "t\u00e2che"}]', encoding="utf-8")
    assert main([str(path), "--tasks", str(tasks)]) == 1
    out = capsys.readouterr().out
    assert out.isascii()
    assert all(line.isprintable() for line in out.splitlines())
    assert out.startswith(
        f"manifest  {sha256(files['MANIFEST.json'])} (SHA-256)\nkey       {sha256(PUBLIC)[:16]}\n\nFAIL"
    )
    assert "\n        t\\xe2che\n" in out
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
    assert capsys.readouterr().out.startswith("REFUSED  It is not a zip file")
    assert main([str(bad), "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["refused"].startswith("It is not a zip file")
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
            "says": "1 of 2 given tasks has no trajectory.",
            "places": ["7"],
        }
    ]


def test_missing_and_changed_tasks_of_the_given_list_are_both_listed(
    entries: dict[str, bytes], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, tasks = tmp_path / "bundle.zip", tmp_path / "tasks.json"
    path.write_bytes(zipped(signed(entries)))
    tasks.write_text('[{"task_id": 7}, {"task_id": "task_a", "text": "Do another thing."}, {"task_id": "task_b"}]')
    assert main([str(path), "--tasks", str(tasks)]) == 1
    table = capsys.readouterr().out
    assert re.search("1 of 3 .* no trajectory. 1 task has another text, reference length or level than the", table)
    listed = [line.strip() for line in table.splitlines()]
    assert listed[listed.index("1 task without a trajectory:") + 1] == "7"
    assert listed[listed.index("1 task different from the list:") + 1] == "task_a"


def told(made: HandMade, folder: Path, capsys: pytest.CaptureFixture[str], *options: str) -> list[str]:
    """The lines about an honest bundle."""
    path = folder / "bundle.zip"
    path.write_bytes(zipped(signed(made.complete().entries())))
    assert main([str(path), *options]) == 0
    return capsys.readouterr().out.splitlines()


def test_no_flood_of_one_kind_of_exception_hides_another(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made, at = HandMade(), "2026-01-05T09:00:00.500000+00:00"
    note = "Long " * 100
    for number in range(60):
        flag = {"task_id": "task_a", "annotator": "A1", "reason": f"{number} {note}", "released_at": at}
        made.documents["releases.jsonl"].append(flag | {"lifted_at": None})
    for _ in range(30):
        made.event("known_answer_set", "M1", task_id="task_a")
        made.event("slot_returned", "M1", task_id="task_b", slot=1, held_by="A2")
    made.event("adjudication_returned", "M1", task_id="task_c", held_by="Q1", revision=1)
    made.rechain()
    path = tmp_path / "bundle.zip"
    path.write_bytes(zipped(signed(made.complete().entries())))
    main([str(path)])

    lines = capsys.readouterr().out.splitlines()
    numbers = r"(\d+) checks \(17 claims of the report among them\): (\d+) passed, (\d+) failed, (\d+) noted\."
    checks, *results = map(int, re.fullmatch(numbers, lines[-1]).groups())
    assert checks == sum(results)
    first = next(number for number, line in enumerate(lines) if line.startswith("NOTE  exceptions"))
    assert lines[first].endswith("  121 exceptions of 4 kinds.")
    below = lines[first + 1 : next(n for n, line in enumerate(lines) if n > first and not line.startswith("  "))]
    assert [line.strip() for line in below if line.endswith(":")] == [
        "60 declined trajectories:", "30 known answers set:", "30 slots returned:", "1 adjudication returned:",
    ]  # fmt: skip
    assert below[1].startswith('          task_a ("0 Long Long')
    assert [line.strip() for line in below if " more: " in line] == [
        f"and {number} more: --json lists all of them" for number in (55, 25, 25)
    ]
    assert below[-1] == "          Q1 on task_c"

    main([str(path), "--json"])
    says = next(each for each in json.loads(capsys.readouterr().out)["findings"] if each["name"] == "exceptions")[
        "says"
    ]
    stated = json.loads(made.complete().entries()["claims.json"])["claims"]
    assert all(f"- task_a (“{number} Long" in says for number in range(60))
    assert says == next(each for each in stated if each["name"] == "exceptions")["says"]


def test_a_note_names_its_places(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = HandMade()
    for row in made.documents["labels.jsonl"]:
        row["facts"].pop("active_seconds")
    path = tmp_path / "bundle.zip"
    path.write_bytes(zipped(signed(made.complete().entries())))
    main([str(path)])

    lines = capsys.readouterr().out.splitlines()
    noted = next(number for number, line in enumerate(lines) if line.startswith("NOTE  times"))
    assert lines[noted + 1 : noted + 4] == [f"        task_{letter}" for letter in "abc"]


def test_trajectories_that_the_given_list_calls_otherwise_are_named_by_kind(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tasks = tmp_path / "tasks.json"
    tasks.write_text('[{"task_id": "task_a_110125"}, {"task_id": "task_b"}]')

    lines = told(HandMade(), tmp_path, capsys, "--tasks", str(tasks))
    noted = next(number for number, line in enumerate(lines) if line.startswith("NOTE  tasks"))
    assert lines[noted + 1 : noted + 5] == [
        "        1 trajectory is replaced by dated tasks:",
        "          task_a",
        "        1 trajectory is of no given task:",
        "          task_c",
    ]


@pytest.mark.slow
@pytest.mark.parametrize("left", [".DS_Store", "screenshots/Thumbs.db", "reports/._report.html", "Desktop.ini"])
def test_what_systems_leave_in_a_folder_fails_and_is_told_with_how_to_mend_it(
    left: str, entries: dict[str, bytes], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, repacked = tmp_path / "bundle", tmp_path / "repacked.zip"
    for name, data in signed(entries).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    (folder / left).write_bytes(b"x")
    mend = "check the zip itself, or unpack it again"

    assert main([str(folder)]) == 1
    out = capsys.readouterr().out
    assert f"{left} is not listed" in out
    assert mend in out
    (folder / "notes.txt").write_text("mine")  # then looking into it was not all that was done
    assert main([str(folder)]) == 1
    assert mend not in capsys.readouterr().out
    repacked.write_bytes(zipped(signed(entries) | {left: b"x"}))  # nobody looks into a zip
    assert main([str(repacked)]) == 1
    assert mend not in capsys.readouterr().out


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
