"""A Redis and a PostgreSQL of a test alone, which it may flush, stop and start as it likes."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn

import psycopg
import pytest
import redis
from django.conf import settings

from config.tests.waiting import wait_until
from conftest import in_ci


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _missing(what: str) -> NoReturn:
    """Leave the test out; CI has everything, so that there it fails."""
    (pytest.fail if in_ci() else pytest.skip)(what)


def caddyfile(site: str, web: str, uploads: str, plain: str = "") -> str:
    """Return ours for ``site`` (``plain``: without HTTPS), with these addresses of web servers.

    It is written as Caddy 2.6.2 of Debian 12 needs it.
    """
    text = (settings.BASE_DIR / "config" / "Caddyfile").read_text()
    version = subprocess.run(["caddy", "version"], capture_output=True, text=True, check=True).stdout
    number = tuple(int(part) for part in version.split()[0].removeprefix("v").split("."))
    if number < (2, 6, 4):
        text = text.replace("request_buffers 100KB", "buffer_requests\n\t\t\tmax_buffer_size 100KB")
    text = text.replace("{$PLAIN_HTTP:http://127.0.0.1:8081}", plain or f"http://127.0.0.1:{free_port()}")
    text = text.replace("{$SITE_HOST}", site).replace("{$WEBVERDICT_MAX_UPLOAD_BYTES}", "4294967296")
    return text.replace("web:8000", web).replace("uploads:8000", uploads)


class OwnRedis:
    """A redis-server without any file, on a free port."""

    def __init__(self) -> None:
        self.port = free_port()
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        command = ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_until(self._answers, "Redis answers")

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait(10)
            self._process = None

    def flush(self) -> None:
        with redis.Redis.from_url(self.url) as client:
            client.flushall()

    def _answers(self) -> bool:
        with suppress(redis.RedisError), redis.Redis.from_url(self.url) as client:
            return bool(client.ping())
        return False


@contextmanager
def own_redis(started: bool = True) -> Iterator[OwnRedis]:
    if shutil.which("redis-server") is None:
        _missing("no redis-server on the PATH (Debian: apt-get install redis-server)")
    server = OwnRedis()
    try:
        if started:
            server.start()
        yield server
    finally:
        server.stop()


class OwnPostgres:
    """A cluster in a folder of its own, on a free port, run by the user postgres where we are root."""

    def __init__(self, programs: Path, folder: Path) -> None:
        self.port = free_port()
        self.url = f"postgres://postgres@127.0.0.1:{self.port}/postgres"
        self._programs, self._folder = programs, folder
        self.data = folder / "data"
        self._run("initdb", "--pgdata", "data", "--username", "postgres", "--auth", "trust", "--no-sync")

    @property
    def pid(self) -> int:
        return int((self.data / "postmaster.pid").read_text().split()[0])

    def start(self) -> None:
        options = f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c fsync=off"
        self._run("pg_ctl", "start", "--wait", "--pgdata", "data", "--log", "log", "--options", options)

    def stop(self, mode: str = "fast") -> None:
        """``fast`` cuts every connection; ``immediate`` is as a crash."""
        self._run("pg_ctl", "stop", "--wait", "--pgdata", "data", "--mode", mode)

    def restart(self) -> None:
        self.stop("immediate")
        self.start()

    def running(self) -> bool:
        try:
            psycopg.connect(self.url, connect_timeout=3).close()
        except psycopg.Error:
            return False
        return True

    def _run(self, program: str, *arguments: str) -> None:
        """pg_ctl leaves its server behind, so its output goes to no pipe that somebody would wait for."""
        user = pwd.getpwnam("postgres") if os.geteuid() == 0 else None
        identity: dict[str, Any] = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": ()} if user else {}
        with (self._folder / "commands.log").open("ab") as log:
            subprocess.run(
                [str(self._programs / program), *arguments],
                cwd=self._folder,
                env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                check=True,
                timeout=60,
                **identity,
            )


@contextmanager
def own_postgres() -> Iterator[OwnPostgres]:
    """Not below a folder of pytest, which only root may enter."""
    programs = _newest_programs()
    if programs is None:
        _missing("no PostgreSQL programs found (Debian: apt-get install postgresql)")
    folder = Path(tempfile.mkdtemp(prefix="webverdict-postgres-"))
    try:
        if os.geteuid() == 0:
            shutil.chown(folder, "postgres", "postgres")
        server = OwnPostgres(programs, folder)
        server.start()
        yield server
    finally:
        with suppress(FileNotFoundError, ValueError, ProcessLookupError):
            os.kill(int((folder / "data" / "postmaster.pid").read_text().split()[0]), signal.SIGQUIT)
            wait_until(lambda: not (folder / "data" / "postmaster.pid").exists(), "PostgreSQL has stopped")
        shutil.rmtree(folder, ignore_errors=True)


def _newest_programs() -> Path | None:
    if found := shutil.which("pg_ctl"):
        return Path(found).resolve().parent
    folders = [folder for folder in Path("/usr/lib/postgresql").glob("*/bin") if (folder / "pg_ctl").exists()]
    return max(folders, key=lambda folder: float(folder.parent.name), default=None)
