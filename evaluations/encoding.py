"""Results as JSON: the fields of a dataclass become keys. `api.shapes` describes the JSON from the same fields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any


def to_json(value: Any) -> Any:
    """Encode a value; an object with a method `as_json` encodes itself."""
    if hasattr(value, "as_json"):
        return value.as_json()
    if is_dataclass(value):
        return fields_to_json(value)
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {str(to_json(key)): to_json(each) for key, each in value.items()}
    return [to_json(each) for each in value] if isinstance(value, (list, tuple)) else value


def fields_to_json(value: Any, *, without: tuple[str, ...] = ()) -> dict[str, Any]:
    return {each.name: to_json(getattr(value, each.name)) for each in fields(value) if each.name not in without}
