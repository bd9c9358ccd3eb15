"""Append a line to a file, or POST to an address of the settings: limited in time and size, no secret in an error."""

from __future__ import annotations

import base64
import fcntl
import http.client
import os
import time
import urllib.request
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import SplitResult, unquote, urlsplit

SECONDS = 10.0  # for each wait, and for the whole reply
MOST = 256 * 1024  # bytes of a reply; a time stamp has about 6 kB
ENOUGH = 8 * 1024  # bytes that are read at once


class NotPublished(Exception):
    """A head could not be published. The message gives the reason, and only scheme and host of an address."""


class _Stay(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        """Treat a redirect as a refusal: following it would turn the POST into a GET."""


def shown(address: str) -> str:
    """Return scheme, host and port of an address, because path, query and password may be secrets."""
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def post(address: str, body: bytes, kind: str) -> bytes:
    """Return the reply to ``body``, of media type ``kind``; NotPublished unless it is 2xx and within the limits."""
    parts = urlsplit(address)
    headers = {"Content-Type": kind, "User-Agent": "WebVerdict"} | _password(parts)
    bare = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
    request = urllib.request.Request(bare, data=body, headers=headers, method="POST")  # noqa: S310 - http(s) by settings
    until = time.monotonic() + SECONDS
    try:
        with urllib.request.build_opener(_Stay).open(request, timeout=SECONDS) as reply:
            return _bounded(reply, until, shown(address))
    except HTTPError as error:
        error.close()
        raise NotPublished(f"{shown(address)} answered {error.code}.") from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise NotPublished(f"{shown(address)} could not be reached: {_reason(error)}.") from None


def _password(parts: SplitResult) -> dict[str, str]:
    if parts.username is None:
        return {}
    pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}".encode()
    return {"Authorization": f"Basic {base64.b64encode(pair).decode()}"}


def _bounded(reply: Any, until: float, host: str) -> bytes:
    found = b""
    while part := reply.read1(ENOUGH):
        found += part
        if len(found) > MOST:
            raise NotPublished(f"{host} answered more than {MOST} bytes.")
        if time.monotonic() > until:
            raise NotPublished(f"{host} did not complete its answer within {SECONDS:g} seconds.")
    return found


def _reason(error: Exception) -> str:
    """Return the reason without addresses: the text of the operating system, or the kind of error."""
    cause = error.reason if isinstance(error, URLError) and isinstance(error.reason, Exception) else error
    if isinstance(cause, TimeoutError):
        return f"no answer within {SECONDS:g} seconds"
    return (cause.strerror if isinstance(cause, OSError) else None) or type(cause).__name__


# --- file -------------------------------------------------------------------------------------------------------------

FLAGS = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC


def append_line(file: Path, line: str) -> None:
    """Append a whole line and sync it to disk; NotPublished if the line could not be written whole.

    The line is one write, so a killed process leaves no partial line. If a full disk or a crash left a partial line, it
    is ended by a line feed first: a reader finds one invalid line, and loses no valid line.
    """
    try:
        descriptor = os.open(file, FLAGS, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)  # until close: no process sees a partial line
            data = (_ending(descriptor) + line + "\n").encode()
            written = os.write(descriptor, data)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except FileNotFoundError:
        says = f"{file.name} could not be written: the folder in ANCHOR_FILE does not exist. Create it first."
        raise NotPublished(says) from None
    except OSError as error:
        raise NotPublished(f"{file.name} could not be written: {error.strerror}.") from None
    if written != len(data):
        raise NotPublished(f"Only {written} of {len(data)} bytes were written to {file.name}: the disk is full.")


def _ending(descriptor: int) -> str:
    size = os.fstat(descriptor).st_size
    return "\n" if size and os.pread(descriptor, 1, size - 1) != b"\n" else ""
