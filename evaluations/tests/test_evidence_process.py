"""Process labels in an evidence bundle: every check passes with them, and bundles of others are as before."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

from annotation import workflow
from annotation.models import Membership, Person, Submission
from annotation.records import StepMark
from annotation.tests import testing
from evaluations.evidence.writing import prepare, write
from evaluations.tests.checks import check
from evaluations.tests.finished import finish
from evaluations.verifier.findings import Result


def written(submission: Submission, path: Path) -> dict[str, Any]:
    """Write the bundle, and return the documents that tell of process labels."""
    write(prepare(submission), path)
    with zipfile.ZipFile(path) as package:
        lines = package.read("labels.jsonl").decode().splitlines()
        named = {name: json.loads(package.read(name)) for name in ("submission.json", "reports/agreement.json")}
        return named | {"facts": [json.loads(line)["facts"] for line in lines]}


def failed(path: Path) -> list[str]:
    return [finding.name for finding in check(str(path)) if finding.result is Result.FAIL]


def test_a_bundle_with_process_labels_passes_every_check(
    submission: Submission, people: dict[str, Person], tmp_path: Path
) -> None:
    workflow.configure(people["mira"], submission, process_labels=True)
    row = submission.trajectories.get(task__external_id="task_0000")
    for name, marks in (("alice", (StepMark(1, "unnecessary"),)), ("bob", ())):
        workflow.claim_this(people[name], row)
        workflow.submit(people[name], row, testing.content(row, 1, process=marks))
    said = written(finish(people, submission, {}), tmp_path / "bundle.zip")

    assert said["submission.json"]["process_labels"] is True
    assert [facts["process"] for facts in said["facts"] if "process" in facts] == [[{"step": 1, "mark": "unnecessary"}]]
    assert "process" not in said["reports/agreement.json"]
    assert failed(tmp_path / "bundle.zip") == []


def test_a_bundle_without_process_labels_does_not_name_them(frozen: Submission, tmp_path: Path) -> None:
    said = written(frozen, tmp_path / "bundle.zip")

    assert "process_labels" not in said["submission.json"]
    assert not any("process" in facts for facts in said["facts"])
    assert failed(tmp_path / "bundle.zip") == []


def test_settings_changed_after_every_slot_was_given_back_pass_every_check(
    submission: Submission, people: dict[str, Person], tmp_path: Path
) -> None:
    workflow.configure(people["mira"], submission, required_labels=4)
    workflow.add_member(people["mira"], submission, people["dave"], Membership.Role.ANNOTATOR)
    row = submission.trajectories.get(task__external_id="task_0000")
    for name in ("alice", "bob", "chen", "dave"):
        workflow.claim_this(people[name], row)
    for name in ("alice", "bob", "chen", "dave"):
        workflow.release(people[name], row, "I know this agent.")
    workflow.offer_again(people["mira"], row, "It is another agent.")
    workflow.configure(people["mira"], submission, required_labels=3, process_labels=True)
    written(finish(people, submission, {}), tmp_path / "bundle.zip")

    assert failed(tmp_path / "bundle.zip") == []
