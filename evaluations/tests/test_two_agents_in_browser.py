"""Two agents side by side in a real browser: by keyboard, without script, on a telephone, and without a barrier."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.urls import reverse
from playwright.sync_api import Browser, Page, Route, expect

from annotation import ingest
from annotation.models import Screenshot, Submission
from annotation.tests import testing
from annotation.tests.in_browser import complaints_of, sign_in
from evaluations.tests.finished import finish

pytestmark = pytest.mark.browser

PHONE = 390  # pixels
HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture
def both(transactional_db: Any, tmp_path: Path, settings: Any) -> list[Submission]:
    """Two frozen submissions with two tasks, of three and of five steps."""
    settings.MEDIA_ROOT = tmp_path / "images"
    first = testing.submission(tmp_path / "first", trajectories=2)
    package = testing.write_submission(tmp_path / "second", 2, steps=5)
    _, second = ingest.import_submission(package, benchmark=first.benchmark, agent_name=f"Other {HOSTILE}")
    assert second is not None
    second.trajectories.all()[0].steps.update(thought=HOSTILE)
    people: dict[str, Any] = {}
    for each in (first, second):
        people |= testing.cast(each)
    for each in (first, second):
        finish(people, each, {"task_0000": [1, 0, 2], "task_0001": [0, 0, 0]})
    return [first, second]


def address(both: list[Submission]) -> str:
    return reverse("task-pair", args=[each.trajectories.earliest("pk").pk for each in both])


def expect_steps(page: Page, left: int, right: int) -> None:
    for side, step in (("left", left), ("right", right)):
        expect(page.locator(f"#{side} .at-step > b")).to_have_text(re.compile(rf"Step {step} of \d"))
    expect(page).to_have_url(re.compile(rf"left={left}&right={right}\b"))


def test_keys_move_both_agents_or_one_of_them(page: Page, live_server: Any, both: list[Submission]) -> None:
    complaints = complaints_of(page)
    sign_in(page, live_server.url, "mira")
    page.goto(live_server.url + address(both))
    loaded = page.evaluate("performance.timeOrigin")
    page.keyboard.press("j")
    expect_steps(page, 1, 1)
    page.keyboard.press("ArrowRight")
    expect_steps(page, 2, 2)
    page.keyboard.press("j")
    expect_steps(page, 2, 3)  # the first one has ended
    page.keyboard.press("k")
    expect_steps(page, 2, 2)
    page.keyboard.press("q")
    expect_steps(page, 1, 2)
    page.keyboard.press("p")
    expect_steps(page, 1, 3)
    page.keyboard.press("o")
    expect_steps(page, 1, 2)
    page.keyboard.press("w")
    expect_steps(page, 2, 2)
    page.keyboard.press("Home")
    expect_steps(page, 0, 0)
    page.keyboard.press("End")
    expect_steps(page, 2, 4)
    page.keyboard.press("x")
    expect_steps(page, 2, 2)
    expect(page.locator("#said")).to_have_text(re.compile("Careful Agent: Step 2 of 2, Other .*: Step 2 of 4"))
    page.keyboard.press("Control+j")
    expect_steps(page, 2, 2)
    assert page.evaluate("performance.timeOrigin") == loaded  # it was never loaded again
    assert complaints == []


def test_focus_stays_on_the_link_that_was_pressed(page: Page, live_server: Any, both: list[Submission]) -> None:
    sign_in(page, live_server.url, "mira")
    page.goto(live_server.url + address(both))
    page.locator("[data-move=right-next]").focus()
    page.keyboard.press("Enter")
    expect_steps(page, 0, 1)
    expect(page.locator("[data-move=right-next]")).to_be_focused()
    page.locator("#right-reasons > summary").click()
    page.keyboard.press("j")
    expect_steps(page, 2, 2)  # after the later one
    expect(page.locator("#right-reasons")).to_have_attribute("open", "")
    expect(page.locator("#right-reasons > summary")).to_be_focused()


def test_tall_screenshots_stay_where_they_were_scrolled(page: Page, live_server: Any, both: list[Submission]) -> None:
    Screenshot.objects.update(height=9000)
    sign_in(page, live_server.url, "mira")
    page.goto(live_server.url + address(both))
    shot = page.locator("#right-shot")
    shot.focus()
    shot.evaluate("(shot) => { shot.scrollTop = 120; }")
    page.keyboard.press("j")
    expect_steps(page, 1, 1)
    expect(shot).to_be_focused()
    expect(shot).to_have_js_property("scrollTop", 120)


def test_steps_that_were_left_meanwhile_do_not_come_back_when_they_fail(
    page: Page, live_server: Any, both: list[Submission]
) -> None:
    stuck: list[Route] = []
    page.route(re.compile(r"left=0&right=1$"), lambda route: stuck.append(route))  # noqa: PLW0108 - Playwright refuses builtins
    sign_in(page, live_server.url, "mira")
    page.goto(live_server.url + address(both))
    with page.expect_request(re.compile(r"left=0&right=1$")):
        page.keyboard.press("p")
    page.keyboard.press("End")
    expect_steps(page, 2, 4)
    failed: list[str] = []
    page.on("framenavigated", lambda frame: failed.append(frame.url))
    with page.expect_event("requestfailed"):
        stuck[0].abort()
    page.keyboard.press("k")
    expect_steps(page, 2, 3)
    page.keyboard.press("End")
    expect_steps(page, 2, 4)
    assert [url for url in failed if url.endswith("left=0&right=1")] == []


def test_key_that_is_held_never_scrolls_the_page(page: Page, live_server: Any, both: list[Submission]) -> None:
    sign_in(page, live_server.url, "mira")
    page.goto(live_server.url + address(both))
    held = """() => {
        const press = (repeat) => document.body.dispatchEvent(
            new KeyboardEvent("keydown", { key: "End", repeat, bubbles: true, cancelable: true }));
        return [press(false), press(true)];
    }"""
    assert page.evaluate(held) == [False, False]  # False: the browser does nothing of its own
    expect_steps(page, 2, 4)


def test_current_step_is_in_view_on_a_telephone(page: Page, live_server: Any, both: list[Submission]) -> None:
    page.set_viewport_size({"width": PHONE, "height": 844})
    sign_in(page, live_server.url, "mira")
    page.goto(live_server.url + address(both) + "?left=0&right=4")
    strip = "#right .tiles-of"
    left = "(strip) => strip.scrollLeft"
    assert page.locator(strip).evaluate(left) > 0
    page.keyboard.press("Home")
    expect_steps(page, 0, 0)
    assert page.locator(strip).evaluate(left) == 0
    page.keyboard.press("End")
    expect_steps(page, 2, 4)
    assert page.locator(strip).evaluate(left) > 0


def test_page_works_without_script(browser: Browser, live_server: Any, both: list[Submission]) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    sign_in(page, live_server.url, "mira")
    page.goto(live_server.url + reverse("two-agents", args=["shops"]))
    page.get_by_role("link", name="laptop of shop 0").click()
    page.get_by_role("link", name="next →").click()
    expect_steps(page, 1, 1)
    page.get_by_role("navigation", name=re.compile("Steps of Other")).get_by_role("link").nth(4).click()
    expect_steps(page, 1, 4)
    page.get_by_role("link", name="Next task").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("laptop of shop 1")
    context.close()


def test_ended_session_leads_to_the_sign_in(page: Page, live_server: Any, both: list[Submission]) -> None:
    sign_in(page, live_server.url, "mira")
    page.goto(live_server.url + address(both) + "?left=0&right=4")
    page.context.clear_cookies()
    page.keyboard.press("q")  # nothing there
    page.keyboard.press("w")
    expect(page).to_have_url(re.compile("sign-in"))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_have_no_barrier_and_fit_a_telephone(
    page: Page, live_server: Any, both: list[Submission], scheme: Any
) -> None:
    complaints = complaints_of(page)
    page.emulate_media(color_scheme=scheme)
    sign_in(page, live_server.url, "mira")
    for at in (reverse("two-agents", args=["shops"]), address(both) + "?left=2&right=2"):
        for width in (1280, PHONE):
            page.set_viewport_size({"width": width, "height": 844})
            page.goto(live_server.url + at)
            page.locator("details").evaluate_all("(all) => all.forEach((each) => { each.open = true; })")
            found = Axe().run(page).response["violations"]
            assert [(each["id"], [node["html"][:200] for node in each["nodes"]][:3]) for each in found] == []
            assert page.evaluate("document.documentElement.scrollWidth") <= width
    left, right = (page.locator(f"#{side}").bounding_box() for side in ("left", "right"))
    assert left is not None
    assert right is not None
    assert left["y"] + left["height"] <= right["y"]  # below each other on a telephone
    assert complaints == []
