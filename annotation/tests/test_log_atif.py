"""ATIF: tool calls with pictures after them, continued in other files; and its export, which changes nothing."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from annotation import screenshots, workflow
from annotation.ingest import import_all
from annotation.models import Benchmark
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

PICTURES = {n: testing.png(n) for n in range(5)}
AGENTS, REPLACED = "names and versions of agents", "screenshots that a later one replaces"
POINTS = "points, because ATIF does not state the space of their coordinates"
HIDDEN = "judgements by the agent itself, which annotators must not see"
NO_ANSWER, NO_TASK = "logs without an answer", "logs without the text of the task"
NO_PICTURE, MISSING = "steps without a screenshot", "screenshots that are not in the upload"


def image(number: int) -> dict[str, Any]:
    return {"type": "image", "source": {"media_type": "image/png", "path": f"images/{number}.png"}}


def call(name: str, number: int = 0, **arguments: Any) -> dict[str, Any]:
    return {"tool_call_id": f"c{number}", "function_name": name, "arguments": arguments}


def seen(*numbers: int) -> dict[str, Any]:
    """Return an observation with a result for each call: a text and the picture of that number."""
    results = [
        {"source_call_id": f"c{place}", "content": [{"type": "text", "text": "Done."}, image(number)]}
        for place, number in enumerate(numbers)
    ]
    return {"results": results}


def agent(*calls: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"source": "agent", "message": ""} | ({"tool_calls": list(calls)} if calls else {}) | fields


TASK = {"source": "user", "message": "Find the price", "timestamp": "2026-01-02T10:00:00Z"}
END = agent(message="24.50")
STEPS = [
    {"source": "system", "message": "You are an agent."},
    TASK,
    agent(call("screenshot"), observation=seen(0)),
    agent(
        call("click", x=312, y=88, button=None), call("type", 1, text='a "lamp"', keys=["Enter"]),
        message="I open it.", reasoning_content="It is first.", observation=seen(1, 2), metrics={"prompt_tokens": 1},
    ),
    {"source": "user", "message": "Go on."},
    agent(message="I go on."),
    agent(call("scroll\u2028", dy=5), call("done", 1, success=True, text="x" * 3_000), observation=seen(2, 3)),
    END,
]  # fmt: skip


def document(*steps: Any, **fields: Any) -> dict[str, Any]:
    numbered = [({"step_id": n} | step) if isinstance(step, dict) else step for n, step in enumerate(steps, 1)]
    return {"schema_version": "ATIF-v1.7", "agent": {"name": "a", "version": "1"}, "steps": numbered} | fields


def files(content: Any, home: str = "job/lamps__aB3dE5f/agent") -> dict[str, bytes]:
    found = {f"{home}/images/{n}.png": PICTURES[n] for n in range(4)}
    return found | {f"{home}/trajectory.json": content if isinstance(content, bytes) else dumped(content)}


@pytest.mark.django_db
def test_a_file_becomes_a_trajectory_with_the_pictures_before_the_calls(tmp_path: Path) -> None:
    content = document(*STEPS, notes="n", final_metrics={"total_steps": 8}, extra={"a": 1}, subagent_trajectories=[{}])
    report, (submission,) = import_files(tmp_path, files(content))
    trajectory, steps = submission.trajectories.get(), steps_of(submission)
    assert (trajectory.task.external_id, trajectory.task_text) == ("lamps", "Find the price")
    assert (trajectory.final_answer, trajectory.source_format) == ("24.50", "atif")
    assert [step.action[:50] for step in steps] == [
        "click(x=312, y=88)",
        'type(text="a \\"lamp\\"", keys=["Enter"])',
        "scroll\\u2028(dy=5)",
        f'done(text="{"x" * 39}',
        "",
    ]
    assert [step.thought for step in steps] == ["It is first.\n\nI open it.", None, None, None, None]
    shown = [hashlib.sha256(PICTURES[n]).hexdigest() for n in (0, 1, 2, 2, 3)]
    assert [step.screenshot.sha256 for step in steps] == shown
    assert (report.conversion.format, report.conversion.versions) == ("atif", {"ATIF-v1.7"})
    assert counts_of(report, "carried") == {"steps": 4, "screenshots": 5, "thoughts": 1, "answers": 1, "task texts": 1}
    assert counts_of(report, "derived") == {}
    assert counts_of(report, "lost") == {
        "messages of system": 1,
        "times of steps": 1,
        "texts of results": 5,
        "calls that only took a screenshot": 1,
        "costs and tokens of steps": 1,
        POINTS: 1,
        "messages of the user after the task": 1,
        "messages of the agent between actions": 1,
        HIDDEN: 1,
        AGENTS: 1,
        "notes": 1,
        "trajectories of subagents": 1,
        "totals of costs and tokens": 1,
        "further data of trajectories (extra)": 1,
    }


@pytest.mark.django_db
def test_a_trajectory_goes_on_in_another_file(tmp_path: Path) -> None:
    first = document(TASK, agent(call("go"), observation=seen(0)), continued_trajectory_ref="trajectory.cont-1.json")
    copied = {"is_copied_context": True}
    second = document(TASK | copied, agent(call("go"), **copied), agent(call("look")), END)
    upload = files(first) | {"job/lamps__aB3dE5f/agent/trajectory.cont-1.json": dumped(second)}
    report, (submission,) = import_files(tmp_path, upload)
    steps = steps_of(submission)
    assert [step.action for step in steps] == ["go()", "look()"]
    assert steps[1].screenshot.sha256 == hashlib.sha256(PICTURES[0]).hexdigest()
    assert counts_of(report, "lost") == {
        "times of steps": 1, "texts of results": 1, AGENTS: 2, "steps that repeat earlier ones": 2, NO_PICTURE: 1,
    }  # fmt: skip


def import_again(path: Path) -> Any:
    """Import into another benchmark: the same bytes are not imported twice into one."""
    benchmark = Benchmark.objects.create(slug="again", name="Again")
    _, (submission,) = import_all(path, benchmark=benchmark, agent_name="Agent", create_tasks=True)
    return submission


def export(submission: Any, folder: Path) -> dict[str, bytes]:
    call_command("export_atif", submission.pk, output=folder)
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def rows_of(submission: Any) -> list[Any]:
    fields = ("action", "thought", "url", "status", "file_name", "click_x", "click_y", "screenshot__sha256", "warnings")
    trajectory = submission.trajectories.get()
    return [
        (trajectory.digest, trajectory.task_text, trajectory.final_answer, trajectory.source_format),
        *trajectory.steps.order_by("index").values_list(*fields),
    ]


@pytest.mark.django_db
@pytest.mark.parametrize(
    "steps",
    [
        STEPS,
        [TASK, END],
        [TASK | {"observation": {"results": [{"content": [image(1)]}]}}, agent(call("a.b", text="x", url=None))],
        [TASK, agent(call("action", text="x"), call("1 x", 1), call("f", 2, **{"a b": 1, "c": {"d": [None, 1.5]}}))],
        [TASK, agent(call("f", text="a, b=1) -> | SUCCESS")), agent(call("f"), observation=seen(0)), END],
    ],
    ids=["all", "no steps", "a picture before", "no calls of names", "marks of outcomes"],
)
def test_an_import_and_an_export_change_nothing(tmp_path: Path, steps: list[Any]) -> None:
    _, (submission,) = import_files(tmp_path, files(document(*steps)))
    first = export(submission, tmp_path / "first")
    again = import_again(tmp_path / "first")
    assert rows_of(again) == rows_of(submission)
    assert export(again, tmp_path / "second") == first


@pytest.mark.django_db
def test_points_urls_and_outcomes_of_other_formats_come_back(tmp_path: Path, submission: Any) -> None:
    folder = tmp_path / "export"
    call_command("export_atif", submission.pk, output=folder)
    assert sorted(path.name for path in folder.iterdir()) == ["task_0000", "task_0001"]
    written = json.loads((folder / "task_0000" / "trajectory.json").read_text())
    assert written["steps"][1] == {
        "step_id": 2,
        "source": "agent",
        "message": "",
        "reasoning_content": "I will do 0.",
        "tool_calls": [{"tool_call_id": "call_0", "function_name": "action", "arguments": {"text": "control 0"}}],
        "observation": {
            "results": [
                {
                    "source_call_id": "call_0",
                    "content": [
                        {"type": "image", "source": {"media_type": "image/png", "path": "images/00001.png"}}
                    ],
                }
            ]
        },
        "extra": {
            "webverdict": {
                "status": "SUCCESS", "verb": "CLICK", "point": [100.0, 50.0], "url": "https://shop0.example/step/0",
            }
        },
    }  # fmt: skip
    again = import_again(folder)
    fields = ("action", "thought", "url", "status", "click_x", "click_y", "screenshot__sha256")
    for before, after in zip(submission.trajectories.all(), again.trajectories.all(), strict=True):
        assert list(after.steps.values_list(*fields)) == list(before.steps.values_list(*fields))
        assert after.final_answer == before.final_answer


@pytest.mark.django_db
def test_an_export_writes_covered_screenshots(tmp_path: Path, people: Any, submission: Any) -> None:
    screenshot = submission.trajectories.first().steps.first().screenshot
    workflow.redact(people["mira"], submission, screenshot, [[0, 0, 20, 20]], "A name.")
    folder = tmp_path / "export"
    call_command("export_atif", submission.pk, output=folder)
    written = (folder / "task_0000" / "images" / "00000.png").read_bytes()
    assert written == screenshots.covered(screenshot.sha256, [[0, 0, 20, 20]])


@pytest.mark.django_db
def test_an_export_refuses_a_folder_with_files(tmp_path: Path, submission: Any) -> None:
    (tmp_path / "x").write_text("mine")
    with pytest.raises(CommandError, match="is not an empty folder"):
        call_command("export_atif", submission.pk, output=tmp_path)


TEXTS = {"texts of results": 1}
CASES: dict[str, tuple[Any, dict[str, Any]]] = {
    "steps are null": (document() | {"steps": None}, {"job/lamps__aB3dE5f/agent/trajectory.json": ["wrong_type"]}),
    "steps are missing": (b'{"schema_version": "ATIF-v1.7"}', {"wrong_type"}),
    "no steps": (document(), {"no_steps"}),
    "steps of wrong types": (document(7, None, [], "x", TASK, END), {"messages of unknown sources": 4}),
    "version is unknown": (document(TASK, END, schema_version="ATIF-v2.0"), {"version_unsupported"}),
    "version is 1.9": (document(TASK, END, schema_version="ATIF-v1.9"), {"version_unsupported"}),
    "source is a list": (document(TASK, {"source": []}, END), {"messages of unknown sources": 1}),
    "message is an object": (document(TASK, agent(call("f"), message={})), {NO_PICTURE: 1, NO_ANSWER: 1}),
    "message is null": (document(TASK, agent(call("f")), agent(message=None)), {NO_PICTURE: 1, NO_ANSWER: 1}),
    "calls are an object": (document(TASK, agent(tool_calls={}, message="x")), {}),
    "call is text": (document(TASK, agent("x"), END), {NO_PICTURE: 1}),
    "name is null": (document(TASK, agent({"function_name": None}), END), {NO_PICTURE: 1}),
    "arguments are a list": (document(TASK, agent({"function_name": "f", "arguments": [1]}), END), {NO_PICTURE: 1}),
    "observation is text": (document(TASK, agent(call("f"), observation="x"), END), {NO_PICTURE: 1}),
    "results are null": (document(TASK, agent(call("f"), observation={"results": None}), END), {NO_PICTURE: 1}),
    "result of another call": (
        document(TASK, agent(call("f", 9), observation=seen(0)), END), TEXTS | {NO_PICTURE: 1},
    ),
    "id of a call is a list": (
        document(TASK, agent(call("f") | {"tool_call_id": [1]}, observation=seen(0)), END), TEXTS | {NO_PICTURE: 1},
    ),
    "two pictures of a call": (
        document(TASK, agent(call("f"), observation={"results": seen(0)["results"] * 2}), END),
        {"texts of results": 2, REPLACED: 1, NO_PICTURE: 1},
    ),
    "part without a source": (
        document(TASK, agent(call("f"), observation={"results": [{"content": [{"type": "image"}, 7]}]}), END),
        {"parts of results that are no texts or images": 2, NO_PICTURE: 1},
    ),
    "picture is a URL": (
        document(TASK | {"observation": {"results": [{"content": [
            {"type": "image", "source": {"path": "https://x.example/images/0.png"}}]}]}}, END), {MISSING: 1},
    ),
    "picture is a path outside": (
        document(TASK | {"observation": {"results": [{"content": [
            {"type": "image", "source": {"path": "../../../../etc/hosts"}}]}]}}, END), {MISSING: 1},
    ),
    "picture is a Windows path": (
        document(TASK | {"observation": {"results": [{"content": [
            {"type": "image", "source": {"path": "C:\\runs\\9.png"}}]}]}}, END), {MISSING: 1},
    ),
    "extra is text": (document(TASK, agent(call("f"), extra={"webverdict": "x"}), END), {NO_PICTURE: 1}),
    "point is negative": (
        document(TASK | {"observation": {"results": [{"content": [image(0)]}]}}, agent(
            call("f"), extra={"webverdict": {"point": [-1, 2], "verb": "CLICK"}}), END),
        {"points outside of the screenshot": 1},
    ),
    "point is no pair": (
        document(TASK, agent(call("f"), extra={"webverdict": {"point": {"x": 1}, "verb": ["CLICK"]}}), END),
        {NO_PICTURE: 1},
    ),
    "continues itself": (document(TASK, END, continued_trajectory_ref="trajectory.json"), {
        "continuations that are not in the upload": 1}),
    "task is missing": (document(END), {NO_TASK: 1}),
    "NaN": (dumped(document(TASK, END)).replace(b'"24.50"', b"NaN"), {"number_not_finite"}),
    "duplicate key": (b'{"schema_version": "ATIF-v1.7", "steps": [], "steps": []}', {"duplicate_key"}),
    "truncated": (dumped(document(TASK, END))[:-20], {"json_invalid"}),
    "deeply nested": (b'{"schema_version": "ATIF-v1.7", "steps": ' + b"[" * 100_000, {"json_invalid"}),
    "not UTF-8": (b'{"schema_version": "ATIF-v1.7", "steps": ["\xff"]}', {"not_utf8"}),
    "lone surrogate": (
        dumped(document(TASK, END)).replace(b"24.50", b"\\ud800"), {"text_unstorable"},
    ),
    "10,000 calls": (document(TASK, *[agent(call("f"))] * 10_000, END), {NO_PICTURE: 10_000}),
    "too many calls": (document(TASK, *[agent(call("f"))] * 20_001, END), {"too_many_steps"}),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_a_hostile_file_is_refused_or_its_losses_are_counted(tmp_path: Path, case: str) -> None:
    content, expected = CASES[case]
    report = inspect_files(tmp_path, files(content))
    if isinstance(expected, set):
        expected = {"job/lamps__aB3dE5f/agent/trajectory.json": sorted(expected)}
        assert outcome_of(report) == expected
        return
    found = outcome_of(report)
    assert {what: n for what, n in found.items() if what not in (AGENTS, "times of steps")} == expected


@pytest.mark.parametrize("name", OTHER_FORMATS)
def test_no_other_format_is_taken_for_it(tmp_path: Path, name: str) -> None:
    assert (format_of(tmp_path, OTHER_FORMATS[name]) == "atif") == (name == "atif")
