"""A freeze takes the catalogue as it was at one moment, whoever is editing tasks and key points at that moment."""

import threading
from contextlib import contextmanager

import pytest
from django.db import connection, transaction
from django.utils import timezone

from annotation import catalogue, workflow
from annotation.models import Event, KeyPoint
from annotation.models.events import digest
from annotation.tests import testing
from annotation.tests.test_concurrency import connections_that_wait
from annotation.workflow.facts import catalogue_facts
from config.tests.waiting import wait_until

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def submission(tmp_path, settings):
    """Everything has its final verdict, and nobody has frozen it."""
    settings.MEDIA_ROOT = tmp_path / "images"
    made = testing.submission(tmp_path / "package", trajectories=1)
    people = testing.cast(made)
    testing.label_all(people, made, {})
    workflow.draw_spot_checks(people["mira"], made)
    testing.adjudicate_all(people["carol"], made)
    return made


def stating(task):
    catalogue.add_key_points(task, ["It is in stock."])


def accepting(task):
    catalogue.accept_key_point(KeyPoint.objects.get(task=task, accepted_at=None))


def retiring(task):
    catalogue.retire_key_point(KeyPoint.objects.filter(task=task, accepted_at__isnull=False).first())


def importing(task):
    tasks = [testing.task(0, key_points=["It is blue."]), testing.task(7)]
    report = catalogue.import_tasks(testing.as_json(tasks).encode(), "tasks.json", benchmark_slug=task.benchmark.slug)
    assert not report.rejected


VERBS = [stating, accepting, retiring, importing]


@contextmanager
def freezing(submission, before):
    """Let somebody else freeze once ``before`` is true of a statement of ours; go on when they have, or wait."""
    mira, outcome = testing.person("mira"), []

    def freeze():
        try:
            outcome.append(workflow.freeze(mira, submission))
        except Exception as error:
            outcome.append(error)
        finally:
            connection.close()

    other = threading.Thread(target=freeze)

    def statement(execute, sql, params, many, context):
        if other.ident is None and before(sql):
            other.start()
            wait_until(lambda: outcome or waits(), "the freeze is done, or waits")
        return execute(sql, params, many, context)

    with connection.execute_wrapper(statement):
        yield
    other.join(timeout=60)
    assert outcome
    assert not isinstance(outcome[0], Exception), outcome[0]


def waits():
    """Whether the other one waits for a lock of ours. SQLite tells nobody: there it does while we write."""
    if connection.vendor == "postgresql":
        return connections_that_wait() > 0
    return connection.in_atomic_block


def assert_the_freeze_has_the_catalogue(submission):
    submission.refresh_from_db()
    told = Event.objects.get(submission=submission, kind="frozen").payload["catalogue"]
    assert told == digest(catalogue_facts(submission.benchmark, submission.frozen_at))


def begins(sql):
    """The first statement that waits for others: of SQLite the transaction, of PostgreSQL a lock or a change."""
    return sql.startswith(("BEGIN", "UPDATE")) or " FOR " in sql


@pytest.mark.parametrize("verb", VERBS)
def test_a_freeze_just_before_is_before(submission, verb):
    task = submission.trajectories.get().task
    catalogue.propose_key_point(task, "It is in stock.", testing.person("alice"))
    with freezing(submission, begins):
        verb(task)
    assert_the_freeze_has_the_catalogue(submission)


@pytest.mark.parametrize("verb", VERBS)
def test_a_freeze_before_the_commit_waits_for_it(submission, verb):
    task = submission.trajectories.get().task
    catalogue.propose_key_point(task, "It is in stock.", testing.person("alice"))
    with freezing(submission, lambda sql: sql == "SELECT 'the end'"), transaction.atomic():
        verb(task)
        with connection.cursor() as cursor:
            cursor.execute("SELECT 'the end'")
    assert_the_freeze_has_the_catalogue(submission)


def test_key_points_of_an_import_are_from_its_end(db):
    """Nobody can see them before, so no label that was made meanwhile lacks a finding about them."""
    written = []

    def statement(execute, sql, params, many, context):
        if sql.startswith('INSERT INTO "annotation_keypoint"'):
            written.append(timezone.now())
        return execute(sql, params, many, context)

    with connection.execute_wrapper(statement):
        testing.benchmark(3)
    assert written
    assert KeyPoint.objects.count() == 6
    assert not KeyPoint.objects.filter(accepted_at__lt=written[-1]).exists()


def test_proposals_that_an_import_settles_are_settled_at_its_end(db):
    task = testing.benchmark(1).tasks.get()
    proposal = catalogue.propose_key_point(task, "It is blue.", testing.person("alice"))
    importing(task)
    proposal.refresh_from_db()
    assert proposal.retired_at == KeyPoint.objects.get(text="It is blue.", accepted_at__isnull=False).accepted_at
