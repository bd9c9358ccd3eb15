"""Prompt sets: the project's own and the loaded ones, their texts, and loading one from files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render

from annotation import access as people_access
from annotation.formats import scratch
from annotation.formats.printable import counted
from annotation.views.answers import Request, act, page
from annotation.workflow import Incomplete
from judges import access, prompt_sets
from judges import prompt_source as source
from judges.forms.defining import PromptsForm
from judges.models import Judge
from judges.prompt_source.files import gather


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
def load(request: Request) -> HttpResponse:
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
    except (source.SourceError, Incomplete) as refused:
        form.refuse(refused.problems)
        return _render_prompts(request, form, 400)
    said = f"Loaded: {counted(len(texts), 'text')}." if new else "These texts exist already. Nothing was changed."
    messages.success(request, said)
    return redirect("prompt-set", made.digest)


def _read_uploads(files: list[Any]) -> dict[str, bytes]:
    """The files by name, with those of a zip in its place; SourceError names what cannot be read."""
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
