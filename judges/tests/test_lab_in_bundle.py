"""Robustness cards in the evidence bundle: what is stated, that it verifies, and what the verifier finds."""

from __future__ import annotations

import json
import re
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
from evaluations.verifier.rules import ADDS_NO_SUCCESS, CHANGES_VERSION, KEEPS_VERDICT
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
    verdicts = [(line["task_id"], line["repetition"], line["verdict"]) for line in card["judgments"]]
    # Repetition 1 is the original, 2 has other thoughts, and 3 another answer.
    assert verdicts == [(task, number, int(number == 2)) for task in ("task_0000", "task_0001") for number in (1, 2, 3)]
    findings = found(entries, tmp_path)
    assert findings["robustness"].result is Result.PASS
    assert "Only the submitter states" in findings["robustness"].says
    assert [name for name, finding in findings.items() if finding.result is Result.FAIL] == []
    page = entries[PAGE].decode()
    assert OPERATORS["thoughts-claim"].title in page
    assert "Verdicts on changed copies of 2 failures." in page
    assert f"Not tested: {OPERATORS['thoughts-removed'].title}, " in page


def test_bundle_without_a_card_says_so_on_its_page_and_has_no_document(frozen: Submission, tmp_path: Path) -> None:
    entries = written(frozen, tmp_path)

    assert "This bundle has no test of its robustness." in entries[PAGE].decode()
    assert not [name for name in entries if "robustness" in name]
    assert "robustness" not in found(entries, tmp_path)


def test_every_test_since_the_freeze_is_in_the_bundle(frozen: Submission, people: People, tmp_path: Path) -> None:
    """A later test of one harmless change does not hide an earlier one."""
    attack("stub", frozen, "--operators", "thoughts-claim", "--seed", 1)
    attack("stub", frozen, "--operators", "answer-forged", "--seed", 2)
    entries = written(frozen, tmp_path)
    assert [card["seed"] for card in cards(entries)] == [1, 2]
    assert found(entries, tmp_path)["robustness"].result is Result.PASS

    reopen_and_freeze(people, frozen)
    assert CARDS not in written(frozen, tmp_path)


def _count_no_flips(card: dict[str, Any]) -> None:
    card["changes"][0] |= {"flips": 0, "added_false_positives": 0, "result": "pass"}


def _expect_less(card: dict[str, Any]) -> None:
    card["changes"][0]["expects"] = "not_success"


def _hide_a_success(card: dict[str, Any]) -> None:
    next(line for line in card["judgments"] if line["verdict"] == 1)["verdict"] = 0


def _leave_out_a_task(card: dict[str, Any]) -> None:
    card["judgments"] = [line for line in card["judgments"] if line["task_id"] != "task_0001"]


def _name_another_judge(card: dict[str, Any]) -> None:
    card["fingerprint"] = "0" * 64


def _name_another_run(card: dict[str, Any]) -> None:
    card["event_run"] -= 1  # the run that judged the submission


def _invent_a_run(card: dict[str, Any]) -> None:
    card["event_run"] = 2**40


def _rename_a_change(card: dict[str, Any]) -> None:
    card["changes"][0]["operator"] = "thoughts-claim2"


def _give_no_name(card: dict[str, Any]) -> None:
    card["changes"][0]["operator"] = ["thoughts-claim"]


def _leave_out_a_change(card: dict[str, Any]) -> None:
    del card["changes"][1]


def _swap_changes(card: dict[str, Any]) -> None:
    card["changes"].reverse()


def _list_a_change_twice(card: dict[str, Any]) -> None:
    card["changes"].append(card["changes"][0])


def _say_that_it_was_left_out(card: dict[str, Any]) -> None:
    card["changes"][0]["not_applicable"] = {"It has no thoughts.": 1}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (_count_no_flips, "flips is 0, and the judgments give 2"),
        (_expect_less, "expects is 'not_success', and the judgments give 'same'"),
        (_swap_changes, "flips is 0, and the judgments give 2"),
        (_hide_a_success, "has other judgments than the chain of events recorded"),
        (_leave_out_a_task, "has other judgments than the chain of events recorded"),
        (_name_another_judge, "is of another judge in the chain of events"),
        (_name_another_run, "is no test of the chain of events"),
        (_invent_a_run, "is no test of the chain of events"),
        (_rename_a_change, "the change thoughts-claim2 is unknown or listed twice"),
        (_give_no_name, "a change has no name"),
        (_leave_out_a_change, "repetition 3 belongs to no change"),
        (_list_a_change_twice, "the change thoughts-claim is unknown or listed twice"),
        (_say_that_it_was_left_out, "2 copies and those left out are not 2"),
    ],
)
def test_test_that_contradicts_the_bundle_fails(frozen: Submission, tmp_path: Path, change: Change, says: str) -> None:
    attack("stub", frozen, "--operators", ATTACKS)
    entries = written(frozen, tmp_path)
    (card,) = cards(entries)
    change(card)
    entries[CARDS] = canonical_json(card).encode() + b"\n"

    findings = found(signed(entries, explain=False), tmp_path)
    assert findings["robustness"].result is Result.FAIL
    assert says in findings["robustness"].says.replace('"', "'")
    assert "internal" not in findings


def test_test_that_is_listed_twice_fails(frozen: Submission, tmp_path: Path) -> None:
    attack("stub", frozen, "--operators", ATTACKS)
    entries = written(frozen, tmp_path)
    entries[CARDS] *= 2
    says = found(signed(entries, explain=False), tmp_path)["robustness"].says
    assert re.search(r"Run \d+ is listed 2 times", says)


def test_changes_of_a_later_version_are_not_checked(frozen: Submission, tmp_path: Path) -> None:
    attack("stub", frozen, "--operators", ATTACKS)
    entries = written(frozen, tmp_path)
    (card,) = cards(entries)
    entries[CARDS] = canonical_json(card | {"operators_version": VERSION + 1}).encode() + b"\n"
    assert found(signed(entries, explain=False), tmp_path)["robustness"].result is Result.NOTE


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
    assert OPERATORS.keys() == KEEPS_VERDICT ^ ADDS_NO_SUCCESS
    assert CHANGES_VERSION == VERSION
