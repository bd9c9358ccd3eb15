"""One question to the model of an evaluation: a framed record, what is asked about it, and pictures."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BaseModel

from judges.prompts import fill
from judges.scorers import framing
from judges.scorers.rubric import pictures
from judges.scorers.rubric.engine import Engine
from judges.scorers.rubric.semaphores import Limit
from judges.scorers.rubric.shown_pages import LONGEST_TEXT, Page

# Longest texts in characters: the answer is judged as a whole, and the record has room for it and one page.
ANSWER = 200_000
CLAIM = 20_000
URL = 2_000
RECORD = 1_500_000
NONE = "None"

Image = bytes | Mapping[str, Any]
T = TypeVar("T", bound=BaseModel)


@dataclass(slots=True)
class Questioner:
    """Everything that the questions about one answer have in common.

    ``client`` has a coroutine ``async_response(model=, messages=, response_format=)`` that gives an instance of the
    class in ``response_format``. It gets one user message; one that says ``separates_system = True`` gets the system
    text as a message of its own.
    """

    client: Any
    task: str
    answer: str
    calls: Limit
    engine: Engine
    logger: logging.Logger

    async def ask(
        self, stage: str, model: str, form: type[T], lines: Sequence[str], images: Sequence[Image], **places: str
    ) -> T:
        """The reply in the form asked for; whatever the client raises, and ValueError for a reply in another form."""
        system, template = self.engine.text(f"{stage}.system"), self.engine.text(f"{stage}.user")
        record = framing.format_record([framing.format_field("task", self.task, framing.TASK), *lines], RECORD)
        text = fill(template, record=record, **places)
        async with self.calls:
            reply = await self.client.async_response(
                model=model,
                messages=self._build_messages(system, text, images),
                response_format=form,
                **choose_temperature(model),
            )
        if reply is None:
            raise ValueError("The model gave no usable reply.")
        return form.model_validate(reply, from_attributes=True)

    def _build_messages(self, system: str, text: str, images: Sequence[Image]) -> list[dict[str, Any]]:
        if getattr(self.client, "separates_system", None) is True:
            return [{"role": "system", "content": system}, {"role": "user", "content": build_content(text, images)}]
        return [{"role": "user", "content": build_content(f"{system}\n\n{text}", images)}]

    def answered(self) -> str:
        return framing.format_field("answer", self.answer, ANSWER)

    def cited(self, page: Page) -> list[str]:
        """The lines of a page: its address and its text."""
        return [
            framing.format_field("page address", page.url, URL),
            framing.format_field("page text", page.text, LONGEST_TEXT),
        ]


def choose_temperature(model: str) -> dict[str, float]:
    """Zero for models without the letter o in their name, and nothing for the others, as the published engine has it:
    it was meant for reasoning models, and keeps gpt-4o and sonnet at their default too."""
    return {} if "o" in model else {"temperature": 0.0}


def build_content(text: str, images: Sequence[Image]) -> str | list[dict[str, Any]]:
    """A text alone, or a text and its pictures as parts; bytes are JPEGs, and parts are passed on as they are."""
    if not images:
        return text
    return [{"type": "text", "text": text}, *(_build_part(image) for image in images)]


def _build_part(image: Image) -> dict[str, Any]:
    if isinstance(image, bytes):
        return {"type": "image_url", "image_url": {"url": pictures.build_data_url(image), "detail": "high"}}
    return dict(image)


def quote_instruction(text: str | None) -> str:
    """What the author of a check adds to it, quoted; the word None where that is nothing."""
    if text is None or text.strip() in ("", "None"):
        return NONE
    return read_stated(text)


def read_stated(text: str) -> str:
    """A claim or an instruction on one line in quotation marks: word for word where that is possible, so that it can
    be found in the prompt, and a JSON string where it has more lines, invisible characters or an end of the record."""
    quoted = framing.quote(text, CLAIM)
    plain = quoted.replace('\\"', '"').replace("\\\\", "\\")
    return plain if plain == f'"{text}"' else quoted


def format_schema(form: type[BaseModel]) -> str:
    return json.dumps(form.model_json_schema(), ensure_ascii=False, separators=(",", ":"))
