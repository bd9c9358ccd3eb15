"""Bundles of submissions, opened by an auditor, and people who label a sample of one again.

amy audits; erin, finn and gita annotate samples, hugo adjudicates them: nobody of them has a part in the submission.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.test import Client

from annotation import queue, workflow
from annotation.models import Membership, Person, Submission
from annotation.models.states import State, with_state
from annotation.tests import testing
from evaluations import jobs
from evaluations.auditing.importing import open_bundle
from evaluations.evidence import writing
from evaluations.evidence.documents import documents
from evaluations.models import Audit, BundleUpload
from judges.models import JudgeRun, Judgment, RunItem
from judges.tests.rows import judge_row, judgment_row, run_row

ANNOTATORS = ("erin", "finn", "gita")


def bundle(submission: Submission, folder: Path, **options: Any) -> Path:
    """An evidence bundle in ``folder``; ``options`` are those of `writing.prepare`."""
    path = folder / "bundle.zip"
    writing.write(writing.prepare(submission, **options), path)
    return path


def auditor(name: str = "amy") -> Person:
    return testing.person(name, is_staff=True)


def client_of(person: Person) -> Client:
    client = Client()
    client.force_login(person)
    return client


def audit_of(submission: Submission, folder: Path, **options: Any) -> Audit:
    return open_bundle(bundle(submission, folder, **options), auditor())


def work() -> None:
    """What workers do with the messages of all uploaded bundles."""
    for upload in BundleUpload.objects.filter(finished_at__isnull=True):
        jobs.open_bundle(str(upload.pk))


def relabel(sample: Submission, verdicts: dict[str, int] | None = None) -> dict[str, Person]:
    """Everybody says of a task what ``verdicts`` has for it, or a success; then it is frozen. Returns the people."""
    people = add_people(sample)
    while any(label_one(people[name], sample, verdicts or {}) for name in ANNOTATORS):
        pass
    if with_state(sample.trajectories.all()).filter(state=State.AGREED.value).exists():
        workflow.draw_spot_checks(auditor(), sample)
    for row in queue.load_queue(sample):
        workflow.open_adjudication(people["hugo"], row)
        said = (verdicts or {}).get(row.task.external_id, 1)
        workflow.decide(people["hugo"], row, testing.content(row, said))
    workflow.freeze(auditor(), sample)
    return people


def add_people(sample: Submission) -> dict[str, Person]:
    people = {name: testing.person(name) for name in (*ANNOTATORS, "hugo")}
    for name in ANNOTATORS:
        workflow.add_member(auditor(), sample, people[name], Membership.Role.ANNOTATOR)
    workflow.add_member(auditor(), sample, people["hugo"], Membership.Role.ADJUDICATOR)
    return people


def label_one(person: Person, sample: Submission, verdicts: dict[str, int]) -> bool:
    """Whether there was something left for the person."""
    held = workflow.claim(person, sample)
    if held is None:
        return False
    said = verdicts.get(held.trajectory.task.external_id, 1)
    workflow.submit(person, held.trajectory, testing.content(held.trajectory, said))
    return True


# --- judges ----------------------------------------------------------------------------------------------------------


def ask_judges(submission: Submission) -> None:
    """A judge with two finished runs, a third that goes on and a test, beside one whose judgments were imported.

    The first run asks twice and disagrees with itself; its first item has no verdict, and its last failed each time.
    The second run says otherwise of the second trajectory alone.
    """
    judge = judge_row("strict", parameters={"sites": {"shop": "http://shop.example"}, "strict": True})
    first = run_row(submission, judge, repetitions=2)
    items = list(first.items.order_by("trajectory__position", "repetition"))
    for number, item in enumerate(items[:-2]):
        unscored = {"score": None, "unscored": "It names no status."} if number < 2 else {}
        judgment_row(item, None if number < 2 else number % 2, **unscored)
    for item in items[-2:]:
        RunItem.objects.filter(pk=item.pk).update(failed_at=first.started_at, error="The endpoint did not answer.")
    second = run_row(submission, judge)
    item = second.items.get(trajectory__position=1)
    judgment_row(item, 1 - Judgment.objects.get(item=items[2]).verdict)
    second.items.exclude(pk=item.pk).delete()
    JudgeRun.objects.filter(pk__in=(first.pk, second.pk)).update(finished_at=first.started_at)
    going_on = run_row(submission, judge_row("slow"))
    judgment_row(going_on.items.earliest("pk"), 1)
    judgment_row(run_row(submission, judge, test=True).items.earliest("pk"), 0)


def judge_lines(submission: Submission) -> tuple[list[Any], list[Any]]:
    """Runs and judgments, without the numbers that events have for runs: another instance has others."""
    found = documents(submission)
    return [line | {"event_run": None} for line in found.runs or []], found.judgments or []
