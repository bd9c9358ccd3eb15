"""Forms that check the format of input; the workflow checks whether a label is complete, using `protocol`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

from django import forms
from django.conf import settings
from django.contrib.auth.validators import UnicodeUsernameValidator
from django.core.exceptions import ValidationError
from django.core.files import File
from django.utils.text import slugify

from annotation import label_fields
from annotation.catalogue import LARGEST_LABEL_FILE
from annotation.completeness import Asked, missing
from annotation.form_fields import (
    MAX_STEP,
    VERDICT_NAMES,
    ClockFormField,
    Codes,
    CodesFormField,
    StepsFormField,
    form_field,
    terms,
)
from annotation.formats.people_csv import LARGEST_FILE, MOST_ROWS
from annotation.formats.printable import counted
from annotation.formats.registry import describe_files, describe_task_files
from annotation.invitations import GIVEN_ROLES
from annotation.label_fields import ADJUDICATION_FIELDS, ATTEMPT_FIELDS, LABEL_FIELDS, LabelContent, LabelField
from annotation.models import Adjudication, Benchmark, KeyPoint, Label, Person, WebhookEvent
from annotation.protocol import PATHS, PROCESS_LABELS, VERDICT_RULES, Term, is_blank
from annotation.records import AttemptContent, Finding, FindingContent, Problem, Verdict
from annotation.workflow import Incomplete

VERDICT_KEYS = {Verdict.FAILURE: "f", Verdict.SUCCESS: "s", Verdict.NOT_EXECUTABLE: "n"}
PROCESS_KEYS = {"wrong": "w", "unnecessary": "i", "side_effect": "y"}
FINDING_SIGNS = {Finding.MET: "✓", Finding.UNMET: "✕", Finding.UNCLEAR: "?"}
# The fields that templates/annotation/_label_form.html places itself, and the classes of its parts for a verdict.
PLACED = {"verdict", "failure_step", "failure_type", "further_failure_types", "cause", "reasoning", "exception_reason"}
PLACED |= {"evidence_missing", "boxes", "process", "criterion"}
BLOCKS = {Verdict.FAILURE: "for-failure", Verdict.NOT_EXECUTABLE: "for-cause"}
FINDING_FIELD = re.compile(r"finding_([1-9][0-9]{0,17})")  # one spelling of a number, or a finding could come twice


class LabelForm(forms.Form):
    """Form of a label or an adjudication. No field is required, so a draft is valid.

    Always bound: ``data`` is a POST, a draft's content, or `values_of` a decision. ``asked`` adds parts to those of
    every label: findings on key points, an own attempt, the criterion of an adjudication.
    """

    flag = forms.BooleanField(required=False)
    flag_note = forms.CharField(required=False, max_length=2000)
    reason = forms.CharField(required=False, max_length=2000)

    def __init__(self, data: Mapping[str, Any] | None, asked: Asked) -> None:
        super().__init__(data if data is not None else {})
        self.asked = asked
        self.declared = ADJUDICATION_FIELDS if asked.criterion else LABEL_FIELDS
        self.fields = {name: form_field(each) for name, each in self.declared.items()} | self.fields
        choices = [("", ""), *((finding.value, finding.value) for finding in Finding)]
        for pk in asked.key_points:
            self.fields[f"finding_{pk}"] = forms.ChoiceField(choices=choices, required=False)
            self.fields[f"finding_{pk}_step"] = forms.IntegerField(required=False, min_value=0, max_value=MAX_STEP)
        if asked.attempt:
            self.fields["attempt_steps"] = forms.IntegerField(required=False, min_value=0, max_value=MAX_STEP)
            self.fields["attempt_notes"] = forms.CharField(required=False)
            self.fields["attempt_link"] = forms.URLField(required=False, max_length=500, assume_scheme="https")
            self.fields["attempt_path"] = forms.ChoiceField(choices=terms(PATHS), required=False)
            self.fields["attempt_seconds"] = ClockFormField(required=False)
        self.is_valid()
        if self._hides_findings:
            for name in [name for name in self.errors if FINDING_FIELD.match(name)]:
                del self.errors[name]

    @property
    def _hides_findings(self) -> bool:
        """Whether the form shows no key points, so that nobody can complete a finding."""
        return bool(self.cleaned_data.get("verdict") is Verdict.NOT_EXECUTABLE)

    @classmethod
    def from_post(cls, data: Mapping[str, Any], *, attempt: bool = False, criterion: bool = False) -> LabelForm:
        """Return a posted form with the key points that it names; the workflow compares them with those of the task."""
        key_points = tuple(int(match[1]) for name in data if (match := FINDING_FIELD.fullmatch(name)))
        return cls(data, Asked(key_points, attempt=attempt, criterion=criterion))

    def valid_content(self) -> LabelContent:
        """Return the content; raise Incomplete if a value is malformed, without problems: the form lists its errors."""
        if self.errors:
            raise Incomplete([])
        return self.content()

    def content(self) -> LabelContent:
        """Return the entered content; a malformed value counts as missing, and is in `errors`."""
        given = {name: value for name, value in self.cleaned_data.items() if name in ADJUDICATION_FIELDS}
        return LabelContent(
            findings=tuple(each for pk in self.asked.key_points if (each := self._finding(pk)).finding),
            attempt=self._attempt() if self.asked.attempt else None,
            **given,
        )

    def note(self) -> str | None:
        """Return the note of the flag, None without a flag."""
        return self.cleaned_data["flag_note"] if self.cleaned_data["flag"] else None

    def _finding(self, pk: int) -> FindingContent:
        value, step = self.cleaned_data.get(f"finding_{pk}"), self.cleaned_data.get(f"finding_{pk}_step")
        asks_step = self.asked.steps or f"finding_{pk}_step" in self.data
        lacks_step = asks_step and step is None and value != Finding.UNCLEAR
        hidden = self._hides_findings and lacks_step
        return FindingContent(pk, Finding(value) if value and not hidden else None, step)

    def _attempt(self) -> AttemptContent:
        given = {name: self.cleaned_data.get(f"attempt_{name}") for name in ATTEMPT_FIELDS}
        return AttemptContent(**{name: value for name, value in given.items() if value is not None})

    def typed(self) -> dict[str, str]:
        """Return the fields for a draft: all that are not empty, as typed."""
        typed = {name: self._typed(name) for name in self.fields}
        return {name: str(value) for name, value in typed.items() if value not in (None, "")}

    def attempt_complete(self) -> bool:
        """Return whether the own attempt is complete, as far as this form can tell."""
        return not any(problem.where.startswith("attempt_") for problem in self.missing())

    def attempt_lines(self) -> list[str]:
        """Return the annotator's own path as far as it is typed: a line for each step."""
        return [line.strip() for line in str(self.data.get("attempt_notes") or "").splitlines() if line.strip()]

    def _typed(self, name: str) -> Any:
        if isinstance(self.fields[name], CodesFormField):
            return Codes().value_from_datadict(self.data, {}, name)
        return self.data.get(name)

    def missing(self) -> list[Problem]:
        malformed = [
            Problem("malformed", " ".join(map(str, errors)), name)
            for name, errors in self.errors.items()
            if name != "__all__"
        ]
        named = {problem.where for problem in malformed}
        problems = malformed + [p for p in missing(self.content(), self.asked) if p.where not in named]
        if self.asked.reason and is_blank(self.cleaned_data.get("reason", "")) and "reason" not in named:
            problems.append(Problem("reason_missing", "Enter the reason for the revision.", "reason"))
        return problems

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

    def findings(self) -> list[tuple[str, str]]:
        return [(finding.value, FINDING_SIGNS[finding]) for finding in Finding]

    @cached_property
    def options(self) -> dict[str, list[tuple[Term, bool]]]:
        """Return the terms of each field that has terms, and whether each is chosen."""
        kinds = label_fields.CodeField | label_fields.CodesField
        known = {name: each.terms for name, each in self.declared.items() if isinstance(each, kinds)}
        if self.asked.attempt:
            known["attempt_path"] = PATHS
        chosen = {name: str(self._typed(name) or "").split() for name in known}
        return {name: [(term, term.code in chosen[name]) for term in each] for name, each in known.items()}

    def other_rows(self) -> list[dict[str, Any]]:
        return [self._row(self.declared[name]) for name in self.declared if name not in PLACED]

    def _row(self, declared: LabelField) -> dict[str, Any]:
        return {
            "name": declared.name,
            "title": declared.title,
            "label": declared.label or declared.title,
            "block": "" if declared.of is None else BLOCKS.get(declared.of, ""),
            "needed": bool(declared.required),
            "terms": self.options.get(declared.name, []),
            "several": isinstance(declared, label_fields.CodesField),
            "text": isinstance(declared, label_fields.TextField),
            "value": str(self._typed(declared.name) or ""),
            "errors": self.errors.get(declared.name, []),
        }

    @property
    def shows_process(self) -> bool:
        """Return whether the form has the marks of steps; a draft can have some that are not asked for any more."""
        return bool(self.asked.steps and (self.asked.process or self.data.get("process")))

    def process_marks(self) -> list[tuple[str, Term]]:
        """Return the marks of a step, each with its key."""
        return [(PROCESS_KEYS[term.code], term) for term in PROCESS_LABELS]

    def rows(self, key_points: Iterable[KeyPoint]) -> list[dict[str, Any]]:
        """Return a row for each key point: the field name, the chosen value, the step as typed, the errors of both."""
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
    if decision is None:
        return {}
    declared = ADJUDICATION_FIELDS if isinstance(decision, Adjudication) else LABEL_FIELDS
    values: dict[str, Any] = {name: each.as_text(getattr(decision, name)) for name, each in declared.items()}
    if attempt := getattr(decision, "attempt", None):
        values |= {f"attempt_{name}": getattr(attempt, name) for name in ATTEMPT_FIELDS}
        values["attempt_seconds"] = attempt.time
    for finding in decision.findings.all():
        values[f"finding_{finding.key_point_id}"] = finding.finding
        values[f"finding_{finding.key_point_id}_step"] = finding.step
    return {name: str(value) for name, value in values.items() if value not in (None, "")}


class InformedForm(forms.Form):
    """An annotator's opinion after seeing the judges' evidence; without a reason they can only keep their verdict."""

    verdict = forms.TypedChoiceField(
        choices=[(str(v.value), name) for v, name in VERDICT_NAMES.items()],
        coerce=lambda value: Verdict(int(value)),
        error_messages={
            "required": "Choose whether you keep your verdict.",
            "invalid_choice": "Choose a valid verdict.",
        },
    )
    reason = forms.CharField(required=False, max_length=2000)


class ActivityForm(forms.Form):
    """Activity report of a desk: active seconds and opened steps since its last report."""

    seconds = forms.FloatField(min_value=0)
    steps = StepsFormField(required=False, max_length=20_000)
    revising = forms.BooleanField(required=False)


class KeyPointsForm(forms.Form):
    key_points = forms.CharField(
        label="Key points, one per line",
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


class WebhookForm(forms.Form):
    url = forms.CharField(
        label="Address", max_length=500, widget=forms.URLInput, help_text="It must begin with https:// and be public."
    )
    events = forms.MultipleChoiceField(
        choices=WebhookEvent.choices,
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text="Choose none to get all, also those that are added later.",
    )

    def __init__(self, *args: Any, of_submission: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if of_submission:  # an upload belongs to the benchmark: its submission does not exist yet
            shown = [each for each in WebhookEvent.choices if each[0] != WebhookEvent.UPLOAD_FINISHED]
            self.fields["events"].choices = shown  # type: ignore[attr-defined]


PROTOCOL_VERSIONS = [(1, "1: judge the agent's steps"), (2, "2: do the task yourself first, then judge")]
ASKS_PROCESS = "Annotators may mark single steps as wrong, unnecessary or a side effect. Unmarked steps are right."
TASK_FILES = (
    "a JSON list of objects with task_id and confirmed_task; the task list of WebArena-Verified; "
    + describe_task_files()
)


def check_size(file: File, limit: int, hint: str = "") -> None:
    """Raise ValidationError, also for serializers, if an uploaded file has more than ``limit`` bytes."""
    if file.size > limit:
        says = f"The file has {file.size:,} bytes; at most {limit:,} are accepted."
        raise ValidationError(f"{says} {hint}".strip())


def check_package_size(file: File) -> None:
    check_size(file, settings.WEBVERDICT_MAX_UPLOAD_BYTES)


def check_task_file_size(file: File) -> None:
    limit = settings.WEBVERDICT_MAX_UPLOAD_BYTES // 16  # 256 MiB with the default setting
    check_size(file, limit, "Use the command import_tasks for larger files.")


def check_label_file_size(file: File) -> None:
    check_size(file, LARGEST_LABEL_FILE)


def check_people_file_size(file: File) -> None:
    check_size(file, LARGEST_FILE)


class UploadForm(forms.Form):
    package = forms.FileField(
        label="Package",
        validators=[check_package_size],
        help_text=f"One of: {describe_files()}. Other agents can write the format webverdict-1.",
    )
    agent_name = forms.CharField(label="Agent", max_length=200, help_text="The name used in exports.")
    benchmark = forms.ModelChoiceField(
        Benchmark.objects.filter(archived_at=None).order_by("name"), required=False, empty_label="Choose…"
    )
    tasks = forms.FileField(
        label="Tasks of a new benchmark",
        validators=[check_task_file_size],
        required=False,
        help_text=f"Only if the benchmark is not in the list. One of: {TASK_FILES}.",
    )
    benchmark_name = forms.CharField(label="Name of the new benchmark", max_length=64, required=False)
    protocol_version = forms.TypedChoiceField(
        choices=PROTOCOL_VERSIONS,
        coerce=int,
        required=False,
        initial=2,
        empty_value=None,
        help_text="Online-Mind2Web requires version 2. You can change it until the first trajectory is reserved.",
    )
    process_labels = forms.BooleanField(
        label="Process labels",
        required=False,
        help_text=f"{ASKS_PROCESS} You can change this until the first trajectory is reserved.",
    )
    create_tasks = forms.BooleanField(
        label="Create missing tasks",
        required=False,
        help_text="Creates the tasks that the benchmark lacks, from the texts in the logs.",
    )
    keep_valid = forms.BooleanField(
        label="Keep the valid trajectories",
        required=False,
        help_text="Otherwise one invalid trajectory rejects the whole package.",
    )
    dry_run = forms.BooleanField(
        label="Check without importing",
        required=False,
        help_text=(
            "If the check finds no problems, the file is stored for "
            f"{counted(settings.CHECKED_PACKAGE_HOURS, 'hour')}, so that you can import it."
        ),
    )

    def clean(self) -> dict[str, Any]:
        given = super().clean() or {}
        if not given.get("benchmark") and not given.get("tasks"):
            self.add_error("benchmark", "Choose a benchmark, or upload the tasks of a new one.")
        given["protocol_version"] = given.get("protocol_version") or 1  # forms of earlier versions lack the field
        if given.get("tasks") and not slugify(given.get("benchmark_name", "")) and not given.get("benchmark"):
            self.add_error("benchmark_name", "Enter a name for the new benchmark, with letters or digits.")
        return given


class UploadInPartsForm(UploadForm):
    """The same, before the package arrives: its name and size in place of the file."""

    package = None  # type: ignore[assignment]
    file_name = forms.CharField(max_length=255)
    length = forms.IntegerField(min_value=1)


class TasksForm(forms.Form):
    name = forms.CharField(
        label="Benchmark", max_length=64, help_text="If the benchmark exists, the tasks are added to it."
    )
    tasks = forms.FileField(
        label="Task file",
        validators=[check_task_file_size],
        help_text=f"One of: {TASK_FILES}.",
    )

    def clean_name(self) -> str:
        if not slugify(self.cleaned_data["name"]):
            raise ValidationError("Use letters or digits.")
        return str(self.cleaned_data["name"])


class PeopleFileForm(forms.Form):
    people = forms.FileField(
        label="CSV file",
        validators=[check_people_file_size],
        help_text=f"At most {MOST_ROWS} rows below the header, separated by commas or semicolons, in UTF-8.",
    )
    dry_run = forms.BooleanField(
        label="Check without inviting", required=False, help_text="Shows what would happen. Sends and saves nothing."
    )


class HoursForm(forms.Form):
    """A span of days, of which each can be left out."""

    first = forms.DateField(label="From", required=False, widget=forms.DateInput(attrs={"type": "date"}))
    last = forms.DateField(label="To", required=False, widget=forms.DateInput(attrs={"type": "date"}))
    daily = forms.BooleanField(label="One row for each day", required=False)

    def clean(self) -> dict[str, Any]:
        given = super().clean() or {}
        if given.get("first") and given.get("last") and given["first"] > given["last"]:
            raise ValidationError("The first day (From) is after the last (To). Swap them.")
        return given


class LabelsForm(forms.Form):
    labels = forms.FileField(
        label="Label file",
        validators=[check_label_file_size],
        help_text="CSV with annotator, task_id, agent, label; optionally reasoning, failure_step, failure_type.",
    )


class MemberForm(forms.Form):
    person = forms.ModelChoiceField(Person.objects.filter(is_active=True).order_by("username"), empty_label="Choose…")
    role = forms.ChoiceField(choices=GIVEN_ROLES)


class InvitationForm(forms.Form):
    """A new person. They set their password by a link that is shown once."""

    prefix = "new"
    username = forms.CharField(
        label="User name", max_length=150, validators=[UnicodeUsernameValidator()], help_text="Used to sign in."
    )
    email = forms.EmailField(max_length=254, required=False)
    role = forms.ChoiceField(choices=GIVEN_ROLES)

    def clean_username(self) -> str:
        name = Person.normalize_username(self.cleaned_data["username"])
        if Person.objects.filter(username__iexact=name).exists():
            raise ValidationError("An account with this name exists; add that person instead.")
        return str(name)


class MatrixForm(forms.Form):
    """Filters of the maintainer's matrix, from the address; invalid values are ignored."""

    q = forms.CharField(label="Task", required=False, max_length=200)
    state = forms.ChoiceField(required=False)
    slot = forms.ChoiceField(label="Slots", required=False)
    who = forms.ChoiceField(label="Annotator", required=False)

    def __init__(self, data: Mapping[str, Any], states: Iterable[str], slots: Iterable[str], names: Iterable[str]):
        super().__init__(data, auto_id="filter_%s", label_suffix="")
        for name, values in (("state", states), ("slot", slots), ("who", names)):
            self.fields[name].choices = [("", "any"), *((value, value) for value in values)]  # type: ignore[attr-defined]
        self.is_valid()

    def chosen(self) -> dict[str, str]:
        return {name: value for name, value in self.cleaned_data.items() if value}
