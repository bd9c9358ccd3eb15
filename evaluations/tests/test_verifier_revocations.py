"""A list of revocations fails the bundles that it names, and those under a revoked key that prove no earlier time."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evaluations.tests.checks import check
from evaluations.tests.forging import STRANGER
from evaluations.tests.hand_made_bundle import KEY, HandMade, sha256, signed, zipped
from evaluations.tests.revoked import LISTED_AT, NEXT_KEY, bundle_entry, key_entry, key_id, public, revocations
from evaluations.verifier.canonical import Malformed, canonical_json
from evaluations.verifier.findings import Finding, Result
from evaluations.verifier.main import main
from evaluations.verifier.revocations import parse_revocations

PASS, FAIL, NOTE = Result.PASS, Result.FAIL, Result.NOTE
KEYS = [{"public_key": public(KEY)}, {"public_key": public(NEXT_KEY)}]
OTHER = "ab" * 32
BEFORE, LATER = "2026-05-01T00:00:00.000000+00:00", "2026-07-01T00:00:00.000000+00:00"
Check = Callable[..., list[Finding]]


@pytest.fixture(scope="module")
def files() -> dict[str, bytes]:
    return signed(HandMade().complete().entries())


@pytest.fixture(scope="module")
def manifest(files: dict[str, bytes]) -> str:
    return sha256(files["MANIFEST.json"])


@pytest.fixture(scope="module")
def events(files: dict[str, bytes]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in files["events.jsonl"].splitlines()]


@pytest.fixture(scope="module")
def bundle(files: dict[str, bytes], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("revoked") / "bundle.zip"
    path.write_bytes(zipped(files))
    return path


@pytest.fixture
def found(bundle: Path) -> Check:
    def checked(*lists: dict[str, Any], keys: Any = KEYS, **given: Any) -> list[Finding]:
        every = check(str(bundle), keys, revocations=list(lists) or None, **given)
        return [finding for finding in every if finding.name == "revocations"]

    return checked


def head(events: list[dict[str, Any]], key: Any = NEXT_KEY, number: int = -1, at: str = BEFORE) -> dict[str, Any]:
    event = events[number]
    line = {"chain": events[0]["hash"], "sequence": event["sequence"], "head": event["hash"], "at": at}
    line |= {"key_id": key_id(key)}
    return line | {"signature": key.sign(canonical_json(line).encode()).hex()}


def test_nothing_is_said_without_a_list(found: Check) -> None:
    assert found() == []


def test_list_that_names_neither_bundle_nor_key_passes_and_states_its_date(found: Check) -> None:
    (finding,) = found(revocations(bundle_entry(OTHER), key_entry(STRANGER, LISTED_AT)))
    assert finding.result is PASS
    assert f"the list of {LISTED_AT}, which names 1 bundle and 1 key." in finding.says
    assert "whether a newer list exists" in finding.says


def test_revoked_bundle_fails_with_the_reason(found: Check, manifest: str) -> None:
    (finding,) = found(revocations(bundle_entry(manifest), key=NEXT_KEY))
    assert (finding.result, finding.places) == (FAIL, (manifest,))
    assert f"revoked this bundle at {LISTED_AT}: “A judge was paid.”" in finding.says


def test_replaced_bundle_is_noted_with_the_one_that_replaces_it(found: Check, manifest: str) -> None:
    (finding,) = found(revocations(bundle_entry(manifest, OTHER)))
    assert (finding.result, finding.places) == (NOTE, (OTHER,))


def test_replaced_bundle_that_is_also_revoked_fails(found: Check, manifest: str) -> None:
    (finding,) = found(revocations(bundle_entry(manifest, OTHER), bundle_entry(manifest, reason="It was wrong.")))
    assert finding.result is FAIL
    assert "“It was wrong.”" in finding.says


def test_list_by_an_unknown_key_is_refused(found: Check, manifest: str) -> None:
    (finding,) = found(revocations(bundle_entry(manifest), key=STRANGER))
    assert finding.result is FAIL
    assert (
        f"was signed by key {key_id(STRANGER)}, which is neither the key of this bundle nor a given one" in finding.says
    )
    assert finding.says.endswith("(--keys). This list was not used.")


def test_list_by_the_key_of_the_bundle_needs_no_keys(found: Check, manifest: str) -> None:
    assert [finding.result for finding in found(revocations(bundle_entry(OTHER)), keys=None)] == [PASS]
    assert [finding.result for finding in found(revocations(bundle_entry(OTHER), key=NEXT_KEY), keys=None)] == [FAIL]


def test_changed_list_is_refused(found: Check, manifest: str) -> None:
    changed = revocations(bundle_entry(manifest)) | {"bundles": []}
    (finding,) = found(changed)
    assert finding.result is FAIL
    assert "does not have a valid signature" in finding.says


def test_list_by_a_retired_key_is_refused_from_its_retirement_on(found: Check) -> None:
    for retired, result in ((BEFORE, FAIL), (LISTED_AT, PASS), (LATER, PASS), ("yesterday", FAIL)):
        (finding,) = found(revocations(), keys=[{"public_key": public(KEY), "retired_at": retired}])
        assert finding.result is result, retired


# --- revoked keys ----------------------------------------------------------------------------------------------------


def revoked_key(since: str = LISTED_AT) -> dict[str, Any]:
    return revocations(key_entry(KEY, since), key=NEXT_KEY)


def test_bundle_under_a_revoked_key_fails_without_a_published_head(found: Check, events: list[Any]) -> None:
    """Its own times, which are all from before, are those that a thief would state."""
    assert max(event["at"] for event in events) < LISTED_AT
    (finding,) = found(revoked_key())
    assert (finding.result, finding.places) == (FAIL, (key_id(KEY),))
    assert f"revoked with effect from {LISTED_AT} (“A laptop was stolen.”)" in finding.says


def test_bundle_under_a_revoked_key_is_noted_if_its_last_head_was_published_before(
    found: Check, events: list[Any]
) -> None:
    (finding,) = found(revoked_key(), anchors=[head(events)])
    assert finding.result is NOTE
    assert f"was published at {BEFORE}, before that" in finding.says
    assert "The revoked key signed this head" not in finding.says


def test_head_by_the_revoked_key_itself_is_noted_as_such(found: Check, events: list[Any]) -> None:
    (finding,) = found(revoked_key(), anchors=[head(events, KEY)])
    assert finding.result is NOTE
    assert "The revoked key signed this head and its time: ask the place of publication" in finding.says


@pytest.mark.parametrize(
    "change",
    [
        {"number": -2},  # events after it may be invented
        {"at": LISTED_AT},
        {"at": LATER},
        {"at": "long ago"},
        {"key": STRANGER},
    ],
)
def test_other_heads_prove_nothing_for_a_revoked_key(change: dict[str, Any], found: Check, events: list[Any]) -> None:
    assert FAIL in [finding.result for finding in found(revoked_key(), anchors=[head(events, **change)])]


def test_later_heads_by_a_revoked_key_do_not_count(bundle: Path, events: list[Any]) -> None:
    """Otherwise a thief could fail every bundle by a head of another chain of events."""
    lie = head([events[0], events[-1] | {"hash": "cd" * 32}], KEY, at=LATER)
    assert "anchors" in _failed(bundle, anchors=[lie])
    given = {"anchors": [lie], "revocations": [revoked_key()]}
    assert _failed(bundle, **given) == ["revocations"]
    told = [finding.says for finding in check(str(bundle), KEYS, **given) if finding.name == "revocations"]
    assert told[-1] == "1 given head does not count: a revoked key signed after its revocation took effect."


def _failed(bundle: Path, **given: Any) -> list[str]:
    return [finding.name for finding in check(str(bundle), KEYS, **given) if finding.result is FAIL]


def test_list_signed_by_a_key_that_it_or_another_list_revokes_is_refused(found: Check) -> None:
    (itself,) = found(revocations(key_entry(KEY, LISTED_AT)))
    assert itself.result is FAIL
    assert "fetch a list that the new key signed" in itself.says
    by_thief, key = found(revocations(at=LATER), revoked_key(BEFORE))
    assert (by_thief.result, key.result) == (FAIL, FAIL)
    assert f"was signed by key {key_id(KEY)}, which is revoked with effect from {BEFORE}" in by_thief.says
    assert f"revoked with effect from {BEFORE}" in key.says


# --- several lists ---------------------------------------------------------------------------------------------------


def test_older_list_that_was_saved_shows_a_withdrawn_entry(found: Check, manifest: str) -> None:
    saved = revocations(bundle_entry(manifest), at=BEFORE)
    withdrawn, revoked = found(revocations(bundle_entry(OTHER), at=LATER), saved)
    assert withdrawn.result is FAIL
    assert f"The list of {LATER} lacks or changes an entry of the list of {BEFORE}." in withdrawn.says
    assert (revoked.result, revoked.places) == (FAIL, (manifest,))


def test_older_list_alone_hides_what_came_after_it_and_states_its_date(found: Check) -> None:
    """No offline check can do better: this is the limit that the finding states."""
    (finding,) = found(revocations(at=BEFORE))
    assert finding.result is PASS
    assert BEFORE in finding.says


def test_lists_that_only_grew_fit(found: Check) -> None:
    old = revocations(bundle_entry(OTHER), at=BEFORE)
    new = revocations(bundle_entry(OTHER), bundle_entry("cd" * 32), at=LATER)
    for lists in ((old, new), (new, old)):
        (finding,) = found(*lists)
        assert finding.result is PASS
        assert f"the list of {LATER}, which names 2 bundles and 0 keys" in finding.says


# --- the file --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"format": "webverdict-revocations-2"}, "format is"),
        ({"at": "today"}, "at is"),
        ({"bundles": [bundle_entry("XY")]}, "bundles[0].manifest is"),
        ({"bundles": None}, "bundles is null"),
        ({"keys": [key_entry(KEY, "2026-06-01")]}, "keys[0].since is"),
        ({"more": 1}, "more is not a key"),
    ],
)
def test_file_of_another_shape_is_refused(change: dict[str, Any], says: str) -> None:
    with pytest.raises(Malformed, match=r"is not a list of revocations \(webverdict-revocations-1\)") as caught:
        parse_revocations(json.dumps(revocations(**change)))
    assert says in str(caught.value)


def test_command_line_takes_lists_and_names_a_bad_one(
    bundle: Path, manifest: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, bad = tmp_path / "revocations.json", tmp_path / "bad.json"
    path.write_text(json.dumps(revocations(bundle_entry(OTHER)), indent=2))
    bad.write_text("{}")
    assert main([str(bundle), "--revocations", str(path), "--revocations", str(path)]) == 0
    assert "PASS  revocations " in capsys.readouterr().out
    path.write_text(json.dumps(revocations(bundle_entry(manifest))))
    assert main([str(bundle), "--revocations", str(path)]) == 1
    assert main([str(bundle), "--revocations", str(bad)]) == 2
    assert f"--revocations {bad} is not a list of revocations" in capsys.readouterr().err
    assert main([str(bundle), "--revocations", str(tmp_path / "none")]) == 2
    assert "the file does not exist" in capsys.readouterr().err


def test_earliest_time_of_a_key_that_was_revoked_twice_counts(found: Check, events: list[Any]) -> None:
    between = "2026-04-01T00:00:00.000000+00:00"
    twice = revocations(key_entry(KEY, LISTED_AT), key_entry(KEY, between), key=NEXT_KEY)
    (finding,) = found(twice, anchors=[head(events)])
    assert finding.result is FAIL
    assert f"with effect from {between}" in finding.says
