"""The checks of a network trace: what each asked for, what it found, and field by field where the two differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from judges.scorers.detail_values import dicts, mapping, text, whole

MOST_CHECKS, MOST_FIELDS = 500, 200
TONES = {"pass": "ok", "fail": "bad", "error": "warn"}


@dataclass(frozen=True, slots=True)
class FieldRow:
    """One field of an event beside what was expected of it."""

    name: str
    expected: str
    actual: str
    equal: bool
    note: str


@dataclass(frozen=True, slots=True)
class EventRow:
    """A request of the trace: the one that matched, or the nearest one to what was asked for."""

    index: int | None
    method: str
    url: str
    status: str
    event_type: str


@dataclass(frozen=True, slots=True)
class CheckRow:
    name: str
    key_point: str
    evaluator: str
    result: str
    message: str
    should_not_exist: bool
    event: EventRow | None
    candidates: int | None
    fields: list[FieldRow]

    @property
    def tone(self) -> str:
        return TONES.get(self.result, "")

    @property
    def differing(self) -> int:
        return sum(not field.equal for field in self.fields)


@dataclass(frozen=True, slots=True)
class CheckDetails:
    """``trace`` are the facts of the trace in words, "" where there was none."""

    compat: str
    trace: list[tuple[str, str]]
    version: int | None
    digest: str
    checks: list[CheckRow]

    @property
    def counts(self) -> list[tuple[str, str, int]]:
        found = Counter(check.result for check in self.checks)
        return [(result, tone, found[result]) for result, tone in TONES.items() if found[result]]


def read_details(details: Mapping[str, Any]) -> CheckDetails:
    expectation = mapping(details.get("expectation"))
    return CheckDetails(
        compat=text(details.get("compat"), 60),
        trace=_read_trace(mapping(details.get("trace"))),
        version=whole(expectation.get("version")) or None,  # 0 is what is being written
        digest=text(expectation.get("digest"), 64),
        checks=[_read_check(given) for given in dicts(details.get("checks"), MOST_CHECKS)],
    )


def _read_trace(given: Mapping[str, Any]) -> list[tuple[str, str]]:
    names = (("file", "File"), ("entries", "Entries"), ("events", "Events"), ("navigations", "Navigations"))
    return [(title, text(given.get(name), 300)) for name, title in names if given.get(name) is not None]


def _read_check(given: Mapping[str, Any]) -> CheckRow:
    event = mapping(given.get("event"))
    return CheckRow(
        name=text(given.get("name"), 500),
        key_point=text(given.get("key_point"), 1000),
        evaluator=text(given.get("evaluator"), 40),
        result=text(given.get("result"), 20),
        message=text(given.get("message")),
        should_not_exist=given.get("should_not_exist") is True,
        event=_read_event(event) if event else None,
        candidates=whole(given.get("candidates")),
        fields=[_read_field(one) for one in dicts(given.get("differences"), MOST_FIELDS)],
    )


def _read_event(given: Mapping[str, Any]) -> EventRow:
    return EventRow(
        index=whole(given.get("index")),
        method=text(given.get("method"), 20),
        url=text(given.get("url"), 4000),
        status=text(given.get("status"), 20),
        event_type=text(given.get("event_type"), 20),
    )


def _read_field(given: Mapping[str, Any]) -> FieldRow:
    return FieldRow(
        name=text(given.get("field"), 200),
        expected=text(given.get("expected"), 4000),
        actual=text(given.get("actual"), 4000),
        equal=given.get("equal") is True,
        note=text(given.get("note"), 1000),
    )
