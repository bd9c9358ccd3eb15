"""Write trajectories in the Agent Trajectory Interchange Format; `annotation.formats.external.atif` reads them.

ATIF has pictures after a call, so that of the first step is in the observation of the task. What ATIF has no place for
(URLs, points, outcomes) is in ``extra``, below the key webverdict. Covered screenshots are written covered.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from annotation import screenshots
from annotation.formats.actions import parse_point_prefix, status_suffix
from annotation.formats.agent_logs import POINTING, format_call
from annotation.formats.external.atif import NAMESPACE, TEXT_CALL
from annotation.models import Step, Submission, Trajectory
from annotation.redactions import find_current

VERSION = "ATIF-v1.7"  # the first one without a required session_id
IMAGES = "images"
CALL = re.compile(r"(?P<name>[A-Za-z_][\w.-]*)\((?P<arguments>.*)\)", re.DOTALL)
KEY = re.compile(r"(?:, )?(?P<key>[^=(),\s]+)=")
POINT = re.compile(r"coords\([0-9., ]+\) -> (?P<verb>[A-Z_]+) -> (?P<rest>.*)", re.DOTALL)
STATUS = re.compile(r" \| (?:SUCCESS|FAILED)\Z")
SUFFIXES = {"image/png": ".png", "image/jpeg": ".jpg", "image/webp": ".webp"}


def export_submission(submission: Submission, folder: Path) -> int:
    """Write ``<task id>/trajectory.json`` and images for each trajectory, and return how many. Raises OSError."""
    covered = {sha256: row.redacted for sha256, row in find_current(submission).items()}
    count = 0
    for trajectory in submission.trajectories.select_related("task", "submission__agent").iterator(chunk_size=100):
        write_atif(trajectory, folder / trajectory.task.external_id, covered)
        count += 1
    return count


def write_atif(trajectory: Trajectory, folder: Path, covered: Mapping[str, str] | None = None) -> None:
    """Write ``trajectory.json`` and ``images/`` into ``folder``, which is created.

    ``covered`` has the SHA-256 of the covered image by that of its original. Raises OSError and DamagedFile.
    """
    images = _Images(folder / IMAGES, covered or {})
    rows = list(trajectory.steps.select_related("screenshot").order_by("index"))
    document = {
        "schema_version": VERSION,
        "agent": {"name": trajectory.submission.agent.name, "version": "unknown"},
        "steps": _build_steps(trajectory, rows, images),
    }
    last_url = rows[-1].url if rows and not rows[-1].action else ""
    if last_url:
        document["extra"] = {NAMESPACE: {"last_url": last_url}}
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(document, ensure_ascii=False, indent=2)
    (folder / "trajectory.json").write_text(f"{text}\n", encoding="utf-8")


def _build_steps(trajectory: Trajectory, rows: list[Step], images: _Images) -> list[dict[str, Any]]:
    pictures = [images.add(row) for row in rows]
    steps: list[dict[str, Any]] = [{"source": "user", "message": trajectory.task_text}]
    if pictures and pictures[0]:
        steps[0]["observation"] = {"results": [{"content": [pictures[0]]}]}
    for row, after in zip(rows, [*pictures, None][1:], strict=True):
        if row.action or row is not rows[-1]:
            steps.append(_build_step(row, after))
    if trajectory.final_answer is not None:
        steps.append({"source": "agent", "message": trajectory.final_answer})
    return [{"step_id": number} | step for number, step in enumerate(steps, 1)]


def _build_step(row: Step, after: dict[str, Any] | None) -> dict[str, Any]:
    name, arguments, own = _split_action(row.action)
    own |= {"url": row.url} if row.url else {}
    step: dict[str, Any] = {"source": "agent", "message": ""}
    if row.thought:
        step["reasoning_content"] = row.thought
    call_id = f"call_{row.index}"
    step["tool_calls"] = [{"tool_call_id": call_id, "function_name": name, "arguments": arguments}]
    if after:
        step["observation"] = {"results": [{"source_call_id": call_id, "content": [after]}]}
    if own or name == TEXT_CALL:
        step["extra"] = {NAMESPACE: own or {"text": True}}
    return step


def _split_action(action: str) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """Return tool, arguments and what ATIF has no place for. What cannot be written again as it is stays a text."""
    own: dict[str, Any] = {}
    rest, status, point = action, status_suffix(action), parse_point_prefix(action)
    if status and STATUS.search(rest):
        own["status"], rest = status.value, STATUS.sub("", rest)
    matched = POINT.fullmatch(rest)
    if (
        point
        and matched
        and matched["verb"] in POINTING
        and rest.startswith(f"coords({_number(point.x)}, {_number(point.y)}) -> ")
    ):
        own |= {"verb": matched["verb"], "point": [point.x, point.y]}
        rest = matched["rest"]
    call = _parse_call(rest)
    return (*call, own) if call else (TEXT_CALL, {"text": rest}, own)


def _parse_call(text: str) -> tuple[str, dict[str, Any]] | None:
    """Return name and arguments if `format_call` gives ``text`` of them again; the values are JSON."""
    matched = CALL.fullmatch(text)
    if matched is None or matched["name"] == TEXT_CALL:
        return None
    rest, arguments, decoder = matched["arguments"], {}, json.JSONDecoder()
    position = 0
    while key := KEY.match(rest, position):
        try:
            arguments[key["key"]], position = decoder.raw_decode(rest, key.end())
        except (ValueError, RecursionError):
            return None
    return (matched["name"], arguments) if format_call(matched["name"], arguments) == text else None


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


@dataclass(slots=True)
class _Images:
    """Write each image of a trajectory once, numbered in the order of the steps."""

    folder: Path
    covered: Mapping[str, str]
    parts: dict[str, dict[str, Any]] = field(default_factory=dict)

    def add(self, row: Step) -> dict[str, Any] | None:
        """Return the part of an observation that names the screenshot of a step."""
        if row.screenshot is None:
            return None
        if row.file_name not in self.parts:
            sha256 = self.covered.get(row.screenshot.sha256, row.screenshot.sha256)
            media_type = row.screenshot.media_type if sha256 == row.screenshot.sha256 else "image/png"
            name = f"{len(self.parts):05d}{SUFFIXES[media_type]}"
            self.folder.mkdir(parents=True, exist_ok=True)
            (self.folder / name).write_bytes(screenshots.original(sha256))
            path = str(PurePosixPath(IMAGES) / name)
            self.parts[row.file_name] = {"type": "image", "source": {"media_type": media_type, "path": path}}
        return self.parts[row.file_name]
