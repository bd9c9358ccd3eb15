"""Reviews of trajectories: members, slots, labels and adjudications."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db import models
from django.db.models import F, Q

from annotation.clock import CreatedAtField
from annotation.formats.printable import counted, format_clock
from annotation.models.catalogue import Benchmark, KeyPoint, Task
from annotation.models.trajectories import Agent, Submission, Trajectory
from annotation.records import Finding, Verdict

VERDICTS = [(verdict.value, verdict.name.replace("_", " ").capitalize()) for verdict in Verdict]
FINDINGS = [(finding.value, finding.value) for finding in Finding]


def person(**options: Any) -> Any:
    """Return a foreign key to a person. People are deactivated, and never deleted while a row refers to them."""
    return models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, **options)


class Membership(models.Model):
    """The only role of a person in a submission, with the pseudonym that everybody else sees."""

    class Role(models.TextChoices):
        ANNOTATOR = "annotator"
        ADJUDICATOR = "adjudicator"
        MAINTAINER = "maintainer"
        AUDITOR = "auditor"  # only reads a submission that came in an evidence bundle

    submission = models.ForeignKey(Submission, on_delete=models.CASCADE, related_name="memberships")
    person = person(related_name="memberships")
    role = models.CharField(max_length=12, choices=Role.choices)
    pseudonym = models.CharField(max_length=12)
    joined_at = CreatedAtField()
    deactivated_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["submission", "person"], name="one_role_per_person_and_submission"),
            models.UniqueConstraint(fields=["submission", "pseudonym"], name="pseudonym_once"),
            models.CheckConstraint(
                condition=Q(role__in=["annotator", "adjudicator", "maintainer", "auditor"]), name="role_known"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.pseudonym} ({self.role})"


class Assignment(models.Model):
    """A slot of a trajectory, reserved for one annotator.

    It has a lease until the label is submitted (``lease_expires_at`` is then null). It is deleted when it is released
    or the lease expires. A label refers to it, so a slot with a label cannot be assigned again. While it is put off,
    ``put_off_until`` is the end of its lease, and the queue offers other trajectories. ``submit_at`` is the time at
    which the draft becomes a label; until then the annotator can undo the submit.
    """

    trajectory = models.ForeignKey(Trajectory, on_delete=models.PROTECT, related_name="assignments")
    annotator = person(related_name="assignments")
    slot = models.PositiveSmallIntegerField()
    claimed_at = models.DateTimeField()
    lease_expires_at = models.DateTimeField(null=True, blank=True)
    put_off_until = models.DateTimeField(null=True, blank=True)
    submit_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["trajectory", "slot"], name="slot_given_once"),
            models.UniqueConstraint(fields=["trajectory", "annotator"], name="one_slot_per_annotator"),
            models.CheckConstraint(condition=Q(slot__gte=1), name="slots_count_from_one"),
        ]
        indexes = [
            # Serves queue.find_held and the release of expired leases.
            models.Index(F("lease_expires_at"), condition=Q(lease_expires_at__isnull=False), name="assignment_leases"),
            # Serves parked.submit_due, every few seconds.
            models.Index(F("submit_at"), condition=Q(submit_at__isnull=False), name="assignment_parked"),
        ]

    def __str__(self) -> str:
        return f"slot {self.slot} of {self.trajectory}"

    @property
    def is_submitted(self) -> bool:
        """Whether the annotator has submitted: there is a label, or there will be one at ``submit_at``."""
        return self.lease_expires_at is None or self.submit_at is not None


class Release(models.Model):
    """A trajectory that an annotator declined for a reason; it is not offered to them again."""

    trajectory = models.ForeignKey(Trajectory, on_delete=models.PROTECT, related_name="releases")
    annotator = person(related_name="releases")
    reason = models.TextField()
    released_at = models.DateTimeField()
    lifted_at = models.DateTimeField(null=True, blank=True)  # when a maintainer allowed it for them again

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["trajectory", "annotator"], condition=Q(lifted_at__isnull=True), name="released_once"
            )
        ]

    def __str__(self) -> str:
        return self.reason


class Decision(models.Model):
    """The fields common to labels and adjudications, with the rules for complete ones.

    ``further_failure_types`` are codes in addition to the main one, ``evidence_missing`` are step numbers, ``boxes``
    and ``process`` (marks on steps) are objects as `label_fields` stores them. The desk measures ``active_seconds`` and
    ``steps_seen`` (see `Activity`); they are null if it could not (no JavaScript).
    """

    verdict = models.PositiveSmallIntegerField(choices=VERDICTS)
    reasoning = models.TextField()
    failure_step = models.PositiveIntegerField(null=True, blank=True)
    failure_type = models.CharField(max_length=40, blank=True)
    further_failure_types = models.JSONField(default=list, db_default=[], blank=True)
    cause = models.CharField(max_length=40, blank=True)
    exception_reason = models.TextField(blank=True)
    evidence_missing = models.JSONField(default=list, db_default=[], blank=True)
    boxes = models.JSONField(default=list, db_default=[], blank=True)
    process = models.JSONField(default=list, db_default=[], blank=True)
    active_seconds = models.PositiveIntegerField(null=True, blank=True)
    steps_seen = models.JSONField(null=True, blank=True)

    class Meta:
        abstract = True

    @staticmethod
    def complete(prefix: str, unless: Q | None = None) -> list[models.BaseConstraint]:
        """Return the constraints of a complete decision, named ``<prefix>_...``; ``unless`` exempts open rows.

        A trigger ensures that a failure names its step if the trajectory has steps: see `triggers.EXPLAINED`.
        """
        rules = {
            "verdict_known": Q(verdict__in=[v.value for v in Verdict]),
            "reasoning_given": ~Q(reasoning=""),
            "failure_explained": ~Q(verdict=Verdict.FAILURE) | ~Q(failure_type=""),
            "cause_given": ~Q(verdict=Verdict.NOT_EXECUTABLE) | ~Q(cause=""),
        }
        return [
            models.CheckConstraint(condition=(rule if unless is None else unless | rule), name=f"{prefix}_{name}")
            for name, rule in rules.items()
        ]


class Label(Decision):
    """One annotator's verdict with its reasons. Append-only: a correction is the next ``revision``.

    ``submitted_at`` is the time of a submit that could be undone for a while, and is null for others.
    """

    assignment = models.ForeignKey(Assignment, on_delete=models.PROTECT, related_name="labels")
    revision = models.PositiveIntegerField(default=1)
    revision_reason = models.TextField(blank=True)
    submitted_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField()

    class Meta:
        ordering = ["revision"]
        constraints = [
            *Decision.complete("label"),
            models.UniqueConstraint(fields=["assignment", "revision"], name="label_revision_once"),
            models.CheckConstraint(
                condition=Q(revision=1) | ~Q(revision_reason=""), name="label_revision_has_a_reason"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.get_verdict_display()} (revision {self.revision})"


class InformedRevision(models.Model):
    """An annotator's opinion on their own blind label after seeing judges' evidence; it never replaces the label.

    ``label`` is the blind revision before it, which cannot be revised after ``shown_at``. ``judgments`` lists what was
    shown, in order: objects with judge, fingerprint, judgment (its primary key) and verdict (null for unscored).
    ``verdict`` keeps or changes the opinion, once; a change has a ``reason``.
    """

    label = models.OneToOneField(Label, on_delete=models.PROTECT, related_name="informed")
    judgments = models.JSONField()
    shown_at = models.DateTimeField()
    verdict = models.PositiveSmallIntegerField(choices=VERDICTS, null=True, blank=True)
    reason = models.TextField(blank=True)
    decided_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(decided_at__isnull=True, verdict__isnull=True, reason="")
                | Q(decided_at__isnull=False, verdict__isnull=False, verdict__in=[v.value for v in Verdict]),
                name="informed_decided_with_a_verdict",
            )
        ]

    @property
    def changed(self) -> bool:
        return self.verdict is not None and self.verdict != self.label.verdict

    def __str__(self) -> str:
        return f"informed revision of {self.label}"


class HumanAttempt(models.Model):
    label = models.OneToOneField(Label, on_delete=models.PROTECT, related_name="attempt")
    steps = models.PositiveIntegerField(null=True, blank=True)
    notes = models.TextField()
    link = models.CharField(max_length=500, blank=True)
    path = models.CharField(max_length=20)
    seconds = models.PositiveIntegerField(null=True, blank=True)

    class Meta:
        constraints = [models.CheckConstraint(condition=~Q(notes=""), name="attempt_noted")]

    @property
    def time(self) -> str:
        return "" if self.seconds is None else format_clock(self.seconds)

    def __str__(self) -> str:
        return "no steps" if self.steps is None else counted(self.steps, "step")


class Findings(models.Manager[Any]):
    """Fetch each finding with its key point.

    Django would fetch the key points of many findings with a condition for each, and SQLite refuses more than 1,000.
    """

    def get_queryset(self) -> models.QuerySet[Any]:
        return super().get_queryset().select_related("key_point")


class KeyPointFinding(models.Model):
    label = models.ForeignKey(Label, on_delete=models.PROTECT, related_name="findings")
    key_point = models.ForeignKey(KeyPoint, on_delete=models.PROTECT, related_name="findings")
    finding = models.CharField(max_length=8, choices=FINDINGS)
    step = models.PositiveIntegerField(null=True, blank=True)

    objects = Findings()

    class Meta:
        ordering = ["key_point__position", "key_point_id"]
        constraints = [
            models.UniqueConstraint(fields=["label", "key_point"], name="finding_once_per_label"),
            models.CheckConstraint(condition=Q(finding__in=list(Finding)), name="finding_known"),
        ]

    def __str__(self) -> str:
        return self.finding


class Flag(models.Model):
    trajectory = models.ForeignKey(Trajectory, on_delete=models.PROTECT, related_name="flags")
    annotator = person(related_name="flags")
    note = models.TextField(blank=True)
    flagged_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["trajectory", "annotator"], name="flagged_once")]

    def __str__(self) -> str:
        return self.note


class FlagAnswer(models.Model):
    """An adjudicator's message to everybody who flagged a trajectory. It decides nothing: no event holds it."""

    trajectory = models.ForeignKey(Trajectory, on_delete=models.PROTECT, related_name="flag_answers")
    answered_by = person(related_name="flag_answers")
    text = models.TextField()
    answered_at = models.DateTimeField()

    class Meta:
        ordering = ("answered_at", "pk")
        constraints = [models.CheckConstraint(condition=~Q(text=""), name="flag_answer_has_a_text")]

    def __str__(self) -> str:
        return self.text


class Report(models.Model):
    """A problem that only a maintainer can fix: an outdated task or an unclear guideline."""

    class Kind(models.TextChoices):
        TASK_OUTDATED = "task_outdated", "task outdated"
        GUIDELINE_UNCLEAR = "guideline_unclear", "guideline unclear"

    trajectory = models.ForeignKey(Trajectory, on_delete=models.PROTECT, related_name="reports")
    reporter = person(related_name="reports")
    kind = models.CharField(max_length=20, choices=Kind.choices)
    note = models.TextField()
    reported_at = models.DateTimeField()
    settled_at = models.DateTimeField(null=True, blank=True)
    settled_by = person(null=True, blank=True, related_name="+")
    answer = models.TextField(blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["trajectory", "reporter", "kind"], name="reported_once"),
            models.CheckConstraint(condition=~Q(note=""), name="report_has_a_note"),
        ]

    def __str__(self) -> str:
        return self.note


class SpotCheckDraw(models.Model):
    """A seeded random choice among the unanimous trajectories; anybody can repeat it from this row.

    ``population`` and ``drawn`` are sorted lists of the tasks' external ids.
    """

    submission = models.ForeignKey(Submission, on_delete=models.PROTECT, related_name="spot_check_draws")
    number = models.PositiveIntegerField()
    seed = models.CharField(max_length=80)
    rate = models.FloatField()
    population = models.JSONField()
    drawn = models.JSONField()
    drawn_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["submission", "number"], name="draw_number_once")]

    def __str__(self) -> str:
        return f"draw {self.number}"


class SpotCheck(models.Model):
    trajectory = models.OneToOneField(Trajectory, on_delete=models.PROTECT, related_name="spot_check")
    draw = models.ForeignKey(SpotCheckDraw, on_delete=models.PROTECT, related_name="members")
    selected = models.BooleanField()

    def __str__(self) -> str:
        return "drawn" if self.selected else "not drawn"


class Reopening(models.Model):
    """A maintainer's request for a new adjudication, which gets the number ``revision``."""

    trajectory = models.ForeignKey(Trajectory, on_delete=models.PROTECT, related_name="reopenings")
    reopened_by = person(related_name="+")
    reason = models.TextField()
    revision = models.PositiveIntegerField()
    reopened_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.reason


class Adjudication(Decision):
    """The deciding verdict. One adjudicator opens a row and decides it once; then it never changes.

    ``blind`` records whether the adjudicator decided without having seen a label, as a spot check requires. Until
    ``put_off_until`` an open one stays with its adjudicator, and the queue offers them other trajectories.
    """

    trajectory = models.ForeignKey(Trajectory, on_delete=models.PROTECT, related_name="adjudications")
    adjudicator = person(related_name="adjudications")
    revision = models.PositiveIntegerField(default=1)
    revision_reason = models.TextField(blank=True)
    blind = models.BooleanField()
    opened_at = models.DateTimeField()
    put_off_until = models.DateTimeField(null=True, blank=True)
    decided_at = models.DateTimeField(null=True, blank=True)
    # Empty while it is open, unlike the verdict of a label.
    verdict = models.PositiveSmallIntegerField(  # type: ignore[assignment]
        choices=VERDICTS, null=True, blank=True
    )
    reasoning = models.TextField(blank=True)
    criterion = models.CharField(max_length=40, blank=True, default="", db_default="")  # a code of protocol.DECIDING

    class Meta:
        ordering = ["revision"]
        constraints = [
            *Decision.complete("adjudication", unless=Q(decided_at__isnull=True)),
            models.CheckConstraint(
                condition=Q(decided_at__isnull=True, verdict__isnull=True)
                | Q(decided_at__isnull=False, verdict__isnull=False),
                name="adjudication_decided_with_a_verdict",
            ),
            models.UniqueConstraint(fields=["trajectory", "revision"], name="adjudication_revision_once"),
            models.UniqueConstraint(
                fields=["trajectory"], condition=Q(decided_at__isnull=True), name="one_open_adjudication"
            ),
        ]

    def __str__(self) -> str:
        return f"adjudication {self.revision} of {self.trajectory}"


class AdjudicationFinding(models.Model):
    adjudication = models.ForeignKey(Adjudication, on_delete=models.PROTECT, related_name="findings")
    key_point = models.ForeignKey(KeyPoint, on_delete=models.PROTECT, related_name="+")
    finding = models.CharField(max_length=8, choices=FINDINGS)
    step = models.PositiveIntegerField(null=True, blank=True)

    objects = Findings()

    class Meta:
        ordering = ["key_point__position", "key_point_id"]
        constraints = [
            models.UniqueConstraint(fields=["adjudication", "key_point"], name="finding_once_per_adjudication"),
            models.CheckConstraint(condition=Q(finding__in=list(Finding)), name="adjudication_finding_known"),
        ]

    def __str__(self) -> str:
        return self.finding


class ImportedLabel(models.Model):
    """An imported label, for research; never part of a submission's own evidence.

    ``position`` is its place in the file: published tables take the first listed label of a trajectory.
    """

    benchmark = models.ForeignKey(Benchmark, on_delete=models.CASCADE, related_name="imported_labels")
    task = models.ForeignKey(Task, on_delete=models.PROTECT, related_name="imported_labels")
    agent = models.ForeignKey(Agent, on_delete=models.PROTECT, related_name="imported_labels")
    annotator = models.CharField(max_length=200)
    position = models.PositiveIntegerField()
    verdict = models.PositiveSmallIntegerField(choices=VERDICTS)
    reasoning = models.TextField(blank=True)
    failure_step = models.PositiveIntegerField(null=True, blank=True)
    failure_type = models.CharField(max_length=100, blank=True)

    class Meta:
        ordering = ["position"]
        constraints = [
            models.UniqueConstraint(
                fields=["benchmark", "task", "agent", "annotator"], name="imported_label_once_per_annotator"
            ),
            models.CheckConstraint(
                condition=Q(verdict__in=[v.value for v in Verdict]), name="imported_label_verdict_known"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.annotator}: {self.verdict}"
