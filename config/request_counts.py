"""Count requests, with their durations, in files that all processes of a web server share.

Each process writes a file of its own, and the sum of all files is the result. Files of processes that have ended stay,
so a sum never decreases while the server runs.
"""

from __future__ import annotations

import os
import shutil
import socket
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from django.conf import settings
from django.http import HttpRequest

PREFIX = f"webverdict-metrics-{socket.gethostname()}-"


def _make_folder() -> str:
    """Create the folder of this web server, which is named after its main process, and delete old ones."""
    memory = Path("/dev/shm")  # noqa: S108 - the folder below is checked
    root = memory if os.access(memory, os.W_OK) else Path(tempfile.gettempdir())
    for old in root.glob(f"{PREFIX}*"):
        if not Path("/proc", old.name.removeprefix(PREFIX)).exists() and Path("/proc/self").exists():
            shutil.rmtree(old, ignore_errors=True)
    main = os.getpid() if "--preload" in sys.argv else os.getppid()  # the process that loads the application
    folder = root / f"{PREFIX}{main}"
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    if folder.is_symlink() or folder.stat().st_uid != os.geteuid():
        return tempfile.mkdtemp(prefix=PREFIX)  # another user was there first
    return str(folder)


# prometheus_client reads this variable when it is imported. A server that forks later hands it to its processes.
FOLDER = os.environ.get("PROMETHEUS_MULTIPROC_DIR") or _make_folder()
Path(FOLDER).mkdir(parents=True, exist_ok=True)
os.environ["PROMETHEUS_MULTIPROC_DIR"] = FOLDER
from prometheus_client import CollectorRegistry, Counter, Histogram  # noqa: E402 - see above

# Requests that follow from disagreement, flags or draws are counted as those of a desk: nobody may learn of these.
DESKS = frozenset(
    [
        "flag",
        "adjudicate",
        "draw",
        "open-next",
        "adjudication",
        "open-adjudication",
        "decide",
        "adjudication-draft",
        "answer-flags",
        "leave-adjudication",
        "put-off-adjudication",
        "adjudicator-report",
        "submission-draw",
        "reopen-trajectory",
        "trajectory",
        "submit",
        "draft",
        "api-adjudications",
    ]
)
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
BUCKETS = (0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)  # seconds

_registry = CollectorRegistry()  # the answer is read from the files
REQUESTS = Counter(
    "webverdict_requests", "Requests that have ended.", ["route", "method", "status"], registry=_registry
)
SECONDS = Histogram(
    "webverdict_request_seconds",
    "Seconds until the last byte of an answer.",
    ["route"],
    buckets=BUCKETS,
    registry=_registry,
)


def count(request: HttpRequest, status: int, seconds: float) -> None:
    """Count a request. All labels have few values, so that nobody can fill the memory with invented ones."""
    match = request.resolver_match
    route = match.view_name if match else "static" if request.path.startswith(settings.STATIC_URL) else ""
    route = "desk" if route in DESKS else route
    method = request.method if request.method in METHODS else "other"
    with suppress(OSError):  # a full disk
        REQUESTS.labels(route or "none", method, f"{status // 100}xx").inc()
        SECONDS.labels(route or "none").observe(seconds)
