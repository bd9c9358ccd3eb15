"""Signing keys, published heads of chains, and audits of other people's bundles."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db import models
from django.db.models import Q

from annotation.models import Arrival, Submission
from annotation.models import triggers as annotation_triggers

annotation_triggers.APPEND_ONLY |= {"evaluations_auditcheck": "", "evaluations_auditdecision": ""}


class SigningKey(models.Model):
    """An Ed25519 key of this instance. One is active; retired ones are published for ever, and sign nothing any more.

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
            # A constant that is unique where it holds: there is at most one key that is not retired.
            models.UniqueConstraint(
                models.Value(1), condition=Q(retired_at__isnull=True), name="one_active_signing_key"
            ),
        ]

    def __str__(self) -> str:
        return self.key_id


class Anchor(models.Model):
    """The head of a submission's chain as it was published somewhere outside: number ``sequence`` had this ``head``.

    ``target`` says where (never a secret of an address), ``token`` is what a time stamp authority answered (RFC 3161,
    DER in base64). With an ``error`` it was tried and not done; it is tried again.
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
    """Somebody's evidence bundle, opened here: ``submission`` has its rows, its ``sample`` what is labelled again.

    What its checks said is in ``checks``. The sample is drawn once: ``size`` of the sorted task ids by ``seed``, as
    spot checks are. The seed is the SHA-256 (hex) of the text manifest + ``nonce`` (64 hex digits, made at the draw);
    without a nonce the auditor has chosen it.
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

    class Meta:
        ordering = ["-opened_at", "-pk"]

    @property
    def seed_chosen(self) -> bool:
        """Return whether the auditor chose the seed: then they could have tried many."""
        return bool(self.seed) and not self.nonce

    @property
    def sample(self) -> Submission | None:
        """The submission in which the sample is labelled again, once it is drawn."""
        return getattr(self.submission, "sample", None)

    @property
    def newest_check(self) -> AuditCheck:
        """The present state; the first check is made when the bundle is opened."""
        return max(self.checks.all(), key=lambda made: (made.checked_at, made.pk))

    @property
    def findings(self) -> list[dict[str, Any]]:
        """Of the newest check, as are the two below."""
        return self.newest_check.findings

    @property
    def key_id(self) -> str:
        return self.newest_check.key_id

    @property
    def key_trusted(self) -> bool:
        return self.newest_check.key_trusted

    @property
    def decision(self) -> AuditDecision | None:
        """The newest one, which holds."""
        return max(self.decisions.all(), key=lambda made: (made.decided_at, made.pk), default=None)

    def __str__(self) -> str:
        return self.file_name


class AuditCheck(models.Model):
    """One check of an audited bundle: when it was opened, and each time that it was sent again; none is overwritten.

    ``given`` names the reference data of the auditor (`auditing.reference_data.NAMES`), null where it was not recorded.
    ``findings`` is what was found (see `verifier.findings`), ``key_id`` the key that signed the bundle: the same files
    can come with another signature. ``key_trusted`` says whether the auditor gave that key as the submitter's, or it
    is one of this instance.
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
    """An evidence bundle on its way in through the page or the API, and what came of it.

    ``given`` is the reference data of its uploader, as `encode_reference_data` has it; emptied, and the file
    deleted, when it is finished. ``audit`` is the one that was made of it, or with ``again`` the one as which it was
    open already, and which has another check by it now. ``refused`` says why there is none.
    """

    thing, command, folder, suffix = "bundle", "import_audit", "bundles", ".zip"

    given = models.TextField(blank=True)
    refused = models.TextField(blank=True)
    findings = models.JSONField(default=list, blank=True)
    audit = models.ForeignKey(Audit, on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    again = models.BooleanField(default=False, db_default=False)


class AuditDecision(models.Model):
    """An auditor's decision about a bundle, with the reason; the newest one holds, none is overwritten."""

    class Outcome(models.TextChoices):
        ACCEPT = "accept", "accepted"
        QUERY = "query", "queried"
        REJECT = "reject", "rejected"

    audit = models.ForeignKey(Audit, on_delete=models.PROTECT, related_name="decisions")
    outcome = models.CharField(max_length=10, choices=Outcome.choices)
    reason = models.TextField()
    decided_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    decided_at = models.DateTimeField()

    class Meta:
        ordering = ["decided_at", "pk"]
        constraints = [
            models.CheckConstraint(condition=~Q(reason=""), name="audit_decision_has_a_reason"),
            models.CheckConstraint(condition=Q(outcome__in=["accept", "query", "reject"]), name="audit_outcome_known"),
        ]

    def __str__(self) -> str:
        return self.get_outcome_display()


class Standing(models.Model):
    """The claims of a large submission, and its texts with names, as a job computed them.

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
