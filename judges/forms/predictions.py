"""What a list of predictions is narrowed to; from the address, so what is unusable is left out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms

from judges.prediction_tables import GROUPS
from judges.predictions import Prediction, Results
from judges.scorers.action_selection.metrics import GROUPED

SHOWN = {"": "all", "failed": "without step success", "read": "that were read", "unread": "that could not be read"}


class PredictionsFilter(forms.Form):
    """``show`` is one of SHOWN; every way of grouping narrows to one of its groups."""

    show = forms.ChoiceField(required=False, choices=list(SHOWN.items()))

    def __init__(self, data: Mapping[str, Any], results: Results) -> None:
        super().__init__(data, auto_id="filter_%s", label_suffix="")
        self.results = results
        for by, title in GROUPS.items():
            names = list(results.groups.get(by, {}))
            if len(names) > 1:
                choices = [("", "any"), *((name, name) for name in names)]
                self.fields[by] = forms.ChoiceField(label=title, required=False, choices=choices)
        self.is_valid()

    def chosen(self) -> dict[str, str]:
        return {name: value for name, value in self.cleaned_data.items() if value}

    def applied(self) -> list[Prediction]:
        return [one for one in self.results.predictions if self._fits(one)]

    def _fits(self, one: Prediction) -> bool:
        chosen = self.chosen()
        shown = {
            "failed": not one.facts.unparsed and one.facts.step_success != 1,
            "read": not one.facts.unparsed,
            "unread": bool(one.facts.unparsed),
        }
        groups = ((by, value) for by, value in chosen.items() if by != "show")
        return shown.get(chosen.get("show", ""), True) and all(GROUPED[by](one.facts) == value for by, value in groups)
