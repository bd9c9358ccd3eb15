"""The client: any operation of the API by its id, and shorter methods for what a review needs."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import httpx2

from webverdict_client import resumable
from webverdict_client.operations import Operation, UnknownArgumentError, read_operations
from webverdict_client.resumable import Refused
from webverdict_client.rows import Rows

PAGE = 200  # rows of a request
TRIES = 6  # of a request that changes nothing, or that the server asks to repeat
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0  # seconds
BUSY = {429, 503}  # the server did nothing, and says when to come again
GONE = {502, 504}  # it may have done something
TIME_OUT = httpx2.Timeout(60.0, connect=10.0)
POLL = 1.0  # seconds
OPENAPI = {"Accept": "application/vnd.oai.openapi+json"}

Progress = Callable[[int, int], None]


class Upload:
    """A package that arrived: `wait` returns its report."""

    def __init__(self, client: Client, key: str) -> None:
        self.client, self.id = client, key

    def wait(self, timeout: float | None = None) -> dict[str, Any]:
        """Return the finished upload: its ``report``, and its ``submission`` (None after a check or a refusal).

        Raises TimeoutError after ``timeout`` seconds; the import goes on.
        """
        return self.client.wait("get_upload", lambda found: found["stage"] == "finished", timeout, id=self.id)


class Client:
    """A connection to a WebVerdict server, as the person whose token it has.

    ``url`` and ``token`` default to the environment's WEBVERDICT_URL and WEBVERDICT_TOKEN; ``token=""`` sends none. All
    methods raise `Refused` if the server refuses, with its problem details, and `httpx2.TransportError` if it cannot be
    reached.
    """

    def __init__(self, url: str = "", token: str | None = None, *, timeout: httpx2.Timeout = TIME_OUT) -> None:
        address = (url or os.environ.get("WEBVERDICT_URL", "")).rstrip("/")
        if not address:
            raise ValueError("State the address of the server: Client(url) or WEBVERDICT_URL.")
        token = os.environ.get("WEBVERDICT_TOKEN", "") if token is None else token
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self.http = httpx2.Client(base_url=address, headers=headers, timeout=timeout)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.http.close()

    # --- any operation --------------------------------------------------------------------------------------------

    @cached_property
    def operations(self) -> dict[str, Operation]:
        """The operations of this server by id."""
        answer = self._repeat(lambda: self.http.get("/api/schema", headers=OPENAPI), is_safe=True)
        return read_operations(answer.json())

    def call(self, operation: str, /, **arguments: Any) -> Any:
        """Call an operation, and return its JSON, or the bytes of a file, or None if there is no content.

        Arguments are parameters of the address, filters, and fields of the body; the value of a file is its path.
        Raises UnknownArgumentError before anything is sent.
        """
        with self._prepare(operation, arguments) as (found, request):
            answer = self._repeat(lambda: self.http.send(request()), is_safe=found.method == "GET")
        return _content(answer)

    def rows(self, operation: str, /, **arguments: Any) -> Rows:
        """Return all rows of a list that the server gives in pages."""
        found, number = Rows(), 1
        while True:
            page = self.call(operation, **arguments, page=number, page_size=PAGE)
            found += page["results"]
            if not page["next"]:
                return found
            number += 1

    def download(self, operation: str, to: str | Path, /, **arguments: Any) -> Path:
        """Write the file of an operation to ``to``, which stays unchanged if this fails; return its path."""
        target = Path(to)
        part = target.with_name(f".{target.name}.{os.getpid()}.part")
        try:
            with self._prepare(operation, arguments) as (_, request):
                self._repeat(lambda: self._save(request(), part), is_safe=True)
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)
        return target

    def wait(
        self, operation: str, is_done: Callable[[dict[str, Any]], bool], timeout: float | None = None, **arguments: Any
    ) -> dict[str, Any]:
        """Repeat an operation until ``is_done``, and return its last answer. Raises TimeoutError."""
        end = None if timeout is None else time.monotonic() + timeout
        while not is_done(found := self.call(operation, **arguments)):
            if end is not None and time.monotonic() >= end:
                raise TimeoutError(f"{operation} was not done within {timeout:g} s.")
            time.sleep(POLL)
        return dict(found)

    # --- a review -------------------------------------------------------------------------------------------------

    def upload(
        self,
        path: str | Path,
        *,
        benchmark: str,
        agent: str,
        state: str | Path | None = None,
        progress: Progress = lambda done, total: None,
        **options: bool | int,
    ) -> Upload:
        """Send a package; continue after connection failures. ``options`` are other fields of `upload_package`.

        ``state`` is a file that remembers the unfinished upload: the same call in another process continues it.
        """
        package, remembered = Path(path), Path(state) if state else None
        fields = {"benchmark": str(benchmark), "agent": str(agent)} | {
            name: json.dumps(value) for name, value in options.items()
        }
        found = package.stat()
        what = {"file": str(package.resolve()), "size": found.st_size, "changed": found.st_mtime_ns}
        what |= {"url": str(self.http.base_url)} | fields
        started = _recall(remembered, what)
        for is_last in (started is None, True):
            if started is None:
                started = resumable.start(self.http, package, fields)
                _remember(remembered, what, started)
            try:
                resumable.send(self.http, started.address, package, progress=progress)
                break
            except Refused as refused:  # the remembered upload is over, or was given up
                if is_last or refused.status not in {404, 410}:
                    raise
                started = None
        if remembered is not None:
            remembered.unlink(missing_ok=True)
        assert started is not None  # noqa: S101 - for type checking
        return Upload(self, started.report.rstrip("/").rpartition("/")[2])

    def labels(self, submission: int) -> Rows:
        """Return every label of a frozen submission with its revisions."""
        return self.rows("list_labels", id=submission)

    def verdicts(self, submission: int) -> Rows:
        """Return the final verdicts of a frozen submission."""
        return self.rows("list_verdicts", id=submission)

    def judgments(self, judge_run: int) -> Rows:
        return self.rows("list_judgments", id=judge_run)

    def wait_for_run(self, judge_run: int, timeout: float | None = None) -> dict[str, Any]:
        """Return a judge run when it has ended, or waits for a person: then ``stopped`` has the reason.

        Raises TimeoutError; the run goes on.
        """
        ends = ("finished_at", "cancelled_at", "paused_at", "stopped")
        return self.wait("get_judge_run", lambda found: any(found[end] for end in ends), timeout, id=judge_run)

    def freeze(self, submission: int) -> None:
        self.call("freeze_submission", id=submission)

    def evidence(self, submission: int, to: str | Path) -> Path:
        """Write the signed evidence bundle of a submission."""
        return self.download("download_evidence", to, id=submission)

    # --- requests -------------------------------------------------------------------------------------------------

    @contextmanager
    def _prepare(
        self, name: str, arguments: Mapping[str, Any]
    ) -> Iterator[tuple[Operation, Callable[[], httpx2.Request]]]:
        if name not in self.operations:
            raise UnknownArgumentError(f"This server has no operation {name}. `client.operations` has all.")
        operation = self.operations[name]
        path, query, body = operation.arrange(arguments)
        with ExitStack() as opened:
            paths = {field: Path(body.pop(field)) for field in operation.files & body.keys()}
            files = {field: opened.enter_context(file.open("rb")) for field, file in paths.items()}

            def build() -> httpx2.Request:
                for file in files.values():
                    file.seek(0)
                if operation.is_form:
                    data = {field: v if isinstance(v, str) else json.dumps(v) for field, v in body.items()}
                    return self.http.build_request(operation.method, path, params=query, data=data, files=files)
                sent = body if body or operation.body else None
                return self.http.build_request(operation.method, path, params=query, json=sent)

            yield operation, build

    def _repeat(self, request: Callable[[], httpx2.Response], *, is_safe: bool) -> httpx2.Response:
        """Return a successful answer; repeat what did nothing, or what may be repeated."""
        for number in range(TRIES):
            is_last, pause = number == TRIES - 1, min(FIRST_PAUSE * 2**number, LONGEST_PAUSE)
            try:
                answer = request()
            except httpx2.TransportError as error:
                if is_last or not (is_safe or isinstance(error, httpx2.ConnectError)):
                    raise
            else:
                if answer.is_success:
                    return answer
                again = answer.status_code in BUSY or (is_safe and answer.status_code in GONE)
                if is_last or not again:
                    raise resumable.refusal(answer)
                pause = max(pause, min(resumable.read_pause(answer), LONGEST_PAUSE))
            time.sleep(pause)
        raise AssertionError  # the last try returns or raises

    def _save(self, request: httpx2.Request, part: Path) -> httpx2.Response:
        answer = self.http.send(request, stream=True)
        try:
            if not answer.is_success:
                answer.read()
                return answer
            with part.open("wb") as file:
                for chunk in answer.iter_bytes():
                    file.write(chunk)
        finally:
            answer.close()
        return answer


def _content(answer: httpx2.Response) -> Any:
    if answer.status_code == 204 or not answer.content:
        return None
    kind = answer.headers.get("Content-Type", "").partition(";")[0]
    return answer.json() if kind == "application/json" else answer.content


def _remember(file: Path | None, what: Mapping[str, Any], started: resumable.Started) -> None:
    if file is not None:
        file.write_text(json.dumps({"upload": what, "address": started.address, "report": started.report}))


def _recall(file: Path | None, what: Mapping[str, Any]) -> resumable.Started | None:
    """Return the remembered upload if it is the same one."""
    try:
        found = json.loads(file.read_text()) if file is not None else {}
    except (OSError, ValueError):
        return None
    return resumable.Started(found["address"], found["report"]) if found.get("upload") == dict(what) else None
