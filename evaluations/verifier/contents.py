"""The files of a bundle: manifest, pictures and attachments, and those that explain it (README, metadata, schemas)."""

from __future__ import annotations

import hashlib
import re
import struct
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any

from evaluations.verifier.canonical import Malformed, as_text, canonical_json, mismatches, parse_json, text_digest
from evaluations.verifier.documents import LINES, VALUES, Bundle, Document
from evaluations.verifier.findings import Finding, Violation, all_of, failed, noted, passed, plural
from evaluations.verifier.package import Package
from evaluations.verifier.rules import NOT_PROVED, PROVED
from evaluations.verifier.shapes import SCHEMAS
from evaluations.verifier.values import escape

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
        return failed("companions", says, left_out)
    if other := sorted(set(present) ^ made.keys()):
        says = f"{_name_some(other)} not among the schemas of this format, or missing: they are the same ones in every"
        return failed("companions", f"{says} version.", other)
    if wrong := [name for name in present if digests[name] != made[name]]:
        says = f"{_name_some(wrong)} not as made here: believe nothing they say."
        if same:
            return failed("companions", says, wrong)
        return noted("companions", f"{says} {OTHER_VERSION}", wrong)
    says = f"All {len(present)} files are as they are made here, byte for byte."
    return passed("companions", says)


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
        return noted("verifier", "The bundle has no verify.py.")
    if package.read(VERIFIER) == program:
        return noted("verifier", "verify.py in the bundle is the program that checked it.")
    says = "verify.py in the bundle is another than the program that checked it: do not run it."
    return noted("verifier", says, [VERIFIER])


KNOWN_FILE = re.compile(
    r"README\.md|verify\.py|ro-crate-metadata\.json|reports/report\.html|schemas/[a-z-]+\.schema\.json"
    r"|screenshots/[0-9a-f]{64}\.(png|jpg|webp|redacted\.png)|attachments/[0-9a-f]{64}"
)
MOST_NAMED = 20  # damaged files listed in a finding
# Files that systems put into a folder that somebody looks into.
LEFT_BY_LOOKING = re.compile(r"(.*/)?(\.DS_Store|\._[^/]*|Thumbs\.db|desktop\.ini|\.directory)", re.IGNORECASE)
LOOKED_INTO = (
    "Systems leave such files in a folder that somebody looks into: check the zip itself, or unpack it anew and check "
    "before anybody opens the folder."
)
PNG_HEAD = struct.Struct(">8s4x4s2L")  # magic, length and name of the first chunk, width and height in pixels
PNG_MAGIC = b"\x89PNG\r\n\x1a\n"
LONGEST_MAGIC = 32

Progressed = Callable[[int, int], None]


def manifest_finding(package: Package, digests: dict[str, str]) -> Finding:
    if MANIFEST not in package.names():
        return _fail_manifest([("MANIFEST.json is missing", MANIFEST)])
    manifest, wrong = _parse_manifest(package)
    if wrong:
        return _fail_manifest([(f"MANIFEST.json: {each}", MANIFEST) for each in wrong])
    files = {each["path"]: (each["size"], each["sha256"]) for each in manifest["files"]}
    odd = _unlike_manifest(package, files, digests)
    if [each["path"] for each in manifest["files"]] != sorted(files):
        odd.append(("the manifest is not sorted by path, or lists a file twice", MANIFEST))
    if odd:
        looked_into = package.is_folder and all(LEFT_BY_LOOKING.fullmatch(path) for _, path in odd)
        return _fail_manifest(odd, LOOKED_INTO if looked_into else "")
    return passed("manifest", f"All {len(files):,} files have the size and SHA-256 that it lists.")


def _parse_manifest(package: Package) -> tuple[Any, list[str]]:
    try:
        data = package.read(MANIFEST)
        manifest = parse_json(data.decode())
    except (KeyError, Malformed, UnicodeError) as error:
        return None, [f"it {error}"]
    wrong = mismatches(manifest, SCHEMAS[MANIFEST])
    if not wrong and canonical_json(manifest).encode() + b"\n" != data:
        wrong = ["it is not canonical JSON with a line feed behind it"]
    return manifest, wrong


def _unlike_manifest(package: Package, files: dict[str, tuple[int, str]], digests: dict[str, str]) -> list[Violation]:
    present = set(package.names()) - {MANIFEST, SIGNATURE}
    known = {path for path in present if path in LINES or path in VALUES or KNOWN_FILE.fullmatch(path)}
    wrong = [(f"{path} is listed and not there", path) for path in files if path not in present]
    wrong += [(f"{path} is there and not listed", path) for path in sorted(present - files.keys())]
    wrong += [(f"{path} is no file of this format", path) for path in sorted(present - known)]
    for path, listed in files.items():
        if path in present and (package.size(path), digests[path]) != listed:
            wrong.append((f"{path} is another file than the one that was listed", path))
    return wrong


def _fail_manifest(wrong: list[Violation], how_to_fix: str = "") -> Finding:
    more = f" {len(wrong) - 3} more things are wrong." if len(wrong) > 3 else ""
    says = f"{'; '.join(says for says, _ in wrong[:3])}.{more} {how_to_fix}".strip()
    return failed("manifest", says, [path for _, path in wrong])


def compute_digests(package: Package, progress: Progressed) -> dict[str, str]:
    names, digests = package.names(), {}
    for number, name in enumerate(names, start=1):
        digests[name] = package.sha256(name)
        progress(number, len(names))
    return digests


def picture_findings(bundle: Bundle, digests: dict[str, str], package: Package) -> list[Finding]:
    """`pictures`, and `redacted` where parts of some are covered. ``digests`` are those of all files by name."""
    covered, wrong = _read_redactions(bundle)
    files = bundle.submission["contents"]["screenshots"] == "files"
    promised = _promised_files(bundle, covered, wrong) if files else {}
    present = {name for name in digests if name.startswith(("screenshots/", "attachments/"))}
    wrong += [(f"{name} is missing", name) for name in sorted(set(promised) - present)]
    wrong += [(f"{name} belongs to no trajectory", name) for name in sorted(present - set(promised))]
    for name in sorted(present & set(promised)):
        if (digests[name], package.size(name)) != promised[name]:
            wrong.append((f"{name} is not the file of the digest and size that the documents state", name))
    wrong += _no_pictures(bundle, covered, present & set(promised), package)
    hidden = [_redacted_note(covered, bundle)] if covered else []
    if wrong:
        says = "; ".join(says for says, _ in wrong[:3]) + "."
        more = f" {len(wrong) - 3} more files are wrong." if len(wrong) > 3 else ""
        return [failed("pictures", says + more, [place for _, place in wrong]), *hidden]
    if not files:
        named = {sha256 for sha256, _ in _promised_files(bundle, covered, []).values()}
        return [_check_without_files(bundle, package, len(named)), *hidden]
    says = f"{all_of(len(promised), 'file is', 'files are')} here with the stated digest."
    return [passed("pictures", says), *hidden]


def _check_without_files(bundle: Bundle, package: Package, number: int) -> Finding:
    """Check, for a bundle without the files, the manifest's statement about the exporting instance's files.

    ``number`` is how many files the documents name.
    """
    says = f"Only the digests of {plural(len(bundle.pictures), 'picture')} are here, so nobody can look at them."
    manifest, wrong = _parse_manifest(package)  # a broken one is a separate finding
    stated = None if wrong else manifest.get("stored_files")  # before version 0.2 there was no statement
    if stated is None:
        says += " The bundle does not state whether the stored files were verified."
        return noted("pictures", says)
    if stated["files"] != number:
        says += f" The manifest states {stated['files']:,} stored files, and the documents name {number:,}."
        return failed("pictures", says, [MANIFEST])
    if bad := [*stated["damaged"], *stated["missing"]]:
        says += (
            f" When the bundle was made ({stated['verified_at']}), damaged: {len(stated['damaged']):,} of "
            f"{plural(stated['files'], 'stored file')}, missing: {len(stated['missing']):,}. They are "
            f"{', '.join(each[:12] for each in bad[:MOST_NAMED])}."
        )
        return failed("pictures", says, bad)
    verified = f"{all_of(stated['files'], 'stored file was', 'stored files were')} verified against the digests"
    return noted("pictures", f"{says} The bundle states: {verified} at {stated['verified_at']}.")


def _promised_files(bundle: Bundle, covered: dict[str, Document], wrong: list[Violation]) -> dict[str, tuple[str, int]]:
    promised = {}
    for sha256, stated in bundle.pictures.items():
        size, media_type, _, _ = min(stated)
        if len(stated) > 1 or media_type not in PICTURES:
            wrong.append((f"steps state no one size and known media type of the picture {sha256}", sha256))
        if sha256 in covered:
            promised[f"screenshots/{sha256}.redacted.png"] = (covered[sha256]["redacted"], covered[sha256]["size"])
        else:
            promised[f"screenshots/{sha256}.{PICTURES.get(media_type, 'png')}"] = (sha256, size)
    for each in (each for trajectory in bundle.trajectories for each in trajectory["attachments"]):
        if each["sha256"] not in covered:  # the original must not be there under another name either
            promised[f"attachments/{each['sha256']}"] = (each["sha256"], each["size"])
    return promised


def _no_pictures(
    bundle: Bundle, covered: dict[str, Document], names: set[str], package: Package
) -> Iterator[Violation]:
    """Screenshots that do not begin as pictures of their kind, and covered ones of another size than their original."""
    for name in sorted(name for name in names if name.startswith("screenshots/")):
        sha256 = name.removeprefix("screenshots/").partition(".")[0]
        _, media_type, width, height = min(bundle.pictures[sha256])
        head = next(package.stream(name), b"")[:LONGEST_MAGIC]
        is_picture = head.startswith(b"\xff\xd8\xff" if media_type == "image/jpeg" else PNG_MAGIC)
        if media_type == "image/webp":
            is_picture = head[:4] + head[8:12] == b"RIFFWEBP"
        if sha256 not in covered and not is_picture:
            yield f"{name} is no picture of the type {escape(media_type, 60)}", name
        elif sha256 in covered:
            size = head.ljust(LONGEST_MAGIC, b"\0")
            if PNG_HEAD.unpack_from(size) != (PNG_MAGIC, b"IHDR", width, height):
                yield f"{name} is no PNG of {width} x {height} pixels, as its original is", name


def _read_redactions(bundle: Bundle) -> tuple[dict[str, Document], list[Violation]]:
    """The redactions that hold by the SHA-256 of the original, and what is wrong with any of them."""
    newest: dict[str, Document] = {}
    wrong = []
    for each in bundle.redactions:
        original = each["original"]
        if each["revision"] > newest.get(original, {"revision": -1})["revision"]:
            newest[original] = each
        wrong += [(f"redaction {each['revision']} of {original} {says}", original) for says in _faults(each, bundle)]
    return {original: each for original, each in newest.items() if each["boxes"] and each["redacted"]}, wrong


def _faults(redaction: Document, bundle: Bundle) -> Iterator[str]:
    if bool(redaction["boxes"]) != (redaction["redacted"] is not None):
        yield "is half a one"
    stated = bundle.pictures.get(redaction["original"])
    if stated is None:
        yield "is of no screenshot of a step"
        return
    _, _, width, height = min(stated)
    if any(not (w and h) or x + w > width or y + h > height for x, y, w, h in redaction["boxes"]):
        yield f"has a box that is not inside of the {width} x {height} pixels"


def _redacted_note(covered: dict[str, Document], bundle: Bundle) -> Finding:
    most = max(_covered_share(each, bundle) for each in covered.values())
    frozen = bundle.submission["frozen_at"]
    late = sum(frozen is not None and each["redacted_at"] > frozen for each in covered.values())
    share = f"at most {most:.0%}" if most >= 0.01 else "less than 1%"
    says = (
        f"Parts of {plural(len(covered), 'picture')} are covered: {share} of one. Covered after the freeze: {late:,}. "
        "Their originals are known by their digests only, so nobody can tell whether what is not covered is as it was "
        "in the original."
    )
    return noted("redacted", says, sorted(covered))


def _covered_share(redaction: Document, bundle: Bundle) -> float:
    """Of the area that boxes cover, at most: they may overlap."""
    _, _, width, height = min(bundle.pictures.get(redaction["original"], {(0, "", 0, 0)}))
    covered = sum(across * down for _, _, across, down in redaction["boxes"])
    return min(1.0, covered / (width * height)) if width * height else 1.0
