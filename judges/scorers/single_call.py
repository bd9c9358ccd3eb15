"""Judge with one call: a maintainer writes its instructions and criteria, and parameters select its input."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from judges.llm import Asker, Prompt, Reply, SentImage
from judges.prompts import fill
from judges.scorer import KeyPointEvidence, Kind, ParameterError, Prompts, Score, StepEvidence, Subject, register
from judges.scorers import framing, reading
from judges.scorers.one_call import (
    RECORD,
    STAGE,
    Picture,
    ShownRecord,
    build_message,
    build_score,
    find_user_text,
    group_by_picture,
    list_pictures,
)
from judges.scorers.suspicion import add_suspicions

LONGEST_RULES = 20_000  # characters of instructions, and of criteria
LONGEST_URL = 500
MOST_PICTURES = 100
MOST_ENTRIES = 100  # key points, and cited steps, that are read from a reply

INTEGERS = reading.build_list_schema({"type": "integer"})
POINT = reading.build_object_schema(
    text=reading.TEXT,
    finding={"type": "string", "enum": ["met", "unmet", "unclear"]},
    steps=INTEGERS,
    reason=reading.TEXT,
)
CITED = reading.build_object_schema(step={"type": "integer"}, reason=reading.TEXT)
SCHEMA = reading.build_object_schema(
    reason=reading.TEXT,
    key_points=reading.build_list_schema(POINT),
    steps=reading.build_list_schema(CITED),
    verdict=reading.VERDICT,
)


def _build_field(what: str, default: bool) -> Any:
    return field(default=default, metadata={"help": f"Show the judge {what}."})


@dataclass(frozen=True, slots=True)
class SingleCallParameters:
    instructions: str = field(
        default="You judge whether a web agent did the task that a person gave it.",
        metadata={"help": "What the judge is and does: the beginning of its system text."},
    )
    criteria: str = field(
        default="It is a success only if every requirement that the task states was met, and the record or the "
        "screenshots show it. What the agent merely says it did is not proved.",
        metadata={"help": "When it is a success and when a failure."},
    )
    show_actions: bool = _build_field("the actions", True)
    show_thoughts: bool = _build_field("the agent's thoughts", True)
    show_urls: bool = _build_field("the address of every step", True)
    show_final_answer: bool = _build_field(
        "the final answer; with it, judges tend to believe claims without proof", False
    )
    show_key_points: bool = _build_field("the key points that people have accepted", True)
    show_reference_length: bool = _build_field("how many steps a person needed", False)
    show_input_images: bool = _build_field("the images of the task", True)
    images: Literal["none", "last", "all", "sampled"] = field(
        default="all",
        metadata={
            "help": (
                "Screenshots: none, the last one, all (the last ones if there are too many), or spread "
                "evenly over the trajectory."
            )
        },
    )
    max_images: int = field(default=50, metadata={"help": f"Maximum number of screenshots, 1 to {MOST_PICTURES}."})

    def __post_init__(self) -> None:
        for name in ("instructions", "criteria"):
            if not getattr(self, name).strip():
                raise ParameterError(name, f"{name} must not be empty.")
            if len(getattr(self, name)) > LONGEST_RULES:
                raise ParameterError(name, f"{name} must have at most {LONGEST_RULES:,} characters.")
        if not 1 <= self.max_images <= MOST_PICTURES:
            raise ParameterError("max_images", f"max_images must be 1 to {MOST_PICTURES}, not {self.max_images}.")


def choose_pictures(parameters: SingleCallParameters, subject: Subject) -> tuple[Picture, ...]:
    taken = list_pictures(subject)
    most = {"none": 0, "last": 1}.get(parameters.images, parameters.max_images)
    if len(taken) <= most or most < 2 or parameters.images != "sampled":
        return taken[-most:] if most else ()
    return tuple(taken[round(place * (len(taken) - 1) / (most - 1))] for place in range(most))


def has_nothing_to_judge(parameters: SingleCallParameters, subject: Subject) -> bool:
    """Return whether there is nothing to judge: no steps, and the final answer is not shown."""
    return not subject.record.steps and not parameters.show_final_answer


def build_lines(parameters: SingleCallParameters, subject: Subject) -> Iterator[str]:
    trajectory = subject.record
    yield framing.format_field("task", trajectory.task_text, framing.TASK)
    if parameters.show_reference_length and trajectory.reference_length is not None:
        yield f"steps that a person needed: {trajectory.reference_length}"
    if parameters.show_key_points:
        for number, point in enumerate(subject.key_points, 1):
            yield framing.format_field(f"key point {number}", point, framing.POINT)
    for step in framing.select_acting(trajectory, "auto"):
        if parameters.show_urls and step.url:
            yield framing.format_field(f"step {step.index} url", step.url, LONGEST_URL)
        if parameters.show_thoughts and step.thought:
            yield framing.format_field(f"step {step.index} thought", step.thought, framing.THOUGHT)
        if parameters.show_actions:
            yield from framing.format_history([step])
    if parameters.show_final_answer:
        yield framing.format_field("final answer", trajectory.final_answer or "", framing.ANSWER)


@dataclass(frozen=True, slots=True)
class SingleCallScorer:
    """Scorer that asks once and stores the cited steps that exist."""

    parameters: SingleCallParameters
    system: str
    user: str

    async def score(self, subject: Subject, model: Asker) -> Score:
        if has_nothing_to_judge(self.parameters, subject):
            return add_suspicions(Score(None, framing.NO_STEPS), subject)
        pictures = choose_pictures(self.parameters, subject)
        message = build_message(self.user, ShownRecord(tuple(build_lines(self.parameters, subject)), pictures=pictures))
        if self.parameters.show_input_images and subject.input_images:
            message += ("Pictures that came with the task:", *map(SentImage, subject.input_images))
        reply = await model.ask(Prompt(self.system, (message,)), stage=STAGE, schema=SCHEMA)
        return add_suspicions(
            add_citations(build_score(reply, reading.read_verdict, pictures), reply, subject), subject
        )


def add_citations(score: Score, reply: Reply, subject: Subject) -> Score:
    """Return the score with the key points and steps of a structured reply; unknown step numbers go into the notes."""
    known = range(len(subject.record.steps))
    points, unknown = [], set[int]()
    for one in _list_objects(reply, "key_points"):
        steps, missing = reading.find_cited_steps(one.get("steps"), known)
        unknown.update(missing)
        text, reason = str(one.get("text", ""))[: framing.POINT], str(one.get("reason", ""))
        points.append(KeyPointEvidence(text, reading.read_finding(one.get("finding")), steps, reason))
    reasons: dict[int, str] = {}
    for one in _list_objects(reply, "steps"):
        steps, missing = reading.find_cited_steps([one.get("step")], known)
        unknown.update(missing)
        reasons |= {step: str(one.get("reason", "")) for step in steps}
    kept = {one.step for one in score.steps}
    evidence = tuple(
        StepEvidence(step, None, reasons.get(step, ""), kept=step in kept) for step in sorted(kept | reasons.keys())
    )
    notes = {**score.notes, "cited": sorted(reasons)} | ({"unknown_steps": sorted(unknown)} if unknown else {})
    return replace(score, key_points=tuple(points), steps=evidence, notes=notes)


def _list_objects(reply: Reply, name: str) -> list[dict[str, Any]]:
    said = reply.data.get(name) if reply.data is not None else None
    return [one for one in said if isinstance(one, dict)][:MOST_ENTRIES] if isinstance(said, list) else []


def build(parameters: SingleCallParameters, prompts: Prompts) -> SingleCallScorer:
    rules = {"instructions": parameters.instructions.strip(), "criteria": parameters.criteria.strip()}
    user = find_user_text(prompts, "framed_system", "framed_user", fills=RECORD)
    return SingleCallScorer(parameters, fill(prompts.texts[f"{STAGE}.framed_system"], **rules), user)


def forecast(parameters: SingleCallParameters, subject: Subject) -> list[tuple[str, int]]:
    if has_nothing_to_judge(parameters, subject):
        return []
    attached = len(subject.input_images) if parameters.show_input_images else 0
    return [(STAGE, len(group_by_picture(choose_pictures(parameters, subject))) + attached)]


KIND = register(
    Kind(
        name="single-call",
        version=1,
        title="Single call",
        description="One call with your own instructions and criteria; you choose what is shown.",
        parameters=SingleCallParameters,
        prompts="single-call/1",
        build=build,
        calls=forecast,
        discloses_expectations=False,
    )
)
