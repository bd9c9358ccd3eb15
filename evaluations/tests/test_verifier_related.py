"""A bundle states which one it replaces; two bundles of one submission may not state different verdicts otherwise."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evaluations.tests.checks import check
from evaluations.tests.forging import STRANGER, Forged
from evaluations.tests.hand_made_bundle import KEY, HandMade, sha256, signed, zipped
from evaluations.tests.revoked import NEXT_KEY, key_entry, public, revocations
from evaluations.verifier.findings import Finding, Result
from evaluations.verifier.main import main

PASS, FAIL, NOTE = Result.PASS, Result.FAIL, Result.NOTE
KEYS = [{"public_key": public(KEY)}]
REASON = "Task task_b changed."
Write = Callable[..., Path]


@pytest.fixture(scope="module")
def honest() -> bytes:
    return HandMade().complete().zipped()


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def written(data: bytes, name: str = "bundle.zip") -> Path:
        path = tmp_path / name
        path.write_bytes(data)
        return path

    return written


def resigned(data: bytes, key: Any = KEY, **stated: Any) -> bytes:
    """The same bundle; its manifest also has what is ``stated``."""
    files = Forged(data).files
    rest = {name: files[name] for name in files if name not in ("MANIFEST.json", "SIGNATURE.json")}
    return zipped(signed(rest, key, explain=False, stated=stated))


def manifest_of(data: bytes) -> str:
    return sha256(Forged(data).files["MANIFEST.json"])


def checked(path: Path, **given: Any) -> dict[str, Finding]:
    return {finding.name: finding for finding in check(str(path), KEYS, **given)}


def failed(found: dict[str, Finding]) -> list[str]:
    return [name for name, finding in found.items() if finding.result is FAIL]


# --- supersedes ------------------------------------------------------------------------------------------------------


def test_replaced_bundle_is_noted_with_the_reason(honest: bytes, write: Write) -> None:
    found = checked(write(resigned(honest, supersedes={"manifest": "ab" * 32, "reason": REASON})))
    assert failed(found) == []
    assert (found["supersedes"].result, found["supersedes"].places) == (NOTE, ("ab" * 32,))
    assert f"“{REASON}”. Not checked here" in found["supersedes"].says


def test_bundle_that_replaces_none_says_nothing_of_it(honest: bytes, write: Write) -> None:
    assert "supersedes" not in checked(write(honest))
    assert b"supersedes" not in Forged(honest).files["MANIFEST.json"]


@pytest.mark.parametrize("reason", ["", "  \n", "\u200b\u3164"])
def test_replaced_bundle_without_a_reason_fails(reason: str, honest: bytes, write: Write) -> None:
    found = checked(write(resigned(honest, supersedes={"manifest": "ab" * 32, "reason": reason})))
    assert failed(found) == ["supersedes"]


@pytest.mark.parametrize(
    "stated", [{"manifest": "AB" * 32, "reason": REASON}, {"manifest": "ab" * 31}, "ab" * 32, None, {}]
)
def test_malformed_statement_fails_the_manifest(stated: Any, honest: bytes, write: Write) -> None:
    found = checked(write(resigned(honest, supersedes=stated)))
    assert failed(found) == ["manifest"]
    assert "supersedes" in found["manifest"].says
    assert "supersedes" not in found


# --- two bundles of one submission -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def reopened(honest: bytes) -> bytes:
    """What the submitter made later: task_a has another verdict, by events after those of the honest bundle."""
    forged = Forged(honest)
    forged.add_event(None, "submission_reopened", "M1", reason="A mistake of ours.")
    row = next(row for row in forged["final-verdicts"] if row["task_id"] == "task_a")
    row["verdict"] = 1 - row["verdict"]
    return forged.covered()


def compared(path: Path, other: Path) -> Finding:
    return checked(path, against=str(other))["other_bundle"]


def test_other_verdicts_in_a_bundle_of_the_same_submission_fail(honest: bytes, reopened: bytes, write: Write) -> None:
    one, other = write(honest), write(reopened, "other.zip")
    for finding in (compared(one, other), compared(other, one)):
        assert (finding.result, finding.places) == (FAIL, ("task_a",))
        assert "1 different final verdict. Neither states that it replaces the other" in finding.says


def test_other_verdicts_are_noted_if_one_replaces_the_other(honest: bytes, reopened: bytes, write: Write) -> None:
    stated = {"manifest": manifest_of(honest), "reason": REASON}
    one, other = write(honest), write(resigned(reopened, supersedes=stated), "other.zip")
    assert [compared(one, other).result, compared(other, one).result] == [NOTE, NOTE]
    wrong = write(resigned(reopened, supersedes=stated | {"manifest": "ab" * 32}), "wrong.zip")
    assert compared(one, wrong).result is FAIL


def test_same_verdicts_pass_also_if_some_are_missing_in_one(honest: bytes, write: Write) -> None:
    partial = Forged(honest)
    partial["final-verdicts"][0].update(verdict=None, by=None)
    assert compared(write(honest), write(partial.covered(), "other.zip")).result is PASS


def test_chain_that_was_rewritten_between_two_bundles_fails(honest: bytes, write: Write) -> None:
    forged = Forged(honest)
    forged["events"][3]["payload"]["task_id"] = "task_c"
    finding = compared(write(honest), write(forged.covered(), "other.zip"))
    assert finding.result is FAIL
    assert "one was rewritten" in finding.says


def test_bundles_of_two_submissions_are_noted(honest: bytes, write: Write) -> None:
    again = Forged(honest)
    again["events"][0]["payload"]["attempt"] = 2
    again["final-verdicts"][0]["verdict"] = 1 - again["final-verdicts"][0]["verdict"]
    finding = compared(write(honest), write(again.covered(), "again.zip"))
    assert (finding.result, len(finding.places)) == (NOTE, 1)
    assert "with the same trajectories, judged again: 1 final verdict differs." in finding.says
    again["submission"]["digest"] = "ab" * 32
    finding = compared(write(honest), write(again.covered(), "other.zip"))
    assert (finding.result, finding.places) == (NOTE, ())


def test_other_bundle_that_the_submitter_did_not_sign_proves_nothing(
    honest: bytes, reopened: bytes, write: Write
) -> None:
    by_stranger = write(Forged(reopened).sealed(STRANGER), "stranger.zip")
    changed = write(Forged(reopened).unsealed() + b"x", "damaged.zip")
    finding = compared(write(honest), by_stranger)
    assert finding.result is NOTE
    assert "fails signature" in finding.says
    assert compared(write(honest), changed).result is FAIL
    without_keys = {each.name: each for each in check(str(write(honest)), against=str(by_stranger))}
    assert without_keys["other_bundle"].result is NOTE


def test_other_bundle_by_a_revoked_key_proves_nothing(honest: bytes, reopened: bytes, write: Write) -> None:
    keys = [*KEYS, {"public_key": public(NEXT_KEY)}]
    paths = str(write(honest)), str(write(Forged(reopened).sealed(NEXT_KEY), "other.zip"))
    listed = [revocations(key_entry(NEXT_KEY, "2020-01-01T00:00:00.000000+00:00"))]
    for given, result in (({}, FAIL), ({"revocations": listed}, NOTE)):
        found = {each.name: each for each in check(paths[0], keys, against=paths[1], **given)}
        assert found["other_bundle"].result is result


def test_bundle_without_a_valid_signature_is_not_compared(honest: bytes, reopened: bytes, write: Write) -> None:
    other = write(reopened, "other.zip")
    finding = compared(write(Forged(honest).sealed(STRANGER)), other)
    assert finding.result is NOTE
    assert finding.says.startswith("Not compared")


def test_command_line_compares_two_bundles(
    honest: bytes, reopened: bytes, write: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    one, other = write(honest), write(reopened, "other.zip")
    assert main([str(one), "--against", str(one)]) == 0
    assert "PASS  other_bundle " in capsys.readouterr().out
    assert main([str(one), "--against", str(other)]) == 1
    assert "FAIL  other_bundle " in capsys.readouterr().out
    assert main([str(one), "--against", str(other.parent / "none.zip")]) == 1
    assert "The other bundle was refused: " in capsys.readouterr().out
