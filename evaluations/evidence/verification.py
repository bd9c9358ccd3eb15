"""Check a bundle as verify.py does, and render its HTML report again, which verify.py does not."""

from __future__ import annotations

from dataclasses import replace

from evaluations.evidence.report.page import render_report
from evaluations.evidence.single_file import single_file
from evaluations.verifier.checking import Given, Outcome, check_bundle
from evaluations.verifier.contents import Progressed


def verify_bundle(path: str, given: Given, progress: Progressed = lambda done, total: None) -> Outcome:
    """Check against the verify.py of this version: a bundle of another version may be worded otherwise.

    Raises Refused for a package that cannot be read safely, BadKeys for the keys.
    """
    return check_bundle(path, replace(given, program=single_file().encode()), progress, render_report)
