"""Robustness cards in the evidence bundle: what is stated, that it verifies, and what the verifier finds."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from annotation.models import Person, Submission
from evaluations.tests.audited import bundle
from evaluations.tests.checks import check
from evaluations.tests.hand_made_bundle import signed, zipped
from evaluations.verifier.canonical import canonical_json
from evaluations.verifier.findings import Finding, Result
from evaluations.verifier.rules import KEEPS_VERDICT
from judges import runs
from judges.lab import OPERATORS, VERSION, Expects
from judges.tests.attacking import attack, freeze_failures, plant_weaknesses, whole_view
from judges.tests.builders import Fake, worked
from judges.tests.test_lab_afterwards import reopen_and_freeze

pytestmark = pytest.mark.django_db(transaction=True)
People = dict[str, Person]
CARDS, PAGE = "judges/robustness.jsonl", "reports/report.html"
ATTACKS = "thoughts-claim,answer-forged"
Change = Callable[[dict[str, Any]], Any]


@pytest.fixture
def frozen(submission: Submission, people: People, settings: Any, fake: Fake) -> Submission:
    """Two failures, and the judge ``stub`` that believes thoughts; it has also judged both as they are."""
    settings.JUDGE_ENDPOINTS = {"default": fake.url}
    frozen = freeze_failures(people, submission)
    fake.says(*plant_weaknesses(frozen)["thoughts-claim"])
    worked(runs.start(people["mira"], whole_view(), frozen, {}))
    return frozen


def written(submission: Submission, folder: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(bundle(submission, folder)) as package:
        return {name: package.read(name) for name in package.namelist()}


def cards(entries: dict[str, bytes]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in entries[CARDS].splitlines()]


def found(entries: dict[str, bytes], folder: Path) -> dict[str, Finding]:
    path = folder / "checked.zip"
    path.write_bytes(zipped(entries))
    return {finding.name: finding for finding in check(str(path))}


def test_card_is_in_the_bundle_and_verifies(frozen: Submission, tmp_path: Path) -> None:
    report = attack("stub", frozen, "--operators", ATTACKS, "--seed", 7)
    entries = written(frozen, tmp_path)
    (card,) = cards(entries)

    assert (card["judge"], card["seed"], card["operators_version"]) == ("stub@1", 7, VERSION)
    assert card["changes"] == report["operators"]
    verdicts = [(pair["operator"], pair["task_id"], pair["original"], pair["changed"]) for pair in card["pairs"]]
    assert verdicts == [
        ("thoughts-claim", "task_0000", 0, 1),
        ("thoughts-claim", "task_0001", 0, 1),
        ("answer-forged", "task_0000", 0, 0),
        ("answer-forged", "task_0001", 0, 0),
    ]
    findings = found(entries, tmp_path)
    assert findings["robustness"].result is Result.PASS
    assert [name for name, finding in findings.items() if finding.result is Result.FAIL] == []
    page = entries[PAGE].decode()
    assert OPERATORS["thoughts-claim"].title in page
    assert "not tested" not in page


def test_bundle_without_a_card_says_so_on_its_page_and_has_no_document(frozen: Submission, tmp_path: Path) -> None:
    entries = written(frozen, tmp_path)

    assert "Robustness: not tested." in entries[PAGE].decode()
    assert not [name for name in entries if "robustness" in name]
    assert "robustness" not in found(entries, tmp_path)


def test_newest_card_of_the_present_freeze_counts(frozen: Submission, people: People, tmp_path: Path) -> None:
    attack("stub", frozen, "--operators", "answer-forged", "--seed", 1)
    attack("stub", frozen, "--operators", "answer-forged", "--seed", 2)
    assert [card["seed"] for card in cards(written(frozen, tmp_path))] == [2]

    reopen_and_freeze(people, frozen)
    assert CARDS not in written(frozen, tmp_path)


def _count_no_flips(card: dict[str, Any]) -> None:
    card["changes"][0] |= {"flips": 0, "added_false_positives": 0, "result": "pass"}


def _hide_a_success(card: dict[str, Any]) -> None:
    next(pair for pair in card["pairs"] if pair["changed"] == 1)["changed"] = 0


def _expect_less(card: dict[str, Any]) -> None:
    card["changes"][0]["expects"] = "not_success"


def _pair_twice(card: dict[str, Any]) -> None:
    card["pairs"].append(card["pairs"][0])


def _invent_a_task(card: dict[str, Any]) -> None:
    card["pairs"][0]["task_id"] = "task_9999"


def _change_an_original(card: dict[str, Any]) -> None:
    card["pairs"][0]["original"] = 1


def _leave_out_a_change(card: dict[str, Any]) -> None:
    del card["changes"][0]


def _list_a_change_twice(card: dict[str, Any]) -> None:
    card["changes"].append(card["changes"][0])


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (_count_no_flips, "flips is 0, and the pairs give 2"),
        (_hide_a_success, "flips is 2, and the pairs give 1"),
        (_expect_less, "expects is 'not_success', and the pairs give 'same'"),
        (_pair_twice, "task_0000 is paired twice"),
        (_invent_a_task, "task_9999 is not a failure by its final verdict"),
        (_change_an_original, "has another verdict on the original than in another pair"),
        (_leave_out_a_change, "belongs to a change without figures"),
        (_list_a_change_twice, "the change thoughts-claim is listed 2 times"),
    ],
)
def test_card_that_contradicts_its_pairs_fails(frozen: Submission, tmp_path: Path, change: Change, says: str) -> None:
    attack("stub", frozen, "--operators", ATTACKS)
    entries = written(frozen, tmp_path)
    (card,) = cards(entries)
    change(card)
    entries[CARDS] = canonical_json(card).encode() + b"\n"

    finding = found(signed(entries, explain=False), tmp_path)["robustness"]
    assert finding.result is Result.FAIL
    assert says in finding.says.replace('"', "'")


def test_card_in_a_bundle_without_judges_has_another_shape(frozen: Submission, tmp_path: Path) -> None:
    attack("stub", frozen, "--operators", ATTACKS)
    entries = written(frozen, tmp_path)
    told = json.loads(entries["submission.json"])
    told["contents"]["judges"] = False
    entries["submission.json"] = json.dumps(told).encode()

    assert (
        f"{CARDS} is there, and submission.json says" in found(signed(entries, explain=False), tmp_path)["shapes"].says
    )


def test_verifier_expects_what_the_operators_expect() -> None:
    assert {name for name, operator in OPERATORS.items() if operator.expects is Expects.SAME} == KEEPS_VERDICT
