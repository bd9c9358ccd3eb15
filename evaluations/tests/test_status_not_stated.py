"""Verdicts that a judge's replies do not state are counted in comparisons, bundles, checks and audits."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from django.urls import reverse

from annotation.models import Person, Submission
from annotation.tests.shared_rows import shared_rows
from evaluations import cases
from evaluations.comparison import compare
from evaluations.evidence import bundle as figures
from evaluations.evidence.documents import documents
from evaluations.tests.audited import audit_of, auditor, bundle, client_of
from evaluations.verifier.checking import Given, check_bundle
from evaluations.verifier.documents import Bundle
from evaluations.verifier.figures import comparison_finding
from evaluations.verifier.findings import Result
from evaluations.verifier.judgments import judgment_problem
from judges.models import Judge, Judgment
from judges.tests.rows import judge_row, judgment_row, run_row

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("store")]
ROW = ("strict", "left out")  # judge, and the rule for label 2


@shared_rows
def judge(frozen: Submission) -> Judge:
    """Both verdicts agree with people; the second is only the default of a reply that states none."""
    run = run_row(frozen, judge_row("strict", parameters={"mode": "upstream"}))
    first, second = run.items.order_by("pk")
    judgment_row(first, 1)
    judgment_row(second, 1, status_not_stated=True)
    return run.judge


def test_a_comparison_counts_them_and_keeps_the_arithmetic(
    judge: Judge, frozen: Submission, people: dict[str, Person]
) -> None:
    found = compare(judge, cases.of_submission(frozen), "", benchmark=frozen.benchmark.slug)
    assert (found.status_not_stated, found.as_json()["status_not_stated"]) == (1, 1)
    assert (found.overall[0].n, found.overall[0].measures["agreement"].value) == (2, 1.0)

    client = client_of(people["mira"])
    address = reverse("comparison", args=[frozen.pk])
    assert "Status not stated" in client.get(address, {"judge": "strict"}).content.decode()
    judging = client.get(reverse("judge-standings", args=[frozen.benchmark.slug]), {"csv": "judges"})
    [row] = [r for r in csv.DictReader(judging.content.decode().splitlines()) if (r["judge"], r["label_2"]) == ROW]
    assert row["status_not_stated"] == "1"


def test_a_bundle_marks_them_and_its_check_counts_them_again(
    judge: Judge, frozen: Submission, tmp_path: Path, change: Callable[[Bundle, int], Bundle]
) -> None:
    found = documents(frozen)
    found.comparison = figures.comparison(frozen)
    assert [line.get("status_not_stated") for line in found.judgments or []] == [None, True]
    [stated] = (found.comparison or {})["judges"]
    assert stated["status_not_stated"] == 1
    assert comparison_finding(found).result is Result.PASS

    for number in (0, 2):
        wrong = comparison_finding(change(found, number))
        assert wrong.result is Result.FAIL
        assert "status_not_stated" in wrong.says

    checked = check_bundle(str(bundle(frozen, tmp_path)), Given())
    failed = {one.name: one.says for one in checked.findings if one.result is Result.FAIL}
    assert failed == {"judgments": "Run 1 (strict) has no events."}  # this run was made without any


@pytest.fixture
def change() -> Callable[[Bundle, int], Bundle]:
    """A function that states another number of the judge; 0 leaves it out."""

    def changed(found: Bundle, number: int) -> Bundle:
        stated = json.loads(json.dumps(found.comparison))
        del stated["judges"][0]["status_not_stated"]
        stated["judges"][0] |= {"status_not_stated": number} if number else {}
        return Bundle(**{**vars(found), "comparison": stated})

    return changed


def test_a_bundle_without_them_has_no_mark(frozen: Submission) -> None:
    judgment_row(run_row(frozen).items.earliest("pk"), 1)
    found = documents(frozen)
    found.comparison = figures.comparison(frozen)
    assert "status_not_stated" not in json.dumps([found.judgments, found.comparison])


def test_a_mark_without_a_verdict_is_a_problem_of_its_line(judge: Judge, frozen: Submission) -> None:
    found = documents(frozen)
    assert found.judgments is not None
    assert found.runs is not None
    line = found.judgments[1] | {"verdict": None, "reason": "The model refused."}
    assert judgment_problem(line, found.runs[0]) == "its status is not stated, and it has no verdict"
    assert judgment_problem(found.judgments[1], found.runs[0]) is None


def test_an_audit_takes_the_marks_over(judge: Judge, frozen: Submission, tmp_path: Path) -> None:
    audit = audit_of(frozen, tmp_path)
    came = Judgment.objects.filter(judge__came_with=audit.submission).order_by("pk")
    assert list(came.values_list("status_not_stated", flat=True)) == [False, True]
    answer = client_of(auditor()).get(reverse("api-comparison", args=[audit.submission.pk]), {"judge": "strict@1"})
    assert answer.json()["status_not_stated"] == 1
