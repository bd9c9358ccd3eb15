"""Trajectories with rubrics and cached pages, and the replies to claims."""

from __future__ import annotations

import hashlib
import io
import json
from pathlib import Path
from typing import Any

from PIL import Image

from annotation.formats.cached_pages import stem
from annotation.records import AttachmentKind
from judges.scorer import REGISTRY, Expected, StoredFile, Subject
from judges.tests.webjudging import picture, trajectory

CITED = "https://shop.example/lamp"
ANSWER = f"The lamp costs 20 dollars, see [the shop]({CITED})."
KIND = REGISTRY["rubric"]


def expected(text: str) -> dict[str, Expected]:
    return {"rubric": Expected("rubric", 3, hashlib.sha256(text.encode()).hexdigest(), text)}


def about(
    text: str = "",
    *,
    pages: dict[str, str] | None = None,
    pictures: Any = (0, 1, 2),
    scripts: Path | str = "",
    **fields: Any,
) -> Subject:
    """A trajectory with a rubric; ``pages`` maps addresses to their texts, ``scripts`` is the folder of scripts."""
    record = trajectory(
        ["coords(1, 2) -> CLICK -> sort", "coords(3, 4) -> CLICK -> lamp", f"TASK_COMPLETE -> ANSWER: {ANSWER}"],
        **({"final_answer": ANSWER} | fields),
    )
    return Subject(
        record,
        screenshots=tuple(None if n is None else picture(n) for n in pictures),
        files=stored(pages or {}),
        expectations=expected(text) if text else {},
        rubric_scripts=str(scripts),
    )


def stored(pages: dict[str, str]) -> tuple[StoredFile, ...]:
    files = {"pages/index.json": json.dumps(dict.fromkeys(pages, "web")).encode()} if pages else {}
    for address, text in pages.items():
        files[f"pages/{stem(address)}.txt"] = text.encode()
        files[f"pages/{stem(address)}.jpg"] = jpeg()
    return tuple(file(name, data) for name, data in sorted(files.items()))


def file(name: str, data: bytes) -> StoredFile:
    digest = hashlib.sha256(data).hexdigest()
    return StoredFile(AttachmentKind.CACHED_PAGE, name, digest, len(data), lambda: io.BytesIO(data))


def jpeg() -> bytes:
    made = io.BytesIO()
    Image.new("RGB", (20, 30), "blue").save(made, "JPEG")
    return made.getvalue()


def says(claim: str, result: bool, **more: Any) -> dict[str, Any]:
    """The reply to a claim; its rule matches the claim as it is quoted in the request."""
    reply = json.dumps({"reasoning": f"About: {claim}", "result": result})
    return {"match": f'Claim: "{claim}', "name": claim, "reply": reply} | more


def one(claim: str = "It is so.", **more: Any) -> str:
    return json.dumps({"about": "answer", "nodes": [{"claim": claim, **more}]})
