"""Common parts of both demo sites: requests, replies, escaping."""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape
from pathlib import Path

ASSETS = Path(__file__).parent / "assets"


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request; ``values`` are the query of a GET or the form of a POST, ``cart`` the slugs in the cookie."""

    method: str
    path: str
    values: dict[str, list[str]]
    cart: tuple[str, ...] = ()

    def one(self, name: str, default: str = "") -> str:
        return self.values.get(name, [default])[0]

    def many(self, name: str) -> list[str]:
        return self.values.get(name, [])

    def whole(self, name: str) -> int | None:
        """Return a whole number; None if it is absent or not a number."""
        text = self.one(name).strip().lstrip("$").replace(",", "")
        return int(text) if text.isdecimal() else None


@dataclass(frozen=True, slots=True)
class Reply:
    """One HTTP reply; ``status`` as in the status line, e.g. ``200 OK``."""

    body: str
    status: str = "200 OK"
    headers: tuple[tuple[str, str], ...] = field(default=())
    mime_type: str = "text/html; charset=utf-8"


def redirect(location: str, *headers: tuple[str, str]) -> Reply:
    return Reply("", "303 See Other", (("Location", location), *headers))


def document(title: str, theme: str, body: str) -> str:
    """Return a complete HTML document with the style sheet of ``theme`` (shop or stay)."""
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<link rel="icon" href="data:,"><link rel="stylesheet" href="/{theme}.css"></head><body>{body}</body>'
        "</html>"
    )


def style_sheet(theme: str) -> Reply:
    return Reply((ASSETS / f"{theme}.css").read_text("utf-8"), mime_type="text/css; charset=utf-8")


def stars(rating: float) -> str:
    """Return five stars; the width of the filled part is the rating."""
    return f'<span class="stars"><i style="width:{rating * 20:.0f}%">★★★★★</i><b>★★★★★</b></span>'


def facts_table(rows: tuple[tuple[str, str], ...]) -> str:
    cells = "".join(f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>" for name, value in rows)
    return f'<table class="facts">{cells}</table>'


def field_row(name: str, label: str, value: str = "", *, kind: str = "text", hint: str = "") -> str:
    """Return a labelled text field."""
    return (
        f'<label class="field"><span>{escape(label)}</span>'
        f'<input type="{kind}" name="{name}" value="{escape(value)}" placeholder="{escape(hint)}" '
        'autocomplete="off"></label>'
    )


def choice(kind: str, name: str, value: str, label: str, *, checked: bool = False) -> str:
    """Return a checkbox or radio button with its label."""
    mark = " checked" if checked else ""
    return (
        f'<label class="choice"><input type="{kind}" name="{name}" value="{escape(value)}"{mark}>'
        f"<span>{escape(label)}</span></label>"
    )
