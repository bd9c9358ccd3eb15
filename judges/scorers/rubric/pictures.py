"""Images of pages: their stored form, and the form that a model gets."""

from __future__ import annotations

import base64
import binascii
import io

from PIL import Image

MOST_PIXELS = 40_000_000  # a decode stays under 160 MB
MOST_BYTES = 64 * 1024 * 1024
FORMATS = ("PNG", "JPEG", "WEBP")
QUALITY = 85
WIDEST, HIGHEST = 1100, 10_000  # pixels; a wider image is scaled, an image that is then higher is cropped

# Errors of a decoder on broken bytes; DecompressionBombWarning is raised if warnings are errors.
BROKEN = (OSError, ValueError, SyntaxError, EOFError, IndexError, MemoryError, TypeError, KeyError, OverflowError)


class PictureError(ValueError):
    """Bytes that are not an image, or an image with too many pixels."""


class TooManyPixels(PictureError):
    """An image that is refused before it is decoded."""


def decode(data: bytes) -> Image.Image:
    """Return the image, in memory; raise PictureError if it is not an image, or has more than `MOST_PIXELS`."""
    if len(data) > MOST_BYTES:
        raise TooManyPixels(f"The image has {len(data):,} bytes; the limit is {MOST_BYTES:,}.")
    try:
        picture = Image.open(io.BytesIO(data), formats=FORMATS)
        width, height = picture.size
        if width * height > MOST_PIXELS:
            raise TooManyPixels(f"The image has {width} x {height} pixels; the limit is {MOST_PIXELS:,}.")
        picture.load()
    except PictureError:
        raise
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise TooManyPixels(f"The image has too many pixels: {error}") from error
    except BROKEN as error:
        raise PictureError("The image cannot be decoded as PNG, JPEG or WebP.") from error
    return picture


def flatten_on_white(picture: Image.Image) -> Image.Image:
    if picture.has_transparency_data:
        layers = picture.convert("RGBA")
        white = Image.new("RGBA", layers.size, "white")
        return Image.alpha_composite(white, layers).convert("RGB")
    if picture.mode.startswith("I;16"):  # converting it directly would cut every value at 255
        return picture.convert("I").point(lambda value: value / 257).convert("L").convert("RGB")
    return picture.convert("RGB")


def encode_jpeg(picture: Image.Image) -> bytes:
    written = io.BytesIO()
    picture.save(written, "JPEG", quality=QUALITY)
    return written.getvalue()


def convert_for_cache(screenshot: bytes | str) -> bytes:
    """Return a screenshot (bytes, or base64 with or without the head of a data URL) as the JPEG for a cache."""
    return encode_jpeg(flatten_on_white(decode(read_bytes(screenshot))))


def read_bytes(screenshot: bytes | str) -> bytes:
    if isinstance(screenshot, bytes):
        return screenshot
    encoded = screenshot.partition(",")[2] if screenshot.startswith("data:") else screenshot
    try:
        return base64.b64decode("".join(encoded.split()), validate=True)
    except (binascii.Error, ValueError) as error:
        raise PictureError("The screenshot is not valid base64.") from error


def convert_for_model(data: bytes) -> bytes:
    """Return a stored image as a model gets it: RGB, at most `WIDEST` wide and `HIGHEST` high.

    Bytes that cannot be decoded are sent unchanged, as in the published engine, so that the endpoint refuses them; an
    image with too many pixels raises TooManyPixels.
    """
    try:
        picture = flatten_on_white(decode(data))
        if picture.width > WIDEST:
            height = max(1, round(picture.height * WIDEST / picture.width))
            picture = picture.resize((WIDEST, height), Image.Resampling.LANCZOS)
        if picture.height > HIGHEST:
            picture = picture.crop((0, 0, picture.width, HIGHEST))
        return encode_jpeg(picture)
    except TooManyPixels:
        raise
    except PictureError:
        return data


def build_data_url(jpeg: bytes) -> str:
    return f"data:image/jpeg;base64,{base64.b64encode(jpeg).decode('ascii')}"
