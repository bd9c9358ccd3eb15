"""Parks within a walk: the maps tool, which is made where the script begins."""

from mind2web2 import AggregationStrategy, Evaluator
from mind2web2.api_tools import tool_googlemap
from pydantic import BaseModel, Field

TASK = "Find a park within two kilometres of the museum, and say how long the walk is."


class Parks(BaseModel):
    names: list[str] = Field(default_factory=list)


async def evaluate_answer(client, answer, agent_name, answer_name, cache, semaphore, logger, model="o4-mini"):
    maps = tool_googlemap.GoogleMapsTool()
    evaluator = Evaluator()
    evaluator.initialize(
        task_id="parks",
        agent_name=agent_name,
        answer_name=answer_name,
        client=client,
        task_description=TASK,
        answer=answer,
        global_cache=cache,
        global_semaphore=semaphore,
        logger=logger,
        default_model=model,
        strategy=AggregationStrategy.PARALLEL,
    )
    parks = await evaluator.extract(
        prompt="Names of parks.", template_class=Parks, extraction_name="parks", source=None
    )
    for name in parks.names:
        group = evaluator.add_parallel(id="park", desc=name, parent=evaluator.root, critical=False)
        distance = await maps.calculate_distance("Museum", name, "walking")
        near = isinstance(distance, int) and distance <= 2000
        evaluator.add_custom_node(result=near, id="near", desc="It is near", parent=group, critical=True)
        seconds = await maps.calculate_travel_time(address1="Museum", address2=name, mode="walking")
        time = evaluator.add_leaf(id="time", desc="The walk", parent=group, critical=True)
        await evaluator.verify(claim=f"The answer says that the walk to {name} takes {seconds} seconds.", node=time)
    evaluator.add_custom_info({"parks": len(parks.names)}, "counted")
    return evaluator.get_summary()
