"""A line of teachers, each needing the one before: the score is asked for by the script itself."""

from mind2web2.evaluator import AggregationStrategy, Evaluator, VerificationNode
from mind2web2.utils.cache_filesys import CacheFileSys
from pydantic import BaseModel, Field


class Line(BaseModel):
    people: list[str] = Field(default_factory=list)
    years: list[int | None] = Field(default_factory=list)


def link(evaluator: Evaluator, above: VerificationNode, teacher: str, pupil: str) -> VerificationNode:
    return evaluator.add_leaf(id="link", desc=f"{teacher} taught {pupil}", parent=above, critical=True)


async def evaluate_answer(
    client, answer, agent_name, answer_name, cache: CacheFileSys, semaphore, logger, model="o4-mini"
):
    evaluator = Evaluator()
    evaluator.initialize(
        task_id="lineage",
        agent_name=agent_name,
        answer_name=answer_name,
        client=client,
        task_description="Name the line of teachers from Anna to Emil.",
        answer=answer,
        global_cache=cache,
        global_semaphore=semaphore,
        logger=logger,
        default_model=model,
        strategy=AggregationStrategy.PARALLEL,
    )
    line = await evaluator.extract(prompt="The people, in order.", template_class=Line, extraction_name="line")
    known = ["Anna", "Berta", "Carl", "Dora", "Emil"]
    for number, expected in enumerate(known):
        person = evaluator.add_sequential(id=f"person_{number}", desc=expected, parent=evaluator.root, critical=False)
        given = line.people[number] if number < len(line.people) else None
        evaluator.add_custom_node(
            result=given is not None, id="given", desc="A name is given", parent=person, critical=True
        )
        node = link(evaluator, person, known[number - 1] if number else "nobody", expected)
        await evaluator.verify(
            claim=f"{given} and {expected} are the same person.", node=node, additional_instruction="Ignore titles."
        )
    span = max(line.years) - min(line.years) if line.years else 0
    evaluator.add_custom_info({"years": span}, info_type="span")
    if evaluator.score() < 0:
        raise AssertionError("A score is never below 0.")
    return evaluator.get_summary()
