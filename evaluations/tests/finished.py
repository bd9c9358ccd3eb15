"""The rest of the protocol in one step."""

from __future__ import annotations

from annotation import workflow
from annotation.models import Person, Submission
from annotation.models.states import State, with_state
from annotation.records import Verdict
from annotation.tests import testing


def finish(
    people: dict[str, Person],
    submission: Submission,
    verdicts: dict[str, list[int]],
    *,
    adjudicated: int = Verdict.SUCCESS,
) -> Submission:
    """Walk the rest of the protocol, to the freeze."""
    testing.label_all(people, submission, verdicts)
    if with_state(submission.trajectories.all()).filter(state=State.AGREED.value).exists():
        workflow.draw_spot_checks(people["mira"], submission)
    testing.adjudicate_all(people["carol"], submission, adjudicated)
    return workflow.freeze(people["mira"], submission)
