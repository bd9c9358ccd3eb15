"""Pages name tasks by their text, counts agree with their nouns, and no page shows values as Python writes them."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from annotation import workflow
from annotation.formats.printable import counted
from annotation.models import Event, Person, Submission
from annotation.screenshots import ScreenshotError, inspect
from annotation.tests import testing
from annotation.views.maintainer import _format_value

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("number", "noun", "says"),
    [(0, ("step",), "0 steps"), (1, ("step",), "1 step"), (1200, ("trajectory", "trajectories"), "1,200 trajectories")],
)
def test_count_agrees_with_its_noun(number: int, noun: tuple[str, ...], says: str) -> None:
    assert counted(number, *noun) == says


def test_desk_and_its_messages_name_the_task_by_its_text(
    client: Client, people: dict[str, Person], submission: Submission
) -> None:
    held = workflow.claim(people["alice"], submission).trajectory
    client.force_login(people["alice"])
    page = client.get(reverse("trajectory", args=[held.pk])).content.decode()
    assert f"<title>{held.task.short_text} " in page

    client.post(reverse("release", args=[held.pk]), {"reason": "I know the shop."})
    page = client.get(reverse("work", args=[submission.pk])).content.decode()
    assert f'Trajectory declined: <bdi class="agent">{held.task.short_text}</bdi>' in page
    assert f"{held.task.external_id} is given back" not in page


def test_short_text_is_one_line_of_at_most_70_characters(submission: Submission) -> None:
    task = submission.trajectories.first().task
    task.text = "Find\n" + "a lamp " * 50
    assert task.short_text.startswith("Find a lamp a lamp")
    assert len(task.short_text) <= 70
    assert "\n" not in task.short_text


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (None, "none"),
        (True, "yes"),
        ({"1": 8}, "1: 8"),
        ({"a": None, "b": [1, False]}, "a: none, b: 1, no"),
        ({}, "none"),
        ([], "none"),
        (["x", 2.5], "x, 2.5"),
        ("text", "text"),
    ],
)
def test_values_of_events_are_written_as_people_write_them(value: Any, says: str) -> None:
    assert _format_value(value) == says


def test_events_page_shows_no_values_of_python(
    client: Client, people: dict[str, Person], submission: Submission
) -> None:
    testing.label_all(people, submission, {})
    workflow.draw_spot_checks(people["carol"], submission)
    client.force_login(people["mira"])
    page = client.get(reverse("events", args=[submission.pk])).content.decode()

    assert any(
        isinstance(each, dict | list)
        for payload in Event.objects.values_list("payload", flat=True)
        for each in payload.values()
    )
    for shown in ("None", "True", "False", "{&#x27;", "[&#x27;", "[]"):
        assert f">{shown}" not in page, shown


def test_damaged_image_is_described_by_a_sentence() -> None:
    with pytest.raises(ScreenshotError) as refused:
        inspect(b"no image")
    assert not refused.value.problem.message.endswith("?")
