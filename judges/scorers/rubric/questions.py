"""Questions to the model of an evaluation: framed records and images, to check claims and to extract facts."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BaseModel, StrictBool

from judges.prompts import fill
from judges.scorers import framing
from judges.scorers.rubric import pictures
from judges.scorers.rubric.engine import Engine, FaultKind, Limit
from judges.scorers.rubric.pages import LONGEST_PAGE, Page, Pages
from judges.scorers.rubric.tree import LONGEST_TEXT, Checked, Vote, limit_text

# Longest texts in characters: the answer is judged as a whole, and the record has room for it and one page.
ANSWER = 200_000
CLAIM = 20_000
URL = 2_000
RECORD = 1_500_000
TRIALS = 3
NOT_STORED = "page not stored"
DEEPEST_SCHEMA = 30
LEFT_OUT = frozenset({"title", "default", "examples", "$defs", "discriminator"})

Image = bytes | Mapping[str, Any]
T = TypeVar("T", bound=BaseModel)


@dataclass(slots=True)
class Questioner:
    """The shared data of all questions about one answer.

    ``client`` has a coroutine ``async_response(model=, messages=, response_format=)`` that returns an instance of the
    class in ``response_format``. It gets one user message, as in the published engine.
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
        """Return the reply in the requested form; raise the client's errors, and ValueError for another form."""
        system, template = self.engine.text(f"{stage}.system"), self.engine.text(f"{stage}.user")
        record = framing.format_record([framing.format_field("task", self.task, framing.TASK), *lines], RECORD)
        text = f"{system}\n\n{fill(template, record=record, **places)}"
        parts = [{"type": "text", "text": text}, *map(_build_part, images)]
        async with self.calls:
            # As in the published engine: the test is meant for reasoning models, but gpt-4o and sonnet match it, too.
            reply = await self.client.async_response(
                model=model,
                messages=[{"role": "user", "content": parts if images else text}],
                response_format=form,
                **({} if "o" in model else {"temperature": 0.0}),
            )
        if reply is None:
            raise ValueError("The model gave no usable reply.")
        return form.model_validate(reply, from_attributes=True)

    def format_answer(self) -> str:
        return framing.format_field("answer", self.answer, ANSWER)

    def format_page(self, page: Page) -> list[str]:
        return [
            framing.format_field("page address", page.url, URL),
            framing.format_field("page text", page.text, LONGEST_PAGE),
        ]


def _build_part(image: Image) -> dict[str, Any]:
    """Return a part of a message: bytes are JPEGs, and ready parts are passed on unchanged."""
    if isinstance(image, bytes):
        return {"type": "image_url", "image_url": {"url": pictures.build_data_url(image), "detail": "high"}}
    return dict(image)


def quote_instruction(text: str | None) -> str:
    """Quote the instruction that the author of a check added; the word None if there is none."""
    return "None" if text is None or text.strip() in ("", "None") else read_stated(text)


def read_stated(text: str) -> str:
    """Return a claim or an instruction on one line in quotation marks: word for word if possible, so that it can be
    found in the prompt, or a JSON string if it has more lines, invisible characters or an end of the record."""
    quoted = framing.quote(text, CLAIM)
    plain = quoted.replace('\\"', '"').replace("\\\\", "\\")
    return plain if plain == f'"{text}"' else quoted


# --- Checking a claim: against the answer, a page, several pages, or evidence that was put together; by majority -----


class ClaimCheck(BaseModel):
    """The reply to a claim: reasoning first, so that the result follows from it."""

    reasoning: str
    result: StrictBool


@dataclass(frozen=True, slots=True)
class ClaimEvidence:
    """Evidence for a claim that is neither answer nor page, such as steps of a trajectory.

    ``lines`` are lines of the record (`framing.format_field`), ``images`` JPEG bytes or ready parts of a message,
    ``steps`` the numbers that go with them, and ``stage`` names the prompt texts.
    """

    lines: Sequence[str] = ()
    images: Sequence[Image] = ()
    steps: Sequence[int] = ()
    stage: str = "verify_steps"


def count_needed(majority: bool, trials: int) -> int:
    """Return how many replies must agree: one, or most of up to ``trials``; ValueError for an even number."""
    if not majority:
        return 1
    if isinstance(trials, bool) or not isinstance(trials, int) or trials < 1 or trials % 2 == 0:
        raise ValueError(f"num_trials must be an odd number, not {trials!r}.")
    return trials // 2 + 1


class Verifier:
    """Checker of claims about one answer; `Evaluator` updates the nodes."""

    def __init__(self, questioner: Questioner, pages: Pages, model: str) -> None:
        self.questioner = questioner
        self.pages = pages
        self.model = model

    @property
    def logger(self) -> logging.Logger:
        return self.questioner.logger

    @logger.setter
    def logger(self, logger: logging.Logger) -> None:
        self.questioner.logger = logger

    async def check(self, noted: Checked, sources: Any, needed: int, *, use_screenshot: bool = True) -> bool:
        """Return whether the claim of ``noted`` is supported; votes, missing pages and reasoning are written there.

        None or an empty list: by the answer alone. One address: by that page. Several: by all of them at once, true
        as soon as one supports it; the others are then cancelled. An error of one page is ignored if another page
        supports the claim. Raises TypeError for sources of another type, and the errors of calls.
        """
        if isinstance(sources, ClaimEvidence):
            return await self._vote(noted, sources.stage, sources.lines, sources.images, needed)
        if sources is None or (isinstance(sources, list) and not sources):
            return await self._vote(noted, "verify_answer", (self.questioner.format_answer(),), (), needed)
        if isinstance(sources, str):
            return await self._check_page(noted, sources, needed, use_screenshot)
        if not isinstance(sources, list):
            raise TypeError(f"sources must be None, an address or a list of addresses, not {type(sources).__name__}.")
        if len(sources) == 1:
            return await self._check_page(noted, sources[0], needed, use_screenshot)
        return await self._check_any_page(noted, sources, needed, use_screenshot)

    async def _check_page(self, noted: Checked, url: str, needed: int, use_screenshot: bool) -> bool:
        if not isinstance(url, str):
            raise TypeError(f"An address must be text, not {type(url).__name__}.")
        page = await self.pages.get(url)
        if page is None:
            noted.missing = (*noted.missing, url)
            noted.error = f"{NOT_STORED}: {', '.join(noted.missing)}"
            noted.reasoning = noted.reasoning or f"No page is stored for {url}."
            return False
        lines = (self.questioner.format_answer(), *self.questioner.format_page(page))
        images = page.images if use_screenshot else ()
        return await self._vote(noted, "verify_page", lines, images, needed, source=url)

    async def _check_any_page(self, noted: Checked, urls: Sequence[str], needed: int, use_screenshot: bool) -> bool:
        running: set[asyncio.Future[bool]] = {
            asyncio.ensure_future(self._check_page(noted, url, needed, use_screenshot)) for url in urls
        }
        errors: list[Exception] = []
        try:
            while running:
                done, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                # Every result is read, so that no error is lost because another page was quicker.
                results = [_read_result(one) for one in done]
                ended = [one for one in results if isinstance(one, self.questioner.engine.lets_through)]
                if ended:
                    raise ended[0]
                errors += [one for one in results if isinstance(one, Exception)]
                if any(one is True for one in results):
                    noted.error = ""
                    noted.reasoning = next(vote.reasoning for vote in reversed(noted.votes) if vote.result)
                    return True
        finally:
            await _cancel(running)
        if errors:
            raise errors[0]
        return False

    async def _vote(
        self, noted: Checked, stage: str, lines: Sequence[str], images: Sequence[Image], needed: int, source: str = ""
    ) -> bool:
        """Return the result that is first to get ``needed`` votes; votes are asked one after the other."""
        places = {"claim": read_stated(noted.claim), "instruction": quote_instruction(noted.instruction)}
        said: list[bool] = []
        while True:
            reply = await self.questioner.ask(stage, self.model, ClaimCheck, lines, images, **places)
            said.append(reply.result)
            noted.votes.append(Vote(reply.result, reply.reasoning, source))
            if said.count(reply.result) >= needed:
                noted.reasoning = reply.reasoning
                return reply.result


def _read_result(task: asyncio.Future[bool]) -> bool | Exception:
    error = task.exception()
    if error is None:
        return task.result()
    if isinstance(error, Exception):
        return error
    raise error


async def _cancel(running: set[asyncio.Future[bool]]) -> None:
    """Cancel running checks and wait for their end, so that nothing continues after the claim is decided."""
    for one in running:
        one.cancel()
    if running:
        await asyncio.gather(*running, return_exceptions=True)


# --- Extracting structured facts from the answer, or from a page ----------------------------------------------------


@dataclass(frozen=True, slots=True)
class Extraction:
    """An extracted value. ``error`` says why it is empty if something broke; ``fault`` is the kind of fault."""

    name: str
    source: str
    value: BaseModel
    error: str = ""
    fault: FaultKind | None = None

    def as_json(self) -> dict[str, Any]:
        value = self.value.model_dump(mode="json")
        shown = {"name": limit_text(self.name), "source": limit_text(self.source), "error": limit_text(self.error)}
        return shown | ({"value": value} if len(str(value)) <= LONGEST_TEXT else {"value": limit_text(str(value))})


class Extractor:
    def __init__(self, questioner: Questioner, pages: Pages, model: str) -> None:
        self.questioner = questioner
        self.pages = pages
        self.model = model

    async def extract(
        self, prompt: str, template: type[BaseModel], name: str, source: Any, *, use_screenshot: bool = True
    ) -> Extraction:
        """Return an instance of ``template``; an empty one if the page is not stored or anything breaks.

        Raises ValueError if ``source`` is neither None nor an address, and the template's error if it cannot be
        empty.
        """
        if source is not None and not isinstance(source, str):
            raise ValueError(f"source must be None or an address, not {type(source).__name__}.")
        shown = source or ""
        try:
            stage, lines = "extract_answer", [self.questioner.format_answer()]
            images: tuple[bytes, ...] = ()
            if source is not None:
                page = await self.pages.get(source)
                if page is None:
                    return Extraction(name, shown, template(), f"{NOT_STORED}: {source}", "page")
                stage, lines = "extract_page", [*lines, *self.questioner.format_page(page)]
                images = page.images if use_screenshot else ()
            request = framing.quote(prompt, CLAIM)
            schema = json.dumps(template.model_json_schema(), ensure_ascii=False, separators=(",", ":"))
            value = await self.questioner.ask(
                stage, self.model, template, lines, images, request=request, schema=schema
            )
        except self.questioner.engine.lets_through:
            raise
        except Exception as error:
            self.questioner.logger.warning("Extraction %s failed: %s: %s", name, type(error).__name__, error)
            says = f"infrastructure error: {type(error).__name__}: {error}"
            return Extraction(name, shown, template(), says, "extraction")
        return Extraction(name, shown, value)


# --- JSON schemas as strict endpoints need them, from the classes that scripts define with pydantic ------------------


def build_schema(model: type[BaseModel]) -> dict[str, Any]:
    """Return the schema of a class: every property required, without defaults, and references inlined.

    "A text or null" becomes a type of two names, which the check of replies knows. A class that contains itself is left
    open where it recurs. An object of free keys (``dict``) has no form that strict endpoints accept: it is requested
    unchanged, and pydantic reads it.
    """
    whole = model.model_json_schema()
    found = _make_strict(whole, whole.get("$defs", {}), ())
    return dict(found)


def _make_strict(schema: Any, known: Mapping[str, Any], above: tuple[str, ...]) -> Any:
    if not isinstance(schema, Mapping) or len(above) > DEEPEST_SCHEMA:
        return schema
    reference = schema.get("$ref")
    if isinstance(reference, str):
        name = reference.rpartition("/")[2]
        described = {"description": schema["description"]} if "description" in schema else {}
        return {} if name in above else _make_strict(known.get(name, {}), known, (*above, name)) | described
    made = {key: _inline(key, value, known, above) for key, value in schema.items() if key not in LEFT_OUT}
    if isinstance(made.get("properties"), dict):
        made["required"] = list(made["properties"])
    return _join_types(made)


def _inline(key: str, value: Any, known: Mapping[str, Any], above: tuple[str, ...]) -> Any:
    if key == "properties" and isinstance(value, Mapping):
        return {name: _make_strict(one, known, above) for name, one in value.items()}
    if key in ("anyOf", "allOf", "oneOf", "prefixItems") and isinstance(value, list):
        return [_make_strict(one, known, above) for one in value]
    if key in ("items", "additionalProperties"):
        return _make_strict(value, known, above)
    return value


def _join_types(schema: dict[str, Any]) -> dict[str, Any]:
    """Return ``anyOf`` of plain types as one ``type`` with several names."""
    options = schema.get("anyOf")
    if not isinstance(options, list) or not all(isinstance(one, dict) and set(one) == {"type"} for one in options):
        return schema
    if not all(isinstance(one["type"], str) for one in options):
        return schema
    rest = {key: value for key, value in schema.items() if key != "anyOf"}
    return rest | {"type": [one["type"] for one in options]}
