"""What models cost and how often they may be asked."""

from __future__ import annotations

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render

from annotation import access as people_access
from annotation.views.answers import Request, act, page
from annotation.workflow import Incomplete
from judges import access, defining
from judges.forms.defining import TermsForm
from judges.models import Judge, ModelTerms
from judges.ready_judges import load_addresses
from judges.scorer import IMPORTED


@page
def terms(request: Request) -> HttpResponse:
    """All of them; ?edit= opens one in the form, ?endpoint= and ?model= start a new one."""
    people_access.require_maintainer(request.user)
    wanted = request.GET.get("edit", "")
    opened = ModelTerms.objects.filter(pk=int(wanted[:18])).first() if wanted.isdecimal() else None
    initial = {name: request.GET.get(name, "") for name in ("endpoint", "model")}
    initial["endpoint"] = initial["endpoint"] or next(iter(load_addresses()), "default")
    return _render_terms(
        request, TermsForm(instance=opened, initial=format_prices(opened) if opened else initial, label_suffix="")
    )


@act
def save(request: Request) -> HttpResponse:
    people_access.require_maintainer(request.user)
    form = TermsForm(request.POST, label_suffix="")
    if not form.is_valid():
        return _render_terms(request, form, 400)
    try:
        kept = defining.set_terms(request.user, **form.cleaned_data)
    except Incomplete as refused:
        form.refuse(refused.problems)
        return _render_terms(request, form, 400)
    messages.success(request, f"The terms of {kept} are saved. Calls that were made keep their cost.")
    return redirect("model-terms")


@act
def remove(request: Request, pk: int) -> HttpResponse:
    people_access.require_maintainer(request.user)
    found = ModelTerms.objects.filter(pk=pk).first()
    if found is None:
        raise Http404("There are no such terms.")
    defining.remove_terms(request.user, found)
    messages.success(request, f"The terms of {found} are removed.")
    return redirect("model-terms")


def _render_terms(request: Request, form: TermsForm, status: int = 200) -> HttpResponse:
    rows = [(row, format_prices(row)) for row in ModelTerms.objects.select_related("changed_by")]
    known = {(row.endpoint, row.model) for row, _ in rows}
    used = Judge.own.exclude(model="").exclude(scorer=IMPORTED).values_list("endpoint", "model").distinct()
    context = {
        "rows": rows,
        "unknown": sorted(pair for pair in used.order_by() if pair not in known),
        "form": form,
        "configured": load_addresses(),
        "may_define": access.may_define_judges(request.user),
    }
    return render(request, "judges/terms.html", context, status=status)


def format_prices(row: ModelTerms) -> dict[str, str]:
    prices = {name: getattr(row, name) for name in ("input_price", "cached_price", "output_price")}
    return {name: f"{price.normalize():f}" for name, price in prices.items() if price is not None}
