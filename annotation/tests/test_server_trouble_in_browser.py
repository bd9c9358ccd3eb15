"""A desk with a faulty server: typed text is not lost, and saving and submitting continue by themselves."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import parse_qs

import pytest
from playwright.sync_api import Page, Response, Route, expect

from annotation.models import Assignment, Draft, Event, Label, Trajectory
from annotation.tests.in_browser import SAVED, TEXT, copies, fill_in, hold, open_desk, reasoning, submit

pytestmark = pytest.mark.browser

PORTAL = "<!doctype html><title>Wi-Fi</title><h1>Accept the terms of this network</h1>"
BAD: dict[str, dict[str, Any]] = {
    "html": {"status": 200, "content_type": "text/html", "body": PORTAL},
    "empty": {"status": 200, "content_type": "application/json", "body": ""},
    "truncated": {"status": 200, "content_type": "application/json", "body": '{"version": 1, "saved_at": "20'},
    "conflict page": {"status": 409, "content_type": "text/html", "body": "<h1>Conflict</h1>"},
    "too large": {"status": 413, "content_type": "text/html", "body": "<h1>413</h1>"},
    "bad gateway": {"status": 502, "content_type": "text/html", "body": "<h1>502</h1>"},
    "unavailable": {"status": 503, "headers": {"Retry-After": "1"}, "body": ""},
    "disk full": {"status": 507, "headers": {"Retry-After": "1"}, "body": ""},
}


def fails_first(page: Page, address: str, answer: dict[str, Any], times: int = 1) -> list[str]:
    """Let the first requests get ``answer``, and the server the others; returns the list of what was posted."""
    posted: list[str] = []

    def handle(route: Route) -> None:
        posted.append(route.request.post_data or "")
        if len(posted) <= times:
            route.fulfill(**answer)
        else:
            route.continue_()

    page.route(address, handle)
    return posted


def sent_reasoning(response: Response) -> str:
    return "".join(parse_qs(response.request.post_data or "").get("reasoning", []))


@pytest.mark.parametrize("kind", BAD)
def test_saving_goes_on_after_any_answer(desk: Page, kind: str) -> None:
    fails_first(desk, "**/draft", BAD[kind])
    reasoning(desk).fill("First words.")
    expect(desk.locator("#saved")).to_have_text(re.compile("not saved"))
    with desk.expect_response(lambda response: response.ok and TEXT in sent_reasoning(response)):
        reasoning(desk).fill(TEXT)
        assert TEXT in desk.evaluate("Object.values(localStorage).join()")

    expect(desk.locator("#saved")).to_have_text(SAVED)
    assert Draft.objects.get().content["reasoning"] == TEXT
    fill_in(desk)
    submit(desk)
    expect(desk.locator(".messages .success")).to_contain_text("submitted")
    assert copies(desk) == 0


def test_save_that_arrived_although_its_answer_was_lost_is_no_conflict(desk: Page) -> None:
    arrived: list[Any] = []

    def handle(route: Route) -> None:
        if arrived:
            route.continue_()
        else:
            arrived.append(route.fetch())
            route.fulfill(**BAD["bad gateway"])

    desk.route("**/draft", handle)
    reasoning(desk).fill("First words.")
    expect(desk.locator("#saved")).to_have_text(re.compile("not saved"))
    reasoning(desk).fill(TEXT)

    expect(desk.locator("#saved")).to_have_text(SAVED)
    assert Draft.objects.get().content["reasoning"] == TEXT
    expect(desk.locator("#notices")).to_have_text("")


@pytest.mark.parametrize("kind", ["html", "truncated", "bad gateway", "unavailable", "disk full"])
def test_submit_goes_out_again_by_itself_after_an_answer_that_is_not_the_last_word(desk: Page, kind: str) -> None:
    posted = fails_first(desk, "**/submit", BAD[kind])
    fill_in(desk)
    submit(desk)
    expect(desk.locator("#notices")).to_contain_text("Not submitted yet:")
    expect(reasoning(desk)).to_have_value(TEXT)

    expect(desk.locator(".messages .success")).to_contain_text("submitted")
    assert Label.objects.get().reasoning == TEXT
    assert len(posted) == 2
    assert copies(desk) == 0


def test_submit_that_is_refused_stays_on_the_page_with_the_reason_and_can_be_pressed_again(desk: Page) -> None:
    fails_first(desk, "**/submit", BAD["too large"])
    fill_in(desk)
    submit(desk)
    expect(desk.locator("#notices")).to_contain_text("Not submitted: the server has refused it (413).")
    submit(desk)

    expect(desk.locator(".messages .success")).to_contain_text("submitted")


def test_submit_without_a_network_goes_out_when_the_network_is_back(desk: Page) -> None:
    fill_in(desk)
    expect(desk.locator("#saved")).to_have_text(SAVED)
    desk.context.set_offline(True)
    submit(desk)

    expect(desk.locator("#notices")).to_contain_text("Not submitted yet: you are offline.")
    expect(reasoning(desk)).to_have_value(TEXT)
    assert not Label.objects.exists()
    desk.context.set_offline(False)
    expect(desk.locator(".messages .success")).to_contain_text("submitted")
    assert Label.objects.get().reasoning == TEXT
    assert copies(desk) == 0


def test_submit_whose_answer_is_lost_makes_one_label(desk: Page, held: Trajectory) -> None:
    arrived: list[int] = []

    def lose(route: Route) -> None:
        arrived.append(route.fetch(max_redirects=0).status)
        route.abort() if len(arrived) == 1 else route.continue_()

    desk.route("**/submit", lose)
    fill_in(desk)
    submit(desk)

    expect(desk.locator(".messages .success").first).to_contain_text("submitted")
    assert arrived[0] == 200
    assert len(arrived) > 1
    assert Label.objects.get().reasoning == TEXT
    assert Event.objects.filter(kind="label_submitted").count() == 1
    assert copies(desk) == 0


# --- a second window ------------------------------------------------------------------------------------------------


def test_second_window_after_a_submit_says_that_the_label_is_in_and_offers_no_hold(
    desk: Page, live_server: Any, held: Trajectory
) -> None:
    second = desk.context.new_page()
    open_desk(second, live_server.url, held)
    fill_in(desk)
    submit(desk)
    expect(desk.locator(".messages .success")).to_contain_text("submitted")
    fill_in(second)
    reasoning(second).fill("Other words.")
    submit(second)

    expect(second.locator("#notices")).to_contain_text("You have already submitted a label for this trajectory")
    expect(second.get_by_role("button", name="Reserve it again")).to_be_hidden()
    second.locator("#notices").get_by_role("link", name="Revise the label").click()
    expect(second.locator("#conflict")).to_contain_text("Other words.")
    second.locator("#conflict").get_by_role("button", name="Keep this version").click()
    expect(reasoning(second)).to_have_value("Other words.")
    assert Label.objects.get().reasoning == TEXT


def test_second_window_with_the_same_label_goes_on_as_the_first(desk: Page, live_server: Any, held: Trajectory) -> None:
    fill_in(desk)
    expect(desk.locator("#saved")).to_have_text(SAVED)
    second = desk.context.new_page()
    open_desk(second, live_server.url, held)
    expect(reasoning(second)).to_have_value(TEXT)
    submit(desk)
    expect(desk.locator(".messages .success")).to_contain_text("submitted")
    submit(second)

    expect(second.locator(".messages .success").first).to_contain_text("submitted")
    assert Label.objects.count() == 1


def test_a_transcript_that_cannot_be_loaded_says_so_and_is_tried_again(desk: Page) -> None:
    desk.route("**/transcript?*", lambda route: route.abort())
    desk.keyboard.press("t")
    expect(desk.locator("#announce")).to_have_text("The server cannot be reached; the transcript is not shown.")
    desk.unroute("**/transcript?*")
    desk.keyboard.press("t")
    expect(desk.get_by_role("region", name="Transcript")).to_be_visible()


def test_keys_for_a_step_that_cannot_be_loaded_write_nothing_and_show_a_message(desk: Page) -> None:
    judged = desk.locator('.point[data-point="1"] :checked')
    last = desk.get_attribute("#stage", "data-last")
    held = hold(desk, f"**/trajectories/*step={last}*")
    with desk.expect_request(f"**/trajectories/*step={last}*"):
        desk.keyboard.press("End")
    desk.keyboard.press("1")
    held[0].abort()

    message = desk.locator("#message")
    expect(message).to_have_text("The step is not shown, so the keys pressed for it did nothing")
    expect(message).to_be_in_viewport(ratio=1)
    expect(judged).to_have_count(0)
    desk.keyboard.press("1")
    expect(judged).to_have_value("met")
    expect(desk.locator('.point[data-point="1"] .at input')).to_have_value("0")


def test_a_trajectory_is_put_off_after_a_save_that_is_on_its_way(desk: Page, held: Trajectory) -> None:
    arrived: list[tuple[Route, Any]] = []  # the server has it; its answer comes later
    desk.route("**/draft", lambda route: arrived.append((route, route.fetch())))
    reasoning(desk).fill("Half a thought")
    while not arrived:
        desk.evaluate("new Promise(requestAnimationFrame)")
    reasoning(desk).fill("Half a thought, and more")
    desk.get_by_text("More", exact=True).click()
    desk.get_by_role("button", name="Put off").click(no_wait_after=True)
    route, answer = arrived[0]
    route.fulfill(response=answer)
    desk.wait_for_url(lambda url: f"/trajectories/{held.pk}" not in url)

    assert Draft.objects.get().content == {"reasoning": "Half a thought, and more"}
    assert Assignment.objects.get(trajectory=held).put_off_until is not None
