"""Forms of intake and entries."""

from __future__ import annotations

from typing import Any, ClassVar

from django import forms

from annotation.forms import check_package_size, describe_files
from annotation.records import Verdict
from annotation.workflow.guards import LONGEST_NOTE, REASON_TOO_LONG
from evaluations.auditing import reference_data
from evaluations.models import Entry, Intake
from evaluations.registry.entries import SentFile
from evaluations.registry.scoring import Change
from evaluations.verifier.signature import BadKeys, parse_keys

DESCRIPTION = (
    *("agent", "organisation", "model", "scaffold", "agent_version", "run_on"),
    *("cost_usd", "link", "relationship", "contact"),
)
MOST_CHANGES = 5_000  # lines of one new score
LEFT_OUT = "out"
VERDICTS = {str(verdict.value): verdict for verdict in Verdict}


class Moment(forms.DateTimeInput):
    input_type = "datetime-local"

    def __init__(self) -> None:
        super().__init__(format="%Y-%m-%dT%H:%M")


class IntakeForm(forms.ModelForm):
    class Meta:
        model = Intake
        fields = ["public", "contact", "rules", "opens_at", "closes_at", "takes_trajectories", "trusted_keys"]
        labels = {
            "public": "Publish the intake page and the registry",
            "takes_trajectories": "Take trajectories without labels",
            "opens_at": "Opens (UTC)",
            "closes_at": "Closes (UTC)",
            "trusted_keys": "Keys of evaluation partners",
        }
        widgets = {
            "rules": forms.Textarea(attrs={"rows": 8}),
            "trusted_keys": forms.Textarea(attrs={"rows": 4}),
            "opens_at": Moment(),
            "closes_at": Moment(),
        }

    def clean_trusted_keys(self) -> str:
        text: str = self.cleaned_data["trusted_keys"]
        try:
            if text.strip():
                parse_keys(text)
        except BadKeys as error:
            raise forms.ValidationError(f"The keys cannot be read: {error}") from error
        return text

    def clean(self) -> dict[str, Any]:
        data: dict[str, Any] = super().clean() or {}
        opens, closes = data.get("opens_at"), data.get("closes_at")
        if opens and closes and closes <= opens:
            self.add_error("closes_at", "Enter a time after the opening time.")
        return data


class DescriptionForm(forms.ModelForm):
    link = forms.URLField(
        required=False, max_length=300, assume_scheme="https", help_text=Entry._meta.get_field("link").help_text
    )

    class Meta:
        model = Entry
        fields = list(DESCRIPTION)
        widgets: ClassVar[dict[str, forms.Widget]] = {"run_on": forms.DateInput(attrs={"type": "date"})}


class EntryForm(DescriptionForm):
    """The description of a new entry, with its file."""

    bundle = forms.FileField(
        label="Evidence bundle (zip)", required=False, validators=[reference_data.check_bundle_size]
    )
    package = forms.FileField(
        label="Or trajectories without labels",
        required=False,
        validators=[check_package_size],
        help_text=f"One of: {describe_files()}.",
    )

    class Meta(DescriptionForm.Meta):
        fields = [*DESCRIPTION, "embargo_until"]
        labels = {"embargo_until": "Embargo until (UTC)"}
        widgets = {**DescriptionForm.Meta.widgets, "embargo_until": Moment()}

    def __init__(self, *args: Any, takes_trajectories: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not takes_trajectories:
            del self.fields["package"]

    def clean(self) -> dict[str, Any]:
        data: dict[str, Any] = super().clean() or {}
        files = [name for name in ("bundle", "package") if data.get(name)]
        if len(files) != 1 and not self.errors:
            self.add_error(
                "bundle",
                "Choose one file: a bundle or trajectories."
                if "package" in self.fields
                else "Choose an evidence bundle.",
            )
        return data

    @property
    def file(self) -> SentFile:
        package = self.cleaned_data.get("package")
        return SentFile(package or self.cleaned_data["bundle"], is_package=package is not None)

    @property
    def description(self) -> dict[str, Any]:
        return {name: self.cleaned_data[name] for name in (*DESCRIPTION, "embargo_until")}


class ReasonForm(forms.Form):
    """An action on an entry: every action has a reason."""

    reason = forms.CharField(
        max_length=LONGEST_NOTE,
        error_messages={"max_length": REASON_TOO_LONG},
        widget=forms.Textarea(attrs={"rows": 3}),
    )


class AnswerForm(ReasonForm):
    file = forms.FileField(
        label="Another file",
        required=False,
        validators=[reference_data.check_bundle_size],
        help_text="It replaces the file that you sent. It must be of the same kind, and is checked in the same way.",
    )


class EmbargoForm(ReasonForm):
    until = forms.DateTimeField(
        label="Embargo until (UTC)", required=False, widget=Moment(), help_text="Leave it empty for no embargo."
    )


class AppealDecisionForm(ReasonForm):
    upheld = forms.TypedChoiceField(
        label="Decision",
        choices=[("no", "The appeal is dismissed"), ("yes", "The appeal is upheld")],
        coerce=lambda value: value == "yes",
    )


class TakeDownForm(ReasonForm):
    sequence = forms.IntegerField(
        label="Number of the event",
        required=False,
        min_value=0,
        max_value=1_000_000,
        help_text="Leave it empty to take down the description of the entry, with agent, model and link.",
    )


class ScoreForm(ReasonForm):
    changes = forms.CharField(
        label="Changed tasks",
        widget=forms.Textarea(attrs={"rows": 4, "placeholder": "task_12 out\ntask_40 0"}),
        help_text=(
            "One per line: the task id, then the verdict that counts (0, 1 or 2), or “out” to leave the task out of "
            "the rate, or “in” to count the submitted verdict again."
        ),
    )

    def clean_changes(self) -> dict[str, str]:
        """Return by task id what each line states: a verdict, “out” or “in”."""
        found: dict[str, str] = {}
        lines = [line for line in self.cleaned_data["changes"].splitlines() if line.strip()]
        if len(lines) > MOST_CHANGES:
            raise forms.ValidationError(f"Change at most {MOST_CHANGES:,} tasks at once.")
        for number, line in enumerate(lines, 1):
            task_id, _, said = line.strip().rpartition(" ")
            if not task_id or said not in (*VERDICTS, LEFT_OUT, "in"):
                raise forms.ValidationError(f"Line {number}: enter a task id, a space, and 0, 1, 2, out or in.")
            if task_id.strip() in found:
                raise forms.ValidationError(f"Line {number}: {task_id.strip()} appears twice.")
            found[task_id.strip()] = said
        return found


def build_changes(stated: dict[str, str], reason: str) -> dict[str, Change]:
    """Return the changes that the lines of a `ScoreForm` state, by task id."""
    return {
        task_id: Change(reason[:500], VERDICTS.get(said), included=said != LEFT_OUT) for task_id, said in stated.items()
    }
