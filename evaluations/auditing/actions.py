"""Actions of auditors: add an auditor, draw the sample to be labelled again blind, decide and archive the audit."""

from __future__ import annotations

import hashlib
import secrets
from datetime import datetime
from typing import Any

from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import Max

from annotation import access, blinding, clock, redactions
from annotation.models import Attachment, Membership, Redaction, SamplePlan, Step, Submission, Trajectory
from annotation.models.events import append, digest
from annotation.models.plans import find_to_label
from annotation.protocol import MINIMUM_LABELS
from annotation.records import ImportReport, Problem
from annotation.workflow import AUDIT, Conflict, Incomplete, PlanTerms, join_as_maintainer, make_plan
from annotation.workflow.adjudicating import choose_so_many
from annotation.workflow.guards import Role, join, lock_submission, record, require_reason
from annotation.workflow.maintaining import MOST_LABELS
from evaluations import audit_rules
from evaluations.auditing.import_context import BATCH
from evaluations.estimating import ONE_STRATUM
from evaluations.models import Audit, AuditDecision


def add_auditor(actor: Any, audit: Audit, person: Any) -> Membership:
    """Let another person read an audit; adding the same person again changes nothing.

    No event is recorded: the chain is the submitter's. People who label the sample are refused until it is frozen.
    """
    access.require_creator(actor)
    with transaction.atomic():
        blinding.lock_samples(audit.submission)
        submission = lock_submission(audit.submission_id)
        _require(actor, submission)
        if _has_interest(person, audit):
            raise Conflict(f"{person} submitted this bundle, or belongs to the organisation that built the agent.")
        if blinding.is_hidden(person, submission):
            raise Conflict(
                f"{person} labels the sample of this audit blind, so they can read it when the sample is frozen."
            )
        existing = Membership.objects.filter(submission=submission, person=person).first()
        if existing is None:
            return join(submission, person, Role.AUDITOR)
        if existing.deactivated_at is not None:
            existing.deactivated_at = None
            existing.save(update_fields=["deactivated_at"])
        return existing


def decide(person: Any, audit: Audit, outcome: str, reason: str) -> AuditDecision:
    """Accept, query or reject, with the reason. Deciding again adds a decision: the newest one counts.

    What the rule of the audit says at this moment is stored with it; another decision is possible.
    """
    _require(person, audit.submission)
    _require_impartial(person, audit)
    if outcome not in AuditDecision.Outcome.values:
        message = "Accept, query or reject the submission."
        raise Incomplete([Problem("outcome_unknown", message, "outcome")])
    rule = audit_rules.find_progress(audit)
    return AuditDecision.objects.create(
        audit=audit,
        outcome=outcome,
        reason=require_reason(reason, "deciding an audit"),
        rule_said=rule.decision if rule else "",
        decided_by=person,
        decided_at=clock.now(),
    )


def archive(person: Any, audit: Audit) -> None:
    """Leave an audit out of the lists of all its auditors. No event is recorded: the chain is the submitter's."""
    _set_archived(person, audit, clock.now())


def restore(person: Any, audit: Audit) -> None:
    _set_archived(person, audit, None)


def _set_archived(person: Any, audit: Audit, at: datetime | None) -> None:
    with transaction.atomic():
        submission = lock_submission(audit.submission_id)
        _require(person, submission)
        if (submission.archived_at is None) != (at is None):
            submission.archived_at = at
            submission.save(update_fields=["archived_at"])


def _require_impartial(person: Any, audit: Audit) -> None:
    if _has_interest(person, audit):
        raise PermissionDenied("This bundle is your own or your organisation's entry. Another auditor has to act.")


def _has_interest(person: Any, audit: Audit) -> bool:
    """Return whether the person submitted the bundle as an entry, or belongs to the agent's organisation."""
    return any(
        entry.submitted_by_id == person.pk or blinding.has_conflict(person, entry.organisation)
        for entry in audit.entries.all()
    )


def _require(person: Any, submission: Submission) -> None:
    if access.role_in(person, submission) is not Role.AUDITOR:
        raise PermissionDenied("This is for the auditors of the submission.")


# --- drawing the sample -----------------------------------------------------------------------------------------------

LONGEST_SEED = 64
COVERED = "It came covered, in the bundle of this sample: "
SEED_TOO_LONG = f"A seed has at most {LONGEST_SEED} characters."
LEAST_SPOT_CHECKS: float = Submission._meta.get_field("spot_check_rate").default  # minimum for a sample


def draw(audit: Audit, person: Any, size: int, seed: str | None = None, tolerance: float | None = None) -> Submission:
    """Draw ``size`` of the trajectories, once, and create the submission in which they are labelled again.

    The selection works as for spot checks: anybody can repeat it from the seed. Without a given seed, it is derived
    from the manifest and a nonce drawn at this moment, so nobody can search for a convenient seed. The person maintains
    the sample. Its annotators and adjudicators must not have taken part in the audited review.

    With a ``tolerance``, a rule decides from the labels in a random order (`audit_rules`). ``size`` is then the most.
    """
    with transaction.atomic():
        audited = audit.submission = lock_submission(audit.submission_id)  # the loaded row may predate the lock
        _require_permission(person, audited)
        _require_impartial(person, audit)
        tasks = sorted(find_to_label(audited.trajectories.all()).values_list("task__external_id", flat=True))
        chosen_seed, nonce = (seed or "").strip(), ""
        _validate(audit, size, len(tasks), chosen_seed)
        if not chosen_seed:
            nonce = secrets.token_hex(32)
        seed = chosen_seed or derive_seed(audit.manifest, nonce)
        if tolerance is None:
            chosen = choose_so_many(tasks, size, seed)
        else:
            chosen = audit_rules.choose(audit_rules.load_claims(audited), tolerance, size, seed)
        sample = _sample(audited, chosen)
        _copy(audited, sample, chosen)
        drawn = {"manifest": audit.manifest, "seed": seed, "nonce": nonce, "size": size}
        _record_draw(audit, sample, drawn | ({} if tolerance is None else {"tolerance": tolerance}))
        _cover(audited, sample, join_as_maintainer(sample, person))
        if tolerance is not None:
            _order(sample, person, chosen, tolerance)
            sample.refresh_from_db()
        audit.seed, audit.nonce, audit.size, audit.drawn_at = seed, nonce, size, clock.now()
        audit.tolerance = tolerance
        audit.save(update_fields=["seed", "nonce", "size", "drawn_at", "tolerance"])
        return sample


def _order(sample: Submission, person: Any, chosen: list[str], tolerance: float) -> None:
    """Give the trajectories the random order of a planned sample, with one stratum so that it reveals no claim."""
    stratum, rule = dict.fromkeys(chosen, ONE_STRATUM), {"rule": AUDIT, "tolerance": tolerance}
    labels = {ONE_STRATUM: len(chosen)}
    runs = SamplePlan.Estimand.RUNS.value
    make_plan(person, sample, PlanTerms({}, {}, stratum, {}, labels, runs, rule))


def derive_seed(manifest: str, nonce: str) -> str:
    """Return the seed of a draw if the auditor chose none; both arguments are hex, as the audit stores them."""
    return hashlib.sha256(f"{manifest}{nonce}".encode()).hexdigest()


def _require_permission(person: Any, audited: Submission) -> None:
    if access.role_in(person, audited) is not Role.AUDITOR:
        raise PermissionDenied("Only an auditor of the submission may draw its sample.")
    if not access.may_create_submissions(person):
        raise PermissionDenied("Only a maintainer of the instance may draw a sample, since it becomes a submission.")


def _validate(audit: Audit, size: int, tasks: int, seed: str) -> None:
    if audit.sample is not None:
        raise Conflict(
            "The sample is already drawn. Each audit has one sample, so that nobody can draw until the "
            "result suits them."
        )
    if not 1 <= size <= tasks:
        raise Incomplete([Problem("size_unusable", f"Draw 1 to {tasks} trajectories.", "size")])
    if len(seed) > LONGEST_SEED:
        raise Incomplete([Problem("seed_unusable", SEED_TOO_LONG, "seed")])
    if not seed.isprintable():
        raise Incomplete([Problem("seed_unusable", "A seed is one line of printable characters.", "seed")])
    _require_files(audit.submission)


def _require_files(audited: Submission) -> None:
    """Refuse (Conflict) if an image or another file is missing: labels without it would be different judgements, and
    evidence of the sample would lack it. Images that came redacted, and are declared so, are not missing."""
    held = redactions.find_current(audited)
    steps = Step.objects.filter(trajectory__submission=audited)
    files = Attachment.objects.filter(trajectory__submission=audited)
    columns: Any = steps.filter(withheld__isnull=False).values_list("trajectory", "withheld", "screenshot")
    told = [(trajectory, stated["sha256"], shown) for trajectory, stated, shown in columns]
    covered = {(trajectory, sha256) for trajectory, sha256, shown in told if shown is not None and sha256 in held}
    pictures = sum((trajectory, sha256) not in covered for trajectory, sha256, _ in told)
    gone = files.filter(withheld=True).values_list("trajectory", "sha256")
    others = sum(file not in covered for file in gone)  # the original of a redacted image may also have been a file
    lacking = [f"the screenshots of {pictures} of {steps.count()} steps"] if pictures else []
    lacking += [f"{others} of {files.count()} files of trajectories"] if others else []
    if lacking:
        raise Conflict(
            f"This cannot be labelled again: {' and '.join(lacking)} are missing from the bundle, or "
            "could not be opened. Ask the submitter for the bundle with its screenshots, and open that."
        )


def _sample(audited: Submission, chosen: list[str]) -> Submission:
    taken = dict(audited.trajectories.filter(task__external_id__in=chosen).values_list("task__external_id", "digest"))
    earlier = Submission.objects.filter(benchmark=audited.benchmark_id, agent=audited.agent_id)
    report = ImportReport(accepted=list(chosen))
    return Submission.objects.create(
        benchmark=audited.benchmark,
        agent=audited.agent,
        attempt=earlier.aggregate(last=Max("attempt"))["last"] + 1,
        digest=digest(sorted(taken.items())),
        protocol_version=audited.protocol_version,
        process_labels=audited.process_labels,
        required_labels=min(max(audited.required_labels, MINIMUM_LABELS), MOST_LABELS),
        spot_check_rate=max(audited.spot_check_rate, LEAST_SPOT_CHECKS),
        sample_of=audited,
        organisation=audited.organisation,
        import_report=report.as_json(),
    )


def _copy(audited: Submission, sample: Submission, chosen: list[str]) -> None:
    """Copy the trajectories as the submitter's people saw them, in their order; the screenshot rows are shared."""
    rows = audited.trajectories.filter(task__external_id__in=chosen).order_by("position")
    for position, row in enumerate(rows):
        shown = Trajectory.objects.get(pk=row.pk)
        shown.pk, shown.submission, shown.position, shown.open_slots = None, sample, position, sample.required_labels
        shown.save(force_insert=True)
        Step.objects.bulk_create(_copy_rows(row.steps.all(), shown), batch_size=BATCH)
        Attachment.objects.bulk_create(_copy_rows(row.attachments.order_by("pk"), shown), batch_size=BATCH)


def _copy_rows(rows: Any, trajectory: Trajectory) -> list[Any]:
    found = list(rows)
    for row in found:
        row.pk, row.trajectory = None, trajectory
    return found


def _cover(audited: Submission, sample: Submission, member: Membership) -> None:
    """Record again which images came redacted, with the boxes and reasons of the audited review.

    The digests of trajectories cover the original images. Without these redactions, evidence of the sample would
    promise originals that this instance does not have.
    """
    steps = Step.objects.filter(trajectory__submission=sample, withheld__isnull=False)
    columns: Any = steps.values_list("withheld", "screenshot__sha256", "screenshot__size")
    shown = {stated["sha256"]: (sha256, size) for stated, sha256, size in columns}
    for original, row in redactions.find_current(audited).items():
        if original in shown:
            redacted, size = shown[original]
            facts = {"original": original, "revision": 1, "boxes": row.boxes, "reason": f"{COVERED}{row.reason}"}
            facts |= {"redacted": redacted, "size": size}
            made = Redaction(submission=sample, redacted_by=member.person, redacted_at=clock.now(), **facts)
            made.save(force_insert=True)
            record(sample, member, "screenshot_redacted", **facts)


def _record_draw(audit: Audit, sample: Submission, drawn: dict[str, Any]) -> None:
    rows = sample.trajectories.order_by("position").values_list("task__external_id", "digest")
    append(
        sample,
        "imported",
        agent=sample.agent.name,
        benchmark=sample.benchmark.stated_slug,
        attempt=sample.attempt,
        trajectories=dict(rows),
        report=digest(sample.import_report),
        next_seed=sample.next_seed,
        sample_of=drawn,
    )
