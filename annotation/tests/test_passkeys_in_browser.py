"""Passkeys in Chromium, with its virtual authenticator."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
from allauth.mfa.models import Authenticator
from django.contrib.sessions.models import Session
from django.test import Client
from django.urls import reverse
from playwright.sync_api import expect

from annotation.tests import testing
from annotation.tests.in_browser import VIOLATIONS, complaints_of

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def people(tmp_path):
    return testing.cast(testing.submission(tmp_path / "package", trajectories=1))


@pytest.fixture
def security_key(page):
    """A security key of the browser: it answers by itself, as if somebody touched it."""
    session = page.context.new_cdp_session(page)
    session.send("WebAuthn.enable")
    options = {"protocol": "ctap2", "transport": "internal", "hasResidentKey": True, "hasUserVerification": True}
    options |= {"isUserVerified": True, "automaticPresenceSimulation": True}
    made = session.send("WebAuthn.addVirtualAuthenticator", {"options": options})
    return session, made["authenticatorId"]


def enter_password(page, live_server):
    page.goto(live_server.url + reverse("sign-in"))
    page.get_by_label("Username").fill("alice")
    page.get_by_label("Password").fill(testing.PASSWORD)
    page.get_by_role("button", name="Sign in").click()


def add_passkey(page, live_server):
    enter_password(page, live_server)
    page.goto(live_server.url + reverse("second-factor"))
    page.get_by_label("Name of the passkey").fill("Laptop")
    page.get_by_role("button", name="Add passkey").click()
    expect(page.get_by_role("heading", name="Recovery codes")).to_be_visible()
    page.get_by_role("link", name="Continue").click()
    page.get_by_role("button", name="Sign out").click()


def test_a_passkey_is_added_and_then_signs_in(page, live_server, people, security_key):
    page.add_init_script(VIOLATIONS)
    complaints = complaints_of(page)
    add_passkey(page, live_server)
    enter_password(page, live_server)
    page.get_by_role("button", name="Use passkey").click()

    expect(page.get_by_role("link", name="alice")).to_be_visible()
    assert Authenticator.objects.get(type="webauthn").last_used_at
    assert not [each for each in complaints if "policy" in each]


def test_a_browser_without_the_passkey_says_what_to_do(page, live_server, people, security_key):
    add_passkey(page, live_server)
    session, key = security_key
    session.send("WebAuthn.clearCredentials", {"authenticatorId": key})
    enter_password(page, live_server)
    page.get_by_role("button", name="Use passkey").click()
    expect(page.get_by_role("status").filter(has_text="The browser returned no passkey")).to_be_visible()


def test_at_an_ip_address_the_sign_in_names_the_address_at_which_the_passkey_works(
    page, live_server, people, security_key
):
    add_passkey(page, live_server)
    at_ip_address = SimpleNamespace(url=live_server.url.replace("localhost", "127.0.0.1"))
    enter_password(page, at_ip_address)
    expect(page.get_by_text(f"Open this site at {live_server.url} and sign in again.")).to_be_visible()
    expect(page.get_by_role("button", name="Use passkey")).to_have_count(0)


def test_a_signed_answer_works_once_and_not_for_another_challenge(page, live_server, people, security_key):
    """Somebody who has the password and has recorded an answer of the passkey gets in with neither."""
    add_passkey(page, live_server)
    enter_password(page, live_server)
    with page.expect_request(lambda request: request.method == "POST") as sent:
        page.get_by_role("button", name="Use passkey").click()
    recorded = sent.value.post_data_json["credential"]
    expect(page.get_by_role("link", name="alice")).to_be_visible()

    other = Client()
    other.post(reverse("sign-in"), {"username": "alice", "password": testing.PASSWORD})
    forged = json.loads(recorded)
    forged["response"]["signature"] = "AAAA"
    for answer in (recorded, json.dumps(forged), "{", "[]", '"x"', "{}", json.dumps({"response": {}})):
        other.get(reverse("mfa_authenticate"))
        assert other.post(reverse("mfa_authenticate"), {"credential": answer}).status_code == 400
    assert "_auth_user_id" not in Session.objects.get(pk=other.session.session_key).get_decoded()
