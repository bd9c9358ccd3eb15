"""Start, watch and stop the child processes of `make run`, so that all of them always end."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from types import FrameType
from typing import NoReturn

STOP_LIMIT = 10.0  # seconds for a job to finish; otherwise it runs again at the next start
LOG_LIMIT = 5 * 1024**2  # bytes; a longer log is renamed at the start
PR_SET_PDEATHSIG = 1  # linux/prctl.h
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class CannotRun(Exception):
    """Reason why the server does not start, in one line for the person at the terminal."""


class Stopped(BaseException):
    """Request of the person or the system to stop. Not an Exception, so that no handler catches it by mistake."""


class Child:
    """A server in its own process group, so that Ctrl-C reaches us first and its child processes can be found."""

    def __init__(self, name: str, command: list[str], log: Path, environment: dict[str, str], guard: int) -> None:
        self.name, self.log = name, log
        if log.exists() and log.stat().st_size > LOG_LIMIT:
            log.replace(log.with_suffix(".old.log"))
        with log.open("ab") as stream:
            self.process = subprocess.Popen(  # noqa: S603 - our own command
                command,
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=stream,
                env=environment,
                cwd=Path(__file__).parents[1],
                process_group=0,
                preexec_fn=partial(_prepare_child, guard),  # noqa: PLW1509 - this process has one thread
            )

    def signal_group(self, number: signal.Signals) -> None:
        _signal_group(self.process.pid, number)

    def progress(self) -> tuple[int, int] | None:
        """Return the processor time of the group, in clock ticks, and the size of the log; None outside of Linux."""
        if sys.platform != "linux":
            return None
        ticks = 0
        for stat in Path("/proc").glob("[0-9]*/stat"):
            with suppress(OSError):  # the process has ended in the meantime
                fields = stat.read_text().rpartition(")")[2].split()
                if int(fields[2]) == self.process.pid:
                    ticks += int(fields[11]) + int(fields[12])
        return ticks, self.log.stat().st_size

    def last_lines(self, count: int = 15) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-count:])


class Children(list[Child]):
    def __init__(self, guard: int) -> None:
        super().__init__()
        self._guard = guard

    def start(self, name: str, command: list[str], log: Path, environment: dict[str, str]) -> Child:
        """Start a child. Signals are blocked until it is listed; the child itself removes its block."""
        with _no_signals():
            self.append(Child(name, command, log, environment, self._guard))
        return self[-1]


@contextmanager
def stopping_children() -> Iterator[Children]:
    """Yield a list for children, and stop them at the end, even if this process is killed.

    A guard, another process, then does what `stop` does. Linux could instead send a signal to each child when its
    parent dies, but a Celery worker that gets it while it starts can hang.
    """
    guard = subprocess.Popen(  # noqa: S603 - our own command
        [sys.executable, "-P", __file__, str(STOP_LIMIT)], stdin=subprocess.PIPE, process_group=0
    )
    assert guard.stdin is not None  # noqa: S101 - it was asked for
    children = Children(guard.stdin.fileno())
    try:
        yield children
    finally:
        stop(children)
        # The guard ends children that we did not end because a signal came at a bad moment.
        guard.stdin.close()
        guard.wait()


def end_with_parent(limit: float) -> None:
    """Read the numbers of process groups until the parent has ended, then end these groups within ``limit`` seconds."""
    groups = [int(line) for line in sys.stdin]
    remaining = [group for group in groups if _signal_group(group, signal.SIGTERM)]
    deadline = time.monotonic() + limit
    while remaining and time.monotonic() < deadline:
        time.sleep(0.1)
        remaining = [group for group in remaining if _signal_group(group, 0)]
    for group in remaining:
        _signal_group(group, signal.SIGKILL)


def stop_on_signals() -> None:
    for number in SIGNALS:
        signal.signal(number, _stop)


def _stop(number: int, frame: FrameType | None) -> NoReturn:
    raise Stopped


def check_alive(children: list[Child]) -> None:
    for child in children:
        if (code := child.process.poll()) is not None:
            raise CannotRun(f"{child.name} died (exit code {code}). The end of {child.log}:\n{child.last_lines()}")


def stop(children: list[Child]) -> None:
    """Terminate each child, wait, then kill the rest of each group. A second Ctrl-C kills at once."""

    def at_once(number: int, frame: FrameType | None) -> None:
        for child in children:
            child.signal_group(signal.SIGKILL)

    for number in SIGNALS:
        signal.signal(number, at_once)
    for child in children:
        child.process.terminate()
    deadline = time.monotonic() + STOP_LIMIT
    for child in children:
        with suppress(subprocess.TimeoutExpired):
            child.process.wait(timeout=max(0.0, deadline - time.monotonic()))
        child.signal_group(signal.SIGKILL)
        child.process.wait()


def parent_was_asked_to_stop(parent: int) -> bool:
    """Return whether GNU make got SIGINT or SIGHUP. If only make gets one, it does not pass it on and waits for us.

    It waits inside its handler, where the signal is blocked, which Linux shows in /proc. Elsewhere return False.
    """
    try:
        status = Path(f"/proc/{parent}/status").read_text(encoding="utf-8")
    except OSError:
        return False
    blocked = next((int(line.split()[1], 16) for line in status.splitlines() if line.startswith("SigBlk:")), 0)
    return any(blocked & 1 << (number - 1) for number in (signal.SIGINT, signal.SIGHUP))


@contextmanager
def _no_signals() -> Iterator[None]:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _prepare_child(guard: int) -> None:
    """Tell the guard, between fork and exec. The guard sees the end of the pipe only after exec closes it here too."""
    os.write(guard, b"%d\n" % os.getpid())
    # A Python handler would only record the signal here, and exec would discard it: the child would not end.
    for number in SIGNALS:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)


def _signal_group(group: int, number: int) -> bool:
    """Send a signal, 0 for none; return whether the group still has a process."""
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return False
    return True


def die_with(parent: int) -> Callable[[], None]:
    """Build the function that a process calls to be stopped when `parent` is killed; Linux only."""
    prctl: Callable[..., int] | None = None
    if sys.platform == "linux":
        prctl = ctypes.CDLL(None).prctl

    def arrange() -> None:
        if prctl is not None:
            prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
            if os.getppid() != parent:
                os._exit(1)

    return arrange


if __name__ == "__main__":
    end_with_parent(float(sys.argv[1]))
