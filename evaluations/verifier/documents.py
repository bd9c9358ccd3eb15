"""The documents of a bundle, read from a package and checked against their shapes.

docs/evidence.md describes their content. Images and other files are not loaded, only their digests.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from evaluations.verifier.canonical import (
    MOST_MISMATCHES,
    Malformed,
    canonical_json,
    count_values,
    digest,
    mismatches,
    parse_json,
)
from evaluations.verifier.package import Package
from evaluations.verifier.shapes import SCHEMAS

Document = dict[str, Any]


MANIFEST, SIGNATURE = "MANIFEST.json", "SIGNATURE.json"
# Attributes of `Bundle` by document: `LINES` are documents of many lines, `VALUES` those of one value.
ATTRIBUTES = {
    name: name.rpartition("/")[2].partition(".")[0].replace("-", "_")
    for name in SCHEMAS
    if name not in (MANIFEST, SIGNATURE)
}
LINES = {name: attribute for name, attribute in ATTRIBUTES.items() if name.endswith(".jsonl")}
VALUES = {name: attribute for name, attribute in ATTRIBUTES.items() if name not in LINES}
OF_JUDGES = ("judges/runs.jsonl", "judges/judgments.jsonl", "reports/comparison.json")  # absent without judges
ROBUSTNESS = "judges/robustness.jsonl"
OF_SAMPLE = ("sample-plan.json", "sample-items.jsonl", "reports/estimate.json")  # only with a sample plan
IF_ANY = (ROBUSTNESS, *OF_SAMPLE)  # absent if empty
LONGEST_LINE = 32 << 20  # bytes
MOST_VALUES_KEPT = 10_000_000  # of all lines that stay in memory


class Shapeless(Exception):
    """Missing or malformed documents; ``places`` states what is wrong and where, at most five per document."""

    def __init__(self, places: list[str]) -> None:
        super().__init__("; ".join(places))
        self.places = places


@dataclass
class Bundle:
    """The documents from which claims are computed. ``trajectories`` has the `summary` of each line.

    ``pictures`` has the data that steps state for a screenshot, by its SHA-256: bytes, media type, width and height in
    pixels. It is one tuple, unless steps contradict each other.
    """

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
    robustness: list[Document] | None = None
    sample_plan: Document | None = None
    sample_items: list[Document] | None = None
    estimate: Document | None = None
    pictures: dict[str, set[tuple[int, str, int, int]]] = field(default_factory=dict, compare=False)

    def newest_labels(self) -> dict[str, dict[int, Document]]:
        """Return the row of the last revision of each label, by task and slot."""
        newest: dict[str, dict[int, Document]] = {}
        for row in self.labels:
            slots, facts = newest.setdefault(row["facts"]["task_id"], {}), row["facts"]
            if facts["slot"] not in slots or slots[facts["slot"]]["facts"]["revision"] < facts["revision"]:
                slots[facts["slot"]] = row
        return newest

    @property
    def undrawn(self) -> set[str]:
        """Return the tasks that a sample plan did not draw."""
        return {item["task_id"] for item in self.sample_items or () if item["position"] is None}

    @property
    def left_out(self) -> set[str]:
        """Return the tasks that are not drawn, or that the stop left out, so that nobody labels their trajectories."""
        return {item["task_id"] for item in self.sample_items or ()} - {item["task_id"] for item in self.in_sample()}

    def in_sample(self) -> list[Document]:
        """Return the items that people label, in the order of the plan."""
        stopped = (self.sample_plan or {}).get("stopped")
        drawn = [item for item in self.sample_items or () if item["position"] is not None]
        kept = [item for item in drawn if stopped is None or item["position"] < stopped["labelled"]]
        return sorted(kept, key=lambda item: int(item["position"]))

    def to_label(self) -> list[Document]:
        """Return the trajectories that people label: those of the sample, or else all."""
        left_out = self.left_out
        return [line for line in self.trajectories if line["task_id"] not in left_out]

    def newest_redactions(self) -> dict[str, Document]:
        """Return the row of the last revision of each redaction, by the SHA-256 of the original."""
        return {row["original"]: row for row in sorted(self.redactions, key=lambda row: int(row["revision"]))}


def summary(line: Document) -> Document:
    """Return a line of trajectories.jsonl with the number of steps instead of the steps, and a ``computed`` digest.

    ``screenshots`` has the SHA-256 of the screenshot of each step, or None. The digest covers all that was imported, as
    the import records it.
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
    return {**line, "steps": len(steps), "screenshots": shown, "computed": digest(taken)}


def read_bundle(package: Package) -> Bundle:
    """Load all documents; raise Shapeless, with the errors of all of them, if one is missing or malformed."""
    names = set(package.names())
    fields: dict[str, Any] = {"pictures": {}}
    wrong: list[str] = []
    left = MOST_VALUES_KEPT
    for name in [*VALUES, *LINES]:
        if name not in names:
            wrong += [] if name in (*OF_JUDGES, *IF_ANY) else [f"{name} is missing"]
            continue
        try:
            if name in VALUES:
                fields[VALUES[name]] = read_value(package, name)
            else:
                fields[LINES[name]], left = _read_lines(package, name, left, fields["pictures"])
        except Shapeless as error:
            wrong += error.places
    wrong = wrong or [*_check_judges(fields["submission"], names), *_check_sample(names)]
    if wrong:
        raise Shapeless(wrong)
    fields["people"], fields["claims"] = fields["people"]["people"], fields["claims"]["claims"]
    return Bundle(**fields)


def _check_judges(submission: Document, names: set[str]) -> list[str]:
    """Return errors if the judge files do not match submission.json, which states that all are included or none."""
    promised = submission["contents"]["judges"]
    states, there = ("", "missing") if promised else ("not ", "there")
    says = f"is {there}, and submission.json says that judges are {states}in the bundle"
    wrong = [name for name in OF_JUDGES if (name in names) != promised]
    wrong += [ROBUSTNESS] if ROBUSTNESS in names and not promised else []
    return [f"{name} {says}" for name in wrong]


def _check_sample(names: set[str]) -> list[str]:
    there = [name for name in OF_SAMPLE if name in names]
    return [f"{name} is missing, and {there[0]} is there" for name in OF_SAMPLE if there and name not in names]


def read_value(package: Package, name: str) -> Any:
    return _parse_document(package.read(name), name, name)


def _read_lines(package: Package, name: str, left: int, pictures: dict[str, set[Any]]) -> tuple[list[Document], int]:
    """Return the values of a document of many lines (summaries of trajectories), and how many more are allowed."""
    lines: list[Document] = []
    wrong: list[str] = []
    for number, line in enumerate(split_lines(package.stream(name), name), start=1):
        where = f"{name} line {number}"
        try:
            value = _parse_document(line, where, name)
            if canonical_json(value).encode() != line:
                raise Shapeless([f"{where} is not canonical JSON (keys sorted, no spaces, no needless escapes)"])
        except Shapeless as error:
            wrong += error.places
            if len(wrong) >= MOST_MISMATCHES:
                break
            continue
        if name == "trajectories.jsonl":
            wrong += _read_steps(value, where, pictures)
            value = summary(value)
            line = canonical_json(value).encode()  # noqa: PLW2901 - what stays in memory
        left -= count_values(line)
        if left < 0:
            raise Shapeless([f"{where}: the documents hold more than {MOST_VALUES_KEPT:,} values"])
        if not wrong:
            lines.append(value)
    if wrong:
        raise Shapeless(wrong[:MOST_MISMATCHES])
    return lines, left


def _read_steps(line: Document, where: str, pictures: dict[str, set[Any]]) -> list[str]:
    """Collect ``pictures``; return an error if the index of a step (for decisions) is not its place (for images)."""
    for shown in filter(None, (step["screenshot"] for step in line["steps"])):
        stated = shown["size"], shown["media_type"], shown["width"], shown["height"]
        pictures.setdefault(shown["sha256"], set()).add(stated)
    odd = [place for place, step in enumerate(line["steps"]) if step["index"] != place]
    return [f"{where}: the index of step {odd[0]} differs from its place"] if odd else []


def split_lines(pieces: Iterator[bytes], name: str) -> Iterator[bytes]:
    """Yield lines without line feeds; raise Shapeless if one is too long, or the last one has no line feed."""
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


def _parse_document(data: bytes, where: str, name: str) -> Any:
    try:
        value = parse_json(data.decode())
        canonical_json(value).encode()
    except Malformed as error:
        raise Shapeless([f"{where} {error}"]) from None
    except UnicodeDecodeError as error:
        raise Shapeless([f"{where} is not UTF-8 at byte {error.start}"]) from None
    except UnicodeEncodeError:
        raise Shapeless([f"{where} has a lone surrogate, which is not text"]) from None
    if wrong := mismatches(value, SCHEMAS[name]):
        raise Shapeless([f"{where}: {each}" for each in wrong])
    return value
