"""Import packages as submissions: all or nothing; importing the same bytes again changes nothing.

An import reads the files of its packages twice. The first pass checks everything and stores nothing. The second pass
stores the images, then writes all rows in one transaction. So memory holds texts and digests but at most one image, and
a rejected package leaves no trace.
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import IO, Any

from django.core.exceptions import PermissionDenied
from django.db import transaction

from annotation import quotas, screenshots
from annotation.file_cleanup import delete_files_on_failure
from annotation.formats import har
from annotation.formats.archive import Package, PackageError
from annotation.formats.documents import FormatError
from annotation.formats.packages import Layout, ReadTrajectory, find_layout, read_trajectories
from annotation.formats.printable import listing
from annotation.formats.registry import Progress, open_packages
from annotation.formats.trajectory_folder import SCREENSHOTS, is_image, media_type_of
from annotation.models import Agent, Attachment, Benchmark, Screenshot, Step, Submission, Task, Trajectory
from annotation.models.events import append, digest
from annotation.models.trajectories import seed_hash
from annotation.outages import Outage, find_outage
from annotation.records import (
    PACKAGE,
    AttachmentKind,
    AttachmentRecord,
    ImportReport,
    Problem,
    StepRecord,
    TrajectoryRecord,
)
from annotation.task_versions import TaskVersions, create_tasks, find_mixed_versions
from annotation.workflow import join_as_maintainer
from annotation.workflow.archiving import BENCHMARK_ARCHIVED
from annotation.workflow.erasing import lock_account

MAX_ATTACHMENT_BYTES = 64 * 1024 * 1024


class ImportStopped(Exception):
    """The import could not be finished for a reason outside the package (``outage``); nothing was saved."""

    outage: Outage = Outage.STORE

    @classmethod
    def from_error(cls, error: Exception, what: str = "The import stopped") -> ImportStopped:
        """Return the exception for one of `screenshots.STORE_ERRORS`; ``what`` has no full stop."""
        says = getattr(error, "strerror", None) or " ".join(str(error).split())
        stopped = cls(f"{what}: {says.rstrip('.')}. Nothing was saved.")
        stopped.outage = find_outage(error) or Outage.STORE
        return stopped


@dataclass(slots=True)
class ParsedPackage:
    """An open package and its trajectories that passed the first pass; ``digest`` is over these."""

    package: Package
    layout: Layout
    checked: list[Checked] = field(default_factory=list)

    @property
    def digest(self) -> str:
        return digest(sorted((c.record.task_id, c.digest) for c in self.checked))


@dataclass(slots=True)
class Checked:
    """A trajectory that passed the first pass, with facts about its files; attachments have SHA-256 and size."""

    record: TrajectoryRecord
    task: Task
    images: dict[str, screenshots.ImageFacts] = field(default_factory=dict)
    attachments: dict[str, tuple[AttachmentRecord, str, int]] = field(default_factory=dict)
    warnings: list[Problem] = field(default_factory=list)

    @property
    def digest(self) -> str:
        """SHA-256 of texts, steps and the digests of files.

        An empty address, status or file name counts as None, so the saved rows have the same digest.
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


def import_submission(path: Path, **given: Any) -> tuple[ImportReport, Submission | None]:
    """Import the only package of ``path``; see `import_all`. The submission is None if nothing was saved."""
    report, made = import_all(path, **given)
    return report, made[0] if made else None


def import_all(
    path: Path,
    *,
    benchmark: Benchmark,
    agent_name: str,
    maintainer: Any = None,
    keep_valid: bool = False,
    dry_run: bool = False,
    protocol_version: int = 1,
    process_labels: bool = False,
    create_tasks: bool = False,
    progress: Progress = lambda done, total: None,
    show_first: Callable[[Package, Checked], None] = lambda package, checked: None,
) -> tuple[ImportReport, list[Submission]]:
    """Import a submission from each package of `open_packages`: all of them, or none.

    The submissions are in the order of their attempts. There are none if the packages were rejected (the report says
    why) or after a dry run. ``show_first`` gets the first valid trajectory. With ``create_tasks``, tasks that the
    benchmark lacks are created. Raises ImportStopped if the disk or the store fails; then nothing was saved either.
    """
    name = agent_name.strip()
    options = ImportOptions(
        benchmark, name, maintainer, keep_valid, dry_run, protocol_version, process_labels, create_tasks, progress,
        show_first,
    )  # fmt: skip
    report = ImportReport()
    return report, _import(path, options, report)


@dataclass(frozen=True, slots=True)
class ImportOptions:
    benchmark: Benchmark
    agent_name: str
    maintainer: Any
    keep_valid: bool
    dry_run: bool
    protocol_version: int
    process_labels: bool
    create_tasks: bool
    progress: Progress
    show_first: Callable[[Package, Checked], None]


def _import(path: Path, options: ImportOptions, report: ImportReport) -> list[Submission]:
    if not 0 < len(options.agent_name) <= 200:
        report.reject(PACKAGE, Problem("agent_name", "Enter a name of 1 to 200 characters for the agent.", "agent"))
        return []
    try:
        with open_packages(path, report, options.progress, options.agent_name) as packages:
            parsed = [ParsedPackage(package, find_layout(package)) for package in packages]
            _check_all(parsed, options, report)
            valid = [each for each in parsed if each.checked]
            passed = [c.record.task_id for each in valid for c in each.checked]
            if valid:
                options.show_first(valid[0].package, valid[0].checked[0])
            if report.rejected and not options.keep_valid:
                report.valid = passed
                return []
            _require_room(Benchmark.objects.get(pk=options.benchmark.pk), valid, options)
            report.accepted = passed
            return _save(valid, options, report) if valid and not options.dry_run else []
    except PackageError as error:
        return _reject_package(report, error.problem)
    except PermissionDenied as error:  # the account was closed meanwhile
        return _reject_package(report, Problem("account_closed", str(error)))
    except screenshots.STORE_ERRORS as error:
        raise ImportStopped.from_error(error) from error


def _require_room(benchmark: Benchmark, packages: list[ParsedPackage], options: ImportOptions) -> None:
    """Raise PackageError if the benchmark is archived, or the files of new packages exceed its quota."""
    if benchmark.archived_at is not None:
        raise PackageError(Problem("benchmark_archived", BENCHMARK_ARCHIVED.format(benchmark)))
    if benchmark.quota_bytes is None:
        return
    sizes: dict[str, int] = {}
    for checked in (c for parsed in packages if _find_imported(options, parsed) is None for c in parsed.checked):
        sizes |= {image.sha256: image.size for image in checked.images.values()}
        sizes |= {sha256: size for _, sha256, size in checked.attachments.values()}
    if excess := quotas.find_excess(benchmark, sizes):
        raise PackageError(excess)


def _reject_package(report: ImportReport, problem: Problem) -> list[Submission]:
    report.accepted = []
    report.reject(PACKAGE, problem)
    return []


# --- first pass: check ---------------------------------------------------------------------------------------------


def _check_all(packages: list[ParsedPackage], options: ImportOptions, report: ImportReport) -> None:
    """Set ``checked`` of each package; the problems of the other trajectories go into the report."""
    tasks = TaskVersions(options.benchmark, create=options.create_tasks)
    total = sum(len(each.layout[0]) for each in packages)
    done = 0
    for parsed in packages:
        rejected: set[str] = set()
        for trajectory in read_trajectories(parsed.package, parsed.layout):
            checked = _check(parsed.package, tasks, trajectory, report)
            if checked is None:
                rejected.add(trajectory.task_id)
            else:
                parsed.checked.append(checked)
            done = min(done + (trajectory.task_id != PACKAGE), total)
            options.progress(done, total)
        mixed = find_mixed_versions(c.record for c in parsed.checked if c.record.task_id not in rejected)
        for task_id, problem in mixed:
            report.reject(task_id, problem)
            rejected.add(task_id)
        parsed.checked = [c for c in parsed.checked if c.record.task_id not in rejected]


def _check(package: Package, tasks: TaskVersions, found: ReadTrajectory, report: ImportReport) -> Checked | None:
    task_id, record, problems, warnings = found
    checked = None
    if record is not None:
        task, task_problems, task_warnings = tasks.match(record)
        images, image_problems = _check_images(package, record)
        problems = [*problems, *task_problems, *image_problems]
        if task is not None:
            warnings = [*warnings, *task_warnings, *_check_image_names(record, images)]
            checked = _check_attachments(package, record, task, images, warnings)
    report.warn(task_id, *warnings)
    if problems:
        report.reject(task_id, *problems)
        return None
    return checked


def _check_attachments(
    package: Package,
    record: TrajectoryRecord,
    task: Task,
    images: dict[str, screenshots.ImageFacts],
    warnings: list[Problem],
) -> Checked:
    if not record.task_text:  # answers come without it
        record = replace(record, task_text=task.text)
    checked = Checked(record, task, images, warnings=warnings)
    for attachment in record.attachments:
        try:
            sink = AttachmentSink()
            _read_attachment(package, record, attachment, sink)
            checked.attachments[attachment.path] = (attachment, sink.sha256, sink.size)
        except FormatError as error:
            checked.warnings.append(
                Problem("attachment_unreadable", f"{attachment.path} was ignored: {error}", attachment.path)
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
        where = image_path(record, name)
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
    return [Problem("screenshot_type_differs", says, image_path(record, differing[0]))]


def image_path(record: TrajectoryRecord, name: str) -> str:
    """Return the path in the package; the image of a cached page is named with its folder, a screenshot without."""
    inside = name if "/" in name else f"{SCREENSHOTS}/{name}"
    return f"{record.folder}/{inside}" if record.folder else inside


class AttachmentSink:
    """Compute size and digest of an attachment in parts, and copy it to ``file`` if there is one."""

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


def _read_attachment(
    package: Package, record: TrajectoryRecord, attachment: AttachmentRecord, sink: AttachmentSink
) -> None:
    """Write an attachment as it is stored: a network trace as redacted JSON, anything else unchanged."""
    path = f"{record.folder}/{attachment.path}" if record.folder else attachment.path
    is_trace = attachment.kind is AttachmentKind.NETWORK_TRACE
    with package.stream(path, har.LARGEST if is_trace else MAX_ATTACHMENT_BYTES) as stream:
        if is_trace:
            har.redact(stream, path, sink)
        else:
            shutil.copyfileobj(stream, sink)


# --- second pass: save ---------------------------------------------------------------------------------------------


@delete_files_on_failure()
def _save(packages: list[ParsedPackage], options: ImportOptions, report: ImportReport) -> list[Submission]:
    """Return the submissions of all packages, including those that were imported before."""
    for parsed in packages:
        for trajectory in parsed.checked if _find_imported(options, parsed) is None else ():
            _store_files(parsed.package, trajectory)
            options.progress(len(report.accepted), len(report.accepted))
    with transaction.atomic():
        if options.maintainer is not None:
            lock_account(options.maintainer)
        # Under the lock: of two imports, the second one counts the files of the first.
        benchmark = Benchmark.objects.select_for_update().get(pk=options.benchmark.pk)
        _require_room(benchmark, packages, options)
        create_tasks(benchmark, [c for parsed in packages for c in parsed.checked])
        rows: list[tuple[Submission, bool]] = []
        for parsed in packages:
            rows.append(_get_or_create(options, parsed, report, {row.pk for row, is_new in rows if is_new}))
        if len(rows) > 1:
            named = ", ".join(f"{made.pk} (attempt {made.attempt})" for made, _ in rows)
            report.warn(PACKAGE, Problem("several_submissions", f"These became {len(rows)} submissions: {named}."))
        for parsed, (submission, is_new) in zip(packages, rows, strict=True):
            if is_new:
                _write(submission, parsed.checked, options, report)
        return list(dict.fromkeys(submission for submission, _ in rows))


def _get_or_create(
    options: ImportOptions, parsed: ParsedPackage, report: ImportReport, beside: set[int]
) -> tuple[Submission, bool]:
    """Return the row of a package, and whether it is new; ``beside`` are the keys of those this import has created."""
    known = _find_imported(options, parsed)
    if known is not None:
        message = f"This file was already imported as submission {known.pk}. Nothing was changed."
        report.warn(PACKAGE, Problem("already_imported", message))
        return known, False
    agent, _ = Agent.objects.get_or_create(name=options.agent_name)
    earlier = Submission.objects.filter(benchmark=options.benchmark, agent=agent).order_by("-attempt").first()
    attempt = earlier.attempt + 1 if earlier else 1
    if earlier and earlier.pk not in beside:
        message = f"{agent} has a submission for this benchmark already; this one is attempt {attempt}."
        report.warn(PACKAGE, Problem("new_attempt", message))
    new = Submission(benchmark=options.benchmark, agent=agent, digest=parsed.digest, attempt=attempt)
    new.protocol_version, new.process_labels = options.protocol_version, options.process_labels
    new.save()
    return new, True


def _write(submission: Submission, checked: list[Checked], options: ImportOptions, report: ImportReport) -> None:
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
    if options.maintainer is not None:
        join_as_maintainer(submission, options.maintainer)


def _find_imported(options: ImportOptions, parsed: ParsedPackage) -> Submission | None:
    return Submission.objects.filter(
        benchmark=options.benchmark, agent__name=options.agent_name, digest=parsed.digest
    ).first()


def _store_files(package: Package, checked: Checked) -> None:
    """Store the original files. Raises PackageError if a file has changed since the first pass."""
    for name, facts in checked.images.items():
        path = image_path(checked.record, name)
        data = package.read(path, screenshots.MAX_BYTES)
        if hashlib.sha256(data).hexdigest() != facts.sha256:
            raise _file_changed(path)
        screenshots.keep_bytes(facts.sha256, data)
    for attachment, sha256, _ in checked.attachments.values():
        with tempfile.TemporaryFile(prefix="attachment-") as file:
            sink = AttachmentSink(file)
            try:
                _read_attachment(package, checked.record, attachment, sink)
            except FormatError as error:
                raise _file_changed(attachment.path) from error
            if sink.sha256 != sha256:
                raise _file_changed(attachment.path)
            file.seek(0)
            screenshots.keep_file(sha256, file)


def _file_changed(path: str) -> PackageError:
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
    images = _save_screenshots(checked)
    Step.objects.bulk_create(
        (_build_step(row, step, c, images) for row, c in zip(rows, checked, strict=True) for step in c.record.steps),
        batch_size=500,
    )
    Attachment.objects.bulk_create(
        Attachment(trajectory=row, kind=attachment.kind, name=path, sha256=sha256, size=size)
        for row, c in zip(rows, checked, strict=True)
        for path, (attachment, sha256, size) in c.attachments.items()
    )


def _save_screenshots(checked: list[Checked]) -> dict[str, int]:
    """Create the rows that are missing; return all primary keys by SHA-256."""
    # In one order: two imports that share new screenshots would otherwise deadlock.
    facts = dict(sorted({image.sha256: image for c in checked for image in c.images.values()}.items()))
    Screenshot.objects.bulk_create(
        (Screenshot(**asdict(image)) for image in facts.values()), batch_size=500, ignore_conflicts=True
    )
    known = list(facts)
    return {
        sha256: pk
        for start in range(0, len(known), 500)
        for sha256, pk in Screenshot.objects.filter(sha256__in=known[start : start + 500]).values_list("sha256", "pk")
    }


def _build_step(trajectory: Trajectory, step: StepRecord, checked: Checked, images: dict[str, int]) -> Step:
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
