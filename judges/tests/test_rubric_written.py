"""Rubrics that people write as YAML."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotation.formats.documents import FormatError
from judges.scorers.rubric import written
from judges.scorers.rubric.written import parse, write_from_key_points

LAMP = """\
pass_score: 0.5
strategy: sequential
about: steps
nodes:
  - id: sorted
    claim: The list is sorted by price.
    critical: true
    about: screenshots
    steps: 3-7
    key_point: Sorted by lowest price
  - group: The lamp
    critical: true
    children:
      - claim: The answer names a lamp.
        about: answer
      - claim: The page shows it.
        about: pages
        sources: [https://shop.example/lamp]
        note: Rounding is fine.
      - claim: It was put into the cart.
        steps: last
"""


def refused(text: str) -> list[tuple[str, str]]:
    """Code and place of every problem."""
    with pytest.raises(FormatError) as error:
        parse(text)
    return [(problem.code.removeprefix("rubric_"), problem.where) for problem in error.value.problems]


def test_a_rubric_is_read_with_everything_that_it_says():
    rubric = parse(LAMP)

    assert (rubric.pass_score, rubric.strategy) == (0.5, "sequential")
    first, lamp = rubric.nodes
    assert (first.id, first.about, str(first.steps), first.key_point) == (
        "sorted",
        "screenshots",
        "3-7",
        "Sorted by lowest price",
    )
    assert (lamp.id, lamp.strategy, lamp.about) == ("2", "parallel", None)
    assert [(node.id, node.about, node.critical) for node in lamp.children] == [
        ("2.1", "answer", True),
        ("2.2", "pages", True),
        ("2.3", "steps", True),
    ]
    assert lamp.children[1].sources == ("https://shop.example/lamp",)
    assert lamp.children[2].steps.of(5) == (4,)
    assert [node.id for node in rubric.claims()] == ["sorted", "2.1", "2.2", "2.3"]


def test_the_preview_is_the_tree_before_anything_is_judged():
    tree = parse(LAMP).tree()

    assert (tree["id"], tree["strategy"], tree["critical"], tree["status"]) == (
        "root",
        "sequential",
        False,
        "initialized",
    )
    first, lamp = tree["children"]
    assert (first["desc"], first["score"], first["chosen_steps"]) == ("The list is sorted by price.", 0.0, "3-7")
    assert [child["claim"] for child in lamp["children"]][1] == "The page shows it."
    assert "claim" not in lamp


def test_json_is_a_rubric_too():
    assert parse('{"nodes": [{"claim": "It is so.", "about": "answer"}]}').nodes[0].text == "It is so."


@pytest.mark.parametrize(
    ("steps", "chosen"),
    [
        ("all", (0, 1, 2, 3, 4)),
        ("last", (4,)),
        ("last 3", (2, 3, 4)),
        ("last 99", (0, 1, 2, 3, 4)),
        ("2", (2,)),
        ("[4, 1, 1, 80]", (1, 4)),
        ("1-3", (1, 2, 3)),
        ("3-70", (3, 4)),
        ("9", ()),
    ],
)
def test_steps_are_chosen_as_they_are_written(steps, chosen):
    node = parse(f"nodes:\n  - {{claim: c, about: steps, steps: {steps}}}").nodes[0]

    assert node.steps.of(5) == chosen


@pytest.mark.parametrize(
    ("text", "code", "line"),
    [
        ("", "not_an_object", 1),
        ("- claim: c", "not_an_object", 1),
        ("nodes: []", "nodes_missing", 1),
        ("pass_score: 1", "nodes_missing", 1),
        ("about: answer\nnode:\n  - claim: c", "unknown_key", 3),
        ("about: answer\nnodes:\n  - just text", "not_an_object", 3),
        ("about: answer\nnodes:\n  - claim: c\n    citical: true", "unknown_key", 4),
        ("about: answer\nnodes:\n  - claim: ''", "not_a_text", 3),
        ("about: answer\nnodes:\n  - claim: 7", "not_a_text", 3),
        ("about: answer\nnodes:\n  - critical: true", "not_a_text", 3),
        ("nodes:\n  - claim: c", "about_missing", 2),
        ("nodes:\n  - claim: c\n    about: everything", "about", 3),
        ("about: answer\nstrategy: random\nnodes:\n  - claim: c", "strategy", 2),
        ("about: answer\npass_score: 0\nnodes:\n  - claim: c", "pass_score", 2),
        ("about: answer\npass_score: '1'\nnodes:\n  - claim: c", "pass_score", 2),
        ("about: answer\nnodes:\n  - claim: c\n    group: g", "unknown_key", 3),
        ("about: answer\nnodes:\n  - group: g", "nodes_missing", 3),
        ("about: answer\nnodes:\n  - claim: c\n    critical: 1", "not_a_flag", 4),
        ("about: answer\nnodes:\n  - id: 1st\n    claim: c", "id", 3),
        ("about: answer\nnodes:\n  - id: root\n    claim: c", "id", 3),
        ("about: answer\nnodes:\n  - {id: a, claim: c}\n  - {id: a, claim: d}", "id_twice", 4),
        ("about: answer\nnodes:\n  - claim: c\n    sources: cited", "sources_unused", 4),
        ("about: answer\nnodes:\n  - claim: c\n    steps: all", "steps_unused", 4),
        ("about: pages\nnodes:\n  - claim: c\n    sources: []", "sources", 4),
        ("about: pages\nnodes:\n  - claim: c\n    sources:\n      - ftp://x.example", "address", 5),
        ("about: pages\nnodes:\n  - claim: c\n    sources:\n      - javascript:alert(1)", "address", 5),
        ("about: steps\nnodes:\n  - claim: c\n    steps: some", "steps", 4),
        ("about: steps\nnodes:\n  - claim: c\n    steps: 7-3", "steps", 4),
        ("about: steps\nnodes:\n  - claim: c\n    steps: [-1]", "steps", 4),
        ("about: steps\nnodes:\n  - claim: c\n    steps: [true]", "steps", 4),
        (f"about: answer\nnodes:\n  - claim: {'x' * 2001}", "text_too_long", 3),
        (
            "about: answer\nnodes:\n  - {group: g, critical: true, children: [\n\n\n\n{claim: c, critical: false}]}",
            "critical",
            7,
        ),
    ],
)
def test_a_mistake_is_named_with_its_line(text, code, line):
    assert (code, f"line {line}") in refused(text)


def test_every_mistake_is_named_not_only_the_first():
    text = "about: answer\nnodes:\n  - claim: 1\n  - claim: 2\n    steps: x\n  - group: g\n"

    assert refused(text) == [
        ("not_a_text", "line 3"),
        ("not_a_text", "line 4"),
        ("steps_unused", "line 5"),
        ("steps", "line 5"),
        ("nodes_missing", "line 6"),
    ]


def test_a_rubric_has_an_end():
    many = "about: answer\nnodes:\n" + "  - claim: c\n" * (written.MOST_NODES + 1)
    assert refused(many) == [("too_many_nodes", "line 3")]

    deep = '{"claim": "c"}'
    for _ in range(written.DEEPEST - 1):
        deep = f'{{"group": "g", "children": [{deep}]}}'
    assert len(list(parse(f'{{"about": "answer", "nodes": [{deep}]}}').walk())) == written.DEEPEST
    deeper = f'{{"about": "answer", "nodes": [{{"group": "g", "children": [{deep}]}}]}}'
    assert refused(deeper) == [("too_deep", "line 1")]


def test_a_draft_has_a_critical_claim_for_each_key_point():
    points = ["Sorted by: lowest price", "Under $50\n# not a comment"]

    rubric = parse(write_from_key_points("Buy the cheapest lamp.", points))

    assert [(node.key_point, node.critical, node.about) for node in rubric.nodes] == [
        (point, True, "screenshots") for point in points
    ]


def test_a_text_of_a_draft_stands_on_one_line_so_that_it_can_be_edited():
    point = "Sorted by: lowest price, " + "and so on " * 20 + "at last"

    assert f'  key_point: "{point}"' in write_from_key_points("Buy the cheapest lamp.", [point]).splitlines()


def test_a_draft_without_key_points_asks_for_the_task():
    (node,) = parse(write_from_key_points("Buy the cheapest lamp.", [])).nodes

    assert node.text.endswith("Buy the cheapest lamp.")


@given(st.text(max_size=3000), st.lists(st.text(max_size=1200), max_size=210))
def test_a_draft_can_always_be_read(task, points):
    parse(write_from_key_points(task, points))


def test_the_example_of_the_documentation_can_be_read():
    page = (Path(__file__).parents[2] / "docs" / "judges-rubric.md").read_text(encoding="utf-8")
    blocks = page.split("```yaml\n")[1:]

    assert blocks
    for block in blocks:
        assert parse(block.partition("```")[0]).claims()
