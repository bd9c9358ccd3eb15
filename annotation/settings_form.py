"""Form of the settings of a submission."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms
from django.db.models import QuerySet
from django.utils.html import format_html

from annotation.forms import ASKS_PROCESS, PROTOCOL_VERSIONS
from annotation.models import Submission
from annotation.protocol import MINIMUM_LABELS


class SettingsForm(forms.Form):
    """Settings of a submission; shares are percentages here. ``fixed`` has the reason for each read-only setting."""

    protocol_version = forms.TypedChoiceField(
        choices=PROTOCOL_VERSIONS,
        coerce=int,
        help_text="Version 2 asks for the annotator's own steps and notes, and takes longer.",
    )
    required_labels = forms.IntegerField(
        min_value=MINIMUM_LABELS, max_value=9, help_text="How many people label each trajectory independently."
    )
    spot_check_rate = forms.FloatField(
        label="Spot check rate in percent",
        min_value=0,
        max_value=100,
        help_text="The share of unanimous trajectories, drawn at random, that an adjudicator judges again.",
    )
    process_labels = forms.BooleanField(label="Process labels", required=False, help_text=ASKS_PROCESS)
    practice = forms.BooleanField(
        label="Practice submission",
        required=False,
        help_text="It takes no labels. Its annotators, and newcomers to other submissions, practise on it and see the "
        "correct answers.",
    )
    practice_set = forms.ModelChoiceField(
        Submission.objects.none(),
        required=False,
        empty_label="none",
        help_text="A practice submission that you maintain. Newcomers of this submission practise on it.",
    )
    pass_mark = forms.FloatField(
        label="Pass mark in percent",
        required=False,
        min_value=0,
        max_value=100,
        help_text="The share of correct verdicts that a newcomer needs before getting real work. Empty: no pass mark.",
    )
    second_stage = forms.BooleanField(
        label="Informed second stage",
        required=False,
        help_text=(
            "Annotators may see the judges' evidence after submitting their own label. The label does not "
            "change; their later opinion is stored separately and decides nothing."
        ),
    )

    def __init__(
        self,
        data: Mapping[str, Any] | None,
        submission: Submission,
        practice_sets: QuerySet[Submission],
        fixed: Mapping[str, str],
    ) -> None:
        mark = submission.pass_mark
        now = {
            "protocol_version": submission.protocol_version,
            "required_labels": submission.required_labels,
            "spot_check_rate": _percent(submission.spot_check_rate),
            "process_labels": submission.process_labels,
            "practice": submission.practice,
            "practice_set": submission.practice_set_id,
            "pass_mark": None if mark is None else _percent(mark),
            "second_stage": submission.second_stage,
        }
        super().__init__(data, initial=now)
        own = Submission.objects.filter(pk=submission.practice_set_id or 0)  # stays if another maintainer has chosen it
        choices = (practice_sets | own).select_related("agent", "benchmark").distinct()
        self.fields["practice_set"].queryset = choices  # type: ignore[attr-defined]
        for name, reason in fixed.items():
            self.fields[name].disabled = True
            says = self.fields[name].help_text
            self.fields[name].help_text = format_html("{}<br><b>Fixed.</b> {}", says, reason)

    def changes(self) -> dict[str, Any]:
        """Return the changed settings for `workflow.configure`, shares as fractions."""
        given = {name: self.cleaned_data[name] for name in self.changed_data}
        for name in {"spot_check_rate", "pass_mark"} & set(given):
            given[name] = None if given[name] is None else round(given[name] / 100, 6)
        return given


def _percent(share: float) -> float:
    percent = round(share * 100, 4)
    return int(percent) if percent == int(percent) else percent
