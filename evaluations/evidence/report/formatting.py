"""Template filters of the report page. Values of a bundle are untrusted: a value of a wrong type is shown as a dash."""

from __future__ import annotations

from typing import Any

from django.template import Library
from django.utils.html import format_html
from django.utils.safestring import SafeString

from evaluations.verifier.values import UNSHOWABLE

DASH = "–"
LONGEST_SHOWN = 600  # characters of a text of the bundle
FORMATS = {"count": "{:,.0f}", "rate": "{:.1f}%", "points": "{:.1f}%", "coefficient": "{:.3f}", "number": "{:.1f}"}

register = Library()


@register.filter
def shown(value: Any, longest: int = LONGEST_SHOWN) -> str:
    """Return a text as one line without invisible characters, cut to ``longest``; the template escapes it."""
    if value is None or value == "":
        return DASH
    text = value if isinstance(value, str) else ascii(value)  # the same in every Python version
    cut = text if len(text) <= longest else f"{text[: longest - 1]}…"
    return UNSHOWABLE.sub("\ufffd", " ".join(cut.splitlines()))


def at(value: Any, *keys: str) -> Any:
    """Return the value under nested keys; None if there is none."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


@register.filter
def entries(value: Any) -> list[Any]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def as_number(value: Any) -> float | None:
    """Return a number that can be shown; None for anything else."""
    fits = isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e12
    return float(value) if fits else None


@register.filter
def number(value: Any, kind: str = "count") -> str:
    """Format a number by one of `FORMATS`, with a real minus sign."""
    if (found := as_number(value)) is None:
        return DASH
    return FORMATS[kind].format(100 * found if kind in ("rate", "points") else found).replace("-", "−")


def interval(low: Any, high: Any, kind: str) -> str | SafeString:
    """Format an interval, such as "59.6 to 98.2%"; empty without an interval."""
    if as_number(low) is None or as_number(high) is None:
        return ""
    start = number(low, kind).removesuffix("%")
    return format_html('<span class="interval">{} to {}</span>', start, number(high, kind))


@register.filter
def measure(figure: Any, kind: str = "coefficient") -> SafeString:
    """Format a figure with its interval, or the reason why it is undefined."""
    value = at(figure, "value")
    if as_number(value) is None:
        return format_html('<span class="soft">{}</span>', shown(at(figure, "undefined")))
    ends = interval(at(figure, "low"), at(figure, "high"), kind)
    return format_html("{} {}" if ends else "{}", number(value, kind), ends)


@register.filter
def moment(value: Any) -> str:
    """Format a time to the minute."""
    if isinstance(value, str) and value.endswith("+00:00"):
        return f"{shown(value[:16].replace('T', ' '))} UTC"
    return shown(value) if isinstance(value, str) else DASH


@register.filter
def minutes(seconds: Any) -> str:
    if (found := as_number(seconds)) is None:
        return DASH
    whole = round(found)
    return f"{whole // 60} min {whole % 60:02d} s" if whole >= 60 else f"{whole} s"
