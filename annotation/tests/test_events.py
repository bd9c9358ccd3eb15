"""The chain of events: complete, linked, and telling when anything was changed behind its back."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from annotation import workflow
from annotation.models import Assignment, Event, Flag, Label, Reopening, SpotCheck, Submission
from annotation.models.events import GENESIS, append, canonical_json, digest, first_broken
from annotation.records import AttemptContent
from annotation.tests import testing
from annotation.workflow import Conflict
from annotation.workflow.integrity import problems

pytestmark = pytest.mark.django_db


def test_every_transition_appends_one_event(submission, people):
    trajectory = submission.trajectories.first()
    before = Event.objects.filter(submission=submission).count()
    testing.label(people["alice"], trajectory)
    kinds = list(Event.objects.filter(submission=submission).values_list("kind", flat=True))[before:]
    assert kinds == ["claimed", "label_submitted"]


def test_the_chain_of_a_whole_protocol_holds(submission, people):
    testing.label_all(people, submission, {"task_0000": [0, 1, 1]})
    workflow.draw_spot_checks(people["mira"], submission)
    testing.adjudicate_all(people["carol"], submission)
    workflow.freeze(people["mira"], submission)
    events = list(Event.objects.filter(submission=submission))
    assert [event.sequence for event in events] == list(range(len(events)))
    assert events[0].previous == GENESIS
    assert first_broken(events) is None
    assert problems(submission) == []


@pytest.mark.parametrize("change", [{"kind": "other"}, {"payload": {"slot": 9}}, {"actor_pseudonym": "A9"}])
def test_a_changed_event_is_found(submission, people, change):
    testing.label(people["alice"], submission.trajectories.first())
    events = list(Event.objects.filter(submission=submission))
    for name, value in change.items():
        setattr(events[2], name, value)
    assert first_broken(events) == events[2]


def test_a_missing_event_is_found(submission, people):
    testing.label(people["alice"], submission.trajectories.first())
    events = list(Event.objects.filter(submission=submission))
    assert first_broken([*events[:2], *events[3:]]) == events[3]


def test_a_label_changed_behind_the_back_of_the_workflow_is_found(submission, people, without_triggers):
    label = testing.label(people["alice"], submission.trajectories.first())
    assert problems(submission) == []
    with without_triggers():
        Label.objects.filter(pk=label.pk).update(reasoning="Something else.")
    assert [problem.code for problem in problems(submission)] == ["label_not_in_events", "label_missing"]


def test_a_finding_changed_behind_the_back_of_the_workflow_is_found(submission, people, without_triggers):
    label = testing.label(people["alice"], submission.trajectories.first())
    with without_triggers():
        label.findings.update(finding="unmet")
    assert [problem.code for problem in problems(submission)] == ["label_not_in_events", "label_missing"]


def whole_protocol(submission, people):
    """Everything decided, with a flag and a reopening on the way; ready for the freeze."""
    testing.label_all(people, submission, {"task_0000": [0, 1, 1]})
    workflow.flag(people["alice"], submission.trajectories.first(), "The price is cut off.")
    workflow.draw_spot_checks(people["mira"], submission)
    testing.adjudicate_all(people["carol"], submission)
    workflow.reopen(people["mira"], submission.trajectories.first(), "The site has changed.")
    testing.adjudicate_all(people["carol"], submission)


def swap_annotators(people):
    alices, bobs = (Assignment.objects.filter(annotator=people[name]).first() for name in ("alice", "bob"))
    assert alices.trajectory == bobs.trajectory
    for assignment, name in ((alices, "dave"), (bobs, "alice"), (alices, "bob")):
        Assignment.objects.filter(pk=assignment.pk).update(annotator=people[name])


TAMPERING = {
    "who was drawn": (lambda people: SpotCheck.objects.update(selected=False), "draw_members_differ"),
    "who was in the draw": (lambda people: SpotCheck.objects.all()._raw_delete("default"), "draw_members_differ"),
    "a flag": (lambda people: Flag.objects.all()._raw_delete("default"), "flagged_differs"),
    "whose flag": (lambda people: Flag.objects.update(annotator=people["bob"]), "flagged_differs"),
    "a reopening": (lambda people: Reopening.objects.all()._raw_delete("default"), "reopened_differs"),
    "whose label": (
        lambda people: Assignment.objects.filter(annotator=people["chen"]).update(annotator=people["dave"]),
        "label_submitted_differs",
    ),
    "whose of two labels": (swap_annotators, "label_submitted_differs"),
}


@pytest.mark.parametrize("what", TAMPERING)
def test_what_a_final_verdict_depends_on_is_compared_with_the_events(submission, people, without_triggers, what):
    whole_protocol(submission, people)
    assert problems(submission) == []
    change, code = TAMPERING[what]
    with without_triggers():
        assert change(people) != 0
    assert {problem.code for problem in problems(submission)} == {code}
    with pytest.raises(Conflict, match="Nothing was frozen"):
        workflow.freeze(people["mira"], submission)
    submission.refresh_from_db()
    assert submission.frozen_at is None
    assert not Event.objects.filter(submission=submission, kind="frozen").exists()


def test_the_names_of_a_problem_are_pseudonyms(submission, people, without_triggers):
    whole_protocol(submission, people)
    with without_triggers():
        Flag.objects.all()._raw_delete("default")
    (problem,) = problems(submission)
    assert "A1" in problem.message
    assert "alice" not in problem.message


@pytest.mark.parametrize("version", [1, 2])
def test_comparing_a_larger_submission_costs_no_more_queries(db, version):
    costs = []
    for count in (2, 12):
        submission = testing.bare_submission(count, steps=3, agent=f"Agent {count}")
        Submission.objects.filter(pk=submission.pk).update(protocol_version=version)
        submission.refresh_from_db()
        people = testing.cast(submission)
        attempt = AttemptContent(4, "Done in four steps.", "", "as_short") if version == 2 else None
        for name in ("alice", "bob", "chen"):
            while (held := workflow.claim(people[name], submission)) is not None:
                entered = testing.content(held.trajectory, int(held.trajectory.position % 2), attempt=attempt)
                workflow.submit(people[name], held.trajectory, entered)
        workflow.draw_spot_checks(people["mira"], submission)
        testing.adjudicate_all(people["carol"], submission)
        with CaptureQueriesContext(connection) as asked:
            assert problems(submission) == []
        costs.append(len(asked))
    assert costs[0] == costs[1]


def test_chains_of_submissions_do_not_touch_each_other(submission):
    first = append(None, "one")
    assert (first.sequence, append(None, "two").previous) == (0, first.hash)
    assert Event.objects.filter(submission=submission).first().sequence == 0


def test_canonical_json_has_one_spelling_and_a_known_digest():
    assert canonical_json({"b": [1, None], "a": "é"}) == '{"a":"é","b":[1,null]}'
    # printf '{}' | sha256sum
    assert digest({}) == "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
    with pytest.raises(ValueError, match="not JSON compliant"):
        canonical_json(float("nan"))
