"""Limits that a process sets for itself before it handles hostile input. Standard library only.

Three layers: resource limits (`ProcessLimits`), kernel restrictions (`kernel`: no network, no processes, only some
files), and a hook of the interpreter that refuses the same with a clear message. The hook alone does not stop a
determined attacker, so `confine` returns the restrictions that are missing.
"""

from __future__ import annotations

import os
import resource
import sys
import sysconfig
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from judges.scorers.rubric import kernel

MEGABYTE = 1024 * 1024
LONGEST_SCRIPT = 2_000_000  # bytes


@dataclass(frozen=True, slots=True)
class ProcessLimits:
    """``cpu`` and ``wall`` in seconds, ``memory`` (address space) and ``file`` in bytes, ``files`` open at once.

    The parent enforces ``wall``, the kernel everything else.
    """

    cpu: int = 600
    wall: float = 1800.0
    memory: int = 1536 * MEGABYTE
    file: int = 64 * MEGABYTE
    files: int = 64


def limit(limits: ProcessLimits) -> None:
    """Set the resource limits of this process; none can be raised again once `confine` was called."""
    wanted = {
        resource.RLIMIT_CPU: limits.cpu,
        resource.RLIMIT_AS: limits.memory,
        resource.RLIMIT_FSIZE: limits.file,
        resource.RLIMIT_NOFILE: limits.files,
        resource.RLIMIT_CORE: 0,
    }
    for which, most in wanted.items():
        hard = resource.getrlimit(which)[1]
        value = most if hard == resource.RLIM_INFINITY else min(most, hard)
        # The hard CPU limit is one second above the soft one, so that the signal of the soft one shows the cause.
        last = value + 1 if which == resource.RLIMIT_CPU and hard == resource.RLIM_INFINITY else value
        resource.setrlimit(which, (value, last))
    kernel.die_with_parent()


def confine(folder: Path, *, hook: bool) -> list[str]:
    """Block network, processes and files except ``folder`` and the interpreter's; return the missing restrictions.

    ``hook``: refuse them in the interpreter, too; for processes that run other people's Python.
    """
    readable, missing = find_library_paths(), []
    try:
        version = kernel.confine_files(readable, [folder])
        if version < kernel.WHOLE:
            missing.append(
                f"The kernel has Landlock version {version}; all features used here came with {kernel.WHOLE}."
            )
    except (kernel.Unavailable, OSError) as error:
        missing.append(f"Files are protected by the interpreter only, not by the kernel: {error}.")
    try:
        kernel.refuse_calls()
    except (kernel.Unavailable, OSError) as error:
        missing.append(f"Network and processes are blocked by the interpreter only, not by the kernel: {error}.")
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))
    if hook:
        _forget()
        sys.addaudithook(_Hook(readable, folder))
    return missing


def _forget() -> None:
    """Unload modules that were only needed until now; the hook then refuses to import them."""
    for name in [name for name in sys.modules if name.partition(".")[0] in MODULES]:
        del sys.modules[name]
    vars(kernel).pop("ctypes", None)


def find_library_paths() -> list[Path]:
    """Return the folders with code and tables of interpreter and system that everybody may read."""
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    paths = [Path(sysconfig.get_path(name)) for name in names]
    paths += [Path(sys.base_prefix) / "lib", Path(sys.base_prefix) / "lib64"]
    paths += [Path("/lib"), Path("/lib64"), Path("/usr/lib"), Path("/usr/lib64"), Path("/usr/local/lib")]
    paths += [Path("/usr/share/zoneinfo"), Path("/etc/localtime"), Path("/etc/ld.so.cache")]
    return list(dict.fromkeys(one.resolve() for one in paths if one.exists()))


FORBIDDEN = (  # events that begin with one of these
    "socket.", "subprocess.", "ctypes.", "os.fork", "os.exec", "os.spawn", "os.posix_spawn", "os.system", "pty.",
    "fcntl.", "os.kill", "signal.pthread_kill", "os.chmod", "os.chown", "os.lchown", "os.putenv", "mmap.", "resource.",
    "syslog.", "webbrowser.", "smtplib.", "ftplib.", "poplib.", "imaplib.", "telnetlib.", "urllib.", "winreg.",
    "msvcrt.", "sqlite3.enable", "sqlite3.load", "cpython._PySys_ClearAuditHooks",
)  # fmt: skip
MODULES = frozenset(
    {"ctypes", "_ctypes", "_posixsubprocess", "multiprocessing", "_multiprocessing", "cffi", "_cffi_backend"}
)
PATHS = frozenset({  # events whose first argument, or first two, are paths
    "os.listdir", "os.scandir", "os.walk", "os.fwalk", "os.remove", "os.rename", "os.link", "os.symlink", "os.mkdir",
    "os.rmdir", "os.truncate", "os.utime", "os.chdir", "os.setxattr", "os.getxattr", "os.listxattr", "os.removexattr",
    "os.mkfifo", "os.mknod", "sqlite3.connect", "glob.glob", "pathlib.Path.glob", "tempfile.mkstemp",
})  # fmt: skip
READING = frozenset({"os.listdir", "os.scandir", "os.walk", "os.fwalk", "os.chdir", "glob.glob", "pathlib.Path.glob"})
TWO_PATHS = frozenset({"os.rename", "os.link", "os.symlink"})
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


class AccessRefused(PermissionError):
    """An action that a script may not do; the message is for its author."""


class _Hook:
    def __init__(self, readable: Iterable[Path], folder: Path) -> None:
        self.folder = os.path.realpath(folder)
        self.readable = (*map(str, readable), self.folder)

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            self._open(*arguments)
        elif event == "import":
            self._import(*arguments[:2])
        elif event in PATHS:
            for path in arguments[: 2 if event in TWO_PATHS else 1]:
                self._check(event, path, writing=event not in READING)
        elif event.startswith(FORBIDDEN):
            raise AccessRefused(f"A rubric script may not use the network, processes or ctypes ({event}).")

    def _import(self, name: Any, file: Any) -> None:
        """Check a module by its name and by its file, because a file can be loaded under any name."""
        called = [*str(name).split("."), Path(os.fsdecode(file or "")).name.partition(".")[0]]
        if not MODULES.isdisjoint(called):
            raise AccessRefused(f"A rubric script may not import {name}.")

    def _open(self, path: Any, mode: Any, flags: Any) -> None:
        if isinstance(path, int):
            return
        writing = bool(flags & WRITING) if isinstance(flags, int) else True
        self._check("open", path, writing=writing)

    def _check(self, event: str, path: Any, *, writing: bool) -> None:
        if isinstance(path, int):
            return
        text = os.path.realpath(os.fsdecode(path if path else "."))
        roots = (self.folder,) if writing else self.readable
        if not any(text == root or text.startswith(root + os.sep) for root in roots):
            raise AccessRefused(f"A rubric script may not access {text} ({event}); it may only use its own folder.")
