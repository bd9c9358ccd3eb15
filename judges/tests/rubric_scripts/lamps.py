"""Two lamps of a shop below a price: everything from the package root, several addresses a claim."""

import asyncio
import logging
from typing import Any, Dict, List, Optional  # noqa: UP035 - as such scripts write it

from mind2web2 import AggregationStrategy, CacheFileSys, Evaluator, LLMClient, VerificationNode
from pydantic import BaseModel, Field

TASK_ID = "lamps"
TASK = "Find two desk lamps below 40 dollars, each with a page of a shop."
PROMPT = "List the lamps of the answer in order, each with name, price and addresses."
GROUND_TRUTH = {"most": 40}


class Lamp(BaseModel):
    name: Optional[str] = None  # noqa: UP045
    price: Optional[str] = None  # noqa: UP045
    urls: List[str] = Field(default_factory=list)  # noqa: UP006


class Lamps(BaseModel):
    lamps: List[Lamp] = Field(default_factory=list)  # noqa: UP006


async def verify_lamp(evaluator: Evaluator, parent: VerificationNode, lamp: Lamp, number: int) -> None:
    group = evaluator.add_parallel(id=f"lamp_{number}", desc=f"Lamp {number}", parent=parent, critical=False)
    evaluator.add_custom_node(
        result=lamp.name and lamp.urls, id=f"lamp_{number}_named", desc="It is named", parent=group, critical=True
    )
    price = evaluator.add_leaf(id=f"lamp_{number}_price", desc="Its price", parent=group, critical=True)
    await evaluator.verify(
        claim=f"The lamp {lamp.name} costs {lamp.price}.",
        node=price,
        sources=lamp.urls,
        additional_instruction="Rounding to whole dollars is fine.",
    )
    colour = evaluator.add_leaf(id=f"lamp_{number}_colour", desc="Its colour", parent=group, critical=False)
    await evaluator.verify(claim=f"The lamp {lamp.name} is green.", node=colour, sources=lamp.urls)


async def evaluate_answer(
    client: LLMClient,
    answer: str,
    agent_name: str,
    answer_name: str,
    cache: CacheFileSys,
    semaphore: asyncio.Semaphore,
    logger: logging.Logger,
    model: str = "o4-mini",
) -> Dict[str, Any]:  # noqa: UP006
    evaluator = Evaluator()
    evaluator.initialize(
        task_id=TASK_ID,
        strategy=AggregationStrategy.PARALLEL,
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
    found = await evaluator.extract(prompt=PROMPT, template_class=Lamps, extraction_name="lamps", source=None)
    evaluator.add_ground_truth(GROUND_TRUTH, "prices")
    lamps = [*found.lamps, Lamp(), Lamp()][:2]
    for number, lamp in enumerate(lamps, 1):
        await verify_lamp(evaluator, evaluator.root, lamp, number)
    return evaluator.get_summary()
