"""Rows of CUAVerifierBench: the log of fara as a text, and the screenshots, in a parquet file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from annotation.tests.log_cases import OTHER_FORMATS, counts_of, format_of, inspect_files, outcome_of, steps_of
from annotation.tests.test_agent_logs import run
from annotation.tests.test_log_fara import CLICK, END, JUDGED, PICTURES, TYPE, as_lines

parquet = pytest.importorskip("pyarrow.parquet")
pyarrow = pytest.importorskip("pyarrow")

LABELS, TIMES = "rows of scores and labels, which annotators must not see", "times of log lines"
RUNS, STARTS = "times of runs", "addresses of start pages"
LOST = {TIMES: 3, JUDGED: 1, STARTS: 1, RUNS: 1, LABELS: 1}


def row(**changes: Any) -> dict[str, Any]:
    return {
        "task_id": "Lamps--1",
        "instruction": "Find the price",
        "init_url": "https://lamps.example",
        "start_timestamp": "2026-01-02T10:00:00",
        "final_answer": "24.50",
        "is_aborted": False,
        "web_surfer_log": as_lines(CLICK, TYPE, END).decode(),
        "screenshots": [{"bytes": PICTURES[n], "path": f"screenshot{n}.png"} for n in range(4)],
        "gpt_eval_json": '{"verdict": "SECRET"}',
        "final_human_outcome_label": 1,
    } | changes


def write(path: Path, *rows: dict[str, Any]) -> Path:
    parquet.write_table(pyarrow.Table.from_pylist(list(rows)), path)
    return path


def as_files(folder: Path, *rows: dict[str, Any]) -> dict[str, bytes]:
    return {"trajectories/internal.parquet": write(folder / "rows", *rows).read_bytes()}


@pytest.mark.django_db
def test_a_row_becomes_a_trajectory_without_scores_and_labels(tmp_path: Path) -> None:
    report, (submission,) = run(write(tmp_path / "upload", row()))
    steps = steps_of(submission)
    trajectory = submission.trajectories.get()
    assert (trajectory.task.external_id, trajectory.task_text) == ("Lamps--1", "Find the price")
    assert (trajectory.final_answer, trajectory.source_format) == ("24.50", "cua-verifier-bench")
    assert [step.action for step in steps] == [
        "coords(1083, 37.2) -> CLICK -> left_click(coordinate=[1074, 37])",
        'coords(720, 450) -> TYPE -> type(coordinate=[714, 448], text="lamp", press_enter=true)',
        "terminate()",
        "",
    ]
    assert all(step.screenshot for step in steps)
    assert counts_of(report, "carried") == {
        "steps": 3, "screenshots": 4, "points": 2, "thoughts": 2, "URLs": 3, "answers": 1, "task texts": 1,
    }  # fmt: skip
    assert counts_of(report, "derived") == {"points, scaled from the image that the model saw": 2}
    assert counts_of(report, "lost") == LOST
    assert "SECRET" not in str(report.with_conversion())


NO_PICTURES = {"steps without a screenshot": 3}
HOSTILE: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "no screenshots": (row(screenshots=[]), LOST | NO_PICTURES | {"points of steps without a screenshot": 2}),
    "screenshots are null": (row(screenshots=None), LOST | NO_PICTURES | {"points of steps without a screenshot": 2}),
    "screenshots are texts": (
        row(screenshots=["https://x.example/1.png"]), LOST | NO_PICTURES | {"points of steps without a screenshot": 2},
    ),
    "screenshots are paths": (
        row(screenshots=[{"bytes": None, "path": "../x.png"}]),
        LOST | NO_PICTURES | {"points of steps without a screenshot": 2},
    ),
    "screenshots are names": (
        row(screenshots=[{"bytes": "trajectories/internal.parquet"}]),
        LOST | NO_PICTURES | {"points of steps without a screenshot": 2},
    ),
    "screenshot is text": (
        row(screenshots=[{"bytes": b"no"}] + [{"bytes": PICTURES[n]} for n in (1, 2)]),
        LOST | {
            "points of steps without a screenshot": 1, "pictures that cannot be read": 1,
            "steps without a screenshot": 1,
        },
    ),
    "other agent": (
        row(web_surfer_log=as_lines(CLICK | {"source": "WebSurfer"}, TYPE, END).decode()),
        LOST | {"points, because the space of their coordinates is unknown": 1},
    ),
    "log is null": (row(web_surfer_log=None), {"Lamps--1": ["wrong_type"]}),
    "log is a number": (row(web_surfer_log=7), {"Lamps--1": ["wrong_type"]}),
    "log is empty": (
        row(web_surfer_log=""),
        {STARTS: 1, RUNS: 1, LABELS: 1, "screenshots after the one of the end": 3},
    ),
    "log is no JSON": (row(web_surfer_log="x"), {"Lamps--1": ["json_invalid"]}),
    "log has a duplicate key": (row(web_surfer_log='{"a": 1, "a": 2}'), {"Lamps--1": ["duplicate_key"]}),
    "log nests deeply": (row(web_surfer_log="[" * 100_000), {"Lamps--1": ["json_invalid"]}),
    "log has a surrogate": (row(web_surfer_log='{"a": "\\udc00"}'), {"Lamps--1": ["text_unstorable"]}),
    "answer is none": (row(final_answer="<no_answer>"), LOST | {"logs without an answer": 1}),
    "answer is a number": (row(final_answer=1.5), LOST | {"logs without an answer": 1}),
    "aborted": (row(is_aborted=True), LOST | {"marks that the run was aborted": 1}),
    "task is blank": (
        row(instruction=" "), LOST | {"logs without the text of the task": 1},
    ),
    "task is too long": (row(instruction="x" * 1_000_001), {"Lamps--1": ["text_too_long"]}),
    "id is a number": (row(task_id=7), LOST),
    "id has other characters": (row(task_id="../Lamps--1"), LOST),
}  # fmt: skip


@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_row_is_refused_or_its_losses_are_counted(tmp_path: Path, case: str) -> None:
    values, expected = HOSTILE[case]
    report = inspect_files(tmp_path, as_files(tmp_path, values))
    assert outcome_of(report) == expected


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    (name, data), = as_files(tmp_path, row()).items()  # fmt: skip
    footer = int.from_bytes(data[-8:-4], "little") + 8
    report = inspect_files(tmp_path, {name: data[:-footer] + b"\xff" * 50 + data[50 - footer :]})
    assert outcome_of(report) == {name: ["parquet_damaged"]}


def test_only_the_configuration_with_logs_is_accepted(tmp_path: Path) -> None:
    labels = {"task_id": "Lamps--1", "annotator": "Judge1", "human_judgement_outcome": "Correct"}
    assert format_of(tmp_path, as_files(tmp_path, row())) == "cua-verifier-bench"
    assert format_of(tmp_path, as_files(tmp_path, labels)) != "cua-verifier-bench"


@pytest.mark.parametrize("name", OTHER_FORMATS)
def test_no_other_format_is_taken_for_it(tmp_path: Path, name: str) -> None:
    assert format_of(tmp_path, OTHER_FORMATS[name]) != "cua-verifier-bench"
