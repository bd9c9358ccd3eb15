"""Reader of the keys of one network check or answer check."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from annotation.formats.documents import MOST_PROBLEMS
from annotation.formats.printable import printable
from annotation.formats.yaml_text import Place, YamlDocument, did_you_mean
from judges.scorers.document_reader import DocumentReader, describe_place
from judges.scorers.network_trace import scalars
from judges.scorers.network_trace.addresses import Sites, UnknownSite, expand, find_placeholders, parse_address
from judges.scorers.network_trace.bodies import PathError, parse_path
from judges.scorers.network_trace.patterns import PatternError, compile_pattern, is_pattern
from judges.scorers.network_trace.scalars import Ambiguous, NotParsable
from judges.scorers.network_trace.values import FOREIGN, KINDS, Schema

MOST_ALTERNATIVES = 50
MOST_HINTED = 100  # expected names among which the nearest is looked for
LONGEST_NAME = 200  # characters
DEEPEST_SCHEMA = 10
TYPES = ("string", "number", "integer", "boolean", "array", "object", "null")
SCHEMA_KEYS = ("type", "format", "items", "properties", "date_format", "description", "title")


class CheckReader(DocumentReader):
    """``sites`` are those that the document declares; empty until they are read."""

    def __init__(self, document: YamlDocument, name: str) -> None:
        super().__init__(document, name)
        self.sites: Sites = {}

    def is_misspelt(self, place: Place, key: str) -> bool:
        """Return whether a key here was refused as a probable ``key``, which is then not reported as missing."""
        return any(where[: len(place)] == place and name == key for where, name in self.misspelt)

    def refuse_unexpected(self, place: Place, value: object, expected: Iterable[str]) -> None:
        """Refuse each schema (as `read_schemas` reads them) of a name without an expected value: most likely a typo."""
        known = set(expected)
        near_by = {name.lower(): name for name in list(known)[:MOST_HINTED] if len(name) <= LONGEST_NAME}
        found = value if isinstance(value, dict) else {}
        if _is_object_schema(found):
            place, found = (*place, "properties"), found["properties"]
        for name in [one for one in found if one not in known][:MOST_PROBLEMS]:
            near = difflib.get_close_matches(name.lower()[:LONGEST_NAME], near_by, n=1, cutoff=0.5)
            hint = f"; did you mean `{printable(near_by[near[0]], 60)}`?" if near else "."
            says = f"`{printable(name, 60)}` has a schema, but the check expects no value with that name{hint}"
            self.refuse((*place, name), "unknown_key", says)

    def read_mapping(self, place: Place, value: object) -> dict[str, Any]:
        if value is None:
            return {}
        if not isinstance(value, dict):
            self.refuse_type(place, "an object", value)
            return {}
        return value

    def list_values(self, place: Place, value: object) -> list[tuple[Place, Any]]:
        if not isinstance(value, list):
            return [(place, value)]
        if len(value) > MOST_ALTERNATIVES:
            self.refuse(place, "too_many", f"{describe_place(place)} may have at most {MOST_ALTERNATIVES} values.")
        return [((*place, number), one) for number, one in enumerate(value[:MOST_ALTERNATIVES])]

    def read_texts(self, place: Place, value: object) -> tuple[str, ...]:
        return tuple(self.read_text(where, one) for where, one in self.list_values(place, value))

    def read_statuses(self, place: Place, value: object) -> tuple[int, ...]:
        found = []
        for where, one in self.list_values(place, value):
            if isinstance(one, bool) or not isinstance(one, int):
                self.refuse_type(where, "a whole number such as 200", one)
            elif one != -1 and not 100 <= one <= 599:
                self.refuse(where, "wrong_value", f"{one} is not an HTTP status (100 to 599; -1: no response).")
            else:
                found.append(one)
        return tuple(found)

    def read_word(self, place: Place, value: object, known: Iterable[str]) -> str:
        text = self.read_text(place, value, LONGEST_NAME).strip().lower()
        return self.read_choice(place, text, known) if text else ""

    def read_patterns(self, place: Place, value: object) -> tuple[str, ...]:
        found = [(where, self.read_text(where, one)) for where, one in self.list_values(place, value)]
        return tuple(text for where, text in found if self.check_pattern(where, text))

    def check_pattern(self, place: Place, pattern: str) -> bool:
        try:
            compile_pattern(pattern, ignore_case=True)
        except PatternError as error:
            self.refuse(
                place,
                "bad_pattern",
                f"{describe_place(place)}, {printable(pattern, 60)}: {printable(str(error), 200)}.",
            )
            return False
        return True

    def read_urls(self, place: Place, value: object) -> tuple[str, ...]:
        if value == []:
            self.refuse(place, "wrong_value", "url must have at least one address.")
        found = [(where, self.read_text(where, one)) for where, one in self.list_values(place, value)]
        return tuple(text for where, text in found if self._is_address(where, text))

    def _is_address(self, place: Place, text: str) -> bool:
        for name in find_placeholders(text):
            if name not in self.sites:
                near = difflib.get_close_matches(name, list(self.sites), n=1, cutoff=0.4)
                known = (
                    f"did you mean __{near[0].upper()}__?" if near else f"write it under sites: {name}: [https://...]"
                )
                self.refuse(place, "unknown_site", f"the site {name} does not exist; {known}")
                return False
        if is_pattern(text):
            return self.check_pattern(place, _fill_sites(text, self.sites))
        found = parse_address(_fill_sites(text, self.sites))
        if found.scheme not in {"http", "https", "ws", "wss"} or not found.host:
            self.refuse(
                place,
                "bad_url",
                f"{printable(text, 80)} is not an address: it must begin with https:// or __SITE__.",
            )
            return False
        return True

    def read_values(
        self, place: Place, value: object, schemas: Mapping[str, Schema], scalars: bool = False
    ) -> dict[str, Any]:
        """Return expected values by name; refuse values that do not fit their schema, and bad patterns and paths."""
        found = self.read_mapping(place, value)
        for name, expected in found.items():
            where = (*place, name)
            if name.startswith("$") and not name.startswith("$.^"):
                self._read_path(where, name)
            elif name.startswith("$.^") or is_pattern(name):
                self.check_pattern(where, name.removeprefix("$."))
            self.check_value(where, expected, schemas.get(name, Schema()), scalars)
        return found

    def read_parameters(self, place: Place, value: object, schemas: Mapping[str, Schema]) -> dict[str, Any]:
        """Return the same as `read_values`, for parameters of an address: refuse objects."""
        return self.read_values(place, value, schemas, scalars=True)

    def _read_path(self, place: Place, path: str) -> None:
        try:
            parse_path(path)
        except PathError as error:
            self.refuse(place, "bad_path", f"{printable(path, 60)}: {error}.")

    def check_value(self, place: Place, expected: object, schema: Schema, scalars: bool = False) -> None:
        if isinstance(expected, dict):
            if scalars:
                self.refuse_type(place, "a value, or a list of values", expected)
            for name, one in expected.items():
                self.check_value((*place, name), one, schema.properties.get(name, Schema()))
        elif isinstance(expected, list):
            inner = schema.items if schema.kind == "array" and schema.items else schema
            for number, one in enumerate(expected):
                if scalars and isinstance(one, list):
                    self.refuse_type((*place, number), "a value, or a list of values", one)
                self.check_value((*place, number), one, inner, scalars)
        elif is_pattern(expected):
            self.check_pattern(place, str(expected))
        elif expected is not None and schema.kind in KINDS:
            try:
                KINDS[schema.kind].read(expected, schema)
            except (NotParsable, Ambiguous) as error:
                self.refuse(place, "wrong_value", f"{describe_place(place)}: {printable(str(expected), 60)} {error}.")

    def read_schemas(self, place: Place, value: object) -> dict[str, Schema]:
        """Return the schemas of parameters by name, from a JSON schema of an object, or its properties alone."""
        found = self.read_mapping(place, value)
        if _is_object_schema(found):
            return dict(self.read_schema(place, found).properties)
        return {name: self.read_schema((*place, name), one) for name, one in found.items()}

    def read_schema(self, place: Place, value: object, depth: int = 0) -> Schema:
        found = self.read_mapping(place, value)
        if depth > DEEPEST_SCHEMA:
            self.refuse(place, "too_deep", f"a schema may have at most {DEEPEST_SCHEMA} levels.")
            return Schema()
        self.refuse_unknown_keys(place, found, "a key of a schema", SCHEMA_KEYS)
        kind = self._read_kind(place, found)
        items = self.read_schema((*place, "items"), found["items"], depth + 1) if "items" in found else None
        inner = self.read_mapping((*place, "properties"), found.get("properties"))
        properties = {
            name: self.read_schema((*place, "properties", name), one, depth + 1) for name, one in inner.items()
        }
        return Schema(
            kind, items, properties, self._read_date_formats((*place, "date_format"), found.get("date_format", []))
        )

    def _read_kind(self, place: Place, found: Mapping[str, Any]) -> str:
        stated = found.get("type", "string" if "format" in found else "")
        if stated and stated not in TYPES:
            hint = did_you_mean(str(stated), TYPES)
            self.refuse((*place, "type"), "wrong_value", f"type must be one of {', '.join(TYPES)}{hint}.")
            return ""
        if stated in {"array", "object"} or "format" not in found:
            return str(stated)
        name = self.read_text((*place, "format"), found["format"], LONGEST_NAME).replace("datetime", "date-time")
        if name and name not in KINDS and name not in FOREIGN:
            self.refuse_unknown_key((*place, "format", name), "a format of values", [*KINDS, *FOREIGN])
            return ""
        return name

    def _read_date_formats(self, place: Place, value: object) -> tuple[str, ...]:
        found = self.read_texts(place, value)
        for text in found:
            try:
                scalars.check_date_format(text)
            except ValueError as error:
                self.refuse(place, "wrong_value", f"date_format {printable(text, 60)}: {error}.")
        return tuple(text for text in found if _is_sound(scalars.check_date_format, text))


def _fill_sites(text: str, sites: Sites) -> str:
    """Return the address with each site filled in; a site that is left to the judge gets an example address."""
    filled = {name: urls or ("https://site.example",) for name, urls in sites.items()}
    try:
        return expand(text, filled, pattern=is_pattern(text))[0]
    except UnknownSite:
        return text


def _is_sound(read: Callable[[str], object], text: str) -> bool:
    try:
        read(text)
    except ValueError:
        return False
    return True


def _is_object_schema(found: Mapping[str, Any]) -> bool:
    return found.get("type") == "object" and isinstance(found.get("properties"), dict)
