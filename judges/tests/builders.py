"""Builders for tests and benchmarks: judges, runs, and a model that answers over real HTTP."""

from __future__ import annotations

import hashlib
import http.client
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

from annotation.models import Submission
from judges import defining, runs
from judges.llm import Call, CallFailed, Endpoint, ImageRef, Outcome
from judges.models import Judge, JudgeRun
from judges.working.worker import work

KEY = "sk-not-a-real-key-0123456789"  # what `Fake.endpoint` sends; no answer, log or row may show it


class MemoryCallLog:
    """Keeps outcomes in a list. Replies are shared by all call logs that are given the same ``replies``."""

    def __init__(self, replies: dict[tuple[str, str], tuple[int, str]] | None = None, sample: str = "1") -> None:
        self.replies = {} if replies is None else replies
        self.sample = sample
        self.outcomes: list[Outcome] = []

    async def find_reply(self, call: Call) -> tuple[int, str] | None:
        return self.replies.get((call.key, self.sample))

    async def record(self, outcome: Outcome) -> Decimal | None:
        self.outcomes.append(outcome)
        if outcome.reply is not None and outcome.hit_of is None:
            self.replies.setdefault((outcome.call.key, self.sample), (len(self.replies) + 1, outcome.reply))
        return None


class OpenGate:
    """Lets every call through, and remembers what it was asked."""

    def __init__(self) -> None:
        self.admitted: list[int] = []
        self.settled: list[tuple[int, int | None]] = []
        self.held: list[float] = []

    async def admit(self, tokens: int) -> None:
        self.admitted.append(tokens)

    async def settle(self, estimated: int, used: int | None) -> None:
        self.settled.append((estimated, used))

    async def hold(self, seconds: float) -> None:
        self.held.append(seconds)


class FolderImages:
    """Pictures by the digest of their original; `add` takes the bytes as the judge-ready JPEG too."""

    def __init__(self, pictures: Mapping[str, bytes] | None = None) -> None:
        self.pictures = dict(pictures or {})
        self.loads = 0

    def add(self, data: bytes) -> ImageRef:
        digest = hashlib.sha256(b"original of " + data).hexdigest()
        self.pictures[digest] = data
        return ImageRef(digest)

    async def load(self, image: ImageRef) -> bytes:
        self.loads += 1
        if image.digest not in self.pictures:
            raise CallFailed(f"The picture {image.digest[:12]} is gone from the store; import its submission again.")
        return self.pictures[image.digest]


class Fake:
    """The fake endpoint of `judges.tests.fake_openai`, as tests script it and read its counts."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.url = f"http://127.0.0.1:{port}/v1"
        self.endpoint = Endpoint("fake", self.url, KEY)

    def says(self, *rules: Mapping[str, Any], **settings: Any) -> None:
        """Replace the rules; ``latency`` (seconds) and ``record`` (bodies are kept) are settings."""
        self._ask("POST", "/control", {"rules": list(rules)} | settings)

    def adds(self, *rules: Mapping[str, Any]) -> None:
        """Put further rules below those that are there."""
        self._ask("POST", "/control", {"add": list(rules)})

    def batches(self, **settings: Any) -> None:
        """Set how batches behave (`fake_batches`)."""
        self._ask("POST", "/control", {"batches": settings})

    def holds(self, after: int) -> None:
        """Answer those that wait and so many more calls, then none: a run stands still there until `release`."""
        self.release()
        self.says({"hold": True, "after": after})

    def release(self, name: str | bool = True) -> None:
        """Let the requests go on that a rule with ``hold`` keeps waiting; True: all of them."""
        self._ask("POST", "/control", {"release": name})

    def reset(self) -> None:
        """No rules, no counts, no latency."""
        self._ask("POST", "/control", {"reset": True})

    def counts(self) -> dict[str, Any]:
        """calls, answered, bytes, in_flight, held, peak, peak_bytes, by_rule, arrivals (seconds), headers, bodies.

        Of batches: uploads, batches, sizes, statuses, paid (requests with a reply), polls, waiting.
        """
        return self._ask("GET", "/control")

    def wait(self, **least: int) -> dict[str, Any]:
        """Return the counts as soon as each named one has reached its number; blocks, so not in an event loop."""
        given = "&".join(f"{name}={number}" for name, number in least.items())
        return self._ask("GET", f"/control/wait?{given}", timeout=300)  # a worker may have to start first

    def _ask(
        self, method: str, path: str, given: Mapping[str, Any] | None = None, timeout: float = 60.0
    ) -> dict[str, Any]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            connection.request(method, path, None if given is None else json.dumps(given))
            return dict(json.loads(connection.getresponse().read()))
        finally:
            connection.close()


@contextmanager
def fake_endpoint(latency: float = 0.0) -> Iterator[Fake]:
    """A fake endpoint in a process of its own, which ends with the block or with this process."""
    command = [sys.executable, "-m", "judges.tests.fake_openai", "--port", "0", "--latency", str(latency)]
    with subprocess.Popen(
        [*command, "--with-parent"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            yield Fake(int(process.stdout.readline()))
        finally:
            process.terminate()


# --- judges and runs -------------------------------------------------------------------------------------------------


def defined_judge(name: str = "careful", **fields: Any) -> Judge:
    """A judge that asks one call of the fake model for each trajectory; ``fields`` are those of `defining.define`."""
    usual = {"scorer": "autonomous-eval", "model": "fake-model-1", "endpoint": "default"}
    return defining.define(None, name=name, **(usual | fields))


def started_run(person: Any, submission: Submission, judge: Judge | None = None, **options: Any) -> JudgeRun:
    """A run over the whole submission, or over ``selection``; ``options`` are those of `runs.start`."""
    selection = options.pop("selection", {})
    return runs.start(person, judge or defined_judge(), submission, selection, **options)


def worked(run: JudgeRun, *, worker: str = "the worker", seconds: float = 60.0) -> bool:
    """Work on a run here and now, as a job does; ``run`` is as it then is. True when there may be more to do."""
    more = work(run.pk, worker, seconds=seconds)
    run.refresh_from_db()
    return more
