"""The zip of a Playwright trace: ``*.network`` has one JSON line a request, ``resources/<sha1>`` the bodies.

A line is written when its response is complete, so the entries are brought back into the order in which they began.
The lines lie in a temporary file meanwhile; what memory holds is where each begins.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from annotation.formats.archive import Limits, PackageError, ZipPackage
from annotation.formats.documents import FormatError, kind_of
from annotation.formats.har.bodies import LONGEST_TEXT, is_text, media_type
from annotation.formats.har.limits import LARGEST, MIB, MOST_ENTRIES, MOST_VALUES
from annotation.formats.har.streaming import UNUSED, failed
from annotation.formats.printable import printable
from annotation.formats.trajectory_folder import natural_key
from annotation.records import Problem

NETWORK = ".network"
LONGEST_LINE = 16 * MIB
BODY_NAME = re.compile(r"[\w.-]{1,200}", re.ASCII)
HOW = "record it with context.tracing.start(snapshots=True), or export the HAR itself"
# These only concern files that nobody reads, or come up again when one is read.
HARMLESS = frozenset({"nested_archive", "compression_ratio", "file_too_large"})


class PlaywrightTrace:
    """The entries of a trace, in the order of their start; ``head`` is empty."""

    def __init__(self, package: ZipPackage, lines: IO[bytes], name: str) -> None:
        self.head: dict[str, Any] = {}
        self._package = package
        self._lines = lines
        self._name = name

    @classmethod
    @contextmanager
    def opened(cls, path: Path, name: str) -> Iterator[PlaywrightTrace]:
        """Open the zip at ``path``. Raises FormatError if it is damaged, hostile or no trace."""
        package = ZipPackage(path, Limits(total_bytes=32 * LARGEST))
        try:
            for problem in package.problems:
                if problem.code not in HARMLESS:
                    message = f"{printable(name)}: {problem.message} Record the trace again."
                    raise FormatError(Problem(problem.code, message, printable(name, 300)))
            with tempfile.TemporaryFile(prefix="trace-") as lines:
                yield cls(package, lines, name)
        finally:
            package.close()

    def __iter__(self) -> Iterator[Any]:
        networks = sorted((name for name in self._package.names() if name.endswith(NETWORK)), key=natural_key)
        if not networks:
            raise failed("trace_zip_invalid", self._name, f"is no Playwright trace: it has no *{NETWORK} file; {HOW}")
        begun: list[tuple[str, float, int]] = []  # when an entry began, and where its line is
        for network in networks:
            self._spool(network, begun)
        begun.sort()
        for _, _, place in begun:
            self._lines.seek(place)
            yield self._with_bodies(json.loads(self._lines.readline()))

    def _spool(self, network: str, begun: list[tuple[str, float, int]]) -> None:
        """Copy the entries of one file into the temporary one."""
        for number, line in enumerate(self._read_lines(network), start=1):
            entry = self._entry(line, f"{network}, line {number:,}")
            if entry is None:
                continue
            if len(begun) >= MOST_ENTRIES:
                raise failed("har_too_large", self._name, f"has more than {MOST_ENTRIES:,} entries")
            begun.append((*_begun(entry), self._lines.tell()))
            self._lines.write(json.dumps(entry, separators=(",", ":")).encode() + b"\n")

    def _read_lines(self, network: str) -> Iterator[bytes]:
        try:
            with self._package.stream(network, LARGEST) as stream:
                while line := stream.readline(LONGEST_LINE + 1):
                    if len(line) > LONGEST_LINE:
                        says = f"{network} has a line of more than {LONGEST_LINE:,} bytes"
                        raise failed("har_too_large", self._name, says)
                    if line.strip():
                        yield line
        except PackageError as error:
            raise failed("trace_zip_invalid", self._name, error.problem.message.rstrip(".")) from error

    def _entry(self, line: bytes, where: str) -> dict[str, Any] | None:
        """Return the HAR entry on a line; None for a line about something else."""
        if sum(line.count(mark) for mark in (b",", b"[", b"{")) > MOST_VALUES:
            raise failed("har_too_large", self._name, f"{where} has more than {MOST_VALUES:,} values")
        try:
            event = json.loads(line, parse_constant=_refuse)
        except (ValueError, RecursionError) as error:
            says = f"{where} is not valid JSON; record the trace again, or copy it whole"
            raise failed("json_invalid", self._name, says) from error
        if not isinstance(event, dict) or event.get("type") != "resource-snapshot":
            return None
        snapshot = event.get("snapshot")
        if not isinstance(snapshot, dict):
            says = f"{where}: snapshot must be an object, not {kind_of(snapshot)}"
            raise failed("har_invalid", self._name, says)
        return {key: value for key, value in snapshot.items() if key not in UNUSED}

    def _with_bodies(self, entry: dict[str, Any]) -> dict[str, Any]:
        for side, key in (("request", "postData"), ("response", "content")):
            message = entry.get(side)
            body = message.get(key) if isinstance(message, dict) else None
            if isinstance(body, dict) and not body.get("text") and isinstance(body.get("_sha1"), str):
                text = self._body(body["_sha1"], str(body.get("mimeType") or ""))
                if text is not None:
                    body["text"] = text
                    body.pop("encoding", None)
        return entry

    def _body(self, sha1: str, stated: str) -> str | None:
        """Return a body as text; None if it is no text, too long, or not in the zip."""
        if not BODY_NAME.fullmatch(sha1) or not is_text(media_type(stated)):
            return None
        try:
            data = self._package.read(f"resources/{sha1}", LONGEST_TEXT)
        except PackageError:
            return None
        return None if 0 in data[:1000] else data.decode("utf-8", "replace")


def _begun(entry: dict[str, Any]) -> tuple[str, float]:
    """Return the time of day, and within the millisecond the clock of the recorder."""
    started, clock = entry.get("startedDateTime"), entry.get("_monotonicTime")
    is_number = isinstance(clock, (int, float)) and not isinstance(clock, bool) and abs(clock) < 2**53
    return (started if isinstance(started, str) else ""), (float(clock) if is_number else 0.0)  # type: ignore[arg-type]


def _refuse(constant: str) -> None:
    raise ValueError(constant)
