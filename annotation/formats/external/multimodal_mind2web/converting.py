"""Convert rows into a package of reference trajectories, and into the tasks of a benchmark."""

from __future__ import annotations

import base64
import binascii
import io
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from PIL import Image

from annotation.formats.archive import DEFAULT_LIMITS, Package
from annotation.formats.documents import UNSTORABLE, FormatError
from annotation.formats.external.multimodal_mind2web.parquet import Row, row_problem
from annotation.formats.external.multimodal_mind2web.reading import is_rows, read_rows
from annotation.formats.external.multimodal_mind2web.reference import ReferenceStep, RowError, parse_step
from annotation.formats.printable import listing
from annotation.formats.registry import Format, Progress
from annotation.formats.tasks import LONGEST, task_id_problem
from annotation.formats.webverdict import write_result
from annotation.records import PACKAGE, ImportReport, Problem, TaskRecord

TASK_COLUMNS = ("annotation_id", "confirmed_task", "website", "action_reprs")
REQUIRED = (
    "annotation_id", "confirmed_task", "cleaned_html", "operation", "pos_candidates", "neg_candidates", "action_reprs",
    "target_action_index",
)  # fmt: skip
COLUMNS = (*REQUIRED, "action_uid", "website", "domain", "subdomain", "split", "target_action_reprs", "screenshot")
SPLIT = re.compile(r"(train|test_task|test_website|test_domain)(?![a-z])")
MOST_PROBLEMS = 1_000  # of one file; after that, one for each further task
MOST_BYTES = DEFAULT_LIMITS.total_bytes  # the limit of every package

SUFFIXES = {"JPEG": ".jpg", "PNG": ".png", "WEBP": ".webp"}
LARGEST_PICTURE = 64 * 2**20  # bytes; like MOST_PIXELS, the limit of the image store
MOST_PIXELS = 40_000_000
DATA_URL = re.compile(r"data:[\w.+-]+/[\w.+-]+;base64,")
PICTURE_FAILURES = (
    OSError, ValueError, SyntaxError, EOFError, IndexError, OverflowError, MemoryError, KeyError, TypeError,
    Image.DecompressionBombError, Image.DecompressionBombWarning,
)  # fmt: skip


def convert_rows(path: Path, folder: Path, report: ImportReport, progress: Progress = lambda done, total: None) -> None:
    """Write the tasks of the rows in ``path`` into ``folder``, as a webverdict-1 package.

    An invalid row is reported with its number, and its whole task is rejected: without a hard step a task would look
    easier than it is. A step without a row is a warning, because the data set omits steps whose page could not be
    rendered. If the file cannot be read to its end, all tasks are removed. Raises OSError when the disk is full.
    """
    conversion = _Conversion(folder, report, SPLIT.match(path.name))
    try:
        for row in read_rows(path, COLUMNS, REQUIRED, progress):
            conversion.take(row)
    except FormatError as error:
        report.reject(PACKAGE, *error.problems)
        for task_id in conversion.tasks:
            shutil.rmtree(folder / task_id, ignore_errors=True)
    else:
        conversion.finish()


@dataclass(slots=True)
class _Task:
    """The data of a task that are needed until the end of the file."""

    text: str
    kind: tuple[str, str, str]
    actions: tuple[str, ...]
    pictures: dict[int, str | None] = field(default_factory=dict)
    refused: bool = False


@dataclass(slots=True)
class _Conversion:
    folder: Path
    report: ImportReport
    split: re.Match[str] | None
    tasks: dict[str, _Task] = field(default_factory=dict)
    written: int = 0
    listed: int = 0

    def take(self, row: Row) -> None:
        task_id = row.values.get("annotation_id")
        if says := task_id_problem(task_id):
            if row.values or not row.problems:
                row.refuse("task_id_invalid", says.replace("task_id", "annotation_id"))
            self._refuse(PACKAGE, row.problems)
            return
        if not row.problems:
            try:
                self._write(row, str(task_id))
            except RowError as error:
                row.refuse(error.code, str(error))
        if row.problems:
            self.tasks.setdefault(str(task_id), _Task("", ("", "", ""), ())).refused = True
            self._refuse(str(task_id), row.problems)

    def _write(self, row: Row, task_id: str) -> None:
        values = row.values
        if self.split and not values.get("split"):
            values["split"] = self.split[1]
        image = _read_image(values.pop("screenshot", None))
        step = parse_step(values, image.size if image else None)
        task = self._find_task(step)
        if step.index in task.pictures:
            raise RowError("duplicate_step", f"target_action_index {step.index} of this task occurs twice")
        home = self.folder / task_id
        name = f"{step.index:04}{image.suffix}" if image else None
        if not task.refused:
            self._write_file(home / "reference" / f"{step.index}.json", step.as_json())
            if image and name:
                self._write_file(home / "trajectory" / name, image.data)
        task.pictures[step.index] = name

    def _find_task(self, step: ReferenceStep) -> _Task:
        """Return the task of a step. Raises RowError if this row contradicts an earlier one."""
        kind = (step.website, step.domain, step.subdomain)
        task = self.tasks.get(step.task_id)
        if task is None or (not task.actions and task.refused):
            refused = task is not None
            task = self.tasks[step.task_id] = _Task(step.task, kind, step.actions, refused=refused)
        if task.text.split() != step.task.split():
            raise RowError("task_text_differs", "confirmed_task differs from the task's earlier rows")
        if task.kind != kind:
            raise RowError("task_differs", "website, domain or subdomain differs from the task's earlier rows")
        if task.actions != step.actions:
            raise RowError("actions_differ", "action_reprs differs from the task's earlier rows")
        return task

    def _write_file(self, path: Path, data: bytes) -> None:
        self.written += len(data)
        if self.written > MOST_BYTES:
            says = f"The rows have more than {MOST_BYTES:,} bytes of pages and screenshots; split the file by tasks."
            raise FormatError(Problem("package_too_large", says))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)

    def _refuse(self, task_id: str, problems: list[Problem]) -> None:
        self.listed += len(problems)
        if self.listed <= MOST_PROBLEMS:
            self.report.reject(task_id, *problems)
        elif task_id not in self.report.rejected:
            says = f"The {'task' if task_id else 'file'} has further invalid rows; the report has no room to list them."
            self.report.reject(task_id, Problem("more_problems", says))

    def finish(self) -> None:
        for task_id, task in self.tasks.items():
            home = self.folder / task_id
            if task.refused:
                shutil.rmtree(home, ignore_errors=True)
                continue
            indices = sorted(task.pictures)
            for step, index in enumerate(indices):
                (home / "reference" / f"{index}.json").rename(home / "reference" / f"{step}.json")
            write_result(
                home,
                source_format=FORMAT.name,
                task_id=task_id,
                task=task.text,
                reference_length=len(task.actions),
                steps=[
                    {"action": task.actions[index], "thought": None, "url": None, "screenshot": task.pictures[index]}
                    for index in indices
                ],
            )
            self._warn(task_id, task, indices)

    def _warn(self, task_id: str, task: _Task, indices: list[int]) -> None:
        if missing := [str(index) for index in range(len(task.actions)) if index not in task.pictures]:
            says = f"{len(missing)} of {len(task.actions)} steps have no row: {listing(missing)}."
            self.report.warn(task_id, Problem("steps_missing", says))
        if bare := [str(index) for index in indices if task.pictures[index] is None]:
            self.report.warn(task_id, Problem("screenshot_missing", f"Steps without a screenshot: {listing(bare)}."))


# --- screenshots ------------------------------------------------------------------------------------------------------


class _Image(NamedTuple):
    data: bytes
    suffix: str
    size: tuple[int, int]


def _read_image(value: Any) -> _Image | None:
    """Return the image of a row after decoding it, or None; a path in the row is never read. Raises RowError."""
    data = _extract_bytes(value.get("bytes") if isinstance(value, Mapping) else value)
    if data is None:
        if isinstance(value, Mapping) and value.get("path"):
            raise RowError("screenshot_not_embedded", "screenshot is a file name without bytes; embed the images")
        return None
    if len(data) > LARGEST_PICTURE:
        raise RowError("screenshot_too_large", f"screenshot has more than {LARGEST_PICTURE:,} bytes")
    try:
        with Image.open(io.BytesIO(data), formats=list(SUFFIXES)) as image:
            size, suffix = image.size, SUFFIXES[str(image.format)]
            if size[0] * size[1] > MOST_PIXELS:
                raise RowError("screenshot_too_many_pixels", f"screenshot has more than {MOST_PIXELS:,} pixels")
            image.draft("L", (max(1, size[0] // 8), max(1, size[1] // 8)))  # reads every byte, but decodes few pixels
            image.load()
    except RowError:
        raise
    except PICTURE_FAILURES as error:
        raise RowError(
            "screenshot_undecodable", "screenshot is not a PNG, JPEG or WebP image that can be decoded"
        ) from error
    return _Image(data, suffix, size)


def _extract_bytes(value: Any) -> bytes | None:
    if value is None or value == "":
        return None
    if isinstance(value, bytes):
        return value or None
    if isinstance(value, str):
        try:
            return base64.b64decode(DATA_URL.sub("", value[:100], count=1) + value[100:], validate=True)
        except (binascii.Error, ValueError) as error:
            raise RowError("screenshot_undecodable", "screenshot is not valid base64") from error
    raise RowError("wrong_type", "screenshot must have bytes, or base64 in JSON Lines")


# --- tasks ------------------------------------------------------------------------------------------------------------


def read_tasks(path: Path, warnings: list[Problem]) -> Iterator[TaskRecord]:
    """Yield each task of the rows once, in the order of their first rows; ``reference_length`` counts its actions.

    Rows without a valid task go into ``warnings``. Raises FormatError if the file cannot be read, or if rows of one
    task differ.
    """
    known: dict[str, TaskRecord] = {}
    for row in read_rows(path, TASK_COLUMNS, TASK_COLUMNS[:2]):
        task = _task(row)
        if task is None:
            warnings += row.problems[:1] if len(warnings) < MOST_PROBLEMS else []
        elif task.task_id not in known:
            known[task.task_id] = task
            yield task
        elif known[task.task_id] != task:
            says = f"the task {task.task_id} differs from its earlier rows (text, website or number of actions)"
            raise FormatError(row_problem(row.number, "task_text_differs", says))


def _task(row: Row) -> TaskRecord | None:
    """Return the task of a row, or None and add problems to the row."""
    task_id, text = row.values.get("annotation_id"), row.values.get("confirmed_task")
    website, actions = row.values.get("website") or "", row.values.get("action_reprs")
    if says := task_id_problem(task_id):
        row.refuse("task_id_invalid", says.replace("task_id", "annotation_id"))
    if not isinstance(text, str) or not text.strip() or UNSTORABLE.search(text):
        row.refuse("wrong_type", "confirmed_task must be text without NUL characters and lone surrogates")
    if not isinstance(website, str) or len(website) > LONGEST["website"] or UNSTORABLE.search(website):
        row.refuse("wrong_type", f"website must be text of at most {LONGEST['website']} characters")
    if row.problems:
        return None
    length = len(actions) if isinstance(actions, list) and actions else None
    return TaskRecord(str(task_id), str(text), str(website), length)


def _convert(package: Package, folder: Path, report: ImportReport, progress: Progress, agent: str) -> list[Path]:
    convert_rows(package.path, folder, report, progress)
    return [folder] if any(folder.iterdir()) else []


FORMAT = Format(
    name="multimodal-mind2web",
    title="rows from Multimodal-Mind2Web",
    files="one .parquet, .jsonl or .jsonl.gz file",
    recognise=lambda package: package.path.is_file() and is_rows(package.path),
    convert=_convert,
    read_tasks=read_tasks,
)
