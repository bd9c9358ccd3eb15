"""WebJudge in three stages: the key points of the task, each screenshot separately, and the verdict.

Source: WebJudge of Online-Mind2Web, and its variant for other benchmarks. The agent's final answer is never shown.

In the default mode (`Framed`) the record is framed as data, answers are structured, and an unclear reply is
unscored. In upstream's mode (`Upstream`) prompts are filled and replies are read as in the published code, with only
three differences. If the first or the last stage has no reply, a refusal, or a verdict cut off before its word, the
trajectory is unscored; upstream stops or counts a failure. Equal screenshots are asked about once, with the same
result. A step without a screenshot is skipped.

An unread screenshot (refused, cut, empty, or without a number) is not shown for the verdict. In the default mode there
is still a verdict if at least half of the distinct screenshots were read, and the notes name the unread steps. In
upstream's mode an unread screenshot counts as 0, as in the published code.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

from judges.llm import Asker, ImageRef
from judges.scorer import KeyPointEvidence, Kind, ParameterError, Prompts, Score, StepEvidence, Subject, register
from judges.scorers import framing, reading
from judges.scorers.suspicion import add_suspicions
from judges.scorers.together import run_together
from judges.scorers.webjudge_modes import Framed, PictureReply, Points, StageUnusable, Upstream


@dataclass(frozen=True, slots=True)
class WebJudgeParameters:
    mode: Literal["default", "upstream"] = field(
        default="default",
        metadata={
            "help": (
                "default: structured answers, and unscored if a reply is unclear. upstream: prompts and replies as in "
                "the published code, including its faults, for figures that can be compared with published ones."
            )
        },
    )
    threshold: int = field(
        default=3, metadata={"help": "Lowest relevance (1 to 5) of the screenshots that are shown for the verdict."}
    )
    max_images: int = field(
        default=50, metadata={"help": "Number of relevant screenshots shown for the verdict: the first ones."}
    )
    key_points: Literal["model", "people"] = field(
        default="model", metadata={"help": "people: the task's key points as entered by people, if there are any."}
    )
    drop_last: Literal["auto", "always"] = field(
        default="auto",
        metadata={
            "help": "auto: actions that hand over the answer or end the run are left out. always: the last action of "
            "version 2 is left out whatever it is, and nothing else, as upstream does; an answer that was sent in an "
            "earlier step is then shown."
        },
    )
    image_replies: Literal["published", "webjudge-7b"] = field(
        default="published",
        metadata={
            "help": "How webjudge-general reads replies about screenshots in upstream mode. published: under the "
            "headings ### Reasoning and ### Score. webjudge-7b: after **Reasoning** and **Score**, as the published "
            "results of WebJudge-7B were read.",
            "added": True,
        },
    )

    def __post_init__(self) -> None:
        for name, lowest, highest in (("threshold", 1, 5), ("max_images", 1, 500)):
            if not lowest <= getattr(self, name) <= highest:
                raise ParameterError(name, f"{name} must be from {lowest} to {highest}.")


class WebJudgeScorer:
    def __init__(self, parameters: WebJudgeParameters, prompts: Prompts, *, general: bool) -> None:
        self.parameters = parameters
        mode: type[Framed | Upstream] = Upstream if parameters.mode == "upstream" else Framed
        self.mode = mode(
            prompts,
            general=general,
            threshold=parameters.threshold,
            max_images=parameters.max_images,
            drop=parameters.drop_last,
            bold_headings=not general or parameters.image_replies == "webjudge-7b",
        )

    async def score(self, subject: Subject, model: Asker) -> Score:
        if not subject.record.steps:
            return add_suspicions(Score(None, framing.NO_STEPS), subject)
        return add_suspicions(await self._score(subject, model), subject)

    async def _score(self, subject: Subject, model: Asker) -> Score:
        notes: dict[str, Any] = {"mode": self.parameters.mode}
        try:
            points = await self._collect_points(subject, model, notes)
        except StageUnusable as none:
            return Score(None, unscored=f"Key points: {none}", response=none.response, notes=notes)
        looks = await self._judge_pictures(subject, points, model)
        relevant = self.mode.select_relevant(looks)
        too_few = _require_enough_replies(looks, notes)
        made = Score(
            None,
            unscored=too_few or "No verdict was asked for.",
            key_points=tuple(KeyPointEvidence(text) for text in points.texts),
            steps=tuple(self._build_evidence(looks, relevant, notes)),
            notes=notes,
        )
        return made if too_few else await self._judge_verdict(made, subject, points, relevant, model)

    async def _collect_points(self, subject: Subject, model: Asker, notes: dict[str, Any]) -> Points:
        """Return the key points of people if they are wanted and exist, else the model's; raise StageUnusable."""
        wanted = self.parameters.key_points
        if wanted == "people" and subject.key_points:
            notes["key_points_from"] = "people"
            return Points.numbered(subject.key_points)
        notes["key_points_from"] = "model"
        if wanted == "people":
            notes["key_points_of_people"] = "none were there"
        reply = await model.ask(
            self.mode.build_key_points_prompt(subject), stage="key_points", schema=self.mode.schemas["key_points"]
        )
        return self.mode.read_points(reply)

    async def _judge_pictures(self, subject: Subject, points: Points, model: Asker) -> list[PictureReply]:
        """Return a reply for each step with a screenshot; ask about each distinct screenshot once, concurrently."""
        pictured = [(step, image) for step, image in enumerate(subject.screenshots) if image is not None]
        first: dict[str, int] = {}
        for step, image in pictured:
            first.setdefault(image.digest, step)
        asked = [(step, image) for step, image in pictured if first[image.digest] == step]
        found = await run_together(self._judge_picture(subject, points, model, step, image) for step, image in asked)
        by_step = {look.step: look for look in found}
        return [by_step.get(step) or _repeat(by_step[first[image.digest]], step) for step, image in pictured]

    async def _judge_picture(
        self, subject: Subject, points: Points, model: Asker, step: int, image: ImageRef
    ) -> PictureReply:
        prompt = self.mode.build_screenshot_prompt(subject, points, image)
        reply = await model.ask(prompt, stage="screenshot", step=step, schema=self.mode.schemas["screenshot"])
        relevance, reason = self.mode.read_relevance(reply)
        return PictureReply(step, image, relevance, reason, reply.text)

    def _build_evidence(
        self, looks: Sequence[PictureReply], relevant: Sequence[PictureReply], notes: dict[str, Any]
    ) -> Iterator[StepEvidence]:
        shown = {look.step for look in relevant[: self.parameters.max_images]}
        if len(relevant) > len(shown):
            notes["relevant_but_not_shown"] = len(relevant) - len(shown)
        for look in looks:
            kept = look.step in shown or (self.mode.shows_once and look.same_as in shown)
            yield StepEvidence(look.step, look.relevance, look.reason, kept, look.response, look.same_as)

    async def _judge_verdict(
        self, made: Score, subject: Subject, points: Points, relevant: Sequence[PictureReply], model: Asker
    ) -> Score:
        prompt = self.mode.build_verdict_prompt(subject, points, relevant)
        reply = await model.ask(prompt, stage="verdict", schema=self.mode.schemas["verdict"])
        try:
            decision = self.mode.read_decision(reply, subject, points)
        except StageUnusable as none:
            return replace(made, unscored=f"Verdict: {none}", response=none.response)
        return replace(
            made,
            verdict=decision.verdict,
            unscored="",
            explanation=decision.explanation,
            key_points=decision.key_points,
            response=reply.text,
            notes={**made.notes, **decision.notes, **reading.note_confidence(reply, decision.verdict)},
            status_not_stated=decision.status_not_stated,
        )


def _require_enough_replies(looks: Sequence[PictureReply], notes: dict[str, Any]) -> str:
    """Return why no verdict is asked for, if more than half of the distinct screenshots are unread; else "".

    The notes name the steps with an unread screenshot in both cases.
    """
    asked = [look for look in looks if look.same_as is None]
    unread = [look for look in asked if look.relevance is None]
    if unread:
        notes["unread_screenshots"] = [look.step for look in unread]
    if 2 * len(unread) <= len(asked):
        return ""
    first = unread[0].reason or "No score could be read."
    return f"{len(unread)} of {len(asked)} screenshots have no readable reply. Step {unread[0].step}: {first}"


def _repeat(look: PictureReply, step: int) -> PictureReply:
    """Return the reply for the same screenshot at a later step; only the first one has the response text."""
    return replace(look, step=step, same_as=look.step, response="")


def forecast(parameters: WebJudgeParameters, subject: Subject, *, general: bool = False) -> list[tuple[str, int]]:
    """Return one call for the key points, one per distinct screenshot, one for the verdict with its screenshots."""
    if not subject.record.steps:
        return []
    own = len(subject.input_images) if general else 0
    taken = [image.digest for image in subject.screenshots if image is not None]
    distinct = len(set(taken))
    last = min(len(taken) if parameters.mode == "upstream" else distinct, parameters.max_images)
    given = parameters.key_points == "people" and subject.key_points
    stages = [] if given else [("key_points", own)]
    return [*stages, *[("screenshot", own + 1)] * distinct, ("verdict", own + last)]


def _register(name: str, title: str, description: str, *, general: bool, version: int = 1) -> None:
    register(
        Kind(
            name=name,
            version=version,
            title=title,
            description=description,
            parameters=WebJudgeParameters,
            prompts=f"{name}/1",
            build=partial(WebJudgeScorer, general=general),
            calls=partial(forecast, general=general),
            accepts_any_form=lambda parameters: parameters.mode == "upstream",
            discloses_expectations=False,
        )
    )


_register("webjudge", "WebJudge", "Key points, every screenshot, verdict: the judge of Online-Mind2Web.", general=False)
_register(
    "webjudge-general",
    "WebJudge (general)",
    "WebJudge for other benchmarks: it sees the thoughts and the images of the task, counts loops as "
    "failure, and does not accept empty results.",
    general=True,
    version=2,
)
