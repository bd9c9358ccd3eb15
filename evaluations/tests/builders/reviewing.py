"""A reviewed benchmark."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from datetime import timedelta
from random import Random
from typing import Any

from django.db import transaction

from annotation.models import (
    Adjudication,
    AdjudicationFinding,
    Agent,
    Assignment,
    Benchmark,
    Flag,
    KeyPoint,
    KeyPointFinding,
    Label,
    Membership,
    Person,
    Screenshot,
    SpotCheck,
    SpotCheckDraw,
    Step,
    Submission,
    Task,
    Trajectory,
)
from annotation.models.events import digest
from annotation.protocol import CAUSES, FAILURE_TYPES, MINIMUM_LABELS
from annotation.records import Finding, Verdict
from annotation.tests.testing import person, task
from annotation.workflow.adjudicating import choose
from evaluations.tests.builders.rows import KEY_POINTS, START, saved

LEVELS = ("easy", "medium", "hard")
MOST_WEBSITES = 136  # as many as Online-Mind2Web has
SCREENSHOTS = 40  # different ones, shared by all steps
NOT_EXECUTABLE = 0.04  # share of trajectories whose true verdict is 2
FLAGGED = 0.01  # share of the unanimous
SPOT_CHECKS = 0.10


def reviewed(
    agents: int = 2,
    tasks: int = 40,
    *,
    seed: int = 1,
    annotators: int = 3,
    skill: float = 0.9,
    frozen: bool = True,
    slug: str = "reviewed",
) -> Benchmark:
    """A new benchmark with one finished submission of ``tasks`` trajectories for each agent.

    Three of ``annotators`` people (three or more; alice, bob, chen, ...) label each trajectory and name its true
    verdict with probability ``skill``, the first ones a bit more often than the last. carol settles what differs, and
    spot checks and flags blindly, always rightly. mira maintains. Without ``frozen`` every tenth trajectory lacks its
    last label. The same ``seed`` gives the same verdicts.
    """
    random = Random(seed)
    with transaction.atomic():
        benchmark = Benchmark.objects.create(slug=slug, name=f"Benchmark {slug}")
        made = _tasks(benchmark, tasks)
        pictures = _pictures()
        team = _people(annotators)
        for number in range(agents):
            ability = 0.75 - 0.45 * number / max(1, agents - 1)
            _Review(benchmark, f"Agent {number + 1:02d}", made, team, random, skill, ability, frozen).write(pictures)
    return benchmark


def _tasks(benchmark: Benchmark, count: int) -> list[Task]:
    websites = max(2, min(MOST_WEBSITES, count // 3))
    rows = saved(
        Task(
            benchmark=benchmark,
            external_id=task(number)["task_id"],
            text=task(number)["confirmed_task"],
            website=f"https://shop{number % websites}.example/",
            level=LEVELS[number * 7 % 10 // 4],
            reference_length=(4, 8, 13)[number * 7 % 10 // 4],
        )
        for number in range(count)
    )
    saved(
        KeyPoint(task=row, position=position, text=text, accepted_at=START)
        for row in rows
        for position, text in enumerate(KEY_POINTS)
    )
    return list(Task.objects.filter(benchmark=benchmark).order_by("pk").prefetch_related("key_points"))


def _pictures() -> list[Screenshot]:
    names = [hashlib.sha256(f"picture {number}".encode()).hexdigest() for number in range(SCREENSHOTS)]
    known = set(Screenshot.objects.filter(sha256__in=names).values_list("sha256", flat=True))
    saved(
        Screenshot(sha256=name, media_type="image/png", width=320, height=200, size=1000)
        for name in names
        if name not in known
    )
    return list(Screenshot.objects.filter(sha256__in=names).order_by("sha256"))


def _people(annotators: int) -> dict[str, list[Person]]:
    names = ["alice", "bob", "chen", *(f"annotator{number}" for number in range(4, annotators + 1))]
    return {
        "annotator": [person(name) for name in names[: max(MINIMUM_LABELS, annotators)]],
        "adjudicator": [person("carol")],
        "maintainer": [person("mira", is_staff=True)],
    }


@dataclass(slots=True)
class _Item:
    """A trajectory on its way through the review."""

    trajectory: Trajectory
    truth: Verdict
    failure_type: str
    steps: int
    labels: list[Label] = field(default_factory=list)
    flagged: bool = False

    @property
    def agreed(self) -> bool:
        return len(self.labels) == MINIMUM_LABELS and len({label.verdict for label in self.labels}) == 1


@dataclass(slots=True)
class _Review:
    """One submission: written from its trajectories to its freeze."""

    benchmark: Benchmark
    agent: str
    tasks: list[Task]
    team: dict[str, list[Person]]
    random: Random
    skill: float
    ability: float
    frozen: bool

    def write(self, pictures: list[Screenshot]) -> None:
        submission = self._submission()
        items = self._items(submission)
        self._steps(items, pictures)
        self._labels(items)
        flagged = self._flags(items)
        drawn = self._draw(submission, [item for item in items if item.agreed and not item.flagged])
        disputed = [item for item in items if len(item.labels) == MINIMUM_LABELS and not item.agreed]
        self._adjudicate(disputed, blind=False)
        self._adjudicate([*flagged, *drawn], blind=True)
        if self.frozen:
            Submission.objects.filter(pk=submission.pk).update(frozen_at=START + timedelta(days=20))

    def _submission(self) -> Submission:
        submission = Submission.objects.create(
            benchmark=self.benchmark,
            agent=Agent.objects.get_or_create(name=self.agent)[0],
            digest=digest([self.benchmark.slug, self.agent]),
            spot_check_rate=SPOT_CHECKS,
            spot_check_seed=f"{self.random.getrandbits(128):032x}",
        )
        saved(
            Membership(submission=submission, person=member, role=role, pseudonym=f"{letter}{number}")
            for (role, members), letter in zip(self.team.items(), "AQM", strict=True)
            for number, member in enumerate(members, 1)
        )
        return submission

    def _items(self, submission: Submission) -> list[_Item]:
        rows = saved(
            Trajectory(
                submission=submission,
                task=found,
                position=position,
                task_text=found.text,
                final_answer="Laptop added.",
                reference_length=found.reference_length,
                source_format="online-mind2web-v2",
                digest=digest([submission.pk, position]),
                open_slots=submission.required_labels,
            )
            for position, found in enumerate(self.tasks)
        )
        return [_Item(row, *self._drawn_truth(row.task)) for row in rows]

    def _drawn_truth(self, of: Task) -> tuple[Verdict, str, int]:
        """Its true verdict, the failure type that most will name, and how many steps it has."""
        easier = {"easy": 0.15, "medium": 0.0, "hard": -0.2}[of.level]
        one = self.random.random()
        success = Verdict.SUCCESS if self.random.random() < self.ability + easier else Verdict.FAILURE
        truth = Verdict.NOT_EXECUTABLE if one < NOT_EXECUTABLE else success
        return truth, self.random.choice(FAILURE_TYPES).code, self.random.randint(2, (of.reference_length or 4) + 2)

    def _steps(self, items: list[_Item], pictures: list[Screenshot]) -> None:
        saved(
            Step(
                trajectory=item.trajectory,
                index=index,
                action=f"Click at ({index}, {index})" if index < item.steps - 1 else "TASK_COMPLETE -> ANSWER: Done.",
                thought=f"I will do {index}.",
                url=f"{item.trajectory.task.website}step/{index}",
                screenshot=pictures[(item.trajectory.position + min(index, 9)) % len(pictures)],
                file_name=f"{index:04d}.png",
            )
            for item in items
            for index in range(item.steps)
        )

    def _labels(self, items: list[_Item]) -> None:
        held = []
        for number, item in enumerate(items):
            count = MINIMUM_LABELS - (not self.frozen and number % 10 == 9)
            people = self.team["annotator"]
            chosen = people if len(people) == MINIMUM_LABELS else self.random.sample(people, MINIMUM_LABELS)
            held += [
                (item, Assignment(trajectory=item.trajectory, annotator=who, slot=slot, claimed_at=START))
                for slot, who in enumerate(chosen[:count], 1)
            ]
        saved(assignment for _, assignment in held)
        for item, assignment in held:
            item.labels.append(self._label(item, assignment))
        labels = saved(label for item in items for label in item.labels)
        saved(
            KeyPointFinding(label=label, key_point=point, finding=found, step=0)
            for label in labels
            for point, found in self._findings(label.assignment.trajectory.task, label.verdict)
        )

    def _label(self, item: _Item, assignment: Assignment) -> Label:
        late = self.team["annotator"].index(assignment.annotator) % 5
        right = self.random.random() < self.skill - 0.03 * late
        others = [verdict for verdict in Verdict if verdict is not item.truth]
        wrong = others[0] if self.random.random() < 0.85 else others[1]
        return Label(
            assignment=assignment,
            created_at=START + timedelta(minutes=item.trajectory.position),
            active_seconds=None
            if self.random.random() < 0.02
            else round(self.random.lognormvariate(4.5 + late / 9, 0.5)),
            **self._decision(item, item.truth if right else wrong),
        )

    def _seconds(self, late: int) -> int | None:
        measured = self.random.random() > 0.02
        return round(self.random.lognormvariate(4.5 + late / 9, 0.5)) if measured else None

    def _decision(self, item: _Item, verdict: Verdict) -> dict[str, Any]:
        fields: dict[str, Any] = {"verdict": verdict, "reasoning": "The steps show it."}
        if verdict is Verdict.FAILURE:
            same = self.random.random() < 0.8
            kind = item.failure_type if same else self.random.choice(FAILURE_TYPES).code
            further = [code for code in (self.random.choice(FAILURE_TYPES).code,) if code != kind]
            fields |= {"failure_step": self.random.randrange(item.steps), "failure_type": kind}
            fields |= {"further_failure_types": further if self.random.random() < 0.1 else []}
        if verdict is Verdict.NOT_EXECUTABLE:
            fields |= {"cause": self.random.choice(CAUSES).code}
        return fields

    def _findings(self, of: Task, verdict: int) -> list[tuple[KeyPoint, Finding]]:
        """A failure leaves one key point unmet; now and then somebody finds one unclear."""
        points = list(of.key_points.all())
        unmet = self.random.choice(points) if verdict == Verdict.FAILURE else None
        return [(point, Finding.UNMET if point is unmet else self._usual_finding()) for point in points]

    def _usual_finding(self) -> Finding:
        return Finding.UNCLEAR if self.random.random() < 0.05 else Finding.MET

    def _flags(self, items: list[_Item]) -> list[_Item]:
        chosen = [item for item in items if item.agreed and self.random.random() < FLAGGED]
        for item in chosen:
            item.flagged = True
        saved(
            Flag(
                trajectory=item.trajectory,
                annotator=item.labels[0].assignment.annotator,
                note="Please look.",
                flagged_at=START + timedelta(days=1),
            )
            for item in chosen
        )
        return chosen

    def _draw(self, submission: Submission, agreed: list[_Item]) -> list[_Item]:
        by_task = {item.trajectory.task.external_id: item for item in agreed}
        if not by_task:
            return []
        drawn = set(choose(sorted(by_task), SPOT_CHECKS, submission.spot_check_seed))
        draw = SpotCheckDraw.objects.create(
            submission=submission,
            number=1,
            seed=submission.spot_check_seed,
            rate=SPOT_CHECKS,
            population=sorted(by_task),
            drawn=sorted(drawn),
            drawn_at=START + timedelta(days=10),
        )
        saved(SpotCheck(trajectory=by_task[name].trajectory, draw=draw, selected=name in drawn) for name in by_task)
        return [by_task[name] for name in sorted(drawn)]

    def _adjudicate(self, items: list[_Item], *, blind: bool) -> None:
        decisions = saved(
            Adjudication(
                trajectory=item.trajectory,
                adjudicator=self.team["adjudicator"][0],
                blind=blind,
                opened_at=START + timedelta(days=11),
                decided_at=START + timedelta(days=11, minutes=5),
                criterion="key_point",
                active_seconds=90,
                **self._decision(item, item.truth),
            )
            for item in items
        )
        saved(
            AdjudicationFinding(adjudication=row, key_point=point, finding=found, step=0)
            for row in decisions
            for point, found in self._findings(row.trajectory.task, row.verdict)
        )
