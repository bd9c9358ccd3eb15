"""The documents of a bundle, read from a package and checked against their shapes.

docs/evidence.md tells what each of them holds. Pictures and other files are not here: only their digests are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from evaluations.verifier.canonical import (
    MOST_MISMATCHES,
    Malformed,
    canonical_json,
    digest,
    mismatches,
    parse_json,
    values_in,
)
from evaluations.verifier.package import Package
from evaluations.verifier.shapes import SCHEMAS

Document = dict[str, Any]

# Documents of many lines by the attribute of `Bundle` that they become, and those of one value.
LINES = {
    "catalogue.jsonl": "catalogue",
    "trajectories.jsonl": "trajectories",
    "labels.jsonl": "labels",
    "adjudications.jsonl": "adjudications",
    "flags.jsonl": "flags",
    "reports.jsonl": "reports",
    "releases.jsonl": "releases",
    "reopenings.jsonl": "reopenings",
    "draws.jsonl": "draws",
    "informed.jsonl": "informed",
    "redactions.jsonl": "redactions",
    "final-verdicts.jsonl": "final_verdicts",
    "events.jsonl": "events",
    "anchors.jsonl": "anchors",
    "judges/runs.jsonl": "runs",
    "judges/judgments.jsonl": "judgments",
}
VALUES = {
    "submission.json": "submission",
    "people.json": "people",
    "human-label.json": "human_label",
    "import-report.json": "import_report",
    "protocol.json": "protocol",
    "claims.json": "claims",
    "reports/agreement.json": "agreement",
    "reports/comparison.json": "comparison",
}
OF_JUDGES = ("judges/runs.jsonl", "judges/judgments.jsonl", "reports/comparison.json")  # absent without judges


@dataclass
class Bundle:
    """Everything that claims are computed from. ``trajectories`` are `summary` of their lines."""

    submission: Document
    people: list[Document]
    human_label: Any
    import_report: Any
    catalogue: list[Document]
    trajectories: list[Document]
    labels: list[Document]
    adjudications: list[Document]
    flags: list[Document]
    reports: list[Document]
    releases: list[Document]
    reopenings: list[Document]
    draws: list[Document]
    informed: list[Document]
    redactions: list[Document]
    final_verdicts: list[Document]
    events: list[Document]
    anchors: list[Document] = field(default_factory=list)
    protocol: Document = field(default_factory=dict)
    claims: list[Document] | None = None
    agreement: Document | None = None
    comparison: Document | None = None
    runs: list[Document] | None = None
    judgments: list[Document] | None = None


def summary(line: Document) -> Document:
    """A line of trajectories.jsonl without its texts: steps as their number, and the ``computed`` digest of it all.

    ``screenshots`` has the SHA-256 of every step's picture, None where it has none. The digest is the one that the
    import recorded, over everything that it took.
    """
    steps = line["steps"]
    shown = [step["screenshot"] and step["screenshot"]["sha256"] for step in steps]
    taken = {
        "task_id": line["task_id"],
        "task": line["task_text"],
        "final_answer": line["final_answer"],
        "reference_length": line["reference_length"],
        "format": line["source_format"],
        "steps": [
            [step["action"], step["thought"], step["url"], step["status"], step["file_name"], sha256]
            for step, sha256 in zip(steps, shown, strict=True)
        ],
        "attachments": sorted([each["name"], each["sha256"]] for each in line["attachments"]),
    }
    kept = {name: value for name, value in line.items() if name != "steps"}
    return {**kept, "steps": len(steps), "screenshots": shown, "computed": digest(taken)}


# --- reading ---------------------------------------------------------------------------------------------------------


LONGEST_LINE = 32 << 20  # bytes
MOST_VALUES_KEPT = 10_000_000  # of all lines that stay in memory

StatedPicture = tuple[int, str, int, int]  # bytes, media type, width and height in pixels
Told = Callable[[str], None]


@dataclass
class Reading:
    """``bundle`` is None where a document is missing or malformed; ``wrong`` has at most five places of each.

    ``pictures`` has what steps state of a screenshot, by its SHA-256: one thing, unless they contradict each other.
    """

    bundle: Bundle | None = None
    wrong: list[str] = field(default_factory=list)
    pictures: dict[str, set[StatedPicture]] = field(default_factory=dict)


class Shapeless(Exception):
    """A document does not have its shape; ``places`` say where."""

    def __init__(self, places: list[str]) -> None:
        super().__init__("; ".join(places))
        self.places = places


def read_bundle(package: Package) -> Bundle:
    """The documents of a package as a whole; Shapeless where one of them is missing or malformed."""
    reading = read_documents(package)
    if reading.bundle is None:
        raise Shapeless(reading.wrong)
    return reading.bundle


def read_documents(package: Package, told: Told = lambda name: None) -> Reading:
    """Read as much as there is; ``told`` hears the name of each document before it is read."""
    names, reading = set(package.names()), Reading()
    found: dict[str, Any] = {}
    left = MOST_VALUES_KEPT
    for name in [*VALUES, *LINES]:
        if name not in names:
            if name not in OF_JUDGES:
                reading.wrong.append(f"{name} is missing")
            continue
        told(name)
        try:
            if name in VALUES:
                found[VALUES[name]] = value_of(package, name)
            else:
                found[LINES[name]], left = _lines_of(package, name, left, reading.pictures)
        except Shapeless as error:
            reading.wrong += error.places
    if not reading.wrong:
        reading.wrong += _without_judges(found["submission"], names)
    if not reading.wrong:
        found["people"], found["claims"] = found["people"]["people"], found["claims"]["claims"]
        reading.bundle = Bundle(**found)
    return reading


def _without_judges(submission: Document, names: set[str]) -> list[str]:
    """submission.json says whether judges are in the bundle, and all of their files are there, or none."""
    promised = submission["contents"]["judges"]
    return [
        f"{name} is {'missing' if promised else 'there'}, and submission.json says that judges are "
        f"{'' if promised else 'not '}in the bundle"
        for name in OF_JUDGES
        if (name in names) != promised
    ]


def value_of(package: Package, name: str) -> Any:
    """The value of a document of one; Shapeless where it is none of its shape."""
    return _shaped(_text_of(package.read(name), name), name, name)


def _lines_of(
    package: Package, name: str, left: int, pictures: dict[str, set[StatedPicture]]
) -> tuple[list[Document], int]:
    """The values of a document of many lines, of trajectories their summaries; and how many more may be kept."""
    found: list[Document] = []
    wrong: list[str] = []
    for number, raw in enumerate(split_lines(package.stream(name), name), start=1):
        line, where = raw, f"{name} line {number}"
        try:
            value = _shaped(_text_of(line, where), where, name)
            _canonical(value, line, where)
        except Shapeless as error:
            wrong += error.places
            if len(wrong) >= MOST_MISMATCHES:
                break
            continue
        if name == "trajectories.jsonl":
            wrong += _steps_in_order(value, where)
            _remember_pictures(value, pictures)
            value = summary(value)
            line = canonical_json(value).encode()
        left -= values_in(line)
        if left < 0:
            raise Shapeless([f"{where}: the documents hold more than {MOST_VALUES_KEPT:,} values"])
        if not wrong:
            found.append(value)
    if wrong:
        raise Shapeless(wrong[:MOST_MISMATCHES])
    return found, left


def _steps_in_order(line: Document, where: str) -> list[str]:
    """Decisions name steps by their index, and screenshots are kept by their place: both have to be the same."""
    wrong = [place for place, step in enumerate(line["steps"]) if step["index"] != place]
    return [f"{where}: step {wrong[0]} has another index than its place"] if wrong else []


def _remember_pictures(line: Document, pictures: dict[str, set[StatedPicture]]) -> None:
    for step in line["steps"]:
        if (shown := step["screenshot"]) is not None:
            pictures.setdefault(shown["sha256"], set()).add(
                (shown["size"], shown["media_type"], shown["width"], shown["height"])
            )


def split_lines(pieces: Iterator[bytes], name: str) -> Iterator[bytes]:
    """Lines without their line feeds; Shapeless for one that is too long, and where the last one does not end."""
    parts: list[bytes] = []
    length = 0
    for piece in pieces:
        *ended, rest = piece.split(b"\n")
        for end in ended:
            yield b"".join([*parts, end])
            parts, length = [], 0
        parts.append(rest)
        length += len(rest)
        if length > LONGEST_LINE:
            raise Shapeless([f"{name} has a line of more than {LONGEST_LINE:,} bytes"])
    if length:
        raise Shapeless([f"{name} does not end with a line feed"])


def _text_of(data: bytes, where: str) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Shapeless([f"{where} is not UTF-8 at byte {error.start}"]) from None


def _shaped(text: str, where: str, name: str) -> Any:
    try:
        value = parse_json(text)
        canonical_json(value).encode()
    except Malformed as error:
        raise Shapeless([f"{where} {error}"]) from None
    except UnicodeEncodeError:
        raise Shapeless([f"{where} has half a character (a lone surrogate), which no text has"]) from None
    if wrong := mismatches(value, SCHEMAS[name]):
        raise Shapeless([f"{where}: {each}" for each in wrong])
    return value


def _canonical(value: Any, line: bytes, where: str) -> None:
    if canonical_json(value).encode() != line:
        raise Shapeless([f"{where} is not canonical JSON (keys sorted, no spaces, no needless escapes)"])
