"""Whether something that broke could have decided: between which scores the truth lies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from judges.scorers.rubric.engine import Fault
from judges.scorers.rubric.tree import PASSED, VerificationNode


def compute_bounds(
    root: VerificationNode,
    before: Mapping[str, tuple[float, str]],
    score: float,
    faults: Iterable[Fault],
    *,
    missing_pages: bool = False,
) -> tuple[float, float]:
    """The lowest and highest score, 0 to 1, had nothing broken; both are ``score`` where nothing did.

    Leaves that broke, and those that were skipped for them alone, may have passed: the highest score is the tree's with
    all of them passed. ``before`` has score and status of every leaf, by id, from before ``score`` was computed, which
    skips what follows in sequential nodes. An extraction, a tool, or a claim without a node may have changed anything
    the script did afterwards: 0 to 1. Pages that are not stored count as broken only with ``missing_pages``; otherwise
    a page that nobody could fetch supports nothing.
    """
    counted = [fault for fault in faults if missing_pages or fault.kind != "page"]
    if not counted:
        return score, score
    if any(fault.kind in ("extraction", "tool") or fault.where not in before for fault in counted):
        return 0.0, 1.0
    passed = _find_open(root.leaves(), {fault.where for fault in counted})
    values = dict(before) | dict.fromkeys(passed, (1.0, PASSED))
    return score, max(score, _copy(root, values).compute_score())


def _find_open(nodes: Iterable[VerificationNode], broken: set[str]) -> set[str]:
    """The broken nodes, and those that were skipped for nothing but nodes that are open themselves."""
    skipped = {node.id: set(node.checked.blocked_by) for node in nodes if node.checked and node.checked.blocked_by}
    found = set(broken)
    while more := {one for one, blocked in skipped.items() if one not in found and blocked <= found}:
        found |= more
    return found


def _copy(node: VerificationNode, values: Mapping[str, tuple[float, str]]) -> VerificationNode:
    """The tree with these scores and statuses at its leaves; what was added later has its own."""
    copy = VerificationNode(id=node.id, desc=node.desc, critical=node.critical, strategy=node.strategy)
    copy.score, copy.status = values.get(node.id, (node.score, node.status))
    copy.children = [_copy(child, values) for child in node.children]
    return copy
