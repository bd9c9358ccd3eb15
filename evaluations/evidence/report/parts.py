"""Pieces of the report page: text made safe, numbers made readable, tables and two small drawings.

Nothing of a bundle is trusted to be sensible: a value that is not what its place needs is shown as a dash.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape as escaped_html
from typing import Any

from evaluations.verifier.values import UNSHOWABLE

DASH = "–"
LONGEST_SHOWN = 600  # characters of a text out of the bundle
VERDICT_NAMES = {1: "success", 0: "failure", 2: "not executable", None: "without a final verdict"}
DRAWN_WIDTH, ROW_HEIGHT, ROOM_BELOW = 360, 40, 22


class Html(str):
    """Text that is HTML already."""

    __slots__ = ()


def shown(value: Any, longest: int = LONGEST_SHOWN) -> Html:
    """Anything out of a bundle as HTML, cut to ``longest`` characters."""
    if isinstance(value, Html):
        return value
    if value is None or value == "":
        return Html(DASH)
    text = value if isinstance(value, str) else ascii(value)  # the same in every Python
    cut = text if len(text) <= longest else f"{text[: longest - 1]}…"
    return Html(escaped_html(UNSHOWABLE.sub("\ufffd", " ".join(cut.splitlines()))))


def at(value: Any, *keys: str) -> Any:
    """The value under keys within keys; None where there is none."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def entries(value: Any) -> list[Any]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def as_number(value: Any) -> float | None:
    """A number that can be shown; None for everything else."""
    fits = isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e12
    return float(value) if fits else None


def count_shown(value: Any) -> Html:
    number = as_number(value)
    return Html(DASH if number is None else f"{number:,.0f}")


def percent_shown(value: Any) -> Html:
    number = as_number(value)
    return Html(DASH if number is None else f"{100 * number:.1f} %".replace("-", "−"))


def decimal_shown(value: Any, digits: int = 3) -> Html:
    number = as_number(value)
    return Html(DASH if number is None else f"{number:.{digits}f}".replace("-", "−"))


def interval_shown(low: Any, high: Any, percent: bool = False, digits: int = 3) -> Html:
    """Nothing where there is no interval."""
    if as_number(low) is None or as_number(high) is None:
        return Html("")
    ends = [percent_shown(end)[:-2] if percent else decimal_shown(end, digits) for end in (low, high)]
    unit = " %" if percent else ""
    return Html(f'<span class="interval">{ends[0]} to {ends[1]}{unit}</span>')


def measure_shown(measure: Any, percent: bool = False, digits: int = 3) -> Html:
    """A figure with its interval, or why there is none."""
    if as_number(at(measure, "value")) is None:
        why = at(measure, "undefined")
        return Html(f'<span class="soft">{shown(why)}</span>')
    value = at(measure, "value")
    number = percent_shown(value) if percent else decimal_shown(value, digits)
    return Html(f"{number} {interval_shown(at(measure, 'low'), at(measure, 'high'), percent, digits)}".strip())


def moment_shown(value: Any) -> Html:
    """A time to the minute."""
    if not isinstance(value, str) or not value:
        return Html(DASH)
    utc = " UTC" if value.endswith("+00:00") else ""
    return Html(f"{shown(value[:16].replace('T', ' '))}{utc}") if utc else shown(value)


def verdict_kind(verdict: Any) -> str:
    """The class of its colour."""
    return "is-none" if verdict is None else f"is-{int(verdict)}"


def verdict_shown(verdict: Any) -> Html:
    return Html(f'<span class="key {verdict_kind(verdict)}"><span>{VERDICT_NAMES[verdict]}</span></span>')


def table_shown(
    headings: Sequence[str], rows: Iterable[Sequence[Any]], numbers: Sequence[int] = (), kind: str = "wide"
) -> Html:
    """A table; the columns in ``numbers`` stand to the right. Nothing without rows. ``kind`` is a class."""
    lines = list(rows)
    if not lines:
        return Html("")
    marks = [' class="number"' if column in numbers else "" for column in range(len(headings))]
    head = "".join(f'<th scope="col"{mark}>{shown(name)}</th>' for mark, name in zip(marks, headings, strict=True))
    body = "\n".join(
        "<tr>" + "".join(f"<td{mark}>{shown(cell)}</td>" for mark, cell in zip(marks, line, strict=True)) + "</tr>"
        for line in lines
    )
    return Html(f'<div class="{kind}"><table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table></div>')


def list_shown(lines: Iterable[Any]) -> Html:
    items = "\n".join(f"<li>{shown(line)}</li>" for line in lines)
    return Html(f"<ul>\n{items}\n</ul>" if items else "")


def facts_shown(facts: Iterable[tuple[str, Any]]) -> Html:
    pairs = "\n".join(f"<dt>{shown(name)}</dt><dd>{shown(value)}</dd>" for name, value in facts)
    return Html(f'<dl class="facts">\n{pairs}\n</dl>')


# --- drawings --------------------------------------------------------------------------------------------------------


def bar_drawn(parts: Sequence[tuple[str, int]], says: str) -> Html:
    """One bar of all cases; ``parts`` are class and number of each kind."""
    total = sum(number for _, number in parts)
    if not total:
        return Html("")
    pieces, left = [], 0.0
    for kind, number in parts:
        width = 1000 * number / total
        if number:
            pieces.append(f'<rect class="{kind}" x="{left:.2f}" y="0" width="{max(width - 2, 1):.2f}" height="20"/>')
        left += width
    label = escaped_html(says)
    return Html(
        f'<svg class="bar" viewBox="0 0 1000 20" preserveAspectRatio="none" role="img" aria-label="{label}">'
        f"{''.join(pieces)}</svg>"
    )


def intervals_drawn(figures: Sequence[tuple[str, Any]], says: str) -> Html:
    """A dot for each figure, with a line from end to end of its interval, over one axis to 1."""
    known = [(name, figure) for name, figure in figures if as_number(at(figure, "value")) is not None]
    if not known:
        return Html("")
    numbers = [as_number(at(figure, key)) for _, figure in known for key in ("value", "low")]
    least = min(0.0, *(max(-1.0, number) for number in numbers if number is not None))
    start = -1.0 if least < -0.5 else -0.5 if least < 0 else 0.0
    bottom = len(known) * ROW_HEIGHT
    ticks = [start + (1 - start) * place / 4 for place in range(5)]
    rules = "".join(_tick_drawn(_place_drawn(tick, start), bottom, f"{tick:.3g}") for tick in ticks)
    rows = "".join(_row_drawn(name, figure, number, start) for number, (name, figure) in enumerate(known))
    return Html(
        f'<svg class="intervals" viewBox="0 0 {DRAWN_WIDTH} {bottom + ROOM_BELOW}" role="img" '
        f'aria-label="{escaped_html(says)}">{rules}{rows}</svg>'
    )


def _place_drawn(number: float, start: float) -> float:
    inside = min(1.0, max(start, number))
    return 12 + (DRAWN_WIDTH - 24) * (inside - start) / (1 - start)


def _tick_drawn(x: float, bottom: int, name: str) -> str:
    text = name.replace("-", "−")
    return (
        f'<line class="rule" x1="{x:.1f}" x2="{x:.1f}" y1="4" y2="{bottom + 4}"/>'
        f'<text class="tick" x="{x:.1f}" y="{bottom + 18}" text-anchor="middle">{text}</text>'
    )


def _row_drawn(name: str, figure: Any, number: int, start: float) -> str:
    top = number * ROW_HEIGHT
    low, high = as_number(at(figure, "low")), as_number(at(figure, "high"))
    y, value = top + 27, _place_drawn(as_number(at(figure, "value")) or 0.0, start)
    drawn = f'<text x="14" y="{top + 16}">{escaped_html(name)}</text>'
    if low is not None and high is not None:
        left, right = _place_drawn(low, start), _place_drawn(high, start)
        drawn += f'<line class="reach" x1="{left:.1f}" x2="{right:.1f}" y1="{y}" y2="{y}"/>'
    return f'{drawn}<circle class="dot" cx="{value:.1f}" cy="{y}" r="4"/>'
