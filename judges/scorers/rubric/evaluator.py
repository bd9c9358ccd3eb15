"""The evaluator that a rubric's script uses: it builds the tree, checks its leaves, and computes the score."""

# ruff: noqa: A002 - ``id`` is a keyword of the published evaluator

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Generator, Iterable, Mapping, Sequence
from typing import Any, TypeVar, cast

from pydantic import BaseModel

from judges.scorers.rubric import tree
from judges.scorers.rubric.engine import Fault, current, find_limits
from judges.scorers.rubric.pages import Pages
from judges.scorers.rubric.questions import (
    TRIALS,
    ClaimEvidence,
    Extraction,
    Extractor,
    Questioner,
    Verifier,
    count_needed,
)
from judges.scorers.rubric.tree import PASSED, AggregationStrategy, Checked, VerificationNode

DEFAULT_MODEL = "o4-mini"
ROOT = "root"
COUNTS = ("depth", "total_nodes", "leaf_nodes")
SUMMARY = (
    "agent_name", "answer_name", "final_score", "judge_model", "extract_model", "eval_breakdown", "tree_statistics",
)  # fmt: skip

T = TypeVar("T", bound=BaseModel)
Nodes = VerificationNode | Sequence[VerificationNode] | None
Quadruple = tuple[Any, Any, VerificationNode | None, str | None]


class NotInitialized(RuntimeError, ValueError):
    """An evaluator was used before `Evaluator.initialize`."""


class _Finished:
    def __await__(self) -> Generator[None, None, None]:
        return
        yield


class Evaluator:
    """Evaluator of one answer to one task.

    ``root`` is the tree, ``verifier`` and ``extractor`` ask the model. ``faults`` are the errors on the way, in order:
    their nodes count as failed and their values are empty, as in the published engine. The list tells them from a
    wrong answer.
    """

    def __init__(self) -> None:
        self.engine = current()
        self.engine.evaluators.append(self)
        self.logger: logging.Logger = logging.getLogger(__name__)
        self._root: VerificationNode | None = None
        self._forget()

    def _forget(self) -> None:
        self.faults: list[Fault] = []
        self.extractions: list[Extraction] = []
        self._ground_truth: list[dict[str, Any]] = []
        self._custom_info: list[dict[str, Any]] = []
        self._ids = {ROOT}
        self._final: float | None = None
        self._before: dict[str, tuple[float, str]] = {}

    def initialize(
        self,
        task_id: str,
        agent_name: str,
        answer_name: str,
        client: Any,
        task_description: str | None = None,
        answer: str = "",
        global_cache: Any = None,
        global_semaphore: Any = None,
        logger: logging.Logger | None = None,
        default_model: str = DEFAULT_MODEL,
        strategy: AggregationStrategy = AggregationStrategy.PARALLEL,
        extract_model: str | None = None,
        verify_model: str | None = None,
    ) -> VerificationNode:
        """Start again with one answer; return the root, which is never critical.

        ``global_cache`` has ``has``, ``get_web`` and ``get_pdf`` (None: no page is stored), ``global_semaphore`` is a
        `DualSemaphore`, a plain one, or None for no limit.
        """
        self._forget()
        self.task_id, self.agent_name, self.answer_name = task_id, agent_name, answer_name
        self.logger = logger or logging.getLogger(__name__)
        task = task_description or f"The task {task_id}"
        self._root = VerificationNode(id=ROOT, desc=task, strategy=strategy)
        web, calls = find_limits(global_semaphore)
        questioner = Questioner(client, task, answer, calls, self.engine, self.logger)
        self.pages = Pages(global_cache, web, self.engine)
        self.verifier = Verifier(questioner, self.pages, verify_model or default_model)
        self.extractor = Extractor(questioner, self.pages, extract_model or default_model)
        return self._root

    @property
    def initialized(self) -> bool:
        return self._root is not None

    @property
    def root(self) -> VerificationNode:
        return self._ready()

    def _ready(self) -> VerificationNode:
        if self._root is None:
            raise NotInitialized("The evaluator is not initialised. Call initialize first.")
        return self._root

    def close(self) -> Awaitable[None]:
        """Do nothing: no resource is open. The result may be awaited or not."""
        return _Finished()

    # --- the tree ------------------------------------------------------------------------------------------------

    def add_parallel(
        self, id: str, desc: str = "", parent: VerificationNode | None = None, critical: bool = False
    ) -> VerificationNode:
        """Add a group of independent children; below the root if no parent is given."""
        return self._add(parent, id, desc, critical, strategy=AggregationStrategy.PARALLEL)

    def add_sequential(
        self, id: str, desc: str = "", parent: VerificationNode | None = None, critical: bool = False
    ) -> VerificationNode:
        """Add a group in which each child needs the ones before it."""
        return self._add(parent, id, desc, critical, strategy=AggregationStrategy.SEQUENTIAL)

    def add_leaf(
        self,
        id: str,
        desc: str = "",
        parent: VerificationNode | None = None,
        critical: bool = False,
        score: float = 0.0,
        status: str = tree.INITIALIZED,
    ) -> VerificationNode:
        """Add a claim to be checked; raise ValueError for a score other than 0 and 1, or a status that no leaf has."""
        if score not in (0, 1):
            raise ValueError(f"Leaf {id}: score must be 0 or 1, not {score!r}.")
        if status not in tree.LEAF_STATUSES:
            raise ValueError(f"Leaf {id}: status must be one of {', '.join(tree.LEAF_STATUSES)}, not {status!r}.")
        return self._add(parent, id, desc, critical, score=float(score), status=status)

    def add_custom_node(
        self, result: Any, id: str, desc: str = "", parent: VerificationNode | None = None, critical: bool = True
    ) -> VerificationNode:
        """Add a leaf that the script decided itself: passed if ``result`` is true in Python's sense, else failed."""
        score, status = (1.0, tree.PASSED) if result else (0.0, tree.FAILED)
        return self._add(parent, id, desc, critical, score=score, status=status)

    def _add(
        self, parent: VerificationNode | None, wanted: str, desc: str, critical: bool, **more: Any
    ) -> VerificationNode:
        above = self.root if parent is None else parent
        node = VerificationNode(id=self._find_unused_id(wanted), desc=desc, critical=bool(critical), **more)
        above.add_node(node)
        self._ids.add(node.id)
        return node

    def _find_unused_id(self, wanted: str) -> str:
        """Return ``wanted``, with the first unused suffix of _1, _2, ... if it is in use."""
        found, number = wanted, 0
        while found in self._ids:
            number += 1
            found = f"{wanted}_{number}"
        return found

    def find_node(self, id: str) -> VerificationNode | None:
        return next((node for node in self.root.walk() if node.id == id), None)

    # --- asking --------------------------------------------------------------------------------------------------

    async def verify(
        self,
        claim: str,
        node: VerificationNode | None = None,
        sources: Any = None,
        extra_prerequisites: Nodes = None,
        additional_instruction: str | None = None,
        majority_vote: bool = True,
        num_trials: int = TRIALS,
        use_screenshot: bool = True,
    ) -> bool:
        """Check a claim and write the outcome into ``node``, which is skipped if a prerequisite has failed.

        ``sources`` as in `Verifier.check`. An error on the way makes the node failed and the result False, and is a
        fault. Only NotInitialized is raised, and errors that the engine lets through.
        """
        given = (claim, sources, node, additional_instruction)
        options = {"majority_vote": majority_vote, "num_trials": num_trials, "use_screenshot": use_screenshot}
        return await self._prepare(given, extra_prerequisites, options)

    async def batch_verify(
        self, claims: Sequence[Sequence[Any]], extra_prerequisites: Nodes = None, **options: Any
    ) -> list[bool | BaseException]:
        """Check ``(claim, sources, node, instruction)`` tuples together; return results in their order.

        Earlier decisions count as prerequisites, and decisions within the batch do not: the skipped nodes are
        determined before anything is asked. An error takes the place of its result.
        """
        given = [_read_quadruple(one) for one in claims]
        checks = [self._prepare(one, extra_prerequisites, options) for one in given]
        results = await asyncio.gather(*checks, return_exceptions=True)
        ended = [one for one in results if isinstance(one, self.engine.lets_through)]
        if ended:
            raise ended[0]
        return results

    def _prepare(self, given: Quadruple, extra: Nodes, options: Mapping[str, Any]) -> Awaitable[bool]:
        """Return the check, still to be awaited; whether the node is skipped is decided now."""
        claim, sources, node, instruction = given
        noted = self._start_note(node, claim, sources, instruction)
        if node is not None and self._skip(node, noted, extra):
            return _describe_decided(False)
        return self._check(node, noted, sources, **options)

    def _start_note(self, node: VerificationNode | None, claim: Any, sources: Any, instruction: str | None) -> Checked:
        """Return a new note of a check; drop the note and the faults of an earlier check of the same node."""
        self._ready()
        steps = tuple(sources.steps) if isinstance(sources, ClaimEvidence) else ()
        named = [sources] if isinstance(sources, str) else sources if isinstance(sources, list) else []
        noted = Checked(str(claim), tuple(map(str, named)), steps, str(instruction or ""))
        if node is not None:
            node.checked = noted
            self.faults = [one for one in self.faults if one.where != node.id or one.kind == "extraction"]
        return noted

    def _skip(self, node: VerificationNode, noted: Checked, extra: Nodes) -> bool:
        """Skip the node if a prerequisite has failed or is invalid; return whether it must not be asked about."""
        try:
            blocking = tree.find_blocking(self.root, node, _make_list(extra))
        except Exception as error:
            self._record_error(node, noted, error)
            return True
        if blocking:
            noted.blocked_by = tuple(one.id for one in blocking)
            noted.reasoning = f"Not checked, because of {', '.join(noted.blocked_by)}."
            node.skip()
        return bool(blocking)

    async def _check(
        self,
        node: VerificationNode | None,
        noted: Checked,
        sources: Any,
        majority_vote: bool = True,
        num_trials: int = TRIALS,
        use_screenshot: bool = True,
    ) -> bool:
        try:
            needed = count_needed(majority_vote, num_trials)
            result = await self.verifier.check(noted, sources, needed, use_screenshot=use_screenshot)
        except self.engine.lets_through:
            raise
        except Exception as error:
            self._record_error(node, noted, error)
            return False
        if node is not None:
            node.settle(result)
        if noted.error:
            self.faults.append(Fault("page", node.id if node else "", noted.error))
        return result

    def _record_error(self, node: VerificationNode | None, noted: Checked, error: Exception) -> None:
        """Record that the check of a node ended in an error: the node counts as failed."""
        noted.error = f"infrastructure error: {type(error).__name__}: {error}"
        self.faults.append(Fault("call", node.id if node else "", noted.error))
        self.logger.warning("Checking %s failed: %s: %s", node.id if node else "a claim", type(error).__name__, error)
        if node is not None:
            node.settle(False)

    async def extract(
        self,
        prompt: str,
        template_class: type[T],
        extraction_name: str | None = None,
        source: str | None = None,
        use_screenshot: bool = True,
    ) -> T:
        """Return an instance of the template from the answer, or from the page at ``source``; empty if that fails."""
        self._ready()
        name = extraction_name or template_class.__name__
        found = await self.extractor.extract(prompt, template_class, name, source, use_screenshot=use_screenshot)
        self.extractions.append(found)
        if found.fault:
            # A missing page is not a fault of a node here: the empty value may have changed anything.
            self.faults.append(Fault(found.fault, "" if found.fault == "page" else name, found.error))
        return cast(T, found.value)

    # --- the outcome ---------------------------------------------------------------------------------------------

    def add_ground_truth(self, info: Any, gt_type: str = "ground_truth") -> None:
        self._ground_truth.append({gt_type: info})

    def add_custom_info(self, info: Any, info_type: str = "custom_info", info_name: str | None = None) -> None:
        """Add anything to the summary, under its name, or its type if it has none."""
        self._custom_info.append({info_name or info_type: info})

    def score(self) -> float:
        """Return the score of the root, 0 to 1, by the mutating variant. The first call fixes it: nodes that are added
        or checked afterwards do not count."""
        if self._final is None:
            self._before = {node.id: (node.score, node.status) for node in self.root.leaves()}
            self._final = self.root.compute_score()
        return self._final

    def score_bounds(self, *, missing_pages: bool = False) -> tuple[float, float]:
        """Return the lowest and highest possible score if nothing had broken (`compute_bounds`)."""
        score = self.score()
        faults = (*self.faults, *self.engine.faults)
        return compute_bounds(self.root, self._before, score, faults, missing_pages=missing_pages)

    @property
    def infrastructure_errors(self) -> list[Fault]:
        """Return our faults, in order, without pages that are not stored: see `missing_pages`."""
        return [fault for fault in (*self.faults, *self.engine.faults) if fault.kind != "page"]

    @property
    def missing_pages(self) -> list[str]:
        """Return requested addresses without a stored page, in order."""
        return [url for url, stored in self._list_pages().items() if stored == "missing"]

    def get_summary(self) -> dict[str, Any]:
        """Return the outcome in the form of the published evaluator."""
        found: tuple[Any, ...] = ("", "", 0.0, "unknown", "unknown", [], dict.fromkeys(COUNTS, 0))
        if self._root is not None:
            score = self.score()  # before the tree is read: it writes the groups' scores and statuses
            extracted = [{one.name: one.value.model_dump(mode="json")} for one in self.extractions]
            info = [*extracted, *self._list_told()] or [{"no_info": True}]
            breakdown = [{"info": info, "verification_tree": self.root.as_json()}]
            models, counts = (self.verifier.model, self.extractor.model), tree.compute_statistics(self.root)
            found = (self.agent_name, self.answer_name, score, *models, breakdown, counts)
        return dict(zip(SUMMARY, found, strict=True))

    def details(self) -> dict[str, Any]:
        """Return the outcome with all checks, as JSON for a page; texts are bounded."""
        score = self.score()  # before the tree is read, as above
        return {
            "tree": self.root.details(),
            "final_score": score,
            "statistics": tree.compute_statistics(self.root),
            "pages": [{"url": tree.limit_text(url), "stored": stored} for url, stored in self._list_pages().items()],
            "extractions": [one.as_json() for one in self.extractions],
            "info": [{key: _make_plain(value) for key, value in one.items()} for one in self._list_told()],
        }

    def _list_pages(self) -> Mapping[str, str]:
        return {} if self._root is None else self.pages.asked

    def _list_told(self) -> list[dict[str, Any]]:
        return [*self._ground_truth, *self._custom_info]


def _make_list(nodes: Nodes) -> Sequence[VerificationNode]:
    if nodes is None:
        return ()
    return (nodes,) if isinstance(nodes, VerificationNode) else nodes


def _read_quadruple(given: Sequence[Any]) -> Quadruple:
    if not isinstance(given, Sequence) or len(given) not in (3, 4):
        raise ValueError("batch_verify takes tuples of claim, sources, node and instruction.")
    claim, sources, node, instruction = (*given, None)[:4]
    return claim, sources, node, instruction


async def _describe_decided(result: bool) -> bool:
    return result


def _make_plain(value: Any) -> Any:
    """Return information of a script as JSON of a bounded length; anything else as a text."""
    try:
        written = json.dumps(value, ensure_ascii=False, default=str, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return tree.limit_text(str(value))
    return json.loads(written) if len(written) <= tree.LONGEST_TEXT else tree.limit_text(written)


def compute_bounds(
    root: VerificationNode,
    before: Mapping[str, tuple[float, str]],
    score: float,
    faults: Iterable[Fault],
    *,
    missing_pages: bool = False,
) -> tuple[float, float]:
    """Return the lowest and highest score, 0 to 1, if nothing had broken; both are ``score`` if nothing did.

    Leaves that broke, and those skipped only because of them, may have passed: the highest score is the tree's with
    all of them passed. ``before`` has score and status of every leaf, by id, from before ``score`` was computed, which
    skips later children in sequential nodes. A broken extraction, tool, or claim without a node may have changed
    anything the script did afterwards: 0 to 1. Pages that are not stored count as broken only with ``missing_pages``;
    otherwise a missing page supports nothing.
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
    """Return the broken nodes, and those that were skipped only because of nodes in the result."""
    skipped = {node.id: set(node.checked.blocked_by) for node in nodes if node.checked and node.checked.blocked_by}
    found = set(broken)
    while more := {one for one, blocked in skipped.items() if one not in found and blocked <= found}:
        found |= more
    return found


def _copy(node: VerificationNode, values: Mapping[str, tuple[float, str]]) -> VerificationNode:
    """Return a copy of the tree with these scores and statuses at its leaves; nodes added later have their own."""
    copy = VerificationNode(
        id=node.id, desc=node.desc, critical=node.critical, strategy=node.strategy, weight=node.weight
    )
    copy.score, copy.status = values.get(node.id, (node.score, node.status))
    copy.children = [_copy(child, values) for child in node.children]
    return copy
