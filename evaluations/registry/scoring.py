"""Rates and rows of an entry: from the labels of its bundle or of the owners' people, and the owners' changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from annotation.models import Adjudication, Label, SamplePlan, Submission
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


class UnknownTask(Exception):
    """A change of a task that the entry does not have, or that was not drawn for its planned sample."""


@dataclass(frozen=True, slots=True)
class Scored:
    """What a version publishes: ``columns`` of `EntryVersion`, and rows without their version."""

    columns: dict[str, Any]
    rows: list[EntryRow]


def score(entry: Entry, changes: Mapping[str, Change] = {}) -> Scored:
    """Return rate and rows of the final verdicts with ``changes`` by task id; raises UnknownTask."""
    submission = entry.reviewed
    if submission is None:
        raise ValueError("The file of the entry was not opened.")
    found = cases.of_population(submission)
    if unknown := sorted(set(changes) - {case.task_id for case in found}):
        raise UnknownTask(f"This entry has no task {unknown[0]}. Enter ids of its rows.")
    included = [
        _change(case, changes.get(case.task_id))
        for case in found
        if (change := changes.get(case.task_id)) is None or change.included
    ]
    planned = SamplePlan.objects.filter(submission=submission).exists()
    judged = {case.task_id for case in found if case.final is not None}
    if planned and (
        outside := sorted(name for name, each in changes.items() if each.verdict is not None and name not in judged)
    ):
        raise UnknownTask(f"The task {outside[0]} was not drawn for the planned sample, so it takes no verdict.")
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
    population = estimating.load_population(submission, judge, found)
    counted = {estimating.pk_of(case) for case in found}  # tasks that were left out are not missing labels
    items = {pk: item for pk, item in population.items.items() if pk in counted}
    return estimating.estimate(replace(population, items=items)).combined


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
    labels = Label.objects.filter(assignment__trajectory__submission=submission)
    decided = Adjudication.objects.filter(trajectory__submission=submission, decided_at__isnull=False)
    return {
        "labels": submission.required_labels or MINIMUM_LABELS,
        "annotators": labels.values("assignment__annotator").distinct().count(),
        "adjudicators": decided.values("adjudicator").distinct().count(),
    }


def _find_newest_task(found: list[Case]) -> str:
    return str(max((case.task_version or 0 for case in found), default=0) or "")


def _describe_audit(audit: Audit) -> dict[str, int]:
    found = result(audit)
    return {} if found is None else {"size": found.n, "alike": found.n - len(found.differing)}
