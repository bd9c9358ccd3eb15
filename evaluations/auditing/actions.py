"""Actions of auditors: add an auditor, decide the audit."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.utils import timezone

from annotation import access, blinding
from annotation.models import Membership, Submission
from annotation.records import Problem
from annotation.workflow import Conflict, Incomplete
from annotation.workflow.guards import Role, join, lock_submission, require_reason
from evaluations.models import Audit, AuditDecision


def add_auditor(actor: Any, audit: Audit, person: Any) -> Membership:
    """Let another person read an audit; adding somebody twice changes nothing.

    There is no event: the chain is the submitter's. Refused for those who label the sample, until it is frozen.
    """
    access.require_creator(actor)
    with transaction.atomic():
        blinding.lock_samples(audit.submission)
        submission = lock_submission(audit.submission_id)
        _require(actor, submission)
        if blinding.is_hidden(person, submission):
            raise Conflict(f"{person} labels the sample of this review blind, so they read it when it is frozen.")
        existing = Membership.objects.filter(submission=submission, person=person).first()
        if existing is None:
            return join(submission, person, Role.AUDITOR)
        if existing.deactivated_at is not None:
            existing.deactivated_at = None
            existing.save(update_fields=["deactivated_at"])
        return existing


def decide(person: Any, audit: Audit, outcome: str, reason: str) -> AuditDecision:
    """Accept, query or reject, with the reason. Deciding again adds a decision: the newest one holds."""
    _require(person, audit.submission)
    if outcome not in AuditDecision.Outcome.values:
        message = "Accept, query or reject the submission."
        raise Incomplete([Problem("outcome_unknown", message, "outcome")])
    return AuditDecision.objects.create(
        audit=audit,
        outcome=outcome,
        reason=require_reason(reason, "a decision about an audit"),
        decided_by=person,
        decided_at=timezone.now(),
    )


def _require(person: Any, submission: Submission) -> None:
    if access.role_in(person, submission) is not Role.AUDITOR:
        raise PermissionDenied("This is for the auditors of the submission.")
