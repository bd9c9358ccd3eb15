"""Erasing people and redacting pictures leave a record that proves itself."""

from __future__ import annotations

import pytest

from annotation import workflow
from annotation.models.states import State, with_state
from annotation.tests import testing
from annotation.workflow.guards import Role
from evaluations.evidence.standing import claims
from evaluations.verifier.findings import Result

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def images_in_a_folder_of_their_own(tmp_path, settings):
    settings.MEDIA_ROOT = tmp_path / "images"


def failed(submission):
    return [(finding.name, finding.says) for finding in claims(submission) if finding.result is Result.FAIL]


def test_who_leaves_in_the_middle_and_afterwards_breaks_no_claim(submission, people):
    """dave labels one trajectory, holds another, and is erased; carol is, when everything is frozen."""
    first, second = submission.trajectories.order_by("position")
    workflow.add_member(people["mira"], submission, people["dave"], Role.ANNOTATOR)
    workflow.claim_this(people["dave"], first)
    workflow.submit(people["dave"], first, testing.content(first, 0))
    workflow.claim_this(people["dave"], second)
    workflow.erase(people["dave"], people["dave"], "at their own request")
    testing.label_all(people, submission, {})
    if with_state(submission.trajectories.all()).filter(state=State.AGREED.value).exists():
        workflow.draw_spot_checks(people["mira"], submission)
    testing.adjudicate_all(people["carol"], submission)
    picture = first.steps.get(index=0).screenshot
    workflow.redact(people["mira"], submission, picture, [[0, 0, 5, 5]], "A face.")
    submission = workflow.freeze(people["mira"], submission)
    assert failed(submission) == []
    workflow.erase(None, people["carol"], "She left.")
    workflow.redact(people["mira"], submission, picture, [], "It is a statue.")
    assert failed(submission) == []
