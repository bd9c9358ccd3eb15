"""AgentRewardBench: real keys of a cleaned trajectory, agents and benchmarks in one upload, and hostile files."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from annotation.formats import agent_logs
from annotation.formats.archive import open_package
from annotation.formats.cut_json import cut_values
from annotation.formats.documents import parse_json
from annotation.formats.registry import recognise
from annotation.tests.test_agent_logs import PICTURE, codes_of, counts_of, look, run, zipped

TREE = {"nodes": [{"nodeId": "1", "role": {"type": "role", "value": 'a "}]\\'}}]}
REPLY = [
    {"role": "system", "content": "prompt"},
    {"role": "assistant", "content": [{"type": "text", "text": "Think."}]},
]


def step(number: int, action: str | None, **changes: Any) -> dict[str, Any]:
    """Return a step with all keys that cleaned trajectories have."""
    return {
        "num": number,
        "reasoning": "Because.",
        "action": action,
        "screenshot_path": f"trajectories/screenshots/webarena/A/webarena.7/screenshot_step_{number}.png",
        "url": "https://lamps.example",
        "open_pages_urls": ["https://lamps.example"],
        "focused_element": "8",
        "last_action_error": "",
        "stats": {"n_token_url": 3},
        "axtree": "[8] link 'Details'",
        "axtree_obj": TREE,
        "chat_messages": REPLY,
        "bounding_boxes": {"8": {"bbox": [10, 20, 4, 6]}, "9": {"bbox": [10, 900, 4, 6]}, "10": {"bbox": None}},
        "extra_element_properties": {},
        "axtree_pruned": "[8] link 'Details'",
    } | changes


STEPS = [
    step(0, "click('8')\nfill('9', 'C:\\d')", reasoning=None),
    step(1, "click('9')"),
    step(2, "hover('10')", last_action_error=None),
    step(3, "click('8')\nclick('9')", last_action_error="Timeout"),
    step(4, "send_msg_to_user('24.50')", last_action_error="Error\n  at line 1"),
    step(5, None, reasoning="Done."),
]


def files(task: str = "webarena.7", agent: str = "A", steps: Any = None, **changes: Any) -> dict[str, bytes]:
    benchmark = task.partition(".")[0]
    document = {
        "benchmark": benchmark, "agent": agent, "model": "m", "valid": True, "experiment": f"{agent}_on_{benchmark}",
        "goal": "Find the price", "seed": 1, "model_args": {}, "flags": {},
        "summary_info": {"cum_reward": 1.0, "n_steps": 5}, "package_version": "numpy==2\nbrowsergym-core==0.13.3\n",
        "steps": STEPS if steps is None else steps,
    } | changes  # fmt: skip
    shots = f"screenshots/{benchmark}/{agent}/{task}"
    found = {f"cleaned/{benchmark}/{agent}/{agent}_on_{benchmark}/{task}.json": json.dumps(document).encode()}
    return found | {f"{shots}/screenshot_step_{number}.png": PICTURE[number % 4] for number in range(6)}


@pytest.mark.django_db
def test_everything_that_is_not_carried_is_counted(tmp_path: Path) -> None:
    report, (submission,) = run(zipped(tmp_path / "logs.zip", files()))
    assert report.with_conversion()["conversion"] == {
        "format": "agent-reward-bench",
        "version": "browsergym-core 0.13.3",
        "carried": [
            {"what": what, "count": count}
            for what, count in (
                ("steps", 6), ("screenshots", 7), ("points", 1), ("thoughts", 5), ("URLs", 7),
                ("outcomes of actions", 5), ("answers", 1), ("task texts", 1),
            )
        ],
        "derived": [
            {"what": what, "count": count}
            for what, count in (
                ("task ids with other characters than the log's", 1), ("steps from turns with several actions", 2),
                ("thoughts from the replies of the model", 1), ("points from the boxes of elements", 1),
            )
        ],
        "lost": [
            {"what": what, "count": count}
            for what, count in (
                ("page structures", 6), ("lists of element boxes", 6), ("conversations with the model", 6),
                ("statistics of steps", 6), ("lists of open tabs", 6), ("names of focused elements", 6),
                ("points of later actions of a turn", 1), ("points outside of their screenshot", 1),
                ("points of elements without a box", 1),
                ("turns with several actions and an error, shown as one step", 1),
                ("thoughts of turns without an action", 1),
                ("scores and outcomes, which annotators must not see", 1), ("settings of the run", 7),
            )
        ],
    }  # fmt: skip
    assert [each.action for each in submission.trajectories.get().steps.order_by("index")] == [
        "coords(12, 23) -> CLICK -> click('8') | SUCCESS",
        "fill('9', 'C:\\d') | SUCCESS",
        "click('9')",
        "hover('10'): Timeout | FAILED",
        "click('8'); click('9'): Error at line 1 | FAILED",
        "send_msg_to_user('24.50') | SUCCESS",
        "",
    ]


@pytest.mark.django_db
def test_several_agents_are_refused_unless_one_of_them_is_named(tmp_path: Path) -> None:
    path = zipped(tmp_path / "logs.zip", files(agent="A") | files(agent="B"))
    report, made = run(path)
    assert not made
    assert [(p.code, p.message, p.where) for p in report.rejected[""]] == [
        (
            "several_agents",
            (
                "The files are of several agents: A, B. Import one agent at a time: enter one of these names as the "
                "agent's name."
            ),
            "agent",
        )
    ]
    report, (submission,) = run(path, agent_name="B")
    assert (submission.agent.name, submission.trajectories.count()) == ("B", 1)
    assert "Ignored: 1 trajectory of other agents." in [p.message for _, p in report.warnings]


@pytest.mark.django_db
def test_tasks_of_several_benchmarks_are_one_submission_with_their_own_ids(tmp_path: Path) -> None:
    _, (submission,) = run(zipped(tmp_path / "logs.zip", files() | files("workarena.servicenow.x")))
    ids = {each.task.external_id for each in submission.trajectories.select_related("task")}
    assert ids == {"webarena_7", "workarena_servicenow_x"}


@pytest.mark.django_db
def test_judgments_are_ignored_and_never_read_as_trajectories(tmp_path: Path) -> None:
    judgment = b'{"benchmark": "webarena", "goal": "g", "agent": "A", "judge": "aer", "response": "Successful"}'
    report, made = run(zipped(tmp_path / "logs.zip", files() | {"judgments/webarena/A/aer/webarena.7.json": judgment}))
    assert len(made) == 1
    assert "Ignored: 1 judgment, which annotators must not see." in [p.message for _, p in report.warnings]


@pytest.mark.django_db
def test_a_picture_of_another_task_is_never_taken(tmp_path: Path) -> None:
    own = files()
    other = {name: data for name, data in files("webarena.8").items() if name.endswith(".json")}
    other = {name: data.replace(b"webarena.7/", b"webarena.8/") for name, data in other.items()}
    _, (submission,) = run(zipped(tmp_path / "logs.zip", own | other))
    of = {each.task.external_id: each for each in submission.trajectories.select_related("task")}
    assert of["webarena_7"].steps.exclude(screenshot=None).count() == 7
    assert of["webarena_8"].steps.exclude(screenshot=None).count() == 0


def test_values_are_cut_out_of_json_wherever_they_end() -> None:
    tree = {"x": ['}"\\', {"tree": 2}]}
    document = {"a": [{"tree": tree, 'say "tree': [1]}, {"tree": None}, {"tree": 's"]'}], "tree": -1.5}
    for indent in (None, 1):
        data, values = cut_values(json.dumps(document, indent=indent).encode(), {"tree"})
        assert parse_json(data, "x") == {"a": [{"tree": 0, 'say "tree': [1]}, {"tree": 1}, {"tree": 2}], "tree": 3}
        assert [json.loads(value) for value in values] == [tree, None, 's"]', -1.5]


def test_page_structures_do_not_count_towards_the_largest_document(tmp_path: Path) -> None:
    many = step(0, "noop()", axtree_obj=[0] * 1_100_000)
    report, records = look(zipped(tmp_path / "logs.zip", files(steps=[many])))
    assert (codes_of(report), len(records)) == ([], 1)


OTHERS: dict[str, bytes] = {
    "judgment.json": b'{"benchmark": "b", "goal": "g", "agent": "a", "judge": "j"}',
    "history.json": b'{"history": [{"model_output": null, "result": [], "state": {"url": "x"}}]}',
    "trajectory.json": b'{"schema_version": "ATIF-v1.7", "agent": {"name": "a"}, "steps": []}',
    "interact_messages.json": b'[{"role": "system", "content": "x"}]',
    "stagehand.json": b'{"task": {"id": "k"}, "steps": [], "benchmark": "b", "agent": "a", "goal": "g"}',
    "summary_info.json": b'{"n_steps": 3, "cum_reward": 1.0, "err_msg": null}',
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_formats_are_not_recognised(tmp_path: Path, name: str) -> None:
    with open_package(zipped(tmp_path / "logs.zip", {name: OTHERS[name]})) as package:
        found = recognise(package)
    assert found is None or found.name != "agent-reward-bench"


def raw(change: Callable[[bytes], bytes]) -> dict[str, bytes]:
    return {name: change(data) if name.endswith(".json") else data for name, data in files().items()}


HOSTILE: dict[str, tuple[dict[str, bytes], Any]] = {
    "truncated": (raw(lambda data: data[:-1]), ["json_invalid"]),
    "cut in a value that is not parsed": (raw(lambda data: data[: data.index(b"nodeId")]), ["json_invalid"]),
    "not UTF-8": (raw(lambda data: data.replace(b"Because", b"\xff")), ["not_utf8"]),
    "NUL": (raw(lambda data: data.replace(b"Because", b"\\u0000")), ["text_unstorable"] * 4),
    "lone surrogate": (raw(lambda data: data.replace(b"Because", b"\\ud800")), ["text_unstorable"] * 4),
    "NaN": (raw(lambda data: data.replace(b'"num": 0', b'"num": NaN')), ["number_not_finite"]),
    "NaN in a box": (raw(lambda data: data.replace(b"[10, 20", b"[NaN, 20")), ["number_not_finite"]),
    "duplicate key": (raw(lambda data: data.replace(b'"goal"', b'"seed": 2, "goal"')), ["duplicate_key"]),
    "deep": (files(steps=[step(0, "noop()", stats=json.loads("[" * 400 + "]" * 400))]), 1),
    "too deep": (raw(lambda data: data.replace(b'"stats": {', b'"stats": ' + b"[" * 99_999)), ["json_invalid"]),
    "steps null": (files(steps=0), ["no_steps"]),
    "steps of wrong types": (files(steps=[None, 1, "x", [], {}]), ["no_steps"]),
    "no steps": (files(steps=[]), ["no_steps"]),
    "too many steps": (files(steps=[{"action": "noop()"}] * 20_001), ["too_many_steps"]),
    "10,000 steps": (files(steps=[{"action": "noop()"}] * 10_000), 10_000),
    "long text": (files(goal="x" * 1_000_001), ["text_too_long"]),
    "goal of wrong type": (files(goal=[1], steps=[step(0, "noop()")]), 1),
    "action of wrong type": (files(steps=[step(0, ["click"]), step(1, "noop()")]), 1),  # type: ignore[arg-type]
    "code in an action": (files(steps=[step(0, "__import__('os').system('x')"), step(1, "a[" * 9_999)]), 2),
    "many calls": (files(steps=[step(0, "noop()\n" * 5_000)]), 1),
    "boxes of wrong types": (files(steps=[step(n, "click('8')", bounding_boxes=box) for n, box in enumerate((
        None, [], "x", {"8": None}, {"8": {"bbox": {}}}, {"8": {"bbox": ["1", 2, 3, 4]}}, {"8": {"bbox": [True] * 4}},
        {"8": {"bbox": [10**400, 1, 1, 1]}}, {"8": {"bbox": [-9, 1, 1, 1]}}, {"8": {"bbox": [1, 2]}},
    ))]), 10),
    "points of wrong types": (files(steps=[step(n, f"mouse_click({text})") for n, text in enumerate((
        "", "1", "'1', 2", "1e999, 1", "-1, 1", "None, None", "10 ** 9, 1", "True, 1",
    ))]), 8),
    "paths that lead outside": (files(steps=[step(n, "noop()", screenshot_path=path) for n, path in enumerate((
        "../../../etc/passwd", "/etc/passwd", "C:\\x\\y.png", "https://lamps.example/1.png", "", None, 5, "..", "None",
    ))]), 9),
    "messages of wrong types": (files(steps=[step(0, "noop()", reasoning=None, chat_messages=said) for said in (
        None, 1, [None], [{"role": "assistant"}], [{"role": "assistant", "content": [None, {"text": 1}]}],
    )]), 5),
    "escaped key": (raw(lambda data: data.replace(b'"bounding_boxes": {', b'"bounding\\u005fboxes": 99, "x": {')), 6),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_give_problems_and_no_points(tmp_path: Path, name: str) -> None:
    hostile, expected = HOSTILE[name]
    report, _ = look(zipped(tmp_path / "logs.zip", hostile))
    if isinstance(expected, list):
        assert codes_of(report) == expected
        return
    carried = counts_of(report, "carried")
    assert (codes_of(report), carried["steps"], carried.get("points", 0)) == ([], expected, 0)


def test_pictures_that_are_text_are_counted(tmp_path: Path) -> None:
    bad = {name: b"text" if name.endswith(".png") else data for name, data in files().items()}
    lost = counts_of(look(zipped(tmp_path / "logs.zip", bad))[0], "lost")
    assert (lost["pictures that cannot be read"], lost["steps without a screenshot"]) == (6, 6)


def test_a_path_needs_the_folder_of_the_task_if_there_are_several_logs(tmp_path: Path) -> None:
    with open_package(zipped(tmp_path / "a.zip", {"x/t/1.png": b"", "y.json": b""})) as package:
        assert agent_logs.find_picture(package, "/a/x/t/1.png", least=2) == "x/t/1.png"
        assert agent_logs.find_picture(package, "/a/u/1.png") == "x/t/1.png"
        assert agent_logs.find_picture(package, "/a/u/1.png", least=2) is None
