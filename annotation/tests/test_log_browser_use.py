"""Histories of browser-use, in the shapes of its versions."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from annotation.formats.archive import open_package
from annotation.formats.external.browser_use import FORMAT
from annotation.formats.packages import read_trajectories
from annotation.formats.registry import open_packages
from annotation.records import ImportReport, StepRecord, TrajectoryRecord
from annotation.tests import testing
from annotation.tests.test_agent_logs import logged, run, zipped

PICTURE = {n: testing.png(n) for n in range(4)}
BUTTON = {
    "node_id": 7, "node_name": "BUTTON", "x_path": "html/body/button", "attributes": {"id": "go"}, "ax_name": "Details",
    "bounds": {"x": 265, "y": 65, "width": 44, "height": 46},
}  # fmt: skip
MESSAGE = "<user_request>\nFind the price\n</user_request>\n<page_info>{} pages above, 1.2 pages below</page_info>"
PLACEHOLDER = testing.png(0, (4, 4))
HIDDEN = "judgements of the agent about itself, which annotators must not see"


def turn(actions: Any, results: Any, number: int = 1, *, state: Any = None, output: Any = None, **more: Any) -> Any:
    """A turn as versions from 0.9 write it."""
    own = {"url": "https://lamps.example", "title": "Lamps", "tabs": [{"url": "https://lamps.example"}]}
    own |= {"screenshot_path": f"/tmp/agent_1/screenshots/step_{number}.png", "interacted_element": []}
    thoughts = {"evaluation_previous_goal": "Success", "memory": "m", "next_goal": "g", "action": actions}
    return {
        "model_output": thoughts | (output or {}),
        "result": results,
        "state": own | (state or {}),
        "metadata": {"step_number": number, "step_start_time": 1.0, "step_end_time": 2.0},
    } | more


def click(at: tuple[float, float] = (287.5, 88.5), **more: Any) -> Any:
    result = {"is_done": False, "extracted_content": "Clicked", "metadata": {"click_x": at[0], "click_y": at[1]}}
    state = {"interacted_element": [BUTTON]}
    return turn([{"click": {"index": 4}}], [result], state=state) | {"state_message": MESSAGE.format("0.0")} | more


def done(number: int = 2) -> Any:
    result = {"is_done": True, "success": True, "extracted_content": "24.50", "judgement": {"verdict": True}}
    return turn([{"done": {"text": "24.50", "success": True}}], [result], number)


def history(*turns: Any, **beside: Any) -> bytes:
    return json.dumps({"history": list(turns), **beside}).encode()


def files(data: bytes, table: str = "log,task_id,device_pixel_ratio\nk1/AgentHistory.json,k1,1\n") -> dict[str, bytes]:
    shots = {f"k1/screenshots/step_{number}.png": PICTURE[number] for number in (1, 2)}
    return {"k1/AgentHistory.json": data, "tasks.csv": table.encode(), **shots}


def counts(report: Any, what: str) -> dict[str, int]:
    return {each["what"]: each["count"] for each in report.conversion.as_json()[what]}


def inspect(path: Path) -> tuple[ImportReport, list[TrajectoryRecord]]:
    """Convert and read ``path`` as `inspect_log` does, without a database."""
    report, records = ImportReport(), []
    with open_packages(path, report, lambda done, total: None) as packages:
        for found in (each for package in packages for each in read_trajectories(package)):
            assert found.record is not None, found.problems
            records.append(found.record)
    return report, records


def load(tmp_path: Path, data: bytes, **given: str) -> tuple[Any, list[StepRecord]]:
    report, (record,) = inspect(zipped(tmp_path / "logs.zip", files(data, **given)))
    assert not report.rejected
    return report, list(record.steps)


@pytest.mark.django_db
def test_a_history_becomes_a_trajectory_and_the_report_names_every_loss(tmp_path: Path) -> None:
    report, (made,) = run(zipped(tmp_path / "logs.zip", files(history(click(), done()))))
    trajectory = made.trajectories.get()
    steps = list(trajectory.steps.order_by("index"))
    assert (trajectory.task.external_id, trajectory.task_text) == ("k1", "Find the price")
    assert (trajectory.final_answer, trajectory.source_format) == ("24.50", "browser-use")
    assert [step.action for step in steps] == [
        'coords(287.5, 88.5) -> CLICK -> click(index=4) on button "Details" at (287.5, 88.5)',
        'done(text="24.50")',
    ]
    assert (steps[0].click_x, steps[0].click_y) == (287.5, 88.5)
    assert [step.thought for step in steps] == ["m\ng", "m\ng"]
    assert all(step.screenshot and step.url == "https://lamps.example" and not step.status for step in steps)
    assert report.with_conversion()["conversion"] == {
        "format": "browser-use",
        "version": "0.9 or newer",
        "carried": [
            {"what": what, "count": count}
            for what, count in (
                ("steps", 2), ("screenshots", 2), ("points", 1), ("thoughts", 2), ("URLs", 2), ("answers", 1),
                ("task texts", 1),
            )
        ],
        "derived": [],
        "lost": [
            {"what": what, "count": count}
            for what, count in (
                ("times and token counts of turns", 2), ("messages to the model (state_message)", 1),
                ("page titles", 2), ("lists of tabs", 2), (HIDDEN, 5),
                ("details of elements (path, attributes, box)", 1), ("texts that actions returned", 1),
            )
        ],
    }  # fmt: skip


def test_judgements_of_the_agent_are_in_no_step(tmp_path: Path) -> None:
    _, steps = load(tmp_path, history(click(), done()))
    shown = json.dumps([[step.action, step.thought] for step in steps])
    assert "success" not in shown.lower()
    assert "verdict" not in shown


def old(actions: Any, results: Any, **state: Any) -> Any:
    thoughts = {"evaluation_previous_goal": "Unknown", "memory": "m", "next_goal": "g"}
    element = {"tag_name": "a", "xpath": "html/a", "attributes": {"title": "Lamps"}, "page_coordinates": None}
    own = {"url": "https://lamps.example", "title": "Lamps", "tabs": [], "interacted_element": [element]}
    output = {"current_state": thoughts, "action": actions}
    return {"model_output": output, "result": results, "state": own | state, "metadata": None}


PNG = base64.b64encode(PICTURE[3]).decode()
VERSIONS = {
    "0.1": old(
        {"search_google": None, "click_element": {"id": 4}}, {"error": "no such element"}, screenshot=PNG
    ),
    "0.1 to 0.2": old([{"click_element_by_index": {"index": 4}}], [{"is_done": False}], screenshot=PNG),
    "0.3 to 0.5.7": turn([{"input_text": {"index": 4, "text": "lamp"}}], [{}], state={"screenshot": PNG}),
    "0.5.8 to 0.8": turn([{"go_to_url": {"url": "https://lamps.example"}}], [{}]),
    "0.9 or newer": turn([{"input": {"index": 4, "text": "lamp"}}], [{}], state_message=""),
}  # fmt: skip
del VERSIONS["0.3 to 0.5.7"]["state"]["screenshot_path"]
CALLS = {
    "0.1": 'click_element(id=4) on a "Lamps": no such element | FAILED',
    "0.1 to 0.2": 'click_element_by_index(index=4) on a "Lamps"',
    "0.3 to 0.5.7": 'input_text(index=4, text="lamp")',
    "0.5.8 to 0.8": 'go_to_url(url="https://lamps.example")',
    "0.9 or newer": 'input(index=4, text="lamp")',
}


@pytest.mark.parametrize("version", VERSIONS)
def test_the_shapes_of_all_versions_are_read(tmp_path: Path, version: str) -> None:
    report, (step, _) = load(tmp_path, history(VERSIONS[version], click()))
    assert (step.action, step.thought) == (CALLS[version], "m\ng")
    assert step.screenshot is not None
    assert report.conversion.versions == {version}


def test_a_turn_gives_a_step_for_each_action_that_ran(tmp_path: Path) -> None:
    several = turn(
        [{"input": {"index": 1, "text": "lamp"}}, {"click": {"index": 4}}, {"wait": {"seconds": 3}}],
        [{}, {"error": "gone"}],
        output={"thinking": "Type, then click."},
        state_message=MESSAGE.format("0.0"),
    )
    stopped = turn([], [{"error": "limit"}], 2) | {"model_output": None}
    report, steps = load(tmp_path, history(several, stopped))
    assert [(step.action, step.thought) for step in steps] == [
        ('input(index=1, text="lamp")', "Type, then click."),
        ("click(index=4): gone | FAILED", None),
    ]
    assert len({step.screenshot for step in steps}) == 1
    assert counts(report, "derived") == {"steps from turns with several actions": 1}
    lost = counts(report, "lost")
    assert (lost["actions named but not run"], lost["errors of turns without an action"]) == (1, 1)
    assert lost["screenshots of turns without an action"] == 1
    assert lost["memories and goals beside a thinking"] == 2


MAY_BE_SCROLLED = "points, because the page may have been scrolled after its picture"
NO_RATIO = "points, because the log has no device pixel ratio; state it in tasks.csv, column device_pixel_ratio"
SCROLLED_BOX = BUTTON | {"bounds": {"x": 265, "y": 1697, "width": 44, "height": 46}}
COORDINATES = [{"click": {"coordinate_x": 100, "coordinate_y": 50}}]
AT = {"metadata": {"click_x": 91, "click_y": 42}}
MOVED = "points checked by the box of the element, without a scroll position"


@pytest.mark.parametrize(
    ("logged_turn", "point", "lost", "derived"),
    [
        (click(), (287.5, 88.5), None, {}),
        (click(state=click()["state"] | {"interacted_element": [SCROLLED_BOX]}), None, MAY_BE_SCROLLED, {}),
        (click(state_message=MESSAGE.format("0.4")), None, MAY_BE_SCROLLED, {}),
        (click(state_message=None), (287.5, 88.5), None, {MOVED: 1}),
        (click((287.5, 201)), None, "points outside of their picture", {}),
        (click((-1, 88.5)), None, "points outside of their picture", {}),
        (turn(COORDINATES, [AT], state_message=MESSAGE.format("0.4")), (91, 42), None, {}),
        (turn([{"scroll": {"down": True}}, *COORDINATES], [{}, AT], state_message=MESSAGE.format("0.0")),
         None, MAY_BE_SCROLLED, {"steps from turns with several actions": 1}),
    ],
)  # fmt: skip
def test_a_point_counts_only_where_nothing_was_scrolled(
    tmp_path: Path, logged_turn: Any, point: Any, lost: str | None, derived: dict[str, int]
) -> None:
    report, steps = load(tmp_path, history(logged_turn, click()))  # the second click has a point
    step = steps[-2]
    assert (step.click and (step.click.x, step.click.y)) == point
    assert counts(report, "derived") == derived
    assert {what: count for what, count in counts(report, "lost").items() if "points" in what} == (
        {lost: 1} if lost else {}
    )


def test_points_need_the_pixel_ratio_which_no_version_writes(tmp_path: Path) -> None:
    report, steps = load(tmp_path, history(click()), table="log,task_id\nk1/AgentHistory.json,k1\n")
    assert steps[0].action == 'click(index=4) on button "Details" at (287.5, 88.5)'
    assert counts(report, "lost")[NO_RATIO] == 1
    _, steps = load(tmp_path, history(click((10, 10), state=click()["state"] | {"interacted_element": []}), click()),
                    table="log,task_id,device_pixel_ratio\nAgentHistory,k1,0.5\n")  # fmt: skip
    assert [step.click and step.click.x for step in steps] == [None, 143.8]


def test_histories_are_named_after_their_folder_and_any_file_name_is_read(tmp_path: Path) -> None:
    data = history(click(), done())
    named = {"a/lamp-1/AgentHistory.json": data, "a/lamp-1/screenshots/step_1.png": PICTURE[1], "b/lamp2.txt": data}
    _, records = inspect(zipped(tmp_path / "logs.zip", named))
    assert [record.task_id for record in records] == ["lamp-1", "lamp2"]
    (tmp_path / "lamp3").write_bytes(data)
    _, records = inspect(tmp_path / "lamp3")
    assert [record.task_id for record in records] == ["lamp3"]


def test_other_formats_are_not_recognised(tmp_path: Path) -> None:
    others: list[dict[str, bytes]] = [
        logged(),
        {"trajectory.json": b'{"schema_version": "ATIF-v1.7", "agent": {"name": "a"}, "steps": []}'},
        {"a.json": b'[{"role": "user", "content": "Find"}]'},
        {"a.json": b'{"history": [{"role": "user", "content": "Find"}]}'},
        {"a.json": b'{"history": ["model_output"]}'},
        {"traj.jsonl": b'{"step_num": 1, "action": "pyautogui.click(1, 2)"}'},
        {"trace.trace": b'{"version": 8, "type": "context-options"}'},
        {"a.json": b'{"task": {"id": "k"}, "steps": [{"actionName": "act"}]}'},
    ]
    for number, other in enumerate([*others, files(history(click()))]):
        with open_package(zipped(tmp_path / f"{number}.zip", other)) as package:
            assert FORMAT.recognise is not None
            assert FORMAT.recognise(package) is (number == len(others)), other


def document(**changes: Any) -> bytes:
    return history(click() | changes)


DEEP = b'{"history": [{"model_output": ' + b"[" * 100_000 + b"]" * 100_000 + b"}]}"


@pytest.mark.parametrize(
    ("data", "codes"),
    [
        (history(click())[:-40], ["json_invalid"]),
        (history(click()).replace(b'"index": 4', b'"index": NaN'), ["number_not_finite"]),
        (history(click()).replace(b'"index": 4', b'"index": ' + b"9" * 5_000), ["json_invalid"]),
        (history(click()).replace(b'"m"', b'"\\ud800"'), ["text_unstorable"]),
        (history(click()).replace(b'"m"', b'"\xff"'), ["not_utf8"]),
        (history(click()).replace(b'"memory": "m"', b'"memory": "m", "memory": "n"'), ["duplicate_key"]),
        (DEEP, ["json_invalid"]),
        (history(click(), None), ["wrong_type"]),
        (history(click(), [1]), ["wrong_type"]),
        (history({"model_output": None}), ["no_steps"]),
        (history({"result": None, "state": None, "model_output": None}), ["no_steps"]),
        (document(result={"is_done": True, "extracted_content": "x" * 1_000_001}), ["text_too_long"]),
        (history(turn([{"wait": {}}] * 20_001, [{}] * 20_001)), ["too_many_steps"]),
    ],
)
def test_a_history_that_cannot_be_read_is_refused(tmp_path: Path, data: bytes, codes: list[str]) -> None:
    report, records = inspect(zipped(tmp_path / "logs.zip", files(data)))
    assert not records
    (problems,) = report.rejected.values()
    assert [problem.code for problem in problems] == codes


WRONG, READ = "values of a wrong type", "pictures that cannot be read"
AWAY = "pictures that are not in the upload, or not under a unique name"


def shot(**state: Any) -> bytes:
    return document(state={"url": "https://lamps.example", "interacted_element": [BUTTON], **state})


@pytest.mark.parametrize(
    ("data", "lost"),
    [
        (shot(screenshot="https://lamps.example/1.png"), {READ: 1}),
        (shot(screenshot="not a picture"), {READ: 1}),
        (shot(screenshot=base64.b64encode(b"text").decode()), {READ: 1}),
        (shot(screenshot=base64.b64encode(PLACEHOLDER).decode()), {"placeholders for pictures of new tabs": 1}),
        (shot(screenshot=5, screenshot_path=[]), {}),
        (shot(screenshot_path="https://lamps.example/1.png"), {AWAY: 1}),
        (shot(screenshot_path="../../../etc/passwd"), {AWAY: 1}),
        (shot(screenshot_path="C:\\agent\\3.png"), {AWAY: 1}),
        (document(state="none"), {WRONG: 1}),
        (document(state=None), {}),
    ],
)
def test_a_picture_that_cannot_be_used_is_counted(tmp_path: Path, data: bytes, lost: dict[str, int]) -> None:
    report, steps = load(tmp_path, data)
    assert steps[0].screenshot is None
    named = {what: count for what, count in counts(report, "lost").items() if "picture" in what or what == WRONG}
    assert named == lost
    assert counts(report, "lost")["steps without a screenshot"] == 1


@pytest.mark.parametrize(
    ("changes", "lost"),
    [
        ({"model_output": {"action": [{"click": 4, "wait": 3}]}}, {"further names of an action": 1}),
        ({"model_output": {"action": [{}]}}, {}),
        ({"model_output": {"action": ["click", {"unheard": [1]}]}}, {WRONG: 1, "actions named but not run": 1}),
        ({"model_output": {"action": {"click": None}, "current_state": "x"}}, {WRONG: 1}),
        ({"metadata": 5, "more": 1}, {"values under unknown keys": 1}),
        ({"result": [{"metadata": {"click_x": "1", "click_y": None}}]}, {"other metadata of results": 1}),
        ({"result": [{"metadata": {"click_x": 1e300, "click_y": 1}}]}, {"other metadata of results": 1}),
        ({"result": [{}, {"error": 5}]}, {"results without an action": 1}),
        ({"state_message": {"a": 1}}, {}),
        ({"model_output": {"action": [{"click": {}}], "thinking": "t", "memory": 1}}, {}),
    ],
)  # fmt: skip
def test_values_of_wrong_types_are_counted(tmp_path: Path, changes: dict[str, Any], lost: dict[str, int]) -> None:
    report, steps = load(tmp_path, document(**changes))
    assert len(steps) == 1
    watched = {
        WRONG, "further names of an action", "actions named but not run", "values under unknown keys",
        "other metadata of results", "results without an action", "errors of turns without an action",
    }  # fmt: skip
    assert {what: count for what, count in counts(report, "lost").items() if what in watched} == lost


def test_ten_thousand_steps_are_read(tmp_path: Path) -> None:
    turns = [turn([{"wait": {}}], [{}], state={"screenshot_path": None})] * 10_000
    _, (record,) = inspect(zipped(tmp_path / "logs.zip", files(history(*turns))))
    assert len(record.steps) == 10_000
