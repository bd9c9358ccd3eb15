"""Pages for judges: the list, one judge, its definition and test; for prompt sets and model terms."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db.models import Count, Max, Q, QuerySet
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render

from annotation import access as people_access
from annotation.formats import scratch
from annotation.formats.printable import counted
from annotation.views.answers import Request, act, page, paginate
from annotation.workflow import Incomplete
from judges import access, defining, model_check, prompt_sets, robustness, runs
from judges import prompt_source as source
from judges.forms.judges import JudgeForm, PromptsForm, TermsForm, TestForm
from judges.llm import Generation
from judges.llm.wire import is_reasoning
from judges.models import Judge, JudgeRun, Judgment, ModelTerms
from judges.prices import find_price, list_prices
from judges.prompt_source import gather
from judges.prompt_source.texts import SourceError
from judges.ready_judges import RunRefused, find_endpoint_problem, load_addresses, prepare
from judges.scorer import IMPORTED, REGISTRY, Requirement, parameters_from


@page
def judges(request: Request) -> HttpResponse:
    """List the newest version of every judge, with older ones collapsed; counts cover what the person may see."""
    versions: dict[str, list[Judge]] = {}
    for judge in access.find_judges(request.user).order_by("name", "-version"):
        versions.setdefault(judge.name, []).append(judge)
    shown = paginate(request, list(versions.values()), 50)
    facts = _add_facts(request.user, [judge for group in shown for judge in group])
    context = {
        "page": shown,
        "rows": [[(judge, *facts(judge)) for judge in group] for group in shown],
        "configured": load_addresses(),
        "may_define": access.may_define_judges(request.user),
    }
    return render(request, "judges/judges.html", context)


def _add_facts(person: Any, shown: list[Judge]) -> Any:
    """Return a function from a judge to its number of judgments and last run, in what the person maintains."""
    own = people_access.submissions_maintained_by(person).values("pk")
    elsewhere = Q(item__isnull=True) & (Q(trajectory__submission__in=own) | Q(trajectory__isnull=True))
    made = Judgment.objects.filter(Q(item__run__submission__in=own, item__run__test=False) | elsewhere)
    counts = dict(made.filter(judge__in=shown).values_list("judge").annotate(Count("pk")).order_by())
    started = JudgeRun.objects.filter(judge__in=shown, submission__in=own, test=False)
    last = dict(started.values_list("judge").annotate(Max("created_at")).order_by())
    return lambda judge: (counts.get(judge.pk, 0), last.get(judge.pk))


# --- one judge -------------------------------------------------------------------------------------------------------


@page
def judge(request: Request, pk: int) -> HttpResponse:
    """Show a judge; ?task= is the initial task id of the test form."""
    form = TestForm(None, _find_own(request))
    form.initial = {"task_id": request.GET.get("task", "")[:200]}
    return _render_judge(request, access.find_judge(request.user, pk), form)


@act
def test_judge(request: Request, pk: int) -> HttpResponse:
    """Try a judge on one trajectory that the person maintains; the run is excluded from results."""
    found = access.find_judge(request.user, pk)
    form = TestForm(request.POST, _find_own(request))
    if not form.is_valid():
        return _render_judge(request, found, form, 400)
    submission, selection = form.cleaned_data["submission"], {"task_ids": [form.cleaned_data["task_id"]]}
    try:
        started = runs.start(request.user, found, submission, selection, test=True)
    except RunRefused as refused:
        form.add_error(None, str(refused))
        return _render_judge(request, found, form, 409)
    return redirect("judge-run", started.pk)


@act
def delete(request: Request, pk: int) -> HttpResponse:
    found = access.find_judge(request.user, pk)
    defining.delete(request.user, found)
    messages.success(request, f"{found} deleted.")
    return redirect("judges")


def _find_own(request: Request) -> QuerySet[Any]:
    return people_access.submissions_maintained_by(request.user).filter(practice=False, archived_at=None)


def _render_judge(request: Request, found: Judge, form: TestForm, status: int = 200) -> HttpResponse:
    own = people_access.submissions_maintained_by(request.user).values("pk")
    started = found.runs.filter(submission__in=own).select_related("submission__agent", "submission__benchmark")
    started = started.defer("submission__import_report")
    started = started.defer("submission__import_report")
    kind = found.kind
    texts, requirement, problem = _load_prompts(found)
    terms = ModelTerms.of(found)
    standing = robustness.find_standing(request.user, found)
    context = {
        "judge": found,
        "kind": kind,
        "requirement": requirement,
        "parameters": _explain(kind.parameters if kind else None, found.parameters),
        "generation": _explain(defining.Generation, _read_generation(found)),
        "texts": texts,
        "problem": problem,
        "unasked": find_endpoint_problem(found),
        "versions": Judge.own.filter(name=found.name).order_by("-version"),
        "page": paginate(request, started, 20),
        "prices": format_prices(terms) if terms else {},
        "price_source": terms.source if terms else "",
        "may_define": access.may_define_judges(request.user),
        "form": form,
        "robustness": standing,
        "card": standing.shown,
        "lines": list(robustness.describe(standing.shown)) if standing.shown else [],
    }
    return render(request, "judges/judge.html", context, status=status)


def _read_generation(found: Judge) -> dict[str, Any]:
    """Return the generation settings of a judge, with the result of ``auto`` for its model name."""
    if not found.generation or found.generation.get("reasoning", "auto") != "auto":
        return found.generation
    known = is_reasoning(found.model, parameters_from(Generation, found.generation))
    return {**found.generation, "reasoning": f"auto: {'yes, by its name' if known else 'as its replies show'}"}


def _explain(kind: type | None, values: Any) -> list[tuple[str, Any, str]]:
    known = getattr(kind, "__dataclass_fields__", {})
    words = {True: "yes", False: "no"}
    return [
        (
            name.replace("_", " "),
            words[value] if isinstance(value, bool) else value,
            known[name].metadata.get("help", "") if name in known else "",
        )
        for name, value in values.items()
    ]


def _load_prompts(found: Judge) -> tuple[list[tuple[str, str]], Requirement | None, str]:
    """Return the texts of a judge, its requirement, and why it cannot judge (any more), "" if it can."""
    try:
        ready = prepare(found)
    except RunRefused as refused:
        return [], None, str(refused)
    return sorted(ready.prompts.texts.items()), ready.requirement, ""


# --- define and change -----------------------------------------------------------------------------------------------


@page
def define(request: Request) -> HttpResponse:
    """Show the form for a judge of ?scorer=, or one based on the judge ?of=; without both, the choice of scorers."""
    _require_definer(request)
    if request.GET.get("of", "").isdecimal():
        found = access.find_judge(request.user, int(request.GET["of"][:18]))
        return _render_form(request, _build_form(found.scorer, defining.read_definition(found)), of=found)
    if "scorer" not in request.GET:
        kinds = [(kind, defining.find_obstacle(kind)) for kind in REGISTRY.values()]
        context = {"kinds": kinds, "configured": load_addresses()}
        return render(request, "judges/scorers.html", context)
    return _render_form(request, _build_form(request.GET["scorer"], {}))


@act
def create(request: Request) -> HttpResponse:
    _require_definer(request)
    form = _build_form(request.POST.get("scorer", ""), {}, request.POST)
    return _save(request, form, partial(defining.define, request.user, scorer=form.kind.name), "is defined")


@page
def edit(request: Request, pk: int) -> HttpResponse:
    _require_definer(request)
    found = access.find_judge(request.user, pk)
    if found.frozen_at is not None or found.scorer not in REGISTRY:
        return redirect("judge", pk)
    return _render_form(request, _build_change_form(found), judge=found)


@act
def change(request: Request, pk: int) -> HttpResponse:
    _require_definer(request)
    found = access.find_judge(request.user, pk)
    form = _build_change_form(found, request.POST)
    return _save(request, form, partial(defining.change, request.user, found), "is changed", judge=found)


def _save(
    request: Request, form: JudgeForm, save: Callable[..., Judge], says: str, judge: Judge | None = None
) -> HttpResponse:
    if form.is_valid():
        given = form.given()
        try:
            told = _ask_once(request, form, judge, given) if form.cleaned_data.get("check") else ""
            made = save(**given)
        except Incomplete as refused:
            form.refuse(refused.problems)
        else:
            messages.success(request, f"{made} {says}.{told}")
            return redirect("judge", made.pk)
    return _render_form(request, form, judge=judge, status=400)


def _ask_once(request: Request, form: JudgeForm, judge: Judge | None, given: dict[str, Any]) -> str:
    """Return the model's answer in words; raise Incomplete if it gives none."""
    named = {"scorer": form.kind.name} | ({"name": judge.name} if judge else {})
    found = model_check.require_answer(request.user, **(given | named))
    return f" The model {'; '.join(model_check.describe(found))}."


def _require_definer(request: Request) -> None:
    if not access.may_define_judges(request.user):
        raise PermissionDenied("Only maintainers of the instance may define judges.")


def _build_change_form(found: Judge, data: Any = None) -> JudgeForm:
    return _build_form(found.scorer, defining.read_definition(found) | {"version": found.version}, data)


def _build_form(scorer: str, now: dict[str, Any], data: Any = None) -> JudgeForm:
    """Return a form with the initial values ``now``; raise Http404 if the scorer does not exist."""
    if scorer not in REGISTRY:
        raise Http404("No such scorer.")
    return JudgeForm(data, REGISTRY[scorer], endpoints=load_addresses(), prompts=prompt_sets.list_names(), now=now)


def _render_form(
    request: Request, form: JudgeForm, *, judge: Judge | None = None, of: Judge | None = None, status: int = 200
) -> HttpResponse:
    models = {*Judge.own.values_list("model", flat=True), *ModelTerms.objects.values_list("model", flat=True)}
    context = {
        "kind": form.kind,
        "form": form,
        "judge": judge,
        "of": of,
        "models": sorted(models - {""})[:100],
        "configured": load_addresses(),
        "missing": defining.find_obstacle(form.kind),
    }
    return render(request, "judges/define.html", context, status=status)


# --- prompt sets -----------------------------------------------------------------------------------------------------


@page
def prompts(request: Request) -> HttpResponse:
    people_access.require_maintainer(request.user)
    return _render_prompts(request, PromptsForm(label_suffix=""))


@page
def prompt_set(request: Request, digest: str) -> HttpResponse:
    people_access.require_maintainer(request.user)
    found = [known for known in prompt_sets.list_sets() if known.digest == digest]
    if not found:
        raise Http404("No such prompt set.")
    context = {
        "sets": found,
        "set": found[0],
        "texts": sorted(found[0].texts.items()),
        "judges": Judge.own.filter(prompts_digest=digest).order_by("name", "-version"),
    }
    return render(request, "judges/prompt_set.html", context)


@act
def load_prompts(request: Request) -> HttpResponse:
    if not access.may_define_judges(request.user):
        raise PermissionDenied("Only maintainers of the instance may load prompts.")
    form = PromptsForm(request.POST, request.FILES, label_suffix="")
    if not form.is_valid():
        return _render_prompts(request, form, 400)
    given = form.cleaned_data
    try:
        texts = source.read(_read_uploads(given["texts"]), given["mapping"].split())
        names = ", ".join(file.name for file in given["texts"])
        made, new = prompt_sets.load(request.user, given["name"], texts, f"uploaded: {names}")
    except (SourceError, Incomplete) as refused:
        form.refuse(refused.problems)
        return _render_prompts(request, form, 400)
    said = f"Loaded: {counted(len(texts), 'text')}." if new else "These texts exist already. Nothing was changed."
    messages.success(request, said)
    return redirect("prompt-set", made.digest)


def _read_uploads(files: list[Any]) -> dict[str, bytes]:
    """Return the files by name, with those of a zip in its place; raise SourceError if one cannot be read."""
    gathered: dict[str, bytes] = {}
    with scratch.folder("prompts") as folder:
        for number, file in enumerate(files):
            name = Path(file.name).name or "file"
            if not name.lower().endswith(".zip"):
                gathered[name] = file.read()
                continue
            kept = folder / f"{number}.zip"
            kept.write_bytes(file.read())
            gathered |= gather(kept)
    return gathered


def _render_prompts(request: Request, form: PromptsForm, status: int = 200) -> HttpResponse:
    used = set(Judge.own.values_list("prompts_digest", flat=True))
    context = {
        "rows": [(known, known.digest in used) for known in prompt_sets.list_sets()],
        "form": form,
        "may_define": access.may_define_judges(request.user),
    }
    return render(request, "judges/prompts.html", context, status=status)


# --- model terms ------------------------------------------------------------------------------------------------------


@page
def terms(request: Request) -> HttpResponse:
    """List all terms; ?edit= opens one in the form, ?endpoint= and ?model= start a new one."""
    people_access.require_maintainer(request.user)
    wanted = request.GET.get("edit", "")
    opened = ModelTerms.objects.filter(pk=int(wanted[:18])).first() if wanted.isdecimal() else None
    initial = {name: request.GET.get(name, "") for name in ("endpoint", "model")}
    initial["endpoint"] = initial["endpoint"] or next(iter(load_addresses()), "default")
    return _render_terms(
        request, TermsForm(instance=opened, initial=format_prices(opened) if opened else initial, label_suffix="")
    )


@act
def save_terms(request: Request) -> HttpResponse:
    people_access.require_maintainer(request.user)
    form = TermsForm(request.POST, label_suffix="")
    if not form.is_valid():
        return _render_terms(request, form, 400)
    try:
        kept = defining.set_terms(request.user, **form.cleaned_data)
    except Incomplete as refused:
        form.refuse(refused.problems)
        return _render_terms(request, form, 400)
    messages.success(request, f"Terms of {kept} saved. The cost of earlier calls does not change.")
    return redirect("model-terms")


@act
def remove_terms(request: Request, pk: int) -> HttpResponse:
    people_access.require_maintainer(request.user)
    found = ModelTerms.objects.filter(pk=pk).first()
    if found is None:
        raise Http404("These terms do not exist.")
    defining.remove_terms(request.user, found)
    messages.success(request, f"Terms of {found} removed.")
    return redirect("model-terms")


def _render_terms(request: Request, form: TermsForm, status: int = 200) -> HttpResponse:
    rows = [(row, format_prices(row)) for row in ModelTerms.objects.select_related("changed_by")]
    known = {(row.endpoint, row.model) for row, _ in rows}
    used = Judge.own.exclude(model="").exclude(scorer=IMPORTED).values_list("endpoint", "model").distinct()
    addresses = load_addresses()
    unset = [(pair, find_price(addresses.get(pair[0], ""), pair[1])) for pair in sorted(set(used.order_by()) - known)]
    context = {
        "rows": rows,
        "shipped": [(*pair, price) for pair, price in unset if price is not None],
        "unknown": [pair for pair, price in unset if price is None],
        "table": list(list_prices()),
        "form": form,
        "configured": addresses,
        "may_define": access.may_define_judges(request.user),
    }
    return render(request, "judges/terms.html", context, status=status)


def format_prices(row: ModelTerms) -> dict[str, str]:
    prices = {name: getattr(row, name) for name in ("input_price", "cached_price", "output_price")}
    return {name: f"{price.normalize():f}" for name, price in prices.items() if price is not None}
