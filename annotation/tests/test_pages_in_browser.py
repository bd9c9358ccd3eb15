"""What the desk's script does, in a real browser: walking, keys, drafts, two windows."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.urls import reverse
from playwright.sync_api import Page, expect

from annotation import workflow
from annotation.models import Draft, Label, Person, Trajectory
from annotation.tests import testing
from annotation.tests.in_browser import complaints_of, open_desk, sign_in, sign_in_by_form

pytestmark = pytest.mark.browser


@pytest.fixture
def held(transactional_db: Any, tmp_path: Path) -> Trajectory:
    """A trajectory of 90 steps that alice is working on, in a submission of two."""
    submission = testing.submission(tmp_path / "package", trajectories=2, steps=90)
    return workflow.claim(testing.cast(submission)["alice"], submission).trajectory


@pytest.fixture
def desk(page: Page, live_server: Any, held: Trajectory) -> Page:
    """Alice's desk, open; any complaint of the browser fails the test."""
    complaints = complaints_of(page)
    sign_in(page, live_server.url, "alice")
    open_desk(page, live_server.url, held)
    yield page
    page.goto("about:blank")
    assert [text for text in complaints if not re.search("status of 4(00|09)", text)] == []


def test_the_whole_label_is_made_with_the_keyboard_alone(desk: Page, held: Trajectory) -> None:
    for key in ("ArrowRight", "j", "k", "j"):
        desk.keyboard.press(key)
    expect(desk.locator("#stage")).to_have_attribute("data-index", "2")
    for number in ("1", "2"):
        desk.keyboard.press(number)
    desk.keyboard.press("s")
    desk.keyboard.press("r")
    desk.keyboard.type("The filter is set; fsn and j stay text here.")
    expect(desk.locator(".complete")).to_be_visible()
    desk.keyboard.press("Control+Enter")
    desk.wait_for_url(lambda url: f"/trajectories/{held.pk}" not in url)

    label = Label.objects.get()
    assert label.verdict == 1
    assert label.reasoning == "The filter is set; fsn and j stay text here."
    assert [(f.finding, f.step) for f in label.findings.all()] == [("met", 2), ("met", 2)]
    assert not Draft.objects.exists()


def test_walking_writes_nothing_and_the_strip_follows(desk: Page) -> None:
    desk.keyboard.press("End")
    expect(desk.locator("#strip [aria-current]")).to_have_attribute("data-step", "89")
    desk.keyboard.press("ArrowRight")
    desk.keyboard.press("Home")
    expect(desk.locator("#strip [aria-current]")).to_have_attribute("data-step", "0")
    desk.locator("#strip .thumb").nth(3).click()
    expect(desk.locator("#stage")).to_have_attribute("data-index", "3")

    expect(desk).to_have_url(re.compile(r"step=3$"))
    expect(desk.locator("#saved")).to_have_text("no changes yet")
    assert not Draft.objects.exists()


def test_a_draft_is_saved_within_a_second_and_is_there_after_a_reload(desk: Page, held: Trajectory) -> None:
    desk.keyboard.press("f")
    desk.keyboard.press("x")
    desk.get_by_label("Reasoning").fill("half a thought")
    expect(desk.locator("#saved")).to_have_text(re.compile(r"saved \d\d:\d\d:\d\d"), timeout=1500)
    desk.reload()

    expect(desk.get_by_label("Reasoning")).to_have_value("half a thought")
    expect(desk.get_by_label("Failed at step")).to_have_value("0")
    assert Draft.objects.get().content["verdict"] == "0"


def test_a_second_window_overwrites_nothing_unasked(desk: Page, held: Trajectory) -> None:
    alice = Person.objects.get(username="alice")
    workflow.save_draft(alice, held, {"reasoning": "from the other window"}, 0)
    desk.get_by_label("Reasoning").fill("from this window")
    desk.get_by_role("button", name="Compare both").click()

    dialog = desk.locator("#conflict")
    expect(dialog).to_contain_text("from the other window")
    expect(dialog).to_contain_text("from this window")
    assert Draft.objects.get().content == {"reasoning": "from the other window"}
    dialog.get_by_role("button", name="Keep this version").click()
    expect(desk.locator("#saved")).to_have_text(re.compile(r"saved \d\d"))
    assert Draft.objects.get().content == {"reasoning": "from this window"}


def test_the_desk_fits_one_screen_and_nothing_moves_while_walking(desk: Page) -> None:
    size = "[document.documentElement.scrollWidth, document.documentElement.scrollHeight]"
    assert desk.evaluate(size) == [1440, 900]
    before = desk.locator("#label-form").bounding_box()
    desk.keyboard.press("j")
    expect(desk.locator("#stage")).to_have_attribute("data-index", "1")

    assert desk.locator("#label-form").bounding_box() == before
    assert desk.get_by_role("button", name="Submit and next").is_visible()


def test_a_refused_form_stays_and_walking_goes_on_from_there(desk: Page, held: Trajectory) -> None:
    desk.keyboard.press("j")
    expect(desk.locator("#stage")).to_have_attribute("data-index", "1")
    desk.keyboard.press("f")
    desk.keyboard.press("Control+Enter")
    expect(desk.get_by_role("alert")).to_contain_text("Enter the step where it failed.")
    expect(desk.locator("#saved")).to_have_text(re.compile(r"saved \d\d"))
    desk.keyboard.press("j")

    expect(desk.locator("#stage")).to_have_attribute("data-index", "2")
    expect(desk).to_have_url(re.compile(rf"/trajectories/{held.pk}\?step=2$"))
    expect(desk.locator("[name=verdict]:checked")).to_have_value("0")


def test_the_key_sheet_opens_and_no_other_key_works_under_it(desk: Page) -> None:
    desk.keyboard.press("?")
    expect(desk.locator("#keys")).to_be_visible()
    desk.keyboard.press("f")
    desk.keyboard.press("Escape")

    expect(desk.locator("#keys")).to_be_hidden()
    expect(desk.locator("[name=verdict]:checked")).to_have_count(0)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_desk_has_no_serious_barrier(desk: Page, scheme: Any) -> None:
    desk.emulate_media(color_scheme=scheme)
    desk.keyboard.press("f")

    found = Axe().run(desk).response["violations"]
    assert [v["id"] for v in found if v["impact"] in ("serious", "critical")] == []


def test_the_desk_works_without_script(
    browser: Any, browser_context_args: dict[str, Any], live_server: Any, held: Trajectory
) -> None:
    context = browser.new_context(**browser_context_args, java_script_enabled=False)
    page = context.new_page()
    sign_in_by_form(page, live_server.url, "alice")
    page.goto(live_server.url + reverse("trajectory", args=[held.pk]))
    page.get_by_role("link", name="next step").click()
    expect(page).to_have_url(re.compile(r"step=1$"))
    for group in ("1 at least 16 GB", "2 cheapest by sorting"):
        point = page.get_by_role("group", name=group)
        point.get_by_role("radio", name="met", exact=True).check(force=True)
        point.get_by_label("step").fill("1")
    page.get_by_role("radio", name="Not executable").check(force=True)
    page.get_by_label("Reasoning").fill("A wall.")
    page.get_by_role("button", name="Submit and next").click()
    expect(page.get_by_role("alert")).to_contain_text("Choose why nobody could have done the task.")

    page.get_by_label("Cause").select_option("blocked")
    page.get_by_role("button", name="Submit and next").click()
    expect(page.locator(".messages").first).to_contain_text("submitted")
    assert Label.objects.get().cause == "blocked"
    context.close()
