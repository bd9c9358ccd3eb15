"""Taking structured facts out of the answer, or out of a page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BaseModel

from judges.scorers import framing
from judges.scorers.rubric import questions
from judges.scorers.rubric.engine import FaultKind
from judges.scorers.rubric.questions import Questioner
from judges.scorers.rubric.shown_pages import Pages
from judges.scorers.rubric.tree import LONGEST_TEXT, limit_text
from judges.scorers.rubric.verifying import NOT_STORED

T = TypeVar("T", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Extraction:
    """What was taken out under a name. ``error`` says why it is empty where something broke, and ``fault`` what."""

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
    """Extracts from one answer and its pages."""

    def __init__(self, desk: Questioner, pages: Pages, model: str) -> None:
        self.desk = desk
        self.pages = pages
        self.model = model

    async def extract(
        self, prompt: str, template: type[BaseModel], name: str, source: Any, *, use_screenshot: bool = True
    ) -> Extraction:
        """An instance of ``template``; an empty one where the page is not stored or anything breaks.

        ValueError when ``source`` is neither None nor an address, and what the template raises when it cannot be
        empty.
        """
        if source is not None and not isinstance(source, str):
            raise ValueError(f"source must be None or an address, not {type(source).__name__}.")
        shown = source or ""
        try:
            stage, lines = "extract_answer", [self.desk.answered()]
            images: tuple[bytes, ...] = ()
            if source is not None:
                page = await self.pages.get(source)
                if page is None:
                    return Extraction(name, shown, template(), f"{NOT_STORED}: {source}", "page")
                stage, lines = "extract_page", [*lines, *self.desk.cited(page)]
                images = page.images if use_screenshot else ()
            request, schema = framing.quote(prompt, questions.CLAIM), questions.format_schema(template)
            value = await self.desk.ask(stage, self.model, template, lines, images, request=request, schema=schema)
        except self.desk.engine.lets_through:
            raise
        except Exception as error:
            self.desk.logger.warning("Extraction %s failed: %s: %s", name, type(error).__name__, error)
            says = f"infrastructure error: {type(error).__name__}: {error}"
            return Extraction(name, shown, template(), says, "extraction")
        return Extraction(name, shown, value)
