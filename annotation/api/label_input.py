"""Labels and adjudications as scripts send them: the fields of `label_fields` as JSON."""

from __future__ import annotations

from collections import Counter
from typing import Any

from rest_framework import serializers

from annotation import label_fields as declared
from annotation import workflow
from annotation.api.serializers import BoxSerializer, FindingSerializer, StepMarkSerializer
from annotation.form_fields import MAX_STEP
from annotation.label_fields import ADJUDICATION_FIELDS, LABEL_FIELDS, LabelContent, LabelField
from annotation.models import Trajectory
from annotation.models.reviews import VERDICTS
from annotation.protocol import PATHS
from annotation.records import AttemptContent, Box, Finding, FindingContent, Problem, StepMark, Verdict
from annotation.workflow.guards import LONGEST_NOTE

LONGEST_LIST = 10_000  # steps, boxes or marks of a label
NOTE = "Flags the trajectory for the adjudicator, with this note; null: no flag."
ATTEMPT_NOT_ASKED = "This submission uses version 1 of the protocol, which has no own attempt. Leave it out."


def _build_field(each: LabelField) -> serializers.Field:
    """Return a field that may be left out: the workflow says what a complete label lacks."""
    usual: dict[str, Any] = {"required": False, "help_text": each.help}
    match each:
        case declared.VerdictField():
            return serializers.ChoiceField(choices=VERDICTS, allow_null=True, **usual)
        case declared.StepField():
            return serializers.IntegerField(min_value=0, max_value=MAX_STEP, allow_null=True, **usual)
        case declared.CodesField():
            return serializers.ListField(child=serializers.CharField(max_length=100), max_length=100, **usual)
        case declared.StepsField():
            step = serializers.IntegerField(min_value=0, max_value=MAX_STEP)
            return serializers.ListField(child=step, max_length=LONGEST_LIST, **usual)
        case declared.BoxesField():
            return BoxSerializer(many=True, max_length=LONGEST_LIST, **usual)  # type: ignore[call-arg]
        case declared.ProcessField():
            return StepMarkSerializer(many=True, max_length=LONGEST_LIST, **usual)  # type: ignore[call-arg]
    return serializers.CharField(allow_blank=True, **usual)


class AttemptInputSerializer(serializers.Serializer):
    """The annotator's own attempt; ``steps`` is null if they could not do the task."""

    steps = serializers.IntegerField(min_value=0, max_value=MAX_STEP, required=False, allow_null=True)
    notes = serializers.CharField(required=False, allow_blank=True, help_text="One line for each step.")
    link = serializers.URLField(max_length=500, required=False, allow_blank=True)
    path = serializers.ChoiceField(
        choices=[term.code for term in PATHS],
        required=False,
        help_text="The agent's path compared with the annotator's.",
    )
    seconds = serializers.IntegerField(
        min_value=0, max_value=10**7, required=False, allow_null=True, help_text="Time of the attempt, if noted."
    )


class FindingInputSerializer(FindingSerializer):
    key_point = serializers.CharField(max_length=500, help_text="Text of the key point.")
    step = serializers.IntegerField(min_value=0, max_value=MAX_STEP, required=False, allow_null=True)


class ContentSerializer(serializers.Serializer):
    """Fields common to labels and adjudications; a field that does not apply to the verdict is stored empty."""

    declared = LABEL_FIELDS
    findings = FindingInputSerializer(many=True, required=False, max_length=LONGEST_LIST)  # type: ignore[call-arg]

    def get_fields(self) -> dict[str, serializers.Field]:
        return {name: _build_field(each) for name, each in self.declared.items()} | super().get_fields()


class LabelInputSerializer(ContentSerializer):
    """A label. Its active time and opened steps are not measured: both are null."""

    attempt = AttemptInputSerializer(required=False, allow_null=True, help_text="Only for version 2 of the protocol.")


class NewLabelSerializer(LabelInputSerializer):
    flag_note = serializers.CharField(
        required=False, allow_blank=True, allow_null=True, max_length=LONGEST_NOTE, help_text=NOTE
    )


class RevisionSerializer(LabelInputSerializer):
    reason = serializers.CharField(required=False, allow_blank=True, max_length=LONGEST_NOTE)


class DecisionInputSerializer(ContentSerializer):
    """A decision of an adjudicator. Its active time and opened steps are not measured: both are null."""

    declared = ADJUDICATION_FIELDS


def read_content(given: dict[str, Any], trajectory: Trajectory) -> LabelContent:
    """Return the content of validated input; raise Incomplete for findings on unknown key points."""
    fields: dict[str, Any] = {name: given[name] for name in ADJUDICATION_FIELDS if name in given}
    if fields.get("verdict") is not None:
        fields["verdict"] = Verdict(fields["verdict"])
    fields["boxes"] = tuple(Box(each["key_point"], each["step"], *each["box"]) for each in given.get("boxes", ()))
    fields["process"] = tuple(StepMark(each["step"], each["mark"]) for each in given.get("process", ()))
    for name in ("further_failure_types", "evidence_missing"):
        fields[name] = tuple(given.get(name, ()))
    fields["findings"] = _read_findings(given.get("findings", []), trajectory)
    if trajectory.submission.asks_attempt and given.get("attempt") is not None:
        attempt = given["attempt"]
        fields["attempt"] = AttemptContent(**attempt)
    elif given.get("attempt") is not None:
        raise workflow.Incomplete([Problem("attempt_not_asked", ATTEMPT_NOT_ASKED, "attempt")])
    return LabelContent(**fields)


def _read_findings(given: list[dict[str, Any]], trajectory: Trajectory) -> tuple[FindingContent, ...]:
    known = dict(workflow.key_points_of(trajectory).values_list("text", "pk"))
    named = Counter(each["key_point"] for each in given)
    problems = [
        Problem("finding_unknown", f"The task has no key point {text[:80]!r}.", "findings")
        for text in named
        if text not in known
    ]
    problems += [
        Problem("finding_twice", f"Send one finding for the key point {text[:80]!r}.", "findings")
        for text, times in named.items()
        if times > 1
    ]
    if problems:
        raise workflow.Incomplete(problems)
    return tuple(FindingContent(known[each["key_point"]], Finding(each["finding"]), each.get("step")) for each in given)
