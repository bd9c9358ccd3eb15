"""The pages of training: practice for newcomers, known answers and gold items for maintainers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from annotation import workflow
from annotation.models import (
    Draft,
    Event,
    KnownAnswer,
    Label,
    Membership,
    Person,
    PracticeAnswer,
    Submission,
    Trajectory,
)
from annotation.tests import testing

WHY = "As criteria say."  # the explanation of every known answer here


@pytest.fixture
def items(people: dict[str, Person], submission: Submission, tmp_path: Path) -> list[Trajectory]:
    """A success and a failure to practise on; both have to be right."""
    made = testing.practice_set(people, submission, tmp_path / "practice", answers=(1, 0), mark=1.0)
    return list(made.trajectories.order_by("position"))


@pytest.fixture
def alice(client: Client, people: dict[str, Person]) -> Client:
    client.force_login(people["alice"])
    return client


@pytest.fixture
def mira(people: dict[str, Person]) -> Client:
    client = Client()
    client.force_login(people["mira"])
    return client


def filled(trajectory: Trajectory, verdict: int = 1, **fields: str) -> dict[str, str]:
    """A complete form, as a browser without script sends it."""
    form = {"verdict": str(verdict), "reasoning": "The steps show it."}
    for pk in workflow.key_points_of(trajectory).values_list("pk", flat=True):
        form |= {f"finding_{pk}": "met" if verdict else "unmet", f"finding_{pk}_step": "0"}
    if verdict == 0:
        form |= {"failure_step": "1", "failure_type": "wrong_item"}
    return form | fields


def desk_of(submission: Submission, item: Trajectory) -> str:
    return reverse("practice-desk", args=[submission.pk, item.pk])


def text(response: Any) -> str:
    return str(response.content.decode())


def send(client: Client, submission: Submission, item: Trajectory, verdict: int, number: int = 1) -> Any:
    return client.post(f"{desk_of(submission, item)}?round={number}", filled(item, verdict), follow=True)


# --- the newcomer ----------------------------------------------------------------------------------------------------


def test_the_work_page_tells_a_newcomer_to_practise_and_how_far_they_are(
    alice: Client, submission: Submission, items: list[Trajectory]
) -> None:
    page = text(alice.get(reverse("work", args=[submission.pk])))
    assert "Pass the practice set first: 0 of 2 answered" in page
    assert reverse("practice", args=[submission.pk]) in page
    assert reverse("next-trajectory", args=[submission.pk]) not in page

    send(alice, submission, items[0], 1)
    assert "Pass the practice set first: 1 of 2 answered" in text(alice.get(reverse("work", args=[submission.pk])))


def test_a_newcomer_who_asks_for_work_all_the_same_is_refused(
    alice: Client, submission: Submission, items: list[Trajectory]
) -> None:
    refused = alice.post(reverse("next-trajectory", args=[submission.pk]))
    assert refused.status_code == 409
    assert "Pass the practice set first" in text(refused)


def test_the_work_page_is_as_ever_without_practice(alice: Client, submission: Submission) -> None:
    page = text(alice.get(reverse("work", args=[submission.pk])))
    assert "ractise" not in page
    assert reverse("next-trajectory", args=[submission.pk]) in page


def test_a_full_round_leads_from_the_first_item_to_real_work(
    alice: Client, submission: Submission, items: list[Trajectory]
) -> None:
    page = text(alice.get(reverse("practice", args=[submission.pk])))
    assert desk_of(submission, items[0]) in page
    assert desk_of(submission, items[1]) not in page  # one after the other

    first = text(send(alice, submission, items[0], 1))
    assert "<b>Right.</b>" in first
    assert "fault" not in first
    assert f'href="{desk_of(submission, items[1])}"' in first
    last = text(send(alice, submission, items[1], 0))
    assert "See the result" in last

    result = text(alice.get(reverse("practice", args=[submission.pk])))
    assert "<b>Passed.</b> 2 of 2" in result
    assert reverse("work", args=[submission.pk]) in result
    assert alice.post(reverse("next-trajectory", args=[submission.pk])).status_code == 302


def test_feedback_shows_both_answers_side_by_side_and_why(
    alice: Client, submission: Submission, items: list[Trajectory]
) -> None:
    send(alice, submission, items[0], 1)
    answered = send(alice, submission, items[1], 0)

    page = text(answered)
    assert "<b>Right.</b>" in page
    assert WHY in page
    rows = {row.title: row for row in answered.context["rows"]}
    assert (rows["Verdict"].own, rows["Verdict"].differs) == ("Failure", False)
    assert (rows["Failed at"].own_step, rows["Failed at"].known_step, rows["Failed at"].differs) == (1, 1, False)
    assert rows["Failure type"].known == "Range not exact"
    assert rows["Failure type"].own == "Wrong item or page"
    assert rows["Failure type"].differs
    assert rows["1. at least 16 GB"].own == "unmet"
    assert "(differs)" in page


def test_a_right_verdict_for_another_reason_is_no_found_fault(
    alice: Client, submission: Submission, items: list[Trajectory]
) -> None:
    send(alice, submission, items[0], 1)
    address = f"{desk_of(submission, items[1])}?round=1"
    page = text(alice.post(address, filled(items[1], 0, failure_step="2"), follow=True))
    assert "<b>Right.</b> The verdict is failure." in page
    assert "You missed the fault: neither your step nor your failure type is right." in page
    result = text(alice.get(reverse("practice", args=[submission.pk])))
    assert "<b>Passed.</b> 2 of 2" in result
    assert "You found 0 of 1 fault." in result
    assert "Missed: Range not exact." in " ".join(result.split())


def test_a_wrong_verdict_is_called_wrong(alice: Client, submission: Submission, items: list[Trajectory]) -> None:
    page = text(send(alice, submission, items[0], 0))
    assert "<b>Wrong.</b> The verdict is success, you said failure." in page


def test_nothing_of_the_known_answer_is_shown_before_the_own_one(
    alice: Client, submission: Submission, items: list[Trajectory]
) -> None:
    refused = alice.post(f"{desk_of(submission, items[0])}?round=1", filled(items[0], 1, reasoning=""))
    assert refused.status_code == 400
    pages = [
        text(refused),
        text(alice.get(desk_of(submission, items[0]))),
        text(alice.get(desk_of(submission, items[0]), {"round": "1"})),
        text(alice.get(desk_of(submission, items[0]), headers={"HX-Request": "true"})),
        text(alice.get(reverse("practice", args=[submission.pk]))),
    ]
    assert not [page for page in pages if WHY in page or "Right." in page]


def test_an_incomplete_answer_comes_back_as_typed(
    alice: Client, submission: Submission, items: list[Trajectory]
) -> None:
    typed = filled(items[0], 0, reasoning="half a thought", failure_type="", step="2")
    refused = alice.post(f"{desk_of(submission, items[0])}?round=1", typed)

    assert refused.status_code == 400
    assert "half a thought" in text(refused)
    assert 'href="#f-failure_type"' in text(refused)
    assert refused.context["viewer"].index == 2
    assert not PracticeAnswer.objects.exists()


def test_a_failed_round_is_followed_by_another_in_which_nothing_is_told_beforehand(
    alice: Client, submission: Submission, items: list[Trajectory]
) -> None:
    send(alice, submission, items[0], 0)
    send(alice, submission, items[1], 0)
    result = text(alice.get(reverse("practice", args=[submission.pk])))
    assert "<b>Not passed yet.</b> 1 of 2" in result
    again = f"{desk_of(submission, items[0])}?round=2"
    assert again in result

    page = alice.get(again)
    assert WHY not in text(page)
    assert 'id="label-form"' in text(page)
    assert f'data-address="{desk_of(submission, items[0])}?round=2&amp;"' in text(page)
    step = alice.get(f"{again}&step=1", headers={"HX-Request": "true"})
    assert f'data-address="{desk_of(submission, items[0])}?round=2&amp;"' in text(step)

    send(alice, submission, items[0], 1, 2)
    for address in (desk_of(submission, items[1]), f"{desk_of(submission, items[1])}?round=1"):
        assert WHY not in text(alice.get(address))
    send(alice, submission, items[1], 0, 2)
    final = text(alice.get(reverse("practice", args=[submission.pk])))
    assert "You found 1 of 1 fault." in final
    assert "<b>Passed.</b> 2 of 2" in final
    assert "round 1, 1 right" in final


@pytest.mark.parametrize("number", ["", "0", "2", "-1", "banana", "9" * 40, "1 OR 1=1", "1.0", "¹"])
def test_a_round_that_is_not_open_is_a_conflict(
    alice: Client, submission: Submission, items: list[Trajectory], number: str
) -> None:
    refused = alice.post(desk_of(submission, items[0]), filled(items[0]), query_params={"round": number})
    assert refused.status_code == 409
    assert not PracticeAnswer.objects.exists()


def test_a_second_window_answers_nothing_twice(alice: Client, submission: Submission, items: list[Trajectory]) -> None:
    send(alice, submission, items[0], 0)
    second = alice.post(f"{desk_of(submission, items[0])}?round=1", filled(items[0], 1))

    assert second.status_code == 409
    assert not PracticeAnswer.objects.get().right


@pytest.mark.parametrize(
    "wrong",
    [
        {"verdict": "banana"},
        {"verdict": "3"},
        {"failure_step": "-1"},
        {"failure_step": "99999999999"},
        {"failure_type": "<script>"},
        {"finding_1": "true"},
        {"finding_999999": "met", "finding_999999_step": "0"},
        {"evidence_missing": "77"},
        {"reasoning": "x" * 10_001},
    ],
)
def test_hostile_answers_are_refused_and_keep_nothing(
    alice: Client, submission: Submission, items: list[Trajectory], wrong: dict[str, str]
) -> None:
    key_point = workflow.key_points_of(items[0]).first().pk
    wrong = {name.replace("finding_1", f"finding_{key_point}"): value for name, value in wrong.items()}
    refused = alice.post(f"{desk_of(submission, items[0])}?round=1", filled(items[0], 0) | wrong)

    assert refused.status_code == 400
    assert "<script>" not in text(refused).split("<main")[1].split("</main>")[0]
    assert not PracticeAnswer.objects.exists()


def test_a_nul_character_is_refused(alice: Client, submission: Submission, items: list[Trajectory]) -> None:
    bad = alice.post(f"{desk_of(submission, items[0])}?round=1", filled(items[0], 1, reasoning="a\x00b"))
    assert bad.status_code == 400


def test_right_and_round_cannot_be_posted(alice: Client, submission: Submission, items: list[Trajectory]) -> None:
    forged = {"right": "1", "round": "1", "person": "1", "known": "0"}
    send_to = f"{desk_of(submission, items[0])}?round=1"
    alice.post(send_to, filled(items[0], 0) | forged)

    kept = PracticeAnswer.objects.get()
    assert (kept.right, kept.round, kept.person.username) == (False, 1, "alice")


def test_what_is_typed_by_others_is_shown_as_text(
    alice: Client, submission: Submission, items: list[Trajectory]
) -> None:
    hostile = testing.content(items[0], 1, reasoning="<b>bold</b>")
    workflow.set_known_answer(testing.person("mira"), items[0], hostile)
    page = text(send(alice, submission, items[0], 1))
    assert "&lt;b&gt;bold&lt;/b&gt;" in page


def test_the_practice_desk_saves_no_draft_and_offers_no_way_to(
    alice: Client, submission: Submission, items: list[Trajectory]
) -> None:
    page = text(alice.get(desk_of(submission, items[0])))
    assert 'data-draft=""' in page
    assert "Save the draft" not in page
    assert alice.post(reverse("draft", args=[items[0].pk]), filled(items[0])).status_code == 404
    assert not Draft.objects.exists()


def test_nothing_else_of_a_practice_item_is_open_to_a_newcomer(
    alice: Client, submission: Submission, items: list[Trajectory]
) -> None:
    pk, practice = items[0].pk, items[0].submission_id
    for name in ("trajectory", "adjudication", "submission-trajectory", "known-answer"):
        assert alice.get(reverse(name, args=[pk])).status_code == 404, name
    for name in ("submit", "draft", "release", "flag", "revise", "propose-key-point", "known-answer"):
        assert alice.post(reverse(name, args=[pk]), filled(items[0])).status_code == 404, name
    for name in ("work", "submission", "people", "events", "gold", "practice"):
        assert alice.get(reverse(name, args=[practice])).status_code == 404, name
    assert not Label.objects.exists()


def test_pictures_changes_and_search_of_an_item_are_open_to_newcomers_only(
    alice: Client, people: dict[str, Person], submission: Submission, items: list[Trajectory]
) -> None:
    addresses = [
        reverse("picture", args=[items[0].pk, 0, "thumbnail"]),
        reverse("sheet", args=[items[0].pk, 0]),
        reverse("changes", args=[items[0].pk]),
        reverse("search", args=[items[0].pk]) + "?q=control",
    ]
    assert [alice.get(address).status_code for address in addresses] == [200] * 4
    for name in ("dave", "carol"):
        other = Client()
        other.force_login(people[name])
        assert [other.get(address).status_code for address in addresses] == [404] * 4


def test_practice_is_for_annotators_of_the_submission(
    people: dict[str, Person], submission: Submission, items: list[Trajectory]
) -> None:
    expected = {"dave": 404, "carol": 403, "mira": 403}
    for name, status in expected.items():
        client = Client()
        client.force_login(people[name])
        assert client.get(reverse("practice", args=[submission.pk])).status_code == status
        assert client.get(desk_of(submission, items[0])).status_code == status
        assert client.post(desk_of(submission, items[0]), filled(items[0])).status_code == status
    for address in (reverse("practice", args=[submission.pk]), desk_of(submission, items[0])):
        assert "sign-in" in Client().get(address)["Location"]
        assert "sign-in" in Client().post(address)["Location"]


def test_real_trajectories_are_no_items(alice: Client, submission: Submission, items: list[Trajectory]) -> None:
    real = submission.trajectories.get(position=0)
    assert alice.get(desk_of(submission, real)).status_code == 404
    assert alice.post(desk_of(submission, real), filled(real)).status_code == 404


def test_a_submission_without_a_practice_set_has_no_practice_page(alice: Client, submission: Submission) -> None:
    assert alice.get(reverse("practice", args=[submission.pk])).status_code == 404


def test_a_practice_set_that_is_not_ready_says_so(
    alice: Client, submission: Submission, items: list[Trajectory]
) -> None:
    KnownAnswer.objects.all().delete()
    for name in ("practice", "work"):
        assert "not ready yet" in text(alice.get(reverse(name, args=[submission.pk])))


def test_who_worked_before_is_told_that_practice_is_up_to_them(
    alice: Client, people: dict[str, Person], submission: Submission, tmp_path: Path
) -> None:
    testing.label(people["alice"], submission.trajectories.get(position=0))
    testing.practice_set(people, submission, tmp_path / "practice")

    work = text(alice.get(reverse("work", args=[submission.pk])))
    assert reverse("next-trajectory", args=[submission.pk]) in work
    assert "Pass the practice set first" not in work
    assert "real work is open to you" in text(alice.get(reverse("practice", args=[submission.pk])))


def test_the_annotators_page_of_a_practice_set_offers_no_work(
    client: Client, people: dict[str, Person], items: list[Trajectory]
) -> None:
    nina = testing.person("nina")
    workflow.add_member(people["mira"], items[0].submission, nina, Membership.Role.ANNOTATOR)
    client.force_login(nina)
    page = text(client.get(reverse("work", args=[items[0].submission_id])))
    assert "accepts no labels" in page
    assert "Next trajectory" not in page
    assert reverse("practice", args=[items[0].submission_id]) in page


# --- the maintainer --------------------------------------------------------------------------------------------------


def test_a_maintainer_enters_reads_and_replaces_a_known_answer(mira: Client, submission: Submission) -> None:
    trajectory = submission.trajectories.get(position=0)
    address = reverse("known-answer", args=[trajectory.pk])
    assert address in text(mira.get(reverse("submission-trajectory", args=[trajectory.pk])))
    assert 'id="label-form"' in text(mira.get(address))

    unmet = {name: "unmet" for name in filled(trajectory) if name.startswith("finding") and not name.endswith("step")}
    entered = mira.post(address, filled(trajectory, 1, exception_reason="None was sold.") | unmet, follow=True)
    assert "Known answer saved" in text(entered)
    form = entered.context["form"]
    assert (form.data["reasoning"], form.data["exception_reason"]) == ("The steps show it.", "None was sold.")
    assert form.missing() == []

    mira.post(address, filled(trajectory, 0))
    known = KnownAnswer.objects.get()
    assert (known.verdict, known.failure_type, known.explanation) == (0, "wrong_item", "The steps show it.")
    assert Event.objects.filter(kind="known_answer_set").count() == 2


@pytest.mark.parametrize(
    "wrong",
    [{"verdict": "9"}, {"reasoning": ""}, {"failure_step": "99"}, {"failure_type": ""}, {"finding_99999": "met"}],
)
def test_an_incomplete_or_hostile_known_answer_is_refused(
    mira: Client, submission: Submission, wrong: dict[str, str]
) -> None:
    trajectory = submission.trajectories.get(position=0)
    refused = mira.post(reverse("known-answer", args=[trajectory.pk]), filled(trajectory, 0) | wrong)
    assert refused.status_code == 400
    assert not KnownAnswer.objects.exists()


def test_a_known_answer_after_the_first_label_is_a_conflict_and_the_page_says_why(
    mira: Client, people: dict[str, Person], submission: Submission
) -> None:
    trajectory = submission.trajectories.get(position=0)
    testing.label(people["alice"], trajectory)
    address = reverse("known-answer", args=[trajectory.pk])

    page = text(mira.get(address))
    assert "must be set before the first label" in page
    assert 'id="label-form"' not in page
    assert mira.post(address, filled(trajectory)).status_code == 409
    assert "too late" in text(mira.get(reverse("gold", args=[submission.pk])))


def test_the_viewer_of_a_known_answer_moves_by_itself(mira: Client, submission: Submission) -> None:
    trajectory = submission.trajectories.get(position=0)
    address = reverse("known-answer", args=[trajectory.pk])
    step = text(mira.get(address, {"step": "2"}, headers={"HX-Request": "true"}))
    assert 'data-index="2"' in step
    assert "label-form" not in step


def test_gold_results_are_for_maintainers_by_pseudonym(
    mira: Client, people: dict[str, Person], submission: Submission
) -> None:
    trajectory = submission.trajectories.get(position=0)
    workflow.set_known_answer(people["mira"], trajectory, testing.content(trajectory, 0))
    testing.label(people["alice"], trajectory, 0)
    testing.label(people["bob"], trajectory, 1)
    address = reverse("gold", args=[submission.pk])

    page = text(mira.get(address))
    assert [name for name in ("A1", "A2", "1 of 1", "0 of 1") if name not in page] == []
    assert "alice" not in page
    assert mira.get(address).context["rows"][0][1] == [("A1", True), ("A2", False)]
    for name, status in {"alice": 403, "carol": 403, "dave": 404}.items():
        client = Client()
        client.force_login(people[name])
        for path in (address, reverse("known-answer", args=[trajectory.pk])):
            assert client.get(path).status_code == status
            assert "0 of 1" not in text(client.get(path))


def test_people_page_has_the_practice_of_each_annotator(
    mira: Client, people: dict[str, Person], submission: Submission, items: list[Trajectory]
) -> None:
    for item, verdict in zip(items, (1, 0), strict=True):
        workflow.answer_practice(people["alice"], submission, item, testing.content(item, verdict), 1)
    workflow.answer_practice(people["bob"], submission, items[0], testing.content(items[0], 0), 1)
    page = text(mira.get(reverse("people", args=[submission.pk])))
    shown = " ".join(page[page.index('id="practice"') :].split())

    assert '<b>A1</b> <span class="chip ok">passed</span> 2 of 2 right' in shown
    assert "<b>A2</b> 0 of 2 right, 1 answered" in shown
    assert '<b>A3</b> <span class="dim">not started</span>' in shown


def test_the_page_of_known_answers_lists_what_a_practice_set_has(mira: Client, items: list[Trajectory]) -> None:
    KnownAnswer.objects.filter(trajectory=items[1]).delete()
    page = text(mira.get(reverse("gold", args=[items[0].submission_id])))
    assert "1 of 2" in page
    assert "Results" not in page
    assert page.count(">none<") == 1
