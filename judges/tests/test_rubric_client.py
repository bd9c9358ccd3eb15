"""What scripts and the engine ask goes to the model as a prompt; what cannot be asked is refused in words."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
from typing import Any

import pytest
from pydantic import BaseModel, Field

from judges.llm import GivenImage, SentImage
from judges.prompts import load_builtin
from judges.scorers.rubric.client import AskerClient, BadRequest, Unusable, build_prompt
from judges.scorers.rubric.questions import ClaimCheck, build_schema
from judges.tests.builders import Fake
from judges.tests.clients import Desk

JPEG = b"\xff\xd8 a picture \xff\xd9"
URL = "data:image/jpeg;base64," + base64.b64encode(JPEG).decode()


def user(*parts: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(parts)}


def picture(url: Any) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": url}}


def asked(fake: Fake, messages: list[Any], reply: type[BaseModel] | None = None, times: int = 1, **options: Any) -> Any:
    """The last of so many equal questions."""

    async def ask(desk: Desk) -> Any:
        client = AskerClient(desk.client.asker(desk.call_log, 0), load_builtin("rubric/1").texts, **options)
        for _ in range(times):
            found = await client.async_response(model="any", messages=messages, response_format=reply, temperature=2)
        return found

    return Desk(fake).run(ask)


def test_pictures_of_a_script_are_sent_as_they_are(fake: Fake):
    fake.says({"match": base64.b64encode(JPEG).decode(), "reply": "seen"})

    assert asked(fake, [user({"type": "text", "text": "Look."}, picture(URL))]) == "seen"


def test_a_given_picture_is_known_by_its_bytes():
    (parts,) = build_prompt([user(picture(URL))]).messages

    assert parts == (SentImage(GivenImage(hashlib.sha256(JPEG).hexdigest(), JPEG)),)
    assert repr(JPEG) not in repr(parts)


@pytest.mark.parametrize(
    "messages",
    [
        [],
        None,
        "Ask this.",
        ["Ask this."],
        [{"role": "assistant", "content": "x"}],
        [{"role": "user"}],
        [{"role": "user", "content": 7}],
        [{"role": "system", "content": [picture(URL)]}],
        [user("x")],
        [user({"type": "text", "text": 7})],
        [user({"type": "input_audio"})],
        [user(picture("https://shop.example/a.jpg"))],
        [user(picture("http://169.254.169.254/"))],
        [user(picture("file:///etc/passwd"))],
        [user(picture("data:image/jpeg;base64,***"))],
        [user(picture("data:text/html;base64,eA=="))],
        [user(picture(7))],
        [user({"type": "image", "image": "0" * 64})],
        [user({"type": "text", "text": "x" * 2_000_001})],
        [user(*[picture(URL)] * 121)],
    ],
)
def test_what_cannot_be_asked_is_refused(messages):
    with pytest.raises(BadRequest):
        build_prompt(messages)


def test_our_rules_become_the_system_text_and_name_the_stage(fake: Fake):
    fake.says({"match": "A claim", "reply": "fine"}, record=True)
    rules = load_builtin("rubric/1").texts["verify_answer.system"]

    asked(fake, [{"role": "user", "content": f"{rules}\n\nA claim"}])

    messages = json.loads(fake.counts()["bodies"][0])["messages"]
    assert messages == [{"role": "system", "content": rules}, {"role": "user", "content": "A claim"}]


def test_equal_questions_are_votes_with_replies_of_their_own(fake: Fake):
    fake.says(*({"match": "A claim", "reply": f"reply {n}", "times": 1} for n in range(3)))

    assert asked(fake, [{"role": "user", "content": "A claim"}], times=3) == "reply 2"


def test_a_script_may_ask_only_so_often(fake: Fake):
    fake.says({"match": "A claim", "reply": "fine"})

    with pytest.raises(BadRequest, match="more than 2"):
        asked(fake, [{"role": "user", "content": "A claim"}], times=3, most=2)


@pytest.mark.parametrize(
    "reply", ["", "Perhaps.", "Result: maybe", "Result: true, or Result: false\nor so", "{}", "[1]"]
)
def test_a_reply_that_says_nothing_clear_is_unusable(fake: Fake, reply):
    fake.says({"match": "A claim", "reply": reply})

    with pytest.raises(Unusable):
        asked(fake, [{"role": "user", "content": "A claim"}], ClaimCheck)


class Place(BaseModel):
    """A place."""

    name: str | None = Field(default=None, description="Its name")
    floors: int = 0


class City(BaseModel):
    title: str = ""
    places: list[Place] = Field(default_factory=list)
    best: Place | None = None
    inside: City | None = None
    kind: str = Field(default="", title="Kind")


def test_a_class_becomes_a_schema_that_strict_endpoints_take():
    place = {
        "type": "object",
        "description": "A place.",
        "properties": {"name": {"type": ["string", "null"], "description": "Its name"}, "floors": {"type": "integer"}},
        "required": ["name", "floors"],
    }

    schema = build_schema(City)

    assert schema["required"] == ["title", "places", "best", "inside", "kind"]
    assert schema["properties"]["title"] == {"type": "string"}  # a property may be called as a keyword is
    assert schema["properties"]["places"] == {"type": "array", "items": place}
    assert schema["properties"]["best"] == {"anyOf": [place, {"type": "null"}]}
    assert "$ref" not in json.dumps(schema)
    assert "default" not in json.dumps(schema)


def test_a_reply_that_does_not_fit_the_class_is_unusable(fake: Fake):
    class Small(BaseModel):
        floors: int = Field(default=0, le=3)

    fake.says({"match": "How many", "reply": '{"floors": 9}'})

    with pytest.raises(Unusable):
        asked(fake, [{"role": "user", "content": "How many"}], Small)


def test_a_call_that_is_cancelled_leaves_nothing_behind(fake: Fake):
    fake.says({"match": "A claim", "reply": "late", "latency": 0.2})

    async def cancelled(desk: Desk) -> None:
        client = AskerClient(desk.client.asker(desk.call_log, 0), load_builtin("rubric/1").texts)
        task = asyncio.ensure_future(client.async_response(messages=[{"role": "user", "content": "A claim"}]))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    Desk(fake).run(cancelled)
