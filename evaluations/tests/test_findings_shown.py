"""A finding that tells of several kinds of things, on pages and on paper: every kind is there, with its number."""

from __future__ import annotations

import html
import re

import pytest
from django.template.loader import render_to_string
from django.urls import reverse

from evaluations.evidence.report.page import render_report
from evaluations.tests.hand_made_bundle import HandMade
from evaluations.verifier.checking import claims
from evaluations.verifier.documents import Bundle
from evaluations.verifier.findings import Finding, format_kinds, noted, parse_kinds
from evaluations.views.findings import finding_rows

KINDS = [
    ("250 declined trajectories", [f"task_{n} (“I know it.”)" for n in range(250)]),
    ("1 draw of less than 10%", ["draw 1 at 2%"]),
]
FLOOD = noted("exceptions", format_kinds("251 exceptions of 2 kinds.", KINDS), ["task_0", "#7"])


def text(page: str) -> str:
    return " ".join(html.unescape(re.sub("<[^>]+>", " ", page)).split())


def table(*findings: Finding, flat: bool) -> str:
    rows = finding_rows([each.as_json() for each in findings], {"task_0": 1})
    return render_to_string("evaluations/_findings.html", {"rows": rows, "labelled": "x", "flat": flat})


def test_what_is_told_by_kind_is_read_by_kind() -> None:
    assert parse_kinds(FLOOD.says) == ("251 exceptions of 2 kinds.", KINDS)
    assert parse_kinds("No exceptions.") == ("No exceptions.", [])


def test_the_page_lists_each_kind_with_the_first_of_it_and_links_the_places() -> None:
    page = table(FLOOD, flat=False)
    shown = text(page)

    assert "251 exceptions of 2 kinds. 250 declined trajectories task_0 (“I know it.”) task_1 (" in shown
    assert "task_199 (“I know it.”) and 50 more, in claims.json 1 draw of less than 10% draw 1 at 2%" in shown
    assert "task_200" not in shown
    assert f'href="{reverse("submission-trajectory", args=[1])}">task_0</a>' in page
    assert "2 locations" in shown


def test_on_paper_each_kind_is_there_with_fewer_of_it() -> None:
    shown = text(table(FLOOD, flat=True))

    assert "250 declined trajectories: task_0 (“I know it.”);" in shown
    assert "task_19 (“I know it.”) and more 1 draw of less than 10%: draw 1 at 2%" in shown
    assert "task_20 " not in shown
    assert "#7" not in shown


def test_a_finding_of_one_sentence_is_shown_with_its_places_as_ever() -> None:
    plain = noted("times", "Labels whose time was not measured: 2.", ["task_0", "task_1"])

    assert "not measured: 2. task_0, task_1" in text(table(plain, flat=True))
    assert "2 locations of times task_0 task_1" in text(table(plain, flat=False))


@pytest.fixture(scope="module")
def flooded() -> Bundle:
    made = HandMade()
    given_back = {"task_id": "task_a", "annotator": "A1", "released_at": made.tick(), "lifted_at": None}
    made.documents["releases.jsonl"] += [given_back | {"reason": f"Reason {number}."} for number in range(250)]
    made.event("adjudication_returned", "M1", task_id="task_c", held_by="Q1", revision=1)
    bundle = made.bundle()
    bundle.claims = [each.as_json() for each in claims(bundle)]
    return bundle


def test_the_report_of_a_bundle_has_each_kind_with_its_reasons(flooded: Bundle) -> None:
    shown = text(render_report(flooded))

    assert "251 exceptions of 2 kinds. 250 declined trajectories task_a (“Reason 0.”) task_a (“Reason 1.”)" in shown
    assert "task_a (“Reason 199.”) and 50 more, in claims.json 1 adjudication returned Q1 on task_c" in shown


def test_the_page_lists_the_first_places_of_thousands() -> None:
    shown = text(table(noted("times", "Not measured.", [f"task_{n}" for n in range(300)]), flat=False))

    assert "300 locations of times task_0 task_1" in shown
    assert "task_199 and 100 more, in claims.json" in shown
    assert "task_200" not in shown
