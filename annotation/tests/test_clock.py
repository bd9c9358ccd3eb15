"""Leases, take-overs and heartbeats use the database's clock, not the clock of the process."""

from contextlib import closing
from datetime import timedelta

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.signals import request_started
from django.db import connection, connections
from django.utils import timezone

from annotation import arrivals, clock, store_checks, workflow
from annotation.models import Assignment, Membership, Trajectory, Upload
from annotation.tests import testing
from annotation.workflow import Conflict

HOURS = timedelta(hours=3)


@pytest.fixture
def submission(tmp_path):
    return testing.submission(tmp_path / "package", trajectories=2)


@pytest.fixture
def people(submission):
    return testing.cast(submission)


@pytest.fixture
def runs_ahead(monkeypatch):
    """Sets the clock of this process ahead, or back."""
    real = timezone.now

    def set_ahead(by):
        monkeypatch.setattr(timezone, "now", lambda: real() + by)

    return set_ahead


@pytest.mark.django_db
def test_the_time_costs_no_query_of_a_page(django_assert_num_queries):
    with django_assert_num_queries(0):
        assert abs(clock.now() - timezone.now()) < timedelta(minutes=1)


@pytest.mark.postgresql
@pytest.mark.django_db
@pytest.mark.parametrize("by", [HOURS, -HOURS])
def test_the_time_is_that_of_the_database(runs_ahead, by):
    runs_ahead(by)
    assert abs(timezone.now() - clock.now()) > timedelta(hours=2)


@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
def test_first_question_after_a_restart_of_the_database_is_answered(monkeypatch):
    monkeypatch.setattr(clock, "_last", None)
    connection.ensure_connection()
    lost = connection.connection.info.backend_pid
    with closing(connections.create_connection("default")) as other, other.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(%s, 5000)", [lost])
    request_started.send(sender=None)  # as each request and each job begins: lost connections are noticed from here on
    assert abs(clock.now() - timezone.now()) < timedelta(minutes=1)


@pytest.mark.postgresql
@pytest.mark.django_db
def test_worker_with_a_fast_clock_returns_no_running_lease(submission, people, runs_ahead):
    workflow.claim(people["alice"], submission)
    runs_ahead(HOURS)
    assert workflow.return_expired_leases(submission) == 0
    assert Assignment.objects.count() == 1


@pytest.mark.postgresql
@pytest.mark.django_db
def test_lease_given_by_a_process_with_a_slow_clock_runs(submission, people, runs_ahead):
    runs_ahead(-HOURS)
    given = workflow.claim(people["alice"], submission)
    runs_ahead(timedelta())
    assert workflow.return_expired_leases(submission) == 0
    assert workflow.claim(people["alice"], submission).pk == given.pk


@pytest.mark.postgresql
@pytest.mark.django_db
def test_adjudication_is_not_taken_over_early_by_a_process_with_a_fast_clock(submission, people, runs_ahead):
    testing.label_all(people, submission, {"task_0000": [0, 1, 1], "task_0001": [1, 1, 1]})
    disputed = Trajectory.objects.get(submission=submission, task__external_id="task_0000")
    workflow.open_adjudication(people["carol"], disputed)
    other = testing.person("erin")
    workflow.add_member(people["mira"], submission, other, Membership.Role.ADJUDICATOR)
    runs_ahead(HOURS * 2)
    with pytest.raises(Conflict, match="Another adjudicator"):
        workflow.open_adjudication(other, disputed)


@pytest.mark.postgresql
@pytest.mark.django_db
def test_upload_in_work_is_not_taken_by_a_worker_with_a_fast_clock(people, runs_ahead):
    testing.receive_upload(
        people["mira"],
        benchmark=testing.benchmark(1, slug="other"),
        agent="Agent",
        file=SimpleUploadedFile("p.zip", b"PK"),
    )
    runs_ahead(HOURS)
    (upload,) = Upload.objects.all()
    assert arrivals.find_waiting(Upload) == []  # its message is on its way
    runs_ahead(timedelta())
    assert arrivals.claim(Upload, str(upload.pk)) is not None
    runs_ahead(HOURS)
    assert arrivals.find_waiting(Upload) == []
    assert arrivals.claim(Upload, str(upload.pk)) is None


@pytest.mark.postgresql
@pytest.mark.django_db
def test_check_of_the_store_is_not_taken_by_a_worker_with_a_fast_clock(runs_ahead):
    check = store_checks.start()
    assert store_checks.take(check)
    runs_ahead(HOURS)
    assert not store_checks.take(check)
