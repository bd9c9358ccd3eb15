"""Errors of people's blind labels, where a verdict is known that does not come from the labels."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, NamedTuple

from annotation.records import Verdict
from evaluations.cases import Case
from evaluations.naming import natural
from evaluations.statistics import Confusion, Measure, clusters_of

PEOPLE = "people"
HUMAN_ERROR = "Errors of blind labels against opinions after seeing judgments, and against known answers of gold items."
Source = Literal["second stage", "gold items"]
SOURCES: tuple[Source, ...] = ("second stage", "gold items")


@dataclass(frozen=True, slots=True)
class HumanError:
    """Blind labels of one annotator, or of all, against known verdicts; label 2 is no success on either side."""

    source: Annotated[Source, "The annotator's own opinion after seeing judgments, or the known answer of a gold item."]
    annotator: Annotated[str, 'The pseudonym, or "people".']
    n: int
    leniency: Annotated[Measure, "Share of the known non-successes that they called a success."]
    severity: Annotated[Measure, "Share of the known successes that they did not call a success."]
    bias: Annotated[Measure, "Share of successes in the blind labels minus that in the known verdicts."]


class _Said(NamedTuple):
    task: Hashable
    blind: bool
    known: bool


def human_error(cases: Iterable[Case]) -> list[HumanError]:
    """Return the errors from each source, of all people and then of each annotator; empty without known verdicts.

    Practice is left out, because its answers come from people who still learn.
    """
    said: dict[Source, dict[str, list[_Said]]] = {source: defaultdict(list) for source in SOURCES}
    for case in cases:
        for label in case.labels:
            informed = None if label.informed is None else label.informed.verdict
            for source, known in zip(SOURCES, (informed, case.known), strict=True):
                if known is not None:
                    blind = label.verdict is Verdict.SUCCESS
                    said[source][label.annotator].append(_Said(case.task_id, blind, known is Verdict.SUCCESS))
    return [each for source in SOURCES if said[source] for each in _errors(source, said[source])]


def _errors(source: Source, own: dict[str, list[_Said]]) -> list[HumanError]:
    everybody = [one for said in own.values() for one in said]
    names = sorted(own, key=natural)
    return [_error(source, PEOPLE, everybody), *(_error(source, name, own[name]) for name in names)]


def _error(source: Source, name: str, said: Sequence[_Said]) -> HumanError:
    cells = [(one.task, (0 if one.blind else 3) if one.known else (1 if one.blind else 2)) for one in said]
    tasks = clusters_of(cells, 4)
    tp, fp, tn, fn = tasks.sum(axis=0).tolist()
    found = Confusion(tp, fp, tn, fn, tuple(map(tuple, tasks.tolist())))
    errors = found.false_positive_rate, _complement(found.recall, found.fn), found.success_rate_gap
    return HumanError(source, name, found.n, *errors)


def _complement(rate: Measure, hits: int) -> Measure:
    """Return 1 - ``rate``, with its interval; ``hits`` are the other cases."""
    if rate.value is None:
        return rate
    low, high = (None if end is None else 1 - end for end in (rate.high, rate.low))
    return Measure(1 - rate.value, rate.n, hits, low, high)
