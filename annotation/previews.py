"""The first trajectory of a checked package, as reviewers will see it: texts, and small pictures with their points."""

from __future__ import annotations

import base64
import io
from typing import Any

from PIL import Image

from annotation import screenshots
from annotation.formats.archive import Package
from annotation.ingest import Checked, image_path

STEPS = 20
SIZE = 640, 1280  # pixels; a taller picture is scaled down
QUALITY = 60
LONGEST = 2_000  # characters of a text


def make_preview(package: Package, checked: Checked) -> dict[str, Any]:
    """Return task, answer and the first `STEPS` steps; pictures are WebP in base64. Raises PackageError."""
    record = checked.record
    return {
        "task_id": record.task_id,
        "task": record.task_text[:LONGEST],
        "answer": (record.final_answer or "")[:LONGEST],
        "further": max(len(record.steps) - STEPS, 0),
        "steps": [
            {
                "action": step.action[:LONGEST],
                "thought": (step.thought or "")[:LONGEST],
                "url": (step.url or "")[:LONGEST],
                "failed": step.status == "FAILED",
                **_make_picture(package, checked, step.screenshot),
                "x": step.click.x if step.click else None,
                "y": step.click.y if step.click else None,
            }
            for step in record.steps[:STEPS]
        ],
    }


def _make_picture(package: Package, checked: Checked, name: str | None) -> dict[str, Any]:
    facts = checked.images.get(name or "")
    if name is None or facts is None:
        return {"picture": None}
    data = package.read(image_path(checked.record, name), screenshots.MAX_BYTES)
    with Image.open(io.BytesIO(data), formats=list(screenshots.FORMATS)) as image:
        small = image.convert("RGB")
    small.thumbnail(SIZE)
    small.save(stream := io.BytesIO(), "WEBP", quality=QUALITY)
    encoded = base64.b64encode(stream.getvalue()).decode()
    return {"picture": encoded, "width": facts.width, "height": facts.height, "radius": facts.width / 60}
