"""The package of our own, webverdict-1: what other files become before they are imported.

It is version 2 of Online-Mind2Web without what only a live run can have (no finishing action, no status), and with
two kinds of attachments: the ground truth of a step, and the pages that an answer cites.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from annotation.formats import cached_pages
from annotation.formats.archive import PackageError
from annotation.formats.cached_pages import Read
from annotation.formats.documents import FormatError, kind_of, parse_json
from annotation.formats.printable import listing, printable
from annotation.formats.tasks import LARGEST_LENGTH, is_count
from annotation.formats.trajectory_folder import (
    SCREENSHOTS,
    Findings,
    check_keys,
    check_step_count,
    check_text,
    natural_key,
    read_attachments,
    read_screenshot,
    read_task,
    read_text,
)
from annotation.records import AttachmentKind, Problem, SourceFormat, StepRecord, TrajectoryRecord

SCHEMA_VERSION = "webverdict-1"
SOURCES = (SourceFormat.MULTIMODAL_MIND2WEB, SourceFormat.MIND2WEB_2)
KEYS = frozenset({
    "schema_version", "source_format", "task_id", "task", "final_answer", "reference_length", "steps",
})  # fmt: skip
STEP_KEYS = frozenset({"action", "thought", "url", "screenshot"})
REFERENCE = re.compile(r"reference/(0|[1-9][0-9]{0,5})\.json")
REFERENCE_LIMIT = 32 * 2**20  # bytes; a step of Multimodal-Mind2Web has a page and its candidates


def is_native(document: dict[str, object]) -> bool:
    """Whether a result.json says that it is of this format."""
    return document.get("schema_version") == SCHEMA_VERSION


def read_native(document: dict[str, object], findings: Findings, read: Read) -> TrajectoryRecord:
    """The trajectory in ``document``; worth nothing when ``findings`` has problems afterwards.

    ``read`` gives the bytes of a file of the trajectory's folder, at most so many, and raises PackageError.
    """
    check_keys(findings, "", document, KEYS)
    for key in sorted(KEYS - document.keys() - {"task_id", "task"}):
        findings.problem("field_missing", key, "is missing")
    source = _source(findings, document)
    # Answers come without their task's text: null says that it is the benchmark's.
    unsaid = source is SourceFormat.MIND2WEB_2 and document.get("task", "") is None
    task_id, text = read_task(findings, document | {"task": "unsaid"} if unsaid else document)
    answer = read_text(findings, document, "final_answer", required=False)
    steps = _steps(findings, document)
    _check_content(findings, source, steps, answer)
    attached = _Attached(findings, read)
    return TrajectoryRecord(
        folder=findings.folder.path,
        task_id=task_id,
        task_text="" if unsaid else text,
        final_answer=answer,
        source_format=source,
        steps=steps,
        reference_length=_reference_length(findings, document),
        attachments=read_attachments(findings, [], attached.references(len(steps)) | attached.pages()),
    )


def _source(findings: Findings, document: dict[str, object]) -> SourceFormat:
    value = document.get("source_format")
    if value in SOURCES:
        return SourceFormat(str(value))
    if "source_format" in document:
        shown = printable(value) if isinstance(value, str) else kind_of(value)
        findings.problem("source_format_unknown", "source_format", f"is {shown}, not {' or '.join(SOURCES)}")
    return SOURCES[0]


def _reference_length(findings: Findings, document: dict[str, object]) -> int | None:
    value = document.get("reference_length")
    if value is None or is_count(value):
        return value
    shown = printable(str(value), 30) if isinstance(value, (int, float)) else kind_of(value)
    says = f"must be a whole number from 0 to {LARGEST_LENGTH:,}, or null, not {shown}"
    findings.problem("wrong_type", "reference_length", says)
    return None


def _steps(findings: Findings, document: dict[str, object]) -> tuple[StepRecord, ...]:
    entries = document.get("steps", [])
    if not isinstance(entries, list):
        findings.problem("wrong_type", "steps", f"must be a list, not {kind_of(entries)}")
        return ()
    if not check_step_count(findings, "steps", len(entries)):
        return ()
    available = set(findings.folder.screenshots())
    steps = tuple(_step(findings, index, entry, available) for index, entry in enumerate(entries))
    unused = sorted(available - {step.screenshot for step in steps if step.screenshot}, key=natural_key)
    if unused and not findings.problems:
        findings.warn("screenshot_unused", SCREENSHOTS, f"no step names these screenshots: {listing(unused)}")
    return steps


def _step(findings: Findings, index: int, entry: object, available: set[str]) -> StepRecord:
    place = f"steps[{index}]"
    if not isinstance(entry, dict):
        findings.problem("wrong_type", place, f"must be an object, not {kind_of(entry)}")
        return StepRecord(index, "")
    check_keys(findings, f"{place}.", entry, STEP_KEYS)
    texts = {key: _text(findings, place, entry, key) for key in ("action", "thought", "url")}
    return StepRecord(
        index=index,
        action=texts["action"] or "",
        thought=texts["thought"],
        url=texts["url"],
        screenshot=read_screenshot(findings, f"{place}.screenshot", entry, available, optional=True),
    )


def _text(findings: Findings, place: str, entry: dict[str, object], key: str) -> str | None:
    value = entry.get(key)
    if key not in entry:
        findings.problem("field_missing", f"{place}.{key}", "is missing")
        return None
    if value is None and key != "action":
        return None
    return value if check_text(findings, f"{place}.{key}", value) and isinstance(value, str) else None


def _check_content(findings: Findings, source: SourceFormat, steps: tuple[StepRecord, ...], answer: str | None) -> None:
    """A trajectory has steps, or it is an answer."""
    if steps:
        return
    if source is SourceFormat.MULTIMODAL_MIND2WEB:
        findings.problem("no_steps", "steps", "has no steps")
    elif not (answer or "").strip():
        findings.problem("answer_missing", "final_answer", "is empty, and there are no steps either")


@dataclass(slots=True)
class _Attached:
    """Checks the attachments that only this format has; what is not known is left to `read_attachments`."""

    findings: Findings
    read: Read

    def references(self, steps: int) -> dict[str, AttachmentKind]:
        """``reference/<step>.json``: one object for a step that is there."""
        found = {}
        for name in self.findings.folder.files:
            matched = REFERENCE.fullmatch(name)
            if matched is None:
                continue
            found[name] = AttachmentKind.REFERENCE_STEP
            if int(matched[1]) >= steps:
                self.findings.problem("reference_step_unknown", name, f"there is no step {matched[1]}")
            elif not isinstance(document := self._document(name), (dict, type(None))):
                self.findings.problem("wrong_type", name, f"must be an object, not {kind_of(document)}")
        return found

    def pages(self) -> dict[str, AttachmentKind]:
        """``pages/index.json`` and every file that it stands for."""
        if cached_pages.INDEX not in self.findings.folder.files:
            return {}
        try:
            data = self.read(cached_pages.INDEX, cached_pages.LIMITS[".json"])
            index = cached_pages.read_index(data, cached_pages.INDEX)
        except (PackageError, FormatError) as error:
            self._add(error)
            return {}
        found, seen = {cached_pages.INDEX: AttachmentKind.CACHED_PAGE}, set()
        above = f"{cached_pages.FOLDER}/"
        there = {path.removeprefix(above) for path in self.findings.folder.files if path.startswith(above)}
        for address, kind in index.items():
            for name in cached_pages.files_of(address, kind, there):
                if name in seen:  # many addresses may share a file, and a broken one is read once as well
                    continue
                seen.add(name)
                if self._is_good(above + name, address):
                    found[above + name] = AttachmentKind.CACHED_PAGE
        return found

    def _is_good(self, path: str, address: str) -> bool:
        if path not in self.findings.folder.files:
            says = f"{printable(path)} is not there, but the index names {printable(address, 200)}"
            self.findings.problem("page_missing", cached_pages.INDEX, says)
            return False
        try:
            problem = cached_pages.content_problem(path, self.read)
        except PackageError as error:
            self._add(error)
            return False
        if problem is not None:
            self.findings.problem(problem.code, path, _says(problem))
        return problem is None

    def _document(self, name: str) -> object:
        try:
            return parse_json(self.read(name, REFERENCE_LIMIT), name)
        except (PackageError, FormatError) as error:
            self._add(error)
            return None

    def _add(self, error: PackageError | FormatError) -> None:
        problems = [error.problem] if isinstance(error, PackageError) else error.problems
        for problem in problems:
            self.findings.problem(problem.code, problem.where.partition(": ")[0], _says(problem))


def _says(problem: Problem) -> str:
    """The message without the file's name before it and the full stop after it: the finding adds both."""
    return problem.message.removeprefix(f"{problem.where.partition(': ')[0]}: ").removesuffix(".")
