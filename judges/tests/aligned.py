"""A frozen submission whose judge errs on one kind of task until its criteria mention a rule."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from typing import Any

from django.core.management import call_command
from django.utils import timezone

from annotation.models import Adjudication, Assignment, Label, Person, Submission, Trajectory
from annotation.records import Verdict
from annotation.tests import testing
from evaluations.judge_alignment import splitting
from judges.models import Judge, Part
from judges.tests.builders import defined_judge

SEED = 7
TASKS = 60
KINDS = ("EASY", "HOPELESS", "TRICKY")  # a success, a failure, and a failure that the judge takes for a success
RULE = "A full cart is not an order."
CANARY = "canary"


def reply(**said: Any) -> dict[str, Any]:
    return {"reply": json.dumps(said)}


def verdict(word: str, reason: str = "The model says so.") -> dict[str, Any]:
    return reply(reason=reason, key_points=[], steps=[], verdict=word)


REWRITE = {"match": "You improve the criteria of a judge", "name": "rewrite"}
JUDGING = [
    {"match": ["TRICKY", RULE]} | verdict("failure"),
    {"match": "TRICKY"} | verdict("success", "The cart is full."),
    {"match": "HOPELESS"} | verdict("failure"),
    verdict("success"),
]
LEARNS = [REWRITE | reply(reason="It trusts carts.", criteria=f"Judge the order. {RULE}"), *JUDGING]


def find_part(task: str) -> Part:
    return splitting.assign([f"task_{number:04d}" for number in range(TASKS)], SEED)[task]


def find_kind(trajectory: Trajectory) -> str:
    return KINDS[trajectory.position % len(KINDS)]


def decided_submission(
    agent: str = "Bare Agent", verdicts: Mapping[str, Verdict] | None = None, note: str = "", *, split: bool = True
) -> tuple[Submission, dict[str, Person]]:
    """A frozen submission of `TASKS` tasks with labels and decisions, as rows. ``verdicts`` by task id replace those
    of the kinds; the reasons of test tasks hold `CANARY` and ``note``. With ``split`` it is that of `SEED`."""
    made = testing.bare_submission(TASKS, agent=agent)
    people = testing.cast(made)
    rows = list(made.trajectories.select_related("task").order_by("position"))
    for row in rows:
        row.task_text = f"{find_kind(row)} task {row.position}"
        if find_part(row.task.external_id) is Part.TEST:
            row.task_text += f" {CANARY}"
    Trajectory.objects.bulk_update(rows, ["task_text"])
    final = {row.pk: (verdicts or {}).get(row.task.external_id, Verdict(find_kind(row) == "EASY")) for row in rows}
    _label(people, rows, final, note)
    Submission.objects.filter(pk=made.pk).update(frozen_at=timezone.now())
    made.refresh_from_db()
    if split and splitting.find_split(made.benchmark) is None:
        splitting.draw(people["mira"], made.benchmark, splitting.load_decided(made.benchmark, [made]), [SEED])
    return made, people


def _label(people: dict[str, Person], rows: Sequence[Trajectory], final: Mapping[int, Verdict], note: str) -> None:
    now = timezone.now()

    def build(row: Trajectory, who: str) -> dict[str, Any]:
        said = final[row.pk]
        reason = f"{who} decided {said.name}."
        if find_part(row.task.external_id) is Part.TEST:
            reason += f" {CANARY} {note}"
        failed = {"failure_step": 0, "failure_type": "other"} if said is Verdict.FAILURE else {}
        return {"verdict": said, "reasoning": reason} | failed

    for slot, name in enumerate(("alice", "bob", "chen"), 1):
        assigned = Assignment.objects.bulk_create(
            Assignment(trajectory=row, annotator=people[name], slot=slot, claimed_at=now) for row in rows
        )
        Label.objects.bulk_create(
            Label(assignment=each, created_at=now, **build(each.trajectory, name)) for each in assigned
        )
    Adjudication.objects.bulk_create(
        Adjudication(
            trajectory=row,
            adjudicator=people["carol"],
            blind=False,
            opened_at=now,
            decided_at=now,
            **build(row, "carol"),
        )
        for row in rows
    )


def written_judge(name: str = "careful", **fields: Any) -> Judge:
    return defined_judge(
        name, scorer="single-call", parameters={"criteria": "Judge the cart.", "images": "none"}, **fields
    )


def align(*words: Any, judge: str = "careful", benchmark: str = "bare", **options: Any) -> dict[str, Any]:
    """Run the command to its end; what it prints as JSON."""
    out = io.StringIO()
    given = ["--benchmark", benchmark, "--rounds", "2", "--wait", "--json", *map(str, words)]
    call_command("align_judge", judge, *given, stdout=out, stderr=io.StringIO(), **options)
    return dict(json.loads(out.getvalue()))
