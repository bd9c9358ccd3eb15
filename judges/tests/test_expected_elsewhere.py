"""Who maintains one submission and decides blind in another one of its benchmark: nothing tells them the checks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from rest_framework.test import APIClient

from annotation import ingest, testing
from annotation.models import ApiToken, Membership, Person, Submission
from judges import access
from judges.models import Judgment, RunItem
from judges.scorer import REGISTRY
from judges.tests import rows
from judges.tests.expecting import CHECKS, expect, give_trace

pytestmark = pytest.mark.django_db
SECRET = "SECRETEXPECTED"


@pytest.fixture
def judged(tmp_path: Path, settings: Any) -> tuple[Person, Judgment, Submission]:
    """Who maintains the judged submission, its judgment by network checks, and another one of the benchmark."""
    settings.MEDIA_ROOT = tmp_path / "images"
    mine = testing.submission(tmp_path / "mine", trajectories=2)
    trajectory = mine.trajectories.order_by("position")[0]
    give_trace(trajectory)
    expect(trajectory.task, CHECKS.replace("lamp", SECRET))
    difference = {"field": "url", "expected": SECRET, "actual": "", "equal": False, "note": ""}
    check = {"name": "one", "evaluator": "network_event", "result": "fail", "differences": [difference]}
    run = rows.run_row(mine, rows.judge_row("net", scorer="network-trace", model="", prompts=""))
    told = {"details": {"kind": "network-trace", "checks": [check]}}
    judgment = rows.judgment_row(RunItem.objects.get(run=run, trajectory=trajectory), 0, SECRET, evidence=told)
    folder = testing.write_submission(tmp_path / "theirs", trajectories=2, steps=4)
    _, theirs = ingest.import_submission(
        folder, benchmark=mine.benchmark, agent_name="B Agent", maintainer=testing.person("zoe")
    )
    assert theirs is not None
    return testing.cast(mine)["mira"], judgment, theirs


def answers(person: Person, judgment: Judgment) -> dict[str, tuple[int, bool]]:
    """By address: the status, and whether the answer says what is expected."""
    assert judgment.item is not None
    pages, api = Client(), APIClient()
    pages.force_login(person)
    api.credentials(HTTP_AUTHORIZATION=f"Bearer {ApiToken.issue(person, 'tests')[1]}")
    own = ("judgment", "judgment-trace", "judgment-trace-file", "api-judgment", "api-judgment-trace")
    asked = [(name, judgment.pk) for name in own]
    asked += [("judge-run", judgment.item.run_id), ("api-judgments", judgment.item.run_id)]
    asked += [("trajectory-judgments", judgment.trajectory_id or 0)]
    found = {}
    for name, pk in asked:
        answer = (api if name.startswith("api") else pages).get(reverse(name, args=[pk]))
        found[name] = answer.status_code, SECRET in answer.content.decode()
    return found


def test_who_maintains_and_decides_nowhere_is_told_what_was_expected(judged):
    mira, judgment, _ = judged
    found = answers(mira, judgment)
    assert {status for status, _ in found.values()} == {200}
    told = {name for name, (_, told) in found.items() if told}
    assert {"judgment", "judgment-trace-file", "api-judgment", "api-judgments"} <= told


@pytest.mark.parametrize("role", [Membership.Role.ANNOTATOR, Membership.Role.ADJUDICATOR])
def test_who_decides_in_another_submission_of_the_benchmark_is_not(judged, role):
    mira, judgment, theirs = judged
    Membership.objects.create(submission=theirs, person=mira, role=role, pseudonym="A1")
    found = answers(mira, judgment)
    assert {name for name, (_, told) in found.items() if told} == set()
    assert {name for name, (status, _) in found.items() if status == 404} == {
        "judgment", "judgment-trace", "judgment-trace-file", "api-judgment", "api-judgment-trace",
    }  # fmt: skip
    assert found["judge-run"][0] == found["api-judgments"][0] == 200
    JudgeTest = type(judgment.item.run)  # noqa: N806 - a run that tests a judge hides no more
    JudgeTest.objects.filter(pk=judgment.item.run_id).update(test=True)
    assert answers(mira, judgment)["judgment"] == (404, False)
    Submission.objects.filter(pk=theirs.pk).update(frozen_at=timezone.now())
    assert answers(mira, judgment)["judgment"] == (200, True)


def test_every_scorer_that_expects_something_is_known_to_tell_it():
    assert {kind.name for kind in REGISTRY.values() if kind.expects} <= set(access.TELLING)
    assert set(access.TELLING) <= {*REGISTRY, "webarena-verified"}
