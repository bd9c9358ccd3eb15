"""Rows and averages as they would stand in a published table."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from evaluations.comparison.measures import COEFFICIENTS, MEASURES, published_f1, rounded
from evaluations.comparison.results import Average, Row
from evaluations.statistics import Measure


def with_zeros(row: Row) -> Row:
    """The row with 0 for every rate whose denominator is zero; only where there are cases at all."""
    if not row.n:
        return row
    rates = {name: getattr(row, name) for name in MEASURES if name not in COEFFICIENTS}
    zeros: dict[str, Any] = {
        name: replace(rate, value=0.0, undefined="") for name, rate in rates.items() if rate.undefined
    }
    return replace(row, **zeros)


def row(found: Row) -> Row:
    """Rounded, without intervals, and no rate undefined."""
    zeros = with_zeros(found)
    if zeros.precision.value is not None and zeros.recall.value is not None:
        f1 = replace(zeros.f1, value=published_f1(zeros.precision.value, zeros.recall.value))
        zeros = replace(zeros, f1=f1)
    measures: dict[str, Any] = {name: _measure(name, getattr(zeros, name)) for name in MEASURES}
    return replace(zeros, **measures)


def _measure(name: str, found: Measure) -> Measure:
    value = None if found.value is None else rounded(name, found.value)
    return replace(found, value=value, low=None, high=None)


def average(found: Average) -> Average:
    """Rounded once, at the end: the mean is not one of rounded figures."""
    values = {name: _measure(name, each) for name, each in found.values.items()}
    return replace(found, values=values, gap_size=_measure("success_rate_gap", found.gap_size))
