"""Training: practice sets that newcomers pass before real work, and gold items among it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
from django.core.exceptions import PermissionDenied
from django.db import connection
from django.http import Http404
from django.utils import timezone

from annotation import access, training, workflow
from annotation.models import (
    Attachment,
    Event,
    KnownAnswer,
    Label,
    Membership,
    Person,
    PracticeAnswer,
    Submission,
    Trajectory,
)
from annotation.records import Finding, FindingContent
from annotation.tests import testing
from annotation.tests.shared_rows import shared_rows
from annotation.workflow import Conflict, Incomplete


@pytest.fixture
def practice_set(people: dict[str, Person], submission: Submission, tmp_path: Path) -> Submission:
    """Three items, of which the second is a failure; two of three have to be right."""
    return testing.practice_set(people, submission, tmp_path / "practice", answers=(1, 0, 1), mark=0.6)


@pytest.fixture
def items(practice_set: Submission) -> list[Trajectory]:
    return list(practice_set.trajectories.order_by("position"))


@shared_rows
def alice(people: dict[str, Person]) -> Person:
    return people["alice"]


def answer(person: Person, submission: Submission, item: Trajectory, verdict: int = 1, number: int = 1) -> Any:
    return workflow.answer_practice(person, submission, item, testing.content(item, verdict), number)


def answer_all(
    person: Person, submission: Submission, items: list[Trajectory], *verdicts: int, number: int = 1
) -> None:
    for item, verdict in zip(items, verdicts, strict=True):
        answer(person, submission, item, verdict, number)


# --- a practice set takes no labels ----------------------------------------------------------------------------------


def test_a_practice_set_gives_no_work_in_any_way(practice_set: Submission, items: list[Trajectory]) -> None:
    mira, nina = testing.person("mira"), testing.person("nina")
    workflow.add_member(mira, practice_set, nina, Membership.Role.ANNOTATOR)

    with pytest.raises(Conflict, match="takes no labels"):
        workflow.claim(nina, practice_set)
    with pytest.raises(Conflict, match="takes no labels"):
        workflow.claim_this(nina, items[0])
    with pytest.raises(Conflict, match="takes no labels"):
        workflow.claim_ahead(nina, items[0])
    assert not items[0].assignments.exists()


def test_a_practice_set_that_was_switched_on_after_the_page_was_loaded_gives_no_work(
    people: dict[str, Person], submission: Submission
) -> None:
    stale = Submission.objects.get(pk=submission.pk)
    Submission.objects.filter(pk=submission.pk).update(practice=True)

    with pytest.raises(Conflict, match="takes no labels"):
        workflow.claim(people["alice"], stale)


# --- who is given real work ------------------------------------------------------------------------------------------


def test_a_newcomer_is_given_no_real_work_before_passing(
    alice: Person, submission: Submission, items: list[Trajectory]
) -> None:
    with pytest.raises(Conflict, match="Pass the practice set first"):
        workflow.claim(alice, submission)
    with pytest.raises(Conflict, match="Pass the practice set first"):
        workflow.claim_this(alice, submission.trajectories.get(position=0))
    answer_all(alice, submission, items[:2], 1, 0)  # the mark is reached, but the round is not over
    with pytest.raises(Conflict, match="Pass the practice set first"):
        workflow.claim(alice, submission)

    answer(alice, submission, items[2], 0)
    assert workflow.claim(alice, submission) is not None


def test_a_newcomer_is_told_to_practise_even_where_no_work_is_left(
    people: dict[str, Person], submission: Submission, practice_set: Submission
) -> None:
    for name in ("alice", "bob", "chen"):  # they have begun before
        assert workflow.configure(people["mira"], submission, pass_mark=None)
        workflow.claim_this(people[name], submission.trajectories.get(position=0))
        workflow.claim_this(people[name], submission.trajectories.get(position=1))
    workflow.configure(people["mira"], submission, pass_mark=0.5)
    nina = testing.person("nina")
    workflow.add_member(people["mira"], submission, nina, Membership.Role.ANNOTATOR)

    with pytest.raises(Conflict, match="Pass the practice set first"):
        workflow.claim(nina, submission)


def test_without_a_pass_mark_practice_is_up_to_everybody(
    alice: Person, submission: Submission, items: list[Trajectory]
) -> None:
    Submission.objects.filter(pk=submission.pk).update(pass_mark=None)
    submission.refresh_from_db()
    answer_all(alice, submission, items, 0, 1, 0)

    assert workflow.claim(alice, submission) is not None
    assert not training.load_practice(alice, submission).passed
    assert not Event.objects.filter(kind=training.PASSED).exists()


def test_a_practice_set_without_known_answers_admits_nobody(alice: Person, submission: Submission) -> None:
    empty = testing.bare_submission(1)
    Submission.objects.filter(pk=empty.pk).update(practice=True)
    Submission.objects.filter(pk=submission.pk).update(practice_set=empty, pass_mark=0.0)
    submission.refresh_from_db()

    with pytest.raises(Conflict, match="Pass the practice set first"):
        workflow.claim(alice, submission)


def test_who_has_labelled_before_practice_was_switched_on_goes_on(
    people: dict[str, Person], submission: Submission, tmp_path: Path
) -> None:
    first, second = submission.trajectories.order_by("position")
    testing.label(people["alice"], first)
    testing.practice_set(people, submission, tmp_path / "practice")

    held = workflow.claim(people["alice"], submission)
    assert held is not None
    assert held.trajectory_id == second.pk
    with pytest.raises(Conflict):
        workflow.claim(people["bob"], submission)


def test_what_is_held_when_practice_is_switched_on_is_kept_and_nothing_is_given_beside_it(
    people: dict[str, Person], submission: Submission, tmp_path: Path
) -> None:
    held = workflow.claim(people["alice"], submission)
    assert held is not None
    testing.practice_set(people, submission, tmp_path / "practice")

    again = workflow.claim(people["alice"], submission)
    assert again is not None
    assert again.pk == held.pk
    assert workflow.claim_ahead(people["alice"], held.trajectory) is None


def test_real_work_as_a_practice_set_shows_nobody_its_gold_items(
    people: dict[str, Person], submission: Submission, tmp_path: Path
) -> None:
    other = testing.bare_submission(1)
    gold = other.trajectories.get()
    KnownAnswer.objects.create(
        trajectory=gold, verdict=1, explanation="gold", author=people["mira"], saved_at=timezone.now()
    )
    Submission.objects.filter(pk=submission.pk).update(practice_set=other, pass_mark=0.5)
    submission.refresh_from_db()

    assert training.load_practice(people["alice"], submission).items == []
    for look in (access.visible_trajectory_for, lambda p, pk: access.practice_trajectory_for(p, submission.pk, pk)):
        with pytest.raises(Http404):
            look(people["alice"], gold.pk)


# --- answering -------------------------------------------------------------------------------------------------------


def test_results_of_several_people_are_those_of_each(
    people: dict[str, Person], submission: Submission, items: list[Trajectory]
) -> None:
    answer_all(people["alice"], submission, items, 1, 0, 1)
    answer(people["bob"], submission, items[0])
    pks = {people[name].pk: name for name in ("alice", "bob", "chen")}
    found = {pks[pk]: practice for pk, practice in training.load_practices(pks, submission).items()}

    assert {name: practice.right for name, practice in found.items()} == {"alice": 3, "bob": 1, "chen": 0}
    assert {name: practice.passed for name, practice in found.items()} == {"alice": True, "bob": False, "chen": False}
    assert training.find_admitted(training.load_practices(pks, submission), submission) == {people["alice"].pk}


def test_an_answer_is_right_when_its_verdict_is(alice: Person, submission: Submission, items: list[Trajectory]) -> None:
    assert answer(alice, submission, items[0], 1).right
    assert not answer(alice, submission, items[1], 2).right
    kept = PracticeAnswer.objects.get(trajectory=items[1])
    assert (kept.verdict, kept.round, kept.content["cause"]) == (2, 1, "blocked")
    assert set(kept.content["findings"]) == {str(p.pk) for p in workflow.key_points_of(items[1])}


def test_an_answer_is_complete_like_a_label(alice: Person, submission: Submission, items: list[Trajectory]) -> None:
    bad = testing.content(items[0], 0, failure_type="", reasoning="")
    with pytest.raises(Incomplete) as refused:
        workflow.answer_practice(alice, submission, items[0], bad, 1)
    assert {p.where for p in refused.value.problems} == {"failure_type", "reasoning"}
    assert not PracticeAnswer.objects.exists()


def test_an_item_is_answered_once_a_round(alice: Person, submission: Submission, items: list[Trajectory]) -> None:
    answer(alice, submission, items[0], 0)
    with pytest.raises(Conflict, match="already answered this trajectory"):
        answer(alice, submission, items[0], 1)
    assert not PracticeAnswer.objects.get().right


@pytest.mark.parametrize("number", [0, 2, 7, -1])
def test_a_round_that_is_not_open_takes_no_answer(
    alice: Person, submission: Submission, items: list[Trajectory], number: int
) -> None:
    with pytest.raises(Conflict, match="round"):
        answer(alice, submission, items[0], 1, number)


def test_an_old_window_answers_nothing_in_a_new_round_by_accident(
    alice: Person, submission: Submission, items: list[Trajectory]
) -> None:
    answer_all(alice, submission, items, 0, 1, 0)  # all wrong: round 2 is open
    with pytest.raises(Conflict, match="round has ended"):
        answer(alice, submission, items[2], 1, 1)
    assert answer(alice, submission, items[2], 1, 2).round == 2


def test_a_new_round_asks_everything_again_and_can_be_passed(
    alice: Person, submission: Submission, items: list[Trajectory]
) -> None:
    answer_all(alice, submission, items, 0, 1, 1)
    failed = training.load_practice(alice, submission)
    assert (failed.over, failed.passed, failed.right, failed.needed, failed.open_round) == (True, False, 1, 2, 2)

    answer(alice, submission, items[0], 1, 2)
    begun = training.load_practice(alice, submission)
    assert (begun.number, begun.answered, begun.next_item) == (2, 1, items[1])
    answer_all(alice, submission, items[1:], 0, 0, number=2)
    assert training.load_practice(alice, submission).passed
    event = Event.objects.get(kind=training.PASSED)
    assert event.submission == submission
    assert (event.actor_pseudonym, event.payload) == ("A1", {"round": 2, "right": 2, "of": 3, "pass_mark": 0.6})


def test_a_frozen_submission_takes_no_practice_answer(
    alice: Person, submission: Submission, items: list[Trajectory]
) -> None:
    Submission.objects.filter(pk=submission.pk).update(frozen_at=timezone.now())
    with pytest.raises(Conflict, match="frozen"):
        answer(alice, submission, items[0])
    assert not PracticeAnswer.objects.exists()


def test_after_passing_no_round_is_open(alice: Person, submission: Submission, items: list[Trajectory]) -> None:
    answer_all(alice, submission, items, 1, 0, 1)
    with pytest.raises(Conflict, match="round"):
        answer(alice, submission, items[0], 1, 2)


def test_who_has_passed_stays_so_when_the_set_grows_or_the_mark_rises(
    alice: Person, submission: Submission, practice_set: Submission, items: list[Trajectory]
) -> None:
    KnownAnswer.objects.filter(trajectory=items[2]).delete()
    answer_all(alice, submission, items[:2], 1, 0)
    workflow.set_known_answer(testing.person("mira"), items[2], testing.content(items[2], 1))
    workflow.configure(testing.person("mira"), submission, pass_mark=1.0)
    submission.refresh_from_db()

    state = training.load_practice(alice, submission)
    assert (state.over, state.passed) == (False, True)
    assert workflow.claim(alice, submission) is not None


@pytest.mark.parametrize(("mark", "needed"), [(0.6, 3), (0.61, 4), (1.0, 5), (0.0, 0), (0.2, 1)])
def test_the_mark_is_a_share_of_the_items_whatever_floats_say(mark: float, needed: int) -> None:
    items: list[Any] = [Trajectory(pk=n) for n in range(1, 6)]
    assert training.Practice(items, {}, mark).needed == needed


def test_outsiders_adjudicators_and_former_annotators_do_not_practise(
    people: dict[str, Person], submission: Submission, items: list[Trajectory]
) -> None:
    workflow.deactivate_member(people["mira"], submission, people["bob"])
    for name in ("dave", "carol", "mira", "bob"):
        with pytest.raises(PermissionDenied):
            answer(people[name], submission, items[0])


def test_only_items_of_the_practice_set_are_answered(
    alice: Person, submission: Submission, items: list[Trajectory]
) -> None:
    KnownAnswer.objects.filter(trajectory=items[2]).delete()
    for foreign in (submission.trajectories.get(position=0), items[2]):
        with pytest.raises(PermissionDenied):
            answer(alice, submission, foreign)


def test_practice_makes_no_label_and_touches_no_queue(
    alice: Person, submission: Submission, items: list[Trajectory]
) -> None:
    answer_all(alice, submission, items, 1, 0, 1)
    assert not Label.objects.exists()
    assert set(Trajectory.objects.values_list("open_slots", flat=True)) == {3}


def test_one_set_serves_two_submissions_and_is_passed_for_both(
    people: dict[str, Person], submission: Submission, practice_set: Submission, items: list[Trajectory]
) -> None:
    other = testing.bare_submission(1)
    testing.cast(other)
    Submission.objects.filter(pk=other.pk).update(practice_set=practice_set, pass_mark=0.6)
    other.refresh_from_db()
    answer_all(people["alice"], submission, items, 1, 0, 1)

    assert workflow.claim(people["alice"], other) is not None
    recorded = Event.objects.filter(kind=training.PASSED).values_list("submission", "payload__pass_mark")
    assert sorted(recorded) == [(submission.pk, submission.pass_mark), (other.pk, 0.6)]


def test_a_round_on_the_page_of_the_set_itself_is_recorded_where_the_set_must_be_passed(
    people: dict[str, Person], submission: Submission, practice_set: Submission, items: list[Trajectory]
) -> None:
    workflow.add_member(people["mira"], practice_set, people["alice"], Membership.Role.ANNOTATOR)
    answer_all(people["alice"], practice_set, items, 1, 0, 1)

    assert Event.objects.get(kind=training.PASSED).submission == submission
    assert workflow.claim(people["alice"], submission) is not None


@pytest.mark.django_db(transaction=True)
def test_two_windows_that_answer_one_item_at_once_leave_one_answer(tmp_path: Path) -> None:
    submission = testing.submission(tmp_path / "package")
    people = testing.cast(submission)
    practice_set = testing.practice_set(people, submission, tmp_path / "practice", answers=(1,), mark=1.0)
    item, barrier = practice_set.trajectories.get(), Barrier(4)

    def window(_: int) -> Any:
        try:
            barrier.wait(timeout=30)
            return answer(people["alice"], submission, item)
        except Conflict as conflict:
            return conflict
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        outcomes = list(pool.map(window, range(4)))
    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["Conflict"] * 3 + ["PracticeAnswer"]
    assert PracticeAnswer.objects.count() == 1
    assert Event.objects.filter(kind=training.PASSED).count() == 1


def test_a_known_answer_of_a_practice_set_can_be_mended_after_answers_which_stay_as_they_were(
    alice: Person, submission: Submission, items: list[Trajectory]
) -> None:
    answer(alice, submission, items[0], 1)
    workflow.set_known_answer(testing.person("mira"), items[0], testing.content(items[0], 0))

    assert PracticeAnswer.objects.get().right
    assert KnownAnswer.objects.get(trajectory=items[0]).verdict == 0


# --- what is open to newcomers ---------------------------------------------------------------------------------------


def test_newcomers_look_at_items_and_at_nothing_else_of_the_practice_submission(
    people: dict[str, Person], submission: Submission, practice_set: Submission, items: list[Trajectory]
) -> None:
    file = Attachment.objects.create(trajectory=items[0], kind="agent_response", name="a.json", sha256="0", size=2)
    alice = people["alice"]
    assert access.visible_trajectory_for(alice, items[0].pk) == items[0]
    assert access.screenshot_for(alice, items[0].pk, 0)[0].size > 0
    assert access.attachment_for(alice, items[0].pk, file.pk) == file

    KnownAnswer.objects.filter(trajectory=items[2]).delete()
    every = (Membership.Role.ANNOTATOR, Membership.Role.ADJUDICATOR, Membership.Role.MAINTAINER)
    for refused in (
        lambda: access.visible_trajectory_for(alice, items[2].pk),
        lambda: access.screenshot_for(alice, items[2].pk, 0),
        lambda: access.trajectory_for(alice, items[0].pk, *every),
        lambda: access.submission_for(alice, practice_set.pk, *every),
    ):
        with pytest.raises(Http404):
            refused()


def test_items_are_unknown_to_all_others(
    people: dict[str, Person], submission: Submission, items: list[Trajectory]
) -> None:
    workflow.deactivate_member(people["mira"], submission, people["bob"])
    for name in ("dave", "carol", "bob"):
        with pytest.raises(Http404):
            access.screenshot_for(people[name], items[0].pk, 0)


def test_the_access_ends_with_the_practice(alice: Person, submission: Submission, items: list[Trajectory]) -> None:
    Submission.objects.filter(pk=submission.pk).update(practice_set=None, pass_mark=None)
    with pytest.raises(Http404):
        access.screenshot_for(alice, items[0].pk, 0)
    with pytest.raises(Http404):
        access.practice_for(alice, submission.pk)


# --- a practice set that its own annotators play ---------------------------------------------------------------------


def test_annotators_of_a_practice_set_practise_on_it_in_rounds_that_record_nothing(
    people: dict[str, Person], practice_set: Submission, items: list[Trajectory]
) -> None:
    nina = testing.person("nina")
    workflow.add_member(people["mira"], practice_set, nina, Membership.Role.ANNOTATOR)
    before = practice_set.events.count()
    assert access.practice_trajectory_for(nina, practice_set.pk, items[0].pk) == (practice_set, items[0])
    assert access.screenshot_for(nina, items[0].pk, 0)[0].size > 0

    answer_all(nina, practice_set, items, 1, 0, 0)
    state = training.load_practice(nina, practice_set)
    assert (state.right, state.over, state.passed, state.open_round) == (2, True, False, 2)
    assert practice_set.events.count() == before


@pytest.mark.parametrize("role", [Membership.Role.ADJUDICATOR, Membership.Role.MAINTAINER])
def test_only_annotators_of_a_practice_set_practise_on_it(
    people: dict[str, Person], practice_set: Submission, items: list[Trajectory], role: Membership.Role
) -> None:
    nina = testing.person("nina")
    workflow.add_member(people["mira"], practice_set, nina, role)
    with pytest.raises(PermissionDenied):
        access.practice_for(nina, practice_set.pk)
    with pytest.raises(Http404):
        access.practice_for(people["dave"], practice_set.pk)


@pytest.mark.parametrize(
    ("verdict", "step", "kind", "unmet", "found"),
    [
        (0, 1, "range_not_exact", [0], True),
        (0, 1, "wrong_item", [0], True),
        (0, 2, "range_not_exact", [0], True),
        (0, 2, "wrong_item", [0], False),
        (0, 1, "range_not_exact", [1], False),
        (0, 1, "range_not_exact", [0, 1], False),
        (1, None, "", [], False),
    ],
)
def test_a_fault_is_found_with_the_verdict_its_key_points_and_the_step_or_the_type(
    alice: Person,
    submission: Submission,
    items: list[Trajectory],
    verdict: int,
    step: int,
    kind: str,
    unmet: list[int],
    found: bool,
) -> None:
    """The known answer of the second item is a failure at step 1: a range is not exact, the first key point unmet."""
    mira, points = Person.objects.get(username="mira"), workflow.key_points_of(items[1])

    def findings(unmet: list[int]) -> tuple[FindingContent, ...]:
        return tuple(
            FindingContent(point.pk, Finding.UNMET if place in unmet else Finding.MET, 0)
            for place, point in enumerate(points)
        )

    workflow.set_known_answer(mira, items[1], testing.content(items[1], 0, findings=findings([0])))
    given = testing.content(items[1], verdict)
    if verdict == 0:
        given = testing.content(items[1], 0, failure_step=step, failure_type=kind, findings=findings(unmet))
    workflow.answer_practice(alice, submission, items[1], given, 1)

    state = training.load_practice(alice, submission)
    assert (state.faults, state.found, state.missed) == ([items[1]], int(found), [] if found else [items[1]])
