"""Every address as those around an audit: who labels a sample again is shown nothing of what was submitted."""

import pytest

from annotation import workflow
from annotation.tests import testing
from config.tests import test_independence as walking
from evaluations.auditing import actions
from evaluations.auditing.importing import open_bundle
from evaluations.evidence import writing

pytestmark = pytest.mark.django_db
protocol = walking.protocol


def audited(submission, people, folder):
    """The submission's bundle, opened by amy; erin has begun to label its sample."""
    submission.refresh_from_db()
    path = folder / "bundle.zip"
    writing.write(writing.prepare(submission, accept_names=True), path)
    people |= {"amy": testing.person("amy", is_staff=True), "erin": testing.person("erin")}
    audit = open_bundle(path, people["amy"])
    sample = actions.draw(audit, people["amy"], 4)
    workflow.add_member(people["amy"], sample, people["erin"], "annotator")
    first = workflow.claim(people["erin"], sample).trajectory
    workflow.submit(people["erin"], first, walking.content("erin", first, 0))
    workflow.claim(people["erin"], sample)
    return [list(each.trajectories.select_related("submission")) for each in (audit.submission, sample)]


@pytest.mark.parametrize("which", ["audited", "sample"])
def test_who_labels_a_sample_again_sees_nothing_of_what_was_submitted(protocol, tmp_path, which):
    submission, people, rows = protocol
    walking.freeze(submission, people, rows)
    walked = dict(zip(("audited", "sample"), audited(submission, people, tmp_path), strict=True))

    walking.assert_no_leak(people, walked[which], "erin")


def test_an_auditor_reads_all_that_was_submitted_and_nothing_of_the_sample(protocol, tmp_path):
    submission, people, rows = protocol
    walking.freeze(submission, people, rows)
    submitted, again = audited(submission, people, tmp_path)

    answers = list(walking.walk(people, submitted, "amy"))
    read = "".join(said for *_, said in answers)
    choices = ("audits/<int:pk>", "people", "members")  # pages on which amy chooses among the accounts
    blind = {mark for *_, said in walking.walk(people, again, "amy") for mark in walking.forbidden_marks("amy", said)}

    assert {"alice", "bob", "chen", "carol", "judge"} <= {who for who, *_ in walking.forbidden_marks("amy", read)}
    assert {mark for mark in blind if mark[0] == "erin"} == set()
    for route, address, _, said in answers:
        assert any(each in route for each in choices) or walking.forbidden_names("amy", route, said) == set(), address
