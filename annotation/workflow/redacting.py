"""Redaction of screenshots in bundles and exports."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from django.core.exceptions import PermissionDenied
from django.db import transaction

from annotation import access, clock, redactions, screenshots
from annotation.file_cleanup import delete_files_on_failure
from annotation.models import Person, Redaction, Screenshot, Submission
from annotation.records import Problem
from annotation.workflow.guards import (
    Conflict,
    Incomplete,
    Role,
    lock_submission,
    record,
    require_member,
    require_reason,
    require_writable,
)

MOST_BOXES = 50

Boxes = list[list[int]]


@delete_files_on_failure(start_within=2.0, delete_within=2.0)  # seconds, in a web request
def redact(
    person: Person, submission: Submission, screenshot: Screenshot, boxes: Sequence[Sequence[int]], reason: str
) -> Redaction:
    """Cover ``boxes`` ([x, y, width, height] in pixels of the original) of a screenshot in bundles and exports.

    It replaces an earlier redaction of the screenshot in this submission; an empty list removes that one. It is
    allowed at any time, also after the freeze: people in the review and judges still see the original.
    """
    # Checked before the image work, and again under the lock, where a superuser may become a member.
    if access.role_in(person, submission) is not Role.MAINTAINER:
        raise PermissionDenied("Only an active maintainer of this submission may do that.")
    require_writable(submission)
    given = require_reason(reason, "redacting a screenshot")
    _shown_in(submission, screenshot)
    inside = _check_boxes(boxes, screenshot)
    redacted, size = _store_covered(screenshot, inside) if inside else ("", 0)
    with transaction.atomic():
        submission = lock_submission(submission.pk)
        member = require_member(person, submission, Role.MAINTAINER)
        earlier = redactions.find_revisions(submission, screenshot)
        _changes_something(redactions.choose_current(earlier), inside)
        made = Redaction.objects.create(
            submission=submission,
            original=screenshot.sha256,
            revision=len(earlier) + 1,
            boxes=inside,
            reason=given,
            redacted=redacted,
            size=size,
            redacted_by=person,
            redacted_at=clock.now(),
        )
        facts = {"original": made.original, "revision": made.revision, "boxes": inside, "reason": given}
        record(submission, member, "screenshot_redacted", **facts, redacted=redacted or None, size=size)
        return made


def _shown_in(submission: Submission, screenshot: Screenshot) -> None:
    # Of a screenshot imported with redactions, the original is not stored here, so it cannot be redacted again.
    if not screenshot.steps.filter(trajectory__submission=submission, withheld__isnull=True).exists():
        raise Incomplete(
            [Problem("screenshot_unknown", "No step of this submission has this screenshot.", "screenshot")]
        )


def _check_boxes(boxes: Sequence[Sequence[int]], screenshot: Screenshot) -> Boxes:
    """Return the boxes as plain lists without duplicates; raise Incomplete with all problems."""
    problems = (
        [] if len(boxes) <= MOST_BOXES else [Problem("too_many_boxes", f"Draw at most {MOST_BOXES} boxes.", "boxes")]
    )
    width, height = screenshot.width, screenshot.height
    for number, box in enumerate(boxes[:MOST_BOXES], start=1):
        if not _is_inside(box, width, height):
            message = f"Box {number} is outside the screenshot, which has {width} × {height} pixels."
            problems.append(Problem("box_outside", message, "boxes"))
    if problems:
        raise Incomplete(problems)
    return [list(box) for box in dict.fromkeys(tuple(box) for box in boxes)]


def _is_inside(box: Sequence[int], width: int, height: int) -> bool:
    if len(box) != 4 or not all(type(value) is int for value in box):  # True is not a number of pixels
        return False
    x, y, wide, high = box
    return x >= 0 and y >= 0 and wide >= 1 and high >= 1 and x + wide <= width and y + high <= height


def _store_covered(screenshot: Screenshot, boxes: Boxes) -> tuple[str, int]:
    """Store the redacted image; return its SHA-256 and size in bytes. Raise Conflict if the store fails."""
    try:
        data = screenshots.covered(screenshot.sha256, boxes)
        sha256 = hashlib.sha256(data).hexdigest()
        screenshots.keep_bytes(sha256, data)
    except screenshots.DamagedFile as error:
        message = "This screenshot is damaged in the image store. Nothing was changed. Ask the operator to restore it."
        raise Conflict(message) from error
    except screenshots.STORE_ERRORS as error:
        raise Conflict(
            "This screenshot is missing from the image store, or the store does not answer. Nothing was changed."
        ) from error
    return sha256, len(data)


def _changes_something(held: Redaction | None, boxes: Boxes) -> None:
    if not boxes and held is None:
        message = "Draw at least one box: this screenshot has no redaction to remove."
        raise Incomplete([Problem("boxes_missing", message, "boxes")])
    if held is not None and held.boxes == boxes:
        raise Conflict("This screenshot already has this redaction.")
