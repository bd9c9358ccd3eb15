"""Simulated people who work over HTTP on a site that is being broken, and what they notice, for `bench.rehearsal`."""

from __future__ import annotations

import io
import random
import re
import threading
import time
import zipfile
from collections import Counter, defaultdict
from contextlib import suppress
from typing import Any

import httpx2

from annotation.tests import testing
from bench.scratch import mark_png
from bench.topology import PASSWORD, Topology
from config.tests.people_by_http import label

STEPS = 3
UP = 200, 202, 302
LIMITS = httpx2.Limits(keepalive_expiry=1)  # seconds; gunicorn closes connections after two
UPLOADS = 5.0  # seconds between two uploads


class Site:
    """The instance under test, with its measurements; they are cleared before each fault."""

    def __init__(self, running: Topology, people: list[str], think: float) -> None:
        self.address, self.submission, self.token = running.address, running.submission, running.token
        self.people, self.think = people, think
        self.acknowledged: set[tuple[int, str]] = set()
        self.uploads: set[str] = set()
        self.ended, self.importing = threading.Event(), threading.Event()
        self.importing.set()
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
        while not site.ended.is_set() and not sign_in(site, client, name):
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


def sign_in(site: Site, client: httpx2.Client, name: str, password: str = testing.PASSWORD) -> bool:
    site.ask("sign-in", client, "GET", "/sign-in")
    sent = _post(site, client, "sign-in", "/sign-in", username=name, password=password)
    return sent is not None and sent.status_code == 302


def _post(site: Site, client: httpx2.Client, kind: str, path: str, **fields: Any) -> httpx2.Response | None:
    token = client.cookies.get("csrftoken", "")
    return site.ask(kind, client, "POST", path, data=fields, headers={"X-CSRFToken": token})


def sign_in_once(site: Site, name: str, wait: float) -> None:
    """Sign in after ``wait`` seconds, in another browser."""
    site.ended.wait(wait)
    with httpx2.Client(timeout=60, limits=LIMITS) as client:
        sign_in(site, client, name)


def open_as_operator(site: Site) -> httpx2.Client:
    """Return a client in which the operator is signed in; its requests are not measured as those of people."""
    client = httpx2.Client(timeout=30, limits=LIMITS)
    client.get(f"{site.address}/sign-in")
    fields = {"username": "operator", "password": PASSWORD}
    client.post(f"{site.address}/sign-in", data=fields, headers={"X-CSRFToken": client.cookies["csrftoken"]})
    return client


def upload(site: Site) -> None:
    """Import a package of one trajectory every few seconds, each for another agent."""
    with httpx2.Client(timeout=60, limits=LIMITS, headers={"Authorization": f"Bearer {site.token}"}) as client:
        number = 0
        while not site.ended.wait(UPLOADS):
            if not site.importing.is_set():
                continue
            number += 1
            form = {"benchmark": "shops", "agent": f"Agent {number}"}
            files = {"file": ("package.zip", make_package(number))}
            sent = site.ask("upload", client, "POST", "/api/v1/uploads", data=form, files=files)
            if sent is not None and sent.status_code == 202:
                site.uploads.add(str(sent.json()["id"]))


def make_package(number: int) -> bytes:
    """Return a ZIP file with one trajectory, whose screenshots are those of no other ``number``."""
    result, stream = testing.result_v2(0, STEPS), io.BytesIO()
    with zipfile.ZipFile(stream, "w") as package:
        package.writestr(f"{result['task_id']}/result.json", testing.as_json(result))
        for step in range(STEPS):
            picture = mark_png(testing.png(step), number * STEPS + step)
            package.writestr(f"{result['task_id']}/trajectory/{step:04d}.png", picture)
    return stream.getvalue()


def probe(site: Site) -> None:
    with httpx2.Client(timeout=60, limits=LIMITS) as client:
        while not site.ended.wait(0.25):
            site.ask("healthz", client, "GET", "/healthz")
