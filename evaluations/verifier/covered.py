"""Redactions: pictures of which parts are covered, and what must hold of what stands in their place."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

from evaluations.verifier.documents import Bundle, Document
from evaluations.verifier.findings import Finding, noted
from evaluations.verifier.package import Package
from evaluations.verifier.reading import Reading
from evaluations.verifier.wrongs import counted

PNG_HEAD = struct.Struct(">8s4x4s2L")  # magic, length and name of the first chunk, width and height in pixels
PNG_MAGIC = b"\x89PNG\r\n\x1a\n"
LONGEST_MAGIC = 32

WrongPictures = list[tuple[str, str]]  # place and sentence


def covered_pictures(reading: Reading, bundle: Bundle) -> tuple[dict[str, Document], WrongPictures]:
    """The redactions that hold by the SHA-256 of the original, and what is wrong with any of them."""
    newest: dict[str, Document] = {}
    wrong = []
    for each in bundle.redactions:
        original = each["original"]
        if each["revision"] > newest.get(original, {"revision": -1})["revision"]:
            newest[original] = each
        wrong += [(original, f"redaction {each['revision']} of {original} {says}") for says in _faults(each, reading)]
    return {original: each for original, each in newest.items() if each["boxes"] and each["redacted"]}, wrong


def _faults(redaction: Document, reading: Reading) -> Iterator[str]:
    if bool(redaction["boxes"]) != (redaction["redacted"] is not None):
        yield "is half a one"
    stated = reading.pictures.get(redaction["original"])
    if stated is None:
        yield "is of no screenshot of a step"
        return
    _, _, width, height = min(stated)
    for x, y, across, down in redaction["boxes"]:
        if not (across and down) or x + across > width or y + down > height:
            yield f"has a box that is not inside of the {width} x {height} pixels"
            return


def head_of(package: Package, name: str) -> bytes:
    """The first bytes of a file, as many as tell a picture."""
    return next(package.stream(name), b"")[:LONGEST_MAGIC]


def is_picture_of(head: bytes, media_type: str) -> bool:
    """Whether a file begins as one of its media type does."""
    if media_type == "image/webp":
        return head[:4] == b"RIFF" and head[8:12] == b"WEBP"
    return head.startswith({"image/png": PNG_MAGIC, "image/jpeg": b"\xff\xd8\xff"}.get(media_type, PNG_MAGIC))


def is_png_of(head: bytes, width: int, height: int) -> bool:
    """Whether a file begins as a PNG of so many pixels."""
    if len(head) < PNG_HEAD.size:
        return False
    return bool(PNG_HEAD.unpack_from(head) == (PNG_MAGIC, b"IHDR", width, height))


def redacted_note(covered: dict[str, Document], reading: Reading, bundle: Bundle) -> Finding:
    """How much of the pictures is covered, and since when."""
    shares = [_covered_share(each, reading) for each in covered.values()]
    frozen = bundle.submission["frozen_at"]
    late = sum(frozen is not None and each["redacted_at"] > frozen for each in covered.values())
    most = f"at most {max(shares):.0%}" if max(shares) >= 0.01 else "less than 1%"
    pictures = counted(len(covered), "picture")
    says = (
        f"Parts of {pictures} are covered: {most} of one. Covered after the freeze: {late:,}. Their originals are "
        "known by their digests only, so nobody can tell whether what is not covered is as it was in the original."
    )
    return noted("redacted", "Pictures of which parts are covered", says, sorted(covered))


def _covered_share(redaction: Document, reading: Reading) -> float:
    """Of the area that boxes cover, at most: they may overlap."""
    stated: Any = min(reading.pictures.get(redaction["original"], {(0, "", 0, 0)}))
    pixels = stated[2] * stated[3]
    covered = sum(across * down for _, _, across, down in redaction["boxes"])
    return min(1.0, covered / pixels) if pixels else 1.0
