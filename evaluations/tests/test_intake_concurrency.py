"""Two people act on an entry at the same time: one of them is told, and nothing is half done."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from annotation.models import Benchmark
from annotation.tests import testing
from annotation.tests.test_concurrency import at_once
from annotation.workflow import Conflict
from evaluations.models import Entry, EntryVersion
from evaluations.registry import chain, entries
from evaluations.tests.audited import auditor, work

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("store")]
DESCRIPTION = {"agent": "Pathfinder", "organisation": "Acme", "relationship": "third_party", "contact": "sam"}


@pytest.fixture
def entry(bundles: dict[str, Path]) -> Entry:
    olga, benchmark = auditor("olga"), Benchmark.objects.create(slug="web-tasks", name="Web tasks")
    intake = entries.configure(olga, benchmark, public=True, contact="olga")
    entries.add_owner(olga, benchmark, auditor("pete"))
    bundle = SimpleUploadedFile("theirs.zip", bundles["files"].read_bytes())
    made = entries.submit(testing.person("sam"), intake, DESCRIPTION, entries.SentFile(bundle), lambda pk: None)
    work()
    made.refresh_from_db()
    return made


def test_two_owners_who_accept_at_once_publish_one_version(entry: Entry) -> None:
    owners = [auditor("olga"), auditor("pete")]
    answers = at_once(2, lambda number: entries.accept(owners[number], entry, "Checked."))
    assert sorted(type(each) for each in answers if not isinstance(each, EntryVersion)) == [Conflict]
    assert entry.versions.count() == 1
    assert chain.find_broken(entry.events.all()) is None


def test_acceptance_and_withdrawal_at_once_leave_one_of_both(entry: Entry) -> None:
    acts = [
        lambda: entries.accept(auditor("olga"), entry, "Checked."),
        lambda: entries.withdraw(testing.person("sam"), entry, "A mistake."),
    ]
    answers = at_once(2, lambda number: acts[number]())
    assert sum(isinstance(each, Conflict) for each in answers) == 1
    assert entry.versions.count() == (chain.state_of(entry) is chain.State.ACCEPTED)


def test_last_two_owners_cannot_remove_each_other(entry: Entry) -> None:
    owners = [auditor("olga"), auditor("pete")]
    answers = at_once(2, lambda number: entries.remove_owner(owners[number], entry.benchmark, owners[1 - number]))
    assert entry.benchmark.owners.count() == 1
    assert sum(each is not None for each in answers) == 1
