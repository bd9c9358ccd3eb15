"""Texts that were sent and received: forms, JSON and multipart, read when a check asks for them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

from annotation.formats.documents import UNSTORABLE

MOST_FIELDS = 10_000
LONGEST_HEAD = 4_096  # characters of the headers of a part
MOST_VALUES = 500_000  # of a JSON text
ESCAPED = re.compile(r"\\u(?:0000|d[89a-f])", re.IGNORECASE)  # what may stand for a character that cannot be stored
BOUNDARY = re.compile(r'boundary="?([^";,\s]{1,200})"?', re.IGNORECASE)
PART_NAME = re.compile(r'[; ]name="((?:[^"\\]|\\.){0,1000})"', re.IGNORECASE)
FILE_NAME = re.compile(r'[; ]filename="((?:[^"\\]|\\.){0,1000})"', re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Body:
    """A text with its media type as it was stated. ``params`` are the fields of a form where the HAR listed them.

    ``truncated`` says that this is not all: it was longer than is kept (see `trace`), or no text at all, and was left
    out. What is not found in it may have been there.
    """

    text: str = ""
    mime_type: str = ""
    params: tuple[tuple[str, str], ...] = ()
    truncated: bool = False

    @property
    def media_type(self) -> str:
        return self.mime_type.partition(";")[0].strip().lower()

    @property
    def is_json(self) -> bool:
        return self.media_type.endswith(("/json", "+json"))

    def json(self) -> Any:
        """The JSON value of the text; ValueError when it is none, or was truncated."""
        if self.truncated:
            raise ValueError("not all of the text was kept")
        if sum(self.text.count(mark) for mark in ",[{") > MOST_VALUES:
            raise ValueError(f"it has more than {MOST_VALUES:,} values")
        try:
            value = json.loads(self.text)
            return _make_storable(value) if ESCAPED.search(self.text) else value
        except RecursionError as error:
            raise ValueError("it is nested too deeply") from error

    def form(self) -> list[tuple[str, str]]:
        """Name and value of each field of an urlencoded or multipart form, decoded, in their order; a file is its
        name. Empty for anything else."""
        if self.media_type == "application/x-www-form-urlencoded":
            return self._parse_urlencoded() or list(self.params)
        if self.media_type == "multipart/form-data":
            return list(self.params) or list(self._parse_parts())
        return list(self.params)

    def fields(self) -> dict[str, Any]:
        """What was sent by name: the first value of each field of a form, or the keys of a JSON object; {} else."""
        if form := self.form():
            return dict(form[::-1])
        try:
            value = self.json()
        except ValueError:
            return {}
        return value if isinstance(value, dict) else {}

    def _parse_urlencoded(self) -> list[tuple[str, str]]:
        try:
            pairs = parse_qsl(self.text, keep_blank_values=True, max_num_fields=MOST_FIELDS)
        except ValueError:
            return []
        return [(_make_storable(name), _make_storable(value)) for name, value in pairs]

    def _parse_parts(self) -> Iterator[tuple[str, str]]:
        boundary = BOUNDARY.search(self.mime_type)
        if not boundary:
            return
        for part in self.text.split(f"--{boundary[1]}")[1 : MOST_FIELDS + 1]:
            head, gap, value = part.replace("\r\n", "\n").partition("\n\n")
            named, file = PART_NAME.search(head[:LONGEST_HEAD]), FILE_NAME.search(head[:LONGEST_HEAD])
            if gap and named:
                yield _make_storable(named[1]), file[1] if file else value.removesuffix("\n")


def _make_storable(value: Any) -> Any:
    """A value whose texts a database takes: decoding brings back characters that the text itself did not have."""
    if isinstance(value, str):
        return UNSTORABLE.sub("\ufffd", value)
    if isinstance(value, list):
        return [_make_storable(item) for item in value]
    if isinstance(value, dict):
        return {_make_storable(key): _make_storable(item) for key, item in value.items()}
    return value
