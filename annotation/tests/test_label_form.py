"""The label form on the server: own attempt, missing evidence, own phrases, reports, and the guidelines."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from annotation import workflow
from annotation.completeness import Asked
from annotation.forms import LabelForm
from annotation.models import Event, Label, Person, Phrase, Report, Submission, Trajectory
from annotation.protocol import FAILURE_TYPES, PATHS
from annotation.tests.shared_rows import shared_rows
from annotation.views.account import MOST_PHRASES

JSON = {"HTTP_ACCEPT": "application/json"}
ATTEMPT = {"attempt_steps": "6", "attempt_notes": "By the menu, then sorted.", "attempt_path": "longer"}


@pytest.fixture
def alice(client: Client, people: dict[str, Person]) -> Client:
    client.force_login(people["alice"])
    return client


@shared_rows
def held(people: dict[str, Person], submission: Submission) -> Trajectory:
    """What alice is working on."""
    return workflow.claim(people["alice"], submission).trajectory


@shared_rows
def second_version(submission: Submission) -> Submission:
    submission.protocol_version = 2
    submission.save(update_fields=["protocol_version"])
    return submission


def filled(trajectory: Trajectory, **fields: Any) -> dict[str, Any]:
    form = {"verdict": "1", "reasoning": "The steps show it."}
    for pk in workflow.key_points_of(trajectory).values_list("pk", flat=True):
        form |= {f"finding_{pk}": "met", f"finding_{pk}_step": "0"}
    return form | fields


def desk(client: Client, trajectory: Trajectory, query: str = "") -> str:
    return client.get(reverse("trajectory", args=[trajectory.pk]) + query).content.decode()


# --- the form --------------------------------------------------------------------------------------------------------


def test_every_field_of_the_form_has_the_id_that_the_list_of_what_is_missing_leads_to(
    alice: Client, second_version: Submission, held: Trajectory
) -> None:
    points = tuple(workflow.key_points_of(held).values_list("pk", flat=True))
    names = LabelForm({}, Asked(points, 3, attempt=True)).fields
    page = desk(alice, held)

    assert [name for name in names if name != "reason" and f'id="f-{name}"' not in page] == []


def test_the_code_of_the_file_format_and_the_rule_stand_beside_each_verdict(alice: Client, held: Trajectory) -> None:
    page = desk(alice, held)

    for value, name in ((0, "Failure"), (1, "Success"), (2, "Not executable")):
        option = page[page.index(f'class="option v{value}"') :].split("</label>")[0]
        assert re.search(rf"<b>{name}</b>.*<small[^>]*>code {value}<", option)
        assert f'id="rule-{value}"' in page


def test_every_failure_type_is_defined_where_it_is_chosen(alice: Client, held: Trajectory) -> None:
    page = desk(alice, held)

    for term in FAILURE_TYPES:
        assert f'data-definition="{term.definition}"' in page.replace("&#x27;", "'")
        assert f'id="further-{term.code}">{term.definition}<' in page.replace("&#x27;", "'")


def test_further_types_and_missing_evidence_are_kept_and_shown_with_the_label(alice: Client, held: Trajectory) -> None:
    failure = {"verdict": "0", "failure_step": "1", "failure_type": "wrong_item"}
    more = {"further_failure_types": ["loop", "wrong_item"], "evidence_missing": "2, 0"}
    alice.post(reverse("submit", args=[held.pk]), filled(held, **failure, **more))

    label = Label.objects.get()
    assert (label.failure_type, label.further_failure_types, label.evidence_missing) == ("wrong_item", ["loop"], [0, 2])
    page = desk(alice, held)
    assert "Wrong item or page, Loop or no progress" in page
    assert re.search(r"Evidence missing at</span>\s*<a[^>]*>step 0</a>, <a[^>]*>step 2</a>", page)


def test_the_final_answer_is_shown_at_the_last_step_and_not_before(alice: Client, held: Trajectory) -> None:
    block = re.compile(r'<section id="final"[^>]*?( hidden)?>')

    assert block.search(desk(alice, held, "?step=0")).group(1) == " hidden"
    assert block.search(desk(alice, held, "?step=2")).group(1) is None


# --- version 2 of the protocol ---------------------------------------------------------------------------------------


def test_the_first_version_asks_for_no_attempt(alice: Client, held: Trajectory) -> None:
    assert "attempt_steps" not in desk(alice, held)


def test_the_second_version_asks_to_do_the_task_first(
    alice: Client, second_version: Submission, held: Trajectory
) -> None:
    page = desk(alice, held)

    assert "Do the task yourself first" in page
    assert page.index('id="f-attempt_steps"') < page.index("Key points")
    assert all(path.name in page for path in PATHS)
    refused = alice.post(reverse("submit", args=[held.pk]), filled(held))
    assert refused.status_code == 400
    assert "Enter how many steps you needed yourself." in refused.content.decode()


def test_the_attempt_is_kept_with_the_label_and_folded_once_it_is_complete(
    alice: Client, people: dict[str, Person], second_version: Submission, held: Trajectory
) -> None:
    assert re.search(r'<details class="attempt" open', desk(alice, held))
    workflow.save_draft(people["alice"], held, ATTEMPT, 0)
    assert re.search(r'<details class="attempt">', desk(alice, held))

    alice.post(reverse("submit", args=[held.pk]), filled(held, **ATTEMPT))
    attempt = Label.objects.get().attempt
    assert (attempt.steps, attempt.path) == (6, "longer")
    assert "By the menu, then sorted." in desk(alice, held)


COULD_NOT = {"attempt_notes": "The site asks for a CAPTCHA.", "attempt_path": "not_comparable"}


def test_annotator_who_could_not_do_the_task_is_asked_for_no_steps(
    alice: Client, second_version: Submission, held: Trajectory
) -> None:
    alice.post(reverse("submit", args=[held.pk]), filled(held, **COULD_NOT))
    attempt = Label.objects.get().attempt
    assert (attempt.steps, attempt.path) == (None, "not_comparable")
    shown = desk(alice, held)
    assert "<b>Own attempt</b> (the agent&#x27;s way is not comparable): The site asks" in shown.replace("'", "&#x27;")


def test_own_label_shows_the_link_of_the_attempt_and_how_the_agents_way_compares(
    alice: Client, second_version: Submission, held: Trajectory
) -> None:
    link = "https://videos.example/take-1"
    alice.post(reverse("submit", args=[held.pk]), filled(held, **ATTEMPT, attempt_link=link))
    shown = desk(alice, held)
    assert "<b>Own attempt, 6 steps</b> (the agent's way is longer than mine): By the menu" in shown
    assert link in shown


# --- own phrases -----------------------------------------------------------------------------------------------------


def test_a_phrase_is_kept_and_offered_at_the_reasoning(alice: Client, held: Trajectory) -> None:
    added = alice.post(reverse("add-phrase"), {"text": " The filter is applied. "})

    assert added["Location"] == reverse("account")
    assert 'data-phrase="The filter is applied."' in desk(alice, held)
    assert "The filter is applied." in alice.get(reverse("account")).content.decode()


def test_a_script_gets_all_own_phrases_back(alice: Client, people: dict[str, Person]) -> None:
    Phrase.objects.create(person=people["bob"], text="bob's own")
    for text in ("first", "second", "first"):
        answer = alice.post(reverse("add-phrase"), {"text": text}, **JSON)

    assert answer.json() == {"phrases": ["first", "second"], "problem": ""}


def test_phrases_have_an_end(alice: Client, people: dict[str, Person]) -> None:
    Phrase.objects.bulk_create(Phrase(person=people["alice"], text=f"phrase {n}") for n in range(MOST_PHRASES))

    refused = alice.post(reverse("add-phrase"), {"text": "one more"}, **JSON)
    assert refused.status_code == 400
    assert "Delete one first" in refused.json()["problem"]
    assert alice.post(reverse("add-phrase"), {"text": "phrase 3"}).status_code == 302
    assert alice.post(reverse("add-phrase"), {"text": "x" * 501}).status_code == 400
    assert Phrase.objects.count() == MOST_PHRASES


def test_nobody_reads_or_deletes_the_phrases_of_another(
    alice: Client, people: dict[str, Person], held: Trajectory
) -> None:
    other = Phrase.objects.create(person=people["bob"], text="bob's own wording")

    assert alice.post(reverse("delete-phrase", args=[other.pk])).status_code == 404
    assert "own wording" not in desk(alice, held) + alice.get(reverse("account")).content.decode()
    own = Phrase.objects.create(person=people["alice"], text="mine")
    alice.post(reverse("delete-phrase", args=[own.pk]))
    assert list(Phrase.objects.all()) == [other]


# --- telling the maintainer ------------------------------------------------------------------------------------------


def test_an_outdated_task_is_reported_to_the_maintainer(alice: Client, held: Trajectory) -> None:
    sent = alice.post(reverse("report", args=[held.pk]), {"note": "The shop has closed."})

    assert sent["Location"] == reverse("trajectory", args=[held.pk])
    report = Report.objects.get()
    assert (report.kind, report.note) == ("task_outdated", "The shop has closed.")
    assert Event.objects.filter(kind="reported").count() == 1
    assert "You have told the maintainer" in desk(alice, held)


def test_a_script_reports_without_leaving_the_page(alice: Client, held: Trajectory) -> None:
    assert alice.post(reverse("report", args=[held.pk]), {"note": "Gone."}, **JSON).status_code == 204
    assert alice.post(reverse("report", args=[held.pk]), {"note": " "}, **JSON).status_code == 400


def test_a_report_needs_the_trajectory(alice: Client, submission: Submission) -> None:
    foreign = Trajectory.objects.order_by("position").last()

    assert alice.post(reverse("report", args=[foreign.pk]), {"note": "Gone."}).status_code == 404
    assert not Report.objects.exists()


# --- guidelines ------------------------------------------------------------------------------------------------------


def test_the_criteria_that_the_task_touches_are_lit_and_come_first(alice: Client, held: Trajectory) -> None:
    page = desk(alice, held)  # "Find the cheapest laptop of shop 0 with at least 16 GB and add it to the cart."
    terms = re.findall(r'<div class="term( touched)?" data-term><dt>([^<]+)', page)
    criteria = [(name.strip(), bool(lit)) for lit, name in terms[:8]]

    lit = [name for name, touched in criteria if touched]
    assert criteria[: len(lit)] == [(name, True) for name in lit]
    assert "Superlatives come from sorting or filtering" in lit
    assert "Ranges are exact" in lit
    assert len(lit) < 6
    assert re.search(r'<bdi class="chip on agent">cheapest</bdi>', page)


def test_the_page_of_the_guidelines_has_the_examples_and_lights_nothing(alice: Client) -> None:
    page = alice.get(reverse("guidelines")).content.decode()

    assert "the maximum price is set to 500 and nothing else" in page
    assert "touched" not in page
