"""How many calls a rubric will about take, before anything is paid: pairs of a stage and the pictures of a call."""

from __future__ import annotations

import re

from judges.scorer import Subject
from judges.scorers.rubric.claims import find_cited, select_pictures
from judges.scorers.rubric.verifying import TRIALS
from judges.scorers.rubric.written import Node, Rubric

CHECKS = re.compile(rb"\.\s*(?:batch_)?verify\s*\(")
EXTRACTIONS = re.compile(rb"\.\s*extract\s*\(")
OFTEN = 3  # how often a script is taken to come by a check: most stand in a loop over what the answer lists


def forecast_rubric(rubric: Rubric, subject: Subject, votes: int, max_images: int) -> list[tuple[str, int]]:
    """As if every claim were asked about and the first votes agreed."""
    needed = votes // 2 + 1
    return [call for claim in rubric.claims() for call in _forecast_node(claim, subject, max_images) * needed]


def _forecast_node(claim: Node, subject: Subject, max_images: int) -> list[tuple[str, int]]:
    if claim.about == "answer":
        return [("verify_answer", 0)]
    if claim.about == "pages":
        return [("verify_page", 1)] * len(claim.sources or find_cited(subject))
    chosen = claim.steps.of(len(subject.record.steps))
    if claim.about == "steps":
        return [("verify_steps", 0)] if chosen else []
    pictures = len(select_pictures(subject, chosen, max_images)) // 2
    return [("verify_steps", pictures)] if pictures else []


def forecast_script(source: bytes) -> list[tuple[str, int]]:
    """A guess from the text of a script, which is not run for it: each check stands for `OFTEN` of two votes."""
    checks = len(CHECKS.findall(source)) * OFTEN * (TRIALS // 2 + 1)
    return [("verify_page", 1)] * checks + [("extract_answer", 0)] * len(EXTRACTIONS.findall(source))
