"""Signing keys, published heads of chains, and audits of bundles from other instances."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.conf import settings
from django.db import models
from django.db.models import Q

from annotation.models import Arrival, Submission, WorkerJob
from annotation.models import triggers as annotation_triggers
from evaluations.registry_models import (
    Entry,
    EntryEvent,
    EntryRow,
    EntryVersion,
    Intake,
    Owner,
    Relationship,
    Takedown,
)

__all__ = [
    "Anchor",
    "Audit",
    "AuditCheck",
    "AuditDecision",
    "BundleUpload",
    "Delivery",
    "Entry",
    "EntryEvent",
    "EntryRow",
    "EntryVersion",
    "Intake",
    "Owner",
    "Relationship",
    "SigningKey",
    "Standing",
    "Takedown",
]

annotation_triggers.APPEND_ONLY |= {"evaluations_auditcheck": "", "evaluations_auditdecision": ""}


class SigningKey(models.Model):
    """An Ed25519 key of this instance. One key is active; retired keys stay published, but never sign again.

    ``public`` is the raw public key in hex (32 bytes), ``key_id`` the first 16 hex digits of the SHA-256 of those
    bytes. ``sealed`` is the private key, encrypted under the secret key of the instance; see `signing`.
    """

    key_id = models.CharField(max_length=16, unique=True)
    public = models.CharField(max_length=64, unique=True)
    sealed = models.TextField()
    created_at = models.DateTimeField()
    retired_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["created_at", "pk"]
        constraints = [
            # Constant where retired_at is null, so unique: there is at most one active key.
            models.UniqueConstraint(
                models.Value(1), condition=Q(retired_at__isnull=True), name="one_active_signing_key"
            ),
        ]

    def __str__(self) -> str:
        return self.key_id


class Anchor(models.Model):
    """The head of a submission's chain as published outside: event number ``sequence`` had this ``head``.

    ``target`` is the place (without secrets of an address), ``token`` the reply of a time stamp authority (RFC 3161,
    DER in base64). With an ``error``, the publication failed; it is tried again.
    """

    class Method(models.TextChoices):
        FILE = "file"
        WEBHOOK = "webhook"
        TIME_STAMP = "rfc3161", "time stamp"

    submission = models.ForeignKey(Submission, on_delete=models.PROTECT, related_name="anchors")
    method = models.CharField(max_length=10, choices=Method.choices)
    sequence = models.PositiveBigIntegerField()
    head = models.CharField(max_length=64)
    target = models.CharField(max_length=300)
    token = models.TextField(blank=True)
    error = models.CharField(max_length=500, blank=True)
    published_at = models.DateTimeField()

    class Meta:
        ordering = ["sequence", "method"]
        constraints = [
            models.UniqueConstraint(fields=["submission", "method", "sequence"], name="anchor_once_per_head"),
            models.CheckConstraint(condition=Q(method__in=["file", "webhook", "rfc3161"]), name="anchor_method_known"),
        ]

    def __str__(self) -> str:
        return f"{self.sequence} {self.head[:12]}"


class Audit(models.Model):
    """An evidence bundle of another instance: ``submission`` has its rows, ``sample`` the trajectories labelled again.

    The results of its checks are in ``checks``. The sample is drawn once: ``size`` of the sorted task ids by ``seed``,
    as for spot checks. The seed is the SHA-256 (hex) of the text manifest + ``nonce`` (64 hex digits, created at the
    draw); without a nonce, the auditor has chosen it.

    With a ``tolerance``, a rule decides: ``size`` is the largest number of trajectories to label. Claimed successes and
    other trajectories are drawn separately. See `audit_rules`.
    """

    submission = models.OneToOneField(Submission, on_delete=models.PROTECT, related_name="audit")
    file_name = models.CharField(max_length=255)
    manifest = models.CharField(max_length=64, unique=True)
    opened_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    opened_at = models.DateTimeField()
    seed = models.CharField(max_length=64, blank=True)
    nonce = models.CharField(max_length=64, blank=True, default="", db_default="")
    size = models.PositiveIntegerField(null=True, blank=True)
    drawn_at = models.DateTimeField(null=True, blank=True)
    tolerance = models.FloatField(null=True, blank=True)

    class Meta:
        ordering = ["-opened_at", "-pk"]
        constraints = [
            models.CheckConstraint(condition=Q(tolerance__gt=0, tolerance__lt=1), name="audit_tolerance_is_a_share")
        ]

    @property
    def seed_chosen(self) -> bool:
        """Return whether the auditor chose the seed: they could have tried several."""
        return bool(self.seed) and not self.nonce

    @property
    def sample(self) -> Submission | None:
        """Return the submission in which the sample is labelled again; None until it is drawn."""
        return getattr(self.submission, "sample", None)

    @property
    def newest_check(self) -> AuditCheck:
        """Return the newest check, which is the present state; opening the bundle creates the first."""
        return max(self.checks.all(), key=lambda made: (made.checked_at, made.pk))

    @property
    def findings(self) -> list[dict[str, Any]]:
        """Return the findings of the newest check; the two properties below are also from it."""
        return self.newest_check.findings

    @property
    def key_id(self) -> str:
        return self.newest_check.key_id

    @property
    def key_trusted(self) -> bool:
        return self.newest_check.key_trusted

    @property
    def decision(self) -> AuditDecision | None:
        """Return the newest decision, which is the valid one."""
        return max(self.decisions.all(), key=lambda made: (made.decided_at, made.pk), default=None)

    def __str__(self) -> str:
        return self.file_name


class AuditCheck(models.Model):
    """One check of an audited bundle: when it was opened, or each time it was sent again; none is overwritten.

    ``given`` names the reference data of the auditor (`auditing.reference_data.NAMES`), null if it was not recorded.
    ``findings`` are the results (see `verifier.findings`), ``key_id`` is the key that signed the bundle: the same files
    can come with another signature. ``key_trusted`` is whether the auditor gave that key as the submitter's, or it is a
    key of this instance.
    """

    audit = models.ForeignKey(Audit, on_delete=models.PROTECT, related_name="checks")
    checked_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    checked_at = models.DateTimeField()
    given = models.JSONField(null=True)
    key_id = models.CharField(max_length=16, blank=True)
    key_trusted = models.BooleanField()
    findings = models.JSONField()

    class Meta:
        ordering = ["checked_at", "pk"]

    @property
    def failed(self) -> list[dict[str, Any]]:
        return [each for each in self.findings if each["result"] == "fail"]

    def __str__(self) -> str:
        return f"{self.checked_at:%Y-%m-%d %H:%M}"


class BundleUpload(Arrival):
    """An evidence bundle uploaded through the page or the API, and its outcome.

    ``given`` is the reference data of its uploader, from `encode_reference_data`; when the upload is finished, it is
    emptied and the file deleted. ``audit`` is the audit of the bundle. With ``again``, it was open already, and this
    upload added another check. ``refused`` is the reason if there is no audit. The uploader of an
    entry's bundle is an owner of the benchmark. This owner gets the audit.
    """

    thing, command, folder, suffix = "bundle", "import_audit", "bundles", ".zip"
    repeat = "Upload the bundle again."

    given = models.TextField(blank=True)
    refused = models.TextField(blank=True)
    findings = models.JSONField(default=list, blank=True)
    audit = models.ForeignKey(Audit, on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    again = models.BooleanField(default=False, db_default=False)


class AuditDecision(models.Model):
    """An auditor's decision about a bundle, with the reason; the newest one counts, none is overwritten.

    ``rule_said`` is what the rule of the audit said then (`statistics.Decision`), "" without a rule.
    """

    class Outcome(models.TextChoices):
        ACCEPT = "accept", "accepted"
        QUERY = "query", "queried"
        REJECT = "reject", "rejected"

    audit = models.ForeignKey(Audit, on_delete=models.PROTECT, related_name="decisions")
    outcome = models.CharField(max_length=10, choices=Outcome.choices)
    reason = models.TextField()
    rule_said = models.CharField(max_length=10, blank=True, default="", db_default="")
    decided_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    decided_at = models.DateTimeField()

    class Meta:
        ordering = ["decided_at", "pk"]
        constraints = [
            models.CheckConstraint(condition=~Q(reason=""), name="audit_decision_has_a_reason"),
            models.CheckConstraint(condition=Q(outcome__in=["accept", "query", "reject"]), name="audit_outcome_known"),
        ]

    @property
    def against_rule(self) -> bool:
        return self.rule_said not in ("", self.outcome)

    def __str__(self) -> str:
        return self.get_outcome_display()


class Standing(models.Model):
    """The claims of a large submission, and its texts with names, as computed by a job.

    ``key`` is the SHA-256 of their inputs, mainly the head of the chain; see `evaluations.evidence.standing`.
    ``requested_at`` is the time of the last request for the job, ``computed_at`` is null before its first result.
    """

    submission = models.OneToOneField(Submission, on_delete=models.CASCADE, related_name="+")
    key = models.CharField(max_length=64, blank=True)
    claims = models.JSONField(default=list)
    named = models.JSONField(default=list)
    requested_at = models.DateTimeField()
    computed_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"{self.submission_id} at {self.computed_at}"


class Delivery(WorkerJob):
    """The files of one freeze for sending: labels, trajectories and evidence bundle, created and checked together.

    ``key`` identifies the freeze and the redactions that the files contain; see `evaluations.sending`. ``files`` are
    the finished files with size, SHA-256 and the result of their check, and ``problems`` are why there are none.
    """

    thing, command = "export", "export_submission"
    repeat = "Create the files again."

    submission = models.ForeignKey(Submission, on_delete=models.CASCADE, related_name="+")
    requested_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    key = models.CharField(max_length=64)
    with_screenshots = models.BooleanField(default=False)
    accept_names = models.BooleanField(default=False)
    files = models.JSONField(default=list, blank=True)
    problems = models.JSONField(default=list, blank=True)

    class Meta:
        ordering = ["-created_at"]
        constraints = [
            models.UniqueConstraint(
                fields=["submission"], condition=Q(finished_at__isnull=True), name="one_delivery_at_a_time"
            ),
        ]

    @classmethod
    def stored_names(cls) -> Iterable[str]:
        return [each["stored_as"] for files in cls.objects.values_list("files", flat=True) for each in files]

    def __str__(self) -> str:
        return f"files of submission {self.submission_id}"
