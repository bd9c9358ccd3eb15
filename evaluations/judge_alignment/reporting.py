"""The progress of an alignment, as JSON for the command, the API and the page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evaluations.judge_alignment import figures, looks, material, splitting, steps
from evaluations.statistics import Measure
from evaluations.tables import MINUS, interval, written
from judges.models import Alignment, AlignmentVersion, Judge, LookAtTest

NO_FIGURES = {"accepted": None, "reason": "", "development": None}


def name_of(judge: Judge) -> str:
    return f"{judge.name}@{judge.version}"


def is_reopened(alignment: Alignment) -> bool:
    """Return whether a submission of it is not frozen: its figures must not tell who labels it how the judge errs."""
    return alignment.submissions.filter(frozen_at=None).exists()


def describe(alignment: Alignment) -> dict[str, Any]:
    """Return what it has done; without figures and reasons from them while a submission of it is not frozen."""
    hidden = is_reopened(alignment)
    best, cost = steps.find_best(alignment), steps.find_cost(alignment)
    versions = alignment.versions.select_related("judge", "parent__judge").order_by("number")
    return {
        "alignment": alignment.pk,
        "benchmark": alignment.split.benchmark.slug,
        "judge": name_of(alignment.judge),
        "optimiser": alignment.optimiser,
        "state": alignment.state,
        "reason": (not hidden and alignment.finished) or alignment.stopped,
        "split": {
            "seed": alignment.split.seed,
            "tasks": splitting.count_parts(alignment.split),
            "cases": None if hidden else splitting.count_cases(alignment.split, alignment.submissions.all()),
        },
        "looks_at_test": looks.count_looks(alignment.split),
        "versions_tried": count_tried(alignment),
        "rounds": alignment.rounds,
        "max_cost": None if alignment.max_cost is None else float(alignment.max_cost),
        "cost": None if cost is None else float(cost),
        "max_calls": alignment.max_calls,
        "calls": steps.count_calls(alignment),
        "best": None if hidden or best is None or best.judge is None else name_of(best.judge),
        "reopened": hidden,
        "versions": [describe_version(each) | (NO_FIGURES if hidden else {}) for each in versions],
        "looks": [describe_look(each) | ({"test": None} if hidden else {}) for each in looks.list_looks(alignment)],
    }


def count_tried(alignment: Alignment) -> int:
    """Return how many rewritten versions all alignments on the same split have tried on development."""
    tried = AlignmentVersion.objects.filter(alignment__split=alignment.split_id, number__gt=0, judge__isnull=False)
    return tried.count()


def describe_version(version: AlignmentVersion) -> dict[str, Any]:
    parent = version.parent.judge if version.parent else None
    return {
        "number": version.number,
        "judge": None if version.judge is None else name_of(version.judge),
        "parent": None if parent is None else name_of(parent),
        "accepted": version.accepted,
        "reason": version.reason,
        "criteria": material.read_criteria(version),
        "development": version.figures,
    }


def describe_look(look: LookAtTest) -> dict[str, Any]:
    return {
        "version": look.version.number,
        "person": look.person.get_username(),
        "looked_at": look.looked_at.isoformat(),
        "test": look.report,
        "reason": looks.find_reason(look),
    }


def format_changes(report: Mapping[str, Any] | None, *, base: bool = False) -> list[str]:
    """Return the value after and the change for each measure as text, both with intervals, or why there is none.

    The ``base`` has no change.
    """
    return [] if report is None else [_format_change(name, report[name], base) for name in figures.MEASURES]


def _format_change(name: str, found: Mapping[str, Any], base: bool) -> str:
    after, change = (Measure(**found[each]) for each in ("after", "change"))
    kind, signed = ("coefficient", _sign) if name == "kappa" else ("rate", _points)
    if after.value is None:
        return after.undefined
    ends = interval(after, kind)
    text = f"{written(after.value, kind)} ({ends})" if ends else written(after.value, kind)
    if base:
        return text
    if change.value is None:
        return f"{text}, change: {change.undefined}"
    ends = "" if change.low is None else f" ({signed(change.low)} to {signed(change.high)})"
    return f"{text}, change {signed(change.value)}{' points' if name != 'kappa' else ''}{ends}"


def _points(value: float | None) -> str:
    return written(value, "points")


def _sign(value: float | None) -> str:
    text = written(value, "coefficient")
    return text if text.startswith(MINUS) else f"+{text}"
