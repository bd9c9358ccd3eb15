"""The label form on the server: own attempt, missing evidence, own phrases, reports, and the guidelines."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from annotation import workflow
from annotation.completeness import Asked
from annotation.forms import LabelForm, values_of
from annotation.models import Event, Label, Person, Phrase, Report, Submission, Trajectory
from annotation.protocol import CAUSES, FAILURE_TYPES, PATHS
from annotation.records import AttemptContent
from annotation.tests import testing
from annotation.tests.shared_rows import shared_rows
from annotation.views.account import MOST_PHRASES
from annotation.workflow.facts import label_facts

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
    submission.protocol_version, submission.process_labels = 2, True
    submission.save(update_fields=["protocol_version", "process_labels"])
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
        assert re.search(rf"<b>{name}</b>.*<small[^>]*>{value}<", option)
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
    assert re.search(r"No evidence at</span>\s*<a[^>]*>step 0</a>, <a[^>]*>step 2</a>", page)


def test_the_final_answer_is_shown_at_the_last_step_and_not_before(alice: Client, held: Trajectory) -> None:
    assert 'class="final"' not in desk(alice, held, "?step=1")
    assert 'class="final"' in desk(alice, held, "?step=2")


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
    assert "<b>Own attempt</b> (the agent&#x27;s path: not comparable):\nThe site asks" in shown.replace("'", "&#x27;")


def test_own_label_shows_the_link_of_the_attempt_and_how_the_agents_way_compares(
    alice: Client, second_version: Submission, held: Trajectory
) -> None:
    link = "https://videos.example/take-1"
    alice.post(reverse("submit", args=[held.pk]), filled(held, **ATTEMPT, attempt_link=link))
    shown = desk(alice, held)
    assert "<b>Own attempt, 6 steps</b> (the agent's path: longer than mine):\nBy the menu" in shown
    assert link in shown


@pytest.mark.parametrize(
    ("typed", "seconds"), [("4:30", 270), ("0:05", 5), ("90:00", 5400), ("1:04:30", 3870), ("", None)]
)
def test_the_time_of_the_attempt_is_stored_in_seconds_and_shown_as_a_clock(
    alice: Client, second_version: Submission, held: Trajectory, typed: str, seconds: int | None
) -> None:
    alice.post(reverse("submit", args=[held.pk]), filled(held, **ATTEMPT, attempt_seconds=typed))
    label = Label.objects.get()
    assert label.attempt.seconds == seconds
    shown = {270: "4:30", 5: "0:05", 5400: "1:30:00", 3870: "1:04:30", None: ""}[seconds]
    assert values_of(label).get("attempt_seconds", "") == shown
    assert f"<b>Own attempt, 6 steps{', ' if shown else ''}{shown}</b>" in desk(alice, held)


@pytest.mark.parametrize("typed", ["270", "4:60", "four", "1:4:30", "100:00:00", "-1:00"])
def test_a_time_that_is_no_clock_is_refused_and_stays_as_typed(
    alice: Client, second_version: Submission, held: Trajectory, typed: str
) -> None:
    refused = alice.post(reverse("submit", args=[held.pk]), filled(held, **ATTEMPT, attempt_seconds=typed))
    page = refused.content.decode()
    assert refused.status_code == 400
    assert "Enter the time as minutes:seconds, such as 4:30." in page
    assert f'value="{typed}"' in page


def test_an_attempt_without_a_time_has_the_facts_of_earlier_versions(
    people: dict[str, Person], second_version: Submission, held: Trajectory
) -> None:
    said = testing.content(held, attempt=AttemptContent(6, "By the menu.", "", "longer"))
    label = workflow.submit(people["alice"], held, said)
    assert label_facts(label)["attempt"] == {"steps": 6, "notes": "By the menu.", "link": "", "path": "longer"}
    timed = workflow.revise(people["alice"], held, replace(said, attempt=replace(said.attempt, seconds=95)), "Timed.")
    assert label_facts(timed)["attempt"]["seconds"] == 95


def test_the_own_path_stands_beside_the_steps_of_the_agent_once_it_is_entered(
    alice: Client, people: dict[str, Person], second_version: Submission, held: Trajectory
) -> None:
    assert re.search(r'<div class="paths" hidden', desk(alice, held))
    workflow.save_draft(people["alice"], held, {"attempt_notes": "Open the menu\r\n\r\n<b>Sort</b> by price"}, 0)
    page = desk(alice, held)
    assert re.search(r'<div class="paths" tabindex', page)
    assert "<ol data-own-path><li>Open the menu</li><li>&lt;b&gt;Sort&lt;/b&gt; by price</li></ol>" in page
    links = re.findall(r'<li><a data-step="(\d+)"', page.partition("The agent's path")[2])
    assert links == [str(index) for index in range(held.steps.count())]


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


def test_findings_that_a_not_executable_label_hides_neither_block_it_nor_enter_it(
    client: Client, people: dict[str, Person], submission: Submission
) -> None:
    held = workflow.claim(people["alice"], submission).trajectory
    one, two = workflow.key_points_of(held).values_list("pk", flat=True)
    client.force_login(people["alice"])
    hidden = {f"finding_{one}": "met", f"finding_{one}_step": "", f"finding_{two}": "unmet", f"finding_{two}_step": "x"}
    said = {"verdict": "2", "cause": CAUSES[0].code, "reasoning": "The shop is closed."}
    client.post(reverse("submit", args=[held.pk]), said | hidden)

    label = Label.objects.get()
    assert label.verdict == 2
    assert not label.findings.exists()
