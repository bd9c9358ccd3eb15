"""The evaluator of rubrics: building trees, what holds a check up, what breaks, and what it says in the end."""

from __future__ import annotations

import asyncio
import json
import logging

import pytest

from judges.scorers.rubric import engine
from judges.scorers.rubric.evaluator import Evaluator, NotInitialized
from judges.scorers.rubric.questions import ClaimEvidence
from judges.scorers.rubric.tree import AggregationStrategy
from judges.tests.rubric_fakes import A, B, C, Model, Person, begun, stored, verified


@pytest.fixture
def pages(tmp_path):
    return stored(tmp_path)


# --- building -------------------------------------------------------------------------------------


def test_nothing_can_be_asked_before_it_is_initialised():
    evaluator = Evaluator()
    with pytest.raises(NotInitialized):
        evaluator.add_leaf(id="a", desc="a")
    with pytest.raises(NotInitialized):
        verified(evaluator, "It is so.")
    with pytest.raises(NotInitialized):
        asyncio.run(evaluator.extract("x", Person))
    with pytest.raises(NotInitialized):
        evaluator.score()
    summary = evaluator.get_summary()
    assert (summary["final_score"], summary["eval_breakdown"]) == (0.0, [])
    assert (summary["judge_model"], summary["extract_model"]) == ("unknown", "unknown")


def test_the_root_is_the_task_and_never_critical():
    evaluator = begun()
    assert (evaluator.root.id, evaluator.root.critical, evaluator.root.strategy) == ("root", False, "parallel")
    assert "task-1" in evaluator.root.desc
    root = evaluator.initialize("t", "a", "b", Model(), task_description="Find it.", strategy="sequential")
    assert root is evaluator.root
    assert (root.desc, root.strategy) == ("Find it.", AggregationStrategy.SEQUENTIAL)


def test_ids_are_made_unique_in_the_order_in_which_nodes_come():
    evaluator = begun()
    made = [evaluator.add_leaf(id=name, desc="x") for name in ("a", "a", "a_1", "a", "root")]
    assert [node.id for node in made] == ["a", "a_1", "a_1_1", "a_2", "root_1"]
    assert evaluator.find_node("a_2") is made[3]
    assert evaluator.find_node("nobody") is None


def test_nodes_without_a_parent_are_below_the_root_and_have_the_published_defaults():
    evaluator = begun()
    group = evaluator.add_sequential(id="g", desc="group")
    leaf = evaluator.add_leaf(id="l", desc="leaf", parent=group)
    good = evaluator.add_custom_node(result=["something"], id="c", desc="custom")
    bad = evaluator.add_custom_node(result="", id="d", desc="custom", critical=False)
    assert evaluator.root.children == [group, good, bad]
    assert (group.critical, leaf.critical, good.critical, bad.critical) == (False, False, True, False)
    assert [(one.score, one.status) for one in (leaf, good, bad)] == [(0, "initialized"), (1, "passed"), (0, "failed")]


@pytest.mark.parametrize("given", [{"score": 0.5}, {"status": "partial"}, {"score": 1, "status": "failed"}])
def test_a_leaf_takes_only_what_a_leaf_can_have(given):
    evaluator = begun()
    with pytest.raises(ValueError):
        evaluator.add_leaf(id="l", desc="leaf", **given)
    assert evaluator.add_leaf(id="l", desc="leaf").id == "l"  # the id of the refused one is free


def test_the_score_stays_what_it_was_when_first_asked_for():
    evaluator = begun()
    evaluator.add_custom_node(result=True, id="a", desc="a", critical=False)
    assert evaluator.score() == 1.0
    evaluator.add_custom_node(result=False, id="b", desc="b", critical=False)
    assert evaluator.score() == 1.0
    assert evaluator.get_summary()["final_score"] == 1.0


def test_initialising_again_forgets_everything():
    client = Model(rule=lambda *_: OSError("gone"))
    evaluator = begun(client)
    verified(evaluator, "x", evaluator.add_leaf(id="a", desc="a"))
    asyncio.run(evaluator.extract("x", Person, "person"))
    assert evaluator.faults
    evaluator.initialize("t", "a", "b", Model())
    assert (evaluator.faults, evaluator.extractions, evaluator.root.children) == ([], [], [])
    assert evaluator.add_leaf(id="a", desc="a").id == "a"


def test_closing_may_be_awaited_or_not():
    evaluator = begun()
    evaluator.close()

    async def awaited():
        await evaluator.close()

    asyncio.run(awaited())


# --- prerequisites --------------------------------------------------------------------------------


def test_a_node_whose_prerequisite_failed_is_skipped_without_a_call():
    client = Model()
    evaluator = begun(client, strategy="sequential")
    evaluator.add_custom_node(result=False, id="first", desc="first", critical=False)
    node = evaluator.add_leaf(id="second", desc="second")
    assert verified(evaluator, "x", node) is False
    assert (node.score, node.status, client.calls) == (0.0, "skipped", [])
    assert node.checked.blocked_by == ("first",)


def test_what_was_never_checked_blocks_nothing_so_the_order_of_calls_matters():
    evaluator = begun(Model(rule=lambda claim, *_: claim == "good"), strategy="sequential")
    first, second = evaluator.add_leaf(id="a", desc="a"), evaluator.add_leaf(id="b", desc="b")
    assert verified(evaluator, "good", second) is True
    assert verified(evaluator, "bad", first) is False
    evaluator = begun(Model(rule=lambda claim, *_: claim == "good"), strategy="sequential")
    first, second = evaluator.add_leaf(id="a", desc="a"), evaluator.add_leaf(id="b", desc="b")
    assert verified(evaluator, "bad", first) is False
    assert verified(evaluator, "good", second) is False
    assert second.status == "skipped"


def test_extra_prerequisites_block_and_may_be_one_node():
    evaluator = begun()
    failed = evaluator.add_custom_node(result=False, id="f", desc="f", critical=False)
    node = evaluator.add_leaf(id="a", desc="a")
    assert verified(evaluator, "x", node, extra_prerequisites=[failed]) is False
    assert node.status == "skipped"
    assert verified(evaluator, "x", node) is True
    assert verified(evaluator, "x", node, extra_prerequisites=failed) is False


def test_a_node_that_rests_on_itself_fails():
    client = Model()
    evaluator = begun(client)
    node = evaluator.add_leaf(id="a", desc="a")
    assert verified(evaluator, "x", node, extra_prerequisites=[node]) is False
    assert (node.status, client.calls) == ("failed", [])
    assert "prerequisite of itself" in node.error


# --- batches --------------------------------------------------------------------------------------


def test_a_batch_keeps_its_order_and_its_nodes_do_not_hold_each_other_up():
    client = Model(rule=lambda claim, *_: claim != "bad", turns=lambda url: 0)
    evaluator = begun(client)
    nodes = [evaluator.add_leaf(id=f"n{at}", desc="x", critical=True) for at in range(3)]
    claims = [("good", None, nodes[0], "None"), ("bad", None, nodes[1], None), ("fine", [], nodes[2])]
    assert asyncio.run(evaluator.batch_verify(claims)) == [True, False, True]
    assert [node.status for node in nodes] == ["passed", "failed", "passed"]


def test_what_is_decided_before_a_batch_holds_its_nodes_up():
    evaluator = begun()
    evaluator.add_custom_node(result=False, id="gate", desc="gate")
    node = evaluator.add_leaf(id="a", desc="a")
    assert asyncio.run(evaluator.batch_verify([("x", None, node, None), ("y", None, None, None)])) == [False, True]
    assert node.status == "skipped"


def test_a_batch_passes_its_options_on():
    client = Model()
    evaluator = begun(client)
    asyncio.run(evaluator.batch_verify([("x", None, None, None)] * 3, majority_vote=False))
    assert len(client.calls) == 3


def test_an_error_in_a_batch_stands_in_its_place_and_the_others_go_on():
    class Leaving(BaseException):
        pass

    def rule(claim, *_):
        if claim == "leave":
            raise Leaving
        return True

    evaluator = begun(Model(rule=rule))
    results = asyncio.run(evaluator.batch_verify([("x", None, None, None), ("leave", None, None, None)]))
    assert results[0] is True
    assert isinstance(results[1], Leaving)


def test_a_batch_of_things_that_are_no_claims_is_refused_before_anything_is_asked():
    client = Model()
    with pytest.raises(ValueError, match="claim, sources, node and instruction"):
        asyncio.run(begun(client).batch_verify([("x", None, None, None), ("y",)]))
    assert client.calls == []


# --- errors that end everything -------------------------------------------------------------------


class Spent(Exception):
    pass


def test_errors_that_the_engine_lets_through_end_the_evaluation(pages):
    def rule(claim, url, vote):
        return Spent("the budget") if url in ("", B) else url == C

    # The page that supports the claim answers last: it must not hide that the budget is spent.
    client = Model(rule=rule, extracts={"Person": Spent("the budget")}, turns=lambda url: 5 * (url == C))
    with engine.open_engine(lets_through=(Spent,)):
        evaluator = begun(client, global_cache=pages)
    node = evaluator.add_leaf(id="a", desc="a")
    for sources in (None, B, [A, B, C]):
        with pytest.raises(Spent):
            verified(evaluator, "x", node, sources)
    with pytest.raises(Spent):
        asyncio.run(evaluator.batch_verify([("x", None, node, None)]))
    with pytest.raises(Spent):
        asyncio.run(evaluator.extract("x", Person, "p"))
    assert node.status == "initialized"


# --- the outcome ----------------------------------------------------------------------------------


def test_the_summary_has_the_published_form():
    evaluator = begun(Model(extracts={"Person": {"name": "Ada"}}), strategy="sequential")
    asyncio.run(evaluator.extract("x", Person, "person"))
    evaluator.add_custom_info({"b": 2}, info_type="custom")
    evaluator.add_custom_info(7, "custom", "named")
    evaluator.add_ground_truth({"a": 1}, "truth")
    evaluator.add_ground_truth([1])
    evaluator.add_custom_node(result=True, id="a", desc="a", critical=False)
    summary = evaluator.get_summary()
    assert list(summary) == [
        "agent_name",
        "answer_name",
        "final_score",
        "judge_model",
        "extract_model",
        "eval_breakdown",
        "tree_statistics",
    ]
    (breakdown,) = summary["eval_breakdown"]
    assert [list(one) for one in breakdown["info"]] == [["person"], ["truth"], ["ground_truth"], ["custom"], ["named"]]
    assert breakdown["verification_tree"]["status"] == "passed"
    assert summary["tree_statistics"] == {"depth": 1, "total_nodes": 2, "leaf_nodes": 1}
    assert json.loads(json.dumps(summary)) == summary


def test_a_summary_without_info_says_so():
    info = begun().get_summary()["eval_breakdown"][0]["info"]
    assert [list(one) for one in info] == [["no_info"]]


def test_details_are_json_whatever_a_script_tells():
    evaluator = begun()
    evaluator.add_custom_info({"when": object(), "number": float("nan")})
    evaluator.add_custom_info("x" * 50_000)
    endless: list = []
    endless.append(endless)
    evaluator.add_custom_info(endless)
    details = evaluator.details()
    json.dumps(details, allow_nan=False)
    assert list(details) == ["tree", "final_score", "statistics", "pages", "extractions", "info"]
    assert len(details["info"][1]["custom_info"]) <= 20_000


def test_the_logger_of_the_script_is_the_verifiers(caplog):
    logger = logging.getLogger("a.script")
    evaluator = begun(Model(rule=lambda *_: OSError("gone")), logger=logger)
    assert evaluator.verifier.logger is logger
    verified(evaluator, "x", evaluator.add_leaf(id="a", desc="a"))
    assert [record.name for record in caplog.records] == ["a.script"]


# --- whether something that broke decided ---------------------------------------------------------


def broken(claims, strategy="parallel", **given):
    """An evaluator that checked leaves of these names in order; those called "?" broke, those called "no" failed."""
    client = Model(rule=lambda claim, *_: OSError("gone") if claim == "?" else claim != "no")
    evaluator = begun(client, strategy=strategy, **given)
    for claim in claims:
        verified(evaluator, claim, evaluator.add_leaf(id="leaf", desc=claim))
    return evaluator


@pytest.mark.parametrize(
    ("claims", "strategy", "bounds"),
    [
        (["yes", "no"], "parallel", (0.5, 0.5)),
        (["yes", "?"], "parallel", (0.5, 1.0)),
        (["no", "?"], "parallel", (0.0, 0.5)),
        (["?", "yes", "yes"], "sequential", (0.0, 1.0)),  # those after it were skipped for it alone
        (["no", "?"], "sequential", (0.0, 0.0)),  # skipped for another, so that nothing broke
    ],
)
def test_the_bounds_say_what_the_score_might_have_been(claims, strategy, bounds):
    evaluator = broken(claims, strategy)
    assert evaluator.score_bounds() == bounds
    assert evaluator.score_bounds()[0] == evaluator.score()


def test_bounds_know_the_leaves_as_they_were_before_scoring_skipped_them():
    client = Model(rule=lambda claim, *_: OSError("gone") if claim == "?" else True)
    evaluator = begun(client, strategy="sequential")
    first, second = evaluator.add_leaf(id="a", desc="a"), evaluator.add_leaf(id="b", desc="b")
    verified(evaluator, "yes", second)
    verified(evaluator, "?", first)
    assert evaluator.score() == 0.0
    assert second.status == "skipped"
    assert evaluator.score_bounds() == (0.0, 1.0)


def test_a_broken_extraction_leaves_everything_open():
    evaluator = begun(Model(extracts={"Person": OSError("gone")}))
    asyncio.run(evaluator.extract("x", Person, "person"))
    evaluator.add_custom_node(result=False, id="a", desc="a")
    assert evaluator.score_bounds() == (0.0, 1.0)


@pytest.mark.parametrize(("extracts", "source"), [({"Person": OSError("gone")}, None), ({}, A)])
def test_an_extraction_with_the_name_of_a_node_is_not_taken_for_it(extracts, source):
    evaluator = begun(Model(extracts=extracts))
    asyncio.run(evaluator.extract("x", Person, "a", source=source))
    verified(evaluator, "x", evaluator.add_leaf(id="a", desc="a"))
    evaluator.add_leaf(id="b", desc="b")
    assert evaluator.score() == 0.5
    assert evaluator.score_bounds(missing_pages=True) == (0.0, 1.0)


def test_pages_that_are_not_stored_leave_something_open_only_where_that_is_asked():
    evaluator = begun()
    verified(evaluator, "x", evaluator.add_leaf(id="a", desc="a"), A)
    assert evaluator.score_bounds() == (0.0, 0.0)
    assert evaluator.score_bounds(missing_pages=True) == (0.0, 1.0)


# --- texts ----------------------------------------------------------------------------------------


def test_an_engine_brings_its_own_texts_and_knows_its_evaluators():
    texts = {
        f"verify_answer.{part}": text for part, text in (("system", "SYSTEM"), ("user", "{record} Claim: {claim}"))
    }
    client = Model()
    with engine.open_engine(texts=texts) as opened:
        evaluator = begun(client)
    assert opened.evaluators == [evaluator]
    verified(evaluator, "{record}")
    assert client.calls[0].text.startswith("SYSTEM\n\n<record>")
    assert client.calls[0].text.endswith('Claim: "{record}"')
    node = evaluator.add_leaf(id="a", desc="a")
    verified(evaluator, "x", node, ClaimEvidence())
    assert "verify_steps.system" in node.error


def test_outside_of_an_engine_the_built_in_texts_hold():
    with engine.open_engine(texts={}):
        pass
    opened = engine.current()
    for stage in engine.STAGES:
        assert "{record}" in opened.text(f"{stage}.user")
        assert opened.text(f"{stage}.system")
