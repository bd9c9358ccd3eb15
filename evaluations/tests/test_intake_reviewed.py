"""Faults of intake that a review found: interests of owners, secrets of others, and scores after changes."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from datetime import timedelta
from pathlib import Path

import pytest
from django.core.exceptions import PermissionDenied
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from annotation.models import Affiliation, Benchmark, Membership, Person
from annotation.records import Verdict
from annotation.tests import testing
from annotation.workflow import Conflict, Incomplete
from annotation.workflow.guards import join
from evaluations import signing
from evaluations.auditing import actions
from evaluations.models import Entry, EntryEvent, Intake
from evaluations.registry import chain, entries, lookups
from evaluations.registry.chain import Kind
from evaluations.registry.scoring import Change
from evaluations.revoking import revoke_bundle
from evaluations.tests.audited import auditor, client_of, relabel
from evaluations.tests.planned_review import drawn_tasks, planned_review
from evaluations.tests.test_intake import DESCRIPTION, checked, data, intake, olga, results, sam, submit

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("store")]
__all__ = ["data", "intake", "olga", "sam"]


def test_changed_success_stays_a_success_in_later_versions(
    intake: Intake, olga: Person, sam: Person, data: bytes
) -> None:
    entry = checked(sam, intake, data)
    entries.accept(olga, entry, "Checked.")
    entries.rescore(olga, entry, {"task_0000": Change("It worked.", Verdict.SUCCESS)}, "It worked.")
    version = entries.rescore(olga, entry, {"task_0001": Change("Gone.", included=False)}, "Gone.")
    assert (version.rate, version.rows) == (1, 1)


def test_task_left_out_of_a_planned_sample_leaves_a_rate(olga: Person, sam: Person, tmp_path: Path) -> None:
    review = planned_review(tmp_path)
    entries.configure(olga, review.benchmark, public=True, contact="olga")
    entry = Entry.objects.create(
        benchmark=review.benchmark, submission=review, submitted_by=sam, submitted_at=timezone.now(), **DESCRIPTION
    )
    chain.append(entry, Kind.SUBMITTED, EntryEvent.Role.SUBMITTER, sam)
    first = entries.accept(olga, entry, "Labelled here.")
    assert (first.method, first.rows) == ("sample", 5)
    drawn, others = drawn_tasks(review), set(review.trajectories.values_list("task__external_id", flat=True))
    second = entries.rescore(olga, entry, {drawn[-1]: Change("Gone.", included=False)}, "Gone.")
    assert second.rows == 4
    assert second.rate is not None
    with pytest.raises(Incomplete, match="was not drawn"):
        entries.rescore(olga, entry, {min(others - set(drawn)): Change("Seen.", Verdict.FAILURE)}, "Seen.")


def test_submitter_does_not_learn_of_entries_of_others(intake: Intake, olga: Person, sam: Person, data: bytes) -> None:
    secret = checked(sam, intake, data, agent="Secret", embargo_until=timezone.now() + timedelta(days=9))
    other = checked(testing.person("rita"), intake, data, agent="secret")
    address = reverse("entry", args=[other.key])
    theirs = client_of(testing.person("rita"))
    for shown in (theirs.get(address), theirs.get(reverse("api-entry", args=[other.key]))):
        assert secret.key not in shown.content.decode()
    assert secret.key in client_of(olga).get(address).content.decode()
    assert secret.key in client_of(olga).get(reverse("api-entry", args=[other.key])).content.decode()


def test_text_of_a_new_score_that_was_taken_down_is_in_no_row(
    intake: Intake, olga: Person, sam: Person, data: bytes
) -> None:
    entry = checked(sam, intake, data)
    entries.accept(olga, entry, "Checked.")
    entries.rescore(olga, entry, {"task_0000": Change("Call Jane.", included=False)}, "Call Jane.")
    entries.take_down(olga, entry, "It named a person.", 3)
    page = f"/registry/{intake.benchmark.slug}/"
    for address in (
        "ledger",
        entry.key,
        f"{entry.key}/rows.csv",
        f"{entry.key}/entry.json",
        "entries.json",
        "feed.xml",
    ):
        text = Client().get(page + address).content.decode()
        assert "Call Jane" not in text, address
    assert "It named a person." in Client().get(f"{page}{entry.key}/rows.csv").content.decode()


def test_nothing_is_published_while_people_label_a_sample_blind(
    intake: Intake, olga: Person, sam: Person, data: bytes
) -> None:
    entries.add_owner(olga, intake.benchmark, auditor())
    entry = checked(sam, intake, data)
    assert entry.audit is not None
    sample = actions.draw(entry.audit, auditor(), 2)
    with pytest.raises(Conflict, match="still label a sample"):
        entries.accept(olga, entry, "Too early.")
    relabel(sample)
    assert entries.accept(olga, entry, "Checked.").audited == {"size": 2, "alike": 2}


def test_bundle_of_another_agent_fails_the_identity(intake: Intake, sam: Person, data: bytes) -> None:
    assert results(checked(sam, intake, data))["identity"] == "fail"
    shops = Benchmark.objects.get_or_create(slug="shops", defaults={"name": "Shops"})[0]
    own = entries.configure(auditor("olga"), shops, public=True, contact="olga")
    assert results(checked(sam, own, data, agent="careful agent"))["identity"] == "pass"


def test_revoked_bundle_fails(intake: Intake, sam: Person, data: bytes) -> None:
    with zipfile.ZipFile(io.BytesIO(data)) as package:
        manifest = hashlib.sha256(package.read("MANIFEST.json")).hexdigest()
    signing.active_key()
    revoke_bundle(testing.person("root", is_superuser=True), manifest, "The labels were sold.")
    assert results(checked(sam, intake, data))["revocations"] == "fail"


def test_owners_with_an_interest_do_not_audit(intake: Intake, olga: Person, data: bytes) -> None:
    pete, rosa = auditor("pete"), auditor("rosa")
    entries.add_owner(olga, intake.benchmark, pete)
    entries.add_owner(olga, intake.benchmark, rosa)
    Affiliation.objects.create(person=pete, organisation="acme")
    entry = checked(olga, intake, data)
    assert entry.audit is not None
    readers = entry.audit.submission.memberships.filter(role=Membership.Role.AUDITOR)
    assert [each.person for each in readers] == [rosa]
    join(entry.audit.submission, olga, Membership.Role.AUDITOR)  # as if somebody had added them
    for act in (
        lambda: actions.decide(olga, entry.audit, "accept", "Mine."),
        lambda: actions.draw(entry.audit, olga, 1),
    ):
        with pytest.raises(PermissionDenied, match="your own"):
            act()
    with pytest.raises(PermissionDenied, match="affiliation with Acme"):
        entries.correct(pete, entry, DESCRIPTION | {"organisation": "Acme Ltd"}, "Misspelt.")
    assert Entry.objects.get().organisation == "Acme"


def test_audits_follow_the_owners(intake: Intake, olga: Person, sam: Person, data: bytes) -> None:
    entry = checked(sam, intake, data)
    assert entry.audit is not None
    pete = auditor("pete")
    entries.add_owner(olga, intake.benchmark, pete)
    address = reverse("audit", args=[entry.audit.pk])
    assert client_of(pete).get(address).status_code == 200
    entries.remove_owner(olga, intake.benchmark, pete)
    assert client_of(pete).get(address).status_code == 404
    entries.add_owner(olga, intake.benchmark, pete)
    assert client_of(pete).get(address).status_code == 200


def test_times_of_an_intake_are_compared_with_the_saved_ones(intake: Intake, olga: Person) -> None:
    entries.configure(olga, intake.benchmark, closes_at=timezone.now() + timedelta(days=1))
    late = {"contact": "olga", "opens_at": (timezone.now() + timedelta(days=2)).isoformat()}
    address = reverse("api-intake", args=[intake.benchmark.slug])
    assert client_of(olga).put(address, json.dumps(late), "application/json").status_code == 400


def test_intake_page_is_cacheable_and_sets_no_cookie(intake: Intake) -> None:
    response = Client().get(reverse("intake", args=[intake.benchmark.slug]))
    assert response["Cache-Control"] == "public, max-age=60"
    assert not response.cookies


def test_one_person_cannot_submit_without_end(intake: Intake, sam: Person) -> None:
    for _ in range(entries.MOST_A_DAY):
        entries.withdraw(sam, submit(sam, intake, b"nothing"), "Again.")
    with pytest.raises(Conflict, match="Try again tomorrow"):
        submit(sam, intake, b"nothing")


def test_home_counts_the_entries_that_wait_for_owner_and_submitter(
    intake: Intake, olga: Person, sam: Person, data: bytes
) -> None:
    def waiting(person: Person) -> list[str]:
        home = client_of(person).get(reverse("home")).content.decode()
        page = client_of(person).get(reverse("own-entries")).content.decode()
        listed = page.split("<h2>Your own</h2>")[0].count("<li><a href=")
        assert ("1 waits for you" in home) is bool(listed)
        return [each.key for each in lookups.find_waiting(person)]

    entry = checked(sam, intake, data)
    assert (waiting(olga), waiting(sam)) == ([entry.key], [])
    entries.query(olga, entry, "Which model was it?")
    assert (waiting(olga), waiting(sam)) == ([], [entry.key])
    entries.answer(sam, entry, "The one of May.", None, lambda file: None)
    assert (waiting(olga), waiting(sam)) == ([entry.key], [])
    entries.reject(olga, entry, "Not comparable.")
    assert (waiting(olga), waiting(sam)) == ([], [])
    entries.appeal(sam, entry, "It is the same model.")
    assert (waiting(olga), waiting(sam)) == ([entry.key], [])
    entries.decide_appeal(olga, entry, "It is.", upheld=True)
    assert (waiting(olga), waiting(sam)) == ([], [])
    Affiliation.objects.create(person=olga, organisation="ACME")
    entries.appeal(sam, entry, "Again.")
    assert waiting(olga) == []
