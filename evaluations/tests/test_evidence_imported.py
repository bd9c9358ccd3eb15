"""What was made elsewhere, in a bundle: imported labels never, imported judgments in a run of their own."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.core.management import call_command
from django.utils import timezone

from annotation.models import ImportedLabel, Person, Submission
from annotation.tests import testing
from evaluations.evidence import writing
from evaluations.evidence.writing import prepare
from evaluations.tests.builders import judged
from judges.imports import import_judgments

TASKS = ("task_0000", "task_0001")


@pytest.fixture(autouse=True)
def own_store(store: None) -> None:
    """What is kept here is not found by other tests."""


@pytest.fixture(autouse=True)
def verified_at_one_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bundle of digests states when the stored files were verified; everything else is the same for the same rows."""
    at = timezone.now()
    monkeypatch.setattr(writing, "clock", SimpleNamespace(now=lambda: at))


def made(submission: Submission, **chosen: Any) -> bytes:
    return b"".join(prepare(Submission.objects.get(pk=submission.pk), **chosen).chunks())


def labels_from_elsewhere(submission: Submission, folder: Path) -> None:
    """Of three others for every task of this submission's agent, no two of them alike, and of another agent."""
    agent = submission.agent.name
    rows = [f"E{who},{task},{agent},{who},Made elsewhere.,," for task in TASKS for who in (0, 1, 2)]
    rows += [f"E3,{task},Somebody Else,0,Made elsewhere.,," for task in TASKS]
    file = folder / "elsewhere.csv"
    head = "annotator,task_id,agent,label,reasoning,failure_step,failure_type"
    file.write_text("\n".join([head, *rows]) + "\n", encoding="utf-8")
    call_command("import_labels", str(file), "--benchmark", submission.benchmark.slug)
    assert ImportedLabel.objects.filter(agent=submission.agent).count() == 3 * len(TASKS)


@pytest.mark.parametrize("chosen", [{}, {"screenshots": "digests"}, {"judges": False}])
def test_imported_labels_change_no_byte_of_the_bundle(
    frozen: Submission, tmp_path: Path, chosen: dict[str, Any]
) -> None:
    judged(frozen.benchmark, repetitions=2)
    before = made(frozen, **chosen)
    labels_from_elsewhere(frozen, tmp_path)
    assert made(frozen, **chosen) == before


def test_imported_labels_change_no_byte_of_a_partial_bundle(
    submission: Submission, people: dict[str, Person], tmp_path: Path
) -> None:
    """Where people have said nothing yet, nothing that others said elsewhere takes the place of it."""
    testing.label_all(people, submission, {TASKS[0]: [1, 0, 1]})
    before = made(submission, partial=True)
    labels_from_elsewhere(submission, tmp_path)
    assert made(submission, partial=True) == before


def test_imported_judgments_have_a_run_of_their_own_and_are_compared(frozen: Submission) -> None:
    rows = [{"agent": frozen.agent.name, "task_id": task, "verdict": 1, "response": "Yes."} for task in TASKS]
    data = "\n".join(map(json.dumps, rows)).encode()
    outcome = import_judgments(data, "judged.jsonl", benchmark=frozen.benchmark, judge="elsewhere")
    assert not outcome.report.rejected, outcome.report.as_json()

    package = zipfile.ZipFile(io.BytesIO(made(frozen)))
    (run,) = map(json.loads, package.read("judges/runs.jsonl").splitlines())
    lines = [json.loads(line) for line in package.read("judges/judgments.jsonl").splitlines()]
    (compared,) = json.loads(package.read("reports/comparison.json"))["judges"]

    assert (run["judge"], run["event_run"], run["started_at"]) == ("elsewhere", None, None)
    assert [(line["run"], line["task_id"], line["counts"]) for line in lines] == [(1, task, True) for task in TASKS]
    assert compared["judge"] == "elsewhere@1"
    assert {row["n"] for row in compared["rows"]} == {len(TASKS)}
