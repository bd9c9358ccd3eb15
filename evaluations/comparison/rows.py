"""A judge, or an annotator, against the final human verdicts: one row for some cases and one rule for label 2."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from annotation.records import Verdict
from evaluations.cases import Case, Rules
from evaluations.comparison import published
from evaluations.comparison.clusters import Clusters, by_task
from evaluations.comparison.results import Answer, Average, Judged, Key, Label2, Pairs, Row
from evaluations.measures import JUDGE_MEASURES
from evaluations.naming import natural
from evaluations.statistics import Confusion, Measure

PEOPLE, ALL_AGENTS = "people", "all agents"
NOT_REVIEWED = "nothing was reviewed"
NOWHERE = "no agent has a value"


Counts = Counter[tuple[Verdict, Answer]]  # how many cases people and the judge say this of
ByRule = Mapping[tuple[str, Label2], Clusters]  # as `by_task` gives them


def pair_cases(cases: Iterable[Case], said: Mapping[Key, Judged]) -> Pairs:
    return [(case, case.final, Answer.of(said.get(case.key))) for case in cases if case.final is not None]


def build_row(
    name: str, counts: Counts, rule: Label2, clusters: Clusters | None = None, *, intervals: bool = True
) -> Row:
    """A row of these counts; under `Label2.EXCLUDED` what was said of cases with label 2 is not looked at.

    ``clusters`` has the cells of each task under that rule, where its cases are not independent of each other. Without
    ``intervals`` there are values alone.
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


@lru_cache(maxsize=4096)  # the same few counts come up at every look, and their intervals take half a millisecond
def _measures(found: Confusion) -> dict[str, Measure]:
    return {name: getattr(found, name) for name in JUDGE_MEASURES}


def build_rows(name: str, counts: Counts, clusters: ByRule | None = None, *, intervals: bool = True) -> list[Row]:
    """The row under both rules, which are one computation where nobody says 2; ``clusters`` has its name."""
    own = clusters or {}
    first = build_row(name, counts, Label2.EXCLUDED, own.get((name, Label2.EXCLUDED)), intervals=intervals)
    if not first.excluded:
        return [first, replace(first, human_label_2=Label2.NOT_SUCCESS)]
    rule = Label2.NOT_SUCCESS
    return [first, build_row(name, counts, rule, own.get((name, rule)), intervals=intervals)]


def count_by_name(pairs: Pairs, named: Callable[[Case], str | None]) -> dict[str, Counts]:
    """Counts of the pairs by a name of each case, in the order of first appearance; None leaves it out."""
    groups: dict[str, Counts] = defaultdict(Counter)
    found = Counter((named(case), human, said) for case, human, said in pairs)
    for (name, human, said), number in found.items():
        if name is not None:
            groups[name][human, said] = number
    return groups


def count_together(pairs: Pairs) -> Counts:
    return Counter((human, said) for _, human, said in pairs)


def averages(rows: Sequence[Row], rules: Rules = Rules.DEFAULT) -> list[Average]:
    """The plain mean of each measure over agents, under both rules; ``rows`` are not rounded yet."""
    found = [_average([each for each in rows if each.human_label_2 is rule], rule, rules) for rule in Label2]
    return [published.round_average(each) for each in found] if rules is Rules.PUBLISHED else found


def _average(rows: Sequence[Row], rule: Label2, rules: Rules) -> Average:
    compared = [each for each in rows if each.n]
    if rules is Rules.PUBLISHED:
        compared = [published.replace_undefined(each) for each in compared]
    values = {name: _mean([each.measures[name].value for each in compared]) for name in JUDGE_MEASURES}
    gaps = [each.measures["success_rate_gap"].value for each in compared]
    return Average(rule, len(compared), values, _mean([None if gap is None else abs(gap) for gap in gaps]))


def _mean(values: Iterable[float | None]) -> Measure:
    known = [value for value in values if value is not None]
    return Measure(sum(known) / len(known), len(known)) if known else Measure.missing(NOWHERE)


# --- people against what they decided together -----------------------------------------------------------------------


def ceiling(cases: Sequence[Case], rules: Rules = Rules.DEFAULT) -> list[Row]:
    """Every annotator's blind labels against the final verdicts of reviews, then all of them as "people".

    A label is part of what its final verdict was made of, which flatters people: where the labels were unanimous and
    nobody looked again it *is* the verdict. Still it bounds nothing, for where an adjudicator overturns unanimous
    labels a judge can be above people. Labels made elsewhere have no verdict but themselves and count for nothing here.
    The labels of one task stand together in the intervals of "people".
    """
    reviewed = [case for case in cases if case.state is not None and case.final is not None and case.labels]
    if not reviewed:
        return [_without_review(each) for each in build_rows(PEOPLE, Counter())]
    counts: dict[str, Counts] = defaultdict(Counter)
    found = Counter((label.annotator, case.final, label.verdict) for case in reviewed for label in case.labels)
    for (name, human, verdict), number in found.items():
        if human is not None:
            counts[name][human, _answer(verdict)] += number
    rows = [each for name in sorted(counts, key=natural) for each in build_rows(name, counts[name])]
    everybody = (
        (case, case.final, _answer(label.verdict))
        for case in reviewed
        if case.final is not None
        for label in case.labels
    )
    rows += build_rows(PEOPLE, sum(counts.values(), Counter()), by_task(everybody, lambda _: PEOPLE))
    return [published.round_row(each) for each in rows] if rules is Rules.PUBLISHED else rows


def _answer(verdict: Verdict) -> Answer:
    return Answer.SUCCESS if verdict is Verdict.SUCCESS else Answer.NO_SUCCESS


def _without_review(found: Row) -> Row:
    return replace(found, measures=dict.fromkeys(JUDGE_MEASURES, Measure.missing(NOT_REVIEWED)))
