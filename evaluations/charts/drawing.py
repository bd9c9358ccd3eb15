"""Axes, ticks and fitted texts, shared by all charts. Lengths are in pixels at the natural size."""

from __future__ import annotations

import math
import re
import sys
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from evaluations.statistics import Measure
from evaluations.tables import interval, visible, written

TEXT = 13  # font sizes; static/css/charts.css has the same
SMALL = 11
FINEST = 1e-9  # relative size below which steps of a scale are indistinguishable
LEAST_NAMES, MOST_NAMES = 184, 330  # pixels of names next to a plot; plots with short names start at the same position


@dataclass(frozen=True, slots=True)
class Chart:
    """``name`` is unique on its page: it becomes part of ids, with a dash for all but letters, digits and dashes.

    ``description`` states in words and numbers what the chart shows. ``width`` and ``height`` are the natural size.
    """

    template: ClassVar[str]

    name: str
    title: str
    description: str
    width: int
    height: int

    def __post_init__(self) -> None:
        """Clean the title: names of agents and judges can contain any characters."""
        object.__setattr__(self, "name", re.sub(r"[^A-Za-z0-9-]+", "-", self.name))
        object.__setattr__(self, "title", visible(self.title))


@dataclass(frozen=True, slots=True)
class Layout:
    """Positions on x: names left of the plot, or ``above`` the marks (their height); end of values, start of counts."""

    names: int
    above: int
    plot: tuple[int, int]
    counts: int
    width: int
    values: int = 0
    sparse: bool = False  # the axis has room only for its ends and zero

    @classmethod
    def beside(cls, names: Sequence[str], counts: int, width: int, values: int = 0) -> Layout:
        """Return a layout with names left of the plot; the other positions are relative to the end of the names."""
        room = names_width(names)
        return cls(room, 0, (room + 16, room + 336), room + counts, room + width, room + values)


@dataclass(frozen=True, slots=True)
class RowChart(Chart):
    """A row for each name. ``narrow`` is the same chart for a phone, with names above their marks."""

    layout: Layout
    narrow: RowChart | None
    rows: tuple[Any, ...]

    @property
    def plot_start(self) -> int:
        return self.layout.plot[0]

    @property
    def why_at(self) -> int:
        return self.plot_start + 4

    @property
    def empty(self) -> bool:
        return not self.rows


@dataclass(frozen=True, slots=True)
class Label:
    text: str
    full: str

    @classmethod
    def fitting(cls, text: str, width: float, size: int = TEXT) -> Label:
        full = visible(text)
        return cls(shortened(full, width, size), full)

    @classmethod
    def all_fitting(cls, texts: Sequence[str], width: float, size: int = TEXT) -> list[Label]:
        """Return fitted labels; different names remain different when they are shortened."""
        fulls = [visible(text) for text in texts]
        return [cls(short, full) for short, full in zip(told_apart(fulls, width, size), fulls, strict=True)]


@dataclass(frozen=True, slots=True)
class Tick:
    at: float
    text: str


@dataclass(frozen=True, slots=True)
class Scale:
    """Map values ``low`` to ``high`` to pixels ``start`` to ``end``; values outside are moved to the nearer end."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def at(self, value: float) -> float:
        # Halved, because the difference of the largest floats overflows.
        low, high = self._bend(self.low) / 2, self._bend(self.high) / 2
        share = (self._bend(value) / 2 - low) / (high - low)
        return round(self.start + min(1.0, max(0.0, share)) * (self.end - self.start), 1)

    def ticks(self, values: Sequence[float], kind: str) -> tuple[Tick, ...]:
        return tuple(Tick(self.at(value), _without_zeros(written(value, kind))) for value in values)

    def _bend(self, value: float) -> float:
        return math.log10(max(value, self.low)) if self.log else value


@dataclass(frozen=True, slots=True)
class Span:
    low: float
    high: float

    @classmethod
    def of(cls, measure: Measure, scale: Scale) -> Span | None:
        if measure.low is None or measure.high is None:
            return None
        return cls(scale.at(measure.low), scale.at(measure.high))


def round_steps(low: float, high: float, about: int = 5) -> list[float]:
    """Return round numbers (1, 2 or 5 times a power of ten apart) from at or below ``low`` to at or above ``high``.

    At least two different numbers for any finite ends: ends that are closer than the finest step are in one step.
    """
    finest = max(FINEST, FINEST * max(abs(low), abs(high)))
    rough = max(high / about - low / about or 1.0, finest)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * 0.999)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [_finite(round(number * step, 12)) for number in range(first, max(last, first + 1) + 1)]


def _finite(number: float) -> float:
    """Clip to the largest finite floats."""
    return max(-sys.float_info.max, min(sys.float_info.max, number))


def powers(low: float, high: float) -> list[float]:
    """Return 1, 2, 5 times powers of ten that enclose a range above zero; only powers if it is wide."""
    first, last = math.floor(math.log10(low) + 1e-9), math.ceil(math.log10(high) - 1e-9)
    factors = (1, 2, 5) if last - first <= 2 else (1,)
    found = [round(factor * 10.0**power, 12) for power in range(first, last + 1) for factor in factors]
    below, above = (
        [value for value in found if value <= low * 1.001],
        [value for value in found if value >= high * 0.999],
    )
    return [value for value in found if max(below) <= value <= min(above)]


def in_words(measure: Measure, kind: str) -> str:
    """Format a measure for a sentence: "83.3% (87 of 105; 95% interval 75.0 to 89.2)"."""
    if measure.value is None:
        return f"undefined: {visible(measure.undefined)} (n {measure.n:,})"
    basis = f"n {measure.n:,}" if measure.hits is None else f"{measure.hits:,} of {measure.n:,}"
    ends = f"; 95% interval {interval(measure, kind)}" if interval(measure, kind) else ""
    return f"{written(measure.value, kind)} ({basis}{ends})"


def named(text: str) -> str:
    """Return a name for a sentence: if it is written from right to left, it does not reorder the sentence."""
    text = visible(text)
    rightward = not any(unicodedata.bidirectional(char) in {"R", "AL", "AN"} for char in text)
    return text if rightward else f"\N{FIRST STRONG ISOLATE}{text}\N{POP DIRECTIONAL ISOLATE}"


def _without_zeros(text: str) -> str:
    """Shorten "20.0%" to "20%", and "$0.0100" to "$0.01"."""
    return re.sub(r"\.?0+(?=\D*$)", "", text) if "." in text else text


def plural(number: int, what: str, many: str = "") -> str:
    return f"{number:,} {what if number == 1 else many or what + 's'}"


# --- fitted texts ----------------------------------------------------------------------------------------------------


def text_width(text: str, size: int = TEXT) -> float:
    """Estimate the width of a text without measuring a font: the widest common font is assumed (DejaVu Sans)."""
    return sum(_EMS.get(char) or _ems(char) for char in text) * size


def shortened(text: str, width: float, size: int = TEXT) -> str:
    """Return the text, or its start and its end (which has the version) with an ellipsis between them."""
    if text_width(text, size) <= width:
        return text
    room = width - text_width("…", size)
    head, tail = _take_fitting(text, room * 0.6, size), _take_fitting(text[::-1], room * 0.4, size)[::-1]
    while tail and _is_attached(tail[0]):
        tail = tail[1:]
    return f"{head}…{tail}"


def names_width(names: Sequence[str]) -> int:
    """Return the width of names next to a plot, within limits."""
    needed = max((text_width(visible(name)) for name in names), default=0.0)
    return math.ceil(min(MOST_NAMES, max(LEAST_NAMES, needed)))


def told_apart(texts: Sequence[str], width: float, size: int = TEXT) -> list[str]:
    """Return `shortened` texts; if different texts would look alike, show their differences, or else add numbers."""
    short = {text: shortened(text, width, size) for text in texts}
    for alike in _alike(short):
        start = next((place for place, chars in enumerate(zip(*alike, strict=False)) if len(set(chars)) > 1), 0)
        short |= {text: _from(text, start, width, size) for text in alike}
    for number, text in enumerate([text for alike in _alike(short) for text in alike], 1):
        short[text] = shortened(text, width - text_width(f" ({number})", size), size) + f" ({number})"
    return [short[text] for text in texts]


def _alike(short: Mapping[str, str]) -> list[list[str]]:
    """Return groups of two or more texts that are shortened to the same text."""
    found: dict[str, list[str]] = {}
    for text, seen in short.items():
        found.setdefault(seen, []).append(text)
    return [texts for texts in found.values() if len(texts) > 1]


def _from(text: str, start: int, width: float, size: int) -> str:
    """Return the first characters, then the text from ``start``, where it differs from others."""
    head = _take_fitting(text[:start], width * 0.3, size)
    if head == text[:start]:
        return shortened(text, width, size)
    while start and _is_attached(text[start : start + 1] or " "):
        start -= 1
    head += "…"
    return head + shortened(text[start:], width - text_width(head, size), size)


def _take_fitting(text: str, room: float, size: int) -> str:
    for place, char in enumerate(text):
        room -= (_EMS.get(char) or _ems(char)) * size
        if room < 0:
            return text[:place]
    return text


def _is_attached(char: str) -> bool:
    """Return whether it belongs to the character before it: marks, joiners, variation selectors."""
    return unicodedata.category(char) in {"Mn", "Me", "Cf"}


def _ems(char: str) -> float:
    if _is_attached(char):
        return 0.2  # not 0: hundreds of them must not make a text count as short
    if unicodedata.east_asian_width(char) in "WF":
        return 1.05
    return 0.78 if char.isupper() else 0.64


_EMS = dict.fromkeys("iljI|!.,:;'` ", 0.34) | dict.fromkeys('ftr()[]-/\\"·', 0.42) | dict.fromkeys("mwMW@%…—", 1.0)
