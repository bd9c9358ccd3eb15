"""What a submission lacks for an export, at every place of the protocol."""

from __future__ import annotations

from typing import Any

import pytest

from annotation import workflow
from annotation.models import Person, Submission
from annotation.tests import testing
from evaluations.exports import missing_for_export

People = dict[str, Person]


def codes(submission: Submission) -> list[tuple[str, str]]:
    submission.refresh_from_db()
    return [(problem.code, problem.where) for problem in missing_for_export(submission)]


def first(submission: Submission) -> Any:
    return submission.trajectories.first()


def test_a_new_submission_lacks_the_labels_of_every_trajectory_and_the_freeze(submission: Submission) -> None:
    problems = missing_for_export(submission)
    assert [(p.code, p.where) for p in problems] == [
        ("labels_missing", "task_0000"),
        ("labels_missing", "task_0001"),
        ("not_frozen", ""),
    ]
    assert "task_0000: has 0 of 3 labels" in problems[0].message


def test_a_disputed_trajectory_lacks_its_adjudication(submission: Submission, people: People) -> None:
    testing.label_all(people, submission, {"task_0000": [1, 0, 1]})
    assert codes(submission)[0] == ("dispute_open", "task_0000")


def test_agreeing_labels_lack_the_draw_and_then_the_spot_check(submission: Submission, people: People) -> None:
    testing.label_all(people, submission, {})
    assert codes(submission)[:2] == [
        ("spot_checks_not_drawn", "task_0000"),
        ("spot_checks_not_drawn", "task_0001"),
    ]
    draw = workflow.draw_spot_checks(people["mira"], submission)
    assert codes(submission) == [("spot_check_open", draw.drawn[0]), ("not_frozen", "")]


def test_a_flag_lacks_the_adjudicator_s_look(submission: Submission, people: People) -> None:
    testing.label_all(people, submission, {})
    workflow.flag(people["alice"], first(submission), "Is the price right?")
    assert codes(submission)[0] == ("flag_open", "task_0000")


def test_an_opened_adjudication_is_named(submission: Submission, people: People) -> None:
    testing.label_all(people, submission, {"task_0000": [1, 0, 1]})
    workflow.open_adjudication(people["carol"], first(submission))
    assert codes(submission)[0] == ("adjudication_open", "task_0000")


def test_an_adjudication_that_is_being_changed_is_named(submission: Submission, people: People) -> None:
    testing.label_all(people, submission, {"task_0000": [1, 0, 1]})
    testing.adjudicate_all(people["carol"], submission)
    workflow.open_adjudication(people["carol"], first(submission), "Overlooked a step.")
    assert codes(submission)[0] == ("adjudication_open", "task_0000")


def test_a_reopened_trajectory_lacks_a_new_decision(submission: Submission, people: People) -> None:
    testing.label_all(people, submission, {"task_0000": [1, 0, 1]})
    testing.adjudicate_all(people["carol"], submission)
    workflow.reopen(people["mira"], first(submission), "The site was down that day.")
    assert codes(submission)[0] == ("reopened", "task_0000")


def test_a_frozen_submission_lacks_nothing(frozen: Submission) -> None:
    assert codes(frozen) == []


def test_a_task_of_the_benchmark_without_a_trajectory_is_named(uncovered: Submission) -> None:
    assert codes(uncovered) == [("task_not_covered", "task_0002")]


@pytest.mark.parametrize(("present", "other"), [("task_0000", "task_0000_110325"), ("task_0000_110325", "task_0000")])
def test_a_replaced_task_is_covered_by_a_trajectory_of_either_generation(
    frozen: Submission, present: str, other: str
) -> None:
    frozen.benchmark.tasks.filter(external_id="task_0000").update(external_id=present)
    frozen.benchmark.tasks.create(external_id=other, text="The same on another day.")
    frozen.benchmark.tasks.update(created_at=frozen.created_at)  # before the freeze: later ones do not count
    assert codes(frozen) == []


def test_a_new_version_of_a_task_is_covered_by_the_trajectory_of_the_old_one(frozen: Submission) -> None:
    frozen.benchmark.tasks.create(external_id="task_0000", version=2, text="Find the cheapest laptop of the shop.")
    frozen.benchmark.tasks.update(created_at=frozen.created_at)
    assert codes(frozen) == []


def test_fewer_than_three_required_labels_are_never_enough(frozen: Submission) -> None:
    Submission.objects.filter(pk=frozen.pk).update(required_labels=2)
    assert codes(frozen) == [("too_few_labels_required", "")]


def test_the_number_of_queries_does_not_grow(submission: Submission, django_assert_num_queries: Any) -> None:
    with django_assert_num_queries(2):
        missing_for_export(submission)
