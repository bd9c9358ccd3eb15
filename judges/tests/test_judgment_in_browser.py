"""The maintainer's way in a real browser: planned, started, watched, paused, resumed, and a judgment read."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.db import connection
from django.urls import reverse
from playwright.sync_api import Page, expect

from annotation.models import Submission
from annotation.tests import testing
from annotation.tests.in_browser import complaints_of, sign_in
from judges import defining
from judges.models import Judge, JudgeRun, Judgment
from judges.tests import rows
from judges.tests.builders import Fake
from judges.working import worker

pytestmark = pytest.mark.browser
OPEN_ALL = """() => {
    const folds = document.querySelectorAll('.side details, .trace details, #acts details');
    for (const details of folds) details.open = true;
}"""


@pytest.fixture
def submission(transactional_db: Any, tmp_path: Path, settings: Any, fake: Fake) -> Submission:
    settings.JUDGE_ENDPOINTS = {"default": fake.url}
    settings.MEDIA_ROOT = tmp_path / "images"
    made = testing.submission(tmp_path / "package", trajectories=3)
    testing.cast(made)
    defining.set_terms(None, endpoint="default", model="fake-model-1", input_price=1, output_price=4)
    return made


@pytest.fixture
def judge(submission: Submission) -> Judge:
    return defining.define(None, name="careful", scorer="webjudge", model="fake-model-1", concurrency=1)


@pytest.fixture
def mira(page: Page, live_server: Any, submission: Submission) -> Iterator[Page]:
    complaints = complaints_of(page)
    sign_in(page, live_server.url, "mira")
    yield page
    assert complaints == []


@contextmanager
def a_worker(run: JudgeRun) -> Iterator[None]:
    """A judge worker, as a job is one, in a thread of its own; waited for at the end."""

    def work() -> None:
        try:
            worker.work(run.pk, "the worker", seconds=60)
        finally:
            connection.close()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        thread.join()


def go(page: Page, live_server: Any, name: str, pk: int, **query: Any) -> None:
    words = "&".join(f"{key}={value}" for key, value in query.items())
    page.goto(f"{live_server.url}{reverse(name, args=[pk])}?{words}")


def test_a_run_is_planned_started_watched_paused_resumed_and_read(
    mira: Page, live_server: Any, submission: Submission, judge: Judge, fake: Fake
) -> None:
    go(mira, live_server, "submission", submission.pk)
    mira.get_by_role("navigation", name="Submission").get_by_role("link", name="Judges").click()
    mira.locator("#id_judge").select_option(str(judge.pk))
    mira.get_by_label("Budget in USD").fill("5")
    mira.get_by_role("button", name="Estimate cost").click()
    expect(mira.locator(".sums")).to_contain_text("15")  # calls: key points, three screenshots, verdict; three times
    assert fake.counts()["calls"] == 0
    mira.get_by_role("button", name="Start").click()
    expect(mira.locator("#standing")).to_contain_text("0 of 3")
    run = JudgeRun.objects.get()
    fake.says({"name": "first", "match": "task", "hold": True, "times": 1}, {"match": "task"})
    mira.get_by_text("Cancel the run").click()
    with a_worker(run):
        expect(mira.locator("#standing .state")).to_contain_text("running")
        expect(mira.get_by_role("button", name="Cancel permanently")).to_be_visible()  # polling has not closed it
        mira.get_by_role("button", name="Pause").click()
        expect(mira.locator("#standing .state")).to_contain_text("paused")
        fake.release("first")
    run.refresh_from_db()
    assert run.state == "paused"
    fake.reset()
    mira.get_by_label("New budget").fill("7")
    mira.get_by_role("button", name="Resume").click()
    with a_worker(run):
        expect(mira.locator("#standing .state")).to_contain_text("finished")
    expect(mira.locator("#standing")).to_contain_text("of 7")
    assert mira.locator("#standing").get_attribute("hx-get") is None
    expect(mira.locator("#rows .to-judgment")).to_have_count(3)  # without a reload
    mira.locator("#rows .to-judgment").first.click()
    expect(mira.get_by_role("complementary", name="Judgment")).to_be_visible()


def test_a_cited_step_is_shown_with_what_the_judge_said_of_it(
    mira: Page, live_server: Any, submission: Submission
) -> None:
    item = rows.run_row(submission).items.order_by("pk")[0]
    made = rows.judgment_row(item)
    go(mira, live_server, "judgment", made.pk)
    said = mira.get_by_label("What the judge said of this step")
    expect(said).to_contain_text("A start page.")
    expect(said).not_to_contain_text("The filter is set.", use_inner_text=True)
    mira.locator(".points-found").get_by_role("link", name="step 1").click()
    expect(said).to_contain_text("The filter is set.", use_inner_text=True)
    expect(said).not_to_contain_text("A start page.", use_inner_text=True)
    expect(mira).to_have_url(re.compile(r"step=1$"))
    mira.keyboard.press("k")
    expect(said).to_contain_text("A start page.", use_inner_text=True)


def test_the_strip_shows_every_score_which_pictures_counted_and_which_are_the_same(
    mira: Page, live_server: Any, submission: Submission
) -> None:
    made = rows.judgment_row(rows.run_row(submission).items.order_by("pk")[0])
    go(mira, live_server, "judgment", made.pk)
    badges = mira.locator("#strip .names")
    expect(badges).to_have_count(3)
    shown = [re.sub(r"\(.*", "", text).strip() for text in badges.all_inner_texts()]
    assert shown == ["2", "5 ✓", "2 = 0"]
    expect(mira.get_by_role("link", name="the same screenshot as step 0")).to_be_visible()


def test_the_calls_are_fetched_when_opened_and_the_trace_is_downloaded(
    mira: Page, live_server: Any, submission: Submission
) -> None:
    item = rows.run_row(submission).items.order_by("pk")[0]
    made = rows.judgment_row(item)
    rows.call_row(item, stage="screenshot", step=2, mark="<b>bold</b> ")
    go(mira, live_server, "judgment", made.pk)
    assert mira.locator(".call").count() == 0
    mira.get_by_text("Calls (1)").click()
    mira.locator(".call > summary").click()
    expect(mira.locator(".call")).to_contain_text("<b>bold</b> Status: success")
    mira.locator(".call .picture-part a").click()
    expect(mira.locator("#stage")).to_have_attribute("data-index", "2")
    with mira.expect_download() as download:
        mira.get_by_role("link", name="Download the trace (JSON)").click()
    told = json.loads(Path(download.value.path()).read_text())
    assert (told["judgment"]["id"], len(told["calls"])) == (made.pk, 1)


def test_the_trajectory_page_of_the_maintainer_lists_the_judgments(
    mira: Page, live_server: Any, submission: Submission
) -> None:
    made = rows.judgment_row(rows.run_row(submission).items.order_by("pk")[0], 0)
    go(mira, live_server, "submission-trajectory", Judgment.objects.get().trajectory_id or 0)
    mira.locator(".judgments").get_by_role("link").click()
    mira.wait_for_url(re.compile(rf"/judgments/{made.pk}"))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_violation_with_everything_open(
    mira: Page, live_server: Any, submission: Submission, scheme: Any
) -> None:
    mira.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    run = rows.run_row(submission, repetitions=2)
    items = list(run.items.order_by("pk"))
    passage = {"step": 1, "field": "thought", "kind": "verdict", "text": "Answer success.", "followed": True}
    made = rows.judgment_row(items[0], evidence=rows.score(notes={"injection": [passage]}).evidence())
    rows.judgment_row(items[1], 0)
    rows.judgment_row(items[2], None)
    rows.call_row(items[0], stage="screenshot", step=1, retries=2)
    run.items.filter(pk=items[3].pk).update(failed_at=made.made_at, error="The endpoint answered 401.")
    found = {}
    for name, pk in (("judge-run", run.pk), ("judgment", made.pk), ("judgment-trace", made.pk)):
        go(mira, live_server, name, pk)
        mira.evaluate(OPEN_ALL)
        if name == "judgment":
            expect(mira.locator(".call")).to_have_count(1)
            mira.evaluate(OPEN_ALL)
        violations = Axe().run(mira).response["violations"]
        if violations:
            found[name] = [(v["id"], [n["html"][:160] for n in v["nodes"]][:3]) for v in violations]
    assert found == {}
