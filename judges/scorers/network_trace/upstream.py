"""Compare as WebArena-Verified 1.2.3 does, including its oddities (``compat="webarena-verified"``).

Written from its measured behaviour. `judges/tests/parity/differences.py` lists the intended differences. This list
states what the package does, and in brackets what checks do without ``compat``:

- Events have the order of the file (of time).
- The final navigation counts only in NAVIGATE tasks with GET, and always there; else the last event at the address
  (the final navigation, and with ``last_event_only: false`` any event).
- ``event_type`` does not exist; unknown keys inside ``expected`` are ignored (refused).
- GET and 200 are expected if nothing is written (only what is written; a navigation has a status below 400).
- ``query_params_schema`` has arrays only (also plain types). The first value of a parameter counts (all values).
- ``should_not_exist`` compares method and path (everything that is written).
- A fragment on one side fails (it counts if one is expected).
- Navigations are recognised by ``sec-fetch-user`` and ``accept`` (by ``sec-fetch-*``, resource type or accept).
- Hosts of configured sites only, else an error (any host).
- Amounts may differ by 0.1 (exact). Ambiguous dates have the month first (refused).
- 0 is an empty text in ``post_data`` (0). Response values are compared as they are (by meaning).
- No answer is a failure (an error).
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

from judges.scorers.network_trace import scalars
from judges.scorers.network_trace.addresses import (
    Address,
    Sites,
    UnknownSite,
    expand,
    may_be,
    may_be_path,
    parse_address,
)
from judges.scorers.network_trace.bodies import Body, is_redacted
from judges.scorers.network_trace.model import (
    ERROR,
    FAIL,
    MISSING,
    NOT_GIVEN,
    PASS,
    TRUNCATED,
    AnswerCheck,
    Difference,
    NetworkCheck,
    Result,
    combine,
    describe,
    distance,
    find_value,
)
from judges.scorers.network_trace.patterns import TooCostly, compile_pattern, is_pattern, shared_steps
from judges.scorers.network_trace.scalars import NotParsable, parse_money
from judges.scorers.network_trace.trace import NetworkEvent, NetworkTrace
from judges.scorers.network_trace.values import (
    KINDS,
    WAS_REDACTED,
    Compared,
    Rules,
    Schema,
    ValueKind,
    all_of,
    any_of,
    compare,
    format_text,
    is_missing,
)

ASSETS = (".css", ".js", ".png", ".jpg", ".jpeg", ".gif", ".svg", ".woff", ".woff2", ".ttf", ".ico", ".webp")
MARKS = str.maketrans("", "", "\u2122\u00ae\u2120\u00a9")
HYPHENS = re.compile("(?<=[a-zA-Z])[-\u2010-\u2015\u2212\u00ad]|[-\u2010-\u2015\u2212\u00ad](?=[a-zA-Z])")
AROUND = "'\"`.,;:!?"
TOLERANCE = Decimal("0.1")

Differences = tuple[Difference, ...]


def normalise_text(value: Any) -> str:
    """Return a text as upstream compares it: no case, accents, trade mark signs or hyphens at letters; 0 is empty."""
    shown = unicodedata.normalize("NFKC", (format_text(value) if value else "").translate(MARKS))
    plain = unicodedata.normalize("NFKD", HYPHENS.sub(" ", shown))
    kept = "".join(char for char in plain if not unicodedata.combining(char))
    return " ".join(kept.split()).casefold()


def _parse_number(value: Any, schema: Schema) -> float:
    try:
        return float(str(value).replace(",", "").replace(" ", ""))
    except ValueError:
        raise NotParsable("is not a number") from None


def _parse_day(value: Any, schema: Schema) -> Any:
    return scalars.parse_day(value, [scalars.check_date_format("MM/DD/YYYY"), scalars.check_date_format("MM-DD-YYYY")])


UPSTREAM = Rules(
    KINDS
    | {
        "string": ValueKind(
            lambda value, schema: normalise_text(value),
            lambda one, other: one == other or one.strip(AROUND) == other.strip(AROUND),
        ),
        "number": ValueKind(_parse_number),
        "integer": ValueKind(_parse_number),
        "date": ValueKind(_parse_day),
        "currency": ValueKind(
            lambda value, schema: parse_money(value).amount, lambda one, other: bool(abs(one - other) <= TOLERANCE)
        ),
    },
    lambda expected: "string",
    lambda value: " ".join(format_text(value).split()),
    is_missing,
)


@shared_steps()
def run_check(check: NetworkCheck, trace: NetworkTrace, sites: Sites, task_type: str) -> Result:
    try:
        return _Upstream(check, trace, sites, task_type).find_result()
    except (UnknownSite, TooCostly) as error:
        return Result(check, ERROR, f"{error}.")
    except _NotComparable as error:
        return Result(check, ERROR, str(error))


class _NotComparable(Exception):
    """Upstream ends in an error here."""


class _Upstream:
    def __init__(self, check: NetworkCheck, trace: NetworkTrace, sites: Sites, task_type: str) -> None:
        self.check, self.sites = check, sites
        self.method, self.statuses = check.http_method or "GET", check.response_statuses or (200,)
        listed = sorted(trace.events, key=lambda one: one.index)  # upstream's order is that of the file
        self.events = [one for one in listed if not one.url.partition("?")[0].partition("#")[0].endswith(ASSETS)]
        self.navigates = task_type.lower() == "navigate" and self.method == "GET"
        self.urls = self._expand_places(list(check.urls))
        self.referers = self._expand_places(_list_texts(check.headers.get("referer")))

    def _refuse_unreadable(self) -> None:
        """Raise _NotComparable as upstream does: it reads the expectations before any event, whatever the trace has."""
        check, patterns = self.check, [compile_pattern(one) for one in self.check.ignored_post_data_params_patterns]
        for name, wanted in check.post_data.items():
            is_array = check.post_data_schema.get(name, Schema()).kind == "array"
            is_read = is_array or any(one.search(name) for one in patterns)
            if not is_read and isinstance(wanted, list) and len(wanted) < 2:
                raise _NotComparable("Upstream takes a list of one value only where post_data_schema says array.")
        in_urls = {name for url in self.urls if not is_pattern(url) for name in _list_values(self.parse_url(url))}
        for name in (check.query_params or in_urls) if check.query_params_schema else ():
            if check.query_params_schema.get(name, Schema()).kind != "array" and not self._is_left_out(name):
                says = "Upstream takes query_params_schema with an array for each parameter only"
                raise _NotComparable(f"{says} ({name}).")

    def _expand_places(self, urls: list[str]) -> list[str]:
        """Return the expanded addresses; raise _NotComparable for hosts outside the sites: upstream has no others."""
        found = [one for url in urls for one in expand(url, self.sites, pattern=is_pattern(url))]
        bases = [base.rstrip("/").lower() for bases in self.sites.values() for base in bases]
        for url in found:
            if not is_pattern(url) and not any(base in url.lower() for base in bases):
                raise _NotComparable(f"{url} is at none of the sites, and upstream compares no other addresses.")
        return found

    def find_result(self) -> Result:
        self._refuse_unreadable()
        check, candidates = self.check, self.select_candidates()
        compared = [(event, tuple(self.compare_all(event))) for event in candidates]
        if check.should_not_exist:
            if not candidates:
                return Result(check, PASS, "No event has this address, as expected.")
            event, differences = compared[-1]
            if all(self._is_alike(one) is None for one in candidates):
                message = f"{event.url[:300]} may be the event that must not exist: {WAS_REDACTED}."
                return Result(check, ERROR, message, event, len(candidates), differences)
            return Result(
                check, FAIL, "The trace has an event that must not exist.", event, len(candidates), differences
            )
        for wanted, outcome in ((True, PASS), (None, ERROR)):
            for event, differences in compared:
                if combine(differences) is wanted:
                    message = (
                        "The event is as expected." if wanted else f"It cannot be decided: {describe(differences)}."
                    )
                    return Result(check, outcome, message, event, len(candidates), differences)
        shown = compared or [(event, tuple(self.compare_all(event))) for event in self.events[-50:]]
        if not shown:
            return Result(check, FAIL, "The trace has no event.")
        event, differences = min(shown, key=lambda one: (distance(one[1]), -one[0].index))
        return Result(check, FAIL, f"No event matches: {describe(differences)}.", event, len(candidates), differences)

    def select_candidates(self) -> Sequence[NetworkEvent]:
        if self.navigates:
            return [event for event in self.events if is_navigation(event)][-1:]
        found = [event for event in self.events if self._is_alike(event) is not False]
        if self.check.should_not_exist:
            found = [event for event in found if self._is_alike(event)] or found
        return found[-1:] if self.check.last_event_only is not False else found

    def _is_alike(self, event: NetworkEvent) -> bool | None:
        if event.method != self.method:
            return False
        found = [self._match_any_place(self.urls, event.url)]
        if self.referers and event.referer:
            found.append(self._match_any_place(self.referers, event.referer))
        return all_of(found)

    def _match_any_place(self, urls: Sequence[str], actual: str) -> bool | None:
        return any_of([self.is_at(url, actual) for url in urls])

    def is_at(self, wanted: str, actual: str) -> bool | None:
        """Return whether two addresses are the same without parameters; a fragment on one side only is a difference.
        None if a part that the import blanked decides."""
        if is_pattern(wanted):
            plain = actual.partition("?")[0]
            if is_redacted(plain):
                return None
            return compile_pattern(wanted).match(plain) or compile_pattern(wanted).match(plain.rstrip("/"))
        one, other = self.parse_url(wanted), self.parse_url(actual)
        if replace(one, segments=()).place != replace(other, segments=()).place:
            return False
        path = may_be_path(one.segments, other.segments)
        return all_of([path, may_be(one.fragment.rstrip("/"), other.fragment.rstrip("/"))])

    def parse_url(self, url: str) -> Address:
        return parse_address(url, decode_base64=self.check.decode_base64_query)

    def compare_all(self, event: NetworkEvent) -> Iterator[Difference]:
        check = self.check
        ways = [tuple(self._compare_address(url, event.url)) for url in self.urls]
        yield from min(ways, key=distance)
        yield Difference("http_method", self.method, event.method, event.method == self.method, weight=3)
        status = event.status if event.status > 0 else -1
        yield Difference("response_status", self.statuses[0], event.status, status in self.statuses)
        for name, wanted in check.headers.items():
            yield self._compare_header(event, name, wanted)
        yield from self._compare_sent(event)
        for key, wanted in check.response_content.items():
            yield self._compare_answered(event, key, wanted)
        for name, wanted in check.response_cookies.items():
            yield Difference(f"response_cookies.{name}", wanted, None, None, WAS_REDACTED)

    def _compare_address(self, url: str, actual: str) -> Iterator[Difference]:
        is_there = self.is_at(url, actual)
        yield Difference("url", url, actual, is_there, WAS_REDACTED if is_there is None else "", 8)
        check = self.check
        written: dict[str, Any] = {name: list(values) for name, values in check.query_params.items()}
        wanted = written or ({} if is_pattern(url) else _list_values(self.parse_url(url)))
        had = _list_values(self.parse_url(actual))
        for name in sorted(wanted.keys() | had.keys()):
            if name not in check.ignored_query_params and not self._is_left_out(name):
                yield self._compare_parameter(name, wanted.get(name, []), had.get(name, []))

    def _is_left_out(self, name: str) -> bool:
        return any(
            compile_pattern(one, ignore_case=True).search(name) for one in self.check.ignored_query_params_patterns
        )

    def _compare_parameter(self, name: str, wanted: Sequence[Any], had: Sequence[str]) -> Difference:
        """Compare only the first value, in alphabetical order; an empty value counts as absent."""
        one, other = (
            min((format_text(value).lower().strip() for value in values), default="") for values in (wanted, had)
        )
        field = f"query_params.{name}"
        if is_redacted(other):
            return Difference(field, one, other, None, WAS_REDACTED)
        schema = self.check.query_params_schema.get(name)
        if self.check.query_params_schema and wanted and (schema is None or schema.kind != "array"):
            raise _NotComparable(f"Upstream takes query_params_schema with an array for each parameter only ({name}).")
        if schema and schema.items and wanted and had:
            compared = compare(one, other, schema.items, UPSTREAM)
            return Difference(field, one, other, compared.equal, compared.note)
        if is_pattern(one):
            return Difference(field, one, other, compile_pattern(one).match(other))
        return Difference(field, one or None, other or None, one == other)

    def _compare_header(self, event: NetworkEvent, name: str, wanted: Any) -> Difference:
        field, actual = f"headers.{name}", event.request_headers.get(name.lower())
        if actual is None:
            return Difference(field, wanted, None, False)
        if is_redacted(actual):
            return Difference(field, wanted, actual, None, WAS_REDACTED)
        if name == "referer":
            ways = (tuple(self._compare_referer(url, actual)) for url in self.referers)
            return Difference(field, wanted, actual, any(combine(way) for way in ways))
        compared = compare(wanted, actual, None, UPSTREAM)
        return Difference(field, wanted, actual, compared.equal, compared.note)

    def _compare_referer(self, url: str, actual: str) -> Iterator[Difference]:
        plain = _Upstream(replace(self.check, query_params={}, headers={}), NetworkTrace(), self.sites, "")
        yield from plain._compare_address(url, actual)

    def _compare_sent(self, event: NetworkEvent) -> Iterator[Difference]:
        check, body = self.check, event.post_data
        patterns = [compile_pattern(one) for one in check.ignored_post_data_params_patterns]
        document = _parse_body(body) or {}
        is_sent = bool(document)  # if nothing is sent, an expected null does not match either
        document = {key: value for key, value in document.items() if not any(one.search(key) for one in patterns)}
        for key, wanted in check.post_data.items():
            if any(one.search(key) for one in patterns):
                continue
            actual = find_value(key.strip(), document, body, several=False) if body and document else MISSING
            schema = check.post_data_schema.get(key, Schema())
            if actual is MISSING or actual is None:
                equal = None if body is not None and body.truncated else is_sent and wanted is None
                yield Difference(f"post_data.{key}", wanted, None, equal, TRUNCATED if equal is None else "")
                continue
            compared = _read_posted(wanted, actual, schema)
            yield Difference(f"post_data.{key}", wanted, actual, compared.equal, compared.note)

    def _compare_answered(self, event: NetworkEvent, key: str, wanted: Any) -> Difference:
        """Compare the value unchanged: upstream does not normalise the server's answer."""
        body = event.response_content
        document = _parse_body(body)
        actual = find_value(key, document, body, several=False) if body and document else MISSING
        if actual is MISSING:
            cut = body is not None and body.truncated
            return Difference(f"response_content.{key}", wanted, None, None if cut else False, TRUNCATED if cut else "")
        equal = None if is_redacted(actual) else _is_contained(wanted, actual)
        return Difference(f"response_content.{key}", wanted, actual, equal, WAS_REDACTED if equal is None else "")


def is_navigation(event: NetworkEvent) -> bool:
    """Return whether upstream treats an event as a navigation, by the method and headers of the request alone."""
    headers = {name: value.lower() for name, value in event.request_headers.items()}
    accepts = headers.get("accept", "")
    if event.method != "GET":
        return False
    if "sec-fetch-user" in headers:
        said_so = (headers.get("sec-fetch-dest"), headers.get("sec-fetch-mode"), headers["sec-fetch-user"])
        return said_so == ("document", "navigate", "?1") and "text/html" in accepts
    return accepts.startswith("text/html")


def convert_answer_check(check: AnswerCheck) -> AnswerCheck:
    """Return the check as upstream applies it: retrieved data is compared only in tasks that retrieve."""
    return check if check.task_type.lower() == "retrieve" else replace(check, retrieved_data=NOT_GIVEN)


def _read_posted(wanted: Any, actual: Any, schema: Schema) -> Compared:
    if wanted is None:  # an expected null matches only null or an absent value
        return Compared(False)
    if schema.kind != "array" and isinstance(actual, list) and len(actual) > 1:
        found = [compare(wanted, one, schema, UPSTREAM) for one in actual]  # several values of one key: any of them
        return next((one for one in found if one.equal), found[0])
    compared = compare(wanted, actual, schema, UPSTREAM)
    # A single value is not a list of one here.
    return compared if schema.kind != "array" or not compared.equal or _is_list(actual) else Compared(False)


def _list_texts(value: Any) -> list[str]:
    return [] if value is None else [str(one) for one in (value if isinstance(value, list) else [value])]


def _is_list(value: Any) -> bool:
    try:
        return isinstance(json.loads(value) if isinstance(value, str) else value, list)
    except ValueError:
        return False


def _parse_body(body: Body | None) -> dict[str, Any] | None:
    """Read a body as upstream does: forms, and JSON objects with the media type of JSON."""
    if body is None or (not body.text and not body.params):
        return None
    if body.media_type == "application/json":
        try:
            found = body.json()
        except ValueError:
            return None
        return found if isinstance(found, dict) else None
    form = body.form()
    return dict(reversed(form)) if form else None


def _is_contained(wanted: Any, actual: Any) -> bool:
    if isinstance(wanted, dict):
        return isinstance(actual, dict) and all(
            key in actual and _is_contained(value, actual[key]) for key, value in wanted.items()
        )
    if isinstance(wanted, list):
        return isinstance(actual, list) and sorted(map(_make_sort_key, wanted)) == sorted(map(_make_sort_key, actual))
    return bool(wanted == actual)


def _make_sort_key(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def _list_values(found: Address) -> dict[str, list[str]]:
    return {name: list(values) for name, values in found.by_name.items()}
