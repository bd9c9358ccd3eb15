"""JSON schemas as strict endpoints want them, out of the classes that scripts define with pydantic."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

DEEPEST = 30
LEFT_OUT = frozenset({"title", "default", "examples", "$defs", "discriminator"})


def build_schema(model: type[BaseModel]) -> dict[str, Any]:
    """The schema of a class: every property required, without defaults, and references written out.

    "A text or null" becomes a type of two names, which the check of replies knows. A class that holds itself is left
    open where it comes again. An object of free keys (``dict``) has no form that strict endpoints take: it is asked for
    as it is, and read by pydantic.
    """
    whole = model.model_json_schema()
    found = _make_strict(whole, whole.get("$defs", {}), ())
    return dict(found)


def _make_strict(schema: Any, known: Mapping[str, Any], above: tuple[str, ...]) -> Any:
    if not isinstance(schema, Mapping) or len(above) > DEEPEST:
        return schema
    reference = schema.get("$ref")
    if isinstance(reference, str):
        name = reference.rpartition("/")[2]
        described = {"description": schema["description"]} if "description" in schema else {}
        return {} if name in above else _make_strict(known.get(name, {}), known, (*above, name)) | described
    made = {key: _inline(key, value, known, above) for key, value in schema.items() if key not in LEFT_OUT}
    if isinstance(made.get("properties"), dict):
        made["required"] = list(made["properties"])
    return _join_types(made)


def _inline(key: str, value: Any, known: Mapping[str, Any], above: tuple[str, ...]) -> Any:
    if key == "properties" and isinstance(value, Mapping):
        return {name: _make_strict(one, known, above) for name, one in value.items()}
    if key in ("anyOf", "allOf", "oneOf", "prefixItems") and isinstance(value, list):
        return [_make_strict(one, known, above) for one in value]
    if key in ("items", "additionalProperties"):
        return _make_strict(value, known, above)
    return value


def _join_types(schema: dict[str, Any]) -> dict[str, Any]:
    """``anyOf`` of plain types as one ``type`` with several names."""
    options = schema.get("anyOf")
    if not isinstance(options, list) or not all(isinstance(one, dict) and set(one) == {"type"} for one in options):
        return schema
    if not all(isinstance(one["type"], str) for one in options):
        return schema
    rest = {key: value for key, value in schema.items() if key != "anyOf"}
    return rest | {"type": [one["type"] for one in options]}
