"""WebVoyager: a folder with messages and painted screenshots, its report line by line, and hostile folders."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from annotation.formats.archive import open_package
from annotation.formats.registry import recognise
from annotation.tests import testing
from annotation.tests.test_agent_logs import PICTURE, codes_of, counts_of, look, run, zipped

HOME = "results/20240101_10_00_00/taskBBC News--9"
TASK = (
    "Now given a task: Find the price of the lamp.  Please interact with https://lamps.example/ and get the answer. \n"
    'Observation: please analyze.\n[0]: "Lamps";\t[4]: <button> "Now given a task: x Please interact with y";'
)
OMITTED = "Observation: A screenshot and some texts. (Omitted in context.)"
NOT_RUN = "The action you have chosen cannot be exected. Please double-check."


def said(*turns: tuple[str, str]) -> list[dict[str, Any]]:
    """Return messages: what the agent is told, and what it replies, by turn."""
    messages = [{"role": "system", "content": "Imagine you are a robot browsing the web."}]
    for number, (told, reply) in enumerate(turns):
        part = [{"type": "text", "text": told}, {"type": "image_url", "image_url": {"url": "data:{b64_img}"}}]
        messages += [{"role": "user", "content": told if number % 2 else part}, {"role": "assistant", "content": reply}]
    return messages


MESSAGES = said(
    (TASK, "Thought: Search first.\n\nAction: Type [2]; lamp"),
    (OMITTED, "Thought: Open it.\nAction: Click [4]\nObservation: x\nAction: Wait"),
    (NOT_RUN, "I would click on it."),
    ("Format ERROR: Both", "Thought: Down.\n\nAction: Scroll [WINDOW]; down\n"),
    (OMITTED, "Thought: Found.\nAction: ANSWER; [24.50 euros]"),
)


def files(messages: Any = MESSAGES, pictures: int = 5, home: str = HOME) -> dict[str, bytes]:
    data = messages if isinstance(messages, bytes) else json.dumps(messages).encode()
    shots = {f"{home}/screenshot{number}.png": PICTURE[number % 4] for number in range(1, pictures + 1)}
    return {f"{home}/interact_messages.json": data} | shots


@pytest.mark.django_db
def test_a_folder_becomes_a_trajectory_without_painted_boxes_where_it_can(tmp_path: Path) -> None:
    clean = testing.png(9, (300, 100))
    found = files(pictures=2) | {
        f"{HOME}/screenshot1_no_box.png": clean,
        f"{HOME}/screenshot6.png": PICTURE[3],
        f"{HOME}/screenshot9.png": PICTURE[2],
        f"{HOME}/agent.log": b"x", f"{HOME}/paper.pdf": b"x", f"{HOME}/accessibility_tree1.json": b"{}",
        "tasks.jsonl": b"{}",
    }  # fmt: skip
    report, (submission,) = run(zipped(tmp_path / "logs.zip", found))
    trajectory = submission.trajectories.get()
    assert (trajectory.task.external_id, trajectory.task.text) == ("BBC_News--9", "Find the price of the lamp.")
    assert trajectory.final_answer == "24.50 euros"
    steps = list(trajectory.steps.order_by("index").select_related("screenshot"))
    assert [(each.action, each.thought, each.screenshot and each.screenshot.width) for each in steps] == [
        ("Type [2]; lamp", "Search first.", 300),
        ("Click [4] | FAILED", "Open it.", 320),
        ("Scroll [WINDOW]; down", "Down.", None),
        ("ANSWER; [24.50 euros]", "Found.", None),
        ("", None, 320),
    ]
    assert counts_of(report, "carried") == {
        "steps": 4, "screenshots": 3, "thoughts": 4, "outcomes of actions": 1, "answers": 1, "task texts": 1,
    }  # fmt: skip
    assert counts_of(report, "derived") == {"task ids with other characters than the log's": 1}
    assert counts_of(report, "lost") == {
        "actions that were named but not run": 1,
        "replies without an action that the agent knows": 1,
        "lists of elements": 1,
        "prompts of the system": 1,
        "copies of screenshots with boxes painted on them": 1,
        "screenshots without the boxes that the agent painted on them": 2,
        "screenshots of no reply": 1,
        "logs of the runner": 1,
        "PDF files": 1,
        "page structures": 1,
        "files outside of the folders of tasks": 1,
        "steps without a screenshot": 2,
    }


def test_each_folder_is_a_trajectory_of_its_own_task(tmp_path: Path) -> None:
    report, records = look(zipped(tmp_path / "logs.zip", files() | files(home="results/taskApple--17")))
    assert codes_of(report) == []
    assert sorted(record.task_id for record in records) == ["Apple--17", "BBC_News--9"]
    assert all(sum(1 for step in record.steps if step.screenshot) == 4 for record in records)
    assert counts_of(report, "lost")["screenshots before replies without an action"] == 2


def test_an_answer_that_names_a_click_is_a_click_as_it_was_for_the_agent(tmp_path: Path) -> None:
    _, (record,) = look(zipped(tmp_path / "a.zip", files(said((TASK, "Thought: x\nAction: ANSWER; Click 3 to buy")))))
    assert (record.final_answer, record.steps[0].action) == (None, "ANSWER; Click 3 to buy")


OTHERS: dict[str, bytes] = {
    "messages.json": json.dumps(MESSAGES).encode(),
    "x/interact_messages.json": b'{"history": []}',
    "cleaned/b/a/r/t.json": b'{"benchmark": "b", "agent": "a", "goal": "g", "steps": []}',
    "render_1.html": b"<body><pre>task_id: 1\nintent: x\n</pre></body>",
    "trajectory.json": b'{"schema_version": "ATIF-v1.7", "steps": []}',
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_formats_are_not_recognised(tmp_path: Path, name: str) -> None:
    with open_package(zipped(tmp_path / "logs.zip", {name: OTHERS[name]})) as package:
        found = recognise(package)
    assert found is None or found.name != "webvoyager"


REPLY = "Thought: x\nAction: Click [4]"
DATA = json.dumps(MESSAGES).encode()
HOSTILE: dict[str, tuple[dict[str, bytes], Any]] = {
    "truncated": (files(DATA[:-9]), ["json_invalid"]),
    "not UTF-8": (files(DATA.replace(b"Search", b"\xff")), ["not_utf8"]),
    "NUL": (files(DATA.replace(b"Search", b"\\u0000")), ["text_unstorable"]),
    "lone surrogate": (files(DATA.replace(b"Search", b"\\udfff")), ["text_unstorable"]),
    "NaN": (files(DATA.replace(b'"system",', b'"system", "n": NaN,')), ["number_not_finite"]),
    "duplicate key": (files(DATA.replace(b'"system",', b'"system", "role": "user",')), ["duplicate_key"]),
    "deep": (files(DATA[:-1] + b"," + b"[" * 99_999), ["json_invalid"]),
    "only a prompt": (files(said()), ["no_steps"]),
    "roles of wrong types": (files([{"role": "x"}, {"role": 1}, None, [], 5, "x", {}]), ["no_steps"]),
    "replies of wrong types": (
        files([{"role": "assistant", "content": each} for each in (None, 1, {}, [], [None], [{"text": 1}], "")]),
        ["no_steps"],
    ),
    "unknown actions": (files(said((TASK, "Thought: x\nAction: Fly [4]"), ("", "Action: Click [4]"))), ["no_steps"]),
    "unfinished reply": (files(said((TASK, "Thought: Action:"))), ["no_steps"]),
    "huge numbers": (files(said((TASK, f"Thought: x\nAction: Click [{'9' * 5_000}]"))), 1),
    "reply in parts": (files([*said((TASK, REPLY)), {"role": "assistant", "content": [{"text": REPLY}]}]), 2),
    "no task": (files([{"role": "assistant", "content": REPLY}]), 1),
    "task without an end": (files(said(("Now given a task: x", REPLY))), 1),
    "ten thousand replies": (files([{"role": "assistant", "content": REPLY}] * 10_000), 10_000),
    "too many replies": (files([{"role": "assistant", "content": REPLY}] * 20_001), ["too_many_steps"]),
    "long answer": (files(said((TASK, "Thought: x\nAction: ANSWER; " + "x" * 1_000_001))), ["text_too_long"]),
    "many marks": (files(said((TASK, "Thought:" * 50_000))), ["no_steps"]),
    "screenshots with other numbers": (
        files(said((TASK, REPLY)), 0) | {f"{HOME}/screenshot{n}.png": b"" for n in ("0", "-1", "9" * 30, "", "1.5")},
        1,
    ),
    "screenshot that is text": (files(said((TASK, REPLY)), 0) | {f"{HOME}/screenshot1.png": b"text"}, 1),
    "path that leads outside": ({**files(), "../screenshot1.png": b""}, ["path_outside"]),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_folders_give_problems(tmp_path: Path, name: str) -> None:
    hostile, expected = HOSTILE[name]
    report, _ = look(zipped(tmp_path / "logs.zip", hostile))
    if isinstance(expected, list):
        assert codes_of(report) == expected
        return
    carried = counts_of(report, "carried")
    assert (codes_of(report), carried["steps"], carried.get("points", 0)) == ([], expected, 0)


def test_a_folder_at_the_top_is_named_after_its_file(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    for name, data in files(home="x").items():
        (folder / name.removeprefix("x/")).write_bytes(data)
    _, (record,) = look(folder)
    assert (record.task_id, len(record.steps)) == ("interact_messages", 4)
