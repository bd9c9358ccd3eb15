"""Read the zips inside a package as folders, for formats whose logs are zips: ``runs/a.zip/trace.trace``."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from annotation.formats import scratch
from annotation.formats.archive import LONGEST_WHERE, MIB, Package, PackageError, ZipPackage
from annotation.formats.har.reading import HARMLESS
from annotation.formats.printable import printable
from annotation.records import Problem

RESOURCES = "/resources/"  # files of pages, in traces of Playwright


@contextmanager
def unpack(package: Package, is_log: Callable[[str], bool]) -> Iterator[Package]:
    """Yield a package with the files of ``package``, and those of the zips in it that ``is_log`` accepts by name.

    Both have the limits of ``package``, together. An archive or large file in a folder `RESOURCES` is no problem: it is
    part of a page, and `stream` raises the problem if it is read.
    """
    if not any(problem.code in HARMLESS for problem in package.problems):
        yield package
        return
    with scratch.folder("unpacked") as folder:
        unpacked = _Unpacked(package, is_log, folder / "inner.zip")
        try:
            yield unpacked
        finally:
            unpacked.close()


def _find_serious(package: Package, is_log: Callable[[str], bool] = lambda name: False) -> list[Problem]:
    names = package.names()
    unread = {printable(name, LONGEST_WHERE) for name in names if is_log(name) or RESOURCES in f"/{name}"}
    return [each for each in package.problems if each.code not in HARMLESS or each.where not in unread]


class _Unpacked(Package):
    """One zip is open at a time: a copy, because zips are read from their end."""

    def __init__(self, outer: Package, is_log: Callable[[str], bool], copy: Path) -> None:
        super().__init__(outer.path, outer.limits)
        self._outer, self._copy = outer, copy
        self._current: tuple[str, ZipPackage] | None = None
        self._zips: dict[str, str] = {}  # the zip of a file
        self.problems = _find_serious(outer, is_log)
        for name in outer.names():
            if is_log(name):
                self._add_zip(name)
            else:
                self._sizes[name] = outer.size(name)
            if len(self._sizes) > self.limits.entries:
                self._too_many()
                return
        if sum(self._sizes.values()) > self.limits.total_bytes:
            self._give_up("package_too_large", f"unpacks to more than {self.limits.total_bytes:,} bytes")

    def _add_zip(self, name: str) -> None:
        try:
            inner = self._enter(name)
        except PackageError as error:
            self.problems.append(error.problem)
            return
        for problem in _find_serious(inner):
            where = printable(f"{name}/{problem.where}", LONGEST_WHERE)
            self.problems.append(Problem(problem.code, f"{printable(name)}: {problem.message}", where))
        for member in inner.names():
            self._sizes[f"{name}/{member}"] = inner.size(member)
            self._zips[f"{name}/{member}"] = name

    @contextmanager
    def stream(self, name: str, limit: int, *, archives: bool = False) -> Iterator[BinaryIO]:
        self.size(name)
        zipped = self._zips.get(name)
        package = self._outer if zipped is None else self._enter(zipped)
        member = name if zipped is None else name.removeprefix(f"{zipped}/")
        with package.stream(member, limit, archives=archives) as stream:
            yield stream

    def _enter(self, name: str) -> ZipPackage:
        if self._current is None or self._current[0] != name:
            self.close()
            with (
                self._outer.stream(name, self.limits.total_bytes, archives=True) as source,
                self._copy.open("wb") as target,
            ):
                shutil.copyfileobj(source, target, MIB)
            self._current = (name, ZipPackage(self._copy, self.limits))
        return self._current[1]

    def close(self) -> None:
        if self._current is not None:
            self._current[1].close()
            self._current = None
