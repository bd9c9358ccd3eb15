"""Shared parts of scorers that ask their model once: the call, its record, and the score of the reply.

`PublishedScorer` runs a published judge. In the default mode its model gets the trajectory as a marked record and must
state a verdict. In upstream's mode it gets the input of the published judge, and its reply is read in the same way,
faults included.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from annotation.records import Verdict
from judges.llm import Asker, ImageRef, Part, Prompt, Reply, SentImage
from judges.prompts import PLACEHOLDER, build_system_text, fill, require_parts
from judges.scorer import Kind, Prompts, Score, StepEvidence, Subject, register
from judges.scorers import framing, reading
from judges.scorers.suspicion import add_suspicions

STAGE = "verdict"
Mode = Literal["default", "upstream"]
RECORD = ("record",)  # the only placeholder of a framed user text
Picture = tuple[int, ImageRef]  # the step and its screenshot


@dataclass(frozen=True, slots=True)
class ModeParameters:
    """The parameter of every published judge: with our fixes, or as published."""

    mode: Mode = field(
        default="default",
        metadata={
            "help": "default: a marked record and an explicit verdict. upstream: prompts filled and replies read as "
            "the published judge does, for comparable numbers."
        },
    )


@dataclass(frozen=True, slots=True)
class ShownRecord:
    """The input of a model: lines of a record, or the values of a template, and screenshots with their steps.

    ``media_type`` and the ``closing`` text after the screenshots are those of upstream's mode.
    """

    lines: tuple[str, ...] = ()
    values: Mapping[str, str] = field(default_factory=dict)
    pictures: tuple[Picture, ...] = ()
    media_type: str = "image/jpeg"
    closing: str = ""


@dataclass(frozen=True, slots=True)
class Method:
    """A published judge: its input in each mode, upstream's parsing of a reply, and why it may be unable to judge.

    ``fills`` are the placeholders that ``shows_upstream`` fills. ``has_status`` returns whether a reply states the
    verdict that ``reads_upstream`` reads. ``obstacle`` returns why a subject cannot be judged in that mode, "" if it
    can. ``schema`` is the form of the answer in the default mode; fields other than reason and verdict go into the
    notes.
    """

    fills: tuple[str, ...]
    shows: Callable[[Subject], ShownRecord]
    shows_upstream: Callable[[Subject], ShownRecord]
    reads_upstream: Callable[[str], Verdict]
    has_status: Callable[[str], bool]
    obstacle: Callable[[Subject, Mode], str]
    schema: Mapping[str, Any] = field(default_factory=lambda: reading.VERDICT_SCHEMA)


@dataclass(frozen=True, slots=True)
class PublishedScorer:
    method: Method
    mode: Mode
    system: str
    user: str

    async def score(self, subject: Subject, model: Asker) -> Score:
        if reason := find_obstacle(self.method, subject, self.mode):
            return add_suspicions(Score(None, reason), subject)
        score = await (self._judge_upstream if self.mode == "upstream" else self._judge_default)(subject, model)
        return add_suspicions(score, subject)

    async def _judge_default(self, subject: Subject, model: Asker) -> Score:
        shown = self.method.shows(subject)
        prompt = Prompt(self.system, (build_message(self.user, shown),))
        reply = await model.ask(prompt, stage=STAGE, schema=self.method.schema)
        asked = self.method.schema["properties"].keys() - {"reason", "verdict"}
        said = {name: value for name, value in (reply.data or {}).items() if name in asked}
        score = build_score(reply, reading.read_verdict, shown.pictures)
        return replace(score, notes={**said, **score.notes})

    async def _judge_upstream(self, subject: Subject, model: Asker) -> Score:
        shown = self.method.shows_upstream(subject)
        text = fill(self.user, **{name: framing.make_encodable(value) for name, value in shown.values.items()})
        pictures = [SentImage(image, shown.media_type) for _, image in shown.pictures]
        prompt = Prompt(self.system, ((text, *pictures, *([shown.closing] if shown.closing else [])),))
        reply = await model.ask(prompt, stage=STAGE)
        score = build_score(reply, lambda reply: self.method.reads_upstream(reply.text), shown.pictures)
        not_stated = score.verdict is not None and not self.method.has_status(reply.text)
        return replace(score, status_not_stated=not_stated)


def find_obstacle(method: Method, subject: Subject, mode: Mode) -> str:
    """Return why a subject cannot be judged, "" if it can: no method judges an answer without steps."""
    return method.obstacle(subject, mode) or ("" if subject.record.steps else framing.NO_STEPS)


def register_published(name: str, title: str, description: str, method: Method, version: int = 1) -> Kind:
    """Register a published judge with prompts of its name; ``build`` raises LookupError if its texts are missing."""

    def build(parameters: ModeParameters, prompts: Prompts) -> PublishedScorer:
        upstream = parameters.mode == "upstream"
        parts = ("system", "user") if upstream else ("framed_system", "framed_user")
        user = find_user_text(prompts, *parts, fills=method.fills if upstream else RECORD)
        return PublishedScorer(method, parameters.mode, build_system_text(prompts, STAGE, parts[0]), user)

    def forecast(parameters: ModeParameters, subject: Subject) -> list[tuple[str, int]]:
        if find_obstacle(method, subject, parameters.mode):
            return []
        if parameters.mode == "upstream":
            return [(STAGE, len(method.shows_upstream(subject).pictures))]
        return [(STAGE, len(group_by_picture(method.shows(subject).pictures)))]

    return register(
        Kind(
            name=name,
            version=version,
            title=title,
            description=description,
            parameters=ModeParameters,
            prompts=f"{name}/1",
            build=build,
            calls=forecast,
            accepts_any_form=lambda parameters: parameters.mode == "upstream",
            discloses_expectations=False,
        )
    )


def find_user_text(prompts: Prompts, system: str, user: str, fills: tuple[str, ...]) -> str:
    """Return the user text of a set, with ``fills`` as placeholders; raise LookupError if a text or a place is wrong.

    Without the first placeholder the model would not see its input. An unknown placeholder would be sent unfilled.
    """
    require_parts(prompts, f"{STAGE}.{system}", f"{STAGE}.{user}")
    text = prompts.texts[f"{STAGE}.{user}"]
    places = PLACEHOLDER.findall(text)
    known = ", ".join(f"{{{name}}}" for name in fills)
    if fills[0] not in places:
        raise LookupError(f"{STAGE}.{user} of {prompts.name} has no place {{{fills[0]}}}; its places are {known}.")
    if unknown := [name for name in places if name not in fills]:
        raise LookupError(
            f"{STAGE}.{user} of {prompts.name} has a place {{{unknown[0]}}} that nobody fills; its places are {known}."
        )
    return text


def build_message(template: str, shown: ShownRecord) -> tuple[Part, ...]:
    """Return a user message: the template with the record, then each distinct screenshot after a line of its steps."""
    parts: list[Part] = [fill(template, record=framing.format_record(shown.lines))]
    for image, steps in group_by_picture(shown.pictures).items():
        parts += [f"Screenshot of {framing.format_steps(steps)}:", SentImage(image)]
    return tuple(parts)


def group_by_picture(pictures: Iterable[Picture]) -> dict[ImageRef, list[int]]:
    """Return each screenshot once, in the order of its first step, with all the steps that show it."""
    found: dict[ImageRef, list[int]] = {}
    for step, image in pictures:
        found.setdefault(image, []).append(step)
    return found


def build_score(reply: Reply, read: Callable[[Reply], Verdict | None], pictures: Iterable[Picture] = ()) -> Score:
    """Return the score of a reply; it is unscored if the reply is unusable or states no verdict."""
    verdict = None if reply.unusable() else read(reply)
    unclear = f"The reply states no clear verdict. {reply.problem}".strip()
    unscored = "" if verdict is not None else reply.unusable() or unclear
    return Score(
        verdict,
        unscored,
        explanation=reading.read_explanation(reply),
        steps=tuple(StepEvidence(step, None, kept=True) for step, _ in pictures),
        response=reply.text,
        notes=reading.note_confidence(reply, verdict),
    )


def list_pictures(subject: Subject) -> tuple[Picture, ...]:
    return tuple((step, image) for step, image in enumerate(subject.screenshots) if image is not None)


def find_last_picture(subject: Subject) -> tuple[Picture, ...]:
    return list_pictures(subject)[-1:]


def format_picture_line(pictures: tuple[Picture, ...]) -> str:
    """Return the record line that names the step of the last screenshot, or states that there is none."""
    return f"last screenshot: of step {pictures[-1][0]}" if pictures else "last screenshot: there is none"
