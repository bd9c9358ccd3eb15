"""Readers for untrusted JSON: each returns a value of the expected type, or an empty one."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import MISSING, fields
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

LONGEST = 20_000  # characters of one text on a page; the download of the judgment has the full text
TOO_DEEP = "(nested too deeply to be shown)"
T = TypeVar("T")


def text(value: Any, limit: int = LONGEST) -> str:
    """Return the value as text, cut to ``limit`` characters: "" for None, JSON for a value that is not a string."""
    if value is None:
        return ""
    return (value if isinstance(value, str) else as_json(value))[:limit]


def as_json(value: Any, indent: int | None = None) -> str:
    try:
        return json.dumps(value, indent=indent, ensure_ascii=False, default=str)
    except RecursionError:
        return TOO_DEEP


def texts(value: Any, most: int = 100) -> tuple[str, ...]:
    given = value if isinstance(value, list | tuple) else [] if value in (None, "") else [value]
    return tuple(text(one) for one in given[:most])


def number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:
        return None


def whole(value: Any) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int) or not -(2**31) < value < 2**31:
        return None
    return value


def wholes(value: Any, most: int = 100) -> tuple[int, ...]:
    given = value if isinstance(value, list | tuple) else []
    return tuple(each for one in given[:most] if (each := whole(one)) is not None and each >= 0)


def dicts(value: Any, most: int) -> list[dict[str, Any]]:
    return [one for one in value[:most] if isinstance(one, dict)] if isinstance(value, list) else []


def mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def read_as(kind: type[T], given: Mapping[str, Any], **known: Any) -> T:
    """Return an instance of a dataclass from ``known``, and from ``given`` for its other fields without a default.

    Each is read by its type: str, bool, bool, int or float or None, tuples of texts and of whole numbers, another
    dataclass, a dataclass or None, or a list of dataclasses. ``Annotated[str, 200, "url"]`` is cut to 200 characters
    (a list: to 200 items) and read from the key ``url``.
    """
    hints = _resolve_hints(kind)  # type: ignore[arg-type]  # a class is hashable
    return kind(**{name: _read_field(hint, given, name) for name, hint in hints.items() if name not in known}, **known)


@cache
def _resolve_hints(kind: Any) -> dict[str, Any]:
    hints = get_type_hints(kind, include_extras=True)
    return {one.name: hints[one.name] for one in fields(kind) if one.default is MISSING}


def _read_field(hint: Any, given: Mapping[str, Any], name: str) -> Any:
    limits: tuple[int, ...] = ()
    if get_origin(hint) is Annotated:
        hint, *notes = get_args(hint)
        limits, name = tuple(notes[:1]), (*notes, name)[1]
    value = given.get(name)
    if hint in _READERS:
        return _READERS[hint](value, *limits)
    if get_origin(hint) is list:
        return [read_as(get_args(hint)[0], one) for one in dicts(value, *limits)]
    if isinstance(hint, UnionType):
        (hint,) = (one for one in get_args(hint) if one is not NoneType)
        return read_as(hint, value) if value and isinstance(value, dict) else None
    return read_as(hint, mapping(value))


_READERS: dict[Any, Any] = {
    str: text,
    bool: lambda value: value is True,
    bool | None: lambda value: value if isinstance(value, bool) else None,
    int | None: whole,
    float | None: number,
    tuple[str, ...]: texts,
    tuple[int, ...]: wholes,
}
