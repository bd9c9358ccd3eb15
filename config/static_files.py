"""Static files under names that carry their digest, so that a browser never asks for one twice."""

from __future__ import annotations

from whitenoise.storage import CompressedManifestStaticFilesStorage

# Django can do this for every *.js; the scripts of libraries name files that they do not bring.
OWN_MODULES = (
    "js/*.js",
    (
        (r"""(?P<matched>from ["'](?P<url>\./[^"']+)["'];)""", """from "%(url)s";"""),
        (r"""(?P<matched>import\(["'](?P<url>\./[^"']+)["']\))""", """import("%(url)s")"""),
    ),
)


class HashedStaticFiles(CompressedManifestStaticFilesStorage):
    """Our modules name each other by digest, too: otherwise all but a page's first would expire after a minute."""

    patterns = (*CompressedManifestStaticFilesStorage.patterns, OWN_MODULES)
