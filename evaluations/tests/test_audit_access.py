"""Who reads an audit, and that nobody changes one: on every page and by every verb."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import PermissionDenied
from django.db import connection
from django.db.models import F
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from annotation import access, workflow
from annotation.models import Benchmark, Membership, Person, Submission
from annotation.records import Verdict
from annotation.tests import testing
from annotation.workflow import Conflict
from annotation.workflow.guards import require_unfrozen, require_writable
from evaluations.auditing import actions
from evaluations.auditing.importing import open_bundle
from evaluations.models import Audit
from evaluations.tests.audited import add_people, auditor, client_of, relabel
from judges import defining, runs

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("store")]
READ = ("submission-tasks", "quality", "reports", "events", "agreement", "comparison", "printable-report")
API = ("api-submission", "api-labels", "api-adjudications", "api-verdicts", "api-reports", "api-trajectories")
HIDDEN = (
    "people",
    "gold",
    "submission-settings",
    "judge-runs",
    "export",
    "redactions",
    "work",
    "adjudicate",
    "api-members",  # with names
)
DESK = ("audit", "audit-report", "api-audit")
SAID = "The steps show it."  # as every label of the bundle has it


def statuses(person: Person, names: tuple[str, ...], pk: Any) -> dict[str, int]:
    client = client_of(person)
    return {name: client.get(reverse(name, args=[pk])).status_code for name in names}


def superuser() -> Person:
    return Person.objects.create_superuser("root", "root@people.example", testing.PASSWORD)


# --- reading ---------------------------------------------------------------------------------------------------------


def test_an_auditor_reads_every_page_of_what_was_submitted_and_none_offers_to_change_it(audit: Audit) -> None:
    assert statuses(auditor(), READ, audit.submission_id) == dict.fromkeys(READ, 200)
    for name in READ:
        page = client_of(auditor()).get(reverse(name, args=[audit.submission_id])).content.decode()
        assert 'method="post" action="/submissions' not in page, name
        assert 'method="post" action="/reports' not in page, name


def test_an_auditor_reads_labels_and_decisions_of_a_trajectory(audit: Audit) -> None:
    row = audit.submission.trajectories.earliest("pk")

    page = client_of(auditor()).get(reverse("submission-trajectory", args=[row.pk])).content.decode()

    assert page.count(SAID) >= 1
    assert "A1" in page
    assert client_of(auditor()).get(reverse("picture", args=[row.pk, 0, "display"])).status_code == 200


def test_an_auditor_reads_by_the_api(audit: Audit) -> None:
    assert statuses(auditor(), API, audit.submission_id) == dict.fromkeys(API, 200)


def test_pages_for_those_who_act_are_closed_to_auditors(audit: Audit) -> None:
    assert statuses(auditor(), HIDDEN, audit.submission_id) == dict.fromkeys(HIDDEN, 403)


def test_another_maintainer_of_the_instance_does_not_learn_that_it_is_there(audit: Audit) -> None:
    every = ("submission", *READ, *API, *HIDDEN)

    assert statuses(auditor("bea"), every, audit.submission_id) == dict.fromkeys(every, 404)
    assert statuses(auditor("bea"), DESK, audit.pk) == dict.fromkeys(DESK, 404)


def test_who_runs_the_instance_is_an_auditor_of_everything(audit: Audit) -> None:
    root = superuser()

    assert access.role_in(root, audit.submission) is Membership.Role.AUDITOR
    assert client_of(root).get(reverse("audit", args=[audit.pk])).status_code == 200


def test_a_bundle_that_was_not_frozen_is_read_all_the_same(audit: Audit) -> None:
    Submission.objects.filter(pk=audit.submission_id).update(frozen_at=None)
    row = audit.submission.trajectories.earliest("pk")

    page = client_of(auditor()).get(reverse("submission-trajectory", args=[row.pk])).content.decode()

    assert SAID in page
    assert "Ask for a new adjudication" not in page


def test_a_deactivated_auditor_reads_no_more(audit: Audit) -> None:
    Membership.objects.filter(person=auditor()).update(deactivated_at=F("joined_at"))

    assert client_of(auditor()).get(reverse("audit", args=[audit.pk])).status_code == 404
    assert client_of(auditor()).get(reverse("submission", args=[audit.submission_id])).status_code == 404


@pytest.mark.parametrize("address", ["audits", "api-audits"])
def test_the_list_takes_as_many_queries_for_two_audits_as_for_one(
    audit: Audit, bundles: dict[str, Path], address: str
) -> None:
    counts = []
    for kind in ("files", "digests"):
        if kind == "digests":
            open_bundle(bundles[kind], auditor())
        client = client_of(auditor())
        with CaptureQueriesContext(connection) as queries:
            assert client.get(reverse(address)).status_code == 200
        counts.append(len(queries))
    assert counts[0] == counts[1]


# --- what it is no part of -------------------------------------------------------------------------------------------


def test_what_is_audited_is_on_no_list_of_own_submissions(audit: Audit) -> None:
    client, root = client_of(auditor()), superuser()

    pages = [client.get(reverse(name)).content.decode() for name in ("home", "submissions", "benchmarks", "upload")]

    assert not any(audit.submission.benchmark.slug in page or "Careful Agent" in page for page in pages)
    assert client.get(reverse("api-submissions")).json()["results"] == []
    assert audit.submission not in access.submissions_maintained_by(root)
    assert audit.submission.benchmark not in access.benchmarks_for(root)


def test_the_benchmark_of_an_audit_has_no_pages(audit: Audit) -> None:
    pages = ("benchmark", "agents", "judge-standings", "benchmark-agreement", "differences")

    for person in (auditor(), superuser()):
        assert statuses(person, pages, audit.submission.benchmark.slug) == dict.fromkeys(pages, 404)


def test_nobody_edits_the_catalogue_that_came(audit: Audit) -> None:
    task = audit.submission.benchmark.tasks.earliest("pk")
    root = superuser()

    assert client_of(root).post(reverse("add-key-points", args=[task.pk]), {"texts": "Another"}).status_code == 404
    assert not access.may_edit_catalogue(root, Benchmark.objects.get(pk=task.benchmark_id))


# --- changing --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Here:
    """What a verb could be tried on."""

    person: Person
    submission: Submission

    @property
    def row(self) -> Any:
        return self.submission.trajectories.select_related("submission", "task").earliest("pk")


VERBS: dict[str, Any] = {
    "add_member": lambda here: workflow.add_member(here.person, here.submission, here.person, "annotator"),
    "claim": lambda here: workflow.claim(here.person, here.submission),
    "claim_this": lambda here: workflow.claim_this(here.person, here.row),
    "configure": lambda here: workflow.configure(here.person, here.submission, spot_check_rate=0.5),
    "deactivate_member": lambda here: workflow.deactivate_member(here.person, here.submission, here.person),
    "decide": lambda here: workflow.decide(here.person, here.row, testing.content(here.row)),
    "draw_spot_checks": lambda here: workflow.draw_spot_checks(here.person, here.submission),
    "flag": lambda here: workflow.flag(here.person, here.row, "Look."),
    "found": lambda here: workflow.join_as_maintainer(here.submission, here.person),
    "freeze": lambda here: workflow.freeze(here.person, here.submission),
    "keep": lambda here: workflow.keep_verdict(here.person, here.row),
    "leave_adjudication": lambda here: workflow.leave_adjudication(here.person, here.row),
    "look": lambda here: workflow.show_judgments(here.person, here.row, [{}]),
    "offer_again": lambda here: workflow.offer_again(here.person, here.row, "Again."),
    "open_adjudication": lambda here: workflow.open_adjudication(here.person, here.row),
    "open_results": lambda here: workflow.open_results(here.person, here.submission),
    "record_activity": lambda here: workflow.record_activity(here.person, here.row, 5, [0]),
    "release": lambda here: workflow.release(here.person, here.row, "No."),
    "reopen": lambda here: workflow.reopen(here.person, here.row, "Again."),
    "reopen_submission": lambda here: workflow.reopen_submission(here.person, here.submission, "Again."),
    "revise": lambda here: workflow.revise(here.person, here.row, testing.content(here.row), "Wrong."),
    "save_draft": lambda here: workflow.save_draft(here.person, here.row, {}, 0),
    "set_known_answer": lambda here: workflow.set_known_answer(here.person, here.row, testing.content(here.row)),
    "submit": lambda here: workflow.submit(here.person, here.row, testing.content(here.row)),
    "change": lambda here: workflow.change_verdict(here.person, here.row, Verdict.FAILURE, "Wrong."),
    "hold_again": lambda here: workflow.hold_again(here.person, here.row),
}


def refused(verb: Any, here: Here) -> bool:
    try:
        verb(here)
    except Conflict as conflict:
        return "read-only" in str(conflict)
    return False


@pytest.mark.parametrize("frozen", [True, False])
def test_every_verb_refuses_what_came_in_a_bundle(audit: Audit, frozen: bool) -> None:
    if not frozen:
        Submission.objects.filter(pk=audit.submission_id).update(frozen_at=None)
    submission = Submission.objects.get(pk=audit.submission_id)
    events = submission.events.count()

    for person in (auditor(), superuser(), Person.objects.get(stand_in=True, username__endswith="-M1")):
        assert [name for name, verb in VERBS.items() if not refused(verb, Here(person, submission))] == []

    assert submission.events.count() == events


def test_the_guards_refuse_it_by_themselves(audit: Audit) -> None:
    for guard in (require_writable, require_unfrozen):
        with pytest.raises(Conflict, match="read-only"):
            guard(audit.submission)


def test_no_judge_is_run_over_it(audit: Audit) -> None:
    strict = defining.define(None, name="strict", scorer="webjudge", model="some-model")

    with pytest.raises(Conflict, match="read-only"):
        runs.start(superuser(), strict, audit.submission, {})


def test_nobody_becomes_an_auditor_of_an_own_submission(submission: Submission, people: dict[str, Person]) -> None:
    with pytest.raises(Conflict, match="evidence bundle"):
        workflow.add_member(people["mira"], submission, people["dave"], Membership.Role.AUDITOR)
    chosen = {"person": people["dave"].pk, "role": "auditor"}
    assert client_of(people["mira"]).post(reverse("add-person", args=[submission.pk]), chosen).status_code == 400


def test_only_auditors_of_the_instance_add_auditors(audit: Audit) -> None:
    reader = testing.person("rita")
    actions.add_auditor(auditor(), audit, reader)

    for stranger in (reader, auditor("bea")):
        with pytest.raises(PermissionDenied):
            actions.add_auditor(stranger, audit, testing.person("sam"))
    assert client_of(reader).get(reverse("audit", args=[audit.pk])).status_code == 200
    assert "Your audits" in client_of(reader).get(reverse("home")).content.decode()


# --- the sample is labelled blind ------------------------------------------------------------------------------------


def made_superuser(person: Person) -> None:
    Person.objects.filter(pk=person.pk).update(is_superuser=True, is_staff=True)


def made_auditor(person: Person) -> None:
    """As no verb does it."""
    submission = Submission.objects.get(audited=True)
    Membership.objects.create(submission=submission, person=person, role="auditor", pseudonym=f"U{person.pk}")


@pytest.mark.parametrize("name", ["erin", "hugo"])
@pytest.mark.parametrize("right", [made_superuser, made_auditor])
def test_who_labels_or_decides_in_the_sample_sees_nothing_whatever_their_rights(
    audit: Audit, name: str, right: Any
) -> None:
    people = add_people(actions.draw(audit, auditor(), 2))
    right(people[name])
    client = client_of(Person.objects.get(username=name))
    row = audit.submission.trajectories.earliest("pk")

    pages = [reverse(each, args=[audit.submission_id]) for each in (*READ, *API)]
    pages += [reverse("submission-trajectory", args=[row.pk]), reverse("api-trajectory", args=[row.pk])]
    pages += [reverse(each, args=[audit.pk]) for each in DESK]

    assert {address: client.get(address).status_code for address in pages} == dict.fromkeys(pages, 404)
    assert client.get(reverse("api-audits")).json()["results"] == []


def test_who_labelled_the_sample_may_read_when_it_is_frozen(audit: Audit) -> None:
    people = relabel(actions.draw(audit, auditor(), 2))
    made_auditor(people["erin"])

    assert client_of(people["erin"]).get(reverse("audit", args=[audit.pk])).status_code == 200
