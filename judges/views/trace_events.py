"""What happened in a network trace, request by request, each with a check that it would meet."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlsplit, urlunsplit

from annotation import screenshots
from annotation.formats.documents import FormatError
from annotation.formats.yaml_text import written
from annotation.models import Trajectory
from judges.llm import CallFailed
from judges.scorers.network_trace import checks, judge
from judges.scorers.network_trace.patterns import is_pattern
from judges.scorers.network_trace.trace import NetworkEvent
from judges.scorers.network_trace.values import is_redacted
from judges.working.subjects import load_subject

BARE = ("name", "url", "http_method", "last_event_only")
OK = 200  # an answer as usual, which seldom is what a task is about
MOST_EVENTS = 300  # on a page
MOST_VALUES = 30  # of one kind in a check
LONGEST_VALUE = 200  # characters; a longer one is seldom what matters


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
    """What the last one of is meant by a check that says nothing else: navigations, or a method at an address."""
    if event.is_navigation:
        return ("navigation",)
    return (event.method, _format_address(event))


def _format_address(event: NetworkEvent) -> str:
    parts = urlsplit(event.url)
    return urlunsplit((parts.scheme, parts.netloc, parts.path, "", ""))


def build_snippet(event: NetworkEvent, *, last: bool = False) -> str:
    """A check that this request meets, as an item of a YAML list; of its address alone where the rest is no check.

    What is so where nothing is written is left out; ``last`` says that this is the request that is meant then.
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
    """Whether a value can be expected as it is: no secret that was taken out, no pattern, nothing long."""
    if isinstance(value, bool | int | float):
        return True
    return isinstance(value, str) and len(value) <= LONGEST_VALUE and not is_redacted(value) and not is_pattern(value)
