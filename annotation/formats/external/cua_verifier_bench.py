"""Convert rows of CUAVerifierBench, configuration ``trajectories``: one parquet row for each run of Fara-7B.

Columns used: ``task_id``, ``instruction``, ``init_url``, ``final_answer``, ``is_aborted``, ``web_surfer_log`` (the text
of the log that `fara` reads) and ``screenshots`` (images in order, as ``{bytes, path}``). The other columns are scores
of verifiers and labels of people, which are not read; nor is the configuration ``annotations``.

Source: the dataset card of microsoft/CUAVerifierBench (revision c19eb32), and reports by others who read it (one more
screenshot than actions; ``internal`` has 101 rows without screenshots). No row was read.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

from annotation.formats import scratch
from annotation.formats.agent_logs import (
    LARGEST_LOG,
    Log,
    LogProblem,
    as_list,
    as_object,
    as_text,
    log_format,
    parse_lines,
    peek,
)
from annotation.formats.archive import Package, PackageError
from annotation.formats.documents import FormatError
from annotation.formats.external.fara import add_steps, find_actions, read_answer
from annotation.formats.external.multimodal_mind2web.parquet import Row
from annotation.formats.external.multimodal_mind2web.reading import read_rows
from annotation.formats.printable import printable
from annotation.records import Problem

REQUIRED = ("task_id", "web_surfer_log")
COLUMNS = (*REQUIRED, "instruction", "init_url", "start_timestamp", "final_answer", "is_aborted", "screenshots")
MAGIC = "PAR1"
FOOTER = 4 * 2**20  # bytes at the end of a parquet file; its metadata has the names of the columns
CHUNK = 2**20  # bytes


def find_rows(package: Package) -> list[str]:
    names = package.names()
    found = [name for name in names if len(names) == 1 or name.lower().endswith(".parquet")]
    return [name for name in found if peek(package, name, 4) == MAGIC and _has_log(package, name)]


def _has_log(package: Package, name: str) -> bool:
    tail = b""
    try:
        with package.stream(name, LARGEST_LOG) as stream:
            while chunk := stream.read(CHUNK):
                tail = (tail + chunk)[-FOOTER:]
    except PackageError:
        return False
    return b"web_surfer_log" in tail and b"instruction" in tail


def read(package: Package) -> Iterator[Log | LogProblem]:
    for name in find_rows(package):
        with scratch.folder("rows") as folder:
            try:
                for row in read_rows(_copy(package, name, folder), COLUMNS, REQUIRED):
                    yield _read_row(name, row)
            except FormatError as error:
                yield LogProblem(name, tuple(error.problems))


def _copy(package: Package, name: str, folder: Path) -> Path:
    path = folder / "rows.parquet"
    with package.stream(name, LARGEST_LOG) as stream, path.open("wb") as file:
        shutil.copyfileobj(stream, file)
    return path


def _read_row(name: str, row: Row) -> Log | LogProblem:
    values, task_id = row.values, as_text(row.values.get("task_id"))
    shown = printable(task_id) if task_id else f"{name}, row {row.number:,}"
    if row.problems:
        return LogProblem(shown, tuple(row.problems))
    lines = values.get("web_surfer_log")
    if not isinstance(lines, str):
        return LogProblem(shown, (Problem("wrong_type", f"{shown}: web_surfer_log must be text.", shown),))
    log = Log(name=shown, task_id=task_id, task=as_text(values.get("instruction")))
    read_answer(values.get("final_answer"), values.get("is_aborted"), log)
    try:
        actions = list(find_actions(parse_lines(lines, f"{shown}: web_surfer_log"), log))
    except FormatError as error:
        return LogProblem(shown, tuple(error.problems))
    images = [as_object(each).get("bytes") for each in as_list(values.get("screenshots"))]
    add_steps(_NO_FILES, log, actions, [each if isinstance(each, bytes) else None for each in images])
    log.lost["addresses of start pages"] += bool(as_text(values.get("init_url")))
    log.lost["times of runs"] += bool(as_text(values.get("start_timestamp")))
    log.lost["rows of scores and labels, which annotators must not see"] += 1
    return log


_NO_FILES = Package(Path())


FORMAT = log_format(
    "cua-verifier-bench",
    title="CUAVerifierBench",
    files="parquet files of the configuration trajectories",
    recognise=lambda package: bool(find_rows(package)),
    read=read,
)
