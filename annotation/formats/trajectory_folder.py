"""The folder of a trajectory in a package, and the parts of its result.json that several formats share."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from types import MappingProxyType

from annotation.formats.documents import kind_of
from annotation.formats.printable import listing, printable
from annotation.formats.tasks import LARGEST_LENGTH, LONGEST_TEXT, is_count, task_id_problem
from annotation.formats.yaml_text import did_you_mean
from annotation.records import AttachmentKind, AttachmentRecord, Problem, StepRecord

RESULT = "result.json"
SCREENSHOTS = "trajectory"
LAYOUT = f"zipped folders TASK_ID with {RESULT} and {SCREENSHOTS}/"
TRACE_SUFFIXES = (".har", ".har.gz", ".zip")  # the last is a Playwright trace, which `har` reads
MEDIA_TYPES = {".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".webp": "image/webp"}
IMAGE_SUFFIXES = tuple(MEDIA_TYPES)
MANY_STEPS = 1_000
MOST_STEPS = 20_000
MOST_PROBLEMS = 100
LONGEST_FILE_NAME = 255


@dataclass(frozen=True, slots=True)
class TrajectoryFolder:
    """``path`` is its path in the package ("" for the root); ``files`` are relative to it."""

    path: str
    label: str
    files: tuple[str, ...]

    def screenshots(self) -> list[str]:
        """Return the names of the images directly in ``trajectory/``, in natural order."""
        inside = (name.rpartition("/") for name in self.files)
        return sorted((name for parent, _, name in inside if parent == SCREENSHOTS and is_image(name)), key=natural_key)


@dataclass(slots=True)
class Findings:
    """The problems of and warnings about one trajectory."""

    folder: TrajectoryFolder
    problems: list[Problem] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)
    left_out: int = 0

    def problem(self, code: str, place: str, says: str) -> None:
        """Add a problem of the field ``place`` of result.json."""
        if len(self.problems) >= MOST_PROBLEMS:
            self.left_out += 1
            return
        self.problems.append(self._at(code, place, says))

    def warn(self, code: str, place: str, says: str) -> None:
        self.warnings.append(self._at(code, place, says))

    def finish(self) -> list[Problem]:
        """Return all problems; the last one counts those that were left out."""
        if not self.left_out:
            return self.problems
        return [*self.problems, self._at("more_problems", RESULT, f"and {self.left_out:,} more problems")]

    def _at(self, code: str, place: str, says: str) -> Problem:
        # <folder>/result.json: action_history[3].thought for a field, <folder>/<file> for a file.
        is_file = place in (RESULT, SCREENSHOTS) or place in self.folder.files
        where = f"{self.folder.label}/{place if is_file else f'{RESULT}: {place}'}"
        return Problem(code, f"{printable(place)}: {says}.", printable(where, 300))


def is_image(name: str) -> bool:
    return name.lower().endswith(IMAGE_SUFFIXES)


def media_type_of(name: str) -> str:
    """Return the media type for the suffix of an image's name, or ""."""
    return MEDIA_TYPES.get(PurePosixPath(name).suffix.lower(), "")


def natural_key(name: str) -> list[str | int]:
    """Return a key that sorts ``2.png`` before ``10.png``."""
    parts = re.split(r"([0-9]+)", name)
    return [int(part) if index % 2 else part for index, part in enumerate(parts)]


def read_text(
    findings: Findings,
    document: dict[str, object],
    key: str,
    *,
    prefix: str = "",
    nullable: bool = False,
    optional: bool = False,
) -> str | None:
    """Return the text at ``key`` of the object whose place is ``prefix``; None if it is null, absent or not text."""
    value = document.get(key)
    if key not in document and not optional:
        findings.problem("field_missing", f"{prefix}{key}", f"is missing{' (null is allowed)' if nullable else ''}")
    elif key in document and not (nullable and value is None):
        check_text(findings, f"{prefix}{key}", value)
    return value if isinstance(value, str) else None


def check_text(findings: Findings, place: str, value: object) -> str | None:
    """Return ``value`` if it is text that is not too long; otherwise None, and add a problem at ``place``."""
    if not isinstance(value, str):
        findings.problem("wrong_type", place, f"must be text, not {kind_of(value)}")
    elif len(value) > LONGEST_TEXT:
        findings.problem("text_too_long", place, f"has {len(value):,} characters; the limit is {LONGEST_TEXT:,}")
    else:
        return value
    return None


def read_task(findings: Findings, document: dict[str, object], *, nullable: bool = False) -> tuple[str, str]:
    """Return task_id and task, both required; a ``nullable`` task is "" for null. Unusable values are also ""."""
    says = task_id_problem(document["task_id"]) if "task_id" in document else "task_id is missing"
    if says:
        findings.problem("task_id_invalid", "task_id", says.removeprefix("task_id "))
    text = read_text(findings, document, "task", nullable=nullable)
    if text is not None and not text.strip():
        findings.problem("task_empty", "task", "is empty")
    return ("" if says else str(document["task_id"])), text or ""


def read_list(findings: Findings, document: dict[str, object], key: str) -> list[object]:
    """Return the required list of steps at ``key``; an empty list if it is not a list, or too long."""
    if key not in document:
        findings.problem("field_missing", key, "is missing")
    entries = document.get(key, [])
    if not isinstance(entries, list):
        findings.problem("wrong_type", key, f"must be a list, not {kind_of(entries)}")
        return []
    return entries if check_step_count(findings, key, len(entries)) else []


def check_step_count(findings: Findings, place: str, count: int) -> bool:
    """Return whether ``count`` steps can be shown; warn if there are many."""
    if count > MOST_STEPS:
        findings.problem("too_many_steps", place, f"has {count} steps; the limit is {MOST_STEPS:,}")
        return False
    if count > MANY_STEPS:
        findings.warn("many_steps", place, f"has {count} steps, which is a lot to review")
    return True


def read_reference_length(findings: Findings, document: dict[str, object], *, nullable: bool = False) -> int | None:
    value = document.get("reference_length")
    if "reference_length" not in document:
        findings.problem("field_missing", "reference_length", f"is missing{' (null is allowed)' if nullable else ''}")
    elif not is_count(value) and not (nullable and value is None):
        shown = printable(repr(value), 40) if isinstance(value, (int, float)) else kind_of(value)
        allowed = f"a whole number from 0 to {LARGEST_LENGTH:,}{', or null' if nullable else ''}"
        findings.problem("wrong_type", "reference_length", f"must be {allowed}, not {shown}")
    return value if is_count(value) else None


def read_step(
    findings: Findings,
    place: str,
    index: int,
    entry: object,
    keys: frozenset[str],
    available: set[str],
    *,
    needs_url: bool = False,
    needs_screenshot: bool = False,
) -> StepRecord:
    """Return the step object at ``place``; keys that are not in ``keys`` are problems.

    ``url`` may be absent unless ``needs_url``, ``screenshot`` may be null unless ``needs_screenshot``.
    """
    if not isinstance(entry, dict):
        findings.problem("wrong_type", place, f"must be an object, not {kind_of(entry)}")
        return StepRecord(index, "")
    prefix = f"{place}."
    check_keys(findings, prefix, entry, keys)
    return StepRecord(
        index=index,
        action=read_text(findings, entry, "action", prefix=prefix) or "",
        thought=read_text(findings, entry, "thought", prefix=prefix, nullable=True),
        url=read_text(findings, entry, "url", prefix=prefix, nullable=True, optional=not needs_url),
        screenshot=read_screenshot(findings, f"{prefix}screenshot", entry, available, nullable=not needs_screenshot),
    )


def warn_of_unused_screenshots(findings: Findings, steps: Iterable[StepRecord], available: set[str]) -> None:
    unused = sorted(available - {step.screenshot for step in steps if step.screenshot}, key=natural_key)
    if unused and not findings.problems:
        findings.warn("screenshot_unused", SCREENSHOTS, f"no step names these screenshots: {listing(unused)}")


def check_keys(findings: Findings, prefix: str, document: dict[str, object], known: frozenset[str]) -> None:
    """Add a problem for every key that is not ``known``; ``prefix`` is the place of the object."""
    for key in sorted(document.keys() - known):
        # The search for a similar key takes time, so it is done only for problems that are shown.
        is_shown = len(findings.problems) < MOST_PROBLEMS
        hint = did_you_mean(key[:LONGEST_FILE_NAME], known - document.keys()) if is_shown else ""
        findings.problem(
            "unknown_property", f"{prefix}{key}", f"the key {printable(key)} is not part of this format{hint}"
        )


def read_screenshot(
    findings: Findings, place: str, entry: dict[str, object], available: set[str], *, nullable: bool = False
) -> str | None:
    name = entry.get("screenshot")
    if nullable and name is None and "screenshot" in entry:
        return None
    if "screenshot" not in entry:
        findings.problem("field_missing", place, "is missing")
    elif not isinstance(name, str):
        findings.problem("wrong_type", place, f"must be a file name, not {kind_of(name)}")
    elif not 0 < len(name) <= LONGEST_FILE_NAME or any(mark in name for mark in ("/", "\\", "..", ":")):
        says = f"must be a plain file name inside {SCREENSHOTS}/, not {printable(name, 60)}"
        findings.problem("screenshot_path", place, says)
    elif not is_image(name):
        says = f"{printable(name)} must end with {', '.join(IMAGE_SUFFIXES)}"
        findings.problem("screenshot_type", place, says)
    elif name not in available:
        findings.problem("screenshot_missing", place, f"{printable(name)} is missing from {SCREENSHOTS}/")
    else:
        return name
    return None


def read_attachments(
    findings: Findings, input_images: list[str], others: Mapping[str, AttachmentKind] = MappingProxyType({})
) -> tuple[AttachmentRecord, ...]:
    """Return the known files except screenshots, including ``others`` of the format; warn about all other files."""
    known = dict.fromkeys(input_images, AttachmentKind.INPUT_IMAGE) | dict(others)
    unknown = []
    for name in findings.folder.files:
        parent = name.rpartition("/")[0]
        if name in known or name == RESULT or (parent == SCREENSHOTS and is_image(name)):
            continue
        if not parent and name.lower().endswith(TRACE_SUFFIXES):
            known[name] = AttachmentKind.NETWORK_TRACE
        elif name == "agent_response.json":
            known[name] = AttachmentKind.AGENT_RESPONSE
        else:
            unknown.append(name)
    if unknown:
        findings.warn("unknown_file", unknown[0], f"not part of a trajectory, ignored: {listing(unknown)}")
    return tuple(AttachmentRecord(kind, path) for path, kind in sorted(known.items()))
