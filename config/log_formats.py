"""Formats of the log, text or JSON: each record is one line, with the id of its request."""

from __future__ import annotations

import json
import logging
import re
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any

from celery import current_task

# The secret part of a link that signs in, sets a password or stops mail. Django logs paths of rejected requests, too.
LINK = re.compile(r"(/(?:join/[^/\s]+|new-password/[^/\s]+|unsubscribe|sign-in/once)/)\S+")

request_id: ContextVar[str] = ContextVar("request_id", default="")


class OneLineFormatter(logging.Formatter):
    """Formatter that writes each record as one line. Line ends become ` | ` and control characters are escaped, so
    that nobody can forge a line.

    The secret of a password link is removed. ``{request}`` is the id of the request that a record belongs to.
    """

    def format(self, record: logging.LogRecord) -> str:
        record.request = f" request={number}" if (number := request_id.get()) else ""
        line = " | ".join(super().format(record).splitlines())
        line = "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in line)
        return LINK.sub(r"\1...", line)


class JsonFormatter(logging.Formatter):
    """Formatter that writes each record as one JSON object in ASCII on one line.

    Keys: time (ISO 8601, UTC), level, logger, message; where known also request (its id), job and job_id (Celery),
    run (of a judge) and exception. The line of a request also has client, person, method, path, status and seconds.
    The secret of a password link is removed.
    """

    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            "request": request_id.get(),
            **getattr(record, "fields", {}),
            **describe_job(),
            "exception": self.formatException(record.exc_info) if record.exc_info else "",
        }
        known = {key: value for key, value in entry.items() if value not in ("", None)}
        return json.dumps({key: LINK.sub(r"\1...", v) if isinstance(v, str) else v for key, v in known.items()})


def describe_job() -> dict[str, Any]:
    """Return the name and the id of the job that this thread works on, and the judge run that it is for."""
    if not current_task or not current_task.request.id:
        return {}
    request = current_task.request
    run = request.args[0] if current_task.name == "judges.jobs.work_on" and request.args else None
    return {"job": current_task.name, "job_id": request.id, "run": run}
