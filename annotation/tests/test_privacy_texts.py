"""Before a name is forgotten, somebody says what becomes of the texts in which it stands."""

from __future__ import annotations

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from annotation import catalogue, workflow
from annotation.models import Draft, Event, Person
from annotation.models.events import first_broken
from annotation.tests import testing
from annotation.workflow.erasing import MOST_PLACES, NamedPlaces, search_names

pytestmark = pytest.mark.django_db
NAME = "Zwetkowa"


@pytest.fixture(autouse=True)
def images_in_a_folder_of_their_own(tmp_path, settings):
    settings.MEDIA_ROOT = tmp_path / "images"


@pytest.fixture
def bob(people):
    """bob has a name that is easy to find, wrote it himself, and others did."""
    people["bob"].last_name = NAME
    people["bob"].save()
    return people["bob"]


@pytest.fixture
def texts(submission, people, bob):
    first, second = submission.trajectories.order_by("position")
    testing.label(people["alice"], first, reasoning=f"As {NAME} said.")
    testing.label(bob, first, reasoning=f"I, {NAME.upper()}, saw it.")
    testing.label(bob, second, reasoning="Plain.")
    return submission


def refused(*given, **options):
    with pytest.raises(workflow.NamedInTexts) as refusal:
        workflow.erase(*given, **options)
    return str(refusal.value)


def signed_in(person):
    client = Client()
    client.force_login(person)
    return client


def test_texts_that_name_the_person_are_told_with_number_and_places_and_stop_the_erasure(texts, people, bob):
    said = refused(None, bob, "He left.")
    assert f"2 in submission {texts.pk} (label of A2 on task_0000, label of A1 on task_0000)" in said
    assert NAME.lower() not in said.lower()
    bob.refresh_from_db()
    assert (bob.last_name, bob.erased_at) == (NAME, None)
    assert not Event.objects.filter(kind="person_erased").exists()
    assert workflow.find_named_places(bob) == [
        NamedPlaces(texts.pk, ("label of A2 on task_0000",), ("label of A1 on task_0000",))
    ]


def test_with_a_yes_the_person_is_erased_and_the_texts_stay(texts, people, bob):
    workflow.erase(people["mira"], bob, "He left.", accept_texts=True)
    bob.refresh_from_db()
    assert bob.last_name == ""
    assert first_broken(Event.objects.filter(submission=None)) is None
    assert texts.trajectories.filter(assignments__labels__reasoning__contains=NAME).exists()


def test_a_name_of_somebody_else_and_an_address_of_anybody_stop_nothing(texts, people, bob):
    testing.label(people["chen"], texts.trajectories.get(position=0), reasoning="203.0.113.7, ask x@shop.example")
    assert workflow.find_named_places(people["chen"]) == []
    assert workflow.erase(None, people["chen"], "They left.").erased_at is not None


def test_a_draft_stops_nothing_since_it_goes(submission, people, bob):
    held = submission.trajectories.get(position=0)
    workflow.claim_this(bob, held)
    workflow.save_draft(bob, held, {"reasoning": NAME}, 0)
    workflow.erase(None, bob, "He left.")
    assert not Draft.objects.exists()


def test_a_former_member_is_looked_for_too_and_a_bundle_of_others_is_not(texts, people, bob):
    workflow.deactivate_member(people["mira"], texts, bob)
    assert len(workflow.find_named_places(bob)) == 1
    type(texts).objects.filter(pk=texts.pk).update(audited=True)
    assert workflow.find_named_places(bob) == []


def reading_texts(queries):
    return [number for number, query in enumerate(queries) if '"annotation_label"."reasoning"' in query["sql"]]


def test_texts_are_read_before_anything_is_locked(texts, people):
    with CaptureQueriesContext(connection) as queries:
        workflow.erase(None, people["chen"], "They left.")
    first_of_the_change = next(n for n, query in enumerate(queries) if query["sql"].startswith(("SAVEPOINT", "BEGIN")))
    assert reading_texts(queries)
    assert max(reading_texts(queries)) < first_of_the_change


def test_under_the_lock_only_what_has_changed_is_read_again(texts, people):
    chen, slot = people["chen"], texts.trajectories.get(position=1)
    before = search_names(chen)
    with CaptureQueriesContext(connection) as queries:
        assert search_names(chen, before) == before
    assert reading_texts(queries) == []
    testing.label(people["alice"], slot, reasoning="As Chen said.")
    assert search_names(chen, before)[texts.pk].found == NamedPlaces(texts.pk, (), ("label of A1 on task_0001",))


@pytest.mark.parametrize("changed", ["renamed", "proposal accepted"])
def test_a_name_or_a_key_point_that_came_meanwhile_is_looked_for(texts, people, changed):
    before = search_names(people["chen"])
    assert before[texts.pk].found is None
    if changed == "renamed":
        Person.objects.filter(pk=people["chen"].pk).update(last_name=NAME)
    else:
        task = texts.trajectories.get(position=1).task
        catalogue.accept_key_point(catalogue.propose_key_point(task, "Chen is told.", people["alice"]))
    assert search_names(Person.objects.get(pk=people["chen"].pk), before)[texts.pk].found is not None


def test_of_many_places_the_first_are_listed():
    said = NamedPlaces(7, tuple(f"flag of A2 on {number}" for number in range(MOST_PLACES + 5)), ()).describe(
        whole=True
    )
    assert said.startswith("25 in submission 7 (flag of A2 on 0, ")
    assert said.endswith(f"flag of A2 on {MOST_PLACES - 1}, and 5 more)")


def test_the_page_tells_of_texts_and_asks_for_a_yes(texts, people, bob):
    """Without the places of others: bob must not learn on it who labelled what."""
    client = signed_in(bob)
    page = client.get(reverse("erasing")).content.decode()
    assert f"2 in submission {texts.pk} (label of A2 on task_0000, 1 by other people)" in page
    assert "A1 on" not in page
    assert 'name="accept_texts"' in page
    answer = client.post(reverse("erase-account"), {"password": testing.PASSWORD})
    assert answer.status_code == 409
    assert 'href="#accept-texts"' in answer.content.decode()
    assert "A1 on" not in answer.content.decode()
    assert Person.objects.filter(last_name=NAME).exists()
    done = client.post(reverse("erase-account"), {"password": testing.PASSWORD, "accept_texts": "1"}, follow=True)
    assert "Your account has been erased." in done.content.decode()
    assert not Person.objects.filter(last_name=NAME).exists()


def test_the_page_asks_for_nothing_where_no_text_has_the_name(texts, people):
    page = signed_in(people["chen"]).get(reverse("erasing")).content.decode()
    assert "accept_texts" not in page


def test_the_command_lists_the_places_and_needs_the_option(texts, people, bob):
    with pytest.raises(CommandError, match="--accept-texts") as refusal:
        call_command("erase_person", "bob", "--reason", "He left.", "--yes")
    assert "label of A1 on task_0000" in str(refusal.value)
    assert Person.objects.filter(username="bob").exists()
    call_command("erase_person", "bob", "--reason", "He left.", "--yes", "--accept-texts")
    assert not Person.objects.filter(username="bob").exists()
