"""The details of the rubric verifier on the page of a judgment."""

from __future__ import annotations

import html
from typing import Any

from django.test import Client
from django.urls import reverse

from annotation.models import Person, Submission
from annotation.tests import testing
from annotation.tests.shared_rows import shared_rows
from judges.models import RunItem
from judges.scorers.verifier.details import read_details
from judges.tests import rows
from judges.tests.pages import read_page
from judges.tests.verifying import TEXTS


def criterion(number: int, state: str = "graded", earned: Any = 3, **fields: Any) -> dict[str, Any]:
    return {
        "number": number,
        "text": TEXTS[number - 1],
        "description": "All points if the list is sorted and the first lamp is taken.",
        "condition": "",
        "max_points": 5,
        "state": state,
        "earned": earned,
        "from_actions": {"points": 5, "reason": "The log says <b>so</b>."},
        "from_images": {"points": earned, "reason": "The list is sorted by name."},
        "steps": [0, 2],
        "blocker": None,
    } | fields


DETAILS = {
    "kind": "rubric-verifier",
    "outcome": False,
    "reasons": ["The wrong lamp is in the basket.", "Criterion 2 was blocked, so it was not met."],
    "score": 0.6,
    "earned": 8,
    "possible": 10,
    "penalty": 2,
    "criteria": [
        criterion(1),
        criterion(2, "blocked", 5, blocker={"number": 2, "step": 1, "reason": "A test against robots."}),
        criterion(3, "not graded", None, condition="if several shades are offered"),
    ],
    "claimed_but_not_visible": [1],
    "not_graded": [3],
    "penalties": [{"points": 2, "step": 1, "reason": "A second lamp was ordered."}],
    "critical_point": {"reason": "It paid without being asked to.", "step": 2},
    "first_failure": {"category": "selection", "step": 1, "reason": "It took the second lamp."},
    "validity": {"ambiguous": True, "invalid": False, "reason": "Two kinds of lamps fit."},
}


@shared_rows
def mira(submission: Submission) -> Person:
    return testing.cast(submission)["mira"]


@shared_rows
def item(submission: Submission) -> RunItem:
    return rows.run_row(submission).items.order_by("pk")[0]


def test_page_shows_both_passes_and_every_finding(item: RunItem, mira: Person) -> None:
    evidence = {"key_points": [], "steps": [], "notes": {}, "details": DETAILS}
    made = rows.judgment_row(item, 0, evidence=evidence)
    client = Client()
    client.force_login(mira)
    raw = read_page(client.get(reverse("judgment", args=[made.pk])))
    page = " ".join(html.unescape(raw).split())

    for words in (
        "process score 0.60</span>",
        '<span class="chip bad">outcome: failure</span>',
        "8 earned, 2 in penalties, of 10 points.",
        "Criterion 2 was blocked, so it was not met.",
        '<span class="chip warn">blocked</span>',
        "Blocked: A test against robots.",
        '<span class="chip warn">not graded</span>',
        "If: if several shades are offered",
        "<h3>Claimed but not visible</h3>",
        f"1 {TEXTS[0]}: 5 from the actions, 3 from the screenshots",
        "<h3>Not graded</h3>",
        "A second lamp was ordered.",
        "<h3>Critical point violated</h3>",
        "selection: acted on the wrong element or chose the wrong item. It took the second lamp.",
        '<span class="chip warn">ambiguous</span>',
        f'<a data-step="2" href="/judgments/{made.pk}?step=2">step 2</a>',
    ):
        assert words in page, words
    assert "The log says &lt;b&gt;so" in raw


def test_details_state_the_tone_of_each_criterion() -> None:
    full = criterion(1, earned=5)
    data = read_details(DETAILS | {"criteria": [full, *DETAILS["criteria"], criterion(1, "does not apply", None)]})  # type: ignore[misc]

    assert [one.tone for one in data.criteria] == ["ok", "bad", "warn", "warn", ""]
    assert [one.number for one in data.ungraded] == [3]
    assert read_details({"first_failure": {"category": "none"}}).category == ""
