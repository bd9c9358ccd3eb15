"""Screenshots and attachments, served as inert files, and the differences between screenshots."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import wraps
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import FileResponse, Http404, HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.utils.cache import patch_cache_control
from django.views.decorators.http import require_safe

from annotation import access, screenshots, store_checks
from annotation import changes as compared
from annotation.models import Screenshot
from annotation.outages import Outage, find_outage
from annotation.views.answers import Request, page
from annotation.views.viewer import number

logger = logging.getLogger(__name__)
INERT = "default-src 'none'; sandbox; object-src 'none'; base-uri 'none'; frame-ancestors 'none'"
MOST_STEPS = 60  # compared in one request: about 20 ms each if the job has not done it


def from_store(view: Callable[..., HttpResponseBase]) -> Callable[..., HttpResponseBase]:
    """Serve a stored file to a signed-in person: 404 if it is lost or damaged, 503 if the store does not answer.

    For a damaged screenshot, an image with a message is served.
    """

    @wraps(view)
    def answered(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        try:
            return _inert(view(request, *args, **kwargs))
        except screenshots.DamagedFile as damaged:
            return _inert(_damaged(damaged))
        except FileNotFoundError as error:
            raise Http404("This file is missing from the image store.") from error
        except screenshots.STORE_ERRORS as error:
            logger.warning("The image store failed: %s", " ".join(str(error).split()))
            return _unavailable(find_outage(error) or Outage.STORE)

    return login_required(require_safe(answered))


def _damaged(damaged: screenshots.DamagedFile) -> HttpResponse:
    logger.error("The stored file %s is damaged", damaged.sha256)
    store_checks.record_damage([damaged.sha256])
    response = HttpResponse(screenshots.damaged_picture(), status=404, content_type="image/png")
    patch_cache_control(response, private=True, no_store=True)
    return response


@from_store
def picture(request: Request, pk: int, step: int, kind: str) -> HttpResponse:
    """Return the screenshot of a step, re-encoded; 304 without reading the file if the browser has it."""
    screenshot, changes = access.screenshot_for(request.user, pk, step)
    return _rendition(request, screenshot, kind, changes=changes)


@from_store
def page_picture(request: Request, pk: int, attachment_pk: int, kind: str) -> HttpResponse:
    return _rendition(request, access.page_picture_for(request.user, pk, attachment_pk), kind, changes=False)


def _rendition(request: Request, screenshot: Screenshot, kind: str, *, changes: bool) -> HttpResponse:
    tag = f'"{screenshot.sha256}-{kind}"'
    if request.headers.get("If-None-Match") == tag:
        return _cached(HttpResponse(status=304), tag, changes=changes)
    data, media_type = screenshots.rendition(screenshot, screenshots.Rendition(kind))
    return _cached(HttpResponse(data, content_type=media_type), tag, changes=changes)


def _cached(response: HttpResponse, tag: str, *, changes: bool) -> HttpResponse:
    """Let the browser store a response, and ask each time if it ``changes``: a later redaction covers the image."""
    response["ETag"] = tag
    if changes:
        patch_cache_control(response, private=True, no_cache=True)
    else:
        patch_cache_control(response, private=True, max_age=31_536_000, immutable=True)
    return response


@from_store
def sheet(request: Request, pk: int, number: int) -> HttpResponse:
    """Return thumbnails of `screenshots.SHEET_STEPS` steps as one image; 304 if the browser has it."""
    first, count = number * screenshots.SHEET_STEPS, screenshots.SHEET_STEPS
    shown, changes = access.screenshots_for(request.user, pk, first, count)
    tag = f'"{screenshots.sheet_key(shown)}"'
    if request.headers.get("If-None-Match") == tag:
        return _cached(HttpResponse(status=304), tag, changes=changes)
    data, damaged = screenshots.sheet(shown)
    response = HttpResponse(data, content_type="image/webp")
    if damaged:
        store_checks.record_damage(damaged)
        patch_cache_control(response, private=True, no_store=True)
        return response
    return _cached(response, tag, changes=changes)


@page
def changes(request: Request, pk: int) -> JsonResponse:
    """Return the changes on the screenshots of steps ?from= to ?to=, by step; null if they cannot be compared."""
    trajectory = access.visible_trajectory_for(request.user, pk)
    first = number(request.GET.get("from")) or 0
    last = number(request.GET.get("to"))
    end = first + MOST_STEPS - 1 if last is None else min(last, first + MOST_STEPS - 1)
    found = compared.find_changes(trajectory, first, end)
    steps = {index: change and {"boxes": change.boxes, "share": change.share} for index, change in found.items()}
    return JsonResponse({"from": first, "to": end, "visible": compared.VISIBLE, "steps": steps})


@from_store
def attachment(request: Request, pk: int, attachment_pk: int) -> HttpResponseBase:
    """Return a file of a trajectory as a download, which the browser never displays."""
    found = access.attachment_for(request.user, pk, attachment_pk)
    try:
        stream = screenshots.open_original(found.sha256)
    except screenshots.DamagedFile:
        logger.error("The stored file %s is damaged", found.sha256)
        says = f"The file {found.name} is damaged in the image store. Ask the operator to restore it from a backup."
        return HttpResponse(says, status=404, content_type="text/plain; charset=utf-8")
    response = FileResponse(
        stream,
        as_attachment=True,
        filename=found.name.rsplit("/", 1)[-1],
        content_type="application/octet-stream",
    )
    patch_cache_control(response, private=True, no_store=True)
    return response


def _unavailable(outage: Outage) -> HttpResponse:
    """Answer in plain text: the browser expects an image, not a page."""
    headers = {"Retry-After": str(outage.retry_after), "Cache-Control": "no-store"}
    return HttpResponse(f"{outage.title}. Try again.", status=outage.status, content_type="text/plain", headers=headers)


def _inert(response: HttpResponseBase) -> HttpResponseBase:
    response["X-Content-Type-Options"] = "nosniff"
    response["Content-Security-Policy"] = INERT
    return response
