"""Pages of intake: the public one, its settings, and entries for owners and submitters."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from typing import Any, NamedTuple

from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from annotation.ingest import ImportStopped
from annotation.models import Benchmark, Person
from annotation.views.answers import Request, act, page, paginate
from evaluations import jobs
from evaluations.forms import AuditorForm
from evaluations.models import Entry, EntryEvent, Intake
from evaluations.registry import chain, checks, entries, lookups
from evaluations.registry.chain import Kind, State
from evaluations.registry_forms import (
    AnswerForm,
    AppealDecisionForm,
    DescriptionForm,
    EmbargoForm,
    EntryForm,
    IntakeForm,
    ReasonForm,
    ScoreForm,
    TakeDownForm,
    build_changes,
)
from evaluations.views.public import public

PER_PAGE = 50


class Action(NamedTuple):
    """An action on an entry: its form, what it does with a valid form, and the role and states that it is for."""

    title: str
    button: str
    done: str
    form: type[forms.Form | forms.ModelForm]
    run: Callable[[Person, Entry, Any], Any]
    role: EntryEvent.Role
    states: tuple[State, ...]
    help: str = ""


OWNER, SUBMITTER = EntryEvent.Role.OWNER, EntryEvent.Role.SUBMITTER
EVERY = tuple(State)


def _reason(run: Callable[[Person, Entry, str], Any]) -> Callable[[Person, Entry, Any], Any]:
    return lambda person, entry, form: run(person, entry, form.cleaned_data["reason"])


def _answer(person: Person, entry: Entry, form: Any) -> None:
    sent, is_package = form.cleaned_data["file"], entries.sends_trajectories(entry)
    file = entries.SentFile(sent, is_package) if sent else None
    entries.answer(person, entry, form.cleaned_data["reason"], file, jobs.choose_for_entry(is_package=is_package))


def _rescore(person: Person, entry: Entry, form: Any) -> None:
    data = form.cleaned_data
    entries.rescore(person, entry, build_changes(data["changes"], data["reason"]), data["reason"])


ACTIONS = {
    "answer": Action(
        "Answer",
        "Send answer",
        "Answer sent.",
        AnswerForm,
        _answer,
        SUBMITTER,
        entries.WAITING,
    ),
    "withdraw": Action(
        "Withdraw",
        "Withdraw entry",
        "Entry withdrawn.",
        ReasonForm,
        _reason(entries.withdraw),
        SUBMITTER,
        entries.WAITING,
    ),
    "appeal": Action(
        "Appeal",
        "Send appeal",
        "Appeal sent.",
        ReasonForm,
        _reason(entries.appeal),
        SUBMITTER,
        (State.ACCEPTED, State.REJECTED, State.REMOVED),
        "Your appeal is published with the entry.",
    ),
    "accept": Action(
        "Accept",
        "Accept entry",
        "Entry accepted.",
        ReasonForm,
        _reason(entries.accept),
        OWNER,
        (*entries.WAITING, State.REJECTED),
        "This publishes figures, rows and your reason, after the embargo if there is one.",
    ),
    "query": Action(
        "Ask the submitter",
        "Send query",
        "Query sent.",
        ReasonForm,
        _reason(entries.query),
        OWNER,
        entries.WAITING,
    ),
    "reject": Action(
        "Reject",
        "Reject entry",
        "Entry rejected.",
        ReasonForm,
        _reason(entries.reject),
        OWNER,
        entries.WAITING,
    ),
    "decide-appeal": Action(
        "Decide the appeal",
        "Decide appeal",
        "Appeal decided.",
        AppealDecisionForm,
        lambda person, entry, form: entries.decide_appeal(
            person, entry, form.cleaned_data["reason"], upheld=form.cleaned_data["upheld"]
        ),
        OWNER,
        EVERY,
    ),
    "rescore": Action(
        "Score again",
        "Publish new version",
        "Version added.",
        ScoreForm,
        _rescore,
        OWNER,
        (State.ACCEPTED,),
        "Use this when a task or a rubric has changed. Earlier versions stay public.",
    ),
    "embargo": Action(
        "Embargo",
        "Change embargo",
        "Embargo changed.",
        EmbargoForm,
        lambda person, entry, form: entries.change_embargo(
            person, entry, form.cleaned_data["until"], form.cleaned_data["reason"]
        ),
        OWNER,
        EVERY,
    ),
    "remove": Action(
        "Remove",
        "Remove entry",
        "Entry removed.",
        ReasonForm,
        _reason(entries.remove),
        OWNER,
        (State.ACCEPTED,),
        "The entry leaves the leaderboard. Its page, figures and events stay public, with the reason.",
    ),
    "restore": Action(
        "Restore",
        "Restore entry",
        "Entry restored.",
        ReasonForm,
        _reason(entries.restore),
        OWNER,
        (State.REMOVED,),
    ),
    "take-down": Action(
        "Take a text down",
        "Take down text",
        "Text taken down.",
        TakeDownForm,
        lambda person, entry, form: entries.take_down(
            person, entry, form.cleaned_data["reason"], form.cleaned_data["sequence"]
        ),
        OWNER,
        EVERY,
        "For texts that must not stay public, such as personal data. The chain keeps their digest.",
    ),
}


@public
def intake(request: HttpRequest, slug: str) -> HttpResponse:
    """Show anybody what an entry must satisfy."""
    found = lookups.find_intake(slug)
    context = {
        "intake": found,
        "benchmark": found.benchmark,
        "tasks": found.benchmark.tasks.values("external_id").distinct().count(),
        "open": lookups.is_open(found),
        "part": "intake",
    }
    return render(request, "evaluations/intake.html", context)


@page
def new_entry(request: Request, slug: str) -> HttpResponse:
    found = lookups.find_intake(slug)
    return _new_entry(request, found, EntryForm(takes_trajectories=found.takes_trajectories))


@act
def submit_entry(request: Request, slug: str) -> HttpResponse:
    found = lookups.find_intake(slug)
    form = EntryForm(request.POST, request.FILES, takes_trajectories=found.takes_trajectories)
    if not form.is_valid():
        return _new_entry(request, found, form, HTTPStatus.BAD_REQUEST)
    try:
        made = entries.submit(
            request.user, found, form.description, form.file, jobs.choose_for_entry(is_package=form.file.is_package)
        )
    except ImportStopped as error:
        form.add_error("bundle", str(error))
        answer = _new_entry(request, found, form, error.outage.status)
        answer["Retry-After"] = str(error.outage.retry_after)
        return answer
    messages.success(request, "Entry submitted.")
    return redirect("entry", made.key)


def _new_entry(request: Request, found: Intake, form: EntryForm, status: int = 200) -> HttpResponse:
    context = {"intake": found, "benchmark": found.benchmark, "form": form, "open": lookups.is_open(found)}
    return render(request, "evaluations/new_entry.html", context, status=status)


@page
def own_entries(request: Request) -> HttpResponse:
    rows = paginate(request, lookups.own_entries(request.user), PER_PAGE)
    waiting = [(row, chain.state_of(row)) for row in lookups.find_waiting(request.user)[:PER_PAGE]]
    context = {"rows": [(row, chain.state_of(row)) for row in rows], "page": rows, "waiting": waiting}
    return render(request, "evaluations/own_entries.html", context)


@page
def benchmark_intake(request: Request, slug: str) -> HttpResponse:
    """Show the entries of a benchmark to its owners, and the settings of its intake."""
    benchmark = entries.configurable_benchmark(request.user, slug)
    saved = Intake.objects.filter(benchmark=benchmark).first()
    return _benchmark_intake(request, benchmark, IntakeForm(instance=saved), AuditorForm())


@act
def save_intake(request: Request, slug: str) -> HttpResponse:
    benchmark = entries.configurable_benchmark(request.user, slug)
    form = IntakeForm(request.POST, instance=Intake.objects.filter(benchmark=benchmark).first())
    if not form.is_valid():
        return _benchmark_intake(request, benchmark, form, AuditorForm(), HTTPStatus.BAD_REQUEST)
    entries.configure(request.user, benchmark, **form.cleaned_data)
    messages.success(request, "Intake saved.")
    return redirect("benchmark-intake", slug)


@act
def add_owner(request: Request, slug: str) -> HttpResponse:
    benchmark = entries.configurable_benchmark(request.user, slug)
    form = AuditorForm(request.POST)
    if not form.is_valid():
        saved = Intake.objects.filter(benchmark=benchmark).first()
        return _benchmark_intake(request, benchmark, IntakeForm(instance=saved), form, HTTPStatus.BAD_REQUEST)
    made = entries.add_owner(request.user, benchmark, form.cleaned_data["person"])
    messages.success(request, f"Owner added: {made}.")
    return redirect("benchmark-intake", slug)


@act
def remove_owner(request: Request, slug: str, pk: int) -> HttpResponse:
    benchmark = entries.configurable_benchmark(request.user, slug)
    owner = benchmark.owners.select_related("person").filter(pk=pk).first()
    if owner is None:
        raise Http404("No such owner.")
    entries.remove_owner(request.user, benchmark, owner.person)
    messages.success(request, f"Owner removed: {owner}.")
    return redirect("benchmark-intake", slug) if lookups.owns(request.user, benchmark) else redirect("home")


def _benchmark_intake(
    request: Request, benchmark: Benchmark, form: IntakeForm, owner_form: AuditorForm, status: int = 200
) -> HttpResponse:
    rows = paginate(request, lookups.entries_of(benchmark), PER_PAGE)
    context = {
        "benchmark": benchmark,
        "saved": Intake.objects.filter(benchmark=benchmark).first(),
        "owners": benchmark.owners.select_related("person"),
        "form": form,
        "owner_form": owner_form,
        "rows": [(row, chain.state_of(row)) for row in rows],
        "page": rows,
    }
    return render(request, "evaluations/benchmark_intake.html", context, status=status)


# --- one entry -------------------------------------------------------------------------------------------------------


@page
def entry(request: Request, key: str) -> HttpResponse:
    found, role = entries.entry_for(request.user, key)
    return _entry(request, found, role)


@act
def entry_action(request: Request, key: str, action: str) -> HttpResponse:
    """Act on an entry; the same address for all `ACTIONS`."""
    found, role = entries.entry_for(request.user, key)
    if action == "correct" and role is OWNER:
        return _correct(request, found, role)
    chosen = ACTIONS.get(action)
    if chosen is None or not _may_take(request.user, found, role, chosen.role):
        raise Http404("No such action.")
    form = chosen.form(request.POST, request.FILES, auto_id=f"id_{action}_%s")
    if not form.is_valid():
        return _entry(request, found, role, HTTPStatus.BAD_REQUEST, {action: form})
    try:
        chosen.run(request.user, found, form)
    except ImportStopped as error:
        form.add_error("file", str(error))
        answer = _entry(request, found, role, error.outage.status, {action: form})
        answer["Retry-After"] = str(error.outage.retry_after)
        return answer
    messages.success(request, chosen.done)
    return redirect("entry", key)


def _correct(request: Request, found: Entry, role: EntryEvent.Role) -> HttpResponse:
    form, reason = DescriptionForm(request.POST), ReasonForm(request.POST, auto_id="id_correct_%s")
    if not (form.is_valid() and reason.is_valid()):
        return _entry(request, found, role, HTTPStatus.BAD_REQUEST, {"correct": form, "correct_reason": reason})
    entries.correct(request.user, found, form.cleaned_data, reason.cleaned_data["reason"])
    messages.success(request, "Description corrected.")
    return redirect("entry", found.key)


def _may_take(person: Person, found: Entry, role: EntryEvent.Role, needed: EntryEvent.Role) -> bool:
    return role is needed or (needed is SUBMITTER and found.submitted_by_id == person.pk)


def _entry(
    request: Request, found: Entry, role: EntryEvent.Role, status: int = 200, tried: dict[str, Any] | None = None
) -> HttpResponse:
    tried, state = tried or {}, chain.state_of(found)
    events = list(found.events.select_related("takedown").order_by("-sequence"))
    last = next((each for each in events if each.kind == Kind.CHECKED), None)
    stated = last.facts["checks"] if last else []
    stated = stated if role is OWNER else checks.hide_others(stated)
    appealed = entries.is_appealed(found)
    actions = [
        (name, action, tried.get(name) or action.form(auto_id=f"id_{name}_%s"))
        for name, action in ACTIONS.items()
        if _may_take(request.user, found, role, action.role)
        and state in action.states
        and (name != "decide-appeal" or appealed)
        and (name != "accept" or found.reviewed is not None)
        and (name != "appeal" or not appealed)
    ]
    context = {
        "entry": found,
        "benchmark": found.benchmark,
        "state": state,
        "role": role,
        "appealed": appealed,
        "events": events,
        "checked_at": last.at if last else None,
        "checks": [(each, checks.TITLES.get(each["name"], each["name"])) for each in stated],
        "version": found.versions.order_by("-number").first(),
        "actions": actions,
        "opened": next((name for name in tried if name != "correct_reason"), ""),
        "correct_form": tried.get("correct") or DescriptionForm(instance=found),
        "reason_form": tried.get("correct_reason") or ReasonForm(auto_id="id_correct_%s"),
    }
    return render(request, "evaluations/entry.html", context, status=status)
