"""Numbers in the cells of a grid, shaded by lightness: confusion matrices and the agreement of annotators."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar

from evaluations.charts.drawing import TEXT, Chart, Label, in_words, named, plural, text_width
from evaluations.statistics import Measure
from evaluations.tables import bare, visible, written

DARKEST = 0.6  # opacity for a share of 1: text on it has a contrast of at least 4.5:1 in both colour schemes
NAMES = 150
BOLD = 0.85  # bold letters are wider by this factor
NEVER = Measure.missing("no case in common")
ABSENT = "–"


@dataclass(frozen=True, slots=True)
class GridCell:
    """A cell at corner ``x``, ``y``. ``shade`` is an opacity; ``small`` is below the number; ``marked``: framed."""

    x: float
    y: float
    text: str
    small: str
    shade: float
    hatched: bool
    marked: bool
    title: str

    @property
    def corner(self) -> str:
        return f"{self.x:g} {self.y:g}"


@dataclass(frozen=True, slots=True)
class Heading:
    x: float
    y: float
    name: Label
    small: str = ""
    number: str = ""  # before the name, which then moves aside


@dataclass(frozen=True, slots=True)
class Grid(Chart):
    """``across`` and ``down`` are the titles of columns and rows, None if both are the same people."""

    template: ClassVar[str] = "evaluations/charts/grid.html"
    cell_width: int
    cell_height: int
    left: int
    top: int
    across: Label | None
    down: Label | None
    key: str
    rows: tuple[Heading, ...]
    columns: tuple[Heading, ...]
    cells: tuple[GridCell, ...]

    @property
    def empty(self) -> bool:
        return not self.cells

    @property
    def middle(self) -> float:
        return self.left + self.cell_width * len(self.columns) / 2

    @property
    def headings_at(self) -> int:
        return self.top - 10

    @property
    def baseline(self) -> float:
        """Return the baseline of a single line in its cell."""
        return self.cell_height / 2 + 5

    @property
    def cell_middle(self) -> float:
        return self.cell_width / 2

    # Rectangles of the same style share one path: templates draw that much faster than separate rectangles.

    @property
    def every(self) -> str:
        return self._path(self.cells)

    @property
    def hatched(self) -> str:
        return self._path([cell for cell in self.cells if cell.hatched])

    @property
    def plates(self) -> str:
        return self._path([cell for cell in self.cells if cell.hatched and cell.text], 44, 8)

    @property
    def frames(self) -> str:
        return self._path([cell for cell in self.cells if cell.marked], 2, 2)

    @property
    def shades(self) -> list[tuple[float, str]]:
        found = sorted({cell.shade for cell in self.cells if cell.shade})
        return [(shade, self._path([cell for cell in self.cells if cell.shade == shade])) for shade in found]

    def _path(self, cells: Iterable[GridCell], across: int = 0, down: int = 0) -> str:
        """Return rectangles that are smaller than their cells by ``across`` and ``down`` on each side."""
        wide, high = self.cell_width - 2 * across, self.cell_height - 2 * down
        return "".join(f"M{cell.x + across:g} {cell.y + down:g}h{wide}v{high}h-{wide}z" for cell in cells)


def _shade(share: float) -> float:
    """Return the opacity for a share, in steps of 5%; 0 for a negative share."""
    return round(DARKEST * round(20 * min(1.0, max(0.0, share))) / 20, 2)


# --- confusion -------------------------------------------------------------------------------------------------------

CONFUSION = (124, 54)


def confusion(
    name: str,
    title: str,
    table: Sequence[Sequence[int]],
    rows: Sequence[str],
    columns: Sequence[str] | None = None,
    *,
    down: str = "People",
    across: str = "Judge",
) -> Grid:
    """Draw a confusion matrix: ``table[row][column]`` counts, each with its share of the row, which is also its shade.

    Without ``columns`` both sides have the same categories, and the diagonal (agreement) has a frame.
    """
    wide, high = CONFUSION
    top = 48
    names = list(rows if columns is None else columns)
    return Grid(
        name=name,
        title=title,
        description=_confusion_in_words(table, rows, names, down, across, columns is None),
        width=NAMES + wide * len(names) + 8,
        height=top + high * len(rows) + 8,
        cell_width=wide,
        cell_height=high,
        left=NAMES,
        top=top,
        across=Label.fitting(across, BOLD * wide * len(names)),
        down=Label.fitting(down, BOLD * (NAMES - 12)),
        key="Shares are of the row; the stronger the shade, the more."
        + (" Frames mark agreement." if columns is None else ""),
        rows=tuple(
            Heading(0, top + high * place, Label.fitting(text, NAMES - 12), f"n {sum(table[place]):,}")
            for place, text in enumerate(rows)
        ),
        columns=tuple(
            Heading(NAMES + wide * (place + 0.5), top - 10, Label.fitting(text, wide - 6))
            for place, text in enumerate(names)
        ),
        cells=tuple(
            _counted(table, (row, column), (rows[row], names[column]), (down, across), top, columns is None)
            for row in range(len(rows))
            for column in range(len(names))
        ),
    )


def _counted(
    table: Sequence[Sequence[int]],
    place: tuple[int, int],
    names: tuple[str, str],
    sides: tuple[str, str],
    top: int,
    same: bool,
) -> GridCell:
    row, column = place
    number, total = table[row][column], sum(table[row])
    share = written(number / total, "rate") if total else ""
    return GridCell(
        x=NAMES + CONFUSION[0] * column,
        y=top + CONFUSION[1] * row,
        text=f"{number:,}",
        small=share,
        shade=_shade(number / total) if total else 0,
        hatched=not total,
        marked=bool(same and total and row == column),
        title=f"{named(sides[0])}: {named(names[0])}, {named(sides[1])}: {named(names[1])}: {number:,}"
        + (f" of {total:,} ({share})" if total else ", no cases in this row"),
    )


def _confusion_in_words(
    table: Sequence[Sequence[int]], rows: Sequence[str], columns: Sequence[str], down: str, across: str, same: bool
) -> str:
    total = sum(map(sum, table))
    if not total:
        return "There are no cases."
    said = []
    if same:
        right = sum(table[place][place] for place in range(len(rows)))
        said.append(f"The same in {right:,} of {plural(total, 'case')} ({written(right / total, 'rate')}).")
    for name, counted in zip(rows, table, strict=True):
        of = sum(counted)
        parts = ", ".join(f"{named(to)} {number:,}" for to, number in zip(columns, counted, strict=True))
        said.append(f"Of {of:,} with {named(down)}: {named(name)}, {named(across)}: {parts}.")
    return " ".join(said)


# --- heat map --------------------------------------------------------------------------------------------------------

HEAT = (52, 34)


def heat_map(
    name: str,
    title: str,
    names: Sequence[str],
    pairs: Mapping[tuple[str, str], Measure],
    *,
    kind: str = "coefficient",
) -> Grid:
    """Draw the agreement of every two of ``names``; ``pairs`` has each two once, in any order. 1 is the darkest shade.

    The diagonal is blank. Missing pairs (without a case in common) have a dash, and undefined measures are hatched.
    Columns have the rows' names if these are short, else their numbers.
    """
    wide, high = HEAT
    numbered = any(text_width(visible(text), TEXT) > wide - 6 for text in names)
    top = 26
    left = NAMES + 30 if numbered else 16 + max([20, *(round(text_width(visible(text))) for text in names)])
    return Grid(
        name=name,
        title=title,
        description=_heat_in_words(names, pairs, kind),
        width=left + wide * len(names) + 4,
        height=top + high * len(names) + 4,
        cell_width=wide,
        cell_height=high,
        left=left,
        top=top,
        across=None,
        down=None,
        key=_heat_key(names, pairs),
        rows=tuple(
            Heading(0, top + high * place, label, "", str(place + 1) if numbered else "")
            for place, label in enumerate(Label.all_fitting(names, left - 12 - 30 * numbered))
        ),
        columns=tuple(
            Heading(left + wide * (place - 0.5), top - 8, Label.fitting(str(place) if numbered else text, wide))
            for place, text in enumerate(names, 1)
        ),
        cells=tuple(
            _agreed(left + wide * across, top + high * down, (one, other), pairs, kind)
            for down, one in enumerate(names)
            for across, other in enumerate(names)
            if across != down
        ),
    )


def _agreed(x: float, y: float, two: tuple[str, str], pairs: Mapping[tuple[str, str], Measure], kind: str) -> GridCell:
    given = _of_two(two, pairs)
    measure = given or NEVER
    value = measure.value
    return GridCell(
        x=x,
        y=y,
        text=ABSENT if given is None else "" if value is None else bare(value, kind),
        small="",
        shade=0 if value is None else _shade(value),
        hatched=given is not None and value is None,
        marked=False,
        title=f"{named(two[0])} and {named(two[1])}: {in_words(measure, kind)}",
    )


def _of_two(two: tuple[str, str], pairs: Mapping[tuple[str, str], Measure]) -> Measure | None:
    return pairs.get(two) or pairs.get(two[::-1])


def _undefined_and_absent(names: Sequence[str], pairs: Mapping[tuple[str, str], Measure]) -> tuple[int, int]:
    found = [_of_two(two, pairs) for two in combinations(names, 2)]
    return sum(one is not None and one.value is None for one in found), found.count(None)


def _heat_key(names: Sequence[str], pairs: Mapping[tuple[str, str], Measure]) -> str:
    undefined, absent = _undefined_and_absent(names, pairs)
    hatched = "; hatched is undefined, and each cell says why" if undefined else ""
    dashed = f"; {ABSENT} had no case in common" if absent else ""
    return f"The stronger the shade, the more agreement{hatched}{dashed}."


def _heat_in_words(names: Sequence[str], pairs: Mapping[tuple[str, str], Measure], kind: str) -> str:
    known = [(one, other, measure) for (one, other), measure in pairs.items() if measure.value is not None]
    every = len(names) * (len(names) - 1) // 2
    undefined, absent = _undefined_and_absent(names, pairs)
    if not known:
        return f"Undefined for every two of {plural(len(names), 'annotator')}." if every else "There are no two people."
    by_value = sorted(known, key=lambda pair: pair[2].value or 0.0)
    ends = [f"{named(one)} and {named(other)}, {in_words(measure, kind)}" for one, other, measure in by_value]
    said = f"{plural(every, 'pair')} of annotators. "
    said += f"Lowest: {ends[0]}; highest: {ends[-1]}." if len(ends) > 1 else f"Known for one: {ends[0]}."
    said += f" Undefined: {undefined:,}." if undefined else ""
    return said + (f" Without a case in common: {absent:,}." if absent else "")
