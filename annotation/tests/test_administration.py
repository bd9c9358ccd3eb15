"""Django's administration is only for operators (superusers)."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Permission
from django.test import Client
from django.urls import reverse

from annotation.models import Event, Person
from annotation.models.events import first_broken
from annotation.tests import testing

People = dict[str, Person]


@pytest.mark.parametrize("name", ["mira", "alice", "dave"])
def test_administration_refuses_people_who_are_not_operators(client: Client, people: People, name: str) -> None:
    client.force_login(people[name])

    answer = client.get(reverse("admin:index"), follow=True)

    assert answer.status_code == 403
    assert "Not for your role" in answer.content.decode()


def test_administration_refuses_staff_with_rights_on_accounts(client: Client, people: People) -> None:
    people["mira"].user_permissions.set(Permission.objects.all())
    client.force_login(people["mira"])

    assert client.get(reverse("admin:annotation_person_changelist"), follow=True).status_code == 403


def test_operator_signs_in_on_the_page_with_the_limits(client: Client, db: None) -> None:
    Person.objects.create_superuser("root", password=testing.PASSWORD)
    answer = client.get(reverse("admin:index"), follow=True)
    assert answer.request["PATH_INFO"] == reverse("sign-in")

    fields = {"username": "root", "password": testing.PASSWORD, "next": answer.context["next"]}
    signed_in = client.post(reverse("sign-in"), fields, follow=True)

    assert (signed_in.request["PATH_INFO"], signed_in.status_code) == (reverse("admin:index"), 200)
    assert client.get(reverse("admin:login"), follow=True).request["PATH_INFO"] == reverse("admin:index")


def test_login_form_of_the_framework_checks_no_password(client: Client, db: None) -> None:
    Person.objects.create_superuser("root", password=testing.PASSWORD)
    client.post(reverse("admin:login"), {"username": "root", "password": testing.PASSWORD})

    assert client.get(reverse("home")).status_code == 302


def test_change_of_an_account_is_recorded_without_its_values(client: Client, people: People) -> None:
    root = Person.objects.create_superuser("root", password=testing.PASSWORD)
    client.force_login(root)
    alice = people["alice"]
    fields = {"username": "alice", "email": "other@people.example", "is_active": "on"}
    joined = {"date_joined_0": f"{alice.date_joined:%Y-%m-%d}", "date_joined_1": f"{alice.date_joined:%H:%M:%S}"}
    joined |= {f"initial-{name}": value for name, value in joined.items()}
    address = reverse("admin:annotation_person_change", args=[alice.pk])

    for _ in range(2):  # what is saved again without a change is no event
        assert client.post(address, fields | joined).status_code == 302

    assert Person.objects.get(pk=alice.pk).email == "other@people.example"
    [event] = Event.objects.filter(submission__isnull=True)
    assert (event.kind, event.actor, event.payload["person"]) == ("account_changed", root, alice.pk)
    assert event.payload["fields"] == ["email"]
    assert first_broken([event]) is None
