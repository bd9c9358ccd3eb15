"""What nobody may read of a registry: every public address, for entries in every state, before and after embargo."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.core.cache import cache
from django.test import Client
from django.utils import timezone

from annotation.models import Benchmark, Person
from annotation.tests import testing
from evaluations.models import Entry, Intake, Takedown
from evaluations.registry import published
from evaluations.registry.chain import Kind
from evaluations.tests.builders import registered
from evaluations.tests.public_pages import NO_KEY, list_addresses, walk

pytestmark = pytest.mark.django_db
HIDDEN = ("secret-", "people.example", "dave", "olga")  # contact, reasons and files that are not public, names
DAY = timedelta(days=1)


@pytest.fixture(autouse=True)
def no_requests_counted(settings: Any) -> None:
    settings.REGISTRY_REQUESTS_PER_MINUTE = 0
    cache.clear()


@pytest.fixture
def shops() -> Benchmark:
    benchmark = registered.registry()
    registered.published(benchmark, "Published Agent")
    return benchmark


def embargo(entry: Entry) -> None:
    registered.accepted(entry)
    Entry.objects.filter(pk=entry.pk).update(embargo_until=timezone.now() + DAY)


def reject_again(entry: Entry) -> None:
    """As if an accepted entry were rejected: its version exists, but its state is what counts."""
    registered.accepted(entry)
    registered.append(entry, Kind.REJECTED, "secret-rejection")


HIDDEN_STATES: dict[str, Callable[[Entry], Any]] = {
    "received": lambda entry: None,
    "queried": lambda entry: registered.append(entry, Kind.QUERIED, "secret-query"),
    "answered": lambda entry: registered.append(entry, Kind.ANSWERED, "secret-answer"),
    "rejected": lambda entry: registered.append(entry, Kind.REJECTED, "secret-rejection"),
    "rejected after a version": reject_again,
    "withdrawn": lambda entry: registered.append(entry, Kind.WITHDRAWN, "secret-withdrawal"),
    "appealed": lambda entry: registered.append(entry, Kind.APPEALED, "secret-appeal"),
    "under embargo": embargo,
}


@pytest.mark.parametrize("state", HIDDEN_STATES)
def test_nothing_public_depends_on_an_entry_that_is_not_published(shops: Benchmark, state: str) -> None:
    """Neither bytes nor validators of any address; and its own addresses are those of a key that does not exist."""
    known = Entry.objects.get()
    before = walk(list_addresses("shops", known.key, NO_KEY))
    entry = registered.submitted(shops, "Hidden Agent")
    HIDDEN_STATES[state](entry)

    assert walk(list_addresses("shops", known.key, NO_KEY)) == before
    after = walk(list_addresses("shops", known.key, entry.key))
    assert {address.replace(entry.key, NO_KEY): found for address, found in after.items()} == before
    own = [found[0] for address, found in after.items() if f"/{entry.key}" in address]
    assert set(own) == {404}
    assert len(own) > 5


def test_an_entry_is_public_everywhere_after_its_embargo(shops: Benchmark) -> None:
    entry = registered.submitted(shops, "Hidden Agent")
    embargo(entry)
    addresses = [each for each in list_addresses("shops", entry.key) if "compare" not in each]
    before = walk(addresses)
    Entry.objects.filter(pk=entry.pk).update(embargo_until=timezone.now() - DAY)
    after = walk(addresses)
    named = [address for address, found in after.items() if b"Hidden Agent" in found[2]]
    assert {address.replace(entry.key, "KEY") for address in named} >= {
        "/registry/shops/",
        "/registry/shops/ledger",
        "/registry/shops/entries.json",
        "/registry/shops/entries.csv",
        "/registry/shops/feed.xml",
        "/registry/shops/feed.json",
        "/registry/shops/KEY",
        "/registry/shops/KEY/entry.json",
        "/registry/shops/KEY/badge.svg",
        "/registry/shops/KEY/every-eval-ever.json",
        "/registry/shops/KEY/eval-results.yaml?dataset=owner/name&task=test",
    }
    changed = {address for address in addresses if before[address][1:] != after[address][1:]}
    assert changed == set(addresses)  # also the list of registries, which counts entries
    assert {found[0] for found in after.values()} == {200}


def test_no_public_address_names_people_contacts_or_texts_between_submitter_and_owners(shops: Benchmark) -> None:
    first = Entry.objects.get()
    second = registered.published(shops, "Second Agent")
    for kind in Kind:
        if kind not in published.PUBLIC:
            registered.append(second, kind, f"secret-{kind}", file="secret-file")
    registered.append(second, Kind.ACCEPTED)
    found = walk(list_addresses("shops", first.key, second.key))
    for address, (_, _, body) in found.items():
        assert [word for word in HIDDEN if word.encode() in body] == [], address
    assert len(found) > 25


def test_signed_in_people_get_the_same_bytes(shops: Benchmark) -> None:
    olga = Person.objects.get(username="olga")
    Person.objects.filter(pk=olga.pk).update(is_superuser=True)
    client = Client()
    client.force_login(olga)
    addresses = list_addresses("shops", Entry.objects.get().key)
    assert walk(addresses, client) == walk(addresses)


@pytest.mark.parametrize("change", ["not public", "archived", "no intake"])
def test_a_registry_that_is_not_public_does_not_exist(shops: Benchmark, change: str) -> None:
    addresses = [each for each in list_addresses("shops", Entry.objects.get().key) if each != "/registry/"]
    if change == "not public":
        Intake.objects.update(public=False)
    elif change == "archived":
        Benchmark.objects.update(archived_at=timezone.now())
    else:
        Intake.objects.all().delete()
    found = walk(addresses)
    assert {status for status, _, _ in found.values()} <= {404}
    assert b"shops" not in Client().get("/registry/").content
    assert not published.has_registries()


def test_a_removed_entry_keeps_page_figures_and_reason_and_leaves_the_leaderboard(shops: Benchmark) -> None:
    entry = Entry.objects.get()
    registered.append(entry, Kind.REMOVED, "Two annotators worked on the agent.")
    board = published.load_board("shops")
    assert board.rank() == []
    assert [each.entry for each in board.removed] == [entry.pk]
    page = Client().get(f"/registry/shops/{entry.key}").content.decode()
    assert "Two annotators worked on the agent." in page
    assert "50.0%" in page
    assert "Published Agent" in Client().get("/registry/shops/").content.decode()
    assert "Two annotators" in Client().get("/registry/shops/ledger?kind=removed").content.decode()
    assert "removed" in Client().get(f"/registry/shops/{entry.key}/badge.svg").content.decode()
    for name in ("every-eval-ever.json", "eval-results.yaml?dataset=a/b"):
        assert Client().get(f"/registry/shops/{entry.key}/{name}").status_code == 404
    registered.append(entry, Kind.RESTORED)
    assert [place.entry for place in published.load_board("shops").rank()] == [entry.pk]


def test_a_description_that_was_taken_down_is_shown_nowhere(shops: Benchmark) -> None:
    entry = registered.published(
        shops, "Regretted Agent", organisation="Regretted Ltd", link="https://regretted.example"
    )
    registered.append(entry, Kind.CORRECTED, before={"agent": "Regretted Name"})
    Takedown.objects.create(
        entry=entry, reason="The maker asked us to.", decided_by=registered.owner(), decided_at=timezone.now()
    )
    found = walk(list_addresses("shops", entry.key))
    assert not [address for address, (_, _, body) in found.items() if b"egretted" in body]
    shown = [address for address, (_, _, body) in found.items() if b"The maker asked us to." in body]
    assert f"/registry/shops/{entry.key}" in shown
    assert f"/registry/shops/{entry.key}/entry.json" in shown


def test_the_text_of_an_event_that_was_taken_down_gives_way_to_its_reason(shops: Benchmark) -> None:
    entry = Entry.objects.get()
    appealed = registered.append(entry, Kind.APPEALED, "Mr Bean judged wrongly.")
    addresses = list_addresses("shops", entry.key)
    validators = {address: found[1] for address, found in walk(addresses).items()}
    Takedown.objects.create(
        entry=entry,
        event=appealed,
        reason="It names a person.",
        decided_by=registered.owner(),
        decided_at=timezone.now(),
    )
    found = walk(addresses)
    assert not [address for address, (_, _, body) in found.items() if b"Mr Bean" in body]
    ledger = "/registry/shops/ledger"
    assert b"It names a person." in found[ledger][2]
    assert found[ledger][1] != validators[ledger]


def test_ranks_follow_the_rate_and_entries_of_equal_rate_share_one(shops: Benchmark) -> None:
    for verdicts in ([1, 0], [1, 1, 1], [], [0, 1]):
        registered.accepted(registered.submitted(shops), verdicts)
    places = published.load_board("shops").rank()
    rates = {each.version: each.rate for each in published.load_board("shops").listed}
    assert [(place.rank, rates[place.version]) for place in places] == [
        (1, 1.0), (2, 0.5), (2, 0.5), (2, 0.5), (None, None),
    ]  # fmt: skip


def test_only_the_newest_version_is_ranked(shops: Benchmark) -> None:
    entry = Entry.objects.get()
    version = registered.rescored(entry, {"task_0002": 1, "task_0003": None})
    assert [place.version for place in published.load_board("shops").rank()] == [version.pk]
    assert [row.verdict for row in published.rows_of(version)] == [1, 1, 1, 2, 1, 0]
    first = published.find_version(entry, 1)
    assert [row.verdict for row in published.rows_of(first)] == list(registered.VERDICTS)


def test_events_of_an_entry_count_from_the_end_of_its_embargo(shops: Benchmark) -> None:
    late = registered.submitted(shops, "Late Agent", embargo_until=timezone.now() - timedelta(seconds=1))
    registered.accepted(late)
    Entry.objects.filter(pk=late.pk).update(embargo_until=timezone.now())
    registered.published(shops, "Newest Agent")
    events = published.load_events(published.list_events(shops))
    assert [event.entry.agent for event in events] == ["Newest Agent", "Late Agent", "Published Agent"]
    Entry.objects.filter(pk=late.pk).update(embargo_until=timezone.now())
    assert published.load_events(published.list_events(shops)[:1])[0].entry.agent == "Late Agent"


@pytest.mark.parametrize("link", ["javascript:alert(1)", "ftp://files.example/x", "data:text/html,x"])
def test_only_links_of_the_web_are_published(shops: Benchmark, link: str) -> None:
    entry = registered.published(shops, link=link)
    assert published.describe_entry(published.find_entry(shops, entry.key)).link == ""


def test_the_sign_in_page_links_public_registries_only() -> None:
    testing.person("mira")
    assert b"/registry/" not in Client().get("/sign-in").content
    registered.registry()
    assert b"/registry/" in Client().get("/sign-in").content
