"""Create the files of one freeze for sending: labels, trajectories and the evidence bundle, all of them or none.

Each file is written by its export, and read again by the product's own checker. The verifier checks the bundle, the
reader of packages checks the trajectories, and the labels must be the bytes that the verified bundle contains.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from django.core.files import File
from django.core.files.storage import default_storage
from django.db import IntegrityError, transaction
from django.db.models import QuerySet

from annotation import arrivals, clock, ingest, redactions, screenshots, store_checks
from annotation.formats import scratch
from annotation.ingest import ImportStopped
from annotation.models import Person, SamplePlan, Submission
from annotation.models.events import digest, instant
from annotation.records import Problem
from annotation.workflow import Conflict
from evaluations import exports, exports_v2, signing
from evaluations.evidence import verification, writing
from evaluations.evidence.trajectories import stored_size
from evaluations.exports import ExportFormat, ExportRefused, ExportStopped
from evaluations.models import Delivery
from evaluations.verifier.checking import Given
from evaluations.verifier.findings import Result
from evaluations.verifier.rules import CLAIMS
from evaluations.verifier.values import Refused

FOLDER = "deliveries"
STORED_FOR = timedelta(days=7)  # the files can be created again at any time
PARTS = ("labels", "trajectories", "evidence")
STEPS = 100  # of the progress of each part: half for creating, half for checking
MOST_PROBLEMS = 200  # that the page lists
LABELS_IN_BUNDLE = "human-label.json"
LABELS_CLAIM = "export"  # of the verifier: the labels have the format, and the verdicts of the freeze
CHANGED = Problem(
    "freeze_changed",
    "The submission was changed, unfrozen or redacted while the files were created. Check it, and create them again.",
)


def find_key(submission: Submission) -> str:
    """Return what identifies the freeze and the redactions in its files; "" before the freeze."""
    frozen_at = Submission.objects.values_list("frozen_at", flat=True).get(pk=submission.pk)
    return digest([instant(frozen_at), redactions.map_redacted(submission)]) if frozen_at else ""


def find_missing(submission: Submission, *, converted: bool) -> list[Problem]:
    """Return what prevents the files, as far as it is known without reading the stored files.

    ``converted``: there are files of this freeze, so every trajectory can be converted and need not be read. Of a
    large submission, only the first trajectories are read.
    """
    unconvertible = [] if converted else exports_v2.summarise(submission)[0].first
    damaged = store_checks.find_known_damage(submission)
    return [*find_never(submission), *exports.missing_for_export(submission), *unconvertible, *damaged]


def find_never(submission: Submission) -> list[Problem]:
    """Return why the files can never be sent: a leaderboard ranks by the verdicts on all tasks. Nothing cures it."""
    planned = SamplePlan.objects.filter(submission=submission).exists()
    return [Problem("planned_sample", SamplePlan.NOT_SENT)] if planned else []


def request(
    person: Person, submission: Submission, send: Callable[[str], Any], *, with_screenshots: bool, accept_names: bool
) -> Delivery:
    """Queue the creation of the files, and return its row; the running one if there is one. Conflict if not frozen."""
    key = find_key(submission)
    if not key:
        raise Conflict("The submission is not frozen. Freeze it, then create the files.")
    with suppress(IntegrityError), transaction.atomic():
        made = Delivery.objects.create(
            submission=submission,
            requested_by=person,
            key=key,
            with_screenshots=with_screenshots,
            accept_names=accept_names,
            heartbeat_at=clock.now(),
        )
        transaction.on_commit(lambda: send(str(made.pk)), robust=True)
        return made
    running = Delivery.objects.filter(arrivals.OPEN, submission=submission).first()
    if running is None:
        raise Conflict("Somebody has cancelled the files that were being created. Create them again.")
    if (running.with_screenshots, running.accept_names) != (with_screenshots, accept_names):
        raise Conflict("The files are already being created with other options. Wait for them, or cancel them.")
    return running


def cancel(submission: Submission) -> None:
    """Delete the running request; its worker stops at the next step and leaves no files."""
    Delivery.objects.filter(arrivals.OPEN, submission=submission).delete()


def find_latest(submission: Submission) -> tuple[Delivery | None, Delivery | None]:
    """Return the newest request, and the newest one that has files."""
    rows = list(Delivery.objects.filter(submission=submission).order_by("-created_at"))
    return next(iter(rows), None), next((row for row in rows if row.files), None)


def find_expiry(delivery: Delivery) -> datetime:
    return (delivery.finished_at or delivery.created_at) + STORED_FOR


def is_current(delivery: Delivery) -> bool:
    """Return whether the files are those of the present freeze and redactions, and still stored."""
    return find_key(delivery.submission) == delivery.key and find_expiry(delivery) > clock.now()


# --- the job ---------------------------------------------------------------------------------------------------------


class NotCreated(arrivals.ArrivalFailed):
    """There will be no files; ``problems`` are the reasons."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__(problems[0].code, problems[0].message)
        self.problems = problems


def process(delivery: Delivery) -> None:
    """Create, check and store the files of a row that `arrivals.claim` returned; otherwise save the reasons.

    Raises OperationalError and InterfaceError if the database was unavailable: then the row stays in the queue.
    """
    stored: list[dict[str, Any]] = []
    try:
        with arrivals.supervise(delivery):
            _create(delivery, stored)
        arrivals.finish(delivery, files=stored)
    except arrivals.ArrivalFailed as ended:
        _delete_files(stored)
        problems = ended.problems if isinstance(ended, NotCreated) else [Problem(ended.code, str(ended))]
        with suppress(arrivals.ArrivalLost):
            arrivals.finish(delivery, problems=[each.as_json() for each in problems[:MOST_PROBLEMS]])
    except arrivals.ArrivalLost:
        _delete_files(stored)
    except BaseException:
        _delete_files(stored)
        raise
    else:
        _forget(Delivery.objects.filter(submission=delivery.submission_id).exclude(pk=delivery.pk))


def _create(delivery: Delivery, stored: list[dict[str, Any]]) -> None:
    """Append a description of each file to ``stored`` when the file is in the store."""
    submission = Submission.objects.select_related("agent", "benchmark").get(pk=delivery.submission_id)
    _require_key(delivery)
    progress = _Progress(delivery)
    with _refusing(), scratch.folder("delivery") as folder:
        labels = _write(exports.prepare(submission, ExportFormat.HUMAN_LABEL), folder)
        progress.end(0)
        package, of_package = _write_package(submission, folder, progress)
        bundle, of_bundle = _write_bundle(delivery, submission, folder, progress)
        with zipfile.ZipFile(bundle) as opened:
            if opened.read(LABELS_IN_BUNDLE) != labels.read_bytes():
                raise NotCreated([CHANGED])
        of_labels = {
            "checks": len(json.loads(labels.read_bytes())),
            "failed": [title for title in of_bundle["failed"] if title == CLAIMS[LABELS_CLAIM]],
        }
        found = ((labels, of_labels), (package, of_package), (bundle, of_bundle))
        for part, (path, facts) in zip(PARTS, found, strict=True):
            with path.open("rb") as file:
                sha256 = hashlib.file_digest(file, "sha256").hexdigest()
                file.seek(0)
                name = default_storage.save(f"{FOLDER}/{delivery.pk}.{delivery.tries}.{part}", File(file))
            stored.append({"part": part, "name": path.name, "size": path.stat().st_size, "sha256": sha256, **facts})
            stored[-1]["stored_as"] = name
    _require_key(delivery)


def _require_key(delivery: Delivery) -> None:
    if find_key(delivery.submission) != delivery.key:
        raise NotCreated([CHANGED])


def _write(export: exports.Export, folder: Path, progress: Callable[[int], None] = lambda size: None) -> Path:
    path, written = folder / export.file_name, 0

    def chunks() -> Iterator[bytes]:
        nonlocal written
        for chunk in export.chunks():
            written += len(chunk)
            progress(written)
            yield chunk

    exports.write_file(chunks(), path)
    return path


def _write_package(submission: Submission, folder: Path, progress: _Progress) -> tuple[Path, dict[str, Any]]:
    """Return the trajectories, after reading them as an import would."""
    total = stored_size(submission)
    export = exports.prepare(submission, ExportFormat.TRAJECTORIES_V2)
    path = _write(export, folder, lambda size: progress.show(1, 0, size, total))
    report, _ = ingest.import_all(
        path,
        benchmark=submission.benchmark,
        agent_name=submission.agent.name,
        dry_run=True,
        progress=lambda done, of: progress.show(1, 1, done, of),
    )
    if report.rejected:
        raise NotCreated([problem for problems in report.rejected.values() for problem in problems])
    return path, {"checks": len(report.accepted), "warnings": len(report.warnings) + len(export.warnings)}


def _write_bundle(
    delivery: Delivery, submission: Submission, folder: Path, progress: _Progress
) -> tuple[Path, dict[str, Any]]:
    """Return the bundle, after checking it with the verifier and the keys of this instance."""
    content = "files" if delivery.with_screenshots else "digests"
    evidence = writing.prepare(submission, screenshots=content, accept_names=delivery.accept_names)
    path = folder / evidence.file_name
    writing.write(evidence, path, lambda done, of: progress.show(2, 0, done, of))
    given = Given(keys=signing.published())
    outcome = verification.verify_bundle(str(path), given, lambda done, of: progress.show(2, 1, done, of))
    results = Counter(finding.result.value for finding in outcome.findings)
    failed = [finding.title for finding in outcome.findings if finding.result is Result.FAIL]
    return path, {"checks": len(outcome.findings), "notes": results["note"], "failed": failed}


class _Progress:
    """Save how much of the three files is created and checked, as parts of `STEPS` for each."""

    def __init__(self, delivery: Delivery) -> None:
        self._save = arrivals.make_progress_saver(delivery)

    def show(self, part: int, half: int, done: int, total: int) -> None:
        share = min(1.0, done / total) if total else 1.0
        self._save(part * STEPS + int((half + share) * STEPS / 2), len(PARTS) * STEPS)

    def end(self, part: int) -> None:
        self.show(part, 1, 1, 1)


@contextmanager
def _refusing() -> Iterator[None]:
    """Convert the errors of exports and checks into NotCreated; all others are bugs."""
    try:
        yield
    except ExportRefused as refused:
        raise NotCreated(refused.problems) from refused
    except Refused as refused:
        raise NotCreated([Problem("bundle_unreadable", str(refused))]) from refused
    except ExportStopped as stopped:
        cause = str(stopped).rpartition(" was not written: ")[2]
        raise NotCreated([_stopped(f"The files were not created: {cause}")]) from stopped
    except screenshots.STORE_ERRORS as error:
        raise NotCreated([_stopped(str(ImportStopped.from_error(error, "The files were not created")))]) from error


def _stopped(says: str) -> Problem:
    return Problem("export_stopped", f"{says} {Delivery.repeat}")


# --- deleting --------------------------------------------------------------------------------------------------------


def forget_old() -> None:
    """Delete the files of old deliveries with their rows, and files without a row."""
    _forget(Delivery.objects.filter(finished_at__lt=clock.now() - STORED_FOR))
    try:
        present = default_storage.listdir(FOLDER)[1]
    except FileNotFoundError:  # a local store before its first file
        return
    named = set(Delivery.stored_names())
    for name in (f"{FOLDER}/{each}" for each in present):
        if name not in named and screenshots.stored_at(name) < clock.now() - arrivals.ORPHAN_AGE:
            arrivals.delete_file(name)


def _forget(rows: QuerySet[Delivery]) -> None:
    for row in rows.filter(finished_at__isnull=False):
        row.delete()
        _delete_files(row.files)


def _delete_files(files: Iterable[dict[str, Any]]) -> None:
    for each in files:
        arrivals.delete_file(each["stored_as"])
