"""The verbs: what each does, and every state in which it must refuse."""

import hashlib
from dataclasses import replace
from datetime import timedelta

import pytest
from django.core.exceptions import PermissionDenied
from django.db import OperationalError, connection
from django.urls import reverse
from django.utils import timezone

from annotation import access, queue, workflow
from annotation.models import (
    Adjudication,
    Assignment,
    Draft,
    Event,
    Label,
    Membership,
    Reopening,
    Trajectory,
)
from annotation.models.states import State, final_verdict, state_of, with_state
from annotation.records import Verdict
from annotation.tests import testing
from annotation.workflow import Conflict, Incomplete, StaleDraft

pytestmark = pytest.mark.django_db
Role = Membership.Role


def first(submission):
    return Trajectory.objects.filter(submission=submission).first()


def final(submission, task_id):
    return final_verdict(with_state(submission.trajectories.filter(task__external_id=task_id)).get())


# --- annotators ----------------------------------------------------------------------------------------------------


def test_claiming_twice_gives_the_same_trajectory(submission, people):
    assert workflow.claim(people["alice"], submission) == workflow.claim(people["alice"], submission)


def test_three_people_get_the_three_slots_of_a_started_trajectory(submission, people):
    given = [workflow.claim(people[name], submission) for name in ("alice", "bob", "chen")]
    assert {assignment.trajectory for assignment in given} == {first(submission)}
    assert sorted(assignment.slot for assignment in given) == [1, 2, 3]


def test_nobody_is_offered_what_they_labelled(submission, people):
    testing.label(people["alice"], first(submission))
    assert workflow.claim(people["alice"], submission).trajectory == submission.trajectories.last()
    workflow.submit(people["alice"], submission.trajectories.last(), testing.content(submission.trajectories.last()))
    assert workflow.claim(people["alice"], submission) is None


def test_nobody_is_offered_what_they_gave_back(submission, people):
    held = workflow.claim(people["alice"], submission)
    workflow.release(people["alice"], held.trajectory, "I know the author of this site.")
    assert workflow.claim(people["bob"], submission).trajectory == held.trajectory
    assert workflow.claim(people["alice"], submission).trajectory != held.trajectory


def test_giving_back_needs_a_reason(submission, people):
    held = workflow.claim(people["alice"], submission)
    with pytest.raises(Incomplete, match="reason"):
        workflow.release(people["alice"], held.trajectory, "  ")
    assert Assignment.objects.filter(pk=held.pk).exists()


def expire(assignment):
    Assignment.objects.filter(pk=assignment.pk).update(lease_expires_at=timezone.now() - timedelta(seconds=1))


def test_an_expired_lease_returns_to_the_queue_and_the_draft_stays(submission, people):
    held = workflow.claim(people["alice"], submission)
    workflow.save_draft(people["alice"], held.trajectory, {"reasoning": "half a thou"}, 0)
    expire(held)
    assert workflow.claim(people["bob"], submission).trajectory == held.trajectory
    assert not Assignment.objects.filter(pk=held.pk).exists()
    assert Draft.objects.get(author=people["alice"]).content == {"reasoning": "half a thou"}
    assert Event.objects.filter(submission=submission, kind="lease_expired").count() == 1


def test_a_draft_can_still_be_submitted_after_the_lease_ran_out_while_a_slot_is_free(submission, people):
    held = workflow.claim(people["alice"], submission)
    workflow.save_draft(people["alice"], held.trajectory, {"reasoning": "late"}, 0)
    expire(held)
    workflow.return_expired_leases(submission)
    assert workflow.submit(people["alice"], held.trajectory, testing.content(held.trajectory)).verdict == 1


def test_a_late_draft_without_a_free_slot_is_kept_and_refused(submission, people):
    held = workflow.claim(people["alice"], submission)
    workflow.save_draft(people["alice"], held.trajectory, {"reasoning": "late"}, 0)
    expire(held)
    erin = testing.person("erin")
    workflow.add_member(people["mira"], submission, erin, Role.ANNOTATOR)
    for person in (people["bob"], people["chen"], erin):
        testing.label(person, held.trajectory)
    with pytest.raises(Conflict, match="draft is saved"):
        workflow.submit(people["alice"], held.trajectory, testing.content(held.trajectory))
    assert Draft.objects.filter(author=people["alice"]).exists()


def test_saving_a_draft_extends_the_lease(submission, people):
    held = workflow.claim(people["alice"], submission)
    Assignment.objects.filter(pk=held.pk).update(lease_expires_at=timezone.now() + timedelta(seconds=30))
    workflow.save_draft(people["alice"], held.trajectory, {"verdict": "1"}, 0)
    held.refresh_from_db()
    assert held.lease_expires_at > timezone.now() + timedelta(minutes=30)


def test_a_second_window_that_saves_over_the_first_is_told_and_overwrites_nothing(submission, people):
    held = workflow.claim(people["alice"], submission)
    saved = workflow.save_draft(people["alice"], held.trajectory, {"reasoning": "one"}, 0)
    workflow.save_draft(people["alice"], held.trajectory, {"reasoning": "two"}, saved.version)
    with pytest.raises(StaleDraft) as caught:
        workflow.save_draft(people["alice"], held.trajectory, {"reasoning": "other window"}, saved.version)
    assert caught.value.current.content == {"reasoning": "two"}
    assert Draft.objects.get(author=people["alice"]).content == {"reasoning": "two"}


def test_a_window_that_saves_what_is_saved_already_makes_no_other_window_stale(submission, people):
    held = workflow.claim(people["alice"], submission)
    for _ in range(2):
        workflow.save_draft(people["alice"], held.trajectory, {"reasoning": "one"}, 1)
    saved = workflow.save_draft(people["alice"], held.trajectory, {"reasoning": "other window"}, 1)
    assert saved.version == 2


def events_of(submission, kind):
    return list(Event.objects.filter(submission=submission, kind=kind))


def form_of(trajectory, **fields):
    """A complete label, as the page sends it."""
    points = workflow.key_points_of(trajectory).values_list("pk", flat=True)
    findings = {f"finding_{pk}": "met" for pk in points} | {f"finding_{pk}_step": "0" for pk in points}
    return {"verdict": "1", "reasoning": "The steps show it."} | findings | fields


def no_flag_can_be_written(execute, sql, params, many, context):
    if sql.startswith('INSERT INTO "annotation_flag"'):
        raise OperationalError("the server closed the connection unexpectedly")
    return execute(sql, params, many, context)


def submit_by_verb(client, person, trajectory):
    return workflow.submit(person, trajectory, testing.content(trajectory), "The price is cut off.")


def submit_by_page(client, person, trajectory):
    client.force_login(person)
    form = form_of(trajectory, flag="on", flag_note="The price is cut off.")
    return client.post(reverse("submit", args=[trajectory.pk]), form)


@pytest.mark.parametrize("send", [submit_by_verb, submit_by_page])
def test_a_label_and_its_flag_are_one(client, submission, people, send):
    held = workflow.claim(people["alice"], submission)
    with connection.execute_wrapper(no_flag_can_be_written), pytest.raises(OperationalError):
        send(client, people["alice"], held.trajectory)
    assert not Label.objects.exists()
    send(client, people["alice"], held.trajectory)
    assert held.trajectory.flags.get().note == "The price is cut off."
    assert list(Event.objects.filter(submission=submission).values_list("kind", flat=True))[-3:] == [
        "claimed",
        "label_submitted",
        "flagged",
    ]


def test_a_label_without_a_note_is_not_flagged_and_an_empty_note_is_a_flag(submission, people):
    testing.label(people["alice"], first(submission))
    assert not first(submission).flags.exists()
    held = workflow.claim(people["bob"], submission)
    workflow.submit(people["bob"], held.trajectory, testing.content(held.trajectory), "")
    assert first(submission).flags.get().annotator == people["bob"]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"verdict": None}, "verdict_missing"),
        ({"reasoning": " \n"}, "reasoning_missing"),
        ({"verdict": Verdict.FAILURE, "failure_step": None, "failure_type": "other"}, "failure_step_missing"),
        ({"verdict": Verdict.FAILURE, "failure_step": 99, "failure_type": "other"}, "failure_step_unknown"),
        ({"verdict": Verdict.FAILURE, "failure_step": 1, "failure_type": "bad luck"}, "failure_type_missing"),
        ({"verdict": Verdict.NOT_EXECUTABLE, "cause": ""}, "cause_missing"),
        ({"findings": ()}, "finding_missing"),
    ],
)
def test_an_incomplete_label_is_refused_and_nothing_is_written(submission, people, change, code):
    held = workflow.claim(people["alice"], submission)
    with pytest.raises(Incomplete) as caught:
        workflow.submit(people["alice"], held.trajectory, replace(testing.content(held.trajectory), **change))
    assert code in [problem.code for problem in caught.value.problems]
    assert held.labels.count() == 0
    assert not Event.objects.filter(kind="label_submitted").exists()


def test_a_success_with_an_unmet_key_point_needs_a_written_reason(submission, people):
    held = workflow.claim(people["alice"], submission)
    unmet = testing.content(held.trajectory, Verdict.FAILURE).findings
    with pytest.raises(Incomplete, match="unmet key point"):
        workflow.submit(people["alice"], held.trajectory, testing.content(held.trajectory, 1, findings=unmet))
    excused = testing.content(held.trajectory, 1, findings=unmet, exception_reason="The site has no such filter.")
    assert workflow.submit(people["alice"], held.trajectory, excused).exception_reason


def test_submit_of_another_label_is_a_conflict(submission, people):
    testing.label(people["alice"], first(submission))
    with pytest.raises(Conflict, match="already submitted"):
        workflow.submit(people["alice"], first(submission), testing.content(first(submission), 0))


# --- states and final verdicts -------------------------------------------------------------------------------------


@pytest.mark.parametrize("verdicts", [[0, 1, 1], [1, 0, 2], [2, 1, 1]])
def test_a_majority_is_never_final_by_itself(submission, people, verdicts):
    testing.label_all(people, submission, {"task_0000": verdicts})
    assert state_of(first(submission)) is State.DISPUTE
    assert final(submission, "task_0000") is None
    workflow.open_adjudication(people["carol"], first(submission))
    workflow.decide(people["carol"], first(submission), testing.content(first(submission), 2))
    assert final(submission, "task_0000") is Verdict.NOT_EXECUTABLE


def test_unanimous_labels_become_final_through_the_draw(submission, people):
    testing.label_all(people, submission, {})
    assert {state_of(t) for t in submission.trajectories.all()} == {State.AGREED}
    draw = workflow.draw_spot_checks(people["mira"], submission)
    assert len(draw.drawn) == 1  # a tenth of two, rounded up
    states = {t.task.external_id: state_of(t) for t in submission.trajectories.select_related("task")}
    assert states.pop(draw.drawn[0]) is State.SPOT_CHECK
    assert list(states.values()) == [State.UNANIMOUS]


def test_a_spot_check_is_judged_blind_and_a_dispute_is_not(submission, people):
    testing.label_all(people, submission, {"task_0000": [0, 1, 1]})
    dispute, agreed = submission.trajectories.all()
    workflow.draw_spot_checks(people["mira"], submission)
    assert not access.may_see_labels(people["carol"], dispute)  # not before she has opened it
    assert not access.may_see_labels(people["carol"], agreed)
    assert workflow.open_adjudication(people["carol"], agreed).blind
    assert not access.may_see_labels(people["carol"], agreed)
    workflow.decide(people["carol"], agreed, testing.content(agreed, 0))
    assert access.may_see_labels(people["carol"], agreed)
    assert final(submission, "task_0001") is Verdict.FAILURE
    assert not workflow.open_adjudication(people["carol"], dispute).blind
    assert access.may_see_labels(people["carol"], dispute)


def test_a_flag_sends_a_unanimous_trajectory_to_the_adjudicator(submission, people):
    testing.label_all(people, submission, {})
    workflow.flag(people["bob"], first(submission), "The price is cut off.")
    assert state_of(first(submission)) is State.FLAGGED
    assert not access.may_see_labels(people["carol"], first(submission))
    assert [t.pk for t in queue.load_queue(submission)] == [first(submission).pk]


def test_disputes_come_before_spot_checks(submission, people):
    testing.label_all(people, submission, {"task_0001": [0, 1, 1]})
    workflow.draw_spot_checks(people["mira"], submission)
    assert [t.state for t in queue.load_queue(submission)] == ["dispute", "spot check"]


def test_the_draw_is_repeatable_and_rounds_up():
    population = [f"task_{n}" for n in range(30)]
    assert workflow.choose(population, 0.1, "seed/1") == workflow.choose(population[::-1], 0.1, "seed/1")
    assert len(workflow.choose(population, 0.1, "seed/1")) == 3
    assert len(workflow.choose(population[:1], 0.1, "seed/1")) == 1
    assert workflow.choose(population, 0.1, "seed/1") != workflow.choose(population, 0.1, "seed/2")
    assert workflow.choose(population, 0, "seed") == []


# --- adjudicators --------------------------------------------------------------------------------------------------


def test_one_adjudicator_at_a_time_until_the_lease_runs_out(submission, people, settings):
    quinn = testing.person("quinn")
    workflow.add_member(people["mira"], submission, quinn, Role.ADJUDICATOR)
    testing.label_all(people, submission, {"task_0000": [0, 1, 1]})
    opened = workflow.open_adjudication(people["carol"], first(submission))
    assert workflow.open_adjudication(people["carol"], first(submission)) == opened
    with pytest.raises(Conflict, match="Another adjudicator"):
        workflow.open_adjudication(quinn, first(submission))
    settings.ADJUDICATION_MINUTES = 0
    assert workflow.open_adjudication(quinn, first(submission)).adjudicator == quinn
    with pytest.raises(Conflict, match="not opened"):
        workflow.decide(people["carol"], first(submission), testing.content(first(submission)))


def test_a_decision_is_changed_by_the_next_revision_with_a_reason(submission, people):
    testing.label_all(people, submission, {"task_0000": [0, 1, 1]})
    testing.adjudicate_all(people["carol"], submission, 1)
    with pytest.raises(Incomplete, match="reason"):
        workflow.open_adjudication(people["carol"], first(submission))
    workflow.open_adjudication(people["carol"], first(submission), "The labels made me look at step 2 again.")
    workflow.decide(people["carol"], first(submission), testing.content(first(submission), 0))
    assert [a.verdict for a in first(submission).adjudications.all()] == [1, 0]
    assert final(submission, "task_0000") is Verdict.FAILURE


def test_the_seed_of_a_draw_was_fixed_before_and_is_no_other_draws(submission, people):
    seeds = {submission.spot_check_seed}
    testing.label_all(people, submission, {})
    first_draw = workflow.draw_spot_checks(people["mira"], submission)
    more = testing.bare_submission(1, agent="Other Agent").trajectories.get()
    more.submission, more.position = submission, 9  # one that arrives later, with a task of its own
    more.save()
    testing.label_all(people, submission, {})
    submission.refresh_from_db()
    seeds.add(submission.spot_check_seed)
    second_draw = workflow.draw_spot_checks(people["mira"], submission)
    submission.refresh_from_db()
    assert {first_draw.seed, second_draw.seed} == seeds
    assert len({*seeds, submission.spot_check_seed}) == 3
    told = [
        events_of(submission, "imported")[0].payload["next_seed"],
        *(event.payload["next_seed"] for event in events_of(submission, "spot_checks_drawn")),
    ]
    drawn = [first_draw.seed, second_draw.seed, submission.spot_check_seed]
    assert told == [hashlib.sha256(seed.encode()).hexdigest() for seed in drawn]
    # Nobody reads a seed before its draw.
    chain = str(list(Event.objects.filter(submission=submission).values_list("payload", flat=True)))
    assert submission.spot_check_seed not in chain


# --- maintainers ---------------------------------------------------------------------------------------------------


def finish(submission, people):
    testing.label_all(people, submission, {"task_0000": [0, 1, 1]})
    workflow.draw_spot_checks(people["mira"], submission)
    testing.adjudicate_all(people["carol"], submission)


def test_freezing_needs_every_final_verdict_and_names_what_is_missing(submission, people):
    with pytest.raises(Conflict, match=r"2 of 2 .* task_0000 \(in review\)"):
        workflow.freeze(people["mira"], submission)
    finish(submission, people)
    assert workflow.freeze(people["mira"], submission).frozen_at


def test_nothing_changes_in_a_frozen_submission(submission, people):
    finish(submission, people)
    workflow.freeze(people["mira"], submission)
    trajectory = first(submission)
    for verb in (
        lambda: workflow.revise(people["alice"], trajectory, testing.content(trajectory), "why"),
        lambda: workflow.flag(people["alice"], trajectory, "look"),
        lambda: workflow.open_adjudication(people["carol"], trajectory, "why"),
        lambda: workflow.draw_spot_checks(people["mira"], submission),
        lambda: workflow.reopen(people["mira"], trajectory, "why"),
        lambda: workflow.freeze(people["mira"], submission),
    ):
        with pytest.raises(Conflict, match="frozen"):
            verb()


def test_a_reopened_trajectory_waits_for_a_new_adjudication(submission, people):
    finish(submission, people)
    workflow.reopen(people["mira"], first(submission), "The site has changed.")
    assert state_of(first(submission)) is State.REOPENED
    with pytest.raises(Conflict, match="no final verdict"):
        workflow.freeze(people["mira"], submission)
    testing.adjudicate_all(people["carol"], submission, 0)
    assert final(submission, "task_0000") is Verdict.FAILURE


def test_a_submission_without_trajectories_cannot_be_frozen(submission, people):
    bare = testing.bare_submission(0)
    workflow.join_as_maintainer(bare, people["mira"])
    with pytest.raises(workflow.Conflict, match="no trajectories, so it cannot be frozen"):
        workflow.freeze(people["mira"], bare)


def test_a_freeze_does_not_wait_for_what_an_adjudicator_has_opened_again(submission, people):
    finish(submission, people)
    workflow.open_adjudication(people["carol"], first(submission), "Step 2 looks odd.")
    with pytest.raises(Conflict, match=r"1 of 2 .* task_0000 \(opened by an adjudicator\)"):
        workflow.freeze(people["mira"], submission)


def test_a_reopening_is_answered_by_the_next_decision_whatever_the_clocks_say(submission, people, without_triggers):
    finish(submission, people)
    workflow.reopen(people["mira"], first(submission), "The site has changed.")
    with without_triggers():
        Reopening.objects.update(reopened_at=timezone.now() + timedelta(days=1))
    assert state_of(first(submission)) is State.REOPENED
    testing.adjudicate_all(people["carol"], submission, 0)
    assert final(submission, "task_0000") is Verdict.FAILURE
    workflow.reopen(people["mira"], first(submission), "Once more.")
    with without_triggers():
        Reopening.objects.update(reopened_at=timezone.now() - timedelta(days=1))
    assert state_of(first(submission)) is State.REOPENED


def test_who_runs_the_instance_does_not_join_the_work_once_labels_could_be_read(submission, people):
    root, later = testing.person("root", is_superuser=True), testing.person("later", is_superuser=True)
    workflow.add_member(people["mira"], submission, root, Role.ANNOTATOR)
    workflow.deactivate_member(people["mira"], submission, root)
    finish(submission, people)
    workflow.freeze(people["mira"], submission)
    workflow.reopen_submission(people["mira"], submission, "One more spot check.")
    for person, role in ((later, Role.ANNOTATOR), (later, Role.ADJUDICATOR), (root, Role.ANNOTATOR)):
        with pytest.raises(Conflict, match="could read labels"):
            workflow.add_member(people["mira"], submission, person, role)
    assert workflow.add_member(people["mira"], submission, later, Role.MAINTAINER)
    assert workflow.add_member(people["mira"], submission, people["dave"], Role.ANNOTATOR)


def test_a_freeze_is_taken_back_only_while_nobody_has_seen_the_labels_of_others(submission, people):
    finish(submission, people)
    workflow.freeze(people["mira"], submission)
    assert not access.may_see_labels(people["alice"], first(submission))
    workflow.reopen_submission(people["mira"], submission, "One more spot check.")
    submission = workflow.freeze(people["mira"], submission)
    workflow.open_results(people["mira"], submission)
    assert access.may_see_labels(people["alice"], first(submission))
    with pytest.raises(Conflict, match="seen each other"):
        workflow.reopen_submission(people["mira"], submission, "Again.")


def test_a_deactivated_annotator_keeps_labels_and_loses_open_assignments(submission, people):
    testing.label(people["alice"], first(submission))
    held = workflow.claim(people["alice"], submission)
    workflow.deactivate_member(people["mira"], submission, people["alice"])
    assert not Assignment.objects.filter(pk=held.pk).exists()
    assert access.own_labels(people["alice"], first(submission)).count() == 1
    with pytest.raises(PermissionDenied):
        workflow.claim(people["alice"], submission)
    workflow.add_member(people["mira"], submission, people["alice"], Role.ANNOTATOR)
    assert workflow.claim(people["alice"], submission)


def test_each_slot_of_who_leaves_comes_back_with_an_event_of_its_own(submission, people):
    held = workflow.claim(people["alice"], submission)
    ahead = workflow.claim_ahead(people["alice"], held.trajectory)
    workflow.deactivate_member(people["mira"], submission, people["alice"])
    told = [(e.actor_pseudonym, e.payload) for e in events_of(submission, "slot_returned")]
    assert told == [
        ("M1", {"task_id": a.trajectory.task.external_id, "slot": 1, "held_by": "A1"}) for a in (held, ahead)
    ]
    assert {t.open_slots for t in submission.trajectories.all()} == {3}


def test_what_an_adjudicator_who_leaves_had_opened_waits_for_another_one(submission, people):
    quinn = testing.person("quinn")
    workflow.add_member(people["mira"], submission, quinn, Role.ADJUDICATOR)
    testing.label_all(people, submission, {"task_0000": [0, 1, 1], "task_0001": [0, 1, 1]})
    decided, opened = submission.trajectories.all()
    workflow.open_adjudication(people["carol"], decided)
    workflow.decide(people["carol"], decided, testing.content(decided))
    workflow.open_adjudication(people["carol"], opened)
    workflow.deactivate_member(people["mira"], submission, people["carol"])
    (event,) = events_of(submission, "adjudication_returned")
    assert event.payload == {"task_id": "task_0001", "revision": 1, "held_by": "Q1"}
    assert Adjudication.objects.get().trajectory == decided
    assert workflow.open_adjudication(quinn, opened).revision == 1


def test_an_annotator_never_becomes_the_adjudicator(submission, people):
    with pytest.raises(Conflict, match="one role"):
        workflow.add_member(people["mira"], submission, people["alice"], Role.ADJUDICATOR)
