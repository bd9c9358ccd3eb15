"""Auditors at the same instant as others who need the same rows: neither waits for the other for ever."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.db import OperationalError, connection

from annotation import workflow
from annotation.models import Event, Membership, Person, Submission
from annotation.tests import testing
from annotation.tests.test_concurrency import at_once, connections_that_wait, just_before
from annotation.workflow import Conflict
from config.tests.waiting import wait_until
from evaluations.auditing import actions
from evaluations.auditing.importing import open_bundle
from evaluations.models import Audit
from evaluations.tests.audited import auditor

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("store")]


@pytest.fixture
def audit(bundles: dict[str, Path]) -> Audit:
    return open_bundle(bundles["files"], auditor())


def locks_one_submission(sql: str) -> bool:
    """And not several, as the samples of a submission are locked."""
    return 'FROM "annotation_submission"' in sql and "FOR NO KEY UPDATE OF" in sql


def may_read(audit: Audit, person: Person) -> bool:
    return Membership.objects.filter(submission=audit.submission_id, person=person, role="auditor").exists()


@pytest.mark.postgresql
def test_an_erasure_of_who_drew_the_sample_and_a_new_auditor_do_not_wait_for_each_other(audit: Audit) -> None:
    bea, dora = auditor("bea"), testing.person("dora")
    actions.add_auditor(auditor(), audit, bea)
    sample = actions.draw(audit, bea, 1)
    told = Event.objects.filter(submission=audit.submission_id).count()
    held = threading.Barrier(2, timeout=30)

    def until_the_erasure_waits() -> None:
        held.wait()  # the sample is held, the audited submission not yet
        wait_until(lambda: connections_that_wait() == 1, "the erasure waits for the sample")

    def act(number: int) -> Membership | Person:
        if number == 0:
            with just_before(locks_one_submission, until_the_erasure_waits):
                return actions.add_auditor(auditor(), audit, dora)
        held.wait()
        return workflow.erase(None, bea, "She asked for it.", accept_unmaintained=True)

    added, erased = at_once(2, act)

    assert isinstance(added, Membership), added
    assert isinstance(erased, Person), erased
    assert may_read(audit, dora)
    assert Membership.objects.get(submission=sample, person=bea).deactivated_at is not None
    assert Event.objects.filter(submission=audit.submission_id).count() == told


def impatiently(act: Callable[[], Any]) -> Any:
    """What ``act`` gives or raises on a connection of its own, which waits for no lock."""

    def alone(number: int) -> Any:
        with connection.cursor() as cursor:
            cursor.execute("SET lock_timeout = '200ms'")
        return act()

    return at_once(1, alone)[0]


def let_in(sample: Submission) -> Membership:
    return workflow.add_member(auditor(), sample, auditor("bea"), Membership.Role.ANNOTATOR)


@pytest.mark.postgresql
def test_no_sample_of_the_same_trajectories_is_drawn_while_a_bundle_is_opened(
    audit: Audit, bundles: dict[str, Path]
) -> None:
    """Its annotators would be asked of a part that nobody sees yet."""
    drawn: list[Any] = []

    def also(new: Audit) -> None:
        drawn.append(impatiently(lambda: actions.draw(audit, auditor(), 1)))

    open_bundle(bundles["digests"], auditor("bea"), on_opened=also)

    assert isinstance(drawn[0], OperationalError), drawn
    with pytest.raises(Conflict, match="could have read"):
        let_in(actions.draw(audit, auditor(), 1))


@pytest.mark.postgresql
def test_nobody_joins_a_sample_that_was_drawn_when_the_others_were_locked(
    audit: Audit, bundles: dict[str, Path]
) -> None:
    joined: list[Any] = []

    def also(new: Audit) -> None:
        joined.append(impatiently(lambda: let_in(Submission.objects.get(sample_of=audit.submission_id))))

    # By then the samples are locked, and what they are drawn of is not.
    with just_before(locks_one_submission, lambda: impatiently(lambda: actions.draw(audit, auditor(), 1))):
        open_bundle(bundles["digests"], auditor("bea"), on_opened=also)

    assert isinstance(joined[0], OperationalError), joined
    with pytest.raises(Conflict, match="could have read"):
        let_in(Submission.objects.get(sample_of=audit.submission_id))
