"""Rows and averages rounded as the published tables of AgentRewardBench and Online-Mind2Web round them."""

from __future__ import annotations

from dataclasses import replace

from evaluations.comparison.results import Average, Row
from evaluations.measures import JUDGE_MEASURES
from evaluations.statistics import Measure


def replace_undefined(row: Row) -> Row:
    """Return the row with 0 for every rate whose denominator is zero; only where there are cases at all."""
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
    """Round the row: no intervals, and no rate is undefined."""
    measures = dict(replace_undefined(row).measures)
    precision, recall = measures["precision"].value, measures["recall"].value
    if precision is not None and recall is not None:
        measures["f1"] = replace(measures["f1"], value=published_f1(precision, recall))
    return replace(row, measures={name: _round(name, each) for name, each in measures.items()})


def published_f1(precision: float, recall: float) -> float:
    """Return ``2 p r / (p + r)`` of precision and recall after rounding both to four digits; 0 if both are 0."""
    p, r = round(precision, 4), round(recall, 4)
    return 2 * p * r / (p + r) if p + r else 0.0


def _round(name: str, measure: Measure) -> Measure:
    value = None if measure.value is None else JUDGE_MEASURES[name].round_as_published(measure.value)
    return replace(measure, value=value, low=None, high=None)


def round_average(average: Average) -> Average:
    """Round once, at the end: the mean is not one of rounded figures."""
    values = {name: _round(name, each) for name, each in average.values.items()}
    return replace(average, values=values, gap_size=_round("success_rate_gap", average.gap_size))
