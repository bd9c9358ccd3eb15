"""The demo shows what judges say without any endpoint: some was written by hand, some needs nobody to ask."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from annotation.demo import DATA, load
from annotation.formats.labels_csv import read_labels
from annotation.models import Person, Submission
from judges import demo, expectations
from judges.judgment_files import read_judgments
from judges.judgment_rows import JudgmentRecord
from judges.models import Expectation, Judge, Judgment
from judges.tests.pages import read_page
from tools.demo.answers import QUESTIONS
from tools.demo.tasks import TASKS, TASKS_BY_NAME

AGENTS = ("Careful", "Hasty")


def written(file: Path = demo.FILE) -> list[JudgmentRecord]:
    found = read_judgments(file.read_bytes(), file.name)
    assert not found.problems
    return found.records


def test_some_are_unscored_and_some_differ_from_what_the_people_decided() -> None:
    reviews = json.loads((DATA / "reviews.json").read_text(encoding="utf-8"))["careful"]
    scored = {one.task_id: one.score.verdict for one in written() if one.score.verdict is not None}
    unscored = [one.score for one in written() if one.score.verdict is None]

    assert set(scored.values()) == {0, 1}
    assert 0 < len(unscored) < len(scored)
    assert all(one.unscored and one.score is None for one in unscored)
    differ = [task for task, verdict in scored.items() if verdict != reviews[task]["adjudication"]["verdict"]]
    assert 0 < len(differ) < len(scored) / 2


def test_the_judge_is_too_kind_to_the_agent_with_labels_made_elsewhere() -> None:
    labels, problems, _ = read_labels(load.ELSEWHERE.read_bytes(), load.ELSEWHERE.name)
    said: dict[str, set[int]] = {}
    for label in labels:
        said.setdefault(label.task_id, set()).add(int(label.verdict))
    agreed = {task: verdicts.pop() for task, verdicts in said.items() if len(verdicts) == 1}
    judged = {one.task_id: one.score.verdict for one in written(demo.ELSEWHERE)}

    assert not problems
    assert (len(said), len(agreed), len(judged)) == (12, 10, 11)
    assert list(judged.values()).count(None) == 1
    decided = [(agreed[task], verdict) for task, verdict in judged.items() if task in agreed and agreed[task] != 2]
    assert {pair: decided.count(pair) for pair in decided} == {(1, 1): 4, (0, 1): 2, (0, 0): 2}


def test_every_screenshot_is_spoken_of_and_no_step_is_cited_that_does_not_exist() -> None:
    for one in written():
        result = DATA / "submissions" / "careful" / one.task_id / "result.json"
        steps = [action["step"] for action in json.loads(result.read_text(encoding="utf-8"))["action_history"]]
        assert [step.step for step in one.score.steps] == steps
        assert {step for point in one.score.key_points for step in point.steps} <= set(steps)


@pytest.mark.django_db(transaction=True)
def test_they_join_an_earlier_demo_say_what_they_are_and_are_loaded_once(
    tmp_path: Path, settings: Any, client: Client
) -> None:
    settings.MEDIA_ROOT = tmp_path / "images"
    list(load.everything())
    call_command("load_demo", "--anyway", stdout=(said := io.StringIO()))
    every = list(Judgment.objects.order_by("pk").values())
    call_command("load_demo", "--anyway", stdout=(again := io.StringIO()))

    assert said.getvalue() == again.getvalue()
    assert list(Judgment.objects.order_by("pk").values()) == every
    made = [one for one in every if one["imported"] is not None]
    careful = Submission.objects.get(agent__name="Careful")
    judged = [one["trajectory_id"] for one in made if one["trajectory_id"]]
    assert len(made) == len(judged) + 11
    assert sorted(judged) == sorted(careful.trajectories.values_list("pk", flat=True))
    assert {(one["model"], one["tokens"], one["cost"]) for one in made} == {(demo.MODEL, None, None)}
    assert Judge.objects.get(name=demo.NAME).description == demo.DESCRIPTION
    client.force_login(Person.objects.get(username="mira"))
    page = read_page(client.get(reverse("judgment", args=[made[0]["id"]])))
    assert "imported" in page
    assert demo.DESCRIPTION in page


@pytest.mark.django_db(transaction=True)
def test_the_network_checks_have_judged_both_agents_before_anybody_asks(tmp_path: Path, settings: Any) -> None:
    settings.MEDIA_ROOT = tmp_path / "images"
    settings.JUDGE_ENDPOINTS = {}
    call_command("load_demo", "--anyway", stdout=io.StringIO())

    rows = Judgment.objects.filter(judge__name=demo.NETWORK).select_related("task", "agent")
    said = {agent: {one.task.external_id: one.verdict for one in rows if one.agent.name == agent} for agent in AGENTS}
    assert {agent: len(verdicts) for agent, verdicts in said.items()} == {"Careful": 12, "Hasty": 12}
    assert not rows.filter(verdict__isnull=True).exists()
    reviews = json.loads((DATA / "reviews.json").read_text(encoding="utf-8"))
    people = {task: review["adjudication"]["verdict"] for task, review in reviews["careful"].items()}
    decided = {task: verdict for task, verdict in people.items() if verdict != 2}
    differ = {task for task, verdict in decided.items() if said["Careful"][task] != verdict}
    # Two are stricter than the people, and say so in their first lines: a way to a page, and a filter nobody needs.
    assert differ == {TASKS_BY_NAME["house_rules"].task_id, TASKS_BY_NAME["free_shipping"].task_id}
    labelled = {
        task: {one["verdict"] for one in review["labels"].values()} for task, review in reviews["hasty"].items()
    }
    failed = [task for task, verdicts in labelled.items() if verdicts == {0}]
    assert len(failed) == 5
    assert {said["Hasty"][task] for task in failed} == {0}


@pytest.mark.parametrize("kind", list(demo.FOLDERS))
def test_every_expectation_of_the_demo_can_be_read_and_names_key_points_that_its_task_has(kind: str) -> None:
    known = {task.task_id: set(task.key_points) for task in (*TASKS, *(each.task for each in QUESTIONS))}
    files = sorted(demo.FOLDERS[kind].glob("*.yaml"))
    assert len(files) >= 4
    for file in files:
        text = file.read_text(encoding="utf-8")
        assert expectations.find_problems(Expectation.Kind(kind), text) == []
        named = set(re.findall(r"key_point: (.*)", text))
        assert named
        assert named <= known[file.stem], file.name
