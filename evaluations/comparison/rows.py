"""A judge, or an annotator, against the final human verdicts: one row for each group of cases and rule for label 2."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from annotation.records import Verdict
from evaluations.cases import BlindLabel, Case, Rules
from evaluations.comparison.results import Answer, Average, Judged, Key, Label2, Pairs, Row
from evaluations.measures import JUDGE_MEASURES
from evaluations.naming import natural
from evaluations.statistics import Confusion, Measure, clusters_of, wilson
from evaluations.statistics.tally import Integers

# --- dependent cases --------------------------------------------------------------------------------------------------

# If several agents did a task, a hard task is hard for all, so intervals that assume independent cases are too narrow.
# Such intervals come from drawing tasks: a cluster has all counts of one task.
Clusters = tuple[tuple[int, int, int, int], ...]  # tp, fp, tn, fn of each task
CELLS = {  # place in a cluster, by whether people call a success, and the judge's answer
    (True, Answer.SUCCESS): 0,
    (False, Answer.SUCCESS): 1,
    (False, Answer.NO_SUCCESS): 2,
    (True, Answer.NO_SUCCESS): 3,
}


def several_agents(cases: Iterable[Case]) -> bool:
    return len({case.agent_name for case in cases}) > 1


def by_task(
    pairs: Iterable[tuple[Case, Verdict, Answer]], named: Callable[[Case], str | None]
) -> dict[tuple[str, Label2], Clusters]:
    """Return the clusters of each name and rule; a name has none if each of its tasks occurs once."""
    names: dict[str, int] = {}
    tasks: dict[str, int] = {}
    columns: tuple[list[int], ...] = ([], [], [])  # plain numbers: tuples would slow down the garbage collector
    keep_group, keep_task, keep_cell = [column.append for column in columns]
    success, label_2 = Verdict.SUCCESS, Verdict.NOT_EXECUTABLE  # looked up once, not for every case
    for case, human, said in pairs:
        cell, name = CELLS.get((human is success, said)), named(case)
        if cell is not None and name is not None:
            keep_group(names.setdefault(name, len(names)))
            keep_task(tasks.setdefault(case.task_id, len(tasks)))
            keep_cell(cell + (len(CELLS) if human is label_2 else 0))
    if not names:
        return {}
    group, task, cells = (np.array(column, np.int64) for column in columns)
    key, place, executable = group * len(tasks) + task, cells % len(CELLS), cells < len(CELLS)
    found: dict[tuple[str, Label2], Clusters] = {}
    for rule, kept in ((Label2.EXCLUDED, executable), (Label2.NOT_SUCCESS, np.ones_like(executable))):
        clusters, which = count_cells(key[kept], place[kept], len(CELLS))
        starts = np.searchsorted(which // len(tasks), range(len(names) + 1))
        for name, number in names.items():
            own = clusters[starts[number] : starts[number + 1]]
            if has_repeats(own):
                in_order = own[np.lexsort(own.T[::-1])].tolist()  # sorted, so that equal counts are equal clusters
                found[name, rule] = tuple(map(tuple, in_order))
    return found


def count_cells(keys: Integers, cells: Integers, width: int) -> tuple[Integers, Integers]:
    """Return (c, width): how often each cell occurs with each of the c different keys; and these keys, ascending."""
    which, place = np.unique(keys, return_inverse=True)
    clusters = np.bincount(place * width + cells, minlength=width * len(which)).reshape(-1, width)
    return clusters.astype(np.int64), which


def has_repeats(clusters: Integers) -> bool:
    """Return whether any cluster has more than one case; if not, cases are treated as independent."""
    return bool(len(clusters)) and int(clusters.sum(axis=1).max()) > 1


def rate(told: Sequence[tuple[Hashable, bool]]) -> Measure:
    """Compute a rate of cases, each with its task; drawn by task if a task occurs twice."""
    hits = sum(so for _, so in told)
    tasks = clusters_of(((task, 0 if so else 1) for task, so in told), 2) if told else None
    return wilson(hits, len(told), tasks)


# --- rows -------------------------------------------------------------------------------------------------------------

PEOPLE, ALL_AGENTS = "people", "all agents"
NOT_REVIEWED = "nothing was reviewed"
NOWHERE = "no agent has a value"


Counts = Counter[tuple[Verdict, Answer]]  # number of cases by human verdict and answer
ByRule = Mapping[tuple[str, Label2], Clusters]  # as returned by `by_task`


def pair_cases(cases: Iterable[Case], said: Mapping[Key, Judged]) -> Pairs:
    return [(case, case.final, Answer.of(said.get(case.key))) for case in cases if case.final is not None]


def build_row(
    name: str, counts: Counts, rule: Label2, clusters: Clusters | None = None, *, intervals: bool = True
) -> Row:
    """Build a row of these counts; `Label2.EXCLUDED` ignores the answers for cases with label 2.

    ``clusters`` has the cells of each task under that rule, if its cases are dependent. Without ``intervals`` there are
    only values.
    """
    excluded = sum(number for (human, _), number in counts.items() if human is Verdict.NOT_EXECUTABLE)
    if rule is Label2.EXCLUDED:
        counts = Counter({key: n for key, n in counts.items() if key[0] is not Verdict.NOT_EXECUTABLE})
    here: Counter[tuple[bool, Answer]] = Counter()
    total: Counter[Answer] = Counter()
    for (human, said), number in counts.items():
        here[human is Verdict.SUCCESS, said] += number
        total[said] += number
    yes, no = Answer.SUCCESS, Answer.NO_SUCCESS
    cells = {"tp": here[True, yes], "fp": here[False, yes], "tn": here[False, no], "fn": here[True, no]}
    found = Confusion(**cells, clusters=clusters, intervals=intervals)
    return Row(
        name=name,
        human_label_2=rule,
        n=found.n,
        excluded=excluded if rule is Label2.EXCLUDED else 0,
        unscored=total[Answer.UNSCORED],
        errors=total[Answer.ERROR],
        unjudged=total[Answer.NOTHING],
        confusion=found,
        measures=_measures(found),
    )


@lru_cache(maxsize=4096)  # every view needs the same few counts, and their intervals take half a millisecond
def _measures(found: Confusion) -> dict[str, Measure]:
    return {name: getattr(found, name) for name in JUDGE_MEASURES}


def build_rows(name: str, counts: Counts, clusters: ByRule | None = None, *, intervals: bool = True) -> list[Row]:
    """Build the rows under both rules, with one computation if no case has label 2; ``clusters`` has its name."""
    own = clusters or {}
    first = build_row(name, counts, Label2.EXCLUDED, own.get((name, Label2.EXCLUDED)), intervals=intervals)
    if not first.excluded:
        return [first, replace(first, human_label_2=Label2.NOT_SUCCESS)]
    rule = Label2.NOT_SUCCESS
    return [first, build_row(name, counts, rule, own.get((name, rule)), intervals=intervals)]


def count_by_name(pairs: Pairs, named: Callable[[Case], str | None]) -> dict[str, Counts]:
    """Count the pairs by the name of each case, in the order of first appearance; a case named None is left out."""
    groups: dict[str, Counts] = defaultdict(Counter)
    found = Counter((named(case), human, said) for case, human, said in pairs)
    for (name, human, said), number in found.items():
        if name is not None:
            groups[name][human, said] = number
    return groups


def count_together(pairs: Pairs) -> Counts:
    return Counter((human, said) for _, human, said in pairs)


def averages(rows: Sequence[Row], rules: Rules = Rules.DEFAULT) -> list[Average]:
    """Return the plain mean of each measure over agents, under both rules; ``rows`` are not rounded yet."""
    found = [_average([each for each in rows if each.human_label_2 is rule], rule, rules) for rule in Label2]
    return [round_average(each) for each in found] if rules is Rules.PUBLISHED else found


def _average(rows: Sequence[Row], rule: Label2, rules: Rules) -> Average:
    compared = [each for each in rows if each.n]
    if rules is Rules.PUBLISHED:
        compared = [replace_undefined(each) for each in compared]
    values = {name: _mean([each.measures[name].value for each in compared]) for name in JUDGE_MEASURES}
    gaps = [each.measures["success_rate_gap"].value for each in compared]
    return Average(rule, len(compared), values, _mean([None if gap is None else abs(gap) for gap in gaps]))


def _mean(values: Iterable[float | None]) -> Measure:
    known = [value for value in values if value is not None]
    return Measure(sum(known) / len(known), len(known)) if known else Measure.missing(NOWHERE)


# --- blind labels against final verdicts ------------------------------------------------------------------------------


def ceiling(cases: Sequence[Case], rules: Rules = Rules.DEFAULT) -> list[Row]:
    """Return one row for each annotator's blind labels against the final verdicts of reviews, then one for "people".

    Each label contributes to its final verdict, so the figures are too high: without a check, a unanimous label *is*
    the verdict. They are no upper bound: a judge can score higher if adjudicators overturned unanimous labels. Imported
    labels are left out, because they have no final verdict. The intervals of "people" are drawn by task.
    """
    reviewed = [case for case in cases if case.state is not None and case.final is not None]
    return rows_of_labels(
        [(case, case.final, label) for case in reviewed if case.final is not None for label in case.labels], rules
    )


def rows_of_labels(compared: Sequence[tuple[Case, Verdict, BlindLabel]], rules: Rules = Rules.DEFAULT) -> list[Row]:
    """Return the rows of each annotator, then of "people", from labels and the verdict that each is compared with."""
    if not compared:
        return [_without_review(each) for each in build_rows(PEOPLE, Counter())]
    counts: dict[str, Counts] = defaultdict(Counter)
    found = Counter((label.annotator, human, label.verdict) for _, human, label in compared)
    for (name, human, verdict), number in found.items():
        counts[name][human, _answer(verdict)] += number
    rows = [each for name in sorted(counts, key=natural) for each in build_rows(name, counts[name])]
    everybody = ((case, human, _answer(label.verdict)) for case, human, label in compared)
    rows += build_rows(PEOPLE, sum(counts.values(), Counter()), by_task(everybody, lambda _: PEOPLE))
    return [round_row(each) for each in rows] if rules is Rules.PUBLISHED else rows


def _answer(verdict: Verdict) -> Answer:
    return Answer.SUCCESS if verdict is Verdict.SUCCESS else Answer.NO_SUCCESS


def _without_review(found: Row) -> Row:
    return replace(found, measures=dict.fromkeys(JUDGE_MEASURES, Measure.missing(NOT_REVIEWED)))


# --- published rules --------------------------------------------------------------------------------------------------


def replace_undefined(row: Row) -> Row:
    """Return the row with 0 for every rate whose denominator is zero; unchanged if the row has no cases."""
    if not row.n:
        return row
    measures = {
        name: replace(each, value=0.0, undefined="") if each.undefined and not _is_coefficient(name) else each
        for name, each in row.measures.items()
    }
    return replace(row, measures=measures)


def _is_coefficient(name: str) -> bool:
    return JUDGE_MEASURES[name].is_coefficient


def round_row(row: Row) -> Row:
    """Round the row and drop its intervals; undefined rates become 0."""
    measures = dict(replace_undefined(row).measures)
    precision, recall = measures["precision"].value, measures["recall"].value
    if precision is not None and recall is not None:
        measures["f1"] = replace(measures["f1"], value=published_f1(precision, recall))
    return replace(row, measures={name: _round_measure(name, each) for name, each in measures.items()})


def published_f1(precision: float, recall: float) -> float:
    """Return ``2 p r / (p + r)`` of precision and recall after rounding both to four digits; 0 if both are 0."""
    p, r = round(precision, 4), round(recall, 4)
    return 2 * p * r / (p + r) if p + r else 0.0


def _round_measure(name: str, measure: Measure) -> Measure:
    value = None if measure.value is None else JUDGE_MEASURES[name].round_as_published(measure.value)
    return replace(measure, value=value, low=None, high=None)


def round_average(average: Average) -> Average:
    """Round the average of unrounded figures, so that each figure is rounded only once."""
    values = {name: _round_measure(name, each) for name, each in average.values.items()}
    return replace(average, values=values, gap_size=_round_measure("success_rate_gap", average.gap_size))
