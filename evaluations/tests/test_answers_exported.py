"""Answers, which have no steps, in exports and figures: nothing is divided by their steps, and none is invented."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from annotation import workflow
from annotation.models import Submission
from annotation.tests import testing
from evaluations import cases
from evaluations.exports import ExportFormat, ExportRefused, prepare
from evaluations.tests.test_export_labels import exported, lines, validator

pytestmark = pytest.mark.django_db


@pytest.fixture
def answers(tmp_path: Path, settings: Any) -> Submission:
    """Two answers, labelled, one adjudicated as a failure, and frozen."""
    settings.MEDIA_ROOT = tmp_path / "images"
    made = testing.answered(tmp_path / "answers")
    people = testing.cast(made)
    testing.label_all(people, made, {"task_0000": [0, 0, 1], "task_0001": [0, 0, 0]})
    workflow.draw_spot_checks(people["carol"], made)
    testing.adjudicate_all(people["carol"], made, 0)
    return workflow.freeze(people["mira"], made)


def test_the_labels_of_answers_are_exported_with_failures_that_name_no_step(answers: Submission) -> None:
    found = [line for line in lines(answers) if line["type"] in ("label", "adjudication") and line["verdict"] == 0]
    assert len(found) > 5
    assert {(line["failure_step"], line["failure_type"]) for line in found} == {(None, "range_not_exact")}


def test_the_published_list_has_their_verdicts(answers: Submission) -> None:
    document = json.loads(exported(answers, "human-label"))
    validator("human-label").validate(document)
    assert [entry["Answering Agent_human_label"] for entry in document] == ["0", "0"]


def test_answers_are_refused_as_trajectories_with_the_reason(answers: Submission) -> None:
    with pytest.raises(ExportRefused) as refused:
        prepare(answers, ExportFormat.TRAJECTORIES_V2)
    assert [(problem.code, problem.where) for problem in refused.value.problems] == [
        ("no_steps", "task_0000"),
        ("no_steps", "task_0001"),
    ]
    assert "answer without steps" in str(refused.value)


def test_answers_count_as_trajectories_of_no_step(answers: Submission) -> None:
    assert list(cases.lengths(cases.of_submission(answers)).values()) == [(0, 0), (0, 0)]


def test_the_pages_of_figures_show_answers(answers: Submission) -> None:
    client = Client()
    client.force_login(testing.person("mira"))
    for name in ("submission", "quality", "agreement", "comparison", "printable-report", "export"):
        assert client.get(reverse(name, args=[answers.pk])).status_code == 200, name
