"""The first page: what waits for each role, with the one button that starts it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from annotation import ingest, workflow
from annotation.models import Membership, Person, Report, Submission
from annotation.tests import testing


@pytest.fixture
def page_of(client: Client, people: dict[str, Person]) -> Any:
    """The work that a person sees as waiting: (action, count, note); with the page as the second value."""

    def see(name: str) -> tuple[list[tuple[str, int, str]], str]:
        client.force_login(people[name])
        response = client.get(reverse("home"))
        found = [(work.action, work.count, work.note) for work in response.context["waiting"]]
        return found, response.content.decode()

    return see


def test_an_annotator_is_offered_the_next_trajectory_and_then_their_open_one(
    page_of: Any, client: Client, people: dict[str, Person], submission: Submission
) -> None:
    found, page = page_of("alice")
    assert found == [("Next trajectory", 2, "2 trajectories to label")]
    assert "2 items are waiting for you" in page
    assert f'action="{reverse("next-trajectory", args=[submission.pk])}"' in page

    client.post(reverse("next-trajectory", args=[submission.pk]))
    ((action, count, note),), page = page_of("alice")
    assert (action, count) == ("Continue", 2)
    assert "Find the cheapest laptop" in note
    assert "reserved until" in note
    assert "0 labels today" in page


def test_labels_of_today_are_counted_and_an_empty_queue_is_no_work(
    page_of: Any, people: dict[str, Person], submission: Submission
) -> None:
    for trajectory in submission.trajectories.all():
        testing.label(people["alice"], trajectory)

    found, page = page_of("alice")
    assert found == []
    assert "Nothing is waiting for you" in page
    assert "2 labels today" in page
    assert "your queue is empty: 2 of 2 labelled" in page


def test_what_an_annotator_put_off_is_named_beside_what_is_left(
    page_of: Any, people: dict[str, Person], submission: Submission
) -> None:
    workflow.put_off(people["alice"], workflow.claim(people["alice"], submission).trajectory)
    assert page_of("alice")[0] == [("Next trajectory", 1, "1 trajectory to label, 1 put off by you")]


def test_the_practice_set_comes_first(
    page_of: Any, people: dict[str, Person], submission: Submission, tmp_path: Path
) -> None:
    testing.practice_set(people, submission, tmp_path / "practice")

    found, page = page_of("bob")
    assert found == [("Practise", 2, "practice first: 0 of 2 answered")]
    assert reverse("practice", args=[submission.pk]) in page


def test_a_practice_set_of_its_own_annotators_is_optional_and_comes_last_until_a_round_is_over(
    page_of: Any, people: dict[str, Person], submission: Submission, tmp_path: Path
) -> None:
    played = testing.practice_set(people, submission, tmp_path / "practice")
    workflow.configure(people["mira"], submission, practice_set=None, pass_mark=None)
    workflow.add_member(people["mira"], played, people["alice"], Membership.Role.ANNOTATOR)
    first, second = played.trajectories.order_by("position")

    assert page_of("alice")[0] == [
        ("Next trajectory", 2, "2 trajectories to label"),
        ("Practise", 0, "optional practice: 0 of 2 answered"),
    ]
    assert "2 items are waiting for you" in page_of("alice")[1]
    workflow.answer_practice(people["alice"], played, first, testing.content(first), 1)
    assert page_of("alice")[0][1] == ("Practise", 0, "optional practice: 1 of 2 answered")
    workflow.answer_practice(people["alice"], played, second, testing.content(second), 1)
    found, page = page_of("alice")
    assert [action for action, _, _ in found] == ["Next trajectory"]
    assert ">practice set<" in page


def test_an_adjudicator_sees_what_waits_and_what_they_have_opened(
    page_of: Any, people: dict[str, Person], submission: Submission
) -> None:
    assert page_of("carol")[0] == []
    testing.label_all(people, submission, {"task_0000": [1, 0, 1], "task_0001": [1, 1, 0]})
    assert page_of("carol")[0] == [("Open the hardest", 2, "2 trajectories to adjudicate")]
    workflow.open_adjudication(people["carol"], submission.trajectories.get(position=0))

    assert page_of("carol")[0] == [("Continue", 2, "1 trajectory opened by you")]


def test_a_maintainer_sees_reports_lacking_people_and_what_can_be_frozen(
    page_of: Any, people: dict[str, Person], submission: Submission
) -> None:
    found, page = page_of("mira")
    assert found == []
    assert "0 of 6 labels, 0 of 2 final" in page
    workflow.claim(people["alice"], submission)
    workflow.report(
        people["alice"], submission.trajectories.get(position=0), Report.Kind.TASK_OUTDATED, "The shop is closed."
    )
    assert page_of("mira")[0] == [("Answer", 1, "1 report from annotators and adjudicators")]
    Report.objects.update(settled_at=timezone.now())

    chen = Membership.objects.filter(submission=submission, person=people["chen"])
    chen.update(deactivated_at=timezone.now())
    assert page_of("mira")[0] == [("Add people", 1, "2 of 3 annotators: labels cannot be completed")]
    chen.update(deactivated_at=None)
    carol = Membership.objects.filter(submission=submission, person=people["carol"])
    carol.update(deactivated_at=timezone.now())
    assert page_of("mira")[0] == [("Add people", 1, "no adjudicator: disputes cannot be decided")]
    carol.update(deactivated_at=None)

    testing.label_all(people, submission, {"task_0000": [1, 0, 1], "task_0001": [1, 1, 0]})
    testing.adjudicate_all(people["carol"], submission)
    assert page_of("mira")[0] == [("Review and freeze", 1, "every trajectory has a final verdict")]
    workflow.freeze(people["mira"], submission)
    found, page = page_of("mira")
    assert found == []
    assert "frozen on" in page


def test_a_maintainer_is_told_to_draw_once_no_label_and_no_decision_is_missing(
    page_of: Any, people: dict[str, Person], submission: Submission
) -> None:
    testing.label_all(people, submission, {"task_0000": [1, 0, 1]})
    assert page_of("mira")[0] == []  # there is a dispute
    testing.adjudicate_all(people["carol"], submission)
    assert page_of("mira")[0] == [("Draw spot checks", 1, "1 trajectory agreed and not drawn yet")]
    workflow.draw_spot_checks(people["mira"], submission)
    assert page_of("mira")[0] == []


def test_home_tells_nobody_a_verdict_or_a_colleague(
    page_of: Any, people: dict[str, Person], submission: Submission
) -> None:
    testing.label_all(people, submission, {"task_0000": [1, 0, 1]})

    for name in ("alice", "carol", "mira"):
        page = page_of(name)[1]
        assert "Failure" not in page
        assert "Success" not in page
        assert not [other for other in ("bob", "chen") if other in page]


def test_benchmark_with_two_agents_to_compare_is_linked_once_results_are_open(
    page_of: Any, people: dict[str, Person], submission: Submission, tmp_path: Path
) -> None:
    package = testing.write_submission(tmp_path / "other", 2)
    _, other = ingest.import_submission(package, benchmark=submission.benchmark, agent_name="Other Agent")
    assert other is not None
    testing.cast(other)
    link = reverse("two-agents", args=["shops"])
    assert link in page_of("mira")[1]
    now = timezone.now()
    Submission.objects.update(frozen_at=now)
    Submission.objects.filter(pk=other.pk).update(opened_at=now)
    assert link not in page_of("alice")[1]
    Submission.objects.update(opened_at=now)
    assert link in page_of("alice")[1]
    Submission.objects.filter(pk=other.pk).update(practice=True)
    assert link not in page_of("alice")[1]
