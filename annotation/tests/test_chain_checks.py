"""Long chains of events: verification by the events page and by the full check."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from annotation import chain_checks, jobs
from annotation.models import ChainCheck, Event, Person, Submission
from annotation.models.events import append

BROKEN = "The chain is broken at event {}."


@pytest.fixture
def long(submission: Submission, people: dict[str, Person], monkeypatch: pytest.MonkeyPatch) -> Submission:
    """A chain of 300 events, of which a page verifies 40."""
    monkeypatch.setattr(chain_checks, "MOST_EVENTS_AT_ONCE", 40)
    for number in range(300 - submission.events.count()):
        append(submission, "configured", pseudonym="M1", number=number)
    return submission


@pytest.fixture
def mira(client: Client, people: dict[str, Person]) -> Client:
    client.force_login(people["mira"])
    return client


def look(client: Client, submission: Submission, page: int = 1) -> str:
    return client.get(reverse("events", args=[submission.pk]), {"page": page}).content.decode()


def tamper(sequence: int, **fields: Any) -> None:
    Event.objects.filter(sequence=sequence, submission__isnull=False).update(**fields)


def test_long_chain_is_not_reported_intact_before_a_full_check(long: Submission, mira: Client) -> None:
    assert "not checked in full yet" in look(mira, long)
    jobs.check_chains()
    assert "chain intact" in look(mira, long)


def test_page_of_a_long_chain_hashes_only_shown_and_new_events(
    long: Submission, mira: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs.check_chains()
    for number in range(5):
        append(long, "configured", pseudonym="M1", again=number)
    computed: list[int] = []
    whole = Event.computed_hash
    monkeypatch.setattr(Event, "computed_hash", lambda event: computed.append(event.sequence) or whole(event))
    look(mira, long)
    assert set(computed) == set(range(205, 305))  # a page of 100, among them the five new ones
    computed.clear()
    look(mira, long)
    assert sorted(computed) == list(range(205, 305))


def test_page_verifies_a_limited_number_of_new_events(long: Submission, mira: Client) -> None:
    jobs.check_chains()
    for number in range(100):
        append(long, "configured", pseudonym="M1", again=number)
    assert "60 newer events not checked yet" in look(mira, long)
    assert "20 newer events not checked yet" in look(mira, long)
    assert "not checked yet" not in look(mira, long)


@pytest.mark.parametrize("sequence", [299, 250])
def test_tampering_with_a_shown_event_is_seen_at_once(
    long: Submission, mira: Client, without_triggers: Any, sequence: int
) -> None:
    jobs.check_chains()
    with without_triggers():
        tamper(sequence, payload={"number": -1})
    assert BROKEN.format(sequence) in look(mira, long)


def test_tampering_with_a_new_event_is_seen_at_once(long: Submission, mira: Client, without_triggers: Any) -> None:
    jobs.check_chains()
    for number in range(20):
        append(long, "configured", pseudonym="M1", again=number)
    with without_triggers():
        tamper(305, payload={"number": -1})
    assert BROKEN.format(305) in look(mira, long, page=3)


def test_tampering_with_an_old_event_is_seen_on_its_page_and_by_the_next_full_check(
    long: Submission, mira: Client, without_triggers: Any
) -> None:
    jobs.check_chains()
    with without_triggers():
        tamper(7, payload={"number": -1})
    assert BROKEN.format(7) in look(mira, long, page=3)
    assert "chain intact" in look(mira, long, page=1)
    jobs.check_chains()
    assert "chain intact" in look(mira, long, page=1)  # the last full check is not a day old
    ChainCheck.objects.update(checked_at=timezone.now() - timedelta(days=1, minutes=1))
    jobs.check_chains()
    assert BROKEN.format(7) in look(mira, long, page=1)


def test_shortened_chain_is_broken(long: Submission, mira: Client, without_triggers: Any) -> None:
    jobs.check_chains()
    with without_triggers():
        Event.objects.filter(submission=long, sequence__gte=290).delete()
    assert BROKEN.format(299) in look(mira, long)


def test_rewritten_chain_is_broken(long: Submission, mira: Client, without_triggers: Any) -> None:
    """All hashes of it are right among themselves."""
    jobs.check_chains()
    with without_triggers():
        previous = Event.objects.get(submission=long, sequence=199).hash
        for event in Event.objects.filter(submission=long, sequence__gte=200).order_by("sequence"):
            event.payload, event.previous = {"number": -1}, previous
            event.hash = previous = event.computed_hash()
            event.save()
    assert BROKEN.format(299) in look(mira, long)


def test_repaired_chain_holds_after_the_next_full_check(long: Submission, mira: Client, without_triggers: Any) -> None:
    payload = Event.objects.get(submission=long, sequence=250).payload
    with without_triggers():
        tamper(250, payload={"number": -1})
        chain_checks.check_whole(long)
        tamper(250, payload=payload)
    assert BROKEN.format(250) in look(mira, long, page=3)
    chain_checks.check_whole(long)
    assert "chain intact" in look(mira, long, page=3)


def test_short_chain_is_verified_in_full_on_every_page(
    submission: Submission, people: dict[str, Person], mira: Client, without_triggers: Any
) -> None:
    assert "chain intact" in look(mira, submission)
    with without_triggers():
        tamper(1, actor_pseudonym="A9")
    assert BROKEN.format(1) in look(mira, submission)
    assert not ChainCheck.objects.exists()
