"""Active hours as CSV, JSON and by the command: the definition, the days, and who may read them."""

from __future__ import annotations

import csv
import io
from datetime import UTC, datetime
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import transaction
from django.test import Client
from django.urls import reverse

from annotation import progress, workflow
from annotation.models import Assignment, Label, Membership, Person, Submission
from annotation.tests import testing
from annotation.tests.shared_rows import shared_rows
from annotation.workflow.guards import join

People = dict[str, Person]
MONDAY, TUESDAY = datetime(2026, 11, 16, 23, 59, 59, tzinfo=UTC), datetime(2026, 11, 17, 0, 0, tzinfo=UTC)


@shared_rows
def bare() -> Submission:
    return testing.bare_submission(6, steps=2)


@shared_rows
def cast(bare: Submission) -> People:
    return testing.cast(bare)


@shared_rows
def labels(bare: Submission, cast: People) -> list[Label]:
    """On Monday an hour and a label without time, and on Tuesday half an hour by alice; a quarter by bob on Tuesday.

    On Tuesday alice revised her first label, for six minutes.
    """
    first = label(cast["alice"], bare, 0, MONDAY, 3600)
    return [
        first,
        label(cast["alice"], bare, 1, MONDAY, None),
        label(cast["alice"], bare, 2, TUESDAY, 1800, verdict=0, failure_step=1, failure_type="loop"),
        label(cast["bob"], bare, 0, TUESDAY, 900),
        add_label(first.assignment, TUESDAY, 3960, revision=2, revision_reason="A slip."),
    ]


def label(
    person: Person, submission: Submission, position: int, at: datetime, seconds: int | None, **fields: Any
) -> Label:
    trajectory = submission.trajectories.get(position=position)
    slot = trajectory.assignments.count() + 1
    assignment = Assignment.objects.create(trajectory=trajectory, annotator=person, slot=slot, claimed_at=at)
    return add_label(assignment, at, seconds, **fields)


def add_label(assignment: Assignment, at: datetime, seconds: int | None, **fields: Any) -> Label:
    base = {"verdict": 1, "reasoning": "The steps show it.", "created_at": at, "active_seconds": seconds}
    return Label.objects.create(assignment=assignment, **(base | fields))


def signed_in(person: Person) -> Client:
    client = Client()
    client.force_login(person)
    return client


def read(answer: Any) -> list[dict[str, str]]:
    assert answer.status_code == 200
    assert answer["Content-Type"] == "text/csv; charset=utf-8"
    assert "no-store" in answer["Cache-Control"]
    return list(csv.DictReader(io.StringIO(answer.content.decode())))


def row(submission: Submission, pseudonym: str, figures: str, day: str = "") -> dict[str, str]:
    counted, unmeasured, hours, revising = figures.split()
    return {
        "submission": str(submission.pk),
        "annotator": pseudonym,
        "date": day,
        "labels": counted,
        "labels_without_time": unmeasured,
        "active_hours": hours,
        "revising_hours": revising,
    }


def test_submission_has_a_row_for_each_annotator(bare: Submission, cast: People, labels: list[Label]) -> None:
    found = read(signed_in(cast["mira"]).get(reverse("active-hours", args=[bare.pk])))

    assert found == [row(bare, "A1", "3 1 1.5 0.1"), row(bare, "A2", "1 0 0.25 0.0")]


def test_hours_are_those_of_the_pace(bare: Submission, cast: People) -> None:
    now = datetime.now(UTC)
    label(cast["alice"], bare, 0, now, 1200)
    label(cast["alice"], bare, 1, now, 600)
    [speed] = progress.measure_pace(bare, {cast["alice"].pk: "A1"}, 1).people

    [found] = read(signed_in(cast["mira"]).get(reverse("active-hours", args=[bare.pk])))

    assert float(found["active_hours"]) == pytest.approx(speed.active_hours)
    assert int(found["labels"]) == speed.labels


def test_days_are_separated_at_midnight_in_utc(bare: Submission, cast: People, labels: list[Label]) -> None:
    client, address = signed_in(cast["mira"]), reverse("active-hours", args=[bare.pk])

    assert read(client.get(address, {"last": "2026-11-16"})) == [row(bare, "A1", "2 1 1.0 0.0")]
    assert read(client.get(address, {"first": "2026-11-17", "last": "2026-11-17", "daily": "on"})) == [
        row(bare, "A1", "1 0 0.5 0.1", "2026-11-17"),
        row(bare, "A2", "1 0 0.25 0.0", "2026-11-17"),
    ]
    assert read(client.get(address, {"first": "2026-11-18", "last": "9999-12-31"})) == []


def test_revision_of_a_label_without_time_counts_what_was_measured(bare: Submission, cast: People) -> None:
    first = label(cast["alice"], bare, 0, MONDAY, None)
    add_label(first.assignment, TUESDAY, 360, revision=2, revision_reason="A slip.")

    found = read(signed_in(cast["mira"]).get(reverse("active-hours", args=[bare.pk])))

    assert found == [row(bare, "A1", "1 1 0.0 0.1")]


def test_benchmark_has_the_submissions_that_the_person_maintains(
    bare: Submission, cast: People, labels: list[Label]
) -> None:
    second, hidden = (testing.bare_submission(1, agent=name) for name in ("Second Agent", "Hidden Agent"))
    workflow.join_as_maintainer(second, cast["mira"])
    for submission in (second, hidden):
        join(submission, cast["bob"], Membership.Role.ANNOTATOR)
    label(cast["bob"], second, 0, TUESDAY, 3600)
    label(cast["bob"], hidden, 0, TUESDAY, 36_000)
    address = reverse("benchmark-hours", args=[bare.benchmark.slug])

    found = read(signed_in(cast["mira"]).get(address))

    assert found == [
        row(bare, "A1", "3 1 1.5 0.1"),
        row(bare, "A2", "1 0 0.25 0.0"),
        row(second, "A1", "1 0 1.0 0.0"),
    ]
    assert len(signed_in(cast["mira"]).get(f"/api/v1{address}").json()) == 3


def test_everybody_reads_only_their_own(bare: Submission, cast: People, labels: list[Label]) -> None:
    assert read(signed_in(cast["bob"]).get(reverse("own-hours"))) == [row(bare, "A2", "1 0 0.25 0.0")]
    assert read(signed_in(cast["dave"]).get(reverse("own-hours"))) == []
    assert [each["annotator"] for each in signed_in(cast["bob"]).get(reverse("api-my-hours")).json()] == ["A2"]


@pytest.mark.parametrize(("name", "status"), [("alice", 403), ("carol", 403), ("dave", 404)])
def test_others_read_no_hours(bare: Submission, cast: People, labels: list[Label], name: str, status: int) -> None:
    client = signed_in(cast[name])

    for prefix in ("", "/api/v1"):
        assert client.get(f"{prefix}/submissions/{bare.pk}/active-hours").status_code == status
        assert client.get(f"{prefix}/benchmarks/{bare.benchmark.slug}/active-hours").status_code == 404


def test_file_does_not_depend_on_what_the_labels_say(bare: Submission, cast: People, labels: list[Label]) -> None:
    client, address = signed_in(cast["mira"]), reverse("active-hours", args=[bare.pk])
    files = set()
    for fields in ({"verdict": 1}, {"verdict": 0, "failure_step": 1, "failure_type": "loop"}):
        with transaction.atomic():
            label(cast["bob"], bare, 2, TUESDAY, 60, **fields)  # another verdict than alice's, or the same
            files.add(client.get(address).content)
            transaction.set_rollback(True)

    assert len(files) == 1


@pytest.mark.parametrize("asked", [{"first": "tomorrow"}, {"first": "2026-11-17", "last": "2026-11-16"}])
def test_invalid_span_is_explained(bare: Submission, cast: People, asked: dict[str, str]) -> None:
    client = signed_in(cast["mira"])

    page = client.get(reverse("active-hours", args=[bare.pk]), asked)
    assert page.status_code == 400
    assert ("Enter a valid date" if "last" not in asked else "Swap them") in page.content.decode()
    assert client.get(reverse("api-active-hours", args=[bare.pk]), asked).status_code == 400


def test_pages_offer_the_download(bare: Submission, cast: People, labels: list[Label]) -> None:
    assert reverse("active-hours", args=[bare.pk]) in page_of(cast["mira"], reverse("quality", args=[bare.pk]))
    slug = bare.benchmark.slug
    assert reverse("benchmark-hours", args=[slug]) in page_of(cast["mira"], reverse("benchmark", args=[slug]))
    assert reverse("own-hours") in page_of(cast["alice"], reverse("account"))
    assert reverse("own-hours") not in page_of(cast["dave"], reverse("account"))


def page_of(person: Person, address: str) -> str:
    return signed_in(person).get(address).content.decode()


def test_command_prints_the_same_file(bare: Submission, cast: People, labels: list[Label], capsys: Any) -> None:
    page = signed_in(cast["mira"]).get(reverse("active-hours", args=[bare.pk]), {"first": "2026-11-17"})
    call_command("active_hours", "--submission", str(bare.pk), "--first", "2026-11-17")
    assert capsys.readouterr().out.replace("\r\n", "\n") == page.content.decode().replace("\r\n", "\n")

    call_command("active_hours", "--benchmark", bare.benchmark.slug, "--daily")
    assert [line.split(",")[2] for line in capsys.readouterr().out.splitlines()[1:]] == [
        *("2026-11-16", "2026-11-17", "2026-11-17"),
    ]
    with pytest.raises(CommandError, match="Swap them"):
        call_command("active_hours", "--submission", str(bare.pk), "--first", "2026-11-17", "--last", "2026-11-16")
    with pytest.raises(CommandError, match="not a day"):
        call_command("active_hours", "--submission", str(bare.pk), "--first", "17.11.2026")
