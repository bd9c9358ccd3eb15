"""A journey by train, one part resting on the other: modules below the package, a page that is read, tasks at once."""

import asyncio
import logging
from datetime import datetime

from mind2web2.evaluator import AggregationStrategy, Evaluator
from mind2web2.llm_client.base_client import LLMClient
from mind2web2.utils.cache_filesys import CacheFileSys
from mind2web2.verification_tree import VerificationNode
from pydantic import BaseModel

TASK = "Find the first train from Basel to Bern after nine in the morning, its platform and its price."


class Journey(BaseModel):
    departure: str | None = None
    url: str | None = None


class Platform(BaseModel):
    platform: str | None = None


def late_enough(departure: str | None) -> bool:
    try:
        return datetime.strptime(departure or "", "%H:%M").hour >= 9  # noqa: DTZ007 - a time of day
    except ValueError:
        return False


async def evaluate_answer(
    client: LLMClient,
    answer: str,
    agent_name: str,
    answer_name: str,
    cache: CacheFileSys,
    semaphore: asyncio.Semaphore,
    logger: logging.Logger,
    model: str = "o4-mini",
) -> dict:
    evaluator = Evaluator()
    root: VerificationNode = evaluator.initialize(
        task_id="journey",
        strategy=AggregationStrategy.SEQUENTIAL,
        agent_name=agent_name,
        answer_name=answer_name,
        client=client,
        task_description=TASK,
        answer=answer,
        global_cache=cache,
        global_semaphore=semaphore,
        logger=logger,
        default_model=model,
    )
    journey = await evaluator.extract(
        prompt="The time of departure (HH:MM) and the address of the timetable.",
        template_class=Journey,
        extraction_name="journey",
    )
    train = evaluator.add_sequential(id="train", desc="The train", parent=root, critical=False)
    evaluator.add_custom_node(result=journey.url, id="cited", desc="A timetable is cited", parent=train, critical=True)
    evaluator.add_custom_node(
        result=late_enough(journey.departure), id="after_nine", desc="It leaves after nine", parent=train, critical=True
    )
    leaves = evaluator.add_leaf(id="leaves", desc="The timetable has it", parent=train, critical=True)
    await evaluator.verify(
        claim=f"A train from Basel to Bern leaves at {journey.departure}.", node=leaves, sources=journey.url
    )
    details = evaluator.add_parallel(id="details", desc="Platform and price", critical=False)
    platform = Platform()
    if journey.url:
        platform = await evaluator.extract(
            prompt="The platform.", template_class=Platform, extraction_name="platform", source=journey.url
        )
    checks = []
    for what in ("platform", "price"):
        node = evaluator.add_leaf(id=what, desc=f"The {what}", parent=details, critical=False)
        checks.append(
            evaluator.verify(
                claim=f"The answer states the {what} of the train.",
                node=node,
                additional_instruction=f"The platform is {platform.platform}." if what == "platform" else "None",
            )
        )
    await asyncio.gather(*checks)
    evaluator.verifier.logger.info("The journey is judged.")
    evaluator.add_custom_info({"platform": platform.platform}, info_type="platform_of_the_page")
    return evaluator.get_summary()
