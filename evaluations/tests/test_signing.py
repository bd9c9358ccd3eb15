"""The keys of an instance: one at a time, sealed, retired and never forgotten."""

from __future__ import annotations

import hashlib
import json
import logging
import threading
import zipfile
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from django.contrib import admin
from django.core.management import call_command
from django.db import transaction
from django.test import Client
from django.urls import reverse

from annotation.models import Event, Person, Submission
from annotation.models.events import first_broken
from annotation.tests.test_concurrency import at_once, connections_that_wait
from annotation.workflow.passwords import record_account_change
from config.tests.waiting import wait_until
from evaluations import signing
from evaluations.evidence import writing
from evaluations.models import SigningKey
from evaluations.verifier.signature import verify

pytestmark = pytest.mark.django_db
OLD, NEW = "the former secret key of this instance", "the present secret key of this instance"


def instance_events() -> list[tuple[str, dict[str, Any]]]:
    events = list(Event.objects.filter(submission=None))
    assert first_broken(events) is None
    return [(event.kind, event.payload) for event in events]


def test_a_key_is_made_when_it_is_first_needed_and_then_stays() -> None:
    key = signing.active_key()
    assert signing.active_key() == key
    assert SigningKey.objects.count() == 1
    assert key.key_id == hashlib.sha256(bytes.fromhex(key.public)).hexdigest()[:16]
    assert instance_events() == [("signing_key_made", {"key_id": key.key_id, "public_key": key.public})]


def test_a_signature_is_one_of_the_published_key() -> None:
    key, signature = signing.sign(b"a manifest")
    Ed25519PublicKey.from_public_bytes(bytes.fromhex(key.public)).verify(signature, b"a manifest")
    assert verify(bytes.fromhex(key.public), b"a manifest", signature)
    assert not verify(bytes.fromhex(key.public), b"another one", signature)


@pytest.mark.django_db(transaction=True)
def test_processes_that_need_a_key_at_once_get_the_same_one() -> None:
    keys = at_once(8, lambda number: signing.active_key().key_id)
    assert set(keys) == {SigningKey.objects.get().key_id}
    assert [kind for kind, _ in instance_events()] == ["signing_key_made"]


@pytest.mark.django_db(transaction=True)
def test_rotations_at_once_leave_one_active_key_and_a_whole_chain() -> None:
    signing.active_key()
    made = at_once(4, lambda number: signing.rotate().key_id)
    assert sorted(made) == sorted(key.key_id for key in SigningKey.objects.order_by("pk")[1:])
    assert SigningKey.objects.filter(retired_at=None).count() == 1
    kinds = [kind for kind, _ in instance_events()]
    assert kinds == ["signing_key_made"] + ["signing_key_retired", "signing_key_made"] * 4


@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("change", [signing.active_key, signing.rotate])
def test_other_events_of_the_instance_wait_for_those_of_the_keys(change: Callable[[], SigningKey]) -> None:
    operator = Person.objects.create_superuser("root")
    meeting = threading.Barrier(2, timeout=30)

    def act(number: int) -> None:
        with transaction.atomic():
            if number == 1:
                meeting.wait()
                record_account_change(operator, operator, ["email"])
            else:
                change()
                meeting.wait()
                wait_until(lambda: connections_that_wait() == 1, "the other event waits")

    assert at_once(2, act) == [None, None]
    assert [kind for kind, _ in instance_events()] == ["signing_key_made", "account_changed"]


def test_a_retired_key_signs_nothing_more_and_stays_published() -> None:
    old, signature = signing.sign(b"a manifest")
    new = signing.rotate()
    assert signing.sign(b"a manifest")[0] == new != old
    first, second = signing.published()["keys"]
    assert (first["key_id"], second["key_id"]) == (old.key_id, new.key_id)
    assert (first["retired_at"] is None, second["retired_at"]) == (False, None)
    assert verify(bytes.fromhex(first["public_key"]), b"a manifest", signature)


def test_without_the_secret_key_nothing_is_signed_until_a_new_key_is_made(settings: Any) -> None:
    settings.SECRET_KEY = OLD
    old = signing.active_key()
    settings.SECRET_KEY = NEW
    with pytest.raises(signing.KeyClosed, match="rotate_signing_key") as caught:
        signing.sign(b"a manifest")
    assert old.key_id in str(caught.value)
    new = signing.rotate()
    assert signing.sign(b"a manifest")[0] == new


def test_a_key_under_a_former_secret_key_is_sealed_under_the_present_one(settings: Any) -> None:
    settings.SECRET_KEY = OLD
    key = signing.active_key()
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = NEW, ["something else", OLD]
    assert signing.sign(b"a manifest")[0] == key
    settings.SECRET_KEY_FALLBACKS = []
    signed, signature = signing.sign(b"a manifest")
    assert signed == key
    assert verify(bytes.fromhex(key.public), b"a manifest", signature)


def test_a_sealed_key_cannot_be_put_under_the_name_of_another() -> None:
    first, second = signing.active_key(), signing.rotate()
    SigningKey.objects.filter(pk=second.pk).update(sealed=first.sealed)
    with pytest.raises(signing.KeyClosed):
        signing.sign(b"a manifest")


def test_the_private_key_is_shown_nowhere(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    private = Ed25519PrivateKey.from_private_bytes(b"12345678901234567890123456789012")
    monkeypatch.setattr(Ed25519PrivateKey, "generate", lambda: private)
    with caplog.at_level(logging.DEBUG):
        key = signing.sign(b"a manifest")[0]
    shown = json.dumps([signing.published(), instance_events(), key.sealed, repr(key), str(key), caplog.text])
    for spelling in ("1234567890123456", private.private_bytes_raw().hex()[:16], "MTIzNDU2Nzg5MDEyMzQ1"):
        assert spelling not in shown
    assert key.sealed not in json.dumps(signing.published())
    assert SigningKey not in admin.site._registry


def test_everybody_can_fetch_the_keys_and_keep_them_for_a_while() -> None:
    key = signing.active_key()
    answer = Client().get("/.well-known/webverdict-keys.json")
    assert answer.status_code == 200
    assert answer["Content-Type"] == "application/json"
    assert answer["Cache-Control"] == "public, max-age=300"
    assert "Set-Cookie" not in answer
    (published,) = answer.json()["keys"]
    assert set(published) == {"key_id", "algorithm", "public_key", "created_at", "retired_at"}
    assert (published["key_id"], published["algorithm"]) == (key.key_id, "Ed25519")
    assert (published["public_key"], published["retired_at"]) == (key.public, None)


def test_fetching_the_keys_makes_none() -> None:
    assert Client().get("/.well-known/webverdict-keys.json").json() == {"keys": []}
    assert Client().post(reverse("signing-keys")).status_code == 405
    assert not SigningKey.objects.exists()
    assert instance_events() == []


def test_a_key_can_be_made_and_published_before_anything_is_signed() -> None:
    call_command("rotate_signing_key", stdout=StringIO())
    (published,) = Client().get("/.well-known/webverdict-keys.json").json()["keys"]
    assert signing.sign(b"a manifest")[0].key_id == published["key_id"]
    assert [kind for kind, _ in instance_events()] == ["signing_key_made"]


@pytest.mark.django_db(transaction=True)
def test_two_first_bundles_at_once_are_signed_by_one_key(frozen: Submission, tmp_path: Path) -> None:
    def exported(number: int) -> str:
        path = tmp_path / f"{number}.zip"
        writing.write(writing.prepare(frozen), path)
        with zipfile.ZipFile(path) as package:
            return str(json.loads(package.read("SIGNATURE.json"))["key_id"])

    assert set(at_once(2, exported)) == {SigningKey.objects.get().key_id}
    assert [kind for kind, _ in instance_events()] == ["signing_key_made"]


def test_the_keys_are_the_same_whoever_asks(people: dict[str, Person]) -> None:
    signing.active_key()
    said = set()
    for name in (None, "alice", "carol", "mira", "dave"):
        client = Client()
        if name is not None:
            client.force_login(people[name])
        said.add(client.get(reverse("signing-keys")).content)
    assert len(said) == 1


def test_the_command_says_which_key_it_made_and_which_it_retired_and_where_they_are_published() -> None:
    first = StringIO()
    call_command("rotate_signing_key", stdout=first)
    assert "retired" not in first.getvalue()
    old, out = signing.active_key(), StringIO()
    call_command("rotate_signing_key", stdout=out)
    made, retired, published = out.getvalue().splitlines()
    assert made.split()[:2] == ["made", f"{signing.active_key().key_id},"]
    assert retired.split()[:2] == ["retired", f"{old.key_id}:"]
    assert "/.well-known/webverdict-keys.json" in published
    assert signing.active_key() != old
