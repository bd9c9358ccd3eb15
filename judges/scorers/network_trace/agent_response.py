"""Comparison of the agent's structured answer with the expected one."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from judges.scorers.network_trace.bodies import Body
from judges.scorers.network_trace.model import (
    ERROR,
    FAIL,
    NOT_GIVEN,
    PASS,
    AnswerCheck,
    Difference,
    Result,
    combine,
    compare_body,
    describe,
)
from judges.scorers.network_trace.patterns import TooCostly, shared_steps
from judges.scorers.network_trace.values import DEFAULT, MOST_ITEMS, Compared, Rules, compare, make_list, pair

LONGEST = 2_000_000  # characters of an answer that is read
DEEPEST = 100  # levels of objects and lists in it
FENCED = re.compile(r"```(?:json)?[ \t]*\n(.*?)\n?```", re.DOTALL)
OLD_NAMES = {"task_type": "performed_operation"}


class NoAnswer(Exception):
    """There is no structured answer; the message says what was found instead."""


def parse_answer(attached: str | None, final_answer: str | None) -> dict[str, Any]:
    """Return the object that the agent answered with: the attached file, else the final answer, which may be fenced.

    Raises NoAnswer.
    """
    text = attached if attached is not None else final_answer
    if not text or not text.strip():
        raise NoAnswer("the trajectory has no file agent_response.json, and the final answer is empty")
    if len(text) > LONGEST:
        raise NoAnswer(f"it has more than {LONGEST:,} characters")
    fenced = FENCED.search(text)
    for one in (text, fenced[1] if fenced else ""):
        try:
            found = json.loads(one)
        except (ValueError, RecursionError):
            continue
        if isinstance(found, dict):
            if _is_deep(found):
                raise NoAnswer(f"it is nested more than {DEEPEST} levels deep")
            return found
    what = "the file agent_response.json" if attached is not None else "the final answer"
    raise NoAnswer(f"{what} is not a JSON object")


def _is_deep(answer: dict[str, Any]) -> bool:
    """Return whether it has more than `DEEPEST` levels; without recursion, which such an answer could exhaust."""
    level: list[Any] = [answer]
    for _ in range(DEEPEST):
        level = [
            inner
            for one in level
            for inner in (one.values() if isinstance(one, dict) else one)
            if isinstance(inner, dict | list)
        ]
    return bool(level)


@shared_steps()
def run_check(check: AnswerCheck, answer: dict[str, Any], rules: Rules = DEFAULT) -> Result:
    """Compare the answer with one check, field by field. The import blanks nothing in an answer."""
    try:
        differences = tuple(_find_differences(check, answer, replace(rules, blanked=False)))
    except TooCostly as error:
        return Result(check, ERROR, str(error))
    found = combine(differences)
    if found:
        return Result(check, PASS, "The answer is as expected.", differences=differences)
    if found is None:
        return Result(check, ERROR, f"The answer cannot be compared: {describe(differences)}.", differences=differences)
    return Result(check, FAIL, f"The answer differs: {describe(differences)}.", differences=differences)


def _find_differences(check: AnswerCheck, answer: dict[str, Any], rules: Rules) -> Iterator[Difference]:
    for name in ("task_type", "status"):
        if wanted := getattr(check, name):
            actual = answer.get(name, answer.get(OLD_NAMES.get(name, name)))
            compared = compare(wanted, actual, None, rules)
            yield Difference(name, wanted, actual, compared.equal, compared.note)
    if check.retrieved_data is not NOT_GIVEN:
        yield from read_retrieved(check, answer.get("retrieved_data"), rules)
    if check.fields:
        body = Body(json.dumps(answer), "application/json")
        yield from compare_body("fields", check.fields, body, check.fields_schema, absent=Compared(False), rules=rules)


def read_retrieved(check: AnswerCheck, actual: Any, rules: Rules) -> Iterator[Difference]:
    """Yield each expected item with the item it is compared with; then the unexpected items.

    An item that is a list has alternatives; an object has exactly the expected keys. Without ``ordered`` the items may
    be in any order.
    """
    wanted, had = make_list(check.retrieved_data), make_list(actual)
    if not wanted:
        yield Difference("retrieved_data", None, actual, not had, "which is not expected")
        return
    if max(len(wanted), len(had)) > MOST_ITEMS and not check.ordered:
        note = f"lists of more than {MOST_ITEMS} items can only be compared in order"
        yield Difference("retrieved_data", None, None, None if len(wanted) == len(had) else False, note)
        return
    pairs = pair(wanted, had, check.results_schema, replace(rules, ordered=check.ordered, all_keys=True))
    for place, (partner, compared) in enumerate(pairs):
        other = had[partner] if partner is not None else None
        yield Difference(f"retrieved_data[{place}]", wanted[place], other, compared.equal, compared.note)
    left = [place for place in range(len(had)) if place not in {partner for partner, _ in pairs}]
    for place in left:
        yield Difference(f"retrieved_data[{place}]", None, had[place], False, "which is not expected")
