"""Network checks in plain words, and the requests of a trace as checks."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlsplit, urlunsplit

from annotation import screenshots
from annotation.formats.documents import FormatError
from annotation.formats.yaml_text import written
from annotation.models import Trajectory
from judges.llm import CallFailed
from judges.scorers.network_trace import checks, judge
from judges.scorers.network_trace.model import NOT_GIVEN, AnswerCheck, Checks, NetworkCheck
from judges.scorers.network_trace.patterns import is_pattern
from judges.scorers.network_trace.trace import NetworkEvent
from judges.scorers.network_trace.values import Schema, is_redacted
from judges.working.subjects import load_subject

LONGEST = 2_000  # characters of one fact
Fact = tuple[str, str]


@dataclass(frozen=True, slots=True)
class CheckDescription:
    """A check in words. ``summary`` is what must have happened; each fact is a title and a text."""

    name: str
    key_point: str
    should_not_exist: bool
    summary: str
    facts: list[Fact]


def describe_checks(found: Checks) -> list[CheckDescription]:
    return [
        _describe_answer(check) if isinstance(check, AnswerCheck) else _describe_network(check)
        for check in found.checks
    ]


def list_sites(found: Checks) -> list[tuple[str, str]]:
    return [
        (f"__{name.upper()}__", " or ".join(urls) or "whatever the judge says") for name, urls in found.sites.items()
    ]


# --- requests --------------------------------------------------------------------------------------------------------


def _describe_network(check: NetworkCheck) -> CheckDescription:
    what = {"navigation": "page opened", "mutation": "request that changes something", "other": "request"}
    kind = what.get(check.about, "request")
    method = f" by {check.http_method}" if check.http_method else ""
    urls = " or ".join(f"the pattern {url}" if url.startswith("^") else url for url in check.urls)
    if check.should_not_exist:
        summary = f"There must be no {kind}{method}: {urls}"
    elif check.only_the_last:
        summary = f"The last {kind}{method} must be {urls}"
    else:
        summary = f"There must be a {kind}{method}: {urls}"
    return CheckDescription(
        check.name,
        str(check.key_point),
        check.should_not_exist,
        _cut(summary),
        [_build_fact(*one) for one in _list_facts(check)],
    )


def _list_facts(check: NetworkCheck) -> Iterator[Fact]:
    if check.response_statuses:
        yield "Status", " or ".join("no response" if one == -1 else str(one) for one in check.response_statuses)
    for name, values in check.query_params.items():
        yield (
            f"Parameter {name}",
            ", ".join(map(_format_value, values)) + _describe_schema(check.query_params_schema.get(name)),
        )
    ignored = [*check.ignored_query_params, *(f"those like {one}" for one in check.ignored_query_params_patterns)]
    if ignored:
        yield "Ignored parameters", ", ".join(ignored)
    if check.decode_base64_query:
        yield "Parameters", "are decoded from base64 first"
    for name, value in check.post_data.items():
        yield f"Sent {name}", _format_value(value) + _describe_schema(check.post_data_schema.get(name))
    if check.ignored_post_data_params_patterns:
        yield "Ignored sent fields", ", ".join(check.ignored_post_data_params_patterns)
    yield from _name_check("Header", check.headers)
    yield from _name_check("Answer", check.response_content)
    yield from _name_check("Cookie", check.response_cookies)


def _name_check(title: str, values: Mapping[str, Any]) -> Iterator[Fact]:
    yield from ((f"{title} {name}", _format_value(value)) for name, value in values.items())


# --- the agent's answer ----------------------------------------------------------------------------------------------


def _describe_answer(check: AnswerCheck) -> CheckDescription:
    order = "in this order" if check.ordered else "in any order"
    facts: list[Fact] = []
    if check.task_type:
        facts.append(("Kind of task", check.task_type))
    if check.status:
        facts.append(("Status", check.status))
    if check.retrieved_data is not NOT_GIVEN:
        several = isinstance(check.retrieved_data, list) and len(check.retrieved_data) > 1
        facts.append(
            (
                "Data",
                _format_value(check.retrieved_data)
                + _describe_schema(check.results_schema)
                + (f", {order}" if several else ""),
            )
        )
    facts += [(f"Field {name}", _format_value(value)) for name, value in check.fields.items()]
    summary = "The agent's structured answer must contain"
    return CheckDescription(check.name, str(check.key_point), False, summary, [_build_fact(*one) for one in facts])


def _describe_schema(schema: Schema | None) -> str:
    while schema is not None and schema.kind == "array" and schema.items is not None:
        schema = schema.items
    return f" (compared as {schema.kind})" if schema is not None and schema.kind not in ("", "string") else ""


def _format_value(value: Any) -> str:
    if isinstance(value, str):
        return f"the pattern {value}" if value.startswith("^") else value or '""'
    if isinstance(value, list) and all(isinstance(one, str | int | float) for one in value):
        return ", ".join(map(_format_value, value))
    return json.dumps(value, ensure_ascii=False)


def _build_fact(title: str, text: str) -> Fact:
    return _cut(title), _cut(text)


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


# --- requests of a trace ---------------------------------------------------------------------------------------------


BARE = ("name", "url", "http_method", "last_event_only")
OK = 200  # the usual status, which is seldom relevant for a task
MOST_EVENTS = 300  # on a page
MOST_VALUES = 30  # of one kind in a check
LONGEST_VALUE = 200  # characters; longer values are seldom relevant


@dataclass(frozen=True, slots=True)
class EventList:
    """Navigations and mutations, each with its check as YAML; ``problem`` says why there are none."""

    events: list[tuple[NetworkEvent, str]] = field(default_factory=list)
    total: int = 0
    problem: str = ""

    @property
    def left_out(self) -> bool:
        return self.total > len(self.events)


def list_events(trajectory: Trajectory) -> EventList:
    try:
        trace, _ = judge.load_trace(load_subject(trajectory))
    except (FormatError, CallFailed, *screenshots.STORE_ERRORS) as error:
        return EventList(problem=f"The trace cannot be read: {' '.join(str(error).split())[:500]}")
    acts = [event for event in (trace.events if trace else ()) if event.is_navigation or event.is_mutation]
    lasts = {_find_kind(event): event.index for event in acts}  # the later one stays
    told = [(event, build_snippet(event, last=lasts[_find_kind(event)] == event.index)) for event in acts[:MOST_EVENTS]]
    return EventList(told, len(acts))


def _find_kind(event: NetworkEvent) -> tuple[str, ...]:
    """Return the group whose last request a check refers to: navigations, or a method at an address."""
    if event.is_navigation:
        return ("navigation",)
    return (event.method, _format_address(event))


def _format_address(event: NetworkEvent) -> str:
    parts = urlsplit(event.url)
    return urlunsplit((parts.scheme, parts.netloc, parts.path, "", ""))


def build_snippet(event: NetworkEvent, *, last: bool = False) -> str:
    """Return a check that this request meets, as an item of a YAML list; only of its address if the rest is invalid.

    Default values are omitted; ``last`` says that this is the last request of its kind, which is the default.
    """
    whole = _build_check(event) | ({} if last else {"last_event_only": False})
    for check in (whole, {name: value for name, value in whole.items() if name in BARE}):
        text = written([check])
        try:
            checks.parse(text)
        except FormatError:
            continue
        return text
    return ""


def _build_check(event: NetworkEvent) -> dict[str, Any]:
    parts = urlsplit(event.url)
    check: dict[str, Any] = {
        "name": f"{event.index}: {event.method} {parts.path[:150] or '/'}",
        "url": _format_address(event),
    }
    if not event.is_navigation:
        check["http_method"] = event.method
    query: dict[str, list[str]] = {}
    for name, value in parse_qsl(parts.query, keep_blank_values=True)[:MOST_VALUES]:
        query.setdefault(name, []).append(value)
    if query:
        usable = {name: values for name, values in query.items() if any(values) and all(map(_is_usable, values))}
        check["query_params"] = {name: one[0] if len(one) == 1 else one for name, one in usable.items()}
        check["ignored_query_params"] = [name for name in query if name not in usable]
    if event.status > 0 and event.status != OK:
        check["response_status"] = event.status
    if event.is_mutation and event.post_data is not None:
        sent = list(event.post_data.fields().items())[:MOST_VALUES]
        check["post_data"] = {
            name: value for name, value in sent if _is_usable(value) and not name.startswith(("$", "^"))
        }
    return {name: value for name, value in check.items() if value not in ({}, [])}


def _is_usable(value: Any) -> bool:
    """Return True if a check can expect the value: it is short, and neither a redacted secret nor a pattern."""
    if isinstance(value, bool | int | float):
        return True
    return isinstance(value, str) and len(value) <= LONGEST_VALUE and not is_redacted(value) and not is_pattern(value)
