"""Serializers of API responses, with the terms of the vocabulary, and pseudonyms for people."""

from __future__ import annotations

from typing import Any

from django.db import models
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from annotation import import_causes
from annotation.formats.registry import formats
from annotation.label_fields import (
    ADJUDICATION_FIELDS,
    ATTEMPT_FIELDS,
    LABEL_FIELDS,
    BoxesField,
    CodesField,
    ProcessField,
    StepsField,
)
from annotation.models import (
    Adjudication,
    ApiToken,
    Benchmark,
    HumanAttempt,
    Label,
    Membership,
    Redaction,
    Report,
    Screenshot,
    Step,
    Submission,
    Task,
    Trajectory,
    Upload,
)
from annotation.models.reviews import FINDINGS, VERDICTS
from annotation.models.states import State
from annotation.protocol import PROCESS_LABELS
from annotation.workflow.guards import LONGEST_NOTE
from annotation.workflow.redacting import MOST_BOXES

DECISION = [
    *sorted(LABEL_FIELDS, key=lambda name: name not in ("verdict", "reasoning")),  # first in every response
    "active_seconds", "steps_seen", "revision_reason", "findings",
]  # fmt: skip


STATES = [state.value for state in State]


class ProblemSerializer(serializers.Serializer):
    """One problem: a stable code, a message, and its location."""

    code = serializers.CharField()
    message = serializers.CharField()
    where = serializers.CharField(allow_blank=True)


class ProblemDetailsSerializer(serializers.Serializer):
    """An error (RFC 9457)."""

    type = serializers.CharField()
    title = serializers.CharField()
    status = serializers.IntegerField()
    detail = serializers.CharField(allow_blank=True)
    errors = ProblemSerializer(many=True, required=False)  # type: ignore[assignment,unused-ignore]


class RejectedSerializer(serializers.Serializer):
    task_id = serializers.CharField(allow_blank=True)
    problems = ProblemSerializer(many=True)


class WarningSerializer(ProblemSerializer):
    task_id = serializers.CharField(allow_blank=True)


class CountedSerializer(serializers.Serializer):
    what = serializers.CharField()
    count = serializers.IntegerField()


class ConversionSerializer(serializers.Serializer):
    """What was carried from logs of agents, what was derived, and what was lost."""

    format = serializers.CharField()
    version = serializers.CharField(allow_blank=True)
    carried = CountedSerializer(many=True)
    derived = CountedSerializer(many=True)
    lost = CountedSerializer(many=True)


class ReportSerializer(serializers.Serializer):
    """Result of an import: accepted tasks, and rejected ones with reasons; an empty task id is the whole package."""

    accepted = serializers.ListField(child=serializers.CharField())
    valid = serializers.ListField(
        child=serializers.CharField(),
        required=False,
        help_text="Parts that passed every check but were not imported, because others were rejected.",
    )
    rejected = RejectedSerializer(many=True)
    warnings = WarningSerializer(many=True)
    conversion = ConversionSerializer(required=False, help_text="Only for logs of agents.")


class BenchmarkSerializer(serializers.ModelSerializer):
    tasks = serializers.IntegerField(
        source="task_count", help_text="Number of tasks; all versions of a task count once."
    )

    class Meta:
        model = Benchmark
        fields = ["slug", "name", "tasks"]


class TaskSerializer(serializers.ModelSerializer):
    task_id = serializers.CharField(source="external_id")
    key_points = serializers.SerializerMethodField()

    class Meta:
        model = Task
        fields = ["task_id", "version", "text", "website", "reference_length", "level", "key_points"]

    def get_key_points(self, task: Any) -> list[str]:
        return [point.text for point in task.stated]


class SubmissionSerializer(serializers.ModelSerializer):
    benchmark = serializers.CharField(source="benchmark.slug")
    agent = serializers.CharField(source="agent.name")
    trajectories = serializers.IntegerField(source="trajectory_count")

    class Meta:
        model = Submission
        fields = [
            "id", "benchmark", "agent", "attempt", "trajectories", "required_labels", "protocol_version",
            "process_labels", "spot_check_rate", "created_at", "frozen_at", "opened_at", "archived_at",
        ]  # fmt: skip


class HoursSerializer(serializers.Serializer):
    submission = serializers.IntegerField()
    annotator = serializers.CharField(help_text="The pseudonym.")
    date = serializers.DateField(allow_null=True, help_text="The day in UTC; null unless daily.")
    labels = serializers.IntegerField(help_text="Submitted labels, without revisions.")
    labels_without_time = serializers.IntegerField(help_text="Those whose time was not measured.")
    active_hours = serializers.FloatField(help_text="Active time until these labels were submitted.")
    revising_hours = serializers.FloatField(help_text="Active time of revisions.")


class MemberSerializer(serializers.ModelSerializer):
    name = serializers.CharField(source="person.username", help_text="Shown to maintainers only.")

    class Meta:
        model = Membership
        fields = ["pseudonym", "role", "name", "joined_at", "deactivated_at"]


class ProgressSerializer(serializers.ModelSerializer):
    """State of a trajectory, without verdicts."""

    trajectory = serializers.IntegerField(source="pk")
    task_id = serializers.CharField(source="task.external_id")
    state = serializers.ChoiceField(choices=STATES)
    labels = serializers.IntegerField(source="label_count")

    class Meta:
        model = Trajectory
        fields = ["trajectory", "task_id", "state", "labels"]


class VerdictSerializer(serializers.ModelSerializer):
    """The final verdict of a trajectory, and the state that made it final."""

    task_id = serializers.CharField(source="task.external_id")
    verdict = serializers.ChoiceField(choices=VERDICTS, source="final", allow_null=True)
    state = serializers.ChoiceField(choices=STATES)

    class Meta:
        model = Trajectory
        fields = ["task_id", "verdict", "state"]


class ScreenshotSerializer(serializers.ModelSerializer):
    class Meta:
        model = Screenshot
        fields = ["sha256", "media_type", "width", "height", "size"]


class StepSerializer(serializers.ModelSerializer):
    screenshot = ScreenshotSerializer(allow_null=True)
    warnings = ProblemSerializer(many=True)

    class Meta:
        model = Step
        fields = ["index", "action", "thought", "url", "status", "click_x", "click_y", "screenshot", "warnings"]


class TrajectorySerializer(serializers.ModelSerializer):
    source_format = serializers.ChoiceField(choices=list(formats()))
    task_id = serializers.CharField(source="task.external_id")
    task_version = serializers.IntegerField(source="task.version")
    steps = serializers.IntegerField(source="step_count")
    warnings = ProblemSerializer(many=True)

    class Meta:
        model = Trajectory
        fields = [
            "id", "submission", "task_id", "task_version", "task_text", "final_answer", "reference_length",
            "source_format", "digest", "steps", "warnings",
        ]  # fmt: skip


class TrajectoryDetailSerializer(TrajectorySerializer):
    steps = StepSerializer(many=True)  # type: ignore[assignment]


@extend_schema_field(serializers.CharField())
class PseudonymField(serializers.ReadOnlyField):
    """The pseudonym of the person with this primary key, from the context."""

    def to_representation(self, value: int) -> str:
        return str(self.context["pseudonyms"][value])


class FindingSerializer(serializers.Serializer):
    """A finding about one key point; ``step`` is the step that proves it."""

    key_point = serializers.CharField(source="key_point.text")
    finding = serializers.ChoiceField(choices=FINDINGS)
    step = serializers.IntegerField(allow_null=True)


class StepNumbers(serializers.ListField):
    child = serializers.IntegerField(min_value=0)


class BoxSerializer(serializers.Serializer):
    key_point = serializers.CharField(allow_null=True, help_text="Text of the key point; null: the failure.")
    step = serializers.IntegerField(min_value=0)
    box = serializers.ListField(
        child=serializers.IntegerField(min_value=0),
        min_length=4,
        max_length=4,
        help_text="x, y, width and height in pixels of the screenshot.",
    )


class StepMarkSerializer(serializers.Serializer):
    step = serializers.IntegerField(min_value=0)
    mark = serializers.ChoiceField(choices=[term.code for term in PROCESS_LABELS])


class DecisionSerializer(serializers.ModelSerializer):
    """Fields common to labels and adjudications, named by `DECISION`."""

    active_seconds = serializers.IntegerField(
        allow_null=True, min_value=0, help_text="Active time on the desk; null if it was not measured."
    )
    steps_seen = StepNumbers(allow_null=True, help_text="Steps that were opened; null if this was not measured.")
    findings = FindingSerializer(many=True)

    def build_standard_field(self, field_name: str, model_field: models.Field) -> tuple[type, dict[str, Any]]:
        kind, options = super().build_standard_field(field_name, model_field)
        declared = ADJUDICATION_FIELDS.get(field_name)
        if isinstance(declared, CodesField):
            kind, options = serializers.ListField, {"child": serializers.CharField()}
        elif isinstance(declared, StepsField):
            kind, options = StepNumbers, {}
        elif isinstance(declared, BoxesField):
            kind, options = BoxSerializer, {"many": True}
        elif isinstance(declared, ProcessField):
            kind, options = StepMarkSerializer, {"many": True}
        return kind, options | ({"help_text": declared.help} if declared else {})


class AttemptSerializer(serializers.ModelSerializer):
    """The annotator's own attempt; ``steps`` is null if they could not do the task."""

    class Meta:
        model = HumanAttempt
        fields = ATTEMPT_FIELDS


class LabelSerializer(DecisionSerializer):
    """One revision of a label, under the annotator's pseudonym. Only version 2 of the protocol has an attempt."""

    task_id = serializers.CharField(source="assignment.trajectory.task.external_id")
    annotator = PseudonymField(source="assignment.annotator_id")
    slot = serializers.IntegerField(source="assignment.slot")
    attempt = AttemptSerializer(read_only=True, allow_null=True)

    class Meta:
        model = Label
        fields = ["task_id", "annotator", "slot", "revision", *DECISION, "attempt", "created_at"]


class AdjudicationSerializer(DecisionSerializer):
    """One decided revision of an adjudication, under the adjudicator's pseudonym."""

    task_id = serializers.CharField(source="trajectory.task.external_id")
    adjudicator = PseudonymField(source="adjudicator_id")

    class Meta:
        model = Adjudication
        fields = [
            "task_id", "adjudicator", "revision", "blind", "criterion", *DECISION, "opened_at", "decided_at",
        ]  # fmt: skip


class OwnLabelSerializer(DecisionSerializer):
    """A label of the caller, without slot and id, which would reveal the number of earlier labels."""

    submission = serializers.IntegerField(source="assignment.trajectory.submission_id")
    task_id = serializers.CharField(source="assignment.trajectory.task.external_id")
    attempt = AttemptSerializer(read_only=True, allow_null=True)

    class Meta:
        model = Label
        fields = ["submission", "task_id", "revision", *DECISION, "attempt", "created_at"]


class ReportToMaintainerSerializer(serializers.ModelSerializer):
    """A problem for a maintainer, under the reporter's pseudonym; ``answer`` is empty until settled."""

    task_id = serializers.CharField(source="trajectory.task.external_id")
    reporter = PseudonymField(source="reporter_id")

    class Meta:
        model = Report
        fields = ["task_id", "reporter", "kind", "note", "reported_at", "settled_at", "answer"]


class RedactionSerializer(serializers.ModelSerializer):
    """Covered parts of a screenshot, under the maintainer's pseudonym; ``redacted`` is null if they were removed."""

    screenshot = serializers.CharField(source="original", help_text="SHA-256 of the original.")
    boxes = serializers.ListField(child=serializers.ListField(child=serializers.IntegerField()))
    redacted = serializers.SerializerMethodField()
    redacted_by = PseudonymField(source="redacted_by_id")

    class Meta:
        model = Redaction
        fields = ["screenshot", "revision", "boxes", "reason", "redacted", "size", "redacted_by", "redacted_at"]

    @extend_schema_field(serializers.CharField(allow_null=True))
    def get_redacted(self, redaction: Redaction) -> str | None:
        return redaction.redacted or None


class RedactSerializer(serializers.Serializer):
    """Boxes to cover; an empty list removes the redaction."""

    screenshot = serializers.RegexField(r"^[0-9a-f]{64}$", help_text="SHA-256 of the original.")
    boxes = serializers.ListField(
        child=serializers.ListField(
            child=serializers.IntegerField(min_value=0, max_value=10**9), min_length=4, max_length=4
        ),
        max_length=MOST_BOXES,
        help_text="x, y, width and height of each, in pixels of the original.",
    )
    reason = serializers.CharField(max_length=LONGEST_NOTE)


class TokenSerializer(serializers.ModelSerializer):
    expires_at = serializers.DateTimeField()

    class Meta:
        model = ApiToken
        fields = ["id", "name", "created_at", "last_used_at", "revoked_at", "scope", "expires_at"]


class CauseSerializer(serializers.Serializer):
    """All problems, or all warnings, of a report with one code, and how to cure them."""

    kind = serializers.ChoiceField(choices=["problem", "warning"])
    code = serializers.CharField()
    title = serializers.CharField()
    cure = serializers.CharField()
    count = serializers.IntegerField()
    folders = serializers.IntegerField(help_text="Number of folders that have it; 0 if the package itself has it.")


class UploadSerializer(serializers.ModelSerializer):
    """An uploaded package; ``done`` of ``total`` trajectories are checked; it has a report when it is finished."""

    benchmark = serializers.CharField(source="benchmark.slug")
    agent = serializers.CharField(source="agent_name")
    stage = serializers.SerializerMethodField()
    report = ReportSerializer(allow_null=True)
    causes = serializers.SerializerMethodField()

    class Meta:
        model = Upload
        fields = [
            "id", "stage", "benchmark", "agent", "file_name", "keep_valid", "dry_run", "created_at", "started_at",
            "finished_at", "done", "total", "report", "causes", "submission", "protocol_version",
            "process_labels", "create_tasks",
        ]  # fmt: skip

    @extend_schema_field(serializers.ChoiceField(choices=["waiting", "running", "finished"]))
    def get_stage(self, upload: Upload) -> str:
        return upload.stage

    @extend_schema_field(CauseSerializer(many=True))
    def get_causes(self, upload: Upload) -> list[dict[str, Any]]:
        return import_causes.summarize(upload.report) if upload.report else []
