"""Steps that the tests in a real browser have in common."""

from __future__ import annotations

import re
from typing import Any

from django.conf import settings
from django.contrib.sessions.models import Session
from django.test import Client
from django.urls import reverse
from playwright.sync_api import Page, Route, expect

from annotation.models import Person, Trajectory
from annotation.tests import testing

SAVED = re.compile(r"saved \d\d:\d\d:\d\d")
# What the browser itself says of a network that was cut, or of an answer that the page deals with.
EXPECTED = re.compile(r"status of (4(00|03|09|13|29)|50[237])|ERR_INTERNET_DISCONNECTED|ERR_FAILED|ERR_ABORTED")
TEXT = "The list is sorted by price, and the filter is set."
# Tells a broken picture from one that is drawn: the large one is an SVG image, whose copy has a size of its own.
NATURAL_WIDTH = """async (shown) => {
    await shown.decode();
    const copy = Object.assign(new Image(), { src: shown.href.baseVal });
    await copy.decode();
    return copy.naturalWidth;
}"""
# For every thumbnail whether the sheet that it is cut out of reaches as far as its part.
ON_THEIR_SHEETS = """(shown) => Promise.all(shown.map(async (svg) => {
    const sheet = Object.assign(new Image(), { src: svg.querySelector("image").href.baseVal });
    await sheet.decode();
    const { y, height } = svg.viewBox.baseVal;
    return y + height <= sheet.naturalHeight;
}))"""
VIOLATIONS = """document.addEventListener("securitypolicyviolation", (event) => {
    console.error(`policy violated: ${event.violatedDirective} ${event.blockedURI}`);
});"""


def complaints_of(page: Page) -> list[str]:
    """What the browser complains of from now on: errors on its console, and scripts that failed."""
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    return complaints


def hold(page: Page, address: str) -> list[Route]:
    """Hold what the page requests from ``address``; return the list of what is held."""
    held: list[Route] = []

    def keep(route: Route) -> None:
        held.append(route)

    page.route(address, keep)
    return held


def sign_in(page: Page, url: str, name: str) -> None:
    """Give the browser a session of ``name``. It opens no page, which saves a second in each of 150 tests."""
    client = Client()
    client.force_login(Person.objects.get(username=name))
    value = client.cookies[settings.SESSION_COOKIE_NAME].value
    page.context.add_cookies([{"name": settings.SESSION_COOKIE_NAME, "value": value, "url": url}])


def sign_in_by_form(page: Page, url: str, name: str) -> None:
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
    """By the dialog, which is opened by the button of the bar, and by nothing else."""
    dialog = page.locator("#signed-out")
    if not dialog.is_visible():
        page.locator("#session-ended").get_by_role("button", name="Sign in").click()
    dialog.get_by_label("Password").fill(password)
    dialog.get_by_role("button", name="Sign in and continue").click()


def reasoning(page: Page) -> Any:
    return page.locator("#label-form [name=reasoning]")


def fill_in(page: Page) -> None:
    """A complete label: not executable, with every key point unclear."""
    for point in page.locator("#label-form .point").all():
        point.get_by_role("radio", name="unclear").check(force=True)
    page.locator("[name=verdict][value='2']").check(force=True)
    page.locator("[name=cause]").select_option("blocked")
    reasoning(page).fill(TEXT)


def submit(page: Page) -> None:
    page.locator("#label-form [data-submit]").click()


def copies(page: Page) -> int:
    return int(page.evaluate("Object.keys(localStorage).length"))


def alice() -> Person:
    return Person.objects.get(username="alice")
