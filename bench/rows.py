"""Measure rows of Multimodal-Mind2Web: ``python -m bench.rows``, a part of `make bench`.

Creates parquet files of 200 and of 2,000 rows with pages of 300 kB and screenshots of 200 kB. A separate process
converts each and reads its tasks. Memory must not grow with the rows: both processes should have the same peak. The
exit code is 0 anyway, since times and sizes depend on the machine; a growth over the budget is marked.
"""

from __future__ import annotations

import argparse
import io
import json
import random
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from annotation.formats.external import multimodal_mind2web
from annotation.records import ImportReport
from bench.processes import read_memory, run_apart

CASES = (200, 2_000)  # rows
STEPS = 8  # of a task
PAGE, PICTURE = 300_000, 200_000  # bytes, about
CANDIDATES = 300
GROUP = 100  # rows of a row group, as in the data set
GROWTH = 1.2  # of the peak, from the smaller case to the larger one, that counts as flat


@dataclass(frozen=True, slots=True)
class Cost:
    """Cost of one case: ``size`` of the file and ``peak`` memory in MB, and seconds for converting and reading."""

    rows: int
    size: float
    peak: float
    begin: float
    converting: float
    reading: float


def picture(number: int) -> bytes:
    """Return a JPEG of about `PICTURE` bytes: noise, which cannot be compressed."""
    random = np.random.default_rng(number)
    stream = io.BytesIO()
    Image.fromarray(random.integers(0, 255, (480, 640, 3), dtype=np.uint8)).save(stream, "JPEG", quality=75)
    return stream.getvalue()


def page(number: int) -> str:
    """Return HTML of about `PAGE` bytes with fields, buttons and links, each with its node."""
    chance = random.Random(number)  # noqa: S311 - pages for a measurement, no secrets
    parts, size, node = ["<html><body>"], 0, 0
    while size < PAGE:
        node += 1
        words = " ".join(f"{chance.getrandbits(40):x}" for _ in range(4))
        kind = ("a", "button", "div", "input")[node % 4]
        parts.append(f'<{kind} backend_node_id="{node}" class="{words}" name="{words[:8]}">{words}</{kind}>')
        size += len(parts[-1])
    return "".join(parts)


def rows(count: int) -> Iterator[dict[str, Any]]:
    """Yield rows as in the data set; those of one task are as far apart as possible."""
    tasks = count // STEPS
    for number in range(count):
        task, step = number % tasks, number // tasks
        actions = [f"[button]  Step {place} of {task} -> CLICK" for place in range(max(STEPS, step + 1))]
        candidates = [_candidate(f"{node}") for node in range(1, CANDIDATES)]
        yield {
            "annotation_id": f"task-{task:05}",
            "action_uid": f"{task}-{step}",
            "website": f"site{task % 20}",
            "domain": "Shopping",
            "subdomain": "General",
            "confirmed_task": f"Do what task {task} says",
            "raw_html": "",
            "cleaned_html": page(number),
            "operation": json.dumps({"op": "CLICK", "value": "", "original_op": "CLICK"}),
            "pos_candidates": candidates[:1],
            "neg_candidates": candidates[1:],
            "action_reprs": actions[:STEPS],
            "target_action_index": str(step),
            "target_action_reprs": actions[step],
            "screenshot": {"bytes": picture(number), "path": None},
        }


def _candidate(node: str) -> str:
    attributes = json.dumps({"backend_node_id": node, "bounding_box_rect": "10,20,100,40", "class": "x" * 60})
    return json.dumps({"tag": "button", "attributes": attributes, "backend_node_id": node})


def write(path: Path, count: int) -> None:
    """Write the parquet file of a case in groups, which needs little memory."""
    import pyarrow as pa  # noqa: PLC0415 - takes a while, and the processes that measure need it not
    import pyarrow.parquet as pq  # noqa: PLC0415

    made, writer = rows(count), None
    for _ in range(0, count, GROUP):
        table = pa.Table.from_pylist([one for one, _ in zip(made, range(GROUP), strict=False)])
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    if writer:
        writer.close()


def peak() -> float:
    """Return the peak memory of this process, and of the one that reads for it, in MiB."""
    return read_memory("VmHWM") + resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024


def measured(path: Path, count: int) -> Cost:
    """Convert the file and read its tasks; call it in a new process."""
    import pyarrow.parquet  # noqa: F401, PLC0415 - what it takes itself is no part of the growth

    begin, report = peak(), ImportReport()
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        started = time.perf_counter()
        multimodal_mind2web.convert_rows(path, Path(folder), report)
        converted = time.perf_counter()
        tasks = sum(1 for _ in multimodal_mind2web.read_tasks(path, []))
        ended = time.perf_counter()
    if report.rejected or tasks != count // STEPS:
        raise RuntimeError(f"{tasks} tasks, and refused: {list(report.rejected.items())[:1]}")
    return Cost(count, path.stat().st_size / 1e6, peak(), begin, converted - started, ended - converted)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.rows", description=__doc__)
    parser.add_argument(
        "--rows", type=int, nargs="+", default=CASES, help=f"the cases, multiples of {STEPS}; 200 and 2,000 without it"
    )
    chosen = parser.parse_args(arguments)
    print(f"{'rows':>7}{'file MB':>10}{'before MB':>11}{'peak MB':>9}{'convert s':>11}{'tasks s':>9}")  # noqa: T201
    costs = []
    with tempfile.TemporaryDirectory(prefix="webverdict-rows-") as folder:
        for count in chosen.rows:
            path = Path(folder, f"{count}.parquet")
            run_apart(write, path, count)
            one = run_apart(measured, path, count)
            path.unlink()
            costs.append(one)
            line = f"{one.rows:>7,}{one.size:>10,.0f}{one.begin:>11,.0f}{one.peak:>9,.0f}"
            print(f"{line}{one.converting:>11.1f}{one.reading:>9.1f}", flush=True)  # noqa: T201
    growth = costs[-1].peak / costs[0].peak
    print(f"peak grows {growth:.2f} times: {'flat' if growth <= GROWTH else 'OVER THE BUDGET'}")  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main())
