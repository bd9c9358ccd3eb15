"""What helps somebody who writes checks and rubrics: a start, the key points at hand, and messages that mend."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from annotation.formats.documents import FormatError
from annotation.models import Attachment, Person, Submission, Task
from annotation.records import AttachmentKind
from judges import defining, expectations, planning
from judges.expectations import Kind
from judges.models import Expectation, Judge
from judges.scorers.network_trace import checks
from judges.scorers.rubric import written
from judges.scorers.rubric.judge import collect_evidence
from judges.tests.expecting import CHECKS, RUBRIC, ask, entry, expect, give_trace, send, text
from judges.views.check_texts import list_events

People = dict[str, Person]


def messages(parse: Any, given: str) -> list[str]:
    with pytest.raises(FormatError) as refused:
        parse(given)
    return [problem.message for problem in refused.value.problems]


# --- a plan says what will be unscored -------------------------------------------------------------------------------


def asking(name: str, scorer: str, **parameters: Any) -> Judge:
    return defining.define(None, name=name, scorer=scorer, model="some-model", parameters=parameters)


def test_a_plan_of_a_rubric_judge_counts_the_tasks_that_have_a_rubric_or_a_script(
    submission: Submission, tmp_path: Path, settings: Any
) -> None:
    first, second = [one.task for one in submission.trajectories.order_by("position")]
    auto, alone = asking("auto", "rubric"), asking("alone", "rubric", source="script")

    def present(judge: Judge) -> int:
        return planning.plan(judge, submission, {}).meeting_requirement

    assert (present(auto), present(alone)) == (0, 0)
    expect(first, RUBRIC, Kind.RUBRIC)
    assert (present(auto), present(alone)) == (1, 0)
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / f"{second.external_id}.py").write_text("pass")
    settings.RUBRIC_SCRIPTS = str(tmp_path / "scripts")
    assert (present(auto), present(alone)) == (2, 1)
    expectations.withdraw(None, first, Kind.RUBRIC)
    assert present(auto) == 1


def test_a_plan_of_an_action_judge_counts_the_trajectories_with_reference_steps(
    submission: Submission, people: People
) -> None:
    judge = asking("actor", "action-selection")
    page = " ".join(text(send(people["mira"], "plan-judge-run", submission.pk, judge=judge.pk, repetitions=1)).split())
    assert "reference steps: 0 of 2 trajectories have them" in page
    assert "Without reference steps a trajectory is unscored" in page
    trajectory = submission.trajectories.earliest("position")
    for number in (0, 1):
        Attachment.objects.create(
            trajectory=trajectory, kind=AttachmentKind.REFERENCE_STEP, name=f"{number}.json", sha256="a" * 64, size=1
        )
    found = planning.plan(judge, submission, {})
    assert (found.meeting_requirement, found.trajectories, found.unscored) == (1, 2, 1)


# --- key points ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "start"), [("network_checks", CHECKS), ("rubric", RUBRIC)])
def test_a_key_point_that_the_task_has_not_is_shown_with_the_nearest(
    people: People, task: Task, kind: str, start: str
) -> None:
    known = task.key_points.earliest("position").text
    line = {"network_checks": "    key_point: at least 16 GB", "rubric": "    about: screenshots"}[kind]

    def said(point: str) -> str:
        wanted = start.replace(line, f"{line if kind == 'rubric' else ''}\n    key_point: {point}".lstrip("\n"))
        return text(send(people["mira"], "preview-expectation", task.pk, kind, htmx=True, text=wanted))

    assert "no key point" not in said(f'"{known}"')
    assert "no key point" not in said("1")
    assert f"Did you mean: {known}?" in said(f'"{known}x"')
    assert "The task has no key point 99" in said("99")


def test_the_key_points_of_the_task_stand_beside_the_editor(people: People, task: Task) -> None:
    for kind in Kind:
        page = text(ask(people["mira"], "expectation", task.pk, kind.value))
        listed = page.split('id="key-points"')[1].split("</section>")[0]
        for point in task.key_points.values_list("text", flat=True):
            assert point in listed


def test_a_rubric_names_a_key_point_by_its_number_as_checks_do(task: Task) -> None:
    found = written.parse(RUBRIC.replace("    critical: true\n", "    key_point: 1\n"))
    known = ("first", "second")
    assert [one.text for one in collect_evidence(found, {}, known)] == ["first"]
    assert collect_evidence(found, {}, ()) == ()
    for bad in ("0", "-1", "true", "[1]"):
        wrong = RUBRIC.replace("    critical: true\n", f"    key_point: {bad}\n")
        assert any("key_point" in one for one in messages(written.parse, wrong)), bad


def test_network_checks_start_from_the_key_points_as_comments_that_become_checks(people: People, task: Task) -> None:
    page = text(ask(people["mira"], "expectation", task.pk, "network_checks", start="key-points"))
    draft = page.split("<textarea")[1].split(">", 1)[1].split("</textarea>")[0].lstrip("\n")
    points = list(task.key_points.order_by("position").values_list("text", flat=True))
    assert points
    for point in points:
        assert point in draft
    assert not Expectation.objects.exists()
    parsed = checks.parse(re.sub(r"^  # (?=- |  )", "  ", draft, flags=re.MULTILINE))
    assert [check.key_point for check in parsed.checks] == points


# --- messages --------------------------------------------------------------------------------------------------------


def test_a_message_beside_its_line_does_not_say_the_line_again(people: People, task: Task) -> None:
    wrong = CHECKS.replace("url:", "ulr:")
    said = text(send(people["mira"], "preview-expectation", task.pk, "network_checks", htmx=True, text=wrong))
    assert '>line 4</a>: <span class="agent">`ulr` is not a key of a check; did you mean `url`?</span>' in said
    page = text(send(people["mira"], "write-expectation", task.pk, "network_checks", text=wrong, after=0), 400)
    assert "did you mean `url`?" in page
    assert "checks, line" not in page
    wrong = RUBRIC.replace("pass_score: 0.5", "pass_score: 5")
    said = text(send(people["mira"], "preview-expectation", task.pk, "rubric", htmx=True, text=wrong))
    assert '>line 1</a>: <span class="agent">pass_score' in said
    assert "rubric, line" not in said


@pytest.mark.parametrize(
    ("parse", "given", "says"),
    [
        (checks.parse, "checks:\n  - name: price: low\n    url: http://a.example/\n", "quotation marks"),
        (checks.parse, "checks:\n  - name: low\n\turl: http://a.example/\n", "indent with spaces"),
        (checks.parse, "checks:\n\t- name: low\n", "indent with spaces"),
        (checks.parse, CHECKS + "    event_type: navigate\n", "did you mean navigation?"),
        (checks.parse, CHECKS + "    query_params_schema: {q: {type: strin}}\n", "did you mean string?"),
        (checks.parse, CHECKS + "    should_not_exist: yes\n", "write true"),
        (checks.parse, CHECKS.replace("last_event_only: false", "last_event_only: No"), "write false"),
        (written.parse, RUBRIC.replace("about: answer", "about: anser"), "did you mean answer?"),
        (written.parse, RUBRIC.replace("sequential", "sequental"), "did you mean sequential?"),
        (written.parse, RUBRIC.replace("critical: true", "critical: yes"), "write true"),
    ],
)
def test_a_near_miss_is_told_how_to_mend_it(parse: Any, given: str, says: str) -> None:
    found = messages(parse, given)
    assert len(found) == 1, found
    assert says in found[0]


@pytest.mark.parametrize(
    ("parse", "given", "says"),
    [
        (checks.parse, CHECKS.replace("url:", "ulr:"), "did you mean `url`?"),
        (written.parse, "about: answer\nnodes:\n  - clam: The list\n", "did you mean `claim`?"),
        (written.parse, "abuot: answer\nnodes:\n  - claim: The list\n  - claim: Other\n", "did you mean `about`?"),
        (
            written.parse,
            "about: answer\nnodes:\n  - gruop: A\n    children:\n      - claim: B\n",
            "did you mean `group`?",
        ),
        (written.parse, "nodes:\n  - claim: A\n    abuot: answer\n", "did you mean `about`?"),
    ],
)
def test_a_misspelt_key_is_one_problem_and_no_cascade(parse: Any, given: str, says: str) -> None:
    found = messages(parse, given)
    assert len(found) == 1, found
    assert says in found[0]


def test_a_key_that_is_missing_is_still_told_beside_another_misspelt_one() -> None:
    found = messages(checks.parse, CHECKS.replace("    url: http://shop.example/search\n", "    hedders: {}\n"))
    assert len(found) == 2


# --- a check out of a trace ------------------------------------------------------------------------------------------


def test_a_check_out_of_a_trace_says_no_more_than_it_must(people: People, submission: Submission, task: Task) -> None:
    trajectory = submission.trajectories.get(task=task)
    give_trace(
        trajectory,
        (
            entry("GET", "http://shop.example/list?tag=a&empty="),
            entry("POST", "http://shop.example/cart", "item=lamp"),
            entry("GET", "http://shop.example/done"),
        ),
    )
    first, sent, last = [snippet for _, snippet in list_events(trajectory).events]
    assert "tag: a" in first.replace('"', "")
    assert not [word for word in ("http_method", "response_status", "event_type") if word in first]
    assert "last_event_only: false" in first
    assert re.search(r"ignored_query_params:\s*(\[|- )\"?empty", first.replace("\n", " "))
    assert "http_method: POST" in sent
    assert "last_event_only" not in last


# --- the keys on the page --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "known"),
    [
        (Kind.NETWORK_CHECKS, {*checks.TOP_KEYS, *checks.NETWORK_KEYS, *checks.ANSWER_KEYS, "expected"}),
        (Kind.RUBRIC, {*written.RUBRIC_KEYS, *written.GROUP_KEYS, *written.CLAIM_KEYS}),
    ],
)
def test_the_editor_explains_every_key_and_no_other(people: People, task: Task, kind: Kind, known: set[str]) -> None:
    page = text(ask(people["mira"], "expectation", task.pk, kind.value))
    told = re.findall(r'<dt class="mono">([^<]*)</dt>', page)
    assert {name for each in told for name in each.split(", ")} == known
    assert "docs/" not in page


# --- the way to and around judges ------------------------------------------------------------------------------------


def test_a_scorer_whose_package_is_missing_says_so_before_it_is_chosen_and_on_its_form(
    people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    Person.objects.filter(pk=people["mira"].pk).update(is_staff=True)
    monkeypatch.setitem(sys.modules, "webarena_verified", None)
    cards = text(ask(people["mira"], "define-judge")).split('<li class="card">')
    marked = [card for card in cards if "not installed" in card]
    assert len(marked) == 1
    assert "webarena-verified" in marked[0]
    assert "Run: config/install.sh parity" in text(ask(people["mira"], "define-judge", scorer="webarena-verified"))
    assert "not installed" not in text(ask(people["mira"], "define-judge", scorer="network-trace"))


def test_the_form_of_network_checks_says_what_it_compares_as(people: People) -> None:
    Person.objects.filter(pk=people["mira"].pk).update(is_staff=True)
    page = text(ask(people["mira"], "define-judge", scorer="network-trace"))
    assert "Compare as" in page
    assert ">this project's own rules</option>" in page
    assert "not sent" not in page


def test_a_rubric_leads_to_a_test_of_its_own_task(people: People, task: Task, settings: Any) -> None:
    settings.JUDGE_ENDPOINTS = {"default": "http://127.0.0.1:9/v1"}
    judge = asking("rubrics", "rubric")
    page = text(ask(people["mira"], "expectation", task.pk, "rubric"))
    link = f"{reverse('judge', args=[judge.pk])}?task={task.external_id}"
    assert link in page
    client = Client()
    client.force_login(people["mira"])
    assert f'value="{task.external_id}"' in text(client.get(link))


def test_checks_and_rubrics_have_a_place_of_their_own_on_the_benchmark(people: People) -> None:
    page = text(ask(people["mira"], "benchmark", "shops"))
    link = reverse("expectations", args=["shops"])
    assert page.count(link) == 1
    assert link not in page.split("Imported labels")[1]
