"""The files that explain a bundle: README, metadata and schemas are made of the documents, and nothing else."""

from __future__ import annotations

import hashlib

from evaluations.verifier.canonical import as_text, text_digest
from evaluations.verifier.crate import Listed, crate
from evaluations.verifier.documents import Bundle
from evaluations.verifier.findings import Finding, failed, noted, passed
from evaluations.verifier.package import Package
from evaluations.verifier.parts import CRATE, MANIFEST, README, SIGNATURE, VERIFIER
from evaluations.verifier.readme import readme
from evaluations.verifier.shapes import SCHEMAS

DIALECT = "https://json-schema.org/draft/2020-12/schema"
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
    """Whether these files are there, and what they should be; ``same`` when the bundle was made by this version.

    ``digests`` are the SHA-256 of all files by name.
    """
    made = _companions_made(package, bundle, digests)
    present = [name for name in package.names() if name in made or name.startswith("schemas/")]
    if left_out := _left_out(present):
        says = f"{', '.join(left_out)} not there: every version of this program writes them."
        return failed("companions", COMPANIONS_TITLE, says, left_out)
    other = sorted(set(present) ^ made.keys())
    if other:
        some = f"{', '.join(other[:3])}{' and others' if len(other) > 3 else ''}"
        says = f"{some} not among the schemas of this format, or missing: they are the same ones in every version."
        return failed("companions", COMPANIONS_TITLE, says, other)
    wrong = [name for name in present if digests[name] != made[name]]
    if not wrong:
        says = f"All {len(present)} files are as they are made here, byte for byte."
        return passed("companions", COMPANIONS_TITLE, says)
    says = (
        f"{', '.join(wrong[:3])}{' and others' if len(wrong) > 3 else ''} not as made here: believe nothing they say."
    )
    if same:
        return failed("companions", COMPANIONS_TITLE, says, wrong)
    return noted("companions", COMPANIONS_TITLE, f"{says} {OTHER_VERSION}", wrong)


def _left_out(present: list[str]) -> list[str]:
    found = [name for name in (README, CRATE) if name not in present]
    return found if any(name.startswith("schemas/") for name in present) else [*found, "schemas/"]


def _companions_made(package: Package, bundle: Bundle, digests: dict[str, str]) -> dict[str, str]:
    """The SHA-256 that each should have, by name."""
    names = [name for name in package.names() if name not in (MANIFEST, SIGNATURE, CRATE)]
    listed: list[Listed] = [(name, digests[name], package.size(name)) for name in names]
    paths = {*names, CRATE, MANIFEST, SIGNATURE}
    made = {README: readme(bundle.submission, paths), **schema_files()}
    found = {name: hashlib.sha256(data).hexdigest() for name, data in made.items()}
    return found | {CRATE: text_digest(crate(bundle, listed))}


# --- the program -----------------------------------------------------------------------------------------------------


def is_of_this_version(package: Package, program: bytes | None) -> bool:
    """Whether a bundle has to be worded as this program words it: its own verify.py is ``program``, the file that runs.

    Also where one of them is not known: taking verify.py away makes nobody believe more.
    """
    return program is None or VERIFIER not in package.names() or package.read(VERIFIER) == program


def program_finding(package: Package, program: bytes) -> Finding:
    """`verifier`: whether the bundle brings the program that checks it here; never a failure."""
    title = "The verify.py in the bundle is the program that checked it"
    if VERIFIER not in package.names():
        return noted("verifier", title, "The bundle has no verify.py.")
    if package.read(VERIFIER) == program:
        return noted("verifier", title, "verify.py in the bundle is the program that checked it.")
    says = "verify.py in the bundle is another than the program that checked it: do not run it."
    return noted("verifier", title, says, [VERIFIER])
