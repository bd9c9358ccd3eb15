"""What people type, checked for its shape only: whether a label is complete is asked of `protocol` by the verbs."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from django import forms
from django.conf import settings
from django.contrib.auth.validators import UnicodeUsernameValidator
from django.core.exceptions import ValidationError
from django.utils.text import slugify

from annotation.catalogue import LARGEST_LABEL_FILE
from annotation.models import Adjudication, Benchmark, KeyPoint, Label, Membership, Person
from annotation.protocol import CAUSES, FAILURE_TYPES, VERDICT_RULES, Term, missing
from annotation.records import Finding, FindingContent, LabelContent, Problem, Verdict

VERDICT_NAMES = {Verdict.FAILURE: "Failure", Verdict.SUCCESS: "Success", Verdict.NOT_EXECUTABLE: "Not executable"}
VERDICT_KEYS = {Verdict.FAILURE: "f", Verdict.SUCCESS: "s", Verdict.NOT_EXECUTABLE: "n"}
FINDING_FIELD = re.compile(r"finding_([1-9][0-9]{0,17})")  # one spelling a number, or one finding comes twice
MAX_STEP = 1_000_000  # more than any trajectory has; the verb knows how many there are


def terms(choices: Iterable[Term]) -> list[tuple[str, str]]:
    return [("", "Choose…"), *((term.code, term.name) for term in choices)]


def posted_key_points(data: Mapping[str, Any]) -> list[int]:
    """The key points that a posted form speaks about; the verb compares them with those of the task."""
    return [int(match[1]) for name in data if (match := FINDING_FIELD.fullmatch(name))]


class LabelForm(forms.Form):
    """Everything a person enters for a label or an adjudication. Nothing is required here, so a draft is valid.

    Always bound: ``data`` is a POST, a draft's content, or `values_of` a decision. ``key_points`` are the ids that
    it may speak about.
    """

    verdict = forms.TypedChoiceField(
        choices=[(str(v.value), name) for v, name in VERDICT_NAMES.items()],
        coerce=lambda value: Verdict(int(value)),
        empty_value=None,
        required=False,
    )
    failure_step = forms.IntegerField(required=False, min_value=0, max_value=MAX_STEP)
    failure_type = forms.ChoiceField(choices=terms(FAILURE_TYPES), required=False)
    cause = forms.ChoiceField(choices=terms(CAUSES), required=False)
    exception_reason = forms.CharField(required=False)
    reasoning = forms.CharField(required=False)
    flag = forms.BooleanField(required=False)
    flag_note = forms.CharField(required=False, max_length=2000)
    reason = forms.CharField(required=False, max_length=2000)

    def __init__(self, data: Mapping[str, Any] | None, key_points: Collection[int]) -> None:
        super().__init__(data if data is not None else {})
        self.key_points = list(key_points)
        choices = [("", ""), *((finding.value, finding.value) for finding in Finding)]
        for pk in self.key_points:
            self.fields[f"finding_{pk}"] = forms.ChoiceField(choices=choices, required=False)
            self.fields[f"finding_{pk}_step"] = forms.IntegerField(required=False, min_value=0, max_value=MAX_STEP)
        self.is_valid()

    def content(self) -> LabelContent:
        """What has been entered; a malformed value counts as not given, and is in `errors`."""
        given = self.cleaned_data
        return LabelContent(
            verdict=given.get("verdict"),
            reasoning=given.get("reasoning", ""),
            failure_step=given.get("failure_step"),
            failure_type=given.get("failure_type", ""),
            cause=given.get("cause", ""),
            exception_reason=given.get("exception_reason", ""),
            findings=tuple(self._finding(pk) for pk in self.key_points),
        )

    def _finding(self, pk: int) -> FindingContent:
        value = self.cleaned_data.get(f"finding_{pk}")
        return FindingContent(pk, Finding(value) if value else None, self.cleaned_data.get(f"finding_{pk}_step"))

    def typed(self) -> dict[str, str]:
        """What a draft keeps: every field that is not empty, as it was typed."""
        return {name: str(self.data[name]) for name in self.fields if self.data.get(name) not in (None, "")}

    def missing(self, steps: int) -> list[Problem]:
        """What a label of a trajectory with ``steps`` steps still lacks, malformed values included."""
        malformed = [
            Problem("malformed", " ".join(map(str, errors)), name)
            for name, errors in self.errors.items()
            if name != "__all__"
        ]
        named = {problem.where for problem in malformed}
        return malformed + [p for p in missing(self.content(), self.key_points, steps) if p.where not in named]

    def add_problems(self, problems: Iterable[Problem]) -> None:
        for problem in problems:
            self.add_error(problem.where if problem.where in self.fields else None, problem.message)

    # --- for the template ---

    def verdicts(self) -> list[dict[str, Any]]:
        chosen = str(self.data.get("verdict", ""))
        return [
            {
                "value": verdict.value,
                "name": VERDICT_NAMES[verdict],
                "rule": rule,
                "key": VERDICT_KEYS[verdict],
                "checked": chosen == str(verdict.value),
            }
            for verdict, rule in VERDICT_RULES.items()
        ]

    def findings(self) -> list[str]:
        return [finding.value for finding in Finding]

    def failure_types(self) -> list[tuple[Term, bool]]:
        return [(term, self.data.get("failure_type") == term.code) for term in FAILURE_TYPES]

    def causes(self) -> list[tuple[Term, bool]]:
        return [(term, self.data.get("cause") == term.code) for term in CAUSES]

    def rows(self, key_points: Iterable[KeyPoint]) -> list[dict[str, Any]]:
        """One row a key point: its field's name, what is chosen, the step as typed, and the errors of both."""
        rows = []
        for number, point in enumerate(key_points, start=1):
            name = f"finding_{point.pk}"
            rows.append(
                {
                    "number": number,
                    "text": point.text,
                    "name": name,
                    "chosen": self.data.get(name, ""),
                    "step": self.data.get(f"{name}_step", ""),
                    "errors": [*self.errors.get(name, []), *self.errors.get(f"{name}_step", [])],
                }
            )
        return rows


def values_of(decision: Label | Adjudication | None) -> dict[str, str]:
    """A decision as the fields of its form, to start a revision from."""
    if decision is None:
        return {}
    values: dict[str, Any] = {
        "verdict": decision.verdict,
        "reasoning": decision.reasoning,
        "failure_step": decision.failure_step,
        "failure_type": decision.failure_type,
        "cause": decision.cause,
        "exception_reason": decision.exception_reason,
    }
    for finding in decision.findings.all():
        values[f"finding_{finding.key_point_id}"] = finding.finding
        values[f"finding_{finding.key_point_id}_step"] = finding.step
    return {name: str(value) for name, value in values.items() if value not in (None, "")}


class ReasonForm(forms.Form):
    """A reason; whether one is needed is the verb's business."""

    reason = forms.CharField(required=False, max_length=2000)


class KeyPointsForm(forms.Form):
    """Key points, one a line."""

    key_points = forms.CharField(
        label="Key points, one on each line",
        widget=forms.Textarea(attrs={"rows": 5}),
        max_length=20_000,
    )

    def clean_key_points(self) -> list[str]:
        lines = [line.strip(" \t•-*") for line in self.cleaned_data["key_points"].splitlines()]
        if any(len(line) > 500 for line in lines):
            raise ValidationError("A key point has at most 500 characters.")
        return [line for line in lines if line]


class ProposalForm(forms.Form):
    text = forms.CharField(label="Key point", max_length=500)


class UploadForm(forms.Form):
    """A package for an existing benchmark, or for a new one whose task file comes along."""

    package = forms.FileField(label="Package", help_text="A zip with one folder for every task id.")
    agent_name = forms.CharField(label="Agent", max_length=200, help_text="As the exports shall name it.")
    benchmark = forms.ModelChoiceField(Benchmark.objects.order_by("name"), required=False, empty_label="Choose…")
    tasks = forms.FileField(
        label="Tasks of a new benchmark",
        required=False,
        help_text="A JSON list of tasks; only when the benchmark is not in the list.",
    )
    benchmark_name = forms.CharField(label="Name of the new benchmark", max_length=64, required=False)
    keep_valid = forms.BooleanField(
        label="Keep the valid trajectories",
        required=False,
        help_text="Otherwise one bad trajectory refuses the whole package.",
    )
    dry_run = forms.BooleanField(label="Only check, keep nothing", required=False)

    def clean_package(self) -> Any:
        package, limit = self.cleaned_data["package"], settings.WEBVERDICT_MAX_UPLOAD_BYTES
        if package.size > limit:
            raise ValidationError(f"The file has {package.size:,} bytes; at most {limit:,} are accepted.")
        return package

    def clean(self) -> dict[str, Any]:
        given = super().clean() or {}
        if not given.get("benchmark") and not given.get("tasks"):
            self.add_error("benchmark", "Choose a benchmark, or upload the tasks of a new one.")
        if given.get("tasks") and not slugify(given.get("benchmark_name", "")) and not given.get("benchmark"):
            self.add_error("benchmark_name", "Give the new benchmark a name with letters or digits.")
        return given


class TasksForm(forms.Form):
    """A task file for a benchmark, new or known."""

    name = forms.CharField(label="Benchmark", max_length=64, help_text="An existing name adds to that benchmark.")
    tasks = forms.FileField(label="Task file", help_text="A JSON list of objects with task_id and confirmed_task.")

    def clean_name(self) -> str:
        if not slugify(self.cleaned_data["name"]):
            raise ValidationError("Use letters or digits.")
        return str(self.cleaned_data["name"])


class LabelsForm(forms.Form):
    """Labels made elsewhere, for research."""

    labels = forms.FileField(
        label="Label file",
        help_text="CSV with annotator, task_id, agent, label; reasoning, failure_step, failure_type if known.",
    )

    def clean_labels(self) -> Any:
        file = self.cleaned_data["labels"]
        if file.size > LARGEST_LABEL_FILE:
            raise ValidationError(f"The file has {file.size:,} bytes; at most {LARGEST_LABEL_FILE:,} are accepted.")
        return file


class MemberForm(forms.Form):
    """Somebody who has an account, and the role they get."""

    person = forms.ModelChoiceField(Person.objects.filter(is_active=True).order_by("username"), empty_label="Choose…")
    role = forms.ChoiceField(choices=Membership.Role.choices)


class InvitationForm(forms.Form):
    """A new person. They set their password by a link that is shown once."""

    prefix = "new"
    username = forms.CharField(
        label="User name", max_length=150, validators=[UnicodeUsernameValidator()], help_text="For signing in."
    )
    email = forms.EmailField(required=False)
    role = forms.ChoiceField(choices=Membership.Role.choices)

    def clean_username(self) -> str:
        name = Person.normalize_username(self.cleaned_data["username"])
        if Person.objects.filter(username__iexact=name).exists():
            raise ValidationError("There is an account of this name; add that person instead.")
        return str(name)

    def invite(self) -> Person:
        """An account with an unusable password."""
        return Person.objects.create_user(self.cleaned_data["username"], self.cleaned_data["email"])


class TokenForm(forms.Form):
    name = forms.CharField(label="What it is for", max_length=100)
