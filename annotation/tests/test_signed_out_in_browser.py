"""A session that ends during work: a bar appears, the focus does not move, and no typed text is lost."""

from __future__ import annotations

from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from annotation.models import Draft, Label
from annotation.tests.in_browser import (
    SAVED,
    TEXT,
    alice,
    end_session,
    fill_in,
    reasoning,
    sign_in_again,
    sign_in_by_form,
    submit,
)

pytestmark = pytest.mark.browser


def bar(page: Page) -> Any:
    return page.locator("#session-ended")


def dialog(page: Page) -> Any:
    return page.locator("#signed-out")


def test_person_types_through_the_end_of_the_session_and_loses_no_character(desk: Page) -> None:
    """One key at a time, until the bar is there and for a whole sentence after it."""
    reasoning(desk).focus()
    desk.keyboard.type("Before the end. ")
    end_session(desk)
    text = "Before the end. "
    while not bar(desk).is_visible():
        assert len(text) < 5000
        desk.keyboard.type("x")
        text += "x"
    desk.keyboard.type(TEXT)
    text += TEXT

    expect(reasoning(desk)).to_have_value(text)
    expect(reasoning(desk)).to_be_focused()
    expect(dialog(desk)).to_be_hidden()
    expect(desk.locator("#saved")).to_have_text("not saved: signed out")
    assert text in desk.evaluate("Object.values(localStorage).join()")
    sign_in_again(desk)
    expect(desk.locator("#saved")).to_have_text(SAVED)
    expect(bar(desk)).to_be_hidden()
    expect(reasoning(desk)).to_be_focused()
    desk.keyboard.type(" The end.")
    expect(reasoning(desk)).to_have_value(text + " The end.")


def test_keys_of_the_desk_stay_keys_of_the_desk_when_the_session_has_ended(desk: Page) -> None:
    end_session(desk)
    desk.keyboard.press("End")
    expect(bar(desk)).to_be_visible()
    desk.keyboard.type("f")

    expect(dialog(desk)).to_be_hidden()
    expect(desk.locator("[name=verdict]:checked")).to_have_value("0")
    sign_in_again(desk)
    expect(dialog(desk)).to_be_hidden()
    desk.keyboard.press("End")
    expect(desk.locator("#stage")).to_have_attribute("data-index", "3")


def test_signing_in_again_in_place_saves_what_was_typed(desk: Page) -> None:
    end_session(desk)
    reasoning(desk).fill(TEXT)
    sign_in_again(desk, "a wrong password")
    expect(dialog(desk).get_by_role("alert")).to_have_text("Wrong password.")
    expect(desk.locator("#saved")).to_have_text("not saved: signed out")
    sign_in_again(desk)

    expect(dialog(desk)).to_be_hidden()
    expect(desk.locator("#saved")).to_have_text(SAVED)
    expect(reasoning(desk)).to_have_value(TEXT)
    assert Draft.objects.get().content["reasoning"] == TEXT


@pytest.mark.parametrize("press", [submit, lambda desk: desk.keyboard.press("Control+Enter")], ids=["click", "key"])
def test_submit_after_the_session_ended_goes_out_by_itself_once_signed_in(desk: Page, press: Any) -> None:
    fill_in(desk)
    expect(desk.locator("#saved")).to_have_text(SAVED)
    end_session(desk)
    press(desk)
    expect(desk.locator("#notices")).to_contain_text("Not submitted yet: you are signed out.")
    expect(dialog(desk)).to_be_hidden()
    sign_in_again(desk)

    expect(desk.locator(".messages .success")).to_contain_text("submitted")
    assert Label.objects.get().reasoning == TEXT


def test_submit_after_the_session_ended_does_not_go_out_when_the_form_was_changed_since(desk: Page) -> None:
    fill_in(desk)
    expect(desk.locator("#saved")).to_have_text(SAVED)
    end_session(desk)
    submit(desk)
    expect(desk.locator("#notices")).to_contain_text("Not submitted yet: you are signed out.")
    reasoning(desk).press_sequentially("No: ")
    expect(desk.locator("#notices")).to_contain_text("Not submitted: the form has changed.")
    sign_in_again(desk)

    expect(desk.locator("#saved")).to_have_text(SAVED)
    assert not Label.objects.exists()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1440])
def test_bar_and_dialog_of_the_ended_session_have_no_barrier(desk: Page, scheme: Any, width: int) -> None:
    desk.emulate_media(color_scheme=scheme)
    desk.set_viewport_size({"width": width, "height": 900})
    end_session(desk)
    reasoning(desk).fill(TEXT)
    expect(bar(desk)).to_be_visible()
    assert [found["id"] for found in Axe().run(desk).response["violations"]] == []
    if width == 1440:
        assert desk.locator("#label-form [data-submit]").bounding_box()["y"] < 880
    bar(desk).get_by_role("button").click()
    expect(desk.get_by_label("Password")).to_be_focused()
    assert [found["id"] for found in Axe().run(desk, "#signed-out").response["violations"]] == []


def test_person_who_does_not_sign_in_now_can_do_it_later(desk: Page) -> None:
    end_session(desk)
    reasoning(desk).fill(TEXT)
    bar(desk).get_by_role("button", name="Sign in").click()
    dialog(desk).get_by_role("button", name="Not now").click()
    expect(desk.locator("#saved")).to_have_text("not saved: signed out")
    expect(reasoning(desk)).to_have_value(TEXT)
    expect(bar(desk)).to_be_visible()
    sign_in_again(desk)

    expect(desk.locator("#saved")).to_have_text(SAVED)
    assert Draft.objects.get().content["reasoning"] == TEXT


def test_signing_in_in_another_window_is_enough(desk: Page, live_server: Any) -> None:
    end_session(desk)
    reasoning(desk).fill(TEXT)
    expect(bar(desk)).to_be_visible()
    other = desk.context.new_page()
    sign_in_by_form(other, live_server.url, "alice")
    other.close()

    expect(desk.locator("#saved")).to_have_text(SAVED)
    expect(bar(desk)).to_be_hidden()
    assert Draft.objects.get().content["reasoning"] == TEXT


def test_typed_text_is_never_saved_for_another_person(desk: Page, live_server: Any) -> None:
    end_session(desk)
    other = desk.context.new_page()
    sign_in_by_form(other, live_server.url, "bob")
    other.close()
    reasoning(desk).fill(TEXT)
    bar(desk).get_by_role("button", name="Sign in").click()
    expect(dialog(desk).get_by_role("alert")).to_contain_text("Another person has signed in")
    assert not Draft.objects.exists()
    sign_in_again(desk)

    expect(desk.locator("#saved")).to_have_text(SAVED)
    assert Draft.objects.get().author == alice()


def test_lock_out_is_shown_in_the_dialog(desk: Page, settings: Any) -> None:
    settings.AXES_FAILURE_LIMIT = 1
    end_session(desk)
    reasoning(desk).fill(TEXT)
    sign_in_again(desk, "a wrong password")

    expect(dialog(desk).get_by_role("alert")).to_contain_text("Too many attempts.")
    expect(reasoning(desk)).to_have_value(TEXT)
