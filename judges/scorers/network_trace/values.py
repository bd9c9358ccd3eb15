"""Comparison of an expected value with a sent one, by type instead of by characters."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from annotation.formats.printable import printable
from judges.scorers.network_trace import addresses, scalars
from judges.scorers.network_trace.bodies import is_redacted
from judges.scorers.network_trace.patterns import TooCostly, compile_pattern, is_pattern
from judges.scorers.network_trace.scalars import Ambiguous, NotParsable

MOST_ITEMS = 200  # of a list that is compared regardless of order
MISSING_TEXTS = frozenset({"", "null", "none"})
TRUE, FALSE = frozenset({"true", "yes", "y", "1", "t", "on"}), frozenset({"false", "no", "n", "0", "f", "off"})
SPACES = re.compile(r"\s+")
WAS_REDACTED = "import blanked it as a secret, so it cannot be compared"


@dataclass(frozen=True, slots=True)
class Schema:
    """The type of a value: ``kind`` is a name of `KINDS`, "array", "object", or "" for the type of the expected value.

    ``items`` is the schema of an array's items, ``properties`` those of an object. ``formats`` are declared formats
    of scalars.
    """

    kind: str = ""
    items: Schema | None = None
    properties: Mapping[str, Schema] = field(default_factory=dict)
    formats: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Compared:
    """``equal`` is None if it cannot be decided; ``note`` says why, or what the difference is."""

    equal: bool | None
    note: str = ""


SAME, OTHER = Compared(True), Compared(False)
Read = Callable[[Any, Schema], Any]


@dataclass(frozen=True, slots=True)
class ValueKind:
    """Parser (raising NotParsable or Ambiguous) and equality of one kind of values."""

    read: Read
    equal: Callable[[Any, Any], bool] = lambda one, other: bool(one == other)


@dataclass(frozen=True, slots=True)
class Rules:
    """Rules to compare values: ``kinds`` by name, and the kind of an expected value without a schema.

    ``missing`` says which values count as absent; ``blanked`` whether the import may have blanked a compared value.
    ``ordered``: lists are compared in order; ``all_keys``: objects may have only the expected keys.
    """

    kinds: Mapping[str, ValueKind]
    kind_of: Callable[[Any], str]
    text: Callable[[Any], str]
    missing: Callable[[Any], bool]
    blanked: bool = True
    ordered: bool = False
    all_keys: bool = False


def normalise_text(value: Any) -> str:
    """Return a value as text: Unicode NFKC, one space for all white space, no case, no invisible characters."""
    return squeeze(value).casefold()


def squeeze(value: Any) -> str:
    """Return the same as `normalise_text`, with case: the text that a regular expression is matched against."""
    shown = unicodedata.normalize("NFKC", format_text(value))
    kept = "".join(char for char in shown if char.isspace() or unicodedata.category(char) not in {"Cc", "Cf"})
    return SPACES.sub(" ", kept).strip()


def format_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def parse_boolean(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    word = normalise_text(value)
    if word in TRUE | FALSE:
        return word in TRUE
    raise NotParsable("is neither true nor false")


def parse_list(value: Any) -> tuple[str, ...]:
    """Return the parts of a text with commas, sorted, so that their order does not matter."""
    return tuple(sorted(part for part in (normalise_text(one) for one in format_text(value).split(",")) if part))


def parse_json(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        raise NotParsable("is not JSON") from None


def is_missing(value: Any) -> bool:
    return value is None or (isinstance(value, str) and normalise_text(value) in MISSING_TEXTS)


def is_empty(value: Any) -> bool:
    return value is None or (isinstance(value, str) and not normalise_text(value))


def _parse_null(value: Any, schema: Schema) -> None:
    if not is_missing(value):
        raise NotParsable("is not empty")


def _parse_day(value: Any, schema: Schema) -> Any:
    return scalars.parse_day(value, [scalars.check_date_format(one) for one in schema.formats])


KINDS: dict[str, ValueKind] = {
    "string": ValueKind(lambda value, schema: normalise_text(value)),
    "number": ValueKind(lambda value, schema: scalars.parse_number(value)),
    "integer": ValueKind(lambda value, schema: scalars.parse_whole_number(value)),
    "boolean": ValueKind(lambda value, schema: parse_boolean(value)),
    "null": ValueKind(_parse_null),
    "currency": ValueKind(lambda value, schema: scalars.parse_money(value), lambda one, other: one.equals(other)),
    "date": ValueKind(_parse_day),
    "date-time": ValueKind(lambda value, schema: scalars.parse_moment(value), scalars.is_same_moment),
    "month": ValueKind(lambda value, schema: scalars.parse_month(value)),
    "string_list": ValueKind(lambda value, schema: parse_list(value)),
    "json": ValueKind(lambda value, schema: parse_json(value)),
    "markdown": ValueKind(lambda value, schema: normalise_text(value)),
    "url": ValueKind(lambda value, schema: format_text(value), addresses.is_same),
}
# Formats of WebArena-Verified that need its libraries: their values are an error, which names the other judge.
FOREIGN = ("duration", "distance", "coordinates", "full_address", "location-name", "base64")


def find_kind(expected: Any) -> str:
    if isinstance(expected, bool):
        return "boolean"
    return "number" if isinstance(expected, int | float) else "string"


DEFAULT = Rules(KINDS, find_kind, squeeze, is_empty)


def compare(expected: Any, actual: Any, schema: Schema | None = None, rules: Rules = DEFAULT) -> Compared:
    """Return whether ``actual`` is as ``expected``.

    A text ``^...$`` is a regular expression for the whole text, regardless of case. A list is an array if the schema
    says so, or if ``actual`` is a list; else any of its values may match. An object has at least the expected keys.
    null matches an empty or absent value.
    """
    schema = schema or Schema()
    if isinstance(expected, dict):
        return _compare_objects(expected, actual, schema, rules)
    if schema.kind == "array" or (isinstance(expected, list | tuple) and isinstance(actual, list | tuple)):
        return _compare_arrays(expected, actual, schema, rules)
    if isinstance(expected, list | tuple):
        found = [compare(one, actual, schema, rules) for one in expected]
        single = found[0] if len(found) == 1 else Compared(False, "is none of the alternatives" if found else "")
        return _find_first(found, (True, None)) or single
    if isinstance(actual, list | tuple) and len(actual) == 1:
        actual = actual[0]
    return _compare_scalars(expected, actual, schema, rules)


def _compare_scalars(expected: Any, actual: Any, schema: Schema, rules: Rules) -> Compared:
    if rules.blanked and is_redacted(actual):
        return Compared(None, WAS_REDACTED)
    if expected is None:
        return SAME if rules.missing(actual) else OTHER
    if actual is None:
        return Compared(rules.missing(expected), "is missing")
    if isinstance(actual, dict | list):
        return Compared(False, "is not a single value")
    if is_pattern(expected):
        try:
            return Compared(compile_pattern(expected, ignore_case=True).fullmatch(rules.text(actual)))
        except TooCostly as error:
            return Compared(None, printable(str(error), 300))
    name = schema.kind or rules.kind_of(expected)
    if name not in rules.kinds:
        return Compared(None, f"values of the format {name} can only be compared by the judge webarena-verified")
    kind = rules.kinds[name]
    try:
        wanted = kind.read(expected, schema)
    except (NotParsable, Ambiguous) as error:
        return Compared(None, f"the expected value {error}")
    try:
        return Compared(kind.equal(wanted, kind.read(actual, schema)))
    except NotParsable as error:
        return Compared(False, str(error))
    except Ambiguous as error:
        return Compared(None, str(error))


def all_of(found: Collection[bool | None]) -> bool | None:
    """Return whether all are true; a single False outweighs None."""
    return False if False in found else None if None in found else True


def any_of(found: Collection[bool | None]) -> bool | None:
    return True if True in found else None if None in found else False


def _find_first(results: Sequence[Compared], order: tuple[bool | None, ...]) -> Compared | None:
    return next((one for equal in order for one in results if one.equal is equal), None)


def _combine_all(results: Sequence[Compared]) -> Compared:
    """Return equal only if all are; a difference outweighs an undecided result."""
    return _find_first(results, (False, None)) or SAME


def _compare_objects(expected: Mapping[str, Any], actual: Any, schema: Schema, rules: Rules) -> Compared:
    if rules.blanked and is_redacted(actual):
        return Compared(None, WAS_REDACTED)
    if isinstance(actual, str):
        try:
            actual = parse_json(actual)
        except NotParsable:
            actual = None
    if not isinstance(actual, dict):
        return Compared(False, "is not an object")
    extra = [key for key in actual if key not in expected]
    if rules.all_keys and extra:
        return Compared(False, f"has the key {printable(str(extra[0]))}, which is not expected")
    found = []
    for key, value in expected.items():
        one = compare(value, actual.get(key), schema.properties.get(key), rules)
        found.append(one if one.equal else Compared(one.equal, f"{printable(key)}: {one.note or 'another value'}"))
    return _combine_all(found)


def make_list(value: Any) -> list[Any]:
    """Return a value as a list: a list, a JSON array as text, or a single value as a list of one; None is empty."""
    if isinstance(value, list | tuple):
        return list(value)
    if value is None:
        return []
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            found = json.loads(value)
        except (ValueError, RecursionError):
            return [value]
        return found if isinstance(found, list) else [value]
    return [value]


def _compare_arrays(expected: Any, actual: Any, schema: Schema, rules: Rules) -> Compared:
    if rules.blanked and is_redacted(actual):
        return Compared(None, WAS_REDACTED)
    wanted, had = make_list(expected), make_list(actual)
    if len(wanted) != len(had):
        return Compared(False, f"number of values: {len(had):,}, expected: {len(wanted):,}")
    if len(wanted) > MOST_ITEMS and not rules.ordered:
        return Compared(None, f"lists of more than {MOST_ITEMS} values can only be compared in order")
    return _combine_all([compared for _, compared in pair(wanted, had, schema.items, rules)])


def pair(
    wanted: Sequence[Any], had: Sequence[Any], schema: Schema | None, rules: Rules
) -> list[tuple[int | None, Compared]]:
    """Return for each expected item the position of its partner (None if no item is left), and the result.

    In order: items at the same position. Otherwise as many equal pairs as possible, then undecided pairs, then the
    remaining items.
    """
    missing = (None, Compared(False, "is missing"))
    if rules.ordered:
        rows: list[tuple[int | None, Compared]] = [
            (place, compare(one, other, schema, rules))
            for place, (one, other) in enumerate(zip(wanted, had, strict=False))
        ]
        return rows + [missing] * (len(wanted) - len(rows))
    table = [[compare(one, other, schema, rules) for other in had] for one in wanted]
    chosen = _match(table)
    left = [place for place in range(len(had)) if place not in chosen.values()]
    rows = []
    for place, row in enumerate(table):
        partner = chosen.get(place, left.pop(0) if place not in chosen and left else None)
        rows.append((partner, row[partner]) if partner is not None else missing)
    return rows


def _match(table: Sequence[Sequence[Compared]]) -> dict[int, int]:
    """Return a largest set of equal pairs, enlarged by undecided pairs (augmenting paths)."""
    taken: dict[int, int] = {}
    passes: tuple[set[bool | None], ...] = ({True}, {True, None})
    for allowed in passes:
        for row in range(len(table)):
            if row not in taken.values():
                _augment(table, row, allowed, taken, set())
    return {row: column for column, row in taken.items()}


def _augment(
    table: Sequence[Sequence[Compared]], row: int, allowed: set[bool | None], taken: dict[int, int], seen: set[int]
) -> bool:
    for column, one in enumerate(table[row]):
        if one.equal in allowed and column not in seen:
            seen.add(column)
            if column not in taken or _augment(table, taken[column], allowed, taken, seen):
                taken[column] = row
                return True
    return False
