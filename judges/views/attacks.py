"""Pages for the maintainer to plan and start a run that tests a judge's robustness."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render

from annotation import access as people_access
from annotation.views.answers import Request, act_from, page
from judges import access, attacking, runs
from judges.forms.runs import AttackForm
from judges.lab import OPERATORS
from judges.models import Judge
from judges.planning import Plan
from judges.ready_judges import RunRefused, find_endpoint_problem
from judges.views.runs import compare_with_budget, format_duration, format_span


@page
def attack(request: Request, pk: int) -> HttpResponse:
    return _render(request, access.find_judge(request.user, pk), _build_form(request, None))


@act_from("attack-judge")
def plan(request: Request, pk: int) -> HttpResponse:
    found = access.find_judge(request.user, pk)
    form = _build_form(request, request.POST)
    if not form.is_valid():
        return _render(request, found, form, status=400)
    try:
        foreseen, asked = attacking.plan(found, **form.read())
    except RunRefused as refused:
        form.add_error(None, str(refused))
        return _render(request, found, form, status=409)
    context: dict[str, Any] = {
        "plan": foreseen,
        "changes": list(_count_changes(foreseen, asked)),
        "given": [(name, value) for name in form.fields for value in request.POST.getlist(name)],
        "calls": format_span(foreseen.calls, foreseen.calls_high),
        "time": format_duration(foreseen.seconds),
        "unasked": find_endpoint_problem(found),
    }
    context |= compare_with_budget(foreseen, form.cleaned_data["max_cost"])
    return _render(request, found, form, **context)


@act_from("attack-judge")
def start(request: Request, pk: int) -> HttpResponse:
    found = access.find_judge(request.user, pk)
    form = _build_form(request, request.POST)
    if not form.is_valid():
        return _render(request, found, form, status=400)
    try:
        made = runs.start_attack(request.user, found, **form.read(), max_cost=form.cleaned_data["max_cost"])
    except RunRefused as refused:
        form.add_error(None, str(refused))
        return _render(request, found, form, status=409)
    messages.success(request, "Test started. The result will be on the judge's page.")
    return redirect("judge-run", made.pk)


def _build_form(request: Request, data: Any) -> AttackForm:
    own = people_access.submissions_maintained_by(request.user)
    return AttackForm(data, own.filter(practice=False, archived_at=None, frozen_at__isnull=False))


def _count_changes(foreseen: Plan, asked: dict[str, Any]) -> Iterator[tuple[str, int, list[str]]]:
    """Yield the title of each change, the number of trajectories, and why others are left out."""
    numbers = Counter(number for _, number in foreseen.items)
    for number, name in enumerate(asked["operators"], 2):
        left_out = asked["left_out"].get(name, {})
        yield OPERATORS[name].title, numbers[number], [f"{count} left out: {why}" for why, count in left_out.items()]


def _render(request: Request, found: Judge, form: AttackForm, status: int = 200, **context: Any) -> HttpResponse:
    return render(request, "judges/attack.html", {"judge": found, "form": form} | context, status=status)
