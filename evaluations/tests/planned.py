"""A submission that a judge has judged and nobody has labelled, for tests of planned samples."""

from __future__ import annotations

from django.utils import timezone

from annotation.models import Person, Submission
from annotation.tests import testing
from judges.tests import rows as judged

JUDGE = "careful"


def judged_submission(trajectories: int = 12, unscored: int = 0) -> tuple[Submission, dict[str, Person]]:
    """A submission of easy tasks: the judge calls the first half a success, and has no verdict on the last ones."""
    submission = testing.bare_submission(trajectories)
    run = judged.run_row(submission, judged.judge_row(JUDGE), finished_at=timezone.now())
    for number, item in enumerate(run.items.order_by("trajectory__position")):
        said = None if number >= trajectories - unscored else int(number < trajectories / 2)
        judged.judgment_row(item, said)
    return submission, testing.cast(submission)
