"""Records into rows: checked whole, then written all or nothing; the same bytes twice change nothing.

An import reads its package twice. The first pass checks everything and stores nothing; the second one, if there is
something to take, writes the images and then all rows in one transaction. So memory holds texts and digests, never
more than one image, and a refused package leaves no trace.
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any

from django.core.exceptions import PermissionDenied
from django.db import transaction

from annotation import screenshots
from annotation.file_cleanup import delete_files_on_failure
from annotation.formats import foreign, har
from annotation.formats.archive import Package, PackageError, open_package
from annotation.formats.documents import FormatError
from annotation.formats.online_mind2web import Reading as Found
from annotation.formats.online_mind2web import find_folders, read_trajectories
from annotation.formats.printable import listing
from annotation.formats.trajectory_folder import SCREENSHOTS, is_image, media_type_of
from annotation.models import Agent, Attachment, Benchmark, Screenshot, Step, Submission, Task, Trajectory
from annotation.models.events import append, digest
from annotation.models.trajectories import seed_hash
from annotation.outages import Outage, find_outage
from annotation.records import AttachmentKind, AttachmentRecord, ImportReport, Problem, StepRecord, TrajectoryRecord
from annotation.task_versions import TaskVersions, find_mixed_versions
from annotation.workflow import found
from annotation.workflow.erasing import lock_account

MAX_ATTACHMENT_BYTES = 64 * 1024 * 1024
PACKAGE = ""  # the task id under which a report lists what concerns the package as a whole

Progress = Callable[[int, int], None]


class ImportStopped(Exception):
    """The import could not be finished for a reason outside the package (``outage``); nothing was saved."""

    outage: Outage = Outage.STORE


def stopped(error: Exception, what: str = "The import stopped and kept nothing") -> ImportStopped:
    """One of `screenshots.STORE_ERRORS` in one line."""
    says = getattr(error, "strerror", None) or " ".join(str(error).split())
    found = ImportStopped(f"{what}: {says.rstrip('.')}.")
    found.outage = find_outage(error) or Outage.STORE
    return found


@dataclass(slots=True)
class Reading:
    """An open package and what of it passed the first pass; ``digest`` is over all of that."""

    package: Package
    checked: list[Checked] = field(default_factory=list)

    @property
    def digest(self) -> str:
        return digest(sorted((c.record.task_id, c.digest) for c in self.checked))


@dataclass(slots=True)
class Checked:
    """A trajectory that passed the first pass: its record, task, and what its files were found to be."""

    record: TrajectoryRecord
    task: Task
    images: dict[str, screenshots.ImageFacts] = field(default_factory=dict)
    attachments: dict[str, tuple[AttachmentRecord, str, int]] = field(default_factory=dict)
    warnings: list[Problem] = field(default_factory=list)

    @property
    def digest(self) -> str:
        """SHA-256 over everything that was taken: texts, steps, and the digests of the files.

        An empty address, status or file name is none, as in the rows: so rows have the same digest.
        """
        return digest(
            {
                "task_id": self.record.task_id,
                "task": self.record.task_text,
                "final_answer": self.record.final_answer,
                "reference_length": self.record.reference_length,
                "format": self.record.source_format,
                "steps": [
                    [s.action, s.thought, s.url or None, s.status or None, s.screenshot or None, self._image(s)]
                    for s in self.record.steps
                ],
                "attachments": sorted((path, sha) for path, (_, sha, _) in self.attachments.items()),
            }
        )

    def _image(self, step: StepRecord) -> str | None:
        return self.images[step.screenshot].sha256 if step.screenshot in self.images else None


def import_submission(
    path: Path,
    *,
    benchmark: Benchmark,
    agent_name: str,
    maintainer: Any = None,
    keep_valid: bool = False,
    dry_run: bool = False,
    progress: Progress = lambda done, total: None,
) -> tuple[ImportReport, Submission | None]:
    """Import one folder or zip of trajectories as a submission of an agent.

    The submission is None when nothing was taken: refused (the report says why), or a dry run. Raises ImportStopped
    when the disk or the store fails, and then nothing was taken either.
    """
    wishes = Wishes(benchmark, agent_name, maintainer, keep_valid, dry_run, progress)
    report = ImportReport()
    made = _import([path], wishes, report)
    return report, made[0] if made else None


def import_all(
    path: Path,
    *,
    benchmark: Benchmark,
    agent_name: str,
    maintainer: Any = None,
    keep_valid: bool = False,
    dry_run: bool = False,
    progress: Progress = lambda done, total: None,
) -> tuple[ImportReport, list[Submission]]:
    """Import whatever `foreign.packages` makes of ``path``: a submission for each of its packages, all or none.

    The submissions are in the order of their attempts; empty where nothing was taken. Raises as `import_submission`.
    """
    wishes = Wishes(benchmark, agent_name, maintainer, keep_valid, dry_run, progress)
    report = ImportReport()
    try:
        with foreign.packages(path, report, progress, agent_name.strip()) as paths:
            return report, _import(paths, wishes, report)
    except screenshots.STORE_ERRORS as error:
        raise stopped(error) from error


@dataclass(frozen=True, slots=True)
class Wishes:
    """What an import was asked to do, whatever it reads."""

    benchmark: Benchmark
    agent_name: str
    maintainer: Any
    keep_valid: bool
    dry_run: bool
    progress: Progress


def _import(paths: list[Path], wishes: Wishes, report: ImportReport) -> list[Submission]:
    if not wishes.agent_name.strip() or len(wishes.agent_name.strip()) > 200:
        report.reject(PACKAGE, Problem("agent_name", "Give the agent a name of 1 to 200 characters.", "agent"))
        return []
    try:
        with ExitStack() as opened:
            readings = [Reading(opened.enter_context(open_package(path))) for path in paths]
            _check_all(readings, wishes, report)
            good = [reading for reading in readings if reading.checked]
            passed = [c.record.task_id for reading in good for c in reading.checked]
            if report.rejected and not wishes.keep_valid:
                report.valid = passed
                return []
            report.accepted = passed
            return _take(good, wishes, report) if good and not wishes.dry_run else []
    except PackageError as error:
        return _refused(report, error.problem)
    except PermissionDenied as error:  # who uploaded it is gone
        return _refused(report, Problem("account_closed", str(error)))
    except screenshots.STORE_ERRORS as error:
        raise stopped(error) from error


def _refused(report: ImportReport, problem: Problem) -> list[Submission]:
    """The package as a whole, after all: nothing of it was taken."""
    report.accepted = []
    report.reject(PACKAGE, problem)
    return []


# --- first pass: check ---------------------------------------------------------------------------------------------


def _check_all(readings: list[Reading], wishes: Wishes, report: ImportReport) -> None:
    """Fills in what of each package can be taken; what cannot goes into the report."""
    tasks = TaskVersions(wishes.benchmark)
    total = sum(len(find_folders(reading.package)[0]) for reading in readings)
    done = 0
    for reading in readings:
        for one in read_trajectories(reading.package):
            checked = _check(reading.package, tasks, one, report)
            if checked is not None:
                reading.checked.append(checked)
            done += one[0] != PACKAGE
            wishes.progress(done, total)
        mixed = find_mixed_versions(checked.record for checked in reading.checked)
        for task_id, problem in mixed:
            report.reject(task_id, problem)
        refused = {task_id for task_id, _ in mixed}
        reading.checked = [checked for checked in reading.checked if checked.record.task_id not in refused]


def _check(package: Package, tasks: TaskVersions, found: Found, report: ImportReport) -> Checked | None:
    task_id, record, found_problems, warnings = found
    problems, checked = list(found_problems), None
    report.warn(task_id, *warnings)
    if record is not None:
        checked = _check_one(package, tasks, record, problems)
        report.warn(task_id, *(checked.warnings if checked else []))
    if problems:
        report.reject(task_id, *problems)
        return None
    if checked is not None:
        checked.warnings = [*warnings, *checked.warnings]
    return checked


def _check_one(
    package: Package, tasks: TaskVersions, record: TrajectoryRecord, problems: list[Problem]
) -> Checked | None:
    task, found_problems, warnings = tasks.match(record)
    problems.extend(found_problems)
    images, image_problems = _check_images(package, record)
    problems.extend(image_problems)
    warnings += _check_image_names(record, images)
    if task is None:
        return None
    if not record.task_text:  # answers come without it
        record = replace(record, task_text=task.text)
    checked = Checked(record, task, images, warnings=warnings)
    for attachment in record.attachments:
        try:
            stored = Stored()
            _read_attachment(package, record, attachment, stored)
            checked.attachments[attachment.path] = (attachment, stored.sha256, stored.size)
        except (PackageError, FormatError) as error:
            checked.warnings.append(
                Problem("attachment_unreadable", f"{attachment.path} was left out: {error}", attachment.path)
            )
    return checked


def _check_images(
    package: Package, record: TrajectoryRecord
) -> tuple[dict[str, screenshots.ImageFacts], list[Problem]]:
    images: dict[str, screenshots.ImageFacts] = {}
    problems: dict[str, Problem] = {}
    pages = [one.path for one in record.attachments if one.kind is AttachmentKind.CACHED_PAGE and is_image(one.path)]
    for name in [*(step.screenshot for step in record.steps), *pages]:
        if name is None or name in images or name in problems:
            continue
        where = _image_path(record, name)
        try:
            images[name] = screenshots.inspect(package.read(where, screenshots.MAX_BYTES))
        except screenshots.ScreenshotError as error:
            problems[name] = Problem(error.problem.code, f"{name} {error.problem.message}.", where)
        except PackageError as error:
            problems[name] = error.problem
    return images, list(problems.values())


def _check_image_names(record: TrajectoryRecord, images: dict[str, screenshots.ImageFacts]) -> list[Problem]:
    """Return a warning if the suffix of a file name does not match the type of the content."""
    differing = [name for name, facts in images.items() if media_type_of(name) != facts.media_type]
    if not differing:
        return []
    named = listing([f"{name} is {images[name].media_type}" for name in differing])
    says = f"The suffix of the name does not match the content: {named}."
    return [Problem("screenshot_type_differs", says, _image_path(record, differing[0]))]


def _image_path(record: TrajectoryRecord, name: str) -> str:
    """Where a picture lies: a screenshot in its folder, the picture of a cached page where its path says."""
    inside = name if "/" in name else f"{SCREENSHOTS}/{name}"
    return f"{record.folder}/{inside}" if record.folder else inside


class Stored:
    """Takes what is stored of an attachment, bit by bit: into a file where there is one, else only its digest."""

    def __init__(self, file: IO[bytes] | None = None) -> None:
        self.size = 0
        self._file = file
        self._hash = hashlib.sha256()

    @property
    def sha256(self) -> str:
        return self._hash.hexdigest()

    def write(self, data: bytes, /) -> None:
        self._hash.update(data)
        self.size += len(data)
        if self._file is not None:
            self._file.write(data)


def _read_attachment(package: Package, record: TrajectoryRecord, attachment: AttachmentRecord, stored: Stored) -> None:
    """What is stored of an attachment: a network trace as redacted JSON whatever its form, all else as it is."""
    path = f"{record.folder}/{attachment.path}" if record.folder else attachment.path
    is_trace = attachment.kind is AttachmentKind.NETWORK_TRACE
    with package.stream(path, har.LARGEST if is_trace else MAX_ATTACHMENT_BYTES) as stream:
        if is_trace:
            har.redact(stream, path, stored)
        else:
            shutil.copyfileobj(stream, stored)


# --- second pass: take ---------------------------------------------------------------------------------------------


@delete_files_on_failure()
def _take(readings: list[Reading], wishes: Wishes, report: ImportReport) -> list[Submission]:
    """The submissions of all packages, those that were there already among them."""
    known = [_already_there(wishes, reading) for reading in readings]
    for reading, there in zip(readings, known, strict=True):
        for trajectory in reading.checked if there is None else ():
            _keep_files(reading.package, trajectory)
            wishes.progress(len(report.accepted), len(report.accepted))
    with transaction.atomic():
        if wishes.maintainer is not None:
            lock_account(wishes.maintainer)
        Benchmark.objects.select_for_update().get(pk=wishes.benchmark.pk)
        rows: list[tuple[Submission, bool]] = []
        for reading in readings:
            rows.append(_submission(wishes, reading, report, {row.pk for row, is_new in rows if is_new}))
        if len(rows) > 1:
            named = ", ".join(f"{made.pk} (attempt {made.attempt})" for made, _ in rows)
            report.warn(PACKAGE, Problem("several_submissions", f"These became {len(rows)} submissions: {named}."))
        for reading, (submission, is_new) in zip(readings, rows, strict=True):
            if is_new:
                _write(submission, reading.checked, wishes, report)
        return list(dict.fromkeys(submission for submission, _ in rows))


def _submission(wishes: Wishes, reading: Reading, report: ImportReport, beside: set[int]) -> tuple[Submission, bool]:
    """The row of a package, and whether it is new; ``beside`` are the keys of what this import has made already."""
    known = _already_there(wishes, reading)
    if known is not None:
        message = f"These very bytes are submission {known.pk} already; nothing was changed."
        report.warn(PACKAGE, Problem("already_imported", message))
        return known, False
    return _new_submission(wishes.benchmark, wishes.agent_name.strip(), reading.digest, report, beside), True


def _write(submission: Submission, checked: list[Checked], wishes: Wishes, report: ImportReport) -> None:
    _write_trajectories(submission, checked)
    submission.import_report = report.as_json()
    submission.save(update_fields=["import_report"])
    append(
        submission,
        "imported",
        agent=submission.agent.name,
        benchmark=submission.benchmark.slug,
        attempt=submission.attempt,
        trajectories={c.record.task_id: c.digest for c in checked},
        report=digest(submission.import_report),
        report_kept=True,
        next_seed=seed_hash(submission.spot_check_seed),
    )
    if wishes.maintainer is not None:
        found(submission, wishes.maintainer)


def _already_there(wishes: Wishes, reading: Reading) -> Submission | None:
    return Submission.objects.filter(
        benchmark=wishes.benchmark, agent__name=wishes.agent_name.strip(), digest=reading.digest
    ).first()


def _new_submission(
    benchmark: Benchmark, agent_name: str, whole: str, report: ImportReport, beside: set[int]
) -> Submission:
    agent, _ = Agent.objects.get_or_create(name=agent_name)
    earlier = Submission.objects.filter(benchmark=benchmark, agent=agent).order_by("-attempt").first()
    attempt = earlier.attempt + 1 if earlier else 1
    if earlier and earlier.pk not in beside:
        message = f"{agent_name} has a submission for this benchmark already; this one is attempt {attempt}."
        report.warn(PACKAGE, Problem("new_attempt", message))
    return Submission.objects.create(benchmark=benchmark, agent=agent, digest=whole, attempt=attempt)


def _keep_files(package: Package, checked: Checked) -> None:
    """Write the originals; a file that changed between the passes is refused, not taken unchecked."""
    for name, facts in checked.images.items():
        path = _image_path(checked.record, name)
        data = package.read(path, screenshots.MAX_BYTES)
        _same(data, facts.sha256, path)
        screenshots.keep_bytes(facts.sha256, data)
    for attachment, sha256, _ in checked.attachments.values():
        with tempfile.TemporaryFile(prefix="attachment-") as file:
            stored = Stored(file)
            try:
                _read_attachment(package, checked.record, attachment, stored)
            except FormatError as error:
                raise _changed(attachment.path) from error
            if stored.sha256 != sha256:
                raise _changed(attachment.path)
            file.seek(0)
            screenshots.keep_file(sha256, file)


def _same(data: bytes, sha256: str, path: str) -> None:
    if hashlib.sha256(data).hexdigest() != sha256:
        raise _changed(path)


def _changed(path: str) -> PackageError:
    return PackageError(Problem("changed_while_reading", f"{path} changed while it was being imported.", path))


def _write_trajectories(submission: Submission, checked: list[Checked]) -> None:
    rows = Trajectory.objects.bulk_create(
        Trajectory(
            submission=submission,
            task=c.task,
            position=position,
            task_text=c.record.task_text,
            final_answer=c.record.final_answer,
            reference_length=c.record.reference_length,
            source_format=c.record.source_format,
            digest=c.digest,
            warnings=[w.as_json() for w in c.warnings],
            open_slots=submission.required_labels,
        )
        for position, c in enumerate(checked)
    )
    images = _screenshot_rows(checked)
    Step.objects.bulk_create(
        (_step_row(row, step, c, images) for row, c in zip(rows, checked, strict=True) for step in c.record.steps),
        batch_size=500,
    )
    Attachment.objects.bulk_create(
        Attachment(trajectory=row, kind=attachment.kind, name=path, sha256=sha256, size=size)
        for row, c in zip(rows, checked, strict=True)
        for path, (attachment, sha256, size) in c.attachments.items()
    )


def _screenshot_rows(checked: list[Checked]) -> dict[str, int]:
    """The primary keys of the screenshots by SHA-256, made where they are new."""
    # In one order: two imports that share new screenshots would otherwise wait for each other's rows.
    facts = dict(sorted({image.sha256: image for c in checked for image in c.images.values()}.items()))
    Screenshot.objects.bulk_create(
        (
            Screenshot(sha256=f.sha256, media_type=f.media_type, width=f.width, height=f.height, size=f.size)
            for f in facts.values()
        ),
        batch_size=500,
        ignore_conflicts=True,
    )
    known = list(facts)
    return {
        sha256: pk
        for start in range(0, len(known), 500)
        for sha256, pk in Screenshot.objects.filter(sha256__in=known[start : start + 500]).values_list("sha256", "pk")
    }


def _step_row(trajectory: Trajectory, step: StepRecord, checked: Checked, images: dict[str, int]) -> Step:
    image = checked.images.get(step.screenshot or "")
    return Step(
        trajectory=trajectory,
        index=step.index,
        action=step.action,
        thought=step.thought,
        url=step.url or "",
        status=step.status or "",
        screenshot_id=images[image.sha256] if image else None,
        file_name=step.screenshot or "",
        click_x=step.click.x if step.click else None,
        click_y=step.click.y if step.click else None,
        warnings=[w.as_json() for w in step.warnings],
    )
