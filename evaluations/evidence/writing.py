"""An evidence bundle as one zip: refused with every reason, or written whole, signed, and never completely in memory.

A first pass with the same number of zero bytes for each image finds the exact size, so that a download can state it.
Everything that depends on digests has a fixed length and is not compressed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from annotation import clock, store_checks
from annotation.consistent_reads import consistent_reads
from annotation.models import Submission
from annotation.models.events import instant
from annotation.records import Problem
from annotation.workflow import Incomplete
from annotation.workflow.guards import require_reason
from evaluations import exports, revoking, signing
from evaluations.evidence.bundle import Member, canonical_line, complete, from_store, members
from evaluations.evidence.companions import build_crate
from evaluations.evidence.names import named
from evaluations.exports import Entry, ExportRefused, missing_for_export, zipped
from evaluations.verifier.canonical import as_text
from evaluations.verifier.contents import CRATE, Listed
from evaluations.verifier.documents import MANIFEST, SIGNATURE, Bundle, Document
from evaluations.verifier.shapes import FORMAT

SCREENSHOTS = ("files", "digests")
ZEROS = bytes(1 << 20)
UNKNOWN = "0" * 64  # stands in for a digest that is not computed yet; the same length
MEDIA_TYPE = "application/zip"

Progress = Callable[[int, int], None]


def quiet(done: int, total: int) -> None:
    """Ignore the progress."""


@dataclass(frozen=True)
class Evidence:
    """A bundle that may be written, with its documents as they were at one moment."""

    submission: Submission
    bundle: Bundle
    members: list[Member]
    stored_files: Document | None  # for a bundle without screenshot files: the result of the check of the stored files
    supersedes: Document | None = None  # the manifest of the bundle that this one replaces, and why

    @property
    def file_name(self) -> str:
        """Return a name such as ``shops.Agent-1.evidence.zip``."""
        return _file_name(self.submission, self.bundle.submission["partial"])

    @cached_property
    def size(self) -> int:
        """Return the exact number of bytes."""
        return sum(map(len, zipped(self._entries(_Zeros()))))

    def chunks(self, progress: Progress = quiet) -> Iterator[bytes]:
        """Yield the zip in pieces; ``progress`` gets the number of bytes done and of all bytes.

        Raises ExportStopped if a stored file is missing or damaged: the pieces sent until then are not a valid zip.
        """
        done = 0
        for chunk in zipped(self._entries(_Bytes())):
            done += len(chunk)
            yield chunk
            if progress is not quiet:
                progress(done, self.size)

    def _entries(self, source: _Bytes) -> Iterator[Entry]:
        listed: list[Listed] = []
        for member in self.members:
            size = member.stored[1] if member.stored else 0
            chunks = source.listed(member, listed)
            yield Entry(member.path, chunks, compressed=member.stored is None, size=size)
        about = as_text(build_crate(self.bundle, listed))
        listed.append((CRATE, source.digest(about), len(about)))
        manifest = _manifest(listed, stored_files=self.stored_files, supersedes=self.supersedes)
        yield Entry(CRATE, [about])
        yield Entry(MANIFEST, [manifest])
        yield Entry(SIGNATURE, [canonical_line(source.signature(manifest))])


def prepare(
    submission: Submission,
    *,
    screenshots: str = "files",
    judges: bool = True,
    partial: bool = False,
    accept_names: bool = False,
    supersedes: str = "",
    reason: str = "",
) -> Evidence:
    """Return the bundle; ExportRefused with every reason. ``screenshots`` is one of `SCREENSHOTS`.

    ``partial`` exports the existing part, and lists the missing parts. ``accept_names`` accepts texts that contain a
    member's name. ``supersedes`` and ``reason`` as for `parse_supersedes`. Every stored file is read and compared with
    its digest. Raises one of `screenshots.STORE_ERRORS` if the image store does not answer.
    """
    if screenshots not in SCREENSHOTS:
        raise ValueError(f"screenshots must be one of {', '.join(SCREENSHOTS)}, not {screenshots!r}")
    replaced = parse_supersedes(supersedes, reason)
    if problems := _never(submission) or _signable():
        raise ExportRefused(problems)

    # The figures take seconds, and judges keep working meanwhile, even on a frozen submission. Their judgments have no
    # event before the end of the run, so neither the head of the chain nor its lock shows a change.
    with consistent_reads():
        row = Submission.objects.select_related("agent", "benchmark").get(pk=submission.pk)
        missing = [] if partial else missing_for_export(row)
        missing += [] if accept_names else named(row, judges, reason)
        if missing:
            raise ExportRefused(missing)
        bundle = complete(row, judges=judges, pictures=screenshots)
        found = members(row, bundle)  # redactions and texts must be from the same moment
        stored = {member.stored[0] for member in from_store(row) if member.stored}
    checked = _check_files(row, stored, in_bundle=screenshots == "files", partial=partial)
    return Evidence(row, bundle, found, checked, replaced)


def parse_supersedes(manifest: str, reason: str) -> Document | None:
    """Return what a manifest states about the replaced bundle; None if there is none.

    Raise Incomplete for a malformed digest, or if only one part is given. Whether that bundle exists is not checked:
    this instance does not store the manifests that it signed.
    """
    if not manifest.strip():
        if reason.strip():
            says = "Enter the SHA-256 of the replaced bundle's MANIFEST.json, or remove the reason."
            raise Incomplete([Problem("supersedes_missing", says, "supersedes")])
        return None
    replaced = revoking.parse_manifest(manifest, "supersedes")
    return {"manifest": replaced, "reason": require_reason(reason, "replacing a bundle")}


def _check_files(submission: Submission, stored: set[str], *, in_bundle: bool, partial: bool) -> Document | None:
    """Read every stored file; raise ExportRefused for damaged or missing ones.

    A ``partial`` bundle without the files is not refused: its manifest names the damaged and missing files.
    """
    verified_at = instant(clock.now())
    bad = store_checks.find_bad(stored)
    if bad and (in_bundle or not partial):
        raise ExportRefused(store_checks.problems_of(submission, bad))
    if in_bundle:
        return None
    by_kind = {kind: sorted(sha256 for sha256 in bad if bad[sha256] == kind) for kind in ("damaged", "missing")}
    return {"verified_at": verified_at, "files": len(stored), **by_kind}


def write(evidence: Evidence, output: Path, progress: Progress = quiet) -> None:
    """Write the bundle whole or not at all; raises as `exports.write`."""
    exports.write_file(evidence.chunks(progress), output)


def _never(submission: Submission) -> list[Problem]:
    """Return why the submission can never have a bundle."""
    if submission.practice:
        return [Problem("practice", "A practice submission takes no labels, so there is nothing to prove.")]
    if submission.audited:
        says = "This submission was imported from a bundle: pass on that bundle, which the submitter signed."
        return [Problem("audited", says)]
    return []


def _signable() -> list[Problem]:
    """Return a problem if the key cannot be opened. Checked first, because signing is the last step of a bundle."""
    try:
        signing.sign(b"")
    except signing.KeyClosed as closed:
        return [Problem("signing_key_closed", str(closed))]
    return []


def _file_name(submission: Submission, partial: bool) -> str:
    return exports.file_name(submission, "evidence", "zip", partial=partial)


def _manifest(listed: Iterable[Listed], **stated: Document | None) -> bytes:
    """Return the manifest with the files, and what is ``stated`` beside them."""
    files = [{"path": path, "sha256": sha256, "size": size} for path, sha256, size in sorted(listed)]
    manifest: Document = {"format": FORMAT, "files": files}
    return canonical_line(manifest | {name: value for name, value in stated.items() if value is not None})


class _Bytes:
    """The real content: the bytes of every file with their digests, and the signature of the active key."""

    def listed(self, member: Member, listed: list[Listed]) -> Iterator[bytes]:
        size, hashed = 0, hashlib.sha256()
        for chunk in member.chunks():
            size += len(chunk)
            hashed.update(chunk)
            yield chunk
        listed.append((member.path, hashed.hexdigest(), size))

    def digest(self, data: bytes) -> str:
        return hashlib.sha256(data).hexdigest()

    def signature(self, manifest: bytes) -> Document:
        key, signature = signing.sign(manifest)
        return _signature(key.key_id, key.public, signature.hex())


class _Zeros(_Bytes):
    """Content of the same size, without reading the store, hashing or signing."""

    def listed(self, member: Member, listed: list[Listed]) -> Iterator[bytes]:
        size = 0
        for chunk in member.chunks() if member.stored is None else _zeros(member.stored[1]):
            size += len(chunk)
            yield chunk
        listed.append((member.path, UNKNOWN, size))

    def digest(self, data: bytes) -> str:
        return UNKNOWN

    def signature(self, manifest: bytes) -> Document:
        return _signature("0" * 16, UNKNOWN, "0" * 128)


def _signature(key_id: str, public_key: str, signature: str) -> Document:
    return {
        "algorithm": signing.ALGORITHM,
        "key_id": key_id,
        "public_key": public_key,
        "signature": signature,
        "signed": MANIFEST,
    }


def _zeros(size: int) -> Iterator[bytes]:
    for start in range(0, size, len(ZEROS)):
        yield ZEROS[: size - start]
