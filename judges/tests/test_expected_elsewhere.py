"""Who maintains one submission and decides blind in another one of its benchmark: nothing tells them the checks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from rest_framework.test import APIClient

from annotation import ingest, workflow
from annotation.models import ApiToken, InformedRevision, Membership, Person, Submission, Trajectory
from annotation.models.events import Event
from annotation.tests import testing
from judges import access
from judges.disclosure import SEEN
from judges.models import Judgment, RunItem
from judges.scorer import REGISTRY, Kind
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
    api.credentials(HTTP_AUTHORIZATION=f"Bearer {ApiToken.issue(person, 'tests', 'admin')[1]}")
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


def test_scorer_that_compares_with_checks_or_rubrics_is_never_stated_to_be_harmless():
    disclosing = {kind.name for kind in REGISTRY.values() if kind.discloses_expectations}
    assert disclosing == {"network-trace", "webarena-verified", "rubric", "ensemble"}


@pytest.mark.parametrize("known", [True, False])
def test_scorer_without_a_statement_is_hidden_from_people_who_decide_blind(judged, monkeypatch, known):
    """Neither a scorer whose author stated nothing nor one that this version does not have shows a judgment."""
    mira, judgment, theirs = judged
    if known:
        silent = Kind("silent", 1, "", "", object, "", lambda parameters, prompts: None, asks=False)
        monkeypatch.setitem(REGISTRY, "silent", silent)
    run = rows.run_row(judgment.item.run.submission, rows.judge_row("new", scorer="silent"))
    item = RunItem.objects.get(run=run, trajectory=judgment.trajectory_id)
    judgment = rows.judgment_row(item, 0, SECRET, evidence=judgment.evidence)
    assert answers(mira, judgment)["judgment-trace-file"] == (200, True)
    join(theirs, mira, Membership.Role.ANNOTATOR)
    assert {name for name, (_, told) in answers(mira, judgment).items() if told} == set()
    assert access.must_hide(mira, judgment.judge, run.submission)
    assert not Judgment.objects.exclude(access.match_disclosing()).exists()


# --- who has decided here, and labels the same task there -------------------------------------------------------------


def join(submission: Submission, person: Person, role: Membership.Role) -> None:
    Membership.objects.create(submission=submission, person=person, role=role, pseudonym="X1")


def decided(judgment: Judgment) -> Person:
    """carol, who has decided the judged trajectory."""
    trajectory = Trajectory.objects.get(pk=judgment.trajectory_id)
    carol, ids = Person.objects.get(username="carol"), trajectory.task.external_id
    people = {name: Person.objects.get(username=name) for name in ("alice", "bob", "chen")}
    testing.label_all(people, trajectory.submission, {ids: [1, 0, 1]})
    workflow.open_adjudication(carol, trajectory)
    workflow.decide(carol, trajectory, testing.content(trajectory))
    return carol


def evidence(person: Person, judgment: Judgment) -> list[tuple[int, bool]]:
    """What the network evidence answers when it is asked for, and when it is opened."""
    client = Client()
    client.force_login(person)
    asked = client.get(reverse("network-evidence", args=[judgment.trajectory_id]))
    opened = client.post(
        reverse("look-network-evidence", args=[judgment.trajectory_id]), headers={"HX-Request": "true"}
    )
    return [(answer.status_code, SECRET in answer.content.decode()) for answer in (asked, opened)]


def test_who_has_decided_a_task_and_labels_it_elsewhere_is_not_told_either(judged):
    _, judgment, theirs = judged
    carol = decided(judgment)
    join(theirs, carol, Membership.Role.ANNOTATOR)
    assert {name for name, (_, told) in answers(carol, judgment).items() if told} == set()
    assert evidence(carol, judgment) == [(404, False), (404, False)]
    assert not Event.objects.filter(kind=SEEN).exists()
    Submission.objects.filter(pk=theirs.pk).update(frozen_at=timezone.now())
    assert answers(carol, judgment)["judgment"] == (200, True)
    assert evidence(carol, judgment) == [(200, False), (200, True)]


def test_who_labels_other_tasks_of_the_benchmark_elsewhere_is_told(judged):
    _, judgment, theirs = judged
    carol = decided(judgment)
    join(theirs, carol, Membership.Role.ANNOTATOR)
    assert judgment.trajectory is not None
    theirs.trajectories.filter(task__external_id=judgment.trajectory.task.external_id).delete()
    assert answers(carol, judgment)["judgment"] == (200, True)
    assert evidence(carol, judgment)[1] == (200, True)


@pytest.mark.parametrize("role", [Membership.Role.ANNOTATOR, Membership.Role.ADJUDICATOR])
def test_the_second_stage_leaves_out_what_tells_the_task_to_who_judges_it_elsewhere(judged, role):
    mira, judgment, theirs = judged
    trajectory = Trajectory.objects.get(pk=judgment.trajectory_id)
    workflow.configure(mira, trajectory.submission, second_stage=True)
    other = rows.run_row(trajectory.submission, rows.judge_row("free"))
    rows.judgment_row(RunItem.objects.get(run=other, trajectory=trajectory), 1)
    shown = {}
    for name in ("alice", "bob"):
        person = Person.objects.get(username=name)
        testing.label(person, trajectory)
        if name == "alice":
            join(theirs, person, role)
        client = Client()
        client.force_login(person)
        client.post(reverse("look-second-stage", args=[trajectory.pk]))
        page = client.get(reverse("second-stage", args=[trajectory.pk]), {"of": judgment.pk})
        looked = InformedRevision.objects.get(label__assignment__annotator=person)
        shown[name] = SECRET in page.content.decode(), {one["judge"] for one in looked.judgments}
    assert shown == {"alice": (False, {"free"}), "bob": (True, {"free", "net"})}
