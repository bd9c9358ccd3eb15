"""Report errors to Sentry, or a compatible service, without data of people.

A report has what is listed here and nothing else: types of exceptions, places in the code, the fixed part of a log
message, the pattern of the address, and the ids of request and job. It has no text of an exception, because a database
quotes rows in it, and no address, header, body, variable or name.
"""

from __future__ import annotations

from typing import Any

import sentry_sdk

from config.log_formats import describe_job, request_id

PLAIN = ("event_id", "timestamp", "level", "platform", "logger", "release", "environment", "sdk")
OF_EXCEPTION = ("type", "module")
OF_FRAME = ("filename", "module", "function", "lineno", "context_line", "pre_context", "post_context", "in_app")


def start(dsn: str, release: str) -> None:
    sentry_sdk.init(
        dsn=dsn,
        release=release,
        before_send=scrub,
        before_send_transaction=lambda event, hint: None,
        send_default_pii=False,
        max_request_body_size="never",
        include_local_variables=False,
        max_breadcrumbs=0,
        auto_session_tracking=False,
        enable_logs=False,
        server_name="",
        shutdown_timeout=2,
    )


def scrub(event: Any, hint: Any) -> Any:
    """Return a new event with the listed parts of ``event``."""
    report = _pick(event, PLAIN)
    if event.get("transaction_info", {}).get("source") != "url":  # this one is an address, and no pattern
        report |= _pick(event, ("transaction",))
    if "exception" in event:
        report["exception"] = {"values": [_reduce(each) for each in event["exception"].get("values", [])]}
    if "logentry" in event:
        report["logentry"] = _pick(event["logentry"], ("message",))  # its placeholders stay
    report["tags"] = {"request": request_id.get()} | {key: str(value) for key, value in describe_job().items()}
    return report


def _reduce(exception: dict[str, Any]) -> dict[str, Any]:
    frames = (exception.get("stacktrace") or {}).get("frames", [])
    return _pick(exception, OF_EXCEPTION) | {"stacktrace": {"frames": [_pick(frame, OF_FRAME) for frame in frames]}}


def _pick(mapping: Any, keys: tuple[str, ...]) -> dict[str, Any]:
    return {key: mapping[key] for key in keys if key in mapping}
