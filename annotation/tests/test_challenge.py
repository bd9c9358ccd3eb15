"""The challenge of the demo: 12 trajectories with one known fault each, an answer key that agrees with them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.test import Client
from django.urls import reverse
from PIL import Image

from annotation import training, workflow
from annotation.completeness import Asked, missing
from annotation.demo import challenge
from annotation.formats.archive import open_package
from annotation.formats.packages import read_trajectories
from annotation.label_fields import LabelContent
from annotation.models import Event, Label, Person, Submission, Trajectory
from annotation.protocol import FAILURE_TYPES
from annotation.records import Finding, FindingContent, TrajectoryRecord, Verdict
from annotation.tests import testing
from annotation.tests.test_demo_data import read_json, requests, without_positions
from tools.demo.challenge import ACTION, ANSWER, SCREENSHOT
from tools.demo.faults import FAULTS

KEY = challenge.load_key()
FOLDER = challenge.FOLDER / "trajectories"
NAMED = [pytest.param(entry, id=entry["fault"]) for entry in KEY.values()]


@pytest.fixture(scope="module")
def records() -> dict[str, TrajectoryRecord]:
    with open_package(FOLDER) as package:
        return {task_id: record for task_id, record, _, _ in read_trajectories(package) if record is not None}


def test_the_challenge_has_twelve_different_faults_and_is_small() -> None:
    assert len(KEY) == len({entry["title"] for entry in KEY.values()}) == 12
    assert {folder.name for folder in FOLDER.iterdir()} == set(KEY)
    assert sum(path.stat().st_size for path in challenge.FOLDER.rglob("*") if path.is_file()) < 1_500_000


def test_tasks_and_answer_key_are_those_of_the_scripts() -> None:
    assert read_json(challenge.FOLDER / "tasks.json") == [fault.task.as_json() for fault in FAULTS]
    for fault in FAULTS:
        entry = KEY[fault.task.task_id]
        boxes = {each["words"]: each["box"] for each in entry["evidence"] if "box" in each}
        assert json.loads(json.dumps(fault.as_json(boxes))) == entry


def test_every_trajectory_is_read_without_a_problem_or_a_warning() -> None:
    with open_package(FOLDER) as package:
        read = list(read_trajectories(package))
    assert {task_id for task_id, _, _, _ in read} == set(KEY)
    assert [message for _, _, problems, warnings in read for message in (*problems, *warnings)] == []


@pytest.mark.parametrize("entry", NAMED)
def test_every_known_answer_is_complete_and_explains_a_failure(
    entry: dict[str, Any], records: dict[str, TrajectoryRecord]
) -> None:
    fields = entry["known_answer"]
    points = tuple(finding["key_point"] for finding in fields["findings"])
    findings = tuple(FindingContent(f["key_point"], Finding(f["finding"]), f["step"]) for f in fields["findings"])
    label = LabelContent(**fields | {"verdict": Verdict(fields["verdict"]), "findings": findings})

    assert missing(label, Asked(points, len(records[entry["task_id"]].steps))) == []
    assert label.verdict is Verdict.FAILURE
    assert label.failure_type in {term.code for term in FAILURE_TYPES}
    assert Finding.UNMET in {finding.finding for finding in findings}
    assert label.reasoning.startswith(f"{entry['title']}. ")


@pytest.mark.parametrize("entry", NAMED)
def test_the_evidence_is_at_the_deciding_step(entry: dict[str, Any], records: dict[str, TrajectoryRecord]) -> None:
    record = records[entry["task_id"]]
    step = record.steps[entry["step"]]
    texts = {ACTION: step.action}
    if step is record.steps[-1]:
        texts[ANSWER] = record.final_answer
    assert entry["evidence"]
    for each in entry["evidence"]:
        if each["where"] != SCREENSHOT:
            assert each["words"] in texts[each["where"]]
            continue
        left, top, width, height = each["box"]
        with Image.open(FOLDER / entry["task_id"] / "trajectory" / f"{entry['step']:04d}.webp") as image:
            assert (0 <= left < left + width <= image.width, 0 <= top < top + height <= image.height) == (True, True)
            # Words have at least the colour of the letters and that of the paper, and neither fills the box.
            colours = image.convert("RGB").crop((left, top, left + width, top + height)).getcolors(100_000)
        assert max(count for count, _ in colours) < 0.95 * width * height


def test_every_agent_claims_success_and_its_last_action_does_not_repeat_the_answer(
    records: dict[str, TrajectoryRecord],
) -> None:
    for task_id, record in records.items():
        assert read_json(FOLDER / task_id / "agent_response.json")["status"] == "SUCCESS"
        assert record.final_answer
        assert record.final_answer not in record.steps[-1].action


# --- played ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def played(tmp_path: Path, settings: Any, people: dict[str, Person]) -> Submission:
    settings.MEDIA_ROOT = tmp_path / "images"
    return challenge.load(people["mira"], [people["alice"], people["bob"]])


def right_answer(item: Trajectory) -> LabelContent:
    return challenge.content(item, KEY[item.task.external_id]["known_answer"])


@pytest.mark.django_db
def test_a_newcomer_plays_the_challenge_and_sees_the_score_and_what_was_missed(
    played: Submission, people: dict[str, Person], client: Client
) -> None:
    items = training.load_practice(people["alice"], played).items
    client.force_login(people["alice"])
    for item in items:
        page = client.get(reverse("practice", args=[played.pk])).content.decode()
        assert "faults" not in page  # their number would say what the rest of the round is
        given = right_answer(item)
        if KEY[item.task.external_id]["fault"] in ("wrong_date", "wrong_number_of_guests", "ignored_error"):
            given = testing.content(item, 1)
        workflow.answer_practice(people["alice"], played, item, given, 1)
        desk = client.get(reverse("practice-desk", args=[played.pk, item.pk])).content.decode()
        assert KEY[item.task.external_id]["title"] in desk

    page = " ".join(client.get(reverse("practice", args=[played.pk])).content.decode().split())
    assert "You found 9 of 12 faults." in page
    assert "Missed: Range not exact (2), Not submitted or not shown." in page
    assert (page.count(">found<"), page.count(">missed<")) == (9, 3)
    assert "9 of 12 verdicts were right." in page
    assert training.load_practice(people["bob"], played).answered == 0
    assert (Label.objects.count(), Event.objects.filter(kind="practice_passed").count()) == (0, 0)


@pytest.mark.browser
def test_recording_a_fault_again_gives_the_committed_actions_and_evidence(tmp_path: Path) -> None:
    # A process of its own: Playwright refuses to run twice in one thread, and other browser tests hold it open.
    command = [sys.executable, "-m", "tools.demo.record", "--output", str(tmp_path), "--task", "wrong_sort_order"]
    subprocess.run(command, check=True, cwd=settings.BASE_DIR, timeout=120)
    (again,) = read_json(tmp_path / "challenge" / "answer_key.json")
    committed = KEY[again["task_id"]]
    place, before = tmp_path / "challenge" / "trajectories" / again["task_id"], FOLDER / again["task_id"]

    assert without_boxes(again) == without_boxes(committed)
    # Fonts differ between machines, and with them the positions by a few pixels.
    for one, other in zip(boxes_of(again), boxes_of(committed), strict=True):
        assert all(abs(a - b) <= 12 for a, b in zip(one, other, strict=True))
    histories = [read_json(folder / "result.json")["action_history"] for folder in (place, before)]
    assert without_positions(histories[0]) == without_positions(histories[1])
    assert requests(place) == requests(before)


def without_boxes(entry: dict[str, Any]) -> dict[str, Any]:
    evidence = [{name: value for name, value in each.items() if name != "box"} for each in entry["evidence"]]
    return entry | {"evidence": evidence}


def boxes_of(entry: dict[str, Any]) -> list[list[int]]:
    return [each["box"] for each in entry["evidence"] if "box" in each]
