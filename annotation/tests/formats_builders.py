"""Builders for the tests of the formats: trajectory folders with empty images, zips, and reading them back."""

from __future__ import annotations

import json
import stat
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from annotation.formats.archive import open_package
from annotation.formats.packages import ReadTrajectory, read_trajectories
from annotation.records import Problem

V2_IMAGES = ("0000.png", "0001.png", "0002.png")


def write_folder(home: Path, result: Any, images: Iterable[str] = V2_IMAGES) -> Path:
    """``result`` (JSON value or bytes) as result.json of ``home``, and empty files in ``trajectory/``."""
    (home / "trajectory").mkdir(parents=True, exist_ok=True)
    data = result if isinstance(result, bytes) else json.dumps(result).encode()
    (home / "result.json").write_bytes(data)
    for name in images:
        (home / "trajectory" / name).write_bytes(b"image")
    return home


def read_all(path: Path) -> list[ReadTrajectory]:
    with open_package(path) as package:
        return list(read_trajectories(package))


def read_one(path: Path) -> ReadTrajectory:
    (reading,) = read_all(path)
    return reading


def said(problems: Iterable[Problem]) -> str:
    """All messages and places in one text, to look for words in."""
    return " ".join(f"{problem.message} ({problem.where})" for problem in problems)


def codes(problems: Iterable[Problem]) -> set[str]:
    return {problem.code for problem in problems}


def write_zip(path: Path, members: Iterable[tuple[str | zipfile.ZipInfo, bytes]], **options: Any) -> Path:
    """A zip with exactly these members, in this order."""
    with zipfile.ZipFile(path, "w", compression=zipfile.ZIP_DEFLATED, **options) as archive:
        for name, data in members:
            archive.writestr(name, data)
    return path


def link(name: str) -> zipfile.ZipInfo:
    """A symbolic link as zip programs store it."""
    entry = zipfile.ZipInfo(name)
    entry.create_system = 3
    entry.external_attr = (stat.S_IFLNK | 0o777) << 16
    return entry
