"""The adjudicator's queue and desk: hardest first, labels side by side, and nothing of them where it is blind."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse

from annotation import testing, workflow
from annotation.models import Adjudication, Draft, Person, Submission, Trajectory
from annotation.tests.test_pages_annotator import filled

SAID = "words that only one of them has written"


@pytest.fixture
def carol(client: Client, people: dict[str, Person]) -> Client:
    client.force_login(people["carol"])
    return client


@pytest.fixture
def labelled(people: dict[str, Person], submission: Submission) -> list[Trajectory]:
    """A dispute (alice: failure at step 1) and a unanimous trajectory that alice has flagged, with her words."""
    trajectories = list(submission.trajectories.all())
    for verdicts, trajectory in zip(((0, 1, 1), (1, 1, 1)), trajectories, strict=True):
        for name, verdict in zip(("alice", "bob", "chen"), verdicts, strict=True):
            words = {"reasoning": SAID} if name == "alice" else {}
            testing.label(people[name], trajectory, verdict, **words)
    workflow.flag(people["alice"], trajectories[1], SAID)
    return trajectories


def test_the_queue_lists_disputes_before_flags_and_no_word_of_labels(
    carol: Client, labelled: list[Trajectory], submission: Submission
) -> None:
    page = carol.get(reverse("adjudicate", args=[submission.pk])).content.decode()

    assert page.index("dispute") < page.index("flagged")
    assert SAID not in page


def test_a_dispute_shows_the_labels_by_pseudonym_with_only_what_differs_lit(
    carol: Client, labelled: list[Trajectory]
) -> None:
    address = reverse("adjudication", args=[labelled[0].pk])
    assert SAID not in carol.get(address).content.decode()  # nobody may look before the labels stand fast
    carol.post(reverse("open-adjudication", args=[labelled[0].pk]))
    response = carol.get(address)

    comparison = response.context["comparison"]
    assert [name for name, _ in comparison.columns] == ["A1", "A2", "A3"]
    assert [cell.lit for cell in dict(comparison.rows)["Verdict"]] == [True, False, False]
    assert [cell.lit for cell in dict(comparison.rows)["1. at least 16 GB"]] == [True, False, False]
    assert dict(comparison.rows)["Failed at"][0].step == 1
    assert SAID in response.content.decode()
    assert "alice" not in response.content.decode()


def test_a_blind_one_shows_no_label_before_the_decision_and_all_of_them_after(
    carol: Client, labelled: list[Trajectory]
) -> None:
    address = reverse("adjudication", args=[labelled[1].pk])
    assert SAID not in carol.get(address).content.decode()
    carol.post(reverse("open-adjudication", args=[labelled[1].pk]))
    assert SAID not in carol.get(address).content.decode()

    carol.post(reverse("decide", args=[labelled[1].pk]), filled(labelled[1]))
    page = carol.get(address).content.decode()
    assert SAID in page
    assert "Change the decision" in page
    assert Adjudication.objects.get().blind


def test_a_decision_is_changed_with_a_reason_only(carol: Client, labelled: list[Trajectory]) -> None:
    pk = labelled[0].pk
    carol.post(reverse("open-adjudication", args=[pk]))
    carol.post(reverse("decide", args=[pk]), filled(labelled[0], "0"))

    assert carol.post(reverse("open-adjudication", args=[pk])).status_code == 400
    carol.post(reverse("open-adjudication", args=[pk]), {"reason": "misread the range"})
    assert carol.get(reverse("adjudication", args=[pk])).context["form"].data["verdict"] == "0"
    carol.post(reverse("decide", args=[pk]), filled(labelled[0]))

    assert [a.verdict for a in Adjudication.objects.order_by("revision")] == [0, 1]


def test_an_incomplete_decision_comes_back_as_typed(carol: Client, labelled: list[Trajectory]) -> None:
    carol.post(reverse("open-adjudication", args=[labelled[0].pk]))

    response = carol.post(reverse("decide", args=[labelled[0].pk]), {"verdict": "2", "reasoning": "a wall"})

    assert response.status_code == 400
    assert "a wall" in response.content.decode()
    assert 'href="#f-cause"' in response.content.decode()


def test_deciding_what_is_not_open_is_a_conflict(carol: Client, labelled: list[Trajectory]) -> None:
    assert carol.post(reverse("decide", args=[labelled[0].pk]), filled(labelled[0])).status_code == 409


def test_leaving_keeps_the_draft(carol: Client, people: dict[str, Person], labelled: list[Trajectory]) -> None:
    pk = labelled[0].pk
    carol.post(reverse("open-adjudication", args=[pk]))
    carol.post(reverse("adjudication-draft", args=[pk]), {"reasoning": "so far", "version": "0"})
    carol.post(reverse("leave-adjudication", args=[pk]))

    assert not Adjudication.objects.exists()
    assert Draft.objects.get(author=people["carol"]).content == {"reasoning": "so far"}


def test_spot_checks_are_drawn_by_a_button(carol: Client, people: dict[str, Person], submission: Submission) -> None:
    testing.label_all(people, submission, {})

    page = carol.post(reverse("draw", args=[submission.pk]), follow=True).content.decode()
    assert "Drew 1 of 2" in page
    assert "spot check" in page
    assert carol.post(reverse("draw", args=[submission.pk])).status_code == 409


@pytest.mark.parametrize(("name", "status"), [("alice", 403), ("carol", 200), ("mira", 403), ("dave", 404)])
def test_only_adjudicators_see_the_queue_and_the_desk(
    client: Client, people: dict[str, Person], labelled: list[Trajectory], name: str, status: int
) -> None:
    client.force_login(people[name])

    assert client.get(reverse("adjudicate", args=[labelled[0].submission_id])).status_code == status
    assert client.get(reverse("adjudication", args=[labelled[0].pk])).status_code == status
