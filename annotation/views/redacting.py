"""Pages for maintainers to redact screenshots in bundles and exports."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.utils.cache import patch_cache_control

from annotation import access, redactions, screenshots, workflow
from annotation.models import Membership, Redaction, Screenshot, Step, Submission
from annotation.records import Problem
from annotation.views.answers import Request, act_from, page, paginate
from annotation.views.comparing import pseudonyms
from annotation.views.pictures import from_store
from annotation.workflow.redacting import MOST_BOXES

Role = Membership.Role
SIDES = ("x", "y", "width", "height")
BLANK = 3  # empty rows for more boxes, if no script adds them
LONGEST = 9  # digits of a number of pixels; no screenshot needs more

Row = dict[str, str]


@page
def redaction(request: Request, pk: int, step: int) -> HttpResponse:
    found = _find_step(request, pk, step)
    current = _current(found)
    return _editor(request, found, _rows_of(current.boxes if current else []))


@act_from("redaction")
def redact(request: Request, pk: int, step: int) -> HttpResponse:
    found = _find_step(request, pk, step)
    rows = _read_rows(request)
    boxes, problems = _parse_boxes(rows)
    try:
        if problems:
            raise workflow.Incomplete(problems)
        made = workflow.redact(
            request.user, found.trajectory.submission, _picture(found), boxes, request.POST.get("reason", "")
        )
    except (workflow.Incomplete, workflow.Conflict) as refusal:
        named = getattr(refusal, "problems", []) or [Problem("refused", str(refusal), "boxes")]
        status = 409 if isinstance(refusal, workflow.Conflict) else 400
        return _editor(request, found, rows, named, status)
    messages.success(request, _done(made))
    return redirect("redaction", pk, step)


def _done(made: Redaction) -> str:
    if not made.boxes:
        return "Redaction removed."
    count = "1 box" if len(made.boxes) == 1 else f"{len(made.boxes)} boxes"
    return f"Bundles and exports will contain the screenshot with {count} covered."


@from_store
def redacted_picture(request: Request, pk: int, step: int) -> HttpResponse:
    """Return the redacted image as bundles contain it; created here, so it is safe without re-encoding."""
    current = _current(_find_step(request, pk, step))
    if current is None:
        raise Http404("This screenshot has no redaction.")
    response = HttpResponse(screenshots.original(current.redacted), content_type="image/png")
    patch_cache_control(response, private=True, no_store=True)
    return response


@page
def submission_redactions(request: Request, pk: int) -> HttpResponse:
    """List all redactions of a submission with revisions, newest first, and a step with the screenshot."""
    found = access.submission_for(request.user, pk, Role.MAINTAINER)
    shown = paginate(request, redactions.annotate_replaced(redactions.find_history(found)).reverse(), 50)
    places = _find_first_steps(found, [row.original for row in shown])
    names = dict(found.memberships.values_list("person_id", "pseudonym"))
    rows = [
        (row, places.get(row.original), names.get(row.redacted_by_id), bool(row.boxes) and not row.replaced)
        for row in shown
    ]
    context = {"submission": found, "page": shown, "rows": rows}
    return render(request, "annotation/redactions.html", context)


def _find_first_steps(submission: Submission, originals: list[str]) -> dict[str, Step]:
    """Return the first step that shows each of the screenshots, by the screenshot's SHA-256."""
    steps = Step.objects.filter(trajectory__submission=submission, screenshot__sha256__in=originals)
    ordered = steps.select_related("trajectory__task", "screenshot").order_by("-trajectory__position", "-index")
    return {step.screenshot.sha256: step for step in ordered if step.screenshot is not None}


def _find_step(request: Request, pk: int, index: int) -> Step:
    """Return a step with a screenshot, only to maintainers of its submission; raise Http404 if it has none."""
    trajectory = access.trajectory_for(request.user, pk, Role.MAINTAINER)
    found = trajectory.steps.select_related("screenshot").filter(index=index, screenshot__isnull=False).first()
    if found is None:
        raise Http404("This step has no screenshot.")
    found.trajectory = trajectory
    return found


def _picture(step: Step) -> Screenshot:
    return cast(Screenshot, step.screenshot)  # `_find_step` refuses a step without one


def _current(step: Step) -> Redaction | None:
    return redactions.choose_current(redactions.find_revisions(step.trajectory.submission, _picture(step)))


def _editor(
    request: Request, step: Step, rows: list[Row], problems: Sequence[Problem] = (), status: int = 200
) -> HttpResponse:
    submission = step.trajectory.submission
    history, names = redactions.find_revisions(submission, _picture(step)), pseudonyms(step.trajectory)
    context = {
        "step": step,
        "trajectory": step.trajectory,
        "submission": submission,
        "rows": rows + [dict.fromkeys(SIDES, "")] * min(BLANK, MOST_BOXES - len(rows)),
        "most": MOST_BOXES,
        "reason": request.POST.get("reason", ""),
        "problems": problems,
        "wrong": {problem.where for problem in problems},
        "history": [(row, names.get(row.redacted_by_id, "")) for row in history],
        "covered": redactions.choose_current(history) is not None,
        "elsewhere": _picture(step).steps.filter(trajectory__submission=submission).count() - 1,
    }
    return render(request, "annotation/redaction.html", context, status=status)


def _rows_of(boxes: Sequence[Sequence[int]]) -> list[Row]:
    return [{side: str(value) for side, value in zip(SIDES, box, strict=True)} for box in boxes]


def _read_rows(request: Request) -> list[Row]:
    """Return the rows as typed, without the empty ones."""
    columns = [request.POST.getlist(side)[: MOST_BOXES + 1] for side in SIDES]
    count = max(len(column) for column in columns)
    padded = [column + [""] * (count - len(column)) for column in columns]
    rows = [dict(zip(SIDES, (value.strip() for value in row), strict=True)) for row in zip(*padded, strict=True)]
    return [row for row in rows if any(row.values())]


def _parse_boxes(rows: list[Row]) -> tuple[list[list[int]], list[Problem]]:
    wrong = [number for number, row in enumerate(rows, start=1) if not all(map(_is_number, row.values()))]
    says = "Box {}: enter x, y, width and height as whole numbers."
    problems = [Problem("not_a_number", says.format(number), "boxes") for number in wrong]
    return ([] if problems else [[int(row[side]) for side in SIDES] for row in rows]), problems


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= LONGEST
