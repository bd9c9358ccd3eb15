"""Which names files and folders of a package may have: the same rules for a folder and for a zip."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath

from annotation.formats.printable import printable
from annotation.records import Problem

NOISE_NAMES = frozenset({"__MACOSX", ".DS_Store", "Thumbs.db", "desktop.ini"})
NOISE_PREFIXES = ("._", ".git")
ARCHIVE_SUFFIXES = frozenset({".zip", ".tar", ".gz", ".tgz", ".bz2", ".xz", ".7z", ".rar", ".zst"})
LONGEST_NAME = 1024  # characters of a whole path
LONGEST_PART = 255  # bytes of one part; what file systems take
LONGEST_WHERE = 300  # characters of a path in a report
DRIVE = re.compile(r"[A-Za-z]:")
# Control characters, line separators, half surrogates, and the marks that turn the reading direction.
UNSHOWABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def entry_problem(code: str, name: str, says: str) -> Problem:
    """Return a problem of the entry ``name``; ``where`` is its printable path."""
    return Problem(code, f"{printable(name)} {says}.", printable(name, LONGEST_WHERE))


def is_noise(name: str) -> bool:
    """Whether operating systems or git leave such a file in folders."""
    return any(part in NOISE_NAMES or part.startswith(NOISE_PREFIXES) for part in name.split("/"))


def is_archive(name: str) -> bool:
    return PurePosixPath(name).suffix.lower() in ARCHIVE_SUFFIXES


def path_problem(name: str) -> Problem | None:
    """Return the problem of a path; None for a plain path inside the package."""
    parts = name.split("/")
    if "\\" in name or DRIVE.match(name) or any(part in ("", ".", "..") for part in parts):
        return entry_problem("path_outside", name, "is not a plain path inside the package (with / and without ..)")
    if UNSHOWABLE.search(name):
        return entry_problem("name_unprintable", name, "has control characters in its name")
    if len(name) > LONGEST_NAME or any(len(part.encode()) > LONGEST_PART for part in parts):
        return entry_problem("name_too_long", name, "has a longer name than file systems take")
    return None


def collisions(names: Iterable[str]) -> list[Problem]:
    """Return a problem for each name that differs only in case, and for each that is a file and a folder."""
    files = set(names)
    folders = {folder for name in files for folder in folders_of(name)}
    spellings: dict[str, set[str]] = {}
    for entry in files | folders:
        spellings.setdefault(unicodedata.normalize("NFC", entry.casefold()), set()).add(entry)
    problems = []
    for same in spellings.values():
        # What lies in two such folders collides too, but is told apart by its folder: one report is enough.
        if len({entry.rpartition("/")[2] for entry in same}) > 1:
            pair = " and ".join(printable(entry) for entry in sorted(same))
            problems += [Problem("case_collision", f"{pair} differ only in case.", _where(entry)) for entry in same]
    problems += [entry_problem("duplicate_name", name, "is a file and a folder at once") for name in files & folders]
    return sorted(problems, key=lambda problem: problem.where)


def folders_of(name: str) -> Iterator[str]:
    """Yield the folders of ``name``, the innermost first."""
    while name := name.rpartition("/")[0]:
        yield name


def _where(name: str) -> str:
    return printable(name, LONGEST_WHERE)
