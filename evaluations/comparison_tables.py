"""Tables of a comparison, the same on its page, as CSV and on a terminal. Nothing is computed here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from django.urls import reverse

from annotation.form_fields import VERDICT_NAMES
from annotation.records import Verdict
from evaluations import people_tables, process_tables
from evaluations.cases import Rules
from evaluations.comparison import AgentPair, Average, Comparison, Difference, Label2, Row, Standing, Versus
from evaluations.comparison.judges import Judging, People
from evaluations.comparison.places import MOST_PAIRS
from evaluations.comparison.results import STATUS_NOT_STATED, Rates
from evaluations.comparison.rows import ALL_AGENTS
from evaluations.comparison.standings import MOST_JUDGES
from evaluations.measures import JUDGE_MEASURES, under_rules
from evaluations.naming import failure_type_name, level_order, natural
from evaluations.statistics import Measure
from evaluations.tables import NOTHING, Column, Table, Value, tabulate

LABEL_2 = {Label2.EXCLUDED: "left out", Label2.NOT_SUCCESS: "not a success"}
OVERALL, AVERAGE, CEILING = ALL_AGENTS, "average over agents", "people (ceiling)"
OVER_TASKS = "Intervals of several agents together are drawn by task: a task that is hard for one is hard for others."
IS_NO_SUCCESS = "“Not executable” counts as not a success here."

SHOWN = [name for name in JUDGE_MEASURES if name != "positive_agreement"]  # it is F1
FEW = ("agreement", "success_rate_gap", "false_positive_rate", "kappa")
AGREEMENT = JUDGE_MEASURES["agreement"].column
RULE = Column(
    "Label 2",
    explanation="How cases with the human verdict not executable (2) are counted.",
    of=lambda each: LABEL_2[each.human_label_2],
)
COUNTS = (
    Column("Compared", "count", "Cases with a verdict from the judge and from people.", "n"),
    Column("Label 2 left out", "count", "Cases that people call not executable, by that rule.", "excluded"),
    Column("Unscored", "count", "The judge was called and gave no usable verdict: never a failure.", "unscored"),
    Column("Errors", "count", "The judge was called and did not answer.", "errors"),
    Column("Unjudged", "count", "The judge was never called.", "unjudged"),
)
TOKENS = Column("Tokens", "count", "Mean of the judgments that report their tokens.", "costs.tokens")
COST = Column("Cost", "dollars", "Mean of the judgments that report their cost, in US dollars.", "costs.cost")
COSTS = (  # columns for the fields of a comparison, like the two lists below
    Column("Judgments", "count", "All repetitions of the counted runs.", "costs.judgments"),
    Column("With tokens", "count", "Judgments that report their tokens.", "costs.with_tokens"),
    TOKENS,
    Column("With cost", "count", "Judgments that report their cost.", "costs.with_cost"),
    COST,
    Column("Total cost", "dollars", "Sum of those with a cost.", "costs.total_cost"),
)
NOT_STATED = Column("Status not stated", "count", STATUS_NOT_STATED, "status_not_stated")
FLIPS = Column("Flips", "rate", "How often two repetitions on the same case give different verdicts.", "flips.rate")
JUDGE = Column("Judge", of="judge")


def tables(comparison: Comparison) -> list[Table]:
    return [
        agents(comparison),
        overall(comparison),
        average(comparison),
        confusion(comparison),
        *(breakdown(comparison, shown) for shown in BREAKDOWNS),
        key_points(comparison),
        *process_tables.tables(comparison),
        calibration(comparison),
        scores(comparison),
        *people_tables.alternative_test(comparison),
        costs(comparison),
        flips(comparison),
        *([not_stated(comparison)] if comparison.status_not_stated else []),
        differences(comparison.differences),
    ]


def under(table: Table, rule: Label2) -> Table:
    """Return the table with the rows of one rule for label 2, without the column that names it."""
    names = [(column.name, column.kind) for column in table.columns]
    if (RULE.name, RULE.kind) not in names:
        return table
    at = names.index((RULE.name, RULE.kind))
    rows = [[*row[:at], *row[at + 1 :]] for row in table.rows if row[at] == LABEL_2[rule]]
    return replace(table, columns=[*table.columns[:at], *table.columns[at + 1 :]], rows=rows)


def _measures(rules: Rules, within: str = "measures", names: Sequence[str] = SHOWN) -> list[Column]:
    return under_rules([replace(JUDGE_MEASURES[name].column, of=f"{within}.{name}") for name in names], rules)


def _columns(first: str, rules: Rules, names: Sequence[str] = SHOWN) -> list[Column]:
    """Return the columns for `Row`."""
    return [Column(first, of="name"), RULE, *_measures(rules, names=names), *COUNTS]


# --- one judge -------------------------------------------------------------------------------------------------------


def agents(comparison: Comparison) -> Table:
    rows = [*comparison.rows, *comparison.overall]
    note = f"All agents together count every case once; their average, below, counts every agent once. {OVER_TASKS}"
    return tabulate("agents", "By agent", _columns("Agent", comparison.rules), rows, note)


def overall(comparison: Comparison) -> Table:
    note = f"{OVER_TASKS} {looked(comparison)}".strip()
    return tabulate("overall", "All agents together", _columns("Agents", comparison.rules), comparison.overall, note)


def looked(comparison: Comparison) -> str:
    """Return a warning if adjudicators had seen the network evidence before they decided; else ""."""
    if not (number := comparison.decided_after_network_evidence):
        return ""
    were = "case was" if number == 1 else "cases were"
    return (
        f"{number} {were} decided after the adjudicator had opened the network evidence, which this "
        "judge uses too: for these cases the two are not independent."
    )


def average(comparison: Comparison) -> Table:
    """Return the plain mean over agents, in the same columns as `agents`, and the mean size of the gaps."""
    columns = [
        Column("Over", of=lambda mean: AVERAGE),
        RULE,
        Column("Agents", "count", of="agents"),
        *_measures(comparison.rules, "values"),
        Column("Size of the gap", "size", "Mean over agents of the gap without its sign.", "gap_size"),
    ]
    means = comparison.averages
    return tabulate("average", "Average over agents", columns, means, _resting_on(means))


def _resting_on(averages: Sequence[Average]) -> str:
    """Explain the average, and list the figures that are defined for only some of the agents."""
    said = "A value is the mean over the agents for which it is defined; n counts them."
    for mean in averages:
        few = ", ".join(f"{JUDGE_MEASURES[name].column.name} of {number}" for name, number in mean.fewer.items())
        if few:
            said += f" Label 2 {LABEL_2[mean.human_label_2]}, fewer than {mean.agents} agents: {few}."
    return said


def confusion(comparison: Comparison) -> Table:
    columns = [
        Column("Agent", of="name"),
        RULE,
        Column("Both success", "count", of="confusion.tp"),
        Column("Judge alone", "count", "The judge says success, people do not.", "confusion.fp"),
        Column("People alone", "count", "People say success, the judge does not.", "confusion.fn"),
        Column("Neither", "count", of="confusion.tn"),
    ]
    rows = [*comparison.rows, *comparison.overall]
    return tabulate("confusion", "Confusion of judge and people", columns, rows)


@dataclass(frozen=True, slots=True)
class Breakdown:
    """Display of a group of `comparison.GROUPS`: the ``name`` of its table, and the meaning of a row."""

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
        "Only failures: agreement is the share that the judge finds.",
    ),
    Breakdown("trajectory length", "by-length", "By trajectory length", "Steps"),
    Breakdown("screenshots", "by-screenshots", "By number of screenshots", "Different screenshots"),
)


def breakdown(comparison: Comparison, shown: Breakdown) -> Table:
    rows = named(comparison.groups.get(shown.group, []), shown)
    return tabulate(shown.name, shown.title, _columns(shown.heading, comparison.rules), rows, shown.note)


def named(rows: Iterable[Row], shown: Breakdown) -> list[Row]:
    """Return the rows with displayed names; failure types are codes otherwise."""
    return [replace(row, name=failure_type_name(row.name)) if shown.group == "failure type" else row for row in rows]


def key_points(comparison: Comparison) -> Table:
    cells = comparison.key_points.table  # rows: unmet and met by people; columns: by the judge
    columns = [
        JUDGE,
        Column(
            "Agreement", "rate", "How often judge and people decide a key point the same way.", "key_points.agreement"
        ),
        *under_rules([Column("Kappa", "coefficient", of="key_points.kappa")], comparison.rules),
        Column("Both met", "count", of=lambda _: cells[1][1]),
        Column("Met by judge only", "count", of=lambda _: cells[0][1]),
        Column("Met by people only", "count", of=lambda _: cells[1][0]),
        Column("Both unmet", "count", of=lambda _: cells[0][0]),
    ]
    note = (
        "Key points that people and the judge both call met or unmet, in cases with a final verdict. Key "
        "points of one task depend on each other, so intervals are drawn by task."
    )
    return tabulate("key-points", "Key points", columns, [comparison], note)


def calibration(comparison: Comparison) -> Table:
    columns = [
        Column("Score from", "number", of="low"),
        Column("to", "number", of="high"),
        Column("Mean score", "number", of="score"),
        Column("Success by people", "rate", "Share of these cases that people call a success.", "success"),
    ]
    note = f"A calibrated score is as high as the share of successes. {IS_NO_SUCCESS}"
    return tabulate("calibration", "Calibration of the score", columns, comparison.calibration, note)


def scores(comparison: Comparison) -> Table:
    columns = [
        Column("Judge", of=lambda _: comparison.judge),
        RULE,
        Column("Scored", "count", "Cases with a verdict and a score from the judge, and a final verdict.", "n"),
        Column("Brier score", "number", "Mean squared difference of the score and success (1) or not (0).", "brier"),
        Column("ROC AUC", "number", "How often a success has a higher score than another case; ties are half.", "auc"),
    ]
    note = "Brier: 0 is best; if every score is the success rate q, it is q (1 - q). AUC: 0.5 is chance, 1 is best."
    return tabulate("scores", "Quality of the score", columns, comparison.scores, note)


def costs(comparison: Comparison) -> Table:
    return tabulate("costs", "Cost of a judgment", [JUDGE, *COSTS], [comparison])


def flips(comparison: Comparison) -> Table:
    note = "Of the cases that were judged more than once in the newest run."
    return tabulate("flips", "Repetitions", [JUDGE, FLIPS], [comparison], note)


def not_stated(comparison: Comparison) -> Table:
    note = "The published rules of this judge give a verdict to every reply, even if the reply states none."
    return tabulate("status-not-stated", "Status not stated", [JUDGE, NOT_STATED], [comparison], note)


def differences(found: Iterable[Difference]) -> Table:
    """Return the cases where judge and people differ; the first cell links to the trajectory at the cited step."""
    shown = list(found)
    columns = [
        Column("Task", of="case.task_id"),
        Column("Agent", of="case.agent_name"),
        Column("Level", of="case.level"),
        Column("Website", of="case.website"),
        Column("People", of=lambda each: verdict_name(each.case.final)),
        Column("Judge", of=lambda each: verdict_name(each.judged.verdict)),
        Column("Score", "number", of="judged.score"),
        Column("Cited step", "number", of="judged.step"),
        Column("Failure type", of=lambda each: each.case.failure_type and failure_type_name(each.case.failure_type)),
        Column("Judgment", "number", "Number of the judgment, as in its address.", "judged.judgment"),
        Column("Task version", "number", "Empty for imported labels.", "case.task_version"),
    ]
    links = {number: address for number, each in enumerate(shown) if (address := trajectory_at(each)) is not None}
    return tabulate("differences", "Cases where judge and people differ", columns, shown, IS_NO_SUCCESS, links)


def trajectory_at(difference: Difference) -> str | None:
    """Return the address of the trajectory at the step that the judge cites; None for only imported labels."""
    if difference.case.trajectory is None:
        return None
    step = "" if difference.judged.step is None else f"?step={difference.judged.step}"
    return reverse("submission-trajectory", args=[difference.case.trajectory]) + step


def verdict_name(verdict: Verdict | None) -> str:
    return "" if verdict is None else VERDICT_NAMES[verdict].lower()


# --- comparison of people, judges and agents -------------------------------------------------------------------------


def people(found: People, rules: Rules = Rules.DEFAULT) -> list[Table]:
    left_out = ceiling_left_out(found.left_out, rules)
    return [ceiling(found.ceiling, rules), left_out, people_tables.human_error(found.errors)]


def ceiling(rows: Sequence[Row], rules: Rules = Rules.DEFAULT) -> Table:
    note = (
        "Blind labels of reviewed cases compared with final verdicts, measured like a judge. Each label contributes to "
        "its final verdict, so these figures are too high. They are no upper bound: a judge can score higher if "
        "adjudicators overturned unanimous labels. The intervals of all people are drawn by task."
    )
    return tabulate("ceiling", "The human ceiling", _columns("Annotator", rules), rows, note)


def ceiling_left_out(rows: Sequence[Row], rules: Rules = Rules.DEFAULT) -> Table:
    note = (
        "The same with the verdict that each case would have without the annotator's own label: a blind adjudication, "
        "else the majority of at least two others, else the adjudication. Imported labels take part. A person who "
        "alone was right counts as wrong, so these figures tend to be too low."
    )
    title = "The human ceiling, own label left out"
    return tabulate("ceiling-left-out", title, _columns("Annotator", rules, FEW), rows, note)


def agent_pairs(found: Sequence[AgentPair]) -> Table:
    columns = [
        Column("First", of="first"),
        Column("Second", of="second"),
        RULE,
        Column("Tasks", "count", "Tasks that people decided for both, in the same version.", "n"),
        Column("Both succeed", "count", of="both"),
        Column("First alone", "count", of="first_only"),
        Column("Second alone", "count", of="second_only"),
        Column("Neither", "count", of="neither"),
        Column("Difference", "points", "Success rate of the first minus that of the second.", "difference"),
        Column("p", "number", "McNemar's test, exact for few tasks.", "p"),
        Column("Holm p", "number", "Corrected for the number of pairs.", "p_holm"),
        Column("Pairs", "count", "Pairs of agents in the family of tests.", "family"),
    ]
    note = (
        "Holm's correction is for all pairs of agents with a common decided task, under the same rule for label 2. "
        f"At most {MOST_PAIRS} pairs are listed, the smallest p first."
    )
    return tabulate("agent-pairs", "Agent against agent", columns, found, note)


def versus(found: Sequence[Versus]) -> Table:
    columns = [
        Column("First", of="first"),
        Column("Second", of="second"),
        RULE,
        Column("Cases", "count", "Cases that both have scored and people have decided.", "n"),
        Column("Both right", "count", of="both"),
        Column("First alone", "count", "The first agrees with people, the second does not.", "first_only"),
        Column("Second alone", "count", of="second_only"),
        Column("Neither", "count", of="neither"),
        Column("Difference", "points", "Agreement of the first minus that of the second.", "difference"),
        Column("p", "number", "Probability of so uneven a split by chance, if both judges are equally good.", "p"),
        Column("Holm p", "number", "Corrected for the number of pairs of judges.", "p_holm"),
        Column("Test", of=_test),
        Column("Agree with each other", "rate", of="same"),
    ]
    note = (
        "p is McNemar's if no task counts twice (exact or chi-square). If several agents attempted a task, whole tasks "
        "are swapped between the two judges instead. Holm's correction is for all pairs of judges under "
        f"the same rule for label 2. Of more than {MOST_JUDGES} judges, those with the highest agreement are listed."
    )
    return tabulate("versus", "Judge against judge", columns, found, note)


def _test(each: Versus) -> str:
    if each.p.value is None:
        return ""
    if each.by_task:
        return "tasks swapped, exact" if each.exact else f"tasks swapped {each.permutations:,} times"
    return "exact" if each.exact else "chi-square"


def standings(found: Sequence[Standing]) -> Table:
    columns = [
        Column("Agent", of="agent"),
        Column(
            "Judged",
            explanation="By a judge, if people have decided nothing; its rate is not theirs.",
            of=lambda each: "judged" if each.judged else NOTHING,
        ),
        Column("By", explanation="The source of the verdicts.", of="by"),
        Column("Cases", "count", "With a verdict.", "n"),
        Column("Undecided", "count", "Cases without a verdict; no rate counts them.", "undecided"),
        Column("Label 2", "count", "Not executable.", "not_executable"),
        Column("Over all", "rate", "Label 2 counts as no success.", "over_all"),
        Column("Without label 2", "rate", "Label 2 is left out.", "without_2"),
    ]
    levels = sorted({level for each in found for level in each.levels}, key=level_order)
    columns += [column for level in levels for column in _columns_of_level(level)]
    note = (
        "First the agents that people have decided, then those that only a judge has judged. These are two "
        "separate rankings."
    )
    return tabulate(
        "standings", "Success rates of agents", columns, found, note if any(e.judged for e in found) else ""
    )


def _columns_of_level(level: str) -> list[Column]:
    none = Measure.missing("no cases")

    def rates(each: Standing) -> Rates:
        return each.levels.get(level, Rates(none, none))

    return [
        Column(f"{level}, over all", "rate", of=lambda each: rates(each).over_all),
        Column(f"{level}, without label 2", "rate", of=lambda each: rates(each).without_2),
    ]


@dataclass(frozen=True, slots=True)
class _Line:
    """A line of `judges`: a row under one rule, with its average and judge; for people, both are None."""

    name: str
    row: Row
    mean: Average | None = None
    judging: Judging | None = None

    @property
    def covered(self) -> Value:
        return NOTHING if self.judging is None else self.judging.covered(self.row.human_label_2)

    @property
    def tau(self) -> Value:
        return NOTHING if self.judging is None else self.judging.tau[self.row.human_label_2]


def judges(found: Sequence[Judging], people: Sequence[Row] = ()) -> Table:
    """Return every judge under both rules for label 2, then the human ceiling (last rows of `comparison.ceiling`)."""
    rules = found[0].comparison.rules if found else Rules.DEFAULT
    agreement, *others = _measures(rules, "row.measures")
    of_comparison = [replace(each, of=f"judging.comparison.{each.of}") for each in (FLIPS, *COSTS, NOT_STATED)]
    columns = [
        Column("Judge", of="name"),
        replace(RULE, of=lambda line: LABEL_2[line.row.human_label_2]),
        agreement,
        Column("Average", "rate", "Mean over agents of the agreement.", "mean.values.agreement"),
        *others,
        *(replace(each, of=f"row.{each.of}") for each in COUNTS),
        Column("Coverage", "rate", "Decided cases that it has scored.", "covered"),
        of_comparison[0],
        *under_rules([TAU], rules),
        *of_comparison[1:],
    ]
    lines = [_Line(each.name, row, mean, each) for each in found for row, mean in _by_rule(each.comparison)]
    lines += [_Line(CEILING, row) for row in people]
    return tabulate("judges", "Judges", columns, lines, OVER_TASKS)


TAU = Column(
    "Tau",
    "coefficient",
    "Kendall's tau-b of the agents' success rates by people and by the judge, both on the cases that it has scored. "
    "No interval if almost all resamples give the same value.",
    "tau",
)


def _by_rule(comparison: Comparison) -> list[tuple[Row, Average]]:
    means = {mean.human_label_2: mean for mean in comparison.averages}
    return [(row, means[row.human_label_2]) for row in comparison.overall]


def judges_by_agent(found: Sequence[Judging]) -> Table:
    """Return each judge's agreement with people by agent, the average and the mean gap, in the published layout."""
    agents = sorted({row.name for each in found for row in each.comparison.rows}, key=natural)
    columns = [
        Column("Judge"),
        RULE,
        *(Column(agent, "rate") for agent in agents),
        Column("Average", "rate"),
        Column("Mean gap", "points", "Mean over agents, with its sign."),
        Column("Size of the gap", "size", "Mean over agents without the sign, as in published tables."),
    ]
    rows = [_by_agent(each, mean, agents) for each in found for mean in each.comparison.averages]
    return Table("judges-by-agent", "Agreement of judges by agent", columns, rows)


def _by_agent(each: Judging, mean: Average, agents: Sequence[str]) -> list[Value]:
    rows = {row.name: row for row in each.comparison.rows if row.human_label_2 is mean.human_label_2}
    rates: list[Value] = [rows[agent].measures["agreement"] if agent in rows else NOTHING for agent in agents]
    values = [mean.values["agreement"], mean.values["success_rate_gap"], mean.gap_size]
    return [each.name, LABEL_2[mean.human_label_2], *rates, *values]


def judges_by_agent_listed(found: Sequence[Judging]) -> Table:
    """Return `judges_by_agent` for a file: one row for each judge, rule and agent, with fixed columns."""
    gap = JUDGE_MEASURES["success_rate_gap"].column
    columns = [
        Column("Judge"),
        RULE,
        Column("Agent"),
        Column("Compared", "count"),
        AGREEMENT,
        gap,
        Column("Size of the gap", "size", "Of the average: mean over agents without the sign."),
    ]
    rows: list[list[Value]] = []
    for each in found:
        for row in each.comparison.rows:
            values: list[Value] = [row.measures["agreement"], row.measures["success_rate_gap"], NOTHING]
            rows.append([each.name, LABEL_2[row.human_label_2], row.name, row.n, *values])
        for mean in each.comparison.averages:
            values = [mean.values["agreement"], mean.values["success_rate_gap"], mean.gap_size]
            rows.append([each.name, LABEL_2[mean.human_label_2], AVERAGE, NOTHING, *values])
    return Table("judges-by-agent", "Agreement of judges by agent", columns, rows)
