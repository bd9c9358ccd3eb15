"""Load what an alignment may use: decided cases of its frozen submissions, and disagreements with their reasons."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from random import Random

from annotation.models import Adjudication, Trajectory
from annotation.models.states import current_labels
from annotation.records import Verdict
from annotation.workflow import Conflict
from evaluations.cases import Case
from evaluations.judge_alignment import splitting
from evaluations.judge_alignment.optimisers import Disagreement, Material, Tried
from judges.models import Alignment, AlignmentVersion, Judgment, Part

MOST_SHOWN = 20  # disagreements in one prompt


@dataclass(frozen=True, slots=True)
class Reasons:
    """The reasons of people for a final verdict, and the step of the first of them that names one."""

    texts: tuple[str, ...]
    step: int | None


def load_cases(alignment: Alignment, *parts: Part) -> list[Case]:
    """Return the decided cases of these parts; raise Conflict if a submission was reopened."""
    submissions = list(alignment.submissions.defer("import_report").order_by("pk"))
    for each in submissions:
        if each.frozen_at is None:
            raise Conflict(
                f"Submission {each.pk} was reopened, so its verdicts cannot be used. Freeze it, then resume."
            )
    decided = splitting.load_decided(alignment.split.benchmark, submissions)
    return splitting.select_part(alignment.split, decided, *parts)


def load_reasons(final: dict[int, Verdict]) -> dict[int, Reasons]:
    """Return the reasons for the final verdicts by trajectory: of the decision, else of the labels that agree."""
    found: defaultdict[int, list[tuple[str, int | None]]] = defaultdict(list)
    labels = current_labels().filter(assignment__trajectory__in=final).order_by("assignment__slot")
    for pk, verdict, reason, step in labels.values_list(
        "assignment__trajectory", "verdict", "reasoning", "failure_step"
    ):
        if verdict == final[pk]:
            found[pk].append((reason, step))
    decided = Adjudication.objects.filter(trajectory__in=final, decided_at__isnull=False).order_by("revision")
    found.update(
        (pk, [(reason, step)])
        for pk, verdict, reason, step in decided.values_list("trajectory", "verdict", "reasoning", "failure_step")
        if verdict == final[pk]
    )
    return {
        pk: Reasons(tuple(text for text, _ in each), next((step for _, step in each if step is not None), None))
        for pk, each in found.items()
    }


def find_disagreements(cases: Collection[Case], version: AlignmentVersion, *parts: Part) -> list[tuple[Case, Judgment]]:
    """Return the cases whose final verdict is not the version's, with its judgment, in the order of the cases."""
    runs = version.runs.filter(part__in=parts, replaced=False).values("run")
    made = Judgment.objects.filter(item__run__in=runs, verdict__isnull=False).select_related(
        "judge", "trajectory__task"
    )
    judgments = {judgment.trajectory_id: judgment for judgment in made}
    pairs = [(case, judgments[case.trajectory]) for case in cases if case.trajectory in judgments]
    return [
        (case, said) for case, said in pairs if (said.verdict == Verdict.SUCCESS) != (case.final == Verdict.SUCCESS)
    ]


def build_material(version: AlignmentVersion) -> Material:
    """Return the criteria of a version, its disagreements on training tasks (at most `MOST_SHOWN`, drawn), and the
    texts that did not win against it."""
    cases = load_cases(version.alignment, Part.TRAIN)
    found = find_disagreements(cases, version, Part.TRAIN)
    rounds = version.alignment.versions.count()
    places = range(len(found))
    draw = Random(f"{version.alignment_id}:{rounds}")  # noqa: S311 - to be repeatable
    drawn = sorted(draw.sample(places, min(MOST_SHOWN, len(found))))
    lost = version.children.filter(accepted=False, judge__isnull=False).select_related("judge").order_by("number")
    return Material(
        criteria=read_criteria(version),
        disagreements=tuple(_describe([found[place] for place in drawn])),
        tried=tuple(Tried(each.judge.parameters["criteria"], each.reason) for each in lost if each.judge),
    )


def read_criteria(version: AlignmentVersion) -> str:
    return "" if version.judge is None else str(version.judge.parameters["criteria"])


def _describe(found: Sequence[tuple[Case, Judgment]]) -> list[Disagreement]:
    final = {case.trajectory: case.final for case, _ in found if case.trajectory is not None and case.final is not None}
    reasons, texts = load_reasons(final), dict(Trajectory.objects.filter(pk__in=final).values_list("pk", "task_text"))
    return [
        Disagreement(
            task=texts[case.trajectory],
            judge=Verdict(said.verdict).name.lower(),
            judge_reason=said.explanation,
            people=case.final.name.lower(),
            people_reasons=reasons[case.trajectory].texts,
            step=reasons[case.trajectory].step,
        )
        for case, said in found
        if said.verdict is not None
        if case.trajectory is not None and case.final is not None and case.trajectory in reasons
    ]
