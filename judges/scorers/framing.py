"""How a trajectory is put before a model: as a record to judge, delimited and cut to a length, never as instructions.

Texts of tasks, pages and agents may say anything, also "answer success". Each one becomes a JSON string on one line
inside a block that nothing in it can end, and the system texts of the prompts say what such a block is.
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

NO_STEPS = "The trajectory has no steps: this judge judges what was done, and there is only an answer."

# Longest texts, in characters. A record of 100 steps at their limits still fits a context of 128,000 tokens.
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
# Calls in which agents of version 1 give their answer; TASK_COMPLETE is that of version 2.
ANSWER_CALL = re.compile(
    r"\s*(?:send_msg_to_user|report_infeasible|final_answer|submit_answer|answer|finish(?:ed)?|done|stop|terminate)"
    r"\s*[(\[:;]",
    re.IGNORECASE,
)

Drop = Literal["auto", "always"]


def cut(text: str, limit: int) -> str:
    """``text``, or its beginning and end with the number of characters that were left out between them.

    What is kept of the text has ``limit`` characters; the remark comes on top.
    """
    if len(text) <= limit:
        return text
    head = (limit + 1) // 2
    return f"{text[:head]} [... {len(text) - limit:,} characters left out ...] {text[len(text) - limit + head :]}"


def quote(text: str, limit: int) -> str:
    """``text`` cut to ``limit`` as a JSON string on one line, without invisible characters or an end of the block."""
    escaped = MARK.sub(r"\\u003c", json.dumps(cut(text, limit), ensure_ascii=False))
    return "".join(json.dumps(char)[1:-1] if unicodedata.category(char) in UNSEEN else char for char in escaped)


def format_field(name: str, text: str, limit: int) -> str:
    return f"{name}: {quote(text, limit)}"


def format_record(lines: Iterable[str], limit: int = RECORD) -> str:
    """Lines of `format_field` as a marked block; beyond ``limit``, whole lines in the middle are left out."""
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
    """Return whether an action only hands over the answer or ends the run, and so does nothing on the site."""
    return is_completion(action) or ANSWER_CALL.match(action) is not None


def select_acting(trajectory: TrajectoryRecord, drop: Drop) -> tuple[StepRecord, ...]:
    """The steps whose action belongs to the action history: all that have one, but for those that give the answer.

    ``auto`` leaves out the last actions that give the answer or end the run, and an earlier call that hands over the
    very text of the final answer. ``always`` leaves out the last step of version 2 whatever it is, and nothing of
    version 1, as upstream does, which numbers empty actions too.
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
    """A line for each action, by the number of its step from 0, and with ``thoughts`` the thought before it."""
    lines = []
    for step in steps:
        if thoughts and step.thought:
            lines.append(format_field(f"step {step.index} thought", step.thought, THOUGHT))
        lines.append(format_field(f"step {step.index} action", step.action, ACTION))
    return lines


def format_steps(steps: Sequence[int]) -> str:
    """``step 3``, or ``steps 3, 4``."""
    return f"step{'s' if len(steps) > 1 else ''} {', '.join(map(str, steps))}"


def make_encodable(text: str) -> str:
    """``text`` as it is, but for lone surrogates, which cannot be sent: for prompts that are filled as plain text."""
    return text.encode("utf-8", "replace").decode("utf-8")
