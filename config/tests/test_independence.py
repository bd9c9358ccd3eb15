"""Every address as every role: nobody is shown what the protocol hides from them.

The addresses come from the resolver. One that `addresses.arguments` cannot fill in fails the test, so a new page is
either walked or noticed.
"""

import hashlib
import re
from dataclasses import replace

import pytest
from django.conf import settings
from django.db import connection, transaction
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from annotation import ingest, screenshots, webhooks, workflow
from annotation.models import (
    ApiToken,
    Attachment,
    Comment,
    KeyPoint,
    KnownAnswer,
    Label,
    Person,
    Phrase,
    Report,
    Trajectory,
    Upload,
)
from annotation.records import Finding, StepMark
from annotation.tests import testing
from annotation.tests.shared_rows import shared_rows
from annotation.workflow.guards import join
from config.tests.addresses import addresses, patterns
from evaluations import signing
from judges import defining, disclosure
from judges.expectations import Kind
from judges.models import Judge, Judgment
from judges.prompts import load_builtin
from judges.tests import rows as judged
from judges.tests.expecting import CHECKS, RUBRIC, expect, give_trace

pytestmark = pytest.mark.django_db
NAMES = ("alice", "bob", "chen", "carol", "mira")
LOOKS = {"django_session"}


# --- a submission in the middle of its protocol, in which every text says whose it is --------------------------------


# How each person's marks on steps would be shown, in the form, in words or as data.
PROCESS = {"alice": "wrong", "bob": "unnecessary", "chen": "side effect", "carol": "wrong"}


def mark(name, what, trajectory=None):
    return f"MARK-{name}-{what}-{trajectory.position if trajectory else ''}-"


def content(name, trajectory, verdict):
    findings = testing.content(trajectory, verdict).findings
    base = testing.content(trajectory, verdict, findings=tuple(replace(f, step=1) for f in findings))
    unmet = tuple(replace(f, finding=Finding.UNMET) for f in base.findings) if verdict == 1 else base.findings
    return replace(
        base,
        reasoning=mark(name, "reasoning", trajectory),
        exception_reason=mark(name, "exception", trajectory),
        findings=unmet,
        process=(StepMark(2, PROCESS[name].replace(" ", "_")),) if name in PROCESS else (),
    )


@pytest.fixture(autouse=True)
def own_images(tmp_path, settings):
    settings.MEDIA_ROOT = tmp_path / "images"


@shared_rows
def protocol(folder):
    """0: bob and chen differ, alice holds it. 1: unanimous, drawn. 2: unanimous, flagged by bob. 3: held by chen.

    3 is a gold item. There is a practice set of one item, which nobody has answered yet. The same people have reviewed
    another agent on the tasks of 0 and 1.
    """
    signing.active_key()  # which the first bundle that is fetched would make
    submission = testing.submission(folder, trajectories=4)
    submission.spot_check_rate, submission.process_labels = 1.0, True
    submission.save()
    people = testing.cast(submission)
    rows = list(Trajectory.objects.order_by("position"))
    review_another(submission.benchmark, people, folder.with_name("another"))
    for name, first in (("bob", 0), ("chen", 1)):
        workflow.claim_this(people[name], rows[0])
        workflow.submit(people[name], rows[0], content(name, rows[0], first))
    for row in rows[1:3]:
        for name in ("alice", "bob", "chen"):
            workflow.claim_this(people[name], row)
            workflow.submit(people[name], row, content(name, row, 1))
    revised = replace(content("bob", rows[1], 1), evidence_missing=(0,))
    workflow.revise(people["bob"], rows[1], revised, mark("bob", "revision", rows[1]))
    workflow.flag(people["bob"], rows[2], mark("bob", "flag", rows[2]))
    workflow.report(people["bob"], rows[1], Report.Kind.TASK_OUTDATED, mark("bob", "report", rows[1]))
    answered = workflow.ask_question(people["chen"], submission, mark("chen", "question"))
    workflow.answer_question(people["mira"], answered, mark("chen", "answer"), private=True)
    workflow.ask_question(people["bob"], submission, mark("bob", "question"))
    for name in ("chen", "bob"):  # as after a freeze that was undone
        Comment.objects.create(
            trajectory=rows[0], author=people[name], text=mark(name, "comment", rows[0]), written_at=timezone.now()
        )
    workflow.draw_spot_checks(people["mira"], submission)
    workflow.claim_this(people["alice"], rows[0])
    workflow.save_draft(people["alice"], rows[0], {"reasoning": mark("alice", "draft", rows[0])}, 0)
    workflow.claim_this(people["chen"], rows[3])
    workflow.save_draft(people["chen"], rows[3], {"reasoning": mark("chen", "draft", rows[3])}, 0)
    workflow.set_known_answer(people["mira"], rows[3], content("known", rows[3], 1))
    set_of_one = testing.practice_set(people, submission, folder.with_name("practice"), answers=(0,))
    known = content("known", set_of_one.trajectories.get(), 0)
    workflow.set_known_answer(people["mira"], set_of_one.trajectories.get(), known)
    KeyPoint.objects.create(task=rows[0].task, position=9, text=mark("bob", "proposal"), proposed_by=people["bob"])
    ApiToken.issue(people["mira"], "mira's token", "admin")
    Phrase.objects.create(person=people["bob"], text=mark("bob", "phrase"))
    response = hashlib.sha256(b"{}").hexdigest()
    screenshots.keep_bytes(response, b"{}")
    Attachment.objects.create(
        trajectory=rows[0], kind="agent_response", name="agent_response.json", sha256=response, size=2
    )
    page = rows[0].steps.get(index=0).screenshot  # as the picture of a kept page
    workflow.redact(people["mira"], submission, page, [[0, 0, 5, 5]], mark("known", "cover"))
    Attachment.objects.create(
        trajectory=rows[0], kind="cached_page", name="pages/x.jpg", sha256=page.sha256, size=page.size
    )
    give_trace(rows[0])
    expect(rows[0].task, CHECKS.replace("The search", mark("expected", "check")))
    expect(rows[0].task, RUBRIC.replace("The lamp", mark("expected", "claim")), Kind.RUBRIC)
    workflow.configure(people["mira"], submission, second_stage=True)
    Upload.objects.create(
        uploaded_by=people["mira"],
        benchmark=submission.benchmark,
        agent_name="Careful Agent",
        file_name="package.zip",
        stored_as="uploads/none",
        report={"accepted": [], "rejected": [], "warnings": []},
        finished_at=submission.created_at,
        submission=submission,
    )
    webhook, _ = webhooks.create(people["mira"], submission, "https://hooks.example.org/", ["submission.frozen"])
    webhooks.test(webhook)
    judge_elsewhere(submission, came_with=set_of_one)
    defining.define(None, name="strict", scorer="webjudge", model="some-model")
    defining.set_terms(None, endpoint="default", model="some-model", input_price=1, output_price=4)
    judge_everything(submission)
    return submission, people, rows


def review_another(benchmark, people, folder):
    """A second agent on two of the tasks: alice differs at the first. It is frozen and its results are open."""
    package = testing.write_submission(folder, 2, steps=4)
    _, other = ingest.import_submission(package, benchmark=benchmark, agent_name="Second Agent")
    testing.cast(other)
    other.spot_check_rate, other.process_labels = 0.0, True
    other.save()
    rows = other.trajectories.order_by("position")
    for row in rows:
        for name in ("alice", "bob", "chen"):
            workflow.claim_this(people[name], row)
            workflow.submit(people[name], row, content(name, row, int(name == "alice" and row == rows[0])))
    workflow.draw_spot_checks(people["mira"], other)
    workflow.open_adjudication(people["carol"], rows[0])
    workflow.decide(people["carol"], rows[0], content("carol", rows[0], 0))
    workflow.freeze(people["mira"], other)
    workflow.open_results(people["mira"], other)


def judge_everything(submission, name="MARK-judge-name--"):
    """A run with a judgment of every trajectory and its calls, and one that was made elsewhere, all marked."""
    run = judged.run_row(submission, judged.judge_row(name))
    for item in run.items.select_related("trajectory__task", "run__judge"):
        said = mark("judge", "said", item.trajectory)
        judged.judgment_row(item, item.trajectory.position % 2, said)
        judged.call_row(item, mark=said)
    judged.imported_row(submission.trajectories.earliest("pk"), mark=mark("judge", "imported"), repetition=run.pk)
    judged.card_rows(run.judge, submission.benchmark.submissions.filter(practice=False), mark("judge", "card"))


def judge_elsewhere(submission, came_with):
    """A judge that came in an evidence bundle of another submission, with a judgment that nothing keeps from this one.

    Nobody may see it, so nobody's marks are those of "foreign".
    """
    names = {name: mark("foreign", name) for name in ("name", "model", "description")}
    prompts = {"prompts": "webjudge/1", "prompts_digest": load_builtin("webjudge/1").digest}
    stated = {"stated": "f" * 64, "frozen_at": submission.created_at}
    judge = Judge.objects.create(**names, **prompts, **stated, scorer="imported", came_with=came_with)
    Judgment.objects.create(
        judge=judge,
        fingerprint=judge.fingerprint,
        task=submission.trajectories.earliest("pk").task,
        agent=submission.agent,
        verdict=1,
        imported={"run": mark("foreign", "said")},
        made_at=submission.created_at,
    )


# --- every address ---------------------------------------------------------------------------------------------------


def client_of(people, name):
    client = Client(raise_request_exception=False)
    if name is not None:
        client.force_login(people[name])
    return client


def body(response):
    data = b"".join(response.streaming_content) if response.streaming else response.content
    return data.decode("utf-8", "replace")


NOT_ALLOWED = set()  # routes that have no such method, for anybody: nearly half of all requests of a walk


def walk(people, rows, name, client=None, methods=("get", "post")):
    """(route, address, method, everything the answer says) for every address; nothing that is done stays done.

    Two walks that are compared have one ``client``: signing in again adds to the list of one's sessions.
    """
    client = client or client_of(people, name)
    # The schema of the API is the same for everybody, and takes a tenth of a walk.
    left_out = ["sign-out"] if name in (None, "mira") else ["sign-out", "api/schema"]
    for route, address in [pair for pair in addresses(rows) if not any(part in pair[0] for part in left_out)]:
        for method in methods:
            if (route, method) in NOT_ALLOWED:
                yield route, address, method, "405"
                continue
            with transaction.atomic():
                # To htmx a look is answered by what is seen, to others by the way there, and it is undone here at once.
                headers = {"HX-Request": "true"} if address.endswith("/look") else {}
                response = getattr(client, method)(address, headers=headers)
                said = f"{response.status_code} {dict(response.items())} {body(response)}"
                transaction.set_rollback(True)
            client.cookies.pop("messages", None)  # the word of thanks for what was just rolled back
            assert response.status_code < 500, f"{name} {method} {address}: {said[:200]}"
            if response.status_code == 405:
                NOT_ALLOWED.add((route, method))
                said = "405"
            yield route, address, method, said


# --- what each role may be shown -------------------------------------------------------------------------------------


def forbidden_marks(name, said):
    """Marks of others in an answer, as the role of ``name`` may see them at this point of the protocol."""
    marks = {(who, what, where) for who, what, where in re.findall(r"MARK-(\w+)-(\w+)-(\d*)-", said)}
    if name not in ("carol", "mira"):
        marks |= {
            (who, "process", "")
            for who, words in PROCESS.items()
            if words != PROCESS.get(name) and shows_process(words, said)
        }
    if name == "carol":  # the dispute is hers to see; drafts, proposals, blind spot checks and judgments are not
        hidden = {m for m in marks if m[0] == "judge" or m[1] in ("draft", "proposal", "comment")}
        return hidden | {m for m in marks if m[0] != "carol" and m[2] != "0"}
    if name == "mira":  # what was sent to her, judgments and what is expected are hers to see; labels when frozen
        sent = ("proposal", "report", "question", "answer")
        return {m for m in marks if m[1] not in sent and m[0] not in ("known", "judge", "expected")}
    return {m for m in marks if m[0] != name}


def shows_process(words, said):
    """Whether an answer shows marks on steps with these words; the desk and the settings name all kinds of marks."""
    code = words.replace(" ", "_")
    return re.search(rf'"mark": ?"{code}"|\b2 {words}\b|{words.capitalize()} at</span>|<td[^>]*>{words} <a', said)


def forbidden_names(name, route, said):
    if name == "mira" and ("people" in route or "members" in route):
        return set()
    said = re.sub(r"MARK-\w+-", "", said)
    return {other for other in NAMES if other != name and re.search(rf"\b{other}\b(?! Agent)", said)}


def assert_no_leak(people, rows, name, client=None):
    """Walk all addresses and return the answers."""
    answers = list(walk(people, rows, name, client))
    for route, address, method, said in answers:
        assert forbidden_marks(name, said) == set(), f"{name} {method} {address}"
        assert forbidden_names(name, route, said) == set(), f"{name} {method} {address}"
    assert len(answers) > 150
    return answers


@pytest.mark.parametrize("name", [None, "bob"])
def test_no_address_leaks_before_the_own_submit(protocol, name):
    _, people, rows = protocol
    assert_no_leak(people, rows, name)


# Chen and carol: who is working on the gold item, and who may have to decide it.
@pytest.mark.parametrize("name", ["alice", "chen", "carol", "dave"])
def test_no_address_leaks_or_changes_when_a_judge_has_judged_or_an_item_becomes_a_gold_item(protocol, name):
    submission, people, rows = protocol
    KnownAnswer.objects.filter(trajectory__in=rows).delete()
    client = client_of(people, name)
    before = what_is_seen(assert_no_leak(people, rows, name, client))
    judge_everything(submission, "another")
    workflow.set_known_answer(people["mira"], rows[3], content("known", rows[3], 0))
    after = what_is_seen(assert_no_leak(people, rows, name, client))
    assert differing(before, after) == set()


def test_the_maintainer_is_shown_gold_items_judgments_and_expectations_and_no_label(protocol):
    submission, people, rows = protocol
    said = "".join(said for *_, said in assert_no_leak(people, rows, "mira"))
    marks = ("MARK-judge-said-0-", "MARK-judge-imported--", "MARK-judge-name--", "MARK-judge-card--")
    for words in (*marks, "MARK-expected-check--", "MARK-expected-claim--"):
        assert words in said
        assert forbidden_marks("carol", words) != set()
        assert forbidden_marks("alice", words) != set()
    assert said.count("Verdicts are shown when both submissions are frozen") == 3  # the list, and two tasks
    known = body(client_of(people, "mira").get(reverse("gold", args=[submission.pk])))
    assert "There are no gold items yet" not in known


@pytest.mark.parametrize("name", ["alice", "bob", "mira", "dave"])
def test_no_address_leaks_after_the_own_submit_and_the_adjudication(protocol, name):
    _, people, rows = protocol
    workflow.submit(people["alice"], rows[0], content("alice", rows[0], 1))
    workflow.open_adjudication(people["carol"], rows[0])
    workflow.decide(people["carol"], rows[0], content("carol", rows[0], 0))
    assert_no_leak(people, rows, name)


def freeze(submission, people, rows):
    """Everything is labelled, decided by carol as failures, and frozen."""
    workflow.submit(people["alice"], rows[0], content("alice", rows[0], 1))
    for who in ("alice", "bob", "chen"):
        if not rows[3].assignments.filter(annotator=people[who]).exists():
            workflow.claim_this(people[who], rows[3])
        workflow.submit(people[who], rows[3], content(who, rows[3], 1))
    workflow.draw_spot_checks(people["mira"], submission)
    for row in rows:
        workflow.open_adjudication(people["carol"], row)
        workflow.decide(people["carol"], row, content("carol", row, 0))
    workflow.freeze(people["mira"], submission)


@pytest.mark.parametrize("name", [None, "dave", "alice"])
def test_no_address_leaks_when_frozen_and_not_opened(protocol, name):
    submission, people, rows = protocol
    freeze(submission, people, rows)
    assert_no_leak(people, rows, name)


@pytest.mark.parametrize("name", ["dave", "alice"])
def test_no_address_shows_a_judgment_when_frozen_and_opened(protocol, name):
    submission, people, rows = protocol
    freeze(submission, people, rows)
    workflow.open_results(people["mira"], submission)
    answers = list(walk(people, rows, name))
    seen = {(route, *mark) for route, _, _, said in answers for mark in forbidden_marks(name, said)}
    assert {mark for mark in seen if mark[1] == "judge"} == set()
    # Labels are open now, and only those; to alice also next to those of the second agent.
    assert (name == "alice") == any(who == "bob" for _, who, _, _ in seen)
    both = "McNemar" in "".join(said for route, _, _, said in answers if route.endswith("/two-agents"))
    assert (name == "alice") == both == any("/against/" in route for route, *_ in seen)


def test_an_adjudicator_is_shown_the_judgments_of_what_she_has_decided(protocol):
    _, people, rows = protocol
    workflow.submit(people["alice"], rows[0], content("alice", rows[0], 1))
    workflow.open_adjudication(people["carol"], rows[0])
    page = reverse("trajectory-judgments", args=[rows[0].pk])
    carol = client_of(people, "carol")
    assert "MARK-judge" not in body(carol.get(page))
    workflow.decide(people["carol"], rows[0], content("carol", rows[0], 0))
    assert "MARK-judge-name" in body(carol.get(page))
    said = "".join(said for *_, said in walk(people, rows, "carol"))
    shown = set(re.findall(r"MARK-judge-said-(\d)-", said))
    assert shown == {"0"}


def test_the_walk_would_notice_a_leak(protocol):
    _, people, rows = protocol
    workflow.submit(people["alice"], rows[0], content("alice", rows[0], 1))
    workflow.open_adjudication(people["carol"], rows[0])
    said = body(client_of(people, "carol").get(reverse("adjudication", args=[rows[0].pk])))
    assert forbidden_marks("alice", said) != set()
    assert {("bob", "process", ""), ("chen", "process", "")} <= forbidden_marks("alice", said)
    assert forbidden_marks("carol", said) == set()


# New in every answer: the id of the request, the moment (Expires), the token against forged forms, and the end of a
# reservation that the request renewed. All have a fixed length, so Content-Length stays.
RANDOM = re.compile(
    r"""(?<='X-Request-ID': ')\w{32}|(?<='Expires': ')[^']+"""
    r"""|(?<=csrfmiddlewaretoken" value=")\w{64}|(?<="csrf": ")\w{64}|(?<=until":")[^"]+"""
)


# How long something has waited, which is longer in the second walk; an answer with it may also have another length.
AGE = re.compile(r"""(?<=UTC">)(?:under 1 min|\d+ (?:min|h|d))(?=</time>)""")


def what_is_seen(answers):
    """Return everything that each answer of a walk says, but for what is new in each, by address and method."""
    return {(address, method): without_random(said) for _, address, method, said in answers}


def differing(before, after):
    return {address for address in before if before[address] != after[address]}


def without_random(said):
    said, ages = AGE.subn("", RANDOM.sub("", said))
    return re.sub(r"'Content-Length': '\d+'", "", said) if ages else said


def test_nothing_that_an_annotator_sees_changes_when_others_submit_or_adjudicate(protocol):
    _, people, rows = protocol
    client = client_of(people, "alice")
    workflow.submit(people["alice"], rows[0], content("alice", rows[0], 1))
    before = what_is_seen(walk(people, rows, "alice", client, ["get"]))
    labels = Label.objects.count()
    workflow.submit(people["chen"], rows[3], content("chen", rows[3], 1))
    workflow.flag(people["chen"], rows[0], "Look.")
    workflow.open_adjudication(people["carol"], rows[2])
    workflow.decide(people["carol"], rows[2], content("carol", rows[2], 0))
    assert Label.objects.count() > labels
    assert differing(before, what_is_seen(walk(people, rows, "alice", client, ["get"]))) == set()


def test_a_known_answer_is_shown_after_the_own_answer_and_to_nobody_else(protocol):
    submission, people, rows = protocol
    item = submission.practice_set.trajectories.get()
    page = reverse("practice-desk", args=[submission.pk, item.pk])

    def said(name):
        return body(client_of(people, name).get(page))

    assert "MARK-known" not in said("alice") + said("bob")
    workflow.answer_practice(people["alice"], submission, item, testing.content(item, 1), 1)
    assert "MARK-known-reasoning" in said("alice")
    assert "MARK-known" not in said("bob") + said("carol") + said("dave")
    assert_no_leak(people, rows, "bob")


OWN_DATA = {"account/data", "api/v1/account/data"}  # has what the person was shown


def test_judges_are_shown_to_the_annotator_who_has_looked_and_on_that_page_alone(protocol):
    _, people, rows = protocol
    disclosure.open_second_stage(people["bob"], rows[1])
    shown = {}
    for route, address, _, said in walk(people, rows, "bob"):
        if found := forbidden_marks("bob", said):
            shown.setdefault(route, set()).update(found)
            assert f"/{rows[1].pk}/" in address or route in OWN_DATA
    page = "trajectories/<int:pk>/second-stage"
    look = {page, f"{page}/decide", f"api/v1/{page}"}
    assert set(shown) == look | OWN_DATA
    assert {(who, where) for marks in shown.values() for who, _, where in marks} == {("judge", ""), ("judge", "1")}
    for name in ("alice", "carol", "dave"):
        assert_no_leak(people, rows, name)


@pytest.mark.parametrize("name", ["alice", "mira"])
def test_looking_writes_nothing_but_notes_of_the_look(protocol, name):
    _, people, rows = protocol
    written = set()

    def note(execute, sql, *arguments):
        written.update(re.findall(r"""^(?:INSERT INTO|UPDATE|DELETE FROM) ["`](\w+)""", sql))
        return execute(sql, *arguments)

    client = client_of(people, name)
    with connection.execute_wrapper(note):
        assert sum(1 for _ in walk(people, rows, name, client, ["get"])) > 100
    assert written <= LOOKS


def test_the_walk_covers_the_whole_resolver():
    assert settings.ROOT_URLCONF == "config.urls"
    assert len([name for _, name, _ in patterns() if name]) > 60


def test_the_admin_does_not_list_what_hangs_on_a_person(protocol):
    submission, people, _ = protocol
    root = Person.objects.create_superuser("root", "root@people.example", "a long password")
    join(submission, root, "annotator")  # the verb would refuse somebody who could read the known answers
    client = client_of({"root": root}, "root")
    things = (("person", people["bob"].pk), ("benchmark", submission.benchmark_id), ("agent", submission.agent_id))
    for model, pk in things:
        assert client.get(reverse(f"admin:annotation_{model}_change", args=[pk])).status_code == 200
        answer = client.get(reverse(f"admin:annotation_{model}_delete", args=[pk]))
        assert (answer.status_code, "MARK-" in body(answer)) == (403, False)
        chosen = {"action": "delete_selected", "_selected_action": [pk]}
        assert "MARK-" not in body(client.post(reverse(f"admin:annotation_{model}_changelist"), chosen, follow=True))
