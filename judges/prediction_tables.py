"""The numbers of predictions as rows: the same on the page, in its CSV file and on a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from annotation.formats.printable import printable
from annotation.formats.spreadsheets import csv_text
from judges.predictions import Prediction, Results
from judges.scorers.action_selection.metrics import MEASURED, PARTS, RECALL_AT, Mean, Numbers

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
    "element_accuracy": "the chosen element is the right one",
    "operation_f1": "F1 of the words of operation and value",
    "step_success": "element and operation are both right",
    "option_selection": "click, type or select is chosen as it should be",
    "action_correctness": "type and value are right; values that differ in writing may count as equal",
}


UNREAD_WRONG = "with what was not read counted as wrong"


@dataclass(frozen=True, slots=True)
class Figure:
    """A number for a page: ``value`` is "83.3 %", or why there is none; ``beside`` what stands smaller below."""

    name: str
    value: str
    beside: str
    explained: str = ""
    undefined: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """A group: its counts, and a cell for each column: the average over steps, and over tasks where it has one."""

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
    "In {} of {} steps the judged model was its own grader: asked again, it decided whether its reply is right."
)
OWN_VALUES = (
    "In {} of {} steps the judged model itself said whether its value means the same; "
    "only action correctness uses that."
)


def format_percent(mean: Mean) -> str:
    """As people read it; a dash where nothing was counted."""
    return "–" if mean.value is None else f"{mean.value * 100:.1f} %"


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
        "the option selection of who always says the most frequent operation", baseline.value is None,
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
    """How often the judged model had a say in what is right; "" where it never had."""
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
        # Nothing where the group splits tasks: that all of some steps succeeded is another quantity.
        success = "" if numbers.task_success.undefined == PARTS else format_percent(numbers.task_success)
        alone = (numbers.majority, numbers.recall[RECALL_AT[-1]], numbers.recall_shown)
        yield Row(name, numbers, (*cells, (success, ""), *((format_percent(mean), "") for mean in alone)))


AVERAGES = ("micro", "macro", "micro_bound", "macro_bound")


# --- files and terminals ---------------------------------------------------------------------------------------------


def write_groups_csv(table: Table) -> str:
    """Fractions as they were computed; nothing where a number is undefined."""
    heads = [table.name, "steps", "counted", "unparsed", "target_absent", "option_absent", "by_model", "tasks"]
    heads += [f"{name}_{kind}" for name in MEASURED for kind in AVERAGES]
    heads += ["task_success", "task_success_bound", "majority_operation", "majority"]
    heads += [*(f"recall_at_{size}" for size in RECALL_AT), "recall_shown"]
    return csv_text([heads, *(_format_plain(row) for row in table.rows)])


def _format_plain(row: Row) -> list[object]:
    numbers = row.numbers
    counts: list[object] = [
        row.name, numbers.steps, numbers.counted, numbers.unparsed, numbers.absent, numbers.options_absent,
        numbers.by_model, numbers.tasks,
    ]  # fmt: skip
    averages = [getattr(numbers.measures[name], kind).value for name in MEASURED for kind in AVERAGES]
    success = [numbers.task_success.value, numbers.task_success_bound.value]
    ends = [numbers.majority_operation, numbers.majority.value]
    recalls = [*(numbers.recall[size].value for size in RECALL_AT), numbers.recall_shown.value]
    return [*counts, *averages, *success, *ends, *recalls]


def write_predictions_csv(predictions: tuple[Prediction, ...] | list[Prediction]) -> str:
    """A row for each prediction, with its facts; what it was made from is on its page."""
    rows = [one.as_json() for one in predictions]
    heads = list(rows[0]) if rows else ["judgment", "task_id", "step"]
    return csv_text([heads, *(list(row.values()) for row in rows)])


def format_text(results: Results, by: str) -> str:
    numbers = results.overall
    left_out = (f"  left out: {count} x {printable(reason)}" for reason, count in results.without.items())
    not_read = (f"  not read: {count} x {printable(reason)}" for reason, count in results.unparsed.items())
    lines = [
        f"{results.judgments} judgments, {numbers.tasks} tasks, {numbers.steps} steps, {numbers.counted} counted",
        f"{numbers.unparsed} not read, {numbers.absent} without the right element in the page summary",
        f"{numbers.options_absent} without the right entry among those shown of its list",
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
