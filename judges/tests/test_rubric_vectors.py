"""What the published engine was measured to do, case by case; the cases lie beside the checkout, where they are."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from django.conf import settings

from annotation.formats import cached_pages
from judges.scorers.rubric import pages
from judges.scorers.rubric.evaluator import Evaluator
from judges.scorers.rubric.pages import Index
from judges.scorers.rubric.tree import VerificationNode

DATA = Path(settings.BASE_DIR).parent / "shared" / "data" / "mind2web2_vectors"


@pytest.fixture(autouse=True)
def vectors():
    if not DATA.is_dir():
        pytest.skip("the folder shared/data/mind2web2_vectors is not beside the checkout")


def cases(name):
    return json.loads((DATA / f"{name}.json").read_text(encoding="utf-8"))


def built(told) -> VerificationNode:
    """A node as a vector tells it, with a short description in place of none."""
    given = {key: told[key] for key in ("id", "critical", "strategy", "score", "status")}
    return VerificationNode(desc=told["id"], children=[built(child) for child in told["children"]], **given)


def told(node: VerificationNode):
    return without_desc(node.as_json())


def without_desc(shown):
    return {key: value for key, value in shown.items() if key not in ("desc", "children")} | {
        "children": [without_desc(child) for child in shown["children"]]
    }


def test_every_tree_gets_the_published_score_and_statuses():
    found = cases("trees")
    for case in found:
        assert built(case["before"]).compute_score(mutate=False) == pytest.approx(case["pure"])
        tree = built(case["before"])
        assert tree.compute_score() == pytest.approx(case["final"])
        assert told(tree) == case["after"]
    assert len(found) == 300


class Always:
    """A client that supports every claim."""

    async def async_response(self, **call):
        return SimpleNamespace(reasoning="it is so", result=True)


def grown(evaluator: Evaluator, case) -> dict[str, VerificationNode]:
    """The tree of a case through the evaluator's own calls, by the ids of the vector."""
    nodes = {"root": evaluator.root}

    def below(parent, children):
        for child in children:
            node = built(child | {"children": []})
            nodes[child["id"]] = node
            parent.add_node(node)
            below(node, child["children"])

    below(evaluator.root, case["before"]["children"])
    return nodes


def test_every_precondition_is_decided_as_published():
    found = cases("preconditions")
    for case in found:
        evaluator = Evaluator()
        evaluator.initialize("t", "agent", "answer", Always(), strategy=case["root_strategy"])
        nodes = grown(evaluator, case)
        target, extra = nodes[case["target"]], [nodes[one] for one in case["extra"]]
        returned = asyncio.run(evaluator.verify("It is so.", target, extra_prerequisites=extra))
        assert (returned, target.status) == (case["returned"], case["status"])
    assert len(found) == 220


def test_every_pair_of_addresses_is_the_same_page_as_published():
    found = cases("url_match")
    for stored, asked, same in found:
        for kept in (stored, cached_pages.stored_as(stored)):  # an index may have its addresses decoded
            assert (Index({kept: "web"}).find(asked) is not None) is same, (kept, asked)
    assert len(found) == 348


def test_every_address_is_normalised_as_published():
    found = cases("url_norm")
    for case in found:
        url = case["url"]
        forms = {
            "simple": pages.simplify(url),
            "no_utm": pages.remove_tracking(url),
            "markdown": pages.unescape_markdown(url),
            "stored_as": cached_pages.stored_as(url),
            "md5": cached_pages.stem(url),
        }
        assert {"url": url} | forms == case
    assert len(found) == 16
