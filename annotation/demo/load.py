"""Load the demo data with the importer and the workflow functions, as if people had created it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from django.db import transaction

from annotation import catalogue, ingest, queue, workflow
from annotation.demo import DATA, LOGINS, PASSWORD, challenge, past
from annotation.demo.challenge import content
from annotation.demo.past import PastClock
from annotation.file_cleanup import delete_files_on_failure
from annotation.models import Benchmark, Membership, Person, Submission
from annotation.models.states import State, with_state

ELSEWHERE = DATA / "labels_elsewhere.csv"  # of an agent whose trajectories are not in the demo
SLUG, NAME = "demo", "Demo shop and stay (simulated times)"
AGENTS = {"careful": "Careful", "hasty": "Hasty"}
CASUAL = "Casual"
PRACTICE = "Practice"
# A benchmark of its own, so that figures of the first one stay; checks and rubrics are only for the others.
ATTEMPTS, ATTEMPTS_NAME, OWN = "own-attempts", "Own attempts (simulated times)", "Hasty, attempted first"
UNLABELLED = "18de976dbe1bd5aee679d9dd1d39f604"
PASS_MARK = 0.6
ANNOTATORS = ("alice", "bob", "chen")


def everything() -> Iterator[str]:
    """Load the missing parts of the demo data, and yield a line for each part."""
    people = {name: _person(name) for name, _, _ in LOGINS}
    yield f"people: {', '.join(people)}"
    then = past.begin([SLUG, ANSWERS, REFERENCE, ATTEMPTS, challenge.SLUG])
    reviews = json.loads((DATA / "reviews.json").read_text(encoding="utf-8"))
    with then.running():
        tasks = DATA / "tasks.json"
        catalogue.import_tasks(tasks.read_bytes(), tasks.name, benchmark_slug=SLUG, benchmark_name=NAME)
        reviewed = [_reviewed(folder, agent, reviews[folder], people, then) for folder, agent in AGENTS.items()]
        _finish(reviewed[0], reviews["careful"], people, then)
        practice = Submission.objects.filter(benchmark__slug=SLUG, agent__name=PRACTICE).first()
        practice = practice or _practice(reviews["practice"], people)
        others = list(further_submissions(people["mira"]))
        for submission, name, ends in others:
            if not submission.memberships.filter(person=people["carol"]).exists():
                _staff(submission, people)
                _review(submission, reviews[name], people, then)
            if ends:
                _finish(submission, reviews[name], people, then)
        attempts = Submission.objects.filter(benchmark__slug=ATTEMPTS).first()
        attempts = attempts or _own_attempts(reviews["own-attempt"], people, then)
        faulty = challenge.load(people["mira"], [people[name] for name in ANNOTATORS])
    for submission in reviewed:
        yield f"submission {submission.pk}: {submission}, {submission.trajectories.count()} trajectories"
    yield f"submission {practice.pk}: {practice}, {practice.trajectories.count()} trajectories for practice"
    yield f"imported labels: {_elsewhere()} of the agent {CASUAL}, written by hand"
    for submission, _, _ in others:
        yield f"submission {submission.pk}: {submission} of {submission.benchmark}"
    yield f"submission {attempts.pk}: {attempts} of {attempts.benchmark}, with protocol version 2"
    yield f"submission {faulty.pk}: {faulty}, {faulty.trajectories.count()} trajectories with a known fault each"


def _reviewed(
    folder: str, agent: str, reviews: dict[str, Any], people: dict[str, Person], then: PastClock
) -> Submission:
    submission = Submission.objects.filter(benchmark__slug=SLUG, agent__name=agent).first()
    if submission is None:
        submission = _import(folder, agent, people)
        _review(submission, reviews, people, then)
    return submission


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
        raise RuntimeError(f"The demo data of {agent} was rejected: {report.as_json()['rejected']}")
    _staff(submission, people)
    return submission


def _staff(submission: Submission, people: dict[str, Person]) -> None:
    for name in ANNOTATORS:
        workflow.add_member(people["mira"], submission, people[name], Membership.Role.ANNOTATOR)
    workflow.add_member(people["mira"], submission, people["carol"], Membership.Role.ADJUDICATOR)


def _review(submission: Submission, reviews: dict[str, Any], people: dict[str, Person], then: PastClock) -> None:
    for trajectory in submission.trajectories.select_related("task"):
        review = reviews.get(trajectory.task.external_id, {})
        for name, label in review.get("labels", {}).items():
            workflow.claim_this(people[name], trajectory)
            then.work(people[name], trajectory)
            workflow.submit(people[name], trajectory, content(trajectory, label))
        for name, note in review.get("flags", {}).items():
            workflow.flag(people[name], trajectory, note)


def _finish(submission: Submission, reviews: dict[str, Any], people: dict[str, Person], then: PastClock) -> None:
    """Draw, adjudicate and freeze a submission that has all labels; continue after an interruption."""
    if submission.frozen_at is not None:
        return
    if with_state(submission.trajectories.all()).filter(state=State.AGREED.value).exists():
        workflow.draw_spot_checks(people["mira"], submission)
    for trajectory in queue.load_queue(submission):
        workflow.open_adjudication(people["carol"], trajectory)
        then.work(people["carol"], trajectory)
        review = reviews[trajectory.task.external_id]
        workflow.decide(people["carol"], trajectory, content(trajectory, review["adjudication"]))
    workflow.freeze(people["mira"], submission)


@delete_files_on_failure()  # outside of the transaction, so that its lock ends after the commit
@transaction.atomic
def _practice(items: dict[str, Any], people: dict[str, Person]) -> Submission:
    """Return a new practice set for newcomers of Hasty; Hasty's present annotators already have labels there.

    The trajectories of Hasty in it have all labels, so nobody is assigned to them any more.
    """
    folders = [f"{item['agent']}/{task_id}" for task_id, item in items.items()]
    practice = _import_some(folders, SLUG, PRACTICE, people)
    workflow.configure(people["mira"], practice, practice=True)
    for trajectory in practice.trajectories.select_related("task"):
        answer = items[trajectory.task.external_id]["known_answer"]
        workflow.set_known_answer(people["mira"], trajectory, content(trajectory, answer))
    hasty = Submission.objects.get(benchmark__slug=SLUG, agent__name="Hasty")
    workflow.configure(people["mira"], hasty, practice_set=practice, pass_mark=PASS_MARK)
    return practice


@delete_files_on_failure()
@transaction.atomic
def _own_attempts(reviews: dict[str, Any], people: dict[str, Person], then: PastClock) -> Submission:
    """Return a new submission under version 2 of the protocol: a dispute, a label, and a trajectory without any."""
    tasks = DATA / "tasks.json"
    catalogue.import_tasks(tasks.read_bytes(), tasks.name, benchmark_slug=ATTEMPTS, benchmark_name=ATTEMPTS_NAME)
    folders = [f"hasty/{task_id}" for task_id in (*reviews, UNLABELLED)]
    submission = _import_some(folders, ATTEMPTS, OWN, people, protocol_version=2)
    _staff(submission, people)
    _review(submission, reviews, people, then)
    return submission


def _import_some(
    folders: list[str], slug: str, agent: str, people: dict[str, Person], protocol_version: int = 1
) -> Submission:
    """Import these folders of recorded submissions as one submission of ``agent``."""
    with TemporaryDirectory() as package:
        for folder in folders:
            shutil.copytree(DATA / "submissions" / folder, Path(package) / Path(folder).name)
        report, made = ingest.import_submission(
            Path(package),
            benchmark=Benchmark.objects.get(slug=slug),
            agent_name=agent,
            maintainer=people["mira"],
            protocol_version=protocol_version,
        )
    if made is None:
        raise RuntimeError(f"The demo data of {agent} was rejected: {report.as_json()['rejected']}")
    return made


def _elsewhere() -> int:
    """Import the labels of two annotators, who differ on two tasks, for an agent that was not reviewed here."""
    benchmark = Benchmark.objects.get(slug=SLUG)
    report = catalogue.import_labels(ELSEWHERE.read_bytes(), ELSEWHERE.name, benchmark=benchmark)
    if report.rejected:
        raise RuntimeError(f"The imported labels were rejected: {report.as_json()['rejected']}")
    return benchmark.imported_labels.filter(agent__name=CASUAL).count()


# --- further benchmarks -----------------------------------------------------------------------------------------------


ANSWERS, REFERENCE = "demo-answers", "demo-actions"  # slugs of the benchmarks
RESEARCHER, PERSON = "Researcher", "Reference"  # agents


def further_submissions(maintainer: Person) -> Iterator[tuple[Submission, str, bool]]:
    """Yield each further submission, loaded if missing, with the name of its reviews and whether to freeze it."""
    first, second = _answers(maintainer)
    yield first, "researcher-1", True
    yield second, "researcher-2", False
    yield _reference(maintainer), "reference", True


def _answers(maintainer: Person) -> list[Submission]:
    found = Submission.objects.filter(benchmark__slug=ANSWERS, agent__name=RESEARCHER).order_by("attempt")
    if found:
        return list(found)
    tasks = DATA / "answers.json"
    catalogue.import_tasks(
        tasks.read_bytes(), tasks.name, benchmark_slug=ANSWERS, benchmark_name="Demo answers (simulated times)"
    )
    return _imported(DATA / "answers", ANSWERS, RESEARCHER, maintainer)


def _reference(maintainer: Person) -> Submission:
    found = Submission.objects.filter(benchmark__slug=REFERENCE, agent__name=PERSON).first()
    if found is not None:
        return found
    rows = DATA / "reference.jsonl.gz"
    catalogue.import_task_path(rows, benchmark_slug=REFERENCE, benchmark_name="Demo actions (simulated times)")
    return _imported(rows, REFERENCE, PERSON, maintainer)[0]


def _imported(path: Path, slug: str, agent: str, maintainer: Person) -> list[Submission]:
    benchmark = Benchmark.objects.get(slug=slug)
    report, made = ingest.import_all(path, benchmark=benchmark, agent_name=agent, maintainer=maintainer)
    if not made:
        raise RuntimeError(f"The demo data of {agent} was rejected: {report.as_json()['rejected']}")
    return made
