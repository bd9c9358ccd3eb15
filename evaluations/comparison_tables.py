"""The tables of a comparison: the same on its page, as CSV and on a terminal. Nothing is computed here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from django.urls import reverse

from annotation.forms import VERDICT_NAMES
from annotation.records import Verdict
from evaluations.cases import Rules
from evaluations.comparison import Average, Comparison, Costs, Difference, Label2, Row, Standing, Versus
from evaluations.comparison.judges import Judging
from evaluations.comparison.results import STATUS_NOT_STATED, Rates
from evaluations.comparison.rows import ALL_AGENTS
from evaluations.comparison.standings import MOST_JUDGES
from evaluations.measures import JUDGE_MEASURES, under_rules
from evaluations.naming import failure_type_name, level_order, natural
from evaluations.statistics import Measure
from evaluations.tables import Column, Table, Value

LABEL_2 = {Label2.EXCLUDED: "left out", Label2.NOT_SUCCESS: "not a success"}
NOTHING = ""  # a cell that does not apply, other than one that is not known
OVERALL, AVERAGE, CEILING = ALL_AGENTS, "average over agents", "people (ceiling)"
OVER_TASKS = "Intervals of several agents together are drawn by task, since what is hard for one is hard for others."
IS_NO_SUCCESS = "People's label 2 counts as not a success here."

AGREEMENT = JUDGE_MEASURES["agreement"].column
RULE = Column("Label 2", explanation="What becomes of cases that people call not executable (2).")
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
        *([not_stated(comparison)] if comparison.status_not_stated else []),
        differences(comparison.differences),
    ]


# --- one judge -------------------------------------------------------------------------------------------------------


def agents(comparison: Comparison) -> Table:
    rows = [*map(_row, comparison.rows), *(_row(row, OVERALL) for row in comparison.overall)]
    note = f"All agents together count every case once; their average, below, counts every agent once. {OVER_TASKS}"
    return Table("agents", "By agent", _columns("Agent", comparison.rules), rows, note)


def overall(comparison: Comparison) -> Table:
    rows = [_row(row, OVERALL) for row in comparison.overall]
    note = f"{OVER_TASKS} {looked(comparison)}".strip()
    return Table("overall", "All agents together", _columns("Agents", comparison.rules), rows, note)


def looked(comparison: Comparison) -> str:
    """What to say where people had seen what the judge goes by before they decided; "" where nobody had."""
    if not (number := comparison.decided_after_network_evidence):
        return ""
    were = "case was" if number == 1 else "cases were"
    return (
        f"{number} {were} decided after the adjudicator had opened the network evidence, which shows what this judge "
        "says: there the two are not independent."
    )


def average(comparison: Comparison) -> Table:
    """The plain mean over agents, in the same columns as `agents`, and the mean size of the gaps."""
    size = Column("Size of the gap", "size", "Mean over agents of the gap without its sign.")
    columns = [Column("Over"), RULE, Column("Agents", "count"), *_measures(comparison.rules), size]
    rows = [_average(each) for each in comparison.averages]
    return Table("average", "Average over agents", columns, rows, _resting_on(comparison.averages))


def _resting_on(averages: Sequence[Average]) -> str:
    """What an average is of, and where it is one of fewer agents than there are."""
    said = "A value is the mean over the agents for which it is defined; n counts them."
    for mean in averages:
        few = ", ".join(f"{JUDGE_MEASURES[name].column.name} of {number}" for name, number in mean.fewer.items())
        if few:
            said += f" Label 2 {LABEL_2[mean.human_label_2]}, fewer than {mean.agents} agents: {few}."
    return said


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
    rows = [_row(row) for row in named(comparison.groups.get(shown.group, []), shown)]
    return Table(shown.name, shown.title, _columns(shown.heading, comparison.rules), rows, shown.note)


def named(rows: Iterable[Row], shown: Breakdown) -> list[Row]:
    """The rows by the names that people read: failure types are codes otherwise."""
    return [replace(row, name=failure_type_name(row.name)) if shown.group == "failure type" else row for row in rows]


def breakdowns(comparison: Comparison) -> list[Table]:
    return [breakdown(comparison, shown) for shown in BREAKDOWNS]


def key_points(comparison: Comparison) -> Table:
    found = comparison.key_points
    columns = [
        Column("Judge"),
        Column("Agreement", "rate", "How often judge and people decide a key point the same."),
        *under_rules([Column("Kappa", "coefficient")], comparison.rules),
        Column("Both met", "count"),
        Column("Judge alone met", "count"),
        Column("People alone met", "count"),
        Column("Both unmet", "count"),
    ]
    (both_unmet, judge_met), (people_met, both_met) = found.table
    row: list[Value] = [comparison.judge, found.agreement, found.kappa, both_met, judge_met, people_met, both_unmet]
    note = (
        "Key points that people and the judge both call met or unmet, on cases with a final verdict. Those of one task "
        "hang together, so intervals are drawn by task."
    )
    return Table("key-points", "Key points", columns, [row], note)


def calibration(comparison: Comparison) -> Table:
    columns = [
        Column("Score from", "number"),
        Column("to", "number"),
        Column("Mean score", "number"),
        Column("Success by people", "rate", "How many of these cases people call a success."),
    ]
    rows: list[list[Value]] = [[each.low, each.high, each.score, each.success] for each in comparison.calibration]
    note = f"A calibrated score is as high as the share of successes. {IS_NO_SUCCESS}"
    return Table("calibration", "Calibration of the score", columns, rows, note)


TOKENS = Column("Tokens", "count", "Mean of the judgments that say how many they took.")
COST = Column("Cost", "dollars", "Mean of the judgments that say what they cost, in US dollars.")
COSTS = [
    Column("Judgments", "count", "All repetitions of the runs that count."),
    Column("With tokens", "count", "Those that say how many tokens they took."),
    TOKENS,
    Column("With cost", "count", "Those that say what they cost."),
    COST,
    Column("Total cost", "dollars", "Sum of those with a cost."),
]


def costs(comparison: Comparison) -> Table:
    rows: list[list[Value]] = [[comparison.judge, *_costs(comparison.costs)]]
    return Table("costs", "Cost of a judgment", [Column("Judge"), *COSTS], rows)


def flips(comparison: Comparison) -> Table:
    columns = [Column("Judge"), FLIPS]
    note = "Of the cases that were judged more than once in the newest run."
    return Table("flips", "Repetitions", columns, [[comparison.judge, comparison.flips.rate]], note)


def not_stated(comparison: Comparison) -> Table:
    row: list[Value] = [comparison.judge, comparison.status_not_stated]
    note = "The published rules of this judge give a verdict to every reply, even to a reply without one."
    return Table("status-not-stated", "Status not stated", [Column("Judge"), NOT_STATED], [row], note)


NOT_STATED = Column("Status not stated", "count", STATUS_NOT_STATED)
FLIPS = Column("Flips", "rate", "How often two repetitions on the same case give different verdicts.")


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
        Column("Task version", "number", "None for imported labels."),
    ]
    links = {number: address for number, each in enumerate(shown) if (address := trajectory_at(each)) is not None}
    rows = [*map(_difference, shown)]
    return Table("differences", "Where judge and people differ", columns, rows, IS_NO_SUCCESS, links=links)


def trajectory_at(difference: Difference) -> str | None:
    """The address of the trajectory at the step that the judge cites; None where only labels were imported."""
    if difference.case.trajectory is None:
        return None
    step = "" if difference.judged.step is None else f"?step={difference.judged.step}"
    return reverse("submission-trajectory", args=[difference.case.trajectory]) + step


# --- people, judges and agents beside each other ---------------------------------------------------------------------


def ceiling(rows: Sequence[Row], rules: Rules = Rules.DEFAULT) -> Table:
    note = (
        "What an annotator said before QA against the final verdict, measured as a judge is; reviewed cases only. Each "
        "label is part of what its final verdict was made of, which flatters people. It bounds nothing: a judge may "
        "lie above or below, above where adjudication overturned what the labels agreed on. The labels of one task "
        "hang together, so the intervals of all people are drawn by task."
    )
    return Table("ceiling", "The human ceiling", _columns("Annotator", rules), [*map(_row, rows)], note)


def versus(found: Sequence[Versus]) -> Table:
    columns = [
        Column("First"),
        Column("Second"),
        RULE,
        Column("Cases", "count", "That both have scored and people have decided."),
        Column("Both right", "count"),
        Column("First alone", "count", "The first agrees with people, the second does not."),
        Column("Second alone", "count"),
        Column("Neither", "count"),
        Column("Difference", "points", "Agreement of the first minus that of the second."),
        Column("p", "number", "How likely so uneven a split is by chance, if both are equally good."),
        Column("Test"),
        Column("Say the same", "rate"),
    ]
    note = (
        "p is McNemar's if no task counts twice (exact or chi-square). If several agents attempted a task, whole tasks "
        "are swapped between the two judges instead. p values are not corrected for the number of pairs. "
        f"At most {MOST_JUDGES} judges, those with the highest agreement, are set against each other."
    )
    return Table("versus", "Judge against judge", columns, [*map(_versus, found)], note)


def standings(found: Sequence[Standing]) -> Table:
    levels = sorted({level for each in found for level in each.levels}, key=level_order)
    columns = [
        Column("Agent"),
        Column("Judged", explanation="By a judge, where people have decided nothing; its rate is not theirs."),
        Column("By", explanation="Who gave the verdicts."),
        Column("Cases", "count", "With a verdict."),
        Column("Undecided", "count", "Cases without a verdict: they count nowhere."),
        Column("Label 2", "count", "Not executable."),
        Column("Over all", "rate", "Label 2 counts as no success."),
        Column("Without label 2", "rate", "Label 2 is left out."),
        *(Column(f"{level}, {rule}", "rate") for level in levels for rule in ("over all", "without label 2")),
    ]
    note = "First those that people have decided, then those that only a judge has judged: the two are not one ranking."
    rows = [_standing(each, levels) for each in found]
    return Table("standings", "Success rates of agents", columns, rows, note if any(e.judged for e in found) else "")


def judges(found: Sequence[Judging], people: Sequence[Row] = ()) -> Table:
    """Every judge under both rules for label 2, then the human ceiling (the last of `comparison.ceiling`'s rows)."""
    rules = found[0].comparison.rules if found else Rules.DEFAULT
    columns = [
        Column("Judge"),
        RULE,
        AGREEMENT,
        Column("Average", "rate", "Plain mean over agents of the agreement."),
        *(column for column in _measures(rules) if column != AGREEMENT),
        *COUNTS.values(),
        Column("Coverage", "rate", "Decided cases that it has scored."),
        FLIPS,
        *under_rules([TAU], rules),
        *COSTS,
        NOT_STATED,
    ]
    rows = [_judging(each, row, mean) for each in found for row, mean in _by_rule(each.comparison)]
    rows += [_people(row) for row in people]
    return Table("judges", "Judges", columns, rows, OVER_TASKS)


TAU = Column(
    "Tau",
    "coefficient",
    "Kendall's tau-b of the agents' success rates by people and by the judge, both on the cases that it has scored.",
)


def judges_by_agent(found: Sequence[Judging]) -> Table:
    """Agreement of each judge with people by agent, the average and the size of the gap: the published shape."""
    agents = sorted({row.name for each in found for row in each.comparison.rows}, key=natural)
    columns = [
        Column("Judge"),
        RULE,
        *(Column(agent, "rate") for agent in agents),
        Column("Average", "rate"),
        Column("Mean gap", "points", "Mean over agents, with its sign."),
        Column("Size of the gap", "size", "Mean over agents without the sign, as published tables have it."),
    ]
    rows = [_by_agent(each, mean, agents) for each in found for mean in each.comparison.averages]
    return Table("judges-by-agent", "Agreement of judges by agent", columns, rows)


def judges_by_agent_listed(found: Sequence[Judging]) -> Table:
    """`judges_by_agent` as a file has it: a row for each judge, rule and agent, whatever agents are called."""
    columns = [
        Column("Judge"),
        RULE,
        Column("Agent"),
        Column("Compared", "count"),
        AGREEMENT,
        JUDGE_MEASURES["success_rate_gap"].column,
        Column("Size of the gap", "size", "Of the average: mean over agents without the sign."),
    ]
    rows: list[list[Value]] = []
    for each in found:
        for row in each.comparison.rows:
            rule = LABEL_2[row.human_label_2]
            rows.append(
                [each.name, rule, row.name, row.n, row.measures["agreement"], row.measures["success_rate_gap"], NOTHING]
            )
        for mean in each.comparison.averages:
            values: list[Value] = [mean.values["agreement"], mean.values["success_rate_gap"], mean.gap_size]
            rows.append([each.name, LABEL_2[mean.human_label_2], AVERAGE, NOTHING, *values])
    return Table("judges-by-agent", "Agreement of judges by agent", columns, rows)


# --- rows ------------------------------------------------------------------------------------------------------------


def _columns(first: str, rules: Rules) -> list[Column]:
    return [Column(first), RULE, *_measures(rules), *COUNTS.values()]


def _measures(rules: Rules) -> list[Column]:
    return under_rules([each.column for each in JUDGE_MEASURES.values()], rules)


def _row(row: Row, name: str = "") -> list[Value]:
    measures = [row.measures[name] for name in JUDGE_MEASURES]
    counts = [getattr(row, count) for count in COUNTS]
    return [name or row.name, LABEL_2[row.human_label_2], *measures, *counts]


def _average(mean: Average) -> list[Value]:
    values = [mean.values[name] for name in JUDGE_MEASURES]
    return [AVERAGE, LABEL_2[mean.human_label_2], mean.agents, *values, mean.gap_size]


def _cells(row: Row) -> list[Value]:
    return [getattr(row.confusion, cell) for cell in CELLS]


def _costs(found: Costs) -> list[Value]:
    dollars: list[Value] = [found.with_cost, found.cost, found.total_cost]
    return [found.judgments, found.with_tokens, found.tokens, *dollars]


def _difference(each: Difference) -> list[Value]:
    case, judged = each.case, each.judged
    return [
        case.task_id,
        case.agent_name,
        case.level,
        case.website,
        verdict_name(case.final),
        verdict_name(judged.verdict),
        judged.score,
        judged.step,
        failure_type_name(case.failure_type) if case.failure_type else NOTHING,
        judged.judgment,
        case.task_version,
    ]


def verdict_name(verdict: Verdict | None) -> str:
    return "" if verdict is None else VERDICT_NAMES[verdict].lower()


def _versus(each: Versus) -> list[Value]:
    cells: list[Value] = [each.n, each.both, each.first_only, each.second_only, each.neither]
    test = "" if each.p.value is None else _test(each)
    return [each.first, each.second, LABEL_2[each.human_label_2], *cells, each.difference, each.p, test, each.same]


def _test(each: Versus) -> str:
    if each.by_task:
        return "tasks swapped, exact" if each.exact else f"tasks swapped {each.permutations:,} times"
    return "exact" if each.exact else "chi-square"


def _standing(each: Standing, levels: Sequence[str]) -> list[Value]:
    none = Measure.missing("no cases")
    by_level = [
        rate
        for level in levels
        for rates in [each.levels.get(level, Rates(none, none))]
        for rate in (rates.over_all, rates.without_2)
    ]
    judged = "judged" if each.judged else NOTHING
    counts: list[Value] = [each.n, each.undecided, each.not_executable]
    return [each.agent, judged, each.by, *counts, each.over_all, each.without_2, *by_level]


def _by_rule(comparison: Comparison) -> list[tuple[Row, Average]]:
    means = {mean.human_label_2: mean for mean in comparison.averages}
    return [(row, means[row.human_label_2]) for row in comparison.overall]


def _judging(each: Judging, row: Row, mean: Average) -> list[Value]:
    said, rule, agreement, *rest = _row(row, each.name)
    beside: list[Value] = [each.covered(row.human_label_2), each.comparison.flips.rate, each.tau[row.human_label_2]]
    costs = _costs(each.comparison.costs)
    not_stated = each.comparison.status_not_stated
    return [said, rule, agreement, mean.values["agreement"], *rest, *beside, *costs, not_stated]


def _people(row: Row) -> list[Value]:
    said, rule, agreement, *rest = _row(row, CEILING)
    return [said, rule, agreement, NOTHING, *rest, NOTHING, NOTHING, NOTHING, *(NOTHING for _ in COSTS), NOTHING]


def _by_agent(each: Judging, mean: Average, agents: Sequence[str]) -> list[Value]:
    rows = {row.name: row for row in each.comparison.rows if row.human_label_2 is mean.human_label_2}
    rates: list[Value] = [rows[agent].measures["agreement"] if agent in rows else NOTHING for agent in agents]
    values = [mean.values["agreement"], mean.values["success_rate_gap"], mean.gap_size]
    return [each.name, LABEL_2[mean.human_label_2], *rates, *values]
