"""Repeated submits, for example after a lost answer, and submits from an older window."""

import pytest
from django.urls import reverse

from annotation import workflow
from annotation.models import Draft, Event, Flag, Label
from annotation.tests import testing
from annotation.tests.test_workflow import finish, first, form_of
from annotation.workflow import Conflict

JSON = {"HTTP_ACCEPT": "application/json"}


@pytest.fixture
def held(people, submission):
    """The trajectory that alice is working on."""
    return workflow.claim(people["alice"], submission).trajectory


def posted(client, name, trajectory, form):
    return client.post(reverse(name, args=[trajectory.pk]), form, **JSON)


def kinds():
    return list(Event.objects.order_by("sequence").values_list("kind", flat=True))


def test_submit_of_the_same_label_again_succeeds_and_adds_nothing(client, people, held):
    client.force_login(people["alice"])
    form = form_of(held, reasoning="First line.\r\nSecond line.", flag="on", flag_note="look")
    once = posted(client, "submit", held, form)
    before = kinds()
    again = posted(client, "submit", held, form)

    assert (again.status_code, again.json()) == (once.status_code, once.json())
    assert (Label.objects.count(), Flag.objects.count(), kinds()) == (1, 1, before)


def test_submit_of_the_same_label_again_succeeds_when_the_submission_was_frozen_meanwhile(people, submission):
    finish(submission, people)
    workflow.freeze(people["mira"], submission)
    label = Label.objects.get(assignment__annotator=people["alice"], assignment__trajectory=first(submission))
    assert workflow.submit(people["alice"], first(submission), testing.content(first(submission), 0)) == label


@pytest.mark.parametrize(
    "change", [{"verdict": "2", "cause": "blocked"}, {"reasoning": "Other words."}, {"flag": "on"}]
)
def test_submit_of_another_label_is_refused_with_a_code(client, people, held, change):
    client.force_login(people["alice"])
    posted(client, "submit", held, form_of(held))
    refused = posted(client, "submit", held, form_of(held) | change)

    assert refused.status_code == 409
    assert refused.json() == {
        "message": "You have already submitted a label for this trajectory. Revise it instead.",
        "code": "label_submitted",
    }
    assert Label.objects.get().verdict == 1


def test_submit_of_a_label_that_a_revision_replaced_is_refused(people, held):
    workflow.submit(people["alice"], held, testing.content(held))
    workflow.revise(people["alice"], held, testing.content(held, 0), "Missed the range.")
    with pytest.raises(Conflict, match="Revise it instead"):
        workflow.submit(people["alice"], held, testing.content(held))


def test_revision_posted_again_succeeds_and_adds_nothing(client, people, held):
    client.force_login(people["alice"])
    posted(client, "submit", held, form_of(held))
    form = form_of(held, reasoning="Better words.", reason="Clearer.")
    answers = [posted(client, "revise", held, form) for _ in range(2)]

    assert [answer.status_code for answer in answers] == [200, 200]
    assert answers[0].json() == answers[1].json()
    assert Label.objects.count() == 2


def test_decision_posted_again_succeeds_and_adds_nothing(client, people, submission):
    testing.label_all(people, submission, {"task_0000": [0, 1, 1]})
    found = first(submission)
    workflow.open_adjudication(people["carol"], found)
    client.force_login(people["carol"])
    form = form_of(found, criterion="key_point")
    answers = [posted(client, "decide", found, form) for _ in range(2)]

    assert [answer.status_code for answer in answers] == [200, 200]
    assert kinds().count("adjudication_decided") == 1
    assert posted(client, "decide", found, form | {"reasoning": "Other words."}).status_code == 409


def test_decision_posted_again_is_refused_when_the_maintainer_has_reopened_it(people, submission):
    testing.label_all(people, submission, {"task_0000": [0, 1, 1]})
    found = first(submission)
    testing.adjudicate_all(people["carol"], submission)
    workflow.reopen(people["mira"], found, "Look at step 2.")
    with pytest.raises(Conflict, match="not opened"):
        workflow.decide(people["carol"], found, testing.content(found))


# --- a window that is behind -----------------------------------------------------------------------------------------


def test_each_answer_to_an_older_window_reports_the_submitted_label(client, people, held):
    client.force_login(people["alice"])
    assert "code" not in posted(client, "activity", held, {"seconds": "5", "steps": ""}).json()
    posted(client, "submit", held, form_of(held))
    behind = {
        "activity": posted(client, "activity", held, {"seconds": "5", "steps": ""}),
        "draft": posted(client, "draft", held, form_of(held) | {"version": "0"}),
        "hold": posted(client, "hold", held, {}),
    }
    assert {name: answer.json()["code"] for name, answer in behind.items()} == dict.fromkeys(behind, "label_submitted")
    assert not Draft.objects.exists()


def test_answer_to_an_expired_reservation_does_not_mention_a_label(client, people, held):
    client.force_login(people["alice"])
    posted(client, "activity", held, {"seconds": "5", "steps": ""})
    held.assignments.all().delete()
    assert posted(client, "activity", held, {"seconds": "5", "steps": ""}).json() == {"lease_expires_at": None}
