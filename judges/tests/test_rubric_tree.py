"""The tree of a rubric: construction, scores, prerequisites."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from judges.scorers.rubric import tree
from judges.scorers.rubric.tree import (
    AggregationStrategy,
    VerificationNode,
    find_blocking,
    find_path,
    find_prerequisites,
)

PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # a busy machine is no failure
STRATEGIES = ("parallel", "sequential")
LEAVES = st.sampled_from([(0.0, "initialized"), (1.0, "passed"), (0.0, "failed"), (0.0, "skipped")])


def node(name="n", *children, **given):
    return VerificationNode(id=name, children=list(children), **given)


def passed(name="p", **given):
    return node(name, score=1.0, status="passed", **given)


def failed(name="f", **given):
    return node(name, score=0.0, status="failed", **given)


# --- trees as plain values, and a slow way to score them ----------------------------------------------------------


def plain(critical, leaf, strategy="parallel", children=()):
    return {"critical": critical, "score": leaf[0], "status": leaf[1], "strategy": strategy, "children": list(children)}


def grown(critical):
    """Trees whose root is critical or not; below a critical node everything is."""
    flags = st.just(True) if critical else st.booleans()
    leaf = st.builds(plain, flags, LEAVES)

    def above(inner):
        return st.builds(
            plain,
            st.just(critical),
            st.just((0.0, "initialized")),
            st.sampled_from(STRATEGIES),
            st.lists(inner, max_size=4),
        )

    return st.recursive(leaf, above, max_leaves=25)


def made(told, name="r"):
    children = [made(child, f"{name}.{at}") for at, child in enumerate(told["children"])]
    given = {key: told[key] for key in ("critical", "score", "status", "strategy")}
    return VerificationNode(id=name, children=children, **given)


def scored(told):
    """The rules once more, written slowly and without changing anything: (score, status, children) of a node."""
    if not told["children"]:
        return told["score"], told["status"], []
    below = [scored(child) for child in told["children"]]
    if told["strategy"] == "sequential":
        for at in range(len(below)):
            if any(score != 1.0 for score, _, _ in below[:at]):
                below[at] = (0.0, "skipped", below[at][2])
    critical = [score for child, (score, _, _) in zip(told["children"], below, strict=True) if child["critical"]]
    others = [score for child, (score, _, _) in zip(told["children"], below, strict=True) if not child["critical"]]
    score = 1.0 if not others else sum(others) / len(others)
    if not all(one == 1.0 for one in critical):
        score = 0.0
    if score == 1.0:
        status = "passed"
    elif score > 0.0:
        status = "partial"
    else:
        status = "failed" if "failed" in [one[1] for one in below] else "skipped"
    return score, status, below


def outcome(tree_node):
    return tree_node.score, tree_node.status, [outcome(child) for child in tree_node.children]


@PATIENT
@given(grown(critical=False) | grown(critical=True))
def test_scores_and_statuses_are_those_of_a_slow_reading_of_the_rules(told):
    root = made(told)
    assert root.compute_score() == pytest.approx(scored(told)[0])
    assert _close(outcome(root), scored(told))


def _close(found, expected):
    return (
        found[0] == pytest.approx(expected[0])
        and found[1] == expected[1]
        and len(found[2]) == len(expected[2])
        and all(_close(one, other) for one, other in zip(found[2], expected[2], strict=True))
    )


@PATIENT
@given(grown(critical=False))
def test_scoring_again_changes_nothing(told):
    root = made(told)
    first = root.compute_score(), outcome(root)
    assert (root.compute_score(), outcome(root)) == first


@PATIENT
@given(grown(critical=False))
def test_the_reading_variant_writes_nothing_and_is_never_lower(told):
    root = made(told)
    before = outcome(root)
    pure = root.compute_score(mutate=False)
    assert outcome(root) == before
    assert pure >= root.compute_score() - 1e-12


@PATIENT
@given(grown(critical=False))
def test_a_leaf_more_that_passes_never_costs_anything(told):
    lower = made(told).compute_score()
    root = made(told)
    for leaf in root.leaves():
        leaf.settle(True)
    assert root.compute_score() >= lower


def test_a_critical_child_is_a_gate_and_no_part_of_the_mean():
    root = node("r", passed("a", critical=True), passed("b"), failed("c"))
    assert root.compute_score() == 0.5
    assert root.status == "partial"
    root = node("r", failed("a", critical=True), passed("b"))
    assert (root.compute_score(), root.status) == (0.0, "failed")


def test_a_critical_child_that_is_only_partial_makes_its_parent_skipped():
    group = node("g", passed("a"), failed("b"))
    group.critical = True  # afterwards, since what is below a critical node would have to be critical
    root = node("r", group, passed("c"))
    assert (root.compute_score(), root.status, group.status) == (0.0, "skipped", "partial")


def test_what_follows_in_a_sequence_is_skipped_and_what_is_below_it_keeps_its_values():
    later = node("g", passed("a"), passed("b"))
    root = node("r", passed("p"), failed("f"), later, strategy="sequential")
    assert root.compute_score() == pytest.approx(1 / 3)
    assert (later.score, later.status) == (0.0, "skipped")
    assert [child.status for child in later.children] == ["passed", "passed"]


def test_a_group_without_children_is_a_leaf_that_was_never_checked():
    root = node("r", node("empty", strategy="sequential"), passed("p"))
    assert root.compute_score() == 0.5
    assert [leaf.id for leaf in root.leaves()] == ["empty", "p"]


@pytest.mark.parametrize(
    "given",
    [
        {"score": 1.5},
        {"score": -0.1},
        {"score": float("nan")},
        {"score": 0.5, "status": "passed"},
        {"score": 1.0, "status": "failed"},
        {"score": 1.0, "status": "partial"},
        {"score": 0.0, "status": "partial"},
        {"score": 0.3, "status": "skipped"},
        {"status": "done"},
        {"strategy": "random"},
    ],
)
def test_a_node_whose_score_and_status_disagree_is_refused(given):
    with pytest.raises(ValueError):
        node("n", **given)


def test_what_is_assigned_later_is_not_looked_at():
    one = passed()
    one.score = 0.0
    assert (one.score, one.status) == (0.0, "passed")


def test_a_child_of_a_critical_node_has_to_be_critical():
    gate = node("gate", critical=True)
    with pytest.raises(ValueError, match="gate, which is critical"):
        gate.add_node(node("child"))
    with pytest.raises(ValueError, match="gate, which is critical"):
        node("gate", node("child"), critical=True)
    gate.add_node(node("child", critical=True))
    assert [child.id for child in gate.children] == ["child"]


def test_claim_is_another_name_of_the_description():
    one = node("n", desc="It is so.")
    one.claim = "It is not."
    assert (one.claim, one.desc) == ("It is not.", "It is not.")


def test_nodes_are_equal_only_to_themselves():
    assert node("n") != node("n")
    assert len({node("n"), node("n")}) == 2


# --- prerequisites -------------------------------------------------------------------------------------------------


def family():
    """root(parallel): gate(critical, 2 leaves), row(sequential): first, second(group: target, sibling), third."""
    target, sibling = node("target"), node("sibling")
    second = node("second", target, sibling)
    row = node("row", node("first"), second, node("third"), strategy="sequential")
    gate = node("gate", node("g1", critical=True), node("g2", critical=True), critical=True)
    return node("root", row, gate, node("free")), {one.id: one for one in (target, sibling, second, row, gate)}


def test_a_node_rests_on_critical_siblings_at_every_level_and_on_what_comes_before_it():
    root, named = family()
    assert {leaf.id for leaf in find_prerequisites(root, named["target"])} == {"first", "g1", "g2"}
    assert [leaf.id for leaf in find_prerequisites(root, named["gate"])] == []


def test_extra_prerequisites_count_with_everything_below_them_each_once():
    root, named = family()
    found = [leaf.id for leaf in find_prerequisites(root, named["target"], [named["sibling"], named["gate"]])]
    assert sorted(found) == ["first", "g1", "g2", "sibling"]


def test_only_failed_and_skipped_block():
    root, named = family()
    g1, g2 = named["gate"].children
    g1.settle(True)
    assert find_blocking(root, named["target"]) == []
    g2.skip()
    assert [leaf.id for leaf in find_blocking(root, named["target"])] == ["g2"]


@pytest.mark.parametrize("extra", ["target", "second", "row"])
def test_a_node_that_would_rest_on_itself_is_an_error(extra):
    root, named = family()
    with pytest.raises(ValueError, match="prerequisite of itself"):
        find_prerequisites(root, named["target"], [named[extra]])


def test_a_node_of_another_tree_rests_on_nothing():
    root, _ = family()
    assert find_path(root, node("stranger")) == []
    assert find_prerequisites(root, node("stranger")) == []


@PATIENT
@given(grown(critical=False), st.integers(0, 1000))
def test_prerequisites_are_those_of_the_definition(told, pick):
    root = made(told)
    everybody = list(root.walk())
    target = everybody[pick % len(everybody)]
    expected = set()
    path = find_path(root, target)
    for parent, child in pairwise(path):
        position = parent.children.index(child)
        for at, sibling in enumerate(parent.children):
            earlier = parent.strategy == "sequential" and at < position
            if at != position and (sibling.critical or earlier):
                expected |= {leaf.id for leaf in everybody if not leaf.children and is_below(leaf, sibling)}
    assert {leaf.id for leaf in find_prerequisites(root, target)} == expected


def is_below(leaf, above):
    return leaf.id == above.id or leaf.id.startswith(f"{above.id}.")


# --- what is shown ---------------------------------------------------------------------------------------------------


@PATIENT
@given(grown(critical=False))
def test_statistics_count_every_node(told):
    root = made(told)

    def depth(one):
        return 1 + max(map(depth, one.children)) if one.children else 0

    everybody = list(root.walk())
    assert tree.compute_statistics(root) == {
        "depth": depth(root),
        "total_nodes": len(everybody),
        "leaf_nodes": sum(not one.children for one in everybody),
    }


def test_the_tree_is_shown_as_published_and_with_what_was_checked():
    leaf = passed("leaf", desc="It is green.", critical=True)
    leaf.checked = tree.Checked("It is green.", ("https://a.example",), votes=[tree.Vote(True, "x" * 30_000)])
    root = node("root", leaf, strategy=AggregationStrategy.SEQUENTIAL)
    shown = root.as_json()
    assert list(shown) == ["id", "desc", "critical", "score", "status", "strategy", "children"]
    assert shown["strategy"] == "sequential"
    details = root.details()
    assert "claim" not in details
    assert details["children"][0]["sources"] == ["https://a.example"]
    assert len(details["children"][0]["votes"][0]["reasoning"]) == tree.LONGEST_TEXT
