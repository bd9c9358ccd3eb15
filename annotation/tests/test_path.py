"""The path of a submission: which stage is open and which button it has, in each state; and the six tabs."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from django.test import Client
from django.urls import reverse

from annotation import progress, stages, training, workflow
from annotation.models import Membership, Person, Report, Submission
from annotation.stages import Stage
from annotation.tests import testing

VERDICTS = ("Success", "Failure", "success", "failure", "Not executable", "not executable", "The steps show it.")


@pytest.fixture
def mira(client: Client, people: dict[str, Person]) -> Client:
    client.force_login(people["mira"])
    return client


def open_path(mira: Client, submission: Submission) -> str:
    return mira.get(reverse("submission", args=[submission.pk])).content.decode()


def current(page: str) -> tuple[str, list[str]]:
    """Return the stage that is open, and every primary button of the page."""
    [stage] = re.findall(r'aria-current="step">.*?<h2>([\w ]+?) <span class="sr">\(current\)<', page, re.DOTALL)
    buttons = re.findall(r'<(?:a|button)[^>]*class="(?:button )?primary"[^>]*>([^<]*)<', page)
    assert page.count("primary") == len(buttons), "a primary button was not read"
    return stage, buttons


def states(page: str) -> list[str]:
    return re.findall(r'<li class="stage (\w+)"', page)


# --- a submission in each state ---------------------------------------------------------------------------------------


def label_with_a_dispute(people: dict[str, Person], submission: Submission) -> None:
    testing.label_all(people, submission, {"task_0000": [1, 1, 0]})


def decide_disputes(people: dict[str, Person], submission: Submission) -> None:
    label_with_a_dispute(people, submission)
    testing.adjudicate_all(people["carol"], submission)


def draw(people: dict[str, Person], submission: Submission) -> None:
    decide_disputes(people, submission)
    workflow.draw_spot_checks(people["mira"], submission)


def finish(people: dict[str, Person], submission: Submission) -> None:
    draw(people, submission)
    testing.adjudicate_all(people["carol"], submission)


def open_again(people: dict[str, Person], submission: Submission) -> None:
    finish(people, submission)
    workflow.open_adjudication(people["carol"], submission.trajectories.get(position=0), "A second look.")


def freeze(people: dict[str, Person], submission: Submission) -> None:
    finish(people, submission)
    workflow.freeze(people["mira"], submission)


def undo_the_freeze(people: dict[str, Person], submission: Submission) -> None:
    freeze(people, submission)
    workflow.reopen_submission(people["mira"], submission, "A mistake.")


def reopen_one(people: dict[str, Person], submission: Submission) -> None:
    undo_the_freeze(people, submission)
    workflow.reopen(people["mira"], submission.trajectories.get(position=0), "Look again.")


def start(people: dict[str, Person], submission: Submission) -> None:
    first = workflow.claim(people["alice"], submission)
    assert first is not None
    workflow.submit(people["alice"], first.trajectory, testing.content(first.trajectory))


def deactivate_carol(people: dict[str, Person], submission: Submission) -> None:
    label_with_a_dispute(people, submission)
    workflow.deactivate_member(people["mira"], submission, people["carol"])


def deactivate_chen(people: dict[str, Person], submission: Submission) -> None:
    workflow.deactivate_member(people["mira"], submission, people["chen"])


Prepare = Callable[[dict[str, Person], Submission], None]


@pytest.mark.parametrize(
    ("prepare", "stage", "button", "words"),
    [
        (start, "Labels", "See open tasks", "1 of 6 labels"),
        (deactivate_chen, "People", "Add people", "Add 1 annotator"),
        (deactivate_carol, "People", "Add people", "Add an adjudicator"),
        (label_with_a_dispute, "Disputes", "Remind the adjudicator", "1 trajectory waits for an adjudicator"),
        (decide_disputes, "Spot checks", "Draw spot checks", "1 agreed trajectory waits for the draw"),
        (draw, "Spot checks", "Remind the adjudicator", "1 spot check waits for an adjudicator"),
        (open_again, "Disputes", "Remind the adjudicator", "1 decision is opened again"),
        (finish, "Freeze", "Freeze submission", "Ready to freeze"),
        (freeze, "Send", "Create the files for sending", "Undo the freeze"),
        (undo_the_freeze, "Freeze", "Freeze submission", "The freeze was undone on"),
        (reopen_one, "Disputes", "Remind the adjudicator", "1 trajectory waits for an adjudicator"),
    ],
)
def test_one_stage_is_open_and_has_the_only_primary_button(
    mira: Client,
    people: dict[str, Person],
    submission: Submission,
    prepare: Prepare,
    stage: str,
    button: str,
    words: str,
) -> None:
    prepare(people, submission)
    page = open_path(mira, submission)

    assert current(page) == (stage, [button])
    assert words in page
    assert len(states(page)) == 7
    assert states(page).count("current") == 1
    assert f"stage {[str(each) for each in Stage].index(stage) + 1} of 7" in page
    if prepare is not freeze:
        assert [word for word in VERDICTS if word in page] == []


def test_submission_with_nobody_on_it_asks_for_people(mira: Client, people: dict[str, Person], tmp_path: Path) -> None:
    made = testing.submission(tmp_path / "new", 1, agent="New Agent")
    workflow.join_as_maintainer(made, people["mira"])
    page = open_path(mira, made)

    assert current(page) == ("People", ["Add people"])
    assert "Add 3 annotators and an adjudicator" in page
    assert "0 annotators (3 needed), no adjudicator" in page
    assert states(page) == ["current", "done", *["later"] * 5]


def test_empty_submission_asks_for_an_upload(mira: Client, people: dict[str, Person]) -> None:
    made = testing.bare_submission(0)
    workflow.join_as_maintainer(made, people["mira"])
    page = open_path(mira, made)

    assert current(page) == ("Labels", ["Upload a submission"])
    assert "No trajectories" in page
    assert "You cannot freeze yet: there are no trajectories." in page


def test_nobody_at_work_asks_to_remind_the_annotators(mira: Client, submission: Submission) -> None:
    assert current(open_path(mira, submission)) == ("Labels", ["Remind annotators"])


def test_practice_is_open_until_enough_annotators_are_admitted(
    mira: Client, people: dict[str, Person], submission: Submission, tmp_path: Path
) -> None:
    testing.practice_set(people, submission, tmp_path / "practice", answers=(1, 0))
    items = training.load_items(submission.practice_set_id)
    for name in ("alice", "bob"):
        for item, verdict in zip(items, (1, 0), strict=True):
            workflow.answer_practice(people[name], submission, item, testing.content(item, verdict), 1)
    page = open_path(mira, submission)
    assert current(page) == ("Practice", ["Remind annotators"])
    assert "2 of 3 annotators are ready to label" in page
    assert page.count(">passed<") == 2
    assert "not started" in page
    shown = mira.get(reverse("people", args=[submission.pk])).content.decode()
    assert shown.count(">passed<") == 2

    workflow.answer_practice(people["chen"], submission, items[0], testing.content(items[0], 1), 1)
    assert "1 of 2 right, 1 answered" in open_path(mira, submission)
    workflow.answer_practice(people["chen"], submission, items[1], testing.content(items[1], 0), 1)
    assert current(open_path(mira, submission))[0] == "Labels"


def test_trajectory_that_too_many_declined_leads_to_the_page_that_offers_it_again(
    mira: Client, people: dict[str, Person], submission: Submission
) -> None:
    held = workflow.claim(people["alice"], submission)
    assert held is not None
    workflow.release(people["alice"], held.trajectory, "I know this shop.")
    page = open_path(mira, submission)

    assert "1 trajectory cannot get all labels, because annotators declined it" in page
    assert f'href="{reverse("submission-trajectory", args=[held.trajectory.pk])}">offer it again' in page
    workflow.add_member(people["mira"], submission, testing.person("erin"), Membership.Role.ANNOTATOR)
    assert "cannot get all labels" not in open_path(mira, submission)


def test_what_waits_longest_is_listed_without_its_kind_or_a_name(
    mira: Client, people: dict[str, Person], submission: Submission
) -> None:
    label_with_a_dispute(people, submission)
    page = open_path(mira, submission)
    assert "nobody yet" in page
    workflow.open_adjudication(people["carol"], submission.trajectories.get(position=0))
    page = open_path(mira, submission)
    assert "<td>Q1</td>" in page
    assert [name for name in ("carol", "alice", "against", "opposed") if name in page] == []


# --- buttons that cannot work yet -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("button", "address", "refused", "reason"),
    [
        ("Freeze submission", "freeze", "freeze-refused", "labels are missing"),
        ("Draw spot checks", "submission-draw", "draw-refused", "no unanimous trajectories to draw from"),
    ],
)
def test_button_that_cannot_work_is_disabled_beside_its_reason_and_the_server_refuses(
    mira: Client, submission: Submission, button: str, address: str, refused: str, reason: str
) -> None:
    page = open_path(mira, submission)

    assert f'<button type="button" aria-disabled="true" aria-describedby="{refused}">{button}</button>' in page
    described = page[page.index(f'id="{refused}"') :]
    assert reason in described[: described.index('<div class="act">')]
    assert reverse(address, args=[submission.pk]) not in page
    assert mira.post(reverse(address, args=[submission.pk])).status_code == 409


def test_draw_is_offered_as_soon_as_it_can_work(
    mira: Client, people: dict[str, Person], submission: Submission
) -> None:
    first = submission.trajectories.get(position=0)
    for name in ("alice", "bob", "chen"):
        testing.label(people[name], first)
    page = open_path(mira, submission)

    assert current(page)[0] == "Labels"
    assert "draw-refused" not in page
    assert reverse("submission-draw", args=[submission.pk]) in page


@pytest.mark.parametrize(
    ("rate", "words"),
    [(0.0, "the draw selects none"), (0.07, "7% of them are drawn"), (0.125, "12.5% of them are drawn")],
)
def test_draw_states_the_rate_of_the_settings(
    mira: Client, people: dict[str, Person], submission: Submission, rate: float, words: str
) -> None:
    workflow.configure(people["mira"], submission, spot_check_rate=rate)
    testing.label_all(people, submission, {})

    assert words in open_path(mira, submission)


# --- tabs -------------------------------------------------------------------------------------------------------------

PAGES = {
    "Path": ["submission"],
    "Tasks": ["submission-tasks", "reports"],
    "People": ["people", "quality"],
    "Results": ["agreement", "comparison", "printable-report", "export", "evidence"],
    "Judges": ["judge-runs"],
    "Settings": ["submission-settings", "gold", "redactions", "events"],
}


def read_navs(page: str) -> list[list[tuple[str, str, str]]]:
    """Return address, current mark and text of the links in the tabs, and in the second row if there is one."""
    navs = re.findall(r'<nav class="(?:sub)?tabs".*?</nav>', page, re.DOTALL)
    link = r'<a\s+href="([^"]*)"(?:\s+aria-current="(\w+)")?>([^<]*)'
    return [re.findall(link, nav) for nav in navs]


@pytest.mark.parametrize(("tab", "name"), [(tab, name) for tab, names in PAGES.items() for name in names])
def test_every_page_is_under_one_of_six_tabs(mira: Client, submission: Submission, tab: str, name: str) -> None:
    address = reverse(name, args=[submission.pk])
    tabs, *second = read_navs(mira.get(address).content.decode())

    assert [text.strip() for _, _, text in tabs] == list(PAGES)
    assert [text.strip() for _, mark, text in tabs if mark] == [tab]
    links = [href for href, _, _ in tabs] + [href for row in second for href, _, _ in row]
    assert {reverse(each, args=[submission.pk]) for each in PAGES[tab]} <= set(links)
    assert {href for row in (tabs, *second) for href, mark, _ in row if mark == "page"} == {address}


def test_tabs_of_a_practice_set_name_only_what_it_has(
    mira: Client, people: dict[str, Person], submission: Submission, tmp_path: Path
) -> None:
    made = testing.practice_set(people, submission, tmp_path / "practice", answers=(1, 0))
    page = open_path(mira, made)
    [tabs] = read_navs(page)

    assert [text.strip() for _, _, text in tabs] == ["Path", "Tasks", "People", "Judges", "Settings"]
    assert "2 of 2 trajectories have a known answer" in page
    assert "View known answers" in page
    _, second = read_navs(mira.get(reverse("gold", args=[made.pk])).content.decode())
    assert [text for _, _, text in second] == ["Settings", "Known answers", "Webhooks", "Events"]


@pytest.mark.parametrize("query", ["state=dispute", "slot=open&who=A1", "q=shop", "page=2"])
def test_filters_of_the_earlier_address_lead_to_the_tasks(mira: Client, submission: Submission, query: str) -> None:
    response = mira.get(reverse("submission", args=[submission.pk]) + f"?{query}")

    assert response["Location"] == reverse("submission-tasks", args=[submission.pk]) + f"?{query}"


@pytest.mark.parametrize(("who", "code"), [("mira", 200), ("alice", 403), ("carol", 403), ("dave", 404)])
@pytest.mark.parametrize("name", ["submission", "submission-tasks"])
def test_path_and_tasks_are_for_the_maintainer(
    client: Client, people: dict[str, Person], submission: Submission, name: str, who: str, code: int
) -> None:
    client.force_login(people[who])
    assert client.get(reverse(name, args=[submission.pk])).status_code == code


def test_open_reports_are_named_on_the_path(mira: Client, people: dict[str, Person], submission: Submission) -> None:
    held = workflow.claim(people["bob"], submission)
    assert held is not None
    workflow.report(people["bob"], held.trajectory, Report.Kind.TASK_OUTDATED, "The shop has closed.")
    page = open_path(mira, submission)

    assert f'<a href="{reverse("reports", args=[submission.pk])}">1 report or question</a> from annotators' in page


# --- figures ----------------------------------------------------------------------------------------------------------


def test_segments_of_the_bar_touch_and_fill_it(people: dict[str, Person], submission: Submission) -> None:
    label_with_a_dispute(people, submission)
    members = list(Membership.objects.filter(submission=submission))
    segments = stages.load_path(submission, 2, progress.count_states(submission), members).bar

    assert [left for _, _, left, _ in segments] == [0, 500]
    assert sum(width for _, _, _, width in segments) == stages.BAR
