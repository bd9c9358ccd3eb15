"""Check a bundle and look at the findings alone."""

from __future__ import annotations

from typing import Any

from evaluations.verifier.checking import Given, RenderReport, check_bundle
from evaluations.verifier.findings import Finding


def check(path: str, keys: Any = None, render_report: RenderReport | None = None, **given: Any) -> list[Finding]:
    return check_bundle(path, Given(keys, **given), render_report=render_report).findings
