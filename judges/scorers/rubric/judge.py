"""The rubric judge: a tree of claims, written by a maintainer, or built by an installed script of Mind2Web-2."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

from annotation.formats.documents import FormatError
from annotation.records import Finding, Verdict
from judges.llm import Asker, BudgetSpent, CallFailed, NotConfigured
from judges.prompts import require_parts
from judges.scorer import (
    KeyPointEvidence,
    Kind,
    ParameterError,
    Prompts,
    Requirement,
    Score,
    StepEvidence,
    Subject,
    register,
)
from judges.scorers.rubric import claims, engine, folders, outcome, process
from judges.scorers.rubric.claims import Checking
from judges.scorers.rubric.client import AskerClient, BadRequest, Unusable, find_route
from judges.scorers.rubric.confinement import ProcessLimits
from judges.scorers.rubric.details import read_details
from judges.scorers.rubric.engine import DualSemaphore
from judges.scorers.rubric.evaluator import Evaluator
from judges.scorers.rubric.folders import open_folder
from judges.scorers.rubric.outcome import RubricOutcome
from judges.scorers.rubric.pdf import PdfReader
from judges.scorers.rubric.process import ScriptPatience, ScriptUnanswered, get_script_semaphore, run_script
from judges.scorers.rubric.tree import NOT_APPLICABLE, AggregationStrategy
from judges.scorers.rubric.written import Node, Rubric, parse
from judges.scorers.suspicion import add_suspicions

NAME = "rubric"  # of the scorer
EXPECTATION = "rubric"
NONE_APPLIES = "The condition of no claim is met, so the rubric does not apply."
MOST_PICTURES = 100
PAGES_AT_ONCE, CALLS_AT_ONCE = 5, 16  # of one trajectory: each page of a call may have megabytes of images
NOTHING = {
    "written": "The task has no rubric.",
    "script": f"No rubric script is installed for the task (see {process.SETTING}).",
    "auto": "The task has no rubric, and no rubric script is installed for it.",
}


@dataclass(frozen=True, slots=True)
class RubricParameters:
    source: Literal["auto", "written", "script"] = field(
        default="auto",
        metadata={
            "help": (
                "Source of the rubric: written for the task, the script installed for it, or (auto) the "
                "script if there is one."
            )
        },
    )
    pass_score: float = field(
        default=1.0, metadata={"help": "Lowest score that counts as a success, unless the rubric states it."}
    )
    votes: int = field(
        default=3, metadata={"help": "Maximum number of calls per claim of a written rubric: 1, 3 or 5."}
    )
    max_images: int = field(
        default=50, metadata={"help": f"Maximum number of screenshots per claim, 1 to {MOST_PICTURES}."}
    )
    missing_pages: Literal["unscored", "unsupported"] = field(
        default="unscored",
        metadata={
            "help": (
                "A cited page that is not stored: unscored if it decides, or unsupported, as published judges count it."
            )
        },
    )

    def __post_init__(self) -> None:
        if not 0 < self.pass_score <= 1:
            raise ParameterError("pass_score", f"pass_score must be above 0 and at most 1, not {self.pass_score}.")
        if self.votes not in (1, 3, 5):
            raise ParameterError("votes", f"votes must be 1, 3 or 5, not {self.votes}.")
        if not 1 <= self.max_images <= MOST_PICTURES:
            raise ParameterError("max_images", f"max_images must be 1 to {MOST_PICTURES}, not {self.max_images}.")


@dataclass(frozen=True, slots=True)
class RubricScorer:
    """``limits`` and ``patience`` are those of a script's process."""

    parameters: RubricParameters
    texts: Mapping[str, str]
    limits: ProcessLimits = ProcessLimits()  # noqa: RUF009 - frozen
    patience: ScriptPatience = ScriptPatience()  # noqa: RUF009 - frozen

    async def score(self, subject: Subject, model: Asker) -> Score:
        """Return the score; raise CallFailed, also for a script without a score, and BudgetSpent."""
        script = _find_script(self.parameters, subject)
        if script is not None:
            return add_suspicions(self._build_score(await self._judge_by_script(script, subject, model)), subject)
        rubric = find_rubric(subject) if self.parameters.source != "script" else None
        if rubric is None:
            return Score(None, unscored=NOTHING[self.parameters.source])
        found = await self._judge_by_claims(rubric, subject, model)
        return add_suspicions(self._build_score(found, rubric, subject), subject)

    # --- both ways -------------------------------------------------------------------------------------------------

    async def _judge_by_claims(self, rubric: Rubric, subject: Subject, model: Asker) -> RubricOutcome:
        record = subject.record
        given = {"texts": self.texts, "lets_through": (CallFailed, BudgetSpent), "threads": True}
        with PdfReader() as pdfs, engine.open_engine(**given, read_pdf=pdfs.read):
            evaluator = Evaluator()
            evaluator.initialize(
                task_id=record.task_id,
                agent_name="agent",
                answer_name="answer",
                client=AskerClient(model, self.texts),
                task_description=record.task_text,
                answer=record.final_answer or "",
                global_cache=await asyncio.to_thread(folders.open_pages, subject),
                global_semaphore=DualSemaphore(PAGES_AT_ONCE, CALLS_AT_ONCE),
                strategy=AggregationStrategy(rubric.strategy),
            )
            checking = Checking(
                rubric, subject, evaluator, votes=self.parameters.votes, max_images=self.parameters.max_images
            )
            await checking.run()
            return outcome.read_evaluator(evaluator, subject.expectations[EXPECTATION])

    async def _judge_by_script(self, script: process.Script, subject: Subject, model: Asker) -> RubricOutcome:
        client = AskerClient(model, self.texts, self.patience.calls)

        async def ask(call: Mapping[str, Any]) -> Any:
            schema = call.get("schema")
            try:
                if "route" in call:
                    return await find_route(model, call["route"])
                return await client.ask(call.get("messages") or (), schema if isinstance(schema, dict) else None)
            except (Unusable, BadRequest) as why:
                raise ScriptUnanswered(str(why)) from None

        async with get_script_semaphore(), open_folder() as folder:
            await folders.copy_pages(subject, folder)
            (folder / script.name).write_bytes(script.source)
            job = {
                "script": script.name,
                "answer": subject.record.final_answer or "",
                "model": "judge",
                "texts": dict(self.texts),
            }
            said = await run_script(folder, job, ask, self.limits, self.patience)
        return outcome.read_script(said, script)

    # --- the verdict -----------------------------------------------------------------------------------------------

    def _build_score(self, found: RubricOutcome, rubric: Rubric | None = None, subject: Subject | None = None) -> Score:
        stated = rubric.pass_score if rubric else None
        needed = self.parameters.pass_score if stated is None else stated
        low, high = found.between_with_pages if self.parameters.missing_pages == "unscored" else found.between
        passed, might = outcome.reaches(low, needed), outcome.reaches(high, needed)
        if passed == might and not found.applies:
            return Score(None, unscored=NONE_APPLIES, details=found.details)
        notes, nodes = found.notes | {"pass_score": needed, "score": found.score}, found.map_nodes()
        return Score(
            verdict=None if passed != might else Verdict.SUCCESS if passed else Verdict.FAILURE,
            unscored=found.explain_undecided() if passed != might else "",
            score=low if low == high else None,
            explanation=found.explain_score(),
            key_points=collect_evidence(rubric, nodes, subject.key_points if subject else ()) if rubric else (),
            steps=collect_steps(nodes, subject) if subject else (),
            notes=MappingProxyType(notes),
            details=found.details,
        )


def _find_script(parameters: RubricParameters, subject: Subject) -> process.Script | None:
    """Return the script to judge by, None for a written rubric or without a script; raise NotConfigured."""
    if parameters.source == "written":
        return None
    return process.find_script(subject.rubric_scripts, subject.record.task_id)


def find_rubric(subject: Subject) -> Rubric | None:
    """Return the current rubric of the task, None if there is none; raise CallFailed if it is no longer readable."""
    expected = subject.expectations.get(EXPECTATION)
    if expected is None:
        return None
    try:
        return parse(expected.text)
    except FormatError as error:
        raise CallFailed(f"Version {expected.version} of the task's rubric cannot be read: {error}") from None


def find_key_point(claim: Node, known: tuple[str, ...]) -> str:
    """Return the text of the key point that a claim names; "" without one, or for a number without a key point."""
    point = claim.key_point
    if isinstance(point, str):
        return point
    return known[point - 1] if 1 <= point <= len(known) else ""


def collect_evidence(
    rubric: Rubric, nodes: Mapping[str, Mapping[str, Any]], known: tuple[str, ...]
) -> tuple[KeyPointEvidence, ...]:
    """Return the findings of the claims that name a key point; a claim that was not checked, or broke, is unclear, and
    one that does not apply has no finding.

    ``known`` are the key points of the task; a number without a key point is left out.
    """
    found = {"passed": Finding.MET, "failed": Finding.UNMET, NOT_APPLICABLE: None}
    evidence = []
    for claim in rubric.claims():
        if point := find_key_point(claim, known):
            node = nodes.get(claim.id, {})
            finding = Finding.UNCLEAR if node.get("error") else found.get(str(node.get("status")), Finding.UNCLEAR)
            steps = tuple(node.get("steps", ())) if finding is Finding.MET else ()
            evidence.append(KeyPointEvidence(point, finding, steps, str(node.get("reasoning", ""))))
    return tuple(evidence)


def collect_steps(nodes: Mapping[str, Mapping[str, Any]], subject: Subject) -> tuple[StepEvidence, ...]:
    used = sorted({step for node in nodes.values() for step in node.get("steps", ()) if node.get("votes")})
    return tuple(
        StepEvidence(step, None, kept=True)
        for step in used
        if step < len(subject.screenshots) and subject.screenshots[step]
    )


def build(parameters: RubricParameters, prompts: Prompts) -> RubricScorer:
    """Return the scorer; raise LookupError if the prompt set lacks a text."""
    require_parts(prompts, *(f"{stage}.{part}" for stage in engine.STAGES for part in ("system", "user")))
    return RubricScorer(parameters, prompts.texts)


def forecast_calls(parameters: RubricParameters, subject: Subject) -> list[tuple[str, int]]:
    """Estimate the calls for a trajectory; none if there is no readable rubric."""
    try:
        script = _find_script(parameters, subject)
        rubric = find_rubric(subject) if script is None and parameters.source != "script" else None
    except CallFailed:
        return []
    if script is not None:
        return claims.forecast_script(script.source)
    return claims.forecast_rubric(rubric, subject, parameters.votes, parameters.max_images) if rubric else []


def require_rubric(parameters: RubricParameters) -> Requirement:
    label = {"written": "a rubric", "script": "a rubric script"}.get(parameters.source, "a rubric or a rubric script")

    def is_met(subject: Subject) -> bool:
        if parameters.source != "script" and EXPECTATION in subject.expectations:
            return True
        try:
            return _find_script(parameters, subject) is not None
        except NotConfigured:  # a script exists; the item reports that it cannot be used
            return True

    return Requirement(label, is_met)


KIND = register(
    Kind(
        name=NAME,
        version=1,
        title="Rubric",
        description=(
            "Checks a tree of claims about the answer, its cited pages, or the steps, one by one. The "
            "rubric is written for the task, or is a script of Mind2Web-2 that an operator installed."
        ),
        parameters=RubricParameters,
        prompts=engine.PROMPTS,
        build=build,
        calls=forecast_calls,
        requires=require_rubric,
        read_details=read_details,
    )
)
