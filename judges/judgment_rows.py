"""Parser of one row of a judgment file: our own columns, or the output of WebJudge's runners. Does not use Django.

A row is a JSON object. Fields that a judgment does not have are stored unchanged in ``carried``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from annotation.formats.documents import kind_of
from annotation.formats.printable import printable
from annotation.formats.tasks import task_id_problem
from annotation.records import Finding, Verdict
from judges.scorer import KeyPointEvidence, Score, StepEvidence

NOT_GIVEN = "not given"
THRESHOLD, MOST_KEPT = 3, 50  # defaults of WebJudge's last stage: lowest score and largest number of images
LONGEST = {"agent": 200, "model": 200}  # characters; other texts have LONGEST_TEXT
LONGEST_TEXT = 1_000_000
LARGEST_COUNT = 2**31 - 1
LARGEST_STEP = 1_000_000
MOST_LISTED = 5_000  # key points, or screenshots, of one judgment; a page shows them all
MOST_WRONG = 50  # problems of one row
NUMBERING = re.compile(r"\s*(?:\d{1,3}[.)]|[-*•])\s+")
HEADING = re.compile(r"\W{0,10}key points?\W{0,10}", re.IGNORECASE)
THOUGHTS = re.compile(r"\bthoughts?\W{0,4}:\W{0,4}", re.IGNORECASE)
STATUS = re.compile(r"[\s*#\"']{0,6}\bstatus\W{0,4}:", re.IGNORECASE)
REASONING = re.compile(r"\breasoning\W{0,4}:\W{0,4}", re.IGNORECASE)
SCORE = re.compile(r"[\s*#]{0,8}\bscore\b", re.IGNORECASE)

POINT_KEYS = {"text", "key_point", "finding", "met", "steps", "step", "reason"}
IMAGE_KEYS = {"step", "original_step", "score", "relevance", "response", "reason", "kept", "passed_threshold", "file"}


@dataclass(frozen=True, slots=True)
class JudgmentRecord:
    """One judgment. ``row`` is a line number, from 1. ``files`` has the screenshot name of a step, if given.

    ``shape`` is the kind of row; ``doubt`` is a warning about it, or "".
    """

    row: int
    agent: str
    task_id: str
    model: str
    score: Score
    tokens: int | None
    carried: Mapping[str, Any]
    files: Mapping[int, str]
    shape: str
    doubt: str = ""


class RowRefused(Exception):
    """A row that is refused; ``problems`` are pairs of a code and a message."""

    def __init__(self, problems: list[tuple[str, str]]) -> None:
        super().__init__("; ".join(says for _, says in problems))
        self.problems = problems


def read_row(row: dict[str, Any], number: int, agent: str) -> JudgmentRecord:
    """Return the judgment in a row; ``agent`` is for rows that name none. Raises RowRefused with every problem."""
    fields = _Fields(row)
    webjudge = "verdict" not in row and not {"predicted_label", "evaluation_details"}.isdisjoint(row)
    task_id, who = fields.take("task_id"), _read_agent(fields, agent)
    if (says := "task_id is missing" if task_id is None else task_id_problem(task_id)) is not None:
        fields.refuse("task_id_invalid", says)
    model, tokens = fields.text("model"), _read_tokens(fields)
    points, steps, files = _read_points(fields), _read_steps(fields, webjudge), fields.files
    verdict, response, explanation = _read_webjudge(fields) if webjudge else _read_plain(fields)
    unscored = _read_reason(fields) if verdict is None else ""
    number_given = fields.number("score")
    if fields.problems:
        raise RowRefused(fields.problems)
    odd = webjudge and verdict == Verdict.FAILURE and not STATUS.search(response)
    score = Score(
        verdict=verdict,
        unscored=unscored,
        score=number_given,
        explanation=explanation,
        key_points=points,
        steps=steps,
        response=response,
        notes=fields.notes,
        status_not_stated=odd,
    )
    return JudgmentRecord(
        row=number,
        agent=who,
        task_id=str(task_id),
        model=model,
        score=score,
        tokens=tokens,
        carried=fields.rest,
        files=files,
        shape="webjudge" if webjudge else "plain",
        doubt="the reply states no status; its runner counts that as a failure, so it is imported as one"
        if odd
        else "",
    )


class _Fields:
    """The fields of a row, taken one by one; ``rest`` are fields not yet taken, ``problems`` those found so far."""

    def __init__(self, row: dict[str, Any]) -> None:
        self.rest = dict(row)
        self.problems: list[tuple[str, str]] = []
        self.files: dict[int, str] = {}
        self.notes: dict[str, Any] = {}

    def refuse(self, code: str, says: str) -> None:
        if len(self.problems) < MOST_WRONG:
            self.problems.append((code, says))

    def take(self, name: str) -> Any:
        return self.rest.pop(name, None)

    def text(self, name: str) -> str:
        value = self.take(name)
        if value is None:
            return ""
        if not isinstance(value, str):
            self.refuse("wrong_type", f"{name} must be text, not {kind_of(value)}")
            return ""
        if len(value) > (limit := LONGEST.get(name, LONGEST_TEXT)):
            self.refuse("field_too_long", f"{name} is longer than {limit:,} characters")
        return value.strip() if name in LONGEST else value

    def number(self, name: str) -> float | None:
        value = self.take(name)
        if value is None:
            return None
        usable = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300
        if not usable or not math.isfinite(value):
            self.refuse("number_invalid", f"{name} must be a number or null, not {_format_value(value)}")
            return None
        return float(value)

    def verdict(self, name: str, value: Any) -> Verdict | None:
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or value not in set(Verdict):
            says = "0 (failure), 1 (success), 2 (not executable), or null for no verdict"
            self.refuse("verdict_unknown", f"{name} is {_format_value(value)} and must be {says}")
            return None
        return Verdict(value)


def _read_agent(fields: _Fields, given: str) -> str:
    known = fields.rest.get("agent")
    stated = fields.text("agent")
    if stated and given and stated != given:
        says = (
            f"the agent is '{printable(stated)}' here and '{printable(given)}' for the whole file; remove one of them"
        )
        fields.refuse("agent_differs", says)
    if not stated and not given and (known is None or isinstance(known, str)):
        fields.refuse(
            "agent_missing", "no agent is given; add the field agent, or give one for the whole file (--agent)"
        )
    return stated or given


def _read_tokens(fields: _Fields) -> int | None:
    usage = fields.rest.get("usage")
    if isinstance(usage, dict):
        usage = usage["total_tokens"] if "total_tokens" in usage else _sum_tokens(usage)
    if usage is not None and not _is_count(usage):
        fields.refuse(
            "usage_invalid", f"usage must be an object with total_tokens or a number, not {_format_value(usage)}"
        )
        return None
    return usage


def _sum_tokens(usage: Mapping[str, Any]) -> int | None:
    """Return input plus output tokens, by the names of either kind of endpoint; None if one is missing."""
    for names in (("prompt_tokens", "completion_tokens"), ("input_tokens", "output_tokens")):
        parts = [usage[name] for name in names if _is_count(usage.get(name))]
        if len(parts) == len(names):
            return sum(parts)
    return None


def _read_plain(fields: _Fields) -> tuple[Verdict | None, str, str]:
    if "verdict" not in fields.rest:
        fields.refuse("verdict_missing", "verdict is missing; write null if there is none")
    verdict = fields.verdict("verdict", fields.take("verdict"))
    explanation = fields.text("explanation") or fields.text("reasoning")
    return verdict, fields.text("response"), explanation


def _read_reason(fields: _Fields) -> str:
    """Return why there is no verdict. Called only without one: otherwise these fields stay in ``rest``."""
    return next((text for name in ("unscored", "reason", "error") if (text := fields.text(name).strip())), NOT_GIVEN)


def _read_webjudge(fields: _Fields) -> tuple[Verdict | None, str, str]:
    """Return the recorded verdict, the response and the explanation. The verdict is not parsed again."""
    details = fields.take("evaluation_details")
    if details is not None and not isinstance(details, dict):
        fields.refuse("wrong_type", f"evaluation_details must be an object, not {kind_of(details)}")
        details = None
    inner = _Fields(details or {})
    label = inner.take("predicted_label")
    labels = [value for value in (fields.take("predicted_label"), label) if value is not None]
    verdicts = [fields.verdict("predicted_label", value) for value in labels]
    if len(set(verdicts)) > 1:
        fields.refuse("verdict_differs", "predicted_label and the one in evaluation_details differ")
    response = inner.text("response") or fields.text("final_response") or fields.text("response")
    fields.problems += inner.problems
    if inner.rest:
        fields.rest["evaluation_details"] = inner.rest
    return (verdicts or [None])[0], response, _cut_between(response, THOUGHTS, STATUS, whole=True)


# --- key points and screenshots --------------------------------------------------------------------------------------


def _read_points(fields: _Fields) -> tuple[KeyPointEvidence, ...]:
    given = fields.rest.get("key_points")
    if isinstance(given, str):
        fields.take("key_points")
        lines = [NUMBERING.sub("", line, count=1).strip() for line in given.splitlines()]
        if _too_many(fields, "key_points", lines):
            return ()
        return tuple(KeyPointEvidence(line) for line in lines if line and not HEADING.fullmatch(line))
    if given is not None and not isinstance(given, list):
        fields.refuse("wrong_type", f"key_points must be a list or text, not {kind_of(given)}")
    if not isinstance(given, list) or _too_many(fields, "key_points", given):
        return ()
    if all(isinstance(one, str) or (isinstance(one, dict) and set(one) <= POINT_KEYS) for one in given):
        fields.take("key_points")
    return tuple(point for n, one in enumerate(given) if (point := _read_point(fields, n, one)) is not None)


def _read_point(fields: _Fields, number: int, given: Any) -> KeyPointEvidence | None:
    if isinstance(given, str):
        return KeyPointEvidence(given)
    where = f"key_points[{number}]"
    if not isinstance(given, dict):
        fields.refuse("wrong_type", f"{where} must be text or an object, not {kind_of(given)}")
        return None
    text, reason = given.get("text", given.get("key_point")), given.get("reason") or ""
    steps = given.get("steps") if given.get("steps") is not None else [given.get("step")]
    if not isinstance(text, str) or not isinstance(reason, str):
        fields.refuse("key_point_invalid", f"{where} needs text, and a reason must be text")
        return None
    if not isinstance(steps, list) or not all(step is None or _is_step(step) for step in steps):
        fields.refuse("key_point_invalid", f"{where}: steps must be a list of step numbers")
        return None
    finding = given.get("finding", given.get("met"))
    if isinstance(finding, bool):
        finding = Finding.MET if finding else Finding.UNMET
    if finding is not None and finding not in list(Finding):
        says = f"finding is {_format_value(finding)} and must be met, unmet, unclear or null"
        fields.refuse("finding_unknown", f"{where}: {says}")
        return None
    cited = tuple(dict.fromkeys(step for step in steps if step is not None))
    return KeyPointEvidence(text, None if finding is None else Finding(finding), cited, reason)


def _read_steps(fields: _Fields, webjudge: bool) -> tuple[StepEvidence, ...]:
    name = next((n for n in ("image_scores", "images", "image_judge_record") if fields.rest.get(n) is not None), "")
    given = fields.rest.get(name)
    if given is None:
        return ()
    if not isinstance(given, list):
        fields.refuse("wrong_type", f"{name} must be a list, not {kind_of(given)}")
        return ()
    if _too_many(fields, name, given):
        return ()
    rows = [{str(k).lower(): v for k, v in one.items()} if isinstance(one, dict) else {"score": one} for one in given]
    if all(set(row) <= IMAGE_KEYS for row in rows):
        fields.take(name)
    threshold = _read_threshold(fields) if webjudge else None
    steps: dict[int, StepEvidence] = {}
    for position, row in enumerate(rows):
        step = _read_step(fields, f"{name}[{position}]", position, row, threshold)
        if step is not None and step.step in steps:
            fields.refuse("step_twice", f"{name}[{position}]: step {step.step} occurs twice")
        elif step is not None:
            steps[step.step] = step
    return _limit_kept(tuple(steps.values()))


def _too_many(fields: _Fields, name: str, given: list[Any]) -> bool:
    if len(given) > MOST_LISTED:
        fields.refuse("list_too_long", f"{name} has {len(given):,} entries; the limit is {MOST_LISTED:,}")
    return len(given) > MOST_LISTED


def _read_threshold(fields: _Fields) -> int:
    stated = fields.rest.get("score_threshold")
    threshold = stated if isinstance(stated, int) and _is_count(stated) else THRESHOLD
    fields.notes["score_threshold"] = threshold
    return threshold


def _read_step(
    fields: _Fields, where: str, position: int, row: Mapping[str, Any], threshold: int | None
) -> StepEvidence | None:
    step = row.get("step", row.get("original_step", position))
    relevance = row.get("relevance", row.get("score"))
    response, reason, file = row.get("response") or "", row.get("reason") or "", row.get("file")
    kept = row.get("kept", row.get("passed_threshold"))
    if not _is_step(step):
        fields.refuse("step_invalid", f"{where}: step is {_format_value(step)}, not a step number")
        return None
    if relevance is not None and (isinstance(relevance, bool) or relevance not in range(6)):
        fields.refuse("score_invalid", f"{where}: score is {_format_value(relevance)} and must be 0 to 5, or null")
        return None
    if not (isinstance(response, str) and isinstance(reason, str) and isinstance(kept, bool | None)):
        fields.refuse("wrong_type", f"{where}: response and reason must be text, kept must be true or false")
        return None
    if isinstance(file, str):
        fields.files[step] = file
    if kept is None:
        kept = threshold is not None and relevance is not None and relevance >= threshold
    relevance = None if relevance is None else int(relevance)
    return StepEvidence(step, relevance, reason or _cut_between(response, REASONING, SCORE), kept, response)


def _limit_kept(steps: tuple[StepEvidence, ...]) -> tuple[StepEvidence, ...]:
    """Unset ``kept`` after the first MOST_KEPT kept images: WebJudge shows no more."""
    over = {one.step for one in [step for step in steps if step.kept][MOST_KEPT:]}
    return tuple(replace(one, kept=False) if one.step in over else one for one in steps)


def _cut_between(text: str, start: re.Pattern[str], end: re.Pattern[str], *, whole: bool = False) -> str:
    """Return the text between two headings; without the first one "", or from the beginning if ``whole``."""
    found = start.search(text)
    if found is None and not whole:
        return ""
    rest = text[found.end() if found else 0 :]
    stop = end.search(rest)
    return (rest[: stop.start()] if stop else rest).strip()


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value <= LARGEST_COUNT


def _is_step(value: Any) -> bool:
    return type(value) is int and 0 <= value <= LARGEST_STEP


def _format_value(value: Any) -> str:
    if isinstance(value, str):
        return f"'{printable(value, 40)}'"
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)[:40] if isinstance(value, int | float) else kind_of(value)
