"""Record the demo data again: ``python -m tools.demo.record [--output DIR] [--task NAME]``.

Starts the demo sites, lets both agents do every task in a real Chromium, and writes tasks.json and submissions/; then
the trajectories and the answer key of the challenge (challenge/), the pages that the demo's answers cite (answers/) and
the rows of the reference trajectories (reference.jsonl.gz).
The result is the same each time except for a few pixels. reviews.json is written by hand, for invented people, and is
not changed.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

from annotation.demo import DATA
from tools.chromium import ChromiumMissingError, find_chromium
from tools.demo import answers, careful, challenge, hasty, reference
from tools.demo.agents import VIEWPORT, Agent, Careful, Hasty, write_json
from tools.demo.faults import FAULTS
from tools.demo.network import quiet_trace
from tools.demo.site import LOCAL, SITES, running_site
from tools.demo.tasks import TASKS, DemoTask

AGENTS: tuple[tuple[type[Agent], dict[str, Callable[[Agent], None]]], ...] = (
    (Careful, careful.SCRIPTS),
    (Hasty, hasty.SCRIPTS),
)
_FLAGS = (
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-lcd-text",
    "--force-color-profile=srgb",
)


@contextmanager
def recording_browser() -> Iterator[Browser]:
    """Provide a headless Chromium and the running demo sites, which it finds at their own host names."""
    path = find_chromium()
    with running_site() as port, sync_playwright() as playwright:
        rules = ", ".join(f"MAP {host} {LOCAL}:{port}" for host in SITES)
        flags = [*_FLAGS, f"--host-resolver-rules={rules}"]
        flags += ["--no-sandbox"] if os.geteuid() == 0 else []  # the sandbox does not start as root
        browser = playwright.chromium.launch(executable_path=path, args=flags)
        yield browser
        browser.close()


def record_trajectory(
    browser: Browser, kind: Callable[[Page], Agent], script: Callable[[Agent], None], task: DemoTask, folder: Path
) -> None:
    """Let an agent do one task in a fresh session; ``folder`` is replaced."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as scratch:
        trace = Path(scratch) / "raw.har"
        context = browser.new_context(
            viewport=VIEWPORT,  # type: ignore[arg-type]
            locale="en-US",
            timezone_id="UTC",
            record_har_path=trace,
            record_har_content="omit",
        )
        page = context.new_page()
        page.set_default_timeout(10_000)
        page.goto(task.website)
        agent = kind(page)
        script(agent)
        agent.save(folder, task)
        context.close()
        write_json(folder / "network.har", quiet_trace(json.loads(trace.read_text("utf-8"))))


def record(output: Path, names: Collection[str] | None = None) -> list[Path]:
    """Record the tasks and faults of these names (None: all) into ``output``; return the trajectories' folders."""
    output.mkdir(parents=True, exist_ok=True)
    write_json(output / "tasks.json", [task.as_json() for task in TASKS])
    folders = []
    with recording_browser() as browser:
        for task in TASKS:
            if names is not None and task.name not in names:
                continue
            for kind, scripts in AGENTS:
                folder = output / "submissions" / kind.name / task.task_id
                record_trajectory(browser, kind, scripts[task.name], task, folder)
                folders.append(folder)
        folders += challenge.write(output / "challenge", FAULTS, partial(record_trajectory, browser), names)
        if names is None:
            answers.write(browser, output / "answers")
            reference.write(browser, output / "reference.jsonl.gz")
    return folders


def main() -> int:
    parser = argparse.ArgumentParser(description="Record the demo data in a real Chromium.")
    parser.add_argument("--output", type=Path, default=DATA, help="folder to write to (default: the committed data)")
    names = [task.name for task in (*TASKS, *(fault.task for fault in FAULTS))]
    parser.add_argument("--task", action="append", choices=names, help="only this one, or only this fault")
    arguments = parser.parse_args()
    try:
        folders = record(arguments.output, arguments.task)
    except ChromiumMissingError as error:
        print(error, file=sys.stderr)  # noqa: T201
        return 1
    print(f"{len(folders)} trajectories recorded")  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main())
