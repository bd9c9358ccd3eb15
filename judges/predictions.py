"""Results of the predicted actions of many judgments: numbers, groups, and a list that leads to each prediction.

The inputs of a prediction (page summary, image, reply) stay with its judgment. This module reads only some hundred
bytes of facts per step, one judgment after the other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from itertools import islice
from typing import Any

from django.db.models import OuterRef, QuerySet, Subquery

from annotation.formats.printable import printable
from annotation.formats.spreadsheets import csv_text
from annotation.models import Submission
from judges.models import Judge, JudgeRun, Judgment
from judges.scorers.action_selection import metrics
from judges.scorers.action_selection.judge import KIND_NAME as KIND
from judges.scorers.action_selection.metrics import MEASURED, PARTS, RECALL_AT, Facts, Mean, Numbers
from judges.scorers.detail_values import mapping

MOST_STEPS = 200_000  # predictions in memory at once; the whole data set has 14,193
AT_ONCE = 20  # judgments in memory at once with all their data


@dataclass(frozen=True, slots=True)
class Prediction:
    """One step, without its texts: ``judgment`` and the step in ``facts`` lead to the page that shows them.

    ``split`` is the part of the data set, "" if neither the row nor the file name states it. ``value`` is from
    the data set and ``said_value`` from the model; both have at most 200 characters.
    """

    judgment: int
    task_id: str
    facts: Facts
    split: str
    value: str
    said_value: str
    element: str
    said_element: str

    def as_json(self) -> dict[str, Any]:
        mine = {name: getattr(self, name) for name in self.__slots__ if name != "facts"}
        return mine | asdict(self.facts)


@dataclass(frozen=True, slots=True)
class Results:
    """The results of the predictions of some judgments.

    ``judgments`` counts those read; ``without`` counts those without predictions, by reason (unscored before any call,
    or of another kind of judge). ``unparsed`` counts the steps whose reply could not be read, by reason; except for
    the bounds, no other number includes them. ``modes`` counts steps by the input that models were really sent.
    ``styles`` counts judgments by the judge's style; numbers of different styles are not comparable. ``cut`` is True
    if there were more than `MOST_STEPS` steps and the rest was not read.
    """

    judgments: int
    overall: Numbers
    groups: Mapping[str, Mapping[str, Numbers]]
    predictions: tuple[Prediction, ...]
    without: Mapping[str, int] = field(default_factory=dict)
    unparsed: Mapping[str, int] = field(default_factory=dict)
    modes: Mapping[str, int] = field(default_factory=dict)
    styles: Mapping[str, int] = field(default_factory=dict)
    cut: bool = False

    def as_json(self, *, predictions: bool = True) -> dict[str, Any]:
        """Return the output of the API and the command; without ``predictions``, only the numbers."""
        found = {
            "judgments": self.judgments,
            "styles": dict(self.styles),
            "modes": dict(self.modes),
            "without": dict(self.without),
            "unparsed": dict(self.unparsed),
            "cut": self.cut,
            "overall": self.overall.as_json(),
            "groups": {
                by: {name: one.as_json() for name, one in members.items()} for by, members in self.groups.items()
            },
        }
        return found | ({"predictions": [one.as_json() for one in self.predictions]} if predictions else {})


def select_judgments(
    judge: Judge | None = None, submission: Submission | None = None, run: JudgeRun | None = None
) -> QuerySet[Judgment]:
    """Return the judgments that represent a run, or a judge over a submission (or over all submissions).

    For each trajectory: the first repetition of the newest run, as everywhere. Without ``run``, tests are excluded.
    """
    rows = Judgment.objects.filter(item__isnull=False, judge__scorer=KIND)
    rows = rows.filter(item__run__test=False) if run is None else rows.filter(item__run=run)
    if judge is not None:
        rows = rows.filter(judge=judge)
    if submission is not None:
        rows = rows.filter(trajectory__submission=submission)
    speaks = rows.filter(trajectory=OuterRef("trajectory"), judge=OuterRef("judge"))
    first = Subquery(speaks.order_by("-item__run_id", "repetition", "pk").values("pk")[:1])
    return rows.filter(pk=first).select_related("task").order_by("trajectory__position", "pk")


def compute_results(judgments: Iterable[Judgment]) -> Results:
    """Compute the results. A query set is read in pieces: one query for each `AT_ONCE` judgments, or one stream.

    Only a few judgments are in memory at once, and the facts of at most `MOST_STEPS` steps.
    """
    seen, predictions, cut = 0, list[Prediction](), False
    without, styles = Counter[str](), Counter[str]()
    for judgment in judgments.iterator(chunk_size=AT_ONCE) if isinstance(judgments, QuerySet) else judgments:
        seen += 1
        details = mapping(mapping(judgment.evidence).get("details"))
        if details.get("kind") != KIND or not details.get("steps"):
            without[judgment.unscored or "It has no predictions."] += 1
            continue
        styles[str(details.get("style", ""))] += 1
        room = MOST_STEPS - len(predictions)
        predictions += islice((_read_prediction(judgment, details, step) for step in details["steps"]), room)
        if cut := len(details["steps"]) > room:
            break
    facts = [one.facts for one in predictions]
    return Results(
        seen,
        metrics.numbers(facts),
        metrics.groups(facts),
        tuple(predictions),
        # No Counter: a template looks up a key before an attribute, and a Counter has every key.
        dict(without),
        dict(Counter(one.unparsed for one in facts if one.unparsed)),
        dict(Counter(one.mode for one in facts)),
        dict(styles),
        cut,
    )


def _read_prediction(judgment: Judgment, details: Mapping[str, Any], step: Mapping[str, Any]) -> Prediction:
    task, gold, said = details.get("task") or {}, step.get("gold") or {}, step.get("predicted") or {}
    facts = metrics.read_facts(step, task, judgment.trajectory_id or 0)
    texts = (gold.get("value"), said.get("value"), gold.get("element"), said.get("element"))
    value, said_value, element, said_element = (str(text or "")[:200] for text in texts)
    return Prediction(
        judgment.pk,
        judgment.task.external_id,
        facts,
        str(task.get("split", "")),
        value,
        said_value,
        element,
        said_element,
    )


# --- tables ----------------------------------------------------------------------------------------------------------


GROUPS = {
    "website": "Website",
    "domain": "Domain",
    "operation": "Operation",
    "position": "Step position",
    "mode": "Mode",
}
NAMES = {
    "element_accuracy": "Element accuracy",
    "operation_f1": "Operation F1",
    "step_success": "Step success",
    "option_selection": "Option selection",
    "action_correctness": "Action correctness",
}
EXPLAINED = {
    "element_accuracy": "the chosen element is the correct one",
    "operation_f1": "F1 of the words of operation and value",
    "step_success": "element and operation are both correct",
    "option_selection": "click, type or select is chosen correctly",
    "action_correctness": "type and value are correct; values that differ in writing may count as equal",
}


UNREAD_WRONG = "with what was not read counted as wrong"


@dataclass(frozen=True, slots=True)
class Figure:
    """A number for a page: ``value`` is "83.3%", or why there is none; ``beside`` is the small text below it."""

    name: str
    value: str
    beside: str
    explained: str = ""
    undefined: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """A group: its counts, and a cell for each column: the average over steps, and over tasks if it has one."""

    name: str
    numbers: Numbers
    cells: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Table:
    name: str
    title: str
    rows: tuple[Row, ...]


COLUMNS = (*NAMES.values(), "Task success", "Majority", "Recall@50", "Recall as shown")
OWN_GRADER = (
    "In {} of {} steps the judged model was its own grader: in a second call it decided whether its reply is correct."
)
OWN_VALUES = (
    "In {} of {} steps the judged model itself decided whether its value means the same; only action "
    "correctness uses that."
)


def format_percent(mean: Mean) -> str:
    """Return a percentage such as "83.3%", or a dash if nothing was counted."""
    return "–" if mean.value is None else f"{mean.value * 100:.1f}%"


def build_figures(numbers: Numbers) -> list[Figure]:
    shown = [_build_measure_figure(numbers, name) for name in MEASURED]
    success = numbers.task_success
    beside = f"{success.n} task{'s' * (success.n != 1)} whose every step was read"
    if success.n < numbers.task_success_bound.n:
        beside += f"; {UNREAD_WRONG} {format_percent(numbers.task_success_bound)}"
    shown.insert(3, Figure(
        "Task success", _format_counts(success), beside,
        "every step succeeded", success.value is None,
    ))  # fmt: skip
    always = f"always {numbers.majority_operation}" if numbers.majority_operation else ""
    baseline = numbers.majority
    shown.append(Figure(
        "Majority baseline", _format_counts(baseline), always,
        "the option selection of always choosing the most frequent operation", baseline.value is None,
    ))  # fmt: skip
    return shown


def _build_measure_figure(numbers: Numbers, name: str) -> Figure:
    measure = numbers.measures[name]
    beside = f"{format_percent(measure.macro)} over tasks, {measure.micro.n} step{'s' * (measure.micro.n != 1)}"
    if measure.micro.n < measure.micro_bound.n:
        beside += (
            f"; {UNREAD_WRONG} {format_percent(measure.micro_bound)}, {format_percent(measure.macro_bound)} over tasks"
        )
    return Figure(NAMES[name], _format_counts(measure.micro), beside, EXPLAINED[name], measure.micro.value is None)


def _format_counts(mean: Mean) -> str:
    return f"undefined: {mean.undefined}" if mean.value is None else format_percent(mean)


def format_recall(numbers: Numbers) -> list[tuple[str, str]]:
    listed = [(f"@{size}", format_percent(numbers.recall[size])) for size in RECALL_AT]
    return [*listed, ("as shown", format_percent(numbers.recall_shown))]


def describe_grading(results: Results) -> str:
    """Return how often the judged model graded itself, "" for never."""
    numbers = results.overall
    says = OWN_GRADER if "cookbook" in results.styles else OWN_VALUES
    return says.format(numbers.by_model, numbers.counted) if numbers.by_model else ""


def build_tables(results: Results, by: str = "") -> list[Table]:
    chosen = [by] if by else list(GROUPS)
    return [
        Table(name, f"By {GROUPS[name].lower()}", tuple(_build_rows(results.groups.get(name, {})))) for name in chosen
    ]


def _build_rows(groups: Mapping[str, Numbers]) -> Iterator[Row]:
    for name, numbers in groups.items():
        cells = [
            (format_percent(numbers.measures[each].micro), format_percent(numbers.measures[each].macro))
            for each in MEASURED
        ]
        # Empty if the group splits tasks: success of only some steps of a task is another quantity.
        success = "" if numbers.task_success.undefined == PARTS else format_percent(numbers.task_success)
        alone = (numbers.majority, numbers.recall[RECALL_AT[-1]], numbers.recall_shown)
        yield Row(name, numbers, (*cells, (success, ""), *((format_percent(mean), "") for mean in alone)))


AVERAGES = ("micro", "macro", "micro_bound", "macro_bound")


# --- files and terminals ---------------------------------------------------------------------------------------------


def write_groups_csv(table: Table) -> str:
    """Return a CSV file with fractions as computed; an undefined number is empty."""
    rows = [{table.name: row.name, **_list_numbers(row.numbers)} for row in table.rows]
    heads = [table.name, *_list_numbers(metrics.numbers([]))]
    return csv_text([heads, *(list(row.values()) for row in rows)])


def _list_numbers(numbers: Numbers) -> dict[str, object]:
    found: dict[str, object] = {
        "steps": numbers.steps,
        "counted": numbers.counted,
        "unparsed": numbers.unparsed,
        "target_absent": numbers.absent,
        "option_absent": numbers.options_absent,
        "by_model": numbers.by_model,
        "tasks": numbers.tasks,
    }
    for name in MEASURED:
        found |= {f"{name}_{kind}": getattr(numbers.measures[name], kind).value for kind in AVERAGES}
    found |= {
        "task_success": numbers.task_success.value,
        "task_success_bound": numbers.task_success_bound.value,
        "majority_operation": numbers.majority_operation,
        "majority": numbers.majority.value,
    }
    found |= {f"recall_at_{size}": numbers.recall[size].value for size in RECALL_AT}
    return found | {"recall_shown": numbers.recall_shown.value}


def write_predictions_csv(predictions: tuple[Prediction, ...] | list[Prediction]) -> str:
    """Return a CSV file with a row of facts for each prediction; its inputs are on its page."""
    rows = [one.as_json() for one in predictions]
    heads = list(rows[0]) if rows else ["judgment", "task_id", "step"]
    return csv_text([heads, *(list(row.values()) for row in rows)])


def format_text(results: Results, by: str) -> str:
    numbers = results.overall
    left_out = (f"  left out: {count} x {printable(reason)}" for reason, count in results.without.items())
    not_read = (f"  not read: {count} x {printable(reason)}" for reason, count in results.unparsed.items())
    lines = [
        f"{results.judgments} judgments, {numbers.tasks} tasks, {numbers.steps} steps, {numbers.counted} counted",
        f"{numbers.unparsed} not read, {numbers.absent} without the correct element in the page summary",
        f"{numbers.options_absent} without the correct entry among the shown options of its list",
        *filter(None, [describe_grading(results)]),
        *left_out,
        *not_read,
        "",
        *(f"{each.name:<20} {each.value:<10} {each.beside}".rstrip() for each in build_figures(numbers)),
        f"{'Recall of summary':<20} " + ", ".join(f"{name} {value}" for name, value in format_recall(numbers)),
    ]
    for table in build_tables(results, by):
        lines += ["", table.title, *_align(table)]
    return "\n".join(lines) + "\n"


def _align(table: Table) -> Iterator[str]:
    heads = ["", "steps", *(name.lower() for name in COLUMNS)]
    body = [[printable(row.name, 40), str(row.numbers.counted), *(cell[0] for cell in row.cells)] for row in table.rows]
    wide = [max(len(line[place]) for line in [heads, *body]) for place in range(len(heads))]
    for first, *rest in [heads, *body]:
        yield "  ".join([first.ljust(wide[0]), *(text.rjust(size) for text, size in zip(rest, wide[1:], strict=True))])
