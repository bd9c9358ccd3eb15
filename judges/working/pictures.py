"""The pictures that judges are shown, out of the image store."""

from __future__ import annotations

import asyncio

from annotation import screenshots
from judges.llm import CallFailed, ImageRef


class StoredImages:
    """`llm.Images`: the judge-ready JPEG that the import has made, read in a thread of its own."""

    async def load(self, image: ImageRef) -> bytes:
        try:
            return await asyncio.to_thread(screenshots.judge_ready, image.digest)
        except (*screenshots.STORE_ERRORS, screenshots.ScreenshotError) as error:
            says = " ".join(str(error).split())
            raise CallFailed(
                f"The picture {image.digest[:12]} could not be read from the image store: {says}"
            ) from error
