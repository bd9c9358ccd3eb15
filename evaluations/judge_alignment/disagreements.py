"""Disagreements of a version with people, on training and development tasks only, and criteria from them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.http import Http404

from annotation.records import Verdict
from annotation.workflow import Conflict
from evaluations.cases import Case
from evaluations.judge_alignment import material, splitting
from evaluations.judge_alignment.material import Reasons
from judges import defining
from judges.models import Alignment, AlignmentVersion, DisagreementMark, Judge, Judgment, Part

LONGEST_CRITERION = 2_000
SHOWN = (Part.TRAIN, Part.DEVELOPMENT)


@dataclass(frozen=True, slots=True)
class Row:
    """A disagreement side by side. ``right`` is the newest mark, "" without one."""

    case: Case
    part: Part
    judgment: Judgment
    reasons: Reasons
    right: str

    @property
    def judge_verdict(self) -> str:
        return Verdict(self.judgment.verdict or 0).name.lower().replace("_", " ")

    @property
    def people_verdict(self) -> str:
        return "" if self.case.final is None else self.case.final.name.lower()


def find_version(alignment: Alignment, number: int) -> AlignmentVersion:
    found = AlignmentVersion.objects.select_related("judge", "alignment__split__benchmark")
    version = found.filter(alignment=alignment, number=number, judge__isnull=False).first()
    if version is None:
        raise Http404("No such version with a text.")
    return version


def list_rows(version: AlignmentVersion) -> list[Row]:
    """Return the disagreements of a version on the tasks that it has judged, in the order of the submissions."""
    cases = material.load_cases(version.alignment, *SHOWN)
    found = material.find_disagreements(cases, version, *SHOWN)
    final = {case.trajectory: case.final for case, _ in found if case.trajectory is not None and case.final is not None}
    reasons, parts = material.load_reasons(final), splitting.load_parts(version.alignment.split)
    marks = DisagreementMark.objects.filter(judgment__in=[said.pk for _, said in found]).order_by("pk")
    right = dict(marks.values_list("judgment", "right"))
    nothing = Reasons((), None)
    return [
        Row(
            case,
            parts.get(case.task_id, Part.TRAIN),
            said,
            reasons.get(case.trajectory or 0, nothing),
            right.get(said.pk, ""),
        )
        for case, said in found
    ]


def _choose(version: AlignmentVersion, judgments: Collection[int]) -> list[Row]:
    """Return the rows of these judgments; raise Conflict if one is not listed, as those of test tasks are not."""
    rows = [row for row in list_rows(version) if row.judgment.pk in judgments]
    if not rows or len(rows) != len(set(judgments)):
        raise Conflict("Choose disagreements from the list. Load the page again: it may have changed.")
    return rows


def mark(person: Any, version: AlignmentVersion, judgments: Collection[int], right: str) -> int:
    """Store who is right in these disagreements; return how many."""
    if right not in DisagreementMark.Right.values:
        raise Conflict("Choose who is right: people or the judge.")
    rows = _choose(version, judgments)
    DisagreementMark.objects.bulk_create(
        DisagreementMark(judgment=row.judgment, right=right, person=person) for row in rows
    )
    return len(rows)


def add_criterion(person: Any, version: AlignmentVersion, judgments: Collection[int], text: str) -> Judge:
    """Define a new version of the judge with one more criterion, ``text``.

    The reasons of people are not copied: every maintainer may read a judge. Disagreements in which the judge
    is right give no criterion.
    """
    rows = [row for row in _choose(version, judgments) if row.right != DisagreementMark.Right.JUDGE]
    if not rows or version.judge is None:
        raise Conflict("In all of these the judge is right, so there is no criterion to add. Choose others.")
    if not (criterion := text.strip()[:LONGEST_CRITERION]):
        raise Conflict("Write the criterion in your own words: reasons of people are not copied into a judge.")
    definition = defining.read_definition(version.judge)
    parameters = {**version.judge.parameters, "criteria": f"{material.read_criteria(version)}\n\n{criterion}"}
    about = f"One more criterion than {version.judge.name}@{version.judge.version}, from {len(rows)} disagreements."
    with transaction.atomic():
        made = defining.define(person, **definition | {"parameters": parameters, "description": about})
        version.alignment.written.add(made)
    return made
