"""Logs of Inspect: samples and epochs, attachments, tools, Zstandard, and what is lost."""

from __future__ import annotations

import json
import sys
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow
import pytest

from annotation.formats.archive import open_package
from annotation.formats.external import inspect_log
from annotation.formats.registry import recognise
from annotation.tests.test_agent_logs import logged, run, zipped
from annotation.tests.test_log_computer_use_messages import NAMES, claude, cua, data_uri

ATTACHMENTS = {
    "a0": data_uri(0),
    "a1": data_uri(1),
    "a2": data_uri(2),
    "at": "Find the price",
    "loop": "attachment://at",
}


def call(call_id: str, function: str = "computer", **arguments: Any) -> dict[str, Any]:
    return {"id": call_id, "function": function, "arguments": arguments, "type": "function"}


def turn(content: Any, *calls: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": content, "tool_calls": list(calls)}


def returned(call_id: str, image: Any = None, error: Any = None, text: str = "") -> dict[str, Any]:
    content = [{"type": "text", "text": text}] if text else []
    content += [{"type": "image", "image": image}] if image else []
    return {"role": "tool", "tool_call_id": call_id, "content": content} | ({"error": error} if error else {})


def sample(given: Any = "lamp", epoch: Any = 1, **changes: Any) -> dict[str, Any]:
    """Return a sample with a look, a click and a text in one turn, an error, and an answer that was submitted."""
    thought = {"type": "reasoning", "reasoning": "Open it.", "redacted": False}
    typed = [{"action": "left_click", "coordinate": [9, 8]}, {"action": "type", "text": "attachment://loop"}]
    messages = [
        {"role": "system", "content": "You are an agent."},
        {"role": "user", "content": "attachment://at", "source": "input"},
        turn("", call("t1", action="screenshot")),
        returned("t1", "attachment://a0", text="done"),
        turn([thought], call("t2", action="double_click", coordinate=[100, 50]), call("t3", actions=typed)),
        returned("t2", "attachment://a1"),
        returned("t3", "attachment://a2"),
        turn("", call("t4", action="key", text="Retrun"), call("t5", action="key")),
        returned("t4", error={"type": "unknown", "message": "No such key"}),
        returned("t5", error={"type": "parsing", "message": "text must be provided"}),
        turn("24.50"),
    ]
    submitted = turn("24.50", call("t6", "submit", answer="24.50"))
    return {
        "id": given,
        "epoch": epoch,
        "input": "attachment://at",
        "target": "24.50",
        "messages": messages,
        "output": {"choices": [{"message": submitted, "stop_reason": "tool_calls"}]},
        "scores": {"match": {"value": "C"}},
        "metadata": {"level": "easy"},
        "store": {},
        "events": [{"event": "tool", "id": "t2"}, {"event": "tool", "id": "deep"}, {"event": "model"}],
        "attachments": ATTACHMENTS,
    } | changes


def document(*samples: Any, version: Any = 2) -> bytes:
    return json.dumps({"version": version, "status": "success", "eval": {"model": "m"}, "samples": samples}).encode()


def members(*samples: dict[str, Any], version: Any = 2) -> dict[str, bytes]:
    """Return the files of an .eval."""
    files = {"header.json": {"version": version, "status": "success"}, "summaries.json": [], "_journal/start.json": {}}
    files |= {f"samples/{each['id']}_epoch_{each['epoch']}.json": each for each in samples}
    return {name: json.dumps(content).encode() for name, content in files.items()}


def zstandard(path: Path, files: dict[str, bytes], change: Callable[[zipfile.ZipInfo], None] | None = None) -> Path:
    """Write a zip with method 93, each member in two frames, as Inspect splits large ones."""
    with zipfile.ZipFile(path, "w") as package:
        for name, data in files.items():
            half = len(data) // 2
            package.writestr(
                name, b"".join(pyarrow.compress(part, "zstd", True) for part in (data[:half], data[half:]))
            )
            member = package.filelist[-1]
            member.compress_type, member.file_size, member.CRC = 93, len(data), zlib.crc32(data)
            if change is not None:
                change(member)
    return path


def rejected(report: Any) -> dict[str, list[str]]:
    return {name: [problem.code for problem in problems] for name, problems in report.rejected.items()}


@pytest.mark.django_db
@pytest.mark.parametrize("version", [2, 3])
def test_a_sample_becomes_a_trajectory_with_the_picture_before_each_action(tmp_path: Path, version: int) -> None:
    report, (submission,) = run(zstandard(tmp_path / "log.eval", members(sample(), version=version)))
    trajectory = submission.trajectories.get()
    assert (trajectory.task.external_id, trajectory.task_text) == ("lamp", "Find the price")
    assert (trajectory.final_answer, trajectory.source_format) == ("24.50", "inspect-log")
    steps = trajectory.steps.order_by("index").select_related("screenshot")
    assert [(s.action, NAMES[s.screenshot and s.screenshot.sha256], s.thought) for s in steps] == [
        ("coords(100, 50) -> DOUBLE_CLICK -> double_click(coordinate=[100, 50])", "p0", "Open it."),
        ("coords(9, 8) -> CLICK -> left_click(coordinate=[9, 8])", "p1", None),
        ('type(text="attachment://at")', "p0", None),
        ('key(text="Retrun"): No such key | FAILED', "p2", None),
    ]
    assert report.with_conversion()["conversion"] == {
        "format": "inspect-log",
        "version": str(version),
        "carried": [
            {"what": what, "count": count}
            for what, count in (
                ("steps", 4), ("screenshots", 4), ("points", 2), ("thoughts", 1), ("outcomes of actions", 1),
                ("answers", 1), ("task texts", 1),
            )
        ],
        "derived": [{"what": "pictures of steps that share the picture before their turn", "count": 1}],
        "lost": [
            {"what": what, "count": count}
            for what, count in (
                ("expected answers, which annotators must not see", 1),
                ("scores, which annotators must not see", 1),
                ("metadata of the sample", 1),
                ("texts that tools returned", 1),
                ("system prompts", 1),
                ("actions that only look (cursor_position, screenshot, zoom)", 1),
                ("actions that did not run, because of errors before them", 1),
                ("actions of other agents, or of shortened conversations", 1),
            )
        ],
    }  # fmt: skip


@pytest.mark.django_db
def test_epochs_become_attempts_and_samples_tasks_in_every_kind_of_file(tmp_path: Path) -> None:
    samples = [sample(given, epoch) for epoch in (10, 2, 1) for given in ("lamp", 7)]
    folder = tmp_path / "logs"
    folder.mkdir()
    paths = [
        zstandard(tmp_path / "zstandard.eval", members(*samples)),
        zipped(tmp_path / "deflated.eval", members(*samples)),
        tmp_path / "log.json",
        folder,
    ]
    paths[2].write_bytes(document(*samples))
    zstandard(folder / "log.eval", members(*samples[:4]))
    (folder / "log.json").write_bytes(document(*samples[4:]))
    for path in paths:
        report, made = run(path, dry_run=True)
        assert (rejected(report), sorted(report.accepted), made) == ({}, ["7"] * 3 + ["lamp"] * 3, []), path.name
        assert report.conversion.carried["steps"] == 24


@pytest.mark.django_db
def test_a_map_of_tasks_names_samples_by_their_id(tmp_path: Path) -> None:
    files = {"log.json": document(sample("k.1/a")), "tasks.csv": b"log,task_id\nk.1/a,x\na,lamps\n"}
    report, (submission,) = run(zipped(tmp_path / "logs.zip", files))
    assert submission.trajectories.get().task.external_id == "lamps"
    assert [problem.code for _, problem in report.warnings][-1] == "task_map_unused"


@pytest.mark.django_db
def test_a_web_browser_has_steps_without_pictures_and_the_output_is_the_answer(tmp_path: Path) -> None:
    messages = [
        {"role": "user", "content": "Find it"},
        turn("Go.", call("t1", "web_browser_go", url="https://lamps.example")),
        returned("t1", text="[1] RootWebArea"),
        turn([{"type": "text", "text": "It is 24.50"}]),
    ]
    output = {"choices": [{"message": messages[-1]}]}
    log = sample(messages=messages, output=output, input=[messages[0]], events=[])
    (tmp_path / "log.json").write_bytes(document(log))
    report, (submission,) = run(tmp_path / "log.json")
    trajectory = submission.trajectories.get()
    assert [step.action for step in trajectory.steps.all()] == ['web_browser_go(url="https://lamps.example")']
    assert (trajectory.task_text, trajectory.final_answer) == ("Find it", "It is 24.50")
    assert report.conversion.lost["steps without a screenshot"] == 1


@pytest.mark.django_db
def test_a_log_without_pyarrow_says_which_extra_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    path = tmp_path / "log.eval"
    zipped(path, members(sample()))
    assert len(run(path)[1]) == 1  # deflated
    monkeypatch.undo()
    zstandard(path, members(sample("other")))
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    report, made = run(path)
    assert not made
    ((problem,),) = report.rejected.values()
    assert problem.code == "zstandard_unsupported"
    assert "needs the package pyarrow, which is not installed. Run: " in problem.message
    assert "inspect log convert --to json" in problem.message


@pytest.mark.django_db
def test_the_last_of_several_members_counts_and_a_log_that_did_not_end_is_read(tmp_path: Path) -> None:
    path = zipped(tmp_path / "log.eval", members(sample(input="Old")))
    with pytest.warns(UserWarning, match="Duplicate name"), zipfile.ZipFile(path, "a") as package:
        package.writestr("samples/lamp_epoch_1.json", json.dumps(sample(input="New")))
    assert run(path)[1][0].trajectories.get().task_text == "New"
    files = members(sample("other")) | {"_journal/start.json": b'{"version": 2}'}
    del files["header.json"]
    assert len(run(zipped(path, files))[1]) == 1


# --- hostile files ----------------------------------------------------------------------------------------------------


def wrong_size(member: zipfile.ZipInfo) -> None:
    member.file_size -= 1


def wrong_checksum(member: zipfile.ZipInfo) -> None:
    member.CRC ^= 1


def bomb(member: zipfile.ZipInfo) -> None:
    member.file_size = 2**30


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("change", "codes"),
    [(wrong_size, ["file_damaged"]), (wrong_checksum, ["file_damaged"]), (bomb, ["file_too_large"])],
)
def test_members_that_are_not_what_the_directory_states_are_refused(
    tmp_path: Path, change: Callable[[zipfile.ZipInfo], None], codes: list[str]
) -> None:
    path = zstandard(tmp_path / "log.eval", members(sample()), lambda m: change(m) if "samples" in m.filename else None)
    report, made = run(path)
    assert (made, list(rejected(report).values())) == ([], [codes])


@pytest.mark.django_db
def test_frames_that_are_damaged_or_cut_are_refused(tmp_path: Path) -> None:
    for packed in (b"no frame", pyarrow.compress(b"x" * 999, "zstd", True)[:-4]):
        path = zipped(tmp_path / "log.eval", members() | {"samples/a_epoch_1.json": packed})
        with zipfile.ZipFile(path, "a") as package:
            package.filelist[-1].compress_type = 93
            package._didModify = True  # type: ignore[attr-defined] # writes the directory again
        report, _ = run(path)
        assert rejected(report) == {"log.eval/samples/a_epoch_1.json": ["file_damaged"]}


def raw(text: str) -> bytes:
    return document(sample(store="HERE")).replace(b'"HERE"', text.encode())


REFUSED: dict[str, tuple[dict[str, bytes], dict[str, list[str]]]] = {
    "truncated": ({"log.json": document(sample())[:-2]}, {"log.json": ["json_invalid"]}),
    "NaN": ({"log.json": raw("NaN")}, {"log.json": ["number_not_finite"]}),
    "duplicate keys": ({"log.json": raw('{"a": 1, "a": 2}')}, {"log.json": ["duplicate_key"]}),
    "lone surrogate": ({"log.json": raw('"\\udc00"')}, {"log.json": ["text_unstorable"]}),
    "deep": ({"log.json": raw("[" * 5_000 + "]" * 5_000)}, {"log.json": ["json_invalid"]}),
    "not UTF-8": ({"log.json": raw('"Z"').replace(b'"Z"', b'"\xff"')}, {"log.json": ["not_utf8"]}),
    "version 9": ({"log.json": document(sample(), version=9)}, {"log.json": ["log_version_unknown"]}),
    "no samples": ({"log.json": document()}, {"log.json": ["samples_missing"]}),
    "samples are numbers": (
        {"log.json": document(1, None)},
        {"log.json, sample 1": ["sample_invalid"], "log.json, sample 2": ["sample_invalid"]},
    ),
    "id is a list": ({"log.json": document(sample(["x"]))}, {"log.json, sample 1": ["sample_invalid"]}),
    "id is blank": ({"log.json": document(sample(" "))}, {"log.json, sample 1": ["sample_invalid"]}),
    "messages are a text": (
        {"log.json": document(sample(messages="x", output=None))},
        {"log.json/lamp.epoch_1": ["no_steps"]},
    ),
    "eval is no zip": ({"a.eval": b"no zip"}, {"a.eval": ["zip_unreadable"]}),
    "eval in eval": ({"a.eval": b"PK\x05\x06" + b"\0" * 18}, {"a.eval": ["log_version_unknown"]}),
}


@pytest.mark.django_db
@pytest.mark.parametrize("variant", REFUSED)
def test_hostile_files_are_refused_with_a_code(tmp_path: Path, variant: str) -> None:
    files, codes = REFUSED[variant]
    report, made = run(zipped(tmp_path / "logs.zip", files))
    assert (made, rejected(report)) == ([], codes)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("name", "codes"),
    [
        ("samples/../../x_epoch_1.json", ["path_outside"]),
        ("samples/C:\\x_epoch_1.json", ["path_outside"]),
        ("samples/big_epoch_1/sample.json", ["log_version_unknown"]),
    ],
)
def test_names_of_members_that_cannot_be_read_are_refused(tmp_path: Path, name: str, codes: list[str]) -> None:
    report, made = run(zipped(tmp_path / "log.eval", members(sample()) | {name: b"{}"}))
    ((problem,),) = report.rejected.values()
    assert (made, [problem.code]) == ([], codes)
    assert "inspect log convert --to json" in problem.message


def one(**changes: Any) -> dict[str, Any]:
    """Return a sample with one action, whose picture or arguments change."""
    image, arguments = changes.pop("image", "attachment://a0"), changes.pop("arguments", {"action": "wait"})
    messages = [
        {"role": "user", "content": [{"type": "text", "text": "Find it"}, {"type": "image", "image": image}]},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": "t", "function": "computer", "arguments": arguments}],
        },
        returned("t", "attachment://a1"),
    ]
    return sample(messages=messages, input="Find it", target="", scores=None, metadata=None, events=[]) | changes


LOST: dict[str, tuple[dict[str, Any], dict[str, int]]] = {
    "remote": (one(image="http://169.254.169.254/x.png"), {"pictures at addresses, which are not fetched": 1}),
    "outside": (one(image="../../../etc/passwd"), {"pictures that are not in the upload": 1}),
    "windows": (one(image="C:\\x.png"), {"pictures that are not in the upload": 1}),
    "unknown": (
        one(image="attachment://none"),
        {"attachments that are not in the log": 1, "pictures that the log leaves out": 1},
    ),
    "number": (one(image=7), {"pictures that the log leaves out": 1}),
    "broken": (one(image="data:image/png;base64,%%"), {"pictures that cannot be read": 1}),
    "negative": (
        one(arguments={"action": "left_click", "coordinate": [-5, 5]}),
        {"points outside of their picture": 1},
    ),
    "huge": (
        one(arguments={"action": "left_click", "coordinate": [10**99, 5]}),
        {"points outside of their picture": 1},
    ),
    "arguments": (one(arguments="left_click"), {"actions without a name": 1}),
    "attachments": (
        one(attachments=["x"]),
        {"attachments that are not in the log": 2, "pictures that the log leaves out": 2},
    ),
    "events": (one(events={"event": "tool"}), {}),
    "output": (one(output={"choices": [3]}), {"logs without an answer": 1}),
    "scores": (one(scores=[1, 2]), {"scores, which annotators must not see": 2}),
    "epoch": (one(epoch="first"), {}),
    "unknown action": (one(arguments={"action": "teleport", "coordinate": [1, 2]}), {}),
}


@pytest.mark.django_db
@pytest.mark.parametrize("variant", LOST)
def test_hostile_values_are_counted_as_lost(tmp_path: Path, variant: str) -> None:
    log, lost = LOST[variant]
    (tmp_path / "log.json").write_bytes(document(log))
    report, _ = run(tmp_path / "log.json", dry_run=True)
    usual = "steps without a screenshot"
    assert {what: count for what, count in report.conversion.lost.items() if count and what != usual} == lost


# --- recognition ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "files",
    [
        logged(),
        cua(),
        {"lamp.json": json.dumps(claude()).encode()},
        {"log.json": b'{"version": 1, "history": [], "eval": {}}'},
        {"header.json": b'{"version": 2}', "trace.trace": b"{}"},
    ],
)
def test_other_formats_are_not_recognised(tmp_path: Path, files: dict[str, bytes]) -> None:
    with open_package(zipped(tmp_path / "logs.zip", files)) as package:
        found = recognise(package)
    assert found is None or found.name != inspect_log.NAME
