"""Load what every published format states of a trajectory: its steps, its labels and its final verdict."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from annotation import redactions
from annotation.models import Adjudication, Submission
from annotation.models.states import current_labels
from annotation.records import Verdict
from evaluations import cases
from evaluations.cases import Case
from evaluations.evidence import trajectories
from evaluations.statistics import wilson
from evaluations.statistics.measure import Measure
from evaluations.verifier.documents import Document

VERDICT_NAMES = {verdict: verdict.name.lower() for verdict in Verdict}


@dataclass(frozen=True, slots=True)
class Reviewed:
    """A trajectory with a final verdict. Its ``document`` is that of the evidence, with redacted screenshots.

    ``failure_steps`` are those of the labels, by slot; ``failure_step`` is that of the last adjudication, else the one
    that more than half of the labels name. ``marks`` are the final process labels of the steps.
    """

    case: Case
    document: Document
    verdict: Verdict
    failure_step: int | None
    failure_steps: tuple[int | None, ...]
    marks: tuple[str | None, ...]

    @property
    def decided_by(self) -> str:
        return "agreement" if self.case.adjudicated is None else "adjudication"

    @property
    def steps(self) -> list[Document]:
        steps: list[Document] = self.document["steps"]
        return steps

    @property
    def about_task(self) -> Document:
        return {"task_id": self.document["task_id"], "task_version": self.document["task_version"]}

    @property
    def votes(self) -> list[int]:
        """Return the verdicts of the blind labels, by slot."""
        return [int(label.verdict) for label in self.case.labels]


def load(submission: Submission) -> Iterator[Reviewed]:
    """Yield the trajectories that have a final verdict, in the order of the submission."""
    covered = redactions.map_redacted(submission)
    decided, labelled = _load_failure_steps(submission)
    lines = trajectories.lines(submission)
    found = {case.task_id: case for case in cases.of_submission(submission)}
    for document in lines:
        case = found.get(document["task_id"])  # none: a sample plan did not draw it
        if case is None or case.final is None:
            continue
        _cover(document, covered)
        said = tuple(labelled[case.trajectory])
        adjudicated = case.adjudicated is not None
        step = decided.get(case.trajectory) if adjudicated else _find_majority(said)
        marks = tuple(case.process.final()) if case.process else (None,) * len(document["steps"])
        yield Reviewed(case, document, case.final, step if case.final is Verdict.FAILURE else None, said, marks)


def count_verdicts(submission: Submission) -> Counter[Verdict]:
    return Counter(case.final for case in cases.of_submission(submission) if case.final is not None)


def measure_success(counts: Counter[Verdict]) -> Measure:
    """Return the success rate over all verdicts; a trajectory that is not executable counts as not a success."""
    return wilson(counts[Verdict.SUCCESS], counts.total())


def describe_step(step: Document) -> str:
    """Return a step as text: the thought if there is one, and the action."""
    thought = f"Thought: {step['thought']}\n" if step["thought"] else ""
    return f"{thought}Action: {step['action']}"


def _cover(document: Document, covered: dict[str, str]) -> None:
    """Replace the facts of redacted screenshots by those of their redacted copies, whose size is not stated."""
    for step in document["steps"]:
        screenshot = step["screenshot"]
        if screenshot is not None:
            sha256 = covered.get(screenshot["sha256"])
            screenshot["redacted"] = sha256 is not None
            if sha256 is not None:
                screenshot |= {"sha256": sha256, "media_type": "image/png", "size": None}


def _load_failure_steps(submission: Submission) -> tuple[dict[Any, int | None], dict[Any, list[int | None]]]:
    """Return the failure step of the last adjudication, and those of the labels, by the trajectory's primary key."""
    decisions = Adjudication.objects.filter(trajectory__submission=submission, decided_at__isnull=False)
    decided: dict[Any, int | None] = dict(decisions.order_by("revision").values_list("trajectory", "failure_step"))
    labels = current_labels().filter(assignment__trajectory__submission=submission).order_by("assignment__slot")
    labelled: dict[Any, list[int | None]] = defaultdict(list)
    for trajectory, step in labels.values_list("assignment__trajectory", "failure_step"):
        labelled[trajectory].append(step)
    return decided, labelled


def _find_majority(said: Sequence[int | None]) -> int | None:
    step, times = Counter(said).most_common(1)[0] if said else (None, 0)
    return step if 2 * times > len(said) else None
