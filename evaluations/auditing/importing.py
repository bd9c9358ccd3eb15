"""Open an evidence bundle of another instance: check it as a whole, then import all of it as ordinary rows, or nothing.

The rows are those of a submission created here, so every page, figure and export works on them. They belong to a
separate benchmark, people are stand-ins with the pseudonyms, and the chain of events is copied word for word.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from django.db import DataError, IntegrityError, transaction

from annotation import access, blinding, clock, ingest, jobs, screenshots
from annotation.file_cleanup import delete_files_on_failure
from annotation.models import Agent, Benchmark, Submission
from annotation.records import Problem
from annotation.workflow.erasing import lock_account
from annotation.workflow.guards import Role, join
from annotation.workflow.maintaining import MOST_LABELS
from evaluations.auditing.files import StoredFiles, store_files
from evaluations.auditing.history import write_events, write_history, write_people
from evaluations.auditing.import_context import LARGEST, ImportContext, Rejections, find_largest, parse_time
from evaluations.auditing.judgments import write_judgments
from evaluations.auditing.labels import write_adjudications, write_informed, write_labels
from evaluations.auditing.reference_data import list_given
from evaluations.auditing.trajectories import write_catalogue, write_trajectories
from evaluations.evidence.documents import SUBMISSION_COLUMNS
from evaluations.evidence.verification import verify_bundle
from evaluations.models import Audit, AuditCheck
from evaluations.signing import with_own_keys
from evaluations.verifier.canonical import Malformed, parse_json
from evaluations.verifier.checking import Given, Outcome
from evaluations.verifier.contents import Progressed
from evaluations.verifier.documents import Bundle, Document, Shapeless, read_bundle, split_lines
from evaluations.verifier.findings import MOST_PLACES, Finding, Result
from evaluations.verifier.package import Package, open_package
from evaluations.verifier.signature import BadKeys
from evaluations.verifier.values import Refused
from judges.working.call_log import make_storable

logger = logging.getLogger(__name__)

NEEDED = ("manifest", "shapes")  # if one of these checks fails, there is nothing to show
COUNTED = ("submission", "catalogue", "labels", "adjudications", "reopenings", "draws", "redactions", "sample_items")
OPENED = "opened"  # the check whether every record was imported
NOTHING = Given()
OnOpened = Callable[[Audit], None]
LONGEST_NAME = 12  # digits of the manifest's digest that start the names of an audit's rows


class AuditRefused(Exception):
    """The bundle cannot be opened, and nothing was saved; ``findings`` has the results of the checks done so far."""

    def __init__(self, message: str, findings: Sequence[Finding] = ()) -> None:
        super().__init__(message)
        self.findings = list(findings)

    @property
    def problems(self) -> list[Problem]:
        failed_checks = [each for each in self.findings if each.result is Result.FAIL]
        return [
            Problem("bundle_refused", str(self), "bundle"),
            *(Problem(each.name, each.says, ", ".join(each.places)) for each in failed_checks),
        ]


@dataclass(frozen=True, slots=True)
class _Opening:
    """A package that passed the required checks, with the person and the name for its audit."""

    package: Package
    bundle: Bundle
    outcome: Outcome
    person: Any
    given: Given
    file_name: str
    on_opened: OnOpened

    @property
    def findings(self) -> list[Finding]:
        return self.outcome.findings

    @property
    def manifest(self) -> str:
        return self.outcome.manifest

    @property
    def prefix(self) -> str:
        return f"audit-{self.manifest[:LONGEST_NAME]}"

    @property
    def key_trusted(self) -> bool:
        """Return whether a key given by the auditor, or a key of this instance, signed it."""
        return any(each.name == "signature" and each.result is Result.PASS for each in self.findings)

    def lines(self) -> Iterator[Document]:
        """Yield the trajectories one by one: their texts and steps are never in memory as a whole."""
        name = "trajectories.jsonl"
        for line in split_lines(self.package.stream(name), name):
            yield parse_json(line.decode())


def open_bundle(
    path: Path,
    person: Any,
    given: Given = NOTHING,
    *,
    file_name: str = "",
    progress: Progressed = lambda done, total: None,
    on_opened: OnOpened = lambda audit: None,
) -> Audit:
    """Open the bundle at ``path``, a zip or a folder, as an audit; the person becomes its first auditor.

    If one of its auditors sends a bundle again, the same audit gets another check; earlier ones stay. ``given`` is the
    person's reference data; without keys in it, those of this instance are tried. ``on_opened`` is called with the
    audit in the transaction that creates the audit or the check, and cancels it by raising. Faults of the bundle are in
    the audit's findings. Raises AuditRefused if the bundle cannot be opened, and ingest.ImportStopped when the disk or
    the store fails.
    """
    access.require_creator(person)
    try:
        outcome = verify_bundle(str(path), given, progress)
        outcome.findings = with_own_keys(outcome, given)
        if wrong := [each for each in outcome.findings if each.name in NEEDED and each.result is Result.FAIL]:
            raise AuditRefused(f"It fails the check {wrong[0].name}: {wrong[0].says}", outcome.findings)
        with open_package(str(path)) as package:
            bundle = outcome.bundle or read_bundle(package)
            return _open(_Opening(package, bundle, outcome, person, given, file_name or path.name, on_opened))
    except (BadKeys, Refused, Shapeless, Malformed) as error:
        raise AuditRefused(str(error)) from error


def _open(opening: _Opening) -> Audit:
    if (open_already := _check_again(opening)) is not None:
        return open_already
    _require_bounds(opening)
    try:
        return _save(opening)
    except screenshots.STORE_ERRORS as error:  # not caught as a fault of the bundle
        raise ingest.ImportStopped.from_error(error, "The bundle was not opened") from error


@delete_files_on_failure()
def _save(opening: _Opening) -> Audit:
    rejections = Rejections()
    stored = store_files(opening.package, opening.lines, rejections)
    try:
        with transaction.atomic():
            access.require_creator(lock_account(opening.person))
            submission = _write(opening, stored, rejections)
            audit = _audit(opening, submission, rejections)
            opening.on_opened(audit)
            transaction.on_commit(partial(jobs.prepare_pictures.delay, submission.pk), robust=True)
            return audit
    except (IntegrityError, DataError, ValueError, OverflowError) as error:
        if (open_already := _check_again(opening)) is not None:  # it may have been opened meanwhile
            return open_already
        if isinstance(error, ValueError):  # not from the database: may be our bug
            logger.exception("The bundle with the manifest %s was rejected", opening.manifest)
        says = " ".join(str(error).split())[:300]
        raise AuditRefused(f"The bundle contains an impossible record: {says}.", opening.findings) from error


@transaction.atomic
def _check_again(opening: _Opening) -> Audit | None:
    """Return the audit of this bundle with another check, None if new; AuditRefused unless the person audits it."""
    audit = Audit.objects.select_related("submission").filter(manifest=opening.manifest).first()
    if audit is None:
        return None
    lock_account(opening.person)
    if access.role_in(opening.person, audit.submission) is not Role.AUDITOR:
        raise AuditRefused("This bundle is already open here.", opening.findings)
    # The records were imported then, so that finding has not changed.
    _add_check(opening, audit, [each for each in audit.findings if each["name"] == OPENED])
    opening.on_opened(audit)
    return audit


def _require_bounds(opening: _Opening) -> None:
    """Refuse numbers too large for pages and sums: SQLite accepts them all, PostgreSQL some."""
    required = opening.bundle.submission["required_labels"]
    if required > MOST_LABELS:
        says = f"It states that every trajectory needs {required:,} labels; the limit is {MOST_LABELS}."
        raise AuditRefused(says, opening.findings)
    for name in COUNTED:
        if (most := find_largest(getattr(opening.bundle, name))) > LARGEST:
            says = f"It states {most:,} for {name}; the limit is {LARGEST:,}."
            raise AuditRefused(says, opening.findings)


def _write(opening: _Opening, stored: StoredFiles, rejections: Rejections) -> Submission:
    bundle = opening.bundle
    submission = _submission(opening)
    context = ImportContext(submission, rejections)
    made_at = min(submission.created_at, submission.frozen_at or submission.created_at)
    tasks = write_catalogue(submission.benchmark, bundle.catalogue, made_at, rejections)
    write_people(context, bundle.people, opening.prefix)
    write_trajectories(context, tasks, opening.lines(), stored)
    labels = write_labels(context, bundle.labels)
    write_adjudications(context, bundle.adjudications)
    write_informed(context, bundle.informed, labels)
    write_history(context, bundle)
    write_events(context, bundle.events)
    write_judgments(context, bundle.runs or [], bundle.judgments or [])
    return submission


def _submission(opening: _Opening) -> Submission:
    stated = opening.bundle.submission
    benchmark = Benchmark.objects.create(
        slug=opening.prefix, name=stated["benchmark_name"], bundled_as=stated["benchmark"]
    )
    submission = Submission.objects.create(
        benchmark=benchmark,
        agent=Agent.objects.get_or_create(name=stated["agent"])[0],
        audited=True,
        spot_check_seed=stated["next_seed"] or "",
        import_report=opening.bundle.import_report,
        frozen_at=parse_time(stated["frozen_at"]),
        opened_at=parse_time(stated["opened_at"]),
        process_labels=stated.get("process_labels", False),
        **{name: stated[name] for name in SUBMISSION_COLUMNS},
    )
    submission.created_at = parse_time(stated["created_at"])
    submission.save(update_fields=["created_at"])
    return submission


def _audit(opening: _Opening, submission: Submission, rejections: Rejections) -> Audit:
    """Create the row of the audit, and its auditor: without an event, because the chain is another instance's."""
    blinding.lock_samples(submission)
    if blinding.is_hidden(opening.person, submission):
        raise AuditRefused("You label a sample of this audit again. You can see the audit when the sample is frozen.")
    join(submission, opening.person, Role.AUDITOR)
    audit = Audit.objects.create(
        submission=submission,
        file_name=opening.file_name[:255],
        manifest=opening.manifest,
        opened_by=opening.person,
        opened_at=clock.now(),
    )
    _add_check(opening, audit, [_build_opened_finding(rejections).as_json()])
    return audit


def _add_check(opening: _Opening, audit: Audit, of_rows: list[Any]) -> None:
    AuditCheck.objects.create(
        audit=audit,
        checked_by=opening.person,
        checked_at=clock.now(),
        given=list_given(opening.given),
        key_id=opening.outcome.key_id,
        key_trusted=opening.key_trusted,
        findings=make_storable([*(each.as_json() for each in opening.findings), *of_rows]),
    )


def _build_opened_finding(rejections: Rejections) -> Finding:
    title = "Everything in the bundle can be viewed here"
    if not rejections.reasons:
        return Finding(OPENED, title, Result.PASS, "Every record and every file of the bundle was imported.")
    place, problem = next(iter(rejections.reasons.items()))
    says = f"{len(rejections.reasons)} could not be opened; the first is {place}: {problem}."
    return Finding(OPENED, title, Result.FAIL, says, tuple(rejections.reasons)[:MOST_PLACES])
