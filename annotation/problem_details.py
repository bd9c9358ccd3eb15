"""Errors of the API as problem details (RFC 9457): type, title, status, detail, and errors per field."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from django.conf import settings
from django.core.exceptions import RequestDataTooBig, SuspiciousOperation
from django.http import UnreadablePostError
from django.template.defaultfilters import filesizeformat
from rest_framework import exceptions, status
from rest_framework.response import Response
from rest_framework.views import exception_handler

from annotation.records import Problem
from annotation.workflow import Conflict, Incomplete

MEDIA_TYPE = "application/problem+json"
CHECKSUM_DIFFERS = 460  # of the protocol tus


class Refused(Exception):
    """The request cannot be accepted (400), or the result is not ready (409); ``problems`` are the reasons.

    ``retry_after`` (seconds, 0 for none) is when the same request may succeed.
    """

    def __init__(
        self, detail: str, problems: list[Problem], code: int = status.HTTP_400_BAD_REQUEST, retry_after: int = 0
    ) -> None:
        super().__init__(detail)
        self.problems, self.code, self.retry_after = problems, code, retry_after


def handle(error: Exception, context: dict[str, Any]) -> Response | None:
    """Return the response for an error that a view raised; None lets Django answer (500)."""
    if isinstance(error, Conflict):
        return problem(status.HTTP_409_CONFLICT, str(error))
    if isinstance(error, Incomplete):
        return problem(status.HTTP_400_BAD_REQUEST, str(error), [p.as_json() for p in error.problems])
    if isinstance(error, Refused):
        refusal = problem(error.code, str(error), [p.as_json() for p in error.problems])
        if error.retry_after:
            refusal["Retry-After"] = str(error.retry_after)
        return refusal
    if isinstance(error, RequestDataTooBig):
        most = filesizeformat(settings.DATA_UPLOAD_MAX_MEMORY_SIZE).replace("\xa0", " ")
        return problem(
            413, f"A request without files may have at most {most}. Send less at once, or send it as a file."
        )
    if isinstance(error, UnreadablePostError):
        return problem(status.HTTP_408_REQUEST_TIMEOUT, "The request did not arrive in time. Send it again.")
    if isinstance(error, SuspiciousOperation):
        return problem(status.HTTP_400_BAD_REQUEST, "The request could not be read. Check its fields and its size.")
    if isinstance(error, RecursionError):  # the JSON parser reports deep nesting only like this
        return problem(status.HTTP_400_BAD_REQUEST, "The request is nested too deeply.")
    response = exception_handler(error, context)
    if response is None:
        return None
    detail, errors = _detail(error, response.data)
    answer = problem(response.status_code, detail, errors)
    for header in ("WWW-Authenticate", "Retry-After"):
        if response.has_header(header):
            answer[header] = response[header]
    return answer


def _detail(error: Exception, data: Any) -> tuple[str, list[dict[str, str]]]:
    if not isinstance(error, exceptions.ValidationError):
        return str(data.get("detail", error)) if isinstance(data, dict) else str(error), []
    fields = data if isinstance(data, dict) else {"": data}
    errors = [
        {"code": getattr(message, "code", "invalid"), "message": str(message), "where": field}
        for field, messages in fields.items()
        for message in (messages if isinstance(messages, list) else [messages])
    ]
    return " ".join(f"{e['where']}: {e['message']}" if e["where"] else e["message"] for e in errors), errors


def problem(code: int, detail: str, errors: list[dict[str, str]] | None = None) -> Response:
    title = "Checksum Mismatch" if code == CHECKSUM_DIFFERS else HTTPStatus(code).phrase
    body: dict[str, Any] = {"type": "about:blank", "title": title, "status": code, "detail": detail}
    if errors:
        body["errors"] = errors
    return Response(body, status=code, content_type=MEDIA_TYPE)
