"""Folders of OSWorld and Odysseys: pictures after the actions, code for pyautogui, and tasks in other files."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from annotation.tests import testing
from annotation.tests.log_cases import (
    OTHER_FORMATS,
    counts_of,
    dumped,
    format_of,
    import_files,
    inspect_files,
    outcome_of,
    steps_of,
)

HOME = "results/chrome/lamps"
PICTURES = {n: testing.png(n, (1920, 1080)) for n in range(1, 5)}
SCORES = "files of scores, which annotators must not see"
REWARDS, TIMES = "rewards, which annotators must not see", "times of steps"
NO_PICTURE, NO_TASK, NO_ANSWER = (
    "steps without a screenshot", "logs without the text of the task", "logs without an answer",
)  # fmt: skip
UNSEEN, UNCLEAR = "points of steps without a screenshot", "points of code that has no or several"
MISSING = "screenshots that are not in the upload"


def line(number: int, action: Any, picture: int | None = None, **fields: Any) -> dict[str, Any]:
    shot = f"step_{picture or number}_20260102@100000.png"
    found = {"step_num": number, "action_timestamp": "20260102@100000", "action": action, "response": f"I do {number}."}
    return found | {"reward": 0, "done": False, "info": {}, "screenshot_file": shot} | fields


LINES = [
    line(1, "import pyautogui\npyautogui.click(312, 88)"),
    line(2, "pyautogui.doubleClick(x=100, y=200.5, button='left')"),
    line(2, "pyautogui.write('a lamp')", 3),
    line(3, "DONE", 4),
]


def as_lines(*lines: Any) -> bytes:
    return b"\n".join(dumped(each) for each in lines)


def folder(*lines: Any, name: str = "traj.jsonl", **others: bytes) -> dict[str, bytes]:
    found = {f"{HOME}/step_{n}_20260102@100000.png": PICTURES[n] for n in PICTURES}
    return found | {f"{HOME}/{name}": as_lines(*lines)} | others


@pytest.mark.django_db
def test_a_folder_becomes_a_trajectory_and_its_score_is_not_read(tmp_path: Path) -> None:
    task = {"id": "lamps", "instruction": "Find the price", "evaluator": {"expected": "SECRET"}}
    files = folder(*LINES) | {
        f"{HOME}/result.txt": b"1.0", f"{HOME}/recording.mp4": b"x", "examples/chrome/lamps.json": dumped(task),
    }  # fmt: skip
    report, (submission,) = import_files(tmp_path, files)
    steps = steps_of(submission)
    assert [step.action for step in steps] == [
        "import pyautogui; pyautogui.click(312, 88)",
        "coords(100, 200.5) -> DOUBLE_CLICK -> pyautogui.doubleClick(x=100, y=200.5, button='left')",
        "pyautogui.write('a lamp')",
        "DONE",
        "",
    ]
    assert [step.thought for step in steps] == ["I do 1.", "I do 2.", None, "I do 3.", None]
    assert [step.screenshot and step.screenshot.sha256 for step in steps] == [
        None, *(hashlib.sha256(PICTURES[n]).hexdigest() for n in (1, 2, 3, 4)),
    ]  # fmt: skip
    assert "SECRET" not in str(report.with_conversion())
    assert report.with_conversion()["conversion"] == {
        "format": "osworld",
        "version": "",
        "carried": [
            {"what": what, "count": count}
            for what, count in (("steps", 4), ("screenshots", 4), ("points", 1), ("thoughts", 3), ("task texts", 1))
        ],
        "derived": [],
        "lost": [
            {"what": what, "count": count}
            for what, count in (
                ("evaluators of tasks, which annotators must not see", 1), (REWARDS, 4), (TIMES, 4), (UNSEEN, 1),
                ("other files beside the log", 1), (SCORES, 1), (NO_PICTURE, 1), (NO_ANSWER, 1),
            )
        ],
    }  # fmt: skip


@pytest.mark.django_db
def test_the_lines_of_odysseys_have_calls_a_first_screenshot_and_an_answer(tmp_path: Path) -> None:
    def row(number: int, action: str | None, **fields: Any) -> dict[str, Any]:
        return {"step_num": number, "action": action, "screenshot": f"/x/step_{number}_20260102@100000.png"} | fields

    lines = [
        row(1, "screenshot"),
        row(2, "left_click", arguments={"action": "left_click", "coordinate": [312, 88]}, response="I open it."),
        row(3, None, final=True, response="24.50"),
    ]
    files = folder(*lines, name="steps.jsonl") | {f"{HOME}/traj.jsonl": as_lines(*LINES)}
    report, (submission,) = import_files(tmp_path, files, "lamps")
    steps = steps_of(submission)
    assert submission.trajectories.get().final_answer == "24.50"
    assert [step.action for step in steps] == ["left_click(coordinate=[312, 88])", ""]
    shown = [hashlib.sha256(PICTURES[n]).hexdigest() for n in (1, 3)]
    assert [step.screenshot.sha256 for step in steps] == shown
    assert counts_of(report, "derived") == {"answers, from the response of the line marked final": 1}


DONE = line(1, "WAIT")
LOST = {REWARDS: 2, TIMES: 2, NO_PICTURE: 1, "other files beside the log": 2}
CASES: dict[str, tuple[dict[str, bytes], dict[str, Any]]] = {
    "several points": (folder(DONE, line(2, "pyautogui.click(1, 2); pyautogui.click(3, 4)")), LOST | {UNCLEAR: 1}),
    "point of names": (folder(DONE, line(2, "pyautogui.click(x, y)")), LOST | {UNCLEAR: 1}),
    "point is negative": (folder(DONE, line(2, "pyautogui.click(-5, 2)")), LOST | {UNCLEAR: 1}),
    "point is a fraction": (
        folder(DONE, line(2, "pyautogui.click(0.5, 0.25)")),
        LOST | {"points, because the space of their coordinates is unknown": 1},
    ),
    "point is outside": (
        folder(DONE, line(2, "pyautogui.click(1921, 5)")), LOST | {"points outside of the screenshot": 1},
    ),
    "point has many digits": (folder(DONE, line(2, f"pyautogui.click({'9' * 400}, 5)")), LOST | {UNCLEAR: 1}),
    "action is a list": (
        folder(DONE, line(2, [1])), LOST | {"lines without an action": 1},
    ),
    "action is empty": (folder(DONE, line(2, {})), LOST),
    "action has a command": (folder(DONE, line(2, {"command": "pyautogui.click(5, 5)\n"})), LOST),
    "action is unknown": (folder(DONE, line(2, {"action_type": "FLY", "parameters": {"x": 1}})), LOST),
    "response is an object": (
        folder(DONE, line(2, "WAIT", response={"a": 1})), LOST | {"responses that are no texts": 1},
    ),
    "line is a number": (folder(DONE, 7, line(2, "WAIT")), LOST | {"lines without an action": 1}),
    "picture is a URL": (
        folder(DONE, line(2, "WAIT", screenshot_file="https://x.example/step_1_20260102@100000.png")),
        LOST | {MISSING: 1, "other files beside the log": 3},
    ),
    "picture is outside": (
        folder(DONE, line(2, "WAIT", screenshot_file="../../../etc/hosts")),
        LOST | {MISSING: 1, "other files beside the log": 3},
    ),
    "picture is on Windows": (folder(DONE, line(2, "WAIT", screenshot_file="C:\\x\\step_2_20260102@100000.png")), LOST),
    "picture is a list": (
        folder(DONE, line(2, "WAIT", screenshot_file=[1])), LOST | {"other files beside the log": 3},
    ),
    "picture is text": (
        folder(DONE, line(2, "WAIT")) | {f"{HOME}/step_1_20260102@100000.png": b"no"},
        LOST | {"pictures that cannot be read": 1, NO_PICTURE: 2},
    ),
    "two task files": (
        folder(DONE, line(2, "WAIT")) | {"a/lamps.json": b"{}", "b/lamps.json": b"{}"},
        LOST | {"task files, because there are several": 2},
    ),
    "task file is a list": (folder(DONE, line(2, "WAIT")) | {"a/lamps.json": b"[]"}, LOST),
    "task file is no JSON": (folder(DONE, line(2, "WAIT")) | {"a/lamps.json": b"{"}, {HOME: ["json_invalid"]}),
    "NaN": (folder(DONE, line(2, "WAIT", reward=float("nan"))), {HOME: ["number_not_finite"]}),
    "truncated": ({f"{HOME}/traj.jsonl": as_lines(*LINES)[:-9]}, {HOME: ["json_invalid"]}),
    "duplicate key": (
        {f"{HOME}/traj.jsonl": as_lines(DONE) + b'\n{"action": 1, "action": 2}'}, {HOME: ["duplicate_key"]},
    ),
    "deeply nested": ({f"{HOME}/traj.jsonl": as_lines(DONE) + b"\n" + b"[" * 100_000}, {HOME: ["json_invalid"]}),
    "not UTF-8": ({f"{HOME}/traj.jsonl": as_lines(DONE) + b'\n{"a": "\xff"}'}, {HOME: ["not_utf8"]}),
    "lone surrogate": ({f"{HOME}/traj.jsonl": as_lines(DONE) + b'\n{"a": "\\ud800"}'}, {HOME: ["text_unstorable"]}),
    "too many steps": ({f"{HOME}/traj.jsonl": as_lines(*[DONE] * 20_001)}, {HOME: ["too_many_steps"]}),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_a_hostile_log_is_refused_or_its_losses_are_counted(tmp_path: Path, case: str) -> None:
    files, expected = CASES[case]
    found = outcome_of(inspect_files(tmp_path, files))
    assert {what: count for what, count in found.items() if what not in (NO_TASK, NO_ANSWER)} == expected


@pytest.mark.parametrize("name", OTHER_FORMATS)
def test_no_other_format_is_taken_for_it(tmp_path: Path, name: str) -> None:
    assert (format_of(tmp_path, OTHER_FORMATS[name]) == "osworld") == (name == "osworld")
