"""Screenshots and attachments, as inert files."""

from __future__ import annotations

import io

from django.contrib.auth.decorators import login_required
from django.http import FileResponse, Http404, HttpRequest, HttpResponse
from django.utils.cache import patch_cache_control
from django.views.decorators.http import require_safe

from annotation import access, screenshots

INERT = "default-src 'none'; sandbox"


@login_required
@require_safe
def picture(request: HttpRequest, pk: int, step: int, kind: str) -> HttpResponse:
    """The screenshot of a step, re-encoded; a browser that has it is told so without reading it again."""
    screenshot = access.screenshot_for(request.user, pk, step)
    tag = f'"{screenshot.sha256}-{kind}"'
    if request.headers.get("If-None-Match") == tag:
        response = HttpResponse(status=304)
    else:
        try:
            data, media_type = screenshots.rendition(screenshot, screenshots.Rendition(kind))
        except FileNotFoundError as error:
            raise Http404("The image store has lost this screenshot.") from error
        response = HttpResponse(data, content_type=media_type)
    response["ETag"] = tag
    patch_cache_control(response, private=True, max_age=31_536_000, immutable=True)
    return _inert(response)


@login_required
@require_safe
def attachment(request: HttpRequest, pk: int, attachment_pk: int) -> HttpResponse:
    """A file that came with a trajectory, to be saved and never shown."""
    found = access.attachment_for(request.user, pk, attachment_pk)
    response = FileResponse(
        io.BytesIO(screenshots.attachment_bytes(found)),
        as_attachment=True,
        filename=found.name.rsplit("/", 1)[-1],
        content_type="application/octet-stream",
    )
    patch_cache_control(response, private=True, no_store=True)
    return _inert(response)


def _inert(response: HttpResponse | FileResponse) -> HttpResponse:
    response["X-Content-Type-Options"] = "nosniff"
    response["Content-Security-Policy"] = INERT
    return response  # type: ignore[return-value]
