"""Send a package in parts over connections that break: the protocol tus 1.0.0.

>>> with httpx2.Client(base_url="https://review.example.org", headers={"Authorization": "Bearer wv_..."}) as client:
...     path = Path("package.zip")
...     started = start(client, path, {"benchmark": "shops", "agent": "Careful Agent"})
...     send(client, started.address, path)  # call it again, in another process too, to continue
...     client.get(started.report)
"""

from __future__ import annotations

import base64
import hashlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import httpx2

PATH = "/api/v1/uploads/resumable"
VERSION = {"Tus-Resumable": "1.0.0"}
SMALLEST, LARGEST = 1 << 20, 8 << 20  # bytes of a part
PART_SECONDS = 1.0  # what a broken connection may cost
FIRST_PAUSE, LONGEST_PAUSE = 0.25, 30.0  # seconds between two attempts
PATIENCE = 600.0  # seconds without progress until the sender gives up
AGAIN = {408, 409, 429, 460, 500, 502, 503, 504, 507}  # what another attempt may cure

Progress = Callable[[int, int], None]


class Refused(Exception):
    """The server refused the request; ``problem`` is its answer (RFC 9457), empty if it has none."""

    def __init__(self, status: int, problem: dict[str, Any]) -> None:
        super().__init__(problem.get("detail") or f"The server answered {status}.")
        self.status, self.problem = status, problem


@dataclass(frozen=True, slots=True)
class Started:
    """Where the parts go, and where the report will be."""

    address: str
    report: str


def start(client: httpx2.Client, path: Path, fields: Mapping[str, str], *, patience: float = PATIENCE) -> Started:
    """Announce a package with the ``fields`` of `POST /uploads`. Raises as `send`."""
    named = {"filename": path.name, **fields}
    metadata = ",".join(f"{name} {_encode(value.encode())}" for name, value in named.items())
    headers = {**VERSION, "Upload-Length": str(path.stat().st_size), "Upload-Metadata": metadata}
    attempts = _Attempts(patience)
    # An upload whose answer was lost expires.
    while (answer := attempts.make(lambda: client.post(PATH, headers=headers))) is None:
        pass
    # Only the path: the token must not go to another host, or in clear text.
    return Started(httpx2.URL(answer.headers["Location"]).raw_path.decode(), answer.json()["report"])


def send(
    client: httpx2.Client,
    address: str,
    path: Path,
    *,
    progress: Progress = lambda done, total: None,
    patience: float = PATIENCE,
) -> None:
    """Send what the server does not have yet, until it has everything.

    Raises Refused, and httpx2.TransportError after ``patience`` seconds without progress.
    """
    total, size, attempts = path.stat().st_size, SMALLEST, _Attempts(patience)
    offset: int | None = None  # unknown: only the server knows what has arrived
    with path.open("rb") as file:
        while offset is None or offset < total:
            started = time.monotonic()
            answer = attempts.make(partial(_request, client, address, file, offset, size))
            if answer is None:
                offset, size = None, SMALLEST
                continue
            reached = int(answer.headers["Upload-Offset"])
            if offset is not None:
                attempts.succeed()
                rate = (reached - offset) / max(time.monotonic() - started, 0.001)
                size = min(max(int(rate * PART_SECONDS), SMALLEST), LARGEST)
            offset = reached
            progress(offset, total)


def cancel(client: httpx2.Client, address: str) -> None:
    """Delete an unfinished upload. Raises Refused and httpx2.TransportError."""
    answer = client.delete(address, headers=VERSION)
    if not answer.is_success:
        raise refusal(answer)


class _Attempts:
    """Attempts with pauses that grow until one succeeds."""

    def __init__(self, patience: float) -> None:
        self.patience = patience
        self.succeed()

    def succeed(self) -> None:
        self.failures, self.since = 0, time.monotonic()

    def make(self, request: Callable[[], httpx2.Response]) -> httpx2.Response | None:
        """Return a successful answer, or None after a pause. Raises Refused and httpx2.TransportError."""
        is_over, pause = time.monotonic() - self.since > self.patience, 0.0
        try:
            answer = request()
        except httpx2.TransportError:
            if is_over:
                raise
        else:
            if answer.is_success:
                return answer
            if is_over or answer.status_code not in AGAIN:
                raise refusal(answer)
            pause = min(read_pause(answer), LONGEST_PAUSE)
        time.sleep(max(pause, min(FIRST_PAUSE * 2**self.failures, LONGEST_PAUSE)))
        self.failures = min(self.failures + 1, 10)
        return None


def _request(client: httpx2.Client, address: str, file: BinaryIO, offset: int | None, size: int) -> httpx2.Response:
    """Send the part at the offset; ask for the offset if it is unknown."""
    if offset is None:
        return client.head(address, headers=VERSION)
    file.seek(offset)
    if not (body := file.read(size)):
        raise OSError(f"{file.name} has become shorter while it was sent.")
    checksum = f"sha256 {_encode(hashlib.sha256(body).digest())}"
    headers = {**VERSION, "Upload-Offset": str(offset), "Upload-Checksum": checksum}
    headers["Content-Type"] = "application/offset+octet-stream"
    return client.patch(address, content=body, headers=headers)


def read_pause(answer: httpx2.Response) -> float:
    """Return the seconds of Retry-After; 0 without it, or with a date."""
    given = answer.headers.get("Retry-After", "")
    return float(given) if given.isdecimal() else 0.0


def _encode(data: bytes) -> str:
    return base64.b64encode(data).decode()


def refusal(answer: httpx2.Response) -> Refused:
    is_problem = answer.headers.get("Content-Type", "").startswith("application/problem+json")
    return Refused(answer.status_code, answer.json() if is_problem and answer.content else {})
