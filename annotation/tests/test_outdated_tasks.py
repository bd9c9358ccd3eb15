"""A task that changed or was replaced after the import is marked on the page of its trajectory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from annotation import ingest
from annotation.models import Person, Submission
from annotation.tests import testing

CHANGED = "the latest is version 2"
REPLACED = "The benchmark has replaced this task by task_0000_120125"


def page_of(submission: Submission, people: dict[str, Person]) -> str:
    return fetch(reverse("submission-trajectory", args=[submission.trajectories.earliest("position").pk]), people)


def matrix_of(submission: Submission, people: dict[str, Person]) -> str:
    return fetch(reverse("submission-tasks", args=[submission.pk]), people)


def fetch(address: str, people: dict[str, Person]) -> str:
    client = Client()
    client.force_login(people["mira"])
    response = client.get(address)
    assert response.status_code == 200
    return response.content.decode()


@pytest.mark.parametrize(
    ("change", "says"),
    [({"confirmed_task": "Find any laptop."}, CHANGED), ({"task_id": "task_0000_120125"}, REPLACED)],
)
def test_trajectory_is_marked_when_its_task_changes(
    submission: Submission, people: dict[str, Person], change: dict[str, str], says: str
) -> None:
    assert "Outdated" not in page_of(submission, people) + matrix_of(submission, people)
    testing.benchmark(1, **change)
    page = page_of(submission, people)
    assert '<span class="chip warn">Outdated</span>' in page
    assert says in page
    assert matrix_of(submission, people).count('<span class="chip warn">Outdated</span>') == 1


def test_trajectory_is_not_marked_when_another_task_is_added(submission: Submission, people: dict[str, Person]) -> None:
    testing.benchmark(1, task_id="task_00001")
    assert "Outdated" not in page_of(submission, people) + matrix_of(submission, people)


def test_mark_is_shown_once_when_the_import_warned(
    submission: Submission, people: dict[str, Person], tmp_path: Path, settings: Any
) -> None:
    shops = testing.benchmark(1, task_id="task_0000_120125")
    package = testing.write_submission(tmp_path / "outdated", 1)
    _, imported = ingest.import_submission(package, benchmark=shops, agent_name="Late", maintainer=people["mira"])
    assert imported is not None
    [warning] = imported.trajectories.get().warnings
    assert warning["code"] == "task_replaced"
    page = page_of(imported, people)
    aside = page[page.index('<aside class="side"') : page.index("</aside>")]
    assert aside.count(REPLACED) == 1
    matrix = matrix_of(imported, people)
    assert (matrix.count(">Outdated<"), matrix.count("1 warning")) == (1, 0)
