"""The own attempt in a real browser: the timer, steps counted from the notes, and the own path beside the agent's."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.urls import reverse
from playwright.sync_api import Locator, Page, expect

from annotation import workflow
from annotation.models import Activity, Draft, Label, Trajectory
from annotation.tests import testing
from annotation.tests.in_browser import EXPECTED, SAVED, complaints_of, open_desk, sign_in

pytestmark = pytest.mark.browser
PASTE = """(field, text) => {
    const clipboardData = new DataTransfer();
    clipboardData.setData("text/plain", text);
    return field.dispatchEvent(new ClipboardEvent("paste", { clipboardData, bubbles: true, cancelable: true }));
}"""


@pytest.fixture
def held(transactional_db: Any, tmp_path: Path) -> Trajectory:
    """A trajectory of 4 steps that alice is working on, under version 2 of the protocol."""
    submission = testing.submission(tmp_path / "package", trajectories=2, steps=4)
    submission.protocol_version = 2
    submission.save(update_fields=["protocol_version"])
    return workflow.claim(testing.cast(submission)["alice"], submission).trajectory


@pytest.fixture
def desk(page: Page, live_server: Any, held: Trajectory) -> Iterator[Page]:
    """Alice's desk, open, with a clock that only the test moves on."""
    complaints = complaints_of(page)
    sign_in(page, live_server.url, "alice")
    page.clock.install()
    open_desk(page, live_server.url, held)
    time_of(page).hover()
    expect(page.locator("[data-timer]")).to_be_enabled()
    page.clock.pause_at(datetime.now(UTC) + timedelta(minutes=1))
    yield page
    page.goto("about:blank")
    assert [text for text in complaints if not EXPECTED.search(text)] == []


def time_of(page: Page) -> Locator:
    return page.get_by_label("Time you needed")


def notes_of(page: Page) -> Locator:
    return page.get_by_label("How you did it")


def own_path(page: Page) -> Locator:
    return page.locator("[data-own-path] li")


def test_the_timer_runs_pauses_and_continues_after_a_correction(desk: Page) -> None:
    desk.get_by_role("button", name="Start timer").click()
    desk.clock.run_for(5000)
    expect(time_of(desk)).to_have_value("0:05")
    desk.get_by_role("button", name="Pause timer").click()
    desk.clock.run_for(4000)
    expect(time_of(desk)).to_have_value("0:05")

    time_of(desk).fill("1:59:58")
    desk.get_by_role("button", name="Continue timer").click()
    desk.clock.run_for(3000)
    expect(time_of(desk)).to_have_value("2:00:01")
    # A click into the field of a running timer pauses it, as typing does.
    time_of(desk).click()
    desk.clock.run_for(4000)
    expect(time_of(desk)).to_have_value("2:00:01")
    desk.get_by_role("button", name="Continue timer").click()
    time_of(desk).focus()
    desk.keyboard.press("End")
    desk.keyboard.press("Backspace")
    desk.clock.run_for(4000)
    expect(time_of(desk)).to_have_value("2:00:0")
    desk.get_by_role("button", name="Continue timer").click()
    expect(desk.locator("#announce")).to_contain_text("Correct the time first")


def test_a_running_time_is_saved_with_the_draft_and_is_there_after_a_reload(desk: Page, held: Trajectory) -> None:
    desk.get_by_role("button", name="Start timer").click()
    desk.clock.run_for(20_000)
    desk.clock.run_for(700)  # the pause before a save
    expect(desk.locator("#saved")).to_have_text(SAVED)
    assert Draft.objects.get(trajectory=held).content["attempt_seconds"] == "0:20"

    desk.clock.run_for(8300)
    desk.reload()
    expect(time_of(desk)).to_have_value("0:29")
    expect(desk.get_by_role("button", name="Start timer")).to_be_visible()


def test_a_forgotten_timer_pauses_after_an_hour(desk: Page) -> None:
    desk.get_by_role("button", name="Start timer").click()
    desk.clock.fast_forward(2 * 3_600_000)
    desk.clock.run_for(2000)
    expect(time_of(desk)).to_have_value("1:00:00")
    expect(desk.get_by_role("button", name="Continue timer")).to_be_visible()


def test_steps_are_counted_from_the_lines_and_no_typed_number_is_replaced_unasked(desk: Page) -> None:
    steps, count = desk.get_by_label("Steps you needed"), desk.locator("[data-count-steps]")
    expect(count).to_be_hidden()
    notes_of(desk).fill("Open the menu\n\n  \nSort by price")
    expect(steps).to_have_value("")
    count.click()
    expect(steps).to_have_value("2")
    expect(count).to_be_hidden()

    notes_of(desk).fill("Open the menu")
    expect(steps).to_have_value("2")
    expect(count).to_have_text("Counted 1 step: replace 2")
    count.focus()
    desk.keyboard.press("Enter")
    expect(steps).to_have_value("1")


def test_pasted_addresses_become_a_line_each_and_other_texts_are_pasted_as_they_are(desk: Page) -> None:
    notes = notes_of(desk)
    notes.fill("Open the menu")
    went_on = notes.evaluate(PASTE, "https://shop.example/a?x=1,2  https://shop.example/b\nhttp://shop.example/c")
    assert not went_on
    lines = ["https://shop.example/a?x=1,2", "https://shop.example/b", "http://shop.example/c"]
    expect(notes).to_have_value("\n".join(["Open the menu", *lines, ""]))
    expect(own_path(desk)).to_have_text(["Open the menu", *lines])
    for text in ("https://shop.example/one", "see https://shop.example/a and https://shop.example/b", "two words"):
        assert notes.evaluate(PASTE, text)


def test_the_own_path_stands_beside_the_agents_steps_and_leads_to_them(desk: Page) -> None:
    paths = desk.locator(".paths")
    expect(paths).to_be_hidden()
    notes_of(desk).fill("Open <b>the</b> menu\nSort by price")
    expect(own_path(desk)).to_have_text(["Open <b>the</b> menu", "Sort by price"])
    links = paths.locator("a[data-step]")
    expect(links).to_have_count(4)
    links.nth(2).click()
    expect(desk.locator("#stage")).to_have_attribute("data-index", "2")
    expect(notes_of(desk)).to_have_value("Open <b>the</b> menu\nSort by price")
    desk.clock.resume()
    assert Axe().run(desk).response["violations"] == []
    notes_of(desk).fill("")
    expect(paths).to_be_hidden()


def test_submitting_stops_the_timer_and_stores_the_attempt(desk: Page, held: Trajectory) -> None:
    desk.get_by_role("button", name="Start timer").click()
    desk.clock.run_for(4000)
    notes_of(desk).fill("Open the menu\nSort by price")
    desk.locator("[data-count-steps]").click()
    desk.get_by_label("The agent's path compared with yours").select_option("longer")
    desk.locator("#main").focus()
    for key in ("1", "2", "s"):
        desk.keyboard.press(key)
    desk.get_by_label("Reasoning").fill("The steps show it.")
    desk.route("**/submit", lambda route: route.abort(), times=1)
    desk.get_by_role("button", name="Submit and next").click()
    expect(desk.locator("#notices")).to_contain_text("Not submitted yet")
    expect(desk.get_by_role("button", name="Continue timer")).to_be_visible()
    with desk.expect_navigation():
        desk.clock.run_for(2000)
    attempt = Label.objects.get(assignment__trajectory=held).attempt
    assert (attempt.steps, attempt.notes, attempt.path) == (2, "Open the menu\nSort by price", "longer")
    assert attempt.seconds == 4


def test_without_scripts_the_attempt_is_plain_fields_and_the_paths_come_with_the_draft(
    browser: Any, live_server: Any, held: Trajectory
) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    sign_in(page, live_server.url, "alice")
    page.goto(live_server.url + reverse("trajectory", args=[held.pk]))
    expect(page.locator("[data-timer]")).to_be_hidden()
    expect(page.locator(".paths")).to_be_hidden()
    time_of(page).fill("4:30")
    notes_of(page).fill("Open the menu\nSort by price")
    page.get_by_role("button", name=re.compile("Save")).click()
    expect(time_of(page)).to_have_value("4:30")
    expect(own_path(page)).to_have_text(["Open the menu", "Sort by price"])
    context.close()


def test_a_running_timer_is_no_sign_of_work_on_the_desk(desk: Page, held: Trajectory) -> None:
    desk.get_by_role("button", name="Start timer").click()
    for _ in range(5):
        with desk.expect_response("**/draft"):
            desk.clock.run_for(21_000)
    with desk.expect_response("**/activity"):
        desk.get_by_role("button", name="Pause timer").click()
        desk.clock.run_for(21_000)
    seconds = Activity.objects.get(trajectory=held).seconds
    assert 60 <= seconds < 90  # a minute after the first click and some after the last, not two


@pytest.mark.parametrize("version", [1, 2])
def test_the_script_of_the_attempt_comes_when_a_person_is_there_and_only_where_it_is_asked_for(
    page: Page, live_server: Any, held: Trajectory, version: int
) -> None:
    type(held.submission).objects.update(protocol_version=version)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    sign_in(page, live_server.url, "alice")
    open_desk(page, live_server.url, held)
    page.wait_for_load_state("networkidle")
    assert len(asked) <= 15
    assert not [url for url in asked if "attempt.js" in url]
    with page.expect_response("**/search.js"):  # which comes with the same key
        page.keyboard.press("Tab")
    if version == 2:
        expect(page.locator("[data-timer]")).to_be_enabled()
    assert len([url for url in asked if "attempt.js" in url]) == version - 1
