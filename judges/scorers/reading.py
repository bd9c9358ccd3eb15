"""Parse replies in the default mode: only an explicit answer counts; anything else is unclear and gives no verdict.

The rules of published judges, which infer more than a reply states, are in `upstream`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

from annotation.records import Finding, Verdict
from judges.llm import Reply

VERDICT = {"type": "string", "enum": ["success", "failure"]}
TEXT = {"type": "string"}

MARKS = r"[\s*_#`\"'“”‘’:=>\[\]().-]*"
STATUS = re.compile(rf"(?<!\w)(?:status|verdict)\b{MARKS}?[:=]{MARKS}", re.IGNORECASE)
NOT = r"(?<!\w)(?:not|no|without|never|neither|nor|non|cannot|\w{2,7}n['’]t)(?!\w)"
NEGATED = rf"(?:{NOT}[\s-]*(?:(?:a|an|any|the|be|fully|really|entirely|completely)\s+){{0,2}})"
HEDGES = re.compile(rf"{NOT}|(?<!\w)(?:partial(?:ly)?|partly|almost|nearly|mixed|possibl[ey]|perhaps|if)(?!\w)", re.I)
CLAUSES = re.compile(r"[,;.!?()—–]|(?<!\w)(?:but|so)(?!\w)")
SUCCESS = r"success(?:ful(?:ly)?)?|succeed(?:ed|s)?"
FAILURE = r"fail(?:ure|ed|s)?|unsuccessful(?:ly)?"
WORDS = re.compile(
    rf"(?<!\w)(?P<negated>{NEGATED})?(?<!\w)(?:(?P<success>{SUCCESS})|(?P<failure>{FAILURE}))(?!\w)", re.IGNORECASE
)
SCORE = re.compile(
    r"(?<!\w)score\b(?:\s*\(\s*1\s*(?:-|–|to)\s*5\s*\))?[\s*_#`:=\[-]*(?P<number>[1-5])(?![\d.,]*\d)(?!\w)",
    re.IGNORECASE,
)
POINT = re.compile(r"^[ \t]*(?:\d{1,3}[ \t]*[.):](?!\d)[ \t]*|[-*•][ \t]+)(?P<text>\S.*)$", re.MULTILINE)
HEADING = re.compile(r"key points[\s*:]*", re.IGNORECASE)
REASONING = re.compile(r"(?<!\w)reasoning[\s*#]*:[\s*]*", re.IGNORECASE)
LONGEST_STATEMENT = 60  # characters of a last line that is read without a marker
LONGEST_LINE = 2_000  # characters that are read after a marker


def build_object_schema(**properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def build_list_schema(items: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": dict(items)}


VERDICT_SCHEMA = build_object_schema(reason=TEXT, verdict=VERDICT)


def read_verdict(reply: Reply) -> Verdict | None:
    """Return the verdict of a structured answer, or of the text if there is none; None if it is not stated."""
    if reply.data is not None:
        said = reply.data.get("verdict")
        return {"success": Verdict.SUCCESS, "failure": Verdict.FAILURE}.get(said) if isinstance(said, str) else None
    return find_verdict(reply.text)


def find_verdict(text: str) -> Verdict | None:
    """Return the verdict stated after the last "Status:" or "Verdict:", or, without one, in a short last line.

    Only whole words count, and a negation inverts a word: "unsuccessful" and "not a success" are failure. Return None
    if both verdicts are stated, or neither.
    """
    line, _ = _find_statement(text)
    return _find_stated(line)


def _find_statement(text: str) -> tuple[str, int]:
    """Return the line that may state the verdict, and its place in the text."""
    markers = list(STATUS.finditer(text))
    if not markers:
        last = text.strip().rpartition("\n")[2]
        return (last, text.rindex(last)) if len(last) <= LONGEST_STATEMENT else ("", 0)
    rest = text[markers[-1].end() :]
    line = rest.strip().partition("\n")[0]
    return line, markers[-1].end() + rest.index(line)


def _find_stated(text: str) -> Verdict | None:
    """Return the one verdict that a line states; None for both, neither, or one after a word that makes it doubtful."""
    found = set()
    for clause in CLAUSES.split(text[:LONGEST_LINE]):
        for hit in WORDS.finditer(clause):
            doubtful = HEDGES.search(clause[: hit.start()])
            plain = (hit["success"] is None) == (hit["negated"] is not None)
            found.add(None if doubtful else Verdict.SUCCESS if plain else Verdict.FAILURE)
    return found.pop() if len(found) == 1 else None


def note_confidence(reply: Reply, verdict: Verdict | None) -> dict[str, float]:
    """Return the note ``confidence``: the probability of the tokens that spell the verdict, given the text before them.

    It is the exponentiated sum of their log probabilities, rounded to four digits. G-Eval (arXiv 2303.16634) weights
    scores with the same probabilities. A token that also holds neighbours of the word counts as a whole. No note if the
    endpoint states no log probabilities, the answer is a function call, or the verdict is not one word of the reply.
    """
    if not reply.tokens or verdict is None:
        return {}
    text = "".join(token for token, _ in reply.tokens)
    place = _find_word(text, reply, verdict)
    if place is None or reply.text.strip() not in text:
        return {}
    start, total = 0, 0.0
    for token, logarithm in reply.tokens:
        if start < place[1] and start + len(token) > place[0]:
            total += logarithm
        start += len(token)
    return {"confidence": round(math.exp(total), 4)}


def _find_word(text: str, reply: Reply, verdict: Verdict) -> tuple[int, int] | None:
    """Return where the word of the verdict begins and ends: the value in JSON, or the only word of a statement."""
    if reply.data is not None:
        word = {Verdict.SUCCESS: "success", Verdict.FAILURE: "failure"}.get(verdict)
        values = list(re.finditer(rf'"verdict"\s*:\s*"({word})"', text))
        return values[-1].span(1) if values else None
    line, place = _find_statement(text)
    words = list(WORDS.finditer(line))
    if len(words) != 1 or _find_stated(line) is not verdict:
        return None
    return place + words[0].start(), place + words[0].end()


def read_explanation(reply: Reply) -> str:
    """Return the reason of a structured answer, or the text before its last marker."""
    if reply.data is not None:
        return str(reply.data.get("reason", "")).strip()
    markers = list(STATUS.finditer(reply.text))
    said = reply.text[: markers[-1].start()] if markers else reply.text
    return re.sub(r"^[\s*#]*thoughts?[\s*]*:[\s*]*", "", said, flags=re.IGNORECASE).strip().strip("*#").strip()


def read_relevance(reply: Reply) -> int | None:
    """Return the score 1 to 5 of a structured answer or of the text; None if it states none."""
    if reply.data is None:
        return find_relevance(reply.text)
    said = reply.data.get("score")
    return said if isinstance(said, int) and not isinstance(said, bool) and 1 <= said <= 5 else None


def find_relevance(text: str) -> int | None:
    """Return the whole number 1 to 5 directly after the last "Score" with one; "10", "0" and "3.5" do not count."""
    hits = list(SCORE.finditer(text))
    return int(hits[-1]["number"]) if hits else None


def read_reason(reply: Reply) -> str:
    """Return the reason of a structured answer, or the text between its "Reasoning" heading and its "Score"."""
    if reply.data is not None:
        return str(reply.data.get("reason", "")).strip()
    said = REASONING.split(reply.text)[-1]
    score = SCORE.search(said)
    return (said[: score.start()] if score else said).strip().strip("*#").strip()


def read_points(reply: Reply) -> tuple[str, ...]:
    if reply.data is None:
        return find_points(reply.text)
    said = reply.data.get("key_points")
    return tuple(str(one).strip() for one in said if str(one).strip()) if isinstance(said, list) else ()


def find_points(text: str) -> tuple[str, ...]:
    """Return the numbered or dashed lines of a text; if it has none, all lines except the heading."""
    listed = tuple(hit["text"].strip("* \t\r") for hit in POINT.finditer(text))
    lines = (line.strip("*# \t") for line in text.splitlines())
    return listed or tuple(line for line in lines if line and not HEADING.fullmatch(line))


def read_finding(said: Any) -> Finding | None:
    """Return one of met, unmet, unclear; None for anything else."""
    return Finding(said) if isinstance(said, str) and said in set(Finding) else None


def find_cited_steps(said: Any, known: Iterable[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    numbers = (
        [one for one in said if isinstance(one, int) and not isinstance(one, bool)] if isinstance(said, list) else []
    )
    exist = frozenset(known)
    unique = dict.fromkeys(numbers)
    return tuple(one for one in unique if one in exist), tuple(one for one in unique if one not in exist)
