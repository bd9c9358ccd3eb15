"""Mark judges that have learned from tasks of a benchmark, wherever their figures over all of its tasks are shown."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from typing import Any

from django.http import Http404

from evaluations.judge_alignment import starting
from judges.models import Alignment, AlignmentVersion, Judge

SENTENCE = "This judge was aligned on tasks of this benchmark: use its figures on the test tasks."


def find_alignments(judges: Collection[Judge], slug: str) -> dict[int, int]:
    """Return the newest alignment on a benchmark that each judge comes from, by the judge's primary key.

    Later versions of such a judge come from it, too. Judges that learned nothing are missing.
    """
    of_judge = ("alignment", "judge__name", "judge__version")
    rewritten = AlignmentVersion.objects.filter(
        number__gt=0, judge__isnull=False, alignment__split__benchmark__slug=slug
    )
    written = Alignment.written.through._default_manager.filter(alignment__split__benchmark__slug=slug)
    rows = sorted(rewritten.order_by().values_list(*of_judge).union(written.values_list(*of_judge)))
    return {
        judge.pk: alignment
        for alignment, name, version in rows
        for judge in judges
        if judge.came_with_id is None and judge.name == name and judge.version >= version
    }


def load_notices(person: Any, judges: Collection[Judge], slug: str) -> dict[int, Alignment | None]:
    """Return the judges that come from an alignment, by primary key, with the alignment if the person may open it."""
    found = find_alignments(judges, slug)
    seen: dict[int, Alignment] = {}
    for pk in set(found.values()):
        with suppress(Http404):
            seen[pk] = starting.find_alignment(person, pk)
    return {judge: seen.get(alignment) for judge, alignment in found.items()}


def describe(judge: Judge, slug: str) -> dict[str, str | None]:
    """Return the key ``aligned`` of the JSON of a comparison: the sentence, or None."""
    return {"aligned": SENTENCE if find_alignments([judge], slug) else None}


def describe_all(told: dict[str, Any], judges: Collection[Judge], slug: str) -> dict[str, Any]:
    """Return the JSON of all judges, in their order, with the key ``aligned`` for each."""
    found = find_alignments(judges, slug)
    marks = [{"aligned": SENTENCE if judge.pk in found else None} for judge in judges]
    return told | {"judges": [each | mark for each, mark in zip(told["judges"], marks, strict=True)]}
