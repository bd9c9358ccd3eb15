"""What the agent did and was asked to do, from the rows: trajectories, their files, and the catalogue of tasks.

Lines of trajectories are made one after the other out of two queries, whatever their number: a submission of thousands
of steps is never in memory as a whole.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import groupby
from operator import attrgetter
from typing import Any, NamedTuple

from django.utils import timezone

from annotation.models import Attachment, Screenshot, Step, Submission, Trajectory
from annotation.workflow.facts import catalogue_facts
from evaluations.verifier.documents import Document

AT_ONCE = 200  # rows that a query hands over at a time


class Picture(NamedTuple):
    sha256: str
    media_type: str
    size: int


def lines(submission: Submission) -> Iterator[Document]:
    attachments: dict[int, list[Document]] = defaultdict(list)
    for row in _attachments(submission).order_by("trajectory", "name"):
        attachments[row.trajectory_id].append(
            {"kind": row.kind, "name": row.name, "sha256": row.sha256, "size": row.size}
        )
    steps = _steps(submission)
    taken = next(steps, None)
    rows = Trajectory.objects.filter(submission=submission).select_related("task").order_by("position")
    for trajectory in rows.iterator(chunk_size=AT_ONCE):
        own: list[Document] = []
        if taken is not None and taken[0] == trajectory.pk:
            own, taken = taken[1], next(steps, None)
        found = sorted(attachments.pop(trajectory.pk, []), key=lambda each: str(each["name"]))
        yield _line(trajectory) | {"steps": own, "attachments": found}


def pictures(submission: Submission) -> list[Picture]:
    """Every screenshot that steps of the submission state, once, by its digest.

    In the sample of an audit that may be an original which came covered: it is not in the store.
    """
    steps = Step.objects.filter(trajectory__submission=submission, screenshot__isnull=False)
    shown = steps.filter(withheld__isnull=True).values("screenshot")
    rows = list(Screenshot.objects.filter(pk__in=shown).values_list("sha256", "media_type", "size"))
    stated: Any = steps.filter(withheld__isnull=False).values_list("withheld", flat=True)
    rows += [(each["sha256"], each["media_type"], each["size"]) for each in stated]
    return sorted({Picture(*row) for row in rows})


def attached(submission: Submission) -> dict[str, int]:
    """The size in bytes of every attachment, by its digest."""
    return dict(sorted(_attachments(submission).values_list("sha256", "size").order_by().distinct()))


def stored_size(submission: Submission) -> int:
    """Bytes of all pictures and attachments together, originals where parts of them are covered."""
    return sum(picture.size for picture in pictures(submission)) + sum(attached(submission).values())


def catalogue(submission: Submission) -> list[Document]:
    """Every task of the benchmark with its accepted key points, as they were at the freeze, or are now without one."""
    return catalogue_facts(submission.benchmark, submission.frozen_at or timezone.now())


def _attachments(submission: Submission) -> Any:
    return Attachment.objects.filter(trajectory__submission=submission)


def _steps(submission: Submission) -> Iterator[tuple[int, list[Document]]]:
    """The steps of each trajectory that has any, in the order of the submission."""
    rows = Step.objects.filter(trajectory__submission=submission).select_related("screenshot")
    ordered = rows.order_by("trajectory__position", "index").iterator(chunk_size=AT_ONCE)
    for pk, steps in groupby(ordered, key=attrgetter("trajectory_id")):
        yield pk, [_step(step) for step in steps]


def _line(trajectory: Trajectory) -> Document:
    return {
        "task_id": trajectory.task.external_id,
        "task_version": trajectory.task.version,
        "position": trajectory.position,
        "task_text": trajectory.task_text,
        "final_answer": trajectory.final_answer,
        "reference_length": trajectory.reference_length,
        "source_format": trajectory.source_format,
        "digest": trajectory.digest,
        "warnings": trajectory.warnings,
    }


def _step(step: Step) -> Document:
    return {
        "index": step.index,
        "action": step.action,
        "thought": step.thought,
        "url": step.url or None,
        "status": step.status or None,
        "file_name": step.file_name or None,
        "screenshot": step.withheld or _picture(step.screenshot),
        "click": None if step.click_x is None else [step.click_x, step.click_y],
        "warnings": step.warnings,
    }


def _picture(screenshot: Screenshot | None) -> Document | None:
    if screenshot is None:
        return None
    return {name: getattr(screenshot, name) for name in ("sha256", "size", "width", "height", "media_type")}
