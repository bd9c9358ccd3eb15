"""Images and other files of a bundle: untrusted until they are inspected, and stored by their own digests."""

from __future__ import annotations

import hashlib
import re
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import BinaryIO, cast

from annotation import screenshots
from annotation.formats import har
from annotation.formats.documents import FormatError
from annotation.formats.trajectory_folder import is_image
from annotation.records import AttachmentKind
from annotation.screenshots import ImageFacts
from evaluations.auditing.import_context import Rejections
from evaluations.verifier.documents import Document
from evaluations.verifier.package import Package

PICTURE = re.compile(r"screenshots/([0-9a-f]{64})(\.redacted)?\.(?:png|jpg|webp)")


@dataclass(slots=True)
class StoredFiles:
    """The files of a bundle that are in the image store.

    ``images`` has the facts of every image by its own digest. ``displayed`` maps the digest of an original to the
    digest of the image shown for it: the original or its redacted version. ``attachments`` are kinds with digests.
    """

    images: dict[str, ImageFacts] = field(default_factory=dict)
    displayed: dict[str, str] = field(default_factory=dict)
    attachments: set[tuple[str, str]] = field(default_factory=set)


def store_files(package: Package, lines: Callable[[], Iterable[Document]], rejections: Rejections) -> StoredFiles:
    """Inspect every file that trajectories name, and put it into the image store; invalid files are left out.

    Raises one of `screenshots.STORE_ERRORS` when the disk or the store fails.
    """
    stored = StoredFiles()
    present = set(package.names())
    names = {match[1]: match for name in sorted(present) if (match := PICTURE.fullmatch(name))}
    for line in lines():
        for step in line["steps"]:
            stated = step["screenshot"]
            if stated and stated["sha256"] in names and stated["sha256"] not in stored.displayed:
                _store_image(package, names[stated["sha256"]], stored, rejections)
        for file in line["attachments"]:
            known = (file["kind"], file["sha256"]) in stored.attachments
            if not known and f"attachments/{file['sha256']}" in present:
                _store_attachment(package, file, stored, rejections)
    return stored


def _store_image(package: Package, match: re.Match[str], stored: StoredFiles, rejections: Rejections) -> None:
    data = package.read(match[0])
    try:
        facts = screenshots.inspect(data)
    except screenshots.ScreenshotError as error:
        rejections.accept(match[0], error.problem.message)
        return
    if match[2] is None and facts.sha256 != match[1]:
        rejections.accept(match[0], "its image differs from the digest in its name")
        return
    screenshots.keep_bytes(facts.sha256, data)
    stored.images[facts.sha256] = facts
    stored.displayed[match[1]] = facts.sha256


def _store_attachment(package: Package, file: Document, stored: StoredFiles, rejections: Rejections) -> None:
    name = f"attachments/{file['sha256']}"
    with tempfile.TemporaryFile(prefix="attachment-") as stream:
        hashed = hashlib.sha256()
        for piece in package.stream(name):
            hashed.update(piece)
            stream.write(piece)
        problem = "its content differs from the digest in its name" if hashed.hexdigest() != file["sha256"] else None
        problem = problem or _find_fault(cast(BinaryIO, stream), file, stored)
        if rejections.accept(name, problem):
            stream.seek(0)
            screenshots.keep_file(file["sha256"], stream)
            stored.attachments.add((file["kind"], file["sha256"]))


def _find_fault(stream: BinaryIO, file: Document, stored: StoredFiles) -> str | None:
    """Return why a file must not be shown as its stated kind, or None; record images of cached pages in ``images``."""
    stream.seek(0)
    if file["kind"] == AttachmentKind.CACHED_PAGE and is_image(file["name"]):
        try:
            facts = screenshots.inspect(stream.read(screenshots.MAX_BYTES + 1))
        except screenshots.ScreenshotError as error:
            return error.problem.message
        stored.images[facts.sha256] = facts
    if file["kind"] == AttachmentKind.NETWORK_TRACE:
        try:
            har.redact(stream, file["name"], _Nowhere())
        except FormatError as error:
            return str(error)
    return None


class _Nowhere:
    def write(self, data: bytes, /) -> None:
        pass
