"""One attempt at one call over the network; the result is a reply body, or a failure that says whether to retry.

No behaviour of an endpoint raises an exception. The key never appears in a message, a log or an exception.
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
import re
import time
import zlib
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any

import httpx2
from openai import APIConnectionError, APIStatusError, AsyncOpenAI, Omit, OpenAIError

from judges.llm import Endpoint, NotConfigured, Patience
from judges.llm.apis.base import Api, ReplyBody, UnreadableReply, build_key_pattern, dicts, is_filter, strip_unstorable
from judges.llm.wire import Encoded

MAX_REPLY = 8 * 1024 * 1024  # bytes; the longest replies of models have some 100 kB
LONGEST_WAIT = 600.0  # seconds that an endpoint may make us wait
LONGEST_RESET = 60.0  # the same if the exhausted limit is unknown
RATE_LIMIT = re.compile(r"(?:x|anthropic)-ratelimit-(?:(limit|remaining|reset)(.*)|(.*)-(limit|remaining|reset))")
UNITS = (86_400.0, 3600.0, 60.0, 1.0, 0.001)
DURATION = re.compile(
    r"(?=\d)(?:(\d{1,4})d)?(?:(\d{1,5})h)?(?:(\d{1,6})m(?!s))?(?:(\d{1,8}(?:\.\d{1,9})?)s)?(?:(\d{1,9}(?:\.\d{1,9})?)ms)?"
)
A_YEAR_1973, A_YEAR_2286 = 1e8, 1e10  # Unix times: smaller numbers are seconds to wait, larger ones are in milliseconds
AGAIN = (408, 409, 425, 429)  # and every status from 500
GZIP = b"\x1f\x8b"
NO_KEY = "none"  # sent to endpoints without a key, since the header is required
INVALID_KEY = "API_KEY_INVALID"  # Gemini's reason in an answer 400

# These loggers write addresses at level INFO and headers below it.
for _name in ("openai", "httpx2", "httpcore2"):
    logging.getLogger(_name).setLevel(logging.WARNING)


@dataclass(frozen=True, slots=True)
class FailedAttempt:
    """An attempt without a reply. ``wait`` is the time in seconds that the endpoint states, or None.

    If the endpoint refused the request itself (``refused``), ``param`` and ``message`` are from its answer.
    ``limited``: a rate limit was exceeded.
    """

    message: str
    again: bool
    wait: float | None = None
    refused: bool = False
    param: str = ""
    unpaid: bool = False
    limited: bool = False


class _TooLarge(Exception):
    pass


class _Bounded(httpx2.AsyncByteStream):
    """A body stream that raises _TooLarge if it has more than `MAX_REPLY` bytes."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for chunk in self._stream:
            size += len(chunk)
            if size > MAX_REPLY:
                raise _TooLarge
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()


async def _bound(response: httpx2.Response) -> None:
    """Limit the size of a body, and let only `_unpack` decompress it: a megabyte may decompress to a gigabyte."""
    response.stream = _Bounded(response.stream)
    response.headers.pop("content-encoding", None)


class _Plain(AsyncOpenAI):
    """The SDK client, without the organisation, project and headers that it would read from the environment."""

    @property
    def default_headers(self) -> dict[str, Any]:
        return {
            "Accept": "application/json",
            "Accept-Encoding": "identity",
            "Content-Type": "application/json",
            "User-Agent": "WebVerdict",
        }


class Transport:
    """The connections of one client to its endpoint. Raises NotConfigured for an invalid address or key."""

    def __init__(self, endpoint: Endpoint, patience: Patience, clock: Callable[[], float] = time.time) -> None:
        self._endpoint, self._patience, self._clock = endpoint, patience, clock
        self._secret = build_key_pattern(endpoint.key)
        self.headers: Mapping[str, str] = {}  # of the last response
        if not endpoint.base_url.startswith(("http://", "https://")):
            raise NotConfigured(f"The endpoint {endpoint.name} has no address. Set it in JUDGE_ENDPOINTS.")
        limits = httpx2.Limits(max_connections=None, max_keepalive_connections=patience.concurrency)
        try:
            self._http = httpx2.AsyncClient(
                event_hooks={"response": [_bound]}, limits=limits, timeout=patience.timeout, follow_redirects=False
            )
            self._client = _Plain(
                api_key=endpoint.key or NO_KEY, base_url=endpoint.base_url, max_retries=0, http_client=self._http
            )
        except (httpx2.InvalidURL, ValueError):
            raise NotConfigured(
                f"The address of the endpoint {endpoint.name} is not valid. Correct it in JUDGE_ENDPOINTS."
            ) from None

    async def close(self) -> None:
        await self._client.close()

    async def post(self, content: Encoded, sent: Callable[[], None]) -> ReplyBody | FailedAttempt:
        """Request one completion; ``sent`` is called when the whole request has been sent.

        The attempt takes ``timeout`` seconds at most: a body that arrives byte by byte would restart any other limit.
        """
        try:
            async with asyncio.timeout(self._patience.timeout):
                return self._read(await self._request(content, sent), content.api)
        except TimeoutError:
            return FailedAttempt(
                f"The endpoint did not complete its reply within {self._patience.timeout:g} seconds.", again=True
            )
        except _TooLarge:
            return FailedAttempt(f"The reply has more than {MAX_REPLY:,} bytes.", again=True)
        except APIConnectionError as error:
            why = self._hide_key(str(error.__cause__ or ""))[:300] or type(error.__cause__ or error).__name__
            return FailedAttempt(
                f"The endpoint {self._endpoint.name} cannot be reached: {why.rstrip('.')}.", again=True
            )
        except (OpenAIError, httpx2.HTTPError, httpx2.InvalidURL) as error:
            return FailedAttempt(f"The call could not be made ({type(error).__name__}).", again=False)

    async def _request(self, content: Encoded, sent: Callable[[], None]) -> httpx2.Response:
        async def pieces() -> AsyncIterator[bytes]:
            async for piece in content.pieces():
                yield piece
            sent()

        headers: dict[str, str | Omit] = {"Content-Length": str(content.length)}
        if content.api.build_headers is not None:
            headers |= {"Authorization": Omit(), **content.api.build_headers(self._endpoint.key or NO_KEY)}
        try:
            return await self._client.post(
                content.api.build_path(content.request, self._endpoint.base_url),
                cast_to=httpx2.Response,
                content=pieces(),
                options={"headers": headers},
            )
        except APIStatusError as error:
            return error.response

    def _read(self, response: httpx2.Response, api: Api) -> ReplyBody | FailedAttempt:
        self.headers = response.headers
        return self.read(api, response.status_code, self._hide_key(_unpack(response.content)), response.headers)

    def read(self, api: Api, status: int, text: str, headers: Mapping[str, str]) -> ReplyBody | FailedAttempt:
        """Return what an answer says; ``text`` is its body without our key."""
        if status == 200:
            try:
                return api.parse(text)
            except UnreadableReply as problem:
                return FailedAttempt(self._hide_key(str(problem)), again=True)
        error = _read_error(text)
        if status == 400 and is_filter(error):
            return api.parse(json.dumps({"error": error}))
        return self._build_failure(status, error, headers)

    def _build_failure(self, status: int, error: Mapping[str, Any], headers: Mapping[str, str]) -> FailedAttempt:
        said = strip_unstorable(str(error.get("message") or ""))[:500]
        named = f"The endpoint {self._endpoint.name} answered {status}"
        message = f"{named}: {said}" if said else f"{named}."
        if status in (401, 403) or (status == 400 and INVALID_KEY in _read_details(error, "reason")):
            return FailedAttempt(f"{message} Check the key in {self._endpoint.variable}.", again=False, unpaid=True)
        if status < 400:
            return FailedAttempt(f"{named} and redirects elsewhere; set its final address in JUDGE_ENDPOINTS.", False)
        if "insufficient_quota" in (error.get("code"), error.get("type")):
            return FailedAttempt(message, again=False, unpaid=True)
        again = status in AGAIN or status >= 500
        param = str(error.get("param") or "")
        limited = status == 429
        wait = read_waiting_time(headers, self._clock(), limited) if again else None
        if again and wait is None and (delays := _read_details(error, "retryDelay")):
            wait = min(_parse_seconds(delays[0], self._clock()), LONGEST_WAIT) or None
        return FailedAttempt(message, again, wait, status in (400, 422), param, unpaid=limited, limited=limited)

    def _hide_key(self, text: str) -> str:
        """Return the text without our key, in any JSON spelling, in case an endpoint repeats it."""
        return self._secret.sub("[key]", text) if self._secret else text


def _unpack(content: bytes) -> str:
    """Return the text of a body. We request it uncompressed; gzip is still decompressed, up to `MAX_REPLY` bytes."""
    if content.startswith(GZIP):
        try:
            content = (unpacker := zlib.decompressobj(wbits=31)).decompress(content, MAX_REPLY)
        except zlib.error:
            return "(compressed, and damaged)"
        if unpacker.unconsumed_tail:
            raise _TooLarge
    return content.decode("utf-8", "replace")


def _read_error(text: str) -> dict[str, Any]:
    try:
        whole = json.loads(text)
    except (ValueError, RecursionError):
        return {"message": " ".join(text[:2000].split())[:300]}
    whole = whole[0] if isinstance(whole, list) and whole else whole  # Gemini's compatible endpoint
    found = whole.get("error", whole) if isinstance(whole, dict) else whole
    if not isinstance(found, dict):
        return {"message": str(found)[:300]}
    return found if found.get("message") else {**found, "message": str(found.get("detail") or "")}


def _read_details(error: Mapping[str, Any], name: str) -> list[str]:
    """Return the texts with a name in the details of an error of Gemini."""
    return [said for one in dicts(error.get("details")) if isinstance(said := one.get(name), str)]


def read_waiting_time(headers: Mapping[str, str], now: float, limited: bool = False) -> float | None:
    """Return the time to wait in seconds, up to `LONGEST_WAIT`, or None if not stated; ``now`` is Unix time.

    Retry-After is a number of seconds or a date. If a ``limited`` answer has none: until the exhausted limits are
    reset. If those are unknown: until the last limit is reset, but at most `LONGEST_RESET`.
    """
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        with suppress(ValueError):
            seconds = float(headers.get(name, "")) / unit
            if math.isfinite(seconds):
                return min(max(seconds, 0.0), LONGEST_WAIT)
    with suppress(ValueError, TypeError, OverflowError):
        date = parsedate_to_datetime(headers.get("retry-after", ""))
        return min(max(date.timestamp() - now, 0.0), LONGEST_WAIT)
    return (_read_reset(headers, now) or None) if limited else None


def read_rate_limits(headers: Mapping[str, str], figure: str) -> dict[str, str]:
    """Return a figure ("limit", "remaining" or "reset") of each rate limit by its kind, such as "requests" or "tokens".

    OpenAI and most others write x-ratelimit-reset-tokens, Anthropic anthropic-ratelimit-tokens-reset.
    """
    found = {}
    for name, value in headers.items():
        if (parts := RATE_LIMIT.fullmatch(name.lower())) and (parts[1] or parts[4]) == figure:
            found[parts[3] or parts[2].strip("-")] = value
    return found


def _read_reset(headers: Mapping[str, str], now: float) -> float:
    """Return the wait until the exhausted rate limits are reset, or until the last one is if none is exhausted."""
    resets = {kind: _parse_seconds(value, now) for kind, value in read_rate_limits(headers, "reset").items()}
    remaining = read_rate_limits(headers, "remaining")
    used_up = [seconds for kind, seconds in resets.items() if remaining.get(kind) == "0"]
    if used_up:
        return min(max(used_up), LONGEST_WAIT)
    return min(max(resets.values(), default=0.0), LONGEST_RESET)


def _parse_seconds(said: str, now: float) -> float:
    """Parse a number of seconds, a duration (6m0s, 20ms), Unix time (also in milliseconds), or a date."""
    if parts := DURATION.fullmatch(said.strip()):
        return sum(float(number or 0) * unit for number, unit in zip(parts.groups(), UNITS, strict=True))
    with suppress(ValueError, OverflowError):
        try:
            number = float(said)
        except ValueError:
            number = datetime.fromisoformat(said.strip()).timestamp()
        if math.isfinite(number):
            number = number / 1000 if number > A_YEAR_2286 else number
            return max(number - now if number > A_YEAR_1973 else number, 0.0)
    return 0.0
