"""The outcome of a rubric: from the engine in this process, or reported by the process of a script."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from annotation.formats.printable import counted
from judges.scorer import Expected
from judges.scorers.rubric.evaluator import Evaluator
from judges.scorers.rubric.process import GARBAGE, Script, ScriptFailed
from judges.scorers.rubric.tree import NOT_APPLICABLE

CLOSE = 1e-9  # tolerance of two scores: a mean of tenths is rarely exact
SHOWN = 5  # faults, pages or claims that a sentence names
DEEPEST = 200
MOST_NODES = 5_000


@dataclass(frozen=True, slots=True)
class RubricOutcome:
    """``between`` are the lowest and highest score if nothing had broken, ``between_with_pages`` if also every page
    had been stored. ``details`` are those of a judgment."""

    score: float
    between: tuple[float, float]
    between_with_pages: tuple[float, float]
    faults: tuple[str, ...]
    missing_pages: tuple[str, ...]
    details: Mapping[str, Any]
    unconfined: tuple[str, ...] = ()

    @property
    def notes(self) -> dict[str, Any]:
        found = {"rubric": self.details["source"], "faults": list(self.faults[:50])}
        found["missing_pages"] = [page[:2_000] for page in self.missing_pages[:50]]
        return found | ({"unconfined": list(self.unconfined)} if self.unconfined else {})

    @property
    def applies(self) -> bool:
        return self.details["tree"]["status"] != NOT_APPLICABLE

    def map_nodes(self) -> dict[str, Mapping[str, Any]]:
        return {str(node.get("id")): node for node in _walk(self.details["tree"])}

    def explain_undecided(self) -> str:
        if self.faults:
            return f"An error decides the score: {_limit_list(self.faults, '; ')}"
        return (
            f"Cited pages that decide the score are not stored: {_limit_list(self.missing_pages, ', ')}. Pages cannot "
            "be added to an imported trajectory: run capture_pages on the package and import it as a new attempt, or "
            "let the judge count missing pages as unsupported."
        )

    def explain_score(self) -> str:
        """Return the score, and the claims that do not hold, each with its reasoning."""
        found = [node for node in self.map_nodes().values() if not node.get("children")]
        leaves = [node for node in found if node.get("status") != NOT_APPLICABLE]
        held = [node for node in leaves if node.get("status") == "passed"]
        lines = [f"Score {self.score:.3g}: {len(held)} of {len(leaves)} claims hold."]
        if without := len(found) - len(leaves):
            lines[0] += f" Not counted, since the condition is not met: {counted(without, 'claim')}."
        for node in [node for node in leaves if node.get("status") == "failed"][:SHOWN]:
            why = str(node.get("reasoning") or node.get("error") or "").strip()
            lines.append(f"Not supported: {node.get('desc', '')}{f' ({why[:500]})' if why else ''}")
        return "\n".join(lines)


def reaches(score: float, needed: float) -> bool:
    return score >= needed - CLOSE


def describe_written(expected: Expected) -> dict[str, Any]:
    return {"kind": "written", "name": "rubric", "version": expected.version, "digest": expected.digest}


def read_evaluator(evaluator: Evaluator, expected: Expected) -> RubricOutcome:
    source = describe_written(expected)
    details = evaluator.details()
    return RubricOutcome(
        score=evaluator.score(),
        between=evaluator.score_bounds(),
        between_with_pages=evaluator.score_bounds(missing_pages=True),
        faults=tuple(map(str, evaluator.infrastructure_errors)),
        missing_pages=tuple(evaluator.missing_pages),
        details={"kind": "rubric", "source": source, **details},
    )


def read_script(said: Mapping[str, Any], script: Script) -> RubricOutcome:
    """Return the outcome of a script; raise ScriptFailed if its result is not a valid outcome."""
    score, details, bounds = said.get("score"), said.get("details"), said.get("bounds")
    if not isinstance(score, int | float) or not _is_score(score):
        raise ScriptFailed(f"The script's final_score is {str(score)[:100]!r}; it must be a number from 0 to 1.")
    if not isinstance(details, dict) or not _is_tree(details.get("tree")) or not isinstance(bounds, list):
        raise ScriptFailed(GARBAGE)
    if not _are_bounds(bounds) or not _is_score(details.get("final_score")):
        raise ScriptFailed(GARBAGE)
    source = {"kind": "script", "name": script.name, "version": None, "digest": script.digest}
    plain, with_pages = (_move_bounds(pair, float(score), float(details["final_score"])) for pair in bounds)
    return RubricOutcome(
        score=float(score),
        between=plain,
        between_with_pages=with_pages,
        faults=_read_texts(said.get("faults")),
        missing_pages=_read_texts(said.get("missing_pages")),
        details={"kind": "rubric", "source": source, **details, "final_score": float(score)},
        unconfined=_read_texts(said.get("missing")),
    )


def _move_bounds(pair: Sequence[float], score: float, of_tree: float) -> tuple[float, float]:
    """Return the bounds; if a script's score is not that of its tree, this score, or 0 to 1 if the bounds differ."""
    low, high = float(pair[0]), float(pair[1])
    if abs(score - of_tree) <= CLOSE:
        return low, high
    return (score, score) if low == high else (0.0, 1.0)


def _is_score(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


def _are_bounds(value: Any) -> bool:
    return (
        isinstance(value, list)
        and len(value) == 2
        and all(isinstance(pair, list) and len(pair) == 2 and all(map(_is_score, pair)) for pair in value)
    )


def _is_tree(value: Any) -> bool:
    """Return whether it is a tree of nodes with the keys that pages show, and within `DEEPEST` and `MOST_NODES`."""
    waiting, seen = [(value, 0)], 0
    while waiting:
        node, depth = waiting.pop()
        seen += 1
        children = node.get("children") if isinstance(node, dict) else None
        if not isinstance(children, list) or depth > DEEPEST or seen > MOST_NODES:
            return False
        if not all(isinstance(node.get(name), str) for name in ("id", "desc", "status", "strategy")):
            return False
        if not _is_score(node.get("score")):
            return False
        waiting += [(child, depth + 1) for child in children]
    return True


def _walk(tree: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += reversed(node.get("children", []))


def _read_texts(value: Any) -> tuple[str, ...]:
    return tuple(str(one)[:2_000] for one in value[:200]) if isinstance(value, list) else ()


def _limit_list(texts: Sequence[str], joint: str) -> str:
    more = f"{joint}and {len(texts) - SHOWN} more" if len(texts) > SHOWN else ""
    return joint.join(text[:500] for text in texts[:SHOWN]) + more
