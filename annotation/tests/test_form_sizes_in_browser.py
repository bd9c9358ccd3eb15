"""The label form in a real browser at every size: what decides is in sight, with many key points, too."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from annotation.models import KeyPoint, Trajectory
from annotation.tests.in_browser import open_desk, sign_in
from annotation.tests.test_form_in_browser import LONG, desk, held, point, pressed, said

__all__ = ["desk", "held"]  # fixtures
pytestmark = pytest.mark.browser


SIZES = ((1440, 900), (1280, 720), (1024, 1366), (390, 844), (2560, 1440))


@pytest.fixture
def many_points(held: Trajectory) -> Any:
    """Give the task as many key points as a test asks for."""

    def give(count: int) -> None:
        KeyPoint.objects.filter(task=held.task).delete()
        KeyPoint.objects.bulk_create(
            KeyPoint(
                task=held.task,
                position=n,
                text=f"{LONG} {n}" if n % 5 == 2 else f"Point {n}",
                accepted_at=timezone.now(),
            )
            for n in range(count)
        )

    return give


@pytest.mark.parametrize("count", [3, 5, 14, 25])
def test_verdict_reasoning_and_submit_are_in_view_at_every_size(
    page: Page, live_server: Any, held: Trajectory, many_points: Any, count: int
) -> None:
    many_points(count)
    sign_in(page, live_server.url, "alice")
    open_desk(page, live_server.url, held)
    for key in ("1", "Shift+Digit2", "3"):
        pressed(page, key)
    for width, height in SIZES:
        page.set_viewport_size({"width": width, "height": height})
        for verdict in ("f", "s", "n"):
            pressed(page, verdict)
            where = f"{width}x{height}, {count} key points, {verdict}"
            boxes = {
                part: page.locator(part).bounding_box()
                for part in (".head", ".stage", ".verdicts", "#f-reasoning", ".go", "[data-submit]")
            }
            for part, box in boxes.items():
                assert box["y"] >= 0, (where, part)
                if part != ".stage" or width > 500:
                    assert box["y"] + box["height"] <= height + 0.5, (where, part)
                assert box["x"] + box["width"] <= width + 0.5, (where, part)
            assert boxes["#f-reasoning"]["height"] >= 92, where
            under = ["verdicts", "#f-reasoning", ".go"]
            order = [boxes[".verdicts"], boxes["#f-reasoning"], boxes[".go"]]
            for above, below, name in zip(order, order[1:], under[1:], strict=False):
                assert above["y"] + above["height"] <= below["y"] + 0.5, (where, name)
            cut = "task => [task.scrollHeight - task.clientHeight, task.scrollWidth - task.clientWidth]"
            task = page.locator(".task").evaluate(cut)
            assert task == [0, 0], where
            scrolls = page.evaluate("[document.documentElement.scrollWidth, document.documentElement.scrollHeight]")
            assert scrolls == [width, height], where
            if verdict != "n":
                current = page.locator(".point.current").bounding_box()
                top = page.locator(".point-list").bounding_box()
                assert current["y"] >= top["y"] - 0.5, where
                assert current["y"] + current["height"] <= top["y"] + top["height"] + 0.5, where


def test_a_long_key_point_takes_one_line_once_it_is_judged(desk: Page) -> None:
    whole = point(desk, 3).locator(".text").bounding_box()["height"]
    pressed(desk, "3", ".")
    expect(point(desk, 3)).not_to_have_class(re.compile("current"))

    assert point(desk, 3).locator(".text").bounding_box()["height"] < whole
    expect(point(desk, 3).locator(".result")).to_have_text(re.compile(r"met\s+step 0"))
    pressed(desk, "3")
    assert point(desk, 3).locator(".text").bounding_box()["height"] >= whole


def test_on_a_large_screen_the_picture_grows_and_hardly_the_form(desk: Page) -> None:
    before = desk.locator("#label-form").bounding_box()["width"]
    desk.set_viewport_size({"width": 3840, "height": 2160})

    assert desk.locator("#label-form").bounding_box()["width"] < 1.5 * before
    assert desk.locator(".shot").bounding_box()["width"] > 2500


def test_a_tablet_has_targets_that_a_finger_hits(
    browser: Any, browser_context_args: dict[str, Any], live_server: Any, held: Trajectory
) -> None:
    size = {"width": 820, "height": 1180}
    context = browser.new_context(**{**browser_context_args, "viewport": size, "has_touch": True})
    page = context.new_page()
    sign_in(page, live_server.url, "alice")
    open_desk(page, live_server.url, held)
    page.locator(".option.v0").tap()
    small = page.locator("#label-form").evaluate(
        """form => [...form.querySelectorAll("button, .seg, .option, select, textarea, .at input, summary")]
            .filter(one => one.checkVisibility()).map(one => [one.className || one.id, one.getBoundingClientRect()])
            .filter(([, box]) => box.width < 24 || box.height < 24).map(([name]) => name)"""
    )
    assert small == []
    point(page, 1).locator(".seg.met").tap()
    assert said(page, 1) == ("met", "0")
    assert page.evaluate("document.documentElement.scrollWidth") == 820
    context.close()
