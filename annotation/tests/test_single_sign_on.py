"""Single sign-on at a real provider: who gets which account, and what is never believed."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from allauth.socialaccount.models import SocialAccount
from django.contrib.auth import get_user
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client
from django.urls import reverse

from annotation import openid_connect, privacy, sign_ins, workflow
from annotation.models import Event, Person
from annotation.tests import oidc, testing

pytestmark = pytest.mark.django_db
PASSWORD = "a long walk home"


@pytest.fixture
def provider(settings, monkeypatch):
    for name in ("READ_SECONDS", "TOTAL_SECONDS"):  # a busy machine needs more than a person would wait for
        monkeypatch.setattr(openid_connect, name, 60.0)
    with oidc.running_provider() as running:
        oidc.use(settings, running.issuer)
        yield running


def user_of(client):
    class Holder:
        session = client.session

    return get_user(Holder())


def link(person, provider, sub="sub-1"):
    return SocialAccount.objects.create(user=person, provider=provider.issuer, uid=sub)


def invitation(people, submission):
    client = Client()
    client.force_login(people["mira"])
    form = {"new-username": "erin", "new-email": "erin@people.example", "new-role": "annotator"}
    return client.post(reverse("invite", args=[submission.pk]), form).context["link"]


def accept(client, provider, address, sub):
    """Open an invitation and accept it at the provider."""
    page = client.get(address, follow=True)
    to_provider = client.post(page.request["PATH_INFO"], {"provider": "1"})
    return client.get(provider.authorise(to_provider.context["address"], sub))


# --- accounts ---------------------------------------------------------------------------------------------------------


def test_a_linked_identity_signs_in_and_returns_to_the_page_that_was_wanted(client, people, provider):
    link(people["alice"], provider)

    answer = oidc.sign_in(client, provider, "sub-1", reverse("account"))

    assert answer["Location"] == reverse("account")
    assert user_of(client) == people["alice"]
    assert "this browser" in client.get(reverse("account")).content.decode()


def test_a_sign_in_where_another_person_is_signed_in_ends_that_session(client, people, provider):
    link(people["alice"], provider)
    client.force_login(people["bob"])
    session = client.session
    session["draft"] = "of bob"
    session.save()

    oidc.sign_in(client, provider, "sub-1")

    assert user_of(client) == people["alice"]
    assert "draft" not in client.session
    assert sign_ins.sessions_of(people["bob"].pk) == []


def test_the_way_back_never_leads_to_another_site(client, people, provider):
    link(people["alice"], provider)
    assert oidc.sign_in(client, provider, "sub-1", "https://evil.example/")["Location"] == "/"


def test_a_stranger_gets_no_account_even_with_the_name_and_address_of_somebody(client, people, provider):
    provider.set_claims("x", preferred_username="alice", email="alice@people.example", email_verified=True)
    before = Person.objects.count()

    answer = oidc.sign_in(client, provider, "x")

    assert answer.status_code == 403
    assert "No account here" in answer.content.decode()
    assert (Person.objects.count(), SocialAccount.objects.count()) == (before, 0)
    assert not user_of(client).is_authenticated


def test_an_invitation_is_bound_to_the_identity_that_accepts_it(client, people, submission, provider):
    address = invitation(people, submission)

    answer = accept(client, provider, address, "erin-there")

    assert answer["Location"] == "/"
    assert user_of(client).username == "erin"
    assert "does not work any more" in Client().get(address, follow=True).content.decode()
    again = Client()
    oidc.sign_in(again, provider, "erin-there")
    assert user_of(again).username == "erin"
    assert oidc.sign_in(Client(), provider, "mallory").status_code == 403


def test_an_invitation_that_two_people_opened_goes_to_the_first(people, submission, provider):
    address = invitation(people, submission)
    clients, callbacks = [Client(), Client()], []
    for number, client in enumerate(clients):
        page = client.get(address, follow=True)
        to_provider = client.post(page.request["PATH_INFO"], {"provider": "1"})
        callbacks.append(provider.authorise(to_provider.context["address"], f"sub-{number}"))

    assert clients[0].get(callbacks[0]).status_code == 302
    answer = clients[1].get(callbacks[1])

    assert answer.status_code == 403
    assert "This invitation does not work any more" in answer.content.decode()
    assert SocialAccount.objects.get(user__username="erin").uid == "sub-0"


def test_a_link_for_a_new_password_links_no_identity(client, people, submission, provider):
    operator = Person.objects.create_superuser("root", password=PASSWORD)
    maker = Client()
    maker.force_login(operator)
    alice = people["alice"]
    Person.objects.filter(pk=alice.pk).update(last_login="2026-01-01T00:00Z")
    address = maker.post(reverse("invite-again", args=[submission.pk, alice.pk])).context["link"]
    page = client.get(address, follow=True)

    assert "Join with" not in page.content.decode()
    client.post(page.request["PATH_INFO"], {"provider": "1"})
    assert not SocialAccount.objects.exists()


def test_a_signed_in_person_links_an_identity_with_the_own_password_only(client, people, provider):
    people["alice"].set_password(PASSWORD)
    people["alice"].save()
    client.force_login(people["alice"])

    wrong = client.post(reverse("link-identity"), {"password": "not the password"})
    assert (wrong.status_code, SocialAccount.objects.count()) == (400, 0)
    page = client.post(reverse("link-identity"), {"password": PASSWORD})
    answer = client.get(provider.authorise(page.context["address"], "alice-there"))

    assert answer["Location"] == reverse("account")
    assert SocialAccount.objects.get(uid="alice-there").user == people["alice"]
    assert user_of(client) == people["alice"]


def test_an_identity_of_somebody_else_is_never_linked_a_second_time(client, people, submission, provider):
    link(people["bob"], provider, "bob-there")

    answer = accept(client, provider, invitation(people, submission), "bob-there")

    assert answer.status_code == 403
    assert "belongs to another account" in answer.content.decode()
    assert SocialAccount.objects.get().user == people["bob"]
    assert not user_of(client).is_authenticated


def test_a_started_link_ends_with_the_session_that_started_it(client, people, provider):
    people["alice"].set_password(PASSWORD)
    people["alice"].save()
    client.force_login(people["alice"])
    page = client.post(reverse("link-identity"), {"password": PASSWORD})
    callback = provider.authorise(page.context["address"], "x")

    assert Client().get(callback).status_code == 400  # another browser has no such state
    client.post(reverse("sign-out"))
    assert client.get(callback).status_code == 400
    assert not SocialAccount.objects.exists()


def test_a_closed_account_is_not_opened(client, people, provider):
    link(people["alice"], provider)
    Person.objects.filter(pk=people["alice"].pk).update(is_active=False)

    answer = oidc.sign_in(client, provider, "sub-1")

    assert (answer.status_code, user_of(client).is_authenticated) == (403, False)
    assert "closed" in answer.content.decode()


def test_the_same_subject_of_another_issuer_is_another_identity(client, people, provider):
    SocialAccount.objects.create(user=people["alice"], provider="https://former.example", uid="sub-1")
    assert oidc.sign_in(client, provider, "sub-1").status_code == 403


@pytest.mark.django_db(transaction=True)
def test_two_invited_people_with_one_identity_at_once_get_one_account(tmp_path, provider):
    submission = testing.submission(tmp_path / "package", trajectories=1)
    people = testing.cast(submission)
    callbacks, clients, both = [], [Client(), Client()], threading.Barrier(2)
    for number, client in enumerate(clients):
        maker = Client()
        maker.force_login(people["mira"])
        form = {"new-username": f"new-{number}", "new-email": "", "new-role": "annotator"}
        address = maker.post(reverse("invite", args=[submission.pk]), form).context["link"]
        page = client.get(address, follow=True)
        to_provider = client.post(page.request["PATH_INFO"], {"provider": "1"})
        callbacks.append(provider.authorise(to_provider.context["address"], "one"))

    def meet(reply):
        both.wait(10)
        return reply

    def call_back(number):
        try:
            return clients[number].get(callbacks[number]).status_code
        finally:
            connection.close()

    provider.falsify["/userinfo"] = meet
    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(call_back, range(2))) == [302, 403]
    assert SocialAccount.objects.count() == 1


# --- groups -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def groups(settings):
    settings.OIDC_OPERATOR_GROUP, settings.OIDC_MAINTAINER_GROUP = "admins", "leads"


def test_groups_give_and_take_rights_at_each_sign_in_and_the_change_is_recorded(client, people, provider, groups):
    Person.objects.create_superuser("root")
    link(people["mira"], provider)
    seen = []
    for given in (["admins", "leads"], ["leads"], []):
        provider.set_claims("sub-1", groups=given)
        oidc.sign_in(Client(), provider, "sub-1")
        row = Person.objects.get(username="mira")
        seen.append((row.is_superuser, row.is_staff))

    assert seen == [(True, True), (False, True), (False, False)]
    events = Event.objects.filter(submission=None, kind="account_changed").order_by("sequence")
    assert [event.payload["fields"] for event in events] == [["is_superuser"], ["is_superuser"], ["is_staff"]]


def test_without_a_group_in_the_settings_rights_stay_as_they_are(client, people, provider):
    link(people["mira"], provider)
    provider.set_claims("sub-1", groups=[])
    oidc.sign_in(client, provider, "sub-1")
    assert Person.objects.get(username="mira").is_staff


def test_the_last_operator_stays_one(client, people, provider, groups):
    Person.objects.filter(username="mira").update(is_superuser=True)
    link(people["mira"], provider)
    oidc.sign_in(client, provider, "sub-1")
    assert Person.objects.get(username="mira").is_superuser


def test_a_stranger_in_a_mapped_group_gets_an_account_of_their_own(client, people, provider, groups):
    provider.set_claims(
        "new", groups=["leads"], preferred_username="ALICE", email="alice@people.example", email_verified=False
    )

    oidc.sign_in(client, provider, "new")

    person = user_of(client)
    assert (person.username, person.email, person.is_staff, person.is_superuser) == ("ALICE-2", "", True, False)
    assert not person.has_usable_password()
    assert Person.objects.get(username="alice").last_login is None


@pytest.mark.parametrize(("verified", "saved"), [(True, "n@people.example"), ("false", ""), (None, "")])
def test_only_a_verified_address_is_saved(client, provider, groups, verified, saved):
    provider.set_claims("n", groups="leads", email="n@people.example", email_verified=verified)
    oidc.sign_in(client, provider, "n")
    assert user_of(client).email == saved


# --- without passwords, without a provider ----------------------------------------------------------------------------


def test_without_a_provider_its_pages_do_not_exist(client, people):
    assert "sign-in/provider" not in client.get(reverse("sign-in")).content.decode()
    assert client.post(reverse("provider-sign-in")).status_code == 404
    assert client.get(reverse("provider-callback")).status_code == 404
    client.force_login(people["alice"])
    assert client.post(reverse("link-identity")).status_code == 404


def test_passwords_that_are_off_open_nothing(client, people, submission, provider, settings):
    settings.LOCAL_SIGN_IN = False
    people["alice"].set_password(PASSWORD)
    people["alice"].save()
    page = client.get(reverse("sign-in")).content.decode()
    assert "Sign in with Example Login" in page
    assert "password" not in page

    assert client.post(reverse("sign-in"), {"username": "alice", "password": PASSWORD}).status_code == 403
    opened = client.get(invitation(people, submission), follow=True)
    new = {"new_password1": PASSWORD, "new_password2": PASSWORD}
    assert client.post(opened.request["PATH_INFO"], new).status_code == 403
    assert not Person.objects.get(username="erin").has_usable_password()
    client.force_login(people["alice"])
    assert client.post(reverse("password"), {"old_password": PASSWORD} | new).status_code == 403


def test_an_operator_signs_in_once_with_the_link_of_the_command(client, provider, settings, capsys):
    settings.LOCAL_SIGN_IN = False
    root = Person.objects.create_superuser("root")
    call_command("sign_in_link", "root")
    path = capsys.readouterr().out.strip()

    assert client.get(path).status_code == 200  # a preview of the link does not use it up
    assert not user_of(client).is_authenticated
    client.post(path)
    assert user_of(client) == root
    assert Client().post(path).status_code == 403


@pytest.mark.parametrize("token", ["", "1", "1:x:y", "99999999999999999999:x:y", "x:y:z"])
def test_a_forged_link_signs_nobody_in(client, token):
    Person.objects.create_superuser("root")
    assert client.post(f"/sign-in/once/{token}").status_code in (403, 404)


def test_the_command_refuses_people_who_are_no_operators(people):
    with pytest.raises(CommandError, match="not an active operator"):
        call_command("sign_in_link", "alice")


# --- data of people ---------------------------------------------------------------------------------------------------


def test_an_identity_is_exported_and_erased(people, provider):
    link(people["alice"], provider, "alice-there")
    assert "alice-there" in str(privacy.data_of(people["alice"]))
    workflow.erase(people["alice"], people["alice"], "at their own request")
    assert not SocialAccount.objects.exists()


def test_a_person_without_a_password_erases_the_account_soon_after_a_sign_in(client, people, provider):
    people["dave"].set_unusable_password()
    people["dave"].save()
    link(people["dave"], provider)
    client.force_login(people["dave"])
    assert client.post(reverse("erase-account")).status_code == 400
    oidc.sign_in(client, provider, "sub-1")
    assert client.post(reverse("erase-account"))["Location"] == reverse("sign-in")
    assert Person.objects.get(pk=people["dave"].pk).erased_at
