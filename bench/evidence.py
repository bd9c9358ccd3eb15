"""Measure evidence bundles: ``python -m bench.evidence``, a part of `make bench`.

Submissions of 300 trajectories with 2 and with 20 screenshots of 60 kB each, reviewed and frozen by the workflow
functions, on SQLite. For each, separate processes write the bundle, check it with its own verify.py, and open it as an
audit. Screenshots do not stay in memory, only their name, size and digest: a peak may grow by a twentieth of the growth
of the bundle. Records do stay, so it also grows with the trajectories; compare `--trajectories 30`. A larger growth is
marked, and the exit code is 1. Seconds and sizes depend on the machine and are only printed. A bundle that fails its
own check ends the benchmark.
"""

from __future__ import annotations

import argparse
import io
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from zipfile import ZipFile

import numpy
from PIL import Image

from bench.processes import read_memory, run_apart
from bench.scratch import set_up

TRAJECTORIES = 300
SCREENSHOTS = (2, 20)  # of each trajectory, one per step: the cases
SIDE = 141  # pixels: 60 kB, since noise cannot be compressed
WORKS = ("written", "checked", "opened")
BUNDLE = "bundle.zip"
SHARE = 0.05  # of the growth of the bundle from the first case to the last one, by which a peak may grow


@dataclass(frozen=True, slots=True)
class Cost:
    """Cost of a process for a bundle: its peak memory in MB, and seconds."""

    peak: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Case:
    """The size of a bundle in MB, and its costs in the order of `WORKS`."""

    size: float
    costs: list[Cost]


def picture(number: int) -> bytes:
    """Return a PNG of noise; different numbers give different bytes."""
    noise = numpy.random.default_rng(number).integers(0, 255, (SIDE, SIDE, 3), dtype=numpy.uint8)
    stream = io.BytesIO()
    Image.fromarray(noise).save(stream, "PNG", compress_level=0)
    return stream.getvalue()


def migrated(data: str) -> None:
    """Create an empty database, which each case copies: creating it takes longer than a small case."""
    set_up(data)
    from django.core.management import call_command  # noqa: PLC0415 - after the setup

    call_command("migrate", verbosity=0, interactive=False)


def made(data: str, count: int, steps: int) -> int:
    """Create a frozen submission of ``count`` trajectories in an empty database; return its primary key."""
    set_up(data)
    from annotation import ingest, workflow  # noqa: PLC0415
    from annotation.tests import testing  # noqa: PLC0415

    package = Path(data, "package")
    for number in range(count):
        pictures = {f"{step:04d}.png": picture(number * steps + step) for step in range(steps)}
        testing.write_trajectory(package, testing.result_v2(number, steps), pictures)
    shops = testing.benchmark(count)
    report, submission = ingest.import_submission(package, benchmark=shops, agent_name="Careful Agent")
    if submission is None:
        sys.exit(f"The package was refused: {report.as_json()}")
    people = testing.cast(submission)
    testing.label_all(people, submission, {})
    workflow.draw_spot_checks(people["mira"], submission)
    testing.adjudicate_all(people["carol"], submission)
    workflow.freeze(people["mira"], submission)
    return int(submission.pk)


def written(data: str, pk: int) -> Cost:
    """Write the bundle; call it in a new process."""
    set_up(data)
    from annotation.models import Submission  # noqa: PLC0415
    from evaluations.evidence.writing import prepare, write  # noqa: PLC0415

    started = time.perf_counter()
    write(prepare(Submission.objects.get(pk=pk)), Path(data, BUNDLE))
    return Cost(read_memory("VmHWM"), time.perf_counter() - started)


def checked(data: str) -> Cost:
    """Check the bundle as an outsider does, with the program inside and only Python."""
    with ZipFile(Path(data, BUNDLE)) as bundle:
        program = bundle.extract("verify.py", data)
    started = time.perf_counter()
    command = [sys.executable, "-I", "-S", program, str(Path(data, BUNDLE))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - our own program
    if done.returncode:
        sys.exit(f"The bundle does not pass its own check:\n{done.stdout}{done.stderr}")
    return Cost(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024, time.perf_counter() - started)


def opened(data: str, path: str) -> Cost:
    """Open the bundle as an audit, on another instance."""
    set_up(data)
    from annotation.models import Person  # noqa: PLC0415
    from evaluations.auditing.importing import open_bundle  # noqa: PLC0415

    auditor = Person.objects.create_superuser("amy", "amy@people.example")
    started = time.perf_counter()
    open_bundle(Path(path), auditor)
    return Cost(read_memory("VmHWM"), time.perf_counter() - started)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.evidence", description=__doc__)
    parser.add_argument("--trajectories", type=int, default=TRAJECTORIES, help="of every case; 300 without it")
    parser.add_argument("--screenshots", type=int, nargs="+", default=SCREENSHOTS, help="of a trajectory; 2 and 20")
    chosen = parser.parse_args(arguments)
    count = chosen.trajectories
    print(f"Evidence bundles of {count:,} trajectories, SQLite: most memory in MB, seconds")  # noqa: T201
    print(f"{'screenshots':>12}{'zip MB':>9}" + "".join(f"{name:>18}" for name in WORKS))  # noqa: T201
    cases = []
    with tempfile.TemporaryDirectory(prefix="webverdict-evidence-") as folder:
        run_apart(migrated, str(Path(folder, "empty")))
        for steps in chosen.screenshots:
            case = measured(Path(folder), count, steps)
            cases.append(case)
            line = "".join(f"{cost.peak:>10,.0f}{cost.seconds:>8.1f}" for cost in case.costs)
            print(f"{count * steps:>12,}{case.size:>9,.0f}{line}", flush=True)  # noqa: T201
    return grown(cases[0], cases[-1])


def measured(folder: Path, count: int, steps: int) -> Case:
    """Measure a bundle, and delete its files."""
    there, elsewhere = (shutil.copytree(folder / "empty", folder / name) for name in ("there", "elsewhere"))
    pk, bundle = run_apart(made, str(there), count, steps), there / BUNDLE
    costs = [
        run_apart(written, str(there), pk),
        run_apart(checked, str(there)),
        run_apart(opened, str(elsewhere), str(bundle)),
    ]
    size = bundle.stat().st_size / 1e6
    shutil.rmtree(there)
    shutil.rmtree(elsewhere)
    return Case(size, costs)


def grown(first: Case, last: Case) -> int:
    """Print for each of `WORKS` how its peak grows from the first case to the last one; return the exit code."""
    over = False
    for name, small, large in zip(WORKS, first.costs, last.costs, strict=True):
        more, added = large.peak - small.peak, last.size - first.size
        too_much = more > SHARE * max(added, 0)
        over |= too_much
        verdict = "OVER THE BUDGET" if too_much else "flat"
        print(f"{name}: the peak grows by {more:.0f} MB while the bundle grows by {added:,.0f} MB, {verdict}")  # noqa: T201
    return int(over)


if __name__ == "__main__":
    sys.exit(main())
