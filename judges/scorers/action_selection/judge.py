"""The judge of action selection: at each step of a reference trajectory a model chooses the next action.

It judges the model, not an agent: the trajectory is what a person did, with the ground truth of every step. Fixed
rules score a step; the model is asked a second time only if two values may mean the same.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from annotation.records import AttachmentKind, Verdict
from judges.llm import Asker, Prompt, SentImage
from judges.prompts import fill, require_parts
from judges.scorer import Kind, ParameterError, Prompts, Requirement, Score, StepEvidence, Subject, register
from judges.scorers import framing
from judges.scorers.action_selection import actions, cookbook, metrics
from judges.scorers.action_selection.actions import Predicted, Unread
from judges.scorers.action_selection.details import read_details
from judges.scorers.action_selection.seeing import Mode, Sight, Style, build_record, load_sight, map_files
from judges.scorers.suspicion import add_suspicions
from judges.scorers.together import run_together

KIND_NAME = "action-selection"
LONGEST = 20_000  # characters of a text in the details
FEWEST, MOST = 5, 200  # elements of a summary
NO_STEPS = "The trajectory has no ground truth: action selection judges reference trajectories of Multimodal-Mind2Web."
NO_PICTURE = "The step has no screenshot, and the judge may see nothing else."
OWN_GRADER = "the model under test graded its own replies in a second call: {} of {} steps"
OWN_VALUES = "the model under test itself decided whether its value means the same: {} of {} steps"
NO_PLACE = "The ground truth does not say where in the screenshot the element is."


@dataclass(frozen=True, slots=True)
class ActionSelectionParameters:
    style: Style = field(
        default="default",
        metadata={
            "help": "default: the model names an element, and rules score it. cookbook: the published cookbook's "
            "summary and prompt, and two model calls that score each reply, for comparison."
        },
    )
    mode: Mode = field(
        default="multimodal",
        metadata={"help": "What is sent of a page: its summary and the screenshot, or one of them."},
    )
    elements: int = field(default=50, metadata={"help": f"Most elements in the page summary, {FEWEST} to {MOST}."})

    def __post_init__(self) -> None:
        if not FEWEST <= self.elements <= MOST:
            raise ParameterError("elements", f"elements must be {FEWEST} to {MOST}, not {self.elements}.")


@dataclass(slots=True)
class StepOutcome:
    """The outcome of one step; a number is None if it is not known, and all are None if ``unparsed`` gives a reason."""

    sight: Sight
    reply: str = ""
    reason: str = ""
    predicted: Predicted | None = None
    unparsed: str = ""
    element_accuracy: int | None = None
    operation_f1: float | None = None
    step_success: int | None = None
    option_selection: int | None = None
    action_correctness: int | None = None
    value_by_model: bool = False

    def details(self) -> dict[str, Any]:
        shown, target, reference = self.sight.shown, self.sight.target, self.sight.reference
        return {
            "step": self.sight.place,
            "position": reference.index,
            "mode": shown.mode,
            "gold": {
                "operation": reference.operation.op,
                "original_operation": reference.operation.original,
                "value": reference.operation.value[:LONGEST],
                "element": reference.action[:LONGEST],
            },
            "predicted": self._format_predicted(),
            "unparsed": self.unparsed,
            "target_present": target.present,
            "target_rank": target.rank,
            "target_number": target.number,
            "option_present": target.option_present,
            "listed": len(shown.elements) or (len(shown.lines) if shown.mode != "screenshot-only" else 0),
            **{name: getattr(self, name) for name in metrics.MEASURED},
            "value_by_model": self.value_by_model,
            "summary": framing.cut("\n".join(shown.lines), LONGEST - 100),
            "reply": framing.cut(self.reply, LONGEST - 100),
        }

    def _format_predicted(self) -> dict[str, Any] | None:
        said = self.predicted
        if said is None:
            return None
        return {
            "option": said.option,
            "operation": said.operation,
            "value": said.value,
            "element": self._format_element(said),
        }

    def _format_element(self, said: Predicted) -> str | None:
        if said.point is not None:
            return f"at {said.point[0] / 10:g} % from the left, {said.point[1] / 10:g} % from the top"
        if said.element is None:
            return None
        elements = self.sight.shown.elements
        if not 1 <= said.element <= len(elements):
            return f"[{said.element}] is not in the summary"
        return f"[{said.element}] {elements[said.element - 1].described()}"[:LONGEST]

    def evidence(self) -> StepEvidence:
        outcomes = {1: "right", 0: "wrong", None: "not read"}
        said = f"{self.predicted.operation} {self.predicted.value}".strip() if self.predicted else "no action"
        text = f"{outcomes[self.step_success]}: {said}. {self.unparsed or self.reason}".strip()
        picture = self.sight.shown.picture
        return StepEvidence(self.sight.place, None, text[: framing.REASON], kept=picture is not None)


@dataclass(frozen=True, slots=True)
class ActionSelectionScorer:
    """Scorer that asks about all steps at once: a failed call fails it, an unreadable reply is reported and counted."""

    parameters: ActionSelectionParameters
    prompts: Prompts

    async def score(self, subject: Subject, model: Asker) -> Score:
        files = map_files(subject)
        missing = [str(step) for step in range(len(subject.record.steps)) if step not in files]
        if not files or missing:
            return add_suspicions(
                Score(None, f"Steps without ground truth: {', '.join(missing)}."[:500] if files else NO_STEPS), subject
            )
        outcomes = await run_together(
            self._judge_step(subject, place, model) for place in range(len(subject.record.steps))
        )
        return add_suspicions(self._build_score(outcomes), subject)

    async def _judge_step(self, subject: Subject, place: int, model: Asker) -> StepOutcome:
        picture = subject.screenshots[place] if place < len(subject.screenshots) else None
        given = self.parameters
        file = map_files(subject)[place]
        sight = await asyncio.to_thread(load_sight, file, place, picture, given.style, given.mode, given.elements)
        if sight.shown.mode == "screenshot-only" and sight.shown.picture is None:
            return StepOutcome(sight, unparsed=NO_PICTURE)
        if given.style == "cookbook":
            return await self._judge_cookbook(sight, model)
        if sight.shown.mode == "screenshot-only" and not sight.target.boxes:
            return StepOutcome(sight, unparsed=NO_PLACE)
        return await self._judge_default(sight, model)

    async def _judge_default(self, sight: Sight, model: Asker) -> StepOutcome:
        pointing = sight.shown.mode == "screenshot-only"
        schema = actions.POINT_SCHEMA if pointing else actions.ELEMENT_SCHEMA
        reply = await model.ask(self._build_prompt(sight), stage="action", step=sight.place, schema=schema)
        outcome = StepOutcome(sight, reply.text, str((reply.data or {}).get("reason", "")))
        try:
            said = outcome.predicted = actions.read_prediction(reply, pointing=pointing)
        except Unread as error:
            outcome.unparsed = reply.unusable() or f"{error} {reply.problem}".strip()
            return outcome
        compare_by_rules(outcome, said)
        if outcome.action_correctness is None:
            await self._compare_by_meaning(outcome, said, model)
        return outcome

    def _build_prompt(self, sight: Sight) -> Prompt:
        stage = "pointing" if sight.shown.mode == "screenshot-only" else "action"
        texts = self.prompts.texts
        text = fill(texts[f"{stage}.framed_user"], record=build_record(sight.shown))
        picture = sight.shown.picture
        parts = (text, "Screenshot of the page:", SentImage(picture)) if picture else (text,)
        return Prompt(texts[f"{stage}.framed_system"], (parts,))

    async def _compare_by_meaning(self, outcome: StepOutcome, said: Predicted, model: Asker) -> None:
        """Ask whether two values mean the same; `action_correctness` stays None if the reply does not say."""
        reference = outcome.sight.reference
        lines = [
            framing.format_field("task", reference.task, framing.TASK),
            framing.format_field("element", reference.action.partition("->")[0], framing.ACTION),
            f"operation: {reference.operation.op}",
            framing.format_field("right value", reference.operation.value, framing.ACTION),
            framing.format_field("chosen value", said.value, framing.ACTION),
        ]
        user = fill(self.prompts.texts["value.framed_user"], record=framing.format_record(lines))
        prompt = Prompt(self.prompts.texts["value.framed_system"], ((user,),))
        reply = await model.ask(prompt, stage="value", step=outcome.sight.place, schema=actions.SAME_SCHEMA)
        outcome.action_correctness = actions.read_sameness(reply)
        outcome.value_by_model = True

    async def _judge_cookbook(self, sight: Sight, model: Asker) -> StepOutcome:
        picture = SentImage(sight.shown.picture) if sight.shown.picture else None
        prompt = cookbook.build_prompt(self.prompts, sight.reference, sight.shown.lines, picture)
        reply = await model.ask(prompt, stage="action", step=sight.place)
        outcome = StepOutcome(sight, reply.text)
        if reason := reply.unusable():
            outcome.unparsed = reason
            return outcome
        outcome.predicted = cookbook.read_prediction(reply.text)
        grades = await cookbook.grade(self.prompts, sight.reference, sight.place, reply.text, model)
        option, action = map(actions.read_choice, grades)
        if option is None or action is None:
            outcome.unparsed = "The reply of a scorer says neither Y nor N."
            return outcome
        outcome.option_selection, outcome.action_correctness = option, action
        outcome.value_by_model = True
        outcome.step_success = int(option == action == 1)
        if outcome.predicted:
            outcome.operation_f1 = _compute_f1(sight, outcome.predicted)
        return outcome

    def _build_notes(self, outcomes: list[StepOutcome]) -> dict[str, Any]:
        """Return a note of how often the judged model itself decided whether a step is right."""
        times = sum(one.value_by_model for one in outcomes)
        says = OWN_GRADER if self.parameters.style == "cookbook" else OWN_VALUES
        return {"graded by": says.format(times, len(outcomes))} if times else {}

    def _build_score(self, outcomes: list[StepOutcome]) -> Score:
        steps = [one.details() for one in outcomes]
        unread = Counter(one.unparsed for one in outcomes if one.unparsed)
        succeeded = [one.step_success for one in outcomes if one.step_success is not None]
        right = sum(succeeded)
        reasons = "; ".join(f"{reason} ({times})" for reason, times in unread.items())
        verdict = None if unread else Verdict.SUCCESS if right == len(outcomes) else Verdict.FAILURE
        reference = outcomes[0].sight.reference
        task = {name: getattr(reference, name) for name in ("website", "domain", "subdomain", "split")}
        return Score(
            verdict,
            f"{sum(unread.values())} of {len(outcomes)} steps have no prediction: {reasons}"[:500] if unread else "",
            score=None if unread else right / len(outcomes),
            explanation=f"{right} of {len(outcomes)} steps are correct.",
            steps=tuple(one.evidence() for one in outcomes),
            response="\n\n".join(f"Step {one.sight.place}: {one.reply}" for one in outcomes)[:LONGEST],
            notes=self._build_notes(outcomes),
            details={
                "kind": KIND_NAME,
                "style": self.parameters.style,
                "elements": self.parameters.elements,
                "task": task,
                "steps": steps,
                "metrics": metrics.numbers([metrics.read_facts(one, task) for one in steps]).as_json(),
            },
        )


def compare_by_rules(outcome: StepOutcome, said: Predicted) -> None:
    """Score a prediction by fixed rules; `action_correctness` stays None if only the meaning of a value decides.

    An element outside the summary cannot be chosen: element, operation and step are then wrong, as published.
    """
    sight, right = outcome.sight, outcome.sight.reference.operation
    outcome.option_selection = actions.score_option_selection(right, said)
    outcome.action_correctness = actions.score_action(right, said, sight.options)
    if said.point is not None:
        outcome.element_accuracy = int(sight.target.has(said.point))
        reachable = True
    else:
        elements, number = sight.shown.elements, said.element or 0
        chosen = elements[number - 1] if 1 <= number <= len(elements) else None
        outcome.element_accuracy = int(chosen is not None and chosen.node in sight.target.nodes)
        reachable = sight.target.present
    outcome.operation_f1 = _compute_f1(sight, said) if reachable else 0.0
    outcome.step_success = metrics.step_success(outcome.element_accuracy, outcome.operation_f1)


def _compute_f1(sight: Sight, said: Predicted) -> float:
    right = sight.reference.operation
    return metrics.operation_f1(metrics.tokens(right.op, right.value), metrics.tokens(said.operation, said.value))


def build(parameters: ActionSelectionParameters, prompts: Prompts) -> ActionSelectionScorer:
    if parameters.style == "cookbook":
        require_parts(prompts, *cookbook.list_places())
    else:
        require_parts(
            prompts,
            *(f"{stage}.framed_{part}" for stage in ("action", "pointing", "value") for part in ("system", "user")),
        )
    return ActionSelectionScorer(parameters, prompts)


def forecast(parameters: ActionSelectionParameters, subject: Subject) -> list[tuple[str, int]]:
    """Return one call per step, and two more in the cookbook style; calls about values cannot be foreseen."""
    files = map_files(subject)
    found = []
    for place, picture in enumerate(subject.screenshots):
        if place not in files or (parameters.mode == "screenshot-only" and picture is None):
            continue
        found.append(("action", int(picture is not None and parameters.mode != "text-only")))
        if parameters.style == "cookbook":
            found += [(name, 0) for name in cookbook.SCORERS]
    return found


REFERENCE_STEPS = Requirement(
    "reference steps", lambda subject: bool(subject.files_of(AttachmentKind.REFERENCE_STEP)), of_task=False
)

KIND = register(
    Kind(
        name=KIND_NAME,
        version=1,
        title="Action selection",
        description="A model chooses the next action at each step of a reference trajectory, and is scored against it.",
        parameters=ActionSelectionParameters,
        prompts="action-selection/1",
        build=build,
        calls=forecast,
        requires=lambda parameters: REFERENCE_STEPS,
        discloses_expectations=False,
        read_details=read_details,
        predicts_actions=True,
    )
)
