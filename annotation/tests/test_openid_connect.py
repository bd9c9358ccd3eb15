"""The exchange with the provider: what is never believed, what is requested how often, and what a failure does."""

# ruff: noqa: F811 - a fixture of another module

from __future__ import annotations

import base64
import hashlib
import json
import socket
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import jwt
import pytest
from allauth.socialaccount.models import SocialToken
from django.db import connection
from django.test import Client
from django.urls import reverse

from annotation import openid_connect, single_sign_on
from annotation.tests import oidc, testing
from annotation.tests.test_single_sign_on import link, provider, user_of  # noqa: F401

pytestmark = pytest.mark.django_db


def test_state_nonce_and_pkce_are_sent_and_random(client, provider):
    first, second = (oidc.parameters(oidc.start(client)) for _ in range(2))
    for name in ("state", "nonce", "code_challenge"):
        assert first[name] != second[name]
    assert (first["code_challenge_method"], first["response_type"]) == ("S256", "code")


def test_the_code_verifier_is_sent_with_the_code(client, people, provider):
    link(people["alice"], provider)
    address = oidc.start(client)
    client.get(provider.authorise(address, "sub-1"))
    [sent] = [values for path, values in provider.requests if path == "/oauth2/token"]
    digest = hashlib.sha256(sent["code_verifier"].encode()).digest()
    expected = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
    assert oidc.parameters(address)["code_challenge"] == expected


FORGED = {
    "nonce": {"nonce": "another"},
    "no nonce": {"nonce": None},
    "issuer": {"iss": "https://evil.example"},
    "audience": {"aud": "another client"},
    "authorised party": {"azp": "another client"},
    "expired": {"exp": oidc.ago(60)},
    "no expiry": {"exp": None},
    "no subject": {"sub": None},
    "subject of another type": {"sub": {"a": 1}},
    "another subject than the user information": {"sub": "sub-2"},
    "key": {"key": oidc.STRANGE_KEY},
    "unknown key id": {"header": {"kid": "strange"}},
    "shared secret": {"key": "a secret of the client, long enough for HS256", "algorithm": "HS256"},
    "no signature": {"key": "", "algorithm": "none"},
}


@pytest.mark.parametrize("forged", FORGED.values(), ids=FORGED)
def test_a_forged_token_signs_nobody_in(client, people, provider, forged):
    link(people["alice"], provider)
    provider.resign(**forged)

    answer = oidc.sign_in(client, provider, "sub-1")

    assert answer.status_code == 400
    assert "could not be verified" in answer.content.decode()
    assert not user_of(client).is_authenticated


def test_the_token_that_is_only_signed_again_is_accepted(client, people, provider):
    """Otherwise the forged ones might fail because of their signature."""
    link(people["alice"], provider)
    provider.resign()
    oidc.sign_in(client, provider, "sub-1")
    assert user_of(client) == people["alice"]


GARBAGE = {
    "/.well-known/openid-configuration": ["[]", "<html>", '"x"', (500, "{}"), (302, "{}"), '{"issuer": 5}'],
    "/oauth2/token": ["", "[]", '{"access_token": 5}', "{", (400, '{"error": "x"}'), (500, "")],
    "/jwks": ["[]", '{"keys": 5}', '{"keys": [{}]}', (404, ""), "x" * (openid_connect.MOST_BYTES + 1)],
    "/userinfo": ["[]", "{}", '{"sub": 5}', (401, "{}"), "\x00"],
}


@pytest.mark.parametrize(("path", "reply"), [(path, reply) for path, replies in GARBAGE.items() for reply in replies])
def test_garbage_of_the_provider_gets_a_page_that_says_what_to_do(client, people, provider, path, reply):
    link(people["alice"], provider)
    callback = provider.authorise(oidc.start(client), "sub-1")
    openid_connect._documents.clear()
    provider.falsify[path] = lambda _: reply

    answer = client.get(callback)

    assert answer.status_code in (400, 503)
    assert "again" in answer.content.decode()
    assert not user_of(client).is_authenticated


# --- documents and threads --------------------------------------------------------------------------------------------


def asked_for(provider):
    return Counter(path for path, _ in provider.requests)


def test_discovery_and_keys_are_requested_once_for_many_sign_ins_and_again_later(people, provider, monkeypatch):
    link(people["alice"], provider)
    for seconds, times in ((600.0, 1), (-1.0, 3)):
        monkeypatch.setattr(openid_connect, "DOCUMENT_SECONDS", seconds)
        oidc.sign_in(client := Client(), provider, "sub-1")
        oidc.sign_in(client := Client(), provider, "sub-1")
        assert user_of(client) == people["alice"]
        counted = asked_for(provider)
        assert counted["/jwks"] == times
    # Without stored documents, each sign-in begins and ends with the discovery document.
    assert counted["/.well-known/openid-configuration"] == 1 + 2 * 2


@pytest.mark.parametrize("kid", ["new", None])
def test_a_new_key_of_the_provider_is_requested_once(people, provider, kid):
    link(people["alice"], provider)
    oidc.sign_in(Client(), provider, "sub-1")
    new = oidc.STRANGE_KEY
    public = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(new.public_key())) | {"kid": "new", "alg": "RS256"}
    provider.falsify["/jwks"] = lambda reply: {"keys": [public]}
    provider.resign(key=new, header={"kid": kid})
    for client in (Client(), Client()):
        oidc.sign_in(client, provider, "sub-1")
        assert user_of(client) == people["alice"]

    assert asked_for(provider)["/jwks"] == 2
    provider.resign(header={"kid": kid and "strange"})
    assert oidc.sign_in(Client(), provider, "sub-1").status_code == 400
    assert asked_for(provider)["/jwks"] == 3


@pytest.mark.parametrize("path", ["/.well-known/openid-configuration", "/jwks"])
def test_a_provider_whose_documents_fail_signs_in_with_the_stored_ones(client, people, provider, path):
    link(people["alice"], provider)
    oidc.sign_in(Client(), provider, "sub-1")
    provider.falsify[path] = lambda _: (500, "{}")
    oidc.sign_in(client, provider, "sub-1")
    assert user_of(client) == people["alice"]


@pytest.mark.parametrize("path", ["/.well-known/openid-configuration", "/jwks"])
def test_a_document_that_is_not_usable_is_not_stored(client, people, provider, path):
    link(people["alice"], provider)
    callback = provider.authorise(oidc.start(client), "sub-1")
    openid_connect._documents.clear()
    provider.falsify[path] = lambda _: {"issuer": provider.issuer, "keys": []}
    assert client.get(callback).status_code == 400
    del provider.falsify[path]
    oidc.sign_in(client, provider, "sub-1")
    assert user_of(client) == people["alice"]


@pytest.mark.django_db(transaction=True)
def test_a_provider_that_hangs_occupies_two_threads_at_most(tmp_path, provider, monkeypatch):
    people = testing.cast(testing.submission(tmp_path / "package", trajectories=1))
    link(people["alice"], provider)
    clients = [Client() for _ in range(3)]
    callbacks = [provider.authorise(oidc.start(client), "sub-1") for client in clients]
    both, released = threading.Barrier(3), threading.Event()

    def hang(reply):
        if not released.is_set():
            both.wait(50)
            assert released.wait(50)
        return reply

    def call_back(number):
        try:
            return clients[number].get(callbacks[number]).status_code
        finally:
            connection.close()

    provider.falsify["/oauth2/token"] = hang
    monkeypatch.setattr(single_sign_on, "PATIENCE", 0.01)
    with ThreadPoolExecutor(2) as pool:
        first = [pool.submit(call_back, number) for number in range(2)]
        both.wait(50)  # both wait for the provider
        try:
            answer = clients[2].get(callbacks[2])
            assert answer.status_code == clients[2].post(reverse("provider-sign-in")).status_code == 503
            assert "No answer from Example Login" in answer.content.decode()
        finally:
            released.set()
        assert [each.result() for each in first] == [302, 302]
    assert asked_for(provider)["/oauth2/token"] == 2
    assert oidc.sign_in(Client(), provider, "sub-1").status_code == 302  # the places are free again


@pytest.mark.parametrize("query", ["", "?state=x&code=y", "?error=server_error", "?code=" + "y" * 3000, "?state=%00"])
def test_a_callback_that_nobody_started_is_refused(client, provider, query):
    assert client.get(reverse("provider-callback") + query).status_code == 400


def test_tokens_of_the_provider_are_saved_nowhere(client, people, provider):
    link(people["alice"], provider)
    replies = []
    provider.falsify["/oauth2/token"] = lambda reply: replies.append(reply) or reply
    oidc.sign_in(client, provider, "sub-1")
    assert user_of(client) == people["alice"]
    assert SocialToken.objects.count() == 0
    shown = client.get(reverse("account")).content.decode() + str(dict(client.session.items())) + str(client.cookies)
    for name in ("access_token", "id_token"):
        assert replies[0][name] not in shown


def test_a_callback_works_once(client, people, provider):
    link(people["alice"], provider)
    callback = provider.authorise(oidc.start(client), "sub-1")
    assert client.get(callback).status_code == 302
    client.logout()
    assert client.get(callback).status_code == 400


def test_a_person_who_cancels_is_back_at_the_sign_in_page(client, provider):
    state = oidc.parameters(oidc.start(client))["state"]
    answer = client.get(reverse("provider-callback"), {"error": "access_denied", "state": state})
    assert answer["Location"] == reverse("sign-in")


def test_a_provider_that_is_down_gets_a_page(client, settings):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    oidc.use(settings, f"http://127.0.0.1:{port}")
    answer = client.post(reverse("provider-sign-in"))
    assert (answer.status_code, "No answer from" in answer.content.decode()) == (503, True)


@pytest.mark.parametrize("sent", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{"])
def test_a_provider_that_falls_silent_is_given_up(client, settings, monkeypatch, sent):
    monkeypatch.setattr(openid_connect, "READ_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as server:
        held = []

        def serve():
            held.append(server.accept()[0])
            held[0].recv(4096)
            held[0].sendall(sent)

        thread = threading.Thread(target=serve)
        thread.start()
        oidc.use(settings, f"http://127.0.0.1:{server.getsockname()[1]}")
        answer = client.post(reverse("provider-sign-in"))
        thread.join()
        held[0].close()
    assert answer.status_code == 503


def test_a_provider_that_trickles_is_given_up(client, settings, monkeypatch, provider):
    monkeypatch.setattr(openid_connect, "TOTAL_SECONDS", -1.0)
    assert client.post(reverse("provider-sign-in")).status_code == 503
