"""Marks on single steps: what is accepted, stored, recorded, prefilled and shown, and only where they are asked for."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from annotation import workflow
from annotation.label_fields import LABEL_FIELDS, LabelContent
from annotation.models import Event, Label, Person, Submission, Trajectory
from annotation.models.events import digest
from annotation.process_labels import decide_steps, find_majority, read_marks
from annotation.records import StepMark, Verdict
from annotation.tests import testing
from annotation.tests.shared_rows import shared_rows
from annotation.views.comparing import summarise
from annotation.workflow.facts import label_facts

WRONG, DETOUR, EXTRA = StepMark(0, "wrong"), StepMark(1, "unnecessary"), StepMark(2, "side_effect")


@shared_rows
def asking(people: dict[str, Person], submission: Submission) -> Submission:
    return workflow.configure(people["mira"], submission, process_labels=True)


@shared_rows
def held(people: dict[str, Person], asking: Submission) -> Trajectory:
    return workflow.claim(people["alice"], asking).trajectory


def submit(people: dict[str, Person], held: Trajectory, *marks: StepMark, name: str = "alice") -> Label:
    return workflow.submit(people[name], held, testing.content(held, Verdict.FAILURE, process=marks))


def filled(trajectory: Trajectory, **fields: str) -> dict[str, str]:
    points = {f"finding_{pk}": "met" for pk in workflow.key_points_of(trajectory).values_list("pk", flat=True)}
    return {"verdict": "1", "reasoning": "It is shown."} | points | {f"{name}_step": "1" for name in points} | fields


def test_a_label_stores_its_marks_in_the_order_of_steps_and_its_event_covers_them(
    people: dict[str, Person], held: Trajectory
) -> None:
    label = submit(people, held, EXTRA, WRONG)

    assert label.process == [{"step": 0, "mark": "wrong"}, {"step": 2, "mark": "side_effect"}]
    facts = label_facts(label)
    assert facts["process"] == label.process
    assert Event.objects.filter(kind="label_submitted").last().payload["label"] == digest(facts)


def test_a_label_without_marks_has_the_facts_of_earlier_versions(people: dict[str, Person], held: Trajectory) -> None:
    assert "process" not in label_facts(submit(people, held))


@pytest.mark.parametrize(
    ("marks", "codes"),
    [
        ((StepMark(3, "wrong"),), ["process_step_unknown"]),
        ((StepMark(-1, "wrong"),), ["process_step_unknown"]),
        ((StepMark(0, "right"),), ["process_unknown"]),
        ((WRONG, StepMark(0, "side_effect")), ["process_twice"]),
        ((WRONG, WRONG), ["process_twice"]),
    ],
)
def test_a_mark_needs_an_existing_step_a_known_kind_and_no_other_mark(
    people: dict[str, Person], held: Trajectory, marks: tuple[StepMark, ...], codes: list[str]
) -> None:
    with pytest.raises(workflow.Incomplete) as refused:
        submit(people, held, *marks)

    assert [(problem.code, problem.where) for problem in refused.value.problems] == [
        (code, "process") for code in codes
    ]
    assert not Label.objects.exists()


def test_marks_are_refused_where_the_submission_does_not_ask_for_them(
    client: Client, people: dict[str, Person], submission: Submission
) -> None:
    held = workflow.claim(people["alice"], submission).trajectory
    with pytest.raises(workflow.Incomplete) as refused:
        submit(people, held, WRONG)
    assert [problem.code for problem in refused.value.problems] == ["process_not_asked"]

    client.force_login(people["alice"])
    address = reverse("trajectory", args=[held.pk])
    page = client.get(address).content.decode()
    assert "process" not in page
    response = client.post(reverse("submit", args=[held.pk]), filled(held, process="0 wrong"))
    assert response.status_code == 400
    assert 'id="f-process"' in response.content.decode()  # so that the marks can be removed
    assert not Label.objects.exists()


def test_an_adjudication_may_have_marks_too(people: dict[str, Person], asking: Submission) -> None:
    testing.label_all(people, asking, {"task_0000": [1, 0, 1], "task_0001": [1, 1, 1]})
    row = asking.trajectories.get(task__external_id="task_0000")
    workflow.open_adjudication(people["carol"], row)
    decided = workflow.decide(people["carol"], row, testing.content(row, 0, process=(DETOUR,), criterion="exact_range"))

    assert decided.process == [{"step": 1, "mark": "unnecessary"}]


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("2 side effect, 0 wrong", [{"step": 0, "mark": "wrong"}, {"step": 2, "mark": "side_effect"}]),
        (" 1: Unnecessary ;\n2 SIDE_EFFECT,", [{"step": 1, "mark": "unnecessary"}, {"step": 2, "mark": "side_effect"}]),
        ("", []),
    ],
)
def test_the_form_without_a_script_takes_marks_as_text(
    client: Client, people: dict[str, Person], held: Trajectory, text: str, stored: list[Any]
) -> None:
    client.force_login(people["alice"])
    client.post(reverse("submit", args=[held.pk]), filled(held, process=text))

    label = Label.objects.get()
    assert label.process == stored
    form = client.get(reverse("trajectory", args=[held.pk]) + "?revise").context["form"]
    assert form.data.get("process", "") == LABEL_FIELDS["process"].as_text(stored)


@pytest.mark.parametrize("text", ["0", "wrong", "0 bad", "0 right", "x wrong", "99999999 wrong", "0 wrong 1 wrong"])
def test_a_malformed_mark_is_refused_with_an_example(
    client: Client, people: dict[str, Person], held: Trajectory, text: str
) -> None:
    client.force_login(people["alice"])
    response = client.post(reverse("submit", args=[held.pk]), filled(held, process=text))

    assert response.status_code == 400
    assert "(wrong, unnecessary, side effect), such as 4 wrong, 7 side effect." in response.content.decode()
    assert not Label.objects.exists()


def test_a_draft_keeps_the_marks(client: Client, people: dict[str, Person], held: Trajectory) -> None:
    client.force_login(people["alice"])
    client.post(reverse("draft", args=[held.pk]), {"version": "0", "step": "0", "process": "1 unnecessary"})

    assert client.get(reverse("trajectory", args=[held.pk])).context["form"].data["process"] == "1 unnecessary"


def test_an_own_label_shows_its_marks(client: Client, people: dict[str, Person], held: Trajectory) -> None:
    submit(people, held, WRONG, EXTRA)
    client.force_login(people["alice"])
    said = " ".join(client.get(reverse("trajectory", args=[held.pk])).content.decode().split())

    assert '<span class="dim">Wrong at</span> <a data-step="0"' in said
    assert '<span class="dim">Side effect at</span> <a data-step="2"' in said


def test_the_adjudicator_sees_marks_beside_each_other_and_starts_with_those_of_the_majority(
    client: Client, people: dict[str, Person], asking: Submission
) -> None:
    row = asking.trajectories.get(task__external_id="task_0000")
    given = {"alice": (1, (WRONG, DETOUR)), "bob": (0, (WRONG,)), "chen": (0, (WRONG, EXTRA))}
    for name, (verdict, marks) in given.items():
        workflow.claim_this(people[name], row)
        workflow.submit(people[name], row, testing.content(row, verdict, process=marks))
    workflow.open_adjudication(people["carol"], row)
    client.force_login(people["carol"])
    page = client.get(reverse("adjudication", args=[row.pk]))

    rows = {row.title: [(cell.text, cell.lit) for cell in row.cells] for row in page.context["comparison"].rows}
    assert rows["Step 0"] == [("wrong", False)] * 3
    assert rows["Step 1"] == [("unnecessary", True), ("right", False), ("right", False)]
    assert rows["Step 2"] == [("right", False), ("right", False), ("side effect", True)]
    assert page.context["form"].data["process"] == "0 wrong"
    differing = [row.title for row in page.context["comparison"].differing if row.title.startswith("Step")]
    assert differing == ["Step 1", "Step 2"]


def test_steps_without_a_majority_are_named_in_the_form_of_the_adjudicator(
    client: Client, people: dict[str, Person], asking: Submission
) -> None:
    row = asking.trajectories.get(task__external_id="task_0000")
    given = {"alice": (1, (WRONG, DETOUR)), "bob": (0, (StepMark(0, "side_effect"), DETOUR, EXTRA)), "chen": (0, ())}
    for name, (verdict, marks) in given.items():
        workflow.claim_this(people[name], row)
        workflow.submit(people[name], row, testing.content(row, verdict, process=marks))
    workflow.open_adjudication(people["carol"], row)
    client.force_login(people["carol"])
    page = client.get(reverse("adjudication", args=[row.pk]))

    assert page.context["form"].data["process"] == "1 unnecessary"
    assert "Annotators differ at step 0. Mark it, or leave it right." in _text(page)
    rows = {row.title: [cell.fields for cell in row.cells] for row in page.context["comparison"].rows}
    assert rows["Step 0"] == [f'{{"process": {{"0": "{mark}"}}}}' for mark in ("wrong", "side effect", "right")]

    client.post(reverse("adjudication-draft", args=[row.pk]), {"version": "0", "step": "0", "process": ""})
    assert "Annotators differ at step 0." in _text(client.get(reverse("adjudication", args=[row.pk])))


def _text(page: Any) -> str:
    return " ".join(re.sub(r"<[^>]*>", "", page.content.decode()).split())


def test_a_mark_of_an_unknown_kind_is_shown_as_it_is(
    client: Client, people: dict[str, Person], held: Trajectory
) -> None:
    label = submit(people, held, WRONG)
    label.process = [{"step": 0, "mark": "wrong"}, {"step": 2, "mark": "looped"}]

    assert summarise(label).summary.steps == [("Wrong", [0]), ("looped", [2])]


def test_a_blind_spot_check_starts_without_marks(client: Client, people: dict[str, Person], asking: Submission) -> None:
    asking.spot_check_rate = 1.0
    asking.save(update_fields=["spot_check_rate"])
    for row in asking.trajectories.all():
        for name in ("alice", "bob", "chen"):
            workflow.claim_this(people[name], row)
            submit(people, row, WRONG, name=name)
    workflow.draw_spot_checks(people["mira"], asking)
    row = asking.trajectories.first()
    workflow.open_adjudication(people["carol"], row)
    client.force_login(people["carol"])
    page = client.get(reverse("adjudication", args=[row.pk]))

    assert page.context["form"].data.get("process", "") == ""
    assert 'id="f-process"' in page.content.decode()
    assert 'value="0 wrong"' not in page.content.decode()
    assert "Annotators differ" not in page.content.decode()


def test_the_setting_is_fixed_when_the_first_trajectory_is_reserved(
    people: dict[str, Person], submission: Submission
) -> None:
    workflow.configure(people["mira"], submission, process_labels=True)
    workflow.claim(people["alice"], submission)
    with pytest.raises(workflow.Conflict, match="process labels cannot be changed"):
        workflow.configure(people["mira"], submission, process_labels=False)

    assert Event.objects.get(kind="configured").payload["process_labels"] == [False, True]


def test_known_answers_and_practice_ask_for_no_marks(
    client: Client, people: dict[str, Person], asking: Submission
) -> None:
    client.force_login(people["mira"])
    page = client.get(reverse("known-answer", args=[asking.trajectories.first().pk])).content.decode()

    assert 'name="process"' not in page


def test_the_final_labels_of_steps_are_those_of_the_adjudication_or_of_a_majority() -> None:
    said = [{0: "wrong", 1: "wrong", 2: "wrong"}, {0: "wrong", 1: "unnecessary"}, {1: "side_effect", 2: "wrong"}]

    assert find_majority(said, 4) == ["wrong", None, "wrong", "right"]
    assert decide_steps(said, None, 4) == ["wrong", None, "wrong", "right"]
    assert decide_steps(said, {3: "unnecessary"}, 4) == ["right", "right", "right", "unnecessary"]
    assert decide_steps([], None, 2) == [None, None]
    assert read_marks([{"step": 3, "mark": "wrong"}]) == {3: "wrong"}


def test_two_people_who_differ_have_no_majority() -> None:
    assert find_majority([{0: "wrong"}, {}], 2) == [None, "right"]


def test_a_mark_of_an_unknown_kind_is_no_final_label() -> None:
    said = [{0: "odd", 1: "odd"}, {0: "odd", 1: "wrong"}, {0: "odd", 1: "wrong"}]

    assert find_majority(said, 3) == [None, "wrong", "right"]
    assert decide_steps(said, {0: "odd", 1: "unnecessary"}, 3) == [None, "unnecessary", "right"]


def test_every_problem_of_the_marks_is_listed() -> None:
    content = LabelContent(process=(StepMark(9, "bad"), StepMark(9, "wrong")))

    codes = [problem.code for problem in LABEL_FIELDS["process"].problems(content, 3)]
    assert codes == ["process_step_unknown", "process_unknown", "process_twice"]


def test_many_wrong_marks_are_one_problem_of_each_kind() -> None:
    outside = tuple(StepMark(step, "wrong") for step in range(3, 1903))
    twice = tuple(StepMark(step, f"odd {step}") for step in (2, 0, 1, 0, 1))
    found = list(LABEL_FIELDS["process"].problems(LabelContent(process=outside + outside + twice), 3))

    assert [problem.code for problem in found] == ["process_step_unknown", "process_unknown", "process_twice"]
    assert found[0].message.endswith("these steps do not exist: 3, 4, 5, 6, 7 and 1895 more.")
    assert "'odd 0'" in found[1].message
    assert found[2].message.endswith("leave one mark at each of these steps: 0, 1, 3, 4, 5 and 1897 more.")
