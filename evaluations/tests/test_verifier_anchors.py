"""A chain that was rewritten after its head was published is found out, whatever else fits."""

from __future__ import annotations

import base64
import hashlib
import json
from contextlib import suppress
from copy import deepcopy
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotation.models import Person, Submission
from annotation.models.events import GENESIS
from annotation.tests import testing
from evaluations import anchoring, signing
from evaluations.tests.hand_made_bundle import KEY
from evaluations.tests.outside import token
from evaluations.verifier.anchors import (
    MOST_ANCHOR_SIGNATURES,
    NoTimeStamp,
    anchor_findings,
    chain_id_findings,
    parse_published,
    parse_time_stamp,
)
from evaluations.verifier.canonical import Malformed, canonical_json, digest
from evaluations.verifier.documents import Bundle
from evaluations.verifier.findings import Finding, Result

PUBLIC = KEY.public_key().public_bytes_raw()
KEY_ID = hashlib.sha256(PUBLIC).hexdigest()[:16]
KEYS = {KEY_ID: PUBLIC.hex()}
PASS, FAIL, NOTE = Result.PASS, Result.FAIL, Result.NOTE


def bundle_of(events: list[Any], anchors: list[Any]) -> Bundle:
    """A bundle of which only these two documents matter."""
    rest = dict.fromkeys({field.name for field in fields(Bundle)} - {"submission", "events", "anchors"})
    return Bundle(submission={}, events=events, anchors=anchors, **rest)  # type: ignore[arg-type]


def chain(*kinds: str) -> list[dict[str, Any]]:
    """Events an hour after each other, linked by their hashes."""
    events, previous = [], GENESIS
    for number, kind in enumerate(kinds):
        at = f"2026-11-22T{number:02}:00:00.000000+00:00"
        said = {"sequence": number, "kind": kind, "actor": "M1", "at": at, "payload": {}, "previous": previous}
        previous = digest(said)
        events.append(said | {"hash": previous})
    return events


EVENTS = chain("imported", "member_added", "configured", "label_submitted", "frozen")
REWRITTEN = chain("imported", "member_added", "configured", "label_revised", "frozen")


def anchor(events: list[Any], sequence: int, method: str = "file", stamp: bytes = b"") -> dict[str, Any]:
    return {
        "method": method,
        "sequence": sequence,
        "head": events[sequence]["hash"],
        "target": "anchors.jsonl",
        "token": base64.b64encode(stamp).decode() or None,
        "published_at": events[sequence]["at"],
    }


def line(events: list[Any], sequence: int, **changes: Any) -> dict[str, Any]:
    """A published head, signed by KEY."""
    head = {"chain": events[0]["hash"], "sequence": sequence, "head": events[sequence]["hash"], "key_id": KEY_ID}
    head |= changes
    return head | {"signature": KEY.sign(canonical_json(head).encode()).hex()}


def found(events: list[Any], *published: Any) -> list[Finding]:
    """What such lines say to who knows KEY."""
    return anchor_findings(bundle_of(events, []), list(published), KEYS)


def results(findings: list[Finding]) -> list[Result]:
    assert {finding.name for finding in findings} == {"anchors"}
    return [finding.result for finding in findings]


@pytest.mark.django_db
def test_what_this_instance_published_fits_its_own_chain(submission: Submission, tmp_path: Path, settings: Any) -> None:
    settings.ANCHOR_FILE = str(tmp_path / "anchors.jsonl")
    people: dict[str, Person] = testing.cast(submission)
    anchoring.publish()
    testing.label(people["alice"], submission.trajectories.first())
    (row,) = anchoring.publish()
    events = [event.canonical() | {"hash": event.hash} for event in submission.events.order_by("sequence")]
    published, torn = parse_published(Path(settings.ANCHOR_FILE).read_text())
    keys = {key["key_id"]: key["public_key"] for key in signing.published()["keys"]}
    assert torn == 0
    (finding,) = anchor_findings(bundle_of(events, []), published, keys)
    assert finding.result is PASS
    assert "2 heads of this chain that were published outside, and whose signature was checked, fit" in finding.says
    assert f"events 0 to {row.sequence} are" in finding.says


def test_a_chain_that_was_rewritten_after_it_was_published_is_named() -> None:
    published = [line(EVENTS, 1), line(EVENTS, 3), line(EVENTS, 4)]
    (finding,) = found(REWRITTEN, *published)
    assert finding.result is FAIL
    assert "The chain was rewritten after publication" in finding.says
    assert finding.places == ("#3", "#4")
    assert results(found(EVENTS, *published)) == [PASS]


def test_the_list_of_the_bundle_is_compared_with_its_chain() -> None:
    anchors = [anchor(EVENTS, 2), anchor(EVENTS, 3)]
    assert results(anchor_findings(bundle_of(EVENTS, anchors), None)) == [PASS, NOTE]
    wrong, _ = anchor_findings(bundle_of(REWRITTEN, anchors), None)
    assert (wrong.result, wrong.places) == (FAIL, ("#3",))
    beyond, _ = anchor_findings(bundle_of(EVENTS[:3], anchors), None)
    assert (beyond.result, beyond.places) == (FAIL, ("#3",))


def test_that_there_is_nothing_to_compare_is_said() -> None:
    assert results(anchor_findings(bundle_of(EVENTS, []), None)) == [NOTE]
    (none,) = anchor_findings(bundle_of(EVENTS, []), [line(chain("another"), 0)])
    assert none.result is NOTE
    assert "None of 1 given head belongs to this chain" in none.says
    assert "other chains" not in none.says  # nobody knows who signed it


def test_other_chains_of_a_known_key_are_counted_and_fail_nothing() -> None:
    others = [line(chain("another"), 0), line(chain("one", "more"), 1), line(chain("one", "more"), 0)]
    forged = line(chain("a third"), 0) | {"signature": "00" * 64}
    (none,) = found(EVENTS, *others, forged)
    assert none.result is NOTE
    assert "None of 4 given heads belongs to this chain" in none.says
    assert "2 other chains" in none.says


def test_a_chain_that_was_asked_for_is_the_one_or_fails() -> None:
    """As when somebody was told the id, and was given another review of the same trajectories later."""
    assert chain_id_findings(bundle_of(EVENTS, []), EVENTS[0]["hash"])[0].result is PASS
    (other,) = chain_id_findings(bundle_of(chain("another"), []), EVENTS[0]["hash"])
    assert (other.name, other.result, other.places) == ("chain_id", FAIL, ())


def test_an_end_that_was_left_out_is_told() -> None:
    fits, later = found(EVENTS[:3], line(EVENTS, 1), line(EVENTS, 4))
    assert (fits.result, later.result, later.places) == (PASS, NOTE, ("#4",))
    assert "Event 4 was published, and the bundle ends with event 2" in later.says


@pytest.mark.parametrize(
    "change",
    [{"signature": "00" * 64}, {"signature": None}, {"signature": "zz"}, {"key_id": "1" * 16}, {"key_id": None}],
)
def test_a_line_of_which_no_signature_was_checked_fails_nothing(change: dict[str, Any]) -> None:
    """Anybody can append it to a file of heads that is public."""
    forged = line(REWRITTEN, 3, chain=EVENTS[0]["hash"]) | change
    (alone,) = found(EVENTS, forged)
    assert alone.result is NOTE
    assert "1 given head is left out, of which 1 head says otherwise than this chain" in alone.says
    beside = found(EVENTS, forged, line(EVENTS, 4))
    assert results(beside) == [PASS, NOTE]
    assert "1 head of this chain that was published outside, and whose signature was checked, fits" in beside[0].says
    assert beside[1].places == ("#3",)


def test_a_line_of_which_no_signature_was_checked_proves_nothing() -> None:
    unsigned = line(EVENTS, 3) | {"signature": "00" * 64}
    beyond = line(EVENTS, 4) | {"signature": "00" * 64}
    assert results(found(EVENTS[:4], unsigned, beyond)) == [NOTE]


def test_countless_lines_are_neither_all_checked_nor_believed() -> None:
    """Nor do they hide the one that matters: heads of another kind are checked whatever there is of one."""
    flood = [line(EVENTS, 4, at=str(number)) for number in range(MOST_ANCHOR_SIGNATURES + 20)]
    fits, left = found(EVENTS, *flood)
    assert f"{MOST_ANCHOR_SIGNATURES} heads of this chain" in fits.says
    assert (left.result, left.says[:3]) == (NOTE, "20 ")
    assert FAIL in results(found(EVENTS, *flood, line(REWRITTEN, 3, chain=EVENTS[0]["hash"])))


def test_a_file_of_heads_is_not_endless() -> None:
    with pytest.raises(Malformed, match="holds more than"):
        parse_published("[" + "0," * 10_000_001)


def test_torn_lines_of_a_file_are_passed_over_and_counted() -> None:
    text = json.dumps(line(EVENTS, 1)) + "\n" + '{"chain": "ab' + "\n\n" + json.dumps(line(EVENTS, 2)) + "\n"
    assert parse_published(text) == ([line(EVENTS, 1), line(EVENTS, 2)], 1)


@pytest.mark.parametrize(
    "change",
    [
        {"sequence": -1},
        {"sequence": True},
        {"sequence": 10**29},
        {"sequence": "3"},
        {"head": None},
        {"head": "A" * 64},
        {"chain": ["x"]},
        {"key_id": ["x"], "signature": 7},
        {"key_id": "k", "signature": "\ud800"},
    ],
)
def test_no_given_line_breaks_the_check(change: dict[str, Any]) -> None:
    findings = anchor_findings(bundle_of(EVENTS, []), [line(EVENTS, 1) | change, 5, None, []], {"k": "zz", **KEYS})
    assert FAIL not in results(findings)


# --- time stamps -----------------------------------------------------------------------------------------------------


def stamp(sequence: int, at: bytes, events: list[Any] = EVENTS) -> dict[str, Any]:
    return anchor(EVENTS, sequence, "rfc3161", token(bytes.fromhex(events[sequence]["hash"]), at=at))


def test_a_time_stamp_is_read_and_how_to_check_its_signature_is_said() -> None:
    own, stamps, outside = anchor_findings(bundle_of(EVENTS, [stamp(4, b"20261122040101.25Z")]), None)
    assert (own.result, stamps.result, outside.result) == (PASS, NOTE, NOTE)
    assert "event 4 at 2026-11-22T04:01:01.250000+00:00" in stamps.says
    assert "openssl ts -verify -token_in" in stamps.says


def test_a_time_stamp_of_something_else_is_refused() -> None:
    anchors = [stamp(3, b"20261122030101Z", REWRITTEN)]
    findings = anchor_findings(bundle_of(EVENTS, anchors), None)
    assert results(findings) == [PASS, FAIL, NOTE]
    assert findings[1].places == ("#3",)


def test_an_event_that_says_it_was_there_before_the_stamp_of_the_one_before_is_told() -> None:
    anchors = [stamp(2, b"20261122090000Z")]  # event 3 says 03:00
    findings = anchor_findings(bundle_of(EVENTS, anchors), None)
    assert results(findings) == [PASS, NOTE, NOTE, NOTE]
    assert findings[2].places == ("#3",)
    assert results(anchor_findings(bundle_of(EVENTS, [stamp(2, b"20261122030500Z")]), None)) == [PASS, NOTE, NOTE]


def test_times_that_make_no_sense_break_nothing() -> None:
    events = deepcopy(EVENTS)
    for value, event in zip(["x", "2026-11-22T01:00:00", "0001-01-01T00:00:00+00:00"], events[1:4], strict=True):
        event["at"] = value
    anchors = [stamp(sequence, b"00010101000000Z") for sequence in range(4)]
    assert FAIL not in results(anchor_findings(bundle_of(events, anchors), None))


@pytest.mark.parametrize("given_token", [None, "", "é", "AAAA", "not base64!", "MIA="])
def test_a_token_that_is_none_fails(given_token: str | None) -> None:
    anchors = [stamp(4, b"20261122040101Z") | {"token": given_token}]
    assert results(anchor_findings(bundle_of(EVENTS, anchors), None)) == [PASS, FAIL, NOTE]


@given(st.binary(max_size=80), st.integers(0, 150), st.integers(0, 255))
def test_no_bytes_break_the_reading_of_a_token(noise: bytes, place: int, byte: int) -> None:
    good = token(bytes(32))
    for data in (noise, good[:place], good[:place] + bytes([byte]) + good[place + 1 :], good[:place] + noise):
        with suppress(NoTimeStamp):
            assert len(parse_time_stamp(data).imprint) == 64
