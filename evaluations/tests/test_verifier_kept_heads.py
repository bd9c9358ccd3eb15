"""A head that somebody kept finds out a chain that was written anew, however well the rest of the bundle fits."""

from __future__ import annotations

from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from evaluations.tests.forging import Forged, failures
from evaluations.tests.hand_made_bundle import KEY, HandMade
from evaluations.tests.test_verifier_anchors import EVENTS, REWRITTEN, bundle_of
from evaluations.verifier.anchors import kept_heads_findings
from evaluations.verifier.findings import Result
from evaluations.verifier.main import main

PASS, FAIL = Result.PASS, Result.FAIL


def kept(events: list[Any], *heads: str) -> list[Any]:
    return kept_heads_findings(bundle_of(events, []), list(heads))


def head(number: int, events: list[Any] = EVENTS) -> str:
    return str(events[number]["hash"])


def test_a_kept_head_is_found_with_the_number_and_the_time_of_its_event() -> None:
    (finding,) = kept(EVENTS, head(3))
    assert (finding.name, finding.result) == ("kept_heads", PASS)
    assert finding.says.startswith("Event 3 (2026-11-22T03:00:00.000000+00:00) has a given hash: ")
    assert "events 0 to 3 are unchanged" in finding.says


def test_several_kept_heads_are_told_together_and_each_that_is_lost_is_named() -> None:
    lost, found = kept(REWRITTEN, head(4), head(1), head(3), head(2), head(1), head(4))
    assert (lost.name, lost.result, lost.places) == ("kept_heads", FAIL, (head(4), head(3)))
    assert f"No event has the hash {head(4)} (nor 1 more of the given ones)" in lost.says
    assert found.result is PASS
    assert found.says.startswith("Events 1 (2026-11-22T01:00:00.000000+00:00), 2 (2026-11-22T02:00:00.000000+00:00) ")


def test_a_head_of_later_events_or_of_another_chain_is_in_no_event() -> None:
    assert [finding.result for finding in kept(EVENTS[:3], head(4))] == [FAIL]
    assert [finding.result for finding in kept([], head(0))] == [FAIL]


@pytest.fixture(scope="module")
def honest() -> bytes:
    return HandMade().complete().zipped()


@pytest.fixture
def bundle(honest: bytes, tmp_path: Path) -> Path:
    path = tmp_path / "bundle.zip"
    path.write_bytes(honest)
    return path


def test_a_chain_that_was_written_anew_fails_by_the_head_that_was_kept_and_by_nothing_else(
    honest: bytes, tmp_path: Path
) -> None:
    """The submitter rewords a label, and computes everything again with the signing key."""
    forged = Forged(honest)
    before, after = forged["events"][1]["hash"], forged["events"][-1]["hash"]
    forged.refact(forged.label("task_b"), "label", reasoning="It was said differently then.")
    rewritten = forged.covered()
    assert failures(rewritten, tmp_path) == {}
    assert failures(rewritten, tmp_path, heads=[before]) == {}
    assert list(failures(rewritten, tmp_path, heads=[before, after])) == ["kept_heads"]
    assert failures(honest, tmp_path, heads=[before, after]) == {}


def test_the_program_takes_heads_as_they_were_written_down(bundle: Path, capsys: pytest.CaptureFixture[str]) -> None:
    events = HandMade().documents["events.jsonl"]
    assert main([str(bundle), "--head", f" {events[-1]['hash'].upper()}", "--head", events[0]["hash"]]) == 0
    assert f"Events 0 ({events[0]['at']}), {len(events) - 1} (" in capsys.readouterr().out
    assert main([str(bundle), "--head", "ab" * 32]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[1] for line in lines if line.startswith("FAIL")] == ["kept_heads"]
    assert f"        {'ab' * 32}" in lines


def test_without_heads_nothing_is_said_of_them(bundle: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main([str(bundle)])
    assert "kept_heads" not in capsys.readouterr().out


@pytest.mark.parametrize("wrong", ["nothing", "", "ab" * 31, "zz" * 32])
def test_what_is_no_head_is_wrong_usage(wrong: str, bundle: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(bundle), "--head", "ab" * 32, "--head", wrong]) == 2
    assert f"--head {wrong} is not a head of a chain: 64 hex digits" in capsys.readouterr().err


@pytest.mark.django_db
def test_verify_evidence_takes_heads_too(bundle: Path) -> None:
    events = HandMade().documents["events.jsonl"]
    keys = KEY.public_key().public_bytes_raw().hex()
    out = StringIO()
    call_command("verify_evidence", str(bundle), "--keys", keys, "--head", events[-1]["hash"], stdout=out)
    assert "PASS  kept_heads" in out.getvalue()
    with pytest.raises(CommandError, match="These checks failed: kept_heads") as failed:
        call_command("verify_evidence", str(bundle), "--keys", keys, "--head", "ab" * 32, stdout=out)
    assert failed.value.returncode == 1
    with pytest.raises(CommandError, match="--head nothing is not a head of a chain") as wrong:
        call_command("verify_evidence", str(bundle), "--head", "nothing", stdout=out)
    assert wrong.value.returncode == 2
