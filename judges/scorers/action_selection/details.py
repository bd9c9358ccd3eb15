"""Details page of action selection: the predictions of a model and the reference actions, step by step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from judges.scorers.detail_values import dicts, mapping, number, read_as, text, whole

MOST_STEPS = 500
TITLES = {
    "operation_f1": "operation F1",
    "counted": "steps counted",
    "unparsed": "replies not read",
    "absent": "correct element not listed",
    "options_absent": "correct entry of a list not shown",
    "by_model": "values compared by the model",
    "recall": "recall of the page summary",
    "recall_shown": "recall as shown",
    "majority_operation": "most frequent operation",
    "majority": "majority baseline",
    "said": "predicted operations",
}
MARKS = {1.0: ("✓", "yes", "met"), 0.0: ("✗", "no", "unmet")}


@dataclass(frozen=True, slots=True)
class Mark:
    sign: str
    word: str
    tone: str


@dataclass(frozen=True, slots=True)
class Action:
    operation: Annotated[str, 40]
    value: Annotated[str, 2000]
    element: Annotated[str, 2000]
    original: str
    option: Annotated[str, 10]


@dataclass(frozen=True, slots=True)
class PredictedStep:
    """One step. ``predicted`` is None if no action could be read from the reply; ``unparsed`` then says why.

    ``target`` says in words whether the right element, and the right entry of its list, was in the page summary shown
    to the model.
    """

    step: int
    mode: Annotated[str, 40]
    gold: Action
    predicted: Action | None
    unparsed: Annotated[str, 2000]
    target: str
    element: Mark
    operation_f1: Mark
    success: Mark
    option: Mark
    correct: Mark
    value_by_model: bool
    summary: str
    reply: str

    @property
    def marks(self) -> tuple[Mark, Mark, Mark]:
        return self.element, self.operation_f1, self.success


@dataclass(frozen=True, slots=True)
class Predictions:
    style: str
    own_grader: bool
    task: list[tuple[str, str]]
    steps: list[PredictedStep]
    metrics: list[tuple[str, str]]


def read_details(details: Mapping[str, Any]) -> Predictions:
    task = mapping(details.get("task"))
    return Predictions(
        style=text(details.get("style"), 40),
        own_grader=details.get("style") == "cookbook",
        task=[(name, text(task[name], 200)) for name in ("website", "domain", "subdomain", "split") if task.get(name)],
        steps=[one for given in dicts(details.get("steps"), MOST_STEPS) if (one := _read_step(given)) is not None],
        metrics=_read_metrics(mapping(details.get("metrics"))),
    )


def _read_step(given: Mapping[str, Any]) -> PredictedStep | None:
    step = whole(given.get("step"))
    if step is None or step < 0:
        return None
    predicted = given.get("predicted")
    return read_as(
        PredictedStep,
        given,
        step=step,
        gold=_read_action(mapping(given.get("gold"))),
        predicted=_read_action(predicted) if isinstance(predicted, dict) else None,
        target=_describe_target(given),
        element=_build_mark(given.get("element_accuracy")),
        operation_f1=_build_mark(given.get("operation_f1")),
        success=_build_mark(given.get("step_success")),
        option=_build_mark(given.get("option_selection")),
        correct=_build_mark(given.get("action_correctness")),
    )


def _read_action(given: Mapping[str, Any]) -> Action:
    original = text(given.get("original_operation"), 40)
    return read_as(Action, given, original=original if original != text(given.get("operation"), 40) else "")


def _describe_target(given: Mapping[str, Any]) -> str:
    listed, rank = whole(given.get("listed")), whole(given.get("target_rank"))
    if given.get("target_present") is not True:
        return f"not among the {listed} that were listed" if listed is not None else "not listed"
    number = whole(given.get("target_number"))
    said = "listed" if number is None else f"listed as [{number}]"
    of = "" if listed is None else f" of {listed}"
    ranked = "" if rank is None else f", in rank {rank}{of}"
    missing = given.get("option_present") is False
    return f"{said}{ranked}" + (", without the correct entry of its list" if missing else "")


def _build_mark(value: Any) -> Mark:
    found = number(value)
    if found is None:
        return Mark("–", "not known", "")
    if found in MARKS:
        return Mark(*MARKS[found])
    return Mark(f"{found:.2f}", f"{found:.2f}", "")


def _read_metrics(given: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the figures of one task as pairs of title and text; averages over steps and over tasks are equal here."""
    measures = mapping(given.get("measures"))
    found = [
        (_format_title(name), _format_mean(mapping(value).get("micro"))) for name, value in _sort_metrics(measures)[:20]
    ]
    for name, value in _sort_metrics(given)[:60]:
        if name == "recall":
            sizes = sorted(mapping(value).items(), key=lambda one: (len(one[0]), one[0]))
            found.append((_format_title(name), _format_figure({f"@{size}": share for size, share in sizes})))
        elif isinstance(value, dict):
            found.append((_format_title(name), _format_figure(dict(sorted(value.items())))))
        else:
            found.append((_format_title(name), _format_figure(value)))
    return found


def _sort_metrics(given: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Return the displayed metrics in the order of `TITLES`, then by name: a database may store another order."""
    places = {name: place for place, name in enumerate(TITLES)}
    told = [one for one in given.items() if one[0] not in ("measures", "tasks", "task_success_bound")]
    return sorted(told, key=lambda one: (places.get(one[0], len(places)), one[0]))


def _format_title(name: Any) -> str:
    return TITLES.get(str(name), str(name)[:80].replace("_", " "))


def _format_figure(value: Any) -> str:
    if isinstance(value, dict):
        if "value" in value:
            return _format_mean(value)
        return ", ".join(f"{str(name)[:40]} {_format_figure(one)}" for name, one in list(value.items())[:20]) or "none"
    figure = number(value)
    return (text(value, 300) or "none") if figure is None else f"{figure:.3f}".rstrip("0").rstrip(".")


def _format_mean(given: Any) -> str:
    share, missing = number(mapping(given).get("value")), text(mapping(given).get("undefined"), 200)
    if share is not None:
        return f"{share * 100:.1f}%"
    return f"undefined: {missing}" if missing else "undefined"
