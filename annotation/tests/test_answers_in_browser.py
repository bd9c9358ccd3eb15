"""Reading an answer in a real browser: by keyboard alone, with kept pages beside it, and what axe finds."""

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
from annotation.models import Draft, Label, Trajectory
from annotation.tests import testing
from annotation.tests.in_browser import complaints_of, open_desk, sign_in

pytestmark = pytest.mark.browser


@pytest.fixture
def held(transactional_db: Any, tmp_path: Path, settings: Any) -> Trajectory:
    settings.MEDIA_ROOT = tmp_path / "images"
    submission = testing.answered(tmp_path / "answers")
    assignment = workflow.claim(testing.cast(submission)["alice"], submission)
    assert assignment is not None
    return assignment.trajectory


@pytest.fixture
def desk(page: Page, live_server: Any, held: Trajectory) -> Iterator[Page]:
    """Alice's desk, open; any complaint of the browser fails the test."""
    complaints = complaints_of(page)
    sign_in(page, live_server.url, "alice")
    open_desk(page, live_server.url, held)
    yield page
    page.goto("about:blank")
    assert complaints == []


def failed(page: Page) -> list[str]:
    """What axe finds, with the first place of each."""
    return [f"{one['id']}: {one['nodes'][0]['html'][:200]}" for one in Axe().run(page).response["violations"]]


def test_an_answer_is_judged_with_the_keyboard_alone(desk: Page, held: Trajectory) -> None:
    desk.keyboard.press("j")
    expect(desk.get_by_role("img", name="Image of page 1")).to_be_visible()
    desk.keyboard.press("t")
    expect(desk.get_by_label("Text of page 1")).to_contain_text("499 EUR")
    desk.keyboard.press("ArrowRight")
    expect(desk.get_by_label("Text of page 2")).to_contain_text("Sheet")
    desk.keyboard.press("k")
    expect(desk.get_by_role("img", name="Image of page 1")).to_be_visible()
    desk.keyboard.press("w")
    expect(desk.locator("#page")).to_be_hidden()
    for key in ("Shift+Digit1", "2", "f"):
        desk.keyboard.press(key)
    desk.keyboard.press("Shift+F")
    expect(desk.get_by_label("Failure type")).to_be_focused()
    desk.keyboard.type("Wrong or")
    desk.keyboard.press("Escape")
    desk.keyboard.press("r")
    desk.keyboard.type("The list says something else.")
    expect(desk.locator(".complete")).to_be_visible()
    desk.keyboard.press("Control+Enter")
    desk.wait_for_url(lambda url: f"/trajectories/{held.pk}" not in url)

    label = Label.objects.get()
    assert (label.verdict, label.failure_step, label.failure_type) == (0, None, "wrong_answer")
    assert [(f.finding, f.step) for f in label.findings.all()] == [("unmet", None), ("met", None)]


def test_keys_of_steps_do_nothing_and_navigating_writes_nothing(desk: Page) -> None:
    for key in ("x", "m", "e", "v", "d", "b", "z", "End", "Home", "/", "o", "t"):
        desk.keyboard.press(key)
    desk.keyboard.press("?")
    sheet = desk.locator("#keys")
    expect(sheet).to_contain_text("open the next stored page")
    expect(sheet).not_to_contain_text("step")
    assert desk.locator("#label-form input[type=radio]:checked").count() == 0
    expect(desk.locator("#saved")).to_have_text("no changes yet")
    assert not Draft.objects.exists()


def test_a_number_in_the_text_opens_its_page_and_one_that_was_not_kept_leads_to_the_list(desk: Page) -> None:
    desk.locator(".prose .cited").nth(0).click()
    expect(desk.get_by_role("img", name="Image of page 1")).to_be_visible()
    assert desk.url.endswith("?page=1")
    expect(desk.locator(".sources [aria-current]")).to_have_count(1)
    desk.locator(".prose .cited").nth(2).click()
    expect(desk.locator("#cited-3")).to_be_focused()
    expect(desk.locator("#announce")).to_have_text("Page 3 was not stored")
    expect(desk.get_by_role("img", name="Image of page 1")).to_be_visible()
    desk.reload()
    expect(desk.get_by_role("img", name="Image of page 1")).to_be_visible()


def test_pages_open_without_script(browser: Any, live_server: Any, held: Trajectory, page: Page) -> None:
    sign_in(page, live_server.url, "alice")
    context = browser.new_context(java_script_enabled=False, storage_state=page.context.storage_state())
    plain = context.new_page()
    plain.goto(live_server.url + reverse("trajectory", args=[held.pk]))
    plain.locator("#cited-1 a").first.click()
    expect(plain.get_by_role("img", name="Image of page 1")).to_be_visible()
    plain.get_by_role("link", name="text", exact=True).click()
    expect(plain.get_by_label("Text of page 1")).to_contain_text("499 EUR")
    context.close()


def test_ended_session_is_noticed_when_a_page_is_opened(desk: Page) -> None:
    desk.wait_for_load_state("networkidle")
    desk.context.clear_cookies()
    desk.keyboard.press("j")
    expect(desk.locator("#session-ended")).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1440, 400])
def test_axe_finds_nothing_on_a_desk_with_an_answer(desk: Page, scheme: Any, width: int) -> None:
    desk.emulate_media(color_scheme=scheme)
    desk.set_viewport_size({"width": width, "height": 900})
    for query in ("", "?page=1", "?page=1&show=text", "?page=2"):
        desk.goto(desk.url.partition("?")[0] + query)
        expect(desk.locator("html")).to_have_class(re.compile("scripted"))
        assert failed(desk) == []
        wide = desk.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth")
        assert not wide, query
