"""A comparison as JSON: for the command, the API and whoever reads either.

Agreement is given as accuracy too. Undefined values are null, with the reason in ``undefined``. Rates are fractions;
under `Rules.PUBLISHED` they are percentages, with no intervals.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from evaluations.cases import Rules
from evaluations.comparison.measures import MEASURES, percent

if TYPE_CHECKING:
    from evaluations.comparison.results import Average, Bin, Comparison, Difference, Row

ACCURACY = "accuracy"  # another name of agreement
CELLS = ("tp", "fp", "tn", "fn")
COUNTS = ("n", "excluded", "unscored", "errors", "unjudged")


def comparison(found: Comparison) -> dict[str, Any]:
    points = found.key_points
    return {
        "benchmark": found.benchmark,
        "scope": found.scope,
        "judge": found.judge,
        "fingerprint": found.fingerprint,
        "rules": found.rules.value,
        "undecided": found.undecided,
        "rows": [_row(each, "agent", found.rules) for each in found.rows],
        "overall": [_row(each, "agent", found.rules) for each in found.overall],
        "average": _averages(found.averages, found.rules),
        "groups": {name: [_row(each, "name", found.rules) for each in rows] for name, rows in found.groups.items()},
        "flips": found.flips.as_json(),
        "costs": asdict(found.costs),
        "key_points": {
            "agreement": points.agreement.as_json(),
            "kappa": points.kappa.as_json(),
            "table": [list(line) for line in points.table],
        },
        "calibration": [_bin(each) for each in found.calibration],
        "differences": [_difference(each) for each in found.differences],
    }


def _row(row: Row, heading: str, rules: Rules) -> dict[str, Any]:
    measures = {name: getattr(row, name) for name in MEASURES}
    intervals = {
        name: [each.low, each.high] for name, each in measures.items() if each.low is not None and each.high is not None
    }
    return {
        heading: row.name,
        "human_label_2": row.human_label_2.value,
        **{name: getattr(row, name) for name in COUNTS},
        **{name: getattr(row.confusion, name) for name in CELLS},
        **_with_accuracy({name: _value(name, each.value, rules) for name, each in measures.items()}),
        "intervals": _with_accuracy(intervals),
        "undefined": _with_accuracy({name: each.undefined for name, each in measures.items() if each.undefined}),
    }


def _with_accuracy(values: Mapping[str, Any]) -> dict[str, Any]:
    named = {ACCURACY: values["agreement"]} if "agreement" in values else {}
    return {**values, **named}


def _value(name: str, value: float | None, rules: Rules) -> float | None:
    return percent(name, value) if rules is Rules.PUBLISHED and value is not None else value


def _averages(averages: Sequence[Average], rules: Rules) -> dict[str, Any]:
    """The averages under the first rule, and beside them those under each other one by its name."""
    first, *others = [_average(each, rules) for each in averages]
    return first | {each["human_label_2"]: each for each in others}


def _average(average: Average, rules: Rules) -> dict[str, Any]:
    return {
        "human_label_2": average.human_label_2.value,
        "agents": average.agents,
        **_with_accuracy({name: _value(name, value, rules) for name, value in average.values.items()}),
        "gap_size": _value("success_rate_gap", average.gap_size, rules),
    }


def _bin(one: Bin) -> dict[str, Any]:
    return {"low": one.low, "high": one.high, "score": one.score, "success": one.success.as_json()}


def _difference(one: Difference) -> dict[str, Any]:
    case, judged = one.case, one.judged
    return {
        "task_id": case.task_id,
        "agent": case.agent,
        "trajectory": case.trajectory,
        "human": None if case.final is None else int(case.final),
        "judge": None if judged.verdict is None else int(judged.verdict),
        "step": judged.step,
        "judgment": judged.judgment,
    }
