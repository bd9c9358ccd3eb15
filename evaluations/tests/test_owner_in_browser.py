"""A benchmark owner and a submitter in a real browser: from the intake page to the registry and an appeal.

The bundle is of another instance, whose rows and key are not here.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.urls import reverse
from playwright.sync_api import Browser, Page, expect

from annotation.models import Label, Membership, Submission, Trajectory
from annotation.tests import testing
from annotation.tests.in_browser import complaints_of, fill_in, open_desk, sign_in, submit
from annotation.workflow import add_member, claim
from evaluations.models import Audit, Entry
from evaluations.tests.audited import auditor, relabel, work

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("store")]
PHONE = {"width": 390, "height": 844}


@pytest.fixture
def owner(bundles: dict[str, Path], page: Page, live_server: Any) -> Page:
    """The browser of amy, who maintains the instance; the benchmark has the tasks of the bundle."""
    testing.benchmark(2)
    auditor()
    sign_in(page, live_server.url, "amy")
    return page


def open_for(browser: Browser, url: str, name: str = "") -> Page:
    opened = browser.new_context(viewport=PHONE).new_page()
    if name:
        sign_in(opened, url, name)
    return opened


def no_barrier(page: Page) -> None:
    found = Axe().run(page).response["violations"]
    assert [(each["id"], each["nodes"][0]["html"][:200]) for each in found] == []
    assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0


def act(page: Page, title: str, button: str, **fields: str) -> None:
    """Open an action of the entry's page, fill it in and send it."""
    action = page.locator("details", has=page.get_by_text(title, exact=True))
    action.locator("summary").click()
    for name, value in fields.items():
        action.locator(f"[name={name}]").fill(value)
    action.get_by_role("button", name=button).click()
    expect(page.locator(".messages .success")).to_be_visible()


def label_in_browser(page: Page, url: str, sample: Submission) -> Trajectory:
    """Label the trajectory that is next for a member of the sample, as not executable."""
    person = sample.memberships.get(person__username="erin").person
    held = claim(person, sample).trajectory
    open_desk(page, url, held)
    fill_in(page)
    submit(page)
    expect(page.locator(".messages .success")).to_contain_text("submitted")
    return held


def test_entry_is_submitted_audited_published_appealed_and_scored_again(
    owner: Page, browser: Browser, live_server: Any, bundles: dict[str, Path]
) -> None:
    url, complaints = live_server.url, complaints_of(owner)
    owner.goto(url + reverse("benchmark", args=["shops"]))
    owner.get_by_role("link", name="Intake").click()
    owner.get_by_label("Publish the intake page and the registry").check()
    owner.get_by_label("Contact").fill("shops@example.org")
    owner.get_by_role("button", name="Save intake").click()
    expect(owner.get_by_text("Intake saved.")).to_be_visible()
    no_barrier(owner)

    # The submitter, on a phone.
    testing.person("sam")
    submitter = open_for(browser, url, "sam")
    submitter.goto(url + reverse("intake", args=["shops"]))
    no_barrier(submitter)
    submitter.get_by_role("link", name="Submit an entry").click()
    for label, value in (("Agent", "Pathfinder"), ("Organisation", "Acme"), ("Contact", "sam@example.org")):
        submitter.get_by_label(label, exact=False).first.fill(value)
    submitter.get_by_label("Evaluated by").select_option("third_party")
    submitter.get_by_label("Evidence bundle").set_input_files(bundles["files"])
    no_barrier(submitter)
    submitter.get_by_role("button", name="Submit entry").click()
    expect(submitter.get_by_text("A worker is checking the file")).to_be_visible()
    work()
    submitter.reload()
    expect(submitter.get_by_role("cell", name="Working times")).to_be_visible()
    no_barrier(submitter)
    entry = Entry.objects.get()

    # The owner draws a sample, which other people label blind.
    owner.goto(url + reverse("entry", args=[entry.key]))
    no_barrier(owner)
    owner.get_by_role("link", name="Open audit").click()
    owner.locator("#sample [name=size]").fill("2")
    owner.get_by_role("button", name="Draw the sample").click()
    expect(owner.get_by_text("Sample drawn")).to_be_visible()
    sample = Audit.objects.get().sample
    assert sample is not None
    for name in ("erin", "finn"):
        add_member(auditor(), sample, testing.person(name), Membership.Role.ANNOTATOR)
        desk = open_for(browser, url, name)
        held = claim(testing.person(name), sample).trajectory
        desk.set_viewport_size({"width": 1440, "height": 900})
        open_desk(desk, url, held)
        fill_in(desk)
        submit(desk)
        expect(desk.locator(".messages .success")).to_contain_text("submitted")
    assert Label.objects.filter(assignment__trajectory__submission=sample).count() == 2
    relabel(sample)

    # Both decide; anybody reads the result.
    act_on_entry = url + reverse("entry", args=[entry.key])
    owner.goto(act_on_entry)
    act(owner, "Accept", "Accept entry", reason="The sample agrees.")
    public = open_for(browser, url)
    public.goto(url + reverse("registry", args=["shops"]))
    expect(public.get_by_text("100.0%").first).to_be_visible()
    no_barrier(public)
    public.get_by_role("link", name="Pathfinder").first.click()
    expect(public.get_by_text("The sample agrees.")).to_be_visible()
    no_barrier(public)

    submitter.goto(act_on_entry)
    act(submitter, "Appeal", "Send appeal", reason="Task 1 was down.")
    owner.goto(act_on_entry)
    act(owner, "Decide the appeal", "Decide appeal", reason="It was.")
    act(owner, "Score again", "Publish new version", changes="task_0001 0", reason="It failed, as the video shows.")
    public.goto(url + reverse("registry", args=["shops"]))
    public.reload()  # a page may be a minute old
    expect(public.get_by_text("50.0%").first).to_be_visible()

    owner.goto(act_on_entry)
    act(owner, "Remove", "Remove entry", reason="The bundle was revoked.")
    public.goto(url + reverse("registry-entry", args=["shops", entry.key]))
    public.reload()
    expect(public.get_by_text("The bundle was revoked.").first).to_be_visible()
    kinds = list(entry.events.values_list("kind", flat=True))
    assert kinds == ["submitted", "checked", "accepted", "appealed", "appeal_decided", "rescored", "removed"]
    assert complaints == []
