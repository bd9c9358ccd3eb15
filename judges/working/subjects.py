"""Load the input of a scorer from the rows of a trajectory."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any, BinaryIO

from django.conf import settings
from django.db.models import F, Prefetch

from annotation import screenshots
from annotation.models import Attachment, KeyPoint, Step, Trajectory
from annotation.records import (
    ActionStatus,
    AttachmentKind,
    AttachmentRecord,
    Click,
    StepRecord,
    TrajectoryRecord,
    Verdict,
)
from judges.lab import OPERATORS, ChangedImage, change
from judges.llm import CallFailed, ImageRef
from judges.models import Expectation, Judge, Judgment
from judges.scorer import Expected, StoredFile, Subject, Vote

AT_ONCE = 500  # trajectories in memory at once
NOT_JUDGED = "This repetition failed or has not ended."


def load_subject(trajectory: Trajectory) -> Subject:
    return next(load_subjects([trajectory.pk]))[1]


def load_subjects(trajectory_pks: Sequence[int], members: Sequence[Judge] = ()) -> Iterator[tuple[int, Subject]]:
    """Yield pairs of a trajectory's key and its subject, in the given order; five queries for each `AT_ONCE`.

    ``members`` are the judges of an ensemble, whose votes are loaded with one more query. A trajectory that does not
    exist is omitted.
    """
    for start in range(0, len(trajectory_pks), AT_ONCE):
        chosen = trajectory_pks[start : start + AT_ONCE]
        rows = {row.pk: row for row in _load_rows(chosen)}
        votes = _load_votes(chosen, members) if members else {}
        yield from ((pk, _build_subject(rows[pk], votes.get(pk, ()))) for pk in chosen if pk in rows)


# --- changed by the lab ----------------------------------------------------------------------------------------------


def load_item_subject(
    trajectory: int, repetition: int, robustness: Mapping[str, Any] | None, members: Sequence[Judge] = ()
) -> Subject:
    """Return the subject of a run item, changed by its operator if the run attacks its judge."""
    subject = next(load_subjects([trajectory], members))[1]
    if robustness is None or repetition == 1:
        return subject
    seed, operator = robustness["seed"], OPERATORS[robustness["operators"][repetition - 2]]
    return change(operator, subject, load_other(trajectory, seed) if operator.needs_other else None, seed=seed)


def load_other(trajectory: int, seed: int) -> Subject | None:
    """Return a trajectory with screenshots of another task in the same submission, drawn by ``seed``; None if there is
    none."""
    own = Trajectory.objects.select_related("task").get(pk=trajectory)
    others = Trajectory.objects.filter(submission=own.submission_id, steps__screenshot__isnull=False)
    others = others.exclude(task__external_id=own.task.external_id).order_by("position", "pk")
    pks = list(others.values_list("pk", flat=True).distinct())
    if not pks:
        return None
    drawn = Random(f"{seed}:{own.task.external_id}").choice(pks)  # noqa: S311 - to be repeatable
    return next(load_subjects([drawn]))[1]


def _load_rows(pks: Sequence[int]) -> list[Trajectory]:
    accepted = KeyPoint.objects.filter(accepted_at__isnull=False, retired_at__isnull=True)
    return list(
        Trajectory.objects.filter(pk__in=pks)
        .select_related("task")
        .prefetch_related(
            Prefetch("steps", Step.objects.select_related("screenshot")),
            Prefetch("attachments", Attachment.objects.filter(withheld=False).order_by("pk")),
            Prefetch("task__key_points", accepted),
            Prefetch("task__expectations", Expectation.objects.order_by("kind", "version")),
        )
    )


def _build_subject(trajectory: Trajectory, votes: Sequence[Vote]) -> Subject:
    steps = list(trajectory.steps.all())
    attachments = list(trajectory.attachments.all())
    return Subject(
        record=_build_record(trajectory, steps, attachments),
        website=trajectory.task.website,
        screenshots=tuple(ImageRef(step.screenshot.sha256) if step.screenshot else None for step in steps),
        input_images=tuple(ImageRef(a.sha256) for a in attachments if a.kind == AttachmentKind.INPUT_IMAGE),
        key_points=tuple(point.text for point in trajectory.task.key_points.all()),
        files=tuple(_build_file(one) for one in sorted(attachments, key=lambda one: one.name)),
        expectations=_select_expectations(trajectory),
        rubric_scripts=settings.RUBRIC_SCRIPTS,
        votes=tuple(votes),
    )


def _load_votes(pks: Sequence[int], members: Sequence[Judge]) -> Mapping[int | None, list[Vote]]:
    """Return the votes of judges by trajectory: of the newest run with a judgment, else the imported judgments.

    Test runs do not count. A repetition of that run without a judgment is a vote without a verdict.
    """
    labels = {judge.pk: f"{judge.name}@{judge.version}" for judge in members}
    made = Judgment.objects.filter(judge__in=labels, trajectory__in=pks).exclude(item__run__test=True)
    columns = ("fingerprint", "repetition", "item__run", "pk", "verdict", "unscored", "cost")
    ordered = made.order_by(F("item__run").desc(nulls_last=True), "repetition", "pk")
    counted: defaultdict[tuple[int | None, int], list[Vote]] = defaultdict(list)
    repetitions: dict[tuple[int | None, int], int] = {}
    for trajectory, judge, times, *row in ordered.values_list(
        "trajectory", "judge", "item__run__repetitions", *columns
    ):
        fingerprint, repetition, run, pk, verdict, unscored, cost = row
        same = counted[trajectory, judge]
        if same and same[0].run != run:
            continue
        said = None if verdict is None else Verdict(verdict)
        same.append(Vote(labels[judge], fingerprint, repetition, run, pk, said, unscored, cost))
        repetitions[trajectory, judge] = times or 0
    found: defaultdict[int | None, list[Vote]] = defaultdict(list)
    for (trajectory, judge), votes in counted.items():
        missing = set(range(1, repetitions[trajectory, judge] + 1)) - {one.repetition for one in votes}
        absent = replace(votes[0], judgment=None, verdict=None, unscored=NOT_JUDGED, cost=None)
        votes += [replace(absent, repetition=number) for number in missing]
        found[trajectory] += sorted(votes, key=lambda one: one.repetition)
    return found


def _select_expectations(trajectory: Trajectory) -> dict[str, Expected]:
    """Return the newest version of each kind, without withdrawn ones."""
    newest = {row.kind: row for row in trajectory.task.expectations.all()}
    return {kind: Expected(kind, row.version, row.digest, row.text) for kind, row in newest.items() if row.text}


def _build_file(attachment: Attachment) -> StoredFile:
    return StoredFile(
        AttachmentKind(attachment.kind), attachment.name, attachment.sha256, attachment.size, _make_opener(attachment)
    )


def _make_opener(attachment: Attachment) -> Callable[[], BinaryIO]:
    def opened() -> BinaryIO:
        try:
            return screenshots.open_original(attachment.sha256)
        except screenshots.STORE_ERRORS as error:
            says = " ".join(str(error).split())
            raise CallFailed(f"The file {attachment.name} could not be read from the store: {says}") from error

    return opened


def _build_record(trajectory: Trajectory, steps: list[Step], attachments: list[Attachment]) -> TrajectoryRecord:
    return TrajectoryRecord(
        folder="",
        task_id=trajectory.task.external_id,
        task_text=trajectory.task_text,
        final_answer=trajectory.final_answer,
        source_format=trajectory.source_format,
        steps=tuple(_build_step(step) for step in steps),
        reference_length=trajectory.reference_length,
        attachments=tuple(AttachmentRecord(AttachmentKind(a.kind), a.name) for a in attachments),
    )


def _build_step(step: Step) -> StepRecord:
    clicked = step.click_x is not None and step.click_y is not None
    return StepRecord(
        index=step.index,
        action=step.action,
        thought=step.thought,
        url=step.url or None,
        status=ActionStatus(step.status) if step.status else None,
        screenshot=step.file_name or None,
        click=Click(step.click_x or 0.0, step.click_y or 0.0) if clicked else None,
    )


class StoredImages:
    """`llm.Images` that reads the judge-ready JPEG created by the import, in a separate thread."""

    async def load(self, image: ImageRef) -> bytes:
        if isinstance(image, ChangedImage):
            return await asyncio.to_thread(image.render, await self.load(image.source))
        try:
            return await asyncio.to_thread(screenshots.judge_ready, image.digest)
        except (*screenshots.STORE_ERRORS, screenshots.ScreenshotError) as error:
            says = " ".join(str(error).split())
            raise CallFailed(
                f"The screenshot {image.digest[:12]} could not be read from the image store: {says}"
            ) from error
