"""Who labels a sample again is shown nothing of the same trajectories, wherever on this instance they were judged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from annotation import access, ingest, workflow
from annotation.models import Membership, Person, Submission
from annotation.tests import testing
from annotation.workflow import Conflict
from evaluations.auditing import actions
from evaluations.auditing.importing import AuditRefused, open_bundle
from evaluations.models import Audit
from evaluations.tests.audited import add_people, audit_of, auditor, bundle
from evaluations.tests.finished import finish

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("store")]
OF_SUBMISSION = ("submission", "quality", "events", "agreement", "evidence", "api-labels", "api-verdicts")
OF_BENCHMARK = ("api-benchmark-agreement", "api-agents")


@pytest.fixture
def audit(frozen: Submission, tmp_path: Path) -> Audit:
    return audit_of(frozen, tmp_path)


@pytest.fixture
def second(frozen: Submission, people: dict[str, Person], tmp_path: Path) -> Submission:
    """The trajectories of `frozen` as those of another agent, judged by the same people: another chain of events."""
    package = tmp_path / "package"
    _, made = ingest.import_submission(package, benchmark=frozen.benchmark, agent_name="Renamed Agent")
    assert made is not None
    for name in ("alice", "bob", "chen", "carol", "mira"):
        part = Membership.objects.get(submission=frozen, person=people[name])
        Membership.objects.create(submission=made, person=people[name], role=part.role, pseudonym=part.pseudonym)
    return finish(people, made, {})


def made_superuser(person: Person, submission: Submission) -> None:
    Person.objects.filter(pk=person.pk).update(is_superuser=True, is_staff=True)


def made_maintainer(person: Person, submission: Submission) -> None:
    """As no verb does it."""
    Membership.objects.create(submission=submission, person=person, role="maintainer", pseudonym="M9")


def addresses(submission: Submission) -> list[str]:
    row = submission.trajectories.earliest("pk")
    return [
        *(reverse(name, args=[submission.pk]) for name in OF_SUBMISSION),
        reverse("submission-trajectory", args=[row.pk]),
        reverse("api-trajectory", args=[row.pk]),
        reverse("picture", args=[row.pk, 0, "display"]),
    ]


def statuses(person: Person, asked: list[str]) -> dict[str, int]:
    client = Client()
    client.force_login(Person.objects.get(pk=person.pk))
    return {address: client.get(address).status_code for address in asked}


def test_who_labels_the_sample_finds_the_original_on_no_page_of_their_own(audit: Audit, frozen: Submission) -> None:
    sample = actions.draw(audit, auditor(), 2)
    people = add_people(sample)
    made_maintainer(people["erin"], frozen)
    client = Client()
    client.force_login(people["erin"])

    shown = client.get(reverse("home"))
    works = [work.membership.submission for work in (*shown.context["waiting"], *shown.context["resting"])]
    assert works == [sample]
    assert client.get(reverse("start")).url == reverse("work", args=[sample.pk])


@pytest.mark.parametrize("right", [made_superuser, made_maintainer])
@pytest.mark.parametrize("name", ["erin", "hugo"])
def test_who_labels_the_sample_sees_nothing_of_the_original(
    audit: Audit, frozen: Submission, name: str, right: Any
) -> None:
    people = add_people(actions.draw(audit, auditor(), 2))
    right(people[name], frozen)
    asked = addresses(frozen)

    assert statuses(people[name], asked) == dict.fromkeys(asked, 404)


@pytest.mark.parametrize("right", [made_superuser, made_maintainer])
def test_who_labels_the_sample_sees_nothing_of_the_same_trajectories_under_another_name(
    audit: Audit, second: Submission, right: Any
) -> None:
    people = add_people(actions.draw(audit, auditor(), 2))
    right(people["erin"], second)
    asked = addresses(second)

    assert statuses(people["erin"], asked) == dict.fromkeys(asked, 404)


def test_who_labels_the_sample_has_no_figures_of_the_original_among_those_of_its_benchmark(
    audit: Audit, frozen: Submission
) -> None:
    people = add_people(actions.draw(audit, auditor(), 2))
    made_maintainer(people["erin"], frozen)
    person = Person.objects.get(pk=people["erin"].pk)

    assert list(access.submissions_maintained_by(person)) == []
    slug = frozen.benchmark.slug
    assert statuses(person, [reverse(each, args=[slug]) for each in OF_BENCHMARK]) == {
        reverse(each, args=[slug]): 404 for each in OF_BENCHMARK
    }


def test_who_left_the_sample_sees_nothing_either_until_it_is_frozen(audit: Audit, frozen: Submission) -> None:
    sample = actions.draw(audit, auditor(), 2)
    people = add_people(sample)
    made_maintainer(people["erin"], frozen)
    workflow.deactivate_member(auditor(), sample, people["erin"])
    address = reverse("quality", args=[frozen.pk])
    assert statuses(people["erin"], [address]) == {address: 404}

    Submission.objects.filter(pk=sample.pk).update(frozen_at=timezone.now())

    assert statuses(people["erin"], [address]) == {address: 200}


def test_who_labels_the_sample_goes_on_with_it_and_with_everything_else(audit: Audit, tmp_path: Path) -> None:
    sample = actions.draw(audit, auditor(), 2)
    people = add_people(sample)
    other = testing.submission(tmp_path / "other", trajectories=1, steps=4, agent="Other Agent")
    made_maintainer(people["erin"], other)

    asked = [reverse("work", args=[sample.pk]), reverse("submission", args=[other.pk])]
    assert statuses(people["erin"], asked) == {asked[0]: 200, asked[1]: 200}


def test_who_labels_the_sample_is_given_no_part_in_the_original(
    audit: Audit, frozen: Submission, people: dict[str, Person]
) -> None:
    erin = add_people(actions.draw(audit, auditor(), 2))["erin"]

    for role in (Membership.Role.MAINTAINER, Membership.Role.ADJUDICATOR):
        with pytest.raises(Conflict, match="labels a sample of the same trajectories"):
            workflow.add_member(people["mira"], frozen, erin, role)
    assert not frozen.memberships.filter(person=erin).exists()


@pytest.mark.parametrize("name", ["alice", "carol", "mira", "nina"])
def test_who_had_a_part_in_the_same_trajectories_does_not_label_the_sample(
    audit: Audit, second: Submission, name: str
) -> None:
    """nina maintains only what is the same under another name; the others had a part in both."""
    nina = testing.person("nina")
    made_maintainer(nina, second)
    sample = actions.draw(audit, auditor(), 2)

    with pytest.raises(Conflict, match="read, the labels"):
        workflow.add_member(auditor(), sample, Person.objects.get(username=name), Membership.Role.ANNOTATOR)


def test_who_labels_the_sample_opens_no_bundle_of_the_same_trajectories(
    audit: Audit, second: Submission, tmp_path: Path
) -> None:
    erin = add_people(actions.draw(audit, auditor(), 2))["erin"]
    Person.objects.filter(pk=erin.pk).update(is_staff=True)
    erin.refresh_from_db()
    path = bundle(second, tmp_path)

    with pytest.raises(AuditRefused, match="label a sample of this audit"):
        open_bundle(path, erin)
    other = open_bundle(path, auditor())
    with pytest.raises(Conflict, match="when the sample is frozen"):
        actions.add_auditor(auditor(), other, erin)
