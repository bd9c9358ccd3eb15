"""Append a line to a file, or POST to an address of the settings: bounded in time and size, no secret in an error."""

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
MOST = 256 * 1024  # bytes of a reply; a time stamp has some 6 kB
ENOUGH = 8 * 1024  # bytes that are read at once


class NotPublished(Exception):
    """A head could not be published; the message says why, without anything of an address but scheme and host."""


class _Stay(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        """A redirect is an answer like any other refusal: a POST would become a GET on the way."""


def shown(address: str) -> str:
    """Scheme, host and port of an address: path, query and password may be secrets."""
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def post(address: str, body: bytes, kind: str) -> bytes:
    """The body of the reply to ``body``, of the media type ``kind``; NotPublished for all but 2xx within the bounds."""
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
        raise NotPublished(f"{shown(address)} could not be asked: {_reason(error)}.") from None


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
            raise NotPublished(f"{host} did not end its answer within {SECONDS:g} seconds.")
    return found


def _reason(error: Exception) -> str:
    """In words that name no address: those of the operating system, or what kind of error it was."""
    cause = error.reason if isinstance(error, URLError) and isinstance(error.reason, Exception) else error
    if isinstance(cause, TimeoutError):
        return f"no answer within {SECONDS:g} seconds"
    return (cause.strerror if isinstance(cause, OSError) else None) or type(cause).__name__


# --- a file -----------------------------------------------------------------------------------------------------------

FLAGS = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC


def append_line(file: Path, line: str) -> None:
    """Append a whole line, and be sure that the disk has it; NotPublished when it could not be written whole.

    The line is one write, so a killed process leaves no part of one. What a full disk or a crash of the machine tore is
    ended by a line feed first: a reader has one bad line, and loses none.
    """
    try:
        descriptor = os.open(file, FLAGS, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)  # until it is closed: nobody sees the line of another as a torn one
            data = (_ending(descriptor) + line + "\n").encode()
            written = os.write(descriptor, data)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except FileNotFoundError:
        says = f"{file.name} could not be written: the folder that ANCHOR_FILE names does not exist; make it first."
        raise NotPublished(says) from None
    except OSError as error:
        raise NotPublished(f"{file.name} could not be written: {error.strerror}.") from None
    if written != len(data):
        raise NotPublished(f"{file.name} took {written} of {len(data)} bytes: the disk is full.")


def _ending(descriptor: int) -> str:
    size = os.fstat(descriptor).st_size
    return "\n" if size and os.pread(descriptor, 1, size - 1) != b"\n" else ""
