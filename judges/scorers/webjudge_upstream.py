"""WebJudge as it was published: templates filled as plain text, replies read by `upstream`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from annotation.formats.external.online_mind2web_v2 import FORMAT as V2
from annotation.records import StepRecord, Verdict
from judges import prompts as prompt_sets
from judges.llm import ImageRef, Part, Prompt, Reply, SentImage
from judges.scorer import KeyPointEvidence, Prompts, Subject
from judges.scorers import reading, upstream
from judges.scorers.framing import Drop, make_encodable, select_acting
from judges.scorers.webjudge_stages import Decision, PictureReply, Points, Schema, StageUnusable

JPEG, PNG = "image/jpeg", "image/png"  # what data URLs say there; the bytes are JPEG in both
INPUT_IMAGES = "inputs.user"  # the line above the pictures of the task, where the set has one


class Upstream:
    """Needs the parts ``system`` and ``user`` of all three stages; ``general`` is the variant for other benchmarks."""

    shows_once = False
    schemas: Mapping[str, Schema | None] = {"key_points": None, "screenshot": None, "verdict": None}

    def __init__(self, prompts: Prompts, *, general: bool, threshold: int, max_images: int, drop: Drop) -> None:
        stages = ("key_points", "screenshot", "verdict")
        prompt_sets.require_parts(prompts, *(f"{stage}.{part}" for stage in stages for part in ("system", "user")))
        self.prompts, self.general, self.drop = prompts, general, drop
        self.threshold, self.max_images = threshold, max_images

    def key_points_prompt(self, subject: Subject) -> Prompt:
        text = self._fill("key_points.user", task=subject.record.task_text)
        return self._build_prompt("key_points", subject, (text,))

    def points(self, reply: Reply) -> Points:
        if reply.refusal or not reply.text.strip():
            raise StageUnusable(reply.unusable() or "The reply is empty.", reply.text)
        plain = upstream.read_key_points(reply.text)
        return Points(reading.find_points(plain), plain)

    def screenshot_prompt(self, subject: Subject, points: Points, image: ImageRef) -> Prompt:
        text = self._fill("screenshot.user", task=subject.record.task_text, key_points=points.plain)
        return self._build_prompt("screenshot", subject, (text, SentImage(image, JPEG)))

    def relevance(self, reply: Reply) -> tuple[int | None, str]:
        if self.general:
            return upstream.read_general_image_score(reply.text), upstream.read_general_image_reason(reply.text)
        return upstream.read_image_score(reply.text), upstream.read_image_reason(reply.text)

    def relevant(self, looks: Sequence[PictureReply]) -> list[PictureReply]:
        """One entry for each step, equal pictures again."""
        return [look for look in looks if (look.relevance or 0) >= self.threshold]

    def verdict_prompt(self, subject: Subject, points: Points, relevant: Sequence[PictureReply]) -> Prompt:
        """Empty reasons have no number, so that numbers may stand beside the wrong picture, as there."""
        reasons = [look.reason for look in relevant if look.reason][: self.max_images]
        pictures = [SentImage(look.image, PNG) for look in relevant][: self.max_images]
        bare = not pictures and "verdict.user_without_images" in self.prompts.texts
        text = self._fill(
            "verdict.user_without_images" if bare else "verdict.user",
            task=subject.record.task_text,
            key_points=points.plain,
            last_actions=_number(self._list_actions(subject)),
            thoughts=_number(reasons),
        )
        return self._build_prompt("verdict", subject, (text, *pictures))

    def decision(self, reply: Reply, subject: Subject, points: Points) -> Decision:
        if reply.refusal or not reply.text.strip() or (reply.cut and not upstream.states_verdict(reply.text)):
            raise StageUnusable(reply.unusable(), reply.text)
        listed = tuple(KeyPointEvidence(text) for text in points.texts)
        verdict: Verdict = upstream.read_verdict(reply.text)
        stated = upstream.has_status(reply.text)
        return Decision(verdict, reading.read_explanation(reply), listed, status_not_stated=not stated)

    def _list_actions(self, subject: Subject) -> list[str]:
        """The lines of the history; in the general variant with thoughts, as far as the shorter list goes."""
        steps = select_acting(subject.record, self.drop)
        thoughts = _list_thoughts(subject.record.source_format, subject.record.steps) if self.general else None
        if thoughts is None:
            return [step.action for step in steps]
        return [f"{step.action}. Reasoning: {thoughts[step.index]}" for step in steps if step.index < len(thoughts)]

    def _fill(self, part: str, **values: str) -> str:
        return make_encodable(prompt_sets.fill(self.prompts.texts[part], **values))

    def _build_prompt(self, stage: str, subject: Subject, message: tuple[Part, ...]) -> Prompt:
        own: tuple[tuple[Part, ...], ...] = ()
        if self.general and subject.input_images:
            line = self.prompts.texts.get(INPUT_IMAGES)
            own = ((*([line] if line else []), *(SentImage(image, PNG) for image in subject.input_images)),)
        return Prompt(prompt_sets.build_system_text(self.prompts, stage), (*own, message))


def _list_thoughts(source: str, steps: Sequence[StepRecord]) -> list[str | None] | None:
    """The list of thoughts as the file had it: one for each step in version 2, as far as there are any in version 1."""
    thoughts = [step.thought for step in steps]
    if source == V2.name:
        return thoughts
    while thoughts and thoughts[-1] is None:
        thoughts.pop()
    return thoughts or None


def _number(lines: Sequence[str]) -> str:
    return "\n".join(f"{number}. {line}" for number, line in enumerate(lines, start=1))
