"""Names that people wrote into what a bundle holds are found, and ordinary words are not."""

from __future__ import annotations

import time

import pytest
from django.utils import timezone

from annotation import workflow
from annotation.demo.load import everything
from annotation.models import Agent, KeyPoint, Membership, Person, Report, Submission, Task, Trajectory
from annotation.models.events import append
from annotation.records import AttemptContent
from annotation.tests import testing
from evaluations.evidence.judging import without_addresses
from evaluations.evidence.names import named
from evaluations.tests.builders import reviewed
from judges.models import Judgment
from judges.tests import rows as judged

pytestmark = pytest.mark.django_db


@pytest.fixture
def first(submission):
    return submission.trajectories.get(position=0)


def places(submission):
    return [problem.where for problem in named(submission)]


def name(person, **fields):
    Person.objects.filter(pk=person.pk).update(**fields)


def says(people, trajectory, text):
    """The places that are found when alice's label says ``text``."""
    testing.label(people["alice"], trajectory, reasoning=text)
    return places(trajectory.submission)


FOUND = [
    ("zwetkowa", "As Zwetkowa said, it is there."),
    ("zwetkowa", "see ZWETKOWA's note"),
    ("first", "Jürgen and I looked."),
    ("first", "Juergen and I looked."),
    ("first", "jurgen_looked at it"),
    ("last", "Written by müller-lüdenscheidt."),
    ("last", "Written by Lüdenscheidt."),
    ("e-mail", "Write to j.mueller@people.example"),
    ("part of the e-mail", "I am j.mueller there"),
    ("e-mail of anybody", "Write to somebody@shop.example."),
    ("e-mail in a link", "mailto:somebody@shop.example?subject=x"),
    ("address", "It came from 203.0.113.7, said the page."),
    ("address in a link", "https://203.0.113.7/basket"),
    ("long address", "It came from 2001:db8::17."),
    ("hidden by signs that nobody sees", "Zwet\u200bkowa looked."),
]


@pytest.mark.parametrize(("what", "text"), FOUND, ids=[what for what, _ in FOUND])
def test_an_identity_in_a_reasoning_is_found(submission, people, first, what, text):
    name(
        people["bob"],
        username="zwetkowa",
        first_name="Jürgen",
        last_name="Müller-Lüdenscheidt",
        email="j.mueller@people.example",
    )
    assert says(people, first, text) == ["label of A1 on task_0000"]


NOT_FOUND = [
    "The sale ends in May, and the agent may have missed it.",
    "Mayor of the town; Maytag dishwasher.",
    "It took from 10:30:00 to 12:15 and cost 1.299.00.",
    "Chrome/120.0.0.0, version 1.2.3.4 and v1.2.3.4 of the page at http://localhost:8000, or 127.0.0.1.",
    "The picture logo@2x.png is missing; 12.5.2026; 999.1.1.1; std::vector.",
    "In 2024 the cheapest laptop was in the cart; A12 and A1 agree.",
]


@pytest.mark.parametrize("text", NOT_FOUND)
def test_ordinary_words_and_numbers_are_no_identity(submission, people, first, text):
    name(people["alice"], username="may", first_name="May", last_name="Will")
    name(people["bob"], username="laptop", first_name="2024", last_name="Cart")  # words of the tasks
    name(people["chen"], username="a12", first_name="Bo", last_name="")
    assert says(people, first, text) == []


@pytest.mark.parametrize("text", ["May Will did it.", "will, may", "ask @may", "may.will@people.example"])
def test_a_name_that_is_a_word_counts_where_it_can_only_be_a_name(submission, people, first, text):
    name(people["alice"], username="may", first_name="May", last_name="Will")
    assert says(people, first, text) == ["label of A1 on task_0000"]


def test_a_name_in_a_script_without_blanks_is_found_inside_a_sentence(submission, people, first):
    name(people["bob"], username="someone-else", first_name="芳", last_name="王")
    assert says(people, first, "我和王芳看过了。") == ["label of A1 on task_0000"]


def test_the_message_never_repeats_the_name(submission, people, first):
    name(people["bob"], last_name="Zwetkowa")
    says(people, first, "Zwetkowa did it.")
    [problem] = named(submission)
    assert problem.code == "name_in_text"
    assert "label of A1 on task_0000" in problem.message
    assert "wetkowa" not in str(problem)


def test_every_text_that_goes_into_a_bundle_is_looked_through(submission, people, first):
    Submission.objects.filter(pk=submission.pk).update(protocol_version=2)
    submission.refresh_from_db()
    name(people["bob"], last_name="Zwetkowa")
    alice, bob, chen, carol, mira = (people[who] for who in ("alice", "bob", "chen", "carol", "mira"))
    second = submission.trajectories.get(position=1)
    said = "Zwetkowa"
    attempt = {"attempt": AttemptContent(3, "It works.", "", "as_short")}
    workflow.claim_this(alice, second)
    workflow.release(alice, second, said)
    workflow.claim_this(alice, first)
    workflow.report(alice, first, Report.Kind.TASK_OUTDATED, "Is it?")
    for person in (alice, bob, chen):
        if person != alice:
            workflow.claim_this(person, first)
        told = AttemptContent(3, "It works.", f"https://notes.example/{said}", "as_short") if person == bob else None
        verdict = 0 if person == chen else 1
        given = testing.content(first, verdict, **(attempt | ({"attempt": told} if told else {})))
        workflow.submit(person, first, given)
    workflow.revise(alice, first, testing.content(first, 1, reasoning="Said better.", **attempt), said)
    workflow.flag(chen, first, said)
    workflow.settle_report(mira, Report.objects.get(), said)
    workflow.open_adjudication(carol, first)
    workflow.decide(carol, first, testing.content(first, 1, reasoning=said))
    workflow.reopen(mira, first, said)
    workflow.offer_again(mira, second, said)
    kinds = [place.removesuffix(" on task_0000").removesuffix(" on task_0001") for place in places(submission)]
    assert kinds[:7] == [
        "label of A1",
        "own attempt of A2",
        "adjudication of Q1",
        "reopening of M1",
        "flag of A3",
        "report of A1",
        "release of A1",
    ]
    assert [kind.split()[-1] for kind in kinds[7:]] == ["(offered_again)"]


def test_names_that_people_gave_to_what_a_bundle_is_about_are_looked_through(submission, people, first):
    name(people["bob"], username="zwetkowa")
    report = {"accepted": ["zwetkowa"], "rejected": [], "warnings": [{"task_id": "zwetkowa", "message": "all is well"}]}
    Submission.objects.filter(pk=submission.pk).update(import_report=report)
    assert places(submission) == []
    report["warnings"][0]["where"] = "home/zwetkowa/result.json"
    practice = testing.bare_submission(1, agent="Zwetkowa practises")
    Submission.objects.filter(pk=submission.pk).update(import_report=report, practice_set=practice)
    Agent.objects.filter(pk=submission.agent_id).update(name="Agent of Zwetkowa")
    type(submission.benchmark).objects.filter(pk=submission.benchmark_id).update(name="Shops by Zwetkowa")
    assert places(submission) == [
        "name of the agent",
        "name of the benchmark",
        "name of the practice set",
        "import report",
    ]


JUDGES = [
    ({"name": "zwetkowa"}, True),
    ({"model": "zwetkowa/small"}, True),
    ({"prompts": "loaded/zwetkowa@0f"}, True),
    ({"parameters": {"voices": ["zwetkowa"]}}, True),
    ({"generation": {"stop": ["ask 203.0.113.7"]}}, True),
    ({"description": "by zwetkowa"}, False),  # no bundle has it
    ({"endpoint": "zwetkowa"}, False),
    ({"model": "/home/zwetkowa/small"}, False),  # a bundle has the last part
    ({"model": "http://203.0.113.7/small"}, False),
    ({"parameters": {"sites": {"shop": "http://203.0.113.7"}, "hint": "see http://203.0.113.7/x"}}, False),
]


@pytest.mark.parametrize(("fields", "there"), JUDGES, ids=[str(fields) for fields, _ in JUDGES])
def test_what_people_called_judges_is_looked_through_as_far_as_a_bundle_has_it(submission, people, fields, there):
    name(people["bob"], username="zwetkowa")
    judge = judged.judge_row(**({"name": "careful"} | fields))
    run = judged.run_row(submission, judge)
    assert places(submission) == ([f"judge {judge.pk} (name, model or parameters)"] if there else [])
    assert named(submission, judges=False) == []
    type(run).objects.update(test=True)
    assert places(submission) == []


def test_judges_whose_judgments_were_imported_are_looked_through_and_other_ones_are_not(submission, people, first):
    name(people["bob"], username="zwetkowa")
    judge = judged.judge_row("zwetkowa", scorer="imported")
    row = {"judge": judge, "fingerprint": "0" * 64, "task": first.task, "verdict": 1, "made_at": timezone.now()}
    Judgment.objects.create(agent=testing.bare_submission(1, agent="Other").agent, imported={}, **row)
    assert places(submission) == []
    Judgment.objects.create(agent=submission.agent, imported={}, **row)
    assert len(places(submission)) == 1


@pytest.mark.parametrize(
    ("kind", "payload"),
    [
        ("judge_run_started", {"run": 1, "judge": "zwetkowa@1", "fingerprint": "0" * 64, "test": True}),
        ("judge_run_stopped", {"run": 1, "judge": "careful@1", "reason": "No endpoint; known are zwetkowa-lab."}),
        ("judge_run_stopped", {"run": 1, "judge": "careful@1", "reason": "No answer of 203.0.113.7:8000."}),
    ],
)
def test_events_of_judges_are_looked_through_whether_or_not_the_judges_are_in_the_bundle(
    submission, people, kind, payload
):
    name(people["bob"], username="zwetkowa")
    event = append(submission, kind, **payload)
    assert places(submission) == [f"event {event.sequence} ({kind})"]
    assert [problem.where for problem in named(submission, judges=False)] == places(submission)


def test_reasons_of_judgments_are_looked_through(submission, people, first):
    name(people["bob"], username="zwetkowa")
    judge = judged.judge_row("elsewhere", scorer="imported")
    row = {"judge": judge, "fingerprint": "0" * 64, "task": first.task, "imported": {}, "made_at": timezone.now()}
    other = testing.bare_submission(1, agent="Other")
    Judgment.objects.create(agent=other.agent, unscored="zwetkowa did not answer", **row)
    Judgment.objects.create(agent=submission.agent, unscored="203.0.113.7:8000 did not answer", **row)
    assert places(submission) == []  # of another agent, and an address that is taken out
    row["repetition"] = 2
    Judgment.objects.create(agent=submission.agent, unscored="zwetkowa (10.0.0.5) did not answer", **row)
    run = judged.run_row(submission, judged.judge_row("here"))
    judged.judgment_row(run.items.first(), None, unscored="ask somebody@shop.example")
    assert places(submission) == [
        f"reason of judge {judge.pk} on task_0000",
        f"reason of judge {run.judge.pk} on task_0000",
    ]
    assert named(submission, judges=False) == []
    type(run).objects.update(test=True)
    assert places(submission) == [f"reason of judge {judge.pk} on task_0000"]


REASONS = [
    ("https://llm.example/v1 did not answer", "(address) did not answer"),
    ("10.0.0.5:8000 did not answer (10.0.0.6)", "(address) did not answer ((address))"),
    ("2001:db8::17: refused; [2001:db8::17]:8000, fe80::1%eth0", "(address): refused; (address), (address)"),
    (
        "llm.corp.example:443 refused, localhost:80 too, gpu-box:8000 too",
        "(address) refused, (address) too, (address) too",
    ),
    ("at 10:30:00 step:12 of Chrome/120.0.0.1, version 1.2.3.4, 1.299.00", None),
    ("std::vector, a ratio of 4:3, llama3:70b, Error: 5000, 2024-01-02T10:30:00", None),
]


@pytest.mark.parametrize(("said", "stated"), REASONS)
def test_no_reason_of_a_judgment_states_an_address(said, stated):
    assert without_addresses(said) == (stated or said)


def test_a_key_point_of_any_task_of_the_benchmark_is_looked_through(submission, people, first):
    name(people["bob"], username="zwetkowa")
    task = Task.objects.create(benchmark=submission.benchmark, external_id="not_done", text="Do it.")
    point = {"position": 1, "text": "as zwetkowa says", "proposed_by": people["bob"], "accepted_at": timezone.now()}
    KeyPoint.objects.create(task=task, **point)
    assert places(submission) == ["key point of A2 on not_done"]


def test_what_the_agent_did_is_not_looked_through(submission, people, first):
    name(people["bob"], last_name="Zwetkowa")
    Trajectory.objects.filter(pk=first.pk).update(final_answer="Zwetkowa, mail to x@shop.example")
    first.steps.update(thought="203.0.113.7")
    assert named(submission) == []


def test_who_was_erased_has_no_name_to_look_for(submission, people, first):
    name(people["bob"], username="erased-0f", erased_at=timezone.now())
    assert says(people, first, "This was erased-0f.") == []


def test_the_demo_holds_no_names(db):
    list(everything())
    assert Submission.objects.count() > 1
    assert [named(each) for each in Submission.objects.all() if named(each)] == []


def test_three_hundred_trajectories_take_a_few_queries_and_little_time(db, django_assert_max_num_queries):
    submission = reviewed(1, 300).submissions.get()
    for number, member in enumerate(Membership.objects.filter(submission=submission).select_related("person")):
        name(member.person, first_name=f"Vorname{number}", last_name=f"Nachname{number}")
    started = time.process_time()
    with django_assert_max_num_queries(17):
        named(submission)
    assert time.process_time() - started < 2
