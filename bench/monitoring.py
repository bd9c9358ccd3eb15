"""What monitoring shows of a fault while it lasts: `/metrics`, `doctor`, *Operation* and the logs."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2

from bench.topology import GIVEN, METRICS_TOKEN, Topology

INTERVAL = 3.0  # seconds between two readings of the metrics
SLOW_INTERVAL = 15.0  # the usual one; while nothing is broken, only the cost matters
EXAMINED = 0.7  # part of a fault after which an operator looks: a worker counts as dead after 20 s without a heartbeat
SHORTEST = 20.0  # seconds; a shorter fault has ended before `doctor` has started
FAILED = re.compile(r'^webverdict_up\{service="([^"]+)"\} 0', re.MULTILINE)
BAD_ANSWERS = re.compile(r'^webverdict_requests_total\{[^}]*status="5\d\d"\} (\S+)', re.MULTILINE)
FAILED_JOBS = re.compile(r"^webverdict_job_failures_total\{[^}]*\} (\S+)", re.MULTILINE)
BAD_SERVICE = re.compile(r'<td>([^<]+)</td>\s*<td><span class="chip bad">')
SERIOUS = re.compile(rb"\b(WARNING|ERROR|CRITICAL|Traceback)\b")

Watched = tuple[dict[str, Any], threading.Event]


@contextmanager
def watch(running: Topology, operator: httpx2.Client, seconds: float, every: float = INTERVAL) -> Iterator[Watched]:
    """Read the metrics every few seconds. Yield what is known at the end of the block, and what to set after the fault.

    ``metrics`` are the seconds until each sign of the fault was there, ``doctor`` and ``operation`` the names of what
    failed, and ``logs`` the numbers of warnings, errors and tracebacks by process.
    """
    shown: dict[str, Any] = {"metrics": {}, "doctor": [], "operation": [], "logs": {}}
    logs = {name: running.instance.log(name) for name in running.services if name not in GIVEN}
    before = {name: log.stat().st_size for name, log in logs.items()}
    usual = {port: _scrape(port) for port in (running.ports[name] for name in ("web-1", "web-2", "uploads"))}
    started, ended = time.monotonic(), threading.Event()
    with ThreadPoolExecutor(5) as pool:
        metrics = shown["metrics"]
        work = [pool.submit(_read_metrics, port, every, started, ended, metrics, usual[port]) for port in usual]
        if seconds >= SHORTEST:
            work.append(pool.submit(_ask_doctor, running, seconds * EXAMINED, ended, shown["doctor"]))
            work.append(pool.submit(_look, running.address, operator, seconds * EXAMINED, ended, shown["operation"]))
        try:
            yield shown, ended
        finally:
            ended.set()
            for each in work:
                each.result()
    counted = {name: len(SERIOUS.findall(_read_from(log, before[name]))) for name, log in logs.items()}
    shown["logs"] = {name: number for name, number in counted.items() if number}


def _read_from(log: Path, start: int) -> bytes:
    with log.open("rb") as stream:
        stream.seek(start)
        return stream.read()


def _scrape(port: int) -> tuple[set[str], float, float]:
    """Read the metrics of a web server as Prometheus does; return what fails, failed requests and failed jobs."""
    try:
        with httpx2.Client(timeout=12, headers={"Authorization": f"Bearer {METRICS_TOKEN}"}) as client:
            text = client.get(f"http://127.0.0.1:{port}/metrics").text
    except httpx2.HTTPError:
        return {"web server"}, 0.0, 0.0
    failed = set(FAILED.findall(text)) | ({"incomplete"} if "webverdict_complete 0" in text else set())
    return failed, _sum(BAD_ANSWERS, text), _sum(FAILED_JOBS, text)


def _read_metrics(
    port: int, every: float, started: float, ended: threading.Event, shown: dict[str, float], usual: Any
) -> None:
    while not ended.is_set():
        signs, requests, jobs = _scrape(port)
        signs |= {"requests failed"} if requests > usual[1] else set()
        signs |= {"jobs failed"} if jobs > usual[2] else set()
        for sign in signs - usual[0]:
            shown.setdefault(sign, round(time.monotonic() - started, 1))
        ended.wait(every)


def _sum(pattern: re.Pattern[str], text: str) -> float:
    return sum(map(float, pattern.findall(text)))


def _ask_doctor(running: Topology, wait: float, ended: threading.Event, shown: list[str]) -> None:
    """Run `doctor` where the first web server runs."""
    if ended.wait(wait):
        return
    web = running.services["web-1"]
    done = subprocess.run(  # noqa: S603 - our own command
        [sys.executable, "manage.py", "doctor", "--json", "--url", running.address],
        cwd=web.folder,
        env=web.environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    shown += [check["name"] for check in json.loads(done.stdout)["checks"] if check["result"] == "fault"]


def _look(address: str, operator: httpx2.Client, wait: float, ended: threading.Event, shown: list[str]) -> None:
    """Open the page *Operation*."""
    if ended.wait(wait):
        return
    try:
        answer = operator.get(f"{address}/operator")
    except httpx2.HTTPError:
        shown.append("no answer")
        return
    shown += BAD_SERVICE.findall(answer.text) if answer.status_code == 200 else [f"answer {answer.status_code}"]
