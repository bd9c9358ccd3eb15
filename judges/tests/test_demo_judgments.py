"""The demo shows what judges say without any endpoint: judgments written by hand of its reviewed submission."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from annotation.demo import load
from annotation.models import Person, Submission
from judges import demo
from judges.judgment_files import read_judgments
from judges.judgment_rows import JudgmentRecord
from judges.models import Judge, Judgment


def written() -> list[JudgmentRecord]:
    found = read_judgments(demo.FILE.read_bytes(), demo.FILE.name)
    assert not found.problems
    return found.records


def test_some_are_unscored_and_some_differ_from_what_the_people_decided() -> None:
    reviews = json.loads((load.DATA / "reviews.json").read_text(encoding="utf-8"))["careful"]
    scored = {one.task_id: one.score.verdict for one in written() if one.score.verdict is not None}
    unscored = [one.score for one in written() if one.score.verdict is None]

    assert set(scored.values()) == {0, 1}
    assert 0 < len(unscored) < len(scored)
    assert all(one.unscored and one.score is None for one in unscored)
    differ = [task for task, verdict in scored.items() if verdict != reviews[task]["adjudication"]["verdict"]]
    assert 0 < len(differ) < len(scored) / 2


def test_every_screenshot_is_spoken_of_and_no_step_is_cited_that_does_not_exist() -> None:
    for one in written():
        result = load.DATA / "submissions" / "careful" / one.task_id / "result.json"
        steps = [action["step"] for action in json.loads(result.read_text(encoding="utf-8"))["action_history"]]
        assert [step.step for step in one.score.steps] == steps
        assert {step for point in one.score.key_points for step in point.steps} <= set(steps)


@pytest.mark.django_db
def test_they_join_an_earlier_demo_say_what_they_are_and_are_loaded_once(
    tmp_path: Path, settings: Any, client: Client
) -> None:
    settings.MEDIA_ROOT = tmp_path / "images"
    list(load.everything())
    call_command("load_demo", "--anyway", stdout=(said := io.StringIO()))
    made = list(Judgment.objects.order_by("pk").values())
    call_command("load_demo", "--anyway", stdout=(again := io.StringIO()))

    assert said.getvalue() == again.getvalue()
    assert list(Judgment.objects.order_by("pk").values()) == made
    careful = Submission.objects.get(agent__name="Careful")
    judged = [one["trajectory_id"] for one in made]
    assert sorted(judged) == sorted(careful.trajectories.values_list("pk", flat=True))
    assert {(one["model"], one["tokens"], one["cost"]) for one in made} == {(demo.MODEL, None, None)}
    assert Judge.objects.get().description == demo.DESCRIPTION
    client.force_login(Person.objects.get(username="mira"))
    page = client.get(reverse("judgment", args=[made[0]["id"]])).content.decode()
    assert "imported" in page
    assert demo.DESCRIPTION in page
