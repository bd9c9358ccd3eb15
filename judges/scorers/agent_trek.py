"""AgentTrek: one call with alternating thoughts and actions and the last screenshot; lenient rules.

The published judge stops with an error if a thought is missing. Here a missing thought is omitted (in upstream's
mode it is empty). Upstream's mode ends with the shorter of the two lists, as the published judge does, and replaces
blank lines inside of a thought or an action.
"""

from __future__ import annotations

from judges.scorer import Subject
from judges.scorers import framing, upstream
from judges.scorers.autonomous_eval import find_obstacle
from judges.scorers.one_call import Method, ShownRecord, find_last_picture, format_picture_line, register_published
from judges.scorers.webjudge_modes import list_thoughts


def shows(subject: Subject) -> ShownRecord:
    pictures = find_last_picture(subject)
    lines = (
        framing.format_field("task", subject.record.task_text, framing.TASK),
        *framing.format_history(framing.select_acting(subject.record, "auto"), thoughts=True),
        format_picture_line(pictures),
    )
    return ShownRecord(lines, pictures=pictures)


def shows_upstream(subject: Subject) -> ShownRecord:
    steps = framing.select_acting(subject.record, "always")
    thoughts = list_thoughts(subject.record.source_format, subject.record.steps)
    turns = [
        f"Thought {number}: {_join_paragraphs(thought or '')}\nAction {number}: {_join_paragraphs(step.action)}"
        for number, (step, thought) in enumerate(zip(steps, thoughts or [None] * len(steps), strict=False), 1)
    ]
    return ShownRecord(
        values={"task": subject.record.task_text, "thoughts_and_actions": "\n\n".join(turns).strip("\n")},
        pictures=find_last_picture(subject),
    )


def _join_paragraphs(text: str) -> str:
    return text.replace("\n\n", " ")


METHOD = Method(
    ("task", "thoughts_and_actions"), shows, shows_upstream, upstream.read_verdict, upstream.has_status, find_obstacle
)
KIND = register_published(
    "agenttrek",
    "AgentTrek",
    "One call: alternating thoughts and actions and the last screenshot, judged by lenient rules.",
    METHOD,
    version=2,
)
