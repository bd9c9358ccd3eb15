"""Details page of a rubric: the tree with its scores, and the material of the judgment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from annotation.formats.printable import counted
from judges.scorers.detail_values import as_json, dicts, mapping, number, read_as, text, whole

MOST_PAGES = MOST_PIECES = 500


@dataclass(frozen=True, slots=True)
class RubricDetails:
    """``source`` says in words where the rubric came from; ``pages`` are addresses with the kind of stored page;
    ``extractions`` and ``info`` are values that a script extracted or noted, as a title and JSON."""

    source: str
    digest: str
    final_score: float | None
    statistics: list[tuple[str, str]]
    tree: Tree
    pages: list[tuple[str, str]]
    extractions: list[tuple[str, str]]
    info: list[tuple[str, str]]


def read_details(details: Mapping[str, Any]) -> RubricDetails:
    source = mapping(details.get("source"))
    statistics = mapping(details.get("statistics"))
    return RubricDetails(
        source=_describe_source(source),
        digest=text(source.get("digest"), 64),
        final_score=number(details.get("final_score")),
        statistics=[(str(name)[:60].replace("_", " "), text(value, 200)) for name, value in sorted(statistics.items())][
            :20
        ],
        tree=flatten(details.get("tree")),
        pages=[
            (text(one.get("url"), 2000), text(one.get("stored"), 20)) for one in dicts(details.get("pages"), MOST_PAGES)
        ],
        extractions=_read_pieces(details.get("extractions"), "extraction"),
        info=_read_pieces(details.get("info"), "note"),
    )


def _describe_source(source: Mapping[str, Any]) -> str:
    if source.get("kind") == "script":
        return f"script {text(source.get('name'), 200)}"
    version = whole(source.get("version"))
    return "" if version is None else f"rubric of the task, version {version}"


def _read_pieces(given: Any, title: str) -> list[tuple[str, str]]:
    """Return each piece with its name if it has one: ``{"name": ...}``, or the single key of an object."""
    found = []
    for number_, one in enumerate(given[:MOST_PIECES] if isinstance(given, list) else [], start=1):
        name, value = one.get("name") if isinstance(one, dict) else None, one
        if name is None and isinstance(one, dict) and len(one) == 1:
            name, value = next(iter(one.items()))
        shown = value if isinstance(value, str) else as_json(value, indent=1)
        found.append((text(name, 200) or f"{title} {number_}", text(shown)))
    return found


MOST_NODES = 2_000
DEEPEST = 60
MANY = 150  # nodes; in a larger tree only the first `OPEN_DEPTH` levels are open
OPEN_DEPTH = 1
TONES = {"passed": "ok", "failed": "bad", "partial": "warn", "error": "warn"}


@dataclass(frozen=True, slots=True)
class VoteRow:
    result: Annotated[str, 20]
    reasoning: Annotated[str, 4000]


@dataclass(slots=True)
class TreeRow:
    """A node. ``closes`` has one item per level that ends after it, ``inner`` is the number of nodes below it,
    ``opened`` whether they are shown at first. ``score`` is None before it is judged."""

    id: Annotated[str, 200]
    desc: Annotated[str, 2000]
    critical: bool
    score: float | None
    status: Annotated[str, 20]
    strategy: Annotated[str, 20]
    claim: Annotated[str, 4000]
    sources: tuple[str, ...]
    steps: tuple[int, ...]
    about: Annotated[str, 40]
    chosen_steps: Annotated[str, 200]
    note: Annotated[str, 2000]
    key_point: Annotated[str, 1000]
    reasoning: str
    votes: Annotated[list[VoteRow], 20]
    error: Annotated[str, 2000]
    weight: float | None
    condition: Annotated[str, 2000]
    depth: int
    group: bool = False
    inner: int = 0
    closes: range = range(0)
    opened: bool = True

    @property
    def tone(self) -> str:
        return TONES.get("error" if self.error else self.status, "")

    @property
    def percent(self) -> int | None:
        return None if self.score is None else round(100 * min(1.0, max(0.0, self.score)))

    @property
    def folded(self) -> bool:
        return bool(self.reasoning or self.votes or self.sources)

    @property
    def subject(self) -> str:
        if self.about == "pages":
            return counted(len(self.sources), "named page") if self.sources else "cited pages"
        names = {"answer": "the answer", "steps": "the steps", "screenshots": "the screenshots"}
        steps = "" if self.chosen_steps in ("", "all") else f", {self.chosen_steps}"
        return names.get(self.about, self.about) + steps


@dataclass(frozen=True, slots=True)
class Tree:
    """``left_out``: there were more, or deeper, nodes than are shown."""

    nodes: list[TreeRow]
    left_out: bool

    @property
    def leaves(self) -> int:
        return sum(not node.group for node in self.nodes)

    @property
    def depth(self) -> int:
        return max((node.depth for node in self.nodes), default=0)


def flatten(root: Any, *, judged: bool = True) -> Tree:
    """Return the nodes from the root down, each before those below it; values that are not nodes are skipped.

    Without ``judged`` scores and statuses are left out: nothing has been judged yet.
    """
    nodes: list[TreeRow] = []
    left_out = False
    waiting: list[tuple[Any, int]] = [(root, 0)]
    while waiting:
        given, depth = waiting.pop()
        if not isinstance(given, dict):
            continue
        if depth >= DEEPEST or len(nodes) >= MOST_NODES:
            left_out = True
            continue
        nodes.append(read_as(TreeRow, given, depth=depth))
        waiting.extend((one, depth + 1) for one in reversed(dicts(given.get("children"), MOST_NODES)))
    _nest(nodes)
    for node in nodes if not judged else ():
        node.score, node.status = None, ""
    return Tree(nodes, left_out)


def _nest(nodes: list[TreeRow]) -> None:
    """Set for each node whether it has others below it, how many, and how many levels it ends."""
    above: list[TreeRow] = []
    depths = [node.depth for node in nodes]
    for node, following in zip(nodes, (*depths[1:], 0), strict=False):
        del above[node.depth :]
        for one in above:
            one.inner += 1
        above.append(node)
        node.group = following > node.depth
        node.closes = range(0) if node.group else range(node.depth - following)
    if len(nodes) > MANY:
        for node in nodes:
            node.opened = node.depth < OPEN_DEPTH
