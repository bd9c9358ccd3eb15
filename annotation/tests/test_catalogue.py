"""Tasks and key points: what maintainers state, what annotators propose, and how the two meet."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from annotation import catalogue, workflow
from annotation.models import Agent, KeyPoint, Submission, Task
from annotation.tests import testing

pytestmark = pytest.mark.django_db
STATED = ["at least 16 GB", "cheapest by sorting"]


@pytest.fixture
def task(db):
    testing.benchmark(1)
    return Task.objects.get()


def current(task):
    rows = task.key_points.filter(accepted_at__isnull=False, retired_at__isnull=True).order_by("position")
    return list(rows.values_list("text", flat=True))


def proposals(task):
    return list(task.key_points.filter(accepted_at=None, retired_at=None).values_list("text", flat=True))


def test_a_key_point_that_somebody_has_proposed_can_be_stated_and_settles_the_proposal(task):
    for name in ("alice", "bob"):
        catalogue.propose_key_point(task, "It is in stock.", testing.person(name))
    catalogue.propose_key_point(task, "It is blue.", testing.person("bob"))
    (made,) = catalogue.add_key_points(task, ["It is in stock."])
    assert made.accepted_at is not None
    assert current(task) == [*STATED, "It is in stock."]
    assert proposals(task) == ["It is blue."]


def test_a_task_file_states_what_somebody_has_proposed(task):
    catalogue.propose_key_point(task, "It is in stock.", testing.person("alice"))
    testing.benchmark(1, key_points=[*STATED, "It is in stock."])
    assert Task.objects.count() == 1
    assert current(task) == [*STATED, "It is in stock."]
    assert proposals(task) == []


def test_what_the_task_has_is_not_added_again(task):
    assert catalogue.add_key_points(task, [STATED[0], f" {STATED[1]} ", "", "New.", "New."]) != []
    assert current(task) == [*STATED, "New."]
    assert catalogue.add_key_points(task, ["New."]) == []


def test_what_was_retired_can_be_stated_anew(task):
    catalogue.retire_key_point(KeyPoint.objects.get(text=STATED[0]))
    catalogue.add_key_points(task, [STATED[0]])
    assert current(task) == [STATED[1], STATED[0]]
    assert KeyPoint.objects.filter(text=STATED[0]).count() == 2


def test_task_import_reports_a_misspelt_key_as_a_warning(db):
    data = b'[{"task_id": "t1", "confirmed_task": "do it", "levl": "easy"}]'
    report = catalogue.import_tasks(data, "tasks.json", benchmark_slug="shops")

    assert report.accepted == ["t1"]
    assert [(task_id, problem.code) for task_id, problem in report.warnings] == [("t1", "unknown_property")]


@pytest.mark.parametrize("staff", [True, False])
def test_the_list_of_benchmarks_costs_the_same_for_two_and_for_twelve(client, django_assert_num_queries, staff):
    person, agent = testing.person("mira", is_staff=staff), Agent.objects.create(name="Agent")
    client.force_login(person)

    def benchmarks(numbers):
        for number in numbers:
            shops = testing.benchmark(1, slug=f"shops{number}")
            if not staff:
                workflow.join_as_maintainer(
                    Submission.objects.create(benchmark=shops, agent=agent, digest=f"{number}"), person
                )

    benchmarks(range(2))
    client.get(reverse("benchmarks"))  # what is asked for once only
    with CaptureQueriesContext(connection) as asked:
        assert len(client.get(reverse("benchmarks")).context["rows"]) == 2
    benchmarks(range(2, 12))
    with django_assert_num_queries(len(asked)):
        assert len(client.get(reverse("benchmarks")).context["rows"]) == 12
