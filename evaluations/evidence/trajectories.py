"""Documents of trajectories, their files, and the catalogue of tasks.

Lines of trajectories are built one by one from two queries in total: a submission with thousands of steps is never
completely in memory.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import groupby
from operator import attrgetter
from typing import Any, NamedTuple

from annotation import clock
from annotation.models import Attachment, Screenshot, Step, Submission, Trajectory
from annotation.workflow.facts import catalogue_facts
from evaluations.verifier.documents import Document

# Columns that a bundle copies; `auditing` reads them.
TASK_COLUMNS = ("version", "text", "website", "reference_length", "level")
TRAJECTORY_COLUMNS = (
    "position",
    "task_text",
    "final_answer",
    "reference_length",
    "source_format",
    "digest",
    "warnings",
)
STEP_COLUMNS = ("index", "action", "thought", "warnings")
STEP_TEXTS = ("url", "status", "file_name")  # null if empty
SCREENSHOT_COLUMNS = ("sha256", "size", "width", "height", "media_type")
AT_ONCE = 200  # rows that a query loads at a time


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
    """Return every screenshot that the steps of the submission state, once, by digest.

    In the sample of an audit it may be an original that came redacted: then it is not in the store.
    """
    steps = Step.objects.filter(trajectory__submission=submission, screenshot__isnull=False)
    shown = steps.filter(withheld__isnull=True).values("screenshot")
    rows = list(Screenshot.objects.filter(pk__in=shown).values_list("sha256", "media_type", "size"))
    stated: Any = steps.filter(withheld__isnull=False).values_list("withheld", flat=True)
    rows += [(each["sha256"], each["media_type"], each["size"]) for each in stated]
    return sorted({Picture(*row) for row in rows})


def attached(submission: Submission) -> dict[str, int]:
    """Return the size in bytes of every attachment, by digest."""
    return dict(sorted(_attachments(submission).values_list("sha256", "size").order_by().distinct()))


def stored_size(submission: Submission) -> int:
    """Return the total bytes of all images and attachments; redacted images count with their originals."""
    return sum(picture.size for picture in pictures(submission)) + sum(attached(submission).values())


def catalogue(submission: Submission) -> list[Document]:
    """Return every task of the benchmark with its accepted key points, as at the freeze; before a freeze, as now."""
    return catalogue_facts(submission.benchmark, submission.frozen_at or clock.now())


def _attachments(submission: Submission) -> Any:
    return Attachment.objects.filter(trajectory__submission=submission)


def _steps(submission: Submission) -> Iterator[tuple[int, list[Document]]]:
    """Yield the steps of each trajectory that has any, in the order of the submission."""
    rows = Step.objects.filter(trajectory__submission=submission).select_related("screenshot")
    ordered = rows.order_by("trajectory__position", "index").iterator(chunk_size=AT_ONCE)
    for pk, steps in groupby(ordered, key=attrgetter("trajectory_id")):
        yield pk, [_step(step) for step in steps]


def _line(trajectory: Trajectory) -> Document:
    return {
        "task_id": trajectory.task.external_id,
        "task_version": trajectory.task.version,
        **{name: getattr(trajectory, name) for name in TRAJECTORY_COLUMNS},
    }


def _step(step: Step) -> Document:
    return {
        **{name: getattr(step, name) for name in STEP_COLUMNS},
        **{name: getattr(step, name) or None for name in STEP_TEXTS},
        "screenshot": step.withheld or _picture(step.screenshot),
        "click": None if step.click_x is None else [step.click_x, step.click_y],
    }


def _picture(screenshot: Screenshot | None) -> Document | None:
    return {name: getattr(screenshot, name) for name in SCREENSHOT_COLUMNS} if screenshot is not None else None
