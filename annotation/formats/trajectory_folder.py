"""One trajectory's folder in a package, and the findings about it, for both versions of the format."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from types import MappingProxyType

from annotation.formats.documents import kind_of
from annotation.formats.printable import listing, printable
from annotation.formats.tasks import LONGEST_TEXT, is_count, task_id_problem
from annotation.formats.yaml_text import did_you_mean
from annotation.records import AttachmentKind, AttachmentRecord, Problem

RESULT = "result.json"
SCREENSHOTS = "trajectory"
TRACE_SUFFIXES = (".har", ".har.gz", ".zip")  # the last is a Playwright trace; `har` looks into it
MEDIA_TYPES = {".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".webp": "image/webp"}
IMAGE_SUFFIXES = tuple(MEDIA_TYPES)
MANY_STEPS = 1_000
MOST_STEPS = 20_000
MOST_PROBLEMS = 100
LONGEST_FILE_NAME = 255


@dataclass(frozen=True, slots=True)
class TrajectoryFolder:
    """Where a trajectory lies: ``path`` in the package ("" for its root), ``files`` relative to ``path``."""

    path: str
    label: str
    files: tuple[str, ...]

    def screenshots(self) -> list[str]:
        """The image files directly in ``trajectory/``, by name, in natural order."""
        inside = (name.rpartition("/") for name in self.files)
        return sorted((name for parent, _, name in inside if parent == SCREENSHOTS and is_image(name)), key=natural_key)

    def has_screenshot_folder(self) -> bool:
        return any(name.startswith(f"{SCREENSHOTS}/") for name in self.files)


@dataclass(slots=True)
class Findings:
    """Everything that is wrong or doubtful in one trajectory."""

    folder: TrajectoryFolder
    problems: list[Problem] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)
    left_out: int = 0

    def problem(self, code: str, place: str, says: str) -> None:
        """Adds a problem of the field ``place`` of result.json."""
        if len(self.problems) >= MOST_PROBLEMS:
            self.left_out += 1
            return
        self.problems.append(self._at(code, place, says))

    def warn(self, code: str, place: str, says: str) -> None:
        self.warnings.append(self._at(code, place, says))

    def finish(self) -> list[Problem]:
        """All problems; the last one counts what was left out."""
        if not self.left_out:
            return self.problems
        return [*self.problems, self._at("more_problems", RESULT, f"and {self.left_out:,} more problems")]

    def _at(self, code: str, place: str, says: str) -> Problem:
        return Problem(code, f"{printable(place)}: {says}.", where(self.folder, place))


def where(folder: TrajectoryFolder, place: str) -> str:
    """``<folder>/result.json: action_history[3].thought`` for a field, ``<folder>/<file>`` for a file."""
    prefix = f"{folder.label}/"
    is_file = place in (RESULT, SCREENSHOTS) or place in folder.files
    return printable(f"{prefix}{place}" if is_file else f"{prefix}{RESULT}: {place}", 300)


def is_image(name: str) -> bool:
    return name.lower().endswith(IMAGE_SUFFIXES)


def media_type_of(name: str) -> str:
    """Return the media type for the suffix of an image's name, or ""."""
    return MEDIA_TYPES.get(PurePosixPath(name).suffix.lower(), "")


def natural_key(name: str) -> list[str | int]:
    """Sorts ``2.png`` before ``10.png``: text and numbers by turns."""
    parts = re.split(r"([0-9]+)", name)
    return [int(part) if index % 2 else part for index, part in enumerate(parts)]


def read_text(findings: Findings, document: dict[str, object], key: str, *, required: bool = True) -> str | None:
    """The text at ``key``; null or absent gives None, which is a problem when ``required``."""
    value = document.get(key)
    if value is None and not required:
        return None
    if key not in document:
        findings.problem("field_missing", key, "is missing")
    else:
        check_text(findings, key, value)
    return value if isinstance(value, str) else None


def check_text(findings: Findings, place: str, value: object) -> bool:
    """Whether ``value`` is text of a bearable length; otherwise that is a problem at ``place``."""
    if not isinstance(value, str):
        findings.problem("wrong_type", place, f"must be text, not {kind_of(value)}")
    elif len(value) > LONGEST_TEXT:
        findings.problem("text_too_long", place, f"has {len(value):,} characters; the limit is {LONGEST_TEXT:,}")
    else:
        return True
    return False


def read_task(findings: Findings, document: dict[str, object]) -> tuple[str, str]:
    """task_id and task, both required; empty where that is a problem."""
    says = task_id_problem(document["task_id"]) if "task_id" in document else "task_id is missing"
    if says:
        findings.problem("task_id_invalid", "task_id", says.removeprefix("task_id "))
    text = read_text(findings, document, "task")
    if text is not None and not text.strip():
        findings.problem("task_empty", "task", "is empty")
    return ("" if says else str(document["task_id"])), text or ""


def read_actions(findings: Findings, document: dict[str, object]) -> list[object]:
    """The list action_history; empty where it is missing, no list, or too long to look at."""
    if "action_history" not in document:
        findings.problem("field_missing", "action_history", "is missing")
    actions = document.get("action_history", [])
    if not isinstance(actions, list):
        findings.problem("wrong_type", "action_history", f"must be a list, not {kind_of(actions)}")
        return []
    return actions if check_step_count(findings, "action_history", len(actions)) else []


def check_step_count(findings: Findings, place: str, count: int) -> bool:
    """Whether ``count`` steps can be shown; many are worth a warning."""
    if count > MOST_STEPS:
        findings.problem("too_many_steps", place, f"has {count} steps; the limit is {MOST_STEPS:,}")
        return False
    if count > MANY_STEPS:
        findings.warn("many_steps", place, f"has {count} steps, which is a lot to review")
    return True


def check_reference_length(findings: Findings, document: dict[str, object]) -> int | None:
    """The human reference length, a required whole number."""
    value = document.get("reference_length")
    if "reference_length" not in document:
        findings.problem("field_missing", "reference_length", "is missing")
    elif not is_count(value):
        findings.problem("wrong_type", "reference_length", f"must be a whole number from 0, not {_shown(value)}")
    return value if is_count(value) else None


def check_keys(findings: Findings, prefix: str, document: dict[str, object], known: frozenset[str]) -> None:
    """Every key that is not ``known`` is a problem; ``prefix`` is the place of the object."""
    for key in sorted(document.keys() - known):
        # The search for a similar key takes time, so it is done only for problems that are shown.
        is_shown = len(findings.problems) < MOST_PROBLEMS
        hint = did_you_mean(key[:LONGEST_FILE_NAME], known - document.keys()) if is_shown else ""
        findings.problem(
            "unknown_property", f"{prefix}{key}", f"the key {printable(key)} is not part of this format{hint}"
        )


def read_screenshot(
    findings: Findings, place: str, entry: dict[str, object], available: set[str], *, optional: bool = False
) -> str | None:
    """The picture that a step object names; every step names one, or null where ``optional``."""
    name = entry.get("screenshot")
    if optional and name is None and "screenshot" in entry:
        return None
    if "screenshot" not in entry:
        findings.problem("field_missing", place, "is missing")
    elif not isinstance(name, str):
        findings.problem("wrong_type", place, f"must be a file name, not {kind_of(name)}")
    elif not _is_plain(name):
        says = f"must be a plain file name inside {SCREENSHOTS}/, not {printable(name, 60)}"
        findings.problem("screenshot_path", place, says)
    elif not is_image(name):
        says = f"{printable(name)} must end with {', '.join(IMAGE_SUFFIXES)}"
        findings.problem("screenshot_type", place, says)
    elif name not in available:
        findings.problem("screenshot_missing", place, f"{printable(name)} is not in {SCREENSHOTS}/")
    else:
        return name
    return None


def _is_plain(name: str) -> bool:
    return 0 < len(name) <= LONGEST_FILE_NAME and not any(mark in name for mark in ("/", "\\", "..", ":"))


def read_attachments(
    findings: Findings, input_images: list[str], others: Mapping[str, AttachmentKind] = MappingProxyType({})
) -> tuple[AttachmentRecord, ...]:
    """The known files beside the screenshots, with those ``others`` that the format knows; others are warned of."""
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
        findings.warn("unknown_file", unknown[0], f"not part of a trajectory, left out: {listing(unknown)}")
    return tuple(AttachmentRecord(kind, path) for path, kind in sorted(known.items()))


def _shown(value: object) -> str:
    return printable(repr(value), 40) if isinstance(value, (int, float)) else kind_of(value)
