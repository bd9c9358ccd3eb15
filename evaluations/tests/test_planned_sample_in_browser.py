"""A review by plan in a real browser: from the planner page to the bundle, and the success rate side by side."""

from __future__ import annotations

import json
import re
import zipfile
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.core.management import call_command
from django.urls import reverse
from playwright.sync_api import Page, expect

from annotation.models import SamplePlan, Submission
from annotation.records import Verdict
from annotation.tests import testing
from annotation.tests.in_browser import complaints_of, sign_in
from evaluations.tests.finished import finish
from evaluations.tests.judged_here import ENDPOINTS
from judges.scorer import Score
from judges.tests.builders import defined_judge, started_run
from judges.working import leases
from judges.working.call_log import CallTotals

pytestmark = pytest.mark.browser

PHONE = 390  # pixels


@pytest.fixture
def submission(transactional_db: Any, tmp_path: Path, settings: Any) -> Submission:
    """Twelve trajectories: the judge "careful" calls the first six a success. None is labelled."""
    settings.MEDIA_ROOT, settings.JUDGE_ENDPOINTS = tmp_path / "images", ENDPOINTS
    made = testing.submission(tmp_path / "package", trajectories=12)
    run = started_run(testing.cast(made)["mira"], made, defined_judge("careful"))
    position = dict(made.trajectories.values_list("pk", "position"))
    while taken := leases.claim(run.pk, "by-hand", ()):
        score = Score(Verdict(int(position[taken[0].trajectory] < 6)))
        assert leases.settle(taken[0], "by-hand", score, CallTotals(), run.judge.fingerprint)
    assert leases.finish_run(run.pk)
    return made


def no_barrier(page: Page) -> None:
    found = Axe().run(page).response["violations"]
    assert [each["id"] for each in found] == []
    assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0


def test_submission_is_reviewed_by_plan_from_the_planner_to_the_bundle(
    page: Page, live_server: Any, submission: Submission, tmp_path: Path
) -> None:
    complaints = complaints_of(page)
    sign_in(page, live_server.url, "mira")
    page.goto(live_server.url + reverse("submission", args=[submission.pk]))
    page.get_by_role("link", name="plan a sample").click()
    page.get_by_label("Reviews that you can pay for").fill("18")
    page.get_by_role("button", name="Plan sample").click()
    expect(page.get_by_text("Label 6 of 12 trajectories.")).to_be_visible()
    no_barrier(page)
    page.get_by_label("I know that the plan cannot be changed").check()
    page.get_by_role("button", name="Use this plan").click()
    expect(page.get_by_text("Sample drawn: people label 6 of 12 trajectories.")).to_be_visible()

    drawn = SamplePlan.objects.get().items.exclude(position=None).select_related("trajectory__task")
    by_task = {item.trajectory.task.external_id: item for item in drawn}
    assert len(by_task) == 6
    wrong = next(task for task, item in sorted(by_task.items()) if item.judged == 1)
    verdicts = {task: [item.judged] * 3 for task, item in by_task.items()} | {wrong: [0, 0, 0]}
    people = {member.person.username: member.person for member in submission.memberships.select_related("person")}
    frozen = finish(people, submission, verdicts, adjudicated=0)

    page.goto(live_server.url + reverse("success-rate", args=[frozen.pk]))
    expect(page.get_by_text("Estimated from the labels of 6 of 12 trajectories.").first).to_be_visible()
    row = page.locator("#table-success-rate tbody tr").first
    people_alone, combined = (row.locator("th, td").nth(place) for place in (0, 1))
    for cell in (people_alone, combined):
        expect(cell).to_have_text(re.compile(r"\d+\.\d%[\s\S]*\d to \d"))
    expect(page.get_by_role("figure").filter(has_text="People and judge").first).to_be_visible()
    no_barrier(page)
    page.set_viewport_size({"width": PHONE, "height": 844})
    no_barrier(page)
    assert complaints == []

    told = page.request.get(f"{live_server.url}/api/v1/submissions/{frozen.pk}/estimate?judge=careful").json()
    bundle = tmp_path / "bundle.zip"
    call_command("export_evidence", str(frozen.pk), "--output", str(bundle))
    with zipfile.ZipFile(bundle) as archive:
        stored = json.loads(archive.read("reports/estimate.json"))
    for name in ("people", "combined", "judge_only"):
        assert told[name] == pytest.approx(stored[name])
    assert (told["n_labelled"], told["n_total"], told["method"]) == (6, 12, stored["method"])
    call_command("verify_evidence", str(bundle))
