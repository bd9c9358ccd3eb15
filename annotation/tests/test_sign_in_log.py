"""The log of sign-ins: who, when, from where and how."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from annotation import privacy, sign_ins
from annotation.models import Person, SignIn
from annotation.tests import oidc, testing
from annotation.tests.test_second_factor import clock, enter, set_up, sign_in  # noqa: F401
from annotation.tests.test_single_sign_on import link, provider  # noqa: F401

pytestmark = pytest.mark.django_db
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"


def test_a_sign_in_is_logged_with_time_address_browser_and_method(people):
    sign_in(Client(REMOTE_ADDR="2001:db8:1:2:3:4:5:6", HTTP_USER_AGENT=FIREFOX))

    row = SignIn.objects.get()
    assert (row.person, row.method, row.device) == (people["alice"], "password", "Firefox on Linux")
    assert row.address == "2001:db8:1:2::"
    assert timezone.now() - row.at < timedelta(minutes=1)


def test_a_wrong_password_or_a_missing_factor_is_no_sign_in(client, people):
    client.post(reverse("sign-in"), {"username": "alice", "password": "wrong"})
    assert not SignIn.objects.exists()
    set_up(client)
    before = SignIn.objects.count()
    sign_in(other := Client())
    enter(other, "000000")
    assert SignIn.objects.count() == before


def test_the_method_names_every_step(client, people, provider):  # noqa: F811
    _, codes = set_up(client)
    link(people["alice"], provider)
    sign_in(other := Client())
    enter(other, codes[0])
    oidc.sign_in(third := Client(), provider, "sub-1")
    enter(third, codes[1])
    methods = list(SignIn.objects.order_by("pk").values_list("method", flat=True))
    assert methods == ["password", "password, recovery code", "single sign-on, recovery code"]


def test_people_see_their_own_sign_ins_and_operators_all(client, people):
    for name, address in (("alice", "192.0.2.1"), ("bob", "192.0.2.2")):
        sign_in(Client(REMOTE_ADDR=address), name)
    client.force_login(people["alice"])
    page = client.get(reverse("account")).content.decode()
    assert ("192.0.2.1" in page, "192.0.2.2" in page) == (True, False)
    assert client.get(reverse("sign-in-log")).status_code == 404
    client.force_login(people["mira"])
    assert client.get(reverse("sign-in-log")).status_code == 404
    client.force_login(Person.objects.create_superuser("root"))
    page = client.get(reverse("sign-in-log")).content.decode()
    assert ("192.0.2.1" in page, "192.0.2.2" in page) == (True, True)


def test_old_sign_ins_are_deleted_and_recent_ones_stay(people, settings):
    settings.SIGN_IN_LOG_DAYS = 2
    for days in (1, 3):
        SignIn.objects.create(person=people["alice"], at=timezone.now() - timedelta(days=days), device="", method="x")
    sign_ins.forget_sign_ins()
    assert (timezone.now() - SignIn.objects.get().at).days == 1


def test_the_export_has_the_own_sign_ins(people):
    sign_in(Client(REMOTE_ADDR="192.0.2.1"))
    sign_in(Client(REMOTE_ADDR="192.0.2.2"), "bob")
    exported = str(privacy.data_of(people["alice"]))
    assert ("192.0.2.1" in exported, "192.0.2.2" in exported) == (True, False)
    assert testing.PASSWORD not in exported
