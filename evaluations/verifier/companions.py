"""The files that explain a bundle: README, metadata and schemas are made of the documents, and nothing else."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable

from evaluations.verifier.canonical import as_text, text_digest
from evaluations.verifier.documents import Bundle, Document
from evaluations.verifier.findings import Finding, failed, noted, passed, plural
from evaluations.verifier.package import Package
from evaluations.verifier.rules import NOT_PROVED, PROVED
from evaluations.verifier.shapes import SCHEMAS

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


# The files of a bundle, in the order in which they are written, and what each says; folders end in a slash.
PARTS = {
    README: "This text.",
    "submission.json": "What was submitted, under which rules, and the head of its chain of events.",
    "protocol.json": "The protocol that labels follow, with the wording of everything that could be chosen.",
    "catalogue.jsonl": "Every task of the benchmark with its key points, as they were at the freeze.",
    "import-report.json": "What was accepted and refused when the trajectories were imported.",
    "trajectories.jsonl": "What the agent did: every step, with the SHA-256 of its screenshot.",
    "people.json": "Who took part: pseudonyms with role and dates. A annotate, Q adjudicate, M maintain.",
    "labels.jsonl": "Every label with its reasons, and every revision of it.",
    "informed.jsonl": "What annotators were shown of judges after their own label, and what they said then.",
    "flags.jsonl": "Where an annotator asked an adjudicator for a look.",
    "reports.jsonl": "What people reported to maintainers, and the answers.",
    "releases.jsonl": "Trajectories that annotators gave back, and why.",
    "draws.jsonl": "The draws of spot checks: anybody can repeat them from their seeds.",
    "adjudications.jsonl": "Every decision of an adjudicator, the labels it was about, and what it changed.",
    "reopenings.jsonl": "Final verdicts that a maintainer had decided again, and why.",
    "final-verdicts.jsonl": "The outcome of every task, and what it rests on.",
    "human-label.json": "The same in the published form of Online-Mind2Web.",
    "events.jsonl": "The chain of events: each names the hash of the one before.",
    "anchors.jsonl": "Where heads of that chain were published.",
    "redactions.jsonl": "Screenshots of which parts are covered, and why.",
    "judges/runs.jsonl": "Runs of automatic judges. Judges decide nothing.",
    "judges/judgments.jsonl": "What these judges said.",
    "reports/agreement.json": "How far the annotators agree.",
    "reports/comparison.json": "How far judges agree with the final verdicts.",
    "reports/report.html": "Both as a page for a browser.",
    "claims.json": "What was found when the bundle was made; verify.py finds it again.",
    "schemas/": "JSON Schemas of these documents; of those with many lines, for each line.",
    VERIFIER: "The program that checks all of this. It needs Python 3.10 and nothing else.",
    "screenshots/": "The pictures by their SHA-256. A covered one has the original's name and .redacted.png.",
    "attachments/": "Other files that came with trajectories, by their SHA-256.",
    CRATE: "The list of files as RO-Crate 1.1.",
    MANIFEST: "SHA-256 and size of every file but itself and its signature.",
    SIGNATURE: "The Ed25519 signature over the bytes of MANIFEST.json.",
}


def media_type(path: str) -> str:
    return MEDIA_TYPES.get(path.rpartition(".")[2], "application/octet-stream")


def part_of(path: str) -> str | None:
    folder = path.partition("/")[0] + "/"
    return path if path in PARTS else folder if folder in PARTS else None


CRATE_CONTEXT = ["https://w3id.org/ro/crate/1.1/context", {"sha256": "https://schema.org/sha256"}]

Listed = tuple[str, str, int]  # path, SHA-256, size in bytes


def build_crate(bundle: Bundle, files: Iterable[Listed]) -> Document:
    """The metadata; ``files`` are all but itself, manifest and signature.

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
        "description": f"How {submission['trajectories']} trajectories of {submission['agent']} were judged by people: "
        "labels, adjudications, spot checks, the chain of events, and a program that checks them.",
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
        "description": "Tasks and their use are under the terms of the benchmark, all else under those of the maker.",
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
        "description": PARTS.get(part_of(path) or "", "No file of this format."),
        "contentSize": str(size),
        "encodingFormat": media_type(path),
        "sha256": sha256,
    } | (code if path == VERIFIER else {})


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

To run other judges or people over the trajectories, open the bundle in WebVerdict (`import_audit`) and export them as
v2 packages (`export_submission --format trajectories-v2`).
"""

CANNOT = "\n".join(f"- {limit[0].upper()}{limit[1:]}." for limit in NOT_PROVED)
LIMITS_IN_WORDS = f"## What it cannot prove\n\n{CANNOT}\n\nIt does show that {PROVED}.\n"


def build_readme(submission: Document, paths: Collection[str]) -> bytes:
    title = f"# {_plain_line(submission['agent'])} on {_plain_line(submission['benchmark_name'])}\n"
    says = (
        "An evidence bundle of WebVerdict: what an agent did, what people said about it and why, and how that became "
        "one verdict for each task.\n"
    )
    present = set(map(part_of, paths))
    rows = [f"| `{path}` | {what} |" for path, what in PARTS.items() if path in present]
    files = "\n".join(["## Files\n", "| file | what it holds |", "|---|---|", *rows]) + "\n"
    blocks = [title, says, _standing_in_words(submission), files, TO_CHECK, LIMITS_IN_WORDS]
    return "\n".join(blocks).encode()


def _standing_in_words(submission: Document) -> str:
    frozen, labels = submission["frozen_at"], submission["required_labels"]
    lines = [
        f"- {plural(submission['trajectories'], 'trajectory', 'trajectories')}, {plural(labels, 'label')} each",
        f"- version {submission['protocol_version']} of the protocol",
        f"- {'frozen at ' + frozen if frozen else 'not frozen: labels could still change'}",
        f"- head of the chain of events: `{submission['chain']['head'] or 'none'}`",
    ]
    if submission["contents"]["screenshots"] == "digests":
        lines.append("- without pictures and attachments: only their SHA-256 are here")
    if submission["partial"]:
        missing = plural(len(submission["missing"]), "thing is", "things are")
        lines.append(f"- **partial**: {missing} missing; `submission.json` lists what")
    return "\n".join(lines) + "\n"


def _plain_line(text: str) -> str:
    """A name that cannot be taken for markup."""
    plain = " ".join(text.split())
    return "".join(f"\\{letter}" if letter in "\\`*_[]<>#|!" else letter for letter in plain)


DIALECT = "https://json-schema.org/draft/2020-12/schema"
VERIFIER_TITLE = "The verify.py in the bundle is the program that checked it"
COMPANIONS_TITLE = "README, metadata and schemas are those that these documents make"
OTHER_VERSION = "The bundle has another verify.py than this one, so another version may have worded it."


def schema_files() -> dict[str, bytes]:
    """The JSON Schemas by path: each by the last part of its document's name, in small letters."""
    return {
        f"schemas/{name.rpartition('/')[2].partition('.')[0].lower()}.schema.json": as_text(
            {"$schema": DIALECT, "title": name, **schema}
        )
        for name, schema in SCHEMAS.items()
    }


def companions_finding(package: Package, bundle: Bundle, digests: dict[str, str], *, same: bool) -> Finding:
    """These files are there, and what they should be; ``same`` when the bundle was made by this version.

    ``digests`` are the SHA-256 of all files by name.
    """
    made = _companion_digests(package, bundle, digests)
    present = [name for name in package.names() if name in made or name.startswith("schemas/")]
    left_out = [name for name in (README, CRATE) if name not in present]
    left_out += [] if any(name.startswith("schemas/") for name in present) else ["schemas/"]
    if left_out:
        says = f"{', '.join(left_out)} not there: every version of this program writes them."
        return failed("companions", COMPANIONS_TITLE, says, left_out)
    if other := sorted(set(present) ^ made.keys()):
        says = f"{_name_some(other)} not among the schemas of this format, or missing: they are the same ones in every"
        return failed("companions", COMPANIONS_TITLE, f"{says} version.", other)
    if wrong := [name for name in present if digests[name] != made[name]]:
        says = f"{_name_some(wrong)} not as made here: believe nothing they say."
        if same:
            return failed("companions", COMPANIONS_TITLE, says, wrong)
        return noted("companions", COMPANIONS_TITLE, f"{says} {OTHER_VERSION}", wrong)
    says = f"All {len(present)} files are as they are made here, byte for byte."
    return passed("companions", COMPANIONS_TITLE, says)


def _name_some(names: list[str]) -> str:
    return f"{', '.join(names[:3])}{' and others' if len(names) > 3 else ''}"


def _companion_digests(package: Package, bundle: Bundle, digests: dict[str, str]) -> dict[str, str]:
    names = [name for name in package.names() if name not in (MANIFEST, SIGNATURE, CRATE)]
    listed: list[Listed] = [(name, digests[name], package.size(name)) for name in names]
    made = {README: build_readme(bundle.submission, {*names, CRATE, MANIFEST, SIGNATURE}), **schema_files()}
    sums = {name: hashlib.sha256(data).hexdigest() for name, data in made.items()}
    return sums | {CRATE: text_digest(build_crate(bundle, listed))}


def is_of_this_version(package: Package, program: bytes | None) -> bool:
    """A bundle has to be worded as this program words it if its verify.py is ``program``, the file that runs.

    Also where one of them is not known: taking verify.py away makes nobody believe more.
    """
    return program is None or VERIFIER not in package.names() or package.read(VERIFIER) == program


def program_finding(package: Package, program: bytes) -> Finding:
    """`verifier`: whether the bundle brings the program that checks it here; never a failure."""
    if VERIFIER not in package.names():
        return noted("verifier", VERIFIER_TITLE, "The bundle has no verify.py.")
    if package.read(VERIFIER) == program:
        return noted("verifier", VERIFIER_TITLE, "verify.py in the bundle is the program that checked it.")
    says = "verify.py in the bundle is another than the program that checked it: do not run it."
    return noted("verifier", VERIFIER_TITLE, says, [VERIFIER])
