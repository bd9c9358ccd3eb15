"""Correcting a label: with a reason, and only while nobody can have looked at it."""

import re

import pytest
from django.urls import reverse

from annotation import access, workflow
from annotation.models import Membership, Submission
from annotation.tests import testing
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
    assert "a draw makes them final" in shown


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
    assert "Reason for the revision" not in page


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


def unchanged(trajectory, **fields):
    return form_of(trajectory, reason="Changed my mind.") | fields


@pytest.mark.parametrize("blanks", [{}, {"reasoning": " The steps show it.\r\n"}])
def test_unchanged_revision_is_refused(client, submission, people, blanks):
    testing.label(people["alice"], first(submission))
    with pytest.raises(Incomplete, match="This revision changes nothing"):
        workflow.revise(people["alice"], first(submission), testing.content(first(submission)), "Changed my mind.")
    client.force_login(people["alice"])
    address = reverse("revise", args=[first(submission).pk])
    answer = client.post(address, unchanged(first(submission), **blanks))
    assert answer.status_code == 400
    assert "This revision changes nothing." in answer.content.decode()
    assert "Cancel revision" in answer.content.decode()
    assert [label.revision for label in access.own_labels(people["alice"], first(submission))] == [1]


@pytest.mark.parametrize("accept", ["text/html", "application/json"])
@pytest.mark.parametrize("revised", [False, True])
def test_own_label_posted_again_does_not_tell_whether_somebody_has_opened_the_trajectory(
    client, submission, people, accept, revised
):
    """Neither the first label, nor a revision word for word, nor the page of the label, nor its form."""
    testing.label_all(people, submission, {"task_0000": [0, 1, 1]})
    alice, found = people["alice"], first(submission)
    words = {"reasoning": "Other words."} if revised else {}
    if revised:
        workflow.revise(alice, found, testing.content(found, 0, **words), "Changed my mind.")
    form = unchanged(found, verdict="0", failure_step="1", failure_type="range_not_exact", **words)
    form |= {name: "unmet" for name in form if name.startswith("finding_") and not name.endswith("_step")}
    client.force_login(alice)
    desk = reverse("trajectory", args=[found.pk])

    def answers():
        addresses = [reverse(name, args=[found.pk]) for name in ("revise", "submit")]
        posted = [client.post(address, form, HTTP_ACCEPT=accept) for address in addresses]
        shown = [client.get(desk + mode, HTTP_ACCEPT=accept) for mode in ("", "?revise", "?revise=undo")]
        return [(answer.status_code, without_tokens(answer.content.decode())) for answer in posted + shown]

    before = answers()
    workflow.open_adjudication(people["carol"], found)
    assert answers() == before
    assert [label.revision for label in access.own_labels(alice, found)] == ([1, 2] if revised else [1])


def without_tokens(page):
    return re.sub(r'value="\w{64}"|nonce="[^"]+"', "", page)


def test_labels_that_an_adjudicator_has_seen_stay_as_they_are_when_the_adjudication_is_left(submission, people):
    testing.label_all(people, submission, {"task_0000": [0, 1, 1]})
    workflow.open_adjudication(people["carol"], first(submission))
    workflow.leave_adjudication(people["carol"], first(submission))
    assert not access.may_see_labels(people["carol"], first(submission))
    with pytest.raises(Conflict, match="no longer be revised"):
        workflow.revise(people["alice"], first(submission), testing.content(first(submission)), "Changed my mind.")
    assert not workflow.open_adjudication(people["carol"], first(submission)).blind
