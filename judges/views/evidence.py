"""The evidence of a judgment, arranged for a page beside the trajectory's viewer; its texts are inert."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from annotation.forms import VERDICT_NAMES
from annotation.models import Trajectory
from annotation.records import Verdict
from judges import trace
from judges.llm import replies
from judges.models import Judgment, ModelCall
from judges.scorer import REGISTRY

LONGEST = 20_000  # characters of one text on a page; the download has the whole


@dataclass(frozen=True, slots=True)
class Point:
    """A key point with its finding ("" where the judge only listed it) and the steps that are cited for it."""

    number: int
    text: str
    finding: str
    steps: tuple[int, ...]
    reason: str


@dataclass(frozen=True, slots=True)
class JudgedStep:
    """A statement about one screenshot; ``points`` are the numbers of the key points that cite the step."""

    step: int
    relevance: int | None
    reason: str
    kept: bool
    response: str
    same_as: int | None
    points: tuple[int, ...]

    @property
    def seen(self) -> bool:
        """True if the screenshot itself was judged, and not only cited for a key point."""
        return self.relevance is not None or self.kept or self.same_as is not None or bool(self.response or self.reason)


@dataclass(frozen=True, slots=True)
class SuspiciousPassage:
    """A passage of the trajectory that speaks to the judge. ``followed``: the verdict is the one it asks for."""

    step: int | None
    field: str
    kind: str
    text: str
    followed: bool


@dataclass(frozen=True, slots=True)
class JudgmentEvidence:
    points: list[Point]
    steps: list[JudgedStep]
    suspects: list[SuspiciousPassage]
    notes: list[tuple[str, str]]

    @property
    def judged(self) -> list[JudgedStep]:
        return [step for step in self.steps if step.seen]


def read_evidence(judgment: Judgment) -> JudgmentEvidence:
    """The evidence of a judgment, of whatever came with it; what has another shape is left to the download."""
    stored = judgment.evidence if isinstance(judgment.evidence, dict) else {}
    points = [_read_point(number, given) for number, given in enumerate(_read_dicts(stored.get("key_points")), start=1)]
    citing: dict[int, list[int]] = {}
    for point in points:
        for step in point.steps:
            citing.setdefault(step, []).append(point.number)
    steps = {
        one.step: one for given in _read_dicts(stored.get("steps")) if (one := _read_step(given, citing)) is not None
    }
    for step in citing.keys() - steps.keys():
        steps[step] = JudgedStep(step, None, "", False, "", None, tuple(citing[step]))
    found = stored.get("notes")
    notes: Mapping[str, Any] = found if isinstance(found, dict) else {}
    suspects = [_read_suspect(given) for given in _read_dicts(notes.get("injection"))]
    return JudgmentEvidence(points, [steps[n] for n in sorted(steps)], suspects, list(_read_notes(notes)))


def _read_dicts(value: Any) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _read_point(number: int, given: Mapping[str, Any]) -> Point:
    steps = tuple(step for step in given.get("steps") or () if isinstance(step, int))
    return Point(
        number, _read_text(given.get("text")), _read_text(given.get("finding")), steps, _read_text(given.get("reason"))
    )


def _read_step(given: Mapping[str, Any], citing: Mapping[int, list[int]]) -> JudgedStep | None:
    index, same_as, relevance = given.get("step"), given.get("same_as"), given.get("relevance")
    if not isinstance(index, int):
        return None
    return JudgedStep(
        step=index,
        relevance=relevance if isinstance(relevance, int) else None,
        reason=_read_text(given.get("reason")),
        kept=bool(given.get("kept")),
        response=_read_text(given.get("response")),
        same_as=same_as if isinstance(same_as, int) else None,
        points=tuple(citing.get(index, ())),
    )


def _read_suspect(given: Mapping[str, Any]) -> SuspiciousPassage:
    step = given.get("step")
    return SuspiciousPassage(
        step=step if isinstance(step, int) else None,
        field=_read_text(given.get("field")),
        kind=_read_text(given.get("kind")),
        text=_read_text(given.get("text")),
        followed=bool(given.get("followed")),
    )


def _read_notes(notes: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in sorted(notes.items()):  # a database may keep an order of its own
        if name != "injection" and value not in (None, "", [], {}):
            yield str(name).replace("_", " "), _format_note(value)


def _format_note(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list) and all(isinstance(one, str | int | float) for one in value):
        return ", ".join(map(str, value))
    if isinstance(value, dict) and all(isinstance(one, str | int | float) for one in value.values()):
        return _read_text(
            ", ".join(f"{str(name).replace('_', ' ')} {_format_note(one)}" for name, one in sorted(value.items()))
        )
    return _read_text(value)


def _read_text(value: Any) -> str:
    if value is None:
        return ""
    return (value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))[:LONGEST]


def format_verdict(verdict: int | None) -> str:
    return "Unscored" if verdict is None else VERDICT_NAMES[Verdict(verdict)]


# --- the calls of a trace --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a message: a text, or a picture by its digest and the first step that has it."""

    text: str = ""
    digest: str = ""
    step: int | None = None


@dataclass(frozen=True, slots=True)
class ShownCall:
    """A call with its prompt taken apart. ``said`` is what the model wrote, ``reply`` the whole body."""

    call: ModelCall
    pruned: bool
    messages: list[tuple[str, list[Part]]]
    settings: str
    said: str
    reply: str


def build_call(call: ModelCall, steps: Mapping[str, int]) -> ShownCall:
    """A call for the page; ``steps`` maps the digest of a screenshot to its first step."""
    request, reply = trace.read_texts(call)
    body = request if isinstance(request, dict) else {}
    messages = [
        (_read_text(one.get("role")), list(_read_parts(one.get("content"), steps)))
        for one in _read_dicts(body.get("messages"))
    ]
    rest = {name: value for name, value in body.items() if name != "messages"}
    settings = json.dumps(rest, indent=1, ensure_ascii=False) if rest else ""
    return ShownCall(call, trace.is_pruned(call), messages, settings, _read_reply(reply), (reply or "")[:LONGEST])


def map_steps(trajectory: Trajectory) -> dict[str, int]:
    pairs = trajectory.steps.filter(screenshot__isnull=False).order_by("-index")
    return dict(pairs.values_list("screenshot__sha256", "index"))


def _read_parts(content: Any, steps: Mapping[str, int]) -> Iterator[Part]:
    if isinstance(content, str):
        yield Part(text=content[:LONGEST])
    for part in _read_dicts(content):
        if isinstance(part.get("text"), str):
            yield Part(text=part["text"][:LONGEST])
            continue
        picture = part.get("image_url")
        digest = _read_text(picture.get("screenshot")) if isinstance(picture, dict) else ""
        yield Part(text="" if digest else _read_text(part), digest=digest, step=steps.get(digest))


def _read_reply(reply: str | None) -> str:
    """Return the model's text in the raw body of a reply, or ""."""
    try:
        body = replies.parse(reply or "")
    except replies.UnreadableReply:
        return ""
    return _read_text(body.text or body.arguments or body.refusal)


# --- details ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Details:
    """``template`` shows ``data``, which `Kind.read_details` returned."""

    kind: str
    template: str
    data: Any


def details_of(judgment: Judgment) -> Details | None:
    return read_details(judgment.evidence.get("details") if isinstance(judgment.evidence, dict) else None)


def read_details(details: Any) -> Details | None:
    name = details.get("kind") if isinstance(details, dict) else None
    kind = REGISTRY.get(name) if isinstance(name, str) else None
    if kind is None or kind.read_details is None:
        return None
    return Details(kind.name, f"judges/details/{kind.name}.html", kind.read_details(details))
