"""Tables, the same behind every chart, on a page, as CSV and on a terminal; and the format of every number."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from annotation.formats.spreadsheets import UNSEEN, csv_text
from evaluations.statistics import Measure

Value = Measure | float | int | str | None

MINUS = "\N{MINUS SIGN}"
UNKNOWN = "not known"
NOTHING = ""  # a cell that does not apply, as opposed to an unknown one
LONGEST = 40  # maximum terminal columns of a cell

_BREAK = re.compile(r"[\t\r\n\u2028\u2029]+")
_INVISIBLE = re.compile(f"[{UNSEEN}]")


@dataclass(frozen=True, slots=True)
class Column:
    """``name`` is the heading, and in snake_case the name in CSV. ``kind`` is the format of its values:

    text, count, rate (a fraction, written as percent), coefficient (two digits and a sign), coefficient4 (four digits,
    as in published tables), points (a difference of rates, written as percentage points with a sign), size (the same
    for a value without a sign), seconds, dollars, number.

    ``of`` finds the value in a record of `tabulate`: a function, or a path of attributes, keys and indices, also as
    text joined by dots.
    """

    name: str
    kind: str = "text"
    explanation: str = ""
    of: str | tuple[str | int, ...] | Callable[[Any], Value] = ""

    @property
    def numeric(self) -> bool:
        return self.kind != "text"

    def value_in(self, record: Any) -> Value:
        """Return the value of the record; "" (does not apply) if an attribute on the path is None."""
        if callable(self.of):
            return self.of(record)
        found = record
        for step in self.of.split(".") if isinstance(self.of, str) else self.of:
            if found is None:
                return NOTHING
            if isinstance(found, tuple):
                found = found[int(step)]
            else:
                found = found[step] if isinstance(found, Mapping) else getattr(found, str(step))
        value: Value = found
        return value


@dataclass(frozen=True, slots=True)
class Cell:
    """A displayed value.

    ``text`` is the value, or the reason why there is none (``undefined``). ``interval`` ("75.0 to 89.2") and ``counts``
    ("87/105", or "n 105") are empty if there are none.
    """

    text: str
    numeric: bool = False
    interval: str = ""
    counts: str = ""
    undefined: bool = False
    link: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """``name`` is for addresses (letters and dashes), ``title`` for people; ``note`` has important explanations.

    ``links`` maps row numbers to the address that the first cell links to.
    """

    name: str
    title: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Value]]
    note: str = ""
    links: dict[int, str] = field(default_factory=dict)

    @property
    def body(self) -> list[list[Cell]]:
        """Return every value as displayed, with the link of its row in the first cell."""
        return [
            [
                cell(value, column.kind, self.links.get(number, "") if place == 0 else "")
                for place, (column, value) in enumerate(zip(self.columns, row, strict=True))
            ]
            for number, row in enumerate(self.rows)
        ]

    @property
    def figures(self) -> list[tuple[Column, Cell]]:
        """Return columns with values of a one-row table, for display as a vertical list; empty without a row."""
        return list(zip(self.columns, self.body[0], strict=True)) if self.rows else []

    @property
    def explained(self) -> list[Column]:
        return [column for column in self.columns if column.explanation]

    def as_csv(self) -> str:
        """Return CSV with one column for each value; a measure also has ``_low``, ``_high``, ``_n`` and ``_undefined``.

        Numbers are as computed: rates and differences as fractions, without separators or units.
        """
        measured = [any(isinstance(row[place], Measure) for row in self.rows) for place in range(len(self.columns))]
        rows = (
            [part for value, wide in zip(row, measured, strict=True) for part in _csv_parts(value, wide)]
            for row in self.rows
        )
        return csv_text([_csv_names(self.columns, measured), *rows])

    def as_text(self, width: int = 120) -> str:
        """Return text for a terminal: aligned columns, undefined values as numbered notes below.

        A table wider than ``width`` is split into blocks below each other, each with the first column.
        """
        notes: dict[str, int] = {}
        columns = [_text_column(column, cells, notes) for column, cells in self._columns_of_cells()]
        lines = [visible(self.title), *([visible(self.note)] if self.note else [])]
        for block in _blocks(columns, width):
            lines += ["", *(" ".join(parts).rstrip() for parts in zip(*block, strict=True))]
        if not self.rows:
            lines.append("(no rows)")
        lines += ["", *(f"({number}) {reason}" for reason, number in notes.items())] if notes else []
        return "\n".join(lines) + "\n"

    def _columns_of_cells(self) -> Iterator[tuple[Column, list[Cell]]]:
        body = self.body
        for place, column in enumerate(self.columns):
            yield column, [row[place] for row in body]


def tabulate(
    name: str,
    title: str,
    columns: Sequence[Column],
    records: Iterable[Any],
    note: str = "",
    links: dict[int, str] | None = None,
) -> Table:
    rows = [[column.value_in(record) for column in columns] for record in records]
    return Table(name, title, columns, rows, note, links or {})


# --- formats of values -----------------------------------------------------------------------------------------------


def cell(value: Value, kind: str = "text", link: str = "") -> Cell:
    """Return a value of this kind as displayed; never "NaN" and never "None"."""
    numeric = kind != "text"
    if isinstance(value, Measure):
        if not _known(value.value):
            why = value.undefined or UNKNOWN
            return Cell(f"undefined: {visible(why)}", numeric, counts=counts(value), undefined=True, link=link)
        return Cell(written(value.value, kind), numeric, interval(value, kind), counts(value), link=link)
    if isinstance(value, str):
        return Cell(visible(value), numeric, link=link)
    if not _known(value):
        return Cell(UNKNOWN if numeric else "", numeric, undefined=numeric, link=link)
    return Cell(written(value, kind), numeric, link=link)


def written(value: float | None, kind: str) -> str:
    """Format a number of this kind: "83.3%", "0.74", "+3.8", "48 s", "$0.0123", "1,302"; with a real minus sign."""
    if value is None or not math.isfinite(value):
        return UNKNOWN
    if isinstance(value, bool):
        return "yes" if value else "no"
    return _FORMATS[kind](float(value)).replace("-", MINUS)


def interval(measure: Measure, kind: str) -> str:
    if measure.low is None or measure.high is None or not (_known(measure.low) and _known(measure.high)):
        return ""
    return f"{bare(measure.low, kind)} to {bare(measure.high, kind)}"


def bare(value: float | None, kind: str) -> str:
    return written(value, kind).removesuffix("%").removesuffix(" s")


def counts(measure: Measure) -> str:
    """Return the counts of a measure: "87/105" for a rate, else "n 105"."""
    return f"n {measure.n:,}" if measure.hits is None else f"{measure.hits:,}/{measure.n:,}"


def visible(text: str) -> str:
    """Return the text as one line; invisible characters, which could control a terminal, become a mark."""
    return _INVISIBLE.sub("\N{REPLACEMENT CHARACTER}", _BREAK.sub(" ", text))


def _known(value: float | None) -> bool:
    return value is not None and math.isfinite(value)


def _signless_zero(text: str) -> str:
    """Remove the sign of -0.0 and +0.0."""
    return text.lstrip("+-") if not text.strip("+-0.") else text


def _rate(value: float) -> str:
    return _signless_zero(f"{value * 100:.1f}") + "%"


def _seconds(value: float) -> str:
    return f"{value:.1f} s" if abs(value) < 10 and value != int(value) else f"{_signless_zero(f'{value:,.0f}')} s"


def _dollars(value: float) -> str:
    """Format with at least four decimals below one dollar, more if needed for two significant digits."""
    sign, size = ("-" if value < 0 else ""), abs(value)
    if size == 0 or size >= 1:
        return f"{sign if size else ''}${size:,.2f}"
    if size < 1e-6:
        return f"< {sign}$0.000001" if value > 0 else f"> {sign}$0.000001"
    return f"{sign}${size:.{max(4, 1 - math.floor(math.log10(size)))}f}"


def _number(value: float) -> str:
    """Format with three significant digits; no decimals from 100."""
    if 0 < abs(value) < 0.00005:
        return "< 0.0001" if value > 0 else "> -0.0001"
    if value == int(value) or abs(value) >= 100:
        return _signless_zero(f"{value:,.0f}")
    digits = 2 - math.floor(math.log10(abs(value)))
    return f"{value:.{min(4, digits)}f}".rstrip("0").rstrip(".")


_FORMATS: dict[str, Callable[[float], str]] = {
    "text": _number,
    "count": lambda value: f"{value:,.0f}",
    "rate": _rate,
    "coefficient": lambda value: _signless_zero(f"{value:.2f}"),
    "coefficient4": lambda value: _signless_zero(f"{value:.4f}"),
    "points": lambda value: _signless_zero(f"{value * 100:+.1f}"),
    "size": lambda value: _signless_zero(f"{value * 100:.1f}"),
    "seconds": _seconds,
    "dollars": _dollars,
    "number": _number,
}


# --- CSV -------------------------------------------------------------------------------------------------------------


def _csv_names(columns: Sequence[Column], measured: Sequence[bool]) -> list[object]:
    """Return names in snake_case; a name gets a number if it, or one of its parts, already exists."""
    names: list[object] = []
    for column, wide in zip(columns, measured, strict=True):
        name = re.sub(r"\W+", "_", column.name.lower()).strip("_") or "column"
        numbered = (_csv_parts_of(name if number == 1 else f"{name}_{number}", wide) for number in count(1))
        names += next(parts for parts in numbered if not set(parts) & set(names))
    return names


def _csv_parts_of(name: str, wide: bool) -> list[str]:
    return [name, *(f"{name}_{part}" for part in ("low", "high", "n", "undefined") if wide)]


def _csv_parts(value: Value, wide: bool) -> list[object]:
    if isinstance(value, Measure):
        return [value.value, value.low, value.high, value.n, value.undefined]
    return [value, "", "", "", ""] if wide else [value]


# --- terminal --------------------------------------------------------------------------------------------------------


def _text_column(column: Column, cells: Sequence[Cell], notes: dict[str, int]) -> list[str]:
    """Return the heading and cells, all of one width: values aligned right, with their intervals, aligned left."""
    values = [_fitted(_value_in_text(cell)) for cell in cells]
    asides = [_aside(cell, notes) for cell in cells]
    wide, beside = max(map(columns_of, values), default=0), max(map(len, asides), default=0)
    if not column.numeric:
        lines = [_padded(value, wide) for value in values]
    else:
        lines = [
            f"{_padded(value, wide, right=True)}{f' {aside:<{beside}}' if beside else ''}"
            for value, aside in zip(values, asides, strict=True)
        ]
    heading = _fitted(visible(column.name))
    full = max([columns_of(heading), *map(columns_of, lines)])
    return [_padded(line, full, right=column.numeric) + " " for line in [heading, *lines]]


def _value_in_text(cell: Cell) -> str:
    return "–" if cell.undefined else cell.text


def _aside(cell: Cell, notes: dict[str, int]) -> str:
    if cell.undefined:
        return f"({notes.setdefault(cell.text, len(notes) + 1)})"
    return f"[{', '.join(cell.interval.split(' to '))}]" if cell.interval else ""


def _blocks(columns: list[list[str]], width: int) -> Iterator[list[list[str]]]:
    """Yield as many columns as fit next to each other, always after the first column."""
    if not columns:
        return
    first, block = columns[0], [columns[0]]
    for column in columns[1:]:
        if len(block) > 1 and sum(columns_of(part[0]) + 1 for part in [*block, column]) > width:
            yield block
            block = [first]
        block.append(column)
    yield block


def columns_of(text: str) -> int:
    """Count the terminal columns of a text: wide characters two, combining marks none."""
    return sum(
        0
        if unicodedata.combining(char) or unicodedata.category(char) in {"Mn", "Me", "Cf"}
        else 1 + (unicodedata.east_asian_width(char) in "WF")
        for char in text
    )


def _fitted(text: str) -> str:
    if columns_of(text) <= LONGEST:
        return text
    while columns_of(text) >= LONGEST:
        text = text[:-1]
    return f"{text}…"


def _padded(text: str, width: int, *, right: bool = False) -> str:
    space = " " * (width - columns_of(text))
    return space + text if right else text + space
