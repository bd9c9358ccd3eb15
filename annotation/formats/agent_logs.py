"""Convert the logs of agents to `webverdict-1`: what all formats of logs share.

A converter yields a `Log` for each trajectory; `convert_logs` writes the packages. Three rules hold for all formats. A
step is one executed action with the picture of the page before it (`shift_pictures` helps with logs that have the
picture after it). A point is in pixels of that picture, or there is none. Nothing is invented: what a log does not
have is counted as lost, and shown.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import io
import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any, TypeGuard
from weakref import WeakKeyDictionary

from PIL import Image

from annotation.formats.actions import parse_point_prefix, status_suffix
from annotation.formats.archive import LONGEST_WHERE, Limits, Package, PackageError, entry_problem
from annotation.formats.documents import FormatError, decode_text, parse_json
from annotation.formats.printable import listing, printable
from annotation.formats.registry import Format, Progress
from annotation.formats.task_map import RATIO, TASK_MAP, Mapped, read_task_map
from annotation.formats.tasks import LONGEST_TEXT, task_id_problem
from annotation.formats.trajectory_folder import MOST_STEPS, RESULT, SCREENSHOTS
from annotation.formats.webverdict import write_result
from annotation.records import PACKAGE, Conversion, ImportReport, Problem

LARGEST_LOG = 512 * 2**20  # bytes of one document; older logs have their pictures in it
LARGEST_PICTURE = 32 * 2**20  # bytes
LONGEST_CALL = 2_000  # characters of an action; typed texts may be long
SUFFIXES = {"PNG": ".png", "JPEG": ".jpg", "WEBP": ".webp"}
DATA_URI = re.compile(r"data:image/[a-z+.-]+;base64,", re.IGNORECASE)
NOT_IN_TASK_IDS = re.compile(r"[^A-Za-z0-9_-]+")
_NAMES: WeakKeyDictionary[Package, dict[str, list[str]]] = WeakKeyDictionary()
POINTING = frozenset({"CLICK", "DOUBLE_CLICK", "RIGHT_CLICK", "TYPE", "HOVER", "SELECT"})


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedStep:
    """One executed action and the page before it.

    ``call`` is the action as the log states it, on one line: ``click(index=4)``. ``verb`` is its kind in capitals, for
    actions at a ``point``: one of `POINTING`. ``point`` is in pixels of ``picture``, or with ``css_pixels`` in those of
    the viewport, which may be larger; None if there is no point, or if its space is unknown.
    ``picture`` is an image or its name in the package. ``failed`` is None if the log does not say.
    """

    call: str
    verb: str = ""
    thought: str | None = None
    url: str | None = None
    failed: bool | None = None
    point: tuple[float, float] | None = None
    css_pixels: bool = False
    picture: bytes | str | None = None


@dataclass(slots=True, kw_only=True)
class Log:
    """A trajectory of a log. ``name`` says where it is in the upload, and is mapped to a task by `TASK_MAP`.

    ``task_id`` is the log's own id of the task, ``task`` its text; None if the log does not have them. ``last`` is the
    picture after the last action. ``derived`` and ``lost`` count by what, in plain plural words ("thoughts of turns
    without an action").
    """

    name: str
    task_id: str | None = None
    task: str | None = None
    answer: str | None = None
    steps: list[LoggedStep] = field(default_factory=list)
    last: bytes | str | None = None
    last_url: str | None = None
    version: str = ""
    derived: Counter[str] = field(default_factory=Counter)
    lost: Counter[str] = field(default_factory=Counter)


Reader = Callable[[Package], Iterator["Log | LogProblem"]]


@dataclass(frozen=True, slots=True)
class LogProblem:
    """A log that cannot be imported, and why; the other logs of the upload still are."""

    name: str
    problems: tuple[Problem, ...]


def log_format(name: str, title: str, files: str, recognise: Callable[[Package], bool], read: Reader) -> Format:
    """Return the format of logs that ``read`` reads. It raises FormatError if the whole upload cannot be read."""
    return Format(
        name=name,
        title=title,
        files=files,
        recognise=lambda package: not _has_result_folders(package) and recognise(as_files(package)),
        convert=lambda package, folder, report, progress, _agent: convert_logs(
            name, read, as_files(package), folder, report, progress
        ),
        is_log=True,
    )


def _has_result_folders(package: Package) -> bool:
    names = package.names()
    results = {name.rpartition("/")[0] for name in names if name.rpartition("/")[2] == RESULT}
    return any(name.rpartition(f"/{SCREENSHOTS}/")[0] in results for name in names)


# --- files of an upload -----------------------------------------------------------------------------------------------


class _SingleFile(Package):
    """A file that is no zip, as a package of this one file."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, Limits(member_bytes=LARGEST_LOG))
        self._add(path.name, path.stat().st_size)

    def _open(self, name: str) -> Any:
        return self.path.open("rb")


def as_files(package: Package) -> Package:
    """Return ``package``, or a package of the one file if it is a file but no zip."""
    if package.names() or not package.path.is_file():
        return package
    with package.path.open("rb") as file:
        is_zip = file.read(2) == b"PK"
    return package if is_zip else _SingleFile(package.path)


def load(package: Package, name: str) -> Any:
    """Return the JSON document in a file. Raises FormatError."""
    return parse_json(package.read(name, LARGEST_LOG), printable(name, LONGEST_WHERE))


def peek(package: Package, name: str, limit: int = 65_536) -> str:
    """Return the first ``limit`` bytes of a file as text, with replacement characters; "" if it cannot be read."""
    try:
        with package.stream(name, LARGEST_LOG) as stream:
            return stream.read(limit).decode("utf-8", "replace")
    except PackageError:
        return ""


def load_lines(package: Package, name: str) -> Iterator[Any]:
    """Yield the document of each line that is not empty. Raises FormatError with the number of the line."""
    shown = printable(name, LONGEST_WHERE)
    yield from parse_lines(decode_text(package.read(name, LARGEST_LOG), shown), shown)


def parse_lines(text: str, shown: str) -> Iterator[Any]:
    """Yield the document of each line that is not empty; ``shown`` is the file for messages. Raises FormatError."""
    # Not splitlines: JSON allows line separators such as U+2028 in texts.
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            yield parse_json(line.encode("utf-8", "surrogatepass"), f"{shown}, line {number:,}")


def find_picture(package: Package, path: str, beside: str = "", least: int = 1) -> str | None:
    """Return the file in the upload that a log names by ``path``, of any machine; None if there is none or several.

    Absolute paths are of the agent's machine: only the end counts, of ``least`` parts or more. Files next to ``beside``
    come first.
    """
    parts = [part for part in re.split(r"[\\/]", path) if part not in ("", ".", "..")]
    if not parts:
        return None
    above = beside.rpartition("/")[0]
    same_base = _names_by_base(package).get(parts[-1], [])
    for start in range(len(parts) - least + 1):  # the longest end first
        end = "/".join(parts[start:])
        if (near := f"{above}/{end}" if above else end) in same_base:
            return near
        found = [name for name in same_base if name == end or name.endswith(f"/{end}")]
        if found:
            return found[0] if len(found) == 1 else None
    return None


def _names_by_base(package: Package) -> dict[str, list[str]]:
    if package not in _NAMES:
        for name in package.names():
            _NAMES.setdefault(package, {}).setdefault(name.rpartition("/")[2], []).append(name)
    return _NAMES.get(package, {})


def decode_picture(value: object) -> bytes | None:
    """Return the bytes of a data URI or base64 text; None if it is neither. Addresses are never fetched."""
    if not isinstance(value, str):
        return None
    try:
        return base64.b64decode(DATA_URI.sub("", value[:64], count=1) + value[64:], validate=True) or None
    except (binascii.Error, ValueError):
        return None


def size_of(package: Package, picture: bytes | str | None) -> tuple[int, int] | None:
    """Return width and height of a picture; None if it cannot be read."""
    if picture is None:
        return None
    try:
        data = picture if isinstance(picture, bytes) else package.read(picture, LARGEST_PICTURE)
        with Image.open(io.BytesIO(data), formats=list(SUFFIXES)) as image:
            return image.size
    except (OSError, ValueError, SyntaxError, PackageError, Image.DecompressionBombError):
        return None


def find_task_id(name: str, general: Collection[str]) -> str | None:
    """Return the innermost part of a path, without suffix, that is not a ``general`` name of files of a format."""
    stems = (PurePosixPath(part).stem for part in reversed(name.split("/")))
    return next((stem for stem in stems if stem and stem.lower() not in general), None)


# --- values of documents ----------------------------------------------------------------------------------------------


def as_text(value: object) -> str | None:
    """Return a text that is not blank; None for everything else."""
    return value if isinstance(value, str) and value.strip() else None


def one_line(text: str) -> str:
    return " ".join(line.strip() for line in text.splitlines() if line.strip())


def as_object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def as_list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


# --- steps ------------------------------------------------------------------------------------------------------------


def format_call(name: str, arguments: object) -> str:
    """Return an action as a call on one line: ``click(index=4)``. Arguments that are no object are shown as JSON."""
    if isinstance(arguments, dict):
        inside = ", ".join(f"{key}={_show(value)}" for key, value in arguments.items() if value is not None)
    else:
        inside = "" if arguments is None else _show(arguments)
    return f"{name}({inside})"


def _show(value: object) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except RecursionError:  # hostile: the parser allows a few levels more
        return "(nested too deeply)"


def shift_pictures(log: Log, first: bytes | str | None = None) -> Log:
    """Let each step of a log whose pictures were taken *after* the action have the picture before it.

    ``first`` is the picture before the first action. The last picture becomes that of the end.
    """
    after = [step.picture for step in log.steps]
    before = [first, *after][: len(after)]
    log.steps = [replace(step, picture=picture) for step, picture in zip(log.steps, before, strict=True)]
    log.last = after[-1] if after else first
    return log


def scale_point(
    point: Sequence[float], space: tuple[float, float], picture: tuple[int, int] | None
) -> tuple[float, float] | None:
    """Return ``point``, given in a space of the size ``space``, in pixels of a picture; None if it is outside."""
    if picture is None or not (0 <= point[0] <= space[0] and 0 <= point[1] <= space[1]) or min(space) <= 0:
        return None
    return point[0] * picture[0] / space[0], point[1] * picture[1] / space[1]


def is_inside(point: tuple[float, float], size: tuple[int, int]) -> bool:
    return 0 <= point[0] < size[0] and 0 <= point[1] < size[1]


def choose_agent(agents: Iterable[str], asked: str, report: ImportReport) -> str | None:
    """Return the only one of ``agents``, else ``asked`` if it is one of them; None, with a problem, if it is not."""
    found = sorted(set(agents))
    if len(found) == 1:
        return found[0]
    if asked in found:
        return asked
    says = (
        f"The files are of several agents: {listing(found)}. "
        "Import one agent at a time: enter one of these names as the agent's name."
    )
    report.reject(PACKAGE, Problem("several_agents", says, "agent"))
    return None


# --- writing ----------------------------------------------------------------------------------------------------------


def convert_logs(
    format_name: str, read: Reader, package: Package, folder: Path, report: ImportReport, progress: Progress
) -> list[Path]:
    """Write a package for each attempt: the second log of a task is in the second one. See `Format`."""
    writer = _Writer(format_name, package, folder, report)
    if package.problems:
        report.reject(PACKAGE, *package.problems)
        return []
    try:
        for number, log in enumerate(read(package), 1):
            writer.add(log)
            progress(number, number)
    except FormatError as error:
        report.reject(PACKAGE, *error.problems)
        return []
    return writer.finish()


class _Writer:
    def __init__(self, format_name: str, package: Package, folder: Path, report: ImportReport) -> None:
        self.format, self.package, self.folder, self.report = format_name, package, folder, report
        self.conversion = report.conversion = Conversion(format_name)
        self.attempts: Counter[str] = Counter()
        self.map = read_task_map(package, report)
        self.unused = set(self.map)

    def add(self, log: Log | LogProblem) -> None:
        if isinstance(log, LogProblem):
            self.report.reject(printable(log.name), *log.problems)
            return
        mapped = self._find_mapped(log.name)
        task_id = mapped.task_id or log.task_id or PurePosixPath(log.name).stem
        if task_id_problem(task_id):
            task_id = NOT_IN_TASK_IDS.sub("_", task_id).strip("_")[:128] or "log"
            self.conversion.derived["task ids with other characters than the log's"] += 1
        if not log.steps and not (log.answer or "").strip():
            self._refuse(log, "no_steps", "has neither steps nor an answer")
        elif len(log.steps) > MOST_STEPS:
            self._refuse(log, "too_many_steps", f"has {len(log.steps):,} steps; the limit is {MOST_STEPS:,}")
        elif long := next((text for text in (log.task, log.answer) if text and len(text) > LONGEST_TEXT), None):
            self._refuse(log, "text_too_long", f"has a text of {len(long):,} characters; the limit is {LONGEST_TEXT:,}")
        else:
            self._write(log, task_id, mapped.ratio)

    def _find_mapped(self, name: str) -> Mapped:
        """Return the row of a log in the map: by its whole name, else by the last part, with or without suffix."""
        path = PurePosixPath(name)
        for key in (name, path.name, path.stem):
            if key in self.map:
                self.unused.discard(key)
                return self.map[key]
        return Mapped("", None)

    def _refuse(self, log: Log, code: str, says: str) -> None:
        self.report.reject(printable(log.name), entry_problem(code, log.name, says))

    def _write(self, log: Log, task_id: str, ratio: float | None) -> None:
        self.attempts[task_id] += 1
        home = self.folder / f"attempt_{self.attempts[task_id]}" / task_id
        (home / SCREENSHOTS).mkdir(parents=True)
        pictures = _Pictures(self.package, home, log.lost)
        steps = [self._build_step(_scale(step, ratio, log.lost), pictures) for step in log.steps]
        if log.last is not None and (name := pictures.add(log.last)):
            steps.append({"action": "", "thought": None, "url": log.last_url, "screenshot": name})
        self.conversion.carried.update(self._count(log, steps))
        self.conversion.derived.update(log.derived)
        self.conversion.lost.update(log.lost)
        self.conversion.versions |= {log.version} if log.version else set()
        where = printable(log.name, LONGEST_WHERE)
        lost = [
            Problem("log_lost", f"Not in the import: {what} ({count:,}).", where)
            for what, count in log.lost.items()
            if count
        ]
        self.report.warn(task_id, *lost)
        write_result(
            home, source_format=self.format, task_id=task_id, task=log.task, final_answer=log.answer, steps=steps
        )

    def _build_step(self, step: LoggedStep, pictures: _Pictures) -> dict[str, str | None]:
        name = pictures.add(step.picture)
        action = printable(step.call, LONGEST_CALL)
        if parse_point_prefix(action) or status_suffix(action):
            action = f'"{action}"'  # the words of the log, or they would be read as a point or an outcome
        if (
            step.point is not None
            and step.verb in POINTING
            and name is not None
            and pictures.contains(name, step.point)
        ):
            action = f"coords({_number(step.point[0])}, {_number(step.point[1])}) -> {step.verb} -> {action}"
        if step.failed is not None:
            action = f"{action} | {'FAILED' if step.failed else 'SUCCESS'}"
        return {"action": action, "thought": step.thought, "url": step.url, "screenshot": name}

    def _count(self, log: Log, steps: list[dict[str, str | None]]) -> Counter[str]:
        """Return what was carried, and count missing parts of the steps as lost."""
        counted = Counter({"steps": len(log.steps), "screenshots": sum(1 for s in steps if s["screenshot"])})
        counted["points"] = sum(1 for s in steps if str(s["action"]).startswith("coords("))
        counted["thoughts"] = sum(1 for s in steps if s["thought"])
        counted["URLs"] = sum(1 for s in steps if s["url"])
        counted["outcomes of actions"] = sum(1 for s in log.steps if s.failed is not None)
        counted["answers"], counted["task texts"] = int(log.answer is not None), int(log.task is not None)
        executed = steps[: len(log.steps)]
        log.lost["steps without a screenshot"] += sum(1 for s in executed if not s["screenshot"])
        log.lost["logs without an answer"] += int(log.answer is None)
        log.lost["logs without the text of the task"] += int(log.task is None)
        return counted

    def finish(self) -> list[Path]:
        if self.unused:
            says = f"{TASK_MAP} names logs that are not in the upload: {', '.join(sorted(self.unused)[:10])}."
            self.report.warn(PACKAGE, Problem("task_map_unused", printable(says, 500), TASK_MAP))
        return [self.folder / f"attempt_{n}" for n in range(1, max(self.attempts.values(), default=0) + 1)]


class _Pictures:
    """Write the pictures of a trajectory, each distinct one once, in the order of the steps."""

    def __init__(self, package: Package, home: Path, lost: Counter[str]) -> None:
        self.package, self.home, self.lost = package, home, lost
        self.written: dict[str, str | None] = {}
        self.sizes: dict[str, tuple[int, int]] = {}

    def contains(self, name: str, point: tuple[float, float]) -> bool:
        """Return whether a point is inside of a picture that was added; otherwise count it as lost."""
        width, height = self.sizes[name]
        inside = 0 <= point[0] <= width and 0 <= point[1] <= height
        self.lost["points outside of their picture"] += int(not inside)
        return inside

    def add(self, picture: bytes | str | None) -> str | None:
        if picture is None:
            return None
        key = picture if isinstance(picture, str) else f"/{hashlib.sha256(picture).hexdigest()}"
        if key not in self.written:
            self.written[key] = self._write(picture)
        return self.written[key]

    def _write(self, picture: bytes | str) -> str | None:
        try:
            data = picture if isinstance(picture, bytes) else self.package.read(picture, LARGEST_PICTURE)
            with Image.open(io.BytesIO(data), formats=list(SUFFIXES)) as image:
                suffix, size = SUFFIXES[str(image.format)], image.size
        except (OSError, ValueError, SyntaxError, PackageError, Image.DecompressionBombError):
            self.lost["pictures that cannot be read"] += 1
            return None
        name = f"{len(self.written):05d}{suffix}"
        (self.home / SCREENSHOTS / name).write_bytes(data)
        self.sizes[name] = size
        return name


def _scale(step: LoggedStep, ratio: float | None, lost: Counter[str]) -> LoggedStep:
    """Return the step with its point in pixels of its picture, or without a point if the ratio is unknown."""
    if step.point is None or not step.css_pixels:
        return step
    if ratio is None:
        lost[f"points, because the log has no device pixel ratio; state it in {TASK_MAP}, column {RATIO}"] += 1
        return replace(step, point=None)
    return replace(step, point=(step.point[0] * ratio, step.point[1] * ratio))


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
