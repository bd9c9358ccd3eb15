"""The editor of an expectation, with a preview of its meaning."""

from __future__ import annotations

from typing import Any

from django.db.models import Exists, OuterRef, Q
from django.db.models.functions import Length
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, render

from annotation.formats.documents import FormatError
from annotation.models import Attachment, Task, Trajectory
from annotation.records import AttachmentKind, Problem
from annotation.views.answers import Request, act_from, page, paginate
from annotation.views.viewer import number
from judges import access, expectations, trying
from judges.expectations import Kind
from judges.forms.expectations import ExpectationForm
from judges.models import Judge
from judges.scorers.network_trace.values import KINDS
from judges.scorers.rubric.details import flatten
from judges.scorers.rubric.judge import NAME as RUBRIC
from judges.scorers.verifier.outcome import NAME as VERIFIER
from judges.views import check_texts
from judges.views.check_texts import list_events
from judges.views.evidence import format_verdict, read_details

NAMES = {Kind.NETWORK_CHECKS: "Network checks", Kind.RUBRIC: "Rubric"}
MOST_TRAJECTORIES = 100  # choices for one task


def find_kind(expected: str) -> Kind:
    if expected not in Kind.values:
        raise Http404("This kind of expectation does not exist.")
    return Kind(expected)


def render_editor(
    request: Request,
    task: Task,
    kind: Kind,
    form: ExpectationForm,
    text: str,
    *,
    started: str = "",
    problems: list[Problem] | None = None,
    refusal: str = "",
    status: int = 200,
    **more: Any,
) -> HttpResponse:
    """Render the editor with ``text``; ``more`` is further context."""
    newest = expectations.find_newest(task, kind)
    context = {
        "task": task,
        "benchmark": task.benchmark,
        "kind": kind.value,
        "is_rubric": kind is Kind.RUBRIC,
        "name": NAMES[kind],
        "other": next((each.value, NAMES[each]) for each in Kind if each is not kind),
        "form": form,
        "text": text,
        "started": started,
        "refusal": refusal,
        "problems": [(expectations.find_line(problem), expectations.strip_line(problem)) for problem in problems or []],
        "newest": newest,
        "holds": newest is not None and bool(newest.text),
        "page": paginate(
            request, expectations.select_history(task, kind).defer("text").annotate(size=Length("text")), 20
        ),
        "key_points": expectations.list_accepted(task),
        "keys": KEYS[kind],
        **(_find_trajectories(request.user, task) if kind is Kind.NETWORK_CHECKS else {}),
        "judges": _find_judges(request.user, kind),
        **build_preview(request.user, kind, text, task),
        **more,
    }
    return render(request, "judges/expectation.html", context, status=status)


def _find_trajectories(person: Any, task: Task) -> dict[str, list[Trajectory]]:
    """Return the trajectories of the task that the person maintains, with and without a network trace: checks of the
    answer alone need none, and only a trial shows whether those in the editor need one."""
    trace = Exists(Attachment.objects.filter(trajectory=OuterRef("pk"), kind=AttachmentKind.NETWORK_TRACE))
    found = access.find_task_trajectories(person, task)
    chosen = {"traced": found.filter(trace), "untraced": found.exclude(trace)}
    return {name: list(rows[:MOST_TRAJECTORIES]) for name, rows in chosen.items()}


def _find_judges(person: Any, kind: Kind) -> list[Judge]:
    """Return the judges that can be tried with a rubric: a test run asks the judge's model."""
    if kind is not Kind.RUBRIC:
        return []
    by_rubric = Q(scorer=RUBRIC) | Q(scorer=VERIFIER, parameters__criteria="written")
    return list(access.find_judges(person).filter(by_rubric).order_by("name", "-version")[:20])


def build_preview(person: Any, kind: Kind, text: str, task: Task) -> dict[str, Any]:
    if not text.strip():
        return {"blank": True}
    try:
        found = expectations.parse_text(kind, text)
    except FormatError as refused:
        ordered = sorted(refused.problems, key=expectations.find_line)
        return {"faults": [(expectations.find_line(problem), expectations.strip_line(problem)) for problem in ordered]}
    doubts = {"doubts": expectations.find_unknown(kind, found, expectations.list_accepted(task))}
    if kind is Kind.RUBRIC:
        return (
            doubts | {"tree": flatten(found.tree(), judged=False), "rubric": found} | _forecast_cost(person, task, text)
        )
    return doubts | {"checks": check_texts.describe_checks(found), "sites": check_texts.list_sites(found)}


def _forecast_cost(person: Any, task: Task, text: str) -> dict[str, Any]:
    """Count the calls of one judgment of each scorer, by its own forecast with its default parameters."""
    example = access.find_task_trajectories(person, task).first()
    forecasts = [
        (scorer, len(calls), sum(number for _, number in calls))
        for scorer, calls in trying.forecast_rubric(task, text, example).items()
    ]
    return {"forecasts": forecasts, "example": example}


# --- keys that a text may contain -------------------------------------------------------------------------------------


Explained = tuple[str, str]  # one key or several, and their meaning

CHECKS: tuple[Explained, ...] = (
    ("checks", "the list of checks; all must hold"),
    ("sites", "addresses by name: shop: [https://shop.example] is __SHOP__ in a url"),
    ("task_type", "retrieve, navigate or mutate; only for comparison in webarena-verified mode"),
    ("name", "the check's name"),
    ("key_point", "the key point that it settles: its text, or its number, counted from 1"),
    ("evaluator", "network_event (default) or agent_response, the agent's structured answer"),
)
REQUESTS: tuple[Explained, ...] = (
    ("url", "an address, a list of alternatives, or a pattern ^...$"),
    ("http_method", "GET, POST and so on; default: any that fits"),
    ("event_type", "navigation: a page that was opened; mutation: POST, PUT, PATCH, DELETE; other"),
    ("response_status", "one status or a list; -1: no response came"),
    ("last_event_only", "true (default): the last one of its type; false: any"),
    ("should_not_exist", "true: no such request may exist"),
    ("query_params", "parameters of the address by name; a list contains all values of one"),
    (
        "ignored_query_params, ignored_query_params_patterns",
        "parameters that are ignored; any other refutes the check",
    ),
    ("decode_base64_query", "true: parameters are read from base64 in the path, too"),
    ("post_data", "sent form fields or JSON keys; others are ignored"),
    ("ignored_post_data_params_patterns", "ignored fields"),
    (
        "query_params_schema, post_data_schema",
        f"by name, how a value is compared: {{type: number}}; {', '.join(KINDS)}",
    ),
    ("headers", "of the request, by name"),
    ("response_content", "keys of a JSON response, where the trace has it"),
    ("response_cookies", "never decided here: import removes cookies"),
    ("expected", "may contain the keys that WebArena-Verified puts there"),
)
ANSWERS: tuple[Explained, ...] = (
    ("task_type, status", "of the answer: retrieve, navigate or mutate; such as success"),
    ("retrieved_data", "a value, or a list of them"),
    ("ordered", "true: in this order"),
    ("results_schema", "how each value is compared, as query_params_schema"),
    ("fields, fields_schema", "other parts of the answer by name or path, and how they are compared"),
)
RUBRIC_KEYS: tuple[Explained, ...] = (
    ("nodes", "the list of claims and groups"),
    ("pass_score", "lowest score that counts as a success, above 0 and up to 1; default: the judge's"),
)
NODES: tuple[Explained, ...] = (
    ("claim", "a sentence that is true or false"),
    ("group, children", "a heading, and the claims and groups below it"),
    ("critical", "true: if it does not hold, its group scores 0"),
    ("strategy", "parallel (default), or sequential: after the first that does not hold, the rest scores 0"),
    ("about", "answer, pages, steps or screenshots; a group or the rubric can set it for everything below"),
    ("sources", "for a claim about pages: cited (default), or a list of addresses"),
    ("steps", "for a claim about steps or screenshots: all (default), last, last 3, 4, 3-7, [0, 2]; counted from 0"),
    ("note", "what counts and what does not, for the model"),
    ("key_point", "the key point that it settles: its text, or its number, counted from 1"),
    ("weight", "weight of the claim in the mean, above 0; default 1; in `rubric-verifier`: its share of the points"),
    ("condition", "when a claim applies; if it is not met, the claim does not count"),
    ("id", "your own name; default: the place, such as 2.1"),
)
KEYS: dict[Kind, tuple[tuple[str, tuple[Explained, ...]], ...]] = {
    Kind.NETWORK_CHECKS: (
        ("Every check", CHECKS),
        ("What must have been requested", REQUESTS),
        ("What the agent must have answered", ANSWERS),
    ),
    Kind.RUBRIC: (("The rubric", RUBRIC_KEYS), ("Claims and groups", NODES)),
}


# --- preview and trial ------------------------------------------------------------------------------------------------


@act_from("expectation")
def preview(request: Request, pk: int, expected: str) -> HttpResponse:
    """Show the meaning of the posted text: a partial for htmx during typing, else the page with the text."""
    found, kind = access.find_task(request.user, pk), find_kind(expected)
    text = request.POST.get("text", "")
    if not request.htmx:
        return render_editor(request, found, kind, _read_form(request), text)
    context = {"task": found, "kind": kind.value, "is_rubric": kind is Kind.RUBRIC}
    return render(request, "judges/_preview.html", context | build_preview(request.user, kind, text, found))


@act_from("expectation")
def try_out(request: Request, pk: int, expected: str) -> HttpResponse:
    found, kind = access.find_task(request.user, pk), find_kind(expected)
    if kind is not Kind.NETWORK_CHECKS:
        raise Http404("Rubrics ask a model. Test them with a judge's test.")
    text, trajectory = request.POST.get("text", ""), _find_trajectory(request, found, request.POST.get("trajectory"))
    tried: dict[str, object] = {"trajectory": trajectory}
    try:
        expectations.parse_text(kind, text)
    except FormatError:
        tried["refused"] = True
    else:
        score = trying.try_checks(trajectory, text)
        tried |= {
            "score": score,
            "verdict": format_verdict(score.verdict),
            "details": read_details(dict(score.details)),
        }
    if not request.htmx:
        return render_editor(request, found, kind, _read_form(request), text, tried=tried)
    return render(request, "judges/_tried.html", {"tried": tried})


@page
def events(request: Request, pk: int, expected: str) -> HttpResponse:
    """Show the navigations and mutations of the trace of ?trajectory=, each with a check that it would meet."""
    found, kind = access.find_task(request.user, pk), find_kind(expected)
    if kind is not Kind.NETWORK_CHECKS:
        raise Http404("Only network checks can be drafted from a trace.")
    trajectory = _find_trajectory(request, found, request.GET.get("trajectory"))
    told = list_events(trajectory)
    context = {"task": found, "benchmark": found.benchmark, "kind": kind.value, "trajectory": trajectory, "told": told}
    return render(request, f"judges/{'_events' if request.htmx else 'expectation_events'}.html", context)


def _read_form(request: Request) -> ExpectationForm:
    """Return the form as it was sent, without validation: nothing is saved yet."""
    return ExpectationForm(initial={name: request.POST.get(name, "") for name in ("text", "why", "after")})


def _find_trajectory(request: Request, task: Task, given: str | None) -> Trajectory:
    return get_object_or_404(access.find_task_trajectories(request.user, task), pk=number(given) or 0)
