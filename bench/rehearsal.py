"""Rehearse a year of operation in an hour: `python -m bench.rehearsal [FAULT ...]`.

Starts what docker-compose.yml starts (see `bench.topology`), with two web servers, workers and judge workers. Scripted
people label over HTTP with think time, a maintainer imports packages, a judge run goes on, and one thing after another
breaks. For each fault it prints a line of JSON, and at the end two tables: what people noticed, what was lost, the time
until people and judges work again without a person, when monitoring showed the fault; and the cost of a label.

Exceeded limits are named, and the exit code is 1: a request longer than 10 s, /healthz longer than 1 s, a lost label or
upload, no recovery within 60 s and the longest think time, a fault of 30 s that neither `/metrics` nor `doctor` showed
within 30 s; in `SMOOTH` also any failed request, and in `QUICK` a 95th percentile of desk or submit over 500 ms. An
upload whose maintainer is asked to repeat it is not lost. At the end, each row of the judge run must have one judgment,
no call may be paid twice that was not on its way, and no event may be much older than one before it, which an auditor
would reject.

The upgrade starts from the code in `--from FOLDER`, for example a `git worktree` of the previous release. A full disk
needs root: database and data folder get a small tmpfs each. Clock skew needs libfaketime.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any

import django
import httpx2

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django.setup()
from django.conf import settings  # noqa: E402 - models can be imported only now

from bench import monitoring, topology  # noqa: E402
from bench.desk import percentile  # noqa: E402
from bench.people import STEPS, Site, annotate, open_as_operator, probe, sign_in_once, upload  # noqa: E402
from bench.processes import Used, used_by  # noqa: E402
from config.processes import Stopped, stop_on_signals  # noqa: E402
from config.tests.waiting import wait_until  # noqa: E402
from evaluations.verifier.rules import TOLERANCE  # noqa: E402

Begin = Callable[[], Callable[[], Any]]
UPLOADS = "SELECT id::text FROM annotation_upload"
UNFINISHED = f"{UPLOADS} WHERE finished_at IS NULL"
REFUSED = f"{UPLOADS} WHERE finished_at IS NOT NULL AND submission_id IS NULL"
STORED = """SELECT a.trajectory_id, p.username FROM annotation_label l
    JOIN annotation_assignment a ON a.id = l.assignment_id JOIN annotation_person p ON p.id = a.annotator_id"""
FAILED = """SELECT left(regexp_replace(error, '[0-9a-f]{12,}', '...', 'g'), 80), count(*) FROM judges_runitem
    WHERE run_id = ? AND failed_at IS NOT NULL GROUP BY 1 ORDER BY 2 DESC"""
BACKWARDS = """SELECT count(*) FROM (SELECT at, max(at) OVER (PARTITION BY submission_id ORDER BY sequence) AS newest
    FROM annotation_event) AS events WHERE newest - at > make_interval(secs => ?)"""
KINDS = "desk", "picture", "submit", "upload"
LONGEST_REQUEST, LONGEST_PROBE, PERCENTILE = 10.0, 1.0, 0.5  # seconds
UNDO = 60.0  # seconds in which a worker has submitted what was acknowledged and can no longer be undone
RECOVERY = 60.0  # seconds after the end of a fault
SHOWN = 30.0  # seconds after the beginning of a fault
RUN_LIMIT = 300.0  # seconds for the rest of the judge run at the end
HEALTHY = (
    "none",
    "people alone",
    "sign-in storm",
    "new key",
    "upgrade",
)  # there is nothing that monitoring should show
SMOOTH = (*HEALTHY, "clock skew")  # nobody notices them
LATENCY = 10.0  # seconds of a call of a model, at most
QUICK = ("people alone", "none", "sign-in storm")


def measure(
    site: Site, running: topology.Topology, operator: httpx2.Client, name: str, begin: Begin, seconds: float
) -> dict[str, Any]:
    """Measure a fault of ``seconds``, until labels, screenshots, uploads, judging and jobs work again."""
    site.clear()
    labels, used = len(site.acknowledged), measure_use(running)
    every = monitoring.SLOW_INTERVAL if name in HEALTHY else monitoring.INTERVAL
    with monitoring.watch(running, operator, seconds, every) as (shown, ended):
        end = begin()
        time.sleep(seconds)
        end()
        ended.set()
        ended_at, calls, uploads = time.monotonic(), find_last_call(running), {(each,) for each in site.uploads}
        labels, now = len(site.acknowledged) - labels, measure_use(running)
        conditions = {
            "recovered": lambda: all(site.good_at.get(kind, 0) > ended_at for kind in KINDS),
            "judged": lambda: running.run.finished or find_last_call(running) > calls,
            "finished": lambda: not uploads & set(running.instance.rows(UNFINISHED)),
        }
        again = measure_recovery(conditions, ended_at, 1.5 * site.think)
    refused = uploads & set(running.instance.rows(REFUSED))
    lost = find_lost(site, running, uploads)
    slowest = {kind: max(times) for kind, times in sorted(site.times.items())}
    high = {kind: percentile(site.times[kind], 0.95) for kind in ("desk", "submit") if site.times[kind]}
    failed = dict(sorted(site.failed.items()))
    limited = find_exceeded(name, slowest=slowest, high=high, failed=failed, lost=lost, **again)
    hidden = is_hidden(name, shown, seconds)
    if again["recovered"] is None and len(site.acknowledged) >= 3 * running.run.items:
        limited.append("no trajectory was left to label; use a larger number in --labels")
    exceeded = limited + ([f"monitoring did not show it within {SHOWN:g} s"] if hidden else [])
    return {
        "fault": name,
        "people": len(site.people),
        "think_s": site.think,
        "requests": sum(len(times) for times in site.times.values()),
        "failed": failed,
        "p95_s": {kind: round(took, 3) for kind, took in high.items()},
        "slowest_s": {kind: round(took, 1) for kind, took in slowest.items()},
        "labels": labels,
        "web_cpu_s_per_label": compute_cost(used, now, labels),
        "memory_mb": {service: round(use.memory) for service, use in now.items()},
        "labels_acknowledged": len(site.acknowledged),
        "acknowledged_and_not_stored": lost,
        "uploads_to_repeat": len(refused),
        "seconds_until_people_work": again["recovered"],
        "seconds_until_judges_work": again["judged"],
        "seconds_until_uploads_are_finished": again["finished"],
        "shown": shown,
        "result": "fail" if exceeded else "pass",
        "exceeded": exceeded,
    }


def measure_use(running: topology.Topology) -> dict[str, Used]:
    """Return CPU seconds and memory of each process group of ours, and of the proxy."""
    return {
        name: used_by(service.group)
        for name, service in running.services.items()
        if name not in ("moto", "store", "endpoint")
    }


def compute_cost(before: Mapping[str, Used], after: Mapping[str, Used], labels: int) -> float | None:
    """Return the CPU seconds of the web servers for each label; None without labels or if one was started meanwhile."""
    spent = [after[name].cpu - before[name].cpu for name in ("web-1", "web-2", "uploads")]
    return round(sum(spent) / labels, 3) if labels and min(spent) >= 0 else None


def find_last_call(running: topology.Topology) -> int:
    """Return the number of the last call of the judge run that has a reply."""
    return int(running.instance.one("SELECT coalesce(max(id), 0) FROM judges_modelcall WHERE reply IS NOT NULL"))


def find_lost(site: Site, running: topology.Topology, uploads: set[tuple[str]]) -> dict[str, int]:
    """Return how many acknowledged labels and uploads are not stored; each counts for one fault only.

    People label on, so only those labels are waited for that are acknowledged now.
    """
    labels = set(site.acknowledged)
    with suppress(AssertionError):
        wait_until(lambda: labels <= set(running.instance.rows(STORED)), "all labels are stored", UNDO)
    lost = labels - set(running.instance.rows(STORED))
    site.acknowledged -= lost
    site.uploads -= {upload for (upload,) in uploads}
    return {"labels": len(lost), "uploads": len(uploads - set(running.instance.rows(UPLOADS)))}


def is_hidden(name: str, shown: Mapping[str, Any], seconds: float) -> bool:
    """Return whether monitoring did not show a fault that lasted long enough for it to be seen."""
    if seconds < SHOWN or name in HEALTHY or name.startswith("kill "):
        return False
    return not (shown["doctor"] or any(after <= SHOWN for after in shown["metrics"].values()))


def finish_run(running: topology.Topology, faults: int) -> dict[str, Any]:
    """Wait for the end of the judge run, with an endpoint that answers at once; each row must be judged once.

    A fault may lose the calls on their way, which are then paid twice: `CONCURRENCY` of each of two workers.
    """
    with suppress(OSError):
        running.endpoint.says(latency=0)
    with suppress(AssertionError):
        wait_until(lambda: running.run.finished, "the judge run is finished", RUN_LIMIT)
    run, wrong = running.run, []
    twice = sum(row[2:] != (1, 1) for row in run.judgments)
    wrong += [f"{count} rows failed: {error}" for error, count in running.instance.rows(FAILED, run.run)]
    calls = running.endpoint.counts()["calls"]
    if not run.finished:
        wrong.append(f"the judge run did not finish within {RUN_LIMIT:g} s")
    if twice:
        wrong.append(f"{twice} rows do not have exactly one judgment with a verdict")
    if (again := calls - run.answered) > (most := 2 * topology.CONCURRENCY * faults):
        wrong.append(f"{again} calls were paid again, at most {most} were on their way")
    if backwards := running.instance.one(BACKWARDS, TOLERANCE):
        wrong.append(f"{backwards} events are more than {TOLERANCE:g} s older than one before them")
    return {
        "judge run": {"rows": run.items, "not_judged_once": twice, "calls": calls, "paid_again": again},
        "events_older_than_the_one_before": backwards,
        "result": "fail" if wrong else "pass",
        "exceeded": wrong,
    }


def measure_recovery(
    conditions: Mapping[str, Callable[[], bool]], start: float, patience: float
) -> dict[str, float | None]:
    """Return the seconds from ``start`` until each condition holds; None if it does not within `RECOVERY`.

    People with long think time try again only after it: ``patience`` is added.
    """
    found: dict[str, float | None] = dict.fromkeys(conditions)

    def all_hold() -> bool:
        for name, condition in conditions.items():
            if found[name] is None and condition():
                found[name] = round(time.monotonic() - start, 1)
        return None not in found.values()

    with suppress(AssertionError):
        wait_until(all_hold, "recovery", max(start + RECOVERY + patience - time.monotonic(), 1))
    return found


def find_exceeded(
    name: str,
    *,
    slowest: Mapping[str, float],
    high: Mapping[str, float],
    failed: Mapping[str, int],
    lost: Mapping[str, int],
    recovered: float | None,
    judged: float | None,
    finished: float | None,
) -> list[str]:
    """Return what exceeds the limits, in words; times in seconds by the kind of the request."""
    found = []
    for kind, took in sorted(slowest.items()):
        limit = LONGEST_PROBE if kind == "healthz" else LONGEST_REQUEST
        if took > limit:
            found.append(f"{kind} took {took:.2f} s, at most {limit:g} s are allowed")
    if name in SMOOTH:
        found += [f"failed requests: {count} times {what}" for what, count in sorted(failed.items())]
    if name in QUICK:
        over = {kind: took for kind, took in sorted(high.items()) if took > PERCENTILE}
        found += [f"95% of {kind} took up to {took:.2f} s, at most {PERCENTILE:g} s" for kind, took in over.items()]
    found += [f"acknowledged and lost: {count} {what}" for what, count in lost.items() if count]
    for after, what in ((recovered, "people could not work"), (judged, "no judge worked")):
        if after is None:
            found.append(f"{what} again within {RECOVERY:g} s")
    if finished is None:
        found.append(f"uploads were not finished within {RECOVERY:g} s")
    return found


def storm(site: Site, seconds: float) -> Callable[[], None]:
    """Let everybody sign in once more within ``seconds``, beside the people who label."""
    gap = seconds / len(site.people)
    jobs = [threading.Thread(target=sign_in_once, args=(site, name, n * gap)) for n, name in enumerate(site.people)]
    for job in jobs:
        job.start()

    def wait() -> None:
        for job in jobs:
            job.join()

    return wait


def leave_alone(site: Site, running: topology.Topology) -> Callable[[], object]:
    """Stop judges and imports, so that only people use the machine."""
    site.importing.clear()
    resume = running.stop("judge-worker-1", "judge-worker-2")

    def go_on() -> None:
        site.importing.set()
        resume()

    return go_on


def table(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return what people noticed of each fault: times of recovery in seconds, and when monitoring showed it."""
    cells = [("fault", "requests", "failed", "desk p95", "submit p95", "lost", "people", "judges", "shown", "result")]
    for row in rows:
        desk, submit = (f"{1000 * row['p95_s'].get(kind, 0):.0f} ms" for kind in ("desk", "submit"))
        again = [row["seconds_until_people_work"], row["seconds_until_judges_work"]]
        people, judges = ("never" if after is None else f"{after} s" for after in again)
        failed, lost = sum(row["failed"].values()), sum(row["acknowledged_and_not_stored"].values())
        shown = min(row["shown"]["metrics"].values(), default=None)
        seen = f"{shown} s" if shown is not None else "doctor" if row["shown"]["doctor"] else "-"
        cells.append((row["fault"], row["requests"], failed, desk, submit, lost, people, judges, seen, row["result"]))
    return ["{:<30}{:>9}{:>8}{:>10}{:>12}{:>6}{:>9}{:>9}{:>9}  {}".format(*each) for each in cells]


def load_table(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the cost of labels without a fault, and the most memory of each service, in MB."""
    lines = [
        f"{row['people']} people, think time {row['think_s']:g} s, {row['fault']}: {row['labels']} labels, "
        f"{row['web_cpu_s_per_label']} CPU s of the web servers for each"
        for row in rows
        if row["fault"] in QUICK
    ]
    names = rows[0]["memory_mb"] if rows else ()
    most = {name: max(row["memory_mb"].get(name, 0) for row in rows) for name in names}
    return [*lines, "MB: " + ", ".join(f"{name} {memory}" for name, memory in most.items())]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.rehearsal", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("faults", nargs="*", help="all in order without it; an unknown name lists them")
    parser.add_argument("--people", type=int, default=20)
    parser.add_argument("--think", type=float, default=2.0, help="mean think time of a label in seconds")
    parser.add_argument("--ramp", type=float, default=10.0, help="seconds in which people sign in")
    parser.add_argument("--seconds", type=float, default=30.0, help="how long each fault lasts; others a third of it")
    parser.add_argument("--storm", type=float, default=90.0, help="seconds in which all sign in at once more")
    parser.add_argument("--labels", type=int, help="labels that each person can give; enough without it")
    parser.add_argument("--from", dest="code", type=Path, default=settings.BASE_DIR, help="code before the upgrade")
    parser.add_argument("--folder", type=Path, help="an empty folder for data and logs, which are not deleted")
    options = parser.parse_args(arguments)
    logging.disable(logging.INFO)  # suppresses a line for each request
    stop_on_signals()
    try:
        with ExitStack() as stack:
            made = stack.enter_context(tempfile.TemporaryDirectory(prefix="webverdict-rehearsal-"))
            rows = rehearse(stack, parser, options, options.folder or Path(made))
    except Stopped:
        return 1
    print("\n".join([*table(rows[:-1]), *load_table(rows[:-1])]))  # noqa: T201
    return int(any(row["exceeded"] for row in rows))


def rehearse(
    stack: ExitStack, parser: argparse.ArgumentParser, options: argparse.Namespace, folder: Path
) -> list[dict[str, Any]]:
    """Return what was measured of each fault, and of the judge run at last."""
    folder.mkdir(parents=True, exist_ok=True)
    work = 60 + options.think + options.ramp + (len(options.faults) or 35) * (options.seconds + 15)  # seconds
    labels = options.labels or int(work / (options.think + 0.3)) + 10
    trajectories = max(options.people * labels // 3, 3)
    latency = min(2 * topology.CONCURRENCY * work / trajectories, LATENCY)
    disks = os.geteuid() == 0 and (not options.faults or any("disk" in name for name in options.faults))
    running = topology.start(stack, folder, options.code, options.people, trajectories, STEPS, latency, disks)
    site = Site(running, [f"annotator{number}" for number in range(options.people)], options.think)
    known = topology.faults(running) | {
        "people alone": partial(leave_alone, site, running),
        "sign-in storm": partial(storm, site, options.storm),
    }
    if unknown := set(options.faults) - set(known):
        parser.error(f"unknown fault {', '.join(sorted(unknown))}; known are: {', '.join(known)}")
    operator = open_as_operator(site)
    stack.callback(operator.close)
    gap = options.ramp / options.people
    jobs = [threading.Thread(target=annotate, args=(site, name, n * gap)) for n, name in enumerate(site.people)]
    jobs += [threading.Thread(target=each, args=(site,)) for each in (upload, probe)]
    for job in jobs:
        job.start()
    rows: list[dict[str, Any]] = []
    try:
        patience = 300 + options.ramp + 3 * options.think
        wait_until(lambda: len(site.acknowledged) >= options.people, "everybody is at work", patience)
        for name in options.faults or known:
            seconds = options.seconds / (3 if name.startswith("kill ") else 1)
            rows.append(measure(site, running, operator, name, known[name], seconds))
            print(json.dumps(rows[-1]), flush=True)  # noqa: T201
        rows.append(finish_run(running, len(rows)))
        print(json.dumps(rows[-1]), flush=True)  # noqa: T201
    finally:
        site.ended.set()
        for job in jobs:
            job.join()
    return rows


if __name__ == "__main__":
    sys.exit(main())
