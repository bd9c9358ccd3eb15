"""Judge of a trajectory by a written rubric: it builds the tree, and checks every claim against its subject."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from annotation.formats.answer_text import read_answer
from judges.llm import SentImage
from judges.scorer import Subject
from judges.scorers import framing
from judges.scorers.one_call import group_by_picture
from judges.scorers.rubric.evaluator import Evaluator
from judges.scorers.rubric.questions import TRIALS, ClaimEvidence
from judges.scorers.rubric.tree import FAILED, NOT_APPLICABLE, PASSED, Checked, VerificationNode, find_blocking
from judges.scorers.rubric.written import MOST_SOURCES, Node, Rubric
from judges.scorers.together import run_together

LONGEST_URL = 500  # characters of the address of a step
NOTHING_CITED = "The answer cites no address."
NO_STEPS = "The trajectory does not have these steps."
NO_PICTURES = "These steps have no screenshots."


class Checking:
    """One trajectory and one rubric. ``votes`` is the maximum number of votes on a claim, an odd number."""

    def __init__(self, rubric: Rubric, subject: Subject, evaluator: Evaluator, *, votes: int, max_images: int) -> None:
        self.rubric, self.subject, self.evaluator = rubric, subject, evaluator
        self.votes, self.max_images = votes, max_images
        self.nodes: dict[str, VerificationNode] = {}

    async def run(self) -> None:
        """Build the tree, then check it from the top: a node is checked after its prerequisites."""
        self._build(self.rubric.nodes, None)
        await self._check_nodes(self.rubric.nodes, sequential=self.rubric.strategy == "sequential")

    def _build(self, nodes: tuple[Node, ...], parent: VerificationNode | None) -> None:
        for node in nodes:
            if node.about is not None:
                made = self.evaluator.add_leaf(node.id, node.text, parent, node.critical)
                made.weight = node.weight
            else:
                add = self.evaluator.add_sequential if node.strategy == "sequential" else self.evaluator.add_parallel
                made = add(node.id, node.text, parent, node.critical)
                self._build(node.children, made)
            self.nodes[node.id] = made

    async def _check_nodes(self, nodes: tuple[Node, ...], *, sequential: bool) -> None:
        """Check critical nodes first, because the others are skipped if one of them fails; then the others together."""
        if sequential:
            for node in nodes:
                await self._check_node(node)
            return
        for node in nodes:
            if node.critical:
                await self._check_node(node)
        await run_together(self._check_node(node) for node in nodes if not node.critical)

    async def _check_node(self, node: Node) -> None:
        if node.about is None:
            await self._check_nodes(node.children, sequential=node.strategy == "sequential")
            return
        against = self.find_sources(node)
        evident = not isinstance(against, str)
        if node.condition and not await self._is_applicable(node, against if evident else None):
            return
        if not evident:
            self._fail_unsupported(node, against)
            return
        await self._verify(node.text, self.nodes[node.id], against, node.note)

    async def _is_applicable(self, node: Node, against: Any) -> bool:
        """Ask whether the claim's condition is met, unless the claim is skipped anyway; mark the claim if it is not.

        ``against`` is the claim's evidence; without any (None) the answer alone is asked about. An error on the way is
        one of the claim, which then counts as not supported.
        """
        made = self.nodes[node.id]
        if find_blocking(self.evaluator.root, made):
            return True
        condition = VerificationNode(node.id, node.condition)  # faults name the claim, so that the bounds vary it
        await self._verify(f"This condition is met: {node.condition}", condition, against)
        if condition.status == PASSED:
            return True
        made.checked, made.status = condition.checked, FAILED if condition.error else NOT_APPLICABLE
        return False

    async def _verify(self, claim: str, node: VerificationNode, against: Any, note: str = "") -> None:
        await self.evaluator.verify(
            claim=claim,
            node=node,
            sources=against,
            additional_instruction=note or None,
            majority_vote=self.votes > 1,
            num_trials=self.votes,
        )

    def _fail_unsupported(self, node: Node, why: str) -> None:
        made = self.nodes[node.id]
        made.checked = Checked(node.text, node.sources, instruction=node.note, reasoning=why)
        made.settle(False)

    def find_sources(self, node: Node) -> Any:
        """Return the sources for `Evaluator.verify`, or a text that says why there are none."""
        if node.about == "answer":
            return None
        if node.about == "pages":
            return list(node.sources) or find_cited(self.subject) or NOTHING_CITED
        return self._build_evidence(node)

    def _build_evidence(self, node: Node) -> ClaimEvidence | str:
        chosen = node.steps.of(len(self.subject.record.steps))
        if not chosen:
            return NO_STEPS
        pictures: tuple[Any, ...] = ()
        if node.about == "screenshots":
            pictures = select_pictures(self.subject, chosen, self.max_images)
            if not pictures:
                return NO_PICTURES
        return ClaimEvidence(lines=build_lines(self.subject, chosen), images=pictures, steps=chosen)


def find_cited(subject: Subject) -> list[str]:
    """Return the addresses that the final answer cites, each once, in their order; at most `MOST_SOURCES`."""
    found = read_answer(subject.record.final_answer or "").citations
    return [one.address for one in found][:MOST_SOURCES]


def build_lines(subject: Subject, chosen: tuple[int, ...]) -> tuple[str, ...]:
    """Return the record of the chosen steps: addresses and actions, no thoughts and no actions that give the answer."""
    wanted = frozenset(chosen)
    acting = {step.index for step in framing.select_acting(subject.record, "auto")}
    written: list[str] = []
    for step in subject.record.steps:
        if step.index in wanted and step.url:
            written.append(framing.format_field(f"step {step.index} url", step.url, LONGEST_URL))
        if step.index in wanted & acting:
            written += framing.format_history([step])
    return tuple(written)


def select_pictures(subject: Subject, chosen: tuple[int, ...], most: int) -> tuple[Mapping[str, Any], ...]:
    """Return each distinct screenshot of the chosen steps after a line that names them; the last ``most`` if there
    are more."""
    taken = dict(enumerate(subject.screenshots))
    pairs = [(step, image) for step in chosen if (image := taken.get(step)) is not None]
    parts: list[Mapping[str, Any]] = []
    for image, steps in list(group_by_picture(pairs).items())[-most:]:
        parts.append({"type": "text", "text": f"Screenshot of {framing.format_steps(steps)}:"})
        parts.append({"type": "image", "image": SentImage(image)})
    return tuple(parts)


CHECKS = re.compile(rb"\.\s*(?:batch_)?verify\s*\(")
EXTRACTIONS = re.compile(rb"\.\s*extract\s*\(")
OFTEN = 3  # assumed runs of each check of a script: most are in a loop over the items of the answer


def forecast_rubric(rubric: Rubric, subject: Subject, votes: int, max_images: int) -> list[tuple[str, int]]:
    """Return the calls if every condition is met, every claim is asked about and the first votes agree."""
    needed, calls = votes // 2 + 1, []
    for claim in rubric.claims():
        own = _forecast_node(claim, subject, max_images)
        asked = (own or [("verify_answer", 0)]) if claim.condition else []  # as in `Checking._is_applicable`
        calls += (asked + own) * needed
    return calls


def _forecast_node(claim: Node, subject: Subject, max_images: int) -> list[tuple[str, int]]:
    if claim.about == "answer":
        return [("verify_answer", 0)]
    if claim.about == "pages":
        return [("verify_page", 1)] * len(claim.sources or find_cited(subject))
    chosen = claim.steps.of(len(subject.record.steps))
    if claim.about == "steps":
        return [("verify_steps", 0)] if chosen else []
    pictures = len(select_pictures(subject, chosen, max_images)) // 2
    return [("verify_steps", pictures)] if pictures else []


def forecast_script(source: bytes) -> list[tuple[str, int]]:
    """Estimate the calls from the text of a script, without running it: each check counts as `OFTEN` with two votes."""
    checks = len(CHECKS.findall(source)) * OFTEN * (TRIALS // 2 + 1)
    return [("verify_page", 1)] * checks + [("extract_answer", 0)] * len(EXTRACTIONS.findall(source))
