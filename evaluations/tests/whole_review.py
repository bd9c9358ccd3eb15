"""A submission in which everything happened that the protocol knows, made through the verbs and frozen.

By task number: 0 and 1 are unanimous, 2 and 3 are disputes (one ruled against the majority), 4 is flagged, 5 is
reopened after its verdict was final, 6 was not executable since the task is outdated, 7 has a corrected label, 8 and 9
are unanimous and in a second draw. chen gave 1 back and was offered it again; erin joined, held a slot and left.
"""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

from django.utils import timezone

from annotation import queue, workflow
from annotation.models import KeyPoint, Membership, Person, Report, Submission, Trajectory
from annotation.records import Verdict
from annotation.tests import testing
from judges.imports import import_judgments

TRAJECTORIES = 10
SAID = {
    0: (1, 1, 1),
    1: (0, 0, 0),
    2: (1, 0, 1),
    3: (0, 1, 2),
    4: (1, 1, 1),
    5: (1, 1, 1),
    6: (2, 2, 2),
    7: (1, 1, 1),
    8: (0, 0, 0),
    9: (1, 1, 1),
}
ANNOTATORS = ("alice", "bob", "chen")
SECOND_DRAW = (8, 9)
JUDGED = (1, 0, 1, 1, 1, 1, 0, 1, 0, None)  # what an imported judge says; None is unscored


def task_id(number: int) -> str:
    return str(testing.task(number)["task_id"])


def whole_review(folder: Path, *, judged: bool = True) -> Submission:
    """The submission, frozen, with 10 trajectories of 3 steps."""
    submission = testing.submission(folder, trajectories=TRAJECTORIES)
    people = testing.cast(submission)
    workflow.configure(people["mira"], submission, spot_check_rate=0.4)
    submission.refresh_from_db()
    # Long before the first label: what was accepted in the same second might be asked for already, or not yet.
    KeyPoint.objects.filter(task__benchmark=submission.benchmark).update(accepted_at=timezone.now() - timedelta(days=1))
    review = _Review(submission, people)
    review.somebody_leaves()
    review.one_is_given_back()
    review.label([number for number in SAID if number not in SECOND_DRAW])
    workflow.draw_spot_checks(people["mira"], submission)
    review.settle()
    review.reopen(5)
    review.label(list(SECOND_DRAW))
    workflow.draw_spot_checks(people["carol"], submission)
    review.settle()
    if judged:
        rows = [_judgment(number, verdict) for number, verdict in enumerate(JUDGED)]
        data = "\n".join(json.dumps(row) for row in rows).encode()
        outcome = import_judgments(data, "judged.jsonl", benchmark=submission.benchmark, judge="careful-judge")
        assert not outcome.report.rejected, outcome.report.as_json()
    return workflow.freeze(people["mira"], submission)


def _judgment(number: int, verdict: int | None) -> dict[str, Any]:
    return {"agent": "Careful Agent", "task_id": task_id(number), "verdict": verdict, "response": "As the steps show."}


class _Review:
    """The people at work on one submission."""

    def __init__(self, submission: Submission, people: dict[str, Person]) -> None:
        self.submission, self.people = submission, people
        rows = submission.trajectories.select_related("task", "submission")
        self.rows: dict[str, Trajectory] = {row.task.external_id: row for row in rows}

    def row(self, number: int) -> Trajectory:
        return self.rows[task_id(number)]

    def somebody_leaves(self) -> None:
        erin, mira = testing.person("erin"), self.people["mira"]
        workflow.add_member(mira, self.submission, erin, Membership.Role.ANNOTATOR)
        workflow.claim_this(erin, self.row(0))
        workflow.deactivate_member(mira, self.submission, erin)

    def one_is_given_back(self) -> None:
        chen, row = self.people["chen"], self.row(1)
        workflow.claim_this(chen, row)
        workflow.release(chen, row, "I know the shop too well.")
        workflow.offer_again(self.people["mira"], row, "There is nobody else.")

    def label(self, numbers: list[int]) -> None:
        for number in numbers:
            row = self.row(number)
            for name, verdict in zip(ANNOTATORS, SAID[number], strict=True):
                person = self.people[name]
                workflow.claim_this(person, row)
                note = "The last picture is hard to read." if (number, name) == (4, "bob") else None
                cause = {"cause": "task_outdated"} if verdict == Verdict.NOT_EXECUTABLE else {}
                workflow.submit(person, row, testing.content(row, verdict, **cause), note)
            if number == 6:
                workflow.report(self.people["alice"], row, Report.Kind.TASK_OUTDATED, "The shop has closed.")
            if number == 7:
                again = testing.content(row, 1, reasoning="The list is sorted; I had missed that.")
                workflow.revise(self.people["bob"], row, again, "I looked at the wrong step.")

    def settle(self) -> None:
        """Decide what waits: a dispute against the majority, all else as the labels say."""
        for trajectory in queue.load_queue(self.submission):
            number = int(trajectory.task.external_id[-4:])
            verdict = 0 if number in (2, 3) else SAID[number][0]
            cause = {"cause": "task_outdated"} if verdict == Verdict.NOT_EXECUTABLE else {}
            workflow.open_adjudication(self.people["carol"], trajectory)
            workflow.decide(self.people["carol"], trajectory, testing.content(trajectory, verdict, **cause))

    def reopen(self, number: int) -> None:
        workflow.reopen(self.people["mira"], self.row(number), "The agent's vendor asked for a second look.")
        self.settle()
