"""Pages for checks and rubrics of a benchmark's tasks: the list, the editor, versions, and import of a file."""

from __future__ import annotations

import difflib

from django.contrib import messages
from django.db.models import Case, Count, OuterRef, Q, QuerySet, Subquery, Value, When
from django.db.models.functions import Coalesce, Length
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render

from annotation.models import Benchmark, Task
from annotation.records import ImportReport, Problem
from annotation.views.answers import Request, act_from, page, paginate
from annotation.views.viewer import number
from annotation.workflow import Conflict, Incomplete
from judges import access, expectations
from judges.expectations import Kind
from judges.forms.expectations import ExpectationForm, ExpectationsFileForm
from judges.models import Expectation
from judges.views.editors import NAMES, find_kind, render_editor

SIZES = {Kind.NETWORK_CHECKS: "size_of_checks", Kind.RUBRIC: "size_of_rubric"}  # the columns of `annotate_sizes`
CONTEXT = 4  # lines around a change

# --- the tasks of a benchmark ----------------------------------------------------------------------------------------


@page
def listed(request: Request, slug: str) -> HttpResponse:
    """List the newest version of every task with its expectations, incomplete ones first; ?missing=KIND filters."""
    return _render_list(request, access.find_benchmark(request.user, slug), ExpectationsFileForm())


@act_from("expectations")
def import_expectations(request: Request, slug: str) -> HttpResponse:
    found = access.find_benchmark(request.user, slug)
    form = ExpectationsFileForm(request.POST, request.FILES)
    if not form.is_valid():
        return _render_list(request, found, form, status=400)
    given = form.cleaned_data
    report = expectations.import_file(
        request.user, found, given["kind"], given["file"].read(), given["file"].name, dry_run=given["dry_run"]
    )
    return _render_list(request, found, form, report, 400 if report.rejected else 200)


def _render_list(
    request: Request,
    found: Benchmark,
    form: ExpectationsFileForm,
    report: ImportReport | None = None,
    status: int = 200,
) -> HttpResponse:
    tasks = annotate_sizes(found)
    has = {f"with_{kind.value}": Count("pk", filter=Q(**{f"{SIZES[kind]}__gt": 0})) for kind in Kind}
    sums = tasks.aggregate(tasks=Count("pk"), **has)
    missing = request.GET.get("missing", "")
    lacking = {kind.value: Q(**{SIZES[kind]: 0}) for kind in Kind}
    shown = paginate(request, tasks.filter(lacking.get(missing, Q())), 100)
    context = {
        "benchmark": found,
        "page": shown,
        "rows": _build_rows(list(shown)),
        "sums": sums,
        "kinds": [(kind.value, NAMES[kind], sums[f"with_{kind.value}"]) for kind in Kind],
        "missing": missing if missing in lacking else "",
        "form": form,
        "report": report.as_json() if report else None,
        "dry_run": bool(form.is_bound and form.is_valid() and form.cleaned_data["dry_run"]),
    }
    return render(request, "judges/expectations.html", context, status=status)


def annotate_sizes(found: Benchmark) -> QuerySet[Task]:
    """Return the newest version of every task, with the number of characters of its checks and rubric (`SIZES`)."""
    newest = Task.objects.filter(benchmark=found, external_id=OuterRef("external_id")).order_by("-version")
    nothing = Q(**dict.fromkeys(SIZES.values(), 0))
    something_missing = Q(*((name, 0) for name in SIZES.values()), _connector=Q.OR)
    return (
        Task.objects.filter(benchmark=found, pk=Subquery(newest.values("pk")[:1]))
        .annotate(**{name: _make_size(kind) for kind, name in SIZES.items()})
        .order_by(Case(When(nothing, then=0), When(something_missing, then=1), default=2), "pk")
    )


def _make_size(kind: Kind) -> Coalesce:
    newest = Expectation.objects.filter(task=OuterRef("pk"), kind=kind).order_by("-version")
    return Coalesce(Subquery(newest.annotate(size=Length("text")).values("size")[:1]), Value(0))


def _build_rows(tasks: list[Task]) -> list[tuple[Task, list[tuple[str, str, Expectation | None]]]]:
    """Return each task with its newest version of each kind; a withdrawn one has an empty text."""
    versions = Expectation.objects.filter(task__in=tasks).select_related("written_by").order_by("version")
    newest = {(row.task_id, row.kind): row for row in versions.annotate(size=Length("text")).defer("text")}
    return [(task, [(kind.value, NAMES[kind], newest.get((task.pk, kind.value))) for kind in Kind]) for task in tasks]


# --- one expectation --------------------------------------------------------------------------------------------------


@page
def expectation(request: Request, pk: int, expected: str) -> HttpResponse:
    """Show the editor; ?start=key-points fills it with a draft, ?version= with an older version."""
    found, kind = access.find_task(request.user, pk), find_kind(expected)
    now = expectations.find_newest(found, kind)
    text, said = _choose_start(request, found, kind, now)
    form = ExpectationForm(initial={"text": text, "after": now.version if now else 0})
    return render_editor(request, found, kind, form, text, started=said)


def _choose_start(request: Request, task: Task, kind: Kind, now: Expectation | None) -> tuple[str, str]:
    """Return the first text of the editor, and a message if it is not the current version."""
    if request.GET.get("start") == "key-points":
        return expectations.start_from_key_points(task, kind), "Draft from the key points. Nothing is saved yet."
    wanted = number(request.GET.get("version"))
    if (
        wanted is not None
        and (old := expectations.select_history(task, kind).filter(version=wanted).first()) is not None
    ):
        return old.text, f"Text of version {old.version}. Nothing is saved yet."
    return (now.text if now else ""), ""


@act_from("expectation")
def write(request: Request, pk: int, expected: str) -> HttpResponse:
    """Save a version. If it is refused, show the problems with the typed text. An empty text is refused, since
    withdrawing has its own button."""
    found, kind = access.find_task(request.user, pk), find_kind(expected)
    form = ExpectationForm(request.POST)
    text = request.POST.get("text", "")
    if not form.is_valid():
        problems = [Problem("malformed", said) for said in _list_errors(form)]
        return render_editor(request, found, kind, form, text, problems=problems, status=400)
    given = form.cleaned_data
    withdraws = request.POST.get("act") == "withdraw"
    if not withdraws and not text.strip():
        problems = [Problem("empty", "The text is empty. To expect nothing any more, withdraw the version.")]
        return render_editor(request, found, kind, form, text, problems=problems, status=400)
    try:
        made = expectations.write(
            request.user, found, kind, "" if withdraws else given["text"], given["why"], after=given["after"]
        )
    except Incomplete as refused:
        return render_editor(request, found, kind, form, text, problems=refused.problems, status=400)
    except Conflict as refused:
        return render_editor(request, found, kind, form, text, refusal=str(refused), status=409)
    messages.success(request, _describe_saved(made, kind, given["after"]))
    return redirect("expectation", pk, expected)


def _list_errors(form: ExpectationForm) -> list[str]:
    return [
        str(said) if form[name].is_hidden else f"{form[name].label}: {said}"
        for name, all_of in form.errors.items()
        for said in all_of
    ]


def _describe_saved(made: Expectation, kind: Kind, after: int | None) -> str:
    if made.version == after:
        return f"Nothing was changed: version {made.version} stays."
    return f"{NAMES[kind]}, version {made.version}: {'saved' if made.text else 'withdrawn'}."


@page
def versions(request: Request, pk: int, expected: str) -> HttpResponse:
    """Show the changes from ?before= to ?after= (0 means no text); by default, those of the newest version."""
    found, kind = access.find_task(request.user, pk), find_kind(expected)
    all_of = {each.version: each for each in expectations.select_history(found, kind)}
    if not all_of:
        raise Http404("This task has no versions.")
    after = _find_version(request.GET.get("after"), all_of, max(all_of))
    before = _find_version(request.GET.get("before"), all_of, after - 1)
    context = {
        "task": found,
        "benchmark": found.benchmark,
        "kind": kind.value,
        "name": NAMES[kind],
        "versions": list(all_of.values()),
        "before": before,
        "after": after,
        "lines": _compare(all_of[before].text if before else "", all_of[after].text if after else ""),
    }
    return render(request, "judges/expectation_versions.html", context)


def _find_version(given: str | None, known: dict[int, Expectation], default: int) -> int:
    wanted = number(given)
    return wanted if wanted is not None and (wanted == 0 or wanted in known) else default


def _compare(before: str, after: str) -> list[tuple[str, str]]:
    """Return the lines of a unified diff, each with its kind: added, removed, place or same."""
    kinds = {"+": "added", "-": "removed", "@": "place"}
    told = difflib.unified_diff(before.splitlines(), after.splitlines(), n=CONTEXT, lineterm="")
    return [(kinds.get(line[:1], "same"), line) for line in list(told)[2:]]
