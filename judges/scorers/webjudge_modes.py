"""The two modes of WebJudge: their prompts, their parsing of replies, and the data that stages pass on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from annotation.formats.external.online_mind2web_v2 import FORMAT as V2
from annotation.records import Finding, StepRecord, Verdict
from judges import prompts as prompt_sets
from judges.llm import ImageRef, Part, Prompt, Reply, SentImage
from judges.scorer import KeyPointEvidence, Prompts, Subject
from judges.scorers import framing, reading, upstream

STAGES = ("key_points", "screenshot", "verdict")
MOST_POINTS = 40
INTEGER = {"type": "integer"}
FINDING = {"type": "string", "enum": [finding.value for finding in Finding]}
SAID_OF_A_POINT = reading.build_object_schema(
    number=INTEGER, reason=reading.TEXT, finding=FINDING, steps=reading.build_list_schema(INTEGER)
)
JPEG, PNG = "image/jpeg", "image/png"  # media types in upstream's data URLs; the bytes are JPEG in both
INPUT_IMAGES = "inputs.user"  # the line above the images of the task, if upstream's set has one

Schema = Mapping[str, Any]


class StageUnusable(Exception):
    """A reply that gives no verdict; the message tells people why."""

    def __init__(self, reason: str, response: str) -> None:
        super().__init__(reason)
        self.response = response


@dataclass(frozen=True, slots=True)
class Points:
    """The requirements of the task: ``texts`` separately, and ``plain`` as one text for upstream's templates."""

    texts: tuple[str, ...]
    plain: str

    @classmethod
    def numbered(cls, texts: Sequence[str]) -> Points:
        return cls(tuple(texts), "\n".join(f"{number}. {text}" for number, text in enumerate(texts, start=1)))


@dataclass(frozen=True, slots=True)
class PictureReply:
    """The reply about the screenshot of a step; ``same_as`` is the earlier step with the same screenshot."""

    step: int
    image: ImageRef
    relevance: int | None
    reason: str
    response: str
    same_as: int | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """The verdict with its reasons; ``notes`` are facts about the parsing of the reply.

    ``status_not_stated`` as in `scorer.Score`.
    """

    verdict: Verdict
    explanation: str
    key_points: tuple[KeyPointEvidence, ...]
    notes: Mapping[str, Any] = field(default_factory=dict)
    status_not_stated: bool = False


class Mode:
    """The prompts of one mode; ``general`` is the variant for other benchmarks.

    Each stage needs all ``parts``. ``shows_once``: equal screenshots are shown once for the verdict.
    ``bold_headings``: replies about screenshots have **Reasoning** and **Score** instead of ### headings.
    """

    parts: tuple[str, str]
    schemas: Mapping[str, Schema | None]
    shows_once: bool

    def __init__(
        self,
        prompts: Prompts,
        *,
        general: bool,
        threshold: int,
        max_images: int,
        drop: framing.Drop,
        bold_headings: bool,
    ) -> None:
        prompt_sets.require_parts(prompts, *(f"{stage}.{part}" for stage in STAGES for part in self.parts))
        self.prompts, self.general, self.drop = prompts, general, drop
        self.threshold, self.max_images = threshold, max_images
        self.bold_headings = bold_headings


class Framed(Mode):
    """The default mode: the record is framed as data, and answers are structured. ``general`` also shows thoughts and
    the images of the task."""

    parts = ("framed_system", "framed_user")
    shows_once = True
    schemas: Mapping[str, Schema | None] = {
        "key_points": reading.build_object_schema(key_points=reading.build_list_schema(reading.TEXT)),
        "screenshot": reading.build_object_schema(
            reason=reading.TEXT, score={"type": "integer", "enum": [1, 2, 3, 4, 5]}
        ),
        "verdict": reading.build_object_schema(
            key_points=reading.build_list_schema(SAID_OF_A_POINT), reason=reading.TEXT, verdict=reading.VERDICT
        ),
    }

    def build_key_points_prompt(self, subject: Subject) -> Prompt:
        return self._build_prompt("key_points", subject, _format_task(subject))

    def read_points(self, reply: Reply) -> Points:
        if reply.unusable():
            raise StageUnusable(reply.unusable(), reply.text)
        found = reading.read_points(reply)[:MOST_POINTS]
        if not found:
            raise StageUnusable("The reply lists no key points.", reply.text)
        return Points.numbered(found)

    def build_screenshot_prompt(self, subject: Subject, points: Points, image: ImageRef) -> Prompt:
        return self._build_prompt(
            "screenshot", subject, [*_format_task(subject), *_format_points(points)], SentImage(image)
        )

    def read_relevance(self, reply: Reply) -> tuple[int | None, str]:
        if reply.unusable():
            return None, reply.unusable()
        return reading.read_relevance(reply), reading.read_reason(reply)

    def select_relevant(self, looks: Sequence[PictureReply]) -> list[PictureReply]:
        """Return each relevant screenshot once, at the first step that shows it."""
        return [look for look in looks if look.same_as is None and (look.relevance or 0) >= self.threshold]

    def build_verdict_prompt(self, subject: Subject, points: Points, relevant: Sequence[PictureReply]) -> Prompt:
        shown = list(relevant)[: self.max_images]
        titles = [_format_title(subject, look.image) for look in shown]
        lines = [
            *_format_task(subject),
            *_format_points(points),
            *framing.format_history(framing.select_acting(subject.record, self.drop), thoughts=self.general),
            *(
                framing.format_field(
                    f"note on the {title}, relevance {look.relevance} of 5", look.reason, framing.REASON
                )
                for title, look in zip(titles, shown, strict=True)
            ),
        ]
        pictures: list[Part] = []
        for title, look in zip(titles, shown, strict=True):
            pictures += [f"The {title}:", SentImage(look.image)]
        return self._build_prompt("verdict", subject, lines, *(pictures or ["(None was found to matter.)"]))

    def read_decision(self, reply: Reply, subject: Subject, points: Points) -> Decision:
        if reply.unusable():
            raise StageUnusable(reply.unusable(), reply.text)
        verdict = reading.read_verdict(reply)
        if verdict is None:
            raise StageUnusable(f"The reply states no clear verdict. {reply.problem}".strip(), reply.text)
        evidence, unknown = _read_evidence(reply.data or {}, points, len(subject.record.steps))
        notes = {"unknown_steps": unknown} if unknown else {}
        return Decision(verdict, reading.read_explanation(reply), evidence, notes)

    def _build_prompt(self, stage: str, subject: Subject, lines: Sequence[str], *pictures: Part) -> Prompt:
        text = prompt_sets.fill(self.prompts.texts[f"{stage}.framed_user"], record=framing.format_record(lines))
        own: tuple[tuple[Part, ...], ...] = ()
        if self.general and subject.input_images:
            own = (("Pictures that came with the task:", *(SentImage(image) for image in subject.input_images)),)
        return Prompt(prompt_sets.build_system_text(self.prompts, stage, "framed_system"), (*own, (text, *pictures)))


def _format_task(subject: Subject) -> list[str]:
    lines = [framing.format_field("task", subject.record.task_text, framing.TASK)]
    return [*lines, framing.format_field("website", subject.website, framing.ACTION)] if subject.website else lines


def _format_points(points: Points) -> list[str]:
    return [framing.format_field(f"key point {n}", text, framing.POINT) for n, text in enumerate(points.texts, start=1)]


def _format_title(subject: Subject, image: ImageRef) -> str:
    steps = [step for step, shown in enumerate(subject.screenshots) if shown == image]
    return f"screenshot of {framing.format_steps(steps)}"


def _read_evidence(
    data: Mapping[str, Any], points: Points, steps: int
) -> tuple[tuple[KeyPointEvidence, ...], list[int]]:
    """Return the finding of each point, by its number, and the cited steps that do not exist."""
    said: dict[int, Mapping[str, Any]] = {}
    entries = data.get("key_points")
    for entry in entries if isinstance(entries, list) else []:
        if isinstance(entry, Mapping) and isinstance(entry.get("number"), int):
            said.setdefault(entry["number"], entry)
    evidence: list[KeyPointEvidence] = []
    unknown: set[int] = set()
    for number, text in enumerate(points.texts, start=1):
        entry = said.get(number, {})
        known, others = reading.find_cited_steps(entry.get("steps"), range(steps))
        unknown.update(others)
        reason = entry.get("reason")
        evidence.append(
            KeyPointEvidence(
                text, reading.read_finding(entry.get("finding")), known, reason if isinstance(reason, str) else ""
            )
        )
    return tuple(evidence), sorted(unknown)


class Upstream(Mode):
    """WebJudge as it was published: templates filled as plain text, replies read by `upstream`."""

    parts = ("system", "user")
    shows_once = False
    schemas: Mapping[str, Schema | None] = dict.fromkeys(STAGES)

    def build_key_points_prompt(self, subject: Subject) -> Prompt:
        """Return the prompt. Upstream sends the images of the task in the same message here, without a line above."""
        text = self._fill("key_points.user", task=subject.record.task_text)
        own = [SentImage(image, PNG) for image in subject.input_images] if self.general else []
        return Prompt(prompt_sets.build_system_text(self.prompts, "key_points"), ((text, *own),))

    def read_points(self, reply: Reply) -> Points:
        if reply.refusal or not reply.text.strip():
            raise StageUnusable(reply.unusable() or "The reply is empty.", reply.text)
        plain = upstream.read_key_points(reply.text)
        return Points(reading.find_points(plain), plain)

    def build_screenshot_prompt(self, subject: Subject, points: Points, image: ImageRef) -> Prompt:
        text = self._fill("screenshot.user", task=subject.record.task_text, key_points=points.plain)
        return self._build_prompt("screenshot", subject, (text, SentImage(image, JPEG)))

    def read_relevance(self, reply: Reply) -> tuple[int | None, str]:
        if self.bold_headings:
            return upstream.read_image_score(reply.text), upstream.read_image_reason(reply.text)
        return upstream.read_general_image_score(reply.text), upstream.read_general_image_reason(reply.text)

    def select_relevant(self, looks: Sequence[PictureReply]) -> list[PictureReply]:
        """Return one entry for each relevant step, repeated screenshots included."""
        return [look for look in looks if (look.relevance or 0) >= self.threshold]

    def build_verdict_prompt(self, subject: Subject, points: Points, relevant: Sequence[PictureReply]) -> Prompt:
        """Return the prompt. Empty reasons get no number, so numbers may not match screenshots, as in upstream."""
        reasons = [look.reason for look in relevant if look.reason][: self.max_images]
        pictures = [SentImage(look.image, PNG) for look in relevant][: self.max_images]
        bare = not pictures and "verdict.user_without_images" in self.prompts.texts
        text = self._fill(
            "verdict.user_without_images" if bare else "verdict.user",
            task=subject.record.task_text,
            key_points=points.plain,
            last_actions=_number_lines(self._list_actions(subject)),
            thoughts=_number_lines(reasons),
        )
        return self._build_prompt("verdict", subject, (text, *pictures))

    def read_decision(self, reply: Reply, subject: Subject, points: Points) -> Decision:
        if reply.refusal or not reply.text.strip() or (reply.cut and not upstream.states_verdict(reply.text)):
            raise StageUnusable(reply.unusable(), reply.text)
        listed = tuple(KeyPointEvidence(text) for text in points.texts)
        verdict: Verdict = upstream.read_verdict(reply.text)
        stated = upstream.has_status(reply.text)
        return Decision(verdict, reading.read_explanation(reply), listed, status_not_stated=not stated)

    def _list_actions(self, subject: Subject) -> list[str]:
        """Return the lines of the history; the general variant adds thoughts and ends with the shorter list."""
        steps = framing.select_acting(subject.record, self.drop)
        thoughts = list_thoughts(subject.record.source_format, subject.record.steps) if self.general else None
        if thoughts is None:
            return [step.action for step in steps]
        return [f"{step.action}. Reasoning: {thoughts[step.index]}" for step in steps if step.index < len(thoughts)]

    def _fill(self, part: str, **values: str) -> str:
        return framing.make_encodable(prompt_sets.fill(self.prompts.texts[part], **values))

    def _build_prompt(self, stage: str, subject: Subject, message: tuple[Part, ...]) -> Prompt:
        own: tuple[tuple[Part, ...], ...] = ()
        if self.general and subject.input_images:
            line = self.prompts.texts.get(INPUT_IMAGES)
            own = ((*([line] if line else []), *(SentImage(image, PNG) for image in subject.input_images)),)
        return Prompt(prompt_sets.build_system_text(self.prompts, stage), (*own, message))


def list_thoughts(source: str, steps: Sequence[StepRecord]) -> list[str | None] | None:
    """Return the thoughts as in the file: one per step in version 2; up to the last one (or None) in version 1."""
    thoughts = [step.thought for step in steps]
    if source == V2.name:
        return thoughts
    while thoughts and thoughts[-1] is None:
        thoughts.pop()
    return thoughts or None


def _number_lines(lines: Sequence[str]) -> str:
    return "\n".join(f"{number}. {line}" for number, line in enumerate(lines, start=1))
