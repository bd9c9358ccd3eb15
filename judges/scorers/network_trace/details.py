"""Details page of a network trace: the expectation, the finding and the differing fields of each check."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from judges.scorers.detail_values import mapping, read_as, text, whole

TRACE_FACTS = ("file", "entries", "events", "navigations")
TONES = {"pass": "ok", "fail": "bad", "error": "warn"}


@dataclass(frozen=True, slots=True)
class FieldRow:
    name: Annotated[str, 200, "field"]
    expected: Annotated[str, 4000]
    actual: Annotated[str, 4000]
    equal: bool
    note: Annotated[str, 1000]


@dataclass(frozen=True, slots=True)
class EventRow:
    index: int | None
    method: Annotated[str, 20]
    url: Annotated[str, 4000]
    status: Annotated[str, 20]
    event_type: Annotated[str, 20]


@dataclass(frozen=True, slots=True)
class CheckRow:
    name: Annotated[str, 500]
    key_point: Annotated[str, 1000]
    evaluator: Annotated[str, 40]
    result: Annotated[str, 20]
    message: str
    should_not_exist: bool
    event: EventRow | None
    candidates: int | None
    fields: Annotated[list[FieldRow], 200, "differences"]

    @property
    def tone(self) -> str:
        return TONES.get(self.result, "")


@dataclass(frozen=True, slots=True)
class CheckDetails:
    """``trace`` are the facts of the trace as names and texts, empty if there was none."""

    compat: Annotated[str, 60]
    trace: list[tuple[str, str]]
    version: int | None
    digest: str
    checks: Annotated[list[CheckRow], 500]

    @property
    def counts(self) -> list[tuple[str, str, int]]:
        found = Counter(check.result for check in self.checks)
        return [(result, tone, found[result]) for result, tone in TONES.items() if found[result]]


def read_details(details: Mapping[str, Any]) -> CheckDetails:
    expectation, trace = mapping(details.get("expectation")), mapping(details.get("trace"))
    return read_as(
        CheckDetails,
        details,
        trace=[(name.capitalize(), text(trace[name], 300)) for name in TRACE_FACTS if trace.get(name) is not None],
        version=whole(expectation.get("version")) or None,  # 0 is a draft
        digest=text(expectation.get("digest"), 64),
    )
