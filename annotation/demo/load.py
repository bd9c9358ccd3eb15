"""The demo data into rows: through the importer and the verbs, as people would have made them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from annotation import catalogue, ingest, queue, workflow
from annotation.demo import LOGINS, PASSWORD
from annotation.models import Benchmark, Membership, Person, Submission, Trajectory
from annotation.models.states import State, with_state
from annotation.records import Finding, FindingContent, LabelContent, Verdict

DATA = Path(__file__).parent / "data"
SLUG = "demo"
AGENTS = {"careful": "Careful", "hasty": "Hasty"}
ANNOTATORS = ("alice", "bob", "chen")


def everything() -> Iterator[str]:
    """Load what is not there yet; yields a line for each part."""
    people = {name: _person(name) for name, _, _ in LOGINS}
    yield f"people: {', '.join(people)}"
    tasks = DATA / "tasks.json"
    catalogue.import_tasks(tasks.read_bytes(), tasks.name, benchmark_slug=SLUG, benchmark_name="Demo shop and stay")
    reviews = json.loads((DATA / "reviews.json").read_text(encoding="utf-8"))
    for folder, agent in AGENTS.items():
        submission = Submission.objects.filter(benchmark__slug=SLUG, agent__name=agent).first()
        if submission is None:
            submission = _import(folder, agent, people)
            _review(submission, reviews[folder], people)
        yield f"submission {submission.pk}: {submission}, {submission.trajectories.count()} trajectories"
    _finish(Submission.objects.get(benchmark__slug=SLUG, agent__name="Careful"), reviews["careful"], people)


def _person(name: str) -> Person:
    found = Person.objects.filter(username=name).first()
    return found or Person.objects.create_user(name, password=PASSWORD, is_staff=name == "mira")


def _import(folder: str, agent: str, people: dict[str, Person]) -> Submission:
    report, submission = ingest.import_submission(
        DATA / "submissions" / folder,
        benchmark=Benchmark.objects.get(slug=SLUG),
        agent_name=agent,
        maintainer=people["mira"],
    )
    if submission is None:
        raise RuntimeError(f"The demo data of {agent} was refused: {report.as_json()['rejected']}")
    for name in ANNOTATORS:
        workflow.add_member(people["mira"], submission, people[name], Membership.Role.ANNOTATOR)
    workflow.add_member(people["mira"], submission, people["carol"], Membership.Role.ADJUDICATOR)
    return submission


def _review(submission: Submission, reviews: dict[str, Any], people: dict[str, Person]) -> None:
    for trajectory in submission.trajectories.select_related("task"):
        review = reviews.get(trajectory.task.external_id, {})
        for name, label in review.get("labels", {}).items():
            workflow.claim_this(people[name], trajectory)
            workflow.submit(people[name], trajectory, content(trajectory, label))
        for name, note in review.get("flags", {}).items():
            workflow.flag(people[name], trajectory, note)


def _finish(submission: Submission, reviews: dict[str, Any], people: dict[str, Person]) -> None:
    """Draw, adjudicate and freeze a submission whose labels are all in; goes on where it was interrupted."""
    if submission.frozen_at is not None:
        return
    if with_state(submission.trajectories.all()).filter(state=State.AGREED.value).exists():
        workflow.draw_spot_checks(people["mira"], submission)
    for trajectory in queue.to_adjudicate(submission):
        workflow.open_adjudication(people["carol"], trajectory)
        review = reviews[trajectory.task.external_id]
        workflow.decide(people["carol"], trajectory, content(trajectory, review["adjudication"]))
    workflow.freeze(people["mira"], submission)


def content(trajectory: Trajectory, fields: dict[str, Any]) -> LabelContent:
    """What the reviews file says, with key points by their place in the task."""
    key_points = list(workflow.key_points_of(trajectory).values_list("pk", flat=True))
    findings = tuple(
        FindingContent(key_points[f["key_point"]], Finding(f["finding"]), f.get("step")) for f in fields["findings"]
    )
    return LabelContent(**(fields | {"verdict": Verdict(fields["verdict"]), "findings": findings}))
