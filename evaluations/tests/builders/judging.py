"""Judgments, imported or of runs."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Any

from django.db import transaction

from annotation.models import (
    Agent,
    Benchmark,
    Membership,
    Submission,
)
from annotation.models.events import append
from annotation.records import Finding, Verdict
from evaluations.cases import Case, of_benchmark
from evaluations.tests.builders.rows import KEY_POINTS, START, saved
from judges.imports import IMPORTED
from judges.models import Judge, JudgeRun, Judgment, RunItem
from judges.scorer import KeyPointEvidence, Score, StepEvidence
from judges.working import leases

JUDGED_AT = START + timedelta(days=30)


def judged(
    benchmark: Benchmark,
    name: str = "webjudge",
    accuracy: float = 0.85,
    seed: int = 1,
    *,
    unscored: float = 0.02,
    repetitions: int = 0,
    failed: float = 0.02,
) -> Judge:
    """A judge that says what people decided with probability ``accuracy``, about everything that has labels.

    Without ``repetitions`` its judgments are imported ones: with tokens but no cost, as from a file. With them it has
    a finished run over each submission, so many times each; of those items a share of ``failed`` has failed, and they
    have a cost. A share of ``unscored`` has no verdict. Where nothing is decided, the first label is taken for right.
    """
    random = Random(f"{seed} {name}")
    submissions = list(Submission.objects.filter(benchmark=benchmark, practice=False).order_by("pk"))
    cases = [case for case in of_benchmark(benchmark, submissions) if case.labels]
    told = _Told(benchmark, _judge(name, imported=not repetitions), random, accuracy, unscored)
    with transaction.atomic():
        if not repetitions:
            saved(told.judgment(case, JUDGED_AT, imported=_imported(number)) for number, case in enumerate(cases, 1))
            return told.judge
        for submission in submissions:
            own = [case for case in cases if case.submission == submission.pk]
            _run(told, submission, own, repetitions, failed)
    return told.judge


def _judge(name: str, imported: bool) -> Judge:
    fields = {"scorer": IMPORTED, "parameters": {"name": name}} if imported else {"scorer": "autonomous-eval"}
    return Judge.objects.create(name=name, model="fake-model-1", frozen_at=START, **fields)


def _imported(row: int) -> dict[str, Any]:
    return {"file": "judgments.jsonl", "sha256": "0" * 64, "row": row, "shape": "plain", "digest": "", "carried": {}}


def _run(told: _Told, submission: Submission, cases: list[Case], repetitions: int, failed: float) -> JudgeRun:
    last = submission.events.order_by("sequence").last()
    made = max(JUDGED_AT, last.at) if last else JUDGED_AT  # no event is older than the one before it
    run = JudgeRun.objects.create(
        judge=told.judge, submission=submission, repetitions=repetitions, started_at=made, finished_at=made
    )
    by_key = {case.trajectory: case for case in cases if case.trajectory is not None}
    items = []
    for number in range(1, repetitions + 1):
        for key in by_key:
            broken = told.random.random() < failed
            end = {"failed_at": made, "error": "The endpoint did not answer."} if broken else {"done_at": made}
            row = RunItem(run=run, trajectory_id=key, repetition=number, attempt=1, taken_at=made, **end)
            items.append(row)
    done = [item for item in saved(items) if item.done_at is not None]
    saved(told.judgment(by_key[item.trajectory_id], made, item=item, repetition=item.repetition) for item in done)
    _recorded(run)
    return run


def _recorded(run: JudgeRun) -> None:
    """The events of a run that finished, at its times."""
    maintainers = run.submission.memberships.filter(role=Membership.Role.MAINTAINER).order_by("pk")
    by = {"actor": each.person, "pseudonym": each.pseudonym} if (each := maintainers.first()) else {}
    asked: dict[str, Any] = {"trajectories": run.items.count() // run.repetitions, "repetitions": run.repetitions}
    append(run.submission, "judge_run_started", **by, at=run.started_at, **leases.build_payload(run), **asked)
    append(run.submission, "judge_run_finished", at=run.finished_at, **leases.build_end_payload(run))


class _Told:
    """What a judge says, by chance."""

    def __init__(self, benchmark: Benchmark, judge: Judge, random: Random, accuracy: float, unscored: float) -> None:
        self.judge, self.fingerprint, self.random = judge, judge.fingerprint, random
        self.accuracy, self.unscored = accuracy, unscored
        self.tasks = {row.external_id: row for row in benchmark.tasks.order_by("version")}
        self.agents = {row.name: row for row in Agent.objects.all()}

    def judgment(self, case: Case, made_at: datetime, **fields: Any) -> Judgment:
        score = self._score(case)
        tokens = self.random.randint(3_000, 9_000)
        return Judgment(
            judge=self.judge,
            fingerprint=self.fingerprint,
            task=self.tasks[case.task_id],
            agent=self.agents[case.agent],
            trajectory_id=case.trajectory,
            verdict=score.verdict,
            unscored=score.unscored,
            score=score.score,
            explanation=score.explanation,
            evidence=score.evidence(),
            response=score.response,
            model=self.judge.model,
            tokens=tokens,
            cost=Decimal(tokens) / 1_000_000 if "item" in fields else None,
            made_at=made_at,
            **fields,
        )

    def _score(self, case: Case) -> Score:
        if self.random.random() < self.unscored:
            return Score(None, unscored="The reply names no status.", response="I cannot tell.")
        truth = case.labels[0].verdict if case.final is None else case.final
        right = self.random.random() < self.accuracy
        success = (truth is Verdict.SUCCESS) == right
        number = self.random.random() / 2 + (0.5 if success else 0.0)
        return Score(
            Verdict.SUCCESS if success else Verdict.FAILURE,
            score=round(number, 3),
            explanation="The screenshots show it.",
            key_points=self._key_points(success),
            steps=(StepEvidence(1, 4, "It shows the list.", kept=True),),
            response=f"Status: {'success' if success else 'failure'}",
        )

    def _key_points(self, success: bool) -> tuple[KeyPointEvidence, ...]:
        unmet = None if success else self.random.choice(KEY_POINTS)
        return tuple(
            KeyPointEvidence(text, Finding.UNMET if text == unmet else Finding.MET, (1,), "Seen there.")
            for text in KEY_POINTS
        )
