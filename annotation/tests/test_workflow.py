"""The verbs: what each does, and every state in which it must refuse."""

from dataclasses import replace
from datetime import timedelta

import pytest
from django.core.exceptions import PermissionDenied
from django.utils import timezone

from annotation import access, queue, testing, workflow
from annotation.models import Assignment, Draft, Event, Membership, Trajectory
from annotation.models.states import State, final_verdict, state_of, with_state
from annotation.records import Verdict
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
    with pytest.raises(Conflict, match="draft is kept"):
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


def test_a_second_submit_is_a_conflict(submission, people):
    testing.label(people["alice"], first(submission))
    with pytest.raises(Conflict, match="already submitted"):
        workflow.submit(people["alice"], first(submission), testing.content(first(submission)))


def test_a_blind_label_can_be_revised_with_a_reason_and_both_revisions_stay(submission, people):
    testing.label(people["alice"], first(submission))
    workflow.revise(people["alice"], first(submission), testing.content(first(submission), 0), "Missed the range.")
    assert [label.verdict for label in access.own_labels(people["alice"], first(submission))] == [1, 0]
    with pytest.raises(Incomplete, match="reason"):
        workflow.revise(people["alice"], first(submission), testing.content(first(submission)), "")


def test_a_label_cannot_be_revised_once_an_adjudication_was_opened(submission, people):
    testing.label_all(people, submission, {"task_0000": [0, 1, 1]})
    workflow.open_adjudication(people["carol"], first(submission))
    with pytest.raises(Conflict, match="no longer be revised"):
        workflow.revise(people["alice"], first(submission), testing.content(first(submission)), "Changed my mind.")


def test_labels_that_an_adjudicator_has_seen_stay_as_they_are_when_the_adjudication_is_left(submission, people):
    testing.label_all(people, submission, {"task_0000": [0, 1, 1]})
    workflow.open_adjudication(people["carol"], first(submission))
    workflow.leave_adjudication(people["carol"], first(submission))
    assert not access.may_see_labels(people["carol"], first(submission))
    with pytest.raises(Conflict, match="no longer be revised"):
        workflow.revise(people["alice"], first(submission), testing.content(first(submission)), "Changed my mind.")
    assert not workflow.open_adjudication(people["carol"], first(submission)).blind


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
    assert [t.pk for t in queue.to_adjudicate(submission)] == [first(submission).pk]


def test_disputes_come_before_spot_checks(submission, people):
    testing.label_all(people, submission, {"task_0001": [0, 1, 1]})
    workflow.draw_spot_checks(people["mira"], submission)
    assert [t.state for t in queue.to_adjudicate(submission)] == ["dispute", "spot check"]


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


def test_an_annotator_never_becomes_the_adjudicator(submission, people):
    with pytest.raises(Conflict, match="one role"):
        workflow.add_member(people["mira"], submission, people["alice"], Role.ADJUDICATOR)


def verbs(trajectory):
    submission, content = trajectory.submission, testing.content(trajectory)
    return {
        "claim": ("annotator", lambda who: workflow.claim(who, submission)),
        "submit": ("annotator", lambda who: workflow.submit(who, trajectory, content)),
        "revise": ("annotator", lambda who: workflow.revise(who, trajectory, content, "why")),
        "release": ("annotator", lambda who: workflow.release(who, trajectory, "why")),
        "flag": ("annotator", lambda who: workflow.flag(who, trajectory, "look")),
        "open_adjudication": ("adjudicator", lambda who: workflow.open_adjudication(who, trajectory)),
        "leave_adjudication": ("adjudicator", lambda who: workflow.leave_adjudication(who, trajectory)),
        "decide": ("adjudicator", lambda who: workflow.decide(who, trajectory, content)),
        "reopen": ("maintainer", lambda who: workflow.reopen(who, trajectory, "why")),
        "freeze": ("maintainer", lambda who: workflow.freeze(who, submission)),
        "open_results": ("maintainer", lambda who: workflow.open_results(who, submission)),
        "reopen_submission": ("maintainer", lambda who: workflow.reopen_submission(who, submission, "why")),
        "draw": ("maintainer or adjudicator", lambda who: workflow.draw_spot_checks(who, submission)),
        "add": ("maintainer", lambda who: workflow.add_member(who, submission, who, Role.ANNOTATOR)),
        "deactivate": ("maintainer", lambda who: workflow.deactivate_member(who, submission, who)),
    }


@pytest.mark.parametrize("name", ["alice", "carol", "mira", "dave"])
def test_every_verb_refuses_every_wrong_role(submission, people, name):
    role = access.role_in(people[name], submission)
    for verb, (allowed, act) in verbs(first(submission)).items():
        if role is None or role.value not in allowed:
            with pytest.raises(PermissionDenied):
                act(people[name])
            assert verb


STAGES = {
    "untouched": lambda submission, people: None,
    "held": lambda submission, people: workflow.claim(people["alice"], submission),
    "labelled": lambda submission, people: testing.label(people["alice"], first(submission)),
    "dispute": lambda submission, people: testing.label_all(people, submission, {"task_0000": [0, 1, 1]}),
    "agreed": lambda submission, people: testing.label_all(people, submission, {}),
    "final": finish,
}
ALLOWED = {
    "untouched": {"claim", "add"},
    "held": {"claim", "submit", "release", "flag", "add"},
    "labelled": {"claim", "revise", "flag", "add"},
    "dispute": {"claim", "revise", "flag", "open_adjudication", "draw", "add"},
    "agreed": {"claim", "revise", "flag", "draw", "add"},
    "final": {"claim", "flag", "reopen", "freeze", "add"},
}


@pytest.mark.parametrize("stage", STAGES)
def test_every_verb_is_tried_in_every_state(submission, people, stage):
    STAGES[stage](submission, people)
    events = Event.objects.filter(submission=submission).count()
    actors = {"annotator": "alice", "adjudicator": "carol", "maintainer": "mira", "maintainer or adjudicator": "mira"}
    refused = set()
    for verb, (role, act) in verbs(first(submission)).items():
        if verb in ALLOWED[stage]:
            continue
        with pytest.raises((Conflict, Incomplete)):
            act(people[actors[role]])
        refused.add(verb)
    assert Event.objects.filter(submission=submission).count() == events, refused
