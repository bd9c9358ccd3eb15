"""Child processes of `make run`: time limits of their start, and their end with the parent."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings

from config import embedded
from config.processes import CannotRun, Child
from config.tests.waiting import wait_until

LINUX = sys.platform == "linux"

# Ends with one C call that runs `die_with` and then sleeps, so that no Python instruction is left before exec.
PARENT = """
import ctypes, functools, operator, os, sys
from pathlib import Path
from config import processes

processes.stop_on_signals()
die_with = processes.die_with
ready = functools.partial(os.write, os.dup(1), b"ready")
nap = functools.partial(ctypes.PyDLL(None).sleep, 20)
processes.die_with = lambda parent: functools.partial(list, map(operator.call, [die_with(parent), ready, nap]))
processes.Child("It", [sys.executable, "-c", "import time; time.sleep(600)"], Path(sys.argv[1]), {"MARK": sys.argv[1]})
"""


@pytest.fixture
def child(tmp_path):
    children = []

    def start(program):
        environment = {"PATH": os.environ["PATH"]}
        children.append(Child("The server", [sys.executable, "-c", program], tmp_path / "log", environment))
        return children[0]

    yield start
    for each in children:
        each.signal_group(signal.SIGKILL)
        each.process.wait(10)


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


@pytest.mark.skipif(not LINUX, reason="only Linux can tell a child that its parent was killed")
def test_child_dies_when_its_parent_is_killed_just_before_exec(tmp_path):
    log = tmp_path / "log"
    parent = subprocess.Popen([sys.executable, "-c", PARENT, str(log)], cwd=settings.BASE_DIR, stdout=subprocess.PIPE)
    assert parent.stdout.read(5) == b"ready"
    (child,) = children_of(parent.pid)
    parent.kill()
    parent.wait(10)
    # The child holds the other end until it dies; its program would keep it open for ten minutes.
    wait_until(lambda: not is_alive(child), "the child is gone")
    parent.stdout.close()
    assert not log.read_text()


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
