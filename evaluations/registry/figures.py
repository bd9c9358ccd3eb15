"""Figures of a published version in words, the same on pages, in feeds and on badges."""

from __future__ import annotations

from dataclasses import dataclass

from annotation.formats.printable import counted
from annotation.protocol import MINIMUM_LABELS
from evaluations.models import EntryVersion, Relationship
from evaluations.statistics import Measure
from evaluations.tables import UNKNOWN, interval, visible, written

Method = EntryVersion.Method
NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
EVALUATED_BY = {
    Relationship.FIRST_PARTY: "by the agent's team",
    Relationship.THIRD_PARTY: "independently",
    Relationship.COLLABORATIVE: "by the agent's team with others",
    Relationship.OTHER: "in another way",
}


@dataclass(frozen=True, slots=True)
class Figures:
    """``x`` and the ends of ``span`` are percentages of a chart's width, as text; empty without a rate.

    ``how`` states briefly how the rate was measured. ``who`` states who judged. ``audited`` has the owners' sample.
    """

    rate: str
    interval: str
    x: str
    span: tuple[str, str] | None
    method: str
    how: str
    who: str
    audited: str
    rows: str

    @property
    def in_words(self) -> str:
        ends = f" (95% interval {self.interval})" if self.interval else ""
        return f"{self.rate}{ends}, {self.how[0].lower()}{self.how[1:]}"


def describe_figures(version: EntryVersion) -> Figures:
    ends = version.low, version.high
    return Figures(
        rate="no rate" if version.rate is None else written(version.rate, "rate"),
        interval=interval(measure(version), "rate"),
        x="" if version.rate is None else _percent(version.rate),
        span=None if None in ends else (_percent(ends[0] or 0), _percent(ends[1] or 0)),
        method=version.method,
        how=_describe_method(version),
        who=_describe_people(version),
        audited=_describe_sample(version),
        rows=counted(version.rows, "row"),
    )


def measure(version: EntryVersion) -> Measure:
    if version.rate is None:
        return Measure.missing(UNKNOWN)
    return Measure(version.rate, version.rows, low=version.low, high=version.high)


def _percent(share: float) -> str:
    return f"{100 * share:.1f}%"


def _describe_method(version: EntryVersion) -> str:
    labels = version.people.get("labels", MINIMUM_LABELS)
    people = f"{NUMBERS[labels] if labels < len(NUMBERS) else labels} people"
    return {
        Method.PEOPLE: f"All by {people}",
        Method.SAMPLE: "Planned sample",
        Method.JUDGE: "Judge only",
    }[Method(version.method)]


def _describe_people(version: EntryVersion) -> str:
    parts = [visible(version.judge)] if version.judge else []
    numbers = {name: version.people.get(f"{name}s", 0) for name in ("annotator", "adjudicator")}
    parts += [counted(number, name) for name, number in numbers.items() if number]
    return ", ".join(parts)


def _describe_sample(version: EntryVersion) -> str:
    if not version.audited:
        return ""
    return f"{version.audited['alike']:,} of {version.audited['size']:,} agree"
