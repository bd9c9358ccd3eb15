"""A judge, or an annotator, against the final human verdicts: one row for some cases and one rule for label 2."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from enum import Enum
from functools import lru_cache

from annotation.records import Verdict
from evaluations.cases import Case, Rules
from evaluations.comparison import published
from evaluations.comparison.measures import MEASURES
from evaluations.comparison.results import Average, Judged, Key, Label2, Row
from evaluations.statistics import Confusion, Measure, wilson

PEOPLE, ALL_AGENTS = "people", "all agents"


class Said(Enum):
    """What was said of a case, as far as a row needs it; label 2 of a judge is no success."""

    SUCCESS = True
    NO_SUCCESS = False
    UNSCORED = "unscored"
    ERROR = "error"
    NOTHING = "nothing"

    @classmethod
    def by(cls, told: Judged | None) -> Said:
        if told is None:
            return cls.NOTHING
        if told.verdict is not None:
            return cls.SUCCESS if told.verdict is Verdict.SUCCESS else cls.NO_SUCCESS
        return cls.ERROR if told.error else cls.UNSCORED


Counts = Counter[tuple[Verdict, Said]]  # how many cases people and the judge say this of
Pairs = Sequence[tuple[Case, Verdict, Said]]  # the decided cases, with the final verdict and what was said


def paired(cases: Iterable[Case], said: Mapping[Key, Judged]) -> Pairs:
    """The decided cases with what the judge says of them."""
    return [(case, case.final, Said.by(said.get(case.key))) for case in cases if case.final is not None]


def row(name: str, counts: Counts, rule: Label2) -> Row:
    """A row of these counts; under `Label2.EXCLUDED` what was said of cases with label 2 is not looked at."""
    excluded = sum(number for (human, _), number in counts.items() if human is Verdict.NOT_EXECUTABLE)
    if rule is Label2.EXCLUDED:
        counts = Counter({key: n for key, n in counts.items() if key[0] is not Verdict.NOT_EXECUTABLE})
    here: Counter[tuple[bool, Said]] = Counter()
    total: Counter[Said] = Counter()
    for (human, said), number in counts.items():
        here[human is Verdict.SUCCESS, said] += number
        total[said] += number
    yes, no = Said.SUCCESS, Said.NO_SUCCESS
    found = Confusion(tp=here[True, yes], fp=here[False, yes], tn=here[False, no], fn=here[True, no])
    return Row(
        name=name,
        human_label_2=rule,
        n=found.n,
        excluded=excluded if rule is Label2.EXCLUDED else 0,
        unscored=total[Said.UNSCORED],
        errors=total[Said.ERROR],
        unjudged=total[Said.NOTHING],
        confusion=found,
        **_measures(found),
    )


@lru_cache(maxsize=4096)  # the same few counts come up at every look, and their intervals take half a millisecond
def _measures(found: Confusion) -> dict[str, Measure]:
    return {
        "agreement": found.accuracy,
        "precision": found.precision,
        "recall": found.recall,
        "f1": found.f1,
        "specificity": found.specificity,
        "npv": found.npv,
        "false_positive_rate": found.false_positive_rate,
        "kappa": found.kappa,
        "success_rate_human": wilson(found.tp + found.fn, found.n),
        "success_rate_judge": wilson(found.tp + found.fp, found.n),
        "success_rate_gap": found.success_gap,
    }


def both(name: str, counts: Counts) -> list[Row]:
    """The row under both rules, which are one computation where nobody says 2."""
    first = row(name, counts, Label2.EXCLUDED)
    if not first.excluded:
        return [first, replace(first, human_label_2=Label2.NOT_SUCCESS)]
    return [first, row(name, counts, Label2.NOT_SUCCESS)]


def by(pairs: Pairs, named: Callable[[Case], str | None]) -> dict[str, Counts]:
    """Counts of the pairs by a name of each case, in the order of first appearance; None leaves it out."""
    groups: dict[str, Counts] = defaultdict(Counter)
    found = Counter((named(case), human, said) for case, human, said in pairs)
    for (name, human, said), number in found.items():
        if name is not None:
            groups[name][human, said] = number
    return groups


def pooled(pairs: Pairs) -> Counts:
    return Counter((human, said) for _, human, said in pairs)


def averages(rows: Sequence[Row], rules: Rules = Rules.DEFAULT) -> list[Average]:
    """The plain mean of each measure over agents, under both rules; ``rows`` are not rounded yet."""
    found = [_average([each for each in rows if each.human_label_2 is rule], rule, rules) for rule in Label2]
    return [published.average(each) for each in found] if rules is Rules.PUBLISHED else found


def _average(rows: Sequence[Row], rule: Label2, rules: Rules) -> Average:
    compared = [each for each in rows if each.n]
    if rules is Rules.PUBLISHED:
        compared = [published.with_zeros(each) for each in compared]
    values = {name: _mean([getattr(each, name).value for each in compared]) for name in MEASURES}
    return Average(rule, len(compared), values, _mean([abs(each.success_rate_gap.value or 0) for each in compared]))


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


# --- people against what they decided together -----------------------------------------------------------------------


def ceiling(cases: Sequence[Case]) -> list[Row]:
    """The human ceiling: every annotator's blind labels against the final verdicts, then all of them as "people".

    A label is part of what its final verdict was made of, so this is an upper bound of what a judge can reach.
    """
    counts: dict[str, Counts] = defaultdict(Counter)
    for case in cases:
        if case.final is None:
            continue
        for label in case.labels:
            said = Said.SUCCESS if label.verdict is Verdict.SUCCESS else Said.NO_SUCCESS
            counts[label.annotator][case.final, said] += 1
    everybody = sum(counts.values(), Counter())
    rows = [each for name in sorted(counts, key=_natural) for each in both(name, counts[name])]
    return rows + both(PEOPLE, everybody)


def _natural(name: str) -> list[tuple[int, str]]:
    """A2 before A10."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", name)]
