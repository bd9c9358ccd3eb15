"""Upstream's rules give a verdict to every reply. One that states none is marked wherever its verdict counts."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from annotation.models import Person, Submission
from annotation.tests import testing
from judges import runs
from judges.imports import import_judgments
from judges.models import JudgeRun, Judgment
from judges.tests.builders import Fake, defined_judge, started_run, worked
from judges.tests.siblings import asked, judge, subject

PLAIN = "All went well, I think."


@pytest.mark.parametrize(
    ("name", "reply", "verdict", "marked"),
    [
        ("autonomous-eval", PLAIN, 0, True),
        ("agenttrek", PLAIN, 0, True),
        ("webvoyager", PLAIN, 1, True),
        ("autonomous-eval", "Status: undecided", 0, True),
        ("autonomous-eval", "**Status**: success", 0, True),  # upstream looks for the colon inside the bold
        ("autonomous-eval", "Status: failed", 0, False),
        ("autonomous-eval", "Status: success", 1, False),
        ("webvoyager", "It is a failure.", 1, True),  # upstream looks for capitals
        ("webvoyager", "NOT SUCCESS", 1, False),
        ("webvoyager", "FAILURE", 0, False),
    ],
)
def test_a_verdict_of_upstreams_rules_is_marked_when_the_reply_states_none(
    fake: Fake, name: str, reply: str, verdict: int, marked: bool
) -> None:
    fake.says({"reply": reply})
    score = asked(fake, judge(name, mode="upstream"), subject())
    assert (score.verdict, score.status_not_stated) == (verdict, marked)


def test_webjudge_marks_a_verdict_without_a_status(fake: Fake) -> None:
    fake.says({"reply": f"**Key Points**:\n1. a lamp\n\nScore 4. {PLAIN}"})
    score = asked(fake, judge("webjudge", mode="upstream"), subject())
    assert (score.verdict, score.status_not_stated) == (0, True)


def test_a_reply_without_a_status_is_unscored_in_the_default_mode(fake: Fake) -> None:
    fake.says({"reply": PLAIN})
    score = asked(fake, judge("autonomous-eval"), subject())
    assert (score.verdict, score.status_not_stated) == (None, False)


# --- in a run --------------------------------------------------------------------------------------------------------


@pytest.fixture
def run(transactional_db: None, settings: Any, tmp_path: Path, fake: Fake) -> JudgeRun:
    """Two trajectories; the reply of the second states nothing."""
    settings.MEDIA_ROOT = tmp_path / "images"
    settings.JUDGE_ENDPOINTS = {"default": fake.url}
    submission = testing.submission(tmp_path / "package", trajectories=2)
    mira = testing.cast(submission)["mira"]
    fake.says({"match": "shop 1 ", "reply": PLAIN}, {"reply": "Status: failure"})
    made = started_run(mira, submission, defined_judge(parameters={"mode": "upstream"}))
    worked(made)
    return made


@pytest.fixture
def mira(run: JudgeRun) -> Client:
    client = Client()
    client.force_login(Person.objects.get(username="mira"))
    return client


def test_the_judgment_and_its_run_are_marked_on_pages(run: JudgeRun, mira: Client) -> None:
    stated, not_stated = Judgment.objects.order_by("trajectory__position")
    assert (stated.verdict, not_stated.verdict) == (0, 0)
    assert (stated.status_not_stated, not_stated.status_not_stated) == (False, True)

    def page(name: str, pk: int, query: str = "") -> str:
        return mira.get(reverse(name, args=[pk]) + query).content.decode()

    assert "Status not stated." in page("judgment", not_stated.pk)
    assert "Status not stated." not in page("judgment", stated.pk)
    assert page("judge-run", run.pk).count('">status not stated</span>') == 1
    narrowed = page("judge-run", run.pk, "?show=status+not+stated")
    assert ("task_0001" in narrowed, "task_0000" in narrowed) == (True, False)


def test_a_run_counts_its_marked_judgments_in_the_api_and_the_command(run: JudgeRun, mira: Client) -> None:
    assert runs.load_progress(run).status_not_stated == 1
    answer = mira.get(f"/api/v1/judge-runs/{run.pk}").json()
    assert answer["standing"]["status_not_stated"] == 1
    out = StringIO()
    options = ("--submission", str(run.submission_id), "--wait")
    call_command("run_judge", "careful", *options, stdout=out, stderr=StringIO())
    assert "2 of 2 judged, 0 of them unscored, 1 with a status not stated, 0 failed" in out.getvalue()


def test_an_imported_judgment_of_webjudge_without_a_status_is_marked(submission: Submission) -> None:
    def row(task: str, reply: str) -> str:
        return json.dumps({"task_id": task, "predicted_label": 0, "evaluation_details": {"response": reply}})

    data = "\n".join([row("task_0000", "Status: failure"), row("task_0001", PLAIN)]).encode()
    imported = import_judgments(
        data, "auto.json", benchmark=submission.benchmark, judge="published", agent="Careful Agent"
    )
    assert imported.new == 2
    marks = dict(Judgment.objects.values_list("task__external_id", "status_not_stated"))
    assert marks == {"task_0000": False, "task_0001": True}
