"""Passwords set by other people: a bundle with such events verifies and lists them."""

from __future__ import annotations

from pathlib import Path

from annotation.models import Person, Submission
from annotation.workflow import passwords
from evaluations import signing
from evaluations.evidence.writing import prepare, write
from evaluations.tests.checks import check
from evaluations.tests.finished import finish
from evaluations.tests.tampered import hand_made
from evaluations.verifier.findings import Result


def test_claims_accept_the_events_and_list_a_set_password() -> None:
    tampered = hand_made()
    added = tampered.event("member_added", member="A2")
    tampered.add(added, "password_set", "", member="A2", way="link")
    tampered.add(added, "password_link_created", "", member="A2")

    assert tampered.failed() == {}
    assert "1 password set by another person than its owner: A2 at " in tampered.exceptions()
    assert "(link, event " in tampered.exceptions()


def test_member_cannot_be_the_actor_of_such_an_event() -> None:
    tampered = hand_made()
    added = tampered.event("member_added", member="A2")
    tampered.add(added, "password_set", "M1", member="A2", way="link")

    assert "is password_set by M1" in tampered.failed()["roles"]


def test_such_an_event_cannot_happen_while_the_submission_is_frozen() -> None:
    tampered = hand_made()
    frozen = tampered.event("frozen")
    tampered.add(frozen, "password_set", "", member="A2", way="command")

    assert "password_set" in tampered.failed()["frozen"]


def test_bundle_of_a_review_with_a_set_password_verifies(
    submission: Submission, people: dict[str, Person], tmp_path: Path
) -> None:
    root = Person.objects.create_superuser("root", password="a long walk home")
    passwords.create_link_token(root, people["alice"])
    people["alice"].set_password("a long walk home")
    people["alice"].save()
    finish(people, submission, {"task_0000": [1, 0, 2]})

    write(prepare(submission), tmp_path / "bundle.zip")
    findings = {found.name: found for found in check(str(tmp_path / "bundle.zip"), signing.published())}

    assert [name for name, found in findings.items() if found.result is Result.FAIL] == []
    assert "password set by another person" in findings["exceptions"].says
