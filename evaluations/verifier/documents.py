"""The documents of a bundle as they are checked, whether they come from a file or straight from the rows.

docs/evidence.md tells what each of them holds. Pictures and other files are not here: only their digests are.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from evaluations.verifier.canonical import digest

FORMAT = "webverdict-evidence-1"

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
