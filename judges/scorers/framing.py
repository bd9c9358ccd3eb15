"""Format a trajectory for a model: as a delimited, shortened record to judge, never as instructions.

Texts of tasks, pages and agents may contain anything, including "answer success". Each text becomes a JSON string on
one line, inside a block that no text can close. The system texts of the prompts explain the block.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Literal

from annotation.formats.actions import is_completion
from annotation.formats.external.online_mind2web_v2 import FORMAT as V2
from annotation.records import StepRecord, TrajectoryRecord

NO_STEPS = "The trajectory has no steps: this judge needs steps, and the trajectory has only an answer."

# Maximum lengths, in characters. A record of 100 steps at their limits still fits a context of 128,000 tokens.
TASK = 6_000
ACTION = 1_000
THOUGHT = 1_500
ANSWER = 8_000
POINT = 1_000
REASON = 1_500
RECORD = 160_000

BEGIN, END = "<record>", "</record>"
MARK = re.compile(r"<(?=\s*/?\s*record\b)", re.IGNORECASE)
UNSEEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})  # controls, bidi and zero width, lone surrogates, line separators
# Calls with which agents of version 1 give their answer; agents of version 2 use TASK_COMPLETE.
ANSWER_CALL = re.compile(
    r"\s*(?:send_msg_to_user|report_infeasible|final_answer|submit_answer|answer|finish(?:ed)?|done|stop|terminate)"
    r"\s*[(\[:;]",
    re.IGNORECASE,
)

Drop = Literal["auto", "always"]


def cut(text: str, limit: int) -> str:
    """Return ``text``, or its beginning and end around a note with the number of omitted characters.

    The remaining text has ``limit`` characters; the note is additional.
    """
    if len(text) <= limit:
        return text
    head = (limit + 1) // 2
    return f"{text[:head]} [... {len(text) - limit:,} characters left out ...] {text[len(text) - limit + head :]}"


def quote(text: str, limit: int) -> str:
    """Return ``text``, cut to ``limit``, as a one-line JSON string; invisible characters and block tags are escaped."""
    escaped = MARK.sub(r"\\u003c", json.dumps(cut(text, limit), ensure_ascii=False))
    return "".join(json.dumps(char)[1:-1] if unicodedata.category(char) in UNSEEN else char for char in escaped)


def format_field(name: str, text: str, limit: int) -> str:
    return f"{name}: {quote(text, limit)}"


def format_record(lines: Iterable[str], limit: int = RECORD) -> str:
    """Return lines of `format_field` as a marked block; beyond ``limit`` characters, omit whole lines in the middle."""
    kept = list(lines)
    size = sum(map(len, kept))
    at, left_out = len(kept) // 2, 0
    while size > limit and len(kept) > 2:
        at = min(at, len(kept) - 2)
        size -= len(kept.pop(at))
        left_out += 1
        at = max(1, at - left_out % 2)
    if left_out:
        kept.insert(max(1, at), f"[... {left_out:,} lines left out ...]")
    return "\n".join((BEGIN, *kept, END))


def gives_answer(action: str) -> bool:
    """Return whether an action only gives the answer or ends the run, and so does nothing on the site."""
    return is_completion(action) or ANSWER_CALL.match(action) is not None


def select_acting(trajectory: TrajectoryRecord, drop: Drop) -> tuple[StepRecord, ...]:
    """Return the steps of the action history: those with an action, except those that give the answer.

    ``auto`` omits the last actions that give the answer or end the run, and an earlier call that gives the exact text
    of the final answer. ``always`` omits the last step of version 2, whatever it is, and no action of version 1, as
    upstream does; upstream numbers empty actions too.
    """
    steps = trajectory.steps
    if drop == "always":
        if trajectory.source_format == V2.name:
            return steps[:-1]
        return steps[: max((at for at, step in enumerate(steps, 1) if step.action), default=0)]
    answer = (trajectory.final_answer or "").strip()
    acted = [step for step in steps if step.action]
    while acted and gives_answer(acted[-1].action):
        acted.pop()
    return tuple(step for step in acted if not (answer and answer in step.action and gives_answer(step.action)))


def format_history(steps: Iterable[StepRecord], *, thoughts: bool = False) -> list[str]:
    """Return a line for each action, with its step number from 0; ``thoughts`` adds the thought before each action."""
    lines = []
    for step in steps:
        if thoughts and step.thought:
            lines.append(format_field(f"step {step.index} thought", step.thought, THOUGHT))
        lines.append(format_field(f"step {step.index} action", step.action, ACTION))
    return lines


def format_steps(steps: Sequence[int]) -> str:
    """Return ``step 3``, or ``steps 3, 4``."""
    return f"step{'s' if len(steps) > 1 else ''} {', '.join(map(str, steps))}"


def make_encodable(text: str) -> str:
    """Return ``text`` with lone surrogates replaced, which cannot be sent: for prompts filled as plain text."""
    return text.encode("utf-8", "replace").decode("utf-8")
