"""Training: the newcomer's practice pages, and the maintainer's pages of known answers and gold items."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

from django.db.models import Exists, F, OuterRef
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse

from annotation import access, training, workflow
from annotation.forms import VERDICT_NAMES, LabelForm
from annotation.label_fields import LABEL_FIELDS, CodeField, LabelField, StepField
from annotation.models import KeyPoint, KnownAnswer, Label, Membership, PracticeAnswer, Submission, Trajectory
from annotation.records import Problem, Verdict
from annotation.views import desk
from annotation.views.answers import Request, act, page, paginate, show_task_message
from annotation.views.viewer import number, viewer
from annotation.workflow.training import EXCEPTION, KNOWN_FIELDS

Role = Membership.Role


# --- newcomers -------------------------------------------------------------------------------------------------------


@page
def practice(request: Request, pk: int) -> HttpResponse:
    submission = access.practice_for(request.user, pk)
    state = training.load_practice(request.user, submission)
    context = {
        "submission": submission,
        "practice": state,
        "admitted": training.is_admitted(request.user, submission),
        "rows": [(item, state.current.get(item.pk), _name_fault(item)) for item in state.items],
        "missed": Counter(map(_name_fault, state.missed)).most_common(),
        "first": state.items[0] if state.items else None,
        "earlier": [(n, state.right_in(n)) for n in sorted(state.rounds, reverse=True) if n != state.number],
    }
    return render(request, "annotation/practice.html", context)


def _name_fault(item: Trajectory) -> str:
    """Return the name of an item's failure type; "" if it is no failure."""
    declared = LABEL_FIELDS["failure_type"]
    return _describe(declared, item.known_answer.failure_type)[0]


def practice_desk(request: Request, pk: int, trajectory_pk: int) -> HttpResponse:
    """Show a practice item: the form until it is answered in this round, then the known answer."""
    view = _submit_answer if request.method == "POST" else _show_item
    return view(request, pk=pk, trajectory_pk=trajectory_pk)


@page
def _show_item(request: Request, pk: int, trajectory_pk: int) -> HttpResponse:
    submission, item = access.practice_trajectory_for(request.user, pk, trajectory_pk)
    return _render_practice_desk(request, submission, item)


@act
def _submit_answer(request: Request, pk: int, trajectory_pk: int) -> HttpResponse:
    submission, item = access.practice_trajectory_for(request.user, pk, trajectory_pk)
    form = LabelForm.from_post(request.POST, attempt=item.submission.asks_attempt)
    numbered = number(request.GET.get("round")) or 0
    try:
        workflow.answer_practice(request.user, submission, item, form.valid_content(), numbered)
    except workflow.Incomplete as incomplete:
        return _render_practice_desk(request, submission, item, incomplete.problems)
    return redirect(reverse("practice-desk", args=[pk, trajectory_pk]))


def _render_practice_desk(
    request: Request, submission: Submission, item: Trajectory, refused: list[Problem] | None = None
) -> HttpResponse:
    state = training.load_practice(request.user, submission)
    given = state.current.get(item.pk)
    # A new round shows the form again, and hides the known answer until the item is answered.
    again = state.open_round not in (None, state.number) and number(request.GET.get("round")) == state.open_round
    answer = None if again else given
    address = reverse("practice-desk", args=[submission.pk, item.pk]) + "?"
    address += f"round={state.open_round}&" if again else ""
    if request.htmx:
        return desk.step_partial(request, item, address)
    numbered = state.open_round if again else state.number
    shown = viewer(request, item, address)
    points = list(workflow.key_points_of(item))
    context = {
        "trajectory": item,
        "submission": submission,
        "practice": state,
        "round": numbered,
        "round_text": str(numbered),
        "viewer": shown,
        "answer": answer,
        "place": state.items.index(item) + 1,
    }
    if answer is not None:
        known = _find_known_answer(item)
        context |= {"known": known, "rows": compare_answers(answer, known, points) if known else []}
        context["missed"] = item in state.missed and training.explain_missed(answer, item.known_answer)
    else:
        asked = replace(workflow.asked_of(item), process=False)  # practice compares verdicts and findings
        context |= desk.form_context(request.POST if refused is not None else {}, points, asked, refused)
    status = 200 if refused is None else 400
    return render(request, "annotation/practice_desk.html", context | desk.load_rules(), status=status)


@dataclass(frozen=True, slots=True)
class Row:
    title: str
    own: str
    own_step: int | None
    known: str
    known_step: int | None
    differs: bool


def compare_answers(answer: PracticeAnswer, known: KnownAnswer, points: list[KeyPoint]) -> list[Row]:
    """Compare an answer with the known one; rows that are empty in both are left out."""
    own = answer.content | {"verdict": answer.verdict}
    rows = []
    for declared in (LABEL_FIELDS[name] for name in KNOWN_FIELDS):
        mine, right = _describe(declared, own.get(declared.name)), _describe(declared, getattr(known, declared.name))
        rows.append(_build_row(declared.title, *mine, *right))
    for place, point in enumerate(points, start=1):
        both = [given.get(str(point.pk), {}) for given in (own.get("findings", {}), known.findings)]
        values = [value for each in both for value in (each.get("finding", ""), each.get("step"))]
        rows.append(_build_row(f"{place}. {point.text}", *values))
    return [row for row in rows if any((row.own, row.known)) or (row.own_step, row.known_step) != (None, None)]


def _describe(declared: LabelField, value: Any) -> tuple[str, int | None]:
    """Return the text of a value, or the step for a step field."""
    if isinstance(declared, StepField):
        return "", value
    if isinstance(declared, CodeField):
        return ", ".join(declared.names_of(value or "")), None
    return VERDICT_NAMES[Verdict(value)], None


def _build_row(title: str, own: str, own_step: int | None, known: str, known_step: int | None) -> Row:
    """Build a row; findings are compared without their steps, because two steps may prove the same."""
    differs = own != known if own or known else own_step != known_step
    return Row(title, own, own_step, known, known_step, differs)


# --- maintainers -----------------------------------------------------------------------------------------------------


def known_answer(request: Request, pk: int) -> HttpResponse:
    view = _save_known_answer if request.method == "POST" else _show_known_answer
    return view(request, pk=pk)


@page
def _show_known_answer(request: Request, pk: int) -> HttpResponse:
    found = access.trajectory_for(request.user, pk, Role.MAINTAINER)
    if request.htmx:
        return desk.step_partial(request, found)
    return _render_known_answer(request, found)


@act
def _save_known_answer(request: Request, pk: int) -> HttpResponse:
    found = access.trajectory_for(request.user, pk, Role.MAINTAINER)
    form = LabelForm.from_post(request.POST)
    try:
        workflow.set_known_answer(request.user, found, form.valid_content())
    except workflow.Incomplete as incomplete:
        return _render_known_answer(request, found, incomplete.problems)
    show_task_message(request, "Known answer saved: {}", found.task)
    return redirect("known-answer", pk)


def _render_known_answer(request: Request, found: Trajectory, refused: list[Problem] | None = None) -> HttpResponse:
    shown = viewer(request, found, reverse("known-answer", args=[found.pk]) + "?")
    known = _find_known_answer(found)
    context: dict[str, Any] = {
        "trajectory": found,
        "submission": found.submission,
        "viewer": shown,
        "known": known,
        "why_not": workflow.known_answer_refusal(found),
    }
    data = request.POST if refused is not None else values_of(known)
    asked = replace(workflow.asked_of(found, Role.MAINTAINER), process=False)
    context |= desk.form_context(data, list(workflow.key_points_of(found)), asked, refused) | desk.load_rules()
    return render(request, "annotation/known_answer.html", context, status=200 if refused is None else 400)


def _find_known_answer(trajectory: Trajectory) -> KnownAnswer | None:
    return KnownAnswer.objects.filter(trajectory=trajectory).first()


def values_of(known: KnownAnswer | None) -> dict[str, str]:
    if known is None:
        return {}
    explanation, _, exception = known.explanation.partition(EXCEPTION)
    values: dict[str, Any] = {name: getattr(known, name) for name in KNOWN_FIELDS}
    values |= {"reasoning": explanation, "exception_reason": exception}
    for key_point, said in known.findings.items():
        values |= {f"finding_{key_point}": said["finding"], f"finding_{key_point}_step": said["step"]}
    return {name: str(value) for name, value in values.items() if value not in (None, "")}


@page
def gold(request: Request, pk: int) -> HttpResponse:
    """List the known answers of a submission; among real work they are gold items, with each annotator's result.

    A result lets a maintainer infer a verdict before the freeze, which is the purpose of gold items. It does not
    affect any decision.
    """
    submission = access.submission_for(request.user, pk, Role.MAINTAINER)
    labelled = Exists(Label.objects.filter(assignment__trajectory=OuterRef("pk")))
    rows = submission.trajectories.select_related("task", "known_answer").annotate(labelled=labelled)
    page = paginate(request, rows.order_by(F("known_answer__pk").asc(nulls_last=True), "position"), 50)
    gold = [] if submission.practice else training.load_gold(submission, [row.pk for row in page])
    results = {
        item.trajectory.pk: sorted(item.results.items(), key=lambda each: (len(each[0]), each[0])) for item in gold
    }
    context = {
        "submission": submission,
        "items": submission.trajectories.filter(known_answer__isnull=False).count(),
        "shares": [] if submission.practice else training.count_gold(submission),
        "page": page,
        "rows": [(row, results.get(row.pk, [])) for row in page],
    }
    return render(request, "annotation/gold.html", context)
