"""A large instance for `bench.pages`: long lists of everything that people write, before and after the freeze."""

from __future__ import annotations

import hashlib
from datetime import timedelta
from typing import Any

from django.utils import timezone

from annotation.models import (
    Agent,
    ApiToken,
    Assignment,
    Attachment,
    Benchmark,
    Comment,
    Draft,
    Event,
    Flag,
    KeyPoint,
    KnownAnswer,
    Label,
    Membership,
    Person,
    Phrase,
    Question,
    Redaction,
    Release,
    Reopening,
    Report,
    Screenshot,
    Submission,
    Trajectory,
    Upload,
)
from annotation.models.events import GENESIS
from annotation.tests import testing
from evaluations.models import Audit, AuditCheck
from evaluations.tests.builders import judged, labelled_elsewhere, reviewed
from evaluations.tests.builders.rows import saved
from evaluations.verifier.findings import failed, noted, passed
from judges import defining
from judges.models import RunItem
from judges.tests import rows as judged_rows

REASON = "The filter was set to 500 dollars, and the task asks for 800; see step 3."
CODES = ("screenshot_missing", "task_unknown", "field_missing", "answer_differs", "json_invalid")
PEOPLE_SHARE, LIST_SHARE = 150, 10  # trajectories for each person, and for each row of the other lists


def build(size: int, listed: int = 0) -> dict[str, list[Trajectory]]:
    """Create three submissions of ``size`` trajectories, and return some trajectories of each by its state.

    One is ``open``, one ``frozen`` with open results, and one is ``audited``. Each has a person for every
    `PEOPLE_SHARE` trajectories, and the benchmark of the first has a submission for every 1,000. The frozen one has a
    second on the same tasks, with open results too. Other lists have ``listed`` rows, or else one for every
    `LIST_SHARE` trajectories.
    """
    many = listed or max(3, size // LIST_SHARE)
    people = max(5, size // PEOPLE_SHARE)
    found = {}
    for state in ("frozen", "audited", "open"):
        agents = 2 if state == "frozen" else 1
        benchmark = reviewed(agents, size, annotators=people, frozen=state != "open", slug=state)
        submission = benchmark.submissions.earliest("pk")
        submission.agent = Agent.objects.get_or_create(name=f"Agent {state}")[0]
        submission.import_report = _report(size)
        submission.save()
        if state == "frozen":
            benchmark.submissions.update(opened_at=timezone.now())
        if state != "audited":
            _write(submission, many)
        _record(submission)
        found[state] = list(submission.trajectories.select_related("task").order_by("position")[:3])
        if state == "audited":
            _write_others(submission, 1)  # before the auditors join, who are members of audits alone
            _audit(submission, size)
    _write_others(found["open"][0].submission, max(3, size // 1000))
    _write_rest(found)
    return found


def _report(size: int) -> dict[str, Any]:
    """Return an import report in which a third of the folders has problems of five causes."""
    bad = [f"task_{number:04d}" for number in range(0, size, 3)]
    problems = [
        {"code": code, "message": f"{code} in step 3 of this folder", "where": f"trajectory/{number:04d}.png"}
        for number, code in enumerate(CODES)
    ]
    return {
        "accepted": [f"task_{number:04d}" for number in range(size) if number % 3],
        "rejected": [{"task_id": each, "problems": problems} for each in bad],
        "warnings": [{"task_id": each, **problems[0], "code": "thoughts_missing"} for each in bad],
    }


def _write(submission: Submission, many: int) -> None:
    now = timezone.now()
    members = list(submission.memberships.filter(role=Membership.Role.ANNOTATOR).order_by("pk"))
    carol, mira = Person.objects.get(username="carol"), Person.objects.get(username="mira")
    chosen = list(submission.trajectories.select_related("task").order_by("position")[: 2 * many])
    someone = [members[number % len(members)].person for number in range(len(chosen))]
    saved(
        Report(trajectory=row, reporter=who, kind="task_outdated", note=REASON, reported_at=now)
        for row, who in zip(chosen, someone, strict=True)
    )
    saved(
        Question(submission=submission, asker=who, text=REASON * 3, asked_at=now, **_answer(number, mira))
        for number, who in enumerate(someone)
    )
    saved(Comment(trajectory=chosen[0], author=who, text=REASON * 3, written_at=now) for who in someone)
    saved(
        KeyPoint(task=row.task, position=9, text=f"Proposed for {row.pk}", proposed_by=who)
        for row, who in zip(chosen, someone, strict=True)
    )
    saved(
        KnownAnswer(trajectory=row, verdict=1, explanation=REASON, author=mira, saved_at=now) for row in chosen[:many]
    )
    saved(
        Redaction(
            submission=submission,
            original=hashlib.sha256(f"{submission.pk} {row.pk}".encode()).hexdigest(),
            boxes=[[0, 0, 5, 5]],
            reason=REASON,
            redacted="0" * 64,
            redacted_by=mira,
            redacted_at=now,
        )
        for row in chosen
    )
    if submission.frozen_at is None:
        _write_waiting(submission, many, someone, carol, mira)


def _answer(number: int, mira: Person) -> dict[str, Any]:
    return {} if number % 2 else {"answer": REASON, "answered_at": timezone.now(), "answered_by": mira}


def _write_waiting(submission: Submission, many: int, someone: list[Person], carol: Person, mira: Person) -> None:
    """Flag and reopen trajectories, and let some be declined, put off and drafted by alice."""
    now, alice = timezone.now(), Person.objects.get(username="alice")
    done = list(submission.trajectories.filter(open_slots=0).order_by("position")[: 4 * many])
    flagged = set(Flag.objects.filter(trajectory__in=done[:many]).values_list("trajectory", "annotator"))
    saved(
        Flag(trajectory=row, annotator=who, note=REASON, flagged_at=now)
        for row, who in zip(done, someone, strict=False)
        if (row.pk, who.pk) not in flagged
    )
    decided = list(submission.trajectories.filter(adjudications__isnull=False).order_by("position")[:many])
    saved(Reopening(trajectory=row, reopened_by=mira, reason=REASON, revision=2, reopened_at=now) for row in decided)
    free = submission.trajectories.filter(open_slots__gt=0).exclude(assignments__annotator=alice)
    rows = list(free.order_by("position")[: 2 * many])
    saved(
        Release(trajectory=row, annotator=who, reason=REASON, released_at=now)
        for row, who in zip(rows, someone, strict=False)
    )
    own = rows[:20]
    lease = now + timedelta(hours=20)
    saved(
        Assignment(trajectory=row, annotator=alice, slot=3, claimed_at=now, lease_expires_at=lease, put_off_until=lease)
        for row in own
    )
    saved(Draft(trajectory=row, author=alice, content={"reasoning": REASON}, saved_at=now) for row in rows[:many])
    _give_alice_labels(submission, alice, many)


def _give_alice_labels(submission: Submission, alice: Person, many: int) -> None:
    """Let alice submit the third label of trajectories that lack it, so that her own lists are long."""
    free = submission.trajectories.filter(open_slots__gt=0).exclude(assignments__annotator=alice)
    rows = list(free.exclude(releases__annotator=alice).order_by("-position")[:many])
    now = timezone.now()
    made = saved(Assignment(trajectory=row, annotator=alice, slot=3, claimed_at=now) for row in rows)
    saved(Label(assignment=each, verdict=1, reasoning=REASON, created_at=now) for each in made)


def _record(submission: Submission) -> None:
    """Append an event for every label, with the hashes of a chain."""
    labels = Label.objects.filter(assignment__trajectory__submission=submission).order_by("pk")
    names = dict(submission.memberships.values_list("person_id", "pseudonym"))
    previous, events = GENESIS, []
    of = "assignment__"
    columns = ("created_at", f"{of}annotator", f"{of}trajectory__task__external_id", f"{of}slot", "verdict")
    for sequence, (at, who, task_id, slot, verdict) in enumerate(labels.values_list(*columns)):
        event = Event(
            submission=submission,
            sequence=sequence,
            kind="label_submitted",
            actor_id=who,
            actor_pseudonym=names[who],
            at=at,
            payload={"task_id": task_id, "slot": slot, "verdict": verdict, "reasoning": REASON},
            previous=previous,
        )
        event.hash = previous = event.computed_hash()
        events.append(event)
    saved(events)


def _write_others(first: Submission, count: int) -> None:
    """Create more submissions of the same benchmark with the same people, every second one frozen."""
    tasks = list(first.benchmark.tasks.order_by("pk")[:3])
    members = list(first.memberships.all())
    for number in range(count):
        made = Submission.objects.create(
            benchmark=first.benchmark,
            agent=Agent.objects.get_or_create(name=f"Other agent {number}")[0],
            digest=f"other {number}",
            frozen_at=timezone.now() if number % 2 else None,
        )
        saved(Membership(submission=made, person=m.person, role=m.role, pseudonym=m.pseudonym) for m in members)
        saved(
            Trajectory(
                submission=made,
                task=task,
                position=position,
                task_text=task.text,
                source_format="online-mind2web-v2",
                digest=f"{made.pk} {position}",
                open_slots=made.required_labels,
            )
            for position, task in enumerate(tasks)
        )
        saved(Question(submission=made, asker=m.person, text=REASON, asked_at=timezone.now()) for m in members[:3])


def _audit(submission: Submission, size: int) -> None:
    amy, now = testing.person("amy", is_superuser=True, is_staff=True), timezone.now()
    Submission.objects.filter(pk=submission.pk).update(audited=True)
    Benchmark.objects.filter(pk=submission.benchmark_id).update(bundled_as="elsewhere")
    Membership.objects.create(submission=submission, person=amy, role=Membership.Role.AUDITOR, pseudonym="R1")
    audit = Audit.objects.create(
        submission=submission, file_name="bundle.zip", manifest="ab" * 32, opened_by=amy, opened_at=now
    )
    places = [f"task_{number:04d}" for number in range(size)]
    findings = [passed("chain", REASON), failed("reasons", REASON, places), noted("times", REASON, places)]
    AuditCheck.objects.create(
        audit=audit,
        checked_by=amy,
        checked_at=now,
        given=[],
        key_trusted=False,
        findings=[each.as_json() for each in findings],
    )


def _write_rest(found: dict[str, list[Trajectory]]) -> None:
    """Judge the submissions, and create one row of everything that `config.tests.addresses` walks."""
    mira, now = Person.objects.get(username="mira"), timezone.now()
    for state in ("open", "frozen"):
        rows = found[state]
        benchmark = rows[0].submission.benchmark
        judged(benchmark, f"imported {state}", 0.85, 1)
        judged(benchmark, f"run {state}", 0.8, 2, repetitions=1)
        labelled_elsewhere(benchmark)
        for kind, name in (("agent_response", "agent_response.json"), ("cached_page", "pages/x.jpg")):
            sha256 = Screenshot.objects.earliest("pk").sha256
            saved(Attachment(trajectory=row, kind=kind, name=name, sha256=sha256, size=2) for row in rows)
    practice = testing.bare_submission(2, agent="Practice Agent")
    Submission.objects.filter(pk=practice.pk).update(practice=True)
    judged_rows.call_row(RunItem.objects.filter(judgment__isnull=False).earliest("pk"))
    defining.set_terms(None, endpoint="default", model="some-model", input_price=1, output_price=4)
    ApiToken.issue(mira, "mira's token", "admin")
    Phrase.objects.create(person=mira, text=REASON)
    submission = found["open"][0].submission
    Upload.objects.create(
        uploaded_by=mira,
        benchmark=submission.benchmark,
        agent_name="Careful Agent",
        file_name="package.zip",
        stored_as="",
        report=submission.import_report,
        finished_at=now,
    )
