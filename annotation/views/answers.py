"""Common parts of all pages: allowed methods, roles, and error responses."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import BadRequest
from django.core.paginator import Page, Paginator
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.shortcuts import redirect, render
from django.utils.cache import patch_cache_control
from django.utils.html import format_html
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.gzip import gzip_page
from django.views.decorators.http import require_POST, require_safe
from django_htmx.middleware import HtmxDetails

from annotation.models import Person, Task
from annotation.workflow import Conflict, Incomplete


class Request(HttpRequest):
    """Request of a signed-in person, as `page` and `act` pass it to a view."""

    user: Person
    htmx: HtmxDetails


def show_task_message(request: HttpRequest, sentence: str, task: Task, undo: str = "") -> None:
    """Show a message; ``{}`` is replaced by the start of the task's text. ``undo`` is the address that undoes it."""
    text = format_html(sentence, format_html('<bdi class="agent">{}</bdi>', task.short_text))
    messages.success(request, text, extra_tags=undo)


View = TypeVar("View", bound=Callable[..., HttpResponse])
Row = TypeVar("Row", bound=Model)


def page(view: View) -> View:
    """Decorate a view for signed-in people that changes nothing (GET or HEAD)."""
    return gzip_page(login_required(require_safe(_explain_refusals(view))))


def act(view: View) -> View:
    """Decorate a view for signed-in people that changes something (POST)."""
    return gzip_page(login_required(require_POST(_explain_refusals(view))))


def act_from(desk: str) -> Callable[[View], View]:
    """Decorate as `act`, but redirect GET to ``desk``: a refused form leaves this address in the browser."""

    def decorated(view: View) -> View:
        acting = act(view)

        @wraps(view)
        def answered(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
            if request.method in ("GET", "HEAD"):
                return redirect(desk, *args, **kwargs)
            return acting(request, *args, **kwargs)

        return answered  # type: ignore[return-value]

    return decorated


def _explain_refusals(view: View) -> View:
    """Answer the refusal of a transition with a page that explains what to do."""

    @wraps(view)
    def explained(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        _refuse_nul(request, *kwargs.values())
        try:
            response = view(request, *args, **kwargs)
        except (Conflict, Incomplete) as refusal:
            response = _refused(request, refusal)
        if is_scripted(request) and isinstance(response, HttpResponseRedirect):
            # A script that follows a redirect would use up the messages that the person should see.
            response = JsonResponse({"address": response.url})
        # What people entered must not stay in a cache, or behind the back button after they sign out.
        patch_cache_control(response, private=True, no_store=True)
        return response

    return explained  # type: ignore[return-value]


def _refused(request: HttpRequest, refusal: Conflict | Incomplete) -> HttpResponse:
    status = 409 if isinstance(refusal, Conflict) else 400
    if is_scripted(request):
        code = getattr(refusal, "code", "")
        return JsonResponse({"message": str(refusal)} | ({"code": code} if code else {}), status=status)
    context = {"message": str(refusal), "problems": getattr(refusal, "problems", []), "back": way_back(request)}
    return render(request, f"{status}.html", context, status=status)


def is_scripted(request: HttpRequest) -> bool:
    """Return whether one of our scripts sent the request: it accepts JSON and not HTML."""
    return request.accepts("application/json") and not request.accepts("text/html")


def _refuse_nul(request: HttpRequest, *parts: Any) -> None:
    """Refuse (400) NUL characters, which PostgreSQL cannot store and answers with an error."""
    given = [value for data in (request.GET, request.POST) for _, values in data.lists() for value in values]
    if any("\x00" in str(value) for value in (*given, *parts)):
        raise BadRequest("Remove the NUL character.")


def way_back(request: HttpRequest) -> str:
    """Return the page that sent the form if it is on this site, else "/"."""
    referrer = request.META.get("HTTP_REFERER", "")
    ours = url_has_allowed_host_and_scheme(referrer, {request.get_host()}, require_https=request.is_secure())
    return referrer if ours else "/"


def filter_archived(
    request: Request, rows: QuerySet[Row], field: str = "archived_at"
) -> tuple[QuerySet[Row], dict[str, Any]]:
    """Return the rows that are not archived, or with ?archived=1 the others, and the context of their links."""
    archived = "archived" in request.GET
    count = rows.filter(**{f"{field}__isnull": False}).count()
    return rows.filter(**{f"{field}__isnull": not archived}), {"archived": archived, "archived_count": count}


def paginate(request: HttpRequest, rows: Any, size: int, count: int | None = None) -> Page:
    """Return the page of ``rows`` that ?page= names; an invalid number gives the first or the last page.

    Counts the rows unless the caller passes their ``count``.
    """
    paginator = Paginator(rows, size)
    if count is not None:
        paginator.count = count
    return paginator.get_page(request.GET.get("page"))
