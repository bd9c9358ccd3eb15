"""OpenAI's Batch API: files of requests that an endpoint answers within 24 hours at half the price.

Source: OpenAI's API reference for files and batches. A request is a line ``{"custom_id", "method", "url", "body"}``, a
result is a line ``{"custom_id", "response": {"status_code", "body"} or null, "error": {"code", "message"} or null}``.
Does not use Django.
"""

from __future__ import annotations

import asyncio
import json
import zlib
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from typing import IO, Any

import httpx2

from judges.llm import Endpoint, Patience
from judges.llm.apis.base import ReplyBody, add_counts, read_count, unwrap
from judges.llm.apis.chat import API as CHAT
from judges.llm.transport import GZIP, MAX_REPLY, NO_KEY, FailedAttempt, Transport, _read_error, _TooLarge, _unpack
from judges.llm.wire import Encoded

MOST_CALLS = 50_000  # of one file
MOST_BYTES = 200_000_000  # of one file
TARGET = "/v1/chat/completions"
WINDOW = "24h"
FILE_SECONDS = 3600.0  # for one file, up or down
LONGEST_LINE = 2 * MAX_REPLY  # bytes of a result
LARGEST_FILE = 8 * 1024**3  # bytes of a decompressed file of results
PIECE = 1024 * 1024  # bytes that are decompressed at once
PAGE = 100  # batches in one answer, the most that OpenAI allows
CLOCKS = 3600  # seconds that the clocks of endpoint and database may differ
NO_BATCHES = (404, 405, 501)
UNANSWERED = frozenset({"validating", "in_progress"})  # states in which a batch can be cancelled
ENDED = frozenset({"completed", "failed", "expired", "cancelled"})


Result = tuple[str, str, ReplyBody | FailedAttempt]  # custom id, line of the result, parsed result


class BatchFailed(Exception):
    """A request of the Batch API that failed; the message is for the maintainer.

    ``status`` is None if there was no answer. ``again``: a later attempt may succeed.
    """

    def __init__(self, message: str, *, status: int | None = None, again: bool = True) -> None:
        super().__init__(message)
        self.status, self.again = status, again

    @property
    def uncertain(self) -> bool:
        """Return True if the endpoint may have done what was requested."""
        return self.status is None or self.status >= 500


@dataclass(frozen=True, slots=True)
class BatchState:
    """A batch as its endpoint describes it; ``errors`` are those of its file.

    ``answered`` is the number of requests with a result or an error, None if it is not stated.
    """

    id: str
    status: str
    file_id: str = ""
    token: str = ""
    created_at: float = 0.0
    output_file: str = ""
    error_file: str = ""
    errors: tuple[str, ...] = ()
    answered: int | None = None


class BatchApi(Transport):
    """Files and batches of one endpoint. Methods raise `BatchFailed`, and the system's error for our own files."""

    def __init__(self, endpoint: Endpoint, patience: Patience) -> None:
        super().__init__(endpoint, patience)
        self._most = patience.timeout
        self._base = endpoint.base_url.rstrip("/")
        self._headers = {
            "Authorization": f"Bearer {endpoint.key or NO_KEY}",
            "Accept-Encoding": "identity",
            "User-Agent": "WebVerdict",
        }
        # Without the limit of `Transport` for the size of a body: results are written to a file.
        self._files = httpx2.AsyncClient(timeout=patience.timeout, follow_redirects=False)

    async def close(self) -> None:
        await self._files.aclose()
        await super().close()

    async def upload(self, file: IO[bytes]) -> str:
        """Upload a file of requests; return its id."""
        file.seek(0)
        named = {"file": ("calls.jsonl", file, "application/jsonl")}
        said = await self._ask("POST", "/files", FILE_SECONDS, files=named, data={"purpose": "batch"})
        return _read_id(said, "file")

    async def create(self, file_id: str, token: str) -> BatchState:
        asked = {
            "input_file_id": file_id,
            "endpoint": TARGET,
            "completion_window": WINDOW,
            "metadata": {"webverdict": token},
        }
        return _read_state(await self._ask("POST", "/batches", json=asked))

    async def get(self, batch_id: str) -> BatchState:
        return _read_state(await self._ask("GET", f"/batches/{batch_id}"))

    async def cancel(self, batch_id: str) -> None:
        await self._ask("POST", f"/batches/{batch_id}/cancel")

    async def find(self, token: str, file_id: str, created_at: float) -> BatchState | None:
        """Return the batch with this token, or with this file if the endpoint stores no metadata.

        Endpoints list their batches from the newest to the oldest; those before ``created_at`` (Unix time) are not
        looked at.
        """
        async for state in self._list():
            if state.token == token or (file_id and state.file_id == file_id):
                return state
            if state.created_at and state.created_at < created_at - CLOCKS:
                return None
        return None

    async def check(self) -> None:
        """Raise BatchFailed unless the endpoint lists batches."""
        await self._ask("GET", "/batches", params={"limit": 1})

    async def _list(self) -> AsyncIterator[BatchState]:
        after: dict[str, str] = {}
        while True:
            said = await self._ask("GET", "/batches", params={"limit": PAGE} | after)
            rows = said.get("data")
            states = [_read_state(row) for row in rows] if isinstance(rows, list) else []
            for state in states:
                yield state
            if not states or not said.get("has_more") or after.get("after") == states[-1].id:
                return
            after = {"after": states[-1].id}

    async def download(self, file_id: str, into: IO[bytes]) -> None:
        """Write a file of results to ``into``; raise BatchFailed if it is compressed and not complete."""
        unpacker = _Unpacker(into)
        try:
            async with asyncio.timeout(FILE_SECONDS):
                url = f"{self._base}/files/{file_id}/content"
                async with self._files.stream("GET", url, headers=self._headers) as response:
                    if response.status_code != 200:
                        raise self._fail(response.status_code, await _read_start(response), response.headers)
                    async for chunk in response.aiter_raw():
                        unpacker.write(chunk)
                unpacker.close()
        except (TimeoutError, httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise self._find_reason(error) from None
        except zlib.error as error:
            raise BatchFailed(f"The endpoint {self._endpoint.name} gave a damaged compressed file: {error}.") from None
        into.seek(0)

    async def _ask(self, method: str, path: str, seconds: float = 0.0, **options: Any) -> dict[str, Any]:
        try:
            async with asyncio.timeout(seconds or self._most):
                url = f"{self._base}{path}"
                response = await self._http.request(method, url, headers=self._headers, **options)
                text = _unpack(response.content)
        except (TimeoutError, _TooLarge, httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise self._find_reason(error) from None
        if response.status_code not in (200, 201):
            raise self._fail(response.status_code, text, response.headers)
        try:
            said = json.loads(text)
        except (ValueError, RecursionError):
            said = None
        if not isinstance(said, dict):
            raise BatchFailed(f"The endpoint {self._endpoint.name} gave an answer that is not a JSON object.")
        return said

    def _find_reason(self, error: Exception) -> BatchFailed:
        why = self._hide_key(str(error))[:300] or type(error).__name__
        return BatchFailed(f"The endpoint {self._endpoint.name} cannot be reached: {why.rstrip('.')}.")

    def _fail(self, status: int, text: str, headers: Mapping[str, str]) -> BatchFailed:
        failed = self._build_failure(status, _read_error(self._hide_key(text)), headers)
        return BatchFailed(failed.message, status=status, again=failed.again)

    def read_results(self, file: IO[bytes]) -> Iterator[Result]:
        """Yield the results of a file; lines that are none, or longer than `LONGEST_LINE`, are skipped."""
        for read in iter(lambda: file.readline(LONGEST_LINE), b""):
            line = self._hide_key(read.decode("utf-8", "replace").strip())
            if (found := self.read_result(line)) is not None:
                yield found[0], line, found[1]

    def read_result(self, line: str) -> tuple[str, ReplyBody | FailedAttempt] | None:
        """Return the custom id of a result and what it says; None if the line is no result."""
        try:
            whole = json.loads(line)
        except (ValueError, RecursionError):
            return None
        if not isinstance(whole, dict):
            return None
        name, response, error = str(whole.get("custom_id") or ""), whole.get("response"), whole.get("error")
        status = response.get("status_code") if isinstance(response, dict) else None
        if isinstance(response, dict) and isinstance(status, int) and status >= 100:
            body = response.get("body")
            text = body if isinstance(body, str) else json.dumps(body, ensure_ascii=False)
            return name, self.read(CHAT, status, text, {})
        error = error if isinstance(error, dict) else {}
        said = str(error.get("message") or error.get("code") or "It has neither a response nor an error.")[:500]
        return name, FailedAttempt(f"The batch gave no reply: {said}", again=True, unpaid=True)


def _read_id(said: Mapping[str, Any], what: str) -> str:
    found = said.get("id")
    if not isinstance(found, str) or not 0 < len(found) <= 200:
        raise BatchFailed(f"The answer of the endpoint is not a {what}: it has no id.")
    return found


def _read_state(said: Any) -> BatchState:
    said = said if isinstance(said, dict) else {}
    metadata, errors, created = said.get("metadata"), said.get("errors"), said.get("created_at")
    listed = errors.get("data") if isinstance(errors, dict) else errors
    return BatchState(
        id=_read_id(said, "batch"),
        status=str(said.get("status") or ""),
        file_id=str(said.get("input_file_id") or ""),
        token=str(metadata.get("webverdict") or "") if isinstance(metadata, dict) else "",
        created_at=float(created) if isinstance(created, int | float) else 0.0,
        output_file=str(said.get("output_file_id") or ""),
        error_file=str(said.get("error_file_id") or ""),
        answered=_read_answered(unwrap(said, "request_counts")),
        errors=tuple(
            str(each.get("message") or each.get("code")) if isinstance(each, dict) else str(each)
            for each in (listed if isinstance(listed, list) else [])
        ),
    )


def _read_answered(counts: Mapping[str, Any]) -> int | None:
    return add_counts(read_count(counts.get("completed")), read_count(counts.get("failed")))


class _Unpacker:
    """Writes a body to a file. We request it uncompressed; gzip is still decompressed, up to `LARGEST_FILE` bytes."""

    def __init__(self, into: IO[bytes]) -> None:
        self._into, self._start, self._size = into, b"", 0
        self._unzip: Any = None

    def write(self, chunk: bytes) -> None:
        if self._unzip is None and len(self._start) < len(GZIP):
            self._start += chunk
            if len(self._start) < len(GZIP):
                return
            chunk = self._start
            self._unzip = zlib.decompressobj(wbits=31) if chunk.startswith(GZIP) else None
        if self._unzip is None:
            self._into.write(chunk)
            return
        while chunk:
            piece = self._unzip.decompress(chunk, PIECE)
            self._size += len(piece)
            if self._size > LARGEST_FILE:
                raise zlib.error(f"it has more than {LARGEST_FILE:,} bytes")
            self._into.write(piece)
            chunk = self._unzip.unconsumed_tail

    def close(self) -> None:
        """Raise zlib.error if the end is missing."""
        if self._unzip is None:
            self._into.write(self._start if len(self._start) < len(GZIP) else b"")
        elif not self._unzip.eof:
            raise zlib.error("its end is missing")


async def _read_start(response: httpx2.Response) -> str:
    read = b""
    async for chunk in response.aiter_raw():
        read += chunk
        if len(read) > 65_536:
            break
    return read.decode("utf-8", "replace")


# --- lines -----------------------------------------------------------------------------------------------------------


def measure_line(name: str, content: Encoded) -> int:
    return len(_begin_line(name)) + content.length + 2


async def write_line(file: IO[bytes], name: str, content: Encoded) -> None:
    """Write a request with the custom id ``name``; the images of ``content`` are freed as they are written."""
    file.write(_begin_line(name))
    async for piece in content.pieces():
        file.write(piece)
    file.write(b"}\n")


def _begin_line(name: str) -> bytes:
    head = json.dumps({"custom_id": name, "method": "POST", "url": TARGET}, separators=(",", ":"))
    return f'{head[:-1]},"body":'.encode()
