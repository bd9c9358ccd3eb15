"""What scorers share that ask their model once: the call, what it was shown, and the score of its reply.

`Published` is a judge that somebody published. In the default mode its model gets the trajectory as a marked record
and has to state a verdict; in upstream's mode it gets what the published one gets, and its reply is read the same
way, faults included.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from annotation.records import Verdict
from judges.llm import Asker, ImageRef, Part, Prompt, Reply, SentImage
from judges.prompts import PLACEHOLDER, fill, required, system_text
from judges.scorer import Prompts, Score, StepEvidence, Subject
from judges.scorers import framing, reading
from judges.scorers.suspicion import noted

STAGE = "verdict"
Mode = Literal["default", "upstream"]
RECORD = ("record",)  # the one place of a framed user text
Picture = tuple[int, ImageRef]  # and the step that it was taken at


@dataclass(frozen=True, slots=True)
class Mended:
    """The parameter of every published judge: with our mending, or as it was published."""

    mode: Mode = field(
        default="default",
        metadata={
            "help": "default: a marked record and an explicit verdict. upstream: prompts filled and replies read as "
            "the published judge does, for comparable numbers."
        },
    )


@dataclass(frozen=True, slots=True)
class Shown:
    """What a model is shown: lines of a record, or the values of a template, and pictures with their steps."""

    lines: tuple[str, ...] = ()
    values: Mapping[str, str] = field(default_factory=dict)
    pictures: tuple[Picture, ...] = ()


@dataclass(frozen=True, slots=True)
class Method:
    """A published judge: what it shows in either mode, how upstream reads a reply, and when it cannot judge.

    ``fills`` are the placeholders that ``shows_upstream`` fills. ``has_status`` tells whether a reply states the
    verdict that ``reads_upstream`` reads. ``obstacle`` is the reason for which a subject
    cannot be judged in that mode, "" where it can. ``schema`` is the form of the answer in the default mode; what it
    has beside reason and verdict is noted.
    """

    fills: tuple[str, ...]
    shows: Callable[[Subject], Shown]
    shows_upstream: Callable[[Subject], Shown]
    reads_upstream: Callable[[str], Verdict]
    has_status: Callable[[str], bool]
    obstacle: Callable[[Subject, Mode], str]
    schema: Mapping[str, Any] = field(default_factory=lambda: reading.VERDICT_SCHEMA)


@dataclass(frozen=True, slots=True)
class Published:
    """The scorer of a `Method`, with the texts of its mode."""

    method: Method
    mode: Mode
    system: str
    user: str

    async def score(self, subject: Subject, model: Asker) -> Score:
        if reason := obstacle(self.method, subject, self.mode):
            return noted(Score(None, reason), subject)
        score = await (self._upstream if self.mode == "upstream" else self._default)(subject, model)
        return noted(score, subject)

    async def _default(self, subject: Subject, model: Asker) -> Score:
        shown = self.method.shows(subject)
        prompt = Prompt(self.system, (recorded(self.user, shown),))
        reply = await model.ask(prompt, stage=STAGE, schema=self.method.schema)
        asked = self.method.schema["properties"].keys() - {"reason", "verdict"}
        said = {name: value for name, value in (reply.data or {}).items() if name in asked}
        return replace(scored(reply, reading.verdict_of, shown.pictures), notes=said)

    async def _upstream(self, subject: Subject, model: Asker) -> Score:
        shown = self.method.shows_upstream(subject)
        text = fill(self.user, **{name: framing.encodable(value) for name, value in shown.values.items()})
        prompt = Prompt(self.system, ((text, *(SentImage(image) for _, image in shown.pictures)),))
        reply = await model.ask(prompt, stage=STAGE)
        score = scored(reply, lambda reply: self.method.reads_upstream(reply.text), shown.pictures)
        not_stated = score.verdict is not None and not self.method.has_status(reply.text)
        return replace(score, status_not_stated=not_stated)


def obstacle(method: Method, subject: Subject, mode: Mode) -> str:
    """Why a subject cannot be judged, "" where it can: no method judges an answer that nothing led to."""
    return method.obstacle(subject, mode) or ("" if subject.record.steps else framing.NO_STEPS)


def published(method: Method) -> Callable[[Mended, Prompts], Published]:
    """How a published judge is built for the registry; LookupError for a set without the texts of its mode."""

    def build(parameters: Mended, prompts: Prompts) -> Published:
        upstream = parameters.mode == "upstream"
        parts = ("system", "user") if upstream else ("framed_system", "framed_user")
        user = user_text(prompts, *parts, fills=method.fills if upstream else RECORD)
        return Published(method, parameters.mode, system_text(prompts, STAGE, parts[0]), user)

    return build


def foreseen(method: Method) -> Callable[[Mended, Subject], list[tuple[str, int]]]:
    """The calls of a published judge: one with its pictures, or none where it cannot judge."""

    def calls(parameters: Mended, subject: Subject) -> list[tuple[str, int]]:
        if obstacle(method, subject, parameters.mode):
            return []
        shows = method.shows_upstream if parameters.mode == "upstream" else method.shows
        pictures = shows(subject).pictures
        return [(STAGE, len(pictures if parameters.mode == "upstream" else different(pictures)))]

    return calls


def user_text(prompts: Prompts, system: str, user: str, fills: tuple[str, ...]) -> str:
    """The user text, whose places are ``fills``, of a set that has both texts; LookupError says what is wrong.

    Without the first place the model would judge what it never sees, and a place that nobody fills would be sent as
    it stands.
    """
    required(prompts, f"{STAGE}.{system}", f"{STAGE}.{user}")
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


def recorded(template: str, shown: Shown) -> tuple[Part, ...]:
    """A user message: the template with the record, then every different picture after a line that names its steps."""
    parts: list[Part] = [fill(template, record=framing.record(shown.lines))]
    for image, steps in different(shown.pictures).items():
        named = ", ".join(map(str, steps))
        parts += [f"Screenshot of step{'s' if len(steps) > 1 else ''} {named}:", SentImage(image)]
    return tuple(parts)


def different(pictures: Iterable[Picture]) -> dict[ImageRef, list[int]]:
    """Each picture once, in the order of its first step, with all the steps that show it."""
    found: dict[ImageRef, list[int]] = {}
    for step, image in pictures:
        found.setdefault(image, []).append(step)
    return found


def scored(reply: Reply, read: Callable[[Reply], Verdict | None], pictures: Iterable[Picture] = ()) -> Score:
    """The score of a reply; what states no verdict, and what is no whole reply, is unscored."""
    verdict = None if reply.unusable() else read(reply)
    unclear = f"The reply states no clear verdict. {reply.problem}".strip()
    unscored = "" if verdict is not None else reply.unusable() or unclear
    return Score(
        verdict,
        unscored,
        explanation=reading.explanation_of(reply),
        steps=tuple(StepEvidence(step, None, kept=True) for step, _ in pictures),
        response=reply.text,
    )


def pictures_of(subject: Subject) -> tuple[Picture, ...]:
    """Every screenshot with its step, in order; steps without one are left out."""
    return tuple((step, image) for step, image in enumerate(subject.screenshots) if image is not None)


def last_picture(subject: Subject) -> tuple[Picture, ...]:
    return pictures_of(subject)[-1:]


def picture_line(pictures: tuple[Picture, ...]) -> str:
    """The line of a record that says whether there is a last screenshot, and of which step."""
    return f"last screenshot: of step {pictures[-1][0]}" if pictures else "last screenshot: there is none"
