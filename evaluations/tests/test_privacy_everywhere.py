"""What the upper floors keep of a person can be taken along as well, and no column is forgotten."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.contenttypes.models import ContentType
from django.utils import timezone

from annotation import privacy, workflow
from annotation.models import Person, SamplePlan, SampleStop, Submission, Trajectory
from annotation.models.people import references
from annotation.tests import testing
from annotation.tests.shared_rows import shared_rows
from evaluations.models import (
    Audit,
    AuditCheck,
    AuditDecision,
    BundleUpload,
    Delivery,
    Entry,
    EntryEvent,
    Owner,
    Takedown,
)
from evaluations.registry import chain
from judges.models import (
    Alignment,
    AlignmentSplit,
    AlignmentVersion,
    DisagreementMark,
    Expectation,
    Judge,
    JudgeRun,
    LookAtTest,
    ModelTerms,
    PromptSet,
)
from judges.tests.rows import imported_row

pytestmark = pytest.mark.django_db
People = dict[str, Person]

# Whose other columns somebody looked at: they tell of the person who is named there, and of nobody else.
LOOKED_AT = {
    "annotation.SamplePlan.planned_by",
    "annotation.SampleStop.stopped_by",
    "evaluations.Audit.opened_by",
    "evaluations.AuditCheck.checked_by",
    "evaluations.AuditDecision.decided_by",
    "evaluations.BundleUpload.uploaded_by",
    "evaluations.Delivery.requested_by",
    "evaluations.Entry.submitted_by",
    "evaluations.EntryEvent.actor",
    "evaluations.Owner.added_by",
    "evaluations.Owner.person",
    "evaluations.Takedown.decided_by",
    "judges.Alignment.created_by",
    "judges.AlignmentSplit.created_by",
    "judges.DisagreementMark.person",
    "judges.Expectation.written_by",
    "judges.Judge.created_by",
    "judges.JudgeRun.created_by",
    "judges.LookAtTest.person",
    "judges.ModelTerms.changed_by",
    "judges.PromptSet.loaded_by",
}


def did_everything(person: Person, submission: Submission) -> None:
    """Rows of all models of the upper floors, each with a word that is the person's own."""
    at, word = timezone.now(), f"SAID-{person.username}"
    task = submission.trajectories.earliest("position").task
    version = Expectation.objects.count() + 1
    text = {"kind": "rubric", "version": version, "text": f"{word}-expectation", "digest": "0" * 64}
    Expectation.objects.create(task=task, written_by=person, written_at=at, **text)
    texts = {"system": f"{word}-prompt"}
    PromptSet.objects.create(name=person.username, digest=person.username, texts=texts, loaded_by=person)
    judge = Judge.objects.create(
        name=f"judge-{version}", scorer="imported", description=f"{word}-judge", created_by=person
    )
    ModelTerms.objects.create(endpoint="default", model=f"{word}-terms", changed_by=person)
    JudgeRun.objects.create(judge=judge, submission=submission, selection={"ids": [f"{word}-run"]}, created_by=person)
    opened = testing.bare_submission(1, agent=f"Agent {version}")
    planned = {"goal": {"of": f"{word}-plan"}, "judge": {}, "labels": {"all": 1}, "rule": {"rule": "fixed"}}
    plan = SamplePlan.objects.create(submission=opened, **planned, estimand="runs", planned_by=person, planned_at=at)
    SampleStop.objects.create(plan=plan, labelled=1, stopped_by=person, stopped_at=at)
    benchmark = testing.benchmark(1, slug=f"aligned-{version}")
    split = AlignmentSplit.objects.create(benchmark=benchmark, seed=version, digest=f"{word}-split", created_by=person)
    alignment = Alignment.objects.create(
        split=split, judge=judge, optimiser=f"{word}-alignment", rounds=1, created_by=person
    )
    base = AlignmentVersion.objects.create(alignment=alignment, number=0, judge=judge)
    LookAtTest.objects.create(version=base, person=person, report={"of": f"{word}-look"})
    judged = imported_row(
        Trajectory.objects.get(submission=submission, task=task), imported={"run": word}, repetition=version
    )
    DisagreementMark.objects.create(judgment=judged, right="judge", person=person)
    audit = Audit.objects.create(
        submission=opened,
        file_name=f"{word}-audit.zip",
        manifest=f"{version}",
        opened_by=person,
        opened_at=at,
    )
    said = {"given": ["keys"], "key_trusted": False, "findings": [{"places": ["of the bundle"]}]}
    AuditCheck.objects.create(audit=audit, checked_by=person, checked_at=at, **said)
    BundleUpload.objects.create(
        uploaded_by=person, file_name=f"{word}-bundle.zip", findings=[{"places": ["of the bundle"]}]
    )
    Delivery.objects.create(requested_by=person, submission=submission, finished_at=at, files=[f"{word}-delivery"])
    AuditDecision.objects.create(
        audit=audit, outcome="query", reason=f"{word}-decision", decided_by=person, decided_at=at
    )
    Owner.objects.create(benchmark=benchmark, person=person, added_by=person, added_at=at)
    entry = Entry.objects.create(
        benchmark=benchmark, agent=f"{word}-entry", relationship="other", submitted_by=person, submitted_at=at
    )
    chain.append(entry, EntryEvent.Kind.SUBMITTED, EntryEvent.Role.SUBMITTER, person, reason=f"{word}-step")
    Takedown.objects.create(entry=entry, reason=f"{word}-takedown", decided_by=person, decided_at=at)


WORDS = {"expectation", "prompt", "judge", "terms", "run", "audit", "bundle", "decision", "delivery"}
WORDS |= {"plan", "split", "alignment", "look", "entry", "step", "takedown"}


@shared_rows
def used(submission: Submission, people: People) -> None:
    for name in ("mira", "dave"):
        did_everything(people[name], submission)


@pytest.mark.parametrize("name", ["mira", "dave", "alice"])
def test_everything_of_the_upper_floors_is_there_and_nothing_of_others(used: None, people: People, name: str) -> None:
    text = json.dumps(privacy.data_of(people[name]))
    for other in ("mira", "dave"):
        expected = WORDS if other == name else set()
        assert {word for word in WORDS if f"SAID-{other}-{word}" in text} == expected
    assert "of the bundle" not in text


def test_rows_say_what_they_are_about_without_numbers_of_rows_and_people(
    used: None, people: People, submission: Submission
) -> None:
    found = privacy.data_of(people["mira"])["elsewhere"]
    assert set(found) == LOOKED_AT
    [run] = found["judges.JudgeRun.created_by"]
    assert (run["submission"], run["judge"]) == (submission.pk, str(Judge.objects.get(created_by=people["mira"])))
    [expectation] = found["judges.Expectation.written_by"]
    assert expectation["task"] == "task_0000"
    assert expectation["written_at"].endswith("+00:00")
    columns = {name for rows in found.values() for row in rows for name in row}
    assert (
        columns
        & {
            "id",
            "created_by",
            "loaded_by",
            "changed_by",
            "opened_by",
            "checked_by",
            "decided_by",
            "written_by",
            "submitted_by",
        }
        == set()
    )


def test_every_column_that_refers_to_a_person_was_looked_at() -> None:
    """A new one is in what people take along at once: look at what its row tells of others, then list it here, or
    tell it by a function of annotation/privacy.py and list it there."""
    of_sign_ins = {"annotation.SignIn.person", "socialaccount.SocialAccount.user"}  # name nobody else
    assert set(references()) == privacy.SAID_HERE | LOOKED_AT | of_sign_ins
    assert not privacy.SAID_HERE & LOOKED_AT


def test_what_somebody_changed_in_the_administration_tells_of_nobody_else(people: People) -> None:
    kind = ContentType.objects.get_for_model(Person)
    entry: dict[str, Any] = {
        "object_repr": "SAID-bob",
        "object_id": str(people["bob"].pk),
        "change_message": "SAID-bob",
    }
    LogEntry.objects.create(user=people["mira"], content_type=kind, action_flag=2, **entry)
    data = privacy.data_of(people["mira"])
    [changed] = data["administration"]
    assert (changed["changed"], changed["how"]) == ("person", "changed")
    assert "SAID-bob" not in json.dumps(data)


def test_erasing_takes_the_name_of_a_bundle_that_the_person_opened(used: None, people: People) -> None:
    workflow.erase(None, people["mira"], "She left.", accept_unmaintained=True)
    assert Audit.objects.get(opened_by=people["mira"]).file_name == "file.zip"
    assert BundleUpload.objects.get(uploaded_by=people["mira"]).file_name == "file.zip"
    assert Audit.objects.get(opened_by=people["dave"]).file_name == "SAID-dave-audit.zip"
