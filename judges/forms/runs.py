"""Forms for judge runs, and filters of judgments and predictions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.db.models import QuerySet

from annotation.models import Submission
from annotation.models.states import State
from judges.lab import OPERATORS
from judges.models import Judge, Service
from judges.planning import MOST_REPETITIONS, MOST_SEED
from judges.predictions import GROUPS, Prediction, Results
from judges.scorers.action_selection.metrics import GROUPED

LONGEST_LIST = 20_000  # characters; about 400 task ids of usual length

SHOWN = {
    "": "all",
    "flips": "flips: verdicts that differ",
    "success": "success",
    "failure": "failure",
    "not executable": "not executable",
    "unscored": "unscored",
    "status not stated": "status not stated",
    "failed": "failed items",
    "waiting": "waiting",
    "not judged": "not judged: the run was cancelled",
}


class JudgeChoice(forms.ModelChoiceField):
    def label_from_instance(self, obj: Any) -> str:
        return " · ".join(filter(None, (str(obj), obj.scorer, obj.model)))


class TaskIds(forms.CharField):
    """Task ids separated by spaces, commas, semicolons or line breaks."""

    def to_python(self, value: Any) -> list[str]:  # type: ignore[override]
        return list(dict.fromkeys(re.split(r"[\s,;]+", super().to_python(value) or ""))) if value else []

    def clean(self, value: Any) -> list[str]:
        if len(str(value or "")) > LONGEST_LIST:
            raise ValidationError(f"The list is longer than {LONGEST_LIST} characters; give a filter instead.")
        return [task_id for task_id in super().clean(value) if task_id]


class RunForm(forms.Form):
    """A requested run; the same values produce its plan and start it."""

    judge = JudgeChoice(Judge.own.none(), empty_label="Choose…")
    state = forms.ChoiceField(
        label="Review state", required=False, help_text="Trajectories that are now in this state."
    )
    level = forms.ChoiceField(required=False)
    limit = forms.IntegerField(
        label="At most",
        required=False,
        min_value=1,
        max_value=1_000_000,
        help_text="Only the first N trajectories, or with a seed a random sample of N.",
    )
    seed = forms.IntegerField(
        required=False,
        min_value=0,
        max_value=MOST_SEED,
        help_text="The same seed draws the same random sample. Empty: the first trajectories.",
    )
    task_ids = TaskIds(
        label="Task ids",
        required=False,
        widget=forms.Textarea(attrs={"rows": 2}),
        help_text="Only these tasks, separated by spaces or commas. Empty: all tasks.",
    )
    unjudged = forms.BooleanField(label="Only trajectories that this judge has not judged", required=False)
    repetitions = forms.IntegerField(
        min_value=1,
        max_value=MOST_REPETITIONS,
        initial=1,
        help_text="Repetitions show how often the judge changes its verdict.",
    )
    max_cost = forms.DecimalField(
        label="Budget in USD",
        required=False,
        min_value=Decimal("0.0001"),
        max_digits=12,
        decimal_places=4,
        help_text="The run stops when this amount is spent. Empty: no budget.",
    )
    service = forms.ChoiceField(
        required=False,
        choices=Service.choices,
        help_text="Batches take up to 24 hours for each stage of a judge. The requests are the same.",
    )
    fresh = forms.BooleanField(label="Do not reuse earlier replies of the model", required=False)

    def __init__(self, data: Any, judges: QuerySet[Judge], submission: Submission) -> None:
        super().__init__(data, label_suffix="")
        self.fields["judge"].queryset = judges  # type: ignore[attr-defined]
        levels = submission.trajectories.exclude(task__level="").order_by("task__level")
        for name, values in (
            ("state", [state.value for state in State]),
            ("level", list(levels.values_list("task__level", flat=True).distinct())),
        ):
            self.fields[name].choices = [("", "any"), *((value, value) for value in values)]  # type: ignore[attr-defined]

    def selection(self) -> dict[str, Any]:
        given = self.cleaned_data
        chosen = {name: given[name] for name in ("state", "level", "limit", "task_ids") if given[name]}
        chosen |= {"seed": given["seed"]} if given["seed"] is not None else {}
        return chosen | ({"unjudged": given["judge"].pk} if given["unjudged"] else {})

    def terms(self) -> dict[str, Any]:
        return {name: self.cleaned_data[name] for name in ("repetitions", "max_cost", "fresh", "service")}


class AttackForm(forms.Form):
    """A test of a judge's robustness; the same values produce its plan and start it."""

    submission = forms.ModelChoiceField(
        Submission.objects.none(),
        empty_label="Choose…",
        help_text="Frozen submissions. Their trajectories with the final verdict failure are copied and changed.",
    )
    limit = forms.IntegerField(
        label="Sample size",
        required=False,
        min_value=1,
        max_value=1_000_000,
        help_text="A random sample of the failures. Empty: all.",
    )
    seed = forms.IntegerField(
        min_value=0, max_value=MOST_SEED, initial=0, help_text="Seed of the sample and of the changes."
    )
    max_cost = forms.DecimalField(
        label="Budget in USD",
        required=False,
        min_value=Decimal("0.0001"),
        max_digits=12,
        decimal_places=4,
        help_text="The run stops when this amount is spent. Empty: no budget.",
    )
    operators = forms.MultipleChoiceField(
        label="Changes",
        choices=[(name, f"{operator.title}: {operator.description}") for name, operator in OPERATORS.items()],
        initial=list(OPERATORS),
        widget=forms.CheckboxSelectMultiple,
    )

    def __init__(self, data: Any, submissions: QuerySet[Submission]) -> None:
        super().__init__(data, label_suffix="")
        self.fields["submission"].queryset = submissions  # type: ignore[attr-defined]

    def read(self) -> dict[str, Any]:
        """Return the arguments of `runs.start_attack` except the person, the judge and the budget."""
        given = self.cleaned_data
        selection = {"limit": given["limit"]} if given["limit"] else {}
        return {name: given[name] for name in ("submission", "operators", "seed")} | {"selection": selection}


class Filter(forms.Form):
    """Filters of a list, from the URL query; invalid ones are ignored."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        super().__init__(data, auto_id="filter_%s", label_suffix="")

    def chosen(self) -> dict[str, str]:
        self.is_valid()
        return {name: value for name, value in self.cleaned_data.items() if value}


class JudgmentsFilter(Filter):
    q = forms.CharField(label="Task", required=False, max_length=200)
    show = forms.ChoiceField(required=False)

    def __init__(self, data: Mapping[str, Any], *, repeated: bool) -> None:
        super().__init__(data)
        choices = [(value, name) for value, name in SHOWN.items() if repeated or value != "flips"]
        self.fields["show"].choices = choices  # type: ignore[attr-defined]


class BudgetForm(forms.Form):
    """A new budget of a run; empty keeps the old one."""

    max_cost = forms.DecimalField(
        label="New budget in USD", required=False, min_value=Decimal("0.0001"), max_digits=12, decimal_places=4
    )


class PredictionsFilter(Filter):
    """Filters of predictions; each grouping that has several groups is a filter."""

    show = forms.ChoiceField(
        required=False,
        choices=[
            ("", "all"),
            ("failed", "without step success"),
            ("read", "that were read"),
            ("unread", "that could not be read"),
        ],
    )

    def __init__(self, data: Mapping[str, Any], results: Results) -> None:
        super().__init__(data)
        self.results = results
        for by, title in GROUPS.items():
            names = list(results.groups.get(by, {}))
            if len(names) > 1:
                choices = [("", "any"), *((name, name) for name in names)]
                self.fields[by] = forms.ChoiceField(label=title, required=False, choices=choices)

    def applied(self) -> list[Prediction]:
        chosen = self.chosen()
        return [one for one in self.results.predictions if self._fits(one, chosen)]

    def _fits(self, one: Prediction, chosen: Mapping[str, str]) -> bool:
        shown = {
            "failed": not one.facts.unparsed and one.facts.step_success != 1,
            "read": not one.facts.unparsed,
            "unread": bool(one.facts.unparsed),
        }
        groups = ((by, value) for by, value in chosen.items() if by != "show")
        return shown.get(chosen.get("show", ""), True) and all(GROUPED[by](one.facts) == value for by, value in groups)
