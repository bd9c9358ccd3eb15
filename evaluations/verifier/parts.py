"""What an evidence bundle consists of, in the order in which it is written: README and metadata are made of this."""

from __future__ import annotations

from dataclasses import dataclass

MANIFEST, SIGNATURE, CRATE = "MANIFEST.json", "SIGNATURE.json", "ro-crate-metadata.json"
README, VERIFIER = "README.md", "verify.py"
PICTURES = {"image/png": "png", "image/jpeg": "jpg", "image/webp": "webp"}
MEDIA_TYPES = {
    "json": "application/json",
    "jsonl": "application/jsonl",
    "md": "text/markdown",
    "html": "text/html",
    "py": "text/x-python",
    **{suffix: kind for kind, suffix in PICTURES.items()},
}


@dataclass(frozen=True)
class Part:
    """A file, or the files of a folder where ``path`` ends in a slash, and what it says."""

    path: str
    says: str

    def holds(self, path: str) -> bool:
        return path.startswith(self.path) if self.path.endswith("/") else path == self.path


PARTS = (
    Part(README, "This text."),
    Part("submission.json", "What was submitted, under which rules, and the head of its chain of events."),
    Part("protocol.json", "The protocol that labels follow, with the wording of everything that could be chosen."),
    Part("catalogue.jsonl", "Every task of the benchmark with its key points, as they were at the freeze."),
    Part("import-report.json", "What was accepted and refused when the trajectories were imported."),
    Part("trajectories.jsonl", "What the agent did: every step, with the SHA-256 of its screenshot."),
    Part("people.json", "Who took part: pseudonyms with role and dates. A annotate, Q adjudicate, M maintain."),
    Part("labels.jsonl", "Every label with its reasons, and every revision of it."),
    Part("informed.jsonl", "What annotators were shown of judges after their own label, and what they said then."),
    Part("flags.jsonl", "Where an annotator asked an adjudicator for a look."),
    Part("reports.jsonl", "What people reported to maintainers, and the answers."),
    Part("releases.jsonl", "Trajectories that annotators gave back, and why."),
    Part("draws.jsonl", "The draws of spot checks: anybody can repeat them from their seeds."),
    Part("adjudications.jsonl", "Every decision of an adjudicator, the labels it was about, and what it changed."),
    Part("reopenings.jsonl", "Final verdicts that a maintainer had decided again, and why."),
    Part("final-verdicts.jsonl", "The outcome of every task, and what it rests on."),
    Part("human-label.json", "The same in the published form of Online-Mind2Web."),
    Part("events.jsonl", "The chain of events: each names the hash of the one before."),
    Part("anchors.jsonl", "Where heads of that chain were published."),
    Part("redactions.jsonl", "Screenshots of which parts are covered, and why."),
    Part("judges/runs.jsonl", "Runs of automatic judges. Judges decide nothing."),
    Part("judges/judgments.jsonl", "What these judges said."),
    Part("reports/agreement.json", "How far the annotators agree."),
    Part("reports/comparison.json", "How far judges agree with the final verdicts."),
    Part("reports/report.html", "Both as a page for a browser."),
    Part("claims.json", "What was found when the bundle was made; verify.py finds it again."),
    Part("schemas/", "JSON Schemas of these documents; of those with many lines, for each line."),
    Part(VERIFIER, "The program that checks all of this. It needs Python 3.10 and nothing else."),
    Part("screenshots/", "The pictures by their SHA-256. A covered one has the original's name and .redacted.png."),
    Part("attachments/", "Other files that came with trajectories, by their SHA-256."),
    Part(CRATE, "The list of files as RO-Crate 1.1."),
    Part(MANIFEST, "SHA-256 and size of every file but itself and its signature."),
    Part(SIGNATURE, "The Ed25519 signature over the bytes of MANIFEST.json."),
)


OTHER_PART = Part("", "No file of this format.")


def media_type(path: str) -> str:
    """What a file of a bundle is, by its name; attachments are of any kind."""
    return MEDIA_TYPES.get(path.rpartition(".")[2], "application/octet-stream")


def part_of(path: str) -> Part:
    """The part that a file belongs to."""
    return next((part for part in PARTS if part.holds(path)), OTHER_PART)
