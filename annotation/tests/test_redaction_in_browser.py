"""Covering parts of a picture in a real browser: with the mouse, by keyboard alone, and without script."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.urls import reverse
from playwright.sync_api import Browser, Locator, Page, expect

from annotation import redactions
from annotation.models import Person, Redaction, Step
from annotation.tests import testing
from annotation.tests.in_browser import complaints_of, sign_in

pytestmark = pytest.mark.browser


@pytest.fixture
def step(transactional_db: Any, tmp_path: Path, settings: Any) -> Step:
    settings.MEDIA_ROOT = tmp_path / "images"
    submission = testing.submission(tmp_path / "package", trajectories=1)
    testing.cast(submission)
    return submission.trajectories.get().steps.get(index=1)


def open_editor(page: Page, url: str, step: Step) -> None:
    """Sign mira in and open the picture of the step by the link at the step."""
    assert Person.objects.filter(username="mira").exists()
    sign_in(page, url, "mira")
    page.goto(f"{url}{reverse('submission-trajectory', args=[step.trajectory_id])}?step={step.index}")
    page.get_by_role("link", name="redact this screenshot").click()
    page.wait_for_url(re.compile("/redaction$"))


@pytest.fixture
def editor(page: Page, live_server: Any, step: Step) -> Page:
    complaints = complaints_of(page)
    open_editor(page, live_server.url, step)
    expect(page.locator("redaction-editor")).to_have_class(re.compile("scripted"))
    yield page
    page.goto("about:blank")
    assert [text for text in complaints if "status of 4" not in text] == []


def rows(page: Page) -> list[list[int]]:
    fields = page.locator("[data-box]")
    names = ("x", "y", "width", "height")
    return [[int(row.locator(f"[name={name}]").input_value()) for name in names] for row in fields.all()]


def drag(page: Page, start: tuple[int, int], end: tuple[int, int]) -> None:
    """From one point of the picture to another, in its pixels."""
    shown = page.locator(".picture svg").bounding_box()
    assert shown is not None
    scale = shown["width"] / 320
    page.mouse.move(shown["x"] + start[0] * scale, shown["y"] + start[1] * scale)
    page.mouse.down()
    page.mouse.move(shown["x"] + end[0] * scale, shown["y"] + end[1] * scale, steps=4)
    page.mouse.up()


def save(page: Page, reason: str = "A face.") -> None:
    page.get_by_label("Why?").fill(reason)
    page.get_by_role("button", name="Save").click()


def shapes(page: Page) -> Locator:
    return page.locator("svg rect")


def test_a_box_is_drawn_moved_and_saved_with_the_mouse(editor: Page, step: Step) -> None:
    drag(editor, (100, 50), (160, 90))
    assert rows(editor) == [[100, 50, 60, 40]]
    drag(editor, (130, 70), (140, 60))
    assert rows(editor) == [[110, 40, 60, 40]]
    drag(editor, (130, 60), (400, 300))  # beyond the edge it stays within the picture
    assert rows(editor) == [[260, 160, 60, 40]]
    save(editor)
    expect(editor.get_by_text("contain the screenshot with 1 box covered")).to_be_visible()
    assert [row.boxes for row in Redaction.objects.all()] == [[[260, 160, 60, 40]]]
    covered = editor.get_by_alt_text("The screenshot with its boxes black")
    expect(covered).to_be_visible()
    assert covered.evaluate("async (image) => { await image.decode(); return image.naturalWidth }") == 320
    assert rows(editor) == [[260, 160, 60, 40]]


def test_a_click_draws_nothing(editor: Page) -> None:
    drag(editor, (100, 50), (101, 50))
    assert rows(editor) == []
    expect(shapes(editor)).to_have_count(0)


def test_everything_goes_by_keyboard(editor: Page, step: Step) -> None:
    editor.get_by_role("button", name="Add a box").focus()
    editor.keyboard.press("Enter")
    for number, value in enumerate(("10", "20", "30", "40")):
        editor.keyboard.type(value)
        if number < 3:
            editor.keyboard.press("Tab")
    expect(shapes(editor)).to_have_attribute("width", "30")
    editor.get_by_role("button", name="Preview").press("Enter")
    assert shapes(editor).evaluate("(rect) => getComputedStyle(rect).fillOpacity") == "1"
    save(editor)
    expect(editor.get_by_text("1 box covered")).to_be_visible()
    editor.get_by_role("button", name="Remove box 1").press("Enter")
    expect(editor.get_by_role("button", name="Add a box")).to_be_focused()
    expect(editor.get_by_text("Box 1 removed")).to_be_visible()
    save(editor, "It is a statue.")
    expect(editor.get_by_text("Redaction removed.")).to_be_visible()
    assert redactions.map_redacted(step.trajectory.submission) == {}


def test_what_was_refused_is_told_and_kept(editor: Page) -> None:
    drag(editor, (100, 50), (160, 90))
    save(editor, " ")
    expect(editor.get_by_role("alert")).to_contain_text("Enter a reason")
    reason = editor.get_by_label("Why?")
    expect(reason).to_have_attribute("aria-invalid", "true")
    expect(reason).to_have_accessible_description(re.compile("Enter a reason"))
    assert rows(editor) == [[100, 50, 60, 40]]
    expect(shapes(editor)).to_have_count(1)


def test_a_box_that_is_outside_is_marked_while_it_is_typed(editor: Page) -> None:
    drag(editor, (100, 50), (160, 90))
    editor.locator("[name=x]").fill("9000")
    editor.get_by_label("Why?").focus()
    expect(editor.locator("[data-box]")).to_have_class(re.compile("wrong"))
    expect(shapes(editor)).to_have_count(0)


def test_it_works_without_script(browser: Browser, live_server: Any, step: Step) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    open_editor(page, live_server.url, step)
    first = page.locator("[data-box]").first
    for name, value in (("x", "1"), ("y", "2"), ("width", "3"), ("height", "4")):
        first.locator(f"[name={name}]").fill(value)
    save(page)
    expect(page.get_by_text("1 box covered")).to_be_visible()
    assert [row.boxes for row in Redaction.objects.all()] == [[[1, 2, 3, 4]]]
    context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_pages_can_be_used_by_everybody(editor: Page, live_server: Any, step: Step, scheme: Any) -> None:
    drag(editor, (100, 50), (160, 90))
    save(editor)
    listed = reverse("redactions", args=[step.trajectory.submission_id])
    pages = (editor.url, live_server.url + listed, live_server.url + reverse("account"))
    for address in (*pages, live_server.url + reverse("erasing")):
        editor.emulate_media(color_scheme=scheme)
        editor.goto(address)
        found = Axe().run(editor).response["violations"]
        assert [(rule["id"], [node["html"] for node in rule["nodes"]]) for rule in found] == []
        editor.set_viewport_size({"width": 400, "height": 800})
        assert editor.evaluate("document.documentElement.scrollWidth") <= 400, address
        editor.set_viewport_size({"width": 1440, "height": 900})
