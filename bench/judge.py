"""Measure a judge run: ``python -m bench.judge``, a part of `make bench`.

A real worker judges trajectories of 20 full-page screenshots, drawn by Chromium, with a fake endpoint that answers
after a fixed time. Database and broker are as in `make run`, in a separate folder. Prints a table.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

from bench import scratch
from bench.processes import used_by
from config.processes import CannotRun, Child, Stopped, check_alive, stop_on_signals, stopping_children
from tools.chromium import find_chromium

STEPS = 20
CASES = ((0.5, 32), (3.0, 32), (0.5, 64), (3.0, 64))  # latency in seconds, calls in flight
# A page of text and photographs that PNG compresses to about 1 MB, as real full pages do.
PAGE = """<!doctype html><style>body{margin:0;font:15px sans-serif;width:1280px;height:1600px}
canvas{display:block}p{columns:3;margin:16px}</style><canvas width="1280" height="600"></canvas><p></p>"""
DRAW = """(number) => {
  let seed = 1000003 * (number + 1);
  const random = () => (seed = (seed * 1103515245 + 12345) % 2147483648) / 2147483648;
  const canvas = document.querySelector("canvas"), brush = canvas.getContext("2d");
  const photo = brush.createImageData(1280, 600);
  const waves = Array.from({ length: 12 }, () => [random() / 90, random() / 90, random() * 6]);
  for (let y = 0, at = 0; y < 600; y++) for (let x = 0; x < 1280; x++, at += 4) {
    let light = 128;
    for (const [a, b, c] of waves) light += 14 * Math.sin(a * x + b * y + c);
    const grain = random() * 3;
    photo.data.set([light + grain, light * 0.8 + grain + 20, 255 - light + grain, 255], at);
  }
  brush.putImageData(photo, 0, 0);
  const word = () => Math.floor(random() * 1e9).toString(36);
  document.querySelector("p").textContent = Array.from({ length: 900 }, word).join(" ");
}"""


def pictures(count: int) -> list[bytes]:
    """Return different PNGs of 1280x1600 and about 1 MB each."""
    with sync_playwright() as playwright:
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=arguments)
        page = browser.new_page(viewport={"width": 1280, "height": 1600})
        page.set_content(PAGE)
        made = []
        for number in range(count):
            page.evaluate(DRAW, number)
            made.append(page.screenshot())
        browser.close()
    return made


@dataclass(frozen=True, slots=True)
class Row:
    """One run. ``ratio`` is its wall time divided by the minimum that latency and calls in flight allow."""

    latency: float
    in_flight: int
    wall: float
    cpu: float
    peak: float
    calls: int
    megabytes: float
    encoded: int
    in_flight_peak: int

    @property
    def ratio(self) -> float:
        return self.wall / max(3 * self.latency, self.calls * self.latency / self.in_flight)


TITLES = ("latency s", "in flight", "wall s", "CPU s", "peak MB", "calls", "MB sent", "encoded", "peak flight", "ratio")


def measured(run: Any, fake: Any, worker: Child, latency: float, in_flight: int) -> Row:
    """Wait for the end of a run and return its cost."""
    from judges.models import JudgeRun  # noqa: PLC0415 - after the setup

    before, peak = used_by(worker.process.pid), 0.0
    while not JudgeRun.objects.filter(pk=run.pk, finished_at__isnull=False).exists():
        check_alive([worker])
        peak = max(peak, used_by(worker.process.pid).memory)
        time.sleep(0.1)
    row = JudgeRun.objects.get(pk=run.pk)
    began, ended = row.started_at or row.created_at, row.finished_at or row.created_at
    used, counts = used_by(worker.process.pid), fake.counts()
    if failed := row.items.exclude(error="").first():
        raise CannotRun(f"An item failed: {failed.error}")
    return Row(
        latency,
        in_flight,
        (ended - began).total_seconds(),
        used.cpu - before.cpu,
        peak,
        counts["calls"],
        counts["bytes"] / 1e6,
        pictures_made_since(began.timestamp()),
        counts["peak"],
    )


def pictures_made_since(moment: float) -> int:
    """Count the judge renditions stored since ``moment`` (Unix time)."""
    made = Path(os.environ["WEBVERDICT_DATA"], "images", "renditions", "judge").glob("*/*")
    return sum(file.stat().st_mtime >= moment for file in made)


def run_against(fake: Any, submission: Any, latency: float, in_flight: int) -> Row:
    """Measure one run of WebJudge by a new worker, without cached results."""
    from annotation.models import Person  # noqa: PLC0415
    from judges import defining, runs  # noqa: PLC0415

    settings_for(fake)
    environment = {**os.environ, "JUDGE_ENDPOINTS": fake.url}
    command = [sys.executable, "-m", "celery", "--app", "config", "worker", "--queues", "webverdict-judges"]
    command += [
        "--concurrency",
        "1",
        "--loglevel",
        "INFO",
        "--without-gossip",
        "--without-mingle",
        "--without-heartbeat",
    ]
    with stopping_children() as children:
        log = Path(os.environ["WEBVERDICT_DATA"], "worker.log")
        worker = children.start("The judge worker", command, log, environment)
        wait_for_worker(worker)
        maintainer = Person.objects.get(username="mira")
        judge = defining.define(
            maintainer,
            name=f"bench-{latency:g}-{in_flight}".replace(".", "-"),
            scorer="webjudge",
            model="bench",
            concurrency=in_flight,
        )
        run = runs.start(maintainer, judge, submission, {}, fresh=True)
        return measured(run, fake, worker, latency, in_flight)


def settings_for(fake: Any) -> None:
    from django.conf import settings  # noqa: PLC0415

    settings.JUDGE_ENDPOINTS = {"default": fake.url}


def wait_for_worker(worker: Child) -> None:
    """Wait until the worker logs that it is ready, so that its start is not measured."""
    while "ready." not in worker.log.read_text(errors="replace"):
        check_alive([worker])
        time.sleep(0.1)
    worker.log.write_text("")


@contextmanager
def prepared(trajectories: int) -> Iterator[Any]:
    """Provide a submission with its renditions, in a database and a folder that are deleted at the end."""
    with tempfile.TemporaryDirectory(prefix="webverdict-bench-") as folder:
        scratch.set_up(folder)
        from django.core.management import call_command  # noqa: PLC0415 - after the setup

        call_command("migrate", verbosity=0, interactive=False)
        yield imported(Path(folder, "package"), trajectories)


def imported(package: Path, trajectories: int) -> Any:
    """Import ``trajectories`` of `STEPS` different screenshots and create their renditions; return the submission."""
    from annotation import ingest, jobs  # noqa: PLC0415
    from annotation.tests import testing  # noqa: PLC0415

    drawn = pictures(STEPS)
    for number in range(trajectories):
        images = {f"{n:04d}.png": scratch.mark_png(data, number * STEPS + n) for n, data in enumerate(drawn)}
        testing.write_trajectory(package, testing.result_v2(number, STEPS), images)
    benchmark = testing.benchmark(trajectories)
    report, submission = ingest.import_submission(package, benchmark=benchmark, agent_name="Bench")
    if submission is None:
        raise CannotRun(f"The benchmark's own package was refused: {report.as_json()}")
    shutil.rmtree(package)
    testing.cast(submission)
    began = time.process_time()
    jobs.prepare_pictures(submission.pk)
    made = pictures_made_since(0)
    say(f"{made} judge-ready pictures made once, with all others, in {time.process_time() - began:.1f} CPU s")
    return submission


def say(*cells: object) -> None:
    print("".join(f"{cell!s:>13}" for cell in cells) if len(cells) > 1 else cells[0], flush=True)  # noqa: T201


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.judge", description=__doc__)
    parser.add_argument("--trajectories", type=int, default=30)
    parser.add_argument("--cases", nargs="*", default=CASES, type=case, metavar="LATENCY:IN_FLIGHT")
    options = parser.parse_args(arguments)
    stop_on_signals()
    try:
        with prepared(options.trajectories) as submission:
            from judges.tests.builders import fake_endpoint  # noqa: PLC0415

            say(*TITLES)
            for latency, in_flight in options.cases:
                with fake_endpoint(latency) as fake:
                    row = run_against(fake, submission, latency, in_flight)
                say(
                    row.latency,
                    row.in_flight,
                    f"{row.wall:.1f}",
                    f"{row.cpu:.1f}",
                    f"{row.peak:.0f}",
                    row.calls,
                    f"{row.megabytes:.0f}",
                    row.encoded,
                    row.in_flight_peak,
                    f"{row.ratio:.2f}",
                )
    except (CannotRun, Stopped) as reason:
        say(str(reason) or "Stopped.")
        return 1
    return 0


def case(text: str) -> tuple[float, int]:
    latency, _, in_flight = text.partition(":")
    return float(latency), int(in_flight)


if __name__ == "__main__":
    sys.exit(main())
