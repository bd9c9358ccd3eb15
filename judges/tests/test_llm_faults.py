"""Whatever an endpoint does, a call ends with a reply or with a reason: no trajectory is lost, none is judged by it."""

from __future__ import annotations

import asyncio
import email.utils
import socket
from typing import Any

import pytest

from judges.llm import CallFailed, Endpoint, NotConfigured, Patience, transport
from judges.llm import client as llm_client
from judges.tests.builders import KEY, Fake, MemoryCallLog
from judges.tests.clients import FITS, SCHEMA, Desk

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llm_client, "FIRST_WAIT", 0.01)


PASSING: dict[str, dict[str, Any]] = {
    "429": {"status": 429},
    "500": {"status": 500},
    "503 in HTML": {"status": 503, "body": "<html>Bad gateway</html>"},
    "408": {"status": 408},
    "409": {"status": 409},
    "dropped before a byte": {"fault": "drop"},
    "dropped in the body": {"fault": "drop_body"},
    "malformed JSON": {"body": '{"choices": [{"message": {"content": "Stat'},
    "200 with HTML": {"body": "<html>It works!</html>"},
    "an empty body": {"body": ""},
    "JSON that is no object": {"body": "[1, 2]"},
    "empty choices": {"body": {"choices": []}},
    "choices null": {"body": {"choices": None}},
    "a choice without a message": {"body": {"choices": [{"finish_reason": "stop"}]}},
    "an error with 200": {"body": {"error": {"message": "Provider returned error", "code": 502}}},
    "JSON nested too deep": {"body": "[" * 200_000},
    "a number of ten thousand digits": {"body": '{"a": ' + "1" * 10_000 + "}"},
    "a huge reply": {"fault": "huge", "size": 20_000_000},
    "a huge packed reply": {"fault": "gzip", "size": 20_000_000},
}


@pytest.mark.parametrize("fault", PASSING.values(), ids=PASSING.keys())
def test_a_fault_that_passes_costs_another_attempt_and_nothing_else(fake: Fake, fault: dict[str, Any]) -> None:
    fake.says(fault | {"times": 2}, {"reply": "Status: success"})
    desk = Desk(fake)
    reply = desk.ask()
    assert (reply.text, reply.unusable()) == ("Status: success", "")
    assert fake.counts()["calls"] == 3
    [kept] = desk.call_log.outcomes
    assert (kept.retries, kept.error) == (2, "")
    assert kept.reply is not None
    assert "Status: success" in kept.reply


@pytest.mark.parametrize("fault", PASSING.values(), ids=PASSING.keys())
def test_a_fault_that_stays_fails_the_call_after_bounded_attempts_and_is_in_the_trace(
    fake: Fake, fault: dict[str, Any]
) -> None:
    fake.says(fault)
    desk = Desk(fake)
    with pytest.raises(CallFailed) as failed:
        desk.ask()
    assert str(failed.value)
    assert fake.counts()["calls"] == 3
    [kept] = desk.call_log.outcomes
    assert (kept.reply, kept.retries, kept.error) == (None, 2, str(failed.value))
    assert len(desk.gate.admitted) == len(desk.gate.settled) == 3


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ({"status": 400, "error": {"message": "The image is too large."}}, "too large"),
        ({"status": 401, "error": {"message": "Incorrect API key provided."}}, "JUDGE_API_KEY_FAKE"),
        ({"status": 403}, "JUDGE_API_KEY_FAKE"),
        ({"status": 404, "error": {"message": "The model gpt-9 does not exist."}}, "gpt-9"),
        ({"status": 307, "headers": {"Location": "https://elsewhere.example/v1"}}, "JUDGE_ENDPOINTS"),
        ({"status": 429, "error": {"code": "insufficient_quota", "message": "You are out of credit."}}, "credit"),
        ({"status": 413, "body": "<h1>Payload\n too large</h1>"}, "Payload too large"),
    ],
)
def test_a_fault_that_no_attempt_can_mend_is_not_tried_again(fake: Fake, fault: dict[str, Any], said: str) -> None:
    fake.says(fault)
    desk = Desk(fake)
    with pytest.raises(CallFailed, match=said):
        desk.ask()
    assert fake.counts()["calls"] == 1
    assert said in desk.call_log.outcomes[0].error


def test_a_body_that_comes_byte_by_byte_ends_with_the_time_out_of_the_whole_attempt(fake: Fake) -> None:
    fake.says({"fault": "slow", "pause": 0.02, "times": 1}, {"reply": "ok"})
    desk = Desk(fake, patience=Patience(concurrency=1, timeout=0.5, attempts=2))
    assert desk.ask().text == "ok"
    assert desk.call_log.outcomes[0].retries == 1


def test_a_reply_that_is_late_ends_with_the_time_out_and_says_so(fake: Fake) -> None:
    fake.says({"hold": True, "name": "never"})
    with pytest.raises(CallFailed, match=r"0\.2 seconds"):
        Desk(fake, patience=Patience(concurrency=1, timeout=0.2, attempts=2)).ask()
    assert fake.counts()["calls"] == 2
    fake.release()


def test_an_endpoint_that_is_not_there_fails_the_call_and_names_it(fake: Fake) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: whoever connects is refused
        nowhere = Endpoint("nowhere", f"http://127.0.0.1:{taken.getsockname()[1]}/v1", KEY)
        with pytest.raises(CallFailed, match="endpoint nowhere cannot be reached"):
            Desk(fake, endpoint=nowhere).ask()


@pytest.mark.parametrize("address", ["", "file:///etc/passwd", "api.example/v1", "http://[::1"])
def test_an_address_that_cannot_be_is_refused_before_anything_is_sent(fake: Fake, address: str) -> None:
    with pytest.raises(NotConfigured, match="JUDGE_ENDPOINTS"):
        Desk(fake, endpoint=Endpoint("odd", address, KEY)).ask()


def test_a_huge_reply_is_dropped_while_it_is_read(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    """The endpoint finds the connection closed long before it has written everything."""
    monkeypatch.setattr(transport, "MAX_REPLY", 100_000)
    fake.says({"fault": "huge", "size": 60_000_000})
    with pytest.raises(CallFailed, match="more than 100,000 bytes"):
        Desk(fake, patience=Patience(attempts=1)).ask()
    assert fake.counts()["answered"] == 0


def test_a_reply_that_grows_when_it_is_unpacked_is_not_unpacked_whole(fake: Fake) -> None:
    fake.says({"fault": "gzip", "size": 20_000_000})
    with pytest.raises(CallFailed, match="more than 8,388,608 bytes"):
        Desk(fake, patience=Patience(attempts=1)).ask()
    assert fake.counts()["answered"] == 1


def test_a_packed_reply_of_usual_size_is_read(fake: Fake) -> None:
    fake.says({"fault": "gzip", "size": 500})
    assert Desk(fake).ask().text == "A" * 500


NOW = 1_790_000_000.0  # Unix time of the tests below
WAITS = {
    "seconds": {"Retry-After": "0.4"},
    "milliseconds": {"Retry-After-Ms": "400"},
    "date": {"Retry-After": email.utils.formatdate(NOW + 7, usegmt=True)},
}


@pytest.mark.parametrize(("said", "seconds"), [("seconds", 0.4), ("milliseconds", 0.4), ("date", 7.0)])
@pytest.mark.parametrize("status", [429, 503])
def test_an_endpoint_that_asks_to_wait_is_left_alone_for_as_long(
    fake: Fake, said: str, seconds: float, status: int
) -> None:
    fake.says({"status": status, "headers": WAITS[said], "times": 1}, {"reply": "ok"})
    desk = Desk(fake, now=NOW)
    assert desk.ask().text == "ok"
    assert desk.gate.held == [seconds]
    [slept] = desk.slept
    assert seconds <= slept <= seconds + 0.01  # the jitter of `short_waits`


def test_the_wait_lasts_before_the_endpoint_is_asked_again(fake: Fake) -> None:
    fake.says({"status": 429, "headers": {"Retry-After": "0.2"}, "times": 1}, {"reply": "ok"})
    assert Desk(fake, waits=True).ask().text == "ok"
    first, second = fake.counts()["arrivals"]
    assert second - first >= 0.19  # never less, however busy the machine is


def test_a_limit_that_does_not_say_how_long_is_backed_off_from_up_to_a_minute(fake: Fake) -> None:
    fake.says({"status": 429})
    desk = Desk(fake, patience=Patience(concurrency=1, attempts=8))
    with pytest.raises(CallFailed) as failed:
        desk.ask()
    assert failed.value.passing
    assert desk.gate.held == [4, 8, 16, 32, 60, 60, 60]
    assert [round(seconds) for seconds in desk.slept] == desk.gate.held


def test_a_server_in_trouble_is_not_taken_for_a_limit(fake: Fake) -> None:
    fake.says({"status": 503, "headers": {"x-ratelimit-reset-requests": "30s"}, "times": 1}, {"reply": "ok"})
    desk = Desk(fake, now=NOW)
    desk.ask()
    assert desk.gate.held == []


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"x-ratelimit-reset-requests": "1s", "x-ratelimit-reset-tokens": "20s"}, 20.0),
        (
            {
                "x-ratelimit-reset-requests": "8.64s",
                "x-ratelimit-remaining-requests": "0",
                "x-ratelimit-reset-tokens": "6m0s",
                "x-ratelimit-remaining-tokens": "149984",
            },
            8.64,
        ),
        ({"x-ratelimit-reset-tokens": "6m0s", "x-ratelimit-remaining-tokens": "0"}, 360.0),
        ({"x-ratelimit-reset-tokens": "6m0s"}, 60.0),  # which limit is used up is not known
        ({"x-ratelimit-reset-tokens": "2h3m", "x-ratelimit-remaining-tokens": "0"}, 600.0),
        ({"x-ratelimit-reset-requests": "120ms"}, 0.12),
        ({"x-ratelimit-reset": "12.5"}, 12.5),
        ({"X-RateLimit-Reset": str(int(NOW + 30))}, 30.0),
        ({"X-RateLimit-Reset": str(int((NOW + 30) * 1000)), "X-RateLimit-Remaining": "0"}, 30.0),
        ({"x-ratelimit-reset-requests": "2026-09-21T14:13:30Z"}, 10.0),
        ({"x-ratelimit-reset-requests": str(int(NOW - 30))}, 4.0),  # over already: as if nothing were said
        ({"x-ratelimit-reset-requests": "soon"}, 4.0),
        ({"x-ratelimit-reset-requests": "1" * 400}, 4.0),
        ({"x-ratelimit-reset-requests": "-5"}, 4.0),
        ({"x-ratelimit-reset-requests": "nan"}, 4.0),
        ({"x-ratelimit-reset-requests": "5s", "Retry-After": "2"}, 2.0),
        ({"x-ratelimit-reset-requests": "5s", "Retry-After": "0"}, None),
    ],
)
def test_a_limit_is_waited_for_as_its_headers_say(fake: Fake, headers: dict[str, str], seconds: float | None) -> None:
    fake.says({"status": 429, "headers": headers, "times": 1}, {"reply": "ok"})
    desk = Desk(fake, now=NOW)
    assert desk.ask().text == "ok"
    assert desk.gate.held == ([] if seconds is None else [pytest.approx(seconds)])


@pytest.mark.parametrize(
    ("said", "seconds"),
    [
        ("86400", 600.0),
        ("-5", 0.0),
        ("nan", 0.0),
        ("inf", 0.0),
        ("soon", 0.0),
        ("", 0.0),
        ("Fri, 31 Dec 9999 23:59:59 GMT", 600.0),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0.0),
        ("Wed, 99 Jan 2020 00:00:00 GMT", 0.0),
    ],
)
def test_a_strange_retry_after_is_bounded_or_ignored(said: str, seconds: float) -> None:
    assert (transport.read_waiting_time({"retry-after": said}, NOW) or 0.0) == seconds


UNUSABLE: dict[str, tuple[dict[str, Any], str]] = {
    "refusal": ({"message": {"content": None, "refusal": "I cannot help with that."}}, "refused: I cannot help"),
    "content filter": ({"reply": "Half a", "finish": "content_filter"}, "filtered"),
    "content filter on the prompt": (
        {"status": 400, "error": {"code": "content_filter", "message": "The prompt was filtered."}},
        "The prompt was filtered",
    ),
    "length stop": ({"reply": "Status: succ", "finish": "length"}, "length limit"),
}


@pytest.mark.parametrize("schema", [None, SCHEMA], ids=["text", "schema"])
@pytest.mark.parametrize(("fault", "said"), UNUSABLE.values(), ids=UNUSABLE.keys())
def test_a_reply_without_an_answer_says_why_and_is_not_asked_for_again(
    fake: Fake, fault: dict[str, Any], said: str, schema: dict[str, Any] | None
) -> None:
    fake.says(fault)
    desk = Desk(fake)
    reply = desk.ask(schema=schema)
    assert said in reply.unusable()
    assert reply.data is None
    assert fake.counts()["calls"] == 1
    assert desk.call_log.outcomes[0].reply is not None
    assert said in Desk(fake, call_log=desk.call_log).ask(schema=schema).unusable()
    assert fake.counts()["calls"] == 1


def test_an_empty_reply_is_unusable(fake: Fake) -> None:
    fake.says({"message": {"content": None}})
    assert Desk(fake).ask().unusable() == "The reply is empty."
    fake.says({"message": {"content": "  \n"}})
    assert Desk(fake).ask().unusable() == "The reply is empty."


def test_one_item_that_fails_leaves_the_others_alone(fake: Fake) -> None:
    fake.says({"match": "poison", "status": 500}, {"reply": FITS})

    async def work(desk: Desk) -> list[Any]:
        asked = [desk.asks("poison" if n == 3 else f"task {n}", order=n) for n in range(12)]
        return await asyncio.gather(*asked, return_exceptions=True)

    replies = Desk(fake).run(work)
    assert isinstance(replies[3], CallFailed)
    assert [reply.text for n, reply in enumerate(replies) if n != 3] == [FITS] * 11


def test_a_thousand_faults_lose_no_item(fake: Fake) -> None:
    """Every kind of fault on the first attempts of many items at once; each item has its reply in the end."""
    quick = [fault for name, fault in PASSING.items() if "huge" not in name]
    fake.says(
        *[fault | {"match": f"item {n % 40:02d} of", "times": 1} for n, fault in enumerate(quick * 2)], {"reply": "ok"}
    )

    async def work(desk: Desk) -> list[Any]:
        asked = [desk.asks(f"item {n:02d} of forty", order=n) for n in range(40)]
        return await asyncio.gather(*asked, return_exceptions=True)

    desk = Desk(fake, patience=Patience(concurrency=8, timeout=10, attempts=4))
    assert [reply.text for reply in desk.run(work)] == ["ok"] * 40
    assert fake.counts()["calls"] == 40 + 2 * len(quick)
    assert fake.counts()["peak"] <= 8


@pytest.mark.parametrize(
    "usage",
    [
        None,
        "many",
        [],
        {"prompt_tokens": "12"},
        {"prompt_tokens": -1, "completion_tokens": 10**30},
        {"prompt_tokens": True},
    ],
)
def test_usage_that_makes_no_sense_is_unknown(fake: Fake, usage: Any) -> None:
    fake.says({"reply": "ok", "usage": usage})
    desk = Desk(fake)
    reply = desk.ask()
    assert (reply.usage.prompt, reply.usage.completion) == (None, None)
    assert desk.gate.settled[0][1] is None


def test_usage_is_read_with_its_cached_and_reasoning_tokens(fake: Fake) -> None:
    details = {"prompt_tokens_details": {"cached_tokens": 1024}, "completion_tokens_details": {"reasoning_tokens": 200}}
    fake.says({"reply": "ok", "usage": {"prompt_tokens": 1500, "completion_tokens": 300} | details})
    desk = Desk(fake)
    usage = desk.ask().usage
    assert (usage.prompt, usage.cached, usage.completion, usage.reasoning) == (1500, 1024, 300, 200)
    assert desk.gate.settled == [(desk.gate.admitted[0], 1800)]


def test_letters_that_no_database_takes_are_replaced(fake: Fake) -> None:
    body = '{"choices": [{"message": {"content": "a\\u0000b\\ud800c"}, "finish_reason": "stop"}], "model": "m\\u0000"}'
    fake.says({"body": body})
    reply = Desk(fake).ask("task \x00 with \ud800")
    assert (reply.text, reply.model) == ("a\ufffdb?c", "m\ufffd")


def test_a_refused_attempt_returns_its_tokens_to_the_limit_and_an_unclear_one_keeps_them(fake: Fake) -> None:
    fake.says({"status": 429, "times": 1}, {"fault": "drop", "times": 1}, {"reply": "ok"})
    desk = Desk(fake, call_log=MemoryCallLog())
    desk.ask()
    assert [used for _, used in desk.gate.settled] == [0, None, 1260]
