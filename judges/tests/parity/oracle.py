"""webarena-verified asked about one check, and the judge of ours asked about the same."""

from __future__ import annotations

import io
import json
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from annotation.formats.documents import FormatError
from judges.scorers.network_trace import agent_response, checks, upstream
from judges.scorers.network_trace.model import AnswerCheck, NetworkCheck
from judges.scorers.network_trace.task_files import convert_webarena, written
from judges.scorers.network_trace.trace import NetworkTrace, read_trace

STATUSES = {"success": "pass", "failure": "fail", "error": "error"}
SITES = {
    "shopping": ["http://shop.local:7770"],
    "shopping_admin": ["http://shop.local:7780/admin"],
    "gitlab": ["http://git.local:8023"],
    "reddit": ["http://reddit.local:9999"],
    "map": ["http://map.local:3000"],
    "wikipedia": ["http://wiki.local:8888"],
    "homepage": ["http://home.local"],
}


@dataclass(frozen=True)
class Case:
    """A network check in upstream's form, the entries of a HAR, the sites and the type of the task."""

    check: dict[str, Any]
    entries: tuple[dict[str, Any], ...]
    sites: tuple[str, ...] = ("shopping",)
    task_type: str = "retrieve"


def upstream_says(case: Case) -> str:
    """pass, fail or error, by the package."""
    from webarena_verified.core.evaluation.evaluators.network_event_evaluator import NetworkEventEvaluator
    from webarena_verified.types.eval import TaskEvalContext
    from webarena_verified.types.tracing import NetworkTrace as TheirTrace

    task = _task(case.check, case.sites, case.task_type)
    # An empty list is none of the traces that the package reads; a trace of a picture alone is as good.
    entries = [json.loads(json.dumps(one)) for one in case.entries] or [entry("http://shop.local:7770/a.png")]
    context = TaskEvalContext(
        task=task, agent_response_raw=None, network_trace=TheirTrace.from_content(entries), config=_config()
    )
    with _quietly():
        found = NetworkEventEvaluator().evaluate(context=context, config=task.network_event_evaluator_cfgs[0])
    return STATUSES[str(found.status)]


def we_say(case: Case) -> str:
    """pass, fail, error or refused, by the compatible mode."""
    try:
        found = _imported(json.dumps(case.check), case.sites)
    except FormatError:
        return "refused"
    (check,) = found.checks
    assert isinstance(check, NetworkCheck)
    return upstream.run_check(check, trace_of(case.entries), found.sites, case.task_type).result


@lru_cache(maxsize=16)
def _imported(check: str, sites: tuple[str, ...]) -> checks.Checks:
    imported = convert_webarena({"sites": list(sites), "eval": [json.loads(check)]}, "a task")
    return checks.parse(written(imported | {"sites": {name: SITES[name] for name in sites}}))


def upstream_on_answer(check: dict[str, Any], answer: Any) -> str:
    from webarena_verified.core.evaluation.evaluators.agent_response_evaluator import AgentResponseEvaluator
    from webarena_verified.types.eval import TaskEvalContext
    from webarena_verified.types.tracing import NetworkTrace as TheirTrace

    task = _task(None, ("shopping",), "", check)
    trace = TheirTrace.from_content([entry("http://shop.local:7770/")])
    context = TaskEvalContext(task=task, agent_response_raw=answer, network_trace=trace, config=_config())
    with _quietly():
        return STATUSES[str(AgentResponseEvaluator().evaluate(context=context, config=task.eval[0]).status)]


def we_on_answer(check: dict[str, Any], answer: Any) -> str:
    try:
        (found,) = checks.parse(written(convert_webarena({"sites": [], "eval": [check]}, "a task"))).checks
    except FormatError:
        return "refused"
    assert isinstance(found, AnswerCheck)
    try:
        given = agent_response.parse_answer(answer if isinstance(answer, str) else json.dumps(answer), None)
    except agent_response.NoAnswer:
        return "fail"
    return agent_response.run_check(upstream.convert_answer_check(found), given, upstream.UPSTREAM).result


@contextmanager
def _quietly() -> Iterator[None]:
    """Without the package's log; its warnings, which would be errors of its evaluators here, are its own affair."""
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(logging.NOTSET)


def trace_of(entries: tuple[dict[str, Any], ...]) -> NetworkTrace:
    log = {"log": {"version": "1.2", "creator": {"name": "t", "version": "1"}, "entries": list(entries)}}
    return read_trace(io.BytesIO(json.dumps(log).encode()), "network.har")


def entry(
    url: str,
    method: str = "GET",
    status: int = 200,
    *,
    headers: dict[str, str] | None = None,
    sent: tuple[str, str] | None = None,
    received: tuple[str, str] | None = None,
    cookies: dict[str, str] | None = None,
) -> dict[str, Any]:
    """An entry of a HAR; ``sent`` and ``received`` are media type and text. A GET without headers is a navigation."""
    named = {"Accept": "text/html"} if headers is None and method == "GET" else headers or {}
    request: dict[str, Any] = {"method": method, "url": url, "headers": _pairs(named)}
    if sent:
        request["postData"] = {"mimeType": sent[0], "text": sent[1]}
    content = {"mimeType": received[0], "text": received[1]} if received else {"mimeType": "text/html"}
    response = {
        "status": status,
        "redirectURL": "",
        "headers": [],
        "content": content,
        "cookies": _pairs(cookies or {}),
    }
    return {"request": request, "response": response}


def _pairs(values: dict[str, str]) -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in values.items()]


def _task(check: Any, sites: tuple[str, ...], task_type: str, answer: Any = None) -> Any:
    from webarena_verified.types.task import WebArenaVerifiedTask

    answer = answer or {
        "evaluator": "AgentResponseEvaluator",
        "results_schema": {"type": "null"},
        "expected": {"task_type": task_type, "status": "SUCCESS", "retrieved_data": None},
    }
    return WebArenaVerifiedTask(
        sites=sites,
        task_id=1,
        intent_template_id=1,
        start_urls=["__SHOPPING__"],
        intent="x",
        intent_template="x",
        instantiation_dict={},
        revision=1,
        eval=[answer, check] if check else [answer],
    )


@cache
def _config() -> Any:
    from webarena_verified.types.config import WebArenaVerifiedConfig

    return WebArenaVerifiedConfig(environments={f"__{name.upper()}__": {"urls": urls} for name, urls in SITES.items()})
