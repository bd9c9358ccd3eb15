"""Routes between addresses, from an endpoint with Google's Distance Matrix API, for scripts of Mind2Web-2.

The endpoint has the name `NAME` in JUDGE_ENDPOINTS. Answers are stored and looked up like replies of models.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from judges.llm import Call, CallFailed, CallLog, Endpoint, NotConfigured, Outcome, Patience, Route, Usage
from judges.llm.apis.base import build_key_pattern

NAME = "maps"  # in JUDGE_ENDPOINTS
PATH = "/distancematrix/json"
MODES = ("driving", "walking", "bicycling", "transit")
STAGE = "route"
LONGEST_ADDRESS = 1_000  # characters
LARGEST = 64 * 1024  # bytes of an answer about two addresses
FIRST_WAIT, LAST_WAIT = 0.5, 60.0  # seconds before another attempt, as for models
BUSY = ("OVER_QUERY_LIMIT", "UNKNOWN_ERROR")  # statuses after which another attempt may succeed
NO_ROUTE = ("NOT_FOUND", "ZERO_RESULTS", "MAX_ROUTE_LENGTH_EXCEEDED")
FREE = Usage(prompt=0, completion=0)  # an answer has no tokens, and so no cost here


class Maps:
    """Client of the maps endpoint for one worker job and event loop; ``endpoint`` is None if none is set."""

    def __init__(
        self,
        endpoint: Endpoint | None,
        patience: Patience,
        sleep: Callable[[float], Awaitable[Any]] = asyncio.sleep,
    ) -> None:
        self._endpoint, self._patience, self._sleep = endpoint, patience, sleep
        self._turn = asyncio.Lock()  # one request at a time: equal ones then find the stored answer

    async def find_route(self, call_log: CallLog, origin: str, destination: str, mode: str) -> Route | str:
        if self._endpoint is None:
            raise NotConfigured(
                f"The script needs a distance between two addresses. Add an endpoint {NAME} with Google's Distance "
                f"Matrix API to JUDGE_ENDPOINTS ({NAME}=https://maps.googleapis.com/maps/api), and set its key."
            )
        # A bar would separate several addresses.
        request = {"origins": _clean(origin), "destinations": _clean(destination), "mode": mode}
        call = _build_call(self._endpoint, request)
        async with self._turn:
            found = await call_log.find_reply(call)
            if found is not None:
                await call_log.record(Outcome(call, found[1], usage=FREE, hit_of=found[0]))
                return read_route(found[1])
            return await self._request(self._endpoint, call_log, call)

    async def _request(self, endpoint: Endpoint, call_log: CallLog, call: Call) -> Route | str:
        """Make attempts until one gives an answer, and store it; raise CallFailed after the last one."""
        problem = ""
        for attempt in range(self._patience.attempts):
            if attempt:
                longest = min(LAST_WAIT, FIRST_WAIT * 2 ** (attempt - 1))
                await self._sleep(random.uniform(0, longest))  # noqa: S311 - no secret
            began = time.monotonic()
            try:
                raw = await self._post(endpoint, call.request)
                route = read_route(raw)
            except CallFailed as failed:
                problem = str(failed)
                if failed.passing:
                    continue
                await call_log.record(Outcome(call, retries=attempt, error=problem))
                raise
            latency = round((time.monotonic() - began) * 1000)
            await call_log.record(Outcome(call, raw, usage=FREE, latency=latency, retries=attempt))
            return route
        await call_log.record(Outcome(call, retries=self._patience.attempts - 1, error=problem))
        raise CallFailed(problem, passing=True)

    async def _post(self, endpoint: Endpoint, request: Mapping[str, Any]) -> str:
        """Return the body of one answer; raise CallFailed, whose message never has the key or the whole address."""
        import httpx2  # noqa: PLC0415 - web servers ask no endpoint

        try:
            async with (
                asyncio.timeout(self._patience.timeout),
                httpx2.AsyncClient(timeout=self._patience.timeout, follow_redirects=False) as http,
                http.stream("GET", endpoint.base_url + PATH, params={**request, "key": endpoint.key}) as response,
            ):
                return await _read_body(endpoint, response)
        except TimeoutError:
            says = f"The endpoint {NAME} did not complete its answer within {self._patience.timeout:g} seconds."
            raise CallFailed(says, passing=True) from None
        except (httpx2.InvalidURL, httpx2.UnsupportedProtocol):
            raise CallFailed(
                f"The address of the endpoint {NAME} is not valid. Correct it in JUDGE_ENDPOINTS."
            ) from None
        except httpx2.HTTPError as error:
            raise CallFailed(f"The endpoint {NAME} cannot be reached ({type(error).__name__}).", passing=True) from None


async def _read_body(endpoint: Endpoint, response: Any) -> str:
    if response.status_code != 200:
        passing = response.status_code == 429 or response.status_code >= 500
        hint = "" if passing else f" Check its address in JUDGE_ENDPOINTS and the key in {endpoint.variable}."
        raise CallFailed(f"The endpoint {NAME} answered {response.status_code}.{hint}", passing=passing)
    data = bytearray()
    async for piece in response.aiter_bytes():
        data += piece
        if len(data) > LARGEST:
            raise CallFailed(f"The answer of the endpoint {NAME} has more than {LARGEST:,} bytes.")
    text, secret = data.decode("utf-8", "replace"), build_key_pattern(endpoint.key)
    return secret.sub("[key]", text) if secret else text


def read_route(raw: str) -> Route | str:
    """Return the route in an answer, or the text that scripts get if there is none; raise CallFailed."""
    try:
        whole = json.loads(raw)
        status = whole["status"]
        if status in BUSY:
            raise CallFailed(f"The endpoint {NAME} answered {status}.", passing=True)
        if status != "OK":
            raise CallFailed(f"The endpoint {NAME} answered {str(status)[:60]}: {_explain(whole)}")
        element = whole["rows"][0]["elements"][0]
        if element["status"] in NO_ROUTE:
            return f"No route was found ({element['status']})."
        if element["status"] != "OK":
            raise CallFailed(f"The endpoint {NAME} answered {str(element['status'])[:60]} for the two addresses.")
        return Route(_read_count(element["distance"]), _read_count(element["duration"]))
    except (ValueError, TypeError, LookupError, RecursionError):
        raise CallFailed(f"The endpoint {NAME} did not answer as the Distance Matrix API does.") from None


def _explain(whole: Mapping[str, Any]) -> str:
    said = whole.get("error_message")
    return said[:300] if isinstance(said, str) and said else "it gives no reason."


def _read_count(given: Mapping[str, Any]) -> int:
    value = given["value"]
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError
    return value


def _clean(address: str) -> str:
    return " ".join(address.replace("|", " ").split())


def _build_call(endpoint: Endpoint, request: Mapping[str, Any]) -> Call:
    canonical = json.dumps({"endpoint": endpoint.identity, "route": request}, sort_keys=True, ensure_ascii=False)
    return Call(hashlib.sha256(canonical.encode("utf-8", "replace")).hexdigest(), STAGE, None, request)
