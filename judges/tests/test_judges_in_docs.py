"""docs/judges.md and docs/reference/judges.md name every scorer, parameter and limit."""

from __future__ import annotations

import re
from dataclasses import fields

import pytest
from django.conf import settings

from annotation.screenshots import JUDGE_BOX
from judges import scorers  # noqa: F401 - fills the registry
from judges.llm import Generation, Patience
from judges.scorer import REGISTRY
from judges.scorers import framing
from judges.scorers.agent_trek import METHOD as AGENTTREK
from judges.scorers.autonomous_eval import METHOD as AUTONOMOUS_EVAL
from judges.scorers.single_call import LONGEST_URL
from judges.scorers.web_voyager import METHOD as WEBVOYAGER
from judges.scorers.web_voyager import MOST_PICTURES

PAGE = (settings.BASE_DIR / "docs" / "judges.md").read_text(encoding="utf-8")
REFERENCE = (settings.BASE_DIR / "docs" / "reference" / "judges.md").read_text(encoding="utf-8")
FLAT = " ".join(PAGE.split())


def test_every_scorer_has_a_line_and_no_other_has():
    table = PAGE.partition("## Scorers")[2].partition("\n###")[0]

    assert set(re.findall(r"^\| `([\w-]+)`", table, re.MULTILINE)) == set(REGISTRY)


@pytest.mark.parametrize("name", REGISTRY)
def test_every_parameter_is_explained(name):
    assert [one.name for one in fields(REGISTRY[name].parameters) if not one.metadata.get("help")] == []
    assert [one.name for one in fields(REGISTRY[name].parameters) if f"| `{one.name}` |" not in REFERENCE] == []


@pytest.mark.parametrize(("kind", "page"), [(Generation, REFERENCE), (Patience, PAGE)])
def test_every_way_to_ask_is_explained(kind, page):
    assert [one.name for one in fields(kind) if f"`{one.name}`" not in page] == []


@pytest.mark.parametrize(
    ("name", "method"), [("autonomous-eval", AUTONOMOUS_EVAL), ("agenttrek", AGENTTREK), ("webvoyager", WEBVOYAGER)]
)
def test_the_places_of_loaded_texts_are_those_that_are_filled(name, method):
    (row,) = re.findall(rf"^\| `{name}` \| `verdict` \| (.*) \|$", PAGE, re.MULTILINE)

    assert tuple(re.findall(r"\{(\w+)\}", row)) == method.fills


@pytest.mark.parametrize(
    ("what", "limit"),
    [
        ("task", framing.TASK),
        ("action", framing.ACTION),
        ("thought", framing.THOUGHT),
        ("address", LONGEST_URL),
        ("key point", framing.POINT),
        ("final answer", framing.ANSWER),
        ("notes on a screenshot", framing.REASON),
        ("A record of more than", framing.RECORD),
    ],
)
def test_the_lengths_are_those_that_are_cut_to(what, limit):
    assert f"{what} {limit:,}" in FLAT


def test_the_pictures_are_bounded_as_it_says():
    assert f"{JUDGE_BOX[0]} x {JUDGE_BOX[1]} pixels" in FLAT
    assert f"the first {MOST_PICTURES} screenshots" in FLAT
