"""Screenshots that are changed when they are sent: scaled, encoded again, or with a line of text drawn on them."""

from __future__ import annotations

import hashlib
import io
import json
from dataclasses import dataclass

from PIL import Image, ImageDraw, ImageFont

from judges.llm import ImageRef

QUALITY = 75  # as `annotation.screenshots.JUDGE_QUALITY`: only the stated change differs
BANNER = 16  # pixels; the smallest size of the drawn text, which grows with the image


@dataclass(frozen=True, slots=True)
class ChangedImage(ImageRef):
    """A change of the stored image ``source``. ``digest`` names source and change: the bytes do not exist yet."""

    source: ImageRef
    scale: float = 1.0
    quality: int = QUALITY
    banner: str = ""

    @classmethod
    def of(cls, source: ImageRef, *, scale: float = 1.0, quality: int = QUALITY, banner: str = "") -> ChangedImage:
        stated = json.dumps([source.digest, scale, quality, banner])
        return cls(hashlib.sha256(stated.encode()).hexdigest(), source, scale, quality, banner)

    def render(self, jpeg: bytes) -> bytes:
        """Return the JPEG that is sent, from the judge-ready JPEG of ``source``."""
        image = Image.open(io.BytesIO(jpeg)).convert("RGB")
        if self.scale != 1.0:
            size = (max(1, round(image.width * self.scale)), max(1, round(image.height * self.scale)))
            image = image.resize(size, Image.Resampling.LANCZOS)
        if self.banner:
            _draw_banner(image, self.banner)
        stream = io.BytesIO()
        image.save(stream, "JPEG", quality=self.quality)
        return stream.getvalue()


def _draw_banner(image: Image.Image, text: str) -> None:
    """Draw ``text`` in lines that fit, black on white, at the top of the image."""
    font = ImageFont.load_default(max(BANNER, image.width // 60))
    draw = ImageDraw.Draw(image)
    lines = [""]
    for word in text.split():
        longer = f"{lines[-1]} {word}".strip()
        if lines[-1] and draw.textlength(longer, font=font) > image.width - 20:
            lines.append(word)
        else:
            lines[-1] = longer
    box = draw.multiline_textbbox((10, 5), "\n".join(lines), font=font)
    draw.rectangle((0, 0, image.width, box[3] + 5), fill="white")
    draw.multiline_text((10, 5), "\n".join(lines), fill="black", font=font)
