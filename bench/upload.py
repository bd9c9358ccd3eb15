"""Send a large package over a connection that breaks: ``python -m bench.upload --size 10GB --cut 30``.

Starts the embedded profile, and a proxy that cuts all connections every ``--cut`` seconds. A zip of generated
screenshots is sent through it in parts, and imported by the worker. Prints times, the bytes that were sent, and whether
the imported rows are those of a local import of the same file; exits with 1 if they differ, or if more than 1.1 times
the size was sent.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import re
import sys
import tempfile
import threading
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2

from bench import scratch, server

sys.path.append(str(Path(__file__).resolve().parent.parent / "client"))
from webverdict_client import resumable

UNITS = {"KB": 10**3, "MB": 10**6, "GB": 10**9}
MOST_SENT = 1.1  # times the size of the file
STEPS = 20
BUFFER = 2**18


class CuttingProxy:
    """Forward connections to a port of this machine, and abort all of them every ``cut`` seconds."""

    def __init__(self, target: int, cut: float) -> None:
        self.target, self.cut = target, cut
        self.received = self.cuts = self.port = 0
        self._writers: set[asyncio.StreamWriter] = set()
        self._listening = threading.Event()

    @contextmanager
    def serving(self) -> Iterator[str]:
        thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)
        thread.start()
        self._listening.wait(10)
        yield f"http://127.0.0.1:{self.port}"

    async def _serve(self) -> None:
        async with await asyncio.start_server(self._forward, "127.0.0.1", 0, limit=BUFFER) as listening:
            self.port = listening.sockets[0].getsockname()[1]
            self._listening.set()
            while True:
                await asyncio.sleep(self.cut)
                self.cuts += bool(self._writers)
                for writer in list(self._writers):
                    writer.transport.abort()

    async def _forward(self, asked: asyncio.StreamReader, answer: asyncio.StreamWriter) -> None:
        try:
            answered, ask = await asyncio.open_connection("127.0.0.1", self.target, limit=BUFFER)
        except OSError:
            answer.transport.abort()
            return
        self._writers |= {answer, ask}
        await asyncio.gather(self._copy(asked, ask, is_sent=True), self._copy(answered, answer, is_sent=False))
        self._writers -= {answer, ask}

    async def _copy(self, source: asyncio.StreamReader, target: asyncio.StreamWriter, *, is_sent: bool) -> None:
        with suppress(OSError):
            while data := await source.read(BUFFER):
                self.received += len(data) * is_sent
                target.write(data)
                await target.drain()
        target.close()


@dataclass(frozen=True, slots=True)
class Package:
    """The file, the number of its trajectories, and a token to send it with."""

    path: Path
    trajectories: int
    token: str


def write_package(path: Path, size: int) -> int:
    """Write a zip of at least ``size`` bytes; return the number of its trajectories."""
    from annotation.tests import testing  # noqa: PLC0415 - after the setup

    pictures, number = [server.picture(number) for number in range(STEPS)], 0
    with zipfile.ZipFile(path, "w") as package:
        while path.stat().st_size < size:
            result = testing.result_v2(number, STEPS)
            package.writestr(f"{result['task_id']}/result.json", json.dumps(result))
            for step, picture in enumerate(pictures):
                name = f"{result['task_id']}/trajectory/{step:04d}.png"
                package.writestr(name, scratch.mark_png(picture, number * STEPS + step))
            number += 1
    return number


def make(folder: Path, path: Path, size: int) -> Package:
    from annotation.models import ApiToken  # noqa: PLC0415 - after the setup
    from annotation.tests import testing  # noqa: PLC0415 - after the setup

    count = write_package(path, size)
    testing.benchmark(count)
    return Package(path, count, ApiToken.issue(testing.person("mira", is_staff=True), "bench", "write")[1])


def send(address: str, package: Package) -> str:
    """Send the package; return the address of its report."""
    headers = {"Authorization": f"Bearer {package.token}"}
    with httpx2.Client(base_url=address, headers=headers, timeout=60) as client:
        started = resumable.start(client, package.path, {"benchmark": "shops", "agent": "Sent"})
        resumable.send(client, started.address, package.path)
    return started.report


def wait_for_import(address: str, report: str, package: Package) -> dict[str, Any]:
    with httpx2.Client(base_url=address, headers={"Authorization": f"Bearer {package.token}"}, timeout=60) as client:
        while (answer := client.get(report).raise_for_status().json())["stage"] != "finished":
            time.sleep(0.5)
    return dict(answer)


def list_rows(agent: str) -> list[tuple[Any, ...]]:
    from annotation.models import Step  # noqa: PLC0415 - after the setup

    steps = Step.objects.filter(trajectory__submission__agent__name=agent).order_by("trajectory__position", "index")
    names = ("task", "digest", "task_text", "final_answer", "source_format")
    of_trajectory = [f"trajectory__{name}" for name in names]
    return list(steps.values_list(*of_trajectory, "index", "action", "thought", "url", "screenshot__sha256"))


def parse_size(text: str) -> int:
    found = re.fullmatch(r"([0-9.]+) ?([KMG]B)", text)
    if found is None:
        raise argparse.ArgumentTypeError("give a size such as 500MB or 10GB")
    return int(float(found[1]) * UNITS[found[2]])


def say(line: str) -> None:
    print(line, flush=True)  # noqa: T201


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.upload", description=__doc__)
    parser.add_argument("--size", type=parse_size, default="10GB", help="of the package, such as 500MB (default: 10GB)")
    parser.add_argument("--cut", type=float, default=30.0, help="seconds between two cuts (default: 30)")
    given = parser.parse_args(arguments)
    logging.getLogger("httpx2").setLevel(logging.WARNING)
    with tempfile.TemporaryDirectory(prefix="webverdict-upload-") as folder:
        path, port = Path(folder) / "package.zip", server.free_port()
        with server.served(port, lambda made: make(made, path, given.size)) as (address, package):
            return measure(address, CuttingProxy(port, given.cut), package)


def measure(address: str, proxy: CuttingProxy, package: Package) -> int:
    from annotation import ingest  # noqa: PLC0415 - after the setup
    from annotation.models import Benchmark  # noqa: PLC0415

    size = package.path.stat().st_size
    say(f"package: {size / 10**6:,.0f} MB, {package.trajectories:,} trajectories of {STEPS} steps")
    with proxy.serving() as through:
        began = time.monotonic()
        report = send(through, package)
        took = time.monotonic() - began
    ratio = proxy.received / size
    say(f"sent: {took:.1f} s, {size / took / 10**6:.1f} MB/s, {proxy.cuts} cuts, {ratio:.3f} times the size")
    began = time.monotonic()
    done = wait_for_import(address, report, package)
    say(f"imported by the worker: {time.monotonic() - began:.1f} s, {len(done['report']['accepted']):,} trajectories")
    began, shops = time.monotonic(), Benchmark.objects.get(slug="shops")
    ingest.import_submission(package.path, benchmark=shops, agent_name="Local")
    say(f"imported locally: {time.monotonic() - began:.1f} s")
    sent, local = list_rows("Sent"), list_rows("Local")
    is_same = len(sent) == package.trajectories * STEPS and sent == local
    say(f"rows: {len(sent):,} and {len(local):,}: {'equal' if is_same else 'DIFFERENT'}")
    return 0 if is_same and ratio <= MOST_SENT else 1


if __name__ == "__main__":
    sys.exit(main())
