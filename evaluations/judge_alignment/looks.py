"""Looks at the test split: each is a row before a test task is judged, and all of them are counted.

No other module reads verdicts of test tasks.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import Q, QuerySet

from annotation.workflow import Conflict
from evaluations.judge_alignment import figures, material, steps
from judges.models import Alignment, AlignmentRun, AlignmentSplit, AlignmentVersion, JudgeRun, LookAtTest, Part


def count_looks(split: AlignmentSplit) -> int:
    return LookAtTest.objects.filter(version__alignment__split=split).count()


def list_looks(alignment: Alignment) -> QuerySet[LookAtTest]:
    looks = LookAtTest.objects.filter(version__alignment=alignment)
    return looks.select_related("version__judge", "version__alignment", "person").order_by("pk")


def look(person: Any, version: AlignmentVersion) -> LookAtTest:
    """Store a look of a person at a version on the test split; `evaluate` judges and measures it."""
    with transaction.atomic():
        alignment = Alignment.objects.select_for_update(of=("self",)).get(pk=version.alignment_id)
        if alignment.state not in ("finished", "cancelled"):
            raise Conflict("The alignment has not ended. Wait or cancel it before you look at the test split.")
        if version.judge_id is None or version.number == 0:
            raise Conflict("Choose a version that was rewritten and has a text.")
        if not material.load_cases(alignment, Part.TEST):
            raise Conflict("No test task has a final verdict in the submissions of this alignment.")
        try:
            steps.compute_rest(alignment)
        except steps.Stopped as spent:
            raise Conflict(f"The budget is too small for a look. {spent}") from spent
        base = alignment.versions.get(number=0)
        ended = AlignmentRun.objects.filter(version__in=[base, version], part=Part.TEST)
        ended.filter(run__cancelled_at__isnull=False).update(replaced=True)  # judged again, from the cache
        return LookAtTest.objects.create(version=version, person=person)


def evaluate(look: LookAtTest) -> bool:
    """Take the next step of a look; return True when its report is stored. Raises Stopped or Conflict.

    The base judge and the version judge the test tasks; the report has the paired change from one to the other.
    """
    if look.report is not None:
        return True
    version = look.version
    base = version.alignment.versions.get(number=0)
    for each in (base, version):
        if not steps.judge_part(each, Part.TEST, look.person):
            return False
    cases = material.load_cases(version.alignment, Part.TEST)
    before, after = (figures.load_verdicts(each, Part.TEST) for each in (base, version))
    report = figures.compare(cases, before, after).as_json()
    LookAtTest.objects.filter(pk=look.pk, report__isnull=True).update(report=report)
    look.refresh_from_db()
    return True


def evaluate_waiting(pk: int) -> None:
    """Take the next step of a look, if it has no report yet; a look that cannot go on waits for its runs."""
    found = LookAtTest.objects.select_related("version__judge", "version__alignment__split__benchmark", "person")
    if (waiting := found.filter(pk=pk, report__isnull=True).first()) is not None:
        with suppress(steps.Stopped, Conflict, PermissionDenied):
            evaluate(waiting)


def find_reason(look: LookAtTest) -> str:
    """Return why an open look cannot go on, "" if it can."""
    if look.report is not None:
        return ""
    alignment = look.version.alignment
    rows = AlignmentRun.objects.filter(version__alignment=alignment, part=Part.TEST, replaced=False)
    for row in rows.filter(Q(version=look.version) | Q(version__number=0)).select_related("run").order_by("pk"):
        if row.run.state in ("stopped", "cancelled"):
            return f"Run {row.run.pk} is {row.run.state}. {row.run.stopped}".strip()
        if row.run.state != "finished":
            return ""
    if alignment.submissions.filter(frozen_at=None).exists():
        return "A submission was reopened. Freeze it."
    try:
        steps.compute_rest(alignment)
    except steps.Stopped as reason:
        return str(reason)
    return ""


def find_open(alignment: Alignment) -> LookAtTest | None:
    return list_looks(alignment).filter(report__isnull=True).first()


def find_waiting(run: JudgeRun | None = None) -> list[int]:
    """Return the looks without a report, oldest first; with ``run`` those that need it."""
    found = LookAtTest.objects.filter(report__isnull=True)
    if run is not None:
        needed = Alignment.objects.filter(versions__runs__run=run, versions__runs__part=Part.TEST)
        found = found.filter(version__alignment__in=needed)
    return list(found.order_by("pk").values_list("pk", flat=True))
