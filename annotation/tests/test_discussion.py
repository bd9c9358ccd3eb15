"""Comments on trajectories after the freeze, and questions about the guidelines before it."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from annotation import privacy, workflow
from annotation.models import Comment, Event, FlagAnswer, Person, Question, Report, Submission, Trajectory
from annotation.tests import testing
from annotation.workflow import discussing
from annotation.workflow.erasing import NamedPlaces, search_names
from evaluations import exports_labels
from evaluations.evidence import names

PAGES = {"alice": "trajectory", "bob": "trajectory", "carol": "adjudication", "mira": "submission-trajectory"}
TOKEN = re.compile(r"""csrfmiddlewaretoken" value="\w+""")


@pytest.fixture
def frozen(people: dict[str, Person], submission: Submission) -> Trajectory:
    """The first trajectory, a decided dispute, of a frozen submission; the second was unanimous and not drawn."""
    submission.spot_check_rate = 0
    submission.save()
    testing.label_all(people, submission, {"task_0000": [1, 0, 1]})
    testing.adjudicate_all(people["carol"], submission)
    workflow.draw_spot_checks(people["mira"], submission)
    workflow.freeze(people["mira"], submission)
    return submission.trajectories.select_related("submission").get(position=0)


@pytest.fixture
def opened(people: dict[str, Person], frozen: Trajectory) -> Trajectory:
    workflow.open_results(people["mira"], frozen.submission)
    frozen.submission.refresh_from_db()
    return frozen


@pytest.fixture
def visit(people: dict[str, Person]) -> Any:
    def client_of(name: str) -> Client:
        client = Client()
        client.force_login(people[name])
        return client

    return client_of


def write(client: Client, trajectory: Trajectory, text: str, **fields: Any) -> Any:
    return client.post(reverse("comment", args=[trajectory.pk]), {"text": text, **fields})


def page_of(client: Client, name: str, trajectory: Trajectory) -> str:
    return client.get(reverse(PAGES[name], args=[trajectory.pk])).content.decode()


# --- comments --------------------------------------------------------------------------------------------------------


def test_members_comment_on_steps_under_pseudonyms_once_the_results_are_open(opened: Trajectory, visit: Any) -> None:
    answer = write(visit("alice"), opened, "<b>Compare</b> step 1.", step="2")
    assert answer["Location"] == reverse("trajectory", args=[opened.pk]) + "?step=2#comments"
    for name, written in (("carol", "I saw it."), ("mira", "Thank you.")):
        answer = write(visit(name), opened, written)
        assert answer["Location"] == reverse(PAGES[name], args=[opened.pk]) + "#comments"

    for name, page in PAGES.items():
        said = page_of(visit(name), name, opened)
        address = reverse(page, args=[opened.pk])
        assert "&lt;b&gt;Compare&lt;/b&gt;" in said
        assert f'<a data-step="1" href="{address}?step=1">step 1</a>' in said
        assert f'href="{address}?step=2">step 2</a>' in said
        for pseudonym in ("A1", "Q1", "M1"):
            assert f"<b>{pseudonym}</b>" in said
        assert [other for other in ("alice", "carol", "mira") if other != name and other in said] == []


@pytest.mark.parametrize(("name", "status"), [("alice", 409), ("carol", 409), ("mira", 302), ("dave", 404)])
def test_only_maintainers_comment_before_the_results_are_open(
    frozen: Trajectory, visit: Any, name: str, status: int
) -> None:
    Comment.objects.create(trajectory=frozen, author_id=1, text="Earlier words.", written_at="2026-01-01T00:00Z")
    assert write(visit(name), frozen, "Mine.").status_code == status
    if name != "dave":
        assert ("Earlier words." in page_of(visit(name), name, frozen)) == (name == "mira")


def test_nobody_reads_or_writes_comments_before_the_freeze_or_after_it_is_undone(
    frozen: Trajectory, people: dict[str, Person], visit: Any
) -> None:
    write(visit("mira"), frozen, "Written while frozen.")
    comment = Comment.objects.get()
    workflow.reopen_submission(people["mira"], frozen.submission, "A mistake.")

    for name in ("alice", "carol", "mira"):
        assert write(visit(name), frozen, "Mine.").status_code == 409
        assert "Written while frozen." not in page_of(visit(name), name, frozen)
    assert visit("alice").post(reverse("delete-comment", args=[comment.pk])).status_code == 404
    workflow.freeze(people["mira"], frozen.submission)
    assert "Written while frozen." in page_of(visit("mira"), "mira", frozen)


def test_an_adjudicator_and_an_outsider_of_the_labels_read_no_comments(
    opened: Trajectory, people: dict[str, Person], visit: Any
) -> None:
    """carol has decided nothing about the second trajectory, so she may not see its labels."""
    second = opened.submission.trajectories.get(position=1)
    write(visit("mira"), second, "About the labels.")
    assert "About the labels." in page_of(visit("alice"), "alice", second)
    assert "About the labels." not in page_of(visit("carol"), "carol", second)
    assert write(visit("carol"), second, "Mine.").status_code == 409
    workflow.deactivate_member(people["mira"], opened.submission, people["alice"])
    assert write(visit("alice"), second, "Mine.").status_code == 404


def test_the_author_deletes_a_comment(opened: Trajectory, visit: Any) -> None:
    write(visit("alice"), opened, "Mine.", step="1")
    delete = reverse("delete-comment", args=[Comment.objects.get().pk])
    assert delete in page_of(visit("alice"), "alice", opened)
    assert delete not in page_of(visit("bob"), "bob", opened)
    assert visit("bob").post(delete).status_code == 404
    assert visit("alice").post(delete)["Location"] == reverse("trajectory", args=[opened.pk]) + "?step=1#comments"
    assert not Comment.objects.exists()


def test_a_comment_can_be_deleted_by_a_maintainer_and_by_an_author_who_was_deactivated(
    opened: Trajectory, people: dict[str, Person], visit: Any
) -> None:
    for name in ("alice", "bob"):
        write(visit(name), opened, f"By {name}.")
    first, second = (reverse("delete-comment", args=[row.pk]) for row in Comment.objects.order_by("pk"))
    workflow.deactivate_member(people["mira"], opened.submission, people["bob"])

    assert first in page_of(visit("mira"), "mira", opened)
    assert visit("mira").post(first).status_code == 302
    assert visit("bob").post(second)["Location"] == reverse("home")
    assert not Comment.objects.exists()


def test_a_superuser_without_a_role_does_not_join_a_frozen_submission_by_a_comment(opened: Trajectory) -> None:
    events = Event.objects.count()
    operator = Person.objects.create_superuser("operator")

    with pytest.raises(workflow.Conflict):
        workflow.write_comment(operator, opened, "From outside.")
    assert Event.objects.count() == events


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"text": "x" * 2001}, "a comment has at most 2,000 characters"),
        ({"text": " \n "}, "Enter a comment."),
        ({"text": "Here.", "step": "3"}, "Step 3 does not exist. Enter 0 to 2, or nothing."),
        ({"text": "Here.", "step": "first"}, "Enter the step as a number."),
    ],
)
def test_a_comment_that_does_not_fit_is_refused(
    opened: Trajectory, visit: Any, fields: dict[str, str], words: str
) -> None:
    answer = visit("alice").post(reverse("comment", args=[opened.pk]), fields)
    assert answer.status_code == 400
    assert words in answer.content.decode()
    assert not Comment.objects.exists()


def test_a_line_end_counts_as_one_character_and_comments_are_limited(opened: Trajectory, visit: Any) -> None:
    alice = visit("alice")
    assert write(alice, opened, "x\r\n" * 999 + "xx").status_code == 302
    assert len(Comment.objects.get().text) == 2000
    row = Comment.objects.get()
    Comment.objects.bulk_create(
        Comment(trajectory=opened, author=row.author, text="More.", written_at=row.written_at)
        for _ in range(discussing.MOST_COMMENTS - 1)
    )
    assert write(alice, opened, "One more.").status_code == 409


# --- questions -------------------------------------------------------------------------------------------------------


def ask(client: Client, submission: Submission, text: str) -> Any:
    return client.post(reverse("ask-question", args=[submission.pk]), {"text": text}, follow=True)


def reply(client: Client, question: Question, **fields: str) -> Any:
    return client.post(reverse("answer-question", args=[question.pk]), {"answer": "The first reading."} | fields)


def places(submission: Submission, name: str) -> list[str]:
    work = "adjudicate" if name == "carol" else "work"
    return [reverse(page, args=[submission.pk]) for page in ("submission-guidelines", work)]


def test_a_question_is_work_for_the_maintainer_and_its_answer_is_read_by_all_without_a_name(
    people: dict[str, Person], submission: Submission, visit: Any
) -> None:
    page = ask(visit("alice"), submission, "Is a <filter> enough?").content.decode()
    assert "Question sent to the maintainer." in page
    question = Question.objects.get()
    shown = "Is a &lt;filter&gt; enough?"
    for name, sees in (("alice", True), ("bob", False), ("carol", False)):
        for place in places(submission, name):
            assert (shown in visit(name).get(place).content.decode()) == sees
    trajectory = workflow.claim(people["bob"], submission).trajectory
    report = workflow.report(people["bob"], trajectory, Report.Kind.TASK_OUTDATED, "The shop is closed.")
    mira = visit("mira")
    assert "1 report and 1 question from" in mira.get(reverse("home")).content.decode()
    assert submission.open_reports() == 2
    workflow.settle_report(people["mira"], report, "Replaced.")
    assert "1 question from annotators and adjudicators" in mira.get(reverse("home")).content.decode()
    page = mira.get(reverse("reports", args=[submission.pk])).content.decode()
    for words in (shown, "A1,", '1<span class="sr"> open report or question</span>'):
        assert words in page
    assert "alice" not in page

    assert reply(mira, question)["Location"] == reverse("reports", args=[submission.pk])
    assert reply(mira, question).status_code == 409
    for name in ("alice", "bob", "carol"):
        for place in places(submission, name):
            page = visit(name).get(place).content.decode()
            assert shown in page
            assert "The first reading." in page
            assert not re.search(r"\bA1\b", TOKEN.sub("", page))
    assert shown not in mira.get(reverse("reports", args=[submission.pk])).content.decode()


def test_a_private_answer_is_read_only_by_the_person_who_asked(
    people: dict[str, Person], submission: Submission, visit: Any
) -> None:
    ask(visit("carol"), submission, "Is it a failure?")
    reply(visit("mira"), Question.objects.get(), to="asker")
    for name, sees in (("carol", True), ("alice", False)):
        for place in places(submission, name):
            assert ("The first reading." in visit(name).get(place).content.decode()) == sees
    assert "The first reading." in visit("mira").get(places(submission, "mira")[0]).content.decode()


@pytest.mark.parametrize(("name", "asks", "answers"), [("alice", 200, 403), ("mira", 403, 302), ("dave", 404, 404)])
def test_members_ask_and_maintainers_answer(
    people: dict[str, Person], submission: Submission, visit: Any, name: str, asks: int, answers: int
) -> None:
    question = workflow.ask_question(people["bob"], submission, "Which one?")
    assert ask(visit(name), submission, "And this?").status_code == asks
    assert reply(visit(name), question).status_code == answers


def test_a_deactivated_member_and_a_frozen_submission_ask_nothing(
    people: dict[str, Person], opened: Trajectory, visit: Any
) -> None:
    page = visit("alice").get(reverse("work", args=[opened.submission_id])).content.decode()
    assert "Ask the maintainer" not in page
    assert ask(visit("alice"), opened.submission, "Now?").status_code == 409
    workflow.deactivate_member(people["mira"], opened.submission, people["bob"])
    guidelines = reverse("submission-guidelines", args=[opened.submission_id])
    assert visit("bob").get(guidelines).status_code == 404


def test_a_question_that_is_open_at_the_freeze_stays_work_until_it_is_answered(
    people: dict[str, Person], submission: Submission, visit: Any
) -> None:
    question = workflow.ask_question(people["bob"], submission, "Which one?")
    Submission.objects.filter(pk=submission.pk).update(frozen_at=timezone.now())
    mira = visit("mira")
    assert "1 question from annotators and adjudicators" in mira.get(reverse("home")).content.decode()

    reply(mira, question)
    shown = mira.get(reverse("home")).content.decode()
    assert "1 question" not in shown
    assert "frozen on" in shown


def test_open_questions_are_limited(people: dict[str, Person], submission: Submission, visit: Any) -> None:
    for number in range(discussing.MOST_OPEN_QUESTIONS):
        workflow.ask_question(people["alice"], submission, f"Question {number}?")
    assert ask(visit("alice"), submission, "One more?").status_code == 409
    assert ask(visit("alice"), submission, "x" * 2001).status_code == 409
    assert ask(visit("bob"), submission, "x" * 2001).status_code == 400


def test_forms_and_links_lead_to_the_questions_of_a_submission(
    people: dict[str, Person], submission: Submission, visit: Any
) -> None:
    guidelines = reverse("submission-guidelines", args=[submission.pk])
    trajectory = workflow.claim(people["alice"], submission).trajectory
    for address in (reverse("guidelines"), reverse("trajectory", args=[trajectory.pk])):
        assert f'href="{guidelines}#questions"' in visit("alice").get(address).content.decode()
    page = visit("alice").get(guidelines).content.decode()
    assert "Do not name a trajectory's verdict." in page
    assert f"<title>Guidelines of {submission} ·" in page


# --- the record, and people who are erased ---------------------------------------------------------------------------


def test_nothing_of_a_discussion_is_in_events_exports_or_bundles(
    people: dict[str, Person], submission: Submission, request: pytest.FixtureRequest
) -> None:
    question = workflow.ask_question(people["alice"], submission, "Ask x@shop.example?")
    workflow.answer_question(people["mira"], question, "Ask y@shop.example.")
    opened = request.getfixturevalue("opened")
    events = Event.objects.count()
    workflow.write_comment(people["alice"], opened, "Ask z@shop.example.")
    assert Event.objects.count() == events
    assert names.named(opened.submission) == []
    assert b"@shop.example" not in b"".join(exports_labels.label_lines(opened.submission, []))


def test_names_in_comments_and_questions_are_found_before_a_person_is_erased(
    people: dict[str, Person], opened: Trajectory
) -> None:
    bob = people["bob"]
    Person.objects.filter(pk=bob.pk).update(last_name="Zwetkowa")
    bob.refresh_from_db()
    Question.objects.create(
        submission=opened.submission, asker=bob, text="Am I, Zwetkowa, right?", asked_at="2026-01-01T00:00Z"
    )
    before = search_names(bob)
    workflow.answer_question(people["mira"], Question.objects.get(), "Yes, Zwetkowa.")
    workflow.write_comment(people["alice"], opened, "As Zwetkowa said.")
    FlagAnswer.objects.create(
        trajectory=opened, answered_by=people["carol"], text="Ask Zwetkowa.", answered_at="2026-01-01T00:00Z"
    )
    found = NamedPlaces(
        opened.submission_id,
        ("question of A2 on the guidelines",),
        ("comment of A1 on task_0000", "flag answer of Q1 on task_0000", "answer of M1 on the guidelines"),
    )
    assert search_names(bob, before)[opened.submission_id].found == found
    before = search_names(bob)
    workflow.write_comment(bob, opened, "Zwetkowa again.")
    with pytest.raises(workflow.NamedInTexts, match="comment of A2 on task_0000"):
        workflow.erase(None, bob, "He left.")
    assert search_names(bob, before) != before


def test_own_comments_questions_and_answers_are_in_the_own_data(people: dict[str, Person], opened: Trajectory) -> None:
    Question.objects.create(
        submission=opened.submission, asker=people["alice"], text="Which?", asked_at="2026-01-01T00:00Z"
    )
    workflow.answer_question(people["mira"], Question.objects.get(), "The first.", private=True)
    workflow.write_comment(people["alice"], opened, "Look.", 1)
    data = privacy.data_of(people["alice"])
    assert [(row["task_id"], row["step"], row["text"]) for row in data["comments"]] == [("task_0000", 1, "Look.")]
    assert [row["text"] for row in data["questions"]] == ["Which?"]
    assert "The first." not in str(data)
    assert [row["answer"] for row in privacy.data_of(people["mira"])["guideline_answers"]] == ["The first."]
