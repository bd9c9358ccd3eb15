"""Runs of a judge over the submission of `whole_review`, worked on by hand: what its model would say is given."""

from __future__ import annotations

from collections.abc import Collection

from annotation.models import Membership, Submission, Trajectory
from annotation.records import Verdict
from evaluations.tests.whole_review import JUDGED
from judges import runs
from judges.models import Judge, JudgeRun
from judges.scorer import Score
from judges.tests.builders import defined_judge, started_run
from judges.working import leases
from judges.working.call_log import CallTotals

WORKER = "by-hand"
ENDPOINTS = {"default": "http://127.0.0.1:1/v1"}  # for settings.JUDGE_ENDPOINTS; nobody asks it


def judged_here(submission: Submission) -> tuple[JudgeRun, JudgeRun]:
    """Two runs of a judge: one finished, with an item that failed and one that failed at first, and one cancelled after
    two judgments."""
    member = submission.memberships.get(role=Membership.Role.MAINTAINER)
    judge = defined_judge("present-judge")
    finished = started_run(member.person, submission, judge)
    _work(finished, fails=(0, 3))
    assert leases.finish_run(finished.pk)
    runs.retry_failed(member.person, finished)
    _work(finished, fails=(3,))
    assert leases.finish_run(finished.pk)
    cancelled = started_run(member.person, submission, Judge.objects.get(pk=judge.pk))
    _work(cancelled, most=2)
    runs.cancel(member.person, cancelled)
    return finished, cancelled


def _work(run: JudgeRun, fails: Collection[int] = (), most: int = 1000) -> None:
    """Settle open items as `JUDGED` says, by position of the trajectory; those at ``fails`` fail."""
    position = dict(Trajectory.objects.filter(submission=run.submission_id).values_list("pk", "position"))
    for _ in range(most):
        taken = leases.claim(run.pk, WORKER, ())
        if not taken:
            return
        verdict, place = JUDGED[position[taken[0].trajectory]], position[taken[0].trajectory]
        if place in fails:
            assert leases.fail(taken[0], WORKER, "The endpoint did not answer.")
            continue
        score = Score(None, unscored="No status.") if verdict is None else Score(Verdict(verdict), score=0.1 + place)
        assert leases.settle(taken[0], WORKER, score, CallTotals(), run.judge.fingerprint)
