"""The committed demo data: small, complete, readable, true to its scripts, and free of the machine it was made on."""

from __future__ import annotations

import gzip
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.conf import settings
from django.utils import timezone
from django.utils.timezone import now as real_now
from PIL import Image

from annotation import workflow
from annotation.completeness import Asked, missing
from annotation.demo import DATA, load
from annotation.formats.archive import open_package
from annotation.formats.packages import read_trajectories
from annotation.formats.tasks import read_tasks
from annotation.label_fields import LabelContent
from annotation.models import Event, Label, Person, Submission
from annotation.records import AttemptContent, Finding, FindingContent, TrajectoryRecord, Verdict
from annotation.tests import testing
from tools.chromium import ChromiumMissingError, find_chromium
from tools.demo.answers import QUESTIONS
from tools.demo.faults import FAULTS
from tools.demo.record import AGENTS
from tools.demo.tasks import TASKS, TASKS_BY_NAME

ANNOTATORS = ("alice", "bob", "chen")
V2_KEYS = {"schema_version", "task_id", "task", "reference_length", "agent_final_answer", "action_history"}
V2_STEP_KEYS = {"step", "screenshot", "url", "thought", "action"}
TRACES_OF_A_MACHINE = re.compile(r"127\.0\.0\.1|localhost|file:|(?<![\w.])/(?:home|root|tmp|work|usr|var|Users)/")
KEY_POINTS = {task.task_id: tuple(range(len(task.key_points))) for task in TASKS}


def read_json(path: Path) -> Any:
    return json.loads(path.read_text("utf-8"))


def folders(agent: str) -> list[Path]:
    return sorted((DATA / "submissions" / agent).iterdir())


def records(agent: str) -> dict[str, TrajectoryRecord]:
    with open_package(DATA / "submissions" / agent) as package:
        return {task_id: record for task_id, record, _, _ in read_trajectories(package) if record is not None}


def content(written: dict[str, Any]) -> LabelContent:
    """A label as reviews.json writes it; an unknown key or word is an error."""
    findings = tuple(
        FindingContent(finding["key_point"], Finding(finding["finding"]), finding.get("step"))
        for finding in written["findings"]
    )
    attempt = AttemptContent(**written["attempt"]) if "attempt" in written else None
    return LabelContent(**{**written, "verdict": Verdict(written["verdict"]), "findings": findings, "attempt": attempt})


def labels(agent: str) -> Iterator[tuple[str, str]]:
    """Task id, who, and the content of every label and adjudication of a submission."""
    for task_id, review in read_json(DATA / "reviews.json")[agent].items():
        for who, written in review["labels"].items():
            yield task_id, who, content(written)
        if "adjudication" in review:
            yield task_id, "carol", content(review["adjudication"])


def test_the_demo_data_are_smaller_than_six_megabytes() -> None:
    assert sum(path.stat().st_size for path in DATA.rglob("*") if path.is_file()) < 6_000_000


def test_the_committed_tasks_are_those_of_the_scripts() -> None:
    assert read_json(DATA / "tasks.json") == [task.as_json() for task in TASKS]
    assert len(TASKS) >= 10
    assert all(re.fullmatch(r"[0-9a-f]{32}(_\d{6})?", task.task_id) for task in TASKS)
    assert any(task.task_id.endswith("_110325") for task in TASKS)


def test_the_tasks_are_read_without_a_problem() -> None:
    problems = []
    with (DATA / "tasks.json").open("rb") as source:
        tasks = list(read_tasks(source, "tasks.json", problems))
    assert problems == []
    assert [len(task.key_points) for task in tasks] == [len(task.key_points) for task in TASKS]


@pytest.mark.parametrize("agent", ["careful", "hasty"])
def test_every_task_has_a_trajectory_of_each_agent(agent: str) -> None:
    assert {folder.name for folder in folders(agent)} == {task.task_id for task in TASKS}


@pytest.mark.parametrize("agent", ["careful", "hasty"])
def test_every_trajectory_is_read_without_a_problem(agent: str) -> None:
    with open_package(DATA / "submissions" / agent) as package:
        read = list(read_trajectories(package))
    assert [problem for _, _, problems, _ in read for problem in problems] == []
    assert {task_id for task_id, _, _, _ in read} == {task.task_id for task in TASKS}
    assert all(len(record.attachments) == 2 for _, record, _, _ in read if record)


def test_only_the_trajectory_with_a_hole_in_its_numbering_is_doubtful() -> None:
    doubtful = {}
    for agent in ("careful", "hasty"):
        with open_package(DATA / "submissions" / agent) as package:
            doubtful[agent] = {task_id for task_id, _, _, warnings in read_trajectories(package) if warnings}
    assert doubtful == {"careful": set(), "hasty": {TASKS_BY_NAME["booking"].task_id}}


def test_one_trajectory_has_one_screenshot_more_than_actions() -> None:
    def surplus(folder: Path) -> int:
        return len(list((folder / "trajectory").iterdir())) - len(read_json(folder / "result.json")["action_history"])

    surpluses = {folder.name: surplus(folder) for folder in folders("hasty") if surplus(folder)}
    assert surpluses == {TASKS_BY_NAME["best_rated"].task_id: 1, TASKS_BY_NAME["booking"].task_id: -1}


def test_the_keys_of_version_2_are_exact() -> None:
    for folder in folders("careful"):
        result = read_json(folder / "result.json")
        assert set(result) == V2_KEYS
        *acting, last = result["action_history"]
        assert all(set(step) == V2_STEP_KEYS | {"action_status"} for step in acting)
        assert all(step["action"].endswith(f" | {step['action_status']}") for step in acting)
        assert set(last) == V2_STEP_KEYS
        assert last["action"] == f"TASK_COMPLETE -> ANSWER: {result['agent_final_answer']}"


def test_the_keys_of_version_1_are_exact() -> None:
    for folder in folders("hasty"):
        result = read_json(folder / "result.json")
        assert set(result) == {"task_id", "task", "final_result_response", "action_history", "thoughts"}
        assert len(result["thoughts"]) == len(result["action_history"])


def test_every_screenshot_that_is_named_exists_and_every_one_decodes() -> None:
    for folder in folders("careful"):
        named = {step["screenshot"] for step in read_json(folder / "result.json")["action_history"]}
        assert named == {path.name for path in (folder / "trajectory").iterdir()}
    images = [path for path in DATA.rglob("trajectory/*") if path.is_file()]
    assert len(images) > 100
    for path in images:
        with Image.open(path) as image:
            image.load()
            assert image.size == (1280, 720), path


def test_clicks_lie_inside_the_viewport_of_the_agents() -> None:
    clicks = [step.click for agent in ("careful", "hasty") for r in records(agent).values() for step in r.steps]
    found = [click for click in clicks if click]
    assert len(found) > 60
    assert all(0 <= click.x < 1280 and 0 <= click.y < 720 for click in found)


def test_no_data_file_tells_of_the_machine_it_was_made_on() -> None:
    texts = [path for path in DATA.rglob("*") if path.suffix in {".json", ".har"}]
    # Tasks, reviews, three files of each trajectory; the tasks of the answers, and an index of pages for each of them;
    # tasks and answer key of the challenge, and three files of each of its trajectories.
    assert len(texts) == 2 + 3 * 2 * len(TASKS) + 1 + len(QUESTIONS) + 2 + 3 * len(FAULTS)
    texts += [*DATA.rglob("*.txt"), *DATA.rglob("*.md")]
    assert [path for path in texts if TRACES_OF_A_MACHINE.search(path.read_text("utf-8"))] == []
    rows = gzip.decompress((DATA / "reference.jsonl.gz").read_bytes()).decode()
    assert not TRACES_OF_A_MACHINE.search(re.sub(r'"bytes": "[^"]*"', "", rows))


def test_the_network_traces_know_only_the_hosts_of_the_demo() -> None:
    paths = list(DATA.rglob("network.har"))
    assert len(paths) == 2 * len(TASKS) + len(FAULTS)
    for path in paths:
        entries = read_json(path)["log"]["entries"]
        assert entries
        assert {urlsplit(e["request"]["url"]).netloc for e in entries} <= {"shop.example", "stay.example"}


@pytest.mark.parametrize("agent", ["careful", "hasty"])
def test_every_label_of_the_demo_people_is_complete(agent: str) -> None:
    steps = {task_id: len(record.steps) for task_id, record in records(agent).items()}
    found = [
        (t, who, missing(label, Asked(KEY_POINTS[t], steps[t], criterion=who == "carol")))
        for t, who, label in labels(agent)
    ]
    assert found
    assert [entry for entry in found if entry[2]] == []


def test_careful_is_reviewed_in_full_with_at_least_two_disputes() -> None:
    reviews = read_json(DATA / "reviews.json")["careful"]
    assert set(reviews) == {task.task_id for task in TASKS}
    assert all(set(review["labels"]) == set(ANNOTATORS) and "adjudication" in review for review in reviews.values())
    assert len([review for review in reviews.values() if disputed(review)]) >= 2


def test_hasty_leaves_work_for_everybody() -> None:
    reviews = read_json(DATA / "reviews.json")["hasty"]
    for annotator in ANNOTATORS:
        assert len([r for r in reviews.values() if annotator in r["labels"]]) < len(TASKS)
    assert {len(review["labels"]) for review in reviews.values()} == {1, 2, 3}
    assert set(reviews) < {task.task_id for task in TASKS}
    assert any(disputed(review) and "adjudication" not in review for review in reviews.values())
    assert any(review.get("flags") for review in reviews.values())


def test_the_practice_set_has_every_verdict_and_complete_known_answers() -> None:
    items = read_json(DATA / "reviews.json")["practice"]
    answers = {task_id: content(item["known_answer"]) for task_id, item in items.items()}
    steps = {task_id: len(records(item["agent"])[task_id].steps) for task_id, item in items.items()}

    assert {answer.verdict for answer in answers.values()} == set(Verdict)
    assert [t for t, answer in answers.items() if missing(answer, Asked(KEY_POINTS[t], steps[t]))] == []


def test_nobody_practises_on_what_they_may_still_be_given() -> None:
    reviews = read_json(DATA / "reviews.json")
    practised = {task_id for task_id, item in reviews["practice"].items() if item["agent"] == "hasty"}
    assert practised
    assert all(set(reviews["hasty"][task_id]["labels"]) == set(ANNOTATORS) for task_id in practised)


@pytest.mark.django_db
def test_the_demo_people_are_given_work_at_once_and_a_newcomer_practises_first(tmp_path: Path, settings: Any) -> None:
    settings.MEDIA_ROOT = tmp_path / "images"
    first, again = list(load.everything()), list(load.everything())
    hasty, practice = (Submission.objects.get(agent__name=name) for name in ("Hasty", load.PRACTICE))

    assert first == again
    assert (hasty.practice_set, practice.practice) == (practice, True)
    for name in ANNOTATORS:
        assert workflow.claim(Person.objects.get(username=name), hasty) is not None
    nina = testing.person("nina")
    workflow.add_member(Person.objects.get(username="mira"), hasty, nina, "annotator")
    with pytest.raises(workflow.Conflict, match="Pass the practice set first"):
        workflow.claim(nina, hasty)


@pytest.mark.django_db
def test_times_of_the_demo_are_plausible_in_order_and_marked_as_simulated(tmp_path: Path, settings: Any) -> None:
    settings.MEDIA_ROOT = tmp_path / "images"
    list(load.everything())
    labels = Label.objects.select_related("assignment__trajectory")

    for label in labels:
        held = (label.created_at - label.assignment.claimed_at).total_seconds()
        steps = label.assignment.trajectory.steps.count()
        assert max(5, steps) < label.active_seconds <= held + 1, label
        assert label.steps_seen == list(range(steps))
    per_person = {name: labels.filter(assignment__annotator__username=name) for name in ANNOTATORS}
    assert len({tuple(rows.values_list("active_seconds", flat=True)) for rows in per_person.values()}) == 3
    for submission in Submission.objects.all():
        times = list(submission.events.order_by("sequence").values_list("at", flat=True))
        assert times == sorted(times)
        assert times[-1] <= timezone.now()
        assert "simulated times" in submission.benchmark.name


@pytest.mark.django_db
def test_demo_leaves_the_clock_of_the_process_alone_and_is_loaded_again_without_events(
    tmp_path: Path, settings: Any
) -> None:
    settings.MEDIA_ROOT = tmp_path / "images"
    before = timezone.now
    list(load.everything())
    events = Event.objects.count()
    list(load.everything())

    assert timezone.now is before
    assert Event.objects.count() == events
    assert timezone.now() - real_now() < timedelta(seconds=1)


@pytest.mark.django_db
def test_answers_come_as_attempts_with_their_pages_and_reference_rows_as_one_submission(
    tmp_path: Path, settings: Any
) -> None:
    settings.MEDIA_ROOT = tmp_path / "images"
    list(load.everything())
    first, second = Submission.objects.filter(benchmark__slug=load.ANSWERS).order_by("attempt")
    reference = Submission.objects.get(benchmark__slug=load.REFERENCE)

    assert (first.frozen_at is None, second.frozen_at is None, reference.frozen_at is None) == (False, True, False)
    for submission in (first, second):
        assert {t.steps.count() for t in submission.trajectories.all()} == {0}
        assert all(t.attachments.filter(kind="cached_page").exists() for t in submission.trajectories.all())
    assert sorted(t.steps.count() for t in reference.trajectories.all()) == [5, 6, 6]
    steps = reference.trajectories.values_list("attachments__name", flat=True)
    assert len([name for name in steps if re.search(r"reference/\d+\.json", name)]) == 17
    assert workflow.claim(Person.objects.get(username="chen"), second) is not None


@pytest.mark.django_db
def test_a_submission_asks_for_own_attempts_and_has_work_for_everybody(tmp_path: Path, settings: Any) -> None:
    settings.MEDIA_ROOT = tmp_path / "images"
    list(load.everything())
    own = Submission.objects.get(protocol_version=2)

    assert (own.benchmark.slug, own.frozen_at) == (load.ATTEMPTS, None)
    labels = Label.objects.filter(assignment__trajectory__submission=own)
    assert {(label.attempt.path, label.attempt.seconds) for label in labels} == {
        ("not_comparable", 95),
        ("longer", 140),
        ("longer", None),
        ("not_solved", 210),
    }
    assert len(workflow.asked_of(own.trajectories.first()).key_points) > 0
    carol = Person.objects.get(username="carol")
    assert workflow.open_adjudication(carol, own.trajectories.get(task__external_id__startswith="e9286")) is not None
    for name in ANNOTATORS:
        assert workflow.claim(Person.objects.get(username=name), own) is not None


@pytest.mark.parametrize("task_id", read_json(DATA / "reviews.json")["own-attempt"])
def test_every_label_with_an_own_attempt_is_complete(task_id: str) -> None:
    steps = len(records("hasty")[task_id].steps)
    asked = Asked(KEY_POINTS[task_id], steps, attempt=True)
    given = [label for task, _, label in labels("own-attempt") if task == task_id]
    assert given
    assert [missing(label, asked) for label in given] == [[] for _ in given]
    assert all(label.attempt.steps in (None, len(label.attempt.notes.splitlines())) for label in given)


@pytest.mark.parametrize("name", ["researcher-1", "researcher-2"])
def test_every_label_of_an_answer_is_complete_without_naming_a_step(name: str) -> None:
    asked = {each.task.task_id: tuple(range(len(each.task.key_points))) for each in QUESTIONS}
    found = [
        (task, who, missing(label, Asked(asked[task], 0, criterion=who == "carol")))
        for task, who, label in labels(name)
    ]
    assert found
    assert [entry for entry in found if entry[2]] == []


def disputed(review: dict[str, Any]) -> bool:
    return len(review["labels"]) == 3 and len({label["verdict"] for label in review["labels"].values()}) > 1


def test_a_wrong_chromium_is_refused_with_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHROMIUM", "no-such-browser")
    with pytest.raises(ChromiumMissingError, match="no-such-browser"):
        find_chromium()


def test_a_missing_chromium_is_refused_with_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("CHROMIUM", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ChromiumMissingError, match="set CHROMIUM"):
        find_chromium()


@pytest.mark.browser
def test_recording_a_task_again_gives_the_committed_actions_and_addresses(tmp_path: Path) -> None:
    # A process of its own: Playwright refuses to run twice in one thread, and other browser tests hold it open.
    command = [sys.executable, "-m", "tools.demo.record", "--output", str(tmp_path), "--task", "cheapest"]
    subprocess.run(command, check=True, cwd=settings.BASE_DIR, timeout=120)
    task_id = TASKS_BY_NAME["cheapest"].task_id
    for kind, _ in AGENTS:
        place = Path("submissions") / kind.name / task_id
        again, committed = read_json(tmp_path / place / "result.json"), read_json(DATA / place / "result.json")
        assert without_positions(again["action_history"]) == without_positions(committed["action_history"])
        assert requests(tmp_path / place) == requests(DATA / place)


def without_positions(history: list[Any]) -> list[Any]:
    """Fonts differ between machines, and with them the positions by a few pixels."""
    return [
        {**step, "action": re.sub(r"\(\d+, \d+\)", "(x, y)", step["action"])}
        if isinstance(step, dict)
        else re.sub(r"\(\d+, \d+\)", "(x, y)", step)
        for step in history
    ]


def requests(folder: Path) -> list[tuple[str, str]]:
    entries = read_json(folder / "network.har")["log"]["entries"]
    return [(entry["request"]["method"], entry["request"]["url"]) for entry in entries]
