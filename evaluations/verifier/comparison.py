"""Recompute reports/comparison.json: judges beside people."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from evaluations.verifier.documents import Bundle, Document
from evaluations.verifier.numbers import (
    NO_CASES,
    coefficient_figure,
    f1_score,
    gap_figure,
    kappa_of_cells,
    natural_order,
    rate_figure,
)
from evaluations.verifier.resampling import Ends, Resamples
from evaluations.verifier.rules import NOT_EXECUTABLE, SUCCESS, imported_run

OF_ROWS = 2000  # resamples behind the intervals of a row
SUCCEEDED, DID_NOT, UNSCORED, ERROR, UNJUDGED = "success", "no", "unscored", "error", "nothing"  # said by a judge

JudgeKey = tuple[str, str]  # name with version, and fingerprint
Crossed = Counter[tuple[int, str]]  # how many decided cases people, and the judge, say this of


def recompute_comparison(bundle: Bundle) -> Document:
    """The document; intervals that were drawn at random are `Ends`."""
    final = {line["task_id"]: line["verdict"] for line in bundle.final_verdicts if line["verdict"] is not None}
    lines: dict[JudgeKey, list[Document]] = defaultdict(list)
    for line in bundle.judgments or []:
        if line["counts"]:
            lines[line["judge"], line["fingerprint"]].append(line)
    agent, attempt = bundle.submission["agent"], bundle.submission["attempt"]
    name = agent if attempt == 1 else f"{agent} (attempt {attempt})"
    return {"judges": [_judge_beside_people(key, lines[key], name, final) for key in sorted(lines, key=_judge_order)]}


def _judge_order(key: JudgeKey) -> tuple[Any, ...]:
    """By name, and of one name the newest version first."""
    name, _, version = key[0].partition("@")
    return natural_order(name), -int(version[:9]) if version.isdecimal() else 0, key


def _judge_beside_people(key: JudgeKey, lines: Sequence[Document], name: str, final: dict[str, int]) -> Document:
    """The row that leaves out what people call not executable, and the row to which that is no success."""
    said: dict[str, str] = {}
    for line in sorted(lines, key=lambda line: not line["error"]):  # a judgment outweighs a failure to make one
        verdict = SUCCEEDED if line["verdict"] == SUCCESS else DID_NOT
        said[line["task_id"]] = verdict if line["verdict"] is not None else ERROR if line["error"] else UNSCORED
    crossed = Counter((verdict, said.get(task_id, UNJUDGED)) for task_id, verdict in final.items())
    apart = Counter({cell: times for cell, times in crossed.items() if cell[0] != NOT_EXECUTABLE})
    excluded = sum(crossed.values()) - sum(apart.values())
    rows = [_row_of_judge(name, "excluded", apart, excluded)] if final else []
    if final:
        other = (
            _row_of_judge(name, "not_success", crossed, 0) if excluded else {**rows[0], "human_label_2": "not_success"}
        )
        rows.append(other)
    not_stated = sum(line.get("status_not_stated", False) and line["task_id"] in final for line in lines)
    more = {"status_not_stated": not_stated} if not_stated else {}
    return {"judge": key[0], "fingerprint": key[1], "rows": rows, **more}


def _row_of_judge(name: str, rule: str, crossed: Crossed, excluded: int) -> Document:
    cells: Counter[tuple[bool, str]] = Counter()
    for (human, said), times in crossed.items():
        cells[human == SUCCESS, said] += times
    tp, fn, fp, tn = (cells[human, said] for human in (True, False) for said in (SUCCEEDED, DID_NOT))
    figures = figures_of_cells(tp, fp, tn, fn)
    shown = {**figures, "accuracy": figures["agreement"]}
    return {
        "agent": name,
        "human_label_2": rule,
        "n": tp + fp + tn + fn,
        "excluded": excluded,
        "unscored": cells[True, UNSCORED] + cells[False, UNSCORED],
        "errors": cells[True, ERROR] + cells[False, ERROR],
        "unjudged": cells[True, UNJUDGED] + cells[False, UNJUDGED],
        "tp": tp, "fp": fp, "tn": tn, "fn": fn,
        **{key: figure["value"] for key, figure in shown.items()},
        "intervals": {key: ends for key, figure in shown.items() if (ends := _interval_in_row(figure)) is not None},
        "undefined": {key: figure["undefined"] for key, figure in shown.items() if figure["value"] is None},
    }


def _interval_in_row(figure: Document) -> Any:
    low, high = figure["low"], figure["high"]
    if isinstance(low, Ends):
        return low if low.allowed else None
    return None if low is None else [low, high]


def figures_of_cells(tp: int, fp: int, tn: int, fn: int) -> dict[str, Document]:
    """Every figure of a row by its name; success is positive. Each is undefined where it would be divided by 0.

    Source: Powers (2011), Journal of Machine Learning Technologies 2, 37-63.
    """
    n = tp + fp + tn + fn
    draws = Resamples([tp, fp, tn, fn])

    def rate(hits: int, others: int, why: str = NO_CASES) -> Document:
        return rate_figure(hits, hits + others, why if n else NO_CASES)

    def drawn(formula: Callable[[int, int, int, int], float | None], why: str) -> Document:
        if (value := formula(tp, fp, tn, fn)) is None:
            return coefficient_figure(None, n, why if n else NO_CASES)
        return coefficient_figure(value, n, "", draws.ends(lambda cells: formula(*cells), OF_ROWS))

    return {
        "agreement": rate(tp + tn, fp + fn),
        "precision": rate(tp, fp, "nothing was judged a success"),
        "recall": rate(tp, fn, "no case is a success"),
        "f1": drawn(f1_score, "no case is a success, nor was judged one"),
        "specificity": rate(tn, fp, "every case is a success"),
        "npv": rate(tn, fn, "everything was judged a success"),
        "false_positive_rate": rate(fp, tn, "every case is a success"),
        "kappa": drawn(kappa_of_cells, "only one class"),
        "success_rate_human": rate(tp + fn, fp + tn),
        "success_rate_judge": rate(tp + fp, tn + fn),
        "success_rate_gap": gap_figure(fp, fn, n),
    }


def judged_in_no_run(bundle: Bundle) -> Iterator[tuple[str, str]]:
    """Tasks, and a sentence, of judgments whose run is not in runs.jsonl, or is one of another judge."""
    runs = {line["run"]: (f"{line['judge']}@{line['version']}", line["fingerprint"]) for line in bundle.runs or []}
    for line in bundle.judgments or []:
        if runs.get(line["run"]) != (line["judge"], line["fingerprint"]):
            yield line["task_id"], f"{line['task_id']} was judged in run {line['run']}, which is no run of that judge"


def miscounted(bundle: Bundle) -> list[tuple[str, str]]:
    """Tasks, and why in a sentence, of which other judgments count than the rule says.

    Of a judge and a task counts the lowest repetition of its newest run that has a judgment of it; where no run has
    one, the lowest imported one; where nothing has, the failures.
    """
    imported = {line["run"] for line in bundle.runs or [] if imported_run(line)}
    lines: dict[tuple[str, str, str], list[Document]] = defaultdict(list)
    for line in bundle.judgments or []:
        lines[line["judge"], line["fingerprint"], line["task_id"]].append(line)
    wrong = []
    for (judge, _, task_id), own in sorted(lines.items()):
        due = [line for line in own if not line["error"]]
        if due:
            due = [min(due, key=lambda line: (-(0 if line["run"] in imported else line["run"]), line["repetition"]))]
        counting = [line for line in own if line["counts"]]
        if counting != (due or own):
            says = (
                f"of {judge} on {task_id} {_spell_out(counting)} counts, and by the rule {_spell_out(due or own)} does"
            )
            wrong.append((task_id, says))
    return wrong


def _spell_out(lines: Iterable[Document]) -> str:
    return ", ".join(f"run {line['run']} repetition {line['repetition']}" for line in lines)[:100] or "nothing"
