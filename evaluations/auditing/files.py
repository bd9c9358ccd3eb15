"""The pictures and other files of a bundle: hostile until they are inspected, and kept by their own digests."""

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
from evaluations.auditing.gathering import LeftOut
from evaluations.verifier.documents import Document
from evaluations.verifier.package import Package

PICTURE = re.compile(r"screenshots/([0-9a-f]{64})(\.redacted)?\.(?:png|jpg|webp)")


@dataclass(slots=True)
class Kept:
    """What of a bundle's files is in the image store.

    ``pictures`` are facts of every picture by its own digest; ``shown`` says by the digest of an original which of
    them is shown in its place: itself, or the one whose parts are covered. ``attachments`` are kinds with digests.
    """

    pictures: dict[str, ImageFacts] = field(default_factory=dict)
    shown: dict[str, str] = field(default_factory=dict)
    attachments: set[tuple[str, str]] = field(default_factory=set)


def keep_files(package: Package, lines: Callable[[], Iterable[Document]], left_out: LeftOut) -> Kept:
    """Inspect every file that trajectories name, and put it into the image store; what is no good is left out.

    Raises one of `screenshots.STORE_ERRORS` when the disk or the store fails.
    """
    kept = Kept()
    present = set(package.names())
    names = {match[1]: match for name in sorted(present) if (match := PICTURE.fullmatch(name))}
    for line in lines():
        for step in line["steps"]:
            stated = step["screenshot"]
            if stated and stated["sha256"] in names and stated["sha256"] not in kept.shown:
                _keep_picture(package, names[stated["sha256"]], kept, left_out)
        for file in line["attachments"]:
            known = (file["kind"], file["sha256"]) in kept.attachments
            if not known and f"attachments/{file['sha256']}" in present:
                _keep_attachment(package, file, kept, left_out)
    return kept


def _keep_picture(package: Package, match: re.Match[str], kept: Kept, left_out: LeftOut) -> None:
    data = package.read(match[0])
    try:
        facts = screenshots.inspect(data)
    except screenshots.ScreenshotError as error:
        left_out.keep(match[0], error.problem.message)
        return
    if match[2] is None and facts.sha256 != match[1]:
        left_out.keep(match[0], "it is another picture than its name says")
        return
    screenshots.keep_bytes(facts.sha256, data)
    kept.pictures[facts.sha256] = facts
    kept.shown[match[1]] = facts.sha256


def _keep_attachment(package: Package, file: Document, kept: Kept, left_out: LeftOut) -> None:
    name = f"attachments/{file['sha256']}"
    with tempfile.TemporaryFile(prefix="attachment-") as stream:
        hashed = hashlib.sha256()
        for piece in package.stream(name):
            hashed.update(piece)
            stream.write(piece)
        problem = "it is another file than its name says" if hashed.hexdigest() != file["sha256"] else None
        problem = problem or _unusable(cast(BinaryIO, stream), file, kept)
        if left_out.keep(name, problem):
            stream.seek(0)
            screenshots.keep_file(file["sha256"], stream)
            kept.attachments.add((file["kind"], file["sha256"]))


def _unusable(stream: BinaryIO, file: Document, kept: Kept) -> str | None:
    """Why a file must not be shown as what it is said to be; pictures of kept pages are noted as pictures."""
    stream.seek(0)
    if file["kind"] == AttachmentKind.CACHED_PAGE and is_image(file["name"]):
        try:
            facts = screenshots.inspect(stream.read(screenshots.MAX_BYTES + 1))
        except screenshots.ScreenshotError as error:
            return error.problem.message
        kept.pictures[facts.sha256] = facts
    if file["kind"] == AttachmentKind.NETWORK_TRACE:
        try:
            har.redact(stream, file["name"], _Nowhere())
        except FormatError as error:
            return str(error)
    return None


class _Nowhere:
    """Takes what is read and keeps nothing of it."""

    def write(self, data: bytes, /) -> None:
        pass
