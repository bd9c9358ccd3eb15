"""Storage of static files under names with their digest, so that browsers can cache them for good."""

from __future__ import annotations

from whitenoise.storage import CompressedManifestStaticFilesStorage

# Django can do this for every *.js, but scripts of libraries name files that are not included.
OWN_MODULES = (
    "js/*.js",
    (
        (r"""(?P<matched>from ["'](?P<url>\./[^"']+)["'];)""", """from "%(url)s";"""),
        (r"""(?P<matched>import\(["'](?P<url>\./[^"']+)["']\))""", """import("%(url)s")"""),
    ),
)


class HashedStaticFiles(CompressedManifestStaticFilesStorage):
    """Storage in which our modules import each other by digest. Otherwise imported modules expire after a minute."""

    patterns = (*CompressedManifestStaticFilesStorage.patterns, OWN_MODULES)
