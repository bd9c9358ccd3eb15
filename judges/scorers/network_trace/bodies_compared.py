"""Expected parts of what was sent or received, beside what there is: fields of forms and JSON, headers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from annotation.formats.har import REDACTED
from judges.scorers.network_trace.bodies import Body
from judges.scorers.network_trace.json_paths import parse_path
from judges.scorers.network_trace.patterns import compile_pattern, is_pattern
from judges.scorers.network_trace.results import Difference
from judges.scorers.network_trace.values import DEFAULT, Compared, Rules, Schema, compare

MISSING: Any = object()
TRUNCATED = "only the beginning of it was kept on import"


def compare_body(
    field: str, expected: Mapping[str, Any], body: Body | None, schemas: Mapping[str, Schema], *, absent: Compared,
    rules: Rules = DEFAULT,
) -> Iterator[Difference]:  # fmt: skip
    document = read_document(body)
    for key, wanted in expected.items():
        if body is None:
            yield Difference(f"{field}.{key}", wanted, None, absent.equal, absent.note)
            continue
        schema = schemas.get(key, Schema())
        several = isinstance(wanted, list) or schema.kind == "array"
        actual = find_value(key, document, body, several=several)
        if actual is MISSING:
            compared = Compared(None, TRUNCATED) if body.truncated else compare(wanted, None, schema, rules)
            yield Difference(f"{field}.{key}", wanted, None, compared.equal, compared.note)
            continue
        compared = compare(wanted, actual, schema, rules)
        yield Difference(f"{field}.{key}", wanted, actual, compared.equal, compared.note)


def read_document(body: Body | None) -> Any:
    """The JSON value of a body, or the fields of a form, the first value of each."""
    if body is None:
        return {}
    try:
        return body.fields() or body.json()
    except ValueError:
        return {}


def find_value(key: str, document: Any, body: Body, *, several: bool) -> Any:
    """What stands under a name, path or pattern; `MISSING` where nothing does.

    A path or a pattern that can lead to any number of values gives a list of them, unless it is one value. A field that
    is there several times gives all of its values where ``several`` are expected.
    """
    if key.startswith("$.^") or is_pattern(key):
        pattern = compile_pattern(key.removeprefix("$."))
        found = [value for name, value in document.items() if pattern.match(name)] if isinstance(document, dict) else []
        return MISSING if not found else found[0] if len(found) == 1 else found
    if key.startswith("$"):
        path = parse_path(key)
        found = path.find(document)
        if path.chooses and REDACTED in found:
            return REDACTED
        return MISSING if not found else found[0] if path.single else found
    if not isinstance(document, dict) or key not in document:
        return MISSING
    if several and len(values := [value for name, value in body.form() if name == key]) > 1:
        return values
    return document[key]
