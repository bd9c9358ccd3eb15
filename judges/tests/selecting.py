"""Reference trajectories for the tests of action selection, made from rows as the importer makes them."""

from __future__ import annotations

import hashlib
import io
import json
from typing import Any

from annotation.formats.external.multimodal_mind2web.reference import parse_step
from annotation.records import AttachmentKind, StepRecord
from annotation.tests.mind2web_builders import row, rows
from judges.scorer import StoredFile, Subject
from judges.tests.siblings import subject

RIGHT = (
    {"reason": "r0", "element": 1, "operation": "TYPE", "value": "O'Brien's lamp"},
    {"reason": "r1", "element": 2, "operation": "SELECT", "value": "Dark red"},
    {"reason": "r2", "element": 3, "operation": "CLICK", "value": ""},
)


def stored(data: bytes, name: str) -> StoredFile:
    digest = hashlib.sha256(data).hexdigest()
    return StoredFile(AttachmentKind.REFERENCE_STEP, name, digest, len(data), lambda: io.BytesIO(data))


def reference(made: list[dict[str, Any]] | None = None, pictures: int | None = None) -> Subject:
    """The trajectory of some rows of one task; the first ``pictures`` steps have one (None: all)."""
    steps = [parse_step(one, (64, 48)) for one in made or rows()]
    about = subject(
        tuple(StepRecord(place, step.action) for place, step in enumerate(steps)),
        pictures,
        task_text=steps[0].task,
        final_answer=None,
        source_format="multimodal-mind2web",
    )
    files = tuple(stored(step.as_json(), f"reference/{place}.json") for place, step in enumerate(steps))
    return Subject(about.record, website="shop", screenshots=about.screenshots, files=files)


def says(*answers: Any) -> list[dict[str, Any]]:
    """Rules: what a model answers at each step of the usual task, told apart by how many actions were before."""
    marks = ("actions before this one: none", None, "action 1:")
    order = (0, 2, 1)  # the middle one last: what it shows is also in the others
    found = []
    for step in order:
        if step < len(answers):
            answer = answers[step]
            rule = {"reply": answer if isinstance(answer, str) else json.dumps(answer)}
            found.append(rule | ({"match": marks[step]} if marks[step] else {}))
    return found


__all__ = ["RIGHT", "reference", "row", "rows", "says", "stored"]
