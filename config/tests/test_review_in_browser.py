"""A review of twenty recorded steps, as an annotator does it: by keys alone, by mouse alone, and through every mishap.

The steps are those of the demo's recordings, an order and a booking one after the other, with their own screenshots.
"""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from annotation import demo, ingest, workflow
from annotation.models import Assignment, Draft, Label, Trajectory
from annotation.tests import testing
from annotation.tests.in_browser import (
    EXPECTED,
    SAVED,
    complaints_of,
    end_session,
    open_desk,
    sign_in,
    sign_in_again,
)

pytestmark = pytest.mark.browser

STEPS = 20
RECORDED = Path(demo.__file__).parent / "data" / "submissions" / "careful"
ORDER, BOOKING = "de4e8ea4ea153ab0aab5d9f7c0caa70e", "f8c9abdaf569ccef6e5ffd53e773abb4"
PROOFS = {2: "1", 10: "2", 19: "3"}  # the step that proves a key point, and the key that binds it
REASONING = "The keyboard is ordered by invoice at step 10, and the booking repeats every detail at step 19."
# What scrolls outside of the picture; the strip follows the step by itself, without a hand.
WATCH = """() => {
    window.scrolled = [];
    document.addEventListener("scroll", ({ target }) => {
        if (!target.closest?.(".shot, #strip")) window.scrolled.push(target.id || target.className || target.nodeName);
    }, true);
}"""
IN_VIEW = "(part) => { const b = part.getBoundingClientRect(); return b.top >= 0 && b.bottom <= innerHeight + 1; }"
CUT = "(part) => part.scrollHeight > part.clientHeight + 1"


def recorded_steps() -> list[tuple[dict[str, Any], bytes]]:
    """Twenty steps with their pictures; the last one is the booking's last."""
    found = []
    for task_id, count in ((ORDER, 11), (BOOKING, 11)):
        folder = RECORDED / task_id
        entries = json.loads((folder / "result.json").read_text(encoding="utf-8"))["action_history"][:count]
        found += [(entry, (folder / "trajectory" / entry["screenshot"]).read_bytes()) for entry in entries]
    return found[: STEPS - 1] + found[-1:]


@pytest.fixture
def held(transactional_db: Any, tmp_path: Path) -> Trajectory:
    """The first of two trajectories of twenty recorded steps, which alice is working on."""
    points = ["the keyboard is ordered once", "payment by invoice", "the room is booked with breakfast"]
    for number in range(2):
        result, images = testing.result_v2(number, STEPS), {}
        for index, (entry, picture) in enumerate(recorded_steps()):
            name = f"{index:04d}.webp"
            result["action_history"][index] = entry | {"step": index, "screenshot": name}
            images[name] = picture
        result["agent_final_answer"] = entry["action"].partition("ANSWER: ")[2]
        testing.write_trajectory(tmp_path / "package", result, images)
    report, made = ingest.import_submission(
        tmp_path / "package", benchmark=testing.benchmark(2, key_points=points), agent_name="Recorded"
    )
    assert made is not None, report.as_json()
    return workflow.claim(testing.cast(made)["alice"], made).trajectory


@pytest.fixture
def desk(page: Page, live_server: Any, held: Trajectory) -> Page:
    complaints = complaints_of(page)
    sign_in(page, live_server.url, "alice")
    open_desk(page, live_server.url, held)
    yield page
    page.goto("about:blank")
    assert [text for text in complaints if not EXPECTED.search(text)] == []


def at_step(page: Page, index: int) -> None:
    expect(page.locator("#stage")).to_have_attribute("data-index", str(index))


def the_label(held: Trajectory) -> Label:
    label = Label.objects.get(assignment__trajectory=held)
    assert label.verdict == 1
    assert [(f.finding, f.step) for f in label.findings.all()] == [("met", step) for step in PROOFS]
    assert label.steps_seen == list(range(STEPS))
    assert label.active_seconds is not None
    return label


def test_twenty_steps_by_keys_alone_take_twenty_five_presses_and_no_scrolling(desk: Page, held: Trajectory) -> None:
    desk.evaluate(WATCH)
    presses: list[str] = []

    def press(key: str) -> None:
        desk.keyboard.press(key)
        presses.append(key)

    for index in range(1, STEPS):
        press("j")
        at_step(desk, index)
        # Every thought is wholly in view, and so is the form that it is judged in.
        assert not desk.locator("#step").evaluate(CUT), f"the text of step {index} is cut"
        if index in PROOFS:
            press(PROOFS[index])
    press("s")
    press("r")
    desk.keyboard.type(REASONING)
    for part in ("[name=verdict][value='1']", "#f-reasoning", "[data-submit]", ".task", "#strip"):
        assert desk.locator(part).first.evaluate(IN_VIEW), f"{part} is not in view"
    expect(desk.locator(".complete")).to_be_visible()
    scrolled = desk.evaluate("window.scrolled")
    press("Control+Enter")
    expect(desk.locator(".messages .success")).to_contain_text("submitted")

    assert len(presses) <= 25, presses
    assert scrolled == []
    assert the_label(held).reasoning == REASONING
    assert f"/trajectories/{held.pk}" not in desk.url
    expect(desk.locator("#label-form")).to_be_visible()  # the next one is there at once


def test_twenty_steps_by_mouse_alone(desk: Page, held: Trajectory) -> None:
    points = desk.locator("#label-form .point")
    for index in range(1, STEPS):
        desk.locator("#stage a[rel=next]").click()
        at_step(desk, index)
        if index in PROOFS:
            points.nth(int(PROOFS[index]) - 1).locator(".seg.met").click()
    desk.locator("label.option.v1").click()
    desk.locator("#f-reasoning").click()
    desk.keyboard.insert_text(REASONING)
    expect(desk.locator(".complete")).to_be_visible()
    desk.locator("[data-submit]").click()
    expect(desk.locator(".messages .success")).to_contain_text("submitted")

    assert the_label(held).reasoning == REASONING


def test_what_was_typed_is_there_after_a_reload_a_dead_network_an_ended_session_two_windows_and_a_lost_hold(
    desk: Page, live_server: Any, held: Trajectory
) -> None:
    text = desk.locator("#f-reasoning")
    said: list[str] = []

    def write(words: str) -> None:
        said.append(words)
        text.focus()
        desk.keyboard.press("Control+End")
        desk.keyboard.insert_text(f"{words} ")
        text.blur()

    def still_there() -> None:
        expect(text).to_have_value("".join(f"{words} " for words in said))

    def walk(first: int, last: int) -> None:
        for index in range(first, last + 1):
            desk.keyboard.press("j")
            at_step(desk, index)
            if index in PROOFS:
                desk.keyboard.press(PROOFS[index])

    walk(1, 5)
    desk.wait_for_url("**step=5*")
    write("Before the reload.")
    desk.reload()  # at once, before the second in which it is saved
    still_there()
    expect(desk.locator("#saved")).to_have_class("chip ok")  # by this page, or on the way out of the first one

    walk(6, 9)
    desk.wait_for_load_state("networkidle")
    desk.context.set_offline(True)
    write("Without a network.")
    expect(desk.locator("#saved")).to_have_text("not saved: offline")
    desk.context.set_offline(False)
    expect(desk.locator("#saved")).to_have_text(SAVED)
    still_there()

    walk(10, 13)
    end_session(desk)
    write("After the session.")
    expect(desk.locator("#saved")).to_have_text("not saved: signed out")  # the bar may be there before, for a picture
    sign_in_again(desk)
    expect(desk.locator("#saved")).to_have_text(SAVED)
    still_there()

    second = desk.context.new_page()
    open_desk(second, live_server.url, held)
    second.locator("#f-reasoning").fill("Another window.")
    expect(second.locator("#saved")).to_have_text(SAVED)
    write("In two windows.")
    desk.get_by_role("button", name="Compare both").click()
    dialog = desk.locator("#conflict")
    expect(dialog).to_contain_text("Another window.")
    expect(dialog).to_contain_text("In two windows.")
    dialog.get_by_role("button", name="Keep this version").click()
    expect(desk.locator("#saved")).to_have_text(SAVED)
    second.close()
    still_there()

    walk(14, STEPS - 1)
    Assignment.objects.update(lease_expires_at=timezone.now() - timedelta(seconds=1))
    workflow.return_expired_leases(held.submission)
    write("Without a hold.")
    expect(desk.locator("#saved")).to_have_text(SAVED)
    still_there()
    desk.keyboard.press("s")
    desk.keyboard.press("Control+Enter")
    expect(desk.locator(".messages .success")).to_contain_text("submitted")

    assert the_label(held).reasoning == " ".join(said)
    assert not Draft.objects.filter(trajectory=held).exists()
