"""The evidence of a judgment, prepared for a page next to the trajectory viewer; its texts are inert."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from annotation.form_fields import VERDICT_NAMES
from annotation.models import Trajectory
from annotation.records import Verdict
from judges import trace
from judges.llm import replies
from judges.llm.apis import APIS
from judges.llm.apis.base import UnreadableReply
from judges.models import Judgment, ModelCall
from judges.scorer import REGISTRY
from judges.scorers.detail_values import LONGEST, dicts, mapping, read_as, text, whole

MOST = 1_000_000  # entries of a list: all, since an import has its own limits
# Where the APIs have the system text and images, in requests of the trace.
SYSTEM_FIELDS = ("system", "instructions", "systemInstruction")
IMAGE_FIELDS = ("image_url", "source", "inlineData")


@dataclass(frozen=True, slots=True)
class Point:
    """A key point with its finding ("" if the judge only listed it) and the steps that are cited for it."""

    number: int
    text: str
    finding: str
    steps: Annotated[tuple[int, ...], MOST]
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
        """Return True if the screenshot itself was judged, and not only cited for a key point."""
        return self.relevance is not None or self.kept or self.same_as is not None or bool(self.response or self.reason)


@dataclass(frozen=True, slots=True)
class SuspiciousPassage:
    """A passage of the trajectory that addresses the judge. ``followed``: the verdict is the one it asks for."""

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
    """Return the evidence of a judgment; data of an unexpected shape is only in the download."""
    stored = mapping(judgment.evidence)
    points = [read_as(Point, given, number=n) for n, given in enumerate(dicts(stored.get("key_points"), MOST), start=1)]
    citing: dict[int, list[int]] = {}
    for point in points:
        for step in point.steps:
            citing.setdefault(step, []).append(point.number)
    steps = {step: JudgedStep(step, None, "", False, "", None, tuple(numbers)) for step, numbers in citing.items()}
    for given in dicts(stored.get("steps"), MOST):
        if (index := whole(given.get("step"))) is not None:
            steps[index] = read_as(JudgedStep, given, step=index, points=tuple(citing.get(index, ())))
    notes = mapping(stored.get("notes"))
    suspects = [read_as(SuspiciousPassage, given) for given in dicts(notes.get("injection"), MOST)]
    return JudgmentEvidence(points, [steps[n] for n in sorted(steps)], suspects, list(_read_notes(notes)))


def _read_notes(notes: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in sorted(notes.items()):  # a database may store another order
        if name != "injection" and value not in (None, "", [], {}):
            yield str(name).replace("_", " "), _format_note(value)


def _format_note(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list) and all(isinstance(one, str | int | float) for one in value):
        return ", ".join(map(str, value))
    if isinstance(value, dict) and all(isinstance(one, str | int | float) for one in value.values()):
        pairs = (f"{str(name).replace('_', ' ')} {_format_note(one)}" for name, one in sorted(value.items()))
        return text(", ".join(pairs))
    return text(value)


def format_verdict(verdict: int | None) -> str:
    return "Unscored" if verdict is None else VERDICT_NAMES[Verdict(verdict)]


# --- the calls of a trace --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a message: a text, or an image by its digest and the first step that has it."""

    text: str = ""
    digest: str = ""
    step: int | None = None


@dataclass(frozen=True, slots=True)
class ShownCall:
    """A call with its prompt split into parts. ``said`` is the model's text, ``reply`` the whole body."""

    call: ModelCall
    pruned: bool
    messages: list[tuple[str, list[Part]]]
    settings: str
    said: str
    reply: str


def build_call(call: ModelCall, steps: Mapping[str, int], api: str = "chat") -> ShownCall:
    """Return a call for the page; ``steps`` maps the digest of a screenshot to its first step."""
    request, reply = trace.read_texts(call)
    body = mapping(request)
    messages = [("system", list(_read_parts(body[name], steps))) for name in SYSTEM_FIELDS if name in body]
    messages += [
        (text(one.get("role")), list(_read_parts(one.get("content", one.get("parts")), steps)))
        for one in dicts(body.get(APIS[api].messages), MOST)
    ]
    rest = {name: value for name, value in body.items() if name not in (*SYSTEM_FIELDS, APIS[api].messages)}
    settings = json.dumps(rest, indent=1, ensure_ascii=False) if rest else ""
    return ShownCall(call, trace.is_pruned(call), messages, settings, _read_reply(reply, api), (reply or "")[:LONGEST])


def map_steps(trajectory: Trajectory) -> dict[str, int]:
    pairs = trajectory.steps.filter(screenshot__isnull=False).order_by("-index")
    return dict(pairs.values_list("screenshot__sha256", "index"))


def _read_parts(content: Any, steps: Mapping[str, int]) -> Iterator[Part]:
    if isinstance(content, str):
        yield Part(text=content[:LONGEST])
    if isinstance(content, dict):
        yield from _read_parts(content.get("parts"), steps)
    for part in dicts(content, MOST):
        if isinstance(part.get("text"), str):
            yield Part(text=part["text"][:LONGEST])
            continue
        pictures = [mapping(part.get(name)) for name in IMAGE_FIELDS]
        digest = next((found for one in pictures if (found := text(one.get("screenshot")))), "")
        yield Part(text="" if digest else text(part), digest=digest, step=steps.get(digest))


def _read_reply(reply: str | None, api: str) -> str:
    """Return the model's text in the raw body of a reply, or ""."""
    try:
        body = replies.parse(reply or "", api)
    except UnreadableReply:
        return ""
    return text(body.text or body.arguments or body.refusal)


# --- details ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Details:
    """``template`` shows ``data``, which `Kind.read_details` returned."""

    kind: str
    template: str
    data: Any


def details_of(judgment: Judgment) -> Details | None:
    return read_details(mapping(judgment.evidence).get("details"))


def read_details(details: Any) -> Details | None:
    kind = REGISTRY.get(text(mapping(details).get("kind")))
    if kind is None or kind.read_details is None:
        return None
    return Details(kind.name, f"judges/details/{kind.name}.html", kind.read_details(details))
