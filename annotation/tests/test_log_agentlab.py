"""BrowserGym and AgentLab: studies are refused, never unpickled, and what the exporter writes of them is imported."""

from __future__ import annotations

import gzip
import json
import pickle
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from annotation.formats.archive import open_package
from annotation.formats.registry import recognise
from annotation.tests.test_agent_logs import PICTURE, codes_of, look, run, zipped
from tools import export_agentlab

EXPORTER = Path(export_agentlab.__file__)
CLASSES = {
    "browsergym.experiments.loop": ("StepInfo", "EnvArgs"),
    "agentlab.experiments.loop": ("ExpArgs",),
    "agentlab.agents.generic_agent.generic_agent": ("GenericAgentArgs",),
    "bgym": ("AgentInfo",),
}
BOXES = {
    "a8": {"bbox": [10.0, 20.0, 4.0, 7.0], "visibility": 1.0},
    "9": {"bbox": [1.0, 900.0, 4.0, 6.0]},
    "10": {"bbox": None},
}
GOAL = [{"type": "text", "text": "Find the price"}, {"type": "image_url", "image_url": {"url": "data:"}}]


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> dict[str, type]:
    """Return classes that have the names and modules of the real ones, which are importable during the test."""
    found: dict[str, type] = {}
    for path, names in CLASSES.items():
        parts = path.split(".")
        for end in range(1, len(parts) + 1):
            name = ".".join(parts[:end])
            monkeypatch.setitem(sys.modules, name, sys.modules.get(name) or ModuleType(name))
        for name in names:
            found[name] = type(name, (), {"__module__": path})
            setattr(sys.modules[path], name, found[name])
    return found


def filled(kind: type, **values: Any) -> Any:
    one = kind()
    one.__dict__.update(values)
    return one


def write_experiment(folder: Path, made: dict[str, type], agent: str = "Agent-1", task: str = "webarena.7") -> Path:
    """Write an experiment as ``ExpArgs.run`` does: screenshots and the goal are beside the pickles of the steps."""
    folder.mkdir(parents=True)
    arguments = filled(
        made["ExpArgs"],
        agent_args=filled(made["GenericAgentArgs"], agent_name=agent),
        env_args=filled(made["EnvArgs"], task_name=task, task_seed=3),
        exp_dir=folder,
    )
    (folder / "exp_args.pkl").write_bytes(pickle.dumps(arguments))
    with gzip.open(folder / "goal_object.pkl.gz", "wb") as stream:
        pickle.dump(GOAL, stream)
    actions = [
        "click('a8')\nfill('9', 'a  b')",
        "hover('9')",
        "click('10')",
        "click('a8')\nnoop()",
        "send_msg_to_user('24.50')",
        None,
    ]
    errors = ["", "", "", "Timeout\n  500 ms", "No such element", ""]
    for number, action in enumerate(actions):
        step = filled(
            made["StepInfo"], step=number, action=action, reward=float(number == 5), task_info={"answer": "SECRET"},
            agent_info=filled(made["AgentInfo"], think=action and f"Thought {number}", chat_messages=["SECRET"]),
            obs={
                "goal_object": None, "goal": "WARNING", "open_pages_urls": ["about:blank", "https://lamps.example"],
                "active_page_index": 1, "last_action_error": errors[number], "axtree_object": {"nodes": []},
                "extra_element_properties": BOXES,
            },
        )  # fmt: skip
        with gzip.open(folder / f"step_{number}.pkl.gz", "wb") as stream:
            pickle.dump(step, stream)
        if number != 2:
            (folder / f"screenshot_step_{number}.png").write_bytes(PICTURE[number % 4])
    (folder / "summary_info.json").write_text('{"n_steps": 5, "cum_reward": 1.0, "err_msg": null}')
    return folder


LOST = {
    "points of later actions of a turn": 1,
    "points outside of their screenshot": 1,
    "points of elements without a box": 1,
    "turns with several actions and an error, shown as one step": 1,
    "pages without a screenshot": 1,
    "images of the task": 1,
    "page structures": 6,
    "conversations with the model": 6,
    "scores and task information": 6,
}


@pytest.mark.django_db
def test_a_study_is_exported_and_imported(tmp_path: Path, made: dict[str, type]) -> None:
    write_experiment(tmp_path / "study" / "2026-01-02_Agent-1_on_webarena.7_3", made)
    lines, lost = export_agentlab.export(tmp_path / "study", tmp_path / "out")
    assert (lines, +lost) == ([f"{tmp_path}/out/Agent-1_1/webarena_7: 6 steps"], LOST)
    report, (submission,) = run(tmp_path / "out" / "Agent-1_1")
    assert (codes_of(report), report.warnings) == ([], [])
    trajectory = submission.trajectories.get()
    assert (trajectory.task.external_id, trajectory.task_text) == ("webarena_7", "Find the price")
    assert (trajectory.final_answer, trajectory.source_format) == ("24.50", "agentlab")
    steps = list(trajectory.steps.order_by("index"))
    assert [(each.action, each.thought, bool(each.screenshot)) for each in steps] == [
        ("coords(12, 23.5) -> CLICK -> click('a8') | SUCCESS", "Thought 0", True),
        ("fill('9', 'a  b') | SUCCESS", None, True),
        ("hover('9') | SUCCESS", "Thought 1", True),
        ("click('10'): Timeout 500 ms | FAILED", "Thought 2", False),
        ("click('a8') noop(): No such element | FAILED", "Thought 3", True),
        ("send_msg_to_user('24.50') | SUCCESS", "Thought 4", True),
        ("", None, True),
    ]
    assert [(each.click_x, each.click_y) for each in steps if each.click_x is not None] == [(12, 23.5)]
    assert {each.url for each in steps} == {"https://lamps.example"}
    written = (tmp_path / "out" / "Agent-1_1" / "webarena_7" / "result.json").read_text()
    assert not any(secret in written for secret in ("SECRET", "WARNING", "reward"))


def test_the_exporter_runs_alone_where_no_class_of_the_study_is_installed(
    tmp_path: Path, made: dict[str, type]
) -> None:
    for number, agent in enumerate(("Agent 1", "Agent 1", "B")):
        write_experiment(tmp_path / "study" / f"run_{number}", made, agent)
    write_experiment(tmp_path / "study" / "_run_9", made)
    (write_experiment(tmp_path / "study" / "torn", made) / "step_3.pkl.gz").write_bytes(b"torn")
    empty = write_experiment(tmp_path / "study" / "without", made)
    for path in empty.glob("step_*"):
        path.unlink()
    command = [sys.executable, "-I", "-B", str(EXPORTER), str(tmp_path / "study"), str(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert [line for line in done.stdout.splitlines() if "Not in" not in line] == [
        f"{tmp_path}/out/Agent_1_1/webarena_7: 6 steps",
        f"{tmp_path}/out/Agent_1_2/webarena_7: 6 steps",
        f"{tmp_path}/out/B_1/webarena_7: 6 steps",
        f"LEFT OUT {tmp_path}/study/torn: BadGzipFile(\"Not a gzipped file (b'to')\")",
        f"LEFT OUT {tmp_path}/study/without: it has no step_<n>.pkl.gz. Run it with save_step_info_pkl=True (agisdk).",
    ]
    assert "Not in the export: 1 experiments that were run again.\n" in done.stdout
    report, (record,) = look(tmp_path / "out" / "Agent_1_2")
    assert (codes_of(report), len(record.steps), record.task_text) == ([], 7, "Find the price")
    again = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (again.returncode, again.stderr.splitlines()[-1].endswith("exists. Name a new folder.")) == (2, True)


class Bomb:
    """Its pickle creates a file when it is loaded."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return Path.touch, (self.path,)


SUMMARY = b'{"n_steps": 5, "cum_reward": 1.0, "err_msg": null}'


def test_a_study_is_refused_with_the_reason_and_never_unpickled(tmp_path: Path) -> None:
    bomb = tmp_path / "bomb"
    data = gzip.compress(pickle.dumps(Bomb(bomb)))
    pickle.loads(gzip.decompress(data))
    assert bomb.exists()
    bomb.unlink()
    names = ("exp_args.pkl", "step_0.pkl.gz", "step_1.pkl.gz", "goal_object.pkl.gz")
    report, records = look(zipped(tmp_path / "study.zip", {f"s/e/{name}": data for name in names}))
    assert (records, bomb.exists()) == ([], False)
    (problem,) = report.rejected[""]
    assert (problem.code, problem.where) == ("pickles_refused", "s/e/step_0.pkl.gz")
    assert problem.message == (
        "This is a study of BrowserGym or AgentLab: its 2 steps are pickles, which run code when they are loaded, so "
        "they are never opened here. Run tools/export_agentlab.py of WebVerdict where the study was made, and upload "
        "the folders that it writes."
    )


def test_experiments_without_steps_are_refused_with_the_settings_that_save_them(tmp_path: Path) -> None:
    report, _ = look(zipped(tmp_path / "study.zip", {"e/summary_info.json": SUMMARY, "e/experiment.log": b"x"}))
    assert codes_of(report) == ["no_steps"]
    assert "save_step_info_pkl=True" in report.rejected[""][0].message


@pytest.mark.parametrize("name", ["step_12.pkl.gz", "step_0.pkl", "exp_args.pkl", "goal_object.pkl.gz"])
def test_a_single_pickle_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"\x80\x04.")
    report, _ = look(tmp_path / name)
    assert codes_of(report) == ["pickles_refused" if name.startswith("step") else "no_steps"]


OTHERS: dict[str, bytes] = {
    "model.pkl": b"x",
    "step_one.pkl": b"x",
    "x/summary_info.json": b'{"cum_reward": 1.0}',
    "summary_info.json": b"not JSON",
    "interact_messages.json": b'[{"role": "system", "content": "x"}]',
    "cleaned/b/a/r/t.json": b'{"benchmark": "b", "agent": "a", "summary_info": {"n_steps": 1, "cum_reward": 1}}',
    "history.json": b'{"history": [], "n_steps": 1, "cum_reward": 0}',
    "step_0.png": b"x",
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_files_are_not_recognised(tmp_path: Path, name: str) -> None:
    with open_package(zipped(tmp_path / "logs.zip", {name: OTHERS[name]})) as package:
        found = recognise(package)
    assert found is None or found.name != "agentlab"


HOSTILE = [
    "", "click(", "click('a8'", "click(a8)", "x" * 200_000, "(" * 5_000, "import os", "click('a8').x()", "click(*'ab')",
    "mouse_click(1e999, 1)", "mouse_click('1', 2)", "mouse_click(-1, 2)", "mouse_click()", "click(None)",
    "click(['a8'])", "click({'a': 1})", "# only a comment", "send_msg_to_user()", "send_msg_to_user(5)",
    "__import__('os').system('x')",
]  # fmt: skip


@pytest.mark.parametrize("action", HOSTILE)
def test_hostile_actions_are_shown_and_not_run(tmp_path: Path, made: dict[str, type], action: str) -> None:
    folder = write_experiment(tmp_path / "study", made)
    info = filled(made["StepInfo"], step=0, action=action, agent_info={}, obs={"extra_element_properties": BOXES})
    with gzip.open(folder / "step_0.pkl.gz", "wb") as stream:
        pickle.dump(info, stream)
    (line,), _ = export_agentlab.export(tmp_path, tmp_path / "out")
    assert line.endswith(f": {5 if action.strip() else 4} steps")
    document = json.loads((tmp_path / "out" / "Agent-1_1" / "webarena_7" / "result.json").read_text())
    assert not document["steps"][0]["action"].startswith("coords(")
    assert document["final_answer"] == "24.50"
