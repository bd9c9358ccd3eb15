"""What all logs of agents share: tasks, attempts, pictures, points, and the report of what was carried and lost."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from annotation.formats.packages import read_trajectories
from annotation.formats.registry import open_packages
from annotation.ingest import import_all
from annotation.models import Benchmark, Submission, Task
from annotation.records import ImportReport, TrajectoryRecord
from annotation.tests import testing

PICTURE = {n: testing.png(n) for n in range(4)}


def logged(task: str = "t.0", agent: str = "a", **changes: Any) -> dict[str, bytes]:
    """Return the files of a trajectory of AgentRewardBench: a click, a text, an answer, and the end."""
    shots = f"screenshots/b/{agent}/{task}"
    steps: list[dict[str, Any]] = [
        {"num": 0, "action": "click('8')", "reasoning": "Open it.", "bounding_boxes": {"8": {"bbox": [10, 20, 4, 6]}}},
        {"num": 1, "action": "fill('9', 'lamp')", "reasoning": None, "bounding_boxes": {"9": {"bbox": [2, 0, 4, 6]}}},
        {"num": 2, "action": "send_msg_to_user('24.50')", "last_action_error": "no such element"},
        {"num": 3, "action": None},
    ]
    for number, step in enumerate(steps):
        step |= {"url": "https://lamps.example", "screenshot_path": f"x/{shots}/screenshot_step_{number}.png"}
    document = {"benchmark": "b", "agent": agent, "goal": "Find the price", "steps": steps} | changes
    files = {f"cleaned/b/{agent}/run/{task}.json": json.dumps(document).encode()}
    return files | {f"{shots}/screenshot_step_{number}.png": PICTURE[number] for number in range(4)}


def zipped(path: Path, files: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w") as package:
        for name, data in files.items():
            package.writestr(name, data)
    return path


def run(path: Path, **given: Any) -> tuple[Any, list[Submission]]:
    benchmark = Benchmark.objects.get_or_create(slug="logs", defaults={"name": "Logs"})[0]
    return import_all(path, benchmark=benchmark, **{"agent_name": "Agent", "create_tasks": True} | given)


def look(path: Path, agent: str = "") -> tuple[ImportReport, list[TrajectoryRecord]]:
    """Return what `inspect_log` reads of an upload: no database is needed."""
    report, records = ImportReport(), []
    with open_packages(path, report, lambda done, total: None, agent) as packages:
        for found in (each for package in packages for each in read_trajectories(package)):
            if found.problems:
                report.reject(found.task_id, *found.problems)
            elif found.record is not None:
                records.append(found.record)
    return report, records


def codes_of(report: ImportReport) -> list[str]:
    return [problem.code for problems in report.rejected.values() for problem in problems]


def counts_of(report: ImportReport, name: str) -> dict[str, int]:
    """Return ``carried``, ``derived`` or ``lost`` of a conversion."""
    assert report.conversion is not None
    return {what: count for what, count in getattr(report.conversion, name).items() if count}


@pytest.mark.django_db
def test_a_log_becomes_a_trajectory_with_pictures_points_and_outcomes(tmp_path: Path) -> None:
    report, (submission,) = run(zipped(tmp_path / "logs.zip", logged()))
    trajectory = submission.trajectories.get()
    steps = list(trajectory.steps.order_by("index"))
    assert (trajectory.task.external_id, trajectory.task_text) == ("t_0", "Find the price")
    assert (trajectory.final_answer, trajectory.source_format) == ("24.50", "agent-reward-bench")
    assert [step.action for step in steps] == [
        "coords(12, 23) -> CLICK -> click('8')",
        "coords(4, 3) -> TYPE -> fill('9', 'lamp'): no such element | FAILED",
        "send_msg_to_user('24.50')",
        "",
    ]
    assert [(step.click_x, step.click_y) for step in steps] == [(12, 23), (4, 3), *[(None, None)] * 2]
    assert [step.status for step in steps] == ["", "FAILED", "", ""]
    assert [step.thought for step in steps] == ["Open it.", None, None, None]
    assert all(step.screenshot and step.url == "https://lamps.example" for step in steps)
    assert report.with_conversion()["conversion"] == {
        "format": "agent-reward-bench",
        "version": "",
        "carried": [
            {"what": what, "count": count}
            for what, count in (
                ("steps", 3), ("screenshots", 4), ("points", 2), ("thoughts", 1), ("URLs", 4),
                ("outcomes of actions", 1), ("answers", 1), ("task texts", 1),
            )
        ],
        "derived": [
            {"what": "task ids with other characters than the log's", "count": 1},
            {"what": "points from the boxes of elements", "count": 2},
        ],
        "lost": [{"what": "lists of element boxes", "count": 2}],
    }  # fmt: skip


@pytest.mark.django_db
def test_a_point_outside_of_its_picture_is_lost_and_the_action_stays(tmp_path: Path) -> None:
    files = logged(steps=[{
        "action": "mouse_click(90000, 5)", "url": "https://lamps.example",
        "screenshot_path": "screenshots/b/a/t.0/screenshot_step_0.png",
    }])  # fmt: skip
    report, (submission,) = run(zipped(tmp_path / "logs.zip", files))
    step = submission.trajectories.get().steps.get()
    assert (step.action, step.click_x) == ("mouse_click(90000, 5)", None)
    lost = {each["what"]: each["count"] for each in report.conversion.as_json()["lost"]}
    assert sum(count for what, count in lost.items() if what.startswith("points outside")) == 1


@pytest.mark.django_db
@pytest.mark.parametrize("words", ["coords(1, 2) -> CLICK -> 'Pay'", "report('done') | SUCCESS"])
def test_words_of_a_log_are_not_read_as_a_point_or_an_outcome(tmp_path: Path, words: str) -> None:
    files = logged(steps=[{
        "action": words, "url": "https://lamps.example", "screenshot_path": "screenshots/b/a/t.0/screenshot_step_0.png",
    }])  # fmt: skip
    report, (submission,) = run(zipped(tmp_path / "logs.zip", files))
    step = submission.trajectories.get().steps.get()
    assert (step.action, step.click_x, step.status) == (f'"{words}"', None, "")
    assert "points" not in counts_of(report, "carried")


@pytest.mark.django_db
def test_tasks_are_created_only_if_asked(tmp_path: Path) -> None:
    path = zipped(tmp_path / "logs.zip", logged())
    report, made = run(path, create_tasks=False)
    assert not made
    assert [p.code for p in report.rejected["t_0"]] == ["task_unknown"]
    assert not run(path, dry_run=True)[1]
    assert not Task.objects.exists()
    run(path)
    assert Task.objects.get().text == "Find the price"


@pytest.mark.django_db
def test_a_table_maps_logs_to_tasks(tmp_path: Path) -> None:
    files = logged() | {"tasks.csv": b"log,task_id\ncleaned/b/a/run/t.0.json,lamps\nother,lamps\n"}
    report, (submission,) = run(zipped(tmp_path / "logs.zip", files))
    assert submission.trajectories.get().task.external_id == "lamps"
    assert "tasks.csv names logs that are not in the upload: other." in [p.message for _, p in report.warnings]


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("table", "says"),
    [
        ("name,id\n", "tasks.csv must have the columns log and task_id."),
        ("log,task_id\nt.0,a b\n", "tasks.csv, row 2: task_id 'a b' may only contain letters, digits, _ and -."),
        ("log,task_id\nt.0,a\nt.0,b\n", "tasks.csv, row 3: t.0 has another task above."),
        (
            "log,task_id,device_pixel_ratio\nt.0,a,two\n",
            "tasks.csv, row 2: device_pixel_ratio must be a number such as 2 or 1.5.",
        ),
    ],
)
def test_a_table_with_errors_is_refused(tmp_path: Path, table: str, says: str) -> None:
    report, made = run(zipped(tmp_path / "logs.zip", logged() | {"tasks.csv": table.encode()}))
    assert not made
    assert [p.message for p in report.rejected[""]] == [says]


@pytest.mark.django_db
def test_several_logs_of_a_task_become_attempts(tmp_path: Path) -> None:
    again = {name.replace("/run/", "/run2/"): data for name, data in logged(goal="Find the  price").items()}
    _, made = run(zipped(tmp_path / "logs.zip", logged() | again))
    assert [(each.attempt, each.trajectories.count()) for each in made] == [(1, 1), (2, 1)]


@pytest.mark.django_db
def test_what_is_missing_is_listed_as_lost_and_not_invented(tmp_path: Path) -> None:
    files = logged(goal=None)
    (document,) = (name for name in files if name.endswith(".json"))
    files = {document: files[document], "screenshots/b/a/t.0/screenshot_step_0.png": b"no picture"}
    report, made = run(zipped(tmp_path / "logs.zip", files))
    assert not made
    assert "the log has no text to create one from" in report.rejected["t_0"][0].message
    assert report.conversion.as_json()["lost"] == [
        {"what": "lists of element boxes", "count": 2},
        {"what": "points of steps without a screenshot", "count": 2},
        {"what": "pictures that cannot be read", "count": 1},
        {"what": "steps without a screenshot", "count": 3},
        {"what": "logs without the text of the task", "count": 1},
    ]
    assert "Not in the import: steps without a screenshot (3)." in [p.message for _, p in report.warnings]


@pytest.mark.django_db
def test_a_log_that_cannot_be_read_is_reported_beside_the_others(tmp_path: Path) -> None:
    bad = {"cleaned/b/a/run/bad.json": b'{"benchmark": "b", "agent": "a", "steps": ['}
    report, made = run(zipped(tmp_path / "logs.zip", logged() | bad), keep_valid=True)
    assert len(made) == 1
    assert [p.code for p in report.rejected["cleaned/b/a/run/bad.json"]] == ["json_invalid"]


def test_inspect_log_prints_what_an_import_would_give(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    call_command("inspect_log", zipped(tmp_path / "logs.zip", logged()), json=True)
    found = json.loads(capsys.readouterr().out)
    assert found["trajectories"] == [
        {"id": "t_0", "steps": 3, "screenshots": 4, "clicks": 2, "answer": "24.50", "task": "Find the price"}
    ]
    assert (found["format"], found["lost"]) == ("agent-reward-bench", [{"what": "lists of element boxes", "count": 2}])
