"""Child processes of `make run`: time limits of their start, and their end with the parent."""

import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
from django.conf import settings

from config import embedded
from config.processes import CannotRun, stopping_children
from config.tests.waiting import wait_until

LINUX = sys.platform == "linux"

# Starts one child and lives on; before the child runs its own program, it waits for the end of this one.
PARENT = """
import os, sys, time
from pathlib import Path
from config import processes

log, program, early = Path(sys.argv[1]), sys.argv[2], sys.argv[3] == "early"
parent, prepare, output = os.getpid(), processes._prepare_child, os.dup(1)

def wait_for_the_end(guard):
    prepare(guard)
    os.write(output, b"ready")
    while os.getppid() == parent:
        time.sleep(0.01)

processes.STOP_LIMIT = 1.0
processes.stop_on_signals()
if early:
    processes._prepare_child = wait_for_the_end
with processes.stopping_children() as children:
    children.start("It", [sys.executable, "-c", program], log, {}).process.wait()
"""
SLEEPING = "import time; print('asleep', flush=True); time.sleep(600)"
# As a Celery worker that was told to stop while it started.
HANGING = f"import os, signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); os.fork(); {SLEEPING}"


@pytest.fixture
def child(tmp_path):
    def start(program):
        environment = {"PATH": os.environ["PATH"]}
        return children.start("The server", [sys.executable, "-c", program], tmp_path / "log", environment)

    with stopping_children() as children:
        yield start


@pytest.mark.skipif(not LINUX, reason="only Linux shows the processor time of others in /proc")
def test_start_takes_as_long_as_it_needs_while_the_server_makes_progress(child, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(embedded, "STALL_LIMIT", 3.0)
    monkeypatch.setattr(embedded, "REPORT_INTERVAL", 1.0)
    busy = child("while True: pass")
    seconds = 4 * os.sysconf("SC_CLK_TCK")
    embedded.wait_until(lambda: busy.progress()[0] > seconds, [busy], busy)
    assert f"The server is starting: 1 s so far. Its log is {tmp_path / 'log'}\n" in capsys.readouterr().out


@pytest.mark.skipif(not LINUX, reason="only Linux shows the processor time of others in /proc")
def test_start_ends_when_the_server_does_nothing(child, monkeypatch):
    monkeypatch.setattr(embedded, "STALL_LIMIT", 2.0)
    idle = child("print('waits for nobody', flush=True); import time; time.sleep(600)")
    with pytest.raises(CannotRun, match=r"(?s)The server does not answer and made no progress for 2 s\..*for nobody"):
        embedded.wait_until(lambda: False, [idle], idle)


def test_start_ends_when_a_child_dies(child):
    dead = child("raise SystemExit('no database')")
    with pytest.raises(CannotRun, match=r"(?s)The server died \(exit code 1\).*no database"):
        embedded.wait_until(lambda: False, [dead], dead)


@pytest.mark.skipif(not LINUX, reason="the processes are found in /proc, which is Linux")
@pytest.mark.parametrize("program", [SLEEPING, HANGING])
def test_children_end_when_their_parent_is_killed(tmp_path, program):
    log = tmp_path / "log"
    with parent_of(log, program, "late") as parent:
        lines = 1 + program.count("fork")
        wait_until(lambda: log.exists() and log.read_text().count("asleep") == lines, "the child runs")
        group = next(each for each in children_of(parent.pid) if "-c" in command_of(each))
        parent.kill()
        wait_until(lambda: not members_of(group), "the child is gone")


@pytest.mark.skipif(not LINUX, reason="the processes are found in /proc, which is Linux")
def test_child_ends_when_its_parent_is_killed_just_before_exec(tmp_path):
    log = tmp_path / "log"
    with parent_of(log, SLEEPING, "early") as parent:
        assert parent.stdout.read(5) == b"ready"
        (child,) = [each for each in children_of(parent.pid) if "-P" not in command_of(each)]
        parent.kill()
        wait_until(lambda: not members_of(child), "the child is gone")


@contextmanager
def parent_of(log, *arguments):
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(log), *arguments], cwd=settings.BASE_DIR, stdout=subprocess.PIPE
    )
    with parent:
        yield parent
        parent.kill()


def members_of(group):
    return [
        folder.name
        for folder in Path("/proc").glob("[0-9]*")
        if is_alive(folder.name) and os.getpgid(int(folder.name)) == group
    ]


def command_of(pid):
    return Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")


def children_of(pid):
    return [
        int(folder.name)
        for folder in Path("/proc").glob("[0-9]*")
        if is_alive(folder.name) and f"PPid:\t{pid}\n" in (folder / "status").read_text()
    ]


def is_alive(pid):
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False
