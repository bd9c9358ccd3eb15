"""What judges said, changed by somebody with the signing key, who computes all figures again."""

from __future__ import annotations

from math import isfinite
from typing import Any

from evaluations.tests.forgeries.ground import forgery
from evaluations.tests.forging import Forged, Line
from evaluations.verifier.figures import recompute_comparison
from evaluations.verifier.numbers import Ends


def compared(forged: Forged) -> bytes:
    """Every trace covered: which judgments count, and the comparison of those that do."""
    _count_again(forged)
    computed = recompute_comparison(forged.bundle())["judges"]
    for row in [row for judge in computed for row in judge["rows"]]:
        row["intervals"] = {name: _within(ends) for name, ends in row["intervals"].items()}
    forged["reports/comparison"]["judges"][:] = computed
    return forged.covered()


def _count_again(forged: Forged) -> None:
    """Of a judge and a task the newest run with a judgment counts; imported ones and failures where there is none."""
    imported = {line["run"] for line in forged["judges/runs"] if line["state"] == "imported"}
    of_one: dict[tuple[str, str], list[Line]] = {}
    for line in forged["judges/judgments"]:
        of_one.setdefault((line["judge"], line["task_id"]), []).append(line)
    for lines in of_one.values():
        judged = [line for line in lines if not line["error"]]
        best = max(judged, key=lambda line: (line["run"] not in imported, line["run"]), default=None)
        for line in lines:
            line["counts"] = best is None or line is best


def _within(ends: Any) -> Any:
    """An interval in the middle of where it can be."""
    if not isinstance(ends, Ends):
        return ends
    spans = [[end for end in each if isfinite(end)] for each in (ends.low, ends.high)]
    return [sum(span) / len(span) for span in spans]


def finished(forged: Forged) -> Line:
    return next(line for line in forged["judges/runs"] if line["state"] == "finished")


def of_finished(forged: Forged, **wanted: Any) -> Line:
    """The first judgment of the finished run with these values that no later run has made again."""
    wanted |= {"run": finished(forged)["run"], "counts": True}
    return next(line for line in forged["judges/judgments"] if wanted.items() <= line.items())


@forgery("judgments", compared)
def a_judgment_of_a_run_is_turned(forged: Forged) -> None:
    of_finished(forged, verdict=0)["verdict"] = 1


@forgery("judgments", compared)
def a_score_of_a_judge_is_raised(forged: Forged) -> None:
    of_finished(forged, verdict=1)["score"] += 1.0


@forgery("judgments", compared)
def a_judgment_of_a_run_is_left_out(forged: Forged) -> None:
    forged["judges/judgments"].remove(of_finished(forged, verdict=0))


@forgery("judgments", compared)
def a_failure_of_a_judge_is_left_out(forged: Forged) -> None:
    forged["judges/judgments"].remove(of_finished(forged, error=True))


@forgery("judgments", compared)
def a_failure_of_a_judge_becomes_a_judgment(forged: Forged) -> None:
    made = of_finished(forged, verdict=0)
    of_finished(forged, error=True).update(error=False, verdict=0, score=made["score"], judged_at=made["judged_at"])


@forgery("judgments", compared)
def a_judgment_is_added_to_a_run(forged: Forged) -> None:
    lines = forged["judges/judgments"]
    made = of_finished(forged, verdict=0)
    lines.insert(lines.index(made) + 1, made | {"repetition": 2, "verdict": 1})


@forgery("judgments", compared)
def a_run_of_a_judge_is_left_out(forged: Forged) -> None:
    run = finished(forged)
    forged["judges/runs"].remove(run)
    forged["judges/judgments"][:] = [line for line in forged["judges/judgments"] if line["run"] != run["run"]]


@forgery("judgments", compared)
def a_run_is_passed_off_as_imported(forged: Forged) -> None:
    of_finished(forged, verdict=0)["verdict"] = 1
    finished(forged).update(event_run=None, state="imported", repeat=None, started_at=None, finished_at=None)


@forgery("judgments", compared)
def a_run_is_said_not_to_have_finished(forged: Forged) -> None:
    of_finished(forged, verdict=0)["verdict"] = 1
    finished(forged).update(state="stopped", finished_at=None)


@forgery("judgments", compared)
def the_end_of_a_run_is_taken_out_of_the_chain(forged: Forged) -> None:
    """The run was tried again, and nobody tells that it finished then."""
    forged.drop_event(forged.events_of("judge_run_finished")[-1])


@forgery("judgments", compared)
def a_run_number_is_given_twice(forged: Forged) -> None:
    runs = forged["judges/runs"]
    runs.append(runs[-1] | {"run": runs[0]["run"]})


@forgery("judgments", compared)
def a_judgment_is_of_a_run_that_there_is_not(forged: Forged) -> None:
    of_finished(forged, verdict=0)["run"] = 99


@forgery("judgments", compared)
def an_older_run_is_passed_off_as_the_newest(forged: Forged) -> None:
    numbers = {line["run"]: line["run"] for line in forged["judges/runs"]}
    first, second = (line["run"] for line in forged["judges/runs"] if line["event_run"] is not None)
    numbers |= {first: second, second: first}
    for name in ("judges/runs", "judges/judgments"):
        for line in forged[name]:
            line["run"] = numbers[line["run"]]
        forged[name].sort(key=lambda line: line["run"])


@forgery("judgments", compared)
def an_imported_run_with_times_is_made_up(forged: Forged) -> None:
    """To count more than the runs of the chain, as long as somebody takes it for one of them."""
    runs, judgments = forged["judges/runs"], forged["judges/judgments"]
    runs.append(runs[0] | {"run": runs[-1]["run"] + 1, "event_run": None, "state": "imported", "repeat": None})
    made = of_finished(forged, verdict=0)
    judgments.append(made | {"run": runs[-1]["run"], "verdict": 1})


def of_cancelled(forged: Forged) -> Line:
    run = next(line["run"] for line in forged["judges/runs"] if line["state"] == "cancelled")
    return next(line for line in forged["judges/judgments"] if line["run"] == run and line["verdict"] is not None)


@forgery("judgments", compared)
def a_judgment_of_a_cancelled_run_is_turned(forged: Forged) -> None:
    line = of_cancelled(forged)
    line["verdict"] = 1 - line["verdict"]


@forgery("judgments", compared)
def a_judgment_of_a_cancelled_run_is_turned_and_all_digests_are_taken_out(forged: Forged) -> None:
    """As if the chain were older than digests: its events still say how many there are of each verdict."""
    line = of_cancelled(forged)
    line["verdict"] = 1 - line["verdict"]
    for event in forged["events"]:
        if event["kind"].startswith("judge_run_"):
            event["payload"].pop("judgments", None)


@forgery("judgments", compared)
def judgments_are_made_up_in_a_cancelled_run(forged: Forged) -> None:
    made, at = of_finished(forged, verdict=0), of_cancelled(forged)
    forged["judges/judgments"].append(at | {"task_id": made["task_id"], "verdict": 1})


@forgery("judgments")
def a_run_names_another_model_than_its_judge_has(forged: Forged) -> None:
    finished(forged)["model"] = "gpt-5"


@forgery("judgments")
def a_run_left_out_is_called_a_test_where_it_started(forged: Forged) -> None:
    run = finished(forged)
    forged.event("judge_run_started", run=run["event_run"])["payload"]["test"] = True
    a_run_of_a_judge_is_left_out(forged)


@forgery("judgments", compared)
def an_imported_judgment_is_there_twice(forged: Forged) -> None:
    imported = next(line["run"] for line in forged["judges/runs"] if line["state"] == "imported")
    line = next(line for line in forged["judges/judgments"] if line["run"] == imported)
    forged["judges/judgments"].append(line | {"counts": False})


@forgery("judgments")
def the_end_of_a_run_counts_other_verdicts(forged: Forged) -> None:
    payload = forged.events_of("judge_run_finished")[-1]["payload"]
    payload["verdicts"] = {"1": sum(payload["verdicts"].values())}
