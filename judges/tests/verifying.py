"""Criteria and scripted replies for the tests of the rubric verifier."""

from __future__ import annotations

import asyncio
import base64
import json
from typing import Any

from judges.llm import Generation, Patience
from judges.llm.client import Client
from judges.scorer import Score, Subject
from judges.tests import siblings
from judges.tests.builders import Fake, MemoryCallLog, OpenGate

NAME = "rubric-verifier"
# Sentences that only one stage of our prompts has.
MARKS = {
    "criteria": "You write the criteria",
    "relevance": "You look at up to four screenshots",
    "actions": "from the log of its actions alone",
    "images": "from the screenshots that say most about it",
    "verdict": "You look at a whole attempt",
    "together": "criterion by criterion, and then",
}
TEXTS = ("The lamp is the cheapest.", "One lamp is in the basket.", "A blue shade is chosen.")


def judge(**parameters: Any) -> Any:
    return siblings.judge(NAME, **parameters)


def foreseen(about: Subject, **parameters: Any) -> list[tuple[str, int]]:
    return siblings.foreseen(NAME, about, **parameters)


def sent(number: int) -> str:
    """How `siblings.picture` stands in a request."""
    return base64.b64encode(b"picture %d" % number).decode()


def judged(fake: Fake, about: Subject, call_log: MemoryCallLog | None = None, **parameters: Any) -> Score:
    generation = parameters.pop("generation", {})

    async def ask() -> Score:
        patience = Patience(attempts=1)
        client = Client(fake.endpoint, "some-model", Generation(**generation), patience, OpenGate(), siblings.IMAGES)
        try:
            return await judge(**parameters).score(about, client.asker(call_log or MemoryCallLog(), 0))
        finally:
            await client.close()

    return asyncio.run(ask())


def made(call_log: MemoryCallLog) -> list[tuple[str, int]]:
    """The calls that were made, with their numbers of images, sorted."""
    return sorted((one.call.stage, json.dumps(one.call.request).count('"image_url":')) for one in call_log.outcomes)


def says(stage: str, reply: Any, *match: str, **rule: Any) -> dict[str, Any]:
    """A rule for a stage; ``reply`` is a text, or data that is sent as JSON."""
    text = reply if isinstance(reply, str) else json.dumps(reply)
    return {"match": [MARKS[stage], *match], "name": stage, "reply": text} | rule


def criteria_said(*points: int, conditions: Any = ()) -> dict[str, Any]:
    """Criteria with the texts of `TEXTS` and these points; ``conditions`` by number of criterion."""
    entries = [
        {
            "criterion": TEXTS[at],
            "description": f"About {at + 1}.",
            "max_points": each,
            "condition": dict(conditions).get(at + 1, ""),
        }
        for at, each in enumerate(points)
    ]
    return says("criteria", {"criteria": entries})


def relevance_said(shots: int, criteria: int, *match: str, rating: int = 5) -> dict[str, Any]:
    """The same rating for the screenshots of a call."""
    entries = [
        {"number": number, "note": "It shows the list.", "relevance": [rating] * criteria}
        for number in range(1, shots + 1)
    ]
    return says("relevance", {"screenshots": entries}, *match)


def grade(number: int, points: Any, applies: bool = True, **fields: Any) -> dict[str, Any]:
    about = {"number": number, "criterion": TEXTS[number - 1], "reason": f"Because {number}.", "applies": applies}
    return about | {"points": points} | fields


def grade_said(stage: str, number: int, points: Any, **fields: Any) -> dict[str, Any]:
    """The grade of one criterion in the full mode."""
    return says(stage, grade(number, points, **fields), f"criterion {number}: ")


def findings(**fields: Any) -> dict[str, Any]:
    return {
        "penalties": [],
        "blockers": [],
        "critical_point": {"violated": False, "step": None, "reason": ""},
        "first_failure": {"step": None, "category": "none", "reason": ""},
        "validity": {"ambiguous": False, "invalid": False, "reason": ""},
        "reason": "The basket shows it.",
        "outcome": True,
    } | fields


def together(*grades: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """The reply of the cheap mode; a grade without its own ``points_from_actions`` has the same points."""
    entries = [{"points_from_actions": one["points"]} | one for one in grades]
    return says("together", {"criteria": entries} | findings(**fields))
