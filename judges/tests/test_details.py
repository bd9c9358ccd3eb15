"""What only one kind of judge has to say, on the page of its judgment; whatever it is, the page stays."""

from __future__ import annotations

import html
import time
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from hypothesis import given, settings
from hypothesis import strategies as st

from annotation.models import Person, Submission
from annotation.tests import testing
from annotation.tests.shared_rows import shared_rows
from judges.models import Judgment, RunItem
from judges.scorer import REGISTRY, Score
from judges.scorers.detail_values import TOO_DEEP
from judges.scorers.rubric.details import DEEPEST, MOST_NODES, flatten
from judges.tests import rows
from judges.tests.expecting import FAILING, expect, give_trace
from judges.tests.pages import read_page
from judges.views.evidence import read_details

KINDS = [kind.name for kind in REGISTRY.values() if kind.read_details]


@shared_rows
def mira(submission: Submission) -> Person:
    return testing.cast(submission)["mira"]


@shared_rows
def item(submission: Submission) -> RunItem:
    return rows.run_row(submission).items.order_by("pk")[0]


def with_details(item: RunItem, details: Any) -> Judgment:
    return rows.judgment_row(item, evidence={"key_points": [], "steps": [], "notes": {}, "details": details})


def shown(person: Person, made: Judgment) -> str:
    client = Client()
    client.force_login(person)
    response = client.get(reverse("judgment", args=[made.pk]))
    assert response.status_code == 200
    return read_page(response)


def node(name: str, *children: dict[str, Any], **fields: Any) -> dict[str, Any]:
    base = {"id": name, "desc": f"about {name}", "critical": False, "score": 1.0, "status": "passed"}
    return base | {"strategy": "parallel", "children": list(children)} | fields


# --- network traces --------------------------------------------------------------------------------------------------


def test_a_check_shows_its_result_the_nearest_request_and_each_field(submission: Submission, mira: Person) -> None:
    from judges import trying

    trajectory = submission.trajectories.earliest("position")
    give_trace(trajectory)
    expect(trajectory.task, FAILING)
    score: Score = trying.try_checks(trajectory, FAILING)
    item = rows.run_row(submission).items.get(trajectory=trajectory)
    page = html.unescape(shown(mira, rows.judgment_row(item, 0, evidence=score.evidence())))
    for words in (
        '<span class="chip bad">1 fail</span>',
        "Nearest request",
        "GET http://shop.example/search?q=lamp&page=1",
        "Key point:",
        "network.har",
    ):
        assert words in page, words
    row = next(each for each in page.split("<tr")[1:] if "query_params.q" in each)
    assert 'class="lit"' in row
    assert row.index("sofa") < row.index("lamp")


def test_what_passes_is_folded_and_what_fails_is_open(item: RunItem, mira: Person) -> None:
    checks = [{"name": "good", "result": "pass"}, {"name": "bad", "result": "fail", "message": "No such request."}]
    page = shown(mira, with_details(item, {"kind": "network-trace", "checks": checks}))
    good, bad = page.split('<li class="check-result')[1:3]
    assert "<details>" in good
    assert "<details open>" in bad
    assert "No such request." in bad


# --- rubrics ---------------------------------------------------------------------------------------------------------


def test_a_tree_is_drawn_with_scores_statuses_votes_and_links_to_steps(item: RunItem, mira: Person) -> None:
    votes = [{"result": True, "reasoning": "I see it."}, {"result": False, "reasoning": "I do not."}]
    leaf = node("leaf", score=0.0, status="failed", critical=True, steps=[1], votes=votes, claim="It is <b>sorted</b>.")
    tree = node(
        "root", leaf, node("next", status="skipped", score=0.0), score=0.0, status="failed", strategy="sequential"
    )
    source = {"kind": "written", "version": 3, "digest": "ab"}
    details = {
        "kind": "rubric",
        "source": source,
        "tree": tree,
        "final_score": 0.0,
        "pages": [{"url": "http://a.example"}],
    }
    made = with_details(item, details)
    page = shown(mira, made)
    for words in (
        "rubric of the task, version 3",
        '<span class="chip bad">failed</span>',
        '<span class="chip ">skipped</span>',
        "critical</span>",
        "sequential</span>",
        "It is &lt;b&gt;sorted&lt;/b&gt;.",
        '<span class="chip ok">yes</span> I see it.',
        '<span class="chip bad">no</span> I do not.',
        f'<a data-step="1" href="/judgments/{made.pk}?step=1">step 1</a>',
    ):
        assert words in page, words


def test_what_was_not_judged_says_so(item: RunItem, mira: Person) -> None:
    tree = node("root", node("leaf", error="The endpoint answered 500.", status="failed", score=0.0))
    page = shown(mira, with_details(item, {"kind": "rubric", "tree": tree}))
    assert "Not judged: The endpoint answered 500." in page
    assert '<span class="chip warn">failed</span>' in page


def test_every_list_that_is_opened_is_closed_whatever_the_shape(item: RunItem, mira: Person) -> None:
    deep = node("d0", node("d1", node("d2")), node("e1"), node("f1", node("f2"), node("f3", node("f4"))))
    page = shown(mira, with_details(item, {"kind": "rubric", "tree": deep}))
    drawing = page.split('<ul class="tree"')[1].split("<h2>")[0]
    for tag in ("ul", "li", "details", "div", "summary"):
        opened = drawing.count(f"<{tag}") + (tag == "ul")
        assert opened >= drawing.count(f"</{tag}>") >= opened - 1, tag
    assert drawing.count("<li") == 8


def test_of_a_large_tree_the_parts_are_folded_and_it_is_quick(item: RunItem, mira: Person) -> None:
    groups = [node(f"g{n}", *(node(f"g{n}n{m}", reasoning="x" * 200) for m in range(49))) for n in range(20)]
    made = with_details(item, {"kind": "rubric", "tree": node("root", *groups)})
    began = time.process_time()
    page = shown(mira, made)
    assert time.process_time() - began < 10  # seconds; a loaded machine takes one
    assert page.count('<li class="node') == 1_001
    assert page.count('<details class="branch" open>') == 1
    assert page.count("49 inside") == 20


def test_a_tree_without_end_is_cut(item: RunItem, mira: Person) -> None:
    deep = node("bottom")
    for number in range(200):
        deep = node(f"n{number}", deep)
    assert len(flatten(deep).nodes) == DEEPEST
    wide = flatten(node("root", *(node(f"n{number}") for number in range(MOST_NODES + 5))))
    assert (len(wide.nodes), wide.left_out) == (MOST_NODES, True)
    assert "too large for a page" in shown(mira, with_details(item, {"kind": "rubric", "tree": deep}))


# --- predictions -----------------------------------------------------------------------------------------------------


def test_predictions_stand_beside_what_was_done(item: RunItem, mira: Person) -> None:
    steps = [
        {
            "step": 1,
            "mode": "text-only",
            "gold": {"operation": "CLICK", "original_operation": "ENTER", "value": "", "element": "<button> Go"},
            "predicted": {"option": "B", "operation": "TYPE", "value": "lamp", "element": "<input>"},
            "unparsed": "",
            "target_present": True,
            "target_rank": 3,
            "listed": 50,
            "element_accuracy": 0,
            "operation_f1": 0.5,
            "step_success": 0,
            "option_selection": 0,
            "action_correctness": None,
            "summary": "[1] <button> Go",
            "reply": "<script>alert(1)</script>",
        },
        {"step": 2, "gold": {"operation": "SELECT"}, "predicted": None, "unparsed": "no line Action"},
    ]
    details = {"kind": "action-selection", "style": "cookbook", "steps": steps, "metrics": {"step_success": 0.25}}
    made = with_details(item, details)
    page = shown(mira, made)
    for words in (
        "cookbook",
        '<span class="dim">(ENTER)</span>',
        "&lt;button&gt; Go",
        "0.50",
        "listed, in rank 3 of 50",
        "text-only",
        "no line Action",
        "not read",
        "&lt;script&gt;alert(1)",
        '<dt>step success</dt><dd class="agent">0.25</dd>',
        f'<a data-step="1" href="/judgments/{made.pk}?step=1">step 1</a>',
    ):
        assert words in page, words


def test_the_figures_of_a_task_are_said_in_words(item: RunItem, mira: Person) -> None:
    def mean(value: float | None) -> dict[str, Any]:
        return {"value": value, "n": 5, "undefined": "" if value is not None else "no step was counted"}

    metrics = {
        "unparsed": 2,
        "measures": {"operation_f1": {"micro": mean(0.6441), "macro": mean(0.7)}},
        "task_success": mean(None),
        "recall": {"1": mean(0.2), "50": mean(1.0)},
        "said": {"CLICK": 3, "TYPE": 1},
    }
    page = shown(mira, with_details(item, {"kind": "action-selection", "steps": [], "metrics": metrics}))
    for title, figure in (
        ("replies not read", "2"),
        ("operation F1", "64.4%"),
        ("task success", "undefined: no step was counted"),
        ("recall of the page summary", "@1 20.0%, @50 100.0%"),
        ("predicted operations", "CLICK 3, TYPE 1"),
    ):
        assert f'<dt>{title}</dt><dd class="agent">{figure}</dd>' in page, title


def test_a_note_of_several_values_is_no_json(item: RunItem, mira: Person) -> None:
    notes = {"rubric": {"kind": "written", "pass_score": 0.5, "strict": True}, "deep": {"a": [1]}}
    page = shown(mira, rows.judgment_row(item, evidence={"key_points": [], "steps": [], "notes": notes}))
    assert "kind written, pass score 0.5, strict yes" in page
    assert "{&quot;a&quot;: [1]}" in page


# --- anything else ---------------------------------------------------------------------------------------------------


def test_a_judgment_without_details_has_none(submission: Submission, item: RunItem, mira: Person) -> None:
    ordinary = shown(mira, rows.judgment_row(item))
    elsewhere = shown(mira, rows.imported_row(submission.trajectories.earliest("pk")))
    for page in (ordinary, elsewhere):
        for heading in ("Network checks", "Rubric", "Predictions"):
            assert f"<h2>{heading}" not in page


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=12,
)
KNOWN = ["checks", "differences", "event", "trace", "expectation", "tree", "children", "votes", "source", "pages",
         "statistics", "steps", "gold", "predicted", "metrics", "task", "score", "id", "info", "step", "members",
         "judgment", "verdict", "weight", "cost", "rule", "repetition"]  # fmt: skip
SHAPED = st.recursive(
    ANYTHING,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KNOWN), inner, max_size=6),
    max_leaves=20,
)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(kind=st.sampled_from(KINDS), details=st.dictionaries(st.sampled_from(KNOWN), SHAPED, max_size=8))
def test_malformed_details_are_read_as_far_as_they_go(kind: str, details: dict[str, Any]) -> None:
    from django.template.loader import render_to_string

    found = read_details(details | {"kind": kind})
    assert found is not None
    render_to_string(found.template, {"data": found.data, "viewer": {"address": "?"}})


@pytest.mark.parametrize(
    ("kind", "details_of"),
    [
        ("network-trace", lambda deep: {"checks": [{"name": "one", "message": deep}]}),
        ("rubric", lambda deep: {"extractions": [{"name": "one", "value": deep}]}),
        ("action-selection", lambda deep: {"steps": [{"step": 0, "unparsed": deep}]}),
    ],
)
def test_what_is_nested_too_deeply_is_said_to_be_so(kind: str, details_of: Any) -> None:
    from django.template.loader import render_to_string

    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    found = read_details({"kind": kind, **details_of(deep)})
    assert found is not None
    assert TOO_DEEP in render_to_string(found.template, {"data": found.data, "viewer": {"address": "?"}})


@pytest.mark.parametrize("details", [None, 7, "x", [], {}, {"kind": "unknown"}, {"kind": ["rubric"]}, {"kind": None}])
def test_details_of_no_known_kind_are_left_to_the_download(item: RunItem, mira: Person, details: Any) -> None:
    assert read_details(details) is None
    assert "How it was made" in shown(mira, with_details(item, details))
