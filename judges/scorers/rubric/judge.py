"""The rubric judge: a tree of claims, written by a maintainer, or made by an installed script of Mind2Web-2."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

from annotation.formats.documents import FormatError
from annotation.records import Finding, Verdict
from judges.llm import Asker, BudgetSpent, CallFailed
from judges.prompts import required
from judges.scorer import KeyPointEvidence, Kind, ParameterError, Prompts, Score, StepEvidence, Subject, register
from judges.scorers.rubric import attached_pages, engine, forecast, outcome, scripts
from judges.scorers.rubric.claims import Checking
from judges.scorers.rubric.client import AskerClient, BadRequest, Unusable
from judges.scorers.rubric.confinement import Limits
from judges.scorers.rubric.evaluator import Evaluator
from judges.scorers.rubric.folders import own_folder
from judges.scorers.rubric.outcome import Outcome
from judges.scorers.rubric.pdf import Reading
from judges.scorers.rubric.process import Patience, Unanswered, run_script, running
from judges.scorers.rubric.semaphores import DualSemaphore
from judges.scorers.rubric.tree import AggregationStrategy
from judges.scorers.rubric.written import Rubric, parse
from judges.scorers.suspicion import noted

NAME = "rubric"  # of the scorer
EXPECTATION = "rubric"
MOST_PICTURES = 100
PAGES_AT_ONCE, CALLS_AT_ONCE = 5, 16  # of one trajectory: each page of a call may hold megabytes of pictures
NOTHING = {
    "written": "The task has no rubric.",
    "script": f"No rubric script is installed for the task (see {scripts.SETTING}).",
    "auto": "The task has no rubric, and no rubric script is installed for it.",
}


@dataclass(frozen=True, slots=True)
class Parameters:
    source: Literal["auto", "written", "script"] = field(
        default="auto",
        metadata={
            "help": "Where the rubric comes from: written for the task, the script that is installed for it, or (auto) "
            "the script where there is one."
        },
    )
    pass_score: float = field(
        default=1.0, metadata={"help": "From which score it is a success, where the rubric does not say it itself."}
    )
    votes: int = field(
        default=3, metadata={"help": "How often a claim of a written rubric is asked about at most: 1, 3 or 5."}
    )
    max_images: int = field(
        default=50, metadata={"help": f"At most so many screenshots for one claim, 1 to {MOST_PICTURES}."}
    )
    missing_pages: Literal["unscored", "unsupported"] = field(
        default="unscored",
        metadata={
            "help": "A cited page that is not stored: unscored where it decides, or unsupported, as published judges "
            "count it."
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
class Judge:
    """``limits`` and ``patience`` are those of a script's process."""

    parameters: Parameters
    texts: Mapping[str, str]
    limits: Limits = Limits()  # noqa: RUF009 - frozen
    patience: Patience = Patience()  # noqa: RUF009 - frozen

    async def score(self, subject: Subject, model: Asker) -> Score:
        """Raises CallFailed, also for a script that came to no score, and BudgetSpent."""
        script = _script_for(self.parameters, subject)
        if script is not None:
            return noted(self._scored(await self._by_script(script, subject, model)), subject)
        rubric = written_for(subject) if self.parameters.source != "script" else None
        if rubric is None:
            return Score(None, unscored=NOTHING[self.parameters.source])
        found = await self._by_claims(rubric, subject, model)
        return noted(self._scored(found, rubric, subject), subject)

    # --- both ways -------------------------------------------------------------------------------------------------

    async def _by_claims(self, rubric: Rubric, subject: Subject, model: Asker) -> Outcome:
        record = subject.record
        given = {"texts": self.texts, "lets_through": (CallFailed, BudgetSpent), "threads": True}
        with Reading() as pdfs, engine.using(**given, read_pdf=pdfs.read):
            evaluator = Evaluator()
            evaluator.initialize(
                task_id=record.task_id,
                agent_name="agent",
                answer_name="answer",
                client=AskerClient(model, self.texts),
                task_description=record.task_text,
                answer=record.final_answer or "",
                global_cache=await asyncio.to_thread(attached_pages.stored, subject),
                global_semaphore=DualSemaphore(PAGES_AT_ONCE, CALLS_AT_ONCE),
                strategy=AggregationStrategy(rubric.strategy),
            )
            checking = Checking(
                rubric, subject, evaluator, votes=self.parameters.votes, max_images=self.parameters.max_images
            )
            await checking.run()
            return outcome.of_evaluator(evaluator, subject.expectations[EXPECTATION])

    async def _by_script(self, script: scripts.Script, subject: Subject, model: Asker) -> Outcome:
        client = AskerClient(model, self.texts, self.patience.calls)

        async def ask(messages: Any, schema: Any) -> Any:
            try:
                return await client.ask(messages, schema if isinstance(schema, dict) else None)
            except (Unusable, BadRequest) as why:
                raise Unanswered(str(why)) from None

        async with running(), own_folder() as folder:
            await attached_pages.copied(subject, folder)
            (folder / script.name).write_bytes(script.source)
            job = {
                "script": script.name,
                "answer": subject.record.final_answer or "",
                "model": "judge",
                "texts": dict(self.texts),
            }
            said = await run_script(folder, job, ask, self.limits, self.patience)
        return outcome.of_script(said, script)

    # --- the verdict -----------------------------------------------------------------------------------------------

    def _scored(self, found: Outcome, rubric: Rubric | None = None, subject: Subject | None = None) -> Score:
        stated = rubric.pass_score if rubric else None
        needed = self.parameters.pass_score if stated is None else stated
        low, high = found.bounds(count_missing=self.parameters.missing_pages == "unscored")
        passed, might = outcome.reaches(low, needed), outcome.reaches(high, needed)
        notes = found.notes | {"pass_score": needed, "score": found.score}
        return Score(
            verdict=None if passed != might else Verdict.SUCCESS if passed else Verdict.FAILURE,
            unscored=found.why_undecided() if passed != might else "",
            score=low if low == high else None,
            explanation=found.explanation(),
            key_points=evidence_of(rubric, found.nodes(), subject.key_points if subject else ()) if rubric else (),
            steps=steps_of(found.nodes(), subject) if subject else (),
            notes=MappingProxyType(notes),
            details=found.details,
        )


def _script_for(parameters: Parameters, subject: Subject) -> scripts.Script | None:
    """The script to judge by, None for a written rubric; raises NotConfigured."""
    if parameters.source == "written":
        return None
    return scripts.installed(subject.rubric_scripts, subject.record.task_id)


def written_for(subject: Subject) -> Rubric | None:
    """The rubric of the task as it is now, None where there is none; CallFailed where it cannot be read any more."""
    expected = subject.expectations.get(EXPECTATION)
    if expected is None:
        return None
    try:
        return parse(expected.text)
    except FormatError as error:
        raise CallFailed(f"Version {expected.version} of the task's rubric cannot be read: {error}") from None


def evidence_of(
    rubric: Rubric, nodes: Mapping[str, Mapping[str, Any]], known: tuple[str, ...]
) -> tuple[KeyPointEvidence, ...]:
    """What the claims that name a key point say about it; what was not checked, or broke, is unclear.

    ``known`` are the key points of the task; the number of none is left out.
    """
    found = {"passed": Finding.MET, "failed": Finding.UNMET}
    evidence = []
    for claim in rubric.claims():
        point = claim.key_point
        if isinstance(point, int):
            point = known[point - 1] if 1 <= point <= len(known) else ""
        if point:
            node = nodes.get(claim.id, {})
            finding = Finding.UNCLEAR if node.get("error") else found.get(str(node.get("status")), Finding.UNCLEAR)
            steps = tuple(node.get("steps", ())) if finding is Finding.MET else ()
            evidence.append(KeyPointEvidence(point, finding, steps, str(node.get("reasoning", ""))))
    return tuple(evidence)


def steps_of(nodes: Mapping[str, Mapping[str, Any]], subject: Subject) -> tuple[StepEvidence, ...]:
    """The steps whose screenshots were looked at for any claim."""
    used = sorted({step for node in nodes.values() for step in node.get("steps", ()) if node.get("votes")})
    return tuple(
        StepEvidence(step, None, kept=True)
        for step in used
        if step < len(subject.screenshots) and subject.screenshots[step]
    )


def built(parameters: Parameters, prompts: Prompts) -> Judge:
    """LookupError for a prompt set that lacks a text."""
    required(prompts, *(f"{stage}.{part}" for stage in engine.STAGES for part in ("system", "user")))
    return Judge(parameters, prompts.texts)


def calls(parameters: Parameters, subject: Subject) -> list[tuple[str, int]]:
    """What judging a trajectory will about ask; nothing where there is no rubric, or none that can be read."""
    try:
        script = _script_for(parameters, subject)
        rubric = written_for(subject) if script is None and parameters.source != "script" else None
    except CallFailed:
        return []
    if script is not None:
        return forecast.of_script(script.source)
    return forecast.of_rubric(rubric, subject, parameters.votes, parameters.max_images) if rubric else []


KIND = register(
    Kind(
        name=NAME,
        version=1,
        title="Rubric",
        description=(
            "Checks a tree of claims about the answer, the pages that it cites, or the steps, one by one. The rubric "
            "is written for the task, or is a script of Mind2Web-2 that an administrator installed."
        ),
        parameters=Parameters,
        prompts=engine.PROMPTS,
        build=built,
        calls=calls,
    )
)
