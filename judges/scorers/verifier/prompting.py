"""Build the prompts of the rubric verifier: everything from task, agent and model is a value of a marked record."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from judges.llm import Part, Prompt, SentImage
from judges.prompts import build_system_text, fill, require_parts
from judges.scorer import Prompts, Subject
from judges.scorers import framing
from judges.scorers.single_call import LONGEST_URL
from judges.scorers.verifier.model import Criterion, Grade, Passes, Shot, format_points

STAGES_OF_MODE = {
    "full": ("criteria", "relevance", "actions", "images", "verdict"),
    "cheap": ("criteria", "relevance", "together"),
}
NO_SHOTS = "(There are no screenshots.)"


class PromptBuilder:
    """Prompts of a set; raises LookupError if it lacks a text of the mode."""

    def __init__(self, prompts: Prompts, mode: str) -> None:
        parts = ("framed_system", "framed_user")
        require_parts(prompts, *(f"{stage}.{part}" for stage in STAGES_OF_MODE[mode] for part in parts))
        for stage in STAGES_OF_MODE[mode]:
            if "{record}" not in prompts.texts[f"{stage}.framed_user"]:
                raise LookupError(f"{stage}.framed_user of {prompts.name} has no place {{record}}.")
        self.prompts = prompts

    def ask_for_criteria(self, subject: Subject, most: int) -> Prompt:
        """Return a prompt with the task and its images alone."""
        return self._build("criteria", [*format_task(subject), f"most criteria: {most}"], *_show_inputs(subject))

    def ask_for_relevance(self, subject: Subject, criteria: Sequence[Criterion], shots: Sequence[Shot]) -> Prompt:
        pictures: list[Part] = []
        for number, shot in enumerate(shots, start=1):
            pictures += [f"Screenshot {number}, of {framing.format_steps(shot.steps)}:", SentImage(shot.image)]
        return self._build("relevance", [*format_task(subject), *format_criteria(criteria)], *pictures)

    def ask_for_actions(self, subject: Subject, criterion: Criterion) -> Prompt:
        return self._build("actions", _format_log(subject, format_criteria([criterion])))

    def ask_for_images(self, subject: Subject, criterion: Criterion, shots: Sequence[Shot]) -> Prompt:
        lines = _format_log(subject, format_criteria([criterion]))
        return self._build("images", lines, *_show(shots), *_show_inputs(subject))

    def ask_for_verdict(self, subject: Subject, passes: Sequence[Passes], shots: Sequence[Shot]) -> Prompt:
        criteria = format_criteria(one.criterion for one in passes)
        lines = _format_log(subject, [*criteria, *_format_passes(passes)])
        return self._build("verdict", lines, *_show(shots), *_show_inputs(subject))

    def ask_together(self, subject: Subject, criteria: Sequence[Criterion], shots: Sequence[Shot]) -> Prompt:
        lines = _format_log(subject, format_criteria(criteria))
        return self._build("together", lines, *_show(shots), *_show_inputs(subject))

    def _build(self, stage: str, lines: Iterable[str], *pictures: Part) -> Prompt:
        text = fill(self.prompts.texts[f"{stage}.framed_user"], record=framing.format_record(lines))
        return Prompt(build_system_text(self.prompts, stage, "framed_system"), ((text, *pictures),))


def format_task(subject: Subject) -> list[str]:
    lines = [framing.format_field("task", subject.record.task_text, framing.TASK)]
    return [*lines, framing.format_field("website", subject.website, framing.ACTION)] if subject.website else lines


def format_criteria(criteria: Iterable[Criterion]) -> list[str]:
    lines = []
    for one in criteria:
        name = f"criterion {one.number}"
        lines.append(framing.format_field(name, one.text, framing.POINT))
        for part, text in (("description", one.description), ("condition", one.condition)):
            lines += [framing.format_field(f"{name} {part}", text, framing.POINT)] if text else []
        lines.append(f"{name} most points: {format_points(one.max_points)}")
    return lines


def _format_passes(passes: Iterable[Passes]) -> Iterator[str]:
    for one in passes:
        for title, grade in (("from actions", one.actions), ("from screenshots", one.images)):
            if grade is not None:
                name = f"criterion {one.criterion.number} {title}"
                yield f"{name} points: {_format_points(one, grade)}"
                yield framing.format_field(f"{name} reason", grade.reason, framing.REASON)


def _format_points(one: Passes, grade: Grade) -> str:
    if one.criterion.condition and not grade.applies:
        return "does not apply"
    return "not graded" if grade.points is None else format_points(grade.points)


def _format_log(subject: Subject, criteria: Iterable[str]) -> Iterator[str]:
    """Yield task, criteria, and what the agent did and wrote, with the numbers of steps."""
    yield from format_task(subject)
    yield from criteria
    for step in framing.select_acting(subject.record, "auto"):
        if step.url:
            yield framing.format_field(f"step {step.index} url", step.url, LONGEST_URL)
        yield from framing.format_history([step], thoughts=True)
    yield framing.format_field("final answer", subject.record.final_answer or "", framing.ANSWER)


def _show(shots: Sequence[Shot]) -> list[Part]:
    pictures: list[Part] = []
    for shot in shots:
        pictures += [f"Screenshot of {framing.format_steps(shot.steps)}:", SentImage(shot.image)]
    return pictures or [NO_SHOTS]


def _show_inputs(subject: Subject) -> list[Part]:
    own: list[Part] = [SentImage(image) for image in subject.input_images]
    return ["Images that belong to the task:", *own] if own else []
