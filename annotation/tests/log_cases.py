"""Helpers of the tests of logs: import a log of a known task, read the report, and shapes of other formats."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from annotation.formats.archive import open_package
from annotation.formats.packages import read_trajectories
from annotation.formats.registry import open_packages, recognise
from annotation.models import Benchmark, Task
from annotation.records import ImportReport
from annotation.tests import testing
from annotation.tests.test_agent_logs import run, zipped

PICTURE = testing.png(1)


def import_files(folder: Path, files: dict[str, bytes], *task_ids: str, **given: Any) -> tuple[Any, list[Any]]:
    """Import ``files`` as a zip, after creating the tasks that the log has no text for."""
    benchmark = Benchmark.objects.get_or_create(slug="logs", defaults={"name": "Logs"})[0]
    for task_id in task_ids:
        Task.objects.get_or_create(benchmark=benchmark, external_id=task_id, defaults={"text": "Find the price"})
    return run(zipped(folder / "logs.zip", files), **given)


def inspect_files(folder: Path, files: dict[str, bytes]) -> ImportReport:
    """Convert and read ``files`` as an import does, without the database."""
    report = ImportReport()
    with open_packages(zipped(folder / "logs.zip", files), report, lambda done, total: None) as packages:
        for found in (each for package in packages for each in read_trajectories(package)):
            if found.problems:
                report.reject(found.task_id, *found.problems)
    return report


def steps_of(submission: Any) -> list[Any]:
    return list(submission.trajectories.get().steps.order_by("index").select_related("screenshot"))


def outcome_of(report: Any) -> dict[str, Any]:
    """Return what was lost, or the codes of the problems by where they are."""
    if report.rejected:
        return {where: [problem.code for problem in problems] for where, problems in report.rejected.items()}
    return counts_of(report, "lost")


def counts_of(report: Any, name: str) -> dict[str, int]:
    return {each["what"]: each["count"] for each in report.with_conversion()["conversion"][name]}


def format_of(folder: Path, files: dict[str, bytes]) -> str | None:
    """Return the name of the format that accepts ``files``."""
    with open_package(zipped(folder / "other.zip", files)) as package:
        found = recognise(package)
    return found.name if found else None


def dumped(document: Any) -> bytes:
    return json.dumps(document, ensure_ascii=False).encode("utf-8", "surrogatepass")


OTHER_FORMATS: dict[str, dict[str, bytes]] = {
    "browser-use": {"history.json": dumped({"history": [{"model_output": {"action": []}, "result": [], "state": {}}]})},
    "messages": {"log.json": dumped([{"role": "user", "content": "x"}, {"type": "computer_call", "action": {}}])},
    "agent-reward-bench": {"cleaned/b/a/e/t.json": dumped({"benchmark": "b", "goal": "x", "steps": []})},
    "webvoyager": {"taskShop--1/interact_messages.json": b"[]", "taskShop--1/screenshot1.png": PICTURE},
    "inspect": {"log.json": dumped({"version": 2, "status": "success", "eval": {"task": "t"}, "samples": []})},
    "fara": {"t/web_surfer.log": b"", "t/screenshot0.png": PICTURE},
    "stagehand": {"g/t/r/trajectory.json": dumped({"task": {"id": "t", "instruction": "x"}, "steps": []})},
    "atif": {"t/trajectory.json": dumped({"schema_version": "ATIF-v1.7", "agent": {}, "steps": []})},
    "osworld": {"chrome/t/traj.jsonl": dumped({"step_num": 1, "action": "WAIT", "screenshot_file": "step_1_x.png"})},
    "seeact": {"r/all_predictions.json": dumped([{"action_generation": "x", "action_grounding": "y"}])},
    "online-mind2web": {"t/result.json": dumped({"task_id": "t"}), "t/trajectory/0.png": PICTURE},
    "trace": {"trace.trace": dumped({"type": "context-options", "version": 8}), "trace.network": b""},
}
