"""Boxes on screenshots: what is accepted, stored, recorded and shown."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from annotation import catalogue, workflow
from annotation.label_fields import LABEL_FIELDS, LabelContent
from annotation.models import Event, Label, Person, Submission, Trajectory
from annotation.models.events import digest
from annotation.records import Box, Verdict
from annotation.tests import testing
from annotation.tests.shared_rows import shared_rows
from annotation.workflow.facts import label_facts

PROOF = Box("at least 16 GB", 1, 10, 20, 30, 40)
FAILED = Box(None, 2, 0, 0, 320, 200)


@shared_rows
def held(people: dict[str, Person], submission: Submission) -> Trajectory:
    return workflow.claim(people["alice"], submission).trajectory


def submit(people: dict[str, Person], held: Trajectory, *boxes: Box, verdict: int = Verdict.FAILURE) -> Label:
    return workflow.submit(people["alice"], held, testing.content(held, verdict, boxes=boxes))


def codes(people: dict[str, Person], held: Trajectory, *boxes: Box) -> list[str]:
    with pytest.raises(workflow.Incomplete) as refused:
        submit(people, held, *boxes)
    return [problem.code for problem in refused.value.problems]


def test_a_label_keeps_its_boxes_in_pixels_and_its_event_holds_them(
    people: dict[str, Person], held: Trajectory
) -> None:
    label = submit(people, held, FAILED, PROOF)

    assert label.boxes == [
        {"key_point": "at least 16 GB", "step": 1, "box": [10, 20, 30, 40]},
        {"key_point": None, "step": 2, "box": [0, 0, 320, 200]},
    ]
    facts = label_facts(label)
    assert facts["boxes"] == label.boxes
    assert Event.objects.filter(kind="label_submitted").last().payload["label"] == digest(facts)
    without = digest({name: value for name, value in facts.items() if name != "boxes"})
    assert without != digest(facts)


def test_a_label_without_boxes_has_the_facts_of_earlier_versions(people: dict[str, Person], held: Trajectory) -> None:
    assert "boxes" not in label_facts(submit(people, held))


def test_a_success_keeps_no_box_of_a_failure(people: dict[str, Person], held: Trajectory) -> None:
    label = submit(people, held, FAILED, PROOF, verdict=Verdict.SUCCESS)

    assert [box["key_point"] for box in label.boxes] == ["at least 16 GB"]


@pytest.mark.parametrize(
    ("box", "code"),
    [
        (Box("at least 16 GB", 1, 300, 20, 21, 40), "box_outside"),
        (Box("at least 16 GB", 1, 0, 170, 10, 31), "box_outside"),
        (Box("another key point", 1, 0, 0, 10, 10), "box_unknown"),
        (Box(None, 3, 0, 0, 10, 10), "box_step_unknown"),
    ],
)
def test_a_box_needs_a_key_point_of_the_task_and_a_place_on_the_screenshot(
    people: dict[str, Person], held: Trajectory, box: Box, code: str
) -> None:
    assert code in codes(people, held, box)
    assert not Label.objects.exists()


def test_a_step_without_a_screenshot_takes_no_box(people: dict[str, Person], held: Trajectory) -> None:
    held.steps.filter(index=1).update(screenshot=None)

    assert codes(people, held, PROOF) == ["box_outside"]


def test_a_key_point_has_one_box() -> None:
    content = LabelContent(boxes=(PROOF, PROOF))

    assert [problem.code for problem in LABEL_FIELDS["boxes"].problems(content, 3)] == ["box_twice"]


@pytest.mark.parametrize(
    "text",
    [
        "[",
        "7",
        "[7]",
        '[{"step": 0, "box": [0, 0, 1, 1]}]',
        '[{"key_point": 3, "step": 0, "box": [0, 0, 1, 1]}]',
        '[{"key_point": null, "step": 0, "box": [0, 0, 1]}]',
        '[{"key_point": null, "step": 0, "box": [0, 0, 1, 1, 1]}]',
        '[{"key_point": null, "step": 0, "box": [0, 0, 0, 1]}]',
        '[{"key_point": null, "step": 0, "box": [-1, 0, 1, 1]}]',
        '[{"key_point": null, "step": 0, "box": [0.5, 0, 1, 1]}]',
        '[{"key_point": null, "step": true, "box": [0, 0, 1, 1]}]',
        '[{"key_point": null, "step": 0, "box": [0, 0, 1, 99999999]}]',
        "[" * 40_000,
    ],
)
def test_a_malformed_box_is_refused_with_a_reason_and_nothing_is_written(
    client: Client, people: dict[str, Person], held: Trajectory, text: str
) -> None:
    client.force_login(people["alice"])
    response = client.post(reverse("submit", args=[held.pk]), {"verdict": "1", "boxes": text})

    assert response.status_code == 400
    assert "The boxes cannot be read. Remove them, and draw them again." in response.content.decode()
    assert not Label.objects.exists()


def test_the_form_sends_boxes_as_it_was_given_them(client: Client, people: dict[str, Person], held: Trajectory) -> None:
    client.force_login(people["alice"])
    points = {f"finding_{pk}": "met" for pk in workflow.key_points_of(held).values_list("pk", flat=True)}
    steps = {f"{name}_step": "1" for name in points}
    boxes = [{"key_point": "at least 16 GB", "step": 1, "box": [10, 20, 30, 40]}]
    fields: dict[str, Any] = {"verdict": "1", "reasoning": "All is shown.", "boxes": json.dumps(boxes)}
    client.post(reverse("submit", args=[held.pk]), fields | points | steps)

    label = Label.objects.get()
    assert label.boxes == boxes
    address = reverse("trajectory", args=[held.pk])
    assert '"step": 1, "box": [10, 20, 30, 40], "kind": "own", "name": "1"' in client.get(address).content.decode()
    revising = client.get(address + "?revise").context["form"]
    assert json.loads(revising.data["boxes"]) == boxes


def test_a_box_of_a_retired_key_point_leaves_the_form_and_the_numbers_follow_the_form(
    client: Client, people: dict[str, Person], held: Trajectory
) -> None:
    second = catalogue.add_key_points(held.task, ["in the cart\r\nonce"])[0]
    first = held.task.key_points.get(text="at least 16 GB")
    assert second.text == "in the cart\nonce"
    submit(people, held, PROOF, Box(second.text, 2, 1, 1, 9, 9))
    catalogue.retire_key_point(first)

    client.force_login(people["alice"])
    address = reverse("trajectory", args=[held.pk])
    form = client.get(f"{address}?revise").context["form"]
    assert json.loads(form.data["boxes"]) == [{"key_point": second.text, "step": 2, "box": [1, 1, 9, 9]}]
    shown = client.get(address).context["label"].summary.boxes
    assert [(box["step"], box["name"]) for box in shown] == [(1, "key point"), (2, "2")]
