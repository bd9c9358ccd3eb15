"""Parse YAML that has only JSON values, with the line of each value, and write YAML that parses to the same values."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import yaml

from annotation.formats.documents import MOST_PROBLEMS, UNSTORABLE, FormatError
from annotation.formats.printable import printable
from annotation.records import Problem

LONGEST = 400_000  # characters of a document
DEEPEST = 40  # levels
MOST_VALUES = 20_000

# Only these words have a value, as in JSON: `no` and dates are texts, and so is 0x10.
WORDS = {"null": None, "~": None, "": None, "true": True, "false": False}
INTEGER = re.compile(r"-?(?:0|[1-9][0-9]{0,17})")
NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]{1,3})?")
PLAIN = re.compile(r"[A-Za-z_/][A-Za-z _/]*[A-Za-z_/]|[A-Za-z]")  # a text that is written without quotes
RESERVED = frozenset({"null", "true", "false", "yes", "no", "on", "off", "y", "n"})

Place = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class YamlDocument:
    """``value`` has the types of JSON; ``lines`` has the line, from 1, of places such as ``("checks", 0, "url")``."""

    value: Any
    lines: dict[Place, int]

    def line(self, place: Place) -> int:
        """Return the line of a place, or of its nearest existing parent."""
        while place and place not in self.lines:
            place = place[:-1]
        return self.lines.get(place, 1)


def parse_yaml(text: str, name: str) -> YamlDocument:
    """Parse the only document in ``text``; ``name`` is for messages. ``where`` of each Problem is ``line <n>``.

    Raises FormatError for wrong syntax, several documents, anchors, aliases and tags (a short text could expand without
    limit), keys that are repeated or not texts, too many or too deeply nested values, and unstorable characters.
    """
    if len(text) > LONGEST:
        raise FormatError(Problem("yaml_too_long", f"{name}: has more than {LONGEST:,} characters.", "line 1"))
    found = UNSTORABLE.search(text)
    if found:
        raise _error("text_unstorable", name, text.count("\n", 0, found.start()) + 1, "a character cannot be stored")
    try:
        _refuse_references(text, name)
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise _error("yaml_invalid", name, line, _says(error, text, line)) from error
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise _error("yaml_invalid", name, 1, printable(str(error), 200)) from error
    reading = _Reading(name)
    value = reading.value(node, ()) if node is not None else None
    if reading.problems:
        raise FormatError(*reading.problems[:MOST_PROBLEMS])
    return YamlDocument(value, reading.lines)


def _says(error: yaml.MarkedYAMLError, text: str, line: int) -> str:
    """Describe a syntax error, and how to fix the two most frequent ones."""
    says = printable(error.problem or "it is not YAML", 200)
    lines = text.splitlines()
    if line <= len(lines) and re.match(r"[ ]*\t", lines[line - 1]):
        return "the line begins with a tab; indent with spaces"
    if "mapping values are not allowed" in says:
        return "a value has two colons followed by a space; put the text in quotation marks"
    return f"not valid YAML: {says}; look for an unclosed bracket or quotation mark, and check the indentation"


def did_you_mean(given: str, known: Iterable[str]) -> str:
    """Return a hint for the end of a message, "" if no known word is similar."""
    near = difflib.get_close_matches(given.lower(), list(known), n=1, cutoff=0.5)
    return f" (did you mean {near[0]}?)" if near else ""


def flag_meant(value: object) -> str:
    """Return "true" or "false" for ``yes``, ``off`` and the like, "" for anything else."""
    return {"yes": "true", "on": "true", "y": "true", "no": "false", "off": "false", "n": "false"}.get(
        value.lower() if isinstance(value, str) else "", ""
    )


def _error(code: str, name: str, line: int, says: str) -> FormatError:
    return FormatError(_problem(code, name, line, says))


def _problem(code: str, name: str, line: int, says: str) -> Problem:
    return Problem(code, f"{name}, line {line:,}: {says}.", f"line {line}")


def _refuse_references(text: str, name: str) -> None:
    """Reject anchors, aliases and tags, and too many or too deeply nested values, before any value is built."""
    depth = values = 0
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        line = event.start_mark.line + 1 if event.start_mark else 1
        if getattr(event, "anchor", None) or isinstance(event, yaml.AliasEvent):
            raise _error(
                "yaml_reference", name, line, "anchors (&) and aliases (*) are not supported; write the value out"
            )
        if getattr(event, "tag", None):
            raise _error("yaml_tag", name, line, "tags (!) are not supported")
        values += isinstance(event, yaml.ScalarEvent | yaml.CollectionStartEvent)
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if values > MOST_VALUES or depth > DEEPEST:
            limit = f"{MOST_VALUES:,} values" if values > MOST_VALUES else f"{DEEPEST} levels"
            raise _error("yaml_too_large", name, line, f"has more than {limit}")


class _Reading:
    def __init__(self, name: str) -> None:
        self.name = name
        self.lines: dict[Place, int] = {}
        self.problems: list[Problem] = []

    def value(self, node: yaml.Node, place: Place) -> Any:
        self.lines[place] = node.start_mark.line + 1
        if isinstance(node, yaml.SequenceNode):
            return [self.value(inner, (*place, number)) for number, inner in enumerate(node.value)]
        if isinstance(node, yaml.MappingNode):
            return dict(self._pairs(node, place))
        return self._scalar(node)

    def _pairs(self, node: yaml.MappingNode, place: Place) -> Iterator[tuple[str, Any]]:
        seen = set()
        for key, inner in node.value:
            if not isinstance(key, yaml.ScalarNode) or UNSTORABLE.search(key.value):
                self._refuse(key, "yaml_key", "a key must be text")
                continue
            if key.value in seen:
                self._refuse(key, "duplicate_key", f"the key {printable(key.value)} occurs twice")
            seen.add(key.value)
            yield key.value, self.value(inner, (*place, key.value))

    def _scalar(self, node: Any) -> Any:
        text = node.value
        if UNSTORABLE.search(text):
            self._refuse(node, "text_unstorable", "a character cannot be stored")
        if node.style is not None:  # quoted, or a block: always a text
            return text
        if text in WORDS:
            return WORDS[text]
        if INTEGER.fullmatch(text):
            return int(text)
        if NUMBER.fullmatch(text):
            number = float(text)
            if not math.isfinite(number):
                self._refuse(node, "number_not_finite", f"{printable(text, 40)} is too large a number")
            return number
        return text

    def _refuse(self, node: yaml.Node, code: str, says: str) -> None:
        self.problems.append(_problem(code, self.name, node.start_mark.line + 1, says))


# --- writing --------------------------------------------------------------------------------------------------------


class _Writer(yaml.SafeDumper):
    """Writer that quotes every text that could be read as another value."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text_node(writer: yaml.SafeDumper, text: str) -> yaml.Node:
    plain = PLAIN.fullmatch(text) and text.lower() not in RESERVED
    return writer.represent_scalar("tag:yaml.org,2002:str", text, style=None if plain else '"')


_Writer.add_representer(str, _text_node)


def written(value: Any) -> str:
    """Return a JSON value as YAML, in the order of its keys; `parse_yaml` returns the same value."""
    # The width of a whole document: folded texts end their lines with backslashes, which are hard to edit.
    return yaml.dump(value, Dumper=_Writer, sort_keys=False, allow_unicode=True, width=LONGEST)
