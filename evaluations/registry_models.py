"""Intake and registry of a benchmark: its owners, the entries that others submit, and what is published of them."""

from __future__ import annotations

import secrets
from typing import Any

from django.conf import settings
from django.core.validators import MinValueValidator
from django.db import models
from django.db.models import Q

from annotation.models import Arrival, Benchmark, Submission, Upload
from annotation.models import triggers as annotation_triggers
from annotation.models.events import digest, instant

annotation_triggers.APPEND_ONLY |= {
    "evaluations_entryevent": "",
    "evaluations_entryversion": "",
    "evaluations_entryrow": "",
}
KEY_LENGTH = 12


def create_key() -> str:
    """Return a random public key: a running number would reveal how many entries are not published."""
    return secrets.token_hex(KEY_LENGTH // 2)


class Owner(models.Model):
    """A member of the team that decides which entries a benchmark publishes."""

    benchmark = models.ForeignKey(Benchmark, on_delete=models.CASCADE, related_name="owners")
    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    added_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    added_at = models.DateTimeField()

    class Meta:
        ordering = ["added_at", "pk"]
        constraints = [models.UniqueConstraint(fields=["benchmark", "person"], name="owner_once")]

    def __str__(self) -> str:
        return str(self.person)


class Intake(models.Model):
    """How a benchmark takes entries. ``public`` is whether its intake page and registry can be read without sign-in.

    ``trusted_keys`` are the signing keys of evaluation partners, as `verifier.signature.parse_keys` accepts them: text,
    because an owner pastes them. Entries are accepted from ``opens_at`` to ``closes_at``; null is no limit.
    """

    benchmark = models.OneToOneField(Benchmark, on_delete=models.CASCADE, related_name="intake")
    public = models.BooleanField(default=False, help_text="Anybody can read the intake page and the registry.")
    rules = models.TextField(blank=True, help_text="What an entry must satisfy, and how you decide.")
    contact = models.CharField(
        max_length=200, help_text="Where submitters can ask questions, such as an e-mail address."
    )
    opens_at = models.DateTimeField("opens at", null=True, blank=True)
    takes_trajectories = models.BooleanField(
        default=False, help_text="Your own people then label them. Otherwise, entries need an evidence bundle."
    )
    closes_at = models.DateTimeField("closes at", null=True, blank=True, help_text="The latest time for an entry.")
    trusted_keys = models.TextField(
        blank=True, help_text="Published signing keys of evaluation partners whom you know, as JSON."
    )

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(opens_at=None) | Q(closes_at=None) | Q(opens_at__lt=models.F("closes_at")),
                name="intake_opens_before_it_closes",
            )
        ]

    def __str__(self) -> str:
        return f"intake of {self.benchmark_id}"


class Relationship(models.TextChoices):
    """Who evaluated: the terms of Every Eval Ever 0.2.1."""

    FIRST_PARTY = "first_party", "the team that built the agent"
    THIRD_PARTY = "third_party", "somebody independent of that team"
    COLLABORATIVE = "collaborative", "both together"
    OTHER = "other", "other"


class Entry(models.Model):
    """An agent's results that somebody submits to a benchmark.

    ``key`` is its public id. ``upload`` is the evidence bundle and ``audit`` what was opened from it; or ``package``
    has trajectories without labels, and ``submission`` is what was imported from it. ``contact`` is only for the
    owners. Before ``embargo_until`` nothing about the entry is public. ``events`` are its history, and
    ``versions`` its published figures.
    """

    key = models.CharField(max_length=KEY_LENGTH, unique=True, default=create_key, editable=False)
    benchmark = models.ForeignKey(Benchmark, on_delete=models.PROTECT, related_name="entries")
    agent = models.CharField(max_length=200)
    organisation = models.CharField(max_length=200, help_text="Who built the agent.")
    model = models.CharField(max_length=200, blank=True, help_text="The language model, with its version.")
    scaffold = models.CharField(max_length=200, blank=True, help_text="The program around the model.")
    agent_version = models.CharField("version of the agent", max_length=100, blank=True)
    run_on = models.DateField("date of the runs", null=True, blank=True)
    cost_usd = models.DecimalField(
        "cost of all runs, in US dollars",
        max_digits=12,
        decimal_places=2,
        null=True,
        blank=True,
        validators=[MinValueValidator(0)],
    )
    link = models.URLField(max_length=300, blank=True, help_text="A page about the agent.")
    contact = models.CharField(max_length=200, help_text="How the owners can reach you.")
    relationship = models.CharField("evaluated by", max_length=20, choices=Relationship.choices)
    submitted_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    submitted_at = models.DateTimeField()
    embargo_until = models.DateTimeField(
        null=True, blank=True, help_text="Nothing about the entry is published before this time (UTC)."
    )
    upload = models.OneToOneField(
        "evaluations.BundleUpload", on_delete=models.SET_NULL, null=True, blank=True, related_name="entry"
    )
    audit = models.ForeignKey(
        "evaluations.Audit", on_delete=models.PROTECT, null=True, blank=True, related_name="entries"
    )
    package = models.OneToOneField(Upload, on_delete=models.SET_NULL, null=True, blank=True, related_name="entry")
    submission = models.ForeignKey(Submission, on_delete=models.PROTECT, null=True, blank=True, related_name="entries")

    class Meta:
        ordering = ["-submitted_at", "-pk"]
        constraints = [
            models.CheckConstraint(condition=Q(relationship__in=Relationship.values), name="entry_relationship_known")
        ]

    @property
    def arrival(self) -> Arrival | None:
        """Return the newest file of the submitter; None if its record was deleted, a month after it arrived."""
        return self.upload or self.package

    @property
    def reviewed(self) -> Submission | None:
        """Return the submission with the labels that are published; None until the file was opened."""
        return self.audit.submission if self.audit else self.submission

    def __str__(self) -> str:
        return self.agent


class EntryEvent(models.Model):
    """One event of an entry, in its own chain: ``hash`` covers `canonical`, which names ``previous``.

    ``role`` is what the public reads of the actor. ``reason`` and ``facts`` of events that are not `PUBLIC` stay
    between owners and submitter: the chain has their digest, so that it can be published as a whole.
    """

    class Kind(models.TextChoices):
        SUBMITTED = "submitted"
        CHECKED = "checked"
        QUERIED = "queried"
        ANSWERED = "answered"
        ACCEPTED = "accepted"
        REJECTED = "rejected"
        WITHDRAWN = "withdrawn"
        APPEALED = "appealed"
        APPEAL_DECIDED = "appeal_decided", "appeal decided"
        CORRECTED = "corrected"
        RESCORED = "rescored"
        EMBARGO_CHANGED = "embargo_changed", "embargo changed"
        REMOVED = "removed"
        RESTORED = "restored"
        TAKEN_DOWN = "taken_down", "text taken down"

    class Role(models.TextChoices):
        OWNER = "owner"
        SUBMITTER = "submitter"
        SYSTEM = "system"

    entry = models.ForeignKey(Entry, on_delete=models.PROTECT, related_name="events")
    sequence = models.PositiveIntegerField()
    kind = models.CharField(max_length=20, choices=Kind.choices)
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    role = models.CharField(max_length=10, choices=Role.choices)
    at = models.DateTimeField()
    reason = models.TextField(blank=True)
    facts = models.JSONField(default=dict)
    previous = models.CharField(max_length=64)
    hash = models.CharField(max_length=64)

    class Meta:
        ordering = ["sequence"]
        constraints = [
            models.UniqueConstraint(fields=["entry", "sequence"], name="entry_event_sequence_once"),
        ]

    @property
    def content(self) -> dict[str, Any]:
        return {"reason": self.reason, "facts": self.facts}

    def canonical(self) -> dict[str, Any]:
        return {
            "entry": self.entry.key,
            "sequence": self.sequence,
            "kind": self.kind,
            "role": self.role,
            "at": instant(self.at),
            "content": digest(self.content),
            "previous": self.previous,
        }

    def __str__(self) -> str:
        return f"{self.sequence} {self.kind}"


class EntryVersion(models.Model):
    """The published figures of an entry, from ``event`` on; the newest counts, earlier ones stay reachable.

    ``rate`` with its 95% interval ``low`` to ``high`` are fractions, null if there is none. ``rows`` counts the rows
    that the rate includes. ``people`` is who judged: {"annotators", "adjudicators"}; ``judge`` is the automatic judge
    of a `Method.JUDGE`. ``manifest`` is the SHA-256 of the bundle's manifest, empty without one, ``tasks`` the newest
    task version. ``audited`` is {"size", "alike"} of the owners' own sample, or empty.
    """

    class Method(models.TextChoices):
        PEOPLE = "people", "every run by three people"
        SAMPLE = "sample", "planned sample by three people"
        JUDGE = "judge", "automatic judge only"

    entry = models.ForeignKey(Entry, on_delete=models.PROTECT, related_name="versions")
    number = models.PositiveIntegerField()
    event = models.OneToOneField(EntryEvent, on_delete=models.PROTECT, related_name="version")
    rate = models.FloatField(null=True)
    low = models.FloatField(null=True)
    high = models.FloatField(null=True)
    rows = models.PositiveIntegerField()
    method = models.CharField(max_length=10, choices=Method.choices)
    people = models.JSONField(default=dict)
    judge = models.CharField(max_length=200, blank=True)
    manifest = models.CharField(max_length=64, blank=True)
    tasks = models.CharField(max_length=40, blank=True)
    audited = models.JSONField(default=dict)

    class Meta:
        ordering = ["number"]
        constraints = [
            models.UniqueConstraint(fields=["entry", "number"], name="entry_version_once"),
            models.CheckConstraint(condition=Q(method__in=["people", "sample", "judge"]), name="entry_method_known"),
        ]

    @property
    def percent(self) -> str:
        """Return the rate with its interval, such as "61.3% (55.7% to 66.7%)"; empty without a rate."""
        if self.rate is None:
            return ""
        interval = "" if self.low is None or self.high is None else f" ({self.low:.1%} to {self.high:.1%})"
        return f"{self.rate:.1%}{interval}"

    def __str__(self) -> str:
        return f"version {self.number} of {self.entry_id}"


class EntryRow(models.Model):
    """The state of one task of an entry from ``version`` on; of the rows of a task the newest version counts.

    ``verdict`` is null if nobody decided. Rows that are not ``included`` leave the rate.
    """

    entry = models.ForeignKey(Entry, on_delete=models.PROTECT, related_name="all_rows")
    version = models.ForeignKey(EntryVersion, on_delete=models.PROTECT, related_name="changed_rows")
    task_id = models.CharField(max_length=200)
    task_version = models.CharField(max_length=40, blank=True)
    text = models.TextField(blank=True)
    verdict = models.PositiveSmallIntegerField(null=True)
    included = models.BooleanField(default=True)
    reason = models.CharField(max_length=500, blank=True)

    class Meta:
        ordering = ["task_id", "version"]
        constraints = [
            models.UniqueConstraint(fields=["version", "task_id"], name="entry_row_once"),
            models.CheckConstraint(
                condition=Q(verdict__isnull=True) | Q(verdict__in=[0, 1, 2]), name="entry_row_verdict_known"
            ),
            models.CheckConstraint(condition=Q(included=True) | ~Q(reason=""), name="left_out_row_has_a_reason"),
        ]

    def __str__(self) -> str:
        return self.task_id


class Takedown(models.Model):
    """A text that is not shown any more: the content of ``event``, or without one the description of the entry.

    An event stays in its chain. Pages show its digest and ``reason`` in place of the text.
    """

    entry = models.ForeignKey(Entry, on_delete=models.PROTECT, related_name="takedowns")
    event = models.OneToOneField(EntryEvent, on_delete=models.PROTECT, null=True, blank=True, related_name="takedown")
    reason = models.CharField(max_length=500)
    decided_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    decided_at = models.DateTimeField()

    class Meta:
        ordering = ["decided_at", "pk"]
        constraints = [
            models.UniqueConstraint(fields=["entry"], condition=Q(event=None), name="one_takedown_of_an_entry"),
            models.CheckConstraint(condition=~Q(reason=""), name="takedown_has_a_reason"),
        ]

    def __str__(self) -> str:
        return self.reason
