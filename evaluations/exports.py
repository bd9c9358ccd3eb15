"""Submissions as files: find the missing parts of an export, and write an export whole or not at all.

The same submission always gives the same bytes: rows have the order of the submission, and nothing depends on the
clock. The formats themselves are in `exports_labels` and `exports_v2`.
"""

from __future__ import annotations

import filecmp
import os
import re
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from annotation import screenshots, store_checks
from annotation.formats.tasks import base_task_id
from annotation.models import SamplePlan, SampleStop, Submission, Task
from annotation.models.plans import find_to_label
from annotation.models.states import FINAL, State, with_state
from annotation.protocol import MINIMUM_LABELS
from annotation.records import Problem
from evaluations import exports_labels, exports_v2


class ExportFormat(StrEnum):
    HUMAN_LABEL = "human-label"
    LABELS = "labels"
    TRAJECTORIES_V2 = "trajectories-v2"


MEDIA_TYPES = {
    ExportFormat.HUMAN_LABEL: ("application/json", "json"),
    ExportFormat.LABELS: ("application/jsonl", "jsonl"),
    ExportFormat.TRAJECTORIES_V2: ("application/zip", "zip"),
}

NOT_FINAL = {
    State.IN_REVIEW: ("labels_missing", "has {t.label_count} of {required} labels"),
    State.DISPUTE: ("dispute_open", "the labels differ, and no adjudicator has decided"),
    State.FLAGGED: ("flag_open", "an annotator flagged it, and no adjudicator has decided"),
    State.SPOT_CHECK: ("spot_check_open", "was drawn for a spot check that is not done"),
    State.REOPENED: ("reopened", "was reopened, and no adjudicator has decided since"),
    State.AGREED: ("spot_checks_not_drawn", "the labels agree, and the spot checks are not drawn"),
}


class ExportRefused(Exception):
    """The submission is not ready for this export; ``problems`` lists all reasons."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__(" ".join(problem.message for problem in problems))
        self.problems = problems


class ExportStopped(Exception):
    """The file could not be written because of the machine; the message is one line, and no partial file is left."""


class OutputTaken(Exception):
    """The output exists and must not be replaced."""


@dataclass(frozen=True, slots=True)
class Export:
    """An export that may be written. A partial one is marked in the file, which lists everything in ``missing``."""

    submission: Submission
    format: ExportFormat
    missing: tuple[Problem, ...]
    warnings: tuple[Problem, ...] = ()

    @property
    def partial(self) -> bool:
        return bool(self.missing)

    @property
    def media_type(self) -> str:
        return MEDIA_TYPES[self.format][0]

    @property
    def file_name(self) -> str:
        """Return a name such as ``shops.Agent-1.human-label.partial.json``."""
        return file_name(self.submission, self.format, MEDIA_TYPES[self.format][1], partial=self.partial)

    def chunks(self) -> Iterator[bytes]:
        """Yield the file in pieces. Memory has one batch of trajectories; for human-label, the list of verdicts."""
        if self.format is ExportFormat.HUMAN_LABEL:
            return exports_labels.human_label(self.submission, self.missing)
        if self.format is ExportFormat.LABELS:
            return exports_labels.label_lines(self.submission, self.missing)
        files = exports_v2.members(self.submission, self.missing)
        return zipped(Entry(name, [data], compressed=name.endswith(".json")) for name, data in files)


def file_name(submission: Submission, kind: str, suffix: str, *, partial: bool) -> str:
    """Name a file of a submission with letters, digits, dots and dashes."""
    agent = re.sub(r"[^A-Za-z0-9_]+", "-", submission.agent.name).strip("-")[:80] or "agent"
    attempt = f".attempt-{submission.attempt}" if submission.attempt > 1 else ""
    return f"{submission.benchmark.slug}.{agent}{attempt}.{kind}{'.partial' if partial else ''}.{suffix}"


class Missing:
    """Problems for a page: their number, and those of each code, in words, as `exports_v2.Listed`, in that order."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self._count = len(problems)
        self.groups: dict[str, exports_v2.Listed] = {
            _words(code): exports_v2.Listed() for code in sorted({problem.code for problem in problems})
        }
        for problem in problems:
            self.groups[_words(problem.code)].add([problem])

    def __len__(self) -> int:
        return self._count


def _words(code: str) -> str:
    return code.replace("_", " ")


def missing_for_export(submission: Submission) -> list[Problem]:
    """Return everything that the protocol still requires, in a feasible order; ``where`` is the task id.

    Every task in the catalogue at the freeze must be covered. A replaced task has its id followed by a date, and counts
    as covered by a trajectory of any of its generations or versions.
    """
    problems = []
    if submission.required_labels < MINIMUM_LABELS:
        message = (
            f"The submission requires {submission.required_labels} labels; the protocol requires {MINIMUM_LABELS}."
        )
        problems.append(Problem("too_few_labels_required", message))
    columns = ("state", "adjudicating", "label_count", "task__external_id")
    trajectories = with_state(submission.trajectories.order_by("position")).values_list(*columns, named=True)
    present = set()
    for trajectory in trajectories.iterator():
        present.add(trajectory.task__external_id)
        if (problem := _unfinished(trajectory, submission.required_labels)) is not None:
            problems.append(problem)
    problems += find_not_covered(submission, present)
    if submission.frozen_at is None:
        problems.append(Problem("not_frozen", "The submission is not frozen: its labels could still change."))
    return problems


def describe_sample(submission: Submission) -> list[Problem]:
    """Return the statement that verdicts are of a planned sample, for files of verdicts; none without a plan."""
    if not SamplePlan.objects.filter(submission=submission).exists():
        return []
    labelled, total = find_to_label(submission.trajectories.all()).count(), submission.trajectories.count()
    stopped = SampleStop.objects.filter(plan__submission=submission).exists()
    why = "labelling of the sample stopped early" if stopped else "the sample plan drew no others"
    says = f"Estimated from the labels of {labelled:,} of {total:,} trajectories: {why}."
    return [Problem("planned_sample", says)]


def _unfinished(trajectory: Any, required: int) -> Problem | None:
    state, task_id = State(trajectory.state), trajectory.task__external_id
    if trajectory.adjudicating:
        return Problem("adjudication_open", f"{task_id}: an adjudicator has opened it and not decided.", task_id)
    if state in (*FINAL, State.NOT_DRAWN):
        return None
    code, says = NOT_FINAL[state]
    return Problem(code, f"{task_id}: {says.format(t=trajectory, required=required)}.", task_id)


def find_not_covered(submission: Submission, present: set[str]) -> list[Problem]:
    """Return a problem for each task of the benchmark that is not among the ids of ``present`` ones."""
    covered = {base_task_id(task_id) for task_id in present}
    tasks = Task.objects.filter(benchmark=submission.benchmark_id)
    if submission.frozen_at is not None:
        tasks = tasks.filter(created_at__lte=submission.frozen_at)
    latest = {base_task_id(task_id): task_id for task_id in tasks.order_by("pk").values_list("external_id", flat=True)}
    return [
        Problem("task_not_covered", f"{task_id}: the submission has no trajectory for this task.", task_id)
        for base, task_id in latest.items()
        if base not in covered
    ]


def prepare(
    submission: Submission, export_format: ExportFormat, *, partial: bool = False, check_files: bool = False
) -> Export:
    """Return the export, or raise ExportRefused with all reasons. ``partial`` exports the final part and lists the
    rest.

    Stored files in the export are read and compared with their digests. With ``check_files``, the other formats also
    read the submission's files, and warn of damaged ones.
    """
    missing = missing_for_export(submission)
    warnings: list[Problem] = []
    if export_format is ExportFormat.TRAJECTORIES_V2:
        unconvertible, warnings = exports_v2.survey(submission)
        missing += unconvertible
        missing += store_checks.check_submission(submission, exports_v2.stored_digests(submission))
    elif check_files:
        warnings = store_checks.check_submission(submission)
    if missing and not partial:
        raise ExportRefused(missing)
    if export_format is not ExportFormat.TRAJECTORIES_V2:
        missing += describe_sample(submission)
    return Export(submission, export_format, tuple(missing), tuple(warnings))


def write(export: Export, output: Path) -> None:
    """Write an export: a file, or for trajectories-v2 a folder unless ``output`` ends in .zip.

    Everything goes to a temporary name in the same folder first. A file is replaced; an existing folder must be empty
    or contain exactly this export already (OutputTaken otherwise). Raises ExportStopped when the disk or the store
    fails.
    """
    as_folder = export.format is ExportFormat.TRAJECTORIES_V2 and output.suffix.lower() != ".zip"
    if not as_folder:
        write_file(export.chunks(), output)
        return
    write_folder(lambda folder: _fill(folder, exports_v2.members(export.submission, export.missing)), output)


def write_folder(fill: Callable[[Path], None], output: Path) -> None:
    """Write a folder whole or not at all; ``fill`` gets an empty one. Raises as `write`."""
    with _stopping(output):
        _write_folder(fill, output)


def write_file(chunks: Iterable[bytes], output: Path) -> None:
    """Write a file whole or not at all; a regular file of that name is replaced. Raises as `write`."""
    with _stopping(output):
        handle, name = tempfile.mkstemp(dir=output.parent, prefix=".export-")
        temporary = Path(name)
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.writelines(chunks)
                stream.flush()
                os.fsync(stream.fileno())
            temporary.chmod(0o644)
            temporary.replace(output)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


@contextmanager
def _stopping(output: Path) -> Iterator[None]:
    """Convert errors of the machine into one line."""
    if output.exists() and not output.is_file() and not output.is_dir():
        raise OutputTaken(f"{output} is not a regular file.")
    if not output.parent.is_dir():
        raise ExportStopped(f"{output} was not written: the folder {output.parent} does not exist.")
    try:
        yield
    except screenshots.STORE_ERRORS as error:
        if not isinstance(error, OSError):
            raise ExportStopped(f"{output} was not written: the image store does not answer ({error}).") from error
        cause = f"{error.strerror} ({error.filename})" if error.strerror and error.filename else error.strerror or error
        raise ExportStopped(f"{output} was not written: {cause}.") from error


def _fill(folder: Path, files: Iterable[tuple[str, bytes]]) -> None:
    for name, data in files:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def _write_folder(fill: Callable[[Path], None], output: Path) -> None:
    # In a subfolder, because mkdtemp sets restrictive permissions.
    with tempfile.TemporaryDirectory(dir=output.parent, prefix=".export-", ignore_cleanup_errors=True) as holder:
        made = Path(holder, "export")
        made.mkdir()
        fill(made)
        if output.is_dir() and any(output.iterdir()):
            if not _same(made, output):
                raise OutputTaken(f"{output} exists and is not an earlier export. Choose a new folder.")
            return
        if output.is_dir():
            output.rmdir()
        shutil.move(made, output)


def _same(left: Path, right: Path) -> bool:
    files = {path.relative_to(left) for path in left.rglob("*") if path.is_file()}
    if files != {path.relative_to(right) for path in right.rglob("*") if path.is_file()}:
        return False
    return all(filecmp.cmp(left / name, right / name, shallow=False) for name in files)


# --- zip files --------------------------------------------------------------------------------------------------------

EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest time in a zip


@dataclass(frozen=True, slots=True)
class Entry:
    """A file of a zip; ``size`` in bytes is only needed over 2 GB, where the zip format differs."""

    name: str
    chunks: Iterable[bytes]
    compressed: bool = False
    size: int = 0


def zipped(entries: Iterable[Entry]) -> Iterator[bytes]:
    stream = _Stream()
    with zipfile.ZipFile(stream, "w") as package:
        for entry in entries:
            with package.open(_build_info(entry), "w") as member:
                for chunk in entry.chunks:
                    member.write(chunk)
                    yield stream.taken()
            yield stream.taken()
    yield stream.taken()


def _build_info(entry: Entry) -> zipfile.ZipInfo:
    member = zipfile.ZipInfo(entry.name, EPOCH)
    member.external_attr = 0o644 << 16
    member.create_system = 3  # independent of the operating system
    member.compress_type = zipfile.ZIP_DEFLATED if entry.compressed else zipfile.ZIP_STORED
    member.file_size = entry.size
    return member


class _Stream:
    """Output of zipfile; the written part can be taken at any time, so it cannot seek back."""

    def __init__(self) -> None:
        self._written = bytearray()

    def write(self, data: bytes, /) -> int:
        self._written += data
        return len(data)

    def close(self) -> None:
        """Keep the written bytes: they can still be taken."""

    def flush(self) -> None:
        """Do nothing: there is no buffer."""

    def taken(self) -> bytes:
        data = bytes(self._written)
        self._written.clear()
        return data
