"""Correcting a label: with a reason, and only while nobody can have looked at it."""

import pytest
from django.urls import reverse

from annotation import access, testing, workflow
from annotation.models import Membership, Submission
from annotation.tests.test_workflow import first, form_of
from annotation.workflow import Conflict, Incomplete

pytestmark = pytest.mark.django_db
Role = Membership.Role


# --- annotators ----------------------------------------------------------------------------------------------------


def test_a_blind_label_can_be_revised_with_a_reason_and_both_revisions_stay(submission, people):
    testing.label(people["alice"], first(submission))
    workflow.revise(people["alice"], first(submission), testing.content(first(submission), 0), "Missed the range.")
    assert [label.verdict for label in access.own_labels(people["alice"], first(submission))] == [1, 0]
    with pytest.raises(Incomplete, match="reason"):
        workflow.revise(people["alice"], first(submission), testing.content(first(submission)), "")


@pytest.mark.parametrize("invisible", [{"reasoning": "\u200b\u2060"}, {"reason": "\ufeff \u3164"}])
def test_words_that_nobody_can_see_are_none(submission, people, invisible):
    testing.label(people["alice"], first(submission))
    reason = invisible.pop("reason", "Missed the range.")
    with pytest.raises(Incomplete, match=r"reason"):
        workflow.revise(people["alice"], first(submission), testing.content(first(submission), 0, **invisible), reason)


def test_a_label_cannot_be_revised_once_an_adjudication_was_opened(submission, people):
    testing.label_all(people, submission, {"task_0000": [0, 1, 1]})
    workflow.open_adjudication(people["carol"], first(submission))
    with pytest.raises(Conflict, match="no longer be revised"):
        workflow.revise(people["alice"], first(submission), testing.content(first(submission)), "Changed my mind.")


@pytest.mark.parametrize(("name", "address"), [("mira", "submission"), ("carol", "adjudicate")])
def test_who_draws_is_told_that_labels_stay_from_then_on(client, submission, people, name, address):
    client.force_login(people[name])
    shown = client.get(reverse(address, args=[submission.pk])).content.decode()
    assert "Draw spot checks" in shown
    assert "A draw makes labels final" in shown


@pytest.mark.parametrize("said", [[1, 1, 1], [0, 1, 1]])
def test_labels_that_were_complete_at_a_draw_stay_whether_they_agree_or_not(client, submission, people, said):
    Submission.objects.update(spot_check_rate=0.0)
    testing.label_all(people, submission, {"task_0000": said})
    client.force_login(people["alice"])
    desk = reverse("trajectory", args=[first(submission).pk])
    assert "Revise it" in client.get(desk).content.decode()
    workflow.draw_spot_checks(people["mira"], submission)

    with pytest.raises(Conflict, match="no longer be revised"):
        workflow.revise(people["alice"], first(submission), testing.content(first(submission), 0), "Changed my mind.")
    page = client.get(desk + "?revise").content.decode()
    assert "Your label stays as it is" in page
    assert "Revise it" not in page
    assert "Why you revise it" not in page


def test_a_label_whose_trajectory_was_still_waiting_at_the_draw_can_be_revised(submission, people):
    one, other = submission.trajectories.order_by("position")
    for name in ("alice", "bob", "chen"):
        testing.label(people[name], one)
    testing.label(people["alice"], other)
    workflow.draw_spot_checks(people["mira"], submission)
    testing.label(people["bob"], other)
    testing.label(people["chen"], other)

    workflow.revise(people["alice"], other, testing.content(other, 0), "Missed the range.")

    assert [label.verdict for label in access.own_labels(people["alice"], other)] == [1, 0]


@pytest.mark.parametrize("wrong", [{"reason": ""}, {"reasoning": ""}, {"verdict": ""}])
def test_an_incomplete_revision_does_not_tell_whether_somebody_has_opened_the_trajectory(
    client, submission, people, wrong
):
    testing.label_all(people, submission, {"task_0000": [0, 1, 1]})
    client.force_login(people["alice"])
    address = reverse("revise", args=[first(submission).pk])
    form = form_of(first(submission), reason="Missed it.") | wrong
    before = client.post(address, form)
    workflow.open_adjudication(people["carol"], first(submission))
    after = client.post(address, form)
    assert (before.status_code, after.status_code) == (400, 400)
    assert client.post(address, form_of(first(submission), reason="Missed it.")).status_code == 409


def test_labels_that_an_adjudicator_has_seen_stay_as_they_are_when_the_adjudication_is_left(submission, people):
    testing.label_all(people, submission, {"task_0000": [0, 1, 1]})
    workflow.open_adjudication(people["carol"], first(submission))
    workflow.leave_adjudication(people["carol"], first(submission))
    assert not access.may_see_labels(people["carol"], first(submission))
    with pytest.raises(Conflict, match="no longer be revised"):
        workflow.revise(people["alice"], first(submission), testing.content(first(submission)), "Changed my mind.")
    assert not workflow.open_adjudication(people["carol"], first(submission)).blind
