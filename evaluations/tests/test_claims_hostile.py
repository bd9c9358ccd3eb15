"""Documents of the right shape with senseless values are answered, and found out: nothing makes the claims crash."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

from evaluations.tests.tampered import Tampered, hand_made
from evaluations.verifier.checking import claims
from evaluations.verifier.findings import Result
from evaluations.verifier.rules import ACTORS, CLAIMS

pytestmark = pytest.mark.slow

EARLIEST, LATEST = "0001-01-01T00:00:00.000000+00:00", "9999-12-31T23:59:59.999999+00:00"
NEVER = "2026-02-30T25:00:00.000000+00:00"  # has the shape of a time
LISTS = ("people", "catalogue", "trajectories", "labels", "adjudications", "draws", "final_verdicts")
SENSELESS: dict[type, list[Any]] = {
    int: [0, 7, 2**53],
    float: [0.0, 1.0, 0.3333],
    str: ["", "nobody", EARLIEST, LATEST, NEVER],
}
PAYLOADS: list[Any] = [None, 7, -1, "x", [], [1], {}, {"a": 1}, True, 2**53, "task_a", [[]], [None, "x"], "A1"]


def failing(tampered: Tampered) -> set[str]:
    found = claims(tampered.bundle)
    assert [finding.name for finding in found] == list(CLAIMS)
    return {finding.name for finding in found if finding.result is Result.FAIL}


@pytest.mark.parametrize("name", LISTS)
def test_an_empty_list_fails(name: str) -> None:
    tampered = hand_made()
    getattr(tampered.bundle, name).clear()

    assert failing(tampered)


@pytest.mark.parametrize("name", LISTS)
def test_everything_twice_fails(name: str) -> None:
    tampered = hand_made()
    rows = getattr(tampered.bundle, name)
    rows += rows

    assert failing(tampered)


def test_an_empty_bundle_fails() -> None:
    tampered = hand_made()
    for name in (*LISTS, "events"):
        getattr(tampered.bundle, name).clear()

    assert {"coverage", "chain", "imported", "frozen", "export"} <= failing(tampered)


def values(of: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, Any]]:
    """Every container of a document with the key of each plain value in it."""
    pairs = of.items() if isinstance(of, dict) else enumerate(of) if isinstance(of, list) else ()
    for key, value in pairs:
        if isinstance(value, (dict, list)):
            yield from values(value)
        else:
            yield of, key


@pytest.mark.parametrize("name", ["labels", "adjudications", "draws", "people", "final_verdicts", "submission"])
def test_one_senseless_value_fails(name: str) -> None:
    """But where it is the very value, or says nothing of what was judged: names of a benchmark, dates of a import."""
    tampered = hand_made()
    document = getattr(tampered.bundle, name)
    some = document[:3] if isinstance(document, list) else document
    of_no_claim = {"format", "benchmark_name", "created_at", "screenshots", "judges"}
    for container, key in list(values(some)):
        right = container[key]
        for senseless in SENSELESS.get(type(right), []):
            if senseless != right and key not in of_no_claim:
                container[key] = senseless
                assert failing(tampered), f"{key}: {senseless!r} for {right!r}"
        container[key] = right
    assert failing(tampered) == set()


def test_events_may_say_whatever_they_like() -> None:
    chance = random.Random("events")
    for _ in range(100):
        tampered = hand_made()
        for event in chance.sample(tampered.events, 3):
            event["kind"] = chance.choice([event["kind"], *ACTORS])
            for name in list(event["payload"]):
                event["payload"][name] = chance.choice([event["payload"][name], *PAYLOADS])
            event["payload"][chance.choice(["slot", "member", "held_by", "spot_check_rate"])] = chance.choice(PAYLOADS)
        tampered.relink()

        assert failing(tampered)


def test_rows_that_hold_each_others_values_are_answered() -> None:
    chance = random.Random("rows")
    for _ in range(100):
        tampered = hand_made()
        for name in ("labels", "adjudications", "draws", "people", "final_verdicts", "trajectories", "catalogue"):
            containers = list(values(getattr(tampered.bundle, name)))
            for (one, this), (other, that) in zip(
                chance.sample(containers, 4), chance.sample(containers, 4), strict=True
            ):
                if type(one[this]) is type(other[that]):
                    one[this], other[that] = other[that], one[this]

        failing(tampered)


def test_half_a_character_has_no_hash_and_no_event() -> None:
    tampered = hand_made()
    tampered.label("task_a")["facts"]["reasoning"] = "\ud800"
    tampered.bundle.draws[0]["facts"]["seed"] = "\udfff"

    assert {"complete_record", "draws"} <= failing(tampered)


def test_slots_and_labels_without_end_are_answered() -> None:
    tampered = hand_made()
    tampered.submission["required_labels"] = 2**53
    first = tampered.event("claimed")
    for slot in (0, 2**53, -(2**40)):
        tampered.add(first, "claimed", "A1", task_id="task_a", slot=slot)
    tampered.relink()

    assert "annotators" in failing(tampered)


def test_more_key_points_than_can_be_compared_fail_at_once() -> None:
    tampered = hand_made()
    points = tampered.bundle.catalogue[0]["key_points"]
    tampered.bundle.catalogue[0]["key_points"] = points * 4_000_000

    found = next(finding for finding in claims(tampered.bundle) if finding.name == "reasons")
    assert found.result is Result.FAIL
    assert "too many labels and key points to compare" in found.says
