"""Detection of passages in a trajectory that address its judge instead of the task, so that people see them.

They change no verdict: prompts tell a judge that everything in the data is only data. They are noted with the
verdict: the step, and whether the verdict is the one that they ask for. No list of patterns is complete; this one is
chosen to match nothing on ordinary pages and agents.
"""

from __future__ import annotations

import base64
import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from types import MappingProxyType
from urllib.parse import unquote_plus

from annotation.records import Verdict
from judges.scorer import Score, StepEvidence, Subject

LONGEST_TEXT = 100_000  # characters of one field that are searched, from its start
LONGEST_TRAJECTORY = 500_000  # characters searched in a trajectory: half a second, while other calls wait
LONGEST_PASSAGE = 200  # characters of a passage that are stored
MOST = 40  # passages stored for one trajectory

SCREENSHOT = "screenshot"  # the field name of a judge's text about a screenshot
OF_A_REPLY = frozenset({"status line", "reply"})  # kinds that are normal in the reply of a judge

RULES = r"(?:instructions?|criteria|criterion|rules|guidelines|prompts?|rubric|system message)"
JUDGE = r"(?:judge|evaluator|grader|annotator|reviewer|adjudicator|scorer|language model|llm|ai model)"
GOOD = r"(?:success(?:ful(?:ly)?)?|passed|met)"
BAD = r"(?:fail(?:ure|ed)?|unsuccessful|not successful)"
IGNORE = r"(?:ignore|disregard|forget|override|bypass|do not follow|don't follow)"
SAY = r"(?:answer|reply|respond|output|return|conclude|give)"
RATE = r"(?:mark|judge|rate|score|label|grade|classify|count|treat|consider)"
FILLER = r"(?: only| always| exactly| with| that| a| the| is|:|\"|')"
QUOTE = r"[\"'`*_]{0,6}"
NOT_THE_AGENT = r"(?<!\bI )(?<!\bI will )(?<!\bI can )(?<!\bI should )(?<!\bI'll )(?<!\bwe can )"
LINE_START = r"^[ \t>*_#`\"'\[-]{0,12}"
# Every repetition is bounded, so that a malicious text cannot slow down the matching.
PATTERNS = {
    kind: re.compile("|".join(ways), re.I | re.M)
    for kind, ways in {
        "override": (rf"{NOT_THE_AGENT}\b{IGNORE}\b[^.\n]{{0,40}}\b{RULES}\b",),
        "addressed": (
            (
                rf"\b(?:note|message|attention|instructions?|dear|important)\W{{1,3}}(?:(?:to|for) )?"
                rf"(?:the |any |all )?{JUDGE}s?\b"
            ),
            rf"\b(?:you are|you're|act as) (?:now )?(?:an? |the )?(?:\w{{1,20}} ){{0,2}}{JUDGE}\b",
            r"\b(?:new|updated|real|additional) (?:system )?(?:instructions?|rules|criteria) ?:",
        ),
        "verdict": (
            (
                rf"\b{SAY}\b{FILLER}{{0,6}} ?{QUOTE}(?:(?:verdict|status)\W{{1,4}}(?:of )?)?{QUOTE}"
                r"\b(?P<v1>success|failure)\b(?! message| page| notification| rate| stor| factor)"
            ),
            rf"\b{RATE}\b (?:this|the|it)\b(?: \w{{1,20}}){{0,3}} as (?:an? )?{QUOTE}\b(?P<v2>{GOOD}|{BAD})\b",
        ),
        "status line": (
            (
                rf"{LINE_START}(?:status|final verdict|verdict|predicted.?label){QUOTE}"
                rf"[ \t]{{0,4}}[:=][ \t\"'`*_]{{0,10}}(?P<v3>{GOOD}|{BAD}|[01])\b"
            ),
        ),
        "reply": (
            (
                r"[{,]\s{0,20}\\?[\"'](?:verdict|status|predicted_label|label|score)\\?[\"']\s{0,4}:\s{0,4}\\?[\"']?"
                rf"(?P<v4>{GOOD}|{BAD}|[01])\b"
            ),
        ),
        "role": (
            r"<\|(?:im_start|im_end|system|user|assistant|start_header_id|end_header_id|eot_id|endoftext)\|>",
            r"\[/?INST\]|<</?SYS>>",
            r"</?(?:system|assistant|developer)(?:[-_](?:message|prompt|reminder))?>",
            rf"{LINE_START}(?:system|developer)(?: message| prompt)?{QUOTE}\]?[ \t]?:[ \t]?\S",
            r"[{,]\s{0,20}[\"']role[\"']\s{0,4}:\s{0,4}[\"'](?:system|assistant|developer)[\"']",
        ),
        "delimiter": (
            r"<\s?/?\s?(?:record|data|trajectory|untrusted)\b[^>\n]{0,80}>",
            r"^\W{0,8}(?:end|begin|start) of (?:the )?(?:record|data|trajectory|untrusted|input)\b",
            r"\bEND[ _-](?:OF[ _-])?DATA\b",
        ),
        "tool call": (
            r"</?(?:tool_call|function_calls?|tool_use|invoke)\b[^>\n]{0,80}>",
            r"\\?[\"']tool_calls\\?[\"']\s{0,4}:",
            r"\bto=functions\.\w",
        ),
    }.items()
}
HIDDEN = re.compile("[\u00ad\u200b-\u200f\u2060-\u2064\ufeff\u202a-\u202e\u2066-\u2069]")
SPLIT_WORDS = re.compile("(?:[A-Za-z][\u00ad\u200b-\u200d\u2060-\u2064\ufeff]){3}")  # words with hidden characters
REVERSED = re.compile("[\u202d\u202e]")
TAGS = re.compile(
    "(?<![\U0001f3f4\U000e0020-\U000e007e])[\U000e0020-\U000e007e]{3,}"
)  # invisible letters; not the flags of regions
CONTROLS = re.compile(r"[\x00-\x08\x0e-\x1f\x7f]")
UNSEEN = (
    ("invisible characters", SPLIT_WORDS),
    ("invisible characters", TAGS),
    ("reversed text", REVERSED),
    ("control characters", CONTROLS),
)
ENCODED = re.compile(r"[A-Za-z0-9+/_-]{24,4000}={0,2}")


@dataclass(frozen=True, slots=True)
class Passage:
    kind: str
    text: str
    asks: Verdict | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a passage: the field of a step, or of the trajectory if ``step`` is None."""

    field: str
    step: int | None
    passage: Passage


def find_suspicious(text: str) -> list[Passage]:
    """Return the passages of ``text`` that look like instructions to a judge, at most one for each kind and verdict."""
    text = text[:LONGEST_TEXT]
    readable = unicodedata.normalize("NFKC", HIDDEN.sub("", text))[:LONGEST_TEXT]
    return [*_find_worded(readable), *_find_encoded(readable), *_find_unseen(text)]


def _find_worded(text: str) -> Iterator[Passage]:
    for kind, pattern in PATTERNS.items():
        seen = set()
        for match in pattern.finditer(text):
            asks = _find_asked(match)
            if asks not in seen:
                seen.add(asks)
                yield Passage(kind, _make_visible(_cut_around(text, match)), asks)


def _find_asked(match: re.Match[str]) -> Verdict | None:
    said = next((value.lower() for value in match.groupdict().values() if value), "")
    if not said:
        return None
    return Verdict.FAILURE if said == "0" or re.fullmatch(BAD, said) else Verdict.SUCCESS


def _find_encoded(text: str) -> Iterator[Passage]:
    """Yield passages that are encoded in base64; skip data that does not decode to text."""
    found: dict[Verdict | None, Passage] = {}
    for match in ENCODED.finditer(text):
        body = match[0].rstrip("=").replace("-", "+").replace("_", "/")
        try:
            decoded = base64.b64decode(body + "=" * (-len(body) % 4)).decode()
        except ValueError:
            continue
        for passage in _find_worded(decoded):
            found.setdefault(passage.asks, replace(passage, kind="encoded"))
    yield from found.values()


def _find_unseen(text: str) -> Iterator[Passage]:
    for kind, pattern in UNSEEN:
        if match := pattern.search(text):
            yield Passage(kind, _make_visible(_cut_around(text, match)))


def _cut_around(text: str, match: re.Match[str]) -> str:
    start = max(0, match.start() - 40)
    return text[start : start + LONGEST_PASSAGE]


def _make_visible(text: str) -> str:
    """Return the text on one line, with every unprintable character as its code point."""
    one_line = re.sub(r"[ \n\r\t]+", " ", text).strip()
    return "".join(c if c.isprintable() else f"<U+{ord(c):04X}>" for c in one_line)[:LONGEST_PASSAGE]


def list_places(subject: Subject, looks: Iterable[StepEvidence] = ()) -> list[Place]:
    """Return the suspicious passages in texts of the task, the agent and the URLs, in step order, at most `MOST`.

    The text of a page is only in its screenshot; ``looks`` are a judge's texts about the screenshots, and may quote it.
    """
    found: list[Place] = []
    left = LONGEST_TRAJECTORY
    for field, step, text in _list_texts(subject, looks):
        plain = unquote_plus(text[:LONGEST_TEXT]) if field == "url" else text[:LONGEST_TEXT]
        passages = (one for one in find_suspicious(plain[:left]) if field != SCREENSHOT or one.kind not in OF_A_REPLY)
        found += [Place(field, step, passage) for passage in passages]
        left -= len(plain)
        if len(found) >= MOST or left <= 0:
            break
    return found[:MOST]


def _list_texts(subject: Subject, looks: Iterable[StepEvidence]) -> Iterator[tuple[str, int | None, str]]:
    record = subject.record
    yield "task", None, record.task_text
    yield "website", None, subject.website
    for point in subject.key_points:
        yield "key point", None, point
    for step in record.steps:
        yield "action", step.index, step.action
        yield "thought", step.index, step.thought or ""
        yield "url", step.index, step.url or ""
    yield "final answer", None, record.final_answer or ""
    for look in looks:
        if look.same_as is None:
            yield SCREENSHOT, look.step, look.reason


def add_suspicions(score: Score, subject: Subject) -> Score:
    """Return the score with ``notes["injection"]``: the passages, and which of them ask for the verdict that was given.

    Each is ``{"step", "field", "kind", "text", "asks", "followed"}``. ``asks`` is a verdict's number or None.
    ``followed`` is True if the verdict is the one that it asks for; this does not prove that it was the reason.
    A score without such passages is returned unchanged.
    """
    found = [
        {
            "step": place.step,
            "field": place.field,
            **asdict(place.passage),
            "followed": place.passage.asks is not None and place.passage.asks == score.verdict,
        }
        for place in list_places(subject, score.steps)
    ]
    return replace(score, notes=MappingProxyType({**score.notes, "injection": found})) if found else score
