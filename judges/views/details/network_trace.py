"""The checks of a network trace: what each asked for, what it found, and field by field where the two differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from judges.scorers.network_trace.judge import NAME
from judges.views.details.shapes import dicts, mapping, text, whole

KIND = NAME
MOST_CHECKS, MOST_FIELDS = 500, 200
TONES = {"pass": "ok", "fail": "bad", "error": "warn"}


@dataclass(frozen=True, slots=True)
class Field:
    """One field of an event beside what was expected of it."""

    name: str
    expected: str
    actual: str
    equal: bool
    note: str


@dataclass(frozen=True, slots=True)
class Seen:
    """A request of the trace: the one that matched, or the nearest one to what was asked for."""

    index: int | None
    method: str
    url: str
    status: str
    event_type: str


@dataclass(frozen=True, slots=True)
class Check:
    name: str
    key_point: str
    evaluator: str
    result: str
    message: str
    should_not_exist: bool
    event: Seen | None
    candidates: int | None
    fields: list[Field]

    @property
    def tone(self) -> str:
        """Of the chip."""
        return TONES.get(self.result, "")

    @property
    def differing(self) -> int:
        return sum(not field.equal for field in self.fields)


@dataclass(frozen=True, slots=True)
class Checked:
    """``trace`` are the facts of the trace in words, "" where there was none."""

    compat: str
    trace: list[tuple[str, str]]
    version: int | None
    digest: str
    checks: list[Check]

    @property
    def counts(self) -> list[tuple[str, str, int]]:
        """Result, tone and number, in the order pass, fail, error."""
        found = Counter(check.result for check in self.checks)
        return [(result, tone, found[result]) for result, tone in TONES.items() if found[result]]


def read(details: Mapping[str, Any]) -> Checked:
    expectation = mapping(details.get("expectation"))
    return Checked(
        compat=text(details.get("compat"), 60),
        trace=_trace(mapping(details.get("trace"))),
        version=whole(expectation.get("version")) or None,  # 0 is what is being written
        digest=text(expectation.get("digest"), 64),
        checks=[_check(given) for given in dicts(details.get("checks"), MOST_CHECKS)],
    )


def _trace(given: Mapping[str, Any]) -> list[tuple[str, str]]:
    names = (("file", "File"), ("entries", "Entries"), ("events", "Events"), ("navigations", "Navigations"))
    return [(title, text(given.get(name), 300)) for name, title in names if given.get(name) is not None]


def _check(given: Mapping[str, Any]) -> Check:
    event = mapping(given.get("event"))
    return Check(
        name=text(given.get("name"), 500),
        key_point=text(given.get("key_point"), 1000),
        evaluator=text(given.get("evaluator"), 40),
        result=text(given.get("result"), 20),
        message=text(given.get("message")),
        should_not_exist=given.get("should_not_exist") is True,
        event=_seen(event) if event else None,
        candidates=whole(given.get("candidates")),
        fields=[_field(one) for one in dicts(given.get("differences"), MOST_FIELDS)],
    )


def _seen(given: Mapping[str, Any]) -> Seen:
    return Seen(
        index=whole(given.get("index")),
        method=text(given.get("method"), 20),
        url=text(given.get("url"), 4000),
        status=text(given.get("status"), 20),
        event_type=text(given.get("event_type"), 20),
    )


def _field(given: Mapping[str, Any]) -> Field:
    return Field(
        name=text(given.get("field"), 200),
        expected=text(given.get("expected"), 4000),
        actual=text(given.get("actual"), 4000),
        equal=given.get("equal") is True,
        note=text(given.get("note"), 1000),
    )
