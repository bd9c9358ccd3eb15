"""Messages of Anthropic, items of OpenAI Responses, trajectories of cua: steps, pictures, points, what is lost."""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from annotation.formats.archive import open_package
from annotation.formats.registry import recognise
from annotation.tests import testing
from annotation.tests.test_agent_logs import logged, run, zipped

PICTURE = {n: testing.png(n) for n in range(5)}
NAMES = {hashlib.sha256(data).hexdigest(): f"p{n}" for n, data in PICTURE.items()} | {None: None}


def data_uri(number: int) -> str:
    return f"data:image/png;base64,{base64.b64encode(PICTURE[number]).decode()}"


def use(call_id: str, action: str, tool: str = "computer", **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": tool, "input": {"action": action} | arguments}


def returned(call_id: str, picture: bytes | None = None, text: str = "", **more: Any) -> dict[str, Any]:
    content: list[dict[str, Any]] = [{"type": "text", "text": text}] if text else []
    if picture is not None:
        source = {"type": "base64", "media_type": "image/png", "data": base64.b64encode(picture).decode()}
        content.append({"type": "image", "source": source})
    return {"type": "tool_result", "tool_use_id": call_id, "content": content} | more


def says(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def message(role: str, *content: Any) -> dict[str, Any]:
    return {"role": role, "content": list(content)}


def claude() -> list[dict[str, Any]]:
    """A look, a click and a text in one turn, a key that fails, a click without a picture, and the answer."""
    return [
        {"role": "user", "content": "Find the price"},
        message("assistant", {"type": "thinking", "thinking": "Look first."}, use("t1", "screenshot")),
        message("user", returned("t1", PICTURE[0])),
        message("assistant", says("Open."), use("t2", "left_click", coordinate=[100, 50]), use("t3", "type", text="x")),
        message("user", returned("t2", PICTURE[1]), returned("t3", PICTURE[2], "typed")),
        message("assistant", use("t4", "key", text="Retrun")),
        message("user", returned("t4", text="No such key", is_error=True)),
        message("assistant", use("t5", "right_click", coordinate=[5, 5]), use("t6", "wait", duration=1)),
        message("user", returned("t5", PICTURE[3], is_error=False)),
        message("assistant", {"type": "redacted_thinking", "data": "x"}, says("24.50")),
    ]


def imported(path: Path) -> tuple[Any, list[tuple[Any, ...]], Any]:
    report, (submission,) = run(path)
    trajectory = submission.trajectories.get()
    steps = [
        (step.action, NAMES[step.screenshot and step.screenshot.sha256], step.thought)
        for step in trajectory.steps.order_by("index").select_related("screenshot")
    ]
    return report, steps, trajectory


def written(path: Path, document: Any) -> Path:
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


@pytest.mark.django_db
def test_messages_of_anthropic_become_steps_with_the_picture_before_them(tmp_path: Path) -> None:
    report, steps, trajectory = imported(written(tmp_path / "lamp.json", claude()))
    assert (trajectory.task.external_id, trajectory.task_text) == ("lamp", "Find the price")
    assert (trajectory.final_answer, trajectory.source_format) == ("24.50", "computer-use-messages")
    assert steps == [
        ("coords(100, 50) -> CLICK -> left_click(coordinate=[100, 50])", "p0", "Open."),
        ('type(text="x")', "p1", None),
        ('key(text="Retrun"): No such key | FAILED', "p2", None),
        ("right_click(coordinate=[5, 5]) | SUCCESS", None, None),
        ("", "p3", None),
    ]
    assert report.with_conversion()["conversion"] == {
        "format": "computer-use-messages",
        "version": "",
        "carried": [
            {"what": what, "count": count}
            for what, count in (
                ("steps", 4), ("screenshots", 4), ("points", 1), ("thoughts", 1), ("outcomes of actions", 2),
                ("answers", 1), ("task texts", 1),
            )
        ],
        "derived": [],
        "lost": [
            {"what": what, "count": count}
            for what, count in (
                ("texts that tools returned", 1),
                ("turns with texts but without an action", 1),
                ("actions that only look (cursor_position, screenshot, zoom)", 1),
                ("points without a picture", 1),
                ("actions without a result, which may not have run", 1),
                ("encrypted thoughts", 1),
                ("steps without a screenshot", 1),
            )
        ],
    }  # fmt: skip


def items() -> list[dict[str, Any]]:
    def shown(call_id: str, number: int, url: str) -> dict[str, Any]:
        output = {"type": "computer_screenshot", "image_url": data_uri(number), "current_url": url}
        return {"type": "computer_call_output", "call_id": call_id, "output": output}

    start = [{"type": "input_text", "text": "Find the price"}, {"type": "input_image", "image_url": data_uri(0)}]
    several = [
        {"type": "click", "x": 7, "y": 8, "button": "right"},
        {"type": "drag", "path": [{"x": 1, "y": 2}, {"x": 3, "y": 4}]},
        {"type": "click", "x": 9, "y": 9, "button": "back"},
    ]
    return [
        {"role": "system", "content": "You are an agent."},
        {"role": "user", "content": start},
        {"type": "reasoning", "id": "r1", "summary": [{"type": "summary_text", "text": "Open it."}]},
        {"type": "function_call", "call_id": "f1", "name": "goto", "arguments": '{"url": "https://lamps.example"}'},
        {"type": "function_call_output", "call_id": "f1", "output": "success"},
        {"type": "computer_call", "call_id": "c1", "action": {"type": "screenshot"}},
        shown("c1", 1, "https://lamps.example/1"),
        {"type": "computer_call", "call_id": "c2", "actions": several},
        shown("c2", 2, "https://lamps.example/2"),
        {"type": "reasoning", "id": "r2", "summary": [], "encrypted_content": "x"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "24.50"}]},
    ]


@pytest.mark.django_db
def test_items_of_openai_become_steps_with_urls_and_calls_of_several_actions(tmp_path: Path) -> None:
    report, steps, trajectory = imported(written(tmp_path / "lamp.json", {"model": "m", "items": items()}))
    assert steps == [
        ('goto(url="https://lamps.example")', "p0", "Open it."),
        ('coords(7, 8) -> RIGHT_CLICK -> click(x=7, y=8, button="right")', "p1", None),
        ('drag(path=[{"x": 1, "y": 2}, {"x": 3, "y": 4}])', "p1", None),
        ('click(x=9, y=9, button="back")', "p1", None),
        ("", "p2", None),
    ]
    urls = [step.url for step in trajectory.steps.order_by("index")]
    assert urls == ["", "https://lamps.example/1", "", "", "https://lamps.example/2"]
    assert trajectory.final_answer == "24.50"
    conversion = report.conversion.as_json()
    assert conversion["derived"] == [{"what": "pictures of steps that share the picture before their turn", "count": 2}]
    assert conversion["lost"] == [
        {"what": "system prompts", "count": 1},
        {"what": "settings of the run", "count": 1},
        {"what": "texts that tools returned", "count": 1},
        {"what": "encrypted thoughts", "count": 1},
        {"what": "actions that only look (cursor_position, screenshot, zoom)", "count": 1},
    ]


@pytest.mark.django_db
def test_responses_are_unpacked_and_images_named_by_a_file_id_are_counted(tmp_path: Path) -> None:
    start, call = {"role": "user", "content": "Find the price"}, {"type": "click", "x": 7, "y": 8}
    shown = {"type": "computer_screenshot", "file_id": "file-1"}
    said = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "24.50"}]}
    lines = [
        start,
        {"object": "response", "output": [{"type": "computer_call", "call_id": "c1", "action": call}]},
        {"type": "computer_call_output", "call_id": "c1", "output": shown},
        {"object": "response", "output": [said]},
    ]
    report, steps, trajectory = imported(written(tmp_path / "lamp.json", lines))
    assert [step[0] for step in steps] == ["click(x=7, y=8)"]
    assert trajectory.final_answer == "24.50"
    lost = {each["what"]: each["count"] for each in report.conversion.as_json()["lost"]}
    assert (lost["settings of responses"], lost["images that are only named by a file id"]) == (2, 1)


@pytest.mark.django_db
def test_lines_with_pictures_beside_are_read_and_named_by_their_folder(tmp_path: Path) -> None:
    click = {"type": "computer_call", "call_id": "c1", "action": {"type": "double_click", "x": 30, "y": 40}}
    shown = {"type": "computer_call_output", "call_id": "c1", "output": {"image_url": "C:\\run\\shots\\1.png"}}
    given = {
        "role": "user",
        "content": [says("Find\u2028it"), {"type": "input_image", "image_url": "/tmp/shots/0.png"}],
    }
    lines = "\r\n".join(json.dumps(each, ensure_ascii=False) for each in (given, click, shown))
    files = {"lamp/messages.jsonl": lines.encode(), "lamp/shots/0.png": PICTURE[0], "lamp/shots/1.png": PICTURE[1]}
    _, steps, trajectory = imported(zipped(tmp_path / "logs.zip", files))
    assert (trajectory.task.external_id, trajectory.task_text) == ("lamp", "Find\u2028it")
    assert steps == [("coords(30, 40) -> DOUBLE_CLICK -> double_click(x=30, y=40)", "p0", None), ("", "p1", None)]


def cua(run_name: str = "2026-01-02_model_101010_ab12", **metadata: Any) -> dict[str, bytes]:
    """A trajectory of cua: a click in one turn, the end of the run in the next."""
    call = {"type": "computer_call", "call_id": "c1", "action": {"type": "click", "x": 9, "y": 8}}
    end = {"type": "computer_call", "call_id": "c2", "action": {"type": "terminate", "status": "success"}}
    hidden = {"type": "computer_call_output", "call_id": "c1", "output": {"image_url": "[omitted]"}}
    document = {"trajectory_id": run_name, "status": "running", "kwargs": {"messages": "Find it", "model": "m"}}
    turns: dict[str, Any] = {
        "turn_000/0000_api_start.json": {"kwargs": {}},
        "turn_000/0001_agent_response.json": {"response": {"output": [call]}},
        "turn_000/0002_screenshot_after.png": PICTURE[1],
        "turn_000/0003_computer_call_result.json": {"item": call, "result": [hidden]},
        "turn_000/0004_screenshot_action.png": PICTURE[2],
        "turn_001/0005_agent_response.json": {"response": {"output": [end]}},
        "turn_001/0006_computer_call_result.json": {
            "result": [{"type": "computer_call_output", "call_id": "c2", "output": {"terminated": True}}]
        },
    }
    files = turns | {"metadata.json": document | metadata}
    return {
        f"{run_name}/{name}": data if isinstance(data, bytes) else json.dumps(data).encode()
        for name, data in files.items()
    }


@pytest.mark.django_db
def test_a_trajectory_of_cua_that_ended_is_read_from_its_items(tmp_path: Path) -> None:
    done = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "24.50"}]}
    shown = {"type": "computer_call_output", "call_id": "c1", "output": {"image_url": data_uri(3)}}
    call = {"type": "computer_call", "call_id": "c1", "action": {"type": "click", "x": 9, "y": 8}}
    _, steps, trajectory = imported(
        zipped(tmp_path / "cua.zip", cua(status="completed", new_items=[call, shown, done]))
    )
    assert trajectory.task.external_id == "2026-01-02_model_101010_ab12"
    assert (trajectory.task_text, trajectory.final_answer) == ("Find it", "24.50")
    assert steps == [("click(x=9, y=8)", None, None), ("", "p3", None)]


@pytest.mark.django_db
def test_a_trajectory_of_cua_that_did_not_end_is_read_from_its_turns(tmp_path: Path) -> None:
    report, steps, _ = imported(zipped(tmp_path / "cua.zip", cua()))
    assert steps == [("click(x=9, y=8)", None, None), ("", "p1", None)]
    conversion = report.conversion.as_json()
    assert conversion["derived"] == [{"what": "items from the files of turns, because the run did not end", "count": 7}]
    assert {"what": "actions that only end the run", "count": 1} in conversion["lost"]
    assert "success" not in json.dumps(steps)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("size", "is_marked"), [((1280, 800), True), ((1568, 700), True), ((1600, 600), False), ((1440, 900), False)]
)
def test_points_of_claude_have_no_marker_where_the_api_shrinks_pictures(
    tmp_path: Path, size: tuple[int, int], is_marked: bool
) -> None:
    document = claude()
    document[2] = message("user", returned("t1", testing.png(0, size)))
    report, _ = run(written(tmp_path / "lamp.json", document))
    assert report.conversion.carried["points"] == int(is_marked)
    assert report.conversion.lost["points on pictures that the model sees in another size"] == int(not is_marked)


# --- hostile files ----------------------------------------------------------------------------------------------------


def one_call(arguments: Any, tool: Any = "computer", first: Any = None, **result: Any) -> list[dict[str, Any]]:
    """Return a log with a picture, one call and an answer."""
    picture = {"type": "image", "source": {"type": "base64", "data": base64.b64encode(PICTURE[0]).decode()}}
    call = {"type": "tool_use", "id": "t1", "name": tool, "input": arguments}
    return [
        message("user", says("Find it"), first or picture),
        message("assistant", use("t0", "wait"), call),
        message("user", returned("t1", PICTURE[1]) | result),
        message("assistant", says("24.50")),
    ]


def click(*coordinate: Any) -> list[dict[str, Any]]:
    return one_call({"action": "left_click", "coordinate": list(coordinate)})


def deep(levels: int) -> bytes:
    log = json.dumps(one_call({"action": "type", "text": "DEEP"}))
    return log.replace('"DEEP"', "[" * levels + "]" * levels).encode()


URL = {"type": "image", "source": {"type": "url", "url": "http://169.254.169.254/latest"}}
OUTSIDE = {"type": "image", "source": {"type": "file", "path": "../../etc/passwd"}}
WINDOWS = {"type": "input_image", "image_url": "C:\\Windows\\win.ini"}
TEXT = {"type": "image", "source": {"type": "base64", "data": base64.b64encode(b"<svg onload=alert(1)>").decode()}}
BROKEN = {"type": "image", "source": {"type": "base64", "data": "%%%"}}
LOST = {
    "negative": (click(-1, 5), {"points outside of their picture": 1}),
    "right of it": (click(320, 5), {"points outside of their picture": 1}),
    "below": (click(5, 200), {"points outside of their picture": 1}),
    "huge": (click(10**300, 1), {"points outside of their picture": 1}),
    "fraction": (click(1e308, 1), {"points outside of their picture": 1}),
    "three numbers": (click(1, 2, 3), {"points that are no pair of numbers": 1}),
    "texts": (click("1", "2"), {"points that are no pair of numbers": 1}),
    "booleans": (click(True, False), {"points that are no pair of numbers": 1}),
    "no arguments": (one_call(None), {"actions without a name": 1}),
    "list of arguments": (one_call([1, 2]), {"actions without a name": 1}),
    "action is a list": (one_call({"action": ["left_click"]}), {"actions without a name": 1}),
    "actions are numbers": (one_call({"actions": [1, None, {}]}), {"actions without a name": 3}),
    "no actions": (one_call({"actions": []}), {}),
    "remote picture": (one_call({"action": "wait"}, first=URL), {"pictures at addresses, which are not fetched": 1}),
    "path outside": (one_call({"action": "wait"}, first=OUTSIDE), {"pictures that are not in the upload": 1}),
    "absolute path": (one_call({"action": "wait"}, first=WINDOWS), {"pictures that are not in the upload": 1}),
    "picture is text": (one_call({"action": "wait"}, first=TEXT), {"pictures that cannot be read": 1}),
    "picture is not base64": (one_call({"action": "wait"}, first=BROKEN), {"pictures that cannot be read": 1}),
    "no source": (one_call({"action": "wait"}, first={"type": "image"}), {"pictures that the log leaves out": 1}),
    "result is a number": (one_call({"action": "wait"}, content=7), {}),
    "error is a text": (one_call({"action": "wait"}, is_error="yes"), {}),
    "other blocks": ([*one_call({"action": "wait"}), 7, None, []], {"items of other kinds": 3}),
}


@pytest.mark.django_db
@pytest.mark.parametrize("variant", LOST)
def test_hostile_values_are_counted_as_lost(tmp_path: Path, variant: str) -> None:
    document, lost = LOST[variant]
    report, made = run(written(tmp_path / "lamp.json", document))
    assert len(made) == 1
    usual = {"actions without a result, which may not have run": 1, "steps without a screenshot": None}
    found = {what: count for what, count in report.conversion.lost.items() if count and what not in usual}
    assert found == lost
    assert report.conversion.carried["points"] == 0


@pytest.mark.django_db
def test_names_of_tools_are_not_taken_for_points(tmp_path: Path) -> None:
    document = one_call({"x": "| SUCCESS"}, tool="coords(1, 2) -> CLICK -> x")
    _, steps, trajectory = imported(written(tmp_path / "lamp.json", document))
    assert steps[0][0] == '"coords(1, 2) -> CLICK -> x"(x="| SUCCESS")'
    assert [step.click_x for step in trajectory.steps.order_by("index")] == [None, None]


def raw(text: str) -> bytes:
    """Return a log with ``text`` in place of the arguments of its call."""
    return json.dumps(one_call("HERE")).replace('"HERE"', text).encode()


REFUSED = {
    "truncated": (json.dumps(claude()).encode()[:-2], ["json_invalid"]),
    "not a number": (raw('{"action": "wait", "duration": NaN}'), ["number_not_finite"]),
    "long integer": (raw('{"action": "wait", "duration": ' + "9" * 5_000 + "}"), ["json_invalid"]),
    "duplicate keys": (raw('{"action": "wait", "action": "wait"}'), ["duplicate_key"]),
    "lone surrogate": (raw('{"action": "type", "text": "\\ud800"}'), ["text_unstorable"]),
    "not UTF-8": (raw('{"action": "type", "text": "Z"}').replace(b'"Z"', b'"\xff"'), ["not_utf8"]),
    "deep": (deep(5_000), ["json_invalid"]),
    "no steps": (json.dumps([message("user", use("t1", "wait"))]).encode(), ["no_steps"]),
    "no items": (json.dumps({"messages": 3, "items": [use("t1", "wait")]}).encode(), ["no_steps"]),
}


@pytest.mark.django_db
@pytest.mark.parametrize("variant", REFUSED)
def test_hostile_files_are_refused_with_a_code(tmp_path: Path, variant: str) -> None:
    data, codes = REFUSED[variant]
    report, made = run(zipped(tmp_path / "logs.zip", {"lamp.json": data}))
    assert not made
    assert [problem.code for problem in report.rejected["lamp.json"]] == codes


@pytest.mark.django_db
def test_many_steps_are_refused_and_arguments_may_be_deep(tmp_path: Path) -> None:
    calls = [{"type": "computer_call", "call_id": "c", "actions": [{"type": "wait"}] * 20_001}]
    document = [*calls, {"type": "computer_call_output", "call_id": "c", "output": None}]
    report, _ = run(written(tmp_path / "many.json", document))
    assert [problem.code for problem in report.rejected["many.json"]] == ["too_many_steps"]
    (tmp_path / "deep.json").write_bytes(deep(500))
    assert imported(tmp_path / "deep.json")[1][0][0].startswith("type(text=[[[")


# --- recognition ------------------------------------------------------------------------------------------------------

OTHERS: dict[str, Any] = {
    "browser-use": {"history": [{"model_output": {"action": [{"click": {"index": 4}}]}, "state": {}}]},
    "inspect": {"version": 2, "status": "success", "eval": {}, "samples": [{"messages": claude()}]},
    "atif": {"schema_version": "ATIF-v1.7", "steps": [{"tool_calls": [use("t1", "wait")]}]},
    "web-voyager": [{"role": "system", "content": "Imagine you are a robot"}, {"role": "user", "content": "Now"}],
    "chat": [{"role": "user", "content": "hi"}, message("assistant", use("t1", "ls", tool="bash"))],
    "fara": {"timestamp": "2026-01-02T10:00:00", "type": "WebSurferEvent", "action": "computer_use"},
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_formats_are_not_recognised(tmp_path: Path, name: str) -> None:
    with open_package(written(tmp_path / "log.json", OTHERS[name])) as package:
        found = recognise(package)
    assert found is None or found.name != "computer-use-messages"


@pytest.mark.parametrize("files", [logged(), {"lamp.json": json.dumps(items()).encode()}, cua()])
def test_a_zip_of_logs_has_one_format(tmp_path: Path, files: dict[str, bytes]) -> None:
    with open_package(zipped(tmp_path / "logs.zip", files)) as package:
        found = recognise(package)
    assert found is not None
    assert (found.name == "agent-reward-bench") == any(name.startswith("cleaned/") for name in files)
