"""The chain of events: complete, linked, and telling when anything was changed behind its back."""

import pytest

from annotation import testing, workflow
from annotation.models import Event, Label
from annotation.models.events import GENESIS, append, canonical_json, digest, first_broken
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
