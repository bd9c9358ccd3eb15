"""What annotators say after seeing judges, in the exports: entries of its own kind, and nothing else different."""

from __future__ import annotations

import json
from typing import Any

import pytest

from annotation import workflow
from annotation.models import InformedRevision, Person, Submission
from annotation.records import Verdict
from annotation.tests import testing
from annotation.tests.shared_rows import shared_rows
from evaluations import exports_labels, exports_v2
from evaluations.tests.test_export_labels import exported, lines, validator

SHOWN = [
    {"judge": "webjudge", "fingerprint": "a" * 64, "judgment": 7, "verdict": 0},
    {"judge": "other", "fingerprint": "b" * 64, "judgment": 9, "verdict": None},
]
People = dict[str, Person]


@shared_rows
def decided(submission: Submission, people: People) -> Submission:
    """Task 0 is a unanimous success and spot-checked, task 1 is disputed; all is decided, nothing frozen."""
    workflow.configure(people["mira"], submission, second_stage=True)
    testing.label_all(people, submission, {"task_0001": [1, 0, 1]})
    workflow.draw_spot_checks(people["mira"], submission)
    testing.adjudicate_all(people["carol"], submission)
    return Submission.objects.get(pk=submission.pk)


def second_stage(submission: Submission, people: People) -> None:
    """alice changes, bob keeps, chen looks and says nothing."""
    for row in submission.trajectories.all():
        for name in ("alice", "bob", "chen"):
            workflow.show_judgments(people[name], row, SHOWN)
        workflow.change_verdict(people["alice"], row, Verdict.NOT_EXECUTABLE, "The site was down, as the judge says.")
        workflow.keep_verdict(people["bob"], row)


def test_no_export_differs_but_for_the_entries_of_the_second_stage(decided: Submission, people: People) -> None:
    def files() -> dict[str, bytes]:
        found = Submission.objects.get(pk=decided.pk)
        labels = b"".join(exports_labels.label_lines(found, []))
        return {
            "human-label": b"".join(exports_labels.human_label(found, [])),
            "labels": b"".join(line for line in labels.splitlines(True) if b'{"type":"informed"' not in line),
            "trajectories-v2": b"".join(name.encode() + data for name, data in exports_v2.members(found, [])),
        }

    before = files()
    second_stage(decided, people)
    assert InformedRevision.objects.count() == 6
    assert files() == before


def test_the_label_file_has_every_informed_revision_and_fits_its_schema(decided: Submission, people: People) -> None:
    second_stage(decided, people)
    workflow.freeze(people["mira"], decided)
    found = [line for line in lines(Submission.objects.get(pk=decided.pk)) if line["type"] == "informed"]
    assert [(line["task_id"], line["annotator"], line["verdict"], line["changed"]) for line in found[:3]] == [
        ("task_0000", "A1", 2, True),
        ("task_0000", "A2", 1, False),
        ("task_0000", "A3", None, None),
    ]
    assert len(found) == 6
    assert found[0]["reason"] == "The site was down, as the judge says."
    assert found[0]["follows_revision"] == 1
    assert found[0]["judgments"] == [
        {"judge": "webjudge", "fingerprint": "a" * 64, "verdict": 0},
        {"judge": "other", "fingerprint": "b" * 64, "verdict": None},
    ]


def test_the_published_list_keeps_the_blind_verdicts(decided: Submission, people: People) -> None:
    second_stage(decided, people)
    document = json.loads(exported(workflow.freeze(people["mira"], decided), "human-label"))
    assert [entry["Careful Agent_human_label"] for entry in document] == ["1", "1"]


@pytest.mark.parametrize(
    "change",
    [
        {"changed": True, "reason": None},
        {"decided_at": None},
        {"verdict": None},
        {"verdict": 3},
        {"judgments": []},
        {"annotator": "alice"},
    ],
)
def test_the_schema_refuses_a_revision_that_no_export_writes(
    decided: Submission, people: People, change: dict[str, Any]
) -> None:
    second_stage(decided, people)
    text = b"".join(exports_labels.label_lines(decided, []))
    line = next(one for one in map(json.loads, text.splitlines()) if one["type"] == "informed")
    assert validator("labels").is_valid(line)
    assert not validator("labels").is_valid(line | change)
