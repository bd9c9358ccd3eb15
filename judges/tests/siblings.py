"""Subjects, and judges of one call asked over real HTTP, for the tests of those judges."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from annotation.records import StepRecord, TrajectoryRecord
from judges import scorers  # noqa: F401 - fills the registry
from judges.llm import Generation, ImageRef, Patience
from judges.llm.client import Client
from judges.prompts import load_builtin
from judges.scorer import REGISTRY, Score, Scorer, Subject, parameters_from
from judges.tests.builders import Fake, FolderImages, MemoryCallLog, OpenGate

PUBLISHED = ("autonomous-eval", "agenttrek", "webvoyager")
V1, V2 = "online-mind2web-v1", "online-mind2web-v2"
IMAGES = FolderImages()


def picture(number: int) -> ImageRef:
    """A picture for the store of these tests; no model looks at it."""
    return IMAGES.add(b"picture %d" % number)


def subject(steps: int | tuple[StepRecord, ...] = 3, pictures: int | None = None, **fields: Any) -> Subject:
    """A trajectory with ``steps``, or that clicks so often; the first ``pictures`` have a screenshot (None: all)."""
    made = steps if isinstance(steps, tuple) else tuple(map(click, range(steps)))
    taken = len(made) if pictures is None else pictures
    about = {name: fields.pop(name) for name in ("website", "input_images", "key_points") if name in fields}
    shots = tuple(picture(number) if number < taken else None for number in range(len(made)))
    record = {
        "folder": "t",
        "task_id": "t",
        "task_text": "Buy a lamp.",
        "final_answer": "I bought a lamp.",
        "source_format": V1,
        "steps": made,
    }
    return Subject(TrajectoryRecord(**(record | fields)), screenshots=shots, **about)


def click(index: int) -> StepRecord:
    return StepRecord(index, f"click button {index}", f"think {index}", f"https://shop.example/{index}")


def judge(name: str, **parameters: Any) -> Scorer:
    """A registered judge with our own prompts."""
    kind = REGISTRY[name]
    return kind.build(parameters_from(kind.parameters, parameters), load_builtin(kind.prompts))


def foreseen(name: str, subject: Subject, **parameters: Any) -> list[tuple[str, int]]:
    kind = REGISTRY[name]
    return kind.calls(parameters_from(kind.parameters, parameters), subject)


def asked(fake: Fake, scorer: Scorer, subject: Subject, images: FolderImages = IMAGES, **generation: Any) -> Score:
    """What a judge says of a subject when it asks the fake endpoint."""

    async def ask() -> Score:
        client = Client(fake.endpoint, "some-model", Generation(**generation), Patience(attempts=2), OpenGate(), images)
        try:
            return await scorer.score(subject, client.asker(MemoryCallLog(), 0))
        finally:
            await client.close()

    return asyncio.run(ask())


def requests(fake: Fake) -> list[dict[str, Any]]:
    """The bodies that the fake has recorded, parsed; it leaves out the bytes of pictures."""
    return [json.loads(body) for body in fake.counts()["bodies"]]


def system_of(request: dict[str, Any]) -> str:
    (message,) = [one for one in request["messages"] if one["role"] in ("system", "developer")]
    content = message["content"]
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


def user_texts(request: dict[str, Any]) -> list[str]:
    """Every text of the user messages, in order."""
    return [part["text"] for part in _user_parts(request) if part["type"] == "text"]


def pictures_in(request: dict[str, Any]) -> int:
    return sum(part["type"] == "image_url" for part in _user_parts(request))


def _user_parts(request: dict[str, Any]) -> list[dict[str, Any]]:
    contents = [one["content"] for one in request["messages"] if one["role"] == "user"]
    return [
        part
        for content in contents
        for part in ([{"type": "text", "text": content}] if isinstance(content, str) else content)
    ]
