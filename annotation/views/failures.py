"""Responses to errors that no view handled, without the session or database, which may be unavailable."""

from __future__ import annotations

import sys
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from django.conf import settings
from django.contrib.sessions.exceptions import SessionInterrupted
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.template.loader import render_to_string
from django.views import defaults

from annotation.outages import Outage, find_outage
from annotation.problem_details import MEDIA_TYPE
from annotation.records import Problem

SAFE = "Nothing that was saved is lost. Your last request may not have been saved."
LONGEST_ADDRESS = 4000  # characters of path and query
TYPES = ("text/html", MEDIA_TYPE, "application/json")


def server_error(request: HttpRequest) -> HttpResponse:
    """Return 503 or 507 with Retry-After for an outage, and 500 for anything else, as a page or problem details."""
    outage = find_outage(sys.exc_info()[1])  # Django calls this while it handles the error
    status = outage.status if outage else HTTPStatus.INTERNAL_SERVER_ERROR
    response = _details(outage, status) if _is_program(request) else _page(outage, status)
    if outage:
        response["Retry-After"] = str(outage.retry_after)
        response["Cache-Control"] = "no-store"
    return response


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Return 404 as problem details below /api/, and a page elsewhere, as `bad_request` and `forbidden` do."""
    if _is_of_api(request):
        return _problem(HTTPStatus.NOT_FOUND, "This address does not exist. Check its spelling.")
    return defaults.page_not_found(request, exception)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Return 400, or 403 if the session ended during the request, which Django reports as a bad request."""
    if isinstance(exception, SessionInterrupted):
        return _session_ended(request)
    if _is_of_api(request):
        return _problem(HTTPStatus.BAD_REQUEST, "The request could not be read. Check its address, headers and body.")
    return defaults.bad_request(request, exception)


def _session_ended(request: HttpRequest) -> HttpResponse:
    text = f"You were signed out while the server worked on your request. {SAFE} Sign in again."
    if _is_program(request):
        return _problem(HTTPStatus.FORBIDDEN, text, Problem("session_ended", text))
    context = {"title": "Your session has ended", "text": text}
    # Without the request: its person counted as signed in.
    return HttpResponse(render_to_string("registration/not_signed_in.html", context), status=HTTPStatus.FORBIDDEN)


def forbidden(request: HttpRequest, exception: Exception) -> HttpResponse:
    if _is_of_api(request):
        return _problem(HTTPStatus.FORBIDDEN, "You may not do this. Check your role, or the scope of your token.")
    return defaults.permission_denied(request, exception)


class InsecureApi:
    """Middleware that refuses API requests by plain HTTP (403).

    A redirect would hide from a program that it sends its token unencrypted each time.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if settings.SECURE_SSL_REDIRECT and _is_of_api(request) and not request.is_secure():
            return _problem(HTTPStatus.FORBIDDEN, "Use https://. If you sent a token by http://, revoke it.")
        return self.get_response(request)


class LongAddresses:
    """Middleware that refuses an address longer than `LONGEST_ADDRESS` (414); the web server passes on longer ones."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if len(request.get_full_path()) <= LONGEST_ADDRESS:
            return self.get_response(request)
        says = f"The address of the request is too long. Use at most {LONGEST_ADDRESS} characters."
        if _is_of_api(request):
            return _problem(HTTPStatus.REQUEST_URI_TOO_LONG, says)
        return HttpResponse(says, status=HTTPStatus.REQUEST_URI_TOO_LONG, content_type="text/plain; charset=utf-8")


def _problem(status: HTTPStatus, detail: str, *errors: Problem) -> HttpResponse:
    body: dict[str, Any] = {"type": "about:blank", "title": status.phrase, "status": status.value, "detail": detail}
    if errors:
        body["errors"] = [error.as_json() for error in errors]
    return JsonResponse(body, status=status, content_type=MEDIA_TYPE)


def _is_of_api(request: HttpRequest) -> bool:
    return request.path_info.startswith("/api/")


def _is_program(request: HttpRequest) -> bool:
    return _is_of_api(request) or request.get_preferred_type(TYPES) in TYPES[1:]


def _details(outage: Outage | None, status: HTTPStatus) -> HttpResponse:
    detail = f"{outage.title}. {outage.advice} {SAFE}" if outage else "Server error. Try again later."
    return _problem(status, detail)


def _page(outage: Outage | None, status: HTTPStatus) -> HttpResponse:
    if outage is None:
        return HttpResponse(render_to_string("500.html"), status=status)
    context = {"title": outage.title, "advice": outage.advice, "safe": SAFE}
    return HttpResponse(render_to_string("outage.html", context), status=status)
