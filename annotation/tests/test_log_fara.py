"""Folders of fara: web_surfer.log, a screenshot before each action, and the answer file."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from annotation.formats.external.fara import RENAMED_PICTURES, model_size
from annotation.tests import testing
from annotation.tests.log_cases import (
    OTHER_FORMATS,
    dumped,
    format_of,
    import_files,
    inspect_files,
    outcome_of,
    steps_of,
)

HOME = "run/traj/Lamps--1"
PICTURES = {n: testing.png(n, (1440, 900)) for n in range(4)}
SCORES, OTHERS = "files of scores, which annotators must not see", "other files beside the log"
JUDGED = "judgements by the agent itself, which annotators must not see"


def event(action: Any, **arguments: Any) -> dict[str, Any]:
    return {
        "timestamp": "2026-01-02T10:00:00", "type": "WebSurferEvent", "source": "FaraAgent", "message": "x()",
        "url": "https://lamps.example", "action": "computer_use", "arguments": {"action": action} | arguments,
    }  # fmt: skip


def message(number: int, thought: str, **arguments: Any) -> dict[str, Any]:
    """Return a line of the older form, which has no URL."""
    text = (
        f"\nThought #{number}: {thought}\nAction #{number}: executing tool 'x' with arguments {json.dumps(arguments)}"
    )
    return {"message": text, "timestamp": "2025-11-25T22:23:42", "type": "OtherEvent"}


CLICK = event("left_click", coordinate=[1074, 37], thoughts="Open\u2028it")
TYPE = event("type", coordinate=[714, 448], text="lamp", press_enter=True, thoughts="")
END = event("terminate", status="success", thoughts="24.50")
SEEN = {"message": "Observation#1: I clicked at coordinates (1083.02, 37.16).", "timestamp": "x", "type": "OtherEvent"}
EVENTS = [message(1, "Open it", action="left_click", coordinate=[1074, 37]), CLICK, SEEN, TYPE, END]


def as_lines(*events: Any) -> bytes:
    return b"\n".join(dumped(each) for each in events)


def folder(lines: bytes = as_lines(*EVENTS), home: str = HOME, **answer: Any) -> dict[str, bytes]:
    final = {"final_answer": "24.50", "screenshots": ["screenshot0.png"], "is_aborted": False, "token_usage": {}}
    return {
        f"{home}/web_surfer.log": lines,
        f"{home}/lamps_final_answer.json": dumped(final | answer),
        f"{home}/screenshot_scaled.png": PICTURES[0],
        f"{home}/scores/mmrubric.json": b'{"score": 1}',
    } | {f"{home}/screenshot{n}.png": PICTURES[n] for n in range(4)}


@pytest.mark.django_db
def test_a_folder_becomes_a_trajectory_and_the_rest_is_counted(tmp_path: Path) -> None:
    report, (submission,) = import_files(tmp_path, folder(), "lamps")
    steps = steps_of(submission)
    assert submission.trajectories.get().final_answer == "24.50"
    assert [step.action for step in steps] == [
        "coords(1083, 37.2) -> CLICK -> left_click(coordinate=[1074, 37])",
        'coords(720, 450) -> TYPE -> type(coordinate=[714, 448], text="lamp", press_enter=true)',
        "terminate()",
        "",
    ]
    assert [step.thought for step in steps] == ["Open\u2028it", None, "24.50", None]
    assert [step.screenshot.sha256 for step in steps] == [hashlib.sha256(PICTURES[n]).hexdigest() for n in range(4)]
    assert report.with_conversion()["conversion"] == {
        "format": "fara",
        "version": "",
        "carried": [
            {"what": what, "count": count}
            for what, count in (
                ("steps", 3), ("screenshots", 4), ("points", 2), ("thoughts", 2), ("URLs", 3), ("answers", 1),
            )
        ],
        "derived": [{"what": "points, scaled from the image that the model saw", "count": 2}],
        "lost": [
            {"what": "times of log lines", "count": 5},
            {"what": "descriptions of what an action did", "count": 1},
            {"what": JUDGED, "count": 1},
            {"what": SCORES, "count": 1},
            {"what": OTHERS, "count": 1},
            {"what": "logs without the text of the task", "count": 1},
        ],
    }  # fmt: skip


@pytest.mark.django_db
def test_the_older_lines_are_read_and_an_action_without_answer_has_none(tmp_path: Path) -> None:
    lines = as_lines(message(1, "Open: it", action="left_click", coordinate=[1074, 37]), SEEN)
    _, (submission,) = import_files(tmp_path, folder(lines, final_answer="<no_answer>"), "lamps")
    steps = steps_of(submission)
    assert submission.trajectories.get().final_answer is None
    assert [step.action for step in steps] == ["coords(1083, 37.2) -> CLICK -> left_click(coordinate=[1074, 37])", ""]
    assert (steps[0].thought, steps[0].url) == ("Open: it", "")


@pytest.mark.django_db
def test_renamed_screenshots_and_the_task_file_are_read_without_points_and_rubric(tmp_path: Path) -> None:
    task = {"id": "lamps_1", "question": "Find a lamp.", "precomputed_rubric": {"items": ["SECRET"]}, "init_url": "x"}
    files = {name: data for name, data in only(CLICK, TYPE, END).items() if "screenshot" not in name}
    files |= {f"{HOME}/screenshot_{n + 1}.png": PICTURES[n] for n in range(3)} | {
        f"{HOME}/task_data.json": dumped(task)
    }
    report, (submission,) = import_files(tmp_path, files, create_tasks=True)
    steps = steps_of(submission)
    assert submission.trajectories.get().task.text == "Find a lamp."
    assert [step.action for step in steps][:2] == [
        "left_click(coordinate=[1074, 37])",
        'type(coordinate=[714, 448], text="lamp", press_enter=true)',
    ]
    assert [step.screenshot.sha256 for step in steps] == [hashlib.sha256(PICTURES[n]).hexdigest() for n in range(3)]
    conversion = report.with_conversion()["conversion"]
    assert conversion["derived"] == [{"what": RENAMED_PICTURES, "count": 3}]
    assert {each["what"]: each["count"] for each in conversion["lost"]} == {
        TIMES: 3, JUDGED: 1, "points whose screenshot may follow the action": 2,
        "rubrics, which annotators must not see": 1,
    }  # fmt: skip
    assert "SECRET" not in str(conversion)


def test_the_model_saw_sides_of_multiples_of_28() -> None:
    assert model_size((1440, 900)) == (1428, 896)
    assert model_size((5000, 5000)) is None  # over 12,845,056 pixels the model's image is smaller


def only(*events: Any) -> dict[str, bytes]:
    """Return a folder with four screenshots and no other files than the log and the answer."""
    return {
        name: data for name, data in folder(as_lines(*events)).items() if "score" not in name and "scaled" not in name
    }


def with_file(name: str, data: bytes) -> dict[str, bytes]:
    return only(CLICK, TYPE, END) | {f"{HOME}/{name}": data}


TIMES, TASKS = "times of log lines", "logs without the text of the task"
UNKNOWN = "points, because the space of their coordinates is unknown"
NO_NUMBERS = "coordinates that are not two numbers"
FULL = {TIMES: 3, JUDGED: 1, TASKS: 1}
LATE = "screenshots after the one of the end"
HOSTILE: dict[str, tuple[dict[str, bytes], dict[str, Any]]] = {
    "no lines": (only(), {LATE: 3, TASKS: 1}),
    "line is a list": (only([1], CLICK, TYPE, END), FULL | {"other lines of the log": 1}),
    "line is null": (only(None, CLICK, TYPE, END), FULL | {"other lines of the log": 1}),
    "arguments are text": (only(CLICK | {"arguments": "x"}), {TIMES: 1, LATE: 2, TASKS: 1}),
    "action is a number": (only(event(7), TYPE, END), FULL),
    "action is unknown": (only(event("fly", coordinate=[1, 2]), TYPE, END), FULL),
    "coordinate is text": (only(event("left_click", coordinate="1, 2"), TYPE, END), FULL | {NO_NUMBERS: 1}),
    "coordinate is empty": (only(event("left_click", coordinate=[]), TYPE, END), FULL | {NO_NUMBERS: 1}),
    "coordinate has booleans": (only(event("left_click", coordinate=[True, 1]), TYPE, END), FULL | {NO_NUMBERS: 1}),
    "coordinate is negative": (
        only(event("left_click", coordinate=[-1, 2]), TYPE, END), FULL | {"points outside of the screenshot": 1},
    ),
    "coordinate is huge": (
        only(event("left_click", coordinate=[10**400, 2]), TYPE, END), FULL | {"points outside of the screenshot": 1},
    ),
    "other agent": (only(CLICK | {"source": "Fara15Agent"}, TYPE, END), FULL | {UNKNOWN: 1}),
    "coordinate is NaN": (
        only() | {f"{HOME}/web_surfer.log": b'{"action": "x", "arguments": {"coordinate": [NaN, 1]}}'},
        {HOME: ["number_not_finite"]},
    ),
    "duplicate key": (with_file("web_surfer.log", b'{"action": "a", "action": "b"}'), {HOME: ["duplicate_key"]}),
    "truncated": (with_file("web_surfer.log", as_lines(CLICK)[:-9]), {HOME: ["json_invalid"]}),
    "deeply nested": (with_file("web_surfer.log", b"[" * 100_000), {HOME: ["json_invalid"]}),
    "not UTF-8": (with_file("web_surfer.log", b'{"action": "\xff"}'), {HOME: ["not_utf8"]}),
    "lone surrogate": (with_file("web_surfer.log", b'{"action": "\\ud800"}'), {HOME: ["text_unstorable"]}),
    "picture is text": (
        with_file("screenshot0.png", b"no"),
        FULL | {
            "points of steps without a screenshot": 1, "pictures that cannot be read": 1,
            "steps without a screenshot": 1,
        },
    ),
    "number of a picture is huge": (with_file("screenshot99999999999.png", PICTURES[0]), FULL | {OTHERS: 1}),
    "answer is a list": (with_file("lamps_final_answer.json", b"[1]"), FULL | {"logs without an answer": 1}),
    "answer is truncated": (with_file("lamps_final_answer.json", b"{"), {HOME: ["json_invalid"]}),
    "two answers": (
        with_file("lamps_answer.json", b"{}"),
        FULL | {"answer files, because there are several": 2, "logs without an answer": 1},
    ),
    "path outside": (with_file("../../x.png", PICTURES[0]), {"": ["path_outside"]}),
    "aborted": (
        with_file("lamps_final_answer.json", dumped({"is_aborted": True, "env_state_json": {"a": 1}})),
        FULL | {
            "marks that the run was aborted": 1, "final states of the environment": 1, "logs without an answer": 1,
        },
    ),
    "too many steps": (only(*[END] * 20_001), {HOME: ["too_many_steps"]}),
}  # fmt: skip


@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_log_is_refused_or_its_losses_are_counted(tmp_path: Path, case: str) -> None:
    files, expected = HOSTILE[case]
    report = inspect_files(tmp_path, files)
    assert outcome_of(report) == expected


@pytest.mark.parametrize("name", OTHER_FORMATS)
def test_no_other_format_is_taken_for_it(tmp_path: Path, name: str) -> None:
    assert (format_of(tmp_path, OTHER_FORMATS[name]) == "fara") == (name == "fara")
