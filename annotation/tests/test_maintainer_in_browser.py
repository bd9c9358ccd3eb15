"""The maintainer's pages in a real browser: copying a link, and what axe finds in light and dark."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.urls import reverse
from playwright.sync_api import Page, expect

from annotation import workflow
from annotation.models import Report, Submission
from annotation.tests import testing
from annotation.tests.in_browser import sign_in

pytestmark = pytest.mark.browser


@pytest.fixture
def watched(transactional_db: Any, tmp_path: Path) -> Submission:
    """Something of everything that the pages can show: a label, somebody at work, a report, somebody who left."""
    submission = testing.submission(tmp_path / "package", trajectories=2)
    people = testing.cast(submission)
    testing.label_all(people, submission, {"task_0000": [1, 1, 0]})
    trajectory = submission.trajectories.order_by("position")[0]
    workflow.record_activity(people["alice"], trajectory, 5, [0])
    workflow.report(people["carol"], trajectory, Report.Kind.GUIDELINE_UNCLEAR, "Two readings are possible.")
    workflow.deactivate_member(people["mira"], submission, people["chen"])
    return submission


@pytest.fixture
def mira(page: Page, live_server: Any, watched: Submission) -> Page:
    sign_in(page, live_server.url, "mira")
    return page


def test_the_link_of_an_invitation_is_copied_by_its_button(mira: Page, live_server: Any, watched: Submission) -> None:
    mira.context.grant_permissions(["clipboard-read", "clipboard-write"])
    mira.goto(live_server.url + reverse("people", args=[watched.pk]))
    mira.get_by_label("User name").fill("erin")
    mira.get_by_role("button", name="Invite").click()
    mira.get_by_role("button", name="Copy").click()

    expect(mira.get_by_text("Copied.")).to_be_visible()
    assert re.search(r"/join/\w+/[\w-]+$", mira.evaluate("navigator.clipboard.readText()"))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_on_the_maintainers_pages(
    mira: Page, live_server: Any, watched: Submission, scheme: Any
) -> None:
    mira.emulate_media(color_scheme=scheme)
    for name in ("submission", "submission-tasks", "people", "quality", "reports", "submission-settings", "events"):
        mira.goto(live_server.url + reverse(name, args=[watched.pk]))
        mira.wait_for_load_state("networkidle")
        found = Axe().run(mira)
        assert found.violations_count == 0, f"{name} {scheme}: {found.generate_report()}"


def test_no_page_is_wider_than_a_tablet(mira: Page, live_server: Any, watched: Submission) -> None:
    mira.set_viewport_size({"width": 820, "height": 1180})
    for name in ("submission", "submission-tasks", "people", "quality", "reports", "submission-settings"):
        mira.goto(live_server.url + reverse(name, args=[watched.pk]))
        assert mira.evaluate("document.documentElement.scrollWidth <= innerWidth"), name


@pytest.mark.parametrize("name", ["submission", "submission-tasks", "people", "events", "agreement", "judge-runs"])
def test_header_and_tabs_take_at_most_a_fifth_of_a_phone(
    mira: Page, live_server: Any, watched: Submission, name: str
) -> None:
    mira.set_viewport_size({"width": 390, "height": 844})
    mira.goto(live_server.url + reverse(name, args=[watched.pk]))
    last = mira.locator(".tabs, .subtabs").last.bounding_box()

    assert last is not None
    assert last["y"] + last["height"] <= 844 / 5
    assert mira.evaluate("document.documentElement.scrollWidth") == 390
    tops = {round(link.bounding_box()["y"]) for link in mira.locator(".tabs a").all()}  # type: ignore[index]
    assert len(tops) == 1, "the tabs stand on several lines"


def test_disabled_button_takes_the_focus_says_why_and_does_nothing(
    mira: Page, live_server: Any, watched: Submission
) -> None:
    mira.goto(live_server.url + reverse("submission", args=[watched.pk]))
    button = mira.get_by_role("button", name="Freeze submission")
    expect(button).to_be_disabled()
    expect(button).to_have_accessible_description(re.compile("Before you can freeze.* 1 dispute: an adjudicator must"))
    for _ in range(60):
        mira.keyboard.press("Tab")
        if button.evaluate("element => element === document.activeElement"):
            break
    expect(button).to_be_focused()
    mira.keyboard.press("Enter")
    mira.keyboard.press("Space")
    expect(mira.get_by_role("button", name="Freeze submission")).to_be_visible()
    watched.refresh_from_db()
    assert watched.frozen_at is None
