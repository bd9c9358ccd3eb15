"""The services of docker-compose.yml as plain processes on free ports, for `bench.rehearsal` to break.

PostgreSQL, Redis, an S3 store (moto, through a link, since it has its files in memory), a reverse proxy (Caddy), two
web servers and one for uploads, two workers, two judge workers, their endpoint and the scheduler. There is no mail
worker. Processes that end are started again after a second, as Docker does.
"""

from __future__ import annotations

import json
import math
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
from config.tests.judge_run import Run
from config.tests.servers import OwnPostgres, OwnRedis, caddyfile, free_port, own_postgres, own_redis
from config.tests.waiting import wait_until
from judges.tests.builders import Fake

RESTART = 1.0  # seconds between the end of a process and its next start
DISK = "400m"  # size of the file system of the tables
DATA_DISK = "1280m"  # of the folder for uploads on their way; a fault is reported below 1 GiB
SKEW = {"web-1": "+2h", "worker-1": "-2h", "judge-worker-1": "+2h"}  # more than a lease
# With libfaketime 0.9.10, time.sleep of Python 3.11 fails, because it waits until a time of the monotonic clock.
SLEEP = "import select, time\ntime.sleep = lambda seconds: select.select((), (), (), seconds)\n"
GIVEN = "moto", "store", "endpoint", "proxy"  # no processes of ours
PASSWORD = "rehearsal-of-faults"  # noqa: S105 - of the operator of an instance that exists for minutes
METRICS_TOKEN = "only-for-the-rehearsal"  # noqa: S105 - as above
DEFAULT_SHARES = 1024  # of processor time, of a service of Docker
CONCURRENCY = 2  # calls that each judge worker has on their way
SEED = """
import django, sys
django.setup()
from pathlib import Path
from django.core.management import call_command
from annotation import workflow
from annotation.tests import testing
from annotation.models import ApiToken, Membership, Person
from judges.models import ModelTerms
from judges.tests.builders import defined_judge, started_run
call_command("migrate", verbosity=0)
call_command("collectstatic", interactive=False, verbosity=0)
submission = testing.submission(Path(sys.argv[1]), trajectories=int(sys.argv[2]), steps=int(sys.argv[3]))
Person.objects.create_superuser("operator", password=sys.argv[5])
ModelTerms.objects.create(model="fake", input_price=1, output_price=1)
mira = testing.cast(submission)["mira"]
for number in range(int(sys.argv[4])):
    person = testing.person(f"annotator{number}")
    workflow.add_member(mira, submission, person, Membership.Role.ANNOTATOR)
run = started_run(mira, submission, defined_judge(model="fake", concurrency=int(sys.argv[6])))
print(submission.pk, ApiToken.issue(mira, "bench", scope="write")[1], run.pk, run.items.count())
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
    _wanted: threading.Event = field(default_factory=threading.Event)
    _watcher: threading.Thread | None = None

    @property
    def group(self) -> int:
        """Return the number of the process group."""
        return self._process.pid if self._process is not None else 0

    def start(self) -> Service:
        self._wanted.set()
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
            self._wanted.wait()
            if not self._stopped.is_set():
                self._begin()

    def signal(self, number: int) -> None:
        """Send a signal to the process and all its children."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)

    def pause(self) -> Callable[[], None]:
        """Let the process end what it is doing; it is started again when the returned function is called."""
        self._wanted.clear()
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.kill(self._process.pid, signal.SIGTERM)
        return self._wanted.set

    def replace(self, folder: Path, environment: dict[str, str]) -> None:
        """Start the process again as `pause` does, with another code folder and environment."""
        self.folder, self.environment = folder, environment
        before = self._process
        self.pause()()
        wait_until(lambda: self._process is not before, "the process was replaced", 120)

    def stop(self) -> None:
        self._stopped.set()
        self._wanted.set()
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
    disks: dict[str, Path]
    run: Run
    endpoint: Fake

    def kill(self, name: str) -> Callable[[], None]:
        self.services[name].signal(signal.SIGKILL)
        return lambda: None

    def stop(self, *names: str) -> Callable[[], object]:
        resume = [self.services[name].pause() for name in names]
        return lambda: [each() for each in resume]

    def freeze(self, name: str) -> Callable[[], None]:
        """Stop a process, so that its socket accepts connections and never answers."""
        pid = {"redis": lambda: self.redis.pid, "postgres": lambda: self.postgres.pid}.get(name)
        send: Callable[[int], Any] = partial(_signal_family, pid()) if pid else self.services[name].signal
        send(signal.SIGSTOP)
        return lambda: send(signal.SIGCONT)

    def slow_down(self) -> Callable[[], None]:
        self.services["store"].signal(signal.SIGUSR1)
        return lambda: self.services["store"].signal(signal.SIGUSR2)

    def kill_postgres(self) -> Callable[[], None]:
        killed = _signal_family(self.postgres.pid, signal.SIGKILL)
        wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in killed), "PostgreSQL is dead", 60)
        self.postgres.start()
        return lambda: None

    def kill_redis(self) -> Callable[[], None]:
        self.redis.stop()
        self.redis.start()
        return lambda: None

    def stop_postgres(self) -> Callable[[], None]:
        self.postgres.stop("immediate")
        return self.postgres.start

    def stop_redis(self) -> Callable[[], None]:
        self.redis.stop()
        return self.redis.start

    def fill_disk(self, name: str) -> Callable[[], None]:
        filler = self.disks[name] / "filler"
        with suppress(OSError), filler.open("wb", buffering=0) as stream:
            while stream.write(bytes(2**20)):
                pass
        with suppress(OSError), filler.open("ab", buffering=0) as stream:
            while stream.write(bytes(4096)):
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

    def skew_clocks(self, library: Path) -> Callable[[], None]:
        """Let some processes have another time of day; their monotonic clock and the times of files are right."""
        (patch := self.instance.folder / "skew").mkdir(exist_ok=True)
        (patch / "sitecustomize.py").write_text(SLEEP)
        skewed = {"LD_PRELOAD": str(library), "FAKETIME_DONT_FAKE_MONOTONIC": "1", "NO_FAKE_STAT": "1"}
        for name, skew in SKEW.items():
            service = self.services[name]
            further = skewed | {"FAKETIME": skew, "PYTHONPATH": str(patch)}
            self._replace(name, service.folder, service.environment | further)
        return self.restore_clocks

    def restore_clocks(self) -> None:
        for name in SKEW:
            service = self.services[name]
            self._replace(name, service.folder, {**service.environment, "LD_PRELOAD": "", "PYTHONPATH": ""})

    def roll(self, code: Path) -> Callable[[], None]:
        """Replace one process after the other."""
        for name, service in self.services.items():
            if name not in GIVEN:
                self._replace(name, code, service.environment | self.instance.environment)
        return lambda: None

    def _replace(self, name: str, code: Path, environment: dict[str, str]) -> None:
        """Replace a process. The proxy stops sending to a web server before it ends."""
        if name in self.ports:
            self._send_to([other for other in ("web-1", "web-2") if other != name])
        self.services[name].replace(code, environment)
        if name in self.ports:
            wait_until(partial(answers, self.ports[name]), f"{name} answers", 120)
            self._send_to(["web-1", "web-2"])

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


def _signal_family(pid: int, number: int) -> list[int]:
    """Send a signal to a process and its children, which may be in other process groups; return all of them."""
    os.kill(pid, signal.SIGSTOP)  # so that it starts no further child
    family = [*map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()), pid]
    for each in family:
        with suppress(ProcessLookupError):
            os.kill(each, number)
    return family


def proxy_file(address: str, web: list[int], uploads: int) -> str:
    text = caddyfile(address, " ".join(f"127.0.0.1:{port}" for port in web), f"127.0.0.1:{uploads}")
    return text.replace("{\n", "{\n\tadmin {$ADMIN}\n", 1)


def answers(port: int) -> bool:
    with suppress(httpx2.HTTPError):
        return httpx2.get(f"http://127.0.0.1:{port}/healthz", timeout=5).status_code < 500
    return False


def start(
    stack: ExitStack, folder: Path, code: Path, people: int, trajectories: int, steps: int, latency: float, disks: bool
) -> Topology:
    """Start everything from the checkout in ``code``, with a submission for ``people`` annotators.

    A judge run of all trajectories has started, and each call takes ``latency`` seconds. ``disks``: use small ones.
    """
    postgres, redis = stack.enter_context(own_postgres()), stack.enter_context(own_redis())
    (data := folder / "var").mkdir()
    small = _small_disks(stack, postgres, data) if disks else {}
    names = ("web-1", "web-2", "uploads", "moto", "store", "endpoint", "proxy", "admin")
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
    further |= {"JUDGE_ENDPOINTS": f"http://127.0.0.1:{ports['endpoint']}/v1", "JUDGE_API_KEY_DEFAULT": "none"}
    further |= {"METRICS_TOKEN": METRICS_TOKEN, "REQUIRE_MFA": "off", "TMPDIR": str(data)}
    instance = Instance(folder, postgres.url, redis.url, bucket | further)
    services: dict[str, Service] = {}

    def run(name: str, command: list[str], further: dict[str, str] | None = None, folder: Path = code) -> None:
        environment = instance.environment | (further or {})
        service = Service(command, folder, environment, instance.log(name)).start()
        stack.callback(service.stop)
        services[name] = service

    python = [sys.executable, "-m"]
    here = settings.BASE_DIR
    run("moto", [*python, "moto.server", "-H", "127.0.0.1", "-p", str(ports["moto"])])
    run("store", [*python, "bench.link", str(ports["store"]), str(ports["moto"])], folder=here)
    endpoint = ["judges.tests.fake_openai", "--port", str(ports["endpoint"]), "--latency", str(latency)]
    run("endpoint", [*python, *endpoint], folder=here)
    wait_until(partial(answers, ports["store"]), "the store answers", 60)
    prepare = Instance(folder, postgres.url, redis.url, instance.further, code)
    prepare.run("-m", "config.bucket")
    sizes = (trajectories, steps, people, PASSWORD, CONCURRENCY)
    submission, token, judge_run, items = prepare.run("-c", SEED, str(folder / "seed"), *map(str, sizes)).split()[-4:]
    for name, command in _read_commands(folder):
        if name in ports:
            command[command.index("--bind") + 1] = f"127.0.0.1:{ports[name]}"
        run(name, command, {"REMAP_SIGTERM": "SIGQUIT"} if name.startswith("judge") else {})
    for name in ("web-1", "web-2", "uploads"):
        wait_until(partial(answers, ports[name]), f"{name} answers", 120)
    address = f"http://127.0.0.1:{ports['proxy']}"
    (file := folder / "Caddyfile").write_text(proxy_file(address, [ports["web-1"], ports["web-2"]], ports["uploads"]))
    admin = f"127.0.0.1:{ports['admin']}"
    run("proxy", ["caddy", "run", "--adapter", "caddyfile", "--config", str(file)], {"ADMIN": admin})
    wait_until(partial(answers, ports["proxy"]), "the proxy answers", 60)
    run_of_judge = Run(instance, int(judge_run), int(items), int(items))  # one call for each item
    fake = Fake(ports["endpoint"])
    return Topology(
        instance, address, int(submission), token, services, ports, postgres, redis, small, run_of_judge, fake
    )


def _read_commands(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield name and command of the processes, as the Dockerfile and docker-compose.yml start them.

    The files of the scheduler are in ``folder``.
    """
    (written,) = re.findall(r"^CMD (\[.*?\])", (settings.BASE_DIR / "Dockerfile").read_text(), re.M | re.S)
    compose, python = (settings.BASE_DIR / "docker-compose.yml").read_text(), [sys.executable, "-m"]

    def find(service: str, key: str) -> Any:
        found = re.search(rf"^  {service}:\n(?:    .*\n)*?    {key}: (.*)$", compose, re.M)
        return json.loads(found[1]) if found else None

    for number in "12":
        yield f"web-{number}", [*python, *json.loads(written.replace("\\\n", ""))]
    yield "uploads", [*python, *find("uploads", "command")]
    for service in ("worker", "judge-worker"):
        for number in "12":
            command = find(service, "command")
            name = command.index("--hostname") + 1
            command[name] = command[name].replace("@%h", f"{number}@rehearsal")
            niceness = find_niceness(find(service, "cpu_shares"))
            yield f"{service}-{number}", ["nice", "-n", str(niceness), *python, *command]
    yield "beat", [*python, *(word.replace("/scratch", str(folder)) for word in find("beat", "command"))]


def find_niceness(shares: int) -> int:
    """Return the niceness with the weight of ``cpu_shares``: 1,024 are 0, and each step has 1.25 times less."""
    return round(math.log(DEFAULT_SHARES / shares, 1.25))


def _small_disks(stack: ExitStack, postgres: OwnPostgres, data: Path) -> dict[str, Path]:
    """Move the tables of the database, and the folder for data of other processes, to a tmpfs each; needs root."""
    tables = postgres.data / "base"
    postgres.stop()
    shutil.move(tables, moved := tables.with_name("moved"))
    for folder, size in ((tables, DISK), (data, DATA_DISK)):
        folder.mkdir(exist_ok=True)
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)], check=True)  # noqa: S603, S607
        stack.callback(subprocess.run, ["umount", "--lazy", str(folder)], check=False)
    subprocess.run(["cp", "-a", f"{moved}/.", str(tables)], check=True)  # noqa: S603, S607
    shutil.chown(tables, "postgres", "postgres")
    postgres.start()
    return {"database": tables, "data folder": data}


def faults(site: Topology) -> dict[str, Callable[[], Any]]:
    """Return what can be broken by name. Each function begins a fault and returns the function that ends it.

    A clock is skewed only where libfaketime is installed (Debian: apt-get install libfaketime), and a disk is filled
    only by root. Of two equal processes, only the first is killed.
    """
    ours = [name for name in site.services if name not in GIVEN]
    killed = {f"kill {name}": partial(site.kill, name) for name in [*ours, "proxy", "store"] if name[-2:] != "-2"}
    stopped: dict[str, tuple[str, ...]] = {
        "web-1": ("web-1",),
        "uploads": ("uploads",),
        "workers": ("worker-1", "worker-2"),
        "judge workers": ("judge-worker-1", "judge-worker-2"),
        "beat": ("beat",),
        "proxy": ("proxy",),
        "store": ("store",),
    }
    silent = ("postgres", "redis", "store", "endpoint", "web-1")
    library = next(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"), None)
    return {
        "none": lambda: lambda: None,
        **killed,
        "kill postgres": site.kill_postgres,
        "kill redis": site.kill_redis,
        **{f"no {name}": partial(site.stop, *names) for name, names in stopped.items()},
        "no postgres": site.stop_postgres,
        "no redis": site.stop_redis,
        **{f"silent {name}": partial(site.freeze, name) for name in silent},
        "slow store": site.slow_down,
        **{f"full disk of the {name}": partial(site.fill_disk, name) for name in site.disks},
        **({"clock skew": partial(site.skew_clocks, library)} if library else {}),
        "new key": site.rotate_key,
        "upgrade": site.upgrade,
    }
