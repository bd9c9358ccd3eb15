"""Marks on steps in a real browser: keys, buttons, strip and transcript; without a script a field of the form."""

from __future__ import annotations

import re
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.urls import reverse
from playwright.sync_api import Browser, Page, expect

from annotation import workflow
from annotation.models import Label, Submission, Trajectory
from annotation.records import StepMark
from annotation.tests import testing
from annotation.tests.in_browser import SAVED, fill_in, open_desk, sign_in, submit

pytestmark = pytest.mark.browser


@pytest.fixture
def held(held: Trajectory) -> Trajectory:
    Submission.objects.update(process_labels=True)
    held.refresh_from_db()
    return held


@pytest.fixture
def marking(desk: Page) -> Page:
    expect(button(desk, "wrong")).to_be_visible()
    return desk


def button(page: Page, mark: str) -> Any:
    return page.get_by_role("button", name=re.compile(f"^{mark}"))


def stored(page: Page) -> str:
    return page.locator("#f-process").input_value()


def at_step(page: Page, index: int) -> None:
    expect(page.locator("#stage")).to_have_attribute("data-index", str(index))


def test_keys_mark_a_step_change_the_mark_and_take_it_away(marking: Page) -> None:
    marking.keyboard.press("w")
    assert stored(marking) == "0 wrong"
    expect(marking.locator("#announce")).to_have_text("Step 0: wrong")
    expect(button(marking, "wrong")).to_have_attribute("aria-pressed", "true")
    marking.keyboard.press("y")
    assert stored(marking) == "0 side effect"
    expect(button(marking, "wrong")).to_have_attribute("aria-pressed", "false")
    marking.keyboard.press("y")
    assert stored(marking) == ""
    expect(marking.locator("#announce")).to_have_text("Step 0: right")
    marking.keyboard.press("r")
    marking.keyboard.type("wiy")
    assert stored(marking) == ""


def test_marks_are_on_their_steps_in_the_strip_the_transcript_and_the_form(marking: Page) -> None:
    marking.keyboard.press("j")
    at_step(marking, 1)
    marking.keyboard.press("i")
    marking.keyboard.press("j")
    at_step(marking, 2)
    expect(button(marking, "unnecessary")).to_have_attribute("aria-pressed", "false")
    marking.keyboard.press("y")
    expect(marking.locator("#strip .thumb[data-step='1'] .marked")).to_have_text("– unnecessary")
    expect(marking.locator("#strip .thumb[data-step='2'] .marked")).to_have_text("! side effect")
    marking.keyboard.press("t")
    expect(marking.locator("#transcript li[data-step='1'] .marked")).to_have_text("– unnecessary")
    marking.keyboard.press("t")
    expect(marking.locator("[data-marked]")).to_have_text("Not rightstep 1 unnecessarystep 2 side effect")
    marking.get_by_role("link", name="step 1 unnecessary").click()
    at_step(marking, 1)
    expect(button(marking, "unnecessary")).to_have_attribute("aria-pressed", "true")


def test_a_button_marks_the_step_and_the_focus_stays_in_the_text(marking: Page) -> None:
    marking.keyboard.press("r")
    marking.keyboard.type("It is ")
    button(marking, "wrong").click()
    marking.keyboard.type("sorted.")

    assert stored(marking) == "0 wrong"
    expect(marking.locator("#f-reasoning")).to_have_value("It is sorted.")


def test_marks_survive_a_reload_are_submitted_and_change_with_a_revision(marking: Page, held: Trajectory) -> None:
    marking.keyboard.press("w")
    expect(marking.locator("#saved")).to_have_text(SAVED)
    marking.reload()
    expect(button(marking, "wrong")).to_have_attribute("aria-pressed", "true")
    fill_in(marking)
    submit(marking)
    marking.wait_for_url(lambda url: f"/trajectories/{held.pk}" not in url)
    assert Label.objects.get().process == [{"step": 0, "mark": "wrong"}]

    marking.keyboard.press("u")
    expect(button(marking, "wrong")).to_have_attribute("aria-pressed", "true")
    marking.keyboard.press("w")
    submit(marking)
    marking.wait_for_url(lambda url: "revise" not in url)
    assert Label.objects.latest("revision").process == []


def test_a_label_without_marks_takes_no_key(marking: Page, held: Trajectory) -> None:
    fill_in(marking)
    submit(marking)
    marking.wait_for_url(lambda url: f"/trajectories/{held.pk}" not in url)

    assert Label.objects.get().process == []


def test_the_keys_are_listed_and_nothing_is_wrong_for_axe(marking: Page) -> None:
    marking.keyboard.press("w")
    found = Axe().run(marking)
    assert found.violations_count == 0, found.generate_report()
    marking.keyboard.press("?")
    row = marking.locator("#keys tr", has_text="mark this step as wrong, unnecessary or a side effect")
    expect(row.locator("kbd")).to_have_text(["w", "i", "y"])


def test_no_script_no_key_and_no_button_where_the_submission_does_not_ask(
    page: Page, live_server: Any, held: Trajectory
) -> None:
    Submission.objects.update(process_labels=False)
    fetched: list[str] = []
    page.on("request", lambda request: fetched.append(request.url))
    sign_in(page, live_server.url, "alice")
    open_desk(page, live_server.url, held)
    page.keyboard.press("w")
    page.keyboard.press("?")

    expect(page.locator("#keys")).to_be_visible()
    expect(page.locator("#keys")).not_to_contain_text("side effect")
    expect(page.locator(".process, #f-process, .marked")).to_have_count(0)
    assert any("desk" in url for url in fetched)
    assert not any("/process" in url for url in fetched)


def test_without_a_script_the_form_has_a_field(browser: Browser, live_server: Any, held: Trajectory) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    sign_in(page, live_server.url, "alice")
    page.goto(live_server.url + reverse("trajectory", args=[held.pk]))
    page.get_by_label("Steps that were not right").fill("1 side effect")
    page.get_by_role("button", name="Save the draft").click()

    expect(page.get_by_label("Steps that were not right")).to_have_value("1 side effect")
    context.close()


def test_an_adjudicator_starts_with_the_majority_and_copies_the_marks_of_a_label(
    page: Page, live_server: Any, held: Trajectory
) -> None:
    people = {person.username: person for person in testing.Person.objects.all()}
    row = held.submission.trajectories.get(position=1)
    given = {"alice": (1, "wrong"), "bob": (0, "wrong"), "chen": (0, "unnecessary")}
    for name, (verdict, mark) in given.items():
        workflow.claim_this(people[name], row)
        workflow.submit(people[name], row, testing.content(row, verdict, process=(StepMark(1, mark),)))
    workflow.open_adjudication(people["carol"], row)
    sign_in(page, live_server.url, "carol")
    page.goto(live_server.url + reverse("adjudication", args=[row.pk]))
    expect(page.locator("#strip .thumb[data-step='1'] .marked")).to_have_text("✕ wrong")
    expect(page.get_by_role("row", name=re.compile("^Step 1"))).to_contain_text("unnecessary step 1 (differs)")
    page.get_by_role("button", name="Copy all of A3").click()

    expect(page.locator("#strip .thumb[data-step='1'] .marked")).to_have_text("– unnecessary")
    expect(page.locator("#f-process")).to_have_value("1 unnecessary")


def test_an_adjudicator_copies_the_mark_of_one_step(page: Page, live_server: Any, held: Trajectory) -> None:
    people = {person.username: person for person in testing.Person.objects.all()}
    row = held.submission.trajectories.get(position=1)
    both = StepMark(1, "unnecessary")
    given = {
        "alice": (1, (StepMark(0, "wrong"), both)),
        "bob": (0, (StepMark(0, "side_effect"), both)),
        "chen": (0, ()),
    }
    for name, (verdict, marks) in given.items():
        workflow.claim_this(people[name], row)
        workflow.submit(people[name], row, testing.content(row, verdict, process=marks))
    workflow.open_adjudication(people["carol"], row)
    sign_in(page, live_server.url, "carol")
    page.goto(live_server.url + reverse("adjudication", args=[row.pk]))
    expect(page.locator("#label-form")).to_contain_text("Annotators differ at step 0. Mark it, or leave it right.")
    page.get_by_role("button", name="Copy Step 0 of A2").click()
    expect(page.locator("#f-process")).to_have_value("0 side effect, 1 unnecessary")
    expect(page.locator("#strip .thumb[data-step='0'] .marked")).to_have_text("! side effect")
    page.get_by_role("button", name="Copy Step 0 of A3").click()
    expect(page.locator("#f-process")).to_have_value("1 unnecessary")
    page.locator("#taken").get_by_role("button", name="Undo").click()

    expect(page.locator("#f-process")).to_have_value("0 side effect, 1 unnecessary")
    found = Axe().run(page)
    assert found.violations_count == 0, found.generate_report()
