"""Claims over real rows: a review in which everything happened that can."""

from __future__ import annotations

import copy
import shutil
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.test import override_settings
from pytest_django.plugin import DjangoDbBlocker

from annotation.models import Submission
from annotation.tests.shared_rows import rolled_back
from evaluations.evidence.documents import documents
from evaluations.tests.busy_review import busy_review
from evaluations.tests.tampered import Tampered, digest
from evaluations.verifier.checking import claims
from evaluations.verifier.documents import Bundle
from evaluations.verifier.findings import Result

pytestmark = pytest.mark.once  # the fixture below asks the database, once for all of them
FAR = "2036-01-05T09:00:00.000000+00:00"


@pytest.fixture(scope="module")
def busy(
    django_db_setup: None, django_db_blocker: DjangoDbBlocker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Bundle]:
    folder = tmp_path_factory.mktemp("busy")
    with override_settings(MEDIA_ROOT=folder / "images"), rolled_back(django_db_blocker):
        made = documents(busy_review(folder))
    yield made
    shutil.rmtree(folder)


def test_nothing_fails_in_an_honest_review(busy: Bundle) -> None:
    assert Tampered(busy).failed() == {}


def test_its_exceptions_are_told_with_their_reasons(busy: Bundle) -> None:
    says = Tampered(busy).exceptions()

    for told in (
        "1 reopened verdict: task_0000 (“Look at the range again.”)",
        "1 reopening of the whole submission",
        "(“A decision was forgotten.”)",
        "1 declined trajectory: task_0002 (“I know the shop.”)",
        "1 redaction of a screenshot",
        "1 person who left: Q3",
        "1 informed second stage: A3 would change on task_0003",
        "1 known answer set: task_0004",
        "1 decision turned afterwards: task_0000 by Q1 from 1 to 0 (“Look at the range again.”)",
        "1 other revision of a decision: task_0000 by Q1 (“It was the wrong step.”)",
        "1 label turned by a revision: task_0002 by A3 from 0 to 1 (“I took the wrong button.”)",
        "1 lease run out: A2 on task_0002",
        "1 slot returned: A2 on task_0002",
        "1 adjudication left: Q2 on task_0005",
        "1 adjudication run out: Q2 on task_0005",
        "1 adjudication returned: Q3 on task_0005",
        "1 outdated task: task_0004 by A1 (“The steps show it.”), A2 (“The steps show it.”), ",
        "a report of A1 (“The shop is closed.”)",
    ):
        assert told in says


def test_a_submission_in_the_middle_of_its_review_fails_in_what_is_open(submission: Submission, people: Any) -> None:
    failed = {one.name for one in claims(documents(submission)) if one.result is Result.FAIL}

    assert failed == {"annotators", "export", "frozen"}


def test_a_frozen_one_fails_in_nothing(frozen: Submission) -> None:
    assert {one.name for one in claims(documents(frozen)) if one.result is Result.FAIL} == set()


def revision_hidden(tampered: Tampered) -> None:
    row = tampered.label("task_0002", 3, 2)
    tampered.events.remove(tampered.of(row))
    tampered.bundle.labels.remove(row)


def first_revision_hidden(tampered: Tampered) -> None:
    row = tampered.label("task_0002", 3, 1)
    tampered.events.remove(tampered.of(row))
    tampered.bundle.labels.remove(row)


def flag_hidden(tampered: Tampered) -> None:
    tampered.bundle.flags.clear()
    tampered.events.remove(tampered.event("flagged"))


def flag_reworded(tampered: Tampered) -> None:
    tampered.bundle.flags[0]["note"] = "All is well."


def report_answered_otherwise(tampered: Tampered) -> None:
    tampered.bundle.reports[0]["answer"] = "It is not."


def report_open_by_halves(tampered: Tampered) -> None:
    tampered.bundle.reports[0]["settled_by"] = None


def release_never_lifted(tampered: Tampered) -> None:
    tampered.bundle.releases[0]["lifted_at"] = None


def release_hidden(tampered: Tampered) -> None:
    tampered.bundle.releases.clear()
    tampered.events.remove(tampered.event("released"))


def lease_never_ran_out(tampered: Tampered) -> None:
    tampered.events.remove(tampered.event("lease_expired"))


def slot_never_returned(tampered: Tampered) -> None:
    tampered.events.remove(tampered.event("slot_returned"))


def opening_never_left(tampered: Tampered) -> None:
    tampered.events.remove(tampered.event("adjudication_left"))


def take_over_hidden(tampered: Tampered) -> None:
    tampered.events.remove(tampered.event("adjudication_expired"))


def return_hidden(tampered: Tampered) -> None:
    tampered.events.remove(tampered.event("adjudication_returned"))


def reopening_hidden(tampered: Tampered) -> None:
    tampered.bundle.reopenings.clear()
    tampered.events.remove(tampered.event("reopened"))


def reopening_of_another_decision(tampered: Tampered) -> None:
    tampered.bundle.reopenings[0]["revision"] = 3


def last_decision_hidden(tampered: Tampered) -> None:
    row = tampered.bundle.adjudications[2]
    assert (row["facts"]["task_id"], row["facts"]["revision"]) == ("task_0000", 3)
    tampered.events.remove(tampered.of(row))
    tampered.bundle.adjudications.remove(row)


def first_decision_hidden(tampered: Tampered) -> None:
    row = tampered.bundle.adjudications[0]
    tampered.events.remove(tampered.of(row))
    tampered.bundle.adjudications.remove(row)


def second_stage_of_somebody_else(tampered: Tampered) -> None:
    tampered.bundle.informed[0]["annotator"] = "A1"


def second_stage_with_other_judgments(tampered: Tampered) -> None:
    tampered.bundle.informed[0]["shown"]["judgments"][0]["verdict"] = 1


def second_stage_about_something_else(tampered: Tampered) -> None:
    row = tampered.bundle.informed[0]
    old = digest(row["informed"])
    row["informed"]["shown"]["revision"] = 9
    tampered.event("informed_decided", informed=old)["payload"]["informed"] = digest(row["informed"])


def second_stage_twice(tampered: Tampered) -> None:
    tampered.bundle.informed.append(copy.deepcopy(tampered.bundle.informed[0]))


def redaction_of_other_boxes(tampered: Tampered) -> None:
    tampered.bundle.redactions[0]["boxes"][0][0] = 0


def redaction_of_the_second_revision(tampered: Tampered) -> None:
    tampered.bundle.redactions[0]["revision"] = 2
    tampered.event("screenshot_redacted")["payload"]["revision"] = 2


def member_never_left(tampered: Tampered) -> None:
    next(person for person in tampered.bundle.people if person["pseudonym"] == "Q3")["deactivated_at"] = None


def member_left_at_another_time(tampered: Tampered) -> None:
    next(person for person in tampered.bundle.people if person["pseudonym"] == "Q3")["deactivated_at"] = FAR


def member_never_came_back(tampered: Tampered) -> None:
    tampered.events.remove(tampered.event("member_reactivated"))


def another_rate(tampered: Tampered) -> None:
    tampered.submission["spot_check_rate"] = 0.1


def another_practice_set(tampered: Tampered) -> None:
    tampered.submission["practice_set"] = None


def opened_at_another_time(tampered: Tampered) -> None:
    tampered.submission["opened_at"] = FAR


def frozen_twice_over(tampered: Tampered) -> None:
    tampered.events.remove(tampered.event("submission_reopened"))


def given_back_and_claimed_again(tampered: Tampered) -> None:
    tampered.events.remove(tampered.event("offered_again"))


def adjudication_for_no_reason(tampered: Tampered) -> None:
    tampered.restate(tampered.bundle.adjudications[2], revision_reason="")


CHANGES: dict[Callable[[Tampered], None], str] = {
    revision_hidden: "draws",
    first_revision_hidden: "complete_record",
    flag_hidden: "draws",
    flag_reworded: "complete_record",
    report_answered_otherwise: "complete_record",
    report_open_by_halves: "complete_record",
    release_never_lifted: "complete_record",
    release_hidden: "complete_record",
    lease_never_ran_out: "complete_record",
    slot_never_returned: "complete_record",
    opening_never_left: "complete_record",
    take_over_hidden: "complete_record",
    return_hidden: "complete_record",
    reopening_hidden: "reasons",
    reopening_of_another_decision: "complete_record",
    last_decision_hidden: "frozen",
    first_decision_hidden: "complete_record",
    second_stage_of_somebody_else: "complete_record",
    second_stage_with_other_judgments: "complete_record",
    second_stage_about_something_else: "complete_record",
    second_stage_twice: "complete_record",
    redaction_of_other_boxes: "complete_record",
    redaction_of_the_second_revision: "complete_record",
    member_never_left: "complete_record",
    member_left_at_another_time: "complete_record",
    member_never_came_back: "complete_record",
    another_rate: "complete_record",
    another_practice_set: "complete_record",
    opened_at_another_time: "frozen",
    frozen_twice_over: "frozen",
    given_back_and_claimed_again: "complete_record",
    adjudication_for_no_reason: "reasons",
}


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_one_thing_changed_fails_the_claim_it_belongs_to(change: Callable[[Tampered], None], busy: Bundle) -> None:
    tampered = Tampered(busy)
    change(tampered)

    assert CHANGES[change] in tampered.failed()


def test_a_redaction_after_the_freeze_may_be_taken_back(busy: Bundle) -> None:
    tampered = Tampered(busy)
    row = tampered.bundle.redactions[0]
    back = {**row, "revision": 2, "boxes": [], "redacted": None, "size": 0}
    tampered.bundle.redactions.append(back)
    facts = {name: back[name] for name in ("original", "revision", "boxes", "reason", "redacted", "size")}
    tampered.add(tampered.event("screenshot_redacted"), "screenshot_redacted", "M1", **facts)

    assert tampered.failed() == {}
    assert "redactions" not in tampered.exceptions()


def test_a_settled_report_is_one_that_a_maintainer_settled(busy: Bundle) -> None:
    tampered = Tampered(busy)
    tampered.bundle.reports[0].update(settled_at=None, settled_by=None, answer=None)

    assert "has no matching row" in tampered.failed()["complete_record"]
