"""Whose figures a person may see: their own frozen submissions, and nothing while they review the benchmark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import PermissionDenied
from django.http import Http404

from annotation import access as people_access
from annotation import workflow
from annotation.catalogue import import_labels
from annotation.models import Agent, Membership, Person, Submission, Trajectory
from annotation.tests import testing
from evaluations import access
from evaluations.cases import Rules
from evaluations.tests.finished import finish
from judges.models import Judge
from judges.tests import rows

People = dict[str, Person]


def second(first: Submission, agent: str = "Other Agent", **fields: Any) -> Submission:
    """Another submission of the benchmark with one trajectory, without members."""
    made = Submission.objects.create(
        benchmark=first.benchmark, agent=Agent.objects.create(name=agent), digest=agent, **fields
    )
    task = first.benchmark.tasks.order_by("pk").first()
    assert task is not None
    Trajectory.objects.create(
        submission=made, task=task, position=0, task_text=task.text, digest="0", open_slots=3, source_format="v2"
    )
    return made


def agents(person: Person) -> set[str]:
    _, cases = access.benchmark_cases(person, "shops")
    return {case.agent for case in cases}


# --- one submission --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["alice", "bob", "carol"])
def test_a_submission_is_not_reported_to_those_who_review_it(frozen: Submission, people: People, name: str) -> None:
    workflow.open_results(people["mira"], frozen)
    with pytest.raises(PermissionDenied):
        access.reported_for(people[name], frozen.pk)


def test_a_submission_is_unknown_to_an_outsider(frozen: Submission, people: People) -> None:
    with pytest.raises(Http404):
        access.reported_for(people["dave"], frozen.pk)
    with pytest.raises(Http404):
        access.reported_for(people["mira"], frozen.pk + 1)


def test_no_case_of_a_submission_is_handed_out_before_its_freeze(submission: Submission, people: People) -> None:
    with pytest.raises(PermissionDenied, match="not frozen"):
        access.submission_cases(access.reported_for(people["mira"], submission.pk))


def test_a_maintainer_finds_a_submission_that_is_not_frozen_too(submission: Submission, people: People) -> None:
    assert access.reported_for(people["mira"], submission.pk).frozen_at is None


# --- a benchmark -----------------------------------------------------------------------------------------------------


def test_a_benchmark_counts_the_frozen_submissions_that_the_person_maintains(
    frozen: Submission, people: People
) -> None:
    assert [case.trajectory for case in access.benchmark_cases(people["mira"], "shops")[1]] == list(
        frozen.trajectories.order_by("position").values_list("pk", flat=True)
    )


def test_a_submission_that_is_not_frozen_does_not_count(submission: Submission, people: People) -> None:
    testing.label_all(people, submission, {})
    assert agents(people["mira"]) == set()


def test_a_frozen_submission_of_somebody_else_does_not_count(frozen: Submission, people: People) -> None:
    other = testing.person("erin", is_staff=True)
    workflow.join_as_maintainer(second(frozen), other)
    assert agents(other) == set()
    assert agents(people["mira"]) == {"Careful Agent"}


def test_a_frozen_submission_that_the_person_only_annotated_does_not_count(frozen: Submission, people: People) -> None:
    workflow.join_as_maintainer(second(frozen), people["alice"])
    assert people_access.submissions_maintained_by(people["alice"]).count() == 1
    assert agents(people["alice"]) == set()


def test_a_submission_for_practice_does_not_count(frozen: Submission, people: People) -> None:
    Submission.objects.filter(pk=frozen.pk).update(practice=True)
    assert agents(people["mira"]) == set()


def test_who_runs_the_instance_sees_every_frozen_submission_but_those_that_they_review(
    frozen: Submission, people: People
) -> None:
    root = Person.objects.create_superuser("root", "root@people.example", "a long password")
    assert agents(root) == {"Careful Agent"}
    Membership.objects.create(submission=frozen, person=root, role="annotator", pseudonym="A9")
    assert agents(root) == set()


@pytest.mark.parametrize("name", ["alice", "carol"])
@pytest.mark.parametrize("rights", ["maintains another submission", "is of the staff"])
def test_who_reviews_an_open_submission_is_refused_until_it_is_frozen(
    submission: Submission, people: People, name: str, rights: str
) -> None:
    if rights == "is of the staff":
        Person.objects.filter(pk=people[name].pk).update(is_staff=True)
    else:
        workflow.join_as_maintainer(second(submission), people[name])
    person = Person.objects.get(username=name)
    with pytest.raises(PermissionDenied):
        access.benchmark_cases(person, "shops")
    finish(people, submission, {})
    access.benchmark_cases(person, "shops")


@pytest.mark.parametrize("name", ["dave", "alice", "carol"])
def test_a_benchmark_is_unknown_to_who_does_not_keep_its_catalogue(
    frozen: Submission, people: People, name: str
) -> None:
    with pytest.raises(Http404):
        access.benchmark_cases(people[name], "shops")


def test_labels_made_elsewhere_count_for_every_keeper_of_the_benchmark(frozen: Submission, people: People) -> None:
    erin = testing.person("erin", is_staff=True)
    file = b"annotator,task_id,agent,label\nx,task_0000,Agent X,1\ny,task_0000,Agent X,0\nx,task_0000,Careful Agent,0\n"
    assert not import_labels(file, "labels.csv", benchmark=frozen.benchmark).rejected
    assert agents(erin) == {"Agent X", "Careful Agent"}
    _, cases = access.benchmark_cases(people["mira"], "shops")
    assert [(case.agent, case.trajectory is None) for case in cases] == [
        ("Careful Agent", False),
        ("Careful Agent", False),
        ("Agent X", True),
    ]
    assert cases[-1].final is None
    _, published = access.benchmark_cases(people["mira"], "shops", Rules.PUBLISHED)
    assert published[-1].final == 1


# --- judges by name --------------------------------------------------------------------------------------------------


def test_a_name_finds_the_newest_version_and_a_number_that_one(db: Any) -> None:
    judges = [rows.judge_row("strict"), Judge.objects.create(name="strict", version=2, scorer="webjudge")]
    other = Judge.objects.create(name="strict", version=3, scorer="webjudge")
    assert access.judge_named("strict", judges) == judges[1]
    assert access.judge_named("strict@1", judges) == judges[0]
    assert access.judge_named("strict@2", judges) == judges[1]
    for unknown in (access.name_of(other), "strict@", "strict@x", "@1", "", "lenient"):
        with pytest.raises(Http404):
            access.judge_named(unknown, judges)
    assert [access.judge_named(access.name_of(judge), judges) for judge in judges] == judges


def test_a_judge_that_said_nothing_about_the_cases_is_unknown(db: Any, tmp_path: Path) -> None:
    rows.judge_row("strict")
    with pytest.raises(Http404):
        access.judge_named("strict", [])
