"""A review in which everything happens that can, brought to its freeze through the verbs.

By task: 0 is disputed, decided, reopened by a maintainer and decided again, twice. 1 is unanimous and flagged. 2 was
given back, offered again, held until the lease ran out, returned by an annotator who left, and revised into agreement;
it is spot-checked or not as the draw falls, like 3 and 4. 5 is disputed, and was opened, left, taken over and returned
first. Chen had a second stage on 3. Task 4 has a known answer and is reported as outdated. A picture of 0 is redacted.
"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

from annotation import clock, workflow
from annotation.models import Adjudication, Assignment, Membership, Person, Report, Submission, Trajectory
from annotation.records import Verdict
from annotation.tests import testing

JUDGMENTS = [{"judge": "Judge", "fingerprint": "f" * 64, "judgment": 1, "verdict": 0}]


def busy_review(folder: Path) -> Submission:
    submission = testing.submission(folder / "package", trajectories=6)
    people = testing.cast(submission)
    _before_labels(people, submission, folder)
    tasks = list(submission.trajectories.order_by("position"))
    _slots_that_came_back(people, submission, tasks[2])
    _labels(people, submission, tasks)
    workflow.draw_spot_checks(people["mira"], submission)
    _adjudications(people, submission, tasks)
    _decide_the_rest(people, submission)
    _freeze_twice(people, submission, tasks[0])
    return Submission.objects.get(pk=submission.pk)


def _before_labels(people: dict[str, Person], submission: Submission, folder: Path) -> None:
    mira = people["mira"]
    practice = testing.practice_set(people, submission, folder / "practice")
    for name in ("alice", "bob", "chen"):
        for trajectory in practice.trajectories.order_by("position"):
            right = trajectory.known_answer.verdict
            workflow.answer_practice(people[name], submission, trajectory, testing.content(trajectory, right), 1)
    workflow.configure(mira, submission, second_stage=True, spot_check_rate=0.25)
    submission.refresh_from_db()
    known = submission.trajectories.get(position=4)
    workflow.set_known_answer(mira, known, testing.content(known))
    for name in ("carl", "quinn"):
        workflow.add_member(mira, submission, testing.person(name), Membership.Role.ADJUDICATOR)


def _slots_that_came_back(people: dict[str, Person], submission: Submission, trajectory: Trajectory) -> None:
    mira, alice, bob = people["mira"], people["alice"], people["bob"]
    workflow.claim_this(alice, trajectory)
    workflow.release(alice, trajectory, "I know the shop.")
    workflow.offer_again(mira, trajectory, "She may judge it all the same.")
    workflow.claim_this(bob, trajectory)
    past = clock.now() - timedelta(minutes=1)
    Assignment.objects.filter(trajectory=trajectory, annotator=bob).update(lease_expires_at=past)
    workflow.return_expired_leases(submission)
    workflow.claim_this(bob, trajectory)
    workflow.deactivate_member(mira, submission, bob)
    workflow.add_member(mira, submission, bob, Membership.Role.ANNOTATOR)


def _labels(people: dict[str, Person], submission: Submission, tasks: list[Trajectory]) -> None:
    said: dict[int, tuple[int, int, int]] = {0: (1, 0, 1), 2: (1, 1, 0), 4: (2, 2, 2), 5: (0, 1, 0)}
    for number, trajectory in enumerate(tasks):
        for name, verdict in zip(("alice", "bob", "chen"), said.get(number, (1, 1, 1)), strict=True):
            workflow.claim_this(people[name], trajectory)
            workflow.record_activity(people[name], trajectory, 0.0, range(3))
            fields = {"cause": "task_outdated"} if verdict == Verdict.NOT_EXECUTABLE else {}
            workflow.submit(people[name], trajectory, testing.content(trajectory, verdict, **fields))
    workflow.flag(people["alice"], tasks[1], "The price looks odd.")
    workflow.revise(people["chen"], tasks[2], testing.content(tasks[2]), "I took the wrong button.")
    workflow.show_judgments(people["chen"], tasks[3], JUDGMENTS)
    workflow.change_verdict(people["chen"], tasks[3], Verdict.FAILURE, "The judge saw the range.")
    found = workflow.report(people["alice"], tasks[4], Report.Kind.TASK_OUTDATED, "The shop is closed.")
    workflow.settle_report(people["mira"], found, "It is.")


def _adjudications(people: dict[str, Person], submission: Submission, tasks: list[Trajectory]) -> None:
    mira, carl, quinn, carol = people["mira"], testing.person("carl"), testing.person("quinn"), people["carol"]
    workflow.open_adjudication(carl, tasks[5])
    workflow.leave_adjudication(carl, tasks[5])
    workflow.open_adjudication(carl, tasks[5])
    Adjudication.objects.update(opened_at=clock.now() - timedelta(days=1))
    workflow.open_adjudication(quinn, tasks[5])
    workflow.deactivate_member(mira, submission, quinn)
    workflow.open_adjudication(carol, tasks[0])
    workflow.decide(carol, tasks[0], testing.content(tasks[0]))
    workflow.reopen(mira, tasks[0], "Look at the range again.")
    workflow.open_adjudication(carol, tasks[0])
    workflow.decide(carol, tasks[0], testing.content(tasks[0], Verdict.FAILURE))
    workflow.open_adjudication(carol, tasks[0], "It was the wrong step.")
    workflow.decide(carol, tasks[0], testing.content(tasks[0], Verdict.FAILURE, failure_step=2))


def _decide_the_rest(people: dict[str, Any], submission: Submission) -> None:
    testing.adjudicate_all(people["carol"], submission)


def _freeze_twice(people: dict[str, Person], submission: Submission, trajectory: Trajectory) -> None:
    mira = people["mira"]
    workflow.freeze(mira, submission)
    workflow.reopen_submission(mira, submission, "A decision was forgotten.")
    workflow.freeze(mira, submission)
    shown = trajectory.steps.order_by("index")[0].screenshot
    workflow.redact(mira, submission, shown, [[10, 10, 40, 20]], "It shows a name.")
    workflow.open_results(mira, submission)
