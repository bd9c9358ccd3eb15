"""Which trajectories a run is about, and what it would cost, before anything is asked."""

from __future__ import annotations

import random
import statistics
from collections.abc import Mapping
from dataclasses import asdict, astuple, dataclass, replace
from decimal import Decimal
from typing import Any

from django.conf import settings
from django.db.models import QuerySet
from django.db.models.functions import Length

from annotation.models import Attachment, Submission, Trajectory
from annotation.models.states import State, with_state
from annotation.records import AttachmentKind
from annotation.workflow import Conflict
from judges import defining
from judges.llm import Generation, NotConfigured, Usage, is_reasoning
from judges.models import Expectation, Judge, JudgeRun, Judgment, ModelCall, ModelTerms
from judges.scorer import REGISTRY, Prompts, Subject, parameters_from
from judges.scorers.rubric import scripts
from judges.working.ledger import price
from judges.working.subjects import subjects_of

ACTIONS, RUBRICS = "action-selection", "rubric"  # scorers that go by something which no `Kind.expects` names
SELECTION = ("state", "level", "task_ids", "limit", "seed", "unjudged")
MOST_SEED = 2**32 - 1
MOST_REPETITIONS = 100
MOST_ITEMS = 100_000
CHARACTERS_PER_TOKEN = 4  # of English text
TOKENS_PER_PICTURE = 1_100  # a screenshot of 1280 x 1600 at high detail
TOKENS_PER_REPLY = 300  # a paragraph of reasons and a verdict
TOKENS_PER_THOUGHT = 1_200  # what a reasoning model adds to that, and is paid for
USUAL_LATENCY = 3.0  # seconds of a call, where none was made yet
RECENT_RUNS, RECENT_CALLS = 3, 200


class RunRefused(Conflict):
    """A run that cannot be started as asked; the message says why and what to do instead."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The plan of a run. Tokens are estimates; ``cost`` in US dollars, None without prices; ``seconds`` of work
    of one worker. ``already_judged`` trajectories have a judgment of this judge.

    Calls, tokens and cost assume a model that answers without thoughts and in the required form. Names ending in
    ``_high`` assume a model that thinks, if it can, and gives every answer in another form first.
    """

    trajectories: int
    repetitions: int
    calls: int
    pictures: int
    prompt_tokens: int
    completion_tokens: int
    cost: Decimal | None
    seconds: float
    already_judged: int
    calls_high: int
    prompt_tokens_high: int
    completion_tokens_high: int
    cost_high: Decimal | None

    def as_json(self) -> dict[str, Any]:
        """As it is stored with the run."""
        costs = {"cost": self.cost, "cost_high": self.cost_high}
        return asdict(self) | {name: None if cost is None else str(cost) for name, cost in costs.items()}


# --- which -----------------------------------------------------------------------------------------------------------


def choose(submission: Submission, selection: Mapping[str, Any]) -> list[Trajectory]:
    """The trajectories that a selection means, in the order of the submission.

    ``{}`` is all of them; ``state`` and ``level`` filter (a text or a list of texts), ``task_ids`` lists (an unknown
    id is refused), ``limit`` takes the first, or with ``seed`` a random sample of that many, ``unjudged`` names a
    judge's primary key whose judged trajectories are left out. Raises RunRefused.
    """
    if unknown := sorted(set(map(str, selection)) - set(SELECTION)):
        raise RunRefused(f"Trajectories are not chosen by {', '.join(unknown)}; known are {', '.join(SELECTION)}.")
    rows: Any = Trajectory.objects.filter(submission=submission).select_related("task").order_by("position")
    if states := _texts(selection, "state"):
        if strange := [name for name in states if name not in list(State)]:
            raise RunRefused(f"There is no state {strange[0]!r}; known are {', '.join(State)}.")
        rows = with_state(rows).filter(state__in=states)
    if levels := _texts(selection, "level"):
        rows = rows.filter(task__level__in=levels)
    if wanted := _texts(selection, "task_ids"):
        _known(submission, wanted)
        rows = rows.filter(task__external_id__in=wanted)
    if (judge := _number(selection, "unjudged")) is not None:
        rows = rows.exclude(pk__in=_judged(judge, submission))
    limit, seed = _number(selection, "limit"), _number(selection, "seed", least=0, most=MOST_SEED)
    if seed is None:
        return list(rows if limit is None else rows[:limit])
    if limit is None:
        raise RunRefused("A seed draws a random sample, so it needs a limit: how many trajectories to draw.")
    return _sample(list(rows), limit, seed)


def _sample(rows: list[Trajectory], size: int, seed: int) -> list[Trajectory]:
    """``size`` of the rows (all where there are fewer), in their order; the same seed draws the same of the same."""
    drawn = random.Random(seed).sample(range(len(rows)), min(size, len(rows)))  # noqa: S311 - to be repeatable
    return [rows[place] for place in sorted(drawn)]


@dataclass(frozen=True, slots=True)
class Expects:
    """What a judge goes by, in words, and how many of the chosen trajectories have it; the rest will be unscored.

    ``of_task`` where it is written for a task, and does not come with the trajectory.
    """

    what: str
    present: int
    chosen: int
    of_task: bool = True


def expected(judge: Judge, submission: Submission, selection: Mapping[str, Any]) -> Expects | None:
    """How many of the trajectories have what the judge goes by; None for a judge that needs nothing of the kind."""
    kind = REGISTRY.get(judge.scorer)
    if judge.scorer == ACTIONS:
        return _with_reference(submission, choose(submission, selection))
    if judge.scorer == RUBRICS:
        return _with_rubric(submission, choose(submission, selection), str(judge.parameters.get("source", "auto")))
    if kind is None or not kind.expects:
        return None
    chosen, holds = choose(submission, selection), _written(submission, kind.expects)
    what = Expectation.Kind(kind.expects).label
    return Expects(what, sum(one.task_id in holds for one in chosen), len(chosen))


def _with_reference(submission: Submission, chosen: list[Trajectory]) -> Expects:
    found = Attachment.objects.filter(trajectory__submission=submission, kind=AttachmentKind.REFERENCE_STEP)
    having = set(found.order_by().values_list("trajectory", flat=True).distinct())
    return Expects("reference steps", sum(one.pk in having for one in chosen), len(chosen), of_task=False)


def _with_rubric(submission: Submission, chosen: list[Trajectory], source: str) -> Expects:
    holds = _written(submission, Expectation.Kind.RUBRIC) if source != "script" else set()
    present = sum(one.task_id in holds or (source != "written" and _has_script(one.task.external_id)) for one in chosen)
    what = {"written": "a rubric", "script": "a rubric script"}.get(source, "a rubric or a rubric script")
    return Expects(what, present, len(chosen))


def _has_script(task_id: str) -> bool:
    try:
        return scripts.installed(settings.RUBRIC_SCRIPTS, task_id) is not None
    except NotConfigured:  # there is one; that it cannot be used is an error of the item
        return True


def _written(submission: Submission, kind: str) -> set[int]:
    """The keys of tasks of which something is expected now: what was withdrawn is empty."""
    written = Expectation.objects.filter(task__trajectories__submission=submission, kind=kind)
    sizes = dict(written.annotate(size=Length("text")).order_by("version").values_list("task", "size"))
    return {task for task, size in sizes.items() if size}


def _texts(selection: Mapping[str, Any], name: str) -> list[str]:
    given = selection.get(name) or []
    given = [given] if isinstance(given, str) else given
    if not isinstance(given, list | tuple) or not all(isinstance(each, str) and "\x00" not in each for each in given):
        raise RunRefused(f"{name} must be a text or a list of texts.")
    return list(given)


def _number(selection: Mapping[str, Any], name: str, least: int = 1, most: int = 2**31 - 1) -> int | None:
    given = selection.get(name)
    if given is None:
        return None
    if isinstance(given, bool) or not isinstance(given, int) or not least <= given <= most:
        raise RunRefused(f"{name} must be a whole number from {least} to {most}.")
    return given


def _known(submission: Submission, wanted: list[str]) -> None:
    present = set(Trajectory.objects.filter(submission=submission).values_list("task__external_id", flat=True))
    missing = [task_id for task_id in wanted if task_id not in present]
    if missing:
        more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
        raise RunRefused(f"The submission has no trajectory of {', '.join(missing[:3])}{more}.")


def _judged(judge: int, submission: Submission) -> Any:
    """The keys of trajectories with a judgment of this judge, tests left out."""
    made = Judgment.objects.filter(judge=judge, trajectory__submission=submission)
    return made.exclude(item__run__test=True).order_by().values("trajectory")


# --- at what cost ----------------------------------------------------------------------------------------------------


def plan(judge: Judge, submission: Submission, selection: Mapping[str, Any], repetitions: int = 1) -> Plan:
    """What the run would cost, from the scorer's own forecast, before anything is asked.

    Foreseen as if nothing were in the cache. Raises RunRefused when the judge cannot judge, or the selection means
    nothing.
    """
    return plan_of(judge, submission, choose(submission, selection), repetitions)


def plan_of(judge: Judge, submission: Submission, chosen: list[Trajectory], repetitions: int) -> Plan:
    """`plan` for trajectories that were chosen already."""
    if isinstance(repetitions, bool) or not isinstance(repetitions, int) or not 1 <= repetitions <= MOST_REPETITIONS:
        raise RunRefused(f"Judge each trajectory 1 to {MOST_REPETITIONS} times.")
    if len(chosen) * repetitions > MOST_ITEMS:
        raise RunRefused(
            f"{len(chosen)} trajectories, {repetitions} times each, are more than the {MOST_ITEMS:,} judgments of one "
            "run: choose fewer, or make several runs."
        )
    pks = [trajectory.pk for trajectory in chosen]
    low, high = _foreseen(judge, pks, repetitions)
    judged = {row["trajectory"] for row in _judged(judge.pk, submission).distinct()}
    terms = ModelTerms.objects.filter(endpoint=judge.endpoint, model=judge.model).first()
    return Plan(
        trajectories=len(chosen),
        repetitions=repetitions,
        calls=low.calls,
        pictures=low.pictures,
        prompt_tokens=low.prompt,
        completion_tokens=low.completion,
        cost=_cost(terms, low) if defining.asks(judge) else Decimal(0),
        seconds=_seconds(judge, low.calls),
        already_judged=len(judged.intersection(pks)),
        calls_high=high.calls,
        prompt_tokens_high=high.prompt,
        completion_tokens_high=high.completion,
        cost_high=_cost(terms, high) if defining.asks(judge) else Decimal(0),
    )


@dataclass(frozen=True, slots=True)
class _Effort:
    """The effort of judging; ``prompt`` and ``completion`` are tokens."""

    calls: int
    pictures: int
    prompt: int
    completion: int

    def with_repeated_calls(self) -> _Effort:
        """Return the effort if each call is repeated once, with the question and the first reply in the prompt."""
        return _Effort(self.calls * 2, self.pictures * 2, self.prompt * 2 + self.calls * TOKENS_PER_REPLY, 0)


def _foreseen(judge: Judge, pks: list[int], repetitions: int) -> tuple[_Effort, _Effort]:
    """Return the lowest and highest effort for judging these trajectories."""
    try:
        kind, parameters, _ = defining.built(judge)
        prompts = defining.prompts_of(judge)
    except (LookupError, ValueError) as error:
        raise RunRefused(str(error.args[0] if error.args else error)) from error
    calls = pictures = prompt = 0
    for _, subject in subjects_of(pks):
        foreseen = kind.calls(parameters, subject)
        calls += len(foreseen)
        pictures += sum(number for _, number in foreseen)
        prompt += _prompt_tokens(prompts, subject, foreseen)
    once = _Effort(calls, pictures, prompt, calls * TOKENS_PER_REPLY)
    low = _Effort(*(number * repetitions for number in astuple(once)))
    # Upstream's mode requires no form, so no call is repeated.
    most = low if getattr(parameters, "mode", "") == "upstream" else low.with_repeated_calls()
    thoughts = TOKENS_PER_THOUGHT if _may_think(judge) else 0
    return low, replace(most, completion=most.calls * (TOKENS_PER_REPLY + thoughts))


def _may_think(judge: Judge) -> bool:
    generation = parameters_from(Generation, judge.generation)
    return generation.reasoning_effort != "none" and (
        is_reasoning(judge.model, generation) or (generation.reasoning == "auto" and _has_thought(judge))
    )


def _has_thought(judge: Judge) -> bool:
    """Return whether recent replies of the judge's model had thoughts."""
    recent = _recent_calls(judge).values_list("reasoning_tokens", flat=True)[:RECENT_CALLS]
    return any(recent)


def _prompt_tokens(prompts: Prompts, subject: Subject, foreseen: list[tuple[str, int]]) -> int:
    """Templates and task go into every call; what the agent did goes into those of the last stage."""
    task = len(subject.record.task_text) + sum(map(len, subject.key_points))
    did = sum(len(step.action) + len(step.thought or "") for step in subject.record.steps)
    templates = {stage: _longest_form(prompts, stage) for stage, _ in foreseen}
    last = foreseen[-1][0] if foreseen else ""
    characters = sum(templates[stage] + task + (did if stage == last else 0) for stage, _ in foreseen)
    return characters // CHARACTERS_PER_TOKEN + TOKENS_PER_PICTURE * sum(number for _, number in foreseen)


def _longest_form(prompts: Prompts, stage: str) -> int:
    """Characters of a stage's templates; of the two forms that a set may have, the longer one."""
    sizes = {
        name.removeprefix(f"{stage}."): len(text) for name, text in prompts.texts.items() if name.startswith(stage)
    }
    plain = sum(size for part, size in sizes.items() if part in ("system", "user"))
    return max(plain, sum(sizes.values()) - plain)


def _cost(terms: ModelTerms | None, effort: _Effort) -> Decimal | None:
    each = price(terms, Usage(prompt=1_000_000, completion=0)), price(terms, Usage(prompt=0, completion=1_000_000))
    if each[0] is None or each[1] is None:
        return None
    return ((effort.prompt * each[0] + effort.completion * each[1]) / 1_000_000).quantize(Decimal("1e-4"))


def _seconds(judge: Judge, calls: int) -> float:
    """Of one worker: the three stages of a trajectory after one another, or all calls through the gate."""
    latency = _latency(judge)
    return max(3 * latency, calls * latency / judge.concurrency) if calls else 0.0


def _latency(judge: Judge) -> float:
    """The median of recent calls of the judge's model, in seconds."""
    recent = _recent_calls(judge).values_list("latency", flat=True)[:RECENT_CALLS]
    known = [latency for latency in recent if latency is not None]
    return statistics.median(known) / 1000 if known else USUAL_LATENCY


def _recent_calls(judge: Judge) -> QuerySet[ModelCall]:
    """Return calls of the judge's model in its last runs, the newest first."""
    same = JudgeRun.objects.filter(judge__model=judge.model, judge__endpoint=judge.endpoint, started_at__isnull=False)
    runs = list(same.order_by("-pk").values_list("pk", flat=True)[:RECENT_RUNS])
    calls = ModelCall.objects.filter(item__run__in=runs, hit=False, latency__isnull=False, error="")
    return calls.order_by("-pk")
