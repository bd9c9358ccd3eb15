"""Network checks and checks of the agent's answer, and the result of a check of a trajectory, in words."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from annotation.formats.har import REDACTED
from annotation.formats.printable import printable
from judges.scorers.network_trace.addresses import Sites
from judges.scorers.network_trace.bodies import Body, parse_path
from judges.scorers.network_trace.patterns import compile_pattern, is_pattern
from judges.scorers.network_trace.trace import MUTATING, NetworkEvent
from judges.scorers.network_trace.values import DEFAULT, Compared, Rules, Schema, all_of, compare

NETWORK, ANSWER = "network_event", "agent_response"
Compat = Literal["", "webarena-verified"]
WEBARENA: Compat = "webarena-verified"
NOT_GIVEN: Any = object()
MISSING: Any = object()
TRUNCATED = "import stored only its beginning"
PASS, FAIL, ERROR = "pass", "fail", "error"
LONGEST_VALUE = 2_000  # characters of a value that are stored
LONGEST_SHOWN = 120  # characters of a value in a sentence
MOST_DIFFERENCES = 50
MOST_NAMED = 3  # differences that a sentence names


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """Fields of every check. ``key_point`` is a key point's text, its number from 1, or ""."""

    name: str
    key_point: str | int = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkCheck(Check):
    """An event that must be in the trace, or (``should_not_exist``) must not. Empty fields are not compared.

    ``urls`` and ``response_statuses`` are alternatives. ``query_params`` has all values of each parameter.
    ``last_event_only`` is None if nothing was written.
    """

    urls: tuple[str, ...]
    http_method: str = ""
    event_type: str = ""
    response_statuses: tuple[int, ...] = ()
    last_event_only: bool | None = None
    should_not_exist: bool = False
    query_params: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    query_params_schema: Mapping[str, Schema] = field(default_factory=dict)
    ignored_query_params: tuple[str, ...] = ()
    ignored_query_params_patterns: tuple[str, ...] = ()
    decode_base64_query: bool = False
    post_data: Mapping[str, Any] = field(default_factory=dict)
    post_data_schema: Mapping[str, Schema] = field(default_factory=dict)
    ignored_post_data_params_patterns: tuple[str, ...] = ()
    headers: Mapping[str, Any] = field(default_factory=dict)
    response_content: Mapping[str, Any] = field(default_factory=dict)
    response_cookies: Mapping[str, Any] = field(default_factory=dict)

    @property
    def about(self) -> str:
        """Return the type of event that the check is about: as written, else derived from its other keys."""
        if self.event_type:
            return self.event_type
        if self.http_method not in {"", "GET", *MUTATING}:
            return "other"
        return "mutation" if self.post_data or self.http_method in MUTATING else "navigation"

    @property
    def only_the_last(self) -> bool:
        return not self.should_not_exist if self.last_event_only is None else self.last_event_only


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerCheck(Check):
    """An expected structured answer of the agent. ``retrieved_data`` is `NOT_GIVEN` if it is not compared;
    ``fields`` are other parts of the answer by name or path."""

    task_type: str = ""
    status: str = ""
    retrieved_data: Any = NOT_GIVEN
    results_schema: Schema = field(default_factory=Schema)
    ordered: bool = False
    fields: Mapping[str, Any] = field(default_factory=dict)
    fields_schema: Mapping[str, Schema] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Checks:
    """The checks of a task. ``sites`` has the addresses of each site that a placeholder may name, none if they are
    left to the judge. ``task_type`` is the one written for all checks, or "": upstream's rules depend on it."""

    checks: tuple[NetworkCheck | AnswerCheck, ...]
    sites: Sites = field(default_factory=dict)
    task_type: str = ""

    @property
    def need_trace(self) -> bool:
        return any(isinstance(one, NetworkCheck) for one in self.checks)


@dataclass(frozen=True, slots=True)
class Difference:
    """One field of a check compared with that of an event; ``equal`` is None if undecided, ``note`` says why.

    ``weight`` is how much a difference here counts in the search for the nearest event.
    """

    field: str
    expected: Any
    actual: Any
    equal: bool | None
    note: str = ""
    weight: int = 1

    def as_json(self) -> dict[str, Any]:
        return {
            "field": printable(self.field, 300),
            "expected": limit_value(self.expected),
            "actual": limit_value(self.actual),
            "equal": self.equal is True,
            "note": printable(self.note, 500),
        }

    def __str__(self) -> str:
        if self.equal is None:
            return f"{self.field}: {self.note}"
        if self.expected is None:
            return f"{self.field} is {format_value(self.actual)}, {self.note or 'which is not expected'}"
        if self.actual is None:
            return f"{self.field} is missing, expected is {format_value(self.expected)}"
        return f"{self.field} is {format_value(self.actual)}, expected is {format_value(self.expected)}"


@dataclass(frozen=True, slots=True)
class Result:
    """``event`` is the matching one, or the nearest one of a failure; ``candidates`` is the number of events that the
    check is about."""

    check: NetworkCheck | AnswerCheck
    result: str
    message: str
    event: NetworkEvent | None = None
    candidates: int = 0
    differences: tuple[Difference, ...] = ()

    def as_json(self) -> dict[str, Any]:
        event = self.event
        return {
            "name": self.check.name,
            "key_point": self.check.key_point,
            "evaluator": ANSWER if isinstance(self.check, AnswerCheck) else NETWORK,
            "result": self.result,
            "message": printable(self.message, LONGEST_VALUE),
            "should_not_exist": isinstance(self.check, NetworkCheck) and self.check.should_not_exist,
            "event": event and {
                "index": event.index, "method": event.method, "url": printable(event.url, LONGEST_VALUE),
                "status": event.status, "event_type": str(event.event_type),
            },
            "candidates": self.candidates,
            "differences": [one.as_json() for one in self.differences[:MOST_DIFFERENCES]],
        }  # fmt: skip


def combine(differences: tuple[Difference, ...]) -> bool | None:
    return all_of([one.equal for one in differences])


def distance(differences: tuple[Difference, ...]) -> int:
    return sum(one.weight * 2 for one in differences if one.equal is False) + sum(
        one.weight for one in differences if one.equal is None
    )


def describe(differences: tuple[Difference, ...]) -> str:
    wrong = [one for one in differences if one.equal is False] or [one for one in differences if one.equal is None]
    more = f"; and {len(wrong) - MOST_NAMED} more" if len(wrong) > MOST_NAMED else ""
    return "; ".join(str(one) for one in wrong[:MOST_NAMED]) + more


def format_value(value: Any) -> str:
    return printable(value if isinstance(value, str) else _write_json(value), LONGEST_SHOWN) or "empty"


def limit_value(value: Any) -> Any:
    """Return a JSON value unchanged, or the beginning of its text if it is longer than `LONGEST_VALUE`."""
    text = value if isinstance(value, str) else _write_json(value)
    if len(text) <= LONGEST_VALUE:
        return value
    return text[: LONGEST_VALUE - 1] + "…"


def _write_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def compare_body(
    field: str, expected: Mapping[str, Any], body: Body | None, schemas: Mapping[str, Schema], *, absent: Compared,
    rules: Rules = DEFAULT,
) -> Iterator[Difference]:  # fmt: skip
    document = read_document(body)
    for key, wanted in expected.items():
        if body is None:
            yield Difference(f"{field}.{key}", wanted, None, absent.equal, absent.note)
            continue
        schema = schemas.get(key, Schema())
        several = isinstance(wanted, list) or schema.kind == "array"
        actual = find_value(key, document, body, several=several)
        if actual is MISSING:
            compared = Compared(None, TRUNCATED) if body.truncated else compare(wanted, None, schema, rules)
            yield Difference(f"{field}.{key}", wanted, None, compared.equal, compared.note)
            continue
        compared = compare(wanted, actual, schema, rules)
        yield Difference(f"{field}.{key}", wanted, actual, compared.equal, compared.note)


def read_document(body: Body | None) -> Any:
    """Return the JSON value of a body, or the fields of a form, the first value of each."""
    if body is None:
        return {}
    try:
        return body.fields() or body.json()
    except ValueError:
        return {}


def find_value(key: str, document: Any, body: Body, *, several: bool) -> Any:
    """Find the value under a name, path or pattern; `MISSING` if there is none.

    A pattern gives its only value or a list of values; a path that can find any number of values gives a list. A field
    that occurs several times gives all of its values if ``several`` are expected.
    """
    if key.startswith("$.^") or is_pattern(key):
        pattern = compile_pattern(key.removeprefix("$."))
        found = [value for name, value in document.items() if pattern.match(name)] if isinstance(document, dict) else []
        return MISSING if not found else found[0] if len(found) == 1 else found
    if key.startswith("$"):
        path = parse_path(key)
        found = path.find(document)
        if path.chooses and REDACTED in found:
            return REDACTED
        return MISSING if not found else found[0] if path.single else found
    if not isinstance(document, dict) or key not in document:
        return MISSING
    if several and len(values := [value for name, value in body.form() if name == key]) > 1:
        return values
    return document[key]
