"""The pages of checks and rubrics: written with what they mean beside them, tried, and made out of what happened."""

from __future__ import annotations

import html
import json
import re

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse
from lxml.html import document_fromstring

from annotation.formats import har
from annotation.models import Person, Submission, Task, Trajectory
from annotation.tests import testing
from judges import defining, expectations
from judges.expectations import Kind
from judges.models import Expectation
from judges.tests.expecting import CHECKS, FAILING, RUBRIC, ask, entry, expect, give_trace, send, text
from judges.tests.pages import read_page

People = dict[str, Person]


# --- the list --------------------------------------------------------------------------------------------------------


def test_the_list_says_who_wrote_what_and_shows_tasks_that_lack_something_first(people: People, task: Task) -> None:
    other = task.benchmark.tasks.exclude(pk=task.pk).get()
    expectations.write(people["mira"], task, Kind.NETWORK_CHECKS, CHECKS)
    expectations.write(None, task, Kind.RUBRIC, RUBRIC)
    page = text(ask(people["mira"], "expectations", "shops"))
    assert "1 of 2 have network checks" in page
    assert page.index(other.external_id) < page.index(task.external_id)
    row = page[page.index(f">{task.external_id}<") :]
    assert "by <bdi>mira</bdi>" in row
    assert "by a command" in row
    lacking = text(ask(people["mira"], "expectations", "shops", missing="rubric"))
    assert f">{other.external_id}<" in lacking
    assert f">{task.external_id}<" not in lacking


def test_what_was_withdrawn_counts_as_missing(people: People, task: Task) -> None:
    expect(task)
    expectations.withdraw(people["mira"], task, Kind.NETWORK_CHECKS)
    page = text(ask(people["mira"], "expectations", "shops", missing="network_checks"))
    assert "0 of 2 have network checks" in page
    assert "withdrawn" in page


def test_task_and_benchmark_lead_to_them(people: People, task: Task) -> None:
    assert reverse("expectations", args=["shops"]) in text(ask(people["mira"], "benchmark", "shops"))
    page = text(ask(people["mira"], "task", "shops", task.external_id))
    assert reverse("expectation", args=[task.pk, "network_checks"]) in page
    assert reverse("expectation", args=[task.pk, "rubric"]) in page


@pytest.mark.parametrize(("name", "status"), [("dave", 404), ("alice", 403), ("carol", 403)])
def test_reviewers_and_outsiders_see_none_of_the_pages(people: People, task: Task, name: str, status: int) -> None:
    expect(task)
    Person.objects.filter(pk=people[name].pk).update(is_staff=status == 403)
    person = Person.objects.get(username=name)
    one = (task.pk, "network_checks")
    pages = [("expectations", "shops"), ("expectation", *one), ("expectation-versions", *one)]
    acts = [("write-expectation", *one), ("preview-expectation", *one), ("try-expectation", *one)]
    acts.append(("import-expectations", "shops"))
    answers = [ask(person, *page) for page in pages] + [send(person, *act, text=CHECKS) for act in acts]
    assert {answer.status_code for answer in answers} == {status}
    assert Expectation.objects.count() == 1


def test_a_file_is_imported_with_its_whole_report(people: People, task: Task) -> None:
    good = json.dumps([{"task_id": task.external_id, "checks": [{"name": "A", "url": "http://a.example/"}]}])
    page = text(
        send(
            people["mira"],
            "import-expectations",
            "shops",
            kind="network_checks",
            file=SimpleUploadedFile("checks.json", good.encode()),
        )
    )
    assert "Imported" in page
    made = Expectation.objects.get()
    assert (made.task, made.written_by) == (task, people["mira"])
    bad = good.replace("url", "ulr")
    page = text(
        send(
            people["mira"],
            "import-expectations",
            "shops",
            kind="network_checks",
            file=SimpleUploadedFile("checks.json", bad.encode()),
        ),
        400,
    )
    assert "Refused" in page
    assert "did you mean `url`?" in page


# --- the editor ------------------------------------------------------------------------------------------------------


def test_a_version_is_kept_and_the_next_starts_from_it(people: People, task: Task) -> None:
    one = (task.pk, "network_checks")
    response = send(people["mira"], "write-expectation", *one, text=CHECKS, why="first", after=0)
    assert response.status_code == 302
    page = text(ask(people["mira"], "expectation", *one))
    assert "query_params: {q: [lamp]}" in page
    assert "Save as version 2" in page
    assert 'name="after" value="1"' in page


def test_problems_are_listed_with_their_lines_and_the_text_is_still_there(people: People, task: Task) -> None:
    wrong = CHECKS.replace("url:", "ulr:")
    page = text(send(people["mira"], "write-expectation", task.pk, "network_checks", text=wrong, after=0), 400)
    assert 'data-line="4"' in page.split('role="alert"')[1].split("</div>")[0]
    assert "ulr: http://shop.example/search" in page.split("<textarea")[1]
    assert not Expectation.objects.exists()


def test_a_version_of_somebody_else_is_not_written_over_and_nothing_is_lost(people: People, task: Task) -> None:
    expect(task)
    page = text(send(people["mira"], "write-expectation", task.pk, "network_checks", text=FAILING, after=0), 409)
    assert "Another person has saved a newer version" in page
    assert "sofa" in page.split("<textarea")[1]
    assert Expectation.objects.get().text == CHECKS


def test_an_emptied_text_is_no_withdrawal_and_the_button_is_one(people: People, task: Task) -> None:
    expect(task)
    one = (task.pk, "network_checks")
    assert send(people["mira"], "write-expectation", *one, text="  ", after=1).status_code == 400
    assert send(people["mira"], "write-expectation", *one, text=CHECKS, after=1, act="withdraw").status_code == 302
    assert expectations.find_current(task, Kind.NETWORK_CHECKS) is None
    assert "withdrawn with version 2" in text(ask(people["mira"], "expectation", *one))


def test_texts_of_tasks_and_checks_are_text_and_nothing_else(people: People, task: Task) -> None:
    hostile = CHECKS.replace("The search", "<script>alert(1)</script>")
    expect(task, hostile)
    page = read_page(ask(people["mira"], "expectation", task.pk, "network_checks"))
    assert "&lt;script&gt;alert(1)" in page
    assert "<script>alert" not in page


def test_the_preview_says_in_words_what_is_checked(people: People, task: Task) -> None:
    more = (
        CHECKS
        + """\
  - name: No order
    url: [http://shop.example/order, "^http://shop.example/pay.*$"]
    http_method: POST
    should_not_exist: true
  - name: The total
    url: http://shop.example/cart
    http_method: POST
    post_data: {total: 12.5}
    post_data_schema: {total: {type: number}}
    response_status: [200, 302]
  - name: The answer
    evaluator: agent_response
    retrieved_data: [lamp, sofa]
"""
    )
    said = text(send(people["mira"], "preview-expectation", task.pk, "network_checks", htmx=True, text=more))
    assert "<form" not in said
    for words in (
        "4 checks",
        "There must be a page opened: http://shop.example/search",
        '<dt>Parameter q</dt><dd class="agent" dir="auto">lamp',
        "There must be no request that changes something by POST: http://shop.example/order or the pattern ^http",
        "12.5 (compared as number)",
        "200 or 302",
        "lamp, sofa, in any order",
        "Key point:",
    ):
        assert words in said, words


def test_the_preview_draws_the_rubric_and_says_what_it_costs(people: People, task: Task) -> None:
    said = text(send(people["mira"], "preview-expectation", task.pk, "rubric", htmx=True, text=RUBRIC))
    assert "3 claims" in said
    assert re.search(
        r"\d+ calls[^,]* by rubric, \d+ calls[^,]* by rubric-verifier for a trajectory", " ".join(said.split())
    )
    assert said.count("critical</span>") == 1
    assert "sequential</span>" in said
    assert "Rounding is fine." in said
    assert "initialized" not in said


def test_the_preview_names_problems_and_without_a_script_is_the_whole_page(people: People, task: Task) -> None:
    wrong = RUBRIC.replace("claim: The answer", "clame: The answer")
    said = text(send(people["mira"], "preview-expectation", task.pk, "rubric", htmx=True, text=wrong))
    assert 'data-line="9"' in said
    whole = text(send(people["mira"], "preview-expectation", task.pk, "rubric", text=wrong, why="because", after=0))
    assert "clame" in whole.split("<textarea")[1]
    assert 'value="because"' in whole
    assert not Expectation.objects.exists()


def test_a_rubric_starts_from_the_key_points_and_nothing_is_kept(people: People, task: Task) -> None:
    page = text(ask(people["mira"], "expectation", task.pk, "rubric", start="key-points"))
    assert "A first draft from the key points" in page
    for point in task.key_points.values_list("text", flat=True):
        assert point in page.split("<textarea")[1].split("</textarea>")[0]
    assert not Expectation.objects.exists()


# --- versions --------------------------------------------------------------------------------------------------------


def test_the_history_shows_what_each_version_changed(people: People, task: Task) -> None:
    expect(task)
    expectations.write(people["mira"], task, Kind.NETWORK_CHECKS, FAILING, "the sofa")
    one = (task.pk, "network_checks")
    assert "the sofa" in text(ask(people["mira"], "expectation", *one))
    answer = ask(people["mira"], "expectation-versions", *one)
    assert "-    query_params: {q: [lamp]}</div>" in html.unescape(answer.content.decode())
    page = text(answer)
    assert '<div class="agent mono removed"><span class="sr">removed: </span>- query_params: {q: [lamp]}' in page
    assert '<div class="agent mono added"><span class="sr">added: </span>+ query_params: {q: [sofa]}' in page
    first = text(ask(people["mira"], "expectation-versions", *one, before=0, after=1))
    assert "removed: " not in first
    assert "There is no difference" in text(ask(people["mira"], "expectation-versions", *one, before=2, after=2))
    older = text(ask(people["mira"], "expectation", *one, version=1)).split("<textarea")[1].split("</textarea>")[0]
    assert "{q: [lamp]}" in older


# --- tried, and out of a trace ---------------------------------------------------------------------------------------


def test_unsaved_checks_are_tried_on_a_trajectory_without_a_model(
    people: People, submission: Submission, task: Task
) -> None:
    trajectory = submission.trajectories.get(task=task)
    give_trace(trajectory)
    expect(task, FAILING)  # what is kept plays no part
    one = (task.pk, "network_checks")
    page = text(send(people["mira"], "try-expectation", *one, htmx=True, text=CHECKS, trajectory=trajectory.pk))
    assert '<span class="verdict v1">Success</span>' in page
    page = text(send(people["mira"], "try-expectation", *one, htmx=True, text=FAILING, trajectory=trajectory.pk))
    assert '<span class="verdict v0">Failure</span>' in page
    assert "Nearest request" in page
    assert "query_params.q" in page
    assert "sofa" in page
    whole = text(send(people["mira"], "try-expectation", *one, text=FAILING, trajectory=trajectory.pk, after=1))
    assert "query_params.q" in whole
    assert "</html>" in whole
    assert Expectation.objects.count() == 1


def test_checks_of_the_answer_alone_are_tried_on_a_trajectory_without_a_trace(
    people: People, submission: Submission, task: Task
) -> None:
    bare = submission.trajectories.get(task=task)
    one = (task.pk, "network_checks")
    answer = "checks:\n  - name: The answer\n    evaluator: agent_response\n    retrieved_data: [lamp]\n"
    Trajectory.objects.filter(pk=bare.pk).update(final_answer='{"retrieved_data": ["lamp"]}')

    page = document_fromstring(text(ask(people["mira"], "expectation", *one)))
    (form,) = page.xpath('//form[@id="writing"]')
    (select,) = page.xpath('//select[@id="try-on"]')
    (button,) = page.xpath('//button[contains(., "Test the text in the editor")]')
    assert select.get("form") == button.get("form") == form.get("id")
    assert select.xpath("optgroup/option/@value") == [str(bare.pk)]
    assert select.xpath("optgroup/@label") == ["Without a network trace: checks of the answer alone"]

    tried = text(send(people["mira"], "try-expectation", *one, htmx=True, text=answer, trajectory=bare.pk))
    assert '<span class="verdict v1">Success</span>' in tried
    whole = document_fromstring(text(send(people["mira"], "try-expectation", *one, text=answer, trajectory=bare.pk)))
    assert whole.xpath('//select[@id="try-on"]//option[@selected]/@value') == [str(bare.pk)]
    tried = text(send(people["mira"], "try-expectation", *one, htmx=True, text=CHECKS, trajectory=bare.pk))
    assert "No verdict: The trajectory has no network trace." in tried

    give_trace(bare)
    page = document_fromstring(text(ask(people["mira"], "expectation", *one)))
    assert page.xpath('//select[@id="try-on"]/option/@value') == [str(bare.pk)]
    assert not page.xpath("//optgroup")


def test_only_trajectories_that_the_person_maintains_are_tried(
    people: People, submission: Submission, task: Task
) -> None:
    trajectory = submission.trajectories.get(task=task)
    give_trace(trajectory)
    other = Person.objects.create_user("nora", password=testing.PASSWORD, is_staff=True)
    one = (task.pk, "network_checks")
    page = text(ask(other, "expectation", *one))
    assert "no trajectory of this task with a network trace" in page
    assert "You maintain no trajectory of this task to try it on." in page
    assert send(other, "try-expectation", *one, text=CHECKS, trajectory=trajectory.pk).status_code == 404
    assert ask(other, "expectation-events", *one, trajectory=trajectory.pk).status_code == 404
    assert send(people["mira"], "try-expectation", *one, text=CHECKS, trajectory="x").status_code == 404
    assert send(people["mira"], "try-expectation", task.pk, "rubric", text=RUBRIC, trajectory=1).status_code == 404


def test_every_request_of_a_trace_makes_a_check_that_the_trace_meets(
    people: People, submission: Submission, task: Task
) -> None:
    trajectory = submission.trajectories.get(task=task)
    secret = entry("POST", "http://shop.example/login?token=abc123&x=^a", "user=bob&password=hunter2", 302)
    again = entry("GET", "http://shop.example/list?tag=a&tag=b&empty=")
    give_trace(trajectory, (entry("GET", "http://shop.example/"), secret, again))
    one = (task.pk, "network_checks")
    page = ask(people["mira"], "expectation-events", *one, htmx=True, trajectory=trajectory.pk).content.decode()
    snippets = [html.unescape(found) for found in re.findall(r'data-check="([^"]*)"', page)]
    assert len(snippets) == 3
    assert not [word for word in ("abc123", "hunter2", har.REDACTED) if word in "".join(snippets)]
    whole = "checks:\n" + "".join(snippets)
    tried = text(send(people["mira"], "try-expectation", *one, htmx=True, text=whole, trajectory=trajectory.pk))
    assert '<span class="verdict v1">Success</span>' in tried


def test_a_trace_that_cannot_be_read_says_so(people: People, submission: Submission, task: Task) -> None:
    trajectory = submission.trajectories.get(task=task)
    attachment = give_trace(trajectory)
    attachment.sha256 = "0" * 64
    attachment.save()
    page = text(ask(people["mira"], "expectation-events", task.pk, "network_checks", trajectory=trajectory.pk))
    assert "The trace cannot be read" in page
    tried = text(
        send(
            people["mira"],
            "try-expectation",
            task.pk,
            "network_checks",
            htmx=True,
            text=CHECKS,
            trajectory=trajectory.pk,
        )
    )
    assert "Unscored" in tried


# --- judges that go by them ------------------------------------------------------------------------------------------


def test_the_plan_of_a_judge_without_a_model_costs_nothing_and_says_what_it_needs(
    people: People, submission: Submission, task: Task
) -> None:
    judge = defining.define(None, name="network", scorer="network-trace")
    expect(task)
    page = text(send(people["mira"], "plan-judge-run", submission.pk, judge=judge.pk, repetitions=1))
    assert "network checks: 1 of 2 trajectories is of a task that has it" in " ".join(page.split())
    assert "<b>0 USD</b>, no model is asked" in page
    assert "Without network checks a trajectory is unscored" in page
    assert "<dt>Model</dt>" not in page
    assert ">Start</button>" in page
    about = text(ask(people["mira"], "judge", judge.pk))
    assert "none: it asks no model" in about
    assert "<dt>Price</dt>" not in about
    assert "How the model is asked" not in about


def test_the_preview_shows_weights_and_conditions_and_counts_the_call_for_each_condition(
    people: People, task: Task
) -> None:
    heavy = "    weight: 2.5\n    condition: Several lamps are offered.\n    steps: last\n"
    plain = RUBRIC.replace("    critical: true\n", "    steps: last\n")
    calls = []
    for given in (plain, RUBRIC.replace("    critical: true\n", heavy)):
        said = " ".join(
            text(send(people["mira"], "preview-expectation", task.pk, "rubric", htmx=True, text=given)).split()
        )
        calls.append([int(number) for number in re.findall(r"(\d+) calls", said)])
    assert "weight 2.5</span>" in said
    assert '<span class="dim">If:</span> Several lamps are offered.' in said
    assert calls[1][0] == calls[0][0] + 2  # two of three votes on the condition
    assert calls[1][1] == calls[0][1]  # a rubric verifier grades the condition with the criterion
