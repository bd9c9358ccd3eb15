"""Refusing a package in one clear line, and which names its files may have."""

from __future__ import annotations

import re
from collections.abc import Iterable

LONGEST_PATH = 512  # characters of a whole path
DEEPEST_FOLDER = 8
DRIVE_LETTER = re.compile(r"[A-Za-z]:")
# What could hide or move text on a terminal: controls, line separators, turned reading direction, half surrogates,
# tags. Fixed ranges, since what a Python calls printable changes with its Unicode.
UNSHOWABLE = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\ufff0-\uffff"
    r"\U000e0000-\U000e0fff]"
)


class Refused(Exception):
    """The package is none that can be read safely; the message names the file, what is wrong, and how to mend it."""


def escaped(text: str, longest: int = 0) -> str:
    """``text`` in printable ASCII: everything else becomes its escape. Cut to ``longest`` characters, 0 for all."""
    cut = text if not longest or len(text) <= longest else text[: longest - 3] + "..."
    return "".join(
        character if " " <= character <= "~" and character != "\\" else character.encode("unicode_escape").decode()
        for character in cut
    )


def refuse_name(name: str) -> None:
    """Raise Refused unless ``name`` is a plain relative path with / that means the same on every system."""
    parts = name.split("/")
    if "\\" in name or name.startswith("/") or DRIVE_LETTER.match(name) or any(p in ("", ".", "..") for p in parts):
        raise _name_refused(name, "is not a plain path inside the package; write it with / and without ..")
    if UNSHOWABLE.search(name):
        raise _name_refused(name, "has characters in its name that cannot be shown; take them away")
    if not name.isascii():  # in any other script it depends on the program which names are the same
        raise _name_refused(name, "has letters in its name that ASCII does not have; rename it")
    if len(parts) > DEEPEST_FOLDER + 1:
        raise _name_refused(name, "lies too deep; a bundle has no such folder")
    if len(name) > LONGEST_PATH:
        raise _name_refused(name, f"has a name of more than {LONGEST_PATH} characters; shorten it")


def refuse_collisions(names: Iterable[str]) -> None:
    """Raise Refused for names (ASCII) that differ only by case, and for a file that is a folder too."""
    files = list(names)
    spelt: dict[str, str] = {}
    for name in files:
        other = spelt.setdefault(name.lower(), name)
        if other != name:
            raise Refused(f"{escaped(name, 200)} and {escaped(other, 200)} differ only by case; keep one of them.")
    for name in files:
        folder = name.rpartition("/")[0]
        while folder:
            if folder.lower() in spelt:
                raise Refused(f"{escaped(folder, 200)} is a file and a folder at once; keep one of them.")
            folder = folder.rpartition("/")[0]


def _name_refused(name: str, says: str) -> Refused:
    return Refused(f"{escaped(name, 200) or 'A file without a name'} {says}.")
