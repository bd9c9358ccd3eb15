"""Delete submissions in which nobody has worked, and benchmarks without submissions, completely or not at all.

The row and the events of a submission stay: see docs/decisions/0036-deleting-leaves-the-chain.md.
"""

from __future__ import annotations

import logging

from django.db import transaction
from django.db.models import Exists, F, OuterRef, ProtectedError

from annotation import access, clock, file_cleanup, screenshots
from annotation.models import (
    Activity,
    Assignment,
    Attachment,
    Benchmark,
    Draft,
    Membership,
    Person,
    PracticeAnswer,
    ResumableUpload,
    Screenshot,
    StateSnapshot,
    Step,
    Submission,
    Trajectory,
    Upload,
)
from annotation.models.people import lock_with_operators
from annotation.records import Problem
from annotation.workflow.archiving import DELETED, PRACTICE_SET_USED, record_benchmark
from annotation.workflow.guards import Conflict, Incomplete, Role, lock_submission, record, require_member

logger = logging.getLogger(__name__)

MOST_FILES = 5000  # deleted at once; the daily clean-up deletes those of larger submissions
AT_ONCE = 500  # digests in one query
WAIT = 10.0  # seconds for running imports, while a person waits
HAS_WORK = (
    "Somebody has worked in this submission: labels, reservations, reports, judge runs or other work is recorded. "
    "Archive it instead."
)


def delete_submission(person: Person, submission: Submission, name: str) -> None:
    """Delete trajectories, steps, known answers and files of a submission without recorded work.

    Its row and its events stay, archived. ``name`` must be the submission's, as a confirmation.
    """
    _require_name(name, str(submission))
    try:
        with file_cleanup.exclude_imports(WAIT):  # otherwise an import could name a screenshot that is deleted here
            with transaction.atomic():
                _lock_unused(person, submission)  # before anything is deleted
            sheets = _find_sheets(submission)
            _delete_caches(sheets)  # before the commit, because nothing finds them without their rows
            digests = _delete_rows(person, submission)
            _delete_files(digests)
    except TimeoutError as busy:
        raise Conflict("An import is running. Try again when it has ended.") from busy


def delete_benchmark(person: Person, benchmark: Benchmark, name: str) -> None:
    """Delete a benchmark that never had a submission, with its tasks, imported labels and records of uploads."""
    _require_name(name, str(benchmark))
    access.require_creator(person)
    with transaction.atomic():
        lock_with_operators(None)
        row = Benchmark.objects.select_for_update().get(pk=benchmark.pk)
        if row.submissions.exists():
            raise Conflict("A benchmark with submissions, even deleted ones, cannot be deleted. Archive it instead.")
        arriving = ResumableUpload.objects.filter(benchmark=row)
        unfinished = arriving.filter(offset__lt=F("length"), expires_at__gt=clock.now())
        if Upload.objects.filter(benchmark=row, finished_at=None).exists() or unfinished.exists():
            raise Conflict("An upload to this benchmark has not ended. Try again when it has ended.")
        try:
            Upload.objects.filter(benchmark=row).delete()
            arriving.delete()
            row.imported_labels.all().delete()
            record_benchmark(person, row, "benchmark_deleted", tasks=row.tasks.count())
            row.tasks.all().delete()
            row.delete()
        except ProtectedError as recorded:
            says = "It has entries, or its tasks have judgments, checks or rubrics. Archive it instead."
            raise Conflict(says) from recorded


def _require_name(given: str, name: str) -> None:
    if given.strip() != name:
        raise Incomplete([Problem("name_differs", f"Enter the name to confirm: {name}", "name")])


def _delete_rows(person: Person, submission: Submission) -> set[str]:
    """Delete the rows in one transaction; return the digests of the files that they named."""
    with transaction.atomic():
        of_submission = Trajectory.objects.filter(submission=submission)
        list(of_submission.order_by("pk").select_for_update().values_list("pk"))  # before the submission
        row, member = _lock_unused(person, submission)
        digests = _collect_digests(row)
        count = of_submission.count()
        try:
            of_submission.delete()
        except ProtectedError as recorded:
            raise Conflict(HAS_WORK) from recorded
        _delete_unused_screenshots(digests)
        row.uploads.all().delete()
        row.webhooks.all().delete()
        StateSnapshot.objects.filter(submission=row).delete()
        row.archived_at = row.deleted_at = clock.now()
        row.import_report, row.digest = None, f"deleted {row.pk}"  # the same package may be imported again
        row.save(update_fields=["archived_at", "deleted_at", "import_report", "digest"])
        record(row, member, "submission_deleted", trajectories=count)
    return digests


def _lock_unused(person: Person, submission: Submission) -> tuple[Submission, Membership]:
    """Lock the submission; raise Conflict if work is recorded in it, PermissionDenied if it is not the person's."""
    row = lock_submission(submission.pk)
    row.archived_at = None  # an archived one may be deleted
    member = require_member(person, row, Role.MAINTAINER)
    _require_unused(row)
    return row, member


def _require_unused(submission: Submission) -> None:
    if submission.deleted_at is not None:
        raise Conflict(DELETED)
    others = (submission.redactions, submission.questions, submission.spot_check_draws, submission.judge_runs)
    # Foreign keys refuse to delete other work. These rows would go with their trajectory.
    of_people = [model.objects.filter(trajectory__submission=submission) for model in (Draft, Activity, PracticeAnswer)]
    reserved = Assignment.objects.filter(trajectory__submission=submission)
    used = any(each.exists() for each in (*others, *of_people, reserved))
    if submission.frozen_at or submission.sample_of_id or used:
        raise Conflict(HAS_WORK)
    users = Submission.objects.filter(practice_set=submission).order_by("pk").values_list("pk", flat=True)
    if users:
        listed = ", ".join(map(str, users))
        raise Conflict(PRACTICE_SET_USED.format(listed))


def _collect_digests(submission: Submission) -> set[str]:
    shots = Screenshot.objects.filter(steps__trajectory__submission=submission)
    files = Attachment.objects.filter(trajectory__submission=submission)
    return {*shots.values_list("sha256", flat=True), *files.values_list("sha256", flat=True)}


def _delete_unused_screenshots(digests: set[str]) -> None:
    steps = Step.objects.filter(screenshot=OuterRef("pk"))
    pages = Attachment.objects.filter(sha256=OuterRef("sha256"))
    unused = Screenshot.objects.filter(~Exists(steps), ~Exists(pages))
    listed = sorted(digests)
    for start in range(0, len(listed), AT_ONCE):
        unused.filter(sha256__in=listed[start : start + AT_ONCE]).delete()


def _find_sheets(submission: Submission) -> list[str]:
    """Return the keys of the sheets of thumbnails of all trajectories."""
    keys: list[str] = []
    for trajectory in submission.trajectories.iterator():
        shown = [step.screenshot for step in trajectory.steps.select_related("screenshot").order_by("index")]
        starts = range(0, len(shown), screenshots.SHEET_STEPS)
        keys += [screenshots.sheet_key(shown[start : start + screenshots.SHEET_STEPS]) for start in starts]
    return keys


def _delete_caches(sheets: list[str]) -> None:
    try:
        screenshots.delete_renditions(sheets, screenshots.SHEETS)
    except screenshots.STORE_ERRORS as error:
        raise Conflict("The file store does not answer. Nothing was deleted. Try again.") from error


def _delete_files(digests: set[str]) -> None:
    if len(digests) > MOST_FILES:
        return
    try:
        screenshots.delete_unnamed(digests)
    except screenshots.STORE_ERRORS as error:
        logger.warning("The files of a deleted submission stay until the daily clean-up: %s", error)
