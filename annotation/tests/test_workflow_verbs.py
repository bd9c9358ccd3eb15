"""Every verb in every role and every state, and what everybody gave back and may have again."""

import pytest
from django.core.exceptions import PermissionDenied

from annotation import access, workflow
from annotation.models import Event, Label, Membership, Release
from annotation.tests import testing
from annotation.tests.test_workflow import events_of, finish, first
from annotation.workflow import Conflict, Incomplete

pytestmark = pytest.mark.django_db
Role = Membership.Role


def verbs(trajectory):
    submission, content = trajectory.submission, testing.content(trajectory, reasoning="Other words.")
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
        "offer_again": ("maintainer", lambda who: workflow.offer_again(who, trajectory, "why")),
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


# --- offered again ---------------------------------------------------------------------------------------------------


def given_back_by_all(submission, people):
    for name in ("alice", "bob", "chen"):
        held = workflow.claim(people[name], submission)
        assert held.trajectory == first(submission)
        workflow.release(people[name], held.trajectory, f"{name} cannot read the language.")
    return first(submission)


def test_a_trajectory_that_everybody_gave_back_is_offered_to_them_again(submission, people):
    trajectory = given_back_by_all(submission, people)
    testing.label_all(people, submission, {})  # all that is left for them
    assert {label.assignment.trajectory for label in Label.objects.all()} == {submission.trajectories.last()}
    with pytest.raises(Conflict, match="no free slot"):
        workflow.claim_this(people["chen"], trajectory)
    assert workflow.offer_again(people["mira"], trajectory, "A translation is there now.") == 3
    assert workflow.claim(people["chen"], submission).trajectory == trajectory
    assert workflow.claim_this(people["alice"], trajectory).annotator == people["alice"]
    (event,) = events_of(submission, "offered_again")
    assert (event.payload["task_id"], event.payload["releases"]) == ("task_0000", 3)
    assert event.payload["reason"] == "A translation is there now."
    assert Release.objects.filter(trajectory=trajectory).count() == 3  # the reasons stay


def test_what_was_offered_again_can_be_given_back_again(submission, people):
    trajectory = given_back_by_all(submission, people)
    workflow.offer_again(people["mira"], trajectory, "A translation is there now.")
    held = workflow.claim(people["alice"], submission)
    workflow.release(people["alice"], held.trajectory, "The translation is wrong.")
    assert workflow.claim(people["alice"], submission).trajectory != trajectory
    assert workflow.offer_again(people["mira"], trajectory, "It is mended.") == 1
    assert Release.objects.filter(annotator=people["alice"]).count() == 2


def test_offering_again_needs_a_reason_and_something_that_was_given_back(submission, people):
    with pytest.raises(Conflict, match="No annotator has declined"):
        workflow.offer_again(people["mira"], first(submission), "Why not.")
    trajectory = given_back_by_all(submission, people)
    with pytest.raises(Incomplete, match="reason"):
        workflow.offer_again(people["mira"], trajectory, " ")
    assert workflow.claim(people["alice"], submission).trajectory != trajectory
    assert not events_of(submission, "offered_again")


BOUNDED = {
    "flag": lambda people, row, text: workflow.flag(people["alice"], row, text),
    "release": lambda people, row, text: workflow.release(people["alice"], row, text),
}


@pytest.mark.parametrize("verb", BOUNDED)
def test_what_the_chain_would_keep_cut_is_refused(submission, people, verb):
    """2,000 characters are taken whole, blanks around them not counted; one more is too many."""
    trajectory = workflow.claim(people["alice"], submission).trajectory
    if verb == "flag":
        testing.label(people["alice"], trajectory)
    before = Event.objects.count()
    with pytest.raises(Incomplete) as refused:
        BOUNDED[verb](people, trajectory, "a" * 2001)
    assert [problem.code for problem in refused.value.problems] == ["reason_too_long"]
    assert Event.objects.count() == before
    BOUNDED[verb](people, trajectory, f" {'a' * 2000} ")
    assert "a" * 2000 in Event.objects.latest("pk").payload.values()
