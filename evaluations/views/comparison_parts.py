"""Charts of the pages of judges, with their tables. Every number comes from a `Comparison`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from evaluations import charts, comparison_tables, people_tables, process_tables
from evaluations.charts.drawing import Chart
from evaluations.comparison import Comparison, Label2, Row
from evaluations.comparison.judges import Judging, People
from evaluations.comparison.rows import PEOPLE
from evaluations.comparison_tables import BREAKDOWNS, CEILING, Breakdown
from evaluations.measures import JUDGE_MEASURES, under_rules
from evaluations.statistics import Measure
from evaluations.tables import Cell, Column, Table, cell

SAID = {Label2.NOT_SUCCESS: "not executable counts as no success", Label2.EXCLUDED: "not executable left out"}
MOST_ROWS = 6  # rows of a breakdown on a page: the groups with the most cases; the file has all


@dataclass(frozen=True, slots=True)
class Part:
    """Charts, and the tables with the same numbers; ``name`` is its anchor; ``folded`` tables are collapsed."""

    name: str
    title: str
    charts: Sequence[Chart] = ()
    tables: Sequence[Table] = ()
    note: str = ""
    folded: bool = False


def figures(found: Comparison, rule: Label2) -> list[tuple[Column, Cell]]:
    """Return the headline figures under one rule for label 2, then those that do not depend on it."""
    shown = []
    for measure in JUDGE_MEASURES.values():
        if not measure.headline:
            continue
        (column,) = under_rules([measure.column], found.rules)
        for row in _under(found.overall, rule):
            heading = f"{column.name}, {SAID[row.human_label_2]}"
            shown.append((replace(column, name=heading), cell(row.measures[measure.name], column.kind)))
    tokens, cost = comparison_tables.TOKENS, comparison_tables.COST
    return [
        *shown,
        (comparison_tables.FLIPS, cell(found.flips.rate, "rate")),
        (cost, cell(found.costs.cost, cost.kind)),
        (tokens, cell(found.costs.tokens, tokens.kind)),
    ]


# --- one judge -------------------------------------------------------------------------------------------------------


def parts(found: Comparison, people: People, rule: Label2) -> Iterator[Part]:
    """Yield everything about one judge except the list of differences, under one rule for label 2."""
    for part in _parts(found, people, rule):
        yield replace(part, tables=[comparison_tables.under(table, rule) for table in part.tables])


def _parts(found: Comparison, people: People, rule: Label2) -> Iterator[Part]:
    yield _by_agent(found, people.ceiling, rule)
    yield _human(found, people)
    if test := people_tables.alternative_test(found):
        left = len(test[1].rows) - MOST_ROWS
        test[1] = replace(test[1], rows=test[1].rows[:MOST_ROWS])
        note = f"The first {MOST_ROWS} annotators; the CSV file has {left:,} more." if left > 0 else ""
        yield Part("alternative", "The judge in place of an annotator", tables=test, note=note)
    yield _confusion(found, rule)
    for shown in BREAKDOWNS:
        if found.groups.get(shown.group):
            yield _breakdown(found, shown, rule)
    yield Part("key-points-met", "Key points", _key_points(found), [comparison_tables.key_points(found)])
    if process := process_tables.tables(found):
        yield Part("process", "Process", tables=process)
    yield _calibration(found)
    yield Part("steadiness", "Repetitions", tables=[comparison_tables.flips(found)])
    yield Part("price", "Cost", tables=[comparison_tables.costs(found)])


def _human(found: Comparison, people: People) -> Part:
    """Return both ceilings and the errors of people, each of the first annotators and of all people together."""
    names = list(dict.fromkeys(row.name for row in people.ceiling))
    kept = {*names[:MOST_ROWS], *names[-1:], PEOPLE}  # the last one is all people together
    shown = comparison_tables.people(
        People(
            [row for row in people.ceiling if row.name in kept],
            [row for row in people.left_out if row.name in kept],
            [each for each in people.errors if each.annotator in kept],
        ),
        found.rules,
    )
    tables = [*(_explained_above(table) for table in shown[:2]), *(shown[2:] if people.errors else [])]
    left = len(names) - len(names[:MOST_ROWS]) - 1
    note = f"The first {MOST_ROWS} annotators; the CSV file has {left:,} more." if left > 0 else ""
    return Part("human-ceiling", "The human ceiling", [], tables, note, folded=True)


def _by_agent(found: Comparison, people: Sequence[Row], rule: Label2) -> Part:
    rows = [*_under(found.rows, rule), *_pooled(found.overall, rule)]
    said = SAID[rule]
    agreed = [(row.name, row.measures["agreement"]) for row in rows] + _ceiling(people, rule)
    gaps = [(row.name, row.measures["success_rate_gap"]) for row in rows]
    drawn = [
        charts.rates("agreement-by-agent", f"Agreement with people by agent, {said}", agreed),
        charts.rates("gap-by-agent", f"Success rate by the judge minus by people, points, {said}", gaps, kind="points"),
    ]
    tables = [comparison_tables.agents(found), _explained_above(comparison_tables.average(found))]
    return Part("by-agent", "By agent", drawn, tables)


def _ceiling(people: Sequence[Row], rule: Label2) -> list[tuple[str, Measure]]:
    """Return the figure of all people together, from the last rows of `comparison.ceiling`; empty without labels."""
    return [(CEILING, row.measures["agreement"]) for row in _under(people, rule)[-1:] if row.n]


def _pooled(rows: Iterable[Row], rule: Label2) -> list[Row]:
    return [replace(row, name=comparison_tables.OVERALL) for row in _under(rows, rule)]


def _under(rows: Iterable[Row], rule: Label2) -> list[Row]:
    return [row for row in rows if row.human_label_2 is rule]


def _confusion(found: Comparison, rule: Label2) -> Part:
    drawn = [
        charts.confusion(
            "confusion-matrix",
            f"People and judge, all agents, {SAID[rule]}",
            ((row.confusion.tp, row.confusion.fn), (row.confusion.fp, row.confusion.tn)),
            ("success", "no success"),
        )
        for row in _under(found.overall, rule)
    ]
    return Part("confusions", "Confusion of judge and people", drawn, [comparison_tables.confusion(found)], folded=True)


def _breakdown(found: Comparison, shown: Breakdown, rule: Label2) -> Part:
    groups = found.groups[shown.group]
    kept = _largest(groups)
    names = comparison_tables.named(_under(kept, rule), shown)
    few = replace(found, groups={shown.group: kept})
    drawn = [
        charts.rates(
            f"agreement-{shown.name}",
            f"Agreement with people {shown.title.lower()}, {SAID[rule]}",
            [(row.name, row.measures["agreement"]) for row in names],
        )
    ]
    left = (len(groups) - len(kept)) // len(Label2)
    note = f"The {MOST_ROWS} with the most cases; the CSV file has {left:,} more." if left else ""
    table = _explained_above(comparison_tables.breakdown(few, shown))
    return Part(f"part-{shown.name}", shown.title, drawn, [table], note, folded=True)


def _explained_above(table: Table) -> Table:
    """Return the table without the explanations of its columns, which the table of agents already has."""
    return replace(table, columns=[replace(column, explanation="") for column in table.columns])


def _largest(rows: Sequence[Row]) -> list[Row]:
    sizes: dict[str, int] = {}
    for row in rows:
        sizes[row.name] = max(sizes.get(row.name, 0), row.n)
    kept = set(sorted(sizes, key=lambda name: -sizes[name])[:MOST_ROWS])
    return [row for row in rows if row.name in kept]


def _key_points(found: Comparison) -> list[Chart]:
    (unmet, people_unmet), (people_met, met) = found.key_points.table
    if not found.key_points.agreement.n:
        return []
    table = ((met, people_met), (people_unmet, unmet))
    return [charts.confusion("key-points-matrix", "Key points by people and judge", table, ("met", "unmet"))]


def _calibration(found: Comparison) -> Part:
    drawn: list[Chart] = []
    if found.calibration:
        bins = [(each.score, each.success) for each in found.calibration]
        drawn = [charts.calibration("calibration-of-score", "Calibration of the judge's score", bins)]
    note = "" if drawn else "This judge gives no scores."
    tables = [comparison_tables.scores(found), comparison_tables.calibration(found)] if drawn else []
    return Part("score", "Calibration of the score", drawn, tables, note, folded=True)


# --- several judges ---------------------------------------------------------------------------------------------------


def judges(found: Sequence[Judging], people: Sequence[Row], rule: Label2) -> list[Chart]:
    said = SAID[rule]
    overall = [(each, row) for each in found for row in _under(each.comparison.overall, rule)]
    agreed = [(each.name, row.measures["agreement"]) for each, row in overall]
    agreed += _ceiling(people, rule)
    drawn: list[Chart] = [charts.rates("agreement-by-judge", f"Agreement of judges with people, {said}", agreed)]
    priced = [(each.name, row.measures["agreement"], each.comparison.costs.cost) for each, row in overall]
    if any(cost is not None for _, _, cost in priced):
        drawn.append(charts.scatter("cost-and-agreement", f"Cost of a judgment against agreement, {said}", priced))
    return drawn
