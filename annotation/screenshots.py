"""The image store: originals by their SHA-256, verified by decoding, and re-encoded before anybody sees them."""

from __future__ import annotations

import functools
import hashlib
import io
import os
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import IO, BinaryIO, cast

from boto3.exceptions import Boto3Error
from botocore.exceptions import BotoCoreError, ClientError
from django.core.files.base import ContentFile, File
from django.core.files.storage import FileSystemStorage, default_storage
from django.utils import timezone
from PIL import Image, ImageDraw
from s3transfer.exceptions import RetriesExceededError

from annotation.models import Attachment, Redaction, Screenshot
from annotation.records import Problem

MAX_PIXELS = 40_000_000  # a full page of 1280 x 31,250; four bytes a pixel keep a decode under 160 MB
MAX_BYTES = 64 * 1024 * 1024
FORMATS = {"PNG": "image/png", "JPEG": "image/jpeg", "WEBP": "image/webp"}
RENEWED_AFTER = timedelta(hours=6)  # well below the day that `prune` leaves to an import
WEBP_MAX_SIDE = 16_383  # a limit of the WebP format
LFS_POINTER = b"version https://git-lfs"
WRITING = ".writing-"  # begins the names of local files that do not have all of their bytes yet

# What a store raises when it is full or gone. The errors of S3 have no common ancestor, and are no OSError.
STORE_ERRORS = (OSError, BotoCoreError, ClientError, Boto3Error, RetriesExceededError)

Image.MAX_IMAGE_PIXELS = MAX_PIXELS

Decode = Callable[[], Image.Image]  # so that several pictures can be made from one decoding


class Rendition(StrEnum):
    """What is served of a screenshot; `FULL` has every pixel of the original, in a new encoding."""

    THUMBNAIL = "thumbnail"
    DISPLAY = "display"
    FULL = "full"


WIDTHS = {Rendition.THUMBNAIL: 240, Rendition.DISPLAY: 1600}
TILE = (200, 108)  # of a sheet: twice what the strip shows, for screens with small pixels
SHEET_STEPS = 20
JUDGE_BOX = (2048, 8000)  # no endpoint uses more pixels a side; what is larger is scaled to fit
JUDGE_QUALITY = 75  # Pillow's default, which the published judges were given
THUMBNAIL_HEIGHT = 180  # thumbnails show the top of a tall page


class ScreenshotError(Exception):
    """A file that is not an acceptable image; ``problem`` says why, without the file's name."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.problem = Problem(code, message)


@dataclass(frozen=True, slots=True)
class ImageFacts:
    """What decoding found: SHA-256 of the bytes, media type, width and height in pixels, size in bytes."""

    sha256: str
    media_type: str
    width: int
    height: int
    size: int


class AtomicFileSystemStorage(FileSystemStorage):
    """Local storage in which a file has all of its bytes or does not exist, whatever is killed in between."""

    def _save(self, name: str, content: File) -> str:
        target = Path(self.path(name))
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=WRITING)
        try:
            with os.fdopen(handle, "wb") as stream:
                for chunk in content.chunks():
                    stream.write(chunk)
            Path(temporary).chmod(0o644)
            Path(temporary).replace(target)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
        return name


def inspect(data: bytes) -> ImageFacts:
    """Decode ``data`` whole and tell what it is; raises ScreenshotError when it is no PNG, JPEG or WebP in bounds."""
    if data.startswith(LFS_POINTER):
        raise ScreenshotError(
            "screenshot_lfs_pointer", "is a Git LFS pointer, not the image; run `git lfs pull` before packing"
        )
    if len(data) > MAX_BYTES:
        raise ScreenshotError("screenshot_too_large", f"has {len(data)} bytes; at most {MAX_BYTES} are accepted")
    image = _decode(data)
    return ImageFacts(hashlib.sha256(data).hexdigest(), FORMATS[str(image.format)], *image.size, len(data))


def _decode(data: bytes) -> Image.Image:
    try:
        image = Image.open(io.BytesIO(data), formats=list(FORMATS))
        if image.width * image.height > MAX_PIXELS:
            raise ScreenshotError(
                "screenshot_too_many_pixels",
                f"has {image.width} x {image.height} pixels; at most {MAX_PIXELS:,} are accepted",
            )
        image.load()
    except ScreenshotError:
        raise
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise ScreenshotError("screenshot_too_many_pixels", f"has too many pixels ({error})") from error
    except Exception as error:  # a decoder fed with hostile bytes may raise nearly anything
        raise ScreenshotError(
            "screenshot_not_an_image",
            "cannot be decoded as PNG, JPEG or WebP; is it complete, and an image at all?",
        ) from error
    return image


def store(data: bytes, facts: ImageFacts) -> Screenshot:
    """Keep an inspected image; the same bytes are kept once."""
    keep_bytes(facts.sha256, data)
    screenshot, _ = Screenshot.objects.get_or_create(
        sha256=facts.sha256,
        defaults={
            "media_type": facts.media_type,
            "width": facts.width,
            "height": facts.height,
            "size": facts.size,
        },
    )
    return screenshot


def keep_bytes(sha256: str, data: bytes) -> None:
    """Write ``data`` under its digest unless it is there already; an old file is made young again.

    What a stopped import has left is as old as that import: `prune` would take it from under the next one.
    """
    _keep(sha256, ContentFile(data))


def keep_file(sha256: str, file: IO[bytes]) -> None:
    """As `keep_bytes`, for a seekable file that is copied from its beginning in chunks."""
    _keep(sha256, File(file))


def _keep(sha256: str, content: File) -> None:
    name = _original_name(sha256)
    if not default_storage.exists(name):
        default_storage.save(name, content)
    elif default_storage.get_modified_time(name) < timezone.now() - RENEWED_AFTER:
        _renew(name, content)


def _renew(name: str, content: File) -> None:
    try:
        os.utime(default_storage.path(name))
    except NotImplementedError:  # an object store knows no paths; writing the same bytes again makes it young
        default_storage.save(name, content)


def original(sha256: str) -> bytes:
    """The original bytes, for evidence and re-export; never served to a browser as they are."""
    with default_storage.open(_original_name(sha256)) as stream:
        return bytes(stream.read())


def open_original(sha256: str) -> BinaryIO:
    """A stream of the original bytes; large attachments are not read as a whole."""
    return cast(BinaryIO, default_storage.open(_original_name(sha256), "rb"))


def rendition(screenshot: Screenshot, kind: Rendition, decode: Decode | None = None) -> tuple[bytes, str]:
    """The picture to serve and its media type; made when first asked for, and kept unless it is the full one."""
    decode = decode or (lambda: decoded(screenshot.sha256))
    if kind is Rendition.FULL:
        return _encode(decode(), "PNG"), "image/png"
    media_type = "image/webp" if _fits_webp(screenshot, kind) else "image/jpeg"
    name = f"renditions/{kind}/{screenshot.sha256[:2]}/{screenshot.sha256}"
    return _kept(name, lambda: _encode(_resize(decode(), kind), media_type.split("/")[1].upper())), media_type


def judge_ready(sha256: str, decode: Decode | None = None) -> bytes:
    """What models are shown of a screenshot: a JPEG within `JUDGE_BOX`, made after its import and the same ever after.

    Made here where that has not happened yet. Never served to a browser.
    """
    decode = decode or (lambda: decoded(sha256))
    return _kept(f"renditions/judge/{sha256[:2]}/{sha256}", lambda: _for_judges(decode()))


def _for_judges(image: Image.Image) -> bytes:
    fitting = image.copy() if image.width > JUDGE_BOX[0] or image.height > JUDGE_BOX[1] else image
    fitting.thumbnail(JUDGE_BOX, Image.Resampling.LANCZOS, reducing_gap=2.0)
    made = io.BytesIO()
    fitting.save(made, "JPEG", quality=JUDGE_QUALITY)
    return made.getvalue()


def prepare(screenshot: Screenshot) -> None:
    """Make what is kept of a screenshot and not there yet, from one decoding."""
    decode = functools.cache(lambda: decoded(screenshot.sha256))
    for kind in (Rendition.THUMBNAIL, Rendition.DISPLAY):
        rendition(screenshot, kind, decode)
    judge_ready(screenshot.sha256, decode)


def _kept(name: str, make: Callable[[], bytes]) -> bytes:
    """What the store has under a name, made and stored when it has nothing."""
    if default_storage.exists(name):
        with default_storage.open(name) as stream:
            return bytes(stream.read())
    data = make()
    default_storage.save(name, ContentFile(data))
    return data


def decoded(sha256: str) -> Image.Image:
    """Every pixel of the original, as RGB; raises one of `STORE_ERRORS` when the store has lost it."""
    return _as_rgb(_decode(original(sha256)))


def sheet(shown: Sequence[Screenshot | None]) -> bytes:
    """The thumbnails of neighbouring steps below one another in one WebP, `TILE` each: one request instead of twenty.

    What has no picture stays empty; at most `SHEET_STEPS`. Raises FileNotFoundError when the store has lost one: a
    sheet with a hole would be kept for ever, and the picture may come back.
    """
    key = hashlib.sha256(" ".join(s.sha256 if s else "-" for s in shown).encode()).hexdigest()
    return _kept(f"renditions/sheet/{key[:2]}/{key}", lambda: _sheet(shown))


def covered(sha256: str, boxes: Sequence[Sequence[int]]) -> bytes:
    """The picture as a PNG in which ``boxes`` ([x, y, width, height] in its pixels) are black.

    Made of the pixels alone, so that nothing of the original file goes along: no text, no profile, no thumbnail.
    Raises one of `STORE_ERRORS` when the store has lost the original.
    """
    source = decoded(sha256)
    image = Image.new("RGB", source.size)
    image.paste(source)
    draw = ImageDraw.Draw(image)
    for x, y, width, height in boxes:
        draw.rectangle((x, y, x + width - 1, y + height - 1), fill="black")
    stream = io.BytesIO()
    image.save(stream, "PNG", compress_level=6)
    return stream.getvalue()


def _sheet(shown: Sequence[Screenshot | None]) -> bytes:
    paper = Image.new("RGB", (TILE[0], TILE[1] * max(len(shown), 1)), "white")
    for row, screenshot in enumerate(shown):
        if screenshot is not None:
            paper.paste(_tile(screenshot), (0, row * TILE[1]))
    return _encode(paper, "WEBP")


def _tile(screenshot: Screenshot) -> Image.Image:
    """The top of a thumbnail, as wide as a tile."""
    image = _as_rgb(_decode(rendition(screenshot, Rendition.THUMBNAIL)[0]))
    whole = image.resize((TILE[0], max(1, round(image.height * TILE[0] / image.width))), Image.Resampling.LANCZOS)
    return whole.crop((0, 0, TILE[0], TILE[1])) if whole.height > TILE[1] else whole


def attachment_bytes(attachment: Attachment) -> bytes:
    return original(attachment.sha256)


def prune(older_than: timedelta) -> int:
    """Delete originals that no row names, as a stopped import leaves them; returns how many. With them goes what a
    killed process has not written to its end, anywhere in a local store.

    ``older_than`` protects an import that is writing its files at this moment and has no rows yet.
    """
    deleted, before = 0, timezone.now() - older_than
    _forget_unfinished(before)
    for folder in _listed("originals")[0]:
        for sha256 in _listed(f"originals/{folder}")[1]:
            name = f"originals/{folder}/{sha256}"  # as it was listed: not every file there is an original
            if not _named(sha256) and stored_at(name) < before:
                default_storage.delete(name)
                deleted += 1
    return deleted


def _forget_unfinished(before: datetime) -> None:
    try:
        folder = Path(default_storage.path(""))
    except NotImplementedError:  # an object store keeps nothing before it is whole
        return
    for file in folder.rglob(f"{WRITING}*"):
        with suppress(OSError):  # such as one that was written to its end at this moment
            if file.stat().st_mtime < before.timestamp():
                file.unlink()


def stored_at(name: str) -> datetime:
    """When; now for a file that is gone meanwhile."""
    try:
        return default_storage.get_modified_time(name)
    except STORE_ERRORS:
        return timezone.now()


def _named(sha256: str) -> bool:
    """Whether any row names these bytes."""
    rows = (
        Screenshot.objects.filter(sha256=sha256),
        Attachment.objects.filter(sha256=sha256),
        Redaction.objects.filter(redacted=sha256),
    )
    return any(found.exists() for found in rows)


def _listed(folder: str) -> tuple[list[str], list[str]]:
    """Folders and files in a folder of the store; a local store has none before its first image."""
    try:
        return default_storage.listdir(folder)
    except FileNotFoundError:
        return [], []


def _original_name(sha256: str) -> str:
    return f"originals/{sha256[:2]}/{sha256}"


def _fits_webp(screenshot: Screenshot, kind: Rendition) -> bool:
    if kind is Rendition.THUMBNAIL:
        return True
    return screenshot.height * min(1, WIDTHS[kind] / screenshot.width) <= WEBP_MAX_SIDE


def _resize(image: Image.Image, kind: Rendition) -> Image.Image:
    width = min(image.width, WIDTHS[kind])
    height = max(1, round(image.height * width / image.width))
    if kind is Rendition.THUMBNAIL and height > THUMBNAIL_HEIGHT:
        image = image.crop((0, 0, image.width, max(1, round(THUMBNAIL_HEIGHT * image.width / width))))
        height = THUMBNAIL_HEIGHT
    if (width, height) == image.size:
        return image
    return image.resize((width, height), Image.Resampling.LANCZOS, reducing_gap=2.0)


def _as_rgb(image: Image.Image) -> Image.Image:
    """Every mode that a PNG, JPEG or WebP may have, as RGB; transparency on white, 16 bits scaled to 8."""
    if image.mode.startswith("I"):
        return image.convert("I").point(lambda value: value / 256).convert("L").convert("RGB")
    if image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info:
        layered = image.convert("RGBA")
        paper = Image.new("RGB", layered.size, "white")
        paper.paste(layered, mask=layered.getchannel("A"))
        return paper
    return image if image.mode == "RGB" else image.convert("RGB")


def _encode(image: Image.Image, image_format: str) -> bytes:
    stream = io.BytesIO()
    # Method 2 costs half the time of the default for a few per cent more bytes.
    options = {"WEBP": {"quality": 82, "method": 2}, "JPEG": {"quality": 88}, "PNG": {"compress_level": 2}}
    image.save(stream, image_format, **options[image_format])
    return stream.getvalue()
