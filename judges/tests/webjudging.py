"""Trajectories and scripted replies for the tests of WebJudge, which ask over real HTTP."""

from __future__ import annotations

import asyncio
import base64
import json
from typing import Any

from annotation.records import StepRecord, TrajectoryRecord
from judges import scorers  # noqa: F401 - fills the registry
from judges.llm import Endpoint, Generation, ImageRef, Patience
from judges.llm.client import Client
from judges.prompts import load_builtin
from judges.scorer import REGISTRY, Prompts, Score, Subject, parameters_from
from judges.tests.builders import Fake, FolderImages, MemoryCallLog, OpenGate

V1, V2 = "online-mind2web-v1", "online-mind2web-v2"
ANSWER = "The lamp with the order number 4711-x is bought."
# Sentences that only one stage of our prompts has.
POINTS, LOOK, VERDICT = "take out its requirements", "You look at one screenshot", "You decide whether a web agent"
IMAGES = FolderImages()


def picture_bytes(number: int) -> bytes:
    return f"\xff\xd8 picture {number:04} \xff\xd9".encode("latin-1")


def picture(number: int) -> ImageRef:
    return IMAGES.add(picture_bytes(number))


def sent(number: int) -> str:
    """How the picture stands in a request."""
    return base64.b64encode(picture_bytes(number)).decode()


def trajectory(actions: list[str], source: str = V2, **fields: Any) -> TrajectoryRecord:
    """Steps with these actions, each with a thought."""
    thoughts = fields.pop("thoughts", [f"I think of {number}." for number in range(len(actions))])
    steps = tuple(StepRecord(n, action, thoughts[n]) for n, action in enumerate(actions))
    about = {"folder": "t", "task_id": "t", "task_text": "Buy the cheapest lamp.", "final_answer": ANSWER}
    return TrajectoryRecord(**(about | {"source_format": source, "steps": steps} | fields))


def subject(pictures: list[int | None] | None = None, actions: list[str] | None = None, **fields: Any) -> Subject:
    """A version 2 trajectory of three steps, the last of which gives the answer."""
    about = {name: fields.pop(name) for name in ("website", "input_images", "key_points") if name in fields}
    record = trajectory(
        actions
        or ["coords(1, 2) -> CLICK -> sort", "coords(3, 4) -> CLICK -> lamp", f"TASK_COMPLETE -> ANSWER: {ANSWER}"],
        **fields,
    )
    numbers = [0, 1, 2] if pictures is None else pictures
    return Subject(record, screenshots=tuple(None if n is None else picture(n) for n in numbers), **about)


def judge(name: str = "webjudge", prompts: Prompts | None = None, **parameters: Any) -> Any:
    kind = REGISTRY[name]
    return kind.build(parameters_from(kind.parameters, parameters), prompts or load_builtin(kind.prompts))


def foreseen(about: Subject, name: str = "webjudge", **parameters: Any) -> list[tuple[str, int]]:
    kind = REGISTRY[name]
    return kind.calls(parameters_from(kind.parameters, parameters), about)


def judged(
    fake: Fake,
    scorer: Any,
    about: Subject,
    call_log: MemoryCallLog | None = None,
    concurrency: int = 8,
    maps: Endpoint | None = None,
    **generation: Any,
) -> Score:
    """What the judge says when it asks the fake endpoint; raises what `Scorer.score` raises."""

    async def ask() -> Score:
        patience = Patience(attempts=1, concurrency=concurrency)
        client = Client(fake.endpoint, "some-model", Generation(**generation), patience, OpenGate(), IMAGES, maps=maps)
        try:
            return await scorer.score(about, client.asker(call_log or MemoryCallLog(), 0))
        finally:
            await client.close()

    return asyncio.run(ask())


def requests(call_log: MemoryCallLog, stage: str = "") -> list[Any]:
    """What was asked, in the order of stage and step, with pictures by digest."""
    order = ["key_points", "screenshot", "verdict"]
    calls = sorted((one.call for one in call_log.outcomes), key=lambda call: (order.index(call.stage), call.step or 0))
    return [call.request for call in calls if not stage or call.stage == stage]


def parts(request: Any) -> list[Any]:
    """The texts and pictures of the user messages, in order."""
    found: list[Any] = []
    for message in request["messages"]:
        if message["role"] == "user":
            content = message["content"]
            found += [{"type": "text", "text": content}] if isinstance(content, str) else content
    return found


def texts(request: Any) -> list[str]:
    return [part["text"] for part in parts(request) if part["type"] == "text"]


def points_said(*points: str) -> dict[str, Any]:
    return {"match": POINTS, "name": "key_points", "reply": json.dumps({"key_points": points})}


def look_said(number: int, score: Any, reason: str = "It shows the list.") -> dict[str, Any]:
    """The reply on a picture; the rule has to stand below that of the verdict, which shows the pictures again."""
    reply = json.dumps({"reason": reason, "score": score})
    return {"match": [LOOK, sent(number)], "name": f"look {number}", "reply": reply}


def verdict_said(verdict: str = "success", reason: str = "All was done.", points: Any = ()) -> dict[str, Any]:
    reply = json.dumps({"key_points": list(points), "reason": reason, "verdict": verdict})
    return {"match": VERDICT, "name": "verdict", "reply": reply}


def point_said(number: int, finding: str, steps: list[int], reason: str = "It is so.") -> dict[str, Any]:
    return {"number": number, "reason": reason, "finding": finding, "steps": steps}
