"""Load the challenge: a practice set of 12 trajectories with one known fault each, which its annotators play."""

from __future__ import annotations

import json
from typing import Any

from django.db import transaction

from annotation import catalogue, ingest, workflow
from annotation.demo import DATA
from annotation.file_cleanup import delete_files_on_failure
from annotation.label_fields import LabelContent
from annotation.models import Benchmark, Membership, Person, Submission, Trajectory
from annotation.records import AttemptContent, Finding, FindingContent, Verdict

FOLDER = DATA / "challenge"
SLUG, NAME, AGENT = "demo-challenge", "Demo challenge (simulated times)", "Challenge"


def load_key() -> dict[str, dict[str, Any]]:
    """Return the entries of the answer key by task id."""
    entries = json.loads((FOLDER / "answer_key.json").read_text(encoding="utf-8"))
    return {entry["task_id"]: entry for entry in entries}


def load(maintainer: Person, players: list[Person]) -> Submission:
    """Return the challenge, loaded if missing."""
    found = Submission.objects.filter(benchmark__slug=SLUG, agent__name=AGENT).first()
    return found or _import(maintainer, players)


@delete_files_on_failure()  # outside of the transaction, so that its lock ends after the commit
@transaction.atomic
def _import(maintainer: Person, players: list[Person]) -> Submission:
    tasks = FOLDER / "tasks.json"
    catalogue.import_tasks(tasks.read_bytes(), tasks.name, benchmark_slug=SLUG, benchmark_name=NAME)
    benchmark = Benchmark.objects.get(slug=SLUG)
    report, made = ingest.import_submission(
        FOLDER / "trajectories", benchmark=benchmark, agent_name=AGENT, maintainer=maintainer
    )
    if made is None:
        raise RuntimeError(f"The challenge was rejected: {report.as_json()['rejected']}")
    workflow.configure(maintainer, made, practice=True)
    key = load_key()
    for trajectory in made.trajectories.select_related("task"):
        answer = key[trajectory.task.external_id]["known_answer"]
        workflow.set_known_answer(maintainer, trajectory, content(trajectory, answer))
    for person in players:
        workflow.add_member(maintainer, made, person, Membership.Role.ANNOTATOR)
    made.refresh_from_db()
    return made


def content(trajectory: Trajectory, fields: dict[str, Any]) -> LabelContent:
    """Return the label in ``fields`` of a file of the demo, which names key points by their position in the task."""
    key_points = list(workflow.key_points_of(trajectory).values_list("pk", flat=True))
    findings = tuple(
        FindingContent(key_points[f["key_point"]], Finding(f["finding"]), f.get("step")) for f in fields["findings"]
    )
    attempt = AttemptContent(**fields["attempt"]) if "attempt" in fields else None
    return LabelContent(**(fields | {"verdict": Verdict(fields["verdict"]), "findings": findings, "attempt": attempt}))
