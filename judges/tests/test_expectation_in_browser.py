"""The editor of checks in a real browser: what it means beside it, the way to a problem, and nothing lost."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.urls import reverse
from playwright.sync_api import Page, expect

from annotation import workflow
from annotation.models import Submission, Task
from annotation.models.events import Event
from annotation.tests import testing
from annotation.tests.in_browser import complaints_of, copies, sign_in
from judges import expectations
from judges.disclosure import SEEN
from judges.expectations import Kind
from judges.models import Expectation
from judges.tests import expecting

pytestmark = pytest.mark.browser


@pytest.fixture
def submission(transactional_db: Any, tmp_path: Path, settings: Any) -> Submission:
    settings.MEDIA_ROOT = tmp_path / "images"
    made = testing.submission(tmp_path / "package", trajectories=1)
    expecting.give_trace(made.trajectories.get())
    return made


@pytest.fixture
def task(submission: Submission) -> Task:
    testing.cast(submission)
    return submission.trajectories.get().task


@pytest.fixture
def mira(page: Page, live_server: Any, task: Task) -> Iterator[Page]:
    complaints = complaints_of(page)
    sign_in(page, live_server.url, "mira")
    yield page
    assert [text for text in complaints if not re.search("status of (400|502)", text)] == []


def editor(page: Page, live_server: Any, task: Task, kind: str = "network_checks") -> Any:
    page.goto(live_server.url + reverse("expectation", args=[task.pk, kind]))
    expect(page.locator("html")).to_have_class("scripted")
    return page.locator("#id_text")


def test_checks_are_written_from_a_trace_tried_and_kept(mira: Page, live_server: Any, task: Task) -> None:
    text = editor(mira, live_server, task)
    mira.get_by_role("button", name="List its requests").click()
    mira.get_by_role("button", name="Add a check").nth(1).click()
    mira.get_by_role("button", name="Add a check").nth(2).click()
    preview = mira.locator("#preview")
    expect(preview).to_contain_text("2 checks")
    expect(preview).to_contain_text("http://shop.example/search")
    expect(mira.locator(".gutter")).to_contain_text("5")
    mira.get_by_role("button", name="Test the text in the editor").click()
    expect(mira.locator("#tried .verdict")).to_have_text("Success")
    text.fill(text.input_value().replace("lamp", "sofa"))
    mira.get_by_role("button", name="Test the text in the editor").click()
    expect(mira.locator("#tried .verdict")).to_have_text("Failure")
    assert not Expectation.objects.exists()
    mira.get_by_role("button", name="Save as version 1").click()
    expect(mira.get_by_role("button", name="Save as version 2")).to_be_visible()
    assert "sofa" in Expectation.objects.get().text


def test_a_problem_leads_to_its_line_while_it_is_typed_and_when_it_is_refused(
    mira: Page, live_server: Any, task: Task
) -> None:
    text = editor(mira, live_server, task)
    text.fill(expecting.CHECKS.replace("url:", "ulr:"))
    link = mira.locator("#preview").get_by_role("link", name="line 4")
    for _ in range(2):
        link.click()
        chosen = text.evaluate("e => e.value.slice(e.selectionStart, e.selectionEnd)")
        assert chosen.strip() == "ulr: http://shop.example/search"
        mira.get_by_role("button", name="Save as version 1").click()
        link = mira.locator(".summary").get_by_role("link", name="line 4")
        expect(link).to_be_visible()
    assert not Expectation.objects.exists()


def test_what_was_typed_is_there_again_and_can_be_given_up(mira: Page, live_server: Any, task: Task) -> None:
    expectations.write(None, task, Kind.NETWORK_CHECKS, expecting.CHECKS)
    text = editor(mira, live_server, task)
    text.fill(expecting.FAILING)
    mira.on("dialog", lambda dialog: dialog.accept())
    text = editor(mira, live_server, task)
    expect(text).to_have_value(expecting.FAILING)
    expect(mira.locator("#restored")).to_contain_text("Restored unsaved text")
    expect(mira.locator("#preview")).to_contain_text("sofa")
    mira.get_by_role("button", name="Use the version on the server").click()
    expect(text).to_have_value(expecting.CHECKS)
    text = editor(mira, live_server, task)
    expect(text).to_have_value(expecting.CHECKS)
    expect(mira.locator("#restored")).to_be_hidden()


def test_submitted_text_stays_in_the_browser_until_the_server_has_it(mira: Page, live_server: Any, task: Task) -> None:
    text = editor(mira, live_server, task)
    text.fill(expecting.CHECKS)
    # A page without an icon makes Chromium ask for /favicon.ico, and complain if it is told of it before it moves on.
    refusal = '<link rel="icon" href="data:,">no server'
    mira.route("**/write", lambda route: route.fulfill(status=502, content_type="text/html", body=refusal))
    mira.get_by_role("button", name="Save as version 1").click()
    expect(mira.get_by_text("no server")).to_be_visible()
    mira.unroute_all()

    text = editor(mira, live_server, task)
    expect(text).to_have_value(expecting.CHECKS)
    mira.get_by_role("button", name="Save as version 1").click()
    expect(mira.get_by_role("button", name="Save as version 2")).to_be_visible()
    expect(mira.locator("html")).to_have_class(re.compile("scripted"))  # its script has removed the copy by then
    expect(mira.locator("#restored")).to_be_hidden()
    assert copies(mira) == 0


def test_a_rubric_is_drawn_while_it_is_typed(mira: Page, live_server: Any, task: Task) -> None:
    text = editor(mira, live_server, task, "rubric")
    text.fill(expecting.RUBRIC)
    tree = mira.locator("#preview .tree")
    expect(tree.locator(".leaf")).to_have_count(3)
    tree.get_by_text("The lamp").click()
    expect(tree.get_by_text("The answer names it.")).to_be_hidden()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_violation_in_the_editors(mira: Page, live_server: Any, task: Task, scheme: Any) -> None:
    mira.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    expectations.write(None, task, Kind.NETWORK_CHECKS, expecting.FAILING)
    expectations.write(None, task, Kind.RUBRIC, expecting.RUBRIC)
    found = {}
    for kind in ("network_checks", "rubric"):
        editor(mira, live_server, task, kind)
        if kind == "network_checks":
            mira.get_by_role("button", name="List its requests").click()
            expect(mira.locator(".requests li")).to_have_count(4)
            mira.get_by_role("button", name="Test the text in the editor").click()
            expect(mira.locator(".check-result")).to_be_visible()
        violations = Axe().run(mira).response["violations"]
        if violations:
            found[kind] = [(v["id"], [n["html"][:160] for n in v["nodes"]][:3]) for v in violations]
    assert found == {}


def test_the_adjudicator_opens_the_network_evidence_and_that_is_recorded(
    page: Page, live_server: Any, submission: Submission, task: Task
) -> None:
    from annotation.models import Person

    people = {name: Person.objects.get(username=name) for name in ("alice", "bob", "chen", "carol")}
    testing.label_all(people, submission, {task.external_id: [1, 0, 1]})
    expecting.expect(task)
    trajectory = submission.trajectories.get()
    workflow.open_adjudication(people["carol"], trajectory)
    complaints = complaints_of(page)
    sign_in(page, live_server.url, "carol")
    page.goto(live_server.url + reverse("adjudication", args=[trajectory.pk]))
    panel = page.locator(".network-evidence")
    expect(panel).to_contain_text("opening it is recorded")
    assert not Event.objects.filter(kind=SEEN).exists()
    panel.locator("summary").first.click()
    expect(panel).to_contain_text("every check passes")
    assert Event.objects.filter(kind=SEEN).count() == 1
    page.reload()
    expect(panel).to_contain_text("every check passes")
    assert Event.objects.filter(kind=SEEN).count() == 1
    assert complaints == []
