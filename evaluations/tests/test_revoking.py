"""An operator revokes bundles and keys for ever; everybody can fetch the signed list, and verify.py acts on it."""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import PermissionDenied
from django.db import DatabaseError, transaction
from django.test import Client
from django.urls import reverse

from annotation import clock
from annotation.models import Event, Person
from annotation.models.events import first_broken
from annotation.workflow import Conflict, Incomplete
from evaluations import revoking, signing
from evaluations.evidence import writing
from evaluations.models import SigningKey
from evaluations.tests.hand_made_bundle import sha256
from evaluations.tests.test_export_commands import run
from evaluations.verifier.main import main
from evaluations.verifier.revocations import Revocations, parse_revocations

pytestmark = pytest.mark.django_db
ADDRESS = "/.well-known/webverdict-revocations.json"
ONE, OTHER = "ab" * 32, "cd" * 32
REASON = "A judge was paid."


@pytest.fixture
def root(db: Any) -> Person:
    return Person.objects.create_superuser("root")


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch) -> Callable[[datetime], None]:
    return lambda now: monkeypatch.setattr(clock, "now", lambda: now)


def listed() -> dict[str, Any]:
    answer = Client().get(ADDRESS)
    assert answer.status_code == 200
    return parse_revocations(answer.content.decode())


def accepted(document: dict[str, Any]) -> bool:
    return Revocations([document], signing.published()["keys"]).faults == []


def test_list_has_entries_in_their_order_and_a_valid_signature(root: Person) -> None:
    revoking.revoke_bundle(root, f" {OTHER.upper()} ", f" {REASON} ")
    revoking.revoke_bundle(root, ONE, "Task 4 changed.", superseded_by=OTHER)
    document = listed()
    assert [(each["manifest"], each["superseded_by"], each["reason"]) for each in document["bundles"]] == [
        (OTHER, None, REASON),
        (ONE, OTHER, "Task 4 changed."),
    ]
    assert document["keys"] == []
    assert accepted(document)
    assert not accepted(document | {"bundles": document["bundles"][:1]})
    assert first_broken(Event.objects.filter(submission=None)) is None
    assert set(Event.objects.filter(kind="bundle_revoked").values_list("actor", flat=True)) == {root.pk}


def test_entries_can_neither_be_changed_nor_deleted(root: Person) -> None:
    revoking.revoke_bundle(root, ONE, REASON)
    entries = Event.objects.filter(kind="bundle_revoked")
    for change in (entries.delete, lambda: entries.update(payload={})):
        with pytest.raises(DatabaseError), transaction.atomic():
            change()
    assert len(listed()["bundles"]) == 1


@pytest.mark.parametrize(
    ("manifest", "reason", "superseded_by", "where"),
    [
        ("ab", REASON, "", "manifest"),
        (ONE, " ", "", "reason"),
        (ONE, "x" * 2001, "", "reason"),
        (ONE, REASON, "none", "superseded_by"),
        (ONE, REASON, ONE, "superseded_by"),
    ],
)
def test_malformed_entry_is_refused(root: Person, manifest: str, reason: str, superseded_by: str, where: str) -> None:
    with pytest.raises(Incomplete) as caught:
        revoking.revoke_bundle(root, manifest, reason, superseded_by)
    assert [problem.where for problem in caught.value.problems] == [where]
    assert not Event.objects.filter(kind="bundle_revoked").exists()


def test_only_operators_revoke_bundles_and_none_twice(root: Person, people: dict[str, Person]) -> None:
    for name in ("mira", "alice"):
        with pytest.raises(PermissionDenied):
            revoking.revoke_bundle(people[name], ONE, REASON)
    revoking.revoke_bundle(root, ONE, REASON)
    with pytest.raises(Conflict, match="already in the list"):
        revoking.revoke_bundle(root, ONE, REASON)
    revoking.revoke_bundle(root, ONE, "Another reason.")
    assert len(listed()["bundles"]) == 2


# --- keys ------------------------------------------------------------------------------------------------------------


def test_revoking_the_active_key_replaces_it_and_the_new_one_signs_the_list() -> None:
    old, since = signing.active_key(), clock.now()
    new = revoking.revoke_key(old.key_id, since, "A laptop was stolen.")
    assert new is not None
    assert signing.active_key() == new != old
    document = listed()
    assert (document["key_id"], document["keys"][0]["public_key"]) == (new.key_id, old.public)
    assert accepted(document)
    assert SigningKey.objects.get(pk=old.pk).retired_at is not None


def test_revoking_a_retired_key_keeps_the_active_one() -> None:
    old, new = signing.active_key(), signing.rotate()
    assert revoking.revoke_key(old.key_id, old.created_at, REASON) is None
    assert signing.active_key() == new


def test_revoked_key_can_only_be_revoked_from_an_earlier_time_on() -> None:
    key, now = signing.active_key(), clock.now()
    revoking.revoke_key(key.key_id, now, REASON)
    with pytest.raises(Conflict, match="already revoked with effect from"):
        revoking.revoke_key(key.key_id, now, REASON)
    revoking.revoke_key(key.key_id, now - timedelta(days=1), REASON)
    assert [entry["since"] for entry in listed()["keys"]] == sorted(
        [entry["since"] for entry in listed()["keys"]], reverse=True
    )


def test_unknown_key_and_future_time_are_refused_and_nothing_changes() -> None:
    key = signing.active_key()
    for key_id, since, where in (
        ("0" * 16, clock.now(), "key_id"),
        (key.key_id, datetime(2999, 1, 1, tzinfo=UTC), "since"),
    ):
        with pytest.raises(Incomplete) as caught:
            revoking.revoke_key(key_id, since, REASON)
        assert [problem.where for problem in caught.value.problems] == [where]
    assert signing.active_key() == key


# --- the address -----------------------------------------------------------------------------------------------------


def test_list_is_the_same_for_everybody_and_cacheable(root: Person, people: dict[str, Person]) -> None:
    revoking.revoke_bundle(root, ONE, REASON)
    answers = []
    for person in (None, people["alice"], root):
        client = Client()
        if person is not None:
            client.force_login(person)
        answers.append(client.get(reverse("revocations")))
    assert len({answer.content for answer in answers}) == 1
    assert answers[0]["Content-Type"] == "application/json"
    assert answers[0]["Cache-Control"] == "public, max-age=300"
    assert "Set-Cookie" not in answers[0]
    again = Client().get(ADDRESS, headers={"If-None-Match": answers[0]["ETag"]})
    assert (again.status_code, again.content) == (304, b"")
    revoking.revoke_bundle(root, OTHER, REASON)
    assert Client().get(ADDRESS, headers={"If-None-Match": answers[0]["ETag"]}).status_code == 200


def test_list_is_dated_to_the_hour_and_never_before_its_entries(root: Person, at: Callable[..., None]) -> None:
    at(datetime(2026, 5, 1, 10, 40, tzinfo=UTC))
    revoking.revoke_bundle(root, ONE, REASON)
    assert listed()["at"] == "2026-05-01T10:40:00.000000+00:00"
    at(datetime(2026, 5, 1, 13, 10, 9, tzinfo=UTC))
    first = listed()
    assert first["at"] == "2026-05-01T13:00:00.000000+00:00"
    at(datetime(2026, 5, 1, 13, 59, 59, tzinfo=UTC))
    assert listed() == first


def test_fetching_makes_no_key() -> None:
    answer = Client().get(ADDRESS)
    assert (answer.status_code, answer.json()) == (404, {"detail": "This instance has not signed anything yet."})
    assert Client().post(ADDRESS).status_code == 405
    assert not SigningKey.objects.exists()


def test_list_that_cannot_be_signed_is_an_error_without_details(settings: Any) -> None:
    key = signing.active_key()
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = "another secret key of this instance", []
    answer = Client().get(ADDRESS)
    assert answer.status_code == 503
    assert key.key_id not in answer.content.decode()
    assert "public" not in answer.get("Cache-Control", "")


def test_list_is_read_with_few_queries(root: Person, django_assert_max_num_queries: Any) -> None:
    for number in range(20):
        revoking.revoke_bundle(root, f"{number:064}", REASON)
    with django_assert_max_num_queries(2):
        assert len(listed()["bundles"]) == 20


# --- commands and checks ---------------------------------------------------------------------------------------------


@pytest.fixture
def exported(frozen: Any, tmp_path: Path) -> Path:
    path = tmp_path / "bundle.zip"
    writing.write(writing.prepare(frozen), path)
    return path


def manifest_of(path: Path) -> str:
    with zipfile.ZipFile(path) as package:
        return sha256(package.read("MANIFEST.json"))


def test_revoked_bundle_fails_for_everybody_who_fetches_the_list(
    root: Person, exported: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "revocations.json"
    path.write_bytes(Client().get(ADDRESS).content)
    assert main([str(exported), "--revocations", str(path)]) == 0
    assert "PASS  revocations " in capsys.readouterr().out

    out, err, code = run("revoke_bundle", manifest_of(exported), "--reason", REASON, "--as", "root")
    assert (err, code) == ("", 0)
    assert out.startswith(f"Listed at {ADDRESS} of this instance.\n")
    assert "does not store manifests" in out
    path.write_bytes(Client().get(ADDRESS).content)
    assert main([str(exported), "--revocations", str(path)]) == 1
    assert re.search(r"^FAIL  revocations +The submitter revoked this bundle", capsys.readouterr().out, re.M)
    out, err, code = run("verify_evidence", exported)
    assert code == 1
    assert "These checks failed: revocations." in err


def test_command_revokes_a_key_and_its_bundles_fail(exported: Path) -> None:
    key = signing.active_key()
    since = (clock.now() - timedelta(days=1)).isoformat()
    out, err, code = run("revoke_signing_key", key.key_id, "--since", since, "--reason", "It leaked.")
    assert (err, code) == ("", 0)
    assert [line.split()[:2] for line in out.splitlines()[:2]] == [
        ["revoked", key.key_id],
        ["made", f"{signing.active_key().key_id},"],
    ]
    out, err, code = run("verify_evidence", exported)
    assert (code, "revocations" in err) == (1, True)
    published = json.dumps(signing.published())
    out, err, code = run("verify_evidence", exported, "--keys", published)
    assert code == 0, "without the list nobody knows"


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["revoke_bundle", "x", "--reason", "y", "--as", "root"], 2, "is not a manifest: 64 hex digits"),
        (["revoke_bundle", ONE, "--reason", "y", "--as", "mira"], 1, "Only an operator"),
        (["revoke_bundle", ONE, "--reason", "y", "--as", "nobody"], 2, "nobody is not an active person"),
        (["revoke_signing_key", "0" * 16, "--since", "2026-01-01T00:00Z", "--reason", "y"], 2, "no key 0000"),
        (["revoke_signing_key", "0" * 16, "--since", "2026-01-01", "--reason", "y"], 2, "a time with its zone"),
        (["revoke_signing_key", "0" * 16, "--since", "then", "--reason", "y"], 2, "a time with its zone"),
    ],
)
def test_commands_state_what_is_wrong(
    arguments: list[str], code: int, says: str, root: Person, people: dict[str, Person]
) -> None:
    out, err, found = run(*arguments)
    assert (out, found) == ("", code)
    assert says in err
