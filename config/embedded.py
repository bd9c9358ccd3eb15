"""`make run` and `webverdict`: all processes on one machine, in one terminal; all of them end with it.

Prepares the database, the static files and the demo, then watches four child processes: the web server, two Celery
workers and their scheduler. The project's settings and apps are imported after the first checks, so that these report
errors at once.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import io
import os
import shutil
import socket
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NoReturn

from config.processes import (
    CannotRun,
    Child,
    Children,
    Stopped,
    check_alive,
    die_with,
    parent_was_asked_to_stop,
    stop_on_signals,
    stopping_children,
)

MINIMUM_PYTHON = (3, 11)
MINIMUM_DISK = 1024**3  # bytes
STALL_LIMIT = 60.0  # seconds in which a starting server uses no processor time and logs nothing
REPORT_INTERVAL = 10.0  # seconds between two progress lines
HOST = "127.0.0.1"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m config.embedded", description=__doc__)
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--with-parent", action="store_true", help="stop when the starting process dies")
    parser.add_argument("--no-demo", action="store_true", help="start without demo data")
    options = parser.parse_args(arguments)
    parent = os.getppid() if options.with_parent else None
    if parent is not None:
        die_with(parent)()
    return serve(options.port, parent, demo=not options.no_demo)


def serve(
    port: int,
    parent: int | None = None,
    again: str = "make run PORT=",
    ready: Callable[[str], object] | None = None,
    *,
    demo: bool = True,
) -> int:
    """Run until stopped. Return exit code 0 after a stop, 1 if it could not start or a child died.

    ``again`` and a port are the command that starts it on this port. ``ready`` gets the address once it answers.
    ``demo`` loads demo data if the database is new.
    """
    stop_on_signals()
    try:
        run(port, parent, again, ready, demo=demo)
    except Stopped:
        print("Stopped.", flush=True)  # noqa: T201
        return 0
    except CannotRun as reason:
        print(reason, file=sys.stderr, flush=True)  # noqa: T201
        return 1


def run(port: int, parent: int | None, again: str, ready: Callable[[str], object] | None, *, demo: bool) -> NoReturn:
    """Check, prepare, start and watch the children; end them all, and raise Stopped or CannotRun."""
    started = time.monotonic()
    if sys.version_info < MINIMUM_PYTHON:
        raise CannotRun(f"Python {sys.version.split()[0]} is too old: WebVerdict needs 3.11 or newer.")
    check_port(port, again)
    data, production = _settings()
    if production:
        raise CannotRun("DATABASE_URL is set: this is the production profile, see docker-compose.yml.")
    with only_one(data):
        check_disk(data)
        prepare(data, demo=demo)
        watch(data, port, started, parent, ready)


def check_port(port: int, again: str) -> None:
    if not 0 < port < 2**16:
        raise CannotRun(f"{port} is not a port. Choose one from 1 to 65535: {again}8001")
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except PermissionError:
            raise CannotRun(f"Port {port} needs root. Choose another one: {again}8000") from None
        except OSError:
            raise CannotRun(
                f"Port {port} is taken by another program. Choose another one: {again}{_free_port(port)}"
            ) from None


def _free_port(taken: int) -> int:
    for port in range(taken + 1, min(taken + 100, 2**16)):
        with socket.socket() as probe, suppress(OSError):
            probe.bind((HOST, port))
            return port
    return 8001


def check_disk(folder: Path) -> None:
    free = shutil.disk_usage(folder).free
    if free < MINIMUM_DISK:
        raise CannotRun(f"Only {free // 2**20} MB are free in {folder}; WebVerdict needs 1024 MB.")


@contextmanager
def only_one(data: Path) -> Iterator[None]:
    """Lock the folder until the process ends: two servers would both return its taken messages to the queues."""
    data.mkdir(parents=True, exist_ok=True)
    with (data / "run.lock").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CannotRun(
                f"WebVerdict is already running on {data}. Stop it first, or set WEBVERDICT_DATA."
            ) from None
        yield


def prepare(data: Path, *, demo: bool = True) -> None:
    from django.conf import settings  # noqa: PLC0415 - after the checks
    from django.core.management import call_command  # noqa: PLC0415 - after the checks
    from django.db import connections  # noqa: PLC0415 - after the checks

    for folder in ("log", "tmp", "broker", "images"):
        (data / folder).mkdir(exist_ok=True)
    with step("Database"):
        call_command("migrate", verbosity=0, interactive=False)
    if settings.STATIC_ROOT.parent == data:  # the installed package has collected files
        with step("Static files"):
            collect_static(data)
    if demo and is_new():
        with step("Demo data"):
            call_command("load_demo", stdout=io.StringIO())  # the logins are printed at the end of every start
    connections.close_all()


def is_new() -> bool:
    """Return whether there are no submissions and no accounts yet; an interrupted demo may have left its accounts."""
    from django.contrib.auth import get_user_model  # noqa: PLC0415 - after the checks

    from annotation.demo import LOGINS  # noqa: PLC0415 - after the checks
    from annotation.models import Submission  # noqa: PLC0415 - after the checks

    others = get_user_model().objects.exclude(username__in=[name for name, _, _ in LOGINS])
    return not (Submission.objects.exists() or others.exists())


def collect_static(data: Path) -> None:
    """Collect, hash and compress static files, unless the sources have not changed since the last time."""
    from django.contrib.staticfiles.finders import get_finders  # noqa: PLC0415 - after the checks
    from django.core.management import call_command  # noqa: PLC0415 - after the checks

    digest = hashlib.sha256()
    for finder in get_finders():
        for name, storage in sorted(finder.list([]), key=lambda found: found[0]):
            digest.update(f"{storage.path(name)} {Path(storage.path(name)).stat().st_mtime_ns}\n".encode())
    stamp = data / "static.stamp"
    if stamp.exists() and stamp.read_text() == digest.hexdigest():
        return
    call_command("collectstatic", verbosity=0, interactive=False, clear=True)
    stamp.write_text(digest.hexdigest())


def watch(data: Path, port: int, started: float, parent: int | None, ready: Callable[[str], object] | None) -> NoReturn:
    """Start the children, print the address, and wait until a child dies or the person stops it."""
    from config.filesystem_broker import return_taken  # noqa: PLC0415 - after the checks

    return_taken(data / "broker")
    with stopping_children() as children:
        with step("Web server and workers"):
            start_children(children, data, port)
            wait_until(lambda: answers(port), children, children[0])
            start_judge_worker(children, data)
        welcome(port, time.monotonic() - started)
        if ready is not None:
            ready(f"http://{HOST}:{port}/")
        while True:
            time.sleep(0.2)
            check_alive(children)
            if parent is not None and parent_was_asked_to_stop(parent):
                raise Stopped


def start_children(children: Children, data: Path, port: int) -> None:
    environment = environment_of_children(data)
    module = [sys.executable, "-m"]
    web = [*module, "gunicorn", "config.wsgi", "--bind", f"{HOST}:{port}", "--workers", "2"]
    web += ["--worker-class", "config.web_worker.Worker", "--threads", "4"]
    web += ["--graceful-timeout", "5", "--no-control-socket"]
    # Load before the fork: gunicorn kills a worker that loads the application for longer than its time-out of 30 s.
    web.append("--preload")
    web += ["--limit-request-line", "8190"]  # bytes; the application itself refuses long addresses
    web += ["--worker-tmp-dir", str(data / "tmp")]
    children.start("The web server", web, data / "log" / "web.log", environment)
    children.start("The worker", worker("webverdict", "webverdict-mail"), data / "log" / "worker.log", environment)
    # A separate process: if it died inside the worker, this would go unnoticed.
    beat = [*module, "celery", "--app", "config", "beat", "--pidfile", "", "--loglevel", "INFO"]
    children.start("The scheduler", beat, data / "log" / "scheduler.log", environment)


def start_judge_worker(children: Children, data: Path) -> None:
    """Start the judge worker after the web server answers, since people do not wait for it.

    A slice of a judge run takes minutes, and on SIGTERM the worker would wait for its end. On SIGQUIT it only waits for
    the replies to running calls; the next worker finds the remaining items in the database.
    """
    environment = environment_of_children(data) | {"REMAP_SIGTERM": "SIGQUIT"}
    command = worker("webverdict-judges")
    children.start("The judge worker", command, data / "log" / "judge-worker.log", environment)


def environment_of_children(data: Path) -> dict[str, str]:
    """Return the environment for children, which run in the folder of the packages: elsewhere a folder of the person
    could hide one of them. So paths that the person gave are made absolute.
    """
    given = {name: value for name, value in os.environ.items() if name.endswith("_FILE") or name == "RUBRIC_SCRIPTS"}
    absolute = {name: str(Path(value).absolute()) for name, value in given.items() if value}
    own = {"WEBVERDICT_DATA": str(data), "TMPDIR": str(data / "tmp"), "PYTHONUNBUFFERED": "1"}
    return {**os.environ, **absolute, **own}


def worker(*queues: str) -> list[str]:
    command = [sys.executable, "-m", "celery", "--app", "config", "worker", "--concurrency", "1"]
    command += ["--queues", ",".join(queues), "--hostname", f"{queues[0]}@%h", "--loglevel", "INFO"]
    return [*command, "--without-gossip", "--without-mingle", "--without-heartbeat"]


def answers(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://{HOST}:{port}/healthz", timeout=2) as response:
            return bool(response.status == 200)
    except (OSError, urllib.error.URLError):
        return False


def wait_until(condition: Callable[[], bool], children: list[Child], awaited: Child) -> None:
    """Wait while all children live and ``awaited`` makes progress: a busy machine may need minutes."""
    started = reported = progressed = time.monotonic()
    progress = awaited.progress()
    while not condition():
        check_alive(children)
        now = time.monotonic()
        if (latest := awaited.progress()) != progress:
            progress, progressed = latest, now
        if progress is not None and now - progressed > STALL_LIMIT:
            raise CannotRun(
                f"{awaited.name} does not answer and made no progress for {STALL_LIMIT:.0f} s. "
                f"The end of {awaited.log}:\n{awaited.last_lines()}"
            )
        if now - reported > REPORT_INTERVAL:
            reported = now
            waited = f"{awaited.name} is starting: {now - started:.0f} s so far. Its log is {awaited.log}"
            print(f"\n  {waited}", end="", flush=True)  # noqa: T201
        time.sleep(0.1)
    if reported > started:
        print(f"\n{'':<24}", end="", flush=True)  # noqa: T201


def welcome(port: int, seconds: float) -> None:
    from django.db import connections  # noqa: PLC0415 - after the checks

    lines = ["", f"WebVerdict is ready after {seconds:.1f} s:  http://{HOST}:{port}/", ""]
    lines += list_logins()
    connections.close_all()
    print("\n".join([*lines, "Ctrl-C stops it."]), flush=True)  # noqa: T201


def list_logins() -> list[str]:
    """Return the demo's logins as lines, or how to create the first account."""
    from django.contrib.auth import get_user_model  # noqa: PLC0415 - after the checks

    from annotation.demo import LOGINS  # noqa: PLC0415 - after the checks

    names = set(get_user_model().objects.values_list("username", flat=True))
    if not names:
        return [
            "No accounts yet. Create one: webverdict manage createsuperuser (checkout: manage.py createsuperuser)",
            "",
        ]
    logins = [f"  {name:<8} {password:<20} {role}" for name, password, role in LOGINS if name in names]
    return [*logins, ""] if logins else []


@contextmanager
def step(name: str) -> Iterator[None]:
    started = time.monotonic()
    print(f"{name:<24}", end="", flush=True)  # noqa: T201
    try:
        yield
    except BaseException:
        print(flush=True)  # noqa: T201
        raise
    print(f"{time.monotonic() - started:6.1f} s", flush=True)  # noqa: T201


def _settings() -> tuple[Path, bool]:
    """Return the data folder, and whether this is the production profile."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    import django  # noqa: PLC0415 - after the checks
    from django.conf import settings  # noqa: PLC0415 - after the checks
    from django.core.exceptions import ImproperlyConfigured  # noqa: PLC0415 - after the checks

    try:
        django.setup()
    except ImproperlyConfigured as error:
        raise CannotRun(str(error)) from None
    return settings.DATA, settings.PRODUCTION


if __name__ == "__main__":
    sys.exit(main())
