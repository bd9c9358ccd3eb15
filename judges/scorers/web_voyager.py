"""WebVoyager: one call with the task, the final answer and the first 50 screenshots; no actions.

The published judge counts every reply without the word FAILURE in capitals as a success, garbage included.
In the default mode the reply must state a verdict.
"""

from __future__ import annotations

from judges.scorer import Subject
from judges.scorers import framing, upstream
from judges.scorers.one_call import Method, Mode, Picture, ShownRecord, list_pictures, register_published

MOST_PICTURES = 50
CLOSING = "Your verdict:\n"  # after the screenshots, in the published evaluator


def select_first_pictures(subject: Subject) -> tuple[Picture, ...]:
    return list_pictures(subject)[:MOST_PICTURES]


def shows(subject: Subject) -> ShownRecord:
    answer = subject.record.final_answer or ""
    pictures, taken = select_first_pictures(subject), len(list_pictures(subject))
    lines = (
        framing.format_field("task", subject.record.task_text, framing.TASK),
        framing.format_field("final answer", answer, framing.ANSWER)
        if answer.strip()
        else "final answer: there is none",
        f"screenshots: the first {len(pictures)} of {taken}",
    )
    return ShownRecord(lines, pictures=pictures)


def shows_upstream(subject: Subject) -> ShownRecord:
    pictures = select_first_pictures(subject)
    answer = str(subject.record.final_answer)  # upstream writes a missing answer as None
    values = {
        "task": subject.record.task_text,
        "answer": answer,
        "count": str(len(pictures)),
        # The names in the published evaluator, so that its own texts can be loaded unchanged.
        "response": answer,
        "num": str(len(pictures)),
    }
    return ShownRecord(values=values, pictures=pictures, media_type="image/png", closing=CLOSING)


def find_obstacle(subject: Subject, mode: Mode) -> str:
    """Return why the subject cannot be judged, or "". An answer alone proves nothing; upstream still judges it."""
    if mode == "default" and not select_first_pictures(subject):
        return "WebVoyager judges screenshots, and the trajectory has none."
    return ""


PLACES = ("task", "answer", "response", "count", "num")
METHOD = Method(
    PLACES, shows, shows_upstream, upstream.read_voyager_verdict, upstream.has_voyager_status, find_obstacle
)
KIND = register_published(
    "webvoyager",
    "WebVoyager",
    "One call: task, final answer and the first 50 screenshots. It sees no actions.",
    METHOD,
    version=2,
)
