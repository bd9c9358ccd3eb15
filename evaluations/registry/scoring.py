"""Rates and rows of an entry: from the labels of its bundle or of the owners' people, and the owners' changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from annotation.models import Membership, SamplePlan, Submission
from annotation.protocol import MINIMUM_LABELS
from annotation.records import Verdict
from evaluations import cases, estimating
from evaluations.auditing.results import result
from evaluations.cases import Case
from evaluations.comparison import list_judges
from evaluations.models import Audit, Entry, EntryRow, EntryVersion
from evaluations.statistics import Measure, wilson

Method = EntryVersion.Method
NOT_DRAWN = "Not drawn for the planned sample."
NOT_DECIDED = "No final verdict."


@dataclass(frozen=True, slots=True)
class Change:
    """A changed row: left out, or ``verdict`` instead of the submitted one (null keeps it); with the reason."""

    reason: str
    verdict: Verdict | None = None
    included: bool = True


@dataclass(frozen=True, slots=True)
class Scored:
    """What a version publishes: ``columns`` of `EntryVersion`, and rows without their version."""

    columns: dict[str, Any]
    rows: list[EntryRow]


def score(entry: Entry, changes: Mapping[str, Change] = {}) -> Scored:
    """Return rate and rows of the final verdicts with ``changes`` by task id; ValueError for an unknown task."""
    submission = entry.reviewed
    if submission is None:
        raise ValueError("The file of the entry was not opened.")
    found = cases.of_population(submission)
    if unknown := sorted(set(changes) - {case.task_id for case in found}):
        raise ValueError(unknown[0])
    included = [
        _change(case, changes.get(case.task_id))
        for case in found
        if (change := changes.get(case.task_id)) is None or change.included
    ]
    planned = SamplePlan.objects.filter(submission=submission).exists()
    rate = _estimate(submission, included) if planned else _count(included)
    texts = dict(submission.trajectories.values_list("task__external_id", "task__text"))
    rows = [_build_row(case, texts[case.task_id], changes.get(case.task_id), planned=planned) for case in found]
    return Scored(
        {
            "rate": rate.value,
            "low": rate.low,
            "high": rate.high,
            "rows": sum(row.included for row in rows),
            "method": Method.SAMPLE if planned else Method.PEOPLE,
            "people": _count_people(submission),
            "manifest": entry.audit.manifest if entry.audit else "",
            "tasks": _find_newest_task(found),
            "audited": _describe_audit(entry.audit) if entry.audit else {},
        },
        rows,
    )


def _change(case: Case, change: Change | None) -> Case:
    return case if change is None or change.verdict is None else replace(case, final=change.verdict)


def _count(found: list[Case]) -> Measure:
    """Return the share of successes; a trajectory that could not be executed counts as none."""
    decided = [case for case in found if case.final is not None]
    if not decided:
        return Measure.missing("no trajectory has a final verdict")
    return wilson(sum(case.final is Verdict.SUCCESS for case in decided), len(decided))


def _estimate(submission: Submission, found: list[Case]) -> Measure:
    judge = estimating.judge_of_plan(submission, list_judges(found, benchmark=submission.benchmark.slug))
    return estimating.estimate(estimating.load_population(submission, judge, found)).combined


def _build_row(case: Case, text: str, change: Change | None, *, planned: bool) -> EntryRow:
    changed = _change(case, change)
    decided = changed.final is not None
    reason = change.reason if change else "" if decided else NOT_DRAWN if planned else NOT_DECIDED
    return EntryRow(
        task_id=case.task_id,
        task_version=str(case.task_version or ""),
        text=text,
        verdict=changed.final,
        included=decided and (change is None or change.included),
        reason=reason,
    )


def _count_people(submission: Submission) -> dict[str, int]:
    people = Membership.objects.filter(submission=submission)
    labels = {"labels": submission.required_labels or MINIMUM_LABELS}
    return labels | {
        name: people.filter(role=role).count()
        for name, role in (("annotators", Membership.Role.ANNOTATOR), ("adjudicators", Membership.Role.ADJUDICATOR))
    }


def _find_newest_task(found: list[Case]) -> str:
    return str(max((case.task_version or 0 for case in found), default=0) or "")


def _describe_audit(audit: Audit) -> dict[str, int]:
    found = result(audit)
    return {} if found is None else {"size": found.n, "alike": found.n - len(found.differing)}
