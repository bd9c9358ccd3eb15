"""The tree of a rubric: nodes, the aggregation of scores, and the prerequisites of a check.

The rules are those of Mind2Web-2, measured on its engine: a critical child is a gate, and a sequential node stops at
its first child that is not complete. Weights and claims that do not apply are additions for written rubrics.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from itertools import pairwise
from typing import Any

INITIALIZED, PASSED, FAILED, PARTIAL, SKIPPED = "initialized", "passed", "failed", "partial", "skipped"
NOT_APPLICABLE = "does not apply"
STATUSES = (INITIALIZED, PASSED, FAILED, PARTIAL, SKIPPED, NOT_APPLICABLE)
LEAF_STATUSES = (INITIALIZED, PASSED, FAILED, SKIPPED)
BLOCKING = frozenset({FAILED, SKIPPED})
LONGEST_TEXT = 20_000  # characters of one text in `details`; longer ones are cut


class AggregationStrategy(StrEnum):
    """Relation of a node's children: independent, or each needing the one before it."""

    PARALLEL = "parallel"
    SEQUENTIAL = "sequential"


@dataclass(frozen=True, slots=True)
class Vote:
    """One reply of the model; ``source`` is the address of the page that it was shown, "" without one."""

    result: bool
    reasoning: str = ""
    source: str = ""


@dataclass(slots=True)
class Checked:
    """The check of a node and its outcome. ``error`` says *infrastructure error* or *page not stored*
    if the node counts as failed although no reply said so. ``missing`` are addresses without a stored page, and
    ``blocked_by`` the ids of the nodes that caused the node to be skipped."""

    claim: str
    sources: tuple[str, ...] = ()
    steps: tuple[int, ...] = ()
    instruction: str = ""
    reasoning: str = ""
    votes: list[Vote] = field(default_factory=list)
    error: str = ""
    missing: tuple[str, ...] = ()
    blocked_by: tuple[str, ...] = ()


@dataclass(eq=False, slots=True)
class VerificationNode:
    """A node; equal only to itself.

    ``score`` is 0 to 1 and must agree with ``status`` when the node is created: 1 if passed, strictly between if
    partial, 0 if failed or skipped; ValueError otherwise. Later assignments are not checked, because scripts assign
    one after the other. ``weight`` is the node's share in the mean of its parent.
    """

    id: str
    desc: str = ""
    critical: bool = False
    score: float = 0.0
    status: str = INITIALIZED
    strategy: AggregationStrategy = AggregationStrategy.PARALLEL
    children: list[VerificationNode] = field(default_factory=list)
    checked: Checked | None = field(default=None, repr=False)
    weight: float = field(default=1, repr=False)

    def __post_init__(self) -> None:
        self.strategy = AggregationStrategy(self.strategy)
        if self.status not in STATUSES:
            raise ValueError(f"Node {self.id}: status must be one of {', '.join(STATUSES)}, not {self.status!r}.")
        if not 0.0 <= self.score <= 1.0:
            raise ValueError(f"Node {self.id}: score must be 0 to 1, not {self.score!r}.")
        if not _agree(self.status, self.score):
            raise ValueError(f"Node {self.id}: a score of {self.score!r} contradicts the status {self.status}.")
        for child in self.children:
            self._admit(child)

    @property
    def claim(self) -> str:
        return self.desc

    @claim.setter
    def claim(self, text: str) -> None:
        self.desc = text

    @property
    def error(self) -> str:
        """Return why the node counts as failed although no reply said so; "" otherwise."""
        return self.checked.error if self.checked else ""

    @property
    def applies(self) -> bool:
        """Return False for a leaf whose condition is not met, and for a group with such leaves alone."""
        return any(child.applies for child in self.children) if self.children else self.status != NOT_APPLICABLE

    def add_node(self, child: VerificationNode) -> None:
        """Add a node below this one; raise ValueError for a child that is not critical below a critical node."""
        self._admit(child)
        self.children.append(child)

    def _admit(self, child: VerificationNode) -> None:
        if self.critical and not child.critical:
            raise ValueError(f"Node {child.id} is not critical and cannot be below {self.id}, which is critical.")

    def walk(self) -> Iterator[VerificationNode]:
        waiting = [self]
        while waiting:
            node = waiting.pop()
            yield node
            waiting.extend(reversed(node.children))

    def leaves(self) -> list[VerificationNode]:
        """Return the nodes without children, in order; a node without children is its own leaf."""
        return [node for node in self.walk() if not node.children]

    def settle(self, passed: bool) -> None:
        self.score, self.status = (1.0, PASSED) if passed else (0.0, FAILED)

    def skip(self) -> None:
        self.score, self.status = 0.0, SKIPPED

    def compute_score(self, *, mutate: bool = True) -> float:
        """Return the score, 0 to 1, bottom up; the mutating variant, which counts, also sets scores and statuses.

        A leaf has its own score. Otherwise, after the children: in a sequential node every child after the first
        one below 1 becomes 0 and skipped (nodes below it keep their values). Then 0 if any critical child is below
        1; else the weighted mean over the children that are not critical; 1 if there are none. Children that do not
        apply take no part; without any other the score is 0. With ``mutate=False`` nothing is written and sequential
        nodes skip nothing, so the number can be higher: it is only for comparison with the published engine.
        """
        if not self.children:
            return self.score
        scores = [child.compute_score(mutate=mutate) for child in self.children]
        if mutate:
            if self.strategy is AggregationStrategy.SEQUENTIAL:
                scores = self._skip_after_failure(scores)
            self.score = _combine_scores(self.children, scores)
            self.status = self._find_status()
            return self.score
        return _combine_scores(self.children, scores)

    def _skip_after_failure(self, scores: Sequence[float]) -> list[float]:
        pairs = enumerate(zip(self.children, scores, strict=True))
        first = next((at for at, (child, score) in pairs if child.applies and score < 1.0), len(scores))
        for child in self.children[first + 1 :]:
            if child.applies:
                child.skip()
        return [child.score for child in self.children]

    def _find_status(self) -> str:
        if not self.applies:
            return NOT_APPLICABLE
        if self.score >= 1.0:
            return PASSED
        if self.score > 0.0:
            return PARTIAL
        return FAILED if any(child.status == FAILED for child in self.children) else SKIPPED

    def as_json(self) -> dict[str, Any]:
        return self._format(self.desc, [child.as_json() for child in self.children])

    def _format(self, desc: str, children: list[dict[str, Any]]) -> dict[str, Any]:
        return {
            "id": self.id,
            "desc": desc,
            "critical": self.critical,
            "score": self.score,
            "status": self.status,
            "strategy": str(self.strategy),
            "children": children,
        }

    def details(self) -> dict[str, Any]:
        """Return the tree with the check of each node, every text cut to `LONGEST_TEXT` characters."""
        shown = self._format(limit_text(self.desc), [child.details() for child in self.children])
        shown |= {"weight": self.weight} if self.weight != 1 else {}
        if self.checked is None:
            return shown
        return shown | {name: _limit(value) for name, value in asdict(self.checked).items()}


def limit_text(text: str) -> str:
    return text if len(text) <= LONGEST_TEXT else text[: LONGEST_TEXT - 1] + "…"


def _limit(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_limit(one) for one in value]
    if isinstance(value, dict):
        return {name: _limit(one) for name, one in value.items()}
    return limit_text(value) if isinstance(value, str) else value


def _agree(status: str, score: float) -> bool:
    if status == PASSED:
        return score == 1.0
    if status == PARTIAL:
        return 0.0 < score < 1.0
    return status == INITIALIZED or score == 0.0


def _combine_scores(children: Sequence[VerificationNode], scores: Sequence[float]) -> float:
    """Return the parent's score from its children's; critical ones are a gate and take no part in the mean."""
    applying = [(child, score) for child, score in zip(children, scores, strict=True) if child.applies]
    if not applying or any(child.critical and score < 1.0 for child, score in applying):
        return 0.0
    counted = [(float(child.weight), score) for child, score in applying if not child.critical]
    return sum(weight * score for weight, score in counted) / sum(weight for weight, _ in counted) if counted else 1.0


def find_path(root: VerificationNode, node: VerificationNode) -> list[VerificationNode]:
    """Return the nodes from ``root`` down to ``node``, both included; empty if the node is not below it."""
    parents: dict[int, VerificationNode] = {}
    for one in root.walk():
        if one is node:
            path = [node]
            while id(path[-1]) in parents:
                path.append(parents[id(path[-1])])
            return path[::-1]
        parents.update((id(child), one) for child in one.children)
    return []


def find_prerequisites(
    root: VerificationNode, node: VerificationNode, extra: Sequence[VerificationNode] = ()
) -> list[VerificationNode]:
    """Return the leaves on which the check of ``node`` depends, each once.

    All below each extra prerequisite; and, at every level from the node up to the root, all below every critical
    sibling, before or after it, and below every earlier sibling if the parent is sequential. ValueError for a node
    that would depend on itself.
    """
    found = [leaf for one in extra for leaf in one.leaves()]
    path = find_path(root, node)
    for parent, child in pairwise(path):
        earlier = parent.strategy is AggregationStrategy.SEQUENTIAL
        for sibling in parent.children:
            if sibling is child:
                earlier = False
            elif sibling.critical or earlier:
                found += sibling.leaves()
    if any(leaf is node for leaf in found) or any(one is node for one in extra):
        raise ValueError(f"Node {node.id} is a prerequisite of itself.")
    return list({id(leaf): leaf for leaf in found}.values())


def find_blocking(
    root: VerificationNode, node: VerificationNode, extra: Sequence[VerificationNode] = ()
) -> list[VerificationNode]:
    """Return the prerequisites that are failed or skipped at this moment; one that was never checked does not block."""
    return [leaf for leaf in find_prerequisites(root, node, extra) if leaf.status in BLOCKING]


def compute_statistics(root: VerificationNode) -> dict[str, int]:
    """Return ``depth`` (0 for a root alone), ``total_nodes`` and ``leaf_nodes``."""
    depth, level, total, leaves = -1, [root], 0, 0
    while level:
        depth += 1
        total += len(level)
        leaves += sum(not node.children for node in level)
        level = [child for node in level for child in node.children]
    return {"depth": depth, "total_nodes": total, "leaf_nodes": leaves}
