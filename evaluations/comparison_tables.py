"""The tables of a comparison: the same on its page, as CSV and on a terminal. Nothing is computed here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.urls import reverse

from annotation.forms import VERDICT_NAMES
from annotation.records import Verdict
from evaluations.comparison import Average, Comparison, Costs, Difference, Label2, Row, Standing, Versus
from evaluations.comparison.breakdowns import level_order
from evaluations.statistics import Measure, wilson
from evaluations.tables import Column, Table, Value

LABEL_2 = {Label2.EXCLUDED: "left out", Label2.NOT_SUCCESS: "not a success"}
NOTHING = ""  # a cell that does not apply, other than one that is not known
OVERALL, AVERAGE = "all agents", "average over agents"

RULE = Column("Label 2", explanation="What becomes of cases that people call not executable (2).")
MEASURES = {
    "agreement": Column("Agreement", "rate", "How often the judge says what people decided: success, or not."),
    "success_rate_gap": Column("Gap", "points", "Success rate by the judge minus by people: above 0 it is too kind."),
    "precision": Column("Precision", "rate", "Of what the judge calls a success, how much people do too."),
    "recall": Column("Recall", "rate", "Of what people call a success, how much the judge does too."),
    "f1": Column("F1", "rate", "Harmonic mean of precision and recall."),
    "false_positive_rate": Column("FPR", "rate", "Of what people call no success, how much the judge calls one."),
    "specificity": Column("Specificity", "rate", "Of what people call no success, how much the judge does too."),
    "npv": Column("NPV", "rate", "Of what the judge calls no success, how much people do too."),
    "kappa": Column("Kappa", "coefficient", "Cohen's kappa of judge and people: agreement beyond chance."),
    "success_rate_human": Column("Success, people", "rate", "Success rate by people on the compared cases."),
    "success_rate_judge": Column("Success, judge", "rate", "Success rate by the judge on the same cases."),
}
COUNTS = {
    "n": Column("Compared", "count", "Cases with a verdict of the judge and of people."),
    "excluded": Column("Label 2 left out", "count", "Cases that people call not executable, under that rule."),
    "unscored": Column("Unscored", "count", "The judge was asked and gave no usable verdict: never a failure."),
    "errors": Column("Errors", "count", "The judge was asked and no answer came."),
    "unjudged": Column("Unjudged", "count", "The judge was never asked."),
}
CELLS = {
    "tp": Column("Both success", "count"),
    "fp": Column("Judge alone", "count", "The judge says success, people do not."),
    "fn": Column("People alone", "count", "People say success, the judge does not."),
    "tn": Column("Neither", "count"),
}


def tables(comparison: Comparison) -> list[Table]:
    """Every table of one judge's comparison, in the order of the page."""
    return [
        agents(comparison),
        overall(comparison),
        average(comparison),
        confusion(comparison),
        *breakdowns(comparison),
        key_points(comparison),
        calibration(comparison),
        costs(comparison),
        flips(comparison),
        differences(comparison.differences),
    ]


# --- one judge -------------------------------------------------------------------------------------------------------


def agents(comparison: Comparison) -> Table:
    """Every agent under both rules for label 2, then all of them together."""
    rows = [*map(_row, comparison.rows), *(_row(row, OVERALL) for row in comparison.overall)]
    note = "All agents together count every case once; their average, below, counts every agent once."
    return Table("agents", "By agent", _columns("Agent"), rows, note)


def overall(comparison: Comparison) -> Table:
    rows = [_row(row, OVERALL) for row in comparison.overall]
    return Table("overall", "All agents together", _columns("Agents"), rows)


def average(comparison: Comparison) -> Table:
    """The plain mean over agents, in the same columns as `agents`, and the mean size of the gaps."""
    size = Column("Size of the gap", "points", "Mean over agents of the gap without its sign.")
    columns = [Column("Over"), RULE, Column("Agents", "count"), *MEASURES.values(), size]
    rows = [_average(each) for each in comparison.averages]
    note = "A value is the mean over the agents for which it is defined."
    return Table("average", "Average over agents", columns, rows, note)


def confusion(comparison: Comparison) -> Table:
    columns = [Column("Agent"), RULE, *CELLS.values()]
    everything = [*((row.name, row) for row in comparison.rows), *((OVERALL, row) for row in comparison.overall)]
    rows: list[list[Value]] = [[name, LABEL_2[row.human_label_2], *_cells(row)] for name, row in everything]
    return Table("confusion", "Confusion of judge and people", columns, rows)


@dataclass(frozen=True, slots=True)
class Breakdown:
    """How a group of `comparison.GROUPS` is shown: the ``name`` of its table, and what a row is."""

    group: str
    name: str
    title: str
    heading: str
    note: str = ""


BREAKDOWNS = (
    Breakdown("level", "by-level", "By level", "Level"),
    Breakdown("website", "by-website", "By website", "Website"),
    Breakdown(
        "failure type",
        "by-failure-type",
        "By failure type",
        "Failure type",
        "Failures alone: agreement is how many of them the judge finds.",
    ),
    Breakdown("trajectory length", "by-length", "By trajectory length", "Steps"),
    Breakdown("screenshots", "by-screenshots", "By number of screenshots", "Different screenshots"),
)


def breakdown(comparison: Comparison, shown: Breakdown) -> Table:
    rows = [_row(row) for row in comparison.groups.get(shown.group, [])]
    return Table(shown.name, shown.title, _columns(shown.heading), rows, shown.note)


def breakdowns(comparison: Comparison) -> list[Table]:
    return [breakdown(comparison, shown) for shown in BREAKDOWNS]


def key_points(comparison: Comparison) -> Table:
    found = comparison.key_points
    columns = [
        Column("Judge"),
        Column("Agreement", "rate", "How often judge and people decide a key point the same."),
        Column("Kappa", "coefficient"),
        Column("Both met", "count"),
        Column("Judge alone met", "count"),
        Column("People alone met", "count"),
        Column("Both unmet", "count"),
    ]
    (both_unmet, judge_met), (people_met, both_met) = found.table
    row: list[Value] = [comparison.judge, found.agreement, found.kappa, both_met, judge_met, people_met, both_unmet]
    note = "Key points that people and the judge both call met or unmet, on cases with a final verdict."
    return Table("key-points", "Key points", columns, [row], note)


def calibration(comparison: Comparison) -> Table:
    columns = [
        Column("Score from", "number"),
        Column("to", "number"),
        Column("Mean score", "number"),
        Column("Success by people", "rate", "How many of these cases people call a success."),
    ]
    rows: list[list[Value]] = [[each.low, each.high, each.score, each.success] for each in comparison.calibration]
    note = "A calibrated score is as high as the share of successes."
    return Table("calibration", "Calibration of the score", columns, rows, note)


COSTS = [
    Column("Judgments", "count", "Those that say what they took."),
    Column("Tokens", "count", "Mean of a judgment."),
    Column("Cost", "dollars", "Mean of a judgment, in US dollars."),
    Column("Total cost", "dollars"),
]


def costs(comparison: Comparison) -> Table:
    rows: list[list[Value]] = [[comparison.judge, *_costs(comparison.costs)]]
    return Table("costs", "Cost of a judgment", [Column("Judge"), *COSTS], rows)


def flips(comparison: Comparison) -> Table:
    columns = [Column("Judge"), FLIPS]
    note = "Of the cases that were judged more than once in the newest run."
    return Table("flips", "Repetitions", columns, [[comparison.judge, comparison.flips]], note)


FLIPS = Column("Flips", "rate", "Cases whose repetitions do not all say the same.")


def differences(found: Iterable[Difference]) -> Table:
    """The cases where judge and people differ; the first cell leads to the trajectory at the step that is cited."""
    shown = list(found)
    columns = [
        Column("Task"),
        Column("Agent"),
        Column("Level"),
        Column("Website"),
        Column("People"),
        Column("Judge"),
        Column("Score", "number"),
        Column("Cited step", "number"),
        Column("Failure type"),
        Column("Judgment", "number", "Its number, as in its address."),
    ]
    links = {number: address for number, each in enumerate(shown) if (address := trajectory_at(each)) is not None}
    return Table("differences", "Where judge and people differ", columns, [*map(_difference, shown)], links=links)


def trajectory_at(difference: Difference) -> str | None:
    """The address of the trajectory at the step that the judge cites; None where only labels were imported."""
    if difference.case.trajectory is None:
        return None
    step = "" if difference.judged.step is None else f"?step={difference.judged.step}"
    return reverse("submission-trajectory", args=[difference.case.trajectory]) + step


# --- people, judges and agents beside each other ---------------------------------------------------------------------


def ceiling(rows: Sequence[Row]) -> Table:
    """Annotators against the final verdicts, as `comparison.ceiling` gives them."""
    note = (
        "What an annotator said before QA against the final verdict, measured as a judge is. Each label is part of "
        "what its final verdict was made of: this is an upper bound of what a judge can reach."
    )
    return Table("ceiling", "The human ceiling", _columns("Annotator"), [*map(_row, rows)], note)


def versus(found: Sequence[Versus]) -> Table:
    columns = [
        Column("First"),
        Column("Second"),
        Column("Cases", "count", "That both have scored and people have decided."),
        Column("Both right", "count"),
        Column("First alone", "count", "The first agrees with people, the second does not."),
        Column("Second alone", "count"),
        Column("Neither", "count"),
        Column("Difference", "points", "Agreement of the first minus that of the second."),
        Column("p", "number", "McNemar's test: how likely so uneven a split is by chance, if both are equally good."),
        Column("Test"),
        Column("Say the same", "rate"),
    ]
    note = "People's label 2 counts as not a success here. The p values are not corrected for the number of pairs."
    return Table("versus", "Judge against judge", columns, [*map(_versus, found)], note)


def standings(found: Sequence[Standing]) -> Table:
    """Every agent's success rate, over all and without label 2, then by level."""
    levels = sorted({level for each in found for level in each.levels}, key=level_order)
    columns = [
        Column("Agent"),
        Column("By", explanation="Who gave the verdicts: people, or a judge where people have decided nothing."),
        Column("Cases", "count", "With a verdict."),
        Column("Undecided", "count", "Cases without a verdict: they count nowhere."),
        Column("Label 2", "count", "Not executable."),
        Column("Over all", "rate", "Label 2 counts as no success."),
        Column("Without label 2", "rate", "Label 2 is left out."),
        *(Column(f"{level}, {rule}", "rate") for level in levels for rule in ("over all", "without label 2")),
    ]
    return Table("standings", "Success rates of agents", columns, [_standing(each, levels) for each in found])


@dataclass(frozen=True, slots=True)
class Judging:
    """A judge on the list of judges: its comparison, how much of the cases it covers, and its ranking of agents.

    ``tau`` is Kendall's, of the agents' success rates by people and by the judge.
    """

    name: str
    comparison: Comparison
    tau: Measure

    @property
    def covered(self) -> Measure:
        """Of the decided cases those that it has scored."""
        row = next(row for row in self.comparison.overall if row.human_label_2 is Label2.NOT_SUCCESS)
        return wilson(row.n, row.n + row.unscored + row.errors + row.unjudged)


def judges(found: Sequence[Judging], people: Sequence[Row] = ()) -> Table:
    """Every judge under both rules for label 2, then the human ceiling (the last of `comparison.ceiling`'s rows)."""
    columns = [
        Column("Judge"),
        RULE,
        MEASURES["agreement"],
        Column("Average", "rate", "Plain mean over agents of the agreement."),
        *(column for name, column in MEASURES.items() if name != "agreement"),
        *COUNTS.values(),
        Column("Coverage", "rate", "Decided cases that it has scored."),
        FLIPS,
        Column("Tau", "coefficient", "Kendall's tau-b of the agents' success rates by people and by the judge."),
        *COSTS,
    ]
    rows = [_judging(each, row, mean) for each in found for row, mean in _by_rule(each.comparison)]
    rows += [_people(row) for row in people]
    return Table("judges", "Judges", columns, rows)


def judges_by_agent(found: Sequence[Judging]) -> Table:
    """Agreement of each judge with people by agent, the average and the size of the gap: the published shape."""
    agents = sorted({row.name for each in found for row in each.comparison.rows})
    columns = [
        Column("Judge"),
        RULE,
        *(Column(agent, "rate") for agent in agents),
        Column("Average", "rate"),
        Column("Mean gap", "points", "Mean over agents, with its sign."),
        Column("Size of the gap", "points", "Mean over agents without the sign, as published tables have it."),
    ]
    rows = [_by_agent(each, mean, agents) for each in found for mean in each.comparison.averages]
    return Table("judges-by-agent", "Agreement of judges by agent", columns, rows)


# --- rows ------------------------------------------------------------------------------------------------------------


def _columns(first: str) -> list[Column]:
    return [Column(first), RULE, *MEASURES.values(), *COUNTS.values()]


def _row(row: Row, name: str = "") -> list[Value]:
    measures = [getattr(row, measure) for measure in MEASURES]
    counts = [getattr(row, count) for count in COUNTS]
    return [name or row.name, LABEL_2[row.human_label_2], *measures, *counts]


def _average(mean: Average) -> list[Value]:
    values = [mean.values.get(measure) for measure in MEASURES]
    return [AVERAGE, LABEL_2[mean.human_label_2], mean.agents, *values, mean.gap_size]


def _cells(row: Row) -> list[Value]:
    return [getattr(row.confusion, cell) for cell in CELLS]


def _costs(found: Costs) -> list[Value]:
    return [found.judgments, found.tokens, found.cost, found.total_cost]


def _difference(each: Difference) -> list[Value]:
    case, judged = each.case, each.judged
    return [
        case.task_id,
        case.agent,
        case.level,
        case.website,
        verdict_name(case.final),
        verdict_name(judged.verdict),
        judged.score,
        judged.step,
        case.failure_type,
        judged.judgment,
    ]


def verdict_name(verdict: Verdict | None) -> str:
    return "" if verdict is None else VERDICT_NAMES[verdict].lower()


def _versus(each: Versus) -> list[Value]:
    cells: list[Value] = [each.n, each.both, each.first_only, each.second_only, each.neither]
    test = "" if each.p.value is None else "exact" if each.exact else "chi-square"
    return [each.first, each.second, *cells, each.difference, each.p, test, each.same]


def _standing(each: Standing, levels: Sequence[str]) -> list[Value]:
    none = Measure.missing("no cases")
    by_level = [rate for level in levels for rate in each.levels.get(level, (none, none))]
    return [each.agent, each.by, each.n, each.undecided, each.not_executable, each.over_all, each.without_2, *by_level]


def _by_rule(comparison: Comparison) -> list[tuple[Row, Average]]:
    means = {mean.human_label_2: mean for mean in comparison.averages}
    return [(row, means[row.human_label_2]) for row in comparison.overall]


def _judging(each: Judging, row: Row, mean: Average) -> list[Value]:
    said, rule, agreement, *rest = _row(row, each.name)
    beside: list[Value] = [each.covered, each.comparison.flips, each.tau]
    return [said, rule, agreement, mean.values.get("agreement"), *rest, *beside, *_costs(each.comparison.costs)]


def _people(row: Row) -> list[Value]:
    said, rule, agreement, *rest = _row(row, "people (ceiling)")
    return [said, rule, agreement, NOTHING, *rest, NOTHING, NOTHING, NOTHING, *(NOTHING for _ in COSTS)]


def _by_agent(each: Judging, mean: Average, agents: Sequence[str]) -> list[Value]:
    rows = {row.name: row for row in each.comparison.rows if row.human_label_2 is mean.human_label_2}
    rates: list[Value] = [rows[agent].agreement if agent in rows else NOTHING for agent in agents]
    values = [mean.values.get("agreement"), mean.values.get("success_rate_gap"), mean.gap_size]
    return [each.name, LABEL_2[mean.human_label_2], *rates, *values]
