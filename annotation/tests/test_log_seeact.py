"""Folders of SeeAct: predictions, what was executed of them, and a screenshot before each."""

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

HOME = "seeact_agent_files/lamps"
PICTURES = {n: testing.png(n) for n in range(1, 4)}
GROUNDING, WEBSITES = "answers to the second question (action_grounding)", "addresses of websites"
NO_ANSWER, NO_TASK, NO_PICTURE = (
    "logs without an answer", "logs without the text of the task", "steps without a screenshot",
)  # fmt: skip
NO_RATIO = "points, because the log has no device pixel ratio; state it in tasks.csv, column device_pixel_ratio"
NOT_RUN, OTHERS = "actions that were named but not run", "other files beside the log"


def prediction(action: Any = "CLICK", value: Any = "None", **fields: Any) -> dict[str, Any]:
    element = {"center_point": [100.5, 50], "description": "Buy", "tag_with_role": "button", "selector": "<Locator>"}
    found = {"action_generation": "I buy it.", "action_grounding": "ELEMENT: A", "element": element}
    return found | {"action": action, "value": value} | fields


FAILED = "Failed to perform TYPE on Search with value 'lamp': Timeout"
HISTORY = ["[button] Buy -> CLICK", "Changed task from Find lamps to: Find the price", FAILED]
PREDICTIONS = [prediction(), prediction("TYPE", "lamp"), prediction("TERMINATE", element=None)]


def folder(predictions: Any = PREDICTIONS, history: Any = HISTORY, **fields: Any) -> dict[str, bytes]:
    result = {"task": ["Find lamps", "Find the price"], "website": "https://lamps.example", "num_step": 3}
    found = {f"{HOME}/screenshots/screen_{n}.png": PICTURES[n] for n in PICTURES}
    return found | {
        f"{HOME}/all_predictions.json": predictions if isinstance(predictions, bytes) else dumped(predictions),
        f"{HOME}/result.json": dumped(result | {"action_history": history} | fields),
        f"{HOME}/config.toml": b'api_key = "SECRET"',
    }


@pytest.mark.django_db
def test_a_folder_becomes_a_trajectory_of_what_was_executed(tmp_path: Path) -> None:
    report, (submission,) = import_files(tmp_path, folder())
    trajectory, steps = submission.trajectories.get(), steps_of(submission)
    assert (trajectory.task.external_id, trajectory.task_text) == ("lamps", "Find the price")
    assert [step.action for step in steps] == ["[button] Buy -> CLICK", f"{FAILED} | FAILED", ""]
    assert [step.thought for step in steps] == ["I buy it.", "I buy it.", None]
    assert [step.screenshot.sha256 for step in steps] == [hashlib.sha256(PICTURES[n]).hexdigest() for n in (1, 2, 3)]
    assert "SECRET" not in str(report.with_conversion())
    assert report.with_conversion()["conversion"] == {
        "format": "seeact",
        "version": "",
        "carried": [
            {"what": what, "count": count}
            for what, count in (
                ("steps", 2), ("screenshots", 3), ("thoughts", 2), ("outcomes of actions", 1), ("task texts", 1),
            )
        ],
        "derived": [],
        "lost": [
            {"what": what, "count": count}
            for what, count in (
                ("tasks that a later one replaced", 1), (WEBSITES, 1), (NOT_RUN, 1), (GROUNDING, 2), (OTHERS, 1),
                (NO_RATIO, 2), (NO_ANSWER, 1),
            )
        ],
    }  # fmt: skip


@pytest.mark.django_db
def test_the_ratio_in_the_table_of_tasks_gives_the_points(tmp_path: Path) -> None:
    table = {"tasks.csv": b"log,task_id,device_pixel_ratio\nlamps,lamps,2\n"}
    report, (submission,) = import_files(tmp_path, folder() | table)
    assert steps_of(submission)[0].action == "coords(201, 100) -> CLICK -> [button] Buy -> CLICK"
    assert counts_of(report, "carried")["points"] == 2


ONE = [prediction(element=None)]
LOST = {WEBSITES: 1, GROUNDING: 1, "screenshots of no action": 1, OTHERS: 1}


def one(*predictions: Any, history: Any = ("CLICK",), **fields: Any) -> dict[str, bytes]:
    return folder(
        list(predictions or ONE), history if not isinstance(history, tuple) else list(history), task="x", **fields
    )


def with_file(name: str, data: bytes) -> dict[str, bytes]:
    return one() | {f"{HOME}/{name}": data}


CASES: dict[str, tuple[dict[str, bytes], dict[str, Any]]] = {
    "history is null": (one(history=None), {WEBSITES: 1, NOT_RUN: 1, OTHERS: 1, "no_steps": 1}),
    "history is longer": (one(history=("CLICK", "x")), LOST | {"actions of the history without a prediction": 1}),
    "history has numbers": (one(history=(7, "CLICK")), LOST),
    "predictions of other types": (one(*ONE, 7, None, "x", history=("CLICK",)), LOST | {NOT_RUN: 3}),
    "task is a number": (one() | folder(ONE, ["CLICK"], task=7), LOST | {NO_TASK: 1}),
    "task is null": (folder(ONE, ["CLICK"], task=None), LOST | {NO_TASK: 1}),
    "tasks are of other types": (folder(ONE, ["CLICK"], task=[None, 7]), LOST | {NO_TASK: 1}),
    "website is a list": (one(website=[]), {what: n for what, n in LOST.items() if what != WEBSITES}),
    "action is a list": (one(prediction(["CLICK"], element=None)), LOST),
    "element is text": (one(prediction(element="x")), LOST),
    "point is text": (one(prediction(element={"center_point": "1, 2"})), LOST),
    "point is null": (one(prediction(element={"center_point": [None, 1]})), LOST),
    "point is huge": (one(prediction(element={"center_point": [10**400, 1]})), LOST | {NO_RATIO: 1}),
    "point is negative": (one(prediction(element={"center_point": [-1, -1]})), LOST | {NO_RATIO: 1}),
    "grounding is null": (
        one(prediction(element=None, action_grounding=None)),
        {what: n for what, n in LOST.items() if what != GROUNDING},
    ),
    "picture is text": (
        with_file("screenshots/screen_1.png", b"no"), LOST | {"pictures that cannot be read": 1, NO_PICTURE: 1},
    ),
    "number of a picture is huge": (with_file("screenshots/screen_99999999.png", PICTURES[1]), LOST | {OTHERS: 2}),
    "result is a list": (
        with_file("result.json", b"[]"), {NOT_RUN: 1, OTHERS: 1, "no_steps": 1},
    ),
    "result is no JSON": (with_file("result.json", b"{"), {"json_invalid": 1}),
    "NaN": (with_file("result.json", b'{"task": NaN}'), {"number_not_finite": 1}),
    "path outside": (with_file("../../x.png", PICTURES[1]), {"path_outside": 1}),
    "predictions are truncated": (folder(dumped(ONE)[:-5]), {"json_invalid": 1}),
    "predictions nest deeply": (folder(b'[{"action_generation": ' + b"[" * 100_000), {"json_invalid": 1}),
    "predictions are not UTF-8": (folder(b'[{"action_generation": "\xff"}]'), {"not_utf8": 1}),
    "predictions have a surrogate": (folder(b'[{"action_generation": "\\ud800"}]'), {"text_unstorable": 1}),
    "a key occurs twice": (folder(b'[{"action_generation": 1, "action_generation": 2}]'), {"duplicate_key": 1}),
    "too many steps": (folder(ONE * 20_001, ["CLICK"] * 20_001, task="x"), {"too_many_steps": 1}),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_a_hostile_folder_is_refused_or_its_losses_are_counted(tmp_path: Path, case: str) -> None:
    files, expected = CASES[case]
    report = inspect_files(tmp_path, files)
    if report.rejected:
        codes = {code: 1 for codes in outcome_of(report).values() for code in codes}
        assert codes == {what: 1 for what in expected if what.isidentifier()}
    else:
        assert {what: count for what, count in outcome_of(report).items() if what != NO_ANSWER} == expected


@pytest.mark.parametrize("name", OTHER_FORMATS)
def test_no_other_format_is_taken_for_it(tmp_path: Path, name: str) -> None:
    assert (format_of(tmp_path, OTHER_FORMATS[name]) == "seeact") == (name == "seeact")
