"""WebJudge in the default mode: the record is framed as data, and answers are structured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from annotation.records import Finding
from judges import prompts as prompt_sets
from judges.llm import ImageRef, Part, Prompt, Reply, SentImage
from judges.scorer import KeyPointEvidence, Prompts, Subject
from judges.scorers import framing, reading
from judges.scorers.webjudge_stages import Decision, PictureReply, Points, Schema, StageUnusable

MOST_POINTS = 40
INTEGER = {"type": "integer"}
FINDING = {"type": "string", "enum": [finding.value for finding in Finding]}
SAID_OF_A_POINT = reading.build_object_schema(
    number=INTEGER, reason=reading.TEXT, finding=FINDING, steps=reading.build_list_schema(INTEGER)
)


class Framed:
    """Needs the parts ``framed_system`` and ``framed_user`` of all three stages; ``general`` shows thoughts, and the
    pictures that came with the task."""

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

    def __init__(self, prompts: Prompts, *, general: bool, threshold: int, max_images: int, drop: framing.Drop) -> None:
        stages, parts = ("key_points", "screenshot", "verdict"), ("framed_system", "framed_user")
        prompt_sets.require_parts(prompts, *(f"{stage}.{part}" for stage in stages for part in parts))
        self.prompts, self.general, self.drop = prompts, general, drop
        self.threshold, self.max_images = threshold, max_images

    def key_points_prompt(self, subject: Subject) -> Prompt:
        return self._build_prompt("key_points", subject, _format_task(subject))

    def points(self, reply: Reply) -> Points:
        if reply.unusable():
            raise StageUnusable(reply.unusable(), reply.text)
        found = reading.read_points(reply)[:MOST_POINTS]
        if not found:
            raise StageUnusable("The reply lists no key points.", reply.text)
        return Points.numbered(found)

    def screenshot_prompt(self, subject: Subject, points: Points, image: ImageRef) -> Prompt:
        return self._build_prompt(
            "screenshot", subject, [*_format_task(subject), *_format_points(points)], SentImage(image)
        )

    def relevance(self, reply: Reply) -> tuple[int | None, str]:
        if reply.unusable():
            return None, reply.unusable()
        return reading.read_relevance(reply), reading.read_reason(reply)

    def relevant(self, looks: Sequence[PictureReply]) -> list[PictureReply]:
        """Each picture once, at the first step that shows it."""
        return [look for look in looks if look.same_as is None and (look.relevance or 0) >= self.threshold]

    def verdict_prompt(self, subject: Subject, points: Points, relevant: Sequence[PictureReply]) -> Prompt:
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

    def decision(self, reply: Reply, subject: Subject, points: Points) -> Decision:
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
    """``screenshot of step 3``, or ``screenshot of steps 3, 4`` where it did not change."""
    steps = [str(step) for step, shown in enumerate(subject.screenshots) if shown == image]
    return f"screenshot of step{'s' if len(steps) > 1 else ''} {', '.join(steps)}"


def _read_evidence(
    data: Mapping[str, Any], points: Points, steps: int
) -> tuple[tuple[KeyPointEvidence, ...], list[int]]:
    """What was said of each point, by its number, and the steps that were named and do not exist."""
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
