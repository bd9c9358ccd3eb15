"""Match network checks with recorded events, and describe how they differ.

A check with ``last_event_only`` (the default, unless the event must not exist) is about the final navigation or, for
mutations and other requests, about the last one with its method at its address. Without it, the check is about all
events (of its ``event_type``, if one is written), and any of them may match.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from annotation.formats.har import REDACTED
from judges.scorers.network_trace.addresses import (
    Address,
    Sites,
    UnknownSite,
    expand,
    find_bare_names,
    is_ignored,
    may_be,
    may_be_path,
    parse_address,
)
from judges.scorers.network_trace.bodies import is_redacted
from judges.scorers.network_trace.model import (
    ERROR,
    FAIL,
    PASS,
    Difference,
    NetworkCheck,
    Result,
    combine,
    compare_body,
    describe,
    distance,
)
from judges.scorers.network_trace.patterns import TooCostly, compile_pattern, is_pattern, shared_steps
from judges.scorers.network_trace.trace import NetworkEvent, NetworkTrace, has_static_suffix
from judges.scorers.network_trace.values import WAS_REDACTED, Compared, Schema, any_of, compare

MOST_COMPARED = 50  # events whose fields are all compared to find the nearest one
ADDRESS_HEADERS = frozenset({"referer", "origin", "location"})
NOTHING_SENT = Compared(False, "no value was sent")
NO_CONTENT = Compared(None, "the trace does not contain the server's answer")
NO_HEADERS = "headers of images, scripts and similar files are not stored"
NO_FRAGMENT = "has no fragment, which many recorders leave out"
LOWEST_ERROR = 400  # from this status on, the agent has not reached a page
NO_COOKIES = "import blanks cookies, so it cannot be compared"

Differences = tuple[Difference, ...]


@shared_steps()
def run_check(check: NetworkCheck, trace: NetworkTrace, sites: Sites) -> Result:
    try:
        return _Matching(check, trace, sites).find_result()
    except UnknownSite as error:
        message = f"{error}; write it under `sites` of the checks, or in the judge's parameter `sites`".capitalize()
        return Result(check, ERROR, f"{message}.")
    except TooCostly as error:
        return Result(check, ERROR, str(error))


class _Matching:
    def __init__(self, check: NetworkCheck, trace: NetworkTrace, sites: Sites) -> None:
        self.check, self.trace, self.sites = check, trace, sites
        self.urls = [one for url in check.urls for one in expand(url, sites, pattern=is_pattern(url))]
        self.expected = {url: parse_address(url, decode_base64=check.decode_base64_query) for url in self.urls}

    def find_result(self) -> Result:
        check, candidates = self.check, self.select_candidates()
        count, possible = len(candidates), None
        for event in candidates:
            if any(one.equal is False for one in self.compare_quickly(event)):
                continue
            differences = self.compare_all(event)
            found = combine(differences)
            if found:
                outcome, says = (FAIL, "and must not be") if check.should_not_exist else (PASS, "as expected")
                return Result(check, outcome, f"{_describe_event(event)} exists, {says}.", event, count, differences)
            if found is None:
                possible = (event, differences)
        if possible:
            event, differences = possible
            message = f"{_describe_event(event)} may match, but this cannot be decided: {describe(differences)}."
            return Result(check, ERROR, message, event, count, differences)
        if check.should_not_exist:
            return Result(check, PASS, "No event matches, as expected.", None, count)
        return self.describe_failure(candidates)

    def select_candidates(self) -> Sequence[NetworkEvent]:
        check, events = self.check, self.events_in_scope
        if check.event_type:
            events = tuple(event for event in events if event.event_type == check.event_type)
        if not check.only_the_last:
            return events
        if check.about == "navigation":
            return self.trace.navigation_events[-1:]
        alike = [event for event in events if event.event_type == check.about and self.is_alike(event)]
        return alike[-1:]

    @property
    def events_in_scope(self) -> tuple[NetworkEvent, ...]:
        """Return all events if one must not exist, or if an address is that of an image, script or similar file; else
        all events except such files."""
        is_static = any(has_static_suffix(url.removesuffix("$")) for url in self.urls)
        return self.trace.events if is_static or self.check.should_not_exist else self.trace.evaluated

    def is_alike(self, event: NetworkEvent) -> bool:
        return all(one.equal is not False for one in self.compare_quickly(event) if one.field in {"url", "http_method"})

    # Comparison.

    def compare_quickly(self, event: NetworkEvent) -> Differences:
        """Compare the fields that cost little: an event that differs in one of them cannot match."""
        check = self.check
        found = [min((self.compare_url(event, url) for url in self.urls), key=lambda one: distance((one,)))]
        if check.http_method:
            equal = event.method == check.http_method
            found.append(Difference("http_method", check.http_method, event.method, equal, weight=3))
        if check.event_type:
            equal = event.event_type == check.event_type
            found.append(Difference("event_type", check.event_type, str(event.event_type), equal, weight=2))
        if check.response_statuses:
            wanted: Any = (
                check.response_statuses[0] if len(check.response_statuses) == 1 else list(check.response_statuses)
            )
            equal = (event.status if event.status > 0 else -1) in check.response_statuses
            found.append(Difference("response_status", wanted, event.status, equal))
        elif event.is_navigation and not check.should_not_exist and not 0 < event.status < LOWEST_ERROR:
            note = "was not answered with a page" if event.status else "got no response"
            found.append(Difference("response_status", f"below {LOWEST_ERROR}", event.status, False, note))
        return tuple(found)

    def compare_all(self, event: NetworkEvent) -> Differences:
        """Compare all fields, with the nearest of the alternative addresses."""
        ways = [(self.compare_url(event, url), *self.compare_query(event, url)) for url in self.urls]
        return min(ways, key=distance) + self.compare_quickly(event)[1:] + tuple(self.compare_rest(event))

    def compare_rest(self, event: NetworkEvent) -> Iterator[Difference]:
        check = self.check
        sent = {
            key: value for key, value in check.post_data.items()
            if not is_ignored(key, (), check.ignored_post_data_params_patterns)
        }  # fmt: skip
        yield from compare_body("post_data", sent, event.post_data, check.post_data_schema, absent=NOTHING_SENT)
        for name, value in check.headers.items():
            yield self.compare_header(event, name, value)
        yield from compare_body(
            "response_content", check.response_content, event.response_content, {}, absent=NO_CONTENT
        )
        for name, value in check.response_cookies.items():
            yield Difference(f"response_cookies.{name}", value, None, None, NO_COOKIES)

    def compare_url(self, event: NetworkEvent, url: str) -> Difference:
        """Compare the address of an event with an expected one, without parameters; fragments only if expected."""
        if is_pattern(url):
            is_matched = compare_values(url, event.url)
            note = WAS_REDACTED if is_matched is None else "does not match the pattern"
            return Difference("url", url, event.url, is_matched, note, 8)
        wanted, had = self.expected[url], self.parse_url(event)
        weight = 12 if wanted.host != had.host else 8 if wanted.segments != had.segments else 2
        compared = _is_same_place(wanted, had)
        return Difference("url", url, event.url, compared.equal, compared.note, weight)

    def compare_query(self, event: NetworkEvent, url: str) -> Iterator[Difference]:
        if is_pattern(url) and r"\?" in url:
            return
        check = self.check
        wanted: dict[str, Sequence[Any]] = {} if is_pattern(url) else dict(self.expected[url].by_name)
        wanted |= {
            name: [one for one in values if one not in {None, ""}] for name, values in check.query_params.items()
        }
        address = self.parse_url(event)
        had, is_there = address.by_name, {name for name, _ in address.parameters}
        for name in [] if is_pattern(url) else find_bare_names(url):
            if name not in is_there:
                yield Difference(f"query_params.{name}", "", None, False, "is missing")
        compared = compare_contained if check.should_not_exist else compare_parameter
        for name in sorted(wanted if check.should_not_exist else wanted.keys() | had.keys()):
            if not is_ignored(name, check.ignored_query_params, check.ignored_query_params_patterns):
                yield compared(name, wanted.get(name, ()), had.get(name, ()), check.query_params_schema.get(name))

    def compare_header(self, event: NetworkEvent, name: str, wanted: Any) -> Difference:
        actual, field = event.request_headers.get(name.lower()), f"headers.{name}"
        if actual is None and event.is_static:
            return Difference(field, wanted, None, None, NO_HEADERS)
        if actual is None:
            return Difference(field, wanted, None, wanted is None, "was not sent")
        if name.lower() in ADDRESS_HEADERS:
            is_same = self.is_same_address(wanted, actual)
            return Difference(field, wanted, actual, is_same, WAS_REDACTED if is_same is None else "")
        if is_redacted(actual):
            return Difference(field, wanted, actual, None, WAS_REDACTED)
        compared = compare(wanted, actual)
        return Difference(field, wanted, actual, compared.equal, compared.note)

    def is_same_address(self, wanted: Any, actual: str) -> bool | None:
        """Return whether an address of a header is one of the wanted ones, without ignored parameters; None if that
        cannot be decided."""
        urls = [str(one) for one in (wanted if isinstance(wanted, list) else [wanted])]
        ways = [way for one in urls for way in expand(one, self.sites, pattern=is_pattern(one))]
        inner = [_Matching(self._build_header_check(url), NetworkTrace(), self.sites) for url in ways]
        found = [combine(one.compare_all(NetworkEvent(0, actual))) for one in inner]
        return any_of(found)

    def _build_header_check(self, url: str) -> NetworkCheck:
        check = self.check
        return NetworkCheck(
            name="", urls=(url,), ignored_query_params=check.ignored_query_params,
            ignored_query_params_patterns=check.ignored_query_params_patterns,
        )  # fmt: skip

    def parse_url(self, event: NetworkEvent) -> Address:
        return parse_address(event.url, decode_base64=self.check.decode_base64_query)

    # Messages.

    def describe_failure(self, candidates: Sequence[NetworkEvent]) -> Result:
        check, count = self.check, len(candidates)
        event, differences = self.find_nearest(candidates or self.trace.evaluated)
        if event is None:
            return Result(check, FAIL, "The trace has no event to compare.", None, count)
        what = {"navigation": "navigation", "mutation": "request that changes something"}.get(check.about, "request")
        if check.only_the_last and count:
            start = f"The last {what}, {_describe_event(event)}, differs"
        elif check.only_the_last:
            start = f"No {what} of that kind exists; the nearest event is {_describe_event(event)}"
        else:
            start = f"None of {count:,} events matches; the nearest is {_describe_event(event)}"
        details = describe(differences)
        return Result(check, FAIL, f"{start}{': ' if details else ''}{details}.", event, count, differences)

    def find_nearest(self, events: Sequence[NetworkEvent]) -> tuple[NetworkEvent | None, Differences]:
        ranked = sorted(events, key=lambda event: (distance(self.compare_quickly(event)), -event.index))[:MOST_COMPARED]
        full = [(event, self.compare_all(event)) for event in ranked]
        return min(full, key=lambda one: (distance(one[1]), -one[0].index), default=(None, ()))


def compare_parameter(name: str, wanted: Sequence[Any], had: Sequence[str], schema: Schema | None) -> Difference:
    """Compare all values of a parameter with the expected ones, in any order."""
    field = f"query_params.{name}"
    if not wanted:
        note = "which is not expected; list it in ignored_query_params to ignore it" if had else ""
        return Difference(field, None, _unwrap_single(had), not had, note)
    items = schema.items if schema and schema.kind == "array" else schema
    empty = not had and any(is_pattern(one) for one in wanted)  # a pattern may match an absent value
    compared = compare(list(wanted), [""] if empty else list(had), Schema("array", items))
    return Difference(field, _unwrap_single(wanted), _unwrap_single(had), compared.equal, compared.note)


def compare_contained(name: str, wanted: Sequence[Any], had: Sequence[str], schema: Schema | None) -> Difference:
    """Compare as `compare_parameter`, for an event that must not exist: further values do not make it another one."""
    whole = compare_parameter(name, wanted, had, schema)
    if whole.equal is not False or not wanted:
        return whole
    among = [[compare_parameter(name, [one], [value], schema).equal for value in had] for one in wanted]
    equal = all(True in row for row in among) or (None if all({True, None} & {*row} for row in among) else False)
    return replace(whole, equal=equal, note=WAS_REDACTED if equal is None else whole.note)


def compare_values(pattern: str, url: str) -> bool | None:
    """Return whether an address matches ``^...$``, regardless of case and of a final slash; as it was sent, or decoded.

    The pattern is for the address without fragment, and without parameters unless it contains a question mark
    (``\\?``). None if the import blanked a part that decides.
    """
    plain = url.partition("#")[0]
    forms = [plain] if r"\?" in pattern else [plain.partition("?")[0], _format_readable(parse_address(url))]
    found = compile_pattern(pattern, ignore_case=True)
    if any(is_redacted(form) for form in forms):
        return None if any(found.may_begin_with(form.partition(REDACTED)[0]) for form in forms) else False
    return any(found.fullmatch(form) for one in forms for form in (one, one.rstrip("/"), one.rstrip("/") + "/"))


def _format_readable(one: Address) -> str:
    port = f":{one.port}" if one.port is not None else ""
    return f"{one.scheme}://{one.host}{port}/{'/'.join(one.segments)}"


def _is_same_place(wanted: Address, had: Address) -> Compared:
    for name, one, other in (
        ("scheme", wanted.scheme, had.scheme), ("host", wanted.host, had.host), ("port", wanted.port, had.port),
    ):  # fmt: skip
        if one != other:
            return Compared(False, f"another {name}")
    path = may_be_path(wanted.segments, had.segments)
    fragment = may_be(wanted.fragment, had.fragment) if wanted.fragment else True
    if path is False:
        return Compared(False, "another path")
    if not had.fragment and wanted.fragment:
        return Compared(None, NO_FRAGMENT)
    if fragment is False:
        return Compared(False, "another fragment")
    return Compared(None, WAS_REDACTED) if None in {path, fragment} else Compared(True)


def _unwrap_single(values: Sequence[Any]) -> Any:
    return None if not values else values[0] if len(values) == 1 else list(values)


def _describe_event(event: NetworkEvent) -> str:
    return f"event {event.index}, {event.method} {event.url[:300]}"
