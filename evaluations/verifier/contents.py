"""Checks of the files of a bundle: manifest, images, attachments, and explanations (README, metadata, schemas)."""

from __future__ import annotations

import hashlib
import re
import struct
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from evaluations.verifier.canonical import Malformed, as_text, canonical_json, mismatches, parse_json
from evaluations.verifier.documents import IF_ANY, LINES, MANIFEST, SIGNATURE, VALUES, Bundle, Document
from evaluations.verifier.findings import Finding, Violation, Violations, all_of, failed, noted, passed, plural
from evaluations.verifier.package import Package
from evaluations.verifier.shapes import SCHEMAS
from evaluations.verifier.values import escape

README, CRATE, VERIFIER = "README.md", "ro-crate-metadata.json", "verify.py"
PICTURES = {"image/png": "png", "image/jpeg": "jpg", "image/webp": "webp"}
DIALECT = "https://json-schema.org/draft/2020-12/schema"
OTHER_VERSION = "The verify.py in the bundle differs from this one, so another version may have worded it."
NOT_RENDERED = (
    "README.md and ro-crate-metadata.json only explain: no check reads them, and verify.py does not render them. Take "
    "nothing from them alone, or check the bundle with verify_evidence of WebVerdict, which renders them again."
)

Listed = tuple[str, str, int]  # path, SHA-256, size in bytes
# Functions that compute the expected SHA-256 of a file, by its path. Such texts follow from the documents and all files
# except ro-crate-metadata.json, manifest and signature. Only the product renders them, not verify.py.
Renderers = Mapping[str, Callable[[Bundle, list[Listed]], str]]


def schema_files(documents: Collection[str]) -> dict[str, bytes]:
    """Return the JSON Schemas by path; a file name is the last part of the document's name, in lower case.

    ``documents`` are the names of all documents. Bundles of earlier versions have no schemas of those `IF_ANY`.
    """
    files = {}
    for name, schema in SCHEMAS.items():
        if name in IF_ANY and name not in documents:
            continue
        document = name.rpartition("/")[2].partition(".")[0].lower()
        files[f"schemas/{document}.schema.json"] = as_text({"$schema": DIALECT, "title": name, **schema})
    return files


def companions_finding(
    package: Package, bundle: Bundle, digests: dict[str, str], renderers: Renderers, *, same: bool
) -> Finding:
    """Check that these files exist and are as expected; ``same`` if this version created the bundle.

    ``digests`` are the SHA-256 of all files by name.
    """
    made = {name: hashlib.sha256(data).hexdigest() for name, data in schema_files(digests).items()}
    schemas = {name for name in digests if name.startswith("schemas/")}
    left_out = [name for name in (README, CRATE) if name not in digests] + ([] if schemas else ["schemas/"])
    if left_out:
        says = f"{', '.join(left_out)} missing: every version of this program writes them."
        return failed("companions", says, left_out)
    if other := sorted(schemas ^ made.keys()):
        says = f"{_name_some(other)} not among the schemas of this format, or missing: they are the same ones in every"
        return failed("companions", f"{says} version.", other)
    files = [(name, digests[name], package.sizes[name]) for name in digests if name not in (MANIFEST, SIGNATURE, CRATE)]
    rendered = [name for name in (README, CRATE) if name in renderers]
    made |= {name: renderers[name](bundle, files) for name in rendered}
    if wrong := sorted(name for name in made if digests[name] != made[name]):
        says = f"{_name_some(wrong)} not as computed here: do not rely on them."
        return fail_same_version("companions", says, wrong, same=same)
    if not rendered:
        return noted("companions", f"All {len(made)} schemas match. {NOT_RENDERED}")
    return passed("companions", f"All {len(made)} files match byte for byte.")


def _name_some(names: list[str]) -> str:
    return f"{', '.join(names[:3])}{' and others' if len(names) > 3 else ''}"


def fail_same_version(name: str, says: str, places: list[str], *, same: bool) -> Finding:
    """Return a failure, or a note if another version of this program created the bundle."""
    return failed(name, says, places) if same else noted(name, f"{says} {OTHER_VERSION}", places)


def program_finding(own: bytes | None, program: bytes) -> Finding:
    """Return `verifier`: whether ``own``, the bundle's verify.py, is the program that checks it. Never a failure."""
    if own is None:
        return noted("verifier", "The bundle has no verify.py.")
    if own == program:
        return noted("verifier", "verify.py in the bundle is the program that checked it.")
    says = "The verify.py in the bundle differs from the program that checked it: do not run it."
    return noted("verifier", says, [VERIFIER])


KNOWN_FILE = re.compile(
    r"README\.md|verify\.py|ro-crate-metadata\.json|reports/report\.html|schemas/[a-z-]+\.schema\.json"
    r"|screenshots/[0-9a-f]{64}\.(png|jpg|webp|redacted\.png)|attachments/[0-9a-f]{64}"
)
MOST_NAMED = 20  # damaged files listed in a finding
# Files that operating systems add to a folder when it is opened.
LEFT_BY_LOOKING = re.compile(r"(.*/)?(\.DS_Store|\._[^/]*|Thumbs\.db|desktop\.ini|\.directory)", re.IGNORECASE)
LOOKED_INTO = (
    "Operating systems add such files to a folder that is opened: check the zip itself, or unpack it "
    "again and check it before you open the folder."
)
PNG_HEAD = struct.Struct(">8s4x4s2L")  # magic, length and name of the first chunk, width and height in pixels
PNG_MAGIC = b"\x89PNG\r\n\x1a\n"
LONGEST_MAGIC = 32

Progressed = Callable[[int, int], None]


def manifest_finding(package: Package, digests: dict[str, str]) -> Finding:
    if MANIFEST not in package.names():
        return _fail_files("manifest", [("MANIFEST.json is missing", MANIFEST)], "things")
    manifest, wrong = parse_manifest(package)
    if wrong:
        return _fail_files("manifest", [(f"MANIFEST.json: {each}", MANIFEST) for each in wrong], "things")
    files = {each["path"]: (each["size"], each["sha256"]) for each in manifest["files"]}
    odd = _unlike_manifest(package, files, digests)
    if [each["path"] for each in manifest["files"]] != sorted(files):
        odd.append(("the manifest is not sorted by path, or lists a file twice", MANIFEST))
    if odd:
        looked_into = package.is_folder and all(LEFT_BY_LOOKING.fullmatch(path) for _, path in odd)
        return _fail_files("manifest", odd, "things", LOOKED_INTO if looked_into else "")
    return passed("manifest", f"All {len(files):,} files have the size and SHA-256 that it lists.")


def parse_manifest(package: Package) -> tuple[Any, list[str]]:
    try:
        data = package.read(MANIFEST)
        manifest = parse_json(data.decode())
    except (KeyError, Malformed, UnicodeError) as error:
        return None, [f"it {error}"]
    wrong = mismatches(manifest, SCHEMAS[MANIFEST])
    if not wrong and canonical_json(manifest).encode() + b"\n" != data:
        wrong = ["it is not canonical JSON followed by a line feed"]
    return manifest, wrong


def _unlike_manifest(package: Package, files: dict[str, tuple[int, str]], digests: dict[str, str]) -> list[Violation]:
    present = set(package.names()) - {MANIFEST, SIGNATURE}
    known = {path for path in present if path in LINES or path in VALUES or KNOWN_FILE.fullmatch(path)}
    wrong = [(f"{path} is listed and missing", path) for path in files if path not in present]
    wrong += [(f"{path} is not listed", path) for path in sorted(present - files.keys())]
    wrong += [(f"{path} is not part of this format", path) for path in sorted(present - known)]
    for path, listed in files.items():
        if path in present and (package.sizes[path], digests[path]) != listed:
            wrong.append((f"{path} differs from the listed file", path))
    return wrong


def _fail_files(name: str, wrong: list[Violation], things: str, how_to_fix: str = "") -> Finding:
    more = f" {len(wrong) - 3} more {things} are wrong." if len(wrong) > 3 else ""
    says = f"{'; '.join(says for says, _ in wrong[:3])}.{more} {how_to_fix}".strip()
    return failed(name, says, [path for _, path in wrong])


def compute_digests(package: Package, progress: Progressed) -> dict[str, str]:
    names, digests = package.names(), {}
    for number, name in enumerate(names, start=1):
        digests[name] = package.sha256(name)
        progress(number, len(names))
    return digests


def picture_findings(bundle: Bundle, digests: dict[str, str], package: Package) -> list[Finding]:
    """Return `pictures`, and `redacted` if parts of images are covered. ``digests`` are those of all files by name."""
    covered, wrong = _read_redactions(bundle)
    files = bundle.submission["contents"]["screenshots"] == "files"
    promised = _promised_files(bundle, covered, wrong) if files else {}
    present = {name for name in digests if name.startswith(("screenshots/", "attachments/"))}
    wrong += [(f"{name} is missing", name) for name in sorted(set(promised) - present)]
    wrong += [(f"{name} belongs to no trajectory", name) for name in sorted(present - set(promised))]
    for name in sorted(present & set(promised)):
        if (digests[name], package.sizes[name]) != promised[name]:
            wrong.append((f"{name} does not have the digest and size that the documents state", name))
    wrong += _no_pictures(bundle, covered, present & set(promised), package)
    hidden = [_redacted_note(covered, bundle)] if covered else []
    if wrong:
        return [_fail_files("pictures", wrong, "files"), *hidden]
    if not files:
        named = {sha256 for sha256, _ in _promised_files(bundle, covered, []).values()}
        return [_check_without_files(bundle, package, len(named)), *hidden]
    says = f"{all_of(len(promised), 'file is', 'files are')} here with the stated digest."
    return [passed("pictures", says), *hidden]


def _check_without_files(bundle: Bundle, package: Package, number: int) -> Finding:
    """Check, for a bundle without the files, the manifest's statement about the exporting instance's files.

    ``number`` is how many files the documents name.
    """
    says = f"Only the digests of {plural(len(bundle.pictures), 'screenshot')} are included, so nobody can view them."
    manifest, wrong = parse_manifest(package)  # a broken one is a separate finding
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
            wrong.append((f"steps state different sizes or media types for the screenshot {sha256}", sha256))
        if sha256 in covered:
            promised[f"screenshots/{sha256}.redacted.png"] = (covered[sha256]["redacted"], covered[sha256]["size"])
        else:
            promised[f"screenshots/{sha256}.{PICTURES.get(media_type, 'png')}"] = (sha256, size)
    for each in (each for trajectory in bundle.trajectories for each in trajectory["attachments"]):
        if each["sha256"] not in covered:  # the original must not be included under another name
            promised[f"attachments/{each['sha256']}"] = (each["sha256"], each["size"])
    return promised


def _no_pictures(bundle: Bundle, covered: dict[str, Document], names: set[str], package: Package) -> Violations:
    """Report screenshots that do not begin like their media type, and covered ones whose size is not the original's."""
    for name in sorted(name for name in names if name.startswith("screenshots/")):
        sha256 = name.removeprefix("screenshots/").partition(".")[0]
        _, media_type, width, height = min(bundle.pictures[sha256])
        head = next(package.stream(name), b"")[:LONGEST_MAGIC]
        is_picture = head.startswith(b"\xff\xd8\xff" if media_type == "image/jpeg" else PNG_MAGIC)
        if media_type == "image/webp":
            is_picture = head[:4] + head[8:12] == b"RIFFWEBP"
        if sha256 not in covered and not is_picture:
            yield f"{name} is not an image of the type {escape(media_type, 60)}", name
        elif sha256 in covered:
            size = head.ljust(LONGEST_MAGIC, b"\0")
            if PNG_HEAD.unpack_from(size) != (PNG_MAGIC, b"IHDR", width, height):
                yield f"{name} is not a PNG of {width} x {height} pixels like its original", name


def _read_redactions(bundle: Bundle) -> tuple[dict[str, Document], list[Violation]]:
    """Return the redactions in effect, by the SHA-256 of the original, and the violations of all redactions."""
    newest = bundle.newest_redactions()
    wrong = [
        (f"redaction {each['revision']} of {each['original']} {says}", each["original"])
        for each in bundle.redactions
        for says in _faults(each, bundle)
    ]
    return {original: each for original, each in newest.items() if each["boxes"] and each["redacted"]}, wrong


def _faults(redaction: Document, bundle: Bundle) -> Iterator[str]:
    if bool(redaction["boxes"]) != (redaction["redacted"] is not None):
        yield "has only one of its two parts"
    stated = bundle.pictures.get(redaction["original"])
    if stated is None:
        yield "has no screenshot of a step"
        return
    _, _, width, height = min(stated)
    if any(not (w and h) or x + w > width or y + h > height for x, y, w, h in redaction["boxes"]):
        yield f"has a box outside the {width} x {height} pixels"


def _redacted_note(covered: dict[str, Document], bundle: Bundle) -> Finding:
    most = max(_covered_share(each, bundle) for each in covered.values())
    frozen = bundle.submission["frozen_at"]
    late = sum(frozen is not None and each["redacted_at"] > frozen for each in covered.values())
    share = f"at most {most:.0%}" if most >= 0.01 else "less than 1%"
    says = (
        f"Parts of {plural(len(covered), 'screenshot')} are covered: {share} of one. Covered after the "
        f"freeze: {late:,}. Only the digests of their originals are included, so nobody can check "
        "whether the rest equals the original."
    )
    return noted("redacted", says, sorted(covered))


def _covered_share(redaction: Document, bundle: Bundle) -> float:
    """Return the largest share of the area that boxes can cover: they may overlap."""
    _, _, width, height = min(bundle.pictures.get(redaction["original"], {(0, "", 0, 0)}))
    covered = sum(across * down for _, _, across, down in redaction["boxes"])
    return min(1.0, covered / (width * height)) if width * height else 1.0
