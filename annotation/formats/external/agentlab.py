"""Recognise studies of BrowserGym and AgentLab, and refuse them: their steps are pickles, which run code when loaded.

``tools/export_agentlab.py`` converts a study where it is; its files have this format as ``source_format``. Layout of a
study: ``<date>_<agent>_on_<task>_<seed>/`` with ``exp_args.pkl``, ``step_<n>.pkl.gz``, ``goal_object.pkl.gz``,
``summary_info.json`` and ``screenshot_step_<n>.png``. Studies of agisdk have the same files, by default without steps.
Source: ServiceNow/BrowserGym 9e779f0 and agi-inc/agisdk 96f1d2c, ``experiments/loop.py``.
"""

from __future__ import annotations

import re
from pathlib import Path

from annotation.formats.agent_logs import as_files, peek
from annotation.formats.archive import LONGEST_WHERE, Package
from annotation.formats.printable import counted, printable
from annotation.formats.registry import Format, Progress
from annotation.records import PACKAGE, ImportReport, Problem

STEP = re.compile(r"step_[0-9]+\.pkl(?:\.gz)?")
PICKLE = re.compile(r"(?:step_[0-9]+|goal_object|exp_args)\.pkl(?:\.gz)?")
SUMMARY = "summary_info.json"
EXPORTER = "tools/export_agentlab.py"


def find_files(package: Package) -> list[str]:
    """Return the pickles and summaries of experiments."""
    files = as_files(package)
    return [name for name in files.names() if _is_of_study(files, name)]


def _is_of_study(package: Package, name: str) -> bool:
    base = name.rpartition("/")[2]
    return PICKLE.fullmatch(base) is not None or (
        base == SUMMARY and '"n_steps"' in (head := peek(package, name, 4_096)) and '"cum_reward"' in head
    )


def refuse(package: Package, folder: Path, report: ImportReport, progress: Progress, agent: str) -> list[Path]:
    """Add the reason to ``report``; nothing is read. See `Format` for the arguments."""
    found = find_files(package)
    steps = [name for name in found if STEP.fullmatch(name.rpartition("/")[2])]
    if steps:
        says = (
            f"This is a study of BrowserGym or AgentLab: its {counted(len(steps), 'step')} are pickles, which run code "
            f"when they are loaded, so they are never opened here. Run {EXPORTER} of WebVerdict where the study was "
            "made, and upload the folders that it writes."
        )
        problem = Problem("pickles_refused", says, printable(steps[0], LONGEST_WHERE))
    else:
        says = (
            "These experiments of BrowserGym, AgentLab or agisdk have no steps, so there is nothing to review. Run "
            "them with save_step_info_pkl=True (agisdk) and save_screenshot=True, convert them with "
            f"{EXPORTER} of WebVerdict, and upload the folders that it writes."
        )
        problem = Problem("no_steps", says, printable(found[0], LONGEST_WHERE))
    report.reject(PACKAGE, problem)
    return []


FORMAT = Format(
    name="agentlab",
    title="BrowserGym and AgentLab",
    files=f"the folders that {EXPORTER} writes from a study",
    recognise=lambda package: bool(find_files(package)),
    convert=refuse,
    is_log=True,
)
