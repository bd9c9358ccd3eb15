"""The table `tasks.csv` at the top of an upload, which says which task each log is of."""

from __future__ import annotations

import csv
import io
import re
from typing import NamedTuple

from annotation.formats.archive import Package
from annotation.formats.documents import FormatError, decode_text
from annotation.formats.printable import printable
from annotation.formats.tasks import task_id_problem
from annotation.records import PACKAGE, ImportReport, Problem

TASK_MAP = "tasks.csv"
RATIO = "device_pixel_ratio"
RATIOS = re.compile(r"[0-9]{1,2}(?:\.[0-9]{1,6})?")


class Mapped(NamedTuple):
    """A row of `TASK_MAP`: the task of a log, and how many pixels of its pictures are one CSS pixel."""

    task_id: str
    ratio: float | None


def read_task_map(package: Package, report: ImportReport) -> dict[str, Mapped]:
    """Return the rows of `TASK_MAP` by log, with the columns log, task_id and optionally `RATIO`."""
    if TASK_MAP not in package.names():
        return {}
    try:
        text = decode_text(package.read(TASK_MAP, 16 * 2**20), TASK_MAP)
    except FormatError as error:
        report.reject(PACKAGE, *error.problems)
        return {}
    found: dict[str, Mapped] = {}
    rows = csv.DictReader(io.StringIO(text))
    if not {"log", "task_id"} <= set(rows.fieldnames or ()):
        says = f"{TASK_MAP} must have the columns log and task_id."
        report.reject(PACKAGE, Problem("task_map_columns", says, TASK_MAP))
        return {}
    for number, row in enumerate(rows, 2):
        name, task_id, ratio = ((row.get(key) or "").strip() for key in ("log", "task_id", RATIO))
        where, says = f"{TASK_MAP}, row {number}", task_id_problem(task_id) or ""
        mapped = Mapped(task_id, float(ratio) if RATIOS.fullmatch(ratio) else None)
        if ratio and not mapped.ratio:
            says = f"{RATIO} must be a number such as 2 or 1.5"
        elif name in found and found[name] != mapped:
            says = f"{printable(name)} has another task above"
        if says:
            report.reject(PACKAGE, Problem("task_map_invalid", f"{where}: {says}.", where))
        else:
            found[name] = mapped
    return found
