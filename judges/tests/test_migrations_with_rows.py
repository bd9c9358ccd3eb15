"""Migrations that rebuild tables with rows in them, back and forward again, and the triggers that such a table loses.

Only those whose way back says something of the rows. Their tables are left as the newest migrations have them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.db import DatabaseError, connection, transaction
from django.db.migrations.exceptions import IrreversibleError
from django.utils import timezone

from annotation.models import Label, Redaction, Screenshot, Submission, triggers
from annotation.records import Verdict
from annotation.tests import testing
from annotation.tests.replaced_migrations import migrate
from judges.models import Judge, Judgment
from judges.tests.rows import imported_row, judge_row, judgment_row, run_row

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.servers]
BEFORE_REDACTIONS = ("annotation", "0007_audits_and_privacy")
BEFORE_ANSWERS = ("annotation", "0005_the_informed_second_stage")
BEFORE_STATUS = ("judges", "0004_endpoint_addresses")
BEFORE_BUNDLED_JUDGES = ("judges", "0002_expectations")

To = Callable[..., Any]


@pytest.fixture
def to(transactional_db: None) -> Iterator[To]:
    """Migrates to what it is given, or to the newest; afterwards, the database is migrated to the newest."""
    yield migrate
    migrate()


def standing() -> list[str]:
    query = (
        "SELECT tgname FROM pg_trigger WHERE NOT tgisinternal"
        if connection.vendor == "postgresql"
        else "SELECT name FROM sqlite_master WHERE type = 'trigger'"
    )
    with connection.cursor() as cursor:
        cursor.execute(query)
        return sorted(name for (name,) in cursor.fetchall())


def earlier_names() -> list[str]:
    """The triggers of the tables that exist after the way back."""
    tables = {model._meta.db_table for model in apps.get_models()}
    gone = tuple(f"{table}_" for table in tables.difference(connection.introspection.table_names()))
    return [name for name in triggers.names() if not name.startswith(gone)]


def audited() -> Submission:
    return Submission.objects.create(
        benchmark=testing.benchmark(1, slug="came"),
        agent=testing.bare_submission(1, agent="Their Agent").agent,
        digest="of theirs",
        audited=True,
    )


def test_judges_are_the_same_after_going_back_and_stay_frozen(to: To) -> None:
    run = run_row(testing.bare_submission(1), judge_row("strict"))
    before = Judge.objects.values().get()

    judge = to(BEFORE_BUNDLED_JUDGES)("judges", "Judge")
    assert judge.objects.values().get() == {k: v for k, v in before.items() if k not in ("came_with_id", "stated")}
    assert standing() == earlier_names()
    with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
        judge.objects.update(model="another")

    to()
    assert Judge.objects.values().get() == before
    assert run.judge == Judge.own.get()
    assert standing() == triggers.names()


def test_judges_that_came_in_a_bundle_are_in_the_way_back(to: To) -> None:
    fields = {"name": "strict", "scorer": "webjudge", "frozen_at": timezone.now()}
    Judge.objects.create(**fields)
    came = Judge.objects.create(**fields, came_with=audited(), stated="f" * 64)

    with pytest.raises(IrreversibleError, match=rf"strict@1 of submission {came.came_with_id}\)"):
        to(BEFORE_BUNDLED_JUDGES)

    assert [row.stated for row in Judge.objects.order_by("pk")] == ["", "f" * 64]
    assert standing() == earlier_names()


def test_earlier_judgments_are_marked_where_their_reply_states_no_status(to: To) -> None:
    here = testing.bare_submission(4)
    upstream, ours = {"parameters": {"mode": "upstream"}}, {"parameters": {"mode": "default"}}
    cases = [  # judge, verdict, reply, marked
        (judge_row("upstream", **upstream), 0, "I cannot tell.", True),
        (judge_row("upstream", **upstream), 0, "Status: failure", False),
        (judge_row("upstream", **upstream), None, "", False),
        (judge_row("voyager", scorer="webvoyager", **upstream), 1, "It went well.", True),
        (judge_row("voyager", scorer="webvoyager", **upstream), 1, "SUCCESS", False),
        (judge_row("ours", **ours), 0, "I cannot tell.", False),
    ]
    runs = [run_row(here, judge) for judge, *_ in cases]
    for run, (_, verdict, reply, _) in zip(runs, cases, strict=True):
        judgment_row(run.items.earliest("pk"), verdict, response=reply)
    for place, (shape, reply) in enumerate(
        (("webjudge", "I cannot tell."), ("webjudge", "status: bad"), ("plain", ""))
    ):
        imported_row(here.trajectories.get(position=place), 0, response=reply, imported={"shape": shape})

    to(BEFORE_STATUS)
    to()

    marks = list(Judgment.objects.order_by("pk").values_list("status_not_stated", flat=True))
    assert marks == [*(marked for *_, marked in cases), True, False, False]
    assert standing() == triggers.names()


def test_failures_of_answers_without_a_step_are_in_the_way_back(to: To, tmp_path: Path, settings: Any) -> None:
    settings.MEDIA_ROOT = tmp_path / "images"
    answers = testing.answered(tmp_path / "answers", 1)
    alice = testing.cast(answers)["alice"]
    testing.label(alice, answers.trajectories.get(), Verdict.FAILURE)

    with pytest.raises(IrreversibleError, match=rf"submissions {answers.pk} have failures without a step"):
        to(BEFORE_ANSWERS)

    to()
    assert Label.objects.get().failure_step is None
    assert standing() == triggers.names()


def test_labels_of_trajectories_with_steps_are_the_same_after_going_back(to: To, tmp_path: Path, settings: Any) -> None:
    settings.MEDIA_ROOT = tmp_path / "images"
    submission = testing.submission(tmp_path / "package", 1)
    alice = testing.cast(submission)["alice"]
    testing.label(alice, submission.trajectories.get(), Verdict.FAILURE)
    before = Label.objects.values().get()

    label = to(BEFORE_ANSWERS)("annotation", "Label")
    assert label.objects.get().failure_step == before["failure_step"]
    to()
    assert Label.objects.values().get() == before
    assert standing() == triggers.names()


def test_redactions_keep_their_pictures_on_the_way_back(to: To) -> None:
    here, mira = testing.bare_submission(1), testing.person("mira")
    Screenshot.objects.create(sha256="a" * 64, width=320, height=200, size=5, media_type="image/png")
    fields = {"boxes": [[0, 0, 5, 5]], "reason": "A name.", "redacted_by": mira, "redacted_at": timezone.now()}
    for submission, original, revision in ((here, "a", 1), (here, "a", 2), (audited(), "b", 1)):
        Redaction.objects.create(submission=submission, original=original * 64, revision=revision, **fields)
    before = list(Redaction.objects.order_by("pk").values())

    redaction = to(BEFORE_REDACTIONS)("annotation", "Redaction")
    then = redaction.objects.order_by("pk").values_list("screenshot__sha256", "original", "revision")
    assert list(then) == [("a" * 64, "", 1), ("a" * 64, "", 2), (None, "b" * 64, 1)]
    assert standing() == earlier_names()
    with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
        redaction.objects.update(reason="Another.")

    to()
    assert list(Redaction.objects.order_by("pk").values()) == before
    assert standing() == triggers.names()
