"""Check a bundle and look at the findings alone."""

from __future__ import annotations

from typing import Any

from evaluations.verifier.checking import Given, check_bundle
from evaluations.verifier.contents import Renderers
from evaluations.verifier.findings import Finding


def check(path: str, keys: Any = None, renderers: Renderers | None = None, **given: Any) -> list[Finding]:
    return check_bundle(path, Given(keys, **given), renderers=renderers).findings
