"""Trajectories with network traces for the tests of the judges that read them."""

from __future__ import annotations

import asyncio
import io
import json
from typing import Any, cast

from annotation.records import AttachmentKind, TrajectoryRecord
from judges import scorers  # noqa: F401 - fills the registry
from judges.llm import Asker
from judges.scorer import REGISTRY, Expected, Prompts, Score, StoredFile, Subject, parameters_from
from judges.scorers.network_trace import checks, matching
from judges.scorers.network_trace.model import NetworkCheck, Result
from judges.scorers.network_trace.trace import NetworkTrace, read_trace

SHOP = "http://shop.example"
NAVIGATES = {"Sec-Fetch-Dest": "document", "Sec-Fetch-Mode": "navigate", "Accept": "text/html"}
FORM = "application/x-www-form-urlencoded"
NO_PROMPTS = cast(Prompts, None)
NOBODY = cast(Asker, None)  # a judge that asks no model


def entry(
    url: str, method: str = "GET", status: int = 200, *, headers: dict[str, str] | None = None, form: str = "",
    sent: Any = None, received: Any = None, second: int | None = None,
) -> dict[str, Any]:  # fmt: skip
    """An entry of a HAR; paths are those of the shop. A GET without headers of its own is a navigation. ``second`` is
    when it began, in a minute."""
    named = headers if headers is not None else NAVIGATES if method == "GET" else {}
    request: dict[str, Any] = {"method": method, "url": url if ":" in url[:6] else SHOP + url, "headers": _pairs(named)}
    if form:
        request["postData"] = {"mimeType": FORM, "text": form}
    if sent is not None:
        request["postData"] = {"mimeType": "application/json", "text": json.dumps(sent)}
    content: dict[str, Any] = {"mimeType": "text/html"}
    if received is not None:
        content = {"mimeType": "application/json", "text": json.dumps(received)}
    began = {} if second is None else {"startedDateTime": f"2026-01-05T09:00:{second:02}.000Z"}
    return began | {"request": request, "response": {"status": status, "headers": [], "content": content}}


def har(entries: list[dict[str, Any]]) -> bytes:
    log = {"version": "1.2", "creator": {"name": "t", "version": "1"}, "entries": entries}
    return json.dumps({"log": log}).encode()


def trace(*entries: dict[str, Any]) -> NetworkTrace:
    return read_trace(io.BytesIO(har(list(entries))), "network.har")


def result(check: dict[str, Any], *entries: dict[str, Any]) -> Result:
    """What comes of one check of the shop, by the default rules."""
    sites = {"shop": [SHOP], "other": ["https://other.example/base/"]}
    found = checks.parse(json.dumps({"sites": sites, "checks": [check]}))
    (one,) = found.checks
    assert isinstance(one, NetworkCheck)
    return matching.run_check(one, trace(*entries), found.sites)


def subject(
    entries: list[dict[str, Any]] | None = None, expected: str = "", *, answer: str | None = None,
    final_answer: str | None = None, task_id: str = "t1", key_points: tuple[str, ...] = (),
) -> Subject:  # fmt: skip
    """A trajectory with the files it came with and the checks of its task."""
    files = []
    if answer is not None:
        files.append(_file(AttachmentKind.AGENT_RESPONSE, "agent_response.json", answer.encode()))
    if entries is not None:
        files.append(_file(AttachmentKind.NETWORK_TRACE, "network.har", har(entries)))
    record = TrajectoryRecord("", task_id, "Buy a lamp.", final_answer, "online-mind2web-v2", ())
    texts = {"network_checks": Expected("network_checks", 3, "ab" * 32, expected)} if expected else {}
    return Subject(record, files=tuple(files), key_points=key_points, expectations=texts)


def judged(about: Subject, **parameters: Any) -> Score:
    kind = REGISTRY["network-trace"]
    return judged_by(kind.build(parameters_from(kind.parameters, parameters), NO_PROMPTS), about)


def judged_by(judge: Any, about: Subject) -> Score:
    return asyncio.run(judge.score(about, NOBODY))


def _file(kind: AttachmentKind, name: str, data: bytes) -> StoredFile:
    return StoredFile(kind, name, "cd" * 32, len(data), lambda: io.BytesIO(data))


def _pairs(values: dict[str, str]) -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in values.items()]
