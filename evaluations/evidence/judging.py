"""Documents of judge runs and judgments of a submission.

They do not reveal where a judge's model was called or who ran it: no endpoint, no address, no account.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Iterator
from typing import Any

from django.db.models import F, Q

from annotation.models import Submission, Trajectory
from annotation.models.events import digest, instant
from evaluations import cases
from evaluations.cases import Case
from evaluations.comparison.judgments import find_judgments, list_judges
from evaluations.naming import natural
from evaluations.verifier.documents import Document
from evaluations.verifier.rules import IMPORTED_RUN
from judges.models import Judge, JudgeRun, Judgment, RobustnessCard, RunItem
from judges.working.leases import collect_outcomes

WITH_ADDRESSES = ("sites", "environments")  # parameters with the addresses of sites
ADDRESS = re.compile(r"\b[a-z][a-z0-9+.-]*://[^\s\"'<>)\]]+", re.IGNORECASE)

# Addresses without a scheme; four numbers after a letter and a slash, or after "version", are a version.
_IPV4 = r"[0-9]{1,3}(?:\.[0-9]{1,3}){3}"
_PORT = r":[0-9]{1,5}"
_NUMBERS = re.compile(rf"(?<![\w.]){_IPV4}{_PORT}(?!\w)|(?<![\w.])(?<!\w/)(?<!ersion ){_IPV4}(?!\w|\.[0-9])")
_IPV6 = re.compile(
    rf"\[([0-9a-f:.]+)(?:%\w+)?\](?:{_PORT})?|(?<![\w:.])([0-9a-f:]{{1,38}}[0-9a-f])(?:%\w+)?(?!\w|:[\w:])",
    re.IGNORECASE,
)
_HOST = re.compile(r"(?<![\w.-])([\w-]+(?:\.[\w-]+)*):([0-9]{1,5})(?!\w)")
SHORTEST_PORT = 4  # digits after a single word: "step:12" is not a machine

Runs = list[tuple[Judge, JudgeRun | None]]


def runs_and_judgments(submission: Submission) -> tuple[list[Document], list[Document]]:
    """Return the lines of judges/runs.jsonl and judges/judgments.jsonl, without test runs.

    Runs are in the order of creation; then one run without times for each judge with imported judgments, by name.
    """
    found = cases.of_population(submission)
    judges = list_judges(found)
    counted, errors = _find_counted(judges, found)
    judgments = list(_judgments(submission, counted))
    runs = _runs(submission, [row.judge for row in judgments if row.item is None])
    position = {case.trajectory: number for number, case in enumerate(found)}
    task_ids = {case.trajectory: case.task_id for case in found}
    numbers = {(judge.pk, run.pk if run else None): number for number, (judge, run) in enumerate(runs, 1)}
    rows = [(numbers[row.judge_id, row.item.run_id if row.item else None], row) for row in judgments]
    lines = [(number, _place(row, position, found), _judgment(number, row, row.pk in counted)) for number, row in rows]
    for item in _failed(submission):
        number = numbers[item.run.judge_id, item.run_id]
        line = _error(number, item, task_ids[item.trajectory_id], (item.run.judge_id, item.trajectory_id) in errors)
        lines.append((number, position[item.trajectory_id], line))
    lines.sort(key=lambda each: (each[0], each[1], each[2]["repetition"], each[2]["judged_at"] or ""))
    return [_run(number, judge, run) for number, (judge, run) in enumerate(runs, 1)], [line for *_, line in lines]


def robustness_cards(submission: Submission) -> list[Document]:
    """Return the lines of judges/robustness.jsonl: the cards since the freeze, with all judgments of their runs."""
    rows = RobustnessCard.objects.filter(submission=submission, run__created_at__gte=F("submission__frozen_at"))
    cards = rows.select_related("judge").order_by("made_at", "pk")
    return [_card(card) for card in sorted(cards, key=lambda card: (natural(card.judge.name), card.judge.version))]


def _card(card: RobustnessCard) -> Document:
    outcomes = collect_outcomes(card.run_id)  # a run with failed items has no card
    return {
        "judge": f"{card.judge.name}@{card.judge.version}",
        "fingerprint": card.fingerprint,
        "event_run": card.run_id,
        "operators_version": card.operators_version,
        "seed": card.seed,
        "made_at": instant(card.made_at),
        "changes": card.report["operators"],
        "judgments": [{name: value for name, value in one.items() if name != "error"} for one in outcomes],
    }


def without_addresses(reason: str) -> str:
    """Remove addresses of machines: with a scheme, an IP with or without a port, a host with a port."""
    reason = _NUMBERS.sub("(address)", ADDRESS.sub("(address)", reason))
    return _HOST.sub(_not_a_host, _IPV6.sub(_not_an_ip, reason))


def _not_an_ip(found: re.Match[str]) -> str:
    """Keep times, and names with two colons: they are not IP addresses."""
    try:
        ipaddress.ip_address(found[1] or found[2])
    except ValueError:
        return found[0]
    return "(address)"


def _not_a_host(found: re.Match[str]) -> str:
    host, port = found.groups()
    last = host.rpartition(".")[2]
    named = last[0].isalpha() and ("." in host or len(port) >= SHORTEST_PORT)
    return "(address)" if named or host.lower() == "localhost" else found[0]


def _find_counted(judges: Iterable[Judge], found: list[Case]) -> tuple[set[int], set[tuple[int, int]]]:
    """Return the judgments that a comparison counts, and (judge, trajectory) of the failures that it counts."""
    judgments, errors = set(), set()
    for judge in judges:
        for key, told in find_judgments(judge, found).items():
            if told.judgment is not None:
                judgments.add(told.judgment)
            elif told.error and isinstance(key, int):
                errors.add((judge.pk, key))
    return judgments, errors


def _runs(submission: Submission, imported: Iterable[Judge]) -> Runs:
    """Return the runs here, then one without times for each judge with imported judgments, even if it also ran here."""
    made = JudgeRun.objects.filter(submission=submission, test=False).select_related("judge")
    here: Runs = [(run.judge, run) for run in made.order_by("pk")]
    elsewhere = {judge.pk: judge for judge in imported}.values()
    return here + [(judge, None) for judge in sorted(elsewhere, key=lambda judge: (natural(judge.name), judge.version))]


def _judgments(submission: Submission, counted: set[int]) -> Iterable[Judgment]:
    """Return the judgments of runs here, and the imported ones about these trajectories."""
    linked = Q(item=None) & (Q(trajectory__submission=submission) | Q(pk__in=sorted(counted)))
    found = Judgment.objects.filter(_made_here(submission) | linked)
    return found.select_related("judge", "task", "item").order_by("pk").defer("response")


def reasons(submission: Submission) -> Iterator[tuple[int, str, str]]:
    """Yield judge, task and reason, as exported, of every judgment that may become a line.

    Imported judgments without a link are all included, whether or not a comparison counts them. One query.
    """
    shown = Trajectory.objects.filter(submission=submission)
    elsewhere = Q(trajectory=None) | Q(trajectory__submission__practice=True)
    elsewhere &= Q(agent=submission.agent_id, task__benchmark=submission.benchmark_id)
    elsewhere &= Q(task__external_id__in=shown.values("task__external_id"))
    elsewhere &= Q(judge__came_with__isnull=True) | Q(judge__came_with=submission)
    linked = Q(item=None) & (Q(trajectory__submission=submission) | elsewhere)
    found = Judgment.objects.filter(_made_here(submission) | linked).exclude(unscored="").order_by("pk")
    for judge, task_id, reason in found.values_list("judge", "task__external_id", "unscored"):
        yield judge, task_id, without_addresses(reason)


def _made_here(submission: Submission) -> Q:
    return Q(item__run__submission=submission, item__run__test=False)


def _failed(submission: Submission) -> Iterable[RunItem]:
    items = RunItem.objects.filter(run__submission=submission, run__test=False, failed_at__isnull=False)
    return items.select_related("run__judge").order_by("run__created_at", "run", "trajectory__position", "repetition")


def _place(row: Judgment, position: dict[int | None, int], found: list[Case]) -> int:
    """Return the position of the judgment's trajectory; without a trajectory, by its task."""
    if row.trajectory_id in position:
        return position[row.trajectory_id]
    return next(number for number, case in enumerate(found) if case.task_id == row.task.external_id)


def _run(number: int, judge: Judge, run: JudgeRun | None) -> Document:
    facts = {
        "scorer": judge.scorer,
        "scorer_version": judge.scorer_version,
        "model": _without_place(judge.model),
        "parameters": _parameters(judge.parameters),
        "generation": judge.generation,
    }
    return {
        "run": number,
        "event_run": run.pk if run else None,
        "judge": judge.name,
        "version": judge.version,
        "fingerprint": judge.fingerprint,
        **facts,
        "prompts": judge.prompts,
        "prompts_digest": judge.prompts_digest,
        # A judge from a bundle also counts if its submitter had removed something.
        "withheld": digest(facts | {"prompts": judge.prompts_digest}) != judge.fingerprint,
        "repeat": run.repetitions if run else None,
        "started_at": instant(run.started_at) if run else None,
        "finished_at": instant(run.finished_at) if run else None,
        "state": run.state if run else IMPORTED_RUN,
    }


def _judgment(number: int, row: Judgment, counts: bool) -> Document:
    said = {
        "verdict": row.verdict,
        "reason": without_addresses(row.unscored) or None,
        "score": row.score,
        "judged_at": instant(row.made_at),
    } | ({"status_not_stated": True} if row.status_not_stated else {})
    return _line(number, row.judge, row.fingerprint, row.task.external_id, row.repetition, counts) | said


def _error(number: int, item: RunItem, task_id: str, counts: bool) -> Document:
    """Return the line of a judge's failure, without its reason, which names machines."""
    judge = item.run.judge
    return _line(number, judge, judge.fingerprint, task_id, item.repetition, counts) | {"error": True}


def _line(number: int, judge: Judge, fingerprint: str, task_id: str, repetition: int, counts: bool) -> Document:
    return {
        "run": number,
        "judge": f"{judge.name}@{judge.version}",
        "fingerprint": fingerprint,
        "task_id": task_id,
        "repetition": repetition,
        "error": False,
        "counts": counts,
        **dict.fromkeys(("verdict", "reason", "score", "judged_at")),
    }


def _parameters(given: Any) -> Any:
    """Return the parameters without addresses; the whole parameter is null for `WITH_ADDRESSES`."""
    if isinstance(given, dict):
        return {name: None if name in WITH_ADDRESSES and value else _parameters(value) for name, value in given.items()}
    if isinstance(given, list):
        return [_parameters(each) for each in given]
    return ADDRESS.sub("(address)", given) if isinstance(given, str) else given


def _without_place(model: str) -> str:
    """Return the name of a model without its folder or host."""
    return model.rsplit("/", 1)[-1] if model.startswith(("/", ".")) or "://" in model else model
