"""Removal of noise from a recorded HAR: timings, ports and addresses of the recording machine, and bodies."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from typing import Any

from tools.demo.stock import SITE_DATE

_START = datetime.combine(SITE_DATE, time(9, 0), UTC)
_REQUEST_HEADERS = frozenset(
    {"accept", "content-type", "referer", "sec-fetch-dest", "sec-fetch-mode", "sec-fetch-user"}
)
_RESPONSE_HEADERS = frozenset({"content-type", "location"})


def quiet_trace(raw: dict[str, Any]) -> dict[str, Any]:
    """Return HAR 1.2 with one entry per second from the sites' own date, in the order of the requests."""
    entries = [_entry(index, entry) for index, entry in enumerate(raw["log"]["entries"])]
    return {"log": {"version": "1.2", "creator": {"name": "webverdict-demo", "version": "1"}, "entries": entries}}


def _entry(index: int, raw: dict[str, Any]) -> dict[str, Any]:
    request, response = raw["request"], raw["response"]
    kept = {
        name: request[name] for name in ("method", "url", "httpVersion", "queryString", "postData") if name in request
    }
    reply = {name: response[name] for name in ("status", "statusText", "httpVersion", "redirectURL")}
    return {
        "startedDateTime": (_START + timedelta(seconds=index)).isoformat(),
        "time": 0,
        "request": {
            **kept, "cookies": [], "headers": _headers(request, _REQUEST_HEADERS), "headersSize": -1, "bodySize": -1,
        },
        "response": {
            **reply, "cookies": [], "headers": _headers(response, _RESPONSE_HEADERS),
            "content": {"size": -1, "mimeType": response["content"]["mimeType"]}, "headersSize": -1, "bodySize": -1,
        },
        "cache": {},
        "timings": {"send": 0, "wait": 0, "receive": 0},
    }  # fmt: skip


def _headers(message: dict[str, Any], names: frozenset[str]) -> list[dict[str, str]]:
    return [
        {"name": header["name"], "value": _without_preferences(header)}
        for header in message["headers"]
        if header["name"].lower() in names
    ]


def _without_preferences(header: dict[str, str]) -> str:
    """Return the value; of Accept only the first entry, because the others differ between browser versions."""
    return header["value"].split(",")[0] if header["name"].lower() == "accept" else header["value"]
