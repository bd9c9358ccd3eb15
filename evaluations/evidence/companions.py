"""The files that explain a bundle: README.md, and ro-crate-metadata.json with the list of its files."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable

from evaluations.verifier.canonical import INDENTED
from evaluations.verifier.contents import CRATE, PICTURES, README, VERIFIER, Listed
from evaluations.verifier.documents import MANIFEST, SIGNATURE, Bundle, Document
from evaluations.verifier.findings import plural
from evaluations.verifier.rules import NOT_PROVED, PROVED

MEDIA_TYPES = {
    "json": "application/json",
    "jsonl": "application/jsonl",
    "md": "text/markdown",
    "html": "text/html",
    "py": "text/x-python",
    **{suffix: kind for kind, suffix in PICTURES.items()},
}
CRATE_CONTEXT = ["https://w3id.org/ro/crate/1.1/context", {"sha256": "https://schema.org/sha256"}]

# The files of a bundle in their order, with a description; folders end in a slash.
PARTS = {
    README: "This text.",
    "submission.json": "The submission, its rules, and the head of its chain of events.",
    "protocol.json": "The protocol of the labels, with the wording of all options.",
    "catalogue.jsonl": "All tasks of the benchmark with their key points at the freeze.",
    "import-report.json": "What the import of the trajectories accepted and rejected.",
    "trajectories.jsonl": "The agent's steps, with the SHA-256 of each screenshot.",
    "people.json": "Members: pseudonyms with role and dates. A annotator, Q adjudicator, M maintainer.",
    "labels.jsonl": "All labels with their reasons, and all revisions.",
    "informed.jsonl": "Judgments shown to annotators after their own label, and their answers.",
    "flags.jsonl": "Flags of annotators for an adjudicator.",
    "reports.jsonl": "Reports to maintainers, and the answers.",
    "releases.jsonl": "Trajectories that annotators declined, and why.",
    "draws.jsonl": "The draws of spot checks, reproducible from their seeds.",
    "adjudications.jsonl": "All decisions of adjudicators, the labels before them, and their changes.",
    "reopenings.jsonl": "Final verdicts that a maintainer reopened, and why.",
    "sample-plan.json": "The plan of the sample that people labelled: its terms, and its seed.",
    "sample-items.jsonl": "Every trajectory with its stratum, judge's verdict, probability and place in the draw.",
    "final-verdicts.jsonl": "The outcome of every task, and its basis.",
    "human-label.json": "The same in the published format of Online-Mind2Web.",
    "events.jsonl": "The chain of events: each has the hash of the one before.",
    "anchors.jsonl": "Where heads of that chain were published.",
    "redactions.jsonl": "Screenshots with covered parts, and why.",
    "judges/runs.jsonl": "Runs of automatic judges. Judges decide nothing.",
    "judges/judgments.jsonl": "The judgments of these judges.",
    "judges/robustness.jsonl": "Verdicts of judges on changed copies of failures.",
    "reports/estimate.json": "The success rate of all trajectories, estimated from the labelled ones.",
    "reports/agreement.json": "Agreement of the annotators.",
    "reports/comparison.json": "Agreement of judges with the final verdicts.",
    "reports/report.html": "Both as a web page.",
    "claims.json": "The findings when the bundle was created; verify.py computes them again.",
    "schemas/": "JSON Schemas of these documents, or of each line of documents with many lines.",
    VERIFIER: "The program that checks all of this. It needs only Python 3.10.",
    "screenshots/": "The screenshots, named by SHA-256. A covered one has the original's name and .redacted.png.",
    "attachments/": "Other files of the trajectories, named by SHA-256.",
    CRATE: "The list of files as RO-Crate 1.1.",
    MANIFEST: "SHA-256 and size of every file except this one and its signature.",
    SIGNATURE: "The Ed25519 signature over the bytes of MANIFEST.json.",
}


def media_type(path: str) -> str:
    return MEDIA_TYPES.get(path.rpartition(".")[2], "application/octet-stream")


def part_of(path: str) -> str | None:
    folder = path.partition("/")[0] + "/"
    return path if path in PARTS else folder if folder in PARTS else None


def build_crate(bundle: Bundle, files: Iterable[Listed]) -> Document:
    """Return the metadata; ``files`` are all files except the metadata, manifest and signature.

    The manifest lists this file with its digest, so neither manifest nor signature has a size or digest here.
    """
    submission = bundle.submission
    last = bundle.events[-1]["at"] if bundle.events else submission["created_at"]
    described = [_crate_file(*listed) for listed in sorted(files)]
    described += [{"@id": path, "@type": "File", "encodingFormat": media_type(path)} for path in (MANIFEST, SIGNATURE)]
    name = f"{submission['agent']} on {submission['benchmark_name']}"
    root = {
        "@id": "./",
        "@type": "Dataset",
        "name": f"Evidence of {name}",
        "description": (
            f"How people judged {submission['trajectories']} trajectories of {submission['agent']}: labels, "
            "adjudications, spot checks, the chain of events, and a program that checks them."
        ),
        "datePublished": submission["frozen_at"] or last,
        "identifier": submission["chain"]["head"],
        "license": {"@id": "#license"},
        "about": [{"@id": "#agent"}, {"@id": "#benchmark"}],
        "hasPart": [{"@id": each["@id"]} for each in described],
    }
    itself = {
        "@id": CRATE,
        "@type": "CreativeWork",
        "conformsTo": {"@id": "https://w3id.org/ro/crate/1.1"},
        "about": {"@id": "./"},
    }
    license_ = {
        "@id": "#license",
        "@type": "CreativeWork",
        "name": "See the benchmark",
        "description": (
            "Tasks and their use are under the terms of the benchmark, everything else under the terms of "
            "the submitter."
        ),
    }
    agent = {"@id": "#agent", "@type": "SoftwareApplication", "name": submission["agent"]}
    benchmark = {"@id": "#benchmark", "@type": "CreativeWork", "name": submission["benchmark_name"]}
    entities = [itself, root, license_, agent, benchmark | {"identifier": submission["benchmark"]}]
    return {"@context": CRATE_CONTEXT, "@graph": [*entities, *described]}


def _crate_file(path: str, sha256: str, size: int) -> Document:
    code = {"@type": ["File", "SoftwareSourceCode"], "programmingLanguage": "Python"}
    return {
        "@id": path,
        "@type": "File",
        "name": path.rpartition("/")[2],
        "description": PARTS.get(part_of(path) or "", "This file is not part of the format."),
        "contentSize": str(size),
        "encodingFormat": media_type(path),
        "sha256": sha256,
    } | (code if path == VERIFIER else {})


def crate_digest(bundle: Bundle, files: Iterable[Listed]) -> str:
    """Return the SHA-256 of the written metadata, in hex, without the whole text in memory."""
    hashed = hashlib.sha256()
    for piece in INDENTED.iterencode(build_crate(bundle, files)):
        hashed.update(piece.encode())
    hashed.update(b"\n")
    return hashed.hexdigest()


CHECK_COMMAND = "python3 -I verify.py . --keys ../webverdict-keys.json"
TO_CHECK = f"""\
## Check it

    python3 -I verify.py .

It needs Python 3.10 or newer, no package and no network, and works on the unpacked folder or on the zip; `-I` keeps
Python from taking anything else out of the folder. A program that comes with what it checks could have been changed
with it: take `verify.py` from the makers of WebVerdict, or from somebody else you trust, where you can.

The signature proves who made the bundle only if you know the key from elsewhere. Fetch the keys that the submitter
publishes (`/.well-known/webverdict-keys.json` of their instance) and give them:

    {CHECK_COMMAND}

It prints PASS, FAIL or NOTE for every check, and ends with 0 where nothing failed. Give what else you know, too:

- `--tasks FILE`: the task list of your benchmark (JSON). Otherwise only the submitter says which tasks there are.
- `--chain ID` and `--head HASH`: hashes of the chain that you noted before. A chain that was written anew then fails.
- `--anchors FILE`: heads of the chain from where they were published.
- `--revocations FILE`: bundles and keys that the submitter has revoked (`/.well-known/webverdict-revocations.json`).

To run other judges or people over the trajectories, open the bundle in WebVerdict (`import_audit`) and export them as
v2 packages (`export_submission --format trajectories-v2`).
"""

CANNOT = "\n".join(f"- {limit[0].upper()}{limit[1:]}." for limit in NOT_PROVED)
LIMITS_IN_WORDS = f"## What it cannot prove\n\n{CANNOT}\n\nIt does show that {PROVED}.\n"


def build_readme(submission: Document, paths: Collection[str]) -> bytes:
    title = f"# {_plain_line(submission['agent'])} on {_plain_line(submission['benchmark_name'])}\n"
    says = (
        "An evidence bundle of WebVerdict: the agent's actions, the labels of people with their reasons, "
        "and how they became one verdict per task.\n"
    )
    present = set(map(part_of, paths))
    rows = [f"| `{path}` | {what} |" for path, what in PARTS.items() if path in present]
    files = "\n".join(["## Files\n", "| file | content |", "|---|---|", *rows]) + "\n"
    standing = _standing_in_words(submission, sampled="sample-plan.json" in present)
    blocks = [title, says, standing, files, TO_CHECK, LIMITS_IN_WORDS]
    return "\n".join(blocks).encode()


def _standing_in_words(submission: Document, *, sampled: bool) -> str:
    frozen, labels = submission["frozen_at"], submission["required_labels"]
    each = f"{'of which a planned sample has ' if sampled else ''}{plural(labels, 'label')} each"
    lines = [
        f"- {plural(submission['trajectories'], 'trajectory', 'trajectories')}, {each}",
        f"- version {submission['protocol_version']} of the protocol",
        f"- {'frozen at ' + frozen if frozen else 'not frozen: labels could still change'}",
        f"- head of the chain of events: `{submission['chain']['head'] or 'none'}`",
    ]
    if submission["contents"]["screenshots"] == "digests":
        lines.append("- without screenshots and attachments: only their SHA-256 are included")
    if submission["partial"]:
        missing = plural(len(submission["missing"]), "thing is", "things are")
        lines.append(f"- **partial**: {missing} missing; `submission.json` lists what")
    return "\n".join(lines) + "\n"


def _plain_line(text: str) -> str:
    """Escape a name so that it cannot be read as markup."""
    plain = " ".join(text.split())
    return "".join(f"\\{letter}" if letter in "\\`*_[]<>#|!" else letter for letter in plain)
