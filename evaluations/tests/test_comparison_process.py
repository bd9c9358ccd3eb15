"""A rubric verifier against people on steps, first failures and process scores, computed by hand."""

from __future__ import annotations

from math import sqrt
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from annotation import workflow
from annotation.models import Person, Submission
from annotation.models.states import State
from annotation.records import Finding, FindingContent, StepMark, Verdict
from annotation.tests import testing
from annotation.tests.shared_rows import shared_rows
from evaluations.cases import Case, Process, of_submission
from evaluations.comparison import compare, find_judgments
from evaluations.comparison.evidence import findings
from evaluations.comparison.process import compare_process
from evaluations.comparison.results import ProcessComparison
from evaluations.process_tables import tables
from evaluations.tests.hand_made import case, told
from judges.models import Judge, JudgeRun
from judges.tests.rows import judge_row, judgment_row, run_row

FOUR, STEPS = 4, 4


@shared_rows
def submission(folder: Path) -> Submission:
    return testing.submission(folder, trajectories=FOUR, steps=STEPS)


def details(first: int | None = None, category: str | None = None, penalties: Any = (), critical: Any = None) -> Any:
    """The details of a judgment, as far as they name steps."""
    return {
        "details": {
            "kind": "rubric-verifier",
            "first_failure": {"category": category or ("none" if first is None else "selection"), "step": first},
            "penalties": [{"step": step, "points": 1, "reason": ""} for step in penalties],
            "critical_point": {"step": critical, "reason": ""},
        }
    }


def verifier(name: str = "verifier", scorer: str = "rubric-verifier") -> Judge:
    return judge_row(name, scorer=scorer)


def judged(submission: Submission, judge: Judge, *evidence: Any, scores: Any = (None,) * FOUR) -> JudgeRun:
    run = run_row(submission, judge)
    items = run.items.order_by("trajectory__position").select_related("run__submission", "trajectory")
    for item, each, score in zip(items, evidence, scores, strict=True):
        judgment_row(item, 1, evidence=each, score=score)
    return run


def labelled(submission: Submission, *marks: dict[int, str] | None) -> list[Case]:
    """Cases of the trajectories with the marks that one annotator gave each; None: not asked for."""
    rows = submission.trajectories.order_by("position")
    return [
        case(
            number,
            1,
            trajectory=row.pk,
            submission=submission.pk,
            state=State.UNANIMOUS,
            process=None if each is None else Process(STEPS, (("A1", each),)),
        )
        for number, (row, each) in enumerate(zip(rows, marks, strict=True))
    ]


def compared(judge: Judge, cases: list[Case]) -> ProcessComparison:
    found = compare_process(judge, cases, find_judgments(judge, cases), findings(cases))
    assert found is not None
    return found


# --- steps and first failures -----------------------------------------------------------------------------------------


def test_steps_are_compared_as_fault_or_no_fault(submission: Submission) -> None:
    judge = verifier()
    judged(submission, judge, details(1, penalties=[3]), details(critical=0), details(), details(2))
    people = labelled(
        submission, {1: "wrong", 2: "unnecessary"}, {0: "side_effect", 1: "wrong"}, {}, {1: "wrong", 2: "wrong"}
    )

    found = compared(judge, people)

    # Faults of people: 1 | 0, 1 | none | 1, 2. Of the judge: 1, 3 | 0 | none | 2. Both: 1 | 0 | - | 2.
    assert found.trajectories == 4
    assert found.step_table == ((10, 1), (2, 3))  # of 16 steps
    assert (found.step_agreement.hits, found.step_agreement.n) == (13, 16)
    expected = (11 * 12 + 5 * 4) / 16**2  # people: 11 without a fault, 5 with one; judge: 12 and 4
    assert found.step_kappa.value == pytest.approx((13 / 16 - expected) / (1 - expected))
    assert found.step_kappa.low is not None


def test_first_failures_are_compared_where_both_name_a_step(submission: Submission) -> None:
    judge = verifier()
    judged(submission, judge, details(1), details(3), details(), details(None, "reasoning"))

    found = compared(judge, labelled(submission, {1: "wrong", 3: "wrong"}, {2: "wrong"}, {0: "side_effect"}, {}))

    # Failures of people: yes, yes, yes, no. Of the judge: yes, yes, no, yes; the last one without a step.
    assert (found.failure_agreement.hits, found.failure_agreement.n) == (2, 4)
    expected = 3 / 4 * 3 / 4 + 1 / 4 * 1 / 4
    assert found.failure_kappa.value == pytest.approx((2 / 4 - expected) / (1 - expected))
    assert (found.same_first.hits, found.same_first.n) == (1, 2)  # 1 and 1; 2 and 3
    assert (found.near_first.hits, found.near_first.n) == (2, 2)


def test_undecided_step_is_left_out_and_hides_a_later_first_fault(submission: Submission) -> None:
    judge = verifier()
    judged(submission, judge, details(1), details(0), details(), details())
    cases = labelled(submission, None, None, None, None)
    row = submission.trajectories.earliest("position")
    split = Process(STEPS, (("A1", {0: "wrong", 1: "wrong"}), ("A2", {1: "wrong"})))  # no majority for step 0
    cases[0] = case(0, 1, trajectory=row.pk, submission=submission.pk, state=State.UNANIMOUS, process=split)

    found = compared(judge, cases)

    assert (found.trajectories, found.step_table) == (1, ((2, 0), (0, 1)))
    assert found.same_first.n == found.failure_agreement.n == 0
    assert found.same_first.undefined == "people and the judge name no first failure of the same trajectory"


@pytest.mark.parametrize(
    "nonsense",
    [
        {"first_failure": {"category": "selection", "step": "x"}, "penalties": [{"step": {}}, 5], "critical_point": 7},
        {"first_failure": {"category": "selection", "step": 99}, "penalties": 5, "critical_point": {"step": -1}},
    ],
)
def test_judgment_with_unreadable_steps_names_none(submission: Submission, nonsense: Any) -> None:
    judge = verifier()
    judged(submission, judge, {"details": nonsense}, {"details": {"first_failure": 5}}, {}, {"details": []})

    found = compared(judge, labelled(submission, {1: "wrong"}, {}, {}, {}))

    assert found.trajectories == 1  # only the first one states anything
    assert found.step_table == ((3, 0), (1, 0))


def test_other_scorers_state_no_faulty_steps(submission: Submission) -> None:
    judge = verifier("other", "webjudge")
    judged(submission, judge, *[details(1)] * FOUR)

    people = labelled(submission, {1: "wrong"}, {}, {}, {})

    assert compare_process(judge, people, find_judgments(judge, people), {}) is None


# --- process scores ---------------------------------------------------------------------------------------------------


def test_scores_are_correlated_with_the_share_of_steps_that_are_no_fault(submission: Submission) -> None:
    judge = verifier()
    judged(submission, judge, *[details()] * FOUR, scores=(1.0, 0.5, 0.25, None))
    wrong = dict.fromkeys(range(3), "wrong")

    found = compared(judge, labelled(submission, {0: "unnecessary"}, {1: "wrong"}, wrong, {}))

    # People: 1, 3/4, 1/4. Deviations of the judge 5/12, -1/12, -4/12; of people 4/12, 1/12, -5/12.
    products, squares = 20 - 1 + 20, (25 + 1 + 16, 16 + 1 + 25)
    assert found.by_steps.pearson.value == pytest.approx(products / sqrt(squares[0] * squares[1]))
    assert found.by_steps.spearman.value == pytest.approx(1)
    assert found.by_steps.difference.value == pytest.approx((0 + 0.25 + 0) / 3)
    assert found.by_steps.n == 3  # the last judgment has no score
    assert found.by_key_points.pearson.undefined == "fewer than 3 pairs"
    assert found.by_key_points.difference.undefined == "no trajectory has both scores"


def test_scores_without_variation_are_undefined_and_of_another_range_have_no_difference(submission: Submission) -> None:
    judge = verifier()
    judged(submission, judge, *[details()] * FOUR, scores=(50.0, 50.0, 80.0, 20.0))

    found = compared(judge, labelled(submission, {}, {}, {}, {}))

    assert found.by_steps.pearson.undefined == "all scores of one side are equal"
    assert found.by_steps.spearman.undefined == "all scores of one side are equal"
    assert found.by_steps.difference.undefined == "the judge has scores outside 0 to 1"
    assert found.step_kappa.undefined


def test_nothing_is_compared_before_a_final_verdict_or_without_a_judgment(submission: Submission) -> None:
    judge = verifier()
    open_case = case(0, None, state=State.IN_REVIEW, process=Process(1, (("A1", {}),)))
    assert compare_process(judge, [open_case], {open_case.key: told(1, score=0.5)}, {}) is None
    assert compare_process(judge, labelled(submission, {}, {}, {}, {}), {}, {}) is None


# --- a whole review: labels, page, CSV, JSON --------------------------------------------------------------------------


@shared_rows
def people(submission: Submission) -> dict[str, Person]:
    return testing.cast(submission)


def review(submission: Submission, people: dict[str, Person], asked: bool = True) -> Submission:
    """All annotators agree; of the two key points 2, 1, 0 and 0 are met, and step 1 is wrong where any is unmet."""
    Submission.objects.filter(pk=submission.pk).update(spot_check_rate=0, process_labels=asked)
    submission.refresh_from_db()
    for row, met in zip(submission.trajectories.order_by("position"), (2, 1, 0, 0), strict=True):
        points = list(workflow.key_points_of(row))
        assert len(points) == 2
        found = tuple(
            FindingContent(point.pk, Finding.MET if number < met else Finding.UNMET, 0)
            for number, point in enumerate(points)
        )
        marks = (StepMark(1, "wrong"),) if asked and met < 2 else ()
        verdict = Verdict.SUCCESS if met == 2 else Verdict.FAILURE
        for name in ("alice", "bob", "chen"):
            workflow.claim_this(people[name], row)
            workflow.submit(people[name], row, testing.content(row, verdict, findings=found, process=marks))
    workflow.draw_spot_checks(people["mira"], submission)
    return workflow.freeze(people["mira"], submission)


def test_page_csv_and_json_have_the_comparison(
    client: Client, submission: Submission, people: dict[str, Person]
) -> None:
    frozen, judge = review(submission, people), verifier()
    judged(frozen, judge, details(), details(1), details(2), details(), scores=(1.0, 0.75, 0.5, 0.0))

    found = compare(judge, of_submission(frozen), "", benchmark="shops").process

    assert found is not None
    # People: 1, 1/2, 0, 0, in sixteenths of a mean of 6/16: 10, 2, -6, -6. The judge's mean is 9/16: 7, 3, -1, -9.
    products, squares = 70 + 6 + 6 + 54, (100 + 4 + 36 + 36, 49 + 9 + 1 + 81)
    assert found.by_key_points.pearson.value == pytest.approx(products / sqrt(squares[0] * squares[1]))
    # Ranks of people 4, 3, 1.5, 1.5 and of the judge 4, 3, 2, 1: products 2.25 + 0.25 + 0.5 + 1.5, squares 4.5 and 5.
    assert found.by_key_points.spearman.value == pytest.approx(4.5 / sqrt(4.5 * 5))
    assert found.by_key_points.difference.value == pytest.approx((0 + 0.25 + 0.5 + 0) / 4)
    assert [each.name for each in tables(compare(judge, of_submission(frozen), "", benchmark="shops"))] == [
        "faulty-steps", "first-failures", "process-scores",
    ]  # fmt: skip
    client.force_login(people["mira"])
    address = reverse("comparison", args=[frozen.pk]) + f"?judge={judge}"
    page = client.get(address).content.decode()
    for heading in ("Faulty steps", "First failure", "Process scores"):
        assert heading in page
    csv = client.get(f"{address}&csv=process-scores").content.decode()
    assert csv.splitlines()[1].startswith("key points met,4,")
    api = client.get(reverse("api-comparison", args=[frozen.pk]), {"judge": str(judge)}).json()
    assert api["process"]["by_key_points"]["spearman"]["value"] == found.by_key_points.spearman.value
    assert api["process"]["trajectories"] == 4


def test_json_and_page_stay_as_they_were_without_scores_and_process_labels(
    client: Client, submission: Submission, people: dict[str, Person]
) -> None:
    frozen, judge = review(submission, people, asked=False), verifier()
    judged(frozen, judge, *[details(1)] * FOUR)

    found = compare(judge, of_submission(frozen), "", benchmark="shops")

    assert "process" not in found.as_json()
    client.force_login(people["mira"])
    page = client.get(reverse("comparison", args=[frozen.pk]) + f"?judge={judge}").content.decode()
    assert "Process scores" not in page
