"""Storage of static files under names with their digest, so that browsers can cache them for good."""

from __future__ import annotations

from typing import Any

import brotli
from whitenoise.compress import Compressor
from whitenoise.storage import CompressedManifestStaticFilesStorage

# Django can do this for every *.js, but scripts of libraries name files that are not included.
OWN_MODULES = (
    "js/*.js",
    (
        (r"""(?P<matched>from ["'](?P<url>\./[^"']+)["'];)""", """from "%(url)s";"""),
        (r"""(?P<matched>import\(["'](?P<url>\./[^"']+)["']\))""", """import("%(url)s")"""),
    ),
)
LARGE = 50_000  # bytes; our files are smaller, and the full effort for large libraries takes 25 s instead of 3 s


class QuickCompressor(Compressor):
    @staticmethod
    def compress_brotli(data: bytes) -> bytes:
        return bytes(brotli.compress(data, quality=5 if len(data) > LARGE else 11))


class HashedStaticFiles(CompressedManifestStaticFilesStorage):
    """Storage in which our modules import each other by digest. Otherwise imported modules expire after a minute."""

    patterns = (*CompressedManifestStaticFilesStorage.patterns, OWN_MODULES)

    def create_compressor(self, **options: Any) -> Compressor:
        return QuickCompressor(**options)
