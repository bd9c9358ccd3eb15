"""Search in what an agent did and thought."""

from __future__ import annotations

import re
from dataclasses import dataclass

from django.http import HttpResponse
from django.shortcuts import render
from django.utils.cache import patch_vary_headers
from django.utils.http import url_has_allowed_host_and_scheme

from annotation import access
from annotation.models import Trajectory
from annotation.views.answers import Request, page

MOST_HITS = 100
EXCERPT = 60  # characters shown on each side of a hit


@dataclass(frozen=True, slots=True)
class Hit:
    """Where a step has the words: in its ``field``, ``found`` between ``before`` and ``after``."""

    step: int
    field: str
    before: str
    found: str
    after: str


@page
def search(request: Request, pk: int) -> HttpResponse:
    """Steps whose action, thought or address has the words ?q=, as a page, or as a list for a script."""
    trajectory = access.visible_trajectory_for(request.user, pk)
    words = request.GET.get("q", "").strip()[:200]
    hits = _find_hits(trajectory, words) if words else []
    context = {
        "trajectory": trajectory,
        "words": words,
        "hits": hits[:MOST_HITS],
        "more": len(hits) > MOST_HITS,
        "address": _find_way_back(request, trajectory),
    }
    template = "annotation/_search.html" if request.htmx else "annotation/search.html"
    response = render(request, template, context)
    patch_vary_headers(response, ["HX-Request", "Cookie"])
    return response


def _find_way_back(request: Request, trajectory: Trajectory) -> str:
    """The desk that asked, to lead back to; a path of ours and nothing else."""
    given = request.GET.get("desk", "")
    ours = given.startswith("/") and url_has_allowed_host_and_scheme(given, None) and given.endswith(("?", "&"))
    return given if ours else f"/trajectories/{trajectory.pk}?"


def _find_hits(trajectory: Trajectory, words: str) -> list[Hit]:
    """The first occurrence in each text of each step, without regard to case; one more than are shown at most."""
    wanted = re.compile(re.escape(words), re.IGNORECASE)
    hits: list[Hit] = []
    for index, action, thought, url in trajectory.steps.values_list("index", "action", "thought", "url"):
        for name, text in (("action", action), ("thought", thought or ""), ("address", url)):
            found = wanted.search(text)
            if found is not None:
                hits.append(_hit(index, name, text, found))
        if len(hits) > MOST_HITS:
            break
    return hits


def _hit(index: int, name: str, text: str, found: re.Match[str]) -> Hit:
    start, end = found.span()
    before = ("…" if start > EXCERPT else "") + text[max(start - EXCERPT, 0) : start]
    after = text[end : end + EXCERPT] + ("…" if end + EXCERPT < len(text) else "")
    return Hit(index, name, before, found[0], after)
