"""Rehearse a year of operation in an hour: `python -m bench.rehearsal [FAULT ...]`.

Starts everything that docker-compose.yml starts (see `bench.topology`), with two web servers, workers and judge
workers. Scripted people label over HTTP with think time, a maintainer uploads packages, and one thing after another
breaks. For each fault it prints a line of JSON, and at the end a table: requests, failures, times of desk and submit,
labels that were acknowledged and are not stored, and the time until everything works again without a person. Exceeded
limits are named, and the exit code is 1: a request longer than 10 s, /healthz longer than 1 s, a lost label, no
recovery within 60 s and the longest think time; in the faults `none`, `new key` and `upgrade` also any failed request,
and in `none` a 95th percentile of desk or submit over 500 ms.

The upgrade starts from the code in `--from FOLDER`, for example a `git worktree` of the previous release. A full disk
needs root: the database gets its own small tmpfs.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import random
import re
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import django
import httpx2

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django.setup()
from django.conf import settings  # noqa: E402 - models can be imported only now

from annotation.tests import testing  # noqa: E402
from bench import topology  # noqa: E402
from bench.desk import percentile  # noqa: E402
from config.tests.people_by_http import label  # noqa: E402
from config.tests.waiting import wait_until  # noqa: E402

UNFINISHED = """SELECT count(*) FROM annotation_upload
    WHERE finished_at IS NULL AND created_at < now() - interval '20 seconds'"""
STORED = """SELECT a.trajectory_id, p.username FROM annotation_label l
    JOIN annotation_assignment a ON a.id = l.assignment_id JOIN annotation_person p ON p.id = a.annotator_id"""
STEPS = 3
UP = 200, 202, 302
KINDS = "desk", "picture", "submit", "upload"
LONGEST_REQUEST, LONGEST_PROBE, PERCENTILE = 10.0, 1.0, 0.5  # seconds
UNDO = 60.0  # seconds in which a worker has submitted what was acknowledged and can no longer be undone
RECOVERY = 60.0  # seconds after the end of a fault
SMOOTH = ("none", "new key", "upgrade")  # nobody notices them
LIMITS = httpx2.Limits(keepalive_expiry=1)  # seconds; gunicorn closes connections after two


class Site:
    """The instance under test, with its measurements; they are cleared before each fault."""

    def __init__(self, running: topology.Topology, think: float) -> None:
        self.address, self.submission, self.token = running.address, running.submission, running.token
        self.think = think
        self.acknowledged: set[tuple[int, str]] = set()
        self.ended = threading.Event()
        self.clear()

    def clear(self) -> None:
        self.times: dict[str, list[float]] = defaultdict(list)
        self.failed: Counter[str] = Counter()
        self.good_at: dict[str, float] = {}

    def ask(self, kind: str, client: httpx2.Client, method: str, path: str, **fields: Any) -> httpx2.Response | None:
        """Send a request and return the answer, or None. Redirects are not followed: a 302 acknowledges a form."""
        started, status, answer = time.monotonic(), 0, None
        with suppress(httpx2.HTTPError):
            answer = client.request(method, self.address + path, **fields)
            status = answer.status_code
        self.times[kind].append(time.monotonic() - started)
        if status in UP:
            self.good_at[kind] = time.monotonic()
        elif status == 0 or status >= 500:
            self.failed[f"{kind} {status or 'no answer'}"] += 1
        return answer


def annotate(site: Site, name: str, wait: float) -> None:
    """Sign in after ``wait`` seconds, and label until the end: next trajectory, its page, a screenshot, the label."""
    site.ended.wait(wait)
    with httpx2.Client(timeout=60, limits=LIMITS) as client:
        while not site.ended.is_set() and not _sign_in(site, client, name):
            site.ended.wait(3)
        while not site.ended.is_set():
            held = _post(site, client, "next", f"/work/{site.submission}/next")
            match = re.search(r"/trajectories/(\d+)", held.headers.get("Location", "")) if held else None
            if match is None:
                site.ended.wait(3)
                continue
            _label(site, client, name, int(match[1]))


def _label(site: Site, client: httpx2.Client, name: str, trajectory: int) -> None:
    here = f"/trajectories/{trajectory}"
    thinking = random.uniform(0.5, 1.5) * site.think  # noqa: S311
    while not site.ended.is_set():
        page = site.ask("desk", client, "GET", here)
        site.ask("picture", client, "GET", f"{here}/steps/{random.randrange(STEPS)}/display")  # noqa: S311
        site.ended.wait(thinking)
        thinking = 3  # once something failed, people try again soon
        if page is None or page.status_code != 200:
            continue
        fields = label(1, page.content, STEPS, "The steps show it.")
        sent = _post(site, client, "submit", f"{here}/submit", **fields)
        if sent is not None and sent.status_code == 302:
            site.acknowledged.add((trajectory, name))
            return
        if sent is not None and sent.status_code in (403, 404, 409):  # the label was stored, and its answer was lost
            return


def _sign_in(site: Site, client: httpx2.Client, name: str) -> bool:
    site.ask("sign-in", client, "GET", "/sign-in")
    sent = _post(site, client, "sign-in", "/sign-in", username=name, password=testing.PASSWORD)
    return sent is not None and sent.status_code == 302


def _post(site: Site, client: httpx2.Client, kind: str, path: str, **fields: Any) -> httpx2.Response | None:
    token = client.cookies.get("csrftoken", "")
    return site.ask(kind, client, "POST", path, data=fields, headers={"X-CSRFToken": token})


def upload(site: Site) -> None:
    """Upload a package every few seconds. It has no trajectory, so a worker rejects it soon."""
    with httpx2.Client(timeout=60, limits=LIMITS, headers={"Authorization": f"Bearer {site.token}"}) as client:
        while not site.ended.wait(3):
            form = {"benchmark": "shops", "agent": "Other"}
            site.ask("upload", client, "POST", "/api/v1/uploads", data=form, files={"file": ("p.zip", b"PK")})


def probe(site: Site) -> None:
    with httpx2.Client(timeout=60, limits=LIMITS) as client:
        while not site.ended.wait(0.25):
            site.ask("healthz", client, "GET", "/healthz")


def measure(
    site: Site, running: topology.Topology, name: str, begin: Callable[[], Any], seconds: float
) -> dict[str, Any]:
    """Measure a fault of ``seconds``, until labels, screenshots, uploads and jobs work again."""
    site.clear()
    end = begin()
    time.sleep(seconds)
    end()
    ended_at = time.monotonic()
    recovered = _seconds_until(lambda: all(site.good_at.get(kind, 0) > ended_at for kind in KINDS), ended_at, site)
    finished = _seconds_until(lambda: not running.instance.one(UNFINISHED), ended_at, site)
    acknowledged = set(site.acknowledged)
    with suppress(AssertionError):
        wait_until(lambda: acknowledged <= set(running.instance.rows(STORED)), "all labels are stored", UNDO)
    lost = len(acknowledged - set(running.instance.rows(STORED)))
    slowest = {kind: max(times) for kind, times in sorted(site.times.items())}
    high = {kind: percentile(site.times[kind], 0.95) for kind in ("desk", "submit") if site.times[kind]}
    exceeded = find_exceeded(name, slowest, high, dict(site.failed), lost, recovered, finished)
    return {
        "fault": name,
        "requests": sum(len(times) for times in site.times.values()),
        "failed": dict(sorted(site.failed.items())),
        "p95_s": {kind: round(took, 3) for kind, took in high.items()},
        "slowest_s": {kind: round(took, 1) for kind, took in slowest.items()},
        "labels_acknowledged": len(acknowledged),
        "acknowledged_and_not_stored": lost,
        "seconds_until_people_work": recovered and round(recovered, 1),
        "seconds_until_uploads_are_finished": finished and round(finished, 1),
        "result": "fail" if exceeded else "pass",
        "exceeded": exceeded,
    }


def _seconds_until(condition: Callable[[], bool], start: float, site: Site) -> float | None:
    """Return the seconds from ``start`` until the condition holds; None if it does not soon.

    People with long think time try again only after it, so that it is added to `RECOVERY`.
    """
    try:
        wait_until(condition, "recovery", max(start + RECOVERY + 1.5 * site.think - time.monotonic(), 1))
    except AssertionError:
        return None
    return time.monotonic() - start


def find_exceeded(
    name: str,
    slowest: Mapping[str, float],
    high: Mapping[str, float],
    failed: Mapping[str, int],
    lost: int,
    recovered: float | None,
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
    if name == "none":
        over = {kind: took for kind, took in sorted(high.items()) if took > PERCENTILE}
        found += [f"95% of {kind} took up to {took:.2f} s, at most {PERCENTILE:g} s" for kind, took in over.items()]
    if lost:
        found.append(f"{lost} acknowledged labels are not stored")
    if recovered is None:
        found.append(f"people could not work again within {RECOVERY:g} s")
    if finished is None:
        found.append(f"uploads were not finished within {RECOVERY:g} s")
    return found


def table(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    cells = [("fault", "requests", "failed", "desk p95", "submit p95", "lost", "recovery", "result")]
    for row in rows:
        desk, submit = (f"{1000 * row['p95_s'].get(kind, 0):.0f} ms" for kind in ("desk", "submit"))
        recovered = row["seconds_until_people_work"]
        recovery = "never" if recovered is None else f"{recovered} s"
        failed, lost = sum(row["failed"].values()), row["acknowledged_and_not_stored"]
        cells.append((row["fault"], row["requests"], failed, desk, submit, lost, recovery, row["result"]))
    return ["{:<22}{:>9}{:>8}{:>10}{:>12}{:>6}{:>10}  {}".format(*each) for each in cells]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.rehearsal", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("faults", nargs="*", help="all in order without it; an unknown name lists them")
    parser.add_argument("--people", type=int, default=20)
    parser.add_argument("--think", type=float, default=2.0, help="mean think time of a label in seconds")
    parser.add_argument("--ramp", type=float, default=10.0, help="seconds in which people sign in")
    parser.add_argument("--seconds", type=float, default=30.0, help="how long each fault lasts")
    parser.add_argument("--labels", type=int, help="labels that each person can give; enough without it")
    parser.add_argument("--from", dest="code", type=Path, default=settings.BASE_DIR, help="code before the upgrade")
    parser.add_argument("--folder", type=Path, help="an empty folder for data and logs, which are not deleted")
    options = parser.parse_args(arguments)
    logging.disable(logging.INFO)  # suppresses a line for each request
    with ExitStack() as stack:
        made = stack.enter_context(tempfile.TemporaryDirectory(prefix="webverdict-rehearsal-"))
        folder = options.folder or Path(made)
        folder.mkdir(parents=True, exist_ok=True)
        minutes = 2 + 1.5 * (len(options.faults) or 25)
        labels = options.labels or int(60 * minutes / (options.think + 0.3)) + 10
        trajectories = max(options.people * labels // 3, 3)
        disk = not options.faults or "full disk" in options.faults
        running = topology.start(stack, folder, options.code, options.people, trajectories, STEPS, disk)
        known = topology.faults(running)
        if unknown := set(options.faults) - set(known):
            parser.error(f"unknown fault {', '.join(sorted(unknown))}; known are: {', '.join(known)}")
        site = Site(running, options.think)
        gap = options.ramp / options.people
        jobs = [threading.Thread(target=annotate, args=(site, f"annotator{n}", n * gap)) for n in range(options.people)]
        jobs += [threading.Thread(target=each, args=(site,)) for each in (upload, probe)]
        for job in jobs:
            job.start()
        rows = []
        try:
            patience = 300 + options.ramp + 3 * options.think
            wait_until(lambda: len(site.acknowledged) >= options.people, "everybody is at work", patience)
            for name in options.faults or known:
                rows.append(measure(site, running, name, known[name], options.seconds))
                print(json.dumps(rows[-1]), flush=True)  # noqa: T201
        finally:
            site.ended.set()
            for job in jobs:
                job.join()
    print("\n".join(table(rows)))  # noqa: T201
    return int(any(row["exceeded"] for row in rows))


if __name__ == "__main__":
    sys.exit(main())
