"""What only a wide screen shows, and the ruler beside a tall screenshot."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.urls import reverse
from playwright.sync_api import Page, expect

from annotation.models import Screenshot, Task, Trajectory
from annotation.tests.in_browser import complaints_of, open_desk, sign_in
from annotation.tests.test_viewer_in_browser import held  # noqa: F401 - a fixture

pytestmark = pytest.mark.browser


@pytest.fixture
def wide(page: Page, live_server: Any, held: Trajectory) -> Iterator[Page]:  # noqa: F811 - the fixture
    """Alice's desk on a screen of 2560 x 1440, with a task that two criteria match."""
    Task.objects.update(text="Find the cheapest laptop with at least 32 GB")
    complaints = complaints_of(page)
    page.set_viewport_size({"width": 2560, "height": 1440})
    sign_in(page, live_server.url, "alice")
    open_desk(page, live_server.url, held)
    yield page
    page.goto("about:blank")
    assert complaints == []


def test_a_wide_screen_shows_the_steps_before_and_after(wide: Page, held: Trajectory) -> None:  # noqa: F811
    around = wide.locator(".neighbours a")
    expect(around.locator(".told")).to_have_text(["After · step 1: coords(101, 50) -> CLICK -> control 1 | SUCCESS"])
    wide.keyboard.press("j")
    expect(around).to_have_count(2)
    expect(around.first).to_contain_text("Before · step 0: coords(100, 50)")
    expect(around.last.locator("image")).to_have_attribute("href", reverse("picture", args=[held.pk, 2, "display"]))
    around.last.click()
    expect(wide.locator("#stage")).to_have_attribute("data-index", "2")
    expect(around.first).to_contain_text("Before · step 1")
    wide.keyboard.press("j")
    expect(around.last).to_contain_text("no screenshot")  # step 4 has none
    wide.keyboard.press("End")
    expect(around).to_have_count(1)
    expect(around).to_contain_text("Before · step 198")
    for part in (".shot", "#step", ".neighbours", "#strip", "#label-form [data-submit]"):
        expect(wide.locator(part)).to_be_in_viewport(ratio=1)
    assert Axe().run(wide).response["violations"] == []


def test_a_wide_screen_lists_the_guidelines_that_the_task_touches(wide: Page) -> None:
    section = wide.get_by_role("region", name="Guidelines for this task")
    touched = wide.locator("#rules .term.touched dt")
    assert touched.count() >= 2
    expect(section.locator("dt")).to_have_text(touched.all_text_contents())
    section.get_by_role("button", name="all guidelines").click()
    expect(wide.locator("#rules")).to_be_visible()


def test_narrower_screens_do_not_load_it(page: Page, live_server: Any, held: Trajectory) -> None:  # noqa: F811
    requested: list[str] = []
    page.on("request", lambda request: requested.append(request.url))
    page.set_viewport_size({"width": 1990, "height": 1440})
    sign_in(page, live_server.url, "alice")
    open_desk(page, live_server.url, held)
    page.keyboard.press("j")
    expect(page.locator("#stage")).to_have_attribute("data-index", "1")
    assert not [url for url in requested if "wide" in url or "transcript" in url.split("?")[0].rpartition("/")[2]]
    page.set_viewport_size({"width": 2560, "height": 1440})
    expect(page.locator(".neighbours a")).to_have_count(2)


def test_a_ruler_marks_a_click_that_is_out_of_view(page: Page, live_server: Any, held: Trajectory) -> None:  # noqa: F811
    Screenshot.objects.update(width=1280, height=4000)
    held.steps.update(click_x=640, click_y=3000)
    sign_in(page, live_server.url, "alice")
    page.goto(live_server.url + reverse("trajectory", args=[held.pk]))
    ruler = page.locator(".ruler")
    expect(ruler).to_have_count(1)
    lengths = "ruler => [...ruler.children].map((part) => part.getBoundingClientRect().top + part.offsetHeight / 2)"
    frame = ruler.bounding_box()
    assert frame is not None
    view, mark = ruler.evaluate(lengths)
    assert abs((mark - frame["y"]) / frame["height"] - 0.75) < 0.02  # 3,000 of 4,000 pixels
    assert view < mark
    page.keyboard.press("End")
    page.keyboard.press("Shift+C")
    expect(ruler).to_have_count(0)
