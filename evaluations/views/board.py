"""Rows of the leaderboard of agents: place, success rate with its interval as a small chart, and its basis in words."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from django.urls import reverse

from annotation.formats.printable import counted
from evaluations.cases import Case
from evaluations.charts.drawing import in_words
from evaluations.comparison import Label2, Standing
from evaluations.comparison.places import LEVEL, Place
from evaluations.naming import natural
from evaluations.statistics import Measure
from evaluations.tables import Cell, Column, Table, cell, tabulate, visible

SWITCH = {Label2.NOT_SUCCESS: "counts as no success", Label2.EXCLUDED: "left out"}
RULE_OF_PLACES = (
    "Place is a range. An agent stands before another one only if it does better on the tasks that people decided for "
    f"both, with p below {LEVEL} (McNemar's test, exact for few tasks). Agents for which this is not shown share "
    "places. These p values are not corrected for the number of pairs; the table of pairs has corrected ones."
)


@dataclass(frozen=True, slots=True)
class Line:
    """An agent; ``place`` is empty without verdicts of people; else ``judged_by`` is the judge, if any.

    ``x`` and the ends of ``span`` are percentages of the chart's width, as text.
    """

    agent: str
    place: str
    judged_by: str
    rate: Cell
    x: str
    span: tuple[str, str] | None
    in_words: str
    successes: str
    link: str
    not_executable: int
    undecided: int
    basis: str


def lines(found: Sequence[Standing], cases: Sequence[Case], ranks: Mapping[str, Place], rule: Label2) -> list[Line]:
    """Return agents decided by people, the highest rate first, then those that only a judge has judged, then others."""
    own: dict[str, list[Case]] = defaultdict(list)
    for case in cases:
        own[case.agent_name].append(case)
    rows = [(each, each.under(rule)) for each in found]
    rows.sort(key=lambda row: (row[1].value is None, row[0].judged, -(row[1].value or 0), natural(row[0].agent)))
    return [_line(each, rate, own[each.agent], ranks) for each, rate in rows]


def _line(each: Standing, rate: Measure, cases: Sequence[Case], ranks: Mapping[str, Place]) -> Line:
    place = str(ranks[each.agent]) if each.agent in ranks else ""
    submissions = {case.submission for case in cases}
    only = next(iter(submissions)) if len(submissions) == 1 else None
    return Line(
        agent=each.agent,
        place=place,
        judged_by=each.by if each.judged else "",
        rate=cell(rate, "rate"),
        x="" if rate.value is None else _percent(rate.value),
        span=None if rate.low is None or rate.high is None else (_percent(rate.low), _percent(rate.high)),
        in_words=f"{visible(each.agent)}: {in_words(rate, 'rate')}",
        successes=f"{rate.hits:,} of {rate.n:,}" if rate.n else "",
        link="" if only is None else reverse("submission", args=[only]),
        not_executable=each.not_executable,
        undecided=each.undecided,
        basis=_basis(each, cases),
    )


def _percent(share: float) -> str:
    return f"{100 * share:.2f}%"


def _basis(each: Standing, cases: Sequence[Case]) -> str:
    """Return in words who gave the verdicts."""
    if each.judged:
        return f"{visible(each.by)} alone: no person has judged this agent"
    if not each.n:
        return "no verdict yet"
    decided = [case for case in cases if case.final is not None]
    parts = []
    for imported, kind in ((False, "label"), (True, "imported label")):
        sizes = sorted({len(case.labels) for case in decided if (case.state is None) is imported})
        if sizes:
            many = f"{sizes[0]}" if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}"
            parts.append(f"{many} {kind}{'' if sizes[-1] == 1 else 's'} each")
    if number := sum(case.adjudicated is not None for case in decided):
        parts.append(f"{number:,} decided by an adjudicator")
    return ", ".join(parts)


def switch(rule: Label2) -> list[tuple[str, str, bool]]:
    """Return the choices of the page's switch for label 2: value in the address, words, and whether it is on."""
    return [(each.value, words, each is rule) for each, words in SWITCH.items()]


def summary(found: Sequence[Standing]) -> str:
    """Return how many agents and verdicts the page is about, and which rows are not ranked."""
    people = [each for each in found if each.n and not each.judged]
    said = [f"{counted(len(people), 'agent')} decided by people, {sum(each.n for each in people):,} final verdicts."]
    if number := sum(each.judged for each in found):
        said.append(f"{counted(number, 'agent')} only by a judge: shown hatched, and not ranked.")
    if number := sum(not each.n for each in found):
        said.append(f"{counted(number, 'agent')} without a verdict.")
    return " ".join(said)


def by_level(shown: Sequence[Line], found: Sequence[Standing], levels: Sequence[str], rule: Label2) -> Table:
    """Return the success rates of each level under one rule, in the order of the leaderboard."""
    standings = {each.agent: each for each in found}
    columns = [
        Column("Agent", of=lambda each: f"{each.agent} (judged)" if each.judged else each.agent),
        *(Column(level, "rate", of=_rate_of(level, rule)) for level in levels),
    ]
    return tabulate("by-level", "By level", columns, [standings[each.agent] for each in shown])


def _rate_of(level: str, rule: Label2) -> Callable[[Standing], Measure]:
    none = Measure.missing("no cases")
    return lambda each: each.levels[level].under(rule) if level in each.levels else none
