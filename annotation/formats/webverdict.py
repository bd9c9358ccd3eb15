"""Our own package format webverdict-1, into which other formats are converted before they are imported.

It is version 2 of Online-Mind2Web without the parts of a live run (finishing action, status), and with two kinds of
attachments: the ground truth of a step, and the pages that an answer cites.

Layout: ``<task_id>/result.json``, images in ``trajectory/``, ground truth in ``reference/<step>.json`` (any object),
cached pages in ``pages/`` (index.json and its files). Keys of result.json, all required: ``schema_version``
(webverdict-1), ``source_format`` (multimodal-mind2web or mind2web-2), ``task_id``, ``task``, ``final_answer`` (a text
or null), ``reference_length`` (a whole number or null), ``steps``: a list of objects with ``action``, ``thought``,
``url`` and ``screenshot``; the last three may be null. With mind2web-2, ``steps`` may be empty if there is an answer,
and ``task`` may be null.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from annotation.formats import cached_pages
from annotation.formats.actions import parse_point_prefix, status_suffix
from annotation.formats.cached_pages import Read
from annotation.formats.documents import FormatError, kind_of, parse_json
from annotation.formats.printable import printable
from annotation.formats.registry import Format, converted_formats
from annotation.formats.trajectory_folder import (
    RESULT,
    Findings,
    check_keys,
    read_attachments,
    read_list,
    read_reference_length,
    read_step,
    read_task,
    read_text,
    warn_of_unused_screenshots,
)
from annotation.records import AttachmentKind, Problem, TrajectoryRecord

SCHEMA_VERSION = "webverdict-1"
KEYS = frozenset({
    "schema_version", "source_format", "task_id", "task", "final_answer", "reference_length", "steps",
})  # fmt: skip
STEP_KEYS = frozenset({"action", "thought", "url", "screenshot"})
REFERENCE = re.compile(r"reference/(0|[1-9][0-9]{0,5})\.json")
REFERENCE_LIMIT = 32 * 2**20  # bytes; a step of Multimodal-Mind2Web has a page and its candidates


def write_result(
    folder: Path,
    *,
    source_format: str,
    task_id: str,
    task: str | None,
    final_answer: str | None = None,
    reference_length: int | None = None,
    steps: Sequence[dict[str, str | None]] = (),
) -> None:
    """Write the result.json of a trajectory, creating its folder. Raises OSError."""
    document = {
        "schema_version": SCHEMA_VERSION,
        "source_format": source_format,
        "task_id": task_id,
        "task": task,
        "final_answer": final_answer,
        "reference_length": reference_length,
        "steps": list(steps),
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / RESULT).write_text(json.dumps(document, ensure_ascii=False), encoding="utf-8")


def read_native(document: dict[str, object], findings: Findings, read: Read) -> TrajectoryRecord:
    """Return the trajectory in ``document``; it is not usable if ``findings`` has problems afterwards.

    ``read(name, limit)`` returns the bytes of a file of the trajectory's folder, and raises PackageError.
    """
    check_keys(findings, "", document, KEYS)
    source = _read_source(findings, document)
    # Answers do not state the text of their task: null means the benchmark's text.
    task_id, text = read_task(findings, document, nullable=source.is_answer or source.is_log)
    answer = read_text(findings, document, "final_answer", nullable=True)
    available = set(findings.folder.screenshots())
    steps = tuple(
        read_step(findings, f"steps[{index}]", index, entry, STEP_KEYS, available, needs_url=True)
        for index, entry in enumerate(read_list(findings, document, "steps"))
    )
    if source.is_log:
        steps = tuple(
            # Other coordinates of a log may be in another space than the pixels of the picture.
            replace(step, status=status_suffix(step.action), click=parse_point_prefix(step.action))
            for step in steps
        )
    warn_of_unused_screenshots(findings, steps, available)
    if not steps and not (source.is_answer or source.is_log):
        findings.problem("no_steps", "steps", "has no steps")
    elif not steps and not (answer or "").strip():
        findings.problem("answer_missing", "final_answer", "is empty, and there are no steps either")
    attached = _Attachments(findings, read)
    return TrajectoryRecord(
        folder=findings.folder.path,
        task_id=task_id,
        task_text=text,
        final_answer=answer,
        source_format=source.name,
        steps=steps,
        reference_length=read_reference_length(findings, document, nullable=True),
        attachments=read_attachments(findings, [], attached.references(len(steps)) | attached.pages()),
    )


def _read_source(findings: Findings, document: dict[str, object]) -> Format:
    value, known = document.get("source_format"), converted_formats()
    if isinstance(value, str) and value in known:
        return known[value]
    if "source_format" not in document:
        findings.problem("field_missing", "source_format", "is missing")
    else:
        shown = printable(value) if isinstance(value, str) else kind_of(value)
        findings.problem("source_format_unknown", "source_format", f"is {shown}, not {' or '.join(known)}")
    return Format(name="", title="", files="")


@dataclass(slots=True)
class _Attachments:
    """The attachments that only this format has, with their checks."""

    findings: Findings
    read: Read

    def references(self, steps: int) -> dict[str, AttachmentKind]:
        """Return the files ``reference/<step>.json``, each an object for an existing step."""
        found = {}
        for name in self.findings.folder.files:
            matched = REFERENCE.fullmatch(name)
            if matched is None:
                continue
            found[name] = AttachmentKind.REFERENCE_STEP
            if int(matched[1]) >= steps:
                self.findings.problem("reference_step_unknown", name, f"step {matched[1]} does not exist")
                continue
            try:
                document = parse_json(self.read(name, REFERENCE_LIMIT), name)
                if not isinstance(document, dict):
                    raise FormatError(Problem("wrong_type", f"must be an object, not {kind_of(document)}", name))
            except FormatError as error:
                self._add(error)
        return found

    def pages(self) -> dict[str, AttachmentKind]:
        """Return ``pages/index.json`` and the files of its pages."""
        if cached_pages.INDEX not in self.findings.folder.files:
            return {}
        try:
            data = self.read(cached_pages.INDEX, cached_pages.LIMITS[".json"])
            index = cached_pages.read_index(data, cached_pages.INDEX)
        except FormatError as error:
            self._add(error)
            return {}
        found, seen = {cached_pages.INDEX: AttachmentKind.CACHED_PAGE}, set()
        above = f"{cached_pages.FOLDER}/"
        there = {path.removeprefix(above) for path in self.findings.folder.files if path.startswith(above)}
        for address, kind in index.items():
            for name in cached_pages.files_of(address, kind, there):
                if name in seen:  # addresses may share a file
                    continue
                seen.add(name)
                if self._is_good(above + name, address):
                    found[above + name] = AttachmentKind.CACHED_PAGE
        return found

    def _is_good(self, path: str, address: str) -> bool:
        if path not in self.findings.folder.files:
            says = f"{printable(path)} is missing, but the index names {printable(address, 200)}"
            self.findings.problem("page_missing", cached_pages.INDEX, says)
            return False
        try:
            cached_pages.check_content(path, self.read)
        except FormatError as error:
            self._add(error)
            return False
        return True

    def _add(self, error: FormatError) -> None:
        for problem in error.problems:
            place = problem.where.partition(": ")[0]
            # A finding adds the file name and the full stop again.
            says = problem.message.removeprefix(f"{place}: ").removesuffix(".")
            self.findings.problem(problem.code, place, says)
