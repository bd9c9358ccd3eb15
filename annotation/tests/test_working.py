"""What happens while somebody works: counted time, holds, what comes next, undo; also at the same instant."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from django.core.exceptions import PermissionDenied
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from annotation import clock, queue, workflow
from annotation.models import Activity, Assignment, Draft, Event, Label, Person, Report, Submission, Trajectory
from annotation.tests import testing
from annotation.tests.shared_rows import shared_rows
from annotation.tests.test_concurrency import annotators, at_once
from annotation.workflow import Conflict
from annotation.workflow.annotating import AHEAD_LEASE
from annotation.workflow.guards import lease

JSON = {"HTTP_ACCEPT": "application/json"}


@shared_rows
def held(people: dict[str, Person], submission: Submission) -> Trajectory:
    """The trajectory that alice is working on."""
    found = workflow.claim(people["alice"], submission)
    assert found is not None
    return found.trajectory


def client_of(person: Person) -> Client:
    client = Client()
    client.force_login(person)
    return client


def last_report(seconds_ago: float) -> None:
    Activity.objects.update(last_at=clock.now() - timedelta(seconds=seconds_ago))


def run_out(trajectory: Trajectory, person: Person) -> None:
    past = clock.now() - timedelta(seconds=1)
    Assignment.objects.filter(trajectory=trajectory, annotator=person).update(lease_expires_at=past)


# --- counted time ---------------------------------------------------------------------------------------------------


def test_active_time_and_opened_steps_add_up(people: dict[str, Person], held: Trajectory) -> None:
    workflow.record_activity(people["alice"], held, 20, [2, 0])
    last_report(20)
    workflow.record_activity(people["alice"], held, 15.5, [1, 0])

    activity = Activity.objects.get()
    assert (activity.seconds, activity.steps) == (35.5, [0, 1, 2])


@pytest.mark.parametrize(("reported", "counted"), [(500, 20), (-10, 0), (20, 20)])
def test_no_more_time_is_counted_than_has_passed(
    people: dict[str, Person], held: Trajectory, reported: float, counted: float
) -> None:
    workflow.record_activity(people["alice"], held, 0, [0])
    last_report(20)
    workflow.record_activity(people["alice"], held, reported, [])

    assert Activity.objects.get().seconds == pytest.approx(counted, abs=1)


def test_a_silence_longer_than_two_minutes_is_no_work(people: dict[str, Person], held: Trajectory) -> None:
    workflow.record_activity(people["alice"], held, 0, [0])
    last_report(3600)
    workflow.record_activity(people["alice"], held, 3600, [])

    assert Activity.objects.get().seconds == 120


def test_steps_that_do_not_exist_were_not_opened(people: dict[str, Person], held: Trajectory) -> None:
    workflow.record_activity(people["alice"], held, 1, [0, 2, 3, 10**6])
    assert Activity.objects.get().steps == [0, 2]


def test_work_extends_the_hold_and_waiting_does_not(people: dict[str, Person], held: Trajectory) -> None:
    soon = timezone.now() + timedelta(minutes=1)
    Assignment.objects.update(lease_expires_at=soon)
    assert workflow.record_activity(people["alice"], held, 0, [1]) == soon
    until = workflow.record_activity(people["alice"], held, 5, [])

    assert until is not None
    assert until - timezone.now() > lease() - timedelta(minutes=1)
    assert Assignment.objects.get().lease_expires_at == until


def test_a_hold_that_ran_out_is_not_extended_by_work(people: dict[str, Person], held: Trajectory) -> None:
    run_out(held, people["alice"])
    assert workflow.record_activity(people["alice"], held, 5, [0]) is None
    assert Assignment.objects.get().lease_expires_at <= timezone.now()


def test_nothing_is_counted_once_the_label_is_in_unless_it_is_revised(
    people: dict[str, Person], held: Trajectory
) -> None:
    alice = people["alice"]
    workflow.submit(alice, held, testing.content(held))
    assert workflow.record_activity(alice, held, 20, [1]) is None
    assert not Activity.objects.exists()
    workflow.record_activity(alice, held, 20, [1], revising=True)

    workflow.revise(alice, held, testing.content(held, 0), "I missed a step.")
    found = Label.objects.order_by("revision").values_list("active_seconds", "steps_seen")
    assert list(found) == [(None, None), (20, [1])]


def test_an_adjudicators_time_counts_from_the_opening_on(people: dict[str, Person], submission: Submission) -> None:
    testing.label_all(people, submission, {"task_0000": [0, 1, 1]})
    trajectory, carol = submission.trajectories.get(position=0), people["carol"]
    workflow.record_activity(carol, trajectory, 20, [1])
    assert not Activity.objects.exists()
    workflow.open_adjudication(carol, trajectory)
    assert workflow.record_activity(carol, trajectory, 20, [1]) is None

    made = workflow.decide(carol, trajectory, testing.content(trajectory))
    assert (made.active_seconds, made.steps_seen) == (20, [1])


@pytest.mark.parametrize("name", ["mira", "dave"])
def test_nobody_else_is_counted(people: dict[str, Person], held: Trajectory, name: str) -> None:
    with pytest.raises(PermissionDenied):
        workflow.record_activity(people[name], held, 20, [0])
    assert client_of(people[name]).post(reverse("activity", args=[held.pk]), {"seconds": 1}).status_code in (403, 404)
    assert not Activity.objects.exists()


def test_a_report_of_the_desk_is_answered_with_the_end_of_the_hold(people: dict[str, Person], held: Trajectory) -> None:
    answer = client_of(people["alice"]).post(
        reverse("activity", args=[held.pk]), {"seconds": "12.5", "steps": "0,2"}, **JSON
    )

    assert answer.json() == {"lease_expires_at": Assignment.objects.get().lease_expires_at.isoformat()}
    assert (Activity.objects.get().seconds, Activity.objects.get().steps) == (12.5, [0, 2])


@pytest.mark.parametrize(
    "report", [{}, {"seconds": "nan"}, {"seconds": "inf"}, {"seconds": "-1"}, {"seconds": "1", "steps": "x"}]
)
def test_a_report_that_is_none_is_refused(people: dict[str, Person], held: Trajectory, report: dict[str, str]) -> None:
    assert client_of(people["alice"]).post(reverse("activity", args=[held.pk]), report).status_code == 400
    assert not Activity.objects.exists()


# --- holding again --------------------------------------------------------------------------------------------------


def test_what_is_typed_after_the_hold_ran_out_is_saved_and_can_be_submitted(
    people: dict[str, Person], held: Trajectory
) -> None:
    workflow.record_activity(people["alice"], held, 20, [0])
    run_out(held, people["alice"])
    workflow.return_expired_leases(held.submission)
    alice = client_of(people["alice"])
    saved = alice.post(reverse("draft", args=[held.pk]), {"reasoning": "after lunch", "version": 0}, **JSON)
    assert saved.status_code == 200
    again = alice.post(reverse("hold", args=[held.pk]), **JSON)

    assert again.json()["lease_expires_at"] == Assignment.objects.get().lease_expires_at.isoformat()
    assert Draft.objects.get().content == {"reasoning": "after lunch"}


def test_a_hold_that_nobody_took_yet_is_simply_renewed(people: dict[str, Person], held: Trajectory) -> None:
    before = Assignment.objects.get()
    run_out(held, people["alice"])
    again = workflow.hold_again(people["alice"], held)

    assert (again.pk, again.slot) == (before.pk, before.slot)
    assert again.lease_expires_at is not None
    assert again.lease_expires_at > timezone.now()


def test_no_hold_is_given_beyond_the_slots_or_after_the_label(people: dict[str, Person], held: Trajectory) -> None:
    alice = people["alice"]
    workflow.save_draft(alice, held, {"reasoning": "mine"}, 0)
    run_out(held, alice)
    workflow.return_expired_leases(held.submission)
    for name in ("bob", "chen", "ed"):
        if name == "ed":
            workflow.add_member(people["mira"], held.submission, testing.person(name), "annotator")
        workflow.claim_this(testing.person(name), held)
    with pytest.raises(Conflict):
        workflow.hold_again(alice, held)

    workflow.submit(people["bob"], held, testing.content(held))
    with pytest.raises(Conflict):
        workflow.hold_again(people["bob"], held)
    assert Draft.objects.get(author=alice).content == {"reasoning": "mine"}


# --- what comes next ------------------------------------------------------------------------------------------------


def test_the_next_one_is_named_with_its_first_pictures(people: dict[str, Person], held: Trajectory) -> None:
    answer = client_of(people["alice"]).post(reverse("ahead", args=[held.pk]), **JSON).json()
    following = Assignment.objects.exclude(trajectory=held).get().trajectory_id

    base = f"/trajectories/{following}"
    assert answer["pictures"] == [f"{base}/steps/0/display", f"{base}/steps/1/display", f"{base}/sheets/0"]


def test_the_one_ahead_is_what_the_next_claim_gives(people: dict[str, Person], held: Trajectory) -> None:
    alice = people["alice"]
    ahead = workflow.claim_ahead(alice, held)
    assert ahead is not None
    assert workflow.claim_ahead(alice, held) == ahead
    assert workflow.claim(alice, held.submission).trajectory == held  # type: ignore[union-attr]
    workflow.submit(alice, held, testing.content(held))

    given = workflow.claim(alice, held.submission)
    assert given == ahead
    assert given.lease_expires_at > timezone.now() + AHEAD_LEASE


def test_giving_back_goes_on_with_the_one_ahead(people: dict[str, Person], held: Trajectory) -> None:
    ahead = workflow.claim_ahead(people["alice"], held)
    workflow.release(people["alice"], held, "I know this shop.")
    assert workflow.claim(people["alice"], held.submission) == ahead


def test_the_one_ahead_waits_ten_minutes_and_no_more(people: dict[str, Person], held: Trajectory) -> None:
    ahead = workflow.claim_ahead(people["alice"], held)
    assert ahead is not None
    assert ahead.lease_expires_at is not None
    assert ahead.lease_expires_at <= timezone.now() + AHEAD_LEASE
    run_out(ahead.trajectory, people["alice"])
    assert workflow.return_expired_leases(held.submission) == 1
    workflow.submit(people["alice"], held, testing.content(held))

    assert workflow.claim(people["alice"], held.submission).trajectory == ahead.trajectory  # type: ignore[union-attr]


def test_nothing_is_held_ahead_of_what_is_not_held(people: dict[str, Person], held: Trajectory) -> None:
    alice = people["alice"]
    workflow.save_draft(alice, held, {"reasoning": "mine"}, 0)
    run_out(held, alice)
    assert workflow.claim_ahead(alice, held) is None
    answer = client_of(alice).post(reverse("ahead", args=[held.pk]), **JSON)
    assert answer.json() == {"pictures": []}
    assert Assignment.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_one_person_asking_ahead_many_times_at_once_holds_two() -> None:
    submission = testing.bare_submission(6)
    (alice,) = annotators(submission, 1)
    held = workflow.claim(alice, submission)
    assert held is not None
    outcomes = at_once(6, lambda number: workflow.claim_ahead(alice, held.trajectory))

    assert {type(outcome) for outcome in outcomes} == {Assignment}, outcomes
    assert len({outcome.pk for outcome in outcomes}) == 1
    assert Assignment.objects.count() == 2


@pytest.mark.django_db(transaction=True)
def test_looking_ahead_while_submitting_and_claiming_gives_no_slot_twice() -> None:
    submission = testing.bare_submission(24)
    people = annotators(submission, 6)

    def work(number: int) -> int:
        person, done = people[number], 0
        while (held := workflow.claim(person, submission)) is not None:
            workflow.claim_ahead(person, held.trajectory)
            workflow.record_activity(person, held.trajectory, 1, [0])
            workflow.submit(person, held.trajectory, testing.content(held.trajectory))
            done += 1
        return done

    outcomes = at_once(6, work)
    assert [outcome for outcome in outcomes if not isinstance(outcome, int)] == []
    assert Label.objects.count() == 72 == sum(outcomes)
    assert not queue.find_all_held(people[0], submission).exists()


@pytest.mark.django_db(transaction=True)
def test_work_and_the_end_of_a_hold_at_the_same_instant_agree() -> None:
    submission = testing.bare_submission(1)
    (alice,) = annotators(submission, 1)
    held = workflow.claim(alice, submission)
    assert held is not None
    workflow.save_draft(alice, held.trajectory, {"reasoning": "mine"}, 0)
    run_out(held.trajectory, alice)
    calls = [
        lambda: workflow.record_activity(alice, held.trajectory, 5, [0]),
        lambda: workflow.return_expired_leases(submission),
        lambda: workflow.hold_again(alice, held.trajectory),
        lambda: workflow.submit(alice, held.trajectory, testing.content(held.trajectory)),
    ]
    outcomes = at_once(4, lambda number: calls[number]())

    assert [o for o in outcomes if isinstance(o, Exception) and not isinstance(o, Conflict)] == []
    assert Label.objects.count() == 1
    assert Assignment.objects.get().lease_expires_at is None


@pytest.mark.django_db(transaction=True)
def test_two_windows_that_report_at_once_count_once() -> None:
    submission = testing.bare_submission(1, steps=4)
    (alice,) = annotators(submission, 1)
    held = workflow.claim(alice, submission)
    assert held is not None
    workflow.record_activity(alice, held.trajectory, 0, [0])
    last_report(20)
    outcomes = at_once(4, lambda number: workflow.record_activity(alice, held.trajectory, 20, [number]))

    assert [outcome for outcome in outcomes if isinstance(outcome, Exception)] == []
    activity = Activity.objects.get()
    assert activity.steps == [0, 1, 2, 3]
    assert activity.seconds < 25


# --- scripts are answered as scripts --------------------------------------------------------------------------------


def form_of(trajectory: Trajectory, **more: Any) -> dict[str, Any]:
    form: dict[str, Any] = {"verdict": "1", "reasoning": "It is done."}
    for pk in workflow.key_points_of(trajectory).values_list("pk", flat=True):
        form |= {f"finding_{pk}": "met", f"finding_{pk}_step": "0"}
    return form | more


def test_a_script_is_told_where_to_go_on_and_follows_nothing(people: dict[str, Person], held: Trajectory) -> None:
    alice = client_of(people["alice"])
    answer = alice.post(reverse("submit", args=[held.pk]), form_of(held, then="next"), **JSON)
    following = Assignment.objects.exclude(trajectory=held).get().trajectory_id
    assert (answer.status_code, answer.json()) == (200, {"address": reverse("trajectory", args=[following])})
    assert "submitted" in alice.get(answer.json()["address"]).content.decode()


def test_a_script_is_told_the_reason_of_a_refusal(people: dict[str, Person], held: Trajectory) -> None:
    alice = client_of(people["alice"])
    workflow.submit(people["alice"], held, testing.content(held))
    answer = alice.post(reverse("submit", args=[held.pk]), form_of(held), **JSON)
    assert answer.status_code == 409
    assert json.loads(answer.content)["message"].startswith("You have already submitted a label")


def test_the_session_says_who_is_signed_in_and_nothing_else(people: dict[str, Person]) -> None:
    assert Client().get(reverse("session")).json()["person"] is None
    answer = client_of(people["alice"]).get(reverse("session"))
    assert answer.json().keys() == {"person", "csrf"}
    assert answer.json()["person"] == people["alice"].pk
    assert "no-store" in answer["Cache-Control"]


# --- undo -----------------------------------------------------------------------------------------------------------


def test_undo_opens_what_was_submitted_and_writes_nothing(people: dict[str, Person], held: Trajectory) -> None:
    alice = client_of(people["alice"])
    answer = alice.post(reverse("submit", args=[held.pk]), form_of(held, reasoning="As I saw it."), follow=True)
    undo = reverse("undo-submit", args=[held.pk])
    assert f'action="{undo}"' in answer.content.decode()
    events = Event.objects.count()
    page = alice.post(undo, follow=True).content.decode()

    assert "As I saw it." in page
    assert 'value="undone right after submitting"' in page
    assert "?revise=undo&amp;" in page
    assert (Label.objects.count(), Draft.objects.count(), Event.objects.count()) == (1, 0, events)


def test_undo_says_no_more_than_a_revision_once_an_adjudication_was_opened(
    people: dict[str, Person], submission: Submission
) -> None:
    testing.label_all(people, submission, {"task_0000": [0, 1, 1]})
    trajectory = submission.trajectories.get(position=0)
    alice, undo = client_of(people["alice"]), reverse("trajectory", args=[trajectory.pk]) + "?revise=undo"
    before = alice.get(undo).content.decode()
    workflow.open_adjudication(people["carol"], trajectory)

    def without_tokens(page: str) -> list[str]:
        return [line for line in page.splitlines() if "csrf" not in line]

    assert without_tokens(alice.get(undo).content.decode()) == without_tokens(before)
    answer = alice.post(reverse("revise", args=[trajectory.pk]), form_of(trajectory, reason="undone"), **JSON)
    assert (answer.status_code, answer.json()) == (409, {"message": "This label can no longer be revised."})


def test_there_is_nothing_to_undo_for_who_has_no_label(people: dict[str, Person], held: Trajectory) -> None:
    undo = reverse("trajectory", args=[held.pk]) + "?revise=undo"
    assert "undone right after" not in client_of(people["alice"]).get(undo).content.decode()
    assert client_of(people["bob"]).get(undo).status_code == 404


def test_the_other_window_of_a_plain_form_is_shown_in_words(people: dict[str, Person], held: Trajectory) -> None:
    first = workflow.key_points_of(held).first()
    workflow.save_draft(people["alice"], held, {"failure_step": "2", f"finding_{first.pk}_step": "1"}, 0)
    page = client_of(people["alice"]).post(reverse("draft", args=[held.pk]), {"reasoning": "mine", "version": 0})

    assert page.status_code == 409
    for words in ("Failure step", "Step of key point 1", "Reasoning"):
        assert f'<th scope="row">{words}</th>' in page.content.decode()


# --- what must not come back ----------------------------------------------------------------------------------------


def test_a_window_that_is_older_than_the_label_leaves_no_draft_behind(
    people: dict[str, Person], held: Trajectory
) -> None:
    alice = people["alice"]
    draft = workflow.save_draft(alice, held, {"reasoning": "old words"}, 0)
    workflow.submit(alice, held, testing.content(held))

    with pytest.raises(workflow.Conflict, match="already submitted your label"):
        workflow.save_draft(alice, held, {"reasoning": "old words"}, draft.version)
    assert not Draft.objects.exists()


def test_a_frozen_submission_takes_no_draft_and_no_report(people: dict[str, Person], held: Trajectory) -> None:
    held.submission.frozen_at = timezone.now()
    held.submission.save()

    for act in (
        lambda: workflow.save_draft(people["alice"], held, {"reasoning": "late"}, 0),
        lambda: workflow.report(people["alice"], held, Report.Kind.TASK_OUTDATED, "gone"),
    ):
        with pytest.raises(workflow.Conflict, match="frozen"):
            act()


def test_a_hold_is_not_renewed_for_who_has_to_practise_first(people: dict[str, Person], held: Trajectory) -> None:
    workflow.save_draft(people["alice"], held, {"reasoning": "begun"}, 0)
    Assignment.objects.all().delete()
    Submission.objects.filter(pk=held.submission_id).update(practice=True)

    for act in (
        lambda: workflow.hold_again(people["alice"], held),
        lambda: workflow.submit(people["alice"], held, testing.content(held)),
    ):
        with pytest.raises(workflow.Conflict, match="practice set"):
            act()


def test_a_number_of_thousands_of_digits_is_refused_as_any_other(people: dict[str, Person], held: Trajectory) -> None:
    alice, endless = client_of(people["alice"]), "9" * 5000
    form = {"evidence_missing": endless, "reasoning": "x", "version": "0"}

    assert alice.post(reverse("draft", args=[held.pk]), form, **JSON).status_code == 200
    assert alice.post(reverse("submit", args=[held.pk]), form).status_code == 400
    activity = {"seconds": "1", "steps": endless}
    assert alice.post(reverse("activity", args=[held.pk]), activity, **JSON).status_code == 400
