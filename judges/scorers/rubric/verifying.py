"""Checking one claim: against the answer, a page, several pages, or evidence that was put together; by majority."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, StrictBool

from judges.scorers.rubric import questions
from judges.scorers.rubric.questions import Image, Questioner
from judges.scorers.rubric.shown_pages import Pages
from judges.scorers.rubric.tree import Checked, Vote

TRIALS = 3
NOT_STORED = "page not stored"


class ClaimCheck(BaseModel):
    """The reply to a claim: reasoning first, so that the result follows from it."""

    reasoning: str
    result: StrictBool


@dataclass(frozen=True, slots=True)
class ClaimEvidence:
    """What a claim is checked against that is neither answer nor page, such as steps of a trajectory.

    ``lines`` are lines of the record (`framing.format_field`), ``images`` JPEG bytes or ready parts of a message,
    ``steps`` the numbers that go with them, and ``stage`` names the prompt texts.
    """

    lines: Sequence[str] = ()
    images: Sequence[Image] = ()
    steps: Sequence[int] = ()
    stage: str = "verify_steps"


@dataclass(frozen=True, slots=True)
class Ballot:
    """How often a claim is asked about: once, or up to ``trials`` times until more than half of them agree.

    ValueError for an even number of trials, which may end in a tie.
    """

    majority: bool = True
    trials: int = TRIALS

    def __post_init__(self) -> None:
        whole = isinstance(self.trials, int) and not isinstance(self.trials, bool)
        if self.majority and not (whole and self.trials > 0 and self.trials % 2 == 1):
            raise ValueError(f"num_trials must be an odd number, not {self.trials!r}.")

    @property
    def needed(self) -> int:
        return self.trials // 2 + 1 if self.majority else 1


class Verifier:
    """Checks claims about one answer; `Evaluator` says what becomes of the nodes."""

    def __init__(self, desk: Questioner, pages: Pages, model: str) -> None:
        self.desk = desk
        self.pages = pages
        self.model = model

    @property
    def logger(self) -> logging.Logger:
        return self.desk.logger

    @logger.setter
    def logger(self, logger: logging.Logger) -> None:
        self.desk.logger = logger

    async def check(self, noted: Checked, sources: Any, ballot: Ballot, *, use_screenshot: bool = True) -> bool:
        """Whether the claim of ``noted`` is supported; votes, missing pages and reasoning are written there.

        None or an empty list: by the answer alone. One address: by that page. Several: by all of them at once, true
        as soon as any supports it, and the others are cancelled; an error at one of them is none as long as another
        supports the claim. TypeError for sources of another type, and whatever a call raises.
        """
        if isinstance(sources, ClaimEvidence):
            return await self._vote(noted, sources.stage, sources.lines, sources.images, ballot)
        if sources is None or (isinstance(sources, list) and not sources):
            return await self._vote(noted, "verify_answer", (self.desk.answered(),), (), ballot)
        if isinstance(sources, str):
            return await self._check_page(noted, sources, ballot, use_screenshot)
        if not isinstance(sources, list):
            raise TypeError(f"sources must be None, an address or a list of addresses, not {type(sources).__name__}.")
        if len(sources) == 1:
            return await self._check_page(noted, sources[0], ballot, use_screenshot)
        return await self._check_any_page(noted, sources, ballot, use_screenshot)

    async def _check_page(self, noted: Checked, url: str, ballot: Ballot, use_screenshot: bool) -> bool:
        if not isinstance(url, str):
            raise TypeError(f"An address must be a text, not {type(url).__name__}.")
        page = await self.pages.get(url)
        if page is None:
            noted.missing = (*noted.missing, url)
            noted.error = f"{NOT_STORED}: {', '.join(noted.missing)}"
            noted.reasoning = noted.reasoning or f"There is no stored page of {url}."
            return False
        lines = (self.desk.answered(), *self.desk.cited(page))
        images = page.images if use_screenshot else ()
        return await self._vote(noted, "verify_page", lines, images, ballot, source=url)

    async def _check_any_page(self, noted: Checked, urls: Sequence[str], ballot: Ballot, use_screenshot: bool) -> bool:
        running: set[asyncio.Future[bool]] = {
            asyncio.ensure_future(self._check_page(noted, url, ballot, use_screenshot)) for url in urls
        }
        errors: list[Exception] = []
        try:
            while running:
                done, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                # Every result is looked at, so that no error is lost because another page was quicker.
                results = [_read_result(one) for one in done]
                ended = [one for one in results if isinstance(one, self.desk.engine.lets_through)]
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
        self,
        noted: Checked,
        stage: str,
        lines: Sequence[str],
        images: Sequence[Image],
        ballot: Ballot,
        *,
        source: str = "",
    ) -> bool:
        """The answer that is reached first by more than half of the trials, one after the other."""
        said: list[ClaimCheck] = []
        while True:
            reply = await self.desk.ask(stage, self.model, ClaimCheck, lines, images, **_list_places(noted))
            said.append(reply)
            noted.votes.append(Vote(reply.result, reply.reasoning, source))
            if sum(one.result is reply.result for one in said) >= ballot.needed:
                noted.reasoning = reply.reasoning
                return reply.result


def _list_places(noted: Checked) -> Mapping[str, str]:
    return {
        "claim": questions.read_stated(noted.claim),
        "instruction": questions.quote_instruction(noted.instruction),
    }


def _read_result(task: asyncio.Future[bool]) -> bool | Exception:
    error = task.exception()
    if error is None:
        return task.result()
    if isinstance(error, Exception):
        return error
    raise error


async def _cancel(running: set[asyncio.Future[bool]]) -> None:
    """Cancel what is still under way and wait for its end, so that nothing goes on behind a decided claim."""
    for one in running:
        one.cancel()
    if running:
        await asyncio.gather(*running, return_exceptions=True)
