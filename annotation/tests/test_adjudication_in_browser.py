"""The adjudicator's desk in a real browser: folding, taking parts of labels, quoting, reporting, going on by keys."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.urls import reverse
from playwright.sync_api import Page, expect

from annotation import workflow
from annotation.models import Adjudication, Draft, Report, Submission, Trajectory
from annotation.records import Finding, FindingContent
from annotation.tests import testing
from annotation.tests.in_browser import complaints_of, reasoning, sign_in

pytestmark = pytest.mark.browser

LONG = "The filter was never applied, as the list at step 1 shows. " * 12


@pytest.fixture
def submission(transactional_db: Any, tmp_path: Path) -> Submission:
    """A dispute (alice: failure with everything that a failure can have) and a flagged one; carol has opened none."""
    made = testing.submission(tmp_path / "package", trajectories=2, steps=4)
    people = testing.cast(made)
    dispute, flagged = made.trajectories.order_by("position")
    said = {"further_failure_types": ("loop",), "evidence_missing": (2,), "reasoning": LONG}
    testing.label(people["alice"], dispute, 0, **said)
    testing.label(people["bob"], dispute, 1, reasoning="Bob has seen it.")
    testing.label(people["chen"], dispute, 1)
    for name in ("alice", "bob", "chen"):
        testing.label(people[name], flagged)
    workflow.flag(people["alice"], flagged, "look")
    return made


@pytest.fixture
def dispute(submission: Submission) -> Trajectory:
    return submission.trajectories.order_by("position")[0]


@pytest.fixture
def queue_page(page: Page, live_server: Any, submission: Submission) -> Iterator[Page]:
    """Carol's queue; any complaint of the browser fails the test."""
    complaints = complaints_of(page)
    open_queue(page, live_server.url, submission)
    yield page
    page.goto("about:blank")
    assert [text for text in complaints if not re.search("status of 4(00|09)", text)] == []


def open_queue(page: Page, url: str, submission: Submission) -> None:
    sign_in(page, url, "carol")
    page.goto(url + reverse("adjudicate", args=[submission.pk]))


@pytest.fixture
def desk(queue_page: Page) -> Page:
    """The desk with the dispute, opened by the queue's button."""
    queue_page.get_by_role("button", name="Open hardest trajectory").click()
    expect(queue_page.locator("html")).to_have_class(re.compile("scripted"))
    return queue_page


def barriers(page: Page) -> list[tuple[str, str]]:
    """What axe finds, with the first place of each."""
    return [(found["id"], found["nodes"][0]["html"][:200]) for found in Axe().run(page).response["violations"]]


@pytest.mark.parametrize("size", [(2000, 1000), (2000, 1200), (2560, 1440)])
def test_a_wide_screen_has_room_for_screenshot_labels_and_form(desk: Page, size: tuple[int, int]) -> None:
    desk.set_viewport_size({"width": size[0], "height": size[1]})
    desk.reload()
    transcript = desk.locator(".transcript")
    expect(transcript).to_be_visible()
    for left in (560, 0):
        expect(desk.locator(".neighbours")).to_be_hidden()
        boxes = {part: desk.locator(part).bounding_box() for part in (".shot", ".beneath", ".side", "#strip")}
        assert all(boxes.values())
        shot, beneath, side, _ = (box for box in boxes.values() if box)
        assert (round(beneath["x"]), round(beneath["x"] + beneath["width"])) == (left, round(side["x"]))
        assert shot["height"] > 300
        assert shot["y"] + shot["height"] <= beneath["y"]
        assert (round(side["width"]), round(side["x"] + side["width"])) == (600, size[0])
        for part in (".shot", ".beneath", "#strip", "#label-form [data-submit]"):
            expect(desk.locator(part)).to_be_in_viewport(ratio=1)
        if left:
            desk.keyboard.press("t")
            expect(transcript).to_be_hidden()


def saved(desk: Page) -> None:
    expect(desk.locator("#saved")).to_have_text(re.compile(r"saved \d\d"))


def test_everything_of_a_label_is_taken_saved_and_undone(desk: Page, dispute: Trajectory) -> None:
    desk.get_by_role("button", name="Copy all of A1").click()

    expect(desk.locator("[name=verdict]:checked")).to_have_value("0")
    expect(desk.locator("[name=failure_step]")).to_have_value("1")
    expect(desk.locator("[name=failure_type]")).to_have_value("range_not_exact")
    expect(desk.locator("[name^=finding_][value=unmet]:checked")).to_have_count(2)
    expect(desk.locator("[name=reasoning]")).to_have_value("")
    saved(desk)
    kept = Draft.objects.get(trajectory=dispute).content
    assert (kept["verdict"], kept["failure_type"], kept["failure_step"]) == ("0", "range_not_exact", "1")

    desk.locator("#taken").get_by_role("button", name="Undo").click()
    expect(desk.locator("[name=verdict]:checked")).to_have_count(0)
    expect(desk.locator("[name=failure_type]")).to_have_value("")
    expect(desk.locator("[name^=finding_]:checked")).to_have_count(0)


def test_one_cell_is_taken_and_nothing_else(desk: Page) -> None:
    desk.get_by_role("button", name="Copy 2. cheapest by sorting of A2").click()

    expect(desk.locator("[name^=finding_]:checked")).to_have_count(1)
    expect(desk.locator("[data-point='2'] [value=met]")).to_be_checked()
    expect(desk.locator("[data-point='2'] [name$=_step]")).to_have_value("0")
    expect(desk.locator("[name=verdict]:checked")).to_have_count(0)


def test_taking_a_verdict_says_what_it_changes(desk: Page) -> None:
    expect(desk.locator(".effects")).to_contain_text("Choose a verdict")
    desk.get_by_role("button", name="Copy the verdict of A2").click()

    expect(desk.get_by_text("Success: agrees with A2 and A3, overturns A1.")).to_be_visible()
    expect(desk.get_by_text("Failure: agrees with A1")).to_be_hidden()


def test_what_the_labels_agree_on_is_folded_and_already_in_the_form(
    page: Page, live_server: Any, transactional_db: Any, tmp_path: Path
) -> None:
    submission = testing.submission(tmp_path / "package", trajectories=1, steps=4)
    people, trajectory = testing.cast(submission), submission.trajectories.get()
    first, second = workflow.key_points_of(trajectory)
    for name, finding in (("alice", Finding.UNMET), ("bob", Finding.MET), ("chen", Finding.MET)):
        findings = (FindingContent(first.pk, Finding.MET, 2), FindingContent(second.pk, finding, 0))
        testing.label(people[name], trajectory, int(finding is Finding.MET), findings=findings)
    open_queue(page, live_server.url, submission)
    page.get_by_role("button", name="Open hardest trajectory").click()

    expect(page.locator(".agreed > summary")).to_contain_text(
        "1 agreed already in your form: 1. at least 16 GB met · step 2"
    )
    expect(page.locator("[data-point='1'] [value=met]")).to_be_checked()
    expect(page.locator("[data-point='1'] [name$=_step]")).to_have_value("2")
    expect(page.locator("[data-point='2'] :checked")).to_have_count(0)
    expect(page.locator(".point.current")).to_have_attribute("data-point", "2")
    titles = page.locator(".dispute").first.locator("tbody th").all_inner_texts()
    assert titles == ["Failed at", "Failure type", "2. cheapest by sorting", "Reasoning"]
    assert not Draft.objects.exists(), "nothing is saved before it is changed"


def test_a_dispute_takes_six_keys_beside_the_reasoning(desk: Page, dispute: Trajectory) -> None:
    desk.keyboard.press("Shift+T")
    desk.keyboard.press("Shift+T")  # the second label
    desk.keyboard.press("Shift+S")
    expect(desk.locator("[name=criterion]")).to_be_focused()
    desk.keyboard.press("A")  # the first that begins with it
    desk.keyboard.press("Enter")
    expect(desk.locator("[name=reasoning]")).to_be_focused()
    desk.keyboard.type("Step 0 shows both.")
    desk.keyboard.press("Control+Enter")
    expect(desk.locator(".head")).to_contain_text("flagged · blind")

    decided = Adjudication.objects.get(trajectory=dispute)
    assert (decided.verdict, decided.reasoning) == (1, "Step 0 shows both.")
    assert decided.criterion


def test_quoting_adds_to_what_is_written(desk: Page) -> None:
    desk.locator("[name=reasoning]").fill("My own words.")
    desk.get_by_role("button", name="Quote the reasoning of A1").click()
    desk.get_by_role("button", name="Quote the reasoning of A2").click()

    words = f"My own words.\n\nA1: {LONG.strip()}\n\nA2: Bob has seen it."
    expect(desk.locator("[name=reasoning]")).to_have_value(words)


def test_a_long_reasoning_is_shown_when_asked_for(desk: Page) -> None:
    whole = desk.locator("#reasoning-A1")
    expect(whole).to_be_hidden()
    desk.get_by_text("show more").click()

    expect(whole).to_be_visible()


def test_the_labels_are_folded_by_a_key_and_stay_folded(desk: Page) -> None:
    desk.keyboard.press("l")
    expect(desk.locator(".comparison")).to_be_hidden()
    expect(desk.locator("#labels > summary")).to_contain_text("A1 Failure")
    desk.wait_for_function("document.cookie.includes('labels=folded')")
    desk.reload()
    expect(desk.locator("html")).to_have_class(re.compile("scripted"))
    expect(desk.locator(".comparison")).to_be_hidden()
    desk.locator("[name=reasoning]").press("l")

    expect(desk.locator("[name=reasoning]")).to_have_value("l")
    expect(desk.locator(".comparison")).to_be_hidden()


def test_a_cited_step_is_shown_in_the_viewer(desk: Page) -> None:
    desk.locator(".comparison [data-step='2']").click()

    expect(desk.locator("#stage")).to_have_attribute("data-index", "2")


def test_a_report_is_sent_without_leaving_what_is_typed(desk: Page) -> None:
    desk.locator("[name=reasoning]").fill("half a thought")
    desk.locator("summary", has_text="Guideline unclear").click()
    desk.get_by_label("What is unclear, and how can it be read?").fill("Is 15.6 GB 16 GB?")
    desk.get_by_label("What is unclear, and how can it be read?").press("Enter")

    expect(desk.get_by_text(re.compile("^Sent to the maintainer"))).to_be_visible()
    expect(desk.locator("[name=reasoning]")).to_have_value("half a thought")
    assert Report.objects.get().note == "Is 15.6 GB 16 GB?"


def test_a_dispute_is_put_off_with_what_was_just_typed(desk: Page, dispute: Trajectory) -> None:
    reasoning(desk).fill("I look at it tomorrow.")
    desk.keyboard.press("Escape")
    desk.keyboard.press("Shift+L")
    expect(desk.get_by_role("heading", name="Trajectories that you put off")).to_be_visible()
    assert Draft.objects.get(trajectory=dispute).content["reasoning"] == "I look at it tomorrow."
    desk.get_by_role("button", name="Resume").click()
    expect(reasoning(desk)).to_have_value("I look at it tomorrow.")


def test_decide_and_next_and_the_agreement_by_keys_alone(desk: Page, dispute: Trajectory) -> None:
    desk.get_by_role("button", name="Copy all of A2").click()
    desk.locator("[name=criterion]").select_option("key_point")
    desk.locator("[name=reasoning]").fill("Step 0 shows both.")
    desk.keyboard.press("Control+Enter")
    expect(desk.locator(".head")).to_contain_text("flagged · blind")
    expect(desk.locator("html")).to_have_class(re.compile("scripted"))
    assert Adjudication.objects.get(trajectory=dispute).verdict == 1
    assert desk.locator("[data-fields], [data-quotes], #labels").count() == 0
    for point in desk.locator(".point").all():
        point.locator("[value=met]").check(force=True)
        point.locator("[name$=_step]").fill("0")
    desk.get_by_role("radio", name="Success").check(force=True)
    desk.locator("[name=criterion]").select_option("key_point")
    desk.locator("[name=reasoning]").fill("All of it can be seen.")
    desk.keyboard.press("Control+Enter")

    expect(desk.get_by_text("You agree with all three labels.")).to_be_visible()
    expect(desk.locator("html")).to_have_class(re.compile("scripted"))
    desk.keyboard.press("Control+Enter")
    expect(desk.get_by_text("Your queue is empty.")).to_be_visible()


@pytest.mark.parametrize("size", [(1440, 900), (1280, 720)])
def test_labels_and_form_are_in_view_together(desk: Page, size: tuple[int, int]) -> None:
    desk.set_viewport_size({"width": size[0], "height": size[1]})
    desk.get_by_role("button", name="Copy all of A1").click()

    assert desk.evaluate("document.documentElement.scrollHeight <= innerHeight")
    for place in ("#labels", "#label-form .fields", "[data-submit]", ".effect.e0", "#stage .shot"):
        box = desk.locator(place).bounding_box()
        assert box, place
        assert box["y"] >= 0, place
        assert box["y"] + box["height"] <= size[1], place
    assert desk.locator("#label-form .fields").bounding_box()["height"] >= 90  # type: ignore[index]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_queue_and_desk_have_no_barrier(queue_page: Page, scheme: Any) -> None:
    queue_page.emulate_media(color_scheme=scheme)
    assert barriers(queue_page) == []
    queue_page.get_by_role("button", name="Open hardest trajectory").click()
    expect(queue_page.locator("html")).to_have_class(re.compile("scripted"))
    queue_page.get_by_role("button", name="Copy all of A1").click()

    assert barriers(queue_page) == []


def test_without_script_nothing_is_offered_that_would_not_work(
    browser: Any, browser_context_args: dict[str, Any], live_server: Any, submission: Submission
) -> None:
    context = browser.new_context(**browser_context_args, java_script_enabled=False)
    page = context.new_page()
    open_queue(page, live_server.url, submission)
    page.get_by_role("button", name="Open hardest trajectory").click()

    expect(page.locator(".comparison")).to_be_visible()
    expect(page.locator("[data-fields]:visible, [data-quotes]:visible, #taken:visible")).to_have_count(0)
    page.locator("summary", has_text="Task outdated").click()
    page.get_by_label("What does the task ask for that no longer exists?").fill("The shop is closed.")
    page.get_by_role("button", name="Tell the maintainer").click()
    expect(page.get_by_text("Report sent to the maintainer.")).to_be_visible()
    assert Report.objects.get().kind == "task_outdated"
    context.close()
