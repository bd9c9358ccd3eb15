"""The part of a desk that shows a trajectory: one step large, and a strip of its neighbours."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby, pairwise
from typing import Any

from django.db.models import Case, F, JSONField, OuterRef, QuerySet, Subquery, TextField, Value, When
from django.db.models.functions import MD5, Concat
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.cache import patch_vary_headers
from django.utils.http import url_has_allowed_host_and_scheme

from annotation import access
from annotation.formats.registry import formats
from annotation.models import Activity, Person, Screenshot, Step, Trajectory
from annotation.screenshots import SHEET_STEPS, TILE
from annotation.task_terms import TaskTerms, find_task_terms
from annotation.views.answers import Request, page
from annotation.views.reading import Reading, reading_of

AROUND = 30  # steps of the strip on each side of the current one; a page shows about a dozen
TALL = 1.6  # height divided by width above which a screenshot is fitted by its width and scrolls
MOST_BESIDE = 100  # steps of the agent that are listed beside an annotator's own path
LARGE = 2000  # width from which a screenshot may have been taken at double scale: agents' viewports are narrower


@dataclass(frozen=True, slots=True)
class Mark:
    """Target of the action in the screenshot's pixels; ``outside`` if it is not on the screenshot.

    ``doubt`` says why it may be wrong: no format states the agent's viewport, nor the scale of its screenshots.
    """

    x: float
    y: float
    radius: float
    outside: bool
    doubt: str


@dataclass(frozen=True, slots=True)
class Row:
    """Fields of a step that the whole list needs: ``same`` is equal for steps with the same action and address."""

    index: int
    status: str
    same: str
    x: float | None
    y: float | None
    width: int | None
    height: int | None

    @property
    def points(self) -> bool:
        return None not in (self.x, self.y, self.width, self.height)


@dataclass(frozen=True, slots=True)
class Scale:
    """The ``factor`` from coordinates of a trajectory to pixels of its screenshots, and the ``doubt`` about it."""

    factor: int = 1
    doubt: str = ""


@dataclass(frozen=True, slots=True)
class Thumb:
    """A step in the strip. ``first`` is the first of the ``times`` consecutive steps that do the same."""

    step: Step
    seen: bool
    first: int
    times: int
    count: int  # steps of the trajectory

    @property
    def again(self) -> bool:
        return self.step.index != self.first

    @property
    def sheet(self) -> int:
        return self.step.index // SHEET_STEPS

    @property
    def top(self) -> int:
        return self.step.index % SHEET_STEPS * TILE[1]

    @property
    def sheet_height(self) -> int:
        return min(SHEET_STEPS, self.count - self.sheet * SHEET_STEPS) * TILE[1]


@dataclass(frozen=True)
class Viewer:
    """Template context to show step ``current``, and the strip around it unless ``bare``."""

    trajectory: Trajectory
    current: Step | None
    strip: list[Thumb]
    rows: list[Row]
    seen: list[int]
    address: str  # of the page, to which "step=3" is appended
    bare: bool
    reading: Reading | None = None  # replaces the steps if there are none
    redacting: bool = False  # whether the person may redact the screenshots

    @property
    def index(self) -> int:
        return self.current.index if self.current else 0

    @property
    def last(self) -> int:
        return max(len(self.rows) - 1, 0)

    @property
    def tile(self) -> tuple[int, int]:
        return TILE

    @property
    def previous(self) -> int | None:
        return self.index - 1 if self.index > 0 else None

    @property
    def next(self) -> int | None:
        return self.index + 1 if self.index < self.last else None

    @property
    def earlier(self) -> int | None:
        return max(self.index - 2 * AROUND, 0) if self.strip and self.strip[0].step.index > 0 else None

    @property
    def later(self) -> int | None:
        end = self.strip[-1].step.index if self.strip else self.last
        return min(self.index + 2 * AROUND, self.last) if end < self.last else None

    @cached_property
    def failed(self) -> list[int]:
        return [row.index for row in self.rows if row.status == "FAILED"]

    @property
    def next_failed(self) -> int | None:
        """Return the next failed step, or the first failed one if none follows; None if no step failed."""
        return next((index for index in self.failed if index > self.index), self.failed[0] if self.failed else None)

    @property
    def actions(self) -> QuerySet[Step]:
        """Return the first steps with their actions only, to be read beside an annotator's own path."""
        return self.trajectory.steps.only("index", "action", "status")[:MOST_BESIDE]

    @property
    def repeats(self) -> bool:
        return any(one.same == other.same for one, other in pairwise(self.rows))

    @cached_property
    def mark(self) -> Mark | None:
        step = self.current
        if step is None or step.screenshot is None or step.click_x is None or step.click_y is None:
            return None
        # The importer has put the points of logs into pixels of the pictures.
        scale = Scale() if formats()[self.trajectory.source_format].is_log else scale_of(self.rows)
        width, height = step.screenshot.width, step.screenshot.height
        x, y = step.click_x * scale.factor, step.click_y * scale.factor
        outside = not (0 <= x <= width and 0 <= y <= height)
        whole_page = "The screenshot shows the whole page: the mark is correct only if the page was not scrolled."
        return Mark(x, y, max(width, 320) / 70, outside, scale.doubt or (whole_page if self.tall else ""))

    @cached_property
    def terms(self) -> TaskTerms:
        return find_task_terms(self.trajectory.task.text)

    @cached_property
    def terms_here(self) -> frozenset[int]:
        """Return the terms of the task that occur in the texts of the current step."""
        step = self.current
        texts = [step.action, step.thought or "", step.url] if step else []
        if step is None or self.ends:
            texts.append(self.trajectory.final_answer or "")
        return frozenset(span.term for text in texts for span in self.terms.occurrences(text))

    @property
    def ends(self) -> bool:
        """Return whether this is the last step, where the final answer is compared with what was seen."""
        return self.current is not None and self.index == self.last

    @property
    def answers_here(self) -> bool:
        """Return whether the action of the last step contains the final answer, which then needs no second place."""
        answer = self.trajectory.final_answer or ""
        return self.ends and answer != "" and self.current is not None and answer in (self.current.action or "")

    @property
    def tall(self) -> bool:
        picture: Screenshot | None = self.current.screenshot if self.current else None
        return picture is not None and picture.height > TALL * picture.width


def viewer(request: HttpRequest, trajectory: Trajectory, address: str | None = None, redacting: bool = False) -> Viewer:
    """Return the viewer at the step that ?step= names; with ?bare without the strip, for a script that has it.

    ``address`` is that of the page, if the request has another one, as for a form that was refused.
    """
    rows = _rows(trajectory)
    index = min(max(_number(request), 0), max(len(rows) - 1, 0))
    bare = "bare" in request.GET
    around = 0 if bare else AROUND
    steps = trajectory.steps.filter(index__gte=index - around, index__lte=index + around).select_related("screenshot")
    found = list(steps.annotate(opened=_opened(request, index)))
    current = next((step for step in found if step.index == index), None)
    seen = getattr(current, "opened", None) or []
    revising = "revise=undo&" if request.GET.get("revise") == "undo" else "revise&" if "revise" in request.GET else ""
    strip = [] if bare else _strip(found, rows, seen)
    reading = None if rows else reading_of(request, trajectory)
    shown_at = address or f"{request.path}?{revising}"
    return Viewer(trajectory, current, strip, rows, seen, shown_at, bare, reading, redacting)


def view_step(trajectory: Trajectory, index: int, around: int) -> Viewer:
    """Return a viewer at a step, with ``around`` steps on each side, for pages that record nothing of the reader."""
    rows = _rows(trajectory)
    index = min(index, max(len(rows) - 1, 0))
    steps = trajectory.steps.filter(index__gte=index - around, index__lte=index + around).select_related("screenshot")
    found = list(steps)
    current = next((step for step in found if step.index == index), None)
    return Viewer(trajectory, current, _strip(found, rows, []), rows, [], "", bare=True)


def scale_of(rows: list[Row]) -> Scale:
    """Estimate the scale of a trajectory's clicks from the clicks and screenshot sizes; see `Mark`."""
    clicks = [row for row in rows if row.points]
    if any(row.x > row.width or row.y > row.height for row in clicks):  # type: ignore[operator]
        return Scale(doubt="A click of this trajectory lies outside its screenshot: its clicks may use another scale.")
    if clicks and all(_may_be_double(row) for row in clicks):
        width = max(row.width or 0 for row in clicks)
        return Scale(
            2,
            (
                f"The screenshots are treated as double scale: they are {width} pixels wide, and all clicks "
                "lie in the first half."
            ),
        )
    return Scale()


def _may_be_double(row: Row) -> bool:
    assert row.x is not None and row.y is not None and row.width and row.height  # noqa: S101, PT018 - for mypy
    return row.width >= LARGE and row.x <= row.width / 2 and row.y <= row.height / 2


def _rows(trajectory: Trajectory) -> list[Row]:
    same = MD5(Concat("action", Value("\x1f"), "url", output_field=TextField()))
    fields = ("index", "status", "same", "click_x", "click_y", F("screenshot__width"), F("screenshot__height"))
    return [Row(*values) for values in trajectory.steps.annotate(same=same).values_list(*fields)]


def _opened(request: HttpRequest, index: int) -> Case:
    """Return the steps that the person has opened, only on step ``index``: no extra query, and sent only once."""
    opened = Activity.objects.filter(trajectory=OuterRef("trajectory"), person=request.user.pk).values("steps")
    return Case(When(index=index, then=Subquery(opened)), default=None, output_field=JSONField())


def _strip(steps: Sequence[Step], rows: list[Row], seen: list[int]) -> list[Thumb]:
    groups: dict[int, tuple[int, int]] = {}
    for _, group in groupby(rows, key=lambda row: row.same):
        members = [row.index for row in group]
        groups |= dict.fromkeys(members, (members[0], len(members)))
    opened = set(seen)
    return [Thumb(step, step.index in opened, *groups[step.index], len(rows)) for step in steps]


TRANSCRIPT = 100  # steps that are sent at once


@page
def transcript(request: Request, pk: int) -> HttpResponse:
    """List the steps from ?from= with thumbnails and texts, as a page, or as a partial for a script."""
    trajectory = access.readable_trajectory_for(request.user, pk)
    rows = _rows(trajectory)
    wanted = min(number(request.GET.get("from")) or 0, max(len(rows) - 1, 0))
    first = wanted - wanted % TRANSCRIPT
    steps = trajectory.steps.filter(index__gte=first, index__lt=first + TRANSCRIPT).select_related("screenshot")
    context = {
        "trajectory": trajectory,
        "thumbs": _strip(list(steps), rows, []),
        "terms": find_task_terms(trajectory.task.text),
        "tile": TILE,
        "address": _find_way_back(request, trajectory),
        "earlier": first - TRANSCRIPT if first else None,
        "later": first + TRANSCRIPT if first + TRANSCRIPT < len(rows) else None,
        "last": len(rows) - 1,
    }
    template = "annotation/_transcript.html" if request.htmx else "annotation/transcript.html"
    response = render(request, template, context)
    patch_vary_headers(response, ["HX-Request", "Cookie"])
    return response


def _number(request: HttpRequest) -> int:
    return number(request.POST.get("step") or request.GET.get("step")) or 0


def number(value: Any) -> int | None:
    """Parse a step number from an address or a form; None for anything else."""
    text = str(value or "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


# --- search -----------------------------------------------------------------------------------------------------------


MOST_HITS = 100
EXCERPT = 60  # characters shown on each side of a hit


@dataclass(frozen=True, slots=True)
class Hit:
    """A search result in a step: in its ``field``, ``found`` between ``before`` and ``after``."""

    step: int
    field: str
    before: str
    found: str
    after: str


@page
def search(request: Request, pk: int) -> HttpResponse:
    """List steps whose action, thought or address contains ?q=, as a page, or as a partial for a script."""
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
    """Return the address of the desk that searched, or else `find_own_page`; only a path on this site is accepted."""
    given = request.GET.get("desk", "")
    ours = given.startswith("/") and url_has_allowed_host_and_scheme(given, None) and given.endswith(("?", "&"))
    return given if ours else find_own_page(request.user, trajectory)


OWN_PAGES = dict.fromkeys(access.READERS, "submission-trajectory") | {
    access.Role.ADJUDICATOR: "adjudication",
    access.Role.ANNOTATOR: "trajectory",
}


def find_own_page(person: Person, trajectory: Trajectory) -> str:
    """Return the address, with "?", of the page on which the person works with a trajectory; "" for a reader."""
    role = access.role_in(person, trajectory.submission)
    if role is None or (role is access.Role.ANNOTATOR and not access.has_worked_on(person, trajectory)):
        return ""
    return f"{reverse(OWN_PAGES[role], args=[trajectory.pk])}?"


def _find_hits(trajectory: Trajectory, words: str) -> list[Hit]:
    """Return the first match in each text of each step, ignoring case; stop above `MOST_HITS`."""
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
