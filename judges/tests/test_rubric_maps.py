"""Distances for scripts: over real HTTP, stored like replies, and every failure of the endpoint."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.conf import settings

from annotation.records import Verdict
from judges.llm import CallFailed, Endpoint, NotConfigured, Patience, Route
from judges.llm.maps import LARGEST, Maps
from judges.ready_judges import RunRefused, find_maps_endpoint
from judges.scorers.rubric.client import BadRequest, find_route
from judges.tests.builders import Fake, MemoryCallLog
from judges.tests.rubric_subjects import about, says
from judges.tests.webjudging import judge, judged

KEY = "maps-secret-4711"
SCRIPT = Path(settings.BASE_DIR) / "judges" / "tests" / "rubric_scripts" / "parks.py"


def found(metres: int = 900, seconds: int = 700) -> dict[str, Any]:
    element = {"status": "OK", "distance": {"text": "", "value": metres}, "duration": {"text": "", "value": seconds}}
    return {"status": "OK", "rows": [{"elements": [element]}]}


def none(status: str) -> dict[str, Any]:
    return {"status": "OK", "rows": [{"elements": [{"status": status}]}]}


class Server(ThreadingHTTPServer):
    """Distance Matrix: ``answers`` in turn (status and body), the last one again and again."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers: list[tuple[int, Any]] = [(200, found())]
        self.asked: list[tuple[str, dict[str, list[str]]]] = []
        self.release = threading.Event()

    @property
    def endpoint(self) -> Endpoint:
        return Endpoint("maps", f"http://127.0.0.1:{self.server_port}/maps/api", KEY)


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        self.server.asked.append((parts.path, parse_qs(parts.query)))
        status, body = self.server.answers[0]
        if len(self.server.answers) > 1:
            self.server.answers.pop(0)
        if status == 0:
            self.server.release.wait(30)
            return
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args: Any) -> None:
        pass


@contextmanager
def serving() -> Iterator[Server]:
    server = Server()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.release.set()
        server.shutdown()
        server.server_close()


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as made:
        yield made


def asked(
    endpoint: Endpoint | None, *routes: tuple[str, str, str], log: MemoryCallLog | None = None, **patience: Any
) -> list[Route | str]:
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    async def ask() -> list[Route | str]:
        maps = Maps(endpoint, Patience(**({"attempts": 3, "timeout": 20.0} | patience)), sleep)
        return await asyncio.gather(*(maps.find_route(log or MemoryCallLog(), *route) for route in routes))

    return asyncio.run(ask())


MUSEUM = ("Museum", "Garden", "walking")


def test_route_is_asked_for_once_and_stored_without_the_key(server: Server) -> None:
    log = MemoryCallLog()

    assert asked(server.endpoint, MUSEUM, MUSEUM, log=log) == [Route(900, 700)] * 2
    ((path, query),) = server.asked
    assert path == "/maps/api/distancematrix/json"
    assert query == {"origins": ["Museum"], "destinations": ["Garden"], "mode": ["walking"], "key": [KEY]}
    first, second = log.outcomes
    assert (first.hit_of, second.hit_of, first.call.stage) == (None, 1, "route")
    assert KEY not in repr(log.outcomes)
    assert (first.model, second.model) == ("", "")  # no model was asked


def test_several_addresses_in_one_are_one_address(server: Server) -> None:
    asked(server.endpoint, ("A | B", "C\nD", "driving"))
    ((_, query),) = server.asked
    assert (query["origins"], query["destinations"]) == (["A B"], ["C D"])


@pytest.mark.parametrize("status", ["NOT_FOUND", "ZERO_RESULTS", "MAX_ROUTE_LENGTH_EXCEEDED"])
def test_no_route_is_a_text(server: Server, status: str) -> None:
    server.answers = [(200, none(status))]
    assert asked(server.endpoint, MUSEUM) == [f"No route was found ({status})."]


@pytest.mark.parametrize(
    "first",
    [(500, {}), (429, {}), (200, {"status": "OVER_QUERY_LIMIT"}), (200, {"status": "UNKNOWN_ERROR"})],
)
def test_busy_endpoint_is_asked_again(server: Server, first: tuple[int, Any]) -> None:
    server.answers = [first, (200, found())]
    log = MemoryCallLog()

    assert asked(server.endpoint, MUSEUM, log=log) == [Route(900, 700)]
    assert [one.retries for one in log.outcomes] == [1]


@pytest.mark.parametrize(
    ("answer", "says", "passing", "requests"),
    [
        ((500, {}), "answered 500", True, 3),
        ((403, {}), "answered 403. Check its address in JUDGE_ENDPOINTS and the key in JUDGE_API_KEY_MAPS", False, 1),
        ((302, {}), "answered 302", False, 1),
        ((200, {"status": "REQUEST_DENIED", "error_message": f"{KEY} is wrong"}), "DENIED: [key] is wrong", False, 1),
        ((200, b"<html>"), "did not answer as the Distance Matrix API does", False, 1),
        ((200, {"status": "OK", "rows": []}), "did not answer as the Distance Matrix API does", False, 1),
        ((200, found(-1)), "did not answer as the Distance Matrix API does", False, 1),
        ((200, found(True)), "did not answer as the Distance Matrix API does", False, 1),
        ((200, b"[" * 10_000), "did not answer as the Distance Matrix API does", False, 1),
        ((200, b" " * (LARGEST + 1)), "has more than 65,536 bytes", False, 1),
    ],
)
def test_failure_names_the_cause_and_is_stored(
    server: Server, answer: tuple[int, Any], says: str, passing: bool, requests: int
) -> None:
    server.answers, log = [answer], MemoryCallLog()

    with pytest.raises(CallFailed) as failed:
        asked(server.endpoint, MUSEUM, log=log)
    assert says in str(failed.value)
    assert (failed.value.passing, len(server.asked)) == (passing, requests)
    (stored,) = log.outcomes
    assert (stored.error, stored.reply) == (str(failed.value), None)


@pytest.mark.parametrize("address", ["maps.example/maps/api", "http://127.0.0.1:port/maps"])
def test_wrong_address_says_where_to_correct_it(address: str) -> None:
    with pytest.raises(CallFailed, match="Correct it in JUDGE_ENDPOINTS") as failed:
        asked(Endpoint("maps", address, KEY), MUSEUM)
    assert (failed.value.passing, KEY in str(failed.value)) == (False, False)


@pytest.mark.parametrize(
    ("key", "written", "shown"),
    [
        ("maps/secret/4711", "maps\\/secret\\/4711", "[key]"),
        ("maps-secret-4711", "\\u006daps-secret-4711", "[key]"),
        ("none", "none", "none"),  # fills the header of an endpoint without a key
    ],
)
def test_key_is_hidden_in_every_spelling(server: Server, key: str, written: str, shown: str) -> None:
    server.answers = [(200, f'{{"status": "DENIED", "error_message": "<{written}>"}}'.encode())]
    with pytest.raises(CallFailed, match="DENIED") as failed:
        asked(Endpoint("maps", server.endpoint.base_url, key), MUSEUM)
    assert f"<{shown}>" in str(failed.value)


def test_silence_ends_after_the_time_out(server: Server) -> None:
    server.answers = [(0, {})]
    with pytest.raises(CallFailed, match=r"within 0\.2 seconds"):
        asked(server.endpoint, MUSEUM, attempts=1, timeout=0.2)


def test_unreachable_endpoint_does_not_show_its_key(server: Server) -> None:
    with serving() as gone:
        endpoint = gone.endpoint
    with pytest.raises(CallFailed, match="cannot be reached") as failed:
        asked(endpoint, MUSEUM, attempts=1)
    assert KEY not in str(failed.value)
    assert failed.value.passing


class Nobody:
    async def find_route(self, origin: str, destination: str, mode: str) -> Route | str:
        raise AssertionError("A wrong call must not reach the endpoint.")


@pytest.mark.parametrize(
    ("route", "says"),
    [
        (["distance", "A", "B", "flying"], "driving, walking, bicycling, transit"),
        (["price", "A", "B", "driving"], "must be one of"),
        (["distance", " ", "B", "driving"], "1 to 1,000 characters"),
        (["distance", "A", "B" * 1001, "driving"], "1 to 1,000 characters"),
        (["distance", "A", 7, "driving"], "all texts"),
        (["distance"], "all texts"),
        ("distance", "all texts"),
    ],
)
def test_wrong_call_of_a_script_is_explained(route: Any, says: str) -> None:
    with pytest.raises(BadRequest, match=says):
        asyncio.run(find_route(Nobody(), route))  # type: ignore[arg-type]


# --- a whole judgment -------------------------------------------------------------------------------------------------


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    (tmp_path / "t.py").write_text(SCRIPT.read_text(encoding="utf-8"), encoding="utf-8")
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize(("metres", "verdict"), [(900, Verdict.SUCCESS), (2001, Verdict.FAILURE)])
def test_script_judges_by_the_distance(
    fake: Fake, server: Server, installed: Path, metres: int, verdict: Verdict
) -> None:
    server.answers, log = [(200, found(metres))], MemoryCallLog()
    fake.says({"match": "Names of parks.", "reply": json.dumps({"names": ["Garden"]})}, says("takes 700 seconds", True))

    score = judged(fake, judge("rubric"), about(scripts=installed), log, maps=server.endpoint)

    assert score.verdict is verdict
    assert len(server.asked) == 1  # distance and time are from one answer
    assert [one.hit_of is None for one in log.outcomes if one.call.stage == "route"] == [True, False]


@pytest.mark.slow
def test_script_without_a_maps_endpoint_fails_and_says_what_to_set(fake: Fake, installed: Path) -> None:
    fake.says({"match": "Names of parks.", "reply": json.dumps({"names": ["Garden"]})})

    with pytest.raises(NotConfigured, match="Add an endpoint maps"):
        judged(fake, judge("rubric"), about(scripts=installed))


def test_endpoint_comes_from_the_settings(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.JUDGE_ENDPOINTS = {"default": "http://127.0.0.1:1/v1"}
    assert find_maps_endpoint() is None
    settings.JUDGE_ENDPOINTS = {"maps": "https://maps.example/maps/api"}
    with pytest.raises(RunRefused, match="JUDGE_API_KEY_MAPS"):
        find_maps_endpoint()
    monkeypatch.setenv("JUDGE_API_KEY_MAPS", KEY)
    assert find_maps_endpoint() == Endpoint("maps", "https://maps.example/maps/api", KEY)
