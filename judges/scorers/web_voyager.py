"""WebVoyager: one call with the task, the final answer and the first 50 screenshots; no actions.

The published one takes every reply for a success that does not have the word FAILURE in capitals, garbage included.
In the default mode a verdict has to be stated.
"""

from __future__ import annotations

from judges.scorer import Kind, Subject, register
from judges.scorers import framing, upstream
from judges.scorers.one_call import Mended, Method, Mode, Picture, Shown, foreseen, pictures_of, published

MOST_PICTURES = 50


def first_pictures(subject: Subject) -> tuple[Picture, ...]:
    return pictures_of(subject)[:MOST_PICTURES]


def shows(subject: Subject) -> Shown:
    answer = subject.record.final_answer or ""
    pictures, taken = first_pictures(subject), len(pictures_of(subject))
    lines = (
        framing.field("task", subject.record.task_text, framing.TASK),
        framing.field("final answer", answer, framing.ANSWER) if answer.strip() else "final answer: there is none",
        f"screenshots: the first {len(pictures)} of {taken}",
    )
    return Shown(lines, pictures=pictures)


def shows_upstream(subject: Subject) -> Shown:
    pictures = first_pictures(subject)
    values = {
        "task": subject.record.task_text,
        "answer": subject.record.final_answer or "",
        "count": str(len(pictures)),
        # The names in the published evaluator, so that its own texts can be loaded as they are.
        "response": subject.record.final_answer or "",
        "num": str(len(pictures)),
    }
    return Shown(values=values, pictures=pictures)


def obstacle(subject: Subject, mode: Mode) -> str:
    """An answer alone proves nothing; upstream judges it all the same."""
    if mode == "default" and not first_pictures(subject):
        return "WebVoyager judges by screenshots, and the trajectory has none."
    return ""


PLACES = ("task", "answer", "response", "count", "num")
METHOD = Method(PLACES, shows, shows_upstream, upstream.voyager_verdict, upstream.voyager_has_status, obstacle)
KIND = register(
    Kind(
        name="webvoyager",
        version=1,
        title="WebVoyager",
        description="One call: task, final answer and the first 50 screenshots. The one that is shown the answer.",
        parameters=Mended,
        prompts="webvoyager/1",
        build=published(METHOD),
        calls=foreseen(METHOD),
    )
)
