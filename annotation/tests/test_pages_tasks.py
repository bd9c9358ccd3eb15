"""The maintainer's pages of a benchmark: its tasks and their key points."""

from __future__ import annotations

import json

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from annotation.catalogue import propose_key_point
from annotation.models import Benchmark, KeyPoint, Person, Task
from annotation.tests import testing


@pytest.fixture
def mira(client: Client, people: dict[str, Person]) -> Client:
    client.force_login(people["mira"])
    return client


def test_key_points_are_pasted_accepted_and_retired(mira: Client, people: dict[str, Person]) -> None:
    task = Task.objects.order_by("pk").first()
    proposed = propose_key_point(task, "free delivery", people["alice"])
    pasted = {"key_points": "- in the cart\n\n• in the cart\nunder $500\n"}

    mira.post(reverse("add-key-points", args=[task.pk]), pasted)
    mira.post(reverse("accept-key-point", args=[proposed.pk]))
    mira.post(reverse("retire-key-point", args=[task.key_points.get(text="under $500").pk]))

    asked = KeyPoint.objects.filter(task=task, accepted_at__isnull=False, retired_at__isnull=True)
    assert {p.text for p in asked} == {"at least 16 GB", "cheapest by sorting", "in the cart", "free delivery"}
    page = mira.get(reverse("task", args=["shops", task.external_id])).content.decode()
    assert "Retired (1)" in page
    assert mira.post(reverse("add-key-points", args=[task.pk]), {"key_points": "x" * 501}).status_code == 400


def test_accepting_a_key_point_settles_the_same_proposal_of_another(mira: Client, people: dict[str, Person]) -> None:
    task = Task.objects.order_by("pk").first()
    first, second = (propose_key_point(task, "free delivery", people[name]) for name in ("alice", "bob"))

    mira.post(reverse("accept-key-point", args=[second.pk]))
    mira.post(reverse("accept-key-point", args=[first.pk]))

    asked = KeyPoint.objects.filter(text="free delivery", accepted_at__isnull=False, retired_at__isnull=True)
    assert asked.get() == second
    assert propose_key_point(task, "free delivery", people["chen"]) is None


def test_a_nul_character_in_a_search_is_refused(mira: Client, people: dict[str, Person]) -> None:
    assert mira.get("/benchmarks/shops?q=%00").status_code == 400
    assert mira.get("/benchmarks/shops/tasks/%00").status_code == 400


def test_tasks_are_imported_and_a_bad_file_is_explained(mira: Client) -> None:
    good = SimpleUploadedFile("tasks.json", json.dumps([testing.task(9)]).encode())
    page = mira.post(reverse("import-tasks"), {"name": "Shops", "tasks": good}, follow=True).content.decode()
    assert "1 task read, 0 of them changed" in page
    assert Benchmark.objects.count() == 1

    bad = mira.post(reverse("import-tasks"), {"name": "Shops", "tasks": SimpleUploadedFile("tasks.json", b"{")})
    assert bad.status_code == 400
    assert 'href="#id_tasks"' in bad.content.decode()


def test_a_damaged_file_of_rows_is_named_as_it_was_sent(mira: Client) -> None:
    rows = SimpleUploadedFile("train-\n00.parquet", b"PAR1" + b"x" * 20)
    page = mira.post(reverse("import-tasks"), {"name": "Shops", "tasks": rows}).content.decode()
    assert "00.parquet: cannot be read as a parquet file" in page
    assert "webverdict-" not in page


def test_tasks_are_searched(mira: Client) -> None:
    page = mira.get(reverse("benchmark", args=["shops"]), {"q": "shop 1"}).content.decode()

    assert "task_0001" in page
    assert "task_0000" not in page


@pytest.mark.parametrize(("person", "status"), [("alice", 404), ("carol", 404), ("mira", 200), ("dave", 404)])
def test_a_benchmark_is_for_maintainers(client: Client, people: dict[str, Person], person: str, status: int) -> None:
    client.force_login(people[person])
    task = Task.objects.first()

    assert client.get(reverse("benchmark", args=["shops"])).status_code == status
    assert client.get(reverse("task", args=["shops", task.external_id])).status_code == status
    assert client.post(reverse("add-key-points", args=[task.pk]), {"key_points": "x"}).status_code in (302, status)
    assert KeyPoint.objects.filter(text="x").exists() is (person == "mira")
