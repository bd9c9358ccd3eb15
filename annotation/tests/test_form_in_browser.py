"""The label form in a real browser: one key binds the step, what is missing is led to, and everything stays in view."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.urls import reverse
from django.utils import timezone
from playwright.sync_api import Locator, Page, Route, expect

from annotation import workflow
from annotation.models import KeyPoint, Label, Person, Phrase, Report, Trajectory
from annotation.tests import testing
from annotation.tests.in_browser import complaints_of, hold, open_desk, sign_in

pytestmark = pytest.mark.browser
LONG = "A double room at Harbour House in Veldmar for two guests, with breakfast, on the garden side of the building"


@pytest.fixture
def held(transactional_db: Any, tmp_path: Path) -> Trajectory:
    """A trajectory of 20 steps with four key points that alice is working on, in a submission of two."""
    submission = testing.submission(tmp_path / "package", trajectories=2, steps=20)
    for position, text in ((3, LONG), (4, "added to the cart")):
        for task in submission.benchmark.tasks.all():
            KeyPoint.objects.create(task=task, position=position, text=text, accepted_at=timezone.now())
    return workflow.claim(testing.cast(submission)["alice"], submission).trajectory


@pytest.fixture
def alice(held: Trajectory) -> Person:
    return Person.objects.get(username="alice")


@pytest.fixture
def desk(page: Page, live_server: Any, held: Trajectory) -> Page:
    """Alice's desk, open; any complaint of the browser fails the test."""
    complaints = complaints_of(page)
    sign_in(page, live_server.url, "alice")
    open_desk(page, live_server.url, held)
    yield page
    page.goto("about:blank")
    assert [text for text in complaints if not re.search("status of 4(00|09)", text)] == []


def pressed(page: Page, *keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)


def at_step(page: Page, index: int) -> None:
    expect(page.locator("#stage")).to_have_attribute("data-index", str(index))


def point(page: Page, number: int) -> Locator:
    return page.locator(f'.point[data-point="{number}"]')


def said(page: Page, number: int) -> tuple[str | None, str]:
    """The finding of a key point and its step, as the form has them."""
    checked = point(page, number).locator(":checked")
    return (checked.get_attribute("value") if checked.count() else None), point(page, number).locator(
        ".at input"
    ).input_value()


def focused(page: Page) -> str:
    return page.evaluate("document.activeElement.id || document.activeElement.className")


# --- one key binds ---------------------------------------------------------------------------------------------------


def test_a_digit_judges_an_open_key_point_at_this_step_and_never_changes_a_finding(desk: Page) -> None:
    pressed(desk, "j", "j")
    at_step(desk, 2)
    pressed(desk, "2")
    assert said(desk, 2) == ("met", "2")
    expect(desk.locator("#announce")).to_have_text("Key point 2 met at step 2")
    pressed(desk, "j")
    at_step(desk, 3)
    pressed(desk, "2", "Shift+Digit2")
    assert said(desk, 2) == ("met", "2")
    expect(desk.locator("#announce")).to_have_text("Key point 2 is met. Press h, Shift H or q to change it.")
    pressed(desk, "Shift+Digit1")
    assert said(desk, 1) == ("unmet", "3")
    assert said(desk, 3) == (None, "")
    assert focused(desk) == "main" or desk.evaluate("document.activeElement === document.body")


def test_the_current_key_point_is_judged_by_letters(desk: Page) -> None:
    pressed(desk, "2", "j")
    at_step(desk, 1)
    for key, finding in (("Shift+H", "unmet"), ("q", "unclear"), ("h", "met")):
        pressed(desk, key)
        assert said(desk, 2) == (finding, "1")


def test_the_next_open_and_the_previous_key_point_become_current(desk: Page) -> None:
    expect(desk.locator(".point.current")).to_have_attribute("data-point", "1")
    for key, number in (("1", "1"), (".", "2"), (".", "3"), (".", "4"), (".", "2"), (",", "1"), (",", "1")):
        pressed(desk, key)
        expect(desk.locator(".point.current")).to_have_attribute("data-point", number)
    assert said(desk, 2) == (None, "")


def test_a_task_that_is_not_executable_needs_no_findings_and_keeps_those_that_were_made(
    desk: Page, held: Trajectory
) -> None:
    pressed(desk, "1", "n")
    expect(desk.locator(".points")).to_be_hidden()
    pressed(desk, "2", "Shift+N")
    assert focused(desk) == "f-cause"
    desk.locator("#f-cause").select_option("blocked")
    desk.get_by_label("Reasoning").fill("The site asks for a CAPTCHA.")
    pressed(desk, "Control+Enter")
    desk.wait_for_url(lambda url: f"/trajectories/{held.pk}" not in url)

    assert [(f.finding, f.step) for f in Label.objects.get().findings.all()] == [("met", 0)]


def test_a_digit_without_a_key_point_says_so_and_writes_nothing(desk: Page) -> None:
    pressed(desk, "9")

    expect(desk.locator("#announce")).to_have_text("Key point 9 does not exist")
    expect(desk.locator("#saved")).to_have_text("no changes yet")


def test_the_arrows_choose_among_the_findings_and_walk_through_the_steps(desk: Page) -> None:
    point(desk, 2).locator("[value=met]").focus()
    expect(desk.locator(".point.current")).to_have_attribute("data-point", "2")
    pressed(desk, "ArrowRight", "ArrowRight")
    at_step(desk, 2)
    assert said(desk, 2) == (None, ""), "walking must not write"
    pressed(desk, "ArrowDown")
    assert said(desk, 2) == ("unmet", "2")
    pressed(desk, "ArrowRight")
    at_step(desk, 3)
    pressed(desk, "h")
    assert said(desk, 2) == ("met", "3")


def test_a_click_binds_the_step_once_and_the_keys_go_on(desk: Page) -> None:
    pressed(desk, "j")
    at_step(desk, 1)
    point(desk, 1).locator(".seg.unmet").click()
    assert said(desk, 1) == ("unmet", "1")
    pressed(desk, "ArrowRight")
    at_step(desk, 2)
    assert said(desk, 1) == ("unmet", "1")
    point(desk, 1).locator(".seg.met").click()
    assert said(desk, 1) == ("met", "1")
    point(desk, 1).get_by_role("button", name="this step").click()
    assert said(desk, 1) == ("met", "2")


def test_a_verdict_is_chosen_by_its_letter_without_moving_the_focus(desk: Page) -> None:
    for key, value in (("f", "0"), ("n", "2"), ("s", "1")):
        pressed(desk, key)
        expect(desk.locator("[name=verdict]:checked")).to_have_value(value)
    pressed(desk, "ArrowRight", "ArrowDown")
    at_step(desk, 1)
    expect(desk.locator("[name=verdict]:checked")).to_have_value("1")


def test_shift_and_a_verdict_lead_to_what_is_missing_first(desk: Page) -> None:
    pressed(desk, "1", "2", "3", "Shift+F")
    expect(point(desk, 4).locator("[value=met]")).to_be_focused()
    pressed(desk, "4", "Shift+F")
    assert focused(desk) == "f-failure_step"
    pressed(desk, "Escape", "x", "Shift+F")
    assert focused(desk) == "f-failure_type"
    pressed(desk, "Escape", "Shift+S")
    assert focused(desk) == "f-reasoning"
    desk.keyboard.type("It is so.")
    pressed(desk, "Escape", "Shift+S")
    expect(desk.locator("[data-submit]")).to_be_focused()


def test_missing_evidence_is_marked_by_a_key_in_the_form_and_in_the_strip(desk: Page) -> None:
    field, thumb = desk.get_by_label("No evidence at steps"), desk.locator('#strip [data-step="1"]')
    pressed(desk, "m", "j")
    at_step(desk, 1)
    pressed(desk, "m", "1")
    expect(field).to_have_value("0, 1")
    expect(thumb).to_contain_text("① no evidence")
    pressed(desk, "m")
    expect(field).to_have_value("0")
    expect(thumb).not_to_contain_text("no evidence")
    expect(thumb).to_contain_text("①")


# --- keys and fields -------------------------------------------------------------------------------------------------


def test_no_key_works_in_a_field_and_escape_gives_the_desk_back(desk: Page) -> None:
    pressed(desk, "f", "r")
    desk.keyboard.type("jxm1?gsn")
    pressed(desk, "Home", "ArrowRight")
    expect(desk.get_by_label("Reasoning")).to_have_value("jxm1?gsn")
    at_step(desk, 0)
    desk.locator("#f-failure_type").focus()
    pressed(desk, "s", "m")
    pressed(desk, "Escape")
    assert focused(desk) == "main"
    expect(desk.locator("[name=verdict]:checked")).to_have_value("0")
    expect(desk.locator("#f-evidence_missing")).to_have_value("")
    pressed(desk, "j")
    at_step(desk, 1)


def test_enter_in_a_line_of_the_form_does_not_submit(desk: Page) -> None:
    desk.locator("#f-evidence_missing").fill("3")
    pressed(desk, "Enter")
    point(desk, 1).locator("[value=met]").focus()
    pressed(desk, "Enter")

    expect(desk.get_by_role("alert")).to_have_count(0)
    expect(desk.locator("#f-evidence_missing")).to_have_value("3")


SIGNS = {"→": "ArrowRight", "←": "ArrowLeft", "Space": " ", "Esc": "Escape"}
ELSEWHERE = {"Ctrl Enter"}  # works in fields, too, and so is not in the map


def test_the_key_sheet_lists_the_keys_that_work_and_no_others(
    page: Page, live_server: Any, held: Trajectory, alice: Person
) -> None:
    sign_in(page, live_server.url, "alice")
    open_desk(page, live_server.url, held)
    pressed(page, "?")
    rows = page.locator(".keys tr").evaluate_all(
        "rows => rows.map(row => [...row.querySelectorAll('kbd:not(.other)')].map(key => key.textContent.trim()))"
    )
    listed = set()
    for keys in rows:
        ends = [re.fullmatch(r"(Shift )?([1-9])", key) for key in keys]
        if len(keys) == 2 and all(ends):
            listed |= {f"{ends[0][1] or ''}{n}" for n in range(int(ends[0][2]), int(ends[1][2]) + 1)}
        else:
            listed |= {SIGNS.get(key, re.sub(r"^Shift ([A-Z])$", r"\1", key)) for key in keys}

    working = set(page.evaluate("import('/static/js/desk.js').then(desk => Object.keys(desk.KEYS))"))
    assert listed - ELSEWHERE == working - {"="}  # that is "+" without Shift


# --- leading to what is missing --------------------------------------------------------------------------------------


def test_what_is_missing_leads_to_its_field_even_in_a_closed_part(
    page: Page, live_server: Any, held: Trajectory, alice: Person
) -> None:
    held.submission.protocol_version = 2
    held.submission.save(update_fields=["protocol_version"])
    sign_in(page, live_server.url, "alice")
    open_desk(page, live_server.url, held)
    page.locator(".attempt > summary").click()
    for words, field in (
        ("Describe how you did the task.", "f-attempt_notes"),
        ("Write the reasoning, referring to the criteria.", "f-reasoning"),
        ("Choose a verdict.", "f-verdict"),
    ):
        page.locator(".missing > summary").click()
        page.locator(".missing a", has_text=words).click()
        assert focused(page) == field
        expect(page.locator(f"#{field}")).to_be_visible()
        expect(page.locator(".missing ul")).to_be_hidden()


def test_steps_of_the_own_attempt_are_passed_over_when_the_annotator_could_not_do_the_task(
    page: Page, live_server: Any, held: Trajectory, alice: Person
) -> None:
    held.submission.protocol_version = 2
    held.submission.save(update_fields=["protocol_version"])
    sign_in(page, live_server.url, "alice")
    open_desk(page, live_server.url, held)
    page.get_by_label("How you did it").fill("The site asks for a CAPTCHA.")
    page.get_by_label("The agent's path compared with yours").select_option("longer")
    page.locator("#main").focus()
    pressed(page, "Shift+S")
    assert focused(page) == "f-attempt_steps"
    page.get_by_label("The agent's path compared with yours").select_option("not_comparable")
    page.locator("#main").focus()
    pressed(page, "Shift+S")
    expect(point(page, 1).locator("[value=met]")).to_be_focused()


def test_the_definition_of_a_failure_type_stands_under_it_and_the_others_unfold(desk: Page) -> None:
    pressed(desk, "f")
    desk.get_by_label("Failure type", exact=True).select_option("loop")
    expect(desk.locator("#failure-definition")).to_contain_text("repeated actions without effect")
    desk.locator(".further > summary").click()
    expect(desk.locator("#further-wrong_item")).to_be_visible()
    expect(desk.locator("#further-loop")).to_be_hidden()
    desk.get_by_label("Wrong item or page").check()
    desk.locator(".further > summary").click()
    expect(desk.locator(".further > summary")).to_have_text("Further types: 1")


def test_an_outdated_task_is_reported_where_the_cause_is_chosen(desk: Page, held: Trajectory) -> None:
    pressed(desk, "n")
    link = desk.get_by_role("link", name="report the task")
    expect(link).to_be_hidden()
    desk.get_by_label("Cause").select_option("task_outdated")
    link.click()
    assert focused(desk) == "report-note"
    desk.keyboard.type("The shop has closed.")
    desk.get_by_role("button", name="Report it").click()
    expect(desk.locator("#report")).to_contain_text("Report sent to the maintainer.")

    assert Report.objects.get().note == "The shop has closed."
    expect(desk.locator("[name=verdict]:checked")).to_have_value("2")


# --- own phrases -----------------------------------------------------------------------------------------------------


def test_phrases_are_kept_from_a_selection_and_inserted_at_the_cursor(desk: Page, alice: Person) -> None:
    field = desk.get_by_label("Reasoning")
    field.fill("The range is wider. Step 3.")
    field.evaluate("field => field.setSelectionRange(0, 19)")
    pressed(desk, "Escape", "p")
    desk.get_by_role("button", name="Save the selected words as a phrase").click()
    expect(desk.locator("#phrases [role=status]")).to_have_text("Kept.")
    assert Phrase.objects.get().text == "The range is wider."

    pressed(desk, "Escape")
    assert focused(desk) == "main"  # where the menu was called from
    pressed(desk, "r", "End")
    pressed(desk, "Alt+Digit1")
    expect(field).to_have_value("The range is wider. Step 3. The range is wider.")
    pressed(desk, "Escape", "p", "1")
    expect(field).to_be_focused()
    expect(field).to_have_value("The range is wider. Step 3. The range is wider. The range is wider.")
    expect(desk.locator("#phrases")).to_be_hidden()
    assert said(desk, 1) == (None, "")


def test_phrases_that_load_late_take_the_digit_and_know_the_selection(
    desk: Page, alice: Person, held: Trajectory
) -> None:
    Phrase.objects.create(person=alice, text="The range is wider.")
    workflow.save_draft(alice, held, {"reasoning": "Step 3."}, 0)
    desk.reload()
    field = desk.get_by_label("Reasoning")

    def press_before_they_load(route: Route) -> None:
        pressed(desk, *keys)
        route.continue_()

    desk.route("**/phrases.js", press_before_they_load)
    keys = ["1"]
    pressed(desk, "p")
    expect(field).to_have_value("Step 3. The range is wider.")
    assert said(desk, 1) == (None, "")

    desk.reload()
    keys = ["Escape", "p"]
    field.evaluate("field => { field.setSelectionRange(0, 4); field.focus(); }")
    expect(desk.get_by_role("button", name="Save the selected words as a phrase")).to_be_visible()


# --- guidelines ------------------------------------------------------------------------------------------------------


def test_the_guidelines_open_beside_the_form_and_the_keys_go_on(desk: Page) -> None:
    pressed(desk, "g", "j")
    panel = desk.get_by_role("region", name="Guidelines")
    expect(panel).to_be_visible()
    at_step(desk, 1)
    pressed(desk, "1")
    assert said(desk, 1) == ("met", "1")
    box, form = panel.bounding_box(), desk.locator("#label-form").bounding_box()
    assert box["x"] + box["width"] <= form["x"] + 1
    expect(panel.locator(".touched dt").first).to_be_in_viewport()
    pressed(desk, "g")
    expect(panel).to_be_hidden()
    pressed(desk, "g", "Escape")
    expect(panel).to_be_hidden()


def test_the_guidelines_are_searched(desk: Page) -> None:
    pressed(desk, "Shift+G")
    panel = desk.locator("#rules")
    expect(panel.get_by_role("searchbox")).to_be_focused()
    desk.keyboard.type("captcha")
    expect(panel.locator("[data-term]:visible")).to_have_count(1)
    expect(panel.locator("output")).to_have_text(re.compile(r"^1 of \d+$"))
    expect(panel.get_by_role("heading", name="Criteria")).to_be_hidden()
    pressed(desk, "Escape")
    expect(panel).to_be_hidden()
    assert focused(desk) == "main"


def test_the_page_of_the_guidelines_is_searched_the_same_way(desk: Page, live_server: Any) -> None:
    desk.goto(live_server.url + reverse("guidelines"))
    desk.get_by_label("Search the guidelines").fill("sort order")

    expect(desk.locator("[data-term]:visible")).to_have_count(1)


# --- effort ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def three_points(desk: Page, held: Trajectory) -> None:
    KeyPoint.objects.filter(task=held.task, text="added to the cart").update(retired_at=timezone.now())
    desk.reload()


def finish(desk: Page, held: Trajectory) -> None:
    """Two keys beside the reasoning."""
    pressed(desk, "Shift+S")
    desk.keyboard.type("All is filtered, sorted and in the cart.")
    pressed(desk, "Control+Enter")
    desk.wait_for_url(lambda url: f"/trajectories/{held.pk}" not in url)
    label = Label.objects.get()
    assert [(f.finding, f.step) for f in label.findings.all()] == [("met", 4), ("met", 9), ("met", 19)]
    assert label.reasoning == "All is filtered, sorted and in the cart."


def test_a_review_that_opens_all_of_20_steps_takes_24_keys_beside_the_reasoning(
    desk: Page, held: Trajectory, three_points: None
) -> None:
    for index in range(1, 20):
        pressed(desk, "j")
        at_step(desk, index)
        if index in (4, 9, 19):
            pressed(desk, {4: "1", 9: "2", 19: "3"}[index])
    finish(desk, held)  # 19 steps, 3 findings, verdict and submit


def test_a_review_that_reads_the_transcript_takes_at_most_22_keys_beside_the_reasoning(
    desk: Page, held: Trajectory, three_points: None
) -> None:
    keys = ["t"]
    pressed(desk, "t")
    expect(desk.locator("#transcript li")).to_have_count(20)
    walk = ["j"] * 4 + ["1"] + ["j"] * 5 + ["2", "End", "3"]
    for key in walk:
        if key in "123":
            at_step(desk, {"1": 4, "2": 9, "3": 19}[key])
        pressed(desk, key)
    finish(desk, held)

    assert len(keys) + len(walk) + 2 <= 22


def test_keys_wait_for_the_step_that_was_asked_for(desk: Page, three_points: None) -> None:
    held = hold(desk, "**/trajectories/*step=19*")
    with desk.expect_request("**/trajectories/*step=19*"):
        pressed(desk, "End")
    pressed(desk, "1", "r")
    desk.keyboard.type("Sene")
    pressed(desk, "Backspace", "Backspace")
    desk.keyboard.type("en.")
    expect(point(desk, 1).locator(":checked")).to_have_count(0)
    held[0].continue_()

    at_step(desk, 19)
    expect(point(desk, 1).locator(":checked")).to_have_value("met")
    assert said(desk, 1) == ("met", "19")
    expect(desk.locator("[name=reasoning]")).to_have_value("Seen.")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_form_and_the_guidelines_have_no_barrier(desk: Page, scheme: Any) -> None:
    desk.emulate_media(color_scheme=scheme)
    pressed(desk, "f", "1", "m", "End", "g")
    at_step(desk, 19)
    desk.locator(".further > summary").click()
    desk.locator("[data-phrases]").click()

    found = Axe().run(desk).response["violations"]
    assert [(v["id"], [node["html"][:80] for node in v["nodes"]]) for v in found] == []


def test_a_trajectory_is_put_off_with_what_was_just_typed(desk: Page, held: Trajectory) -> None:
    pressed(desk, "1", "r")
    desk.keyboard.type("Half a thought")
    pressed(desk, "Escape", "Shift+L")
    desk.wait_for_url(re.compile("/work/"))
    expect(desk.get_by_text("Put off until")).to_be_visible()
    desk.get_by_role("button", name="Resume").click()
    desk.wait_for_url(re.compile(f"/trajectories/{held.pk}"))

    expect(desk.get_by_label("Reasoning")).to_have_value("Half a thought")
    expect(desk.locator("dialog[open]")).to_have_count(0)
    assert said(desk, 1) == ("met", "0")
