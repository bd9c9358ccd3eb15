"""Steps that the tests in a real browser have in common."""

from __future__ import annotations

import re

from django.contrib.sessions.models import Session
from django.urls import reverse
from playwright.sync_api import Page, expect

from annotation import testing
from annotation.models import Trajectory

SAVED = re.compile(r"saved \d\d:\d\d:\d\d")
# What the browser itself says of a network that was cut, or of an answer that the page deals with.
EXPECTED = re.compile(r"status of 4(00|03|09|29)|ERR_INTERNET_DISCONNECTED|ERR_FAILED|ERR_ABORTED")


def complaints_of(page: Page) -> list[str]:
    """What the browser complains of from now on: errors on its console, and scripts that failed."""
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    return complaints


def sign_in(page: Page, url: str, name: str) -> None:
    page.goto(url + reverse("sign-in"))
    page.get_by_label("Username").fill(name)
    page.get_by_label("Password").fill(testing.PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(re.compile(r"\bwork/\d+"))


def open_desk(page: Page, url: str, trajectory: Trajectory) -> None:
    page.goto(url + reverse("trajectory", args=[trajectory.pk]))
    expect(page.locator("html")).to_have_class(re.compile("scripted"))


def end_session(page: Page) -> None:
    """As after two weeks: the server knows the session no more, and the browser has lost its cookies."""
    page.wait_for_load_state("networkidle")  # an answer on its way would bring a new cookie
    Session.objects.all().delete()
    page.context.clear_cookies()


def sign_in_again(page: Page, password: str = testing.PASSWORD) -> None:
    dialog = page.locator("#signed-out")
    expect(dialog).to_be_visible()
    dialog.get_by_label("Password").fill(password)
    dialog.get_by_role("button", name="Sign in and go on").click()
