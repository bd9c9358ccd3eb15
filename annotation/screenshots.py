"""The image store: originals by SHA-256, decoded to verify them, and encoded again before they are served."""

from __future__ import annotations

import functools
import hashlib
import io
import os
import tempfile
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import IO, BinaryIO, cast

from django.core.files.base import ContentFile, File
from django.core.files.storage import FileSystemStorage, default_storage
from django.utils import timezone
from PIL import Image, ImageDraw, ImageFont

from annotation.models import Attachment, Redaction, Screenshot
from annotation.records import Problem

try:
    from boto3.exceptions import Boto3Error
    from botocore.exceptions import BotoCoreError, ClientError
    from s3transfer.exceptions import RetriesExceededError
except ImportError:  # without the extra `s3`, nothing raises them
    Boto3Error = BotoCoreError = ClientError = RetriesExceededError = type("NeverRaised", (Exception,), {})

MAX_PIXELS = 40_000_000  # a full page of 1280 x 31,250; at four bytes per pixel, an image needs at most 160 MB
MAX_BYTES = 64 * 1024 * 1024
FORMATS = {"PNG": "image/png", "JPEG": "image/jpeg", "WEBP": "image/webp"}
RENEWED_AFTER = timedelta(hours=6)  # well below the day that `prune` leaves to an import
WEBP_MAX_SIDE = 16_383  # a limit of the WebP format
LFS_POINTER = b"version https://git-lfs"
CHUNK = 1 << 20  # bytes of a stored file in memory while its digest is computed
SEAL = 32  # bytes; the SHA-256 at the end of a cached rendition covers the bytes before it
WRITING = ".writing-"  # prefix of the names of unfinished local files

# Errors of a store that is full or not available. The errors of S3 have no common base class, and are not OSErrors.
STORE_ERRORS = (OSError, BotoCoreError, ClientError, Boto3Error, RetriesExceededError)

Image.MAX_IMAGE_PIXELS = MAX_PIXELS

# Digests of the files saved so far in a block of `file_cleanup.delete_files_on_failure`.
saved_digests: ContextVar[set[str] | None] = ContextVar("saved_digests", default=None)

Decode = Callable[[], Image.Image]  # so that several images can be created from one decoding


class Rendition(StrEnum):
    """Renditions served to browsers; `FULL` has every pixel of the original, in a new encoding."""

    THUMBNAIL = "thumbnail"
    DISPLAY = "display"
    FULL = "full"


CACHED = (Rendition.THUMBNAIL, Rendition.DISPLAY, "judge")  # folders of renditions, named by the original
SHEETS = ("sheet",)  # named by `sheet_key`


WIDTHS = {Rendition.THUMBNAIL: 240, Rendition.DISPLAY: 1600}
TILE = (200, 108)  # of a sheet: twice what the strip shows, for screens with small pixels
SHEET_QUALITY = 50  # looks like 82 even when enlarged four times, with 62% of the bytes
SHEET_STEPS = 20
PLACEHOLDER = (960, 600)  # size in pixels of the image that replaces a damaged screenshot
DAMAGED = "This screenshot is damaged.\nThe stored file differs\nfrom the imported one."
JUDGE_BOX = (2048, 8000)  # no endpoint uses more pixels per side; larger images are scaled to fit
JUDGE_QUALITY = 75  # Pillow's default, which the published judges used
THUMBNAIL_HEIGHT = 180  # thumbnails show the top of a tall page


class ScreenshotError(Exception):
    """A file that is not an acceptable image; ``problem`` says why, without the file's name."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.problem = Problem(code, message)


class DamagedFile(OSError):
    """A stored original whose bytes have another SHA-256 than its name; one of `STORE_ERRORS`."""

    def __init__(self, sha256: str) -> None:
        super().__init__(f"the stored file {sha256[:12]} is damaged: its SHA-256 differs from its name")
        self.sha256 = sha256


@dataclass(frozen=True, slots=True)
class ImageFacts:
    """Image metadata: SHA-256 of the bytes, media type, width and height in pixels, size in bytes."""

    sha256: str
    media_type: str
    width: int
    height: int
    size: int


class AtomicFileSystemStorage(FileSystemStorage):
    """Local storage in which a file is complete or does not exist, even if the process is killed."""

    def get_available_name(self, name: str, max_length: int | None = None) -> str:
        """Return ``name`` unchanged, so that simultaneous imports of one original write the same file."""
        return name

    def _save(self, name: str, content: File) -> str:
        target = Path(self.path(name))
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=WRITING)  # mode 0600
        try:
            with os.fdopen(handle, "wb") as stream:
                for chunk in content.chunks():
                    stream.write(chunk)
            Path(temporary).replace(target)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
        return name


def inspect(data: bytes) -> ImageFacts:
    """Decode ``data`` completely. Raises ScreenshotError unless it is a PNG, JPEG or WebP within the limits."""
    if data.startswith(LFS_POINTER):
        raise ScreenshotError(
            "screenshot_lfs_pointer", "is a Git LFS pointer, not the image; run `git lfs pull` before packing"
        )
    if len(data) > MAX_BYTES:
        raise ScreenshotError("screenshot_too_large", f"has {len(data)} bytes; the limit is {MAX_BYTES}")
    image = _decode(data)
    return ImageFacts(hashlib.sha256(data).hexdigest(), FORMATS[str(image.format)], *image.size, len(data))


def _decode(data: bytes) -> Image.Image:
    try:
        image = Image.open(io.BytesIO(data), formats=list(FORMATS))
        if image.width * image.height > MAX_PIXELS:
            raise ScreenshotError(
                "screenshot_too_many_pixels",
                f"has {image.width} x {image.height} pixels; the limit is {MAX_PIXELS:,}",
            )
        image.load()
    except ScreenshotError:
        raise
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise ScreenshotError("screenshot_too_many_pixels", f"has too many pixels ({error})") from error
    except Exception as error:  # a decoder fed with hostile bytes may raise nearly anything
        raise ScreenshotError(
            "screenshot_not_an_image",
            "cannot be decoded as PNG, JPEG or WebP: it is incomplete or not an image",
        ) from error
    return image


def store(data: bytes, facts: ImageFacts) -> Screenshot:
    """Store an inspected image; the same bytes are stored once."""
    keep_bytes(facts.sha256, data)
    return Screenshot.objects.get_or_create(sha256=facts.sha256, defaults=asdict(facts))[0]


def keep_bytes(sha256: str, data: bytes) -> None:
    """Store ``data`` under its digest, unless an intact file exists; its modification time is set to now.

    Otherwise `prune` could delete an old file of a stopped import while the next import uses it.
    """
    _keep(sha256, ContentFile(data))


def keep_file(sha256: str, file: IO[bytes]) -> None:
    """As `keep_bytes`, for a seekable file that is copied from its beginning in chunks."""
    _keep(sha256, File(file))


def _keep(sha256: str, content: File) -> None:
    name = _original_name(sha256)
    if (digests := saved_digests.get()) is not None:
        digests.add(sha256)  # before the write: a failed write may have reached an object store
    if not default_storage.exists(name):
        default_storage.save(name, content)
        return
    try:
        check_original(sha256)
    except DamagedFile:
        default_storage.delete(name)
        default_storage.save(name, content)
        Screenshot.objects.filter(sha256=sha256).update(damaged_at=None)
        return
    if default_storage.get_modified_time(name) < timezone.now() - RENEWED_AFTER:
        try:
            os.utime(default_storage.path(name))
        except NotImplementedError:  # an object store has no paths; writing the same bytes again updates the time
            default_storage.save(name, content)


def original(sha256: str) -> bytes:
    """Return the original bytes, for evidence and exports, never for browsers. Raises DamagedFile."""
    with default_storage.open(_original_name(sha256)) as stream:
        data = bytes(stream.read())
    if hashlib.sha256(data).hexdigest() != sha256:
        raise DamagedFile(sha256)
    return data


def open_original(sha256: str) -> BinaryIO:
    """Verify the original bytes and return a stream of them; raises DamagedFile."""
    stream = open_unverified(sha256)
    try:
        if _digest(stream)[0] != sha256:
            raise DamagedFile(sha256)
        stream.seek(0)
    except BaseException:
        stream.close()
        raise
    return stream


def open_unverified(sha256: str) -> BinaryIO:
    """Return a stream of the stored bytes, for callers that compute the digest themselves."""
    return cast(BinaryIO, default_storage.open(_original_name(sha256), "rb"))


def check_original(sha256: str) -> int:
    """Read a stored original in chunks and return its size in bytes; raises DamagedFile."""
    with open_unverified(sha256) as stream:
        found, size = _digest(stream)
    if found != sha256:
        raise DamagedFile(sha256)
    return size


def _digest(stream: BinaryIO) -> tuple[str, int]:
    hashed, size = hashlib.sha256(), 0
    while chunk := stream.read(CHUNK):
        hashed.update(chunk)
        size += len(chunk)
    return hashed.hexdigest(), size


def rendition(screenshot: Screenshot, kind: Rendition, decode: Decode | None = None) -> tuple[bytes, str]:
    """Return the image to serve and its media type; it is cached on the first request, except the full one."""
    decode = decode or (lambda: decoded(screenshot.sha256))
    if kind is Rendition.FULL:
        return _encode(decode(), "PNG"), "image/png"
    height = screenshot.height * min(1, WIDTHS[kind] / screenshot.width)
    media_type = "image/webp" if kind is Rendition.THUMBNAIL or height <= WEBP_MAX_SIDE else "image/jpeg"
    name = f"renditions/{kind}/{screenshot.sha256[:2]}/{screenshot.sha256}"
    return _load_or_render(name, lambda: _encode(_resize(decode(), kind), media_type.split("/")[1].upper())), media_type


def judge_ready(sha256: str, decode: Decode | None = None) -> bytes:
    """Return the JPEG within `JUDGE_BOX` for models, cached so that it never changes. Never served to a browser."""
    decode = decode or (lambda: decoded(sha256))
    return _load_or_render(f"renditions/judge/{sha256[:2]}/{sha256}", lambda: _encode_for_judges(decode()))


def _encode_for_judges(image: Image.Image) -> bytes:
    fitting = image.copy() if image.width > JUDGE_BOX[0] or image.height > JUDGE_BOX[1] else image
    fitting.thumbnail(JUDGE_BOX, Image.Resampling.LANCZOS, reducing_gap=2.0)
    return _encode(fitting, "JPEG", quality=JUDGE_QUALITY)


def prepare(screenshot: Screenshot) -> None:
    """Cache the missing renditions of a screenshot, from one decoding."""
    decode = functools.cache(lambda: decoded(screenshot.sha256))
    for kind in (Rendition.THUMBNAIL, Rendition.DISPLAY):
        rendition(screenshot, kind, decode)
    judge_ready(screenshot.sha256, decode)


def _load_or_render(name: str, make: Callable[[], bytes]) -> bytes:
    """Return the cached rendition of this name. A missing or damaged one is rendered and stored.

    Renditions of earlier versions have no digest, so damage could not be detected: they are rendered again.
    """
    if default_storage.exists(name):
        with default_storage.open(name) as stream:
            sealed = bytes(stream.read())
        if hashlib.sha256(sealed[:-SEAL]).digest() == sealed[-SEAL:]:
            return sealed[:-SEAL]
        data = make()
        default_storage.delete(name)
    else:
        data = make()
    default_storage.save(name, ContentFile(data + hashlib.sha256(data).digest()))
    return data


def decoded(sha256: str) -> Image.Image:
    """Return the pixels of the original, as RGB; raises one of `STORE_ERRORS` for a missing or damaged file."""
    return _convert_to_rgb(_decode(original(sha256)))


def sheet(shown: Sequence[Screenshot | None]) -> tuple[bytes, list[str]]:
    """Return the thumbnails of at most `SHEET_STEPS` steps in one column of a WebP, `TILE` each, for one request.

    Also return the digests of damaged screenshots. Their tiles show a message, and such a sheet is not cached, because
    the files may be restored. A step without a screenshot stays empty. Raises FileNotFoundError for a missing file.
    """
    key = sheet_key(shown)
    try:
        return _load_or_render(f"renditions/sheet/{key[:2]}/{key}", lambda: _sheet(shown, _tile)), []
    except DamagedFile:
        damaged: list[str] = []
        return _sheet(shown, functools.partial(_tile_if_intact, damaged)), damaged


def sheet_key(shown: Sequence[Screenshot | None]) -> str:
    return hashlib.sha256(" ".join(s.sha256 if s else "-" for s in shown).encode()).hexdigest()


def placeholder(text: str, size: tuple[int, int] = PLACEHOLDER) -> Image.Image:
    image = Image.new("RGB", size, "#e4e4e4")
    draw = ImageDraw.Draw(image)
    draw.rectangle((0, 0, size[0] - 1, size[1] - 1), outline="#8b0000", width=max(2, size[0] // 100))
    font = ImageFont.load_default(size[0] / 20)
    draw.multiline_text((size[0] / 2, size[1] / 2), text, fill="#8b0000", font=font, anchor="mm", align="center")
    return image


def damaged_picture() -> bytes:
    """Return a PNG for browsers in place of a damaged screenshot."""
    return _encode(placeholder(DAMAGED), "PNG")


def covered(sha256: str, boxes: Sequence[Sequence[int]]) -> bytes:
    """Return a PNG in which ``boxes`` ([x, y, width, height] in pixels) are black. Raises one of `STORE_ERRORS`."""
    source = decoded(sha256)
    image = Image.new("RGB", source.size)  # only pixels: no texts, profiles or thumbnails of the original file
    image.paste(source)
    draw = ImageDraw.Draw(image)
    for x, y, width, height in boxes:
        draw.rectangle((x, y, x + width - 1, y + height - 1), fill="black")
    return _encode(image, "PNG", compress_level=6)


def _sheet(shown: Sequence[Screenshot | None], tile: Callable[[Screenshot], Image.Image]) -> bytes:
    paper = Image.new("RGB", (TILE[0], TILE[1] * max(len(shown), 1)), "white")
    for row, screenshot in enumerate(shown):
        if screenshot is not None:
            paper.paste(tile(screenshot), (0, row * TILE[1]))
    return _encode(paper, "WEBP", quality=SHEET_QUALITY)


def _tile(screenshot: Screenshot) -> Image.Image:
    image = _convert_to_rgb(_decode(rendition(screenshot, Rendition.THUMBNAIL)[0]))
    whole = image.resize((TILE[0], max(1, round(image.height * TILE[0] / image.width))), Image.Resampling.LANCZOS)
    return whole.crop((0, 0, TILE[0], TILE[1])) if whole.height > TILE[1] else whole


def _tile_if_intact(damaged: list[str], screenshot: Screenshot) -> Image.Image:
    try:
        return _tile(screenshot)
    except DamagedFile:
        damaged.append(screenshot.sha256)
        return placeholder("damaged", TILE)


def prune(older_than: timedelta) -> int:
    """Delete originals that no row names, and unfinished files of a local store; return the number of originals.

    ``older_than`` protects an import that is writing its files and has no rows yet.
    """
    deleted, before = 0, timezone.now() - older_than
    _forget_unfinished(before)
    for folder in _list_folder("originals")[0]:
        for sha256 in _list_folder(f"originals/{folder}")[1]:
            name = f"originals/{folder}/{sha256}"  # as it was listed: not every file there is an original
            if not _is_named(sha256) and stored_at(name) < before:
                delete_renditions([sha256])
                default_storage.delete(name)
                deleted += 1
    return deleted


def delete_unnamed(digests: Iterable[str]) -> None:
    """Delete originals that no row names, of any age. Only safe under the exclusive lock of `file_cleanup`."""
    for sha256 in digests:
        if not _is_named(sha256):
            delete_renditions([sha256])
            default_storage.delete(_original_name(sha256))  # last: while it is there, `prune` finds what is left


def delete_renditions(digests: Sequence[str], kinds: Sequence[str] = CACHED) -> None:
    """Delete cached renditions of originals, or sheets by their keys; they are rendered again if they are needed."""
    for kind in kinds:
        for name in digests:
            default_storage.delete(f"renditions/{kind}/{name[:2]}/{name}")


def _forget_unfinished(before: datetime) -> None:
    try:
        folder = Path(default_storage.path(""))
    except NotImplementedError:  # an object store has no unfinished files
        return
    for file in folder.rglob(f"{WRITING}*"):
        with suppress(OSError):  # such as a file that was completed at this moment
            if file.stat().st_mtime < before.timestamp():
                file.unlink()


def stored_at(name: str) -> datetime:
    """Return the time of a stored file; now if it was deleted meanwhile."""
    try:
        return default_storage.get_modified_time(name)
    except STORE_ERRORS:
        return timezone.now()


def _is_named(sha256: str) -> bool:
    rows = (
        Screenshot.objects.filter(sha256=sha256),
        Attachment.objects.filter(sha256=sha256),
        Redaction.objects.filter(redacted=sha256),
    )
    return any(found.exists() for found in rows)


def _list_folder(folder: str) -> tuple[list[str], list[str]]:
    try:
        return default_storage.listdir(folder)
    except FileNotFoundError:  # a local store before its first image
        return [], []


def _original_name(sha256: str) -> str:
    return f"originals/{sha256[:2]}/{sha256}"


def _resize(image: Image.Image, kind: Rendition) -> Image.Image:
    width = min(image.width, WIDTHS[kind])
    height = max(1, round(image.height * width / image.width))
    if kind is Rendition.THUMBNAIL and height > THUMBNAIL_HEIGHT:
        image = image.crop((0, 0, image.width, max(1, round(THUMBNAIL_HEIGHT * image.width / width))))
        height = THUMBNAIL_HEIGHT
    if (width, height) == image.size:
        return image
    return image.resize((width, height), Image.Resampling.LANCZOS, reducing_gap=2.0)


def _convert_to_rgb(image: Image.Image) -> Image.Image:
    """Convert every mode of a PNG, JPEG or WebP; transparency on white, 16 bits scaled to 8."""
    if image.mode.startswith("I"):
        return image.convert("I").point(lambda value: value / 256).convert("L").convert("RGB")
    if image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info:
        layered = image.convert("RGBA")
        paper = Image.new("RGB", layered.size, "white")
        paper.paste(layered, mask=layered.getchannel("A"))
        return paper
    return image if image.mode == "RGB" else image.convert("RGB")


def _encode(image: Image.Image, image_format: str, **options: int) -> bytes:
    stream = io.BytesIO()
    # Method 4 takes 46 ms instead of 22 for a screenshot, once, and saves 4% of the bytes each time it is shown.
    defaults = {"WEBP": {"quality": 82, "method": 4}, "JPEG": {"quality": 88}, "PNG": {"compress_level": 2}}
    image.save(stream, image_format, **defaults[image_format] | options)
    return stream.getvalue()
