"""Autonomous Eval: one call with the task, the numbered actions and the last screenshot; three kinds of task.

The published judge mentions the agent's answer in its instructions, but does not pass it on. In the default mode the
instructions describe the real input.
"""

from __future__ import annotations

from judges.scorer import Subject
from judges.scorers import framing, reading, upstream
from judges.scorers.one_call import (
    Method,
    Mode,
    ShownRecord,
    find_last_picture,
    format_picture_line,
    register_published,
)

SCHEMA = reading.build_object_schema(
    task_kind={"type": "string", "enum": ["information", "navigation", "modification"]},
    reason=reading.TEXT,
    verdict=reading.VERDICT,
)


def shows(subject: Subject) -> ShownRecord:
    pictures = find_last_picture(subject)
    lines = (
        framing.format_field("task", subject.record.task_text, framing.TASK),
        *framing.format_history(framing.select_acting(subject.record, "auto")),
        format_picture_line(pictures),
    )
    return ShownRecord(lines, pictures=pictures)


def shows_upstream(subject: Subject) -> ShownRecord:
    actions = [step.action for step in framing.select_acting(subject.record, "always")]
    numbered = "\n".join(f"{number}. {action}" for number, action in enumerate(actions, 1))
    return ShownRecord(
        values={"task": subject.record.task_text, "last_actions": numbered}, pictures=find_last_picture(subject)
    )


def find_obstacle(subject: Subject, mode: Mode) -> str:
    """Return why the subject cannot be judged, or "": upstream needs a screenshot, the default mode only actions."""
    if mode == "upstream" and not find_last_picture(subject):
        return "The published method needs a screenshot, and the trajectory has none."
    if not find_last_picture(subject) and not framing.select_acting(subject.record, "auto"):
        return "The trajectory has neither an action nor a screenshot to judge."
    return ""


METHOD = Method(
    ("task", "last_actions"), shows, shows_upstream, upstream.read_verdict, upstream.has_status, find_obstacle, SCHEMA
)
KIND = register_published(
    "autonomous-eval",
    "Autonomous Eval",
    "One call: task, actions and last screenshot, judged according to the kind of task.",
    METHOD,
)
