"""The adjudicator's queue and desk: hardest first, labels side by side, and nothing of them where it is blind."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from annotation import queue, workflow
from annotation.models import (
    Adjudication,
    Draft,
    Event,
    Flag,
    Label,
    Membership,
    Person,
    Report,
    Submission,
    Trajectory,
)
from annotation.tests import testing
from annotation.tests.shared_rows import shared_rows
from annotation.tests.test_pages_annotator import filled
from annotation.views.adjudicator import format_age

SAID = "words that only one of them has written"


@pytest.fixture
def carol(client: Client, people: dict[str, Person]) -> Client:
    client.force_login(people["carol"])
    return client


@shared_rows
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

    assert page.index("failure against success") < page.index("flagged")
    assert SAID not in page


def test_a_dispute_shows_the_labels_by_pseudonym_with_only_what_differs_lit(
    carol: Client, labelled: list[Trajectory]
) -> None:
    address = reverse("adjudication", args=[labelled[0].pk])
    assert SAID not in carol.get(address).content.decode()  # nobody may look before the labels stand fast
    carol.post(reverse("open-adjudication", args=[labelled[0].pk]))
    response = carol.get(address)

    comparison = response.context["comparison"]
    assert [column.name for column in comparison.columns] == ["A1", "A2", "A3"]
    assert [cell.lit for cell in comparison.row("Verdict").cells] == [True, False, False]
    assert [cell.lit for cell in comparison.row("1. at least 16 GB").cells] == [True, False, False]
    assert comparison.row("Failed at").cells[0].steps == (1,)
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


# --- the queue -------------------------------------------------------------------------------------------------------


@shared_rows
def hard() -> tuple[Submission, dict[str, Person]]:
    """Of every kind one that waits, easiest first: spot check, flagged, 1 against 2, 0 against 1, three-way."""
    submission = testing.bare_submission(5, agent="Hard Agent")
    submission.spot_check_rate = 1
    submission.save()
    people = testing.cast(submission)
    verdicts = [(1, 1, 1), (1, 1, 1), (1, 2, 1), (0, 1, 1), (0, 1, 2)]
    rows = list(submission.trajectories.order_by("position"))
    for row, said in zip(rows, verdicts, strict=True):
        for name, verdict in zip(("alice", "bob", "chen"), said, strict=True):
            workflow.claim_this(people[name], row)
            fields = {"failure_step": 0} if verdict == 0 else {}
            workflow.submit(people[name], row, testing.content(row, verdict, **fields))
    workflow.flag(people["bob"], rows[1], SAID)
    workflow.draw_spot_checks(people["mira"], submission)
    return submission, people


KINDS = ["three-way", "opposed", "not-executable", "flagged", "spot-check"]


def test_the_queue_goes_from_three_way_splits_to_spot_checks(hard: Any) -> None:
    assert [row.kind for row in queue.load_queue(hard[0])] == KINDS


def test_a_reopened_one_comes_first_and_waits_from_the_reopening(hard: Any) -> None:
    submission, people = hard
    last = queue.load_queue(submission)[-1]
    workflow.open_adjudication(people["carol"], last)
    workflow.decide(people["carol"], last, testing.content(last))
    reopened = workflow.reopen(people["mira"], last, "look again")

    first = queue.load_queue(submission)[0]
    assert (first.pk, first.kind, first.since) == (last.pk, "reopened", reopened.reopened_at)


def test_within_a_kind_the_oldest_comes_first(hard: Any, without_triggers: Any) -> None:
    submission, _ = hard
    rows = {row.kind: row for row in queue.load_queue(submission)}
    with without_triggers():  # what was 0 against 1 becomes a split too, whose last label is a day older
        other = rows["opposed"]
        Label.objects.filter(assignment__trajectory=other, assignment__annotator__username="chen").update(
            verdict=2, cause="blocked"
        )
        Label.objects.filter(assignment__trajectory=other).update(created_at=timezone.now() - timedelta(days=1))

    assert [row.pk for row in queue.load_queue(submission)][:2] == [other.pk, rows["three-way"].pk]


def test_a_flagged_one_waits_from_its_flag_and_a_spot_check_from_its_draw(hard: Any) -> None:
    rows = {row.kind: row for row in queue.load_queue(hard[0])}

    assert rows["flagged"].since == Flag.objects.get().flagged_at
    assert rows["spot-check"].since == hard[0].spot_check_draws.get().drawn_at
    labels = Label.objects.filter(assignment__trajectory=rows["three-way"])
    assert rows["three-way"].since == max(labels.values_list("created_at", flat=True))


@pytest.mark.parametrize(
    ("passed", "said"),
    [
        ({}, "under 1 min"),
        ({"minutes": 5}, "5 min"),
        ({"hours": 3, "minutes": 40}, "3 h"),
        ({"hours": 47}, "47 h"),
        ({"hours": 50}, "2 d"),
    ],
)
def test_an_age_is_said_in_one_unit(passed: dict[str, int], said: str) -> None:
    now = timezone.now()

    assert format_age(now - timedelta(**passed), now) == said


def test_the_queue_is_narrowed_by_the_address(client: Client, hard: Any) -> None:
    submission, people = hard
    client.force_login(people["carol"])
    address = reverse("adjudicate", args=[submission.pk])

    response = client.get(address, {"kind": "flagged"})
    assert [row.kind for row in response.context["waiting"]] == ["flagged"]
    assert 'aria-current="page">flagged 1<' in response.content.decode()
    assert len(client.get(address, {"kind": "nonsense"}).context["waiting"]) == 5


def test_what_the_adjudicator_has_opened_is_listed_once(client: Client, hard: Any) -> None:
    submission, people = hard
    client.force_login(people["carol"])
    opened = queue.load_queue(submission)[0]
    workflow.open_adjudication(people["carol"], opened)

    response = client.get(reverse("adjudicate", args=[submission.pk]))
    assert response.content.decode().count(f'href="{reverse("adjudication", args=[opened.pk])}"') == 1
    assert [row.pk for row in response.context["mine"]] == [opened.pk]
    assert "autofocus" not in response.content.decode()


def test_what_another_adjudicator_has_opened_is_said_and_not_given(client: Client, hard: Any) -> None:
    submission, people = hard
    erin = testing.person("erin")
    workflow.add_member(people["mira"], submission, erin, Membership.Role.ADJUDICATOR)
    first, second = queue.load_queue(submission)[:2]
    workflow.open_adjudication(erin, first)
    client.force_login(people["carol"])

    assert "another adjudicator has it" in client.get(reverse("adjudicate", args=[submission.pk])).content.decode()
    assert client.post(reverse("open-next", args=[submission.pk])).url == reverse("adjudication", args=[second.pk])


def test_next_opens_the_hardest_once_even_when_pressed_twice(client: Client, hard: Any) -> None:
    submission, people = hard
    client.force_login(people["carol"])
    hardest = queue.load_queue(submission)[0]

    answers = [client.post(reverse("open-next", args=[submission.pk])) for _ in range(2)]
    assert {answer.url for answer in answers} == {reverse("adjudication", args=[hardest.pk])}
    assert Adjudication.objects.count() == 1


def test_next_goes_on_past_what_was_opened_before_and_comes_back_to_it(
    client: Client, hard: Any, without_triggers: Any
) -> None:
    submission, people = hard
    client.force_login(people["carol"])
    order = [row.pk for row in queue.load_queue(submission)]
    client.post(reverse("open-next", args=[submission.pk]))
    with without_triggers():
        Adjudication.objects.update(opened_at=timezone.now() - timedelta(minutes=1))

    found = queue.next_to_adjudicate(people["carol"], submission)
    assert [row.pk for row in found] == [*order[1:], order[0]]
    assert client.post(reverse("open-next", args=[submission.pk])).url == reverse("adjudication", args=[order[1]])


def test_next_keeps_to_the_kind_that_is_asked_for(client: Client, hard: Any) -> None:
    submission, people = hard
    client.force_login(people["carol"])
    flagged = next(row for row in queue.load_queue(submission) if row.kind == "flagged")

    answer = client.post(reverse("open-next", args=[submission.pk]), {"kind": "flagged"})
    assert answer.url == reverse("adjudication", args=[flagged.pk])


def test_decide_and_next_goes_down_the_queue_and_ends_at_it(client: Client, hard: Any) -> None:
    submission, people = hard
    client.force_login(people["carol"])
    order = queue.load_queue(submission)
    client.post(reverse("open-next", args=[submission.pk]))
    for row, following in zip(order, [*order[1:], None], strict=True):
        answer = client.post(reverse("decide", args=[row.pk]), filled(row) | {"then": "next"})
        there = reverse("adjudication", args=[following.pk]) if following else None
        assert answer.url == (there or reverse("adjudicate", args=[submission.pk]))

    assert "Your queue is empty" in client.get(answer.url).content.decode()


def test_the_queue_costs_the_same_however_long_it_is(
    client: Client, hard: Any, django_assert_max_num_queries: Any
) -> None:
    client.force_login(hard[1]["carol"])
    with django_assert_max_num_queries(9):
        client.get(reverse("adjudicate", args=[hard[0].pk]))


# --- what a decision will change -------------------------------------------------------------------------------------


def test_a_dispute_says_what_each_verdict_would_change(carol: Client, labelled: list[Trajectory]) -> None:
    carol.post(reverse("open-adjudication", args=[labelled[0].pk]))
    page = carol.get(reverse("adjudication", args=[labelled[0].pk])).content.decode()

    assert "Success: agrees with A2 and A3, overturns A1. The final verdict becomes success." in page
    assert "Failure: agrees with A1, overturns A2 and A3. The final verdict becomes failure." in page


def test_a_changed_decision_says_what_it_was(carol: Client, labelled: list[Trajectory]) -> None:
    pk = labelled[0].pk
    carol.post(reverse("open-adjudication", args=[pk]))
    carol.post(reverse("decide", args=[pk]), filled(labelled[0], "0"))
    carol.post(reverse("open-adjudication", args=[pk]), {"reason": "misread"})

    page = carol.get(reverse("adjudication", args=[pk])).content.decode()
    assert "The final verdict becomes success (was failure)." in page
    assert "The final verdict stays failure." in page


def test_a_blind_page_holds_nothing_of_any_label(
    carol: Client, people: dict[str, Person], submission: Submission
) -> None:
    row = submission.trajectories.all()[0]
    words = {"reasoning": SAID, "evidence_missing": (2,), "failure_type": "extra_action", "exception_reason": SAID}
    for name in ("alice", "bob", "chen"):
        workflow.claim_this(people[name], row)
        workflow.submit(people[name], row, testing.content(row, 0, **words))
    workflow.flag(people["alice"], row, SAID)
    carol.post(reverse("open-adjudication", args=[row.pk]))
    carol.cookies["labels"] = "open"

    for response in (
        carol.get(reverse("adjudication", args=[row.pk])),
        carol.post(reverse("decide", args=[row.pk]), {"verdict": "0"}),  # comes back: it is not complete
    ):
        page = response.content.decode()
        assert "The effects are shown after your decision" in page
        for trace in (SAID, "data-fields", "data-quotes", "overturns", "agrees", 'id="labels"'):
            assert trace not in page
        assert not re.search(r"\bA[123]\b", page)
        assert not re.search(r"extra_action\"[^>]*selected", page)


def test_after_a_blind_decision_the_page_says_how_it_compares(carol: Client, labelled: list[Trajectory]) -> None:
    pk = labelled[1].pk
    carol.post(reverse("open-adjudication", args=[pk]))
    carol.post(reverse("decide", args=[pk]), filled(labelled[1]))

    page = carol.get(reverse("adjudication", args=[pk])).content.decode()
    assert "You agree with all three labels." in page
    assert "All labels agree with you on every key point." in page
    assert "data-fields" not in page  # there is no form to take anything into


def test_a_decision_against_all_says_whom_it_overturns(carol: Client, labelled: list[Trajectory]) -> None:
    pk, points = labelled[1].pk, list(workflow.key_points_of(labelled[1]))
    carol.post(reverse("open-adjudication", args=[pk]))
    carol.post(reverse("decide", args=[pk]), filled(labelled[1], "0", **{f"finding_{points[0].pk}": "unmet"}))

    page = carol.get(reverse("adjudication", args=[pk])).content.decode()
    assert "Your verdict overturns A1, A2 and A3." in page
    assert "you say unmet; all three labels say met." in page


def test_the_criterion_of_a_decision_is_named_and_required(carol: Client, labelled: list[Trajectory]) -> None:
    pk = labelled[0].pk
    carol.post(reverse("open-adjudication", args=[pk]))

    assert carol.post(reverse("decide", args=[pk]), filled(labelled[0], criterion="")).status_code == 400
    assert carol.post(reverse("decide", args=[pk]), filled(labelled[0], criterion="made_up")).status_code == 400
    carol.post(reverse("decide", args=[pk]), filled(labelled[0], criterion="exact_range"))
    assert "Ranges are exact" in carol.get(reverse("adjudication", args=[pk])).content.decode().split("<dialog")[0]


def test_labels_that_were_folded_stay_folded(carol: Client, labelled: list[Trajectory]) -> None:
    address = reverse("adjudication", args=[labelled[0].pk])
    carol.post(reverse("open-adjudication", args=[labelled[0].pk]))

    assert 'id="labels" open' in carol.get(address).content.decode()
    carol.cookies["labels"] = "folded"
    assert 'id="labels">' in carol.get(address).content.decode()


# --- reports to the maintainer ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["guideline_unclear", "task_outdated"])
def test_a_report_is_sent_once_and_shown_as_sent(carol: Client, labelled: list[Trajectory], kind: str) -> None:
    address = reverse("adjudicator-report", args=[labelled[0].pk])
    page = carol.post(address, {"kind": kind, "note": "Is 15.6 GB 16 GB?"}, follow=True).content.decode()
    carol.post(address, {"kind": kind, "note": "again"})

    assert "Is 15.6 GB 16 GB?" in page
    assert "Sent to the maintainer" in page
    assert [(report.kind, report.note) for report in Report.objects.all()] == [(kind, "Is 15.6 GB 16 GB?")]
    assert Event.objects.filter(kind="reported").count() == 1


def test_a_script_gets_the_part_that_shows_the_report(carol: Client, labelled: list[Trajectory]) -> None:
    address = reverse("adjudicator-report", args=[labelled[0].pk])
    response = carol.post(address, {"kind": "task_outdated", "note": "gone"}, headers={"HX-Request": "true"})

    assert "<html" not in response.content.decode()
    assert "gone" in response.content.decode()


@pytest.mark.parametrize(
    "form", [{"kind": "nonsense", "note": "x"}, {"note": "x"}, {"kind": "task_outdated", "note": " "}]
)
def test_a_report_without_a_kind_or_a_note_is_refused(
    carol: Client, labelled: list[Trajectory], form: dict[str, str]
) -> None:
    assert carol.post(reverse("adjudicator-report", args=[labelled[0].pk]), form).status_code == 400
    assert not Report.objects.exists()


@pytest.mark.parametrize(("name", "status"), [("alice", 403), ("mira", 403), ("dave", 404)])
def test_nobody_else_reports_decides_or_opens_as_an_adjudicator(
    client: Client, people: dict[str, Person], labelled: list[Trajectory], name: str, status: int
) -> None:
    client.force_login(people[name])
    form = {"kind": "guideline_unclear", "note": "unclear"}

    assert client.post(reverse("adjudicator-report", args=[labelled[0].pk]), form).status_code == status
    assert client.post(reverse("open-next", args=[labelled[0].submission_id])).status_code == status
    assert not Report.objects.exists()
    assert not Adjudication.objects.exists()


def test_the_report_of_an_annotator_is_not_shown_to_the_adjudicator(
    carol: Client, people: dict[str, Person], labelled: list[Trajectory]
) -> None:
    workflow.report(people["alice"], labelled[1], Report.Kind.TASK_OUTDATED, SAID)

    assert SAID not in carol.get(reverse("adjudication", args=[labelled[1].pk])).content.decode()
    assert SAID not in carol.get(reverse("adjudicate", args=[labelled[1].submission_id])).content.decode()


def test_why_a_decision_is_asked_for_again_is_shown_to_who_decides_it(
    carol: Client, people: dict[str, Person], labelled: list[Trajectory]
) -> None:
    pk = labelled[0].pk
    carol.post(reverse("open-adjudication", args=[pk]))
    carol.post(reverse("decide", args=[pk]), filled(labelled[0]))
    workflow.reopen(people["mira"], labelled[0], "the range is inclusive")
    carol.post(reverse("open-adjudication", args=[pk]))
    assert "the range is inclusive" in carol.get(reverse("adjudication", args=[pk])).content.decode()

    carol.post(reverse("decide", args=[pk]), filled(labelled[0]))
    assert "the range is inclusive" not in carol.get(reverse("adjudication", args=[pk])).content.decode()
