"""What all pages have in common: who may ask in which way, and how a refusal looks."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from django.contrib.auth.decorators import login_required
from django.core.exceptions import BadRequest
from django.core.paginator import Page, Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.cache import patch_cache_control
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST, require_safe
from django_htmx.middleware import HtmxDetails

from annotation.models import Person
from annotation.workflow import Conflict, Incomplete


class Request(HttpRequest):
    """A request of somebody who is signed in, as `page` and `act` hand it on."""

    user: Person
    htmx: HtmxDetails


View = TypeVar("View", bound=Callable[..., HttpResponse])


def page(view: View) -> View:
    """A page that shows something to somebody who is signed in, and changes nothing."""
    return login_required(require_safe(_explained(view)))


def act(view: View) -> View:
    """An address that changes something for somebody who is signed in."""
    return login_required(require_POST(_explained(view)))


def _explained(view: View) -> View:
    """Answer a verb's refusal with a page that says what to do instead."""

    @wraps(view)
    def explained(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        _storable(request, *kwargs.values())
        try:
            response = view(request, *args, **kwargs)
        except Conflict as conflict:
            response = render(request, "409.html", {"message": str(conflict), "back": way_back(request)}, status=409)
        except Incomplete as incomplete:
            context = {"problems": incomplete.problems, "back": way_back(request)}
            response = render(request, "400.html", context, status=400)
        # What somebody has said must not be left in a cache, or behind the back button after signing out.
        patch_cache_control(response, private=True, no_store=True)
        return response

    return explained  # type: ignore[return-value]


def _storable(request: HttpRequest, *parts: Any) -> None:
    """Refuse (400) NUL characters, which PostgreSQL cannot store and answers with an error."""
    given = [value for data in (request.GET, request.POST) for _, values in data.lists() for value in values]
    if any("\x00" in str(value) for value in (*given, *parts)):
        raise BadRequest("A NUL character is no text.")


def way_back(request: HttpRequest) -> str:
    """The page that sent the form, if it is one of ours."""
    referrer = request.META.get("HTTP_REFERER", "")
    ours = url_has_allowed_host_and_scheme(referrer, {request.get_host()}, require_https=request.is_secure())
    return referrer if ours else "/"


def paged(request: HttpRequest, rows: Any, size: int) -> Page:
    """The part of ``rows`` that ?page= asks for; anything unusable is the first or the last page."""
    return Paginator(rows, size).get_page(request.GET.get("page"))
