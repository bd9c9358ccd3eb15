"""Checking a bundle against the list of tasks that the benchmark gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from evaluations.tests.checks import check
from evaluations.tests.hand_made_bundle import HandMade, signed, zipped
from evaluations.verifier.findings import Finding, Result

pytestmark = pytest.mark.slow
Checked = Callable[[list[Any] | None], Finding]


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory) -> Checked:
    """What the check of a sound bundle finds about this list of tasks; no other check fails."""
    bundle = tmp_path_factory.mktemp("bundle") / "bundle.zip"
    bundle.write_bytes(zipped(signed(HandMade().complete().entries())))

    def finding_of(tasks: list[Any] | None) -> Finding:
        findings = {finding.name: finding for finding in check(str(bundle), tasks=tasks, renderers=None)}
        assert {name for name, found in findings.items() if found.result is Result.FAIL} <= {"tasks"}
        return findings["tasks"]

    return finding_of


def test_a_task_of_the_given_list_without_trajectory_is_found(checked: Checked) -> None:
    finding = checked(["task_a", "task_b", "task_c", "task_d"])
    assert (finding.result, finding.places) == (Result.FAIL, ("task_d",))


@pytest.mark.parametrize(
    ("says", "result"),
    [
        ({"confirmed_task": "Do thing 0.", "reference_length": 2, "level": "easy"}, Result.PASS),
        ({"confirmed_task": " Do  thing 0. ", "level": "Easy"}, Result.PASS),
        ({"confirmed_task": "Do thing 0, or not."}, Result.FAIL),
        ({"text": "Do another thing."}, Result.FAIL),
        ({"reference_length": 3}, Result.FAIL),
        ({"level": "hard"}, Result.FAIL),
    ],
)
def test_what_the_given_list_says_of_a_task_is_compared(says: dict[str, Any], result: Result, checked: Checked) -> None:
    finding = checked(["task_b", "task_c", {"task_id": "task_a"} | says])
    assert finding.result is result
    assert finding.places == (("task_a",) if result is Result.FAIL else ())


def test_a_replaced_task_of_the_given_list_counts_without_its_date(checked: Checked) -> None:
    finding = checked(["task_a_110125", "task_b", "task_c_123199"])
    assert (finding.result, finding.places) == (Result.NOTE, ("task_a", "task_c"))
    assert checked(["task_a", "task_b", "task_c"]).result is Result.PASS
    assert "submitter's catalogue" in checked(None).says
    assert checked(["task_a"]).result is Result.NOTE
    assert checked(["task_a_139925"]).result is Result.FAIL
