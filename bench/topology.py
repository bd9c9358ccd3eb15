"""The services of docker-compose.yml as plain processes on free ports, for `bench.rehearsal` to break.

PostgreSQL, Redis, an S3 store (moto), a reverse proxy (Caddy), two web servers and one for uploads, two workers, two
judge workers and the scheduler. Processes that end are started again after a second, as Docker does.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
from django.conf import settings

from config.processes import die_with
from config.tests.instance import Instance
from config.tests.servers import OwnPostgres, OwnRedis, caddyfile, free_port, own_postgres, own_redis
from config.tests.waiting import wait_until

RESTART = 1.0  # seconds between the end of a process and its next start
DISK = "400m"  # size of the file system of the tables
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


@dataclass
class Service:
    """A program that is started again whenever it ends, until `stop`; its output goes to ``log``."""

    command: list[str]
    folder: Path
    environment: dict[str, str]
    log: Path
    _process: subprocess.Popen[bytes] | None = None
    _stopped: threading.Event = field(default_factory=threading.Event)
    _watcher: threading.Thread | None = None

    def start(self) -> Service:
        self._begin()
        self._watcher = threading.Thread(target=self._watch, daemon=True)
        self._watcher.start()
        return self

    def _begin(self) -> None:
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603 - our own commands
                self.command,
                cwd=self.folder,
                env=self.environment,
                stdout=log,
                stderr=log,
                process_group=0,
                preexec_fn=die_with(os.getpid()),  # noqa: PLW1509 - as `config.processes` does
            )

    def _watch(self) -> None:
        while self._process is not None:
            self._process.wait()
            if self._stopped.wait(RESTART):
                return
            self._begin()

    def signal(self, number: int) -> None:
        """Send a signal to the process and all its children."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)

    def replace(self, folder: Path, environment: dict[str, str]) -> None:
        """Let the process end what it is doing; it is started again with another code folder and environment."""
        self.folder, self.environment = folder, environment
        before = self._process
        if before is not None:
            with suppress(ProcessLookupError):
                os.kill(before.pid, signal.SIGTERM)
        wait_until(lambda: self._process is not before, "the process was replaced", 120)

    def stop(self) -> None:
        self._stopped.set()
        self.signal(signal.SIGKILL)
        if self._watcher is not None:
            self._watcher.join(10)


@dataclass
class Topology:
    """A running site: what people use (``address``) and everything that can be broken."""

    instance: Instance
    address: str
    submission: int
    token: str
    services: dict[str, Service]
    ports: dict[str, int]
    postgres: OwnPostgres
    redis: OwnRedis
    tables: Path

    def kill(self, name: str) -> Callable[[], None]:
        self.services[name].signal(signal.SIGKILL)
        return lambda: None

    def freeze(self, name: str) -> Callable[[], None]:
        """Stop a process, so that its socket accepts connections and never answers."""
        pid = self.redis.pid if name == "redis" else None
        send = (lambda number: os.kill(pid, number)) if pid else self.services[name].signal
        send(signal.SIGSTOP)
        return lambda: send(signal.SIGCONT)

    def stop_postgres(self) -> Callable[[], None]:
        self.postgres.stop("immediate")
        return self.postgres.start

    def stop_redis(self) -> Callable[[], None]:
        self.redis.stop()
        return self.redis.start

    def fill_disk(self) -> Callable[[], None]:
        filler = self.tables / "filler"
        with suppress(OSError), filler.open("wb", buffering=0) as stream:
            while stream.write(bytes(64 * 1024)):
                pass
        return filler.unlink

    def rotate_key(self) -> Callable[[], None]:
        """Give every process a new SECRET_KEY, with the former one as a fallback."""
        former = self.instance.environment["SECRET_KEY"]
        further = {"SECRET_KEY": f"rotated: {former}", "SECRET_KEY_FALLBACKS": former}
        self.instance.further |= further
        return self.roll(settings.BASE_DIR)

    def upgrade(self) -> Callable[[], None]:
        """Migrate the database, and replace every process by one of this checkout, while the others work."""
        self.instance.run("manage.py", "migrate", "--noinput", "--verbosity", "0")
        self.instance.run("manage.py", "collectstatic", "--noinput", "--verbosity", "0")
        return self.roll(settings.BASE_DIR)

    def roll(self, code: Path) -> Callable[[], None]:
        """Replace one process after the other. The proxy stops sending to a web server before it ends."""
        for name, service in self.services.items():
            if name in ("proxy", "store"):
                continue
            if name in self.ports:
                self._send_to([other for other in ("web-1", "web-2") if other != name])
            service.replace(code, service.environment | self.instance.environment)
            if name in self.ports:
                wait_until(partial(answers, self.ports[name]), f"{name} answers", 120)
            self._send_to(["web-1", "web-2"])
        return lambda: None

    def _send_to(self, names: list[str]) -> None:
        """Tell the proxy which web servers it has, as an orchestrator does."""
        caddy = self.services["proxy"]
        text = proxy_file(self.address, [self.ports[name] for name in names], self.ports["uploads"])
        file = Path(caddy.command[-1])
        file.write_text(text)
        admin = ["--address", f"127.0.0.1:{self.ports['admin']}"]
        subprocess.run(  # noqa: S603
            ["caddy", "reload", "--adapter", "caddyfile", "--config", str(file), *admin],  # noqa: S607
            env=caddy.environment,
            cwd=file.parent,
            check=True,
            capture_output=True,
            timeout=60,
        )


def proxy_file(address: str, web: list[int], uploads: int) -> str:
    text = caddyfile(address, " ".join(f"127.0.0.1:{port}" for port in web), f"127.0.0.1:{uploads}")
    return text.replace("{\n", "{\n\tadmin {$ADMIN}\n", 1)


def answers(port: int) -> bool:
    with suppress(httpx2.HTTPError):
        return httpx2.get(f"http://127.0.0.1:{port}/healthz", timeout=5).status_code < 500
    return False


def start(
    stack: ExitStack, folder: Path, code: Path, people: int, trajectories: int, steps: int, disk: bool
) -> Topology:
    """Start everything from the checkout in ``code``, with a submission for ``people`` annotators."""
    postgres, redis = stack.enter_context(own_postgres()), stack.enter_context(own_redis())
    tables = _small_disk(stack, postgres) if disk else folder
    names = ("web-1", "web-2", "uploads", "store", "proxy", "admin")
    ports = {name: free_port() for name in names}
    bucket = {
        "S3_BUCKET": "webverdict",
        "S3_ENDPOINT_URL": f"http://127.0.0.1:{ports['store']}",
        "S3_REGION": "us-east-1",
        "S3_ACCESS_KEY": "a",
        "S3_SECRET_KEY": "b",
    }
    further = {"ALLOWED_HOSTS": "127.0.0.1", "BEHIND_PROXY": "1", "DJANGO_SETTINGS_MODULE": "config.settings"}
    further |= {"UNDO_SECONDS": "5"}  # what was acknowledged is stored sooner, so that a fault is measured in less time
    instance = Instance(folder, postgres.url, redis.url, bucket | further)
    services: dict[str, Service] = {}

    def run(name: str, command: list[str], further: dict[str, str] | None = None) -> None:
        environment = instance.environment | (further or {})
        service = Service(command, code, environment, instance.log(name)).start()
        stack.callback(service.stop)
        services[name] = service

    python = [sys.executable, "-m"]
    run("store", [*python, "moto.server", "-H", "127.0.0.1", "-p", str(ports["store"])])
    wait_until(partial(answers, ports["store"]), "the store answers", 60)
    prepare = Instance(folder, postgres.url, redis.url, instance.further, code)
    prepare.run("-m", "config.bucket")
    seeded = prepare.run("-c", SEED, str(folder / "package"), str(trajectories), str(steps), str(people))
    submission, token = seeded.split()[-2:]
    for name, command in _read_commands(folder):
        if name in ports:
            command[command.index("--bind") + 1] = f"127.0.0.1:{ports[name]}"
        run(name, [*python, *command], {"REMAP_SIGTERM": "SIGQUIT"} if name.startswith("judge") else {})
    for name in ("web-1", "web-2", "uploads"):
        wait_until(partial(answers, ports[name]), f"{name} answers", 120)
    address = f"http://127.0.0.1:{ports['proxy']}"
    (file := folder / "Caddyfile").write_text(proxy_file(address, [ports["web-1"], ports["web-2"]], ports["uploads"]))
    admin = f"127.0.0.1:{ports['admin']}"
    run("proxy", ["caddy", "run", "--adapter", "caddyfile", "--config", str(file)], {"ADMIN": admin})
    wait_until(partial(answers, ports["proxy"]), "the proxy answers", 60)
    return Topology(instance, address, int(submission), token, services, ports, postgres, redis, tables)


def _read_commands(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield name and command of the processes, as the Dockerfile and docker-compose.yml start them.

    The files of the scheduler are in ``folder``.
    """
    (written,) = re.findall(r"^CMD (\[.*?\])", (settings.BASE_DIR / "Dockerfile").read_text(), re.M | re.S)
    compose = (settings.BASE_DIR / "docker-compose.yml").read_text()

    def of(service: str) -> list[str]:
        (line,) = re.findall(rf"^  {service}:\n(?:    .*\n)*?    command: (\[.*\])$", compose, re.M)
        return list(json.loads(line))

    for number in "12":
        yield f"web-{number}", json.loads(written.replace("\\\n", ""))
    yield "uploads", of("uploads")
    for service in ("worker", "judge-worker"):
        for number in "12":
            command = of(service)
            name = command.index("--hostname") + 1
            command[name] = command[name].replace("@%h", f"{number}@rehearsal")
            yield f"{service}-{number}", command
    yield "beat", [word.replace("/scratch", str(folder)) for word in of("beat")]


def _small_disk(stack: ExitStack, postgres: OwnPostgres) -> Path:
    """Move the tables of the database to a tmpfs; needs root."""
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


def faults(site: Topology) -> dict[str, Callable[[], Any]]:
    """Return what can be broken by name. Each function begins a fault and returns the function that ends it."""
    killed = {f"kill {name}": partial(site.kill, name) for name in site.services if name != "store"}
    return {
        "none": lambda: lambda: None,
        **killed,
        **{f"silent {name}": partial(site.freeze, name) for name in ("redis", "store", "web-1")},
        "no postgres": site.stop_postgres,
        "no redis": site.stop_redis,
        "full disk": site.fill_disk,
        "new key": site.rotate_key,
        "upgrade": site.upgrade,
    }
