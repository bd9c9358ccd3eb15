"""Choose the trajectories of a run, and estimate its calls and cost."""

from __future__ import annotations

import random
import statistics
from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass, fields, replace
from decimal import Decimal
from typing import Any

from django.db.models import QuerySet

from annotation.models import Submission, Trajectory
from annotation.models.states import State, with_state
from judges.llm.wire import TOKENS_PER_THOUGHT, is_reasoning
from judges.models import Judge, JudgeRun, Judgment, ModelCall, Service
from judges.ready_judges import ReadyJudge, RunRefused, prepare
from judges.scorer import Prompts, Requirement, Subject
from judges.working.call_log import PRICE_FACTORS
from judges.working.subjects import load_subjects

SELECTION = ("state", "level", "task_ids", "limit", "seed", "unjudged")
MOST_SEED = 2**32 - 1
MOST_REPETITIONS = 100
MOST_ITEMS = 100_000
CHARACTERS_PER_TOKEN = 4  # of English text
TOKENS_PER_PICTURE = 1_100  # a screenshot of 1280 x 1600 at high detail
TOKENS_PER_REPLY = 300  # a paragraph of reasons and a verdict
BATCH_TIME = "up to 24 hours for each stage of the judge"
USUAL_LATENCY = 3.0  # seconds of a call, if none was made yet
RECENT_RUNS, RECENT_CALLS = 3, 200
SERVED: dict[str, tuple[str, ...]] = {
    Service.BATCH: ("chat",),
    Service.FLEX: ("chat", "responses"),
}  # the APIs with a service


@dataclass(frozen=True, slots=True)
class Plan:
    """The plan of a run of the judge ``ready`` over the trajectories ``chosen``.

    Tokens are estimates; ``cost`` is in US dollars, None without prices; ``seconds`` are for one worker.
    ``already_judged`` counts the trajectories that have a judgment of this judge.

    Calls, tokens and cost assume a model that does not reason and answers in the required form. Names ending in
    ``_high`` assume that the model reasons, if it can, and first gives every answer in another form.
    ``meeting_requirement`` counts the trajectories that meet the ``requirement`` of the judge, if it has one.
    ``items`` are the trajectories with the number of the repetition. ``prices`` says where those of the model come
    from, "" if they are unknown or no model is asked.
    """

    ready: ReadyJudge
    chosen: list[Trajectory]
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
    meeting_requirement: int
    items: list[tuple[Trajectory, int]]
    prices: str = ""

    @property
    def trajectories(self) -> int:
        return len(self.chosen)

    @property
    def requirement(self) -> Requirement | None:
        return self.ready.requirement

    @property
    def lacking(self) -> int:
        """Return the number of trajectories that do not meet the requirement."""
        return self.trajectories - self.meeting_requirement if self.requirement else 0

    @property
    def unscored(self) -> int:
        return 0 if self.requirement is None or self.requirement.may_miss else self.lacking

    def as_json(self) -> dict[str, Any]:
        left_out = ("ready", "chosen", "meeting_requirement", "items")
        stored = {one.name: getattr(self, one.name) for one in fields(self) if one.name not in left_out}
        costs = {"cost": self.cost, "cost_high": self.cost_high}
        texts = {name: None if cost is None else str(cost) for name, cost in costs.items()}
        return {"trajectories": self.trajectories, **stored, **texts}


# --- selection --------------------------------------------------------------------------------------------------------


def choose(submission: Submission, selection: Mapping[str, Any]) -> list[Trajectory]:
    """Return the trajectories of a selection, in the order of the submission.

    ``{}`` selects all. ``state`` and ``level`` filter (a text or a list of texts). ``task_ids`` is a list; an unknown
    id is refused. ``limit`` takes the first N, or with ``seed`` a random sample of N. ``unjudged`` is the primary key
    of a judge: trajectories that it has judged are excluded. Raises RunRefused.
    """
    if unknown := sorted(set(map(str, selection)) - set(SELECTION)):
        raise RunRefused(f"These selections do not exist: {', '.join(unknown)}. Known: {', '.join(SELECTION)}.")
    rows: Any = Trajectory.objects.filter(submission=submission).select_related("task").order_by("position")
    if states := _parse_texts(selection, "state"):
        if strange := [name for name in states if name not in list(State)]:
            raise RunRefused(f"The state {strange[0]!r} does not exist. Known: {', '.join(State)}.")
        rows = with_state(rows).filter(state__in=states)
    if levels := _parse_texts(selection, "level"):
        rows = rows.filter(task__level__in=levels)
    if wanted := _parse_texts(selection, "task_ids"):
        _require_known(submission, wanted)
        rows = rows.filter(task__external_id__in=wanted)
    if (judge := parse_number(selection, "unjudged")) is not None:
        rows = rows.exclude(pk__in=_select_judged(judge, submission))
    limit, seed = parse_number(selection, "limit"), parse_number(selection, "seed", least=0, most=MOST_SEED)
    if seed is None:
        return list(rows if limit is None else rows[:limit])
    if limit is None:
        raise RunRefused("A seed draws a random sample, so it needs a limit: the number of trajectories to draw.")
    return draw_sample(list(rows), limit, seed)


def draw_sample(rows: list[Trajectory], size: int, seed: int) -> list[Trajectory]:
    """Return ``size`` of the rows (all if there are fewer), in their order; the same seed draws the same sample."""
    drawn = random.Random(seed).sample(range(len(rows)), min(size, len(rows)))  # noqa: S311 - to be repeatable
    return [rows[place] for place in sorted(drawn)]


def _parse_texts(selection: Mapping[str, Any], name: str) -> list[str]:
    given = selection.get(name) or []
    given = [given] if isinstance(given, str) else given
    if not isinstance(given, list | tuple) or not all(isinstance(each, str) and "\x00" not in each for each in given):
        raise RunRefused(f"{name} must be text or a list of texts.")
    return list(given)


def parse_number(selection: Mapping[str, Any], name: str, least: int = 1, most: int = 2**31 - 1) -> int | None:
    given = selection.get(name)
    if given is None:
        return None
    if isinstance(given, bool) or not isinstance(given, int) or not least <= given <= most:
        raise RunRefused(f"{name} must be a whole number from {least} to {most}.")
    return given


def _require_known(submission: Submission, wanted: list[str]) -> None:
    present = set(Trajectory.objects.filter(submission=submission).values_list("task__external_id", flat=True))
    missing = [task_id for task_id in wanted if task_id not in present]
    if missing:
        more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
        raise RunRefused(f"The submission has no trajectory for {', '.join(missing[:3])}{more}.")


def _select_judged(judge: int, submission: Submission) -> Any:
    made = Judgment.objects.filter(judge=judge, trajectory__submission=submission)
    return made.exclude(item__run__test=True).order_by().values("trajectory")


# --- cost -------------------------------------------------------------------------------------------------------------


def plan(
    judge: Judge, submission: Submission, selection: Mapping[str, Any], repetitions: int = 1, service: str = ""
) -> Plan:
    """Estimate a run from the scorer's own forecast, as if the cache were empty.

    Raises RunRefused if the judge cannot judge, or the selection is not valid.
    """
    ready, chosen = prepare(judge), choose(submission, selection)
    _require_service(ready, service)
    if isinstance(repetitions, bool) or not isinstance(repetitions, int) or not 1 <= repetitions <= MOST_REPETITIONS:
        raise RunRefused(f"Choose 1 to {MOST_REPETITIONS} repetitions.")
    if len(chosen) * repetitions > MOST_ITEMS:
        raise RunRefused(
            f"{len(chosen)} trajectories, {repetitions} times each, exceed the {MOST_ITEMS:,} judgments "
            "of one run. Choose fewer, or start several runs."
        )
    pks = [trajectory.pk for trajectory in chosen]
    subjects = (subject for _, subject in load_subjects(pks, ready.members))
    items = [(trajectory, number) for number in range(1, repetitions + 1) for trajectory in chosen]
    return build_plan(ready, submission, items, subjects, times=repetitions, service=service)


def _require_service(ready: ReadyJudge, service: str) -> None:
    if service not in Service.values:
        raise RunRefused(f"The service {service!r} does not exist. Known: {', '.join(filter(None, Service.values))}.")
    if service and not ready.kind.asks:
        raise RunRefused(f"{ready.judge} asks no model, so it needs no service.")
    if service and ready.generation.api not in SERVED[service]:
        raise RunRefused(
            f"The service {service} is OpenAI's, and {ready.judge} uses the API {ready.generation.api}. "
            "Use a standard run."
        )


def build_plan(
    ready: ReadyJudge,
    submission: Submission,
    items: list[tuple[Trajectory, int]],
    subjects: Iterable[Subject],
    *,
    times: int = 1,
    service: str = "",
) -> Plan:
    """Estimate a run with these ``items``, in which each of ``subjects`` is judged ``times`` times.

    The first subjects are those of repetition 1.
    """
    judge, chosen = ready.judge, [trajectory for trajectory, repetition in items if repetition == 1]
    pks = [trajectory.pk for trajectory in chosen]
    low, high, met = _forecast(ready, subjects, times, len(chosen))
    judged = {row["trajectory"] for row in _select_judged(judge.pk, submission).distinct()}
    return Plan(
        ready=ready,
        chosen=chosen,
        items=items,
        repetitions=max((repetition for _, repetition in items), default=times),
        calls=low.calls,
        pictures=low.pictures,
        prompt_tokens=low.prompt,
        completion_tokens=low.completion,
        cost=_compute_cost(ready, low, service),
        seconds=_estimate_seconds(judge, low.calls),
        already_judged=len(judged.intersection(pks)),
        calls_high=high.calls,
        prompt_tokens_high=high.prompt,
        completion_tokens_high=high.completion,
        cost_high=_compute_cost(ready, high, service),
        meeting_requirement=met,
        prices=ready.terms.source if ready.terms and ready.kind.asks else "",
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
        return _Effort(self.calls * 2, self.pictures * 2, self.prompt * 2 + self.completion, self.completion * 2)


def _forecast(
    ready: ReadyJudge, subjects: Iterable[Subject], repetitions: int, trajectories: int
) -> tuple[_Effort, _Effort, int]:
    """Return the lowest and highest effort, and how many trajectories meet what the judge requires."""
    requirement = ready.requirement
    calls = pictures = prompt = completion = met = 0
    for number, subject in enumerate(subjects):
        foreseen = ready.kind.calls(ready.parameters, subject)
        calls += len(foreseen)
        pictures += sum(number for _, number in foreseen)
        prompt += _count_prompt_tokens(ready, subject, foreseen)
        completion += sum(_estimate_reply(ready, subject, stage) for stage, _ in foreseen)
        met += number < trajectories and requirement is not None and requirement.is_met(subject)
    once = _Effort(calls, pictures, prompt, completion)
    low = _Effort(*(number * repetitions for number in astuple(once)))
    most = low if ready.kind.accepts_any_form(ready.parameters) else low.with_repeated_calls()
    thoughts = TOKENS_PER_THOUGHT if _may_think(ready) else 0
    high = replace(most, completion=most.completion + most.calls * thoughts)
    return low, high, met


def _estimate_reply(ready: ReadyJudge, subject: Subject, stage: str) -> int:
    estimate = ready.kind.reply_tokens
    return TOKENS_PER_REPLY if estimate is None else estimate(ready.parameters, subject, stage)


def _may_think(ready: ReadyJudge) -> bool:
    generation = ready.generation
    return generation.reasoning_effort != "none" and (
        is_reasoning(ready.judge.model, generation) or (generation.reasoning == "auto" and _has_thought(ready.judge))
    )


def _has_thought(judge: Judge) -> bool:
    recent = _select_recent_calls(judge).values_list("reasoning_tokens", flat=True)[:RECENT_CALLS]
    return any(recent)


def _count_prompt_tokens(ready: ReadyJudge, subject: Subject, foreseen: list[tuple[str, int]]) -> int:
    """Estimate prompt tokens: all calls have templates and task; those of some stages also have the actions."""
    task = len(subject.record.task_text) + sum(map(len, subject.key_points))
    did = sum(len(step.action) + len(step.thought or "") for step in subject.record.steps)
    templates = {stage: _measure_longest_form(ready.prompts, stage) for stage, _ in foreseen}
    acting = ready.kind.stages_with_actions or tuple(stage for stage, _ in foreseen[-1:])
    characters = sum(templates[stage] + task + (did if stage in acting else 0) for stage, _ in foreseen)
    return characters // CHARACTERS_PER_TOKEN + TOKENS_PER_PICTURE * sum(number for _, number in foreseen)


def _measure_longest_form(prompts: Prompts, stage: str) -> int:
    """Return the characters of a stage's templates, in the longer of the two forms that a set may have."""
    sizes = {
        name.removeprefix(f"{stage}."): len(text) for name, text in prompts.texts.items() if name.startswith(stage)
    }
    plain = sum(size for part, size in sizes.items() if part in ("system", "user"))
    return max(plain, sum(sizes.values()) - plain)


def _compute_cost(ready: ReadyJudge, effort: _Effort, service: str) -> Decimal | None:
    if not ready.kind.asks:
        return Decimal(0)
    terms = ready.terms
    if terms is None or terms.input_price is None or terms.output_price is None:
        return None
    cost = (effort.prompt * terms.input_price + effort.completion * terms.output_price) / 1_000_000
    return (cost * PRICE_FACTORS.get(service, 1)).quantize(Decimal("1e-4"))


def _estimate_seconds(judge: Judge, calls: int) -> float:
    """Return the seconds of one worker: three calls in sequence, or all calls at the judge's concurrency."""
    latency = _measure_latency(judge)
    return max(3 * latency, calls * latency / judge.concurrency) if calls else 0.0


def _measure_latency(judge: Judge) -> float:
    recent = _select_recent_calls(judge).values_list("latency", flat=True)[:RECENT_CALLS]
    known = [latency for latency in recent if latency is not None]
    return statistics.median(known) / 1000 if known else USUAL_LATENCY


def _select_recent_calls(judge: Judge) -> QuerySet[ModelCall]:
    same = JudgeRun.objects.filter(judge__model=judge.model, judge__endpoint=judge.endpoint, started_at__isnull=False)
    runs = list(same.order_by("-pk").values_list("pk", flat=True)[:RECENT_RUNS])
    calls = ModelCall.objects.filter(item__run__in=runs, hit=False, latency__isnull=False, error="")
    return calls.order_by("-pk")
