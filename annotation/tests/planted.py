"""Identities that are found again wherever they turn up: words of no language, with umlauts."""

from __future__ import annotations

import base64
import functools
import json
import urllib.parse
from typing import Any

from annotation.models import Person

ADDRESS = "203.0.113.77"
BROWSER = "Zwurbelfox/9.31"


def identity(name: str, number: int) -> dict[str, str]:
    """The identity of somebody of the cast, under which they sign in from now on."""
    return {
        "username": f"qzuser{number}xv",
        "first_name": f"Jörzül{number}",
        "last_name": f"Müßebröck{number}",
        "email": f"qzmail{number}xv@plänted.example".replace("ä", "ae"),
    }


def plant(people: dict[str, Person]) -> dict[str, dict[str, str]]:
    """Give everybody of the cast an identity of their own; by the name in the cast."""
    given = {}
    for number, (name, person) in enumerate(people.items(), start=1):
        given[name] = identity(name, number)
        for field, value in given[name].items():
            setattr(person, field, value)
        person.save()
    return given


@functools.cache
def spellings(word: str) -> set[bytes]:
    """A word as the bytes of many encodings, each as it is, in small and in large letters."""
    found: set[bytes] = set()
    for cased in {word, word.lower(), word.upper(), word.casefold()}:
        found |= {cased.encode(encoding) for encoding in ("utf-8", "utf-16-le", "utf-16-be")}
        found |= {cased.encode("latin-1", "ignore"), json.dumps(cased)[1:-1].encode()}
        found |= {urllib.parse.quote(cased, safe="").encode(), urllib.parse.quote_plus(cased).encode()}
        found |= {json.dumps(cased)[1:-1].encode("utf-16-le")}
        found |= _in_base64(cased)
    return {each for each in found if len(each) >= 6}


def _in_base64(word: str) -> set[bytes]:
    """What stays the same of the word in base64, wherever in a text it begins."""
    data = word.encode()
    found = set()
    for before in range(3):
        whole = base64.b64encode(b"\0" * before + data)
        middle = whole[4 if before else 0 : len(whole) - 4]
        found |= {middle, middle.translate(bytes.maketrans(b"+/", b"-_"))}
    return found


def found_in(data: bytes, words: Any) -> list[str]:
    """The words of which any spelling is in ``data``."""
    return [word for word in words if any(spelled in data for spelled in spellings(word))]
