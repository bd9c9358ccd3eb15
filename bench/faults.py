"""Measure the effect of faults on people: `python -m bench.faults [redis] [postgres] [store] [disk]`.

It starts a PostgreSQL cluster, a Redis, an S3 store (moto), gunicorn as in the Dockerfile, both workers and the
scheduler, all on free ports. Scripted people label over HTTP and a maintainer uploads packages, while the services fail
one by one for some time. For each fault it prints the requests, the slowest request and the slowest /healthz, the
labels that the server acknowledged and that the database has, and the time until everything worked again. It also
prints the limits that were exceeded: no request longer than 10 s, /healthz within 1 s, no acknowledged label lost,
recovery without a restart. The exit code is 1 if one is exceeded. Only PostgreSQL is restarted, because its fault is a
stop. A full disk needs root: the database gets its own small tmpfs.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import django
import httpx2

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django.setup()
from annotation.tests import testing  # noqa: E402 - models can be imported only now
from config.tests.instance import Instance  # noqa: E402
from config.tests.people_by_http import label  # noqa: E402
from config.tests.servers import OwnPostgres, free_port, own_postgres, own_redis  # noqa: E402
from config.tests.waiting import wait_until  # noqa: E402

UNFINISHED = """SELECT count(*) FROM annotation_upload
    WHERE finished_at IS NULL AND created_at < now() - interval '20 seconds'"""
STORED = """SELECT a.trajectory_id, p.username FROM annotation_label l
    JOIN annotation_assignment a ON a.id = l.assignment_id JOIN annotation_person p ON p.id = a.annotator_id"""
BASE_DIR = Path(__file__).resolve().parent.parent
STEPS = 3
UP = 200, 202, 302
KINDS = "page", "picture", "label", "upload"
LONGEST_REQUEST, LONGEST_PROBE = 10.0, 1.0  # seconds
RECOVERY = 300.0  # seconds after the end of a fault
LIMITS = httpx2.Limits(keepalive_expiry=1)  # seconds; gunicorn closes connections after two
DISK = "120m"  # size of the file system of the tables
TRAJECTORIES = 40  # for each person: enough labels for four faults with the longest recovery
SEED = """
import django, sys
django.setup()
from pathlib import Path
from django.core.management import call_command
from annotation import workflow
from annotation.tests import testing
from annotation.models import ApiToken, Membership
call_command("migrate", verbosity=0)
call_command("collectstatic", interactive=False, verbosity=0)
submission = testing.submission(Path(sys.argv[1]), trajectories=int(sys.argv[2]), steps=int(sys.argv[3]))
mira = testing.cast(submission)["mira"]
for number in range(int(sys.argv[4])):
    person = testing.person(f"annotator{number}")
    workflow.add_member(mira, submission, person, Membership.Role.ANNOTATOR)
print(submission.pk, ApiToken.issue(mira, "bench", scope="write")[1])
"""


class Site:
    """The instance under test, with its measurements; they are cleared before each fault."""

    def __init__(self, address: str, submission: int, token: str) -> None:
        self.address, self.submission, self.token = address, submission, token
        self.acknowledged: set[tuple[int, str]] = set()
        self.ended = threading.Event()
        self.clear()

    def clear(self) -> None:
        self.slowest: dict[str, float] = {}
        self.statuses: Counter[int] = Counter()
        self.good_at: dict[str, float] = {}

    def ask(self, kind: str, client: httpx2.Client, method: str, path: str, **fields: Any) -> httpx2.Response | None:
        """Send a request and return the answer, or None. Redirects are not followed: a 302 acknowledges a form."""
        started, status, answer = time.monotonic(), 0, None
        with suppress(httpx2.HTTPError):
            answer = client.request(method, self.address + path, **fields)
            status = answer.status_code
        took = time.monotonic() - started
        self.slowest[kind] = max(took, self.slowest.get(kind, 0.0))
        self.statuses[status] += 1
        if status in UP:
            self.good_at[kind] = time.monotonic()
        return answer


def annotate(site: Site, name: str) -> None:
    """Sign in, and label until the end: next trajectory, its page, a screenshot, the label."""
    with httpx2.Client(timeout=60, limits=LIMITS) as client:
        while not site.ended.is_set() and not _sign_in(site, client, name):
            pause(site)
        while not site.ended.is_set():
            held = _post(site, client, "next", f"/work/{site.submission}/next")
            match = re.search(r"/trajectories/(\d+)", held.headers.get("Location", "")) if held else None
            if match is None:
                pause(site)
                continue
            _label(site, client, name, int(match[1]))


def _label(site: Site, client: httpx2.Client, name: str, trajectory: int) -> None:
    here = f"/trajectories/{trajectory}"
    while not site.ended.is_set():
        pause(site)
        page = site.ask("page", client, "GET", here)
        site.ask("picture", client, "GET", f"{here}/steps/{random.randrange(STEPS)}/display")  # noqa: S311
        if page is None or page.status_code != 200:
            continue
        pause(site)
        fields = label(1, page.content, STEPS, "The steps show it.")
        sent = _post(site, client, "label", f"{here}/submit", **fields)
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


def pause(site: Site) -> None:
    site.ended.wait(random.uniform(1, 3))  # noqa: S311


def start(
    stack: ExitStack, folder: Path, people: int, disk: bool
) -> tuple[Site, Instance, dict[str, Callable[[], Any]]]:
    """Start the services of docker-compose.yml except the proxy. Each function starts a fault and returns its end."""
    postgres, redis = stack.enter_context(own_postgres()), stack.enter_context(own_redis())
    tables = small_disk(stack, postgres) if disk else folder
    store, port = free_port(), free_port()
    bucket = {"S3_BUCKET": "webverdict", "S3_ENDPOINT_URL": f"http://127.0.0.1:{store}", "S3_REGION": "us-east-1"}
    further = {**bucket, "S3_ACCESS_KEY": "a", "S3_SECRET_KEY": "b", "DJANGO_SETTINGS_MODULE": "config.settings"}
    instance = Instance(folder, postgres.url, redis.url, further | {"ALLOWED_HOSTS": "127.0.0.1"})
    moto = stack.enter_context(instance.process("store", "moto.server", "-H", "127.0.0.1", "-p", str(store)))
    wait_until(lambda: _answers(store), "the store answers")
    instance.run("-m", "config.bucket")
    seeded = instance.run("-c", SEED, str(folder / "package"), str(people * TRAJECTORIES), str(STEPS), str(people))
    submission, token = seeded.split()[-2:]
    (written,) = re.findall(r"^CMD (\[.*?\])", (BASE_DIR / "Dockerfile").read_text(), re.M | re.S)
    command = json.loads(written.replace("\\\n", ""))
    command[command.index("--bind") + 1] = f"127.0.0.1:{port}"
    stack.enter_context(instance.process("web", *command))
    celery = ("celery", "--app", "config")
    for name, queue, processes in (("worker", "webverdict", "2"), ("judges", "webverdict-judges", "1")):
        options = ("worker", "--queues", queue, "--hostname", f"{name}@bench", "--concurrency", processes)
        stack.enter_context(instance.process(name, *celery, *options))
    stack.enter_context(instance.process("beat", *celery, "beat", "--schedule", str(folder / "schedule")))
    wait_until(lambda: _answers(port), "the web server answers", 120)
    faults = {
        "redis": lambda: frozen(redis.pid),
        "postgres": lambda: stopped(postgres),
        "store": lambda: frozen(moto.pid),
        "disk": lambda: filled(tables),
    }
    return Site(f"http://127.0.0.1:{port}", int(submission), token), instance, faults


def _answers(port: int) -> bool:
    with suppress(httpx2.HTTPError):
        return bool(httpx2.get(f"http://127.0.0.1:{port}/", timeout=5))
    return False


def frozen(pid: int) -> Callable[[], None]:
    """Stop a process, so that its socket accepts connections and never answers."""
    os.kill(pid, signal.SIGSTOP)
    return lambda: os.kill(pid, signal.SIGCONT)


def stopped(postgres: OwnPostgres) -> Callable[[], None]:
    postgres.stop("immediate")
    return postgres.start


def small_disk(stack: ExitStack, postgres: OwnPostgres) -> Path:
    """Move the tables of the database to a tmpfs."""
    tables = postgres.data / "base"
    postgres.stop()
    shutil.move(tables, moved := tables.with_name("moved"))
    tables.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", str(tables)], check=True)  # noqa: S603, S607
    stack.callback(subprocess.run, ["umount", "--lazy", str(tables)], check=False)
    subprocess.run(["cp", "-a", f"{moved}/.", str(tables)], check=True)  # noqa: S603, S607
    shutil.chown(tables, "postgres", "postgres")
    postgres.start()
    return tables


def filled(disk: Path) -> Callable[[], None]:
    filler = disk / "filler"
    with suppress(OSError), filler.open("wb", buffering=0) as stream:
        while stream.write(bytes(64 * 1024)):
            pass
    return filler.unlink


def measure(site: Site, instance: Instance, name: str, begin: Callable[[], Any], seconds: float) -> dict[str, Any]:
    """Measure a fault of ``seconds``, until labels, screenshots, uploads and jobs work again."""
    site.clear()
    end = begin()
    time.sleep(seconds)
    end()
    ended_at = time.monotonic()
    recovered = _seconds_until(lambda: all(site.good_at.get(kind, 0) > ended_at for kind in KINDS), ended_at)
    finished = _seconds_until(lambda: not instance.one(UNFINISHED), ended_at)
    acknowledged, stored = set(site.acknowledged), set(instance.rows(STORED))
    exceeded = find_exceeded(site.slowest, len(acknowledged - stored), recovered, finished)
    return {
        "fault": name,
        "requests": sum(site.statuses.values()),
        "statuses": dict(sorted(site.statuses.items())),
        "slowest_s": {kind: round(took, 1) for kind, took in sorted(site.slowest.items())},
        "labels_acknowledged": len(acknowledged),
        "acknowledged_and_not_stored": len(acknowledged - stored),
        "seconds_until_people_work": recovered and round(recovered, 1),
        "seconds_until_uploads_are_finished": finished and round(finished, 1),
        "result": "fail" if exceeded else "pass",
        "exceeded": exceeded,
    }


def _seconds_until(condition: Callable[[], bool], start: float) -> float | None:
    """Return the seconds from ``start`` until the condition holds; None if it does not within `RECOVERY`."""
    try:
        wait_until(condition, "recovery", RECOVERY)
    except AssertionError:
        return None
    return time.monotonic() - start


def find_exceeded(
    slowest: Mapping[str, float], lost: int, recovered: float | None, finished: float | None
) -> list[str]:
    """Return what exceeds the limits, in words; ``slowest`` in seconds by the kind of the request."""
    found = []
    for kind, took in sorted(slowest.items()):
        limit = LONGEST_PROBE if kind == "healthz" else LONGEST_REQUEST
        if took > limit:
            found.append(f"{kind} took {took:.2f} s, at most {limit:g} s are allowed")
    if lost:
        found.append(f"{lost} acknowledged labels are not stored")
    if recovered is None:
        found.append(f"people could not work again within {RECOVERY:g} s")
    if finished is None:
        found.append(f"uploads were not finished within {RECOVERY:g} s")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("faults", nargs="*", default=["redis", "postgres", "store", "disk"])
    parser.add_argument("--people", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=30.0, help="how long each fault lasts")
    parser.add_argument("--folder", type=Path, help="an empty folder for data and logs, which are not deleted")
    options = parser.parse_args()
    logging.disable(logging.INFO)  # suppresses a line for each request
    with ExitStack() as stack:
        folder = options.folder or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="webverdict-faults-")))
        site, instance, faults = start(stack, folder, options.people, "disk" in options.faults)
        jobs = [threading.Thread(target=annotate, args=(site, f"annotator{n}")) for n in range(options.people)]
        jobs += [threading.Thread(target=each, args=(site,)) for each in (upload, probe)]
        for job in jobs:
            job.start()
        try:
            wait_until(lambda: len(site.acknowledged) >= options.people, "everybody is at work", 300)
            rows = []
            for name in options.faults:
                rows.append(measure(site, instance, name, faults[name], options.seconds))
                print(json.dumps(rows[-1]), flush=True)  # noqa: T201
        finally:
            site.ended.set()
            for job in jobs:
                job.join()
    return int(any(row["exceeded"] for row in rows))


if __name__ == "__main__":
    sys.exit(main())
