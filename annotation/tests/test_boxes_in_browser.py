"""Boxes in a real browser: drawn with the mouse and the keyboard, kept, moved with the proof, and shown to others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from django.urls import reverse
from playwright.sync_api import Page, expect

from annotation import workflow
from annotation.models import Label, Trajectory
from annotation.tests import testing
from annotation.tests.in_browser import hold, open_desk, reasoning, sign_in

pytestmark = pytest.mark.browser


def boxes(page: Page) -> list[Any]:
    return json.loads(page.locator("#f-boxes").input_value() or "[]")


def press(page: Page, *keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)


def at_step(page: Page, index: int) -> None:
    expect(page.locator("#stage")).to_have_attribute("data-index", str(index))


def draw(page: Page, name: str, *keys: str) -> None:
    """Start to draw, and press the keys once the browser has the script."""
    press(page, "Shift+B")
    expect(page.get_by_role("group", name=f"Box for {name}")).to_be_focused()
    press(page, *keys)


def test_a_box_is_drawn_with_the_keyboard_around_the_click_and_binds_the_step(desk: Page) -> None:
    press(desk, "j")
    at_step(desk, 1)
    press(desk, "Shift+B")
    bar = desk.get_by_role("group", name="Box for key point 1")
    expect(bar).to_be_focused()
    press(desk, "ArrowRight", "ArrowDown", "Shift+ArrowRight", "Shift+ArrowUp", "s", "f", "Enter")
    expect(bar).to_have_count(0)

    # The click is at 101, 51: 160 x 80 around it, moved and sized by 10 pixels; letters do nothing meanwhile.
    assert boxes(desk) == [{"key_point": "at least 16 GB", "step": 1, "box": [31, 21, 170, 70]}]
    expect(desk.locator(".point[data-point='1'] .at input")).to_have_value("1")
    expect(desk.locator("[name=verdict]:checked")).to_have_count(0)
    expect(desk.locator(".boxes .own text")).to_have_text("1")
    press(desk, "k")
    at_step(desk, 0)
    expect(desk.locator(".boxes")).to_have_count(0)
    press(desk, "j")
    expect(desk.locator(".boxes .own")).to_have_count(1)


def test_a_box_is_drawn_with_the_mouse_in_pixels_of_the_picture_at_any_zoom(desk: Page) -> None:
    press(desk, "1", "z")  # at 100%
    desk.get_by_role("button", name="draw a box for key point 1").click()
    expect(desk.get_by_role("group", name="Box for key point 1")).to_be_focused()
    frame = desk.locator(".shot svg").bounding_box()
    assert frame is not None
    desk.mouse.move(frame["x"] + 40, frame["y"] + 30)
    desk.mouse.down()
    desk.mouse.move(frame["x"] + 140, frame["y"] + 80)
    desk.mouse.up()
    desk.get_by_role("button", name="Save Enter").click()

    assert boxes(desk) == [{"key_point": "at least 16 GB", "step": 0, "box": [40, 30, 100, 50]}]


def test_escape_leaves_the_box_as_it_was_and_delete_removes_it(desk: Page) -> None:
    press(desk, "1")
    draw(desk, "key point 1", "Escape")
    assert boxes(desk) == []
    draw(desk, "key point 1", "Enter")
    draw(desk, "key point 1", "ArrowRight", "Escape")
    (box,) = boxes(desk)
    draw(desk, "key point 1", "Delete")
    assert boxes(desk) == []
    assert box["step"] == 0


def test_a_box_goes_when_its_proof_moves_to_another_step(desk: Page) -> None:
    press(desk, "1")
    draw(desk, "key point 1", "Enter", "j")
    at_step(desk, 1)
    assert len(boxes(desk)) == 1
    press(desk, "h")

    assert boxes(desk) == []


def test_the_same_key_twice_draws_the_failure(desk: Page) -> None:
    press(desk, "j")
    at_step(desk, 1)
    draw(desk, "key point 1")
    draw(desk, "the failure", "Escape")
    expect(desk.locator("[name=verdict]:checked")).to_have_count(0)
    draw(desk, "key point 1")
    draw(desk, "the failure", "Enter")

    assert [(box["key_point"], box["step"]) for box in boxes(desk)] == [(None, 1)]
    expect(desk.locator("[name=verdict]:checked")).to_have_value("0")
    expect(desk.locator("#f-failure_step")).to_have_value("1")


def test_fields_and_buttons_keep_their_keys_while_a_box_is_drawn(desk: Page) -> None:
    press(desk, "1")
    draw(desk, "key point 1", "ArrowRight")
    reasoning(desk).press_sequentially("All is sown")
    press(desk, "Backspace", "Backspace", "Backspace")
    reasoning(desk).press_sequentially("hown")
    assert reasoning(desk).input_value() == "All is shown"
    bar = desk.get_by_role("group", name="Box for key point 1")
    bar.get_by_role("button", name="Cancel").press("Space")

    expect(bar).to_have_count(0)
    assert boxes(desk) == []


def test_text_that_is_typed_before_the_script_of_the_boxes_arrives_is_not_lost(desk: Page) -> None:
    held = hold(desk, "**/drawing*.js")
    press(desk, "1", "Shift+B")
    while not held:
        desk.evaluate("new Promise(requestAnimationFrame)")
    press(desk, "Enter", "s", "r")
    desk.keyboard.type("The filter is set.")
    held[0].continue_()

    expect(reasoning(desk)).to_have_value("The filter is set.")
    expect(desk.locator("[name=verdict]:checked")).to_have_value("1")
    assert len(boxes(desk)) == 1


def test_a_drawn_box_is_kept_by_whoever_goes_on_without_saving_it(desk: Page, held: Trajectory) -> None:
    press(desk, "2", "1", "f")
    draw(desk, "key point 1", "ArrowRight")
    desk.get_by_role("button", name="draw a box for the failure").click()
    expect(desk.get_by_role("group", name="Box for the failure")).to_be_focused()
    press(desk, "ArrowDown")
    desk.locator("#stage a[rel=next]").click()
    at_step(desk, 1)
    assert [(box["key_point"], box["step"]) for box in boxes(desk)] == [("at least 16 GB", 0), (None, 0)]
    expect(desk.locator("#f-failure_step")).to_have_value("0")
    desk.locator("#f-failure_type").select_option(index=1)
    reasoning(desk).fill("The filter is lost.")
    reasoning(desk).blur()
    draw(desk, "key point 1")
    draw(desk, "the failure", "ArrowDown", "Control+Enter")
    desk.wait_for_url(lambda url: f"/trajectories/{held.pk}" not in url)

    assert [(box["key_point"], box["step"]) for box in Label.objects.get().boxes] == [("at least 16 GB", 0), (None, 1)]


def test_nothing_is_drawn_for_key_points_that_are_not_asked(desk: Page) -> None:
    press(desk, "n", "Shift+B")

    expect(desk.locator("#announce")).to_have_text("Not executable: key points need no finding")
    expect(desk.locator(".drawing-bar")).to_have_count(0)


def test_a_box_survives_a_reload_and_is_submitted(desk: Page, held: Trajectory) -> None:
    press(desk, "1", "Shift+B", "Enter", "2")  # pressed before the script is there: they come after it
    expect(desk.locator(".point[data-point='2'] :checked")).to_have_count(1)
    expect(desk.locator("#saved")).to_contain_text("saved")
    (box,) = boxes(desk)
    desk.reload()
    expect(desk.locator(".boxes .own")).to_have_count(1)
    press(desk, "s")
    reasoning(desk).fill("The filter is set.")
    press(desk, "Control+Enter")
    desk.wait_for_url(lambda url: f"/trajectories/{held.pk}" not in url)

    assert Label.objects.get().boxes == [box]


def test_an_adjudicator_sees_the_boxes_of_the_labels_and_a_maintainer_after_the_freeze(
    page: Page, live_server: Any, transactional_db: Any, tmp_path: Path
) -> None:
    submission = testing.submission(tmp_path / "package", trajectories=1)
    people = testing.cast(submission)
    trajectory = submission.trajectories.get()
    for name, verdict, x in (("alice", 1, 10), ("bob", 1, 20), ("chen", 0, 30)):
        box = testing.box("at least 16 GB", 0, x)
        workflow.claim(people[name], submission)
        workflow.submit(people[name], trajectory, testing.content(trajectory, verdict, boxes=(box,)))
    sign_in(page, live_server.url, "carol")
    page.goto(live_server.url + reverse("adjudication", args=[trajectory.pk]))
    assert page.locator(".boxes").count() == 0
    page.get_by_role("button", name="Open it for adjudication").click()
    expect(page.locator(".boxes text")).to_have_text(["A1 · 1", "A2 · 1", "A3 · 1"])
    assert page.locator(".boxes .over").evaluate_all("all => all.map(one => one.getAttribute('x'))") == [
        "10",
        "20",
        "30",
    ]

    sign_in(page, live_server.url, "mira")
    open_page = live_server.url + reverse("submission-trajectory", args=[trajectory.pk])
    page.goto(open_page)
    assert page.locator("[data-boxes]").count() == 0


def test_boxes_reach_no_other_annotator(page: Page, live_server: Any, held: Trajectory) -> None:
    people = {person.username: person for person in testing.Person.objects.all()}
    box = testing.box("at least 16 GB", 0, 10)
    workflow.submit(people["alice"], held, testing.content(held, 1, boxes=(box,)))
    workflow.claim(people["bob"], held.submission)
    sign_in(page, live_server.url, "bob")
    open_desk(page, live_server.url, held)

    assert page.locator("[data-boxes]").count() == 0
    assert page.locator(".boxes").count() == 0
