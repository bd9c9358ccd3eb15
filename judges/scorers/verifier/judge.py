"""The rubric verifier: criteria, relevance of screenshots, two passes for each criterion, and a global pass."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from judges.llm import Asker, CallFailed, Prompt, Reply
from judges.scorer import Kind, ParameterError, Prompts, Requirement, Score, Subject, register
from judges.scorers import framing
from judges.scorers.rubric.judge import EXPECTATION, NOTHING, find_key_point, find_rubric
from judges.scorers.rubric.outcome import describe_written
from judges.scorers.suspicion import add_suspicions
from judges.scorers.together import run_together
from judges.scorers.verifier import replies, selection
from judges.scorers.verifier.details import read_details
from judges.scorers.verifier.model import (
    MOST_CRITERIA,
    POINTS_OF_A_KEY_POINT,
    QUESTIONS,
    SHOTS_PER_CALL,
    Criterion,
    Findings,
    Grade,
    Look,
    Mismatch,
    Passes,
    Shot,
    Unusable,
    batch_shots,
)
from judges.scorers.verifier.outcome import NAME, build_score
from judges.scorers.verifier.prompting import PromptBuilder

MOST_PICTURES = 100
NO_RUBRIC = NOTHING["written"]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class VerifierParameters:
    mode: Literal["full", "cheap"] = field(
        default="full",
        metadata={
            "help": "full: two calls for each criterion, from the actions and with screenshots, and one for the "
            "verdict. cheap: one call for all of it; with more than 12 criteria, set max_tokens of the model to 8192."
        },
    )
    criteria: Literal["model", "people", "written"] = field(
        default="model",
        metadata={
            "help": "model: written by the model from the task alone. people: the task's key points, if there are any, "
            f"with {POINTS_OF_A_KEY_POINT} points each. written: the claims of the task's rubric, each with its "
            f"condition, its note, and points in proportion to its weight ({POINTS_OF_A_KEY_POINT} in the mean); "
            "groups, critical, steps, sources and pass_score have no effect, and a task without a rubric is unscored."
        },
    )
    max_criteria: int = field(
        default=8,
        metadata={
            "help": f"Maximum number of criteria that the model writes, 1 to {MOST_CRITERIA}. The plan of mode full "
            "expects this number."
        },
    )
    top_k: int = field(
        default=5, metadata={"help": "Mode full: number of screenshots shown for each criterion, the most relevant."}
    )
    max_images: int = field(
        default=20,
        metadata={
            "help": "Number of screenshots in the last call: the most relevant of each criterion, then the second most."
        },
    )

    def __post_init__(self) -> None:
        for name, most in (("max_criteria", MOST_CRITERIA), ("top_k", MOST_PICTURES), ("max_images", MOST_PICTURES)):
            if not 1 <= getattr(self, name) <= most:
                raise ParameterError(name, f"{name} must be from 1 to {most}.")


class VerifierScorer:
    def __init__(self, parameters: VerifierParameters, prompts: Prompts) -> None:
        self.parameters = parameters
        self.prompts = PromptBuilder(prompts, parameters.mode)

    async def score(self, subject: Subject, model: Asker) -> Score:
        if reason := find_obstacle(self.parameters, subject):
            return add_suspicions(Score(None, reason), subject)
        return add_suspicions(await self._score(subject, model), subject)

    async def _score(self, subject: Subject, model: Asker) -> Score:
        notes: dict[str, Any] = {"mode": self.parameters.mode}
        looks: list[Look] = []
        try:
            criteria = await self._collect_criteria(subject, model, notes)
            looks = await self._rate_shots(subject, criteria, model)
            _require_enough(looks, notes)
            grade = self._grade_fully if self.parameters.mode == "full" else self._grade_together
            shown = selection.select_for_all(looks, len(criteria), self.parameters.max_images)
            passes, findings, response = await grade(subject, criteria, looks, shown, model)
        except Unusable as none:
            return build_score(Score(None, str(none), response=none.response, notes=notes), looks, ())
        return build_score(
            Score(None, "No verdict yet.", response=response, notes=notes), looks, shown, passes, findings
        )

    # --- criteria and relevance --------------------------------------------------------------------------------------

    async def _collect_criteria(self, subject: Subject, model: Asker, notes: dict[str, Any]) -> tuple[Criterion, ...]:
        if given := find_given(self.parameters, subject):
            notes["criteria_from"] = self.parameters.criteria
            if self.parameters.criteria == "written":
                notes["rubric"] = describe_written(subject.expectations[EXPECTATION])
            return given
        notes["criteria_from"] = "model"
        if self.parameters.criteria == "people":
            notes["key_points_of_people"] = "none were there"
        most = self.parameters.max_criteria
        prompt = self.prompts.ask_for_criteria(subject, most)
        criteria, _ = await _ask(
            model, prompt, "criteria", replies.CRITERIA_SCHEMA, lambda data, final: replies.read_criteria(data, most)
        )
        return criteria

    async def _rate_shots(self, subject: Subject, criteria: Sequence[Criterion], model: Asker) -> list[Look]:
        """Return a look for each distinct screenshot; those of a call without a readable reply have no ratings."""

        async def rate(batch: Sequence[Shot]) -> list[Look]:
            prompt = self.prompts.ask_for_relevance(subject, criteria, batch)
            read = lambda data, final: replies.read_relevance(data, len(batch), len(criteria))  # noqa: E731
            try:
                rated, reply = await _ask(
                    model, prompt, "relevance", replies.RELEVANCE_SCHEMA, read, step=batch[0].steps[0]
                )
            except Unusable as none:
                return [Look(shot, None, str(none), none.response) for shot in batch]
            return [Look(shot, *one, reply.text) for shot, one in zip(batch, rated, strict=True)]

        found = await run_together(rate(batch) for batch in batch_shots(selection.list_shots(subject)))
        return [look for batch in found for look in batch]

    # --- the full mode -----------------------------------------------------------------------------------------------

    async def _grade_fully(
        self,
        subject: Subject,
        criteria: Sequence[Criterion],
        looks: Sequence[Look],
        shown: Sequence[Shot],
        model: Asker,
    ) -> tuple[list[Passes], Findings, str]:
        passes = await run_together(self._grade_criterion(subject, one, criteria, looks, model) for one in criteria)
        prompt = self.prompts.ask_for_verdict(subject, passes, shown)
        steps = len(subject.record.steps)
        findings, reply = await _ask(
            model,
            prompt,
            "verdict",
            replies.FINDINGS_SCHEMA,
            lambda data, final: replies.read_findings(data, criteria, steps),
        )
        return passes, findings, reply.text

    async def _grade_criterion(
        self,
        subject: Subject,
        criterion: Criterion,
        criteria: Sequence[Criterion],
        looks: Sequence[Look],
        model: Asker,
    ) -> Passes:
        """Return both grades; raise Unusable if a reply stays about another criterion."""

        async def grade(stage: str, prompt: Prompt) -> Grade:
            read = lambda data, final: replies.read_grade(data, criterion, criteria, final)  # noqa: E731
            try:
                return (await _ask(model, prompt, stage, replies.GRADE_SCHEMA, read))[0]
            except NoReply as none:
                return Grade(None, str(none))

        chosen = selection.select_for_criterion(looks, criterion.number - 1, self.parameters.top_k)
        from_actions = grade("actions", self.prompts.ask_for_actions(subject, criterion))
        if not chosen:
            return Passes(criterion, await from_actions, None)
        from_images = grade("images", self.prompts.ask_for_images(subject, criterion, chosen))
        actions, images = await run_together([from_actions, from_images])
        return Passes(criterion, actions, images, tuple(sorted(step for shot in chosen for step in shot.steps)))

    # --- the cheap mode ----------------------------------------------------------------------------------------------

    async def _grade_together(
        self,
        subject: Subject,
        criteria: Sequence[Criterion],
        looks: Sequence[Look],
        shown: Sequence[Shot],
        model: Asker,
    ) -> tuple[list[Passes], Findings, str]:
        def read(data: Mapping[str, Any], final: bool) -> tuple[list[tuple[Grade, Grade]], Findings]:
            findings = replies.read_findings(data, criteria, len(subject.record.steps))
            return replies.read_grades(data, criteria, final), findings

        prompt = self.prompts.ask_together(subject, criteria, shown)
        (grades, findings), reply = await _ask(model, prompt, "together", replies.TOGETHER_SCHEMA, read)
        steps = tuple(sorted(step for shot in shown for step in shot.steps))
        passes = [
            Passes(criterion, actions, images if shown else None, steps)
            for criterion, (actions, images) in zip(criteria, grades, strict=True)
        ]
        return passes, findings, reply.text


class NoReply(Unusable):
    """A refusal, or an empty, cut-off or unreadable reply."""


async def _ask(
    model: Asker,
    prompt: Prompt,
    stage: str,
    schema: Mapping[str, Any],
    read: Callable[[Mapping[str, Any], bool], T],
    step: int | None = None,
) -> tuple[T, Reply]:
    """Return the answer and its reply; repeat a question whose reply does not answer it, up to `QUESTIONS` in all.

    ``read`` gets True as its second argument for the last question. Raises NoReply at once for a refusal and for an
    empty or cut-off reply, and after the last question for one that is not in the required form; Unusable for one that
    is, but answers another question.
    """
    problem: Unusable | None = None
    for vote in range(QUESTIONS):
        reply = await model.ask(prompt, stage=stage, step=step, schema=schema, vote=vote)
        if reason := reply.unusable():
            raise NoReply(reason, reply.text)
        if reply.data is None:
            problem = NoReply(reply.problem or "The reply is not in the required form.", reply.text)
            continue
        try:
            return read(reply.data, vote == QUESTIONS - 1), reply
        except Mismatch as wrong:
            problem = Unusable(str(wrong), reply.text)
    assert problem is not None  # noqa: S101 - QUESTIONS is positive
    raise problem


def _require_enough(looks: Sequence[Look], notes: dict[str, Any]) -> None:
    """Note the steps of unread screenshots; raise Unusable if these are more than half of the distinct ones."""
    unread = [look for look in looks if look.ratings is None]
    if unread:
        notes["unread_screenshots"] = [look.shot.steps[0] for look in unread]
    if 2 * len(unread) > len(looks):
        first = unread[0]
        message = (
            f"{len(unread)} of {len(looks)} screenshots have no readable rating. "
            f"Step {first.shot.steps[0]}: {first.note}"
        )
        raise Unusable(message, first.response)


def find_given(parameters: VerifierParameters, subject: Subject) -> tuple[Criterion, ...]:
    """Return the key points of people, or the claims of the rubric, as criteria, if they are wanted; () without any.

    Raises CallFailed for a rubric that is no longer readable.
    """
    if parameters.criteria == "people":
        return tuple(
            Criterion(number, text, POINTS_OF_A_KEY_POINT) for number, text in enumerate(subject.key_points, start=1)
        )
    rubric = find_rubric(subject) if parameters.criteria == "written" else None
    claims = list(rubric.claims()) if rubric else []
    scale = POINTS_OF_A_KEY_POINT * len(claims) / sum(one.weight for one in claims) if claims else 0
    return tuple(
        Criterion(
            number, one.text, one.weight * scale, one.note, one.condition, find_key_point(one, subject.key_points)
        )
        for number, one in enumerate(claims, start=1)
    )


def find_obstacle(parameters: VerifierParameters, subject: Subject) -> str:
    """Return why a subject cannot be judged, "" if it can."""
    if not subject.record.steps:
        return framing.NO_STEPS
    given, is_written = len(find_given(parameters, subject)), parameters.criteria == "written"
    if given > MOST_CRITERIA:
        what = f"The task's rubric has {given} claims" if is_written else f"The task has {given} key points"
        return f"{what}: this judge grades at most {MOST_CRITERIA} criteria."
    return NO_RUBRIC if is_written and not given else ""


def forecast(parameters: VerifierParameters, subject: Subject) -> list[tuple[str, int]]:
    """Return the calls for M distinct screenshots and N criteria.

    Both modes: one for the criteria unless they are given, and M/4, rounded up, for relevance. Mode full: N from the
    actions, N with screenshots if there are any, and one for the verdict. Mode cheap: one.
    """
    try:
        if find_obstacle(parameters, subject):
            return []
    except CallFailed:
        return []
    shots, own = selection.list_shots(subject), len(subject.input_images)
    given = len(find_given(parameters, subject))
    calls = [] if given else [("criteria", own)]
    calls += [("relevance", len(batch)) for batch in batch_shots(shots)]
    last = own + min(len(shots), parameters.max_images)
    if parameters.mode == "cheap":
        return [*calls, ("together", last)]
    number = given or parameters.max_criteria
    calls += [("actions", 0)] * number
    calls += [("images", own + min(len(shots), parameters.top_k))] * number if shots else []
    return [*calls, ("verdict", last)]


def estimate_reply(parameters: VerifierParameters, subject: Subject, stage: str) -> int:
    """Return the usual tokens of a reply; a rating has 3, a grade 90, a criterion 80."""
    number = len(find_given(parameters, subject)) or parameters.max_criteria
    sizes = {
        "criteria": 80 * number,
        "relevance": SHOTS_PER_CALL * (50 + 3 * number),
        "actions": 90,
        "images": 90,
        "verdict": 300,
        "together": 300 + 90 * number,
    }
    return sizes[stage]


def require_rubric(parameters: VerifierParameters) -> Requirement | None:
    is_met = lambda subject: EXPECTATION in subject.expectations  # noqa: E731
    return Requirement("a rubric", is_met) if parameters.criteria == "written" else None


KIND = register(
    Kind(
        name=NAME,
        version=1,
        title="Rubric verifier",
        description=(
            "Weighted criteria, each graded from the actions and from its most relevant screenshots; then penalties, "
            "blockers, the first failure and the outcome."
        ),
        parameters=VerifierParameters,
        prompts=f"{NAME}/1",
        build=VerifierScorer,
        calls=forecast,
        stages_with_actions=("actions", "images", "verdict", "together"),
        reply_tokens=estimate_reply,
        requires=require_rubric,
        discloses_expectations=False,
        disclosing=(("criteria", "written"),),
        read_details=read_details,
    )
)
