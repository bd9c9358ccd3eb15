"""Convert traces of Playwright, versions 4 to 10 (Playwright 1.32 to 1.65).

Layout: the zip that ``tracing.stop(path=...)`` writes, its folder, or a zip or folder with several of them. The
``*.trace`` files have an event on each line: ``context-options`` (version, times), ``before``, ``input``, ``log`` and
``after`` of each call, ``screencast-frame``, ``frame-snapshot``, since version 9 ``screenshot``. All contexts of a zip
are one trajectory. Traces of the test runner's own steps are skipped. A trace has no task, answer or thought. It is
named after its zip or folder. Network traces and snapshots are not imported: they may have secrets.

Frames come when the page changes, at most every 200 ms, shrunk to 800 pixels. Playwright may scroll before a click. So
the picture of an action is the first frame between its log lines "done scrolling" and "action done", else the last
frame before it. Points are in CSS pixels of the viewport, whose size the frame states. They count if the page did not
change between its picture and the action. Source: microsoft/playwright d4e1023, ``packages/trace/src/trace.ts``,
``server/trace/recorder/tracing.ts``; checked with traces of Playwright 1.65.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from annotation.formats.agent_logs import (
    LARGEST_LOG,
    Log,
    LoggedStep,
    LogProblem,
    as_list,
    as_object,
    as_text,
    find_task_id,
    format_call,
    is_number,
    log_format,
    peek,
    scale_point,
    size_of,
)
from annotation.formats.archive import LONGEST_WHERE, Package
from annotation.formats.documents import MOST_VALUES, UNSTORABLE, FormatError
from annotation.formats.har.bodies import reject_constant
from annotation.formats.har.reading import LONGEST_LINE
from annotation.formats.printable import printable
from annotation.formats.registry import Progress
from annotation.formats.trajectory_folder import natural_key
from annotation.formats.unpacked import RESOURCES, unpack
from annotation.records import ImportReport, Problem

OLDEST, NEWEST = 4, 10
CONTEXT = re.compile(r'\s*\{[^\n]*"type"\s*:\s*"context-options"')
GENERAL_NAMES = frozenset({"trace", "traces"})
MOST_EVENTS = 1_000_000
LATE_REPORTED, LATE_DRAWN = 300.0, 50.0  # milliseconds from a change of the page to its frame
LONGEST_DELAY = 5_000.0  # milliseconds from drawing a frame to reporting it
VERBS = {
    "click": "CLICK", "tap": "CLICK", "check": "CLICK", "uncheck": "CLICK", "dblclick": "DOUBLE_CLICK",
    "hover": "HOVER", "fill": "TYPE", "type": "TYPE", "press": "TYPE", "selectOption": "SELECT",
    "mouseClick": "CLICK", "mouseMove": "HOVER", "touchscreenTap": "CLICK",
}  # fmt: skip
AT_PARAMS = frozenset({"mouseClick", "mouseMove", "touchscreenTap"})  # nothing is scrolled for these
ACTIONS = frozenset(VERBS) | {
    "goto", "goBack", "goForward", "reload", "setInputFiles", "dragAndDrop", "mouseDown", "mouseUp", "mouseWheel",
    "keyboardDown", "keyboardUp", "keyboardPress", "keyboardType", "keyboardInsertText",
}  # fmt: skip
CLASSES = frozenset({"Frame", "Page", "ElementHandle"})
SNAPSHOTS = {"before": "beforeSnapshot", "action": "inputSnapshot", "after": "afterSnapshot"}  # to version 8
LOST = {
    "console": "console messages",
    "event": "events of pages, such as dialogs and downloads",
    "object": "events of pages, such as dialogs and downloads",
    "frame-snapshot": "page snapshots (DOM)",
    "aria-snapshot": "page snapshots (accessibility)",
    "resource-snapshot": "requests, which may have secrets",
    "stdout": "outputs of the test",
    "stderr": "outputs of the test",
    "error": "outputs of the test",
    "log": "log lines of calls",
}


class _Frame(NamedTuple):
    """A picture of a page: ``time`` in milliseconds, ``size`` of the viewport in CSS pixels, ``late`` as above."""

    time: float
    name: str
    size: tuple[float, float]
    late: float


@dataclass(slots=True)
class _Call:
    """A call of Playwright's API; times in milliseconds, ``scrolled`` and ``acted`` from its log.

    ``file`` and ``key`` are prefixes of the keys of its snapshots.
    """

    file: str
    key: str
    start: float
    method: str
    params: dict[str, Any]
    page: str | None = None
    snapshots: dict[str, str] = field(default_factory=dict)  # names by phase, to version 8
    end: float | None = None
    is_ended: bool = False
    error: str | None = None
    point: tuple[float, float] | None = None
    box: tuple[float, float] | None = None  # its centre
    scrolled: float | None = None
    acted: float | None = None
    shots: dict[str, str] = field(default_factory=dict)  # names of exact pictures by phase

    def find_point(self) -> tuple[float, float] | None:
        at = _point(self.params) if self.method in AT_PARAMS else None
        return at or self.point or self.box

    def settled(self) -> float:
        """Return until when the page may be scrolled for the call."""
        if self.method in AT_PARAMS or self.point is None:
            return self.start
        return self.acted or self.end or float("inf")


def is_trace_zip(name: str) -> bool:
    return name.lower().endswith(".zip") and RESOURCES not in f"/{name}"


def find_traces(package: Package) -> dict[str, list[str]]:
    """Return the ``*.trace`` files by folder, of folders with at least one trace of a browser."""
    folders: dict[str, list[str]] = defaultdict(list)
    for name in sorted(package.names(), key=natural_key):
        if name.endswith(".trace"):
            folders[name.rpartition("/")[0]].append(name)
    return {
        folder: names
        for folder, names in folders.items()
        if any(CONTEXT.match(peek(package, name, 4_096)) for name in names)
    }


def read(package: Package) -> Iterator[Log | LogProblem]:
    for folder, names in find_traces(package).items():
        try:
            yield _Trace(package, folder, names).read()
        except FormatError as error:
            yield LogProblem(folder or names[0], tuple(error.problems))


class _Trace:
    """The trace files of one folder."""

    def __init__(self, package: Package, folder: str, files: list[str]) -> None:
        self.package, self.files, self.above = package, files, f"{folder}/" if folder else ""
        task_id = find_task_id(f"{package.path.name}/{folder}", GENERAL_NAMES)
        self.log = Log(name=folder or files[0], task_id=task_id)
        self.lost: Counter[str] = self.log.lost
        self.calls: dict[str, _Call] = {}
        self.frames: dict[str, list[_Frame]] = defaultdict(list)
        self.times: dict[str, list[float]] = {}  # of the frames
        self.opened: dict[str, float] = {}  # pages, and when
        self.closed: dict[str, float] = {}
        self.urls: dict[str, str | None] = {}  # of main frames by snapshot
        self.events = 0
        self.names = {name for name in package.names() if name.startswith(self.above)}
        self.delay: float | None = None  # from the clock of events to that of frames
        self.used: set[str] = set()

    def read(self) -> Log:
        for name in self.files:
            self._read_file(name)
        if not self.log.version:
            where = printable(self.log.name, LONGEST_WHERE)
            says = f"{where}: has only steps of the test runner; set the option trace of Playwright Test to on."
            raise FormatError(Problem("trace_without_browser", says, where))
        for page, frames in self.frames.items():
            frames.sort()
            self.times[page] = [frame.time for frame in frames]
        calls = sorted(self.calls.values(), key=lambda call: call.start)
        self.log.steps = [self._build_step(call) for call in calls]
        if calls:
            self._add_last(calls[-1])
        self._count_files()
        return self.log

    # --- events ---------------------------------------------------------------------------------------------------

    def _read_file(self, name: str) -> None:
        for number, line in self._read_lines(name):
            event = self._parse(line, printable(f"{name}, line {number:,}", LONGEST_WHERE))
            if number == 1 and not self._begin(event, name):
                self.lost["files with steps of the test runner"] += 1
                return
            self._read_event(event, f"{name}:")  # ids and names are unique in a file

    def _read_lines(self, name: str) -> Iterator[tuple[int, bytes]]:
        with self.package.stream(name, LARGEST_LOG) as stream:
            number, is_cut = 0, False
            while line := stream.readline(LONGEST_LINE):
                was_cut, is_cut = is_cut, not line.endswith(b"\n") and len(line) == LONGEST_LINE
                if was_cut or is_cut:
                    self.lost[f"events of more than {LONGEST_LINE:,} bytes"] += int(is_cut and not was_cut)
                    continue
                self.events += 1
                if self.events > MOST_EVENTS:
                    says = f"{printable(name)} has more than {MOST_EVENTS:,} events."
                    raise FormatError(Problem("trace_too_large", says, printable(name, LONGEST_WHERE)))
                if line.strip():
                    number += 1
                    yield number, line

    def _parse(self, line: bytes, where: str) -> dict[str, Any]:
        if sum(line.count(mark) for mark in (b",", b"[", b"{")) > MOST_VALUES:
            raise FormatError(Problem("json_too_large", f"{where}: has over {MOST_VALUES:,} values.", where))
        try:
            return as_object(json.loads(line, parse_constant=reject_constant))
        except (ValueError, RecursionError) as error:  # UnicodeDecodeError is a ValueError
            says = f"{where}: is not valid JSON; record the trace again, or copy the whole file."
            raise FormatError(Problem("json_invalid", says, where)) from error

    def _begin(self, event: dict[str, Any], name: str) -> bool:
        """Read the first event; return whether the file is the trace of a browser."""
        if event.get("type") != "context-options" or event.get("origin") == "testRunner":
            return False
        version = event.get("version")
        if type(version) is not int or not OLDEST <= version <= NEWEST:
            where = printable(name, LONGEST_WHERE)
            is_old = type(version) is int and version < OLDEST
            fix = (
                "record it again with Playwright 1.32 or newer" if is_old else "record it with Playwright 1.65 or older"
            )
            known = f"versions {OLDEST} to {NEWEST} can be read; {fix}"
            says = f"{where}: is a trace of version {printable(json.dumps(version), 40)}; {known}."
            raise FormatError(Problem("trace_version_unknown", says, where))
        self.log.version = str(version)
        self.lost["titles of traces"] += int(as_text(event.get("title")) is not None)
        wall, clock = _number(event.get("wallTime")), _number(event.get("monotonicTime"))
        self.delay = wall - clock if wall and clock else None
        return True

    def _read_event(self, event: dict[str, Any], prefix: str) -> None:
        kind = event.get("type")
        if kind == "before":
            self._read_before(event, prefix)
        elif kind == "screencast-frame":
            self._read_frame(event)
        elif kind in ("input", "log", "after", "screenshot"):
            self.lost["log lines of calls"] += int(kind == "log")
            if (call := self.calls.get(f"{prefix}{event.get('callId')}")) is not None:
                getattr(self, f"_read_{kind}")(call, event)
        elif kind != "context-options":
            self.lost[LOST.get(str(kind), "events of unknown kinds")] += 1
            if kind == "event":
                self._read_page(event)
            elif kind == "frame-snapshot":
                self._read_snapshot(as_object(event.get("snapshot")), prefix)
        for phase, key in SNAPSHOTS.items():
            if (name := as_text(event.get(key))) and (call := self.calls.get(f"{prefix}{event.get('callId')}")):
                call.snapshots[phase] = name

    def _read_before(self, event: dict[str, Any], prefix: str) -> None:
        method, start = as_text(event.get("method")) or "", _number(event.get("startTime"))
        key = f"{prefix}{event.get('callId')}"
        if method not in ACTIONS or event.get("class") not in CLASSES:
            self.lost["calls that are no actions on a page, such as waits, queries and scripts"] += 1
        elif start is None or key in self.calls:
            self.lost["actions without a time, or with the id of another"] += 1
        else:
            call = _Call(prefix, key, start, method, as_object(event.get("params")), as_text(event.get("pageId")))
            self.calls[key] = call

    def _read_input(self, call: _Call, event: dict[str, Any]) -> None:
        call.point = _point(event.get("point")) or call.point
        box = as_object(event.get("box"))
        sides = [side for key in ("x", "y", "width", "height") if (side := _number(box.get(key))) is not None]
        if len(sides) == 4:
            call.box = (sides[0] + sides[2] / 2, sides[1] + sides[3] / 2)

    def _read_log(self, call: _Call, event: dict[str, Any]) -> None:
        message, time = (as_text(event.get("message")) or "").strip(), _number(event.get("time"))
        if time is not None and time > 0 and message == "done scrolling":
            call.scrolled, call.acted = time, None
        elif time is not None and time > 0 and message.endswith(" action done"):
            call.acted = time

    def _read_after(self, call: _Call, event: dict[str, Any]) -> None:
        call.is_ended, call.end = True, _number(event.get("endTime"))
        call.point = _point(event.get("point")) or call.point
        error = as_object(event.get("error"))
        if error:
            inner = as_object(error.get("error")) or error
            call.error = as_text(inner.get("message")) or "error"
        self.lost["results of calls"] += int(event.get("result") is not None)
        self.lost["log lines of calls"] += len(as_list(event.get("log")))  # to version 5, without times

    def _read_screenshot(self, call: _Call, event: dict[str, Any]) -> None:
        name = f"{self.above}{event.get('file')}"
        if name in self.names:
            call.shots[str(event.get("phase"))] = name
            call.page = call.page or as_text(event.get("pageId"))
        else:
            self.lost["pictures that are not in the upload"] += 1

    def _read_frame(self, event: dict[str, Any]) -> None:
        time, file, old = _number(event.get("timestamp")), as_text(event.get("file")), as_text(event.get("sha1"))
        name = f"{self.above}{file}" if file else f"{self.above}resources/{old}"
        if time is None or name not in self.names:
            self.lost["pictures that are not in the upload" if time is not None else "pictures without a time"] += 1
            return
        drawn, late = _number(event.get("frameSwapWallTime")), LATE_REPORTED
        if drawn is not None and self.delay is not None and 0 <= time - (drawn - self.delay) <= LONGEST_DELAY:
            time, late = drawn - self.delay, LATE_DRAWN
        size = (_number(event.get("width")) or 0.0, _number(event.get("height")) or 0.0)
        page = as_text(event.get("pageId")) or ""
        self.opened.setdefault(page, float("-inf"))
        self.frames[page].append(_Frame(time, name, size, late))

    def _read_page(self, event: dict[str, Any]) -> None:
        page, time = as_text(as_object(event.get("params")).get("pageId")), _number(event.get("time"))
        if page and time is not None and event.get("method") == "page":
            self.opened[page] = time
        elif page and time is not None and event.get("method") == "pageClosed":
            self.closed[page] = time

    def _read_snapshot(self, snapshot: dict[str, Any], prefix: str) -> None:
        """Keep the address and page of a snapshot; to version 8 they have names, later a call and a phase."""
        if snapshot.get("isMainFrame") is not True:
            return
        url, key = as_text(snapshot.get("frameUrl")), f"{prefix}{snapshot.get('callId')}"
        if url and UNSTORABLE.search(url):
            self.lost["URLs with characters that cannot be stored"] += 1
            url = None
        self.urls[f"{prefix}{snapshot.get('snapshotName')}"] = self.urls[f"{key} {snapshot.get('phase')}"] = url
        if (call := self.calls.get(key)) is not None:
            call.page = call.page or as_text(snapshot.get("pageId"))

    # --- steps ----------------------------------------------------------------------------------------------------

    def _build_step(self, call: _Call) -> LoggedStep:
        picture, size, is_exact = self._find_picture(call)
        shown = format_call(call.method, call.params)
        self.lost["ends of calls"] += int(not call.is_ended)
        return LoggedStep(
            call=f"{shown}: {call.error}" if call.error else shown,
            verb="RIGHT_CLICK" if call.params.get("button") == "right" else VERBS.get(call.method, ""),
            url=self._find_url(call, "before") or self._find_url(call, "action"),
            failed=call.error is not None if call.is_ended else None,
            point=self._find_point(call, picture, size, is_exact),
            picture=picture,
        )

    def _find_picture(self, call: _Call) -> tuple[str | None, tuple[float, float] | None, bool]:
        """Return a picture, the size of its viewport, and whether the page did not change until the action."""
        for phase in ("action", "before"):
            if name := call.shots.get(phase):  # one pixel of these is one CSS pixel
                self.used.add(name)
                return name, size_of(self.package, name), phase == "action" or call.settled() == call.start
        page = self._find_page(call)
        if page is None:
            self.lost["screenshots of actions whose page is unknown"] += 1
            return None, None, False
        frame, is_exact = _choose_frame(self.frames.get(page, []), self.times.get(page, []), call)
        if frame is None:
            return None, None, False
        self.used.add(frame.name)
        return frame.name, frame.size, is_exact

    def _find_page(self, call: _Call) -> str | None:
        if call.page is not None:
            return call.page
        none = float("inf")
        there = [page for page, time in self.opened.items() if time <= call.start < self.closed.get(page, none)]
        return there[0] if len(there) == 1 else None

    def _find_point(
        self, call: _Call, picture: str | None, size: tuple[float, float] | None, is_exact: bool
    ) -> tuple[float, float] | None:
        at = call.find_point()
        if at is None or picture is None or size is None or call.method not in VERBS:
            return None
        if not is_exact:
            self.lost["points, because the page changed between the picture and the action"] += 1
            return None
        point = scale_point(at, size, size_of(self.package, picture))
        self.lost["points outside of their picture"] += int(point is None)
        if point is not None:
            self.log.derived["points scaled from the viewport to the picture"] += 1
            self.log.derived["points from the boxes of elements"] += int(at is call.box)
        return point

    def _find_url(self, call: _Call, phase: str) -> str | None:
        name = call.snapshots.get(phase)
        return self.urls.get(f"{call.file}{name}" if name else f"{call.key} {phase}")

    def _add_last(self, call: _Call) -> None:
        """Add the last picture of the last action's page, if it is later than the one of the action."""
        page = self._find_page(call)
        frames = self.frames.get(page, []) if page is not None else []
        name = call.shots.get("after") or (frames[-1].name if frames else None)
        if name is not None and name != self.log.steps[-1].picture:
            self.log.last, self.log.last_url = name, self._find_url(call, "after")
            self.used.add(name)

    def _count_files(self) -> None:
        shots = {name for call in self.calls.values() for name in call.shots.values()}
        frames = {frame.name for frames in self.frames.values() for frame in frames}
        self.lost["pictures between the actions"] += len((shots | frames) - self.used)
        for name in sorted(self.names - shots - frames):
            if name.endswith(".network"):
                self.lost["network traces, which may have secrets"] += 1
            elif name.startswith((f"{self.above}resources/", f"{self.above}aria/")):
                self.lost["resources of pages"] += 1
            elif name.endswith(".stacks"):
                self.lost["positions in the source code of calls"] += 1


def _choose_frame(frames: list[_Frame], times: list[float], call: _Call) -> tuple[_Frame | None, bool]:
    """Return the frame of an action, and whether it shows the page as it was at the action."""
    ready = call.start if call.scrolled is None else call.scrolled
    following = bisect_left(times, ready)
    acted = call.acted if call.scrolled is not None else None
    if acted is not None and following < len(frames) and times[following] <= acted:
        return frames[following], True
    if not following:
        return None, False
    after = bisect_right(times, ready)
    is_quiet = after == len(frames) or times[after] > call.settled() + frames[after].late
    return frames[following - 1], is_quiet


def _number(value: object) -> float | None:
    return float(value) if is_number(value) and abs(value) < 1e15 else None


def _point(value: object) -> tuple[float, float] | None:
    x, y = (_number(as_object(value).get(axis)) for axis in "xy")
    return (x, y) if x is not None and y is not None else None


_TRACES = log_format(
    "playwright-trace",
    title="Playwright traces",
    files="a trace zip, or a zip or folder with several",
    recognise=lambda package: bool(find_traces(package)),
    read=read,
)


def _recognise(package: Package) -> bool:
    with unpack(package, is_trace_zip) as files:
        return _TRACES.recognise is not None and _TRACES.recognise(files)


def _convert(package: Package, folder: Path, report: ImportReport, progress: Progress, agent: str) -> list[Path]:
    with unpack(package, is_trace_zip) as files:
        return _TRACES.convert(files, folder, report, progress, agent) if _TRACES.convert else []


FORMAT = replace(_TRACES, recognise=_recognise, convert=_convert)
