"""Which event a check is about, what comes of it, and what is said."""

from __future__ import annotations

import pytest

from annotation.formats.har import LEFT_OUT
from judges.tests.network import NAVIGATES, SHOP, entry, result

TABLETS = {"url": "__SHOP__/c/tablets"}
HOME, CART = entry("/"), entry("/cart")
XHR = {"Sec-Fetch-Dest": "empty", "Sec-Fetch-Mode": "cors"}


def outcome(check, *entries):
    return result(check, *entries).result


def test_a_check_is_about_the_final_navigation_where_nothing_else_is_written():
    assert outcome(TABLETS, HOME, entry("/c/tablets")) == "pass"
    assert outcome(TABLETS, entry("/c/tablets"), HOME) == "fail"
    assert outcome(TABLETS, entry("/c/tablets"), entry("/stats", headers=XHR), entry("/x.css", headers={})) == "pass"
    assert outcome({**TABLETS, "last_event_only": False}, entry("/c/tablets"), HOME) == "pass"
    assert outcome(TABLETS, entry("/c/tablets", headers=XHR)) == "fail"
    assert outcome({**TABLETS, "last_event_only": False}, entry("/c/tablets", headers=XHR)) == "pass"


def test_a_check_of_a_mutation_is_about_the_last_one_at_its_address():
    check = {"url": "__SHOP__/cart/add", "http_method": "POST", "post_data": {"item": "lamp"}}
    right, wrong = entry("/cart/add", "POST", form="item=Lamp&n=1"), entry("/cart/add", "POST", form="item=desk")
    logged = entry("/log", "POST", form="item=lamp")

    assert outcome(check, right, logged, HOME) == "pass"
    assert outcome(check, right, wrong) == "fail"
    assert outcome({**check, "last_event_only": False}, right, wrong) == "pass"
    assert outcome(check, logged) == "fail"


def test_the_type_of_an_event_can_be_asked_for():
    called = entry("/c/tablets", headers=XHR)

    assert outcome({**TABLETS, "event_type": "other"}, called, HOME) == "pass"
    assert outcome({**TABLETS, "event_type": "navigation", "last_event_only": False}, called, HOME) == "fail"
    assert outcome({**TABLETS, "event_type": "mutation"}, entry("/c/tablets", "DELETE"), HOME) == "pass"


@pytest.mark.parametrize(
    ("keys", "event", "expected"),
    [
        ({"query_params": {"sort": "newest"}}, "/c/tablets?sort=Newest", "pass"),
        ({"query_params": {"sort": "newest"}}, "/c/tablets?sort=price", "fail"),
        ({"query_params": {"sort": "newest"}}, "/c/tablets", "fail"),
        ({"query_params": {"sort": "newest"}}, "/c/tablets?sort=newest&min=", "pass"),
        ({"query_params": {"sort": "newest"}}, "/c/tablets?sort=newest&page=2", "fail"),
        (
            {"query_params": {"sort": "newest"}, "ignored_query_params": ["page"]},
            "/c/tablets?sort=newest&page=2",
            "pass",
        ),
        (
            {"query_params": {"sort": "newest"}, "ignored_query_params_patterns": ["^p"]},
            "/c/tablets?sort=newest&Page=2",
            "pass",
        ),
        ({"query_params": {"memory": [64, 32]}}, "/c/tablets?memory=32&memory=64", "pass"),
        ({"query_params": {"memory": 32}}, "/c/tablets?memory=32&memory=64", "fail"),
        ({"query_params": {"rating": 4.5}}, "/c/tablets?rating=4.50", "pass"),
        ({"query_params": {"state": "^(open|)$"}}, "/c/tablets", "pass"),
        ({"query_params": {"state": "^(open|)$"}}, "/c/tablets?state=closed", "fail"),
        ({"url": "__SHOP__/c/tablets?a=1&b=2"}, "/c/tablets?b=2&a=1", "pass"),
        ({"url": ["__SHOP__/x", "__SHOP__/c/tablets?a=1"]}, "/c/tablets?a=1", "pass"),
        ({"url": r"^__SHOP__/c/\w+$"}, "/C/tablets/", "pass"),
        ({"url": r"^__SHOP__/c/\w+$"}, "/c/tablets?a=1", "fail"),
        ({"url": r"^__SHOP__/c/\w+\?a=\d$"}, "/c/tablets?a=1", "pass"),
        ({"url": "^__SHOP__/c/a b$"}, "/c/a%20b", "pass"),
        ({"url": "__OTHER__/c"}, "https://other.example/base/c", "pass"),
        ({"url": "__OTHER__/c"}, "https://www.other.example/base/c", "fail"),
        ({"url": "__SHOP__/c#top"}, "/c#top", "pass"),
        ({"url": "__SHOP__/c#top"}, "/c", "error"),
        ({"url": "__SHOP__/c#top"}, "/c#end", "fail"),
        ({"url": "__SHOP__/c#top"}, "/d", "fail"),
        ({"url": "__SHOP__/c#session=a"}, "/c#session=[redacted]", "error"),
        ({"url": "__SHOP__/c#end"}, "/c#session=[redacted]", "fail"),
        ({"url": "__SHOP__/reset/abc"}, "/reset/[redacted]", "error"),
        ({"url": "__SHOP__/reset/abc/done"}, "/reset/[redacted]/done", "error"),
        ({"url": "__SHOP__/reset/abc/done"}, "/reset/[redacted]/more", "fail"),
        ({"url": "__SHOP__/reset/abc"}, "/set/[redacted]", "fail"),
        ({"url": r"^__SHOP__/c\?session=am$"}, "/c?session=[redacted]", "error"),
        ({"url": r"^__SHOP__/c\?session=(?!pm).*$"}, "/c?session=[redacted]", "error"),
        ({"url": r"^__SHOP__/c\?session=am$"}, "/d?session=[redacted]", "fail"),
        ({"url": r"^__SHOP__/c$", "query_params": {"session": "am"}}, "/c?session=[redacted]", "error"),
        ({"url": r"^__SHOP__/c/\w+$"}, "/c/[redacted]", "error"),
        ({"url": "__SHOP__/c?on_sale"}, "/c?on_sale", "pass"),
        ({"url": "__SHOP__/c?on_sale"}, "/c?on_sale=", "pass"),
        ({"url": "__SHOP__/c?on_sale"}, "/c", "fail"),
        ({"url": "__SHOP__/c?on_sale"}, "/c?on_sale=1", "fail"),
        ({"url": "__SHOP__/c?on_sale="}, "/c", "pass"),
        ({"url": "__SHOP__/c"}, "/c#top", "pass"),
        ({"decode_base64_query": True, "query_params": {"user": "a"}}, "/c/tablets/dXNlcj1h", "pass"),
        (
            {"query_params": {"d": "2024-04-03"}, "query_params_schema": {"d": {"type": "string", "format": "date"}}},
            "/c/tablets?d=3%20April%202024",
            "pass",
        ),
        (
            {
                "query_params": {"d": ["2024-04-03"]},
                "query_params_schema": {"d": {"type": "array", "items": {"format": "date"}}},
            },
            "/c/tablets?d=3%20April%202024",
            "pass",
        ),
        (
            {
                "query_params": {"d": "2024-04-03"},
                "query_params_schema": {"type": "object", "properties": {"d": {"format": "date"}}},
            },
            "/c/tablets?d=03/04/2024",
            "error",
        ),
        (
            {"query_params": {"p": "1299 USD"}, "query_params_schema": {"p": {"type": "number", "format": "currency"}}},
            "/c/tablets?p=%241,299.00",
            "pass",
        ),
        ({"query_params": {"sort": "newest", "key": "k"}}, "/c/tablets?sort=newest&key=[redacted]", "error"),
        ({"query_params": {"sort": "newest", "key": "k"}}, "/c/tablets?sort=price&key=[redacted]", "fail"),
    ],
)
def test_addresses_and_parameters(keys, event, expected):
    assert outcome({**TABLETS, **keys}, entry(event)) == expected


@pytest.mark.parametrize(
    ("keys", "fields", "expected"),
    [
        ({"response_status": 200}, {}, "pass"),
        ({"response_status": [301, 302]}, {"status": 302}, "pass"),
        ({"response_status": 200}, {"status": 500}, "fail"),
        ({"response_status": -1}, {"status": 0}, "pass"),
        ({"http_method": "POST"}, {"method": "PUT"}, "fail"),
        ({"post_data": {"n": 20}}, {"form": "n=20.0&m=1"}, "pass"),
        ({"post_data": {"n": ["a", "b"]}}, {"form": "n=B"}, "pass"),
        ({"post_data": {"n": ["a", "b"]}, "post_data_schema": {"n": {"type": "array"}}}, {"form": "n=b&n=a"}, "pass"),
        ({"post_data": {"n": "a"}}, {"form": "n=a&n=b"}, "pass"),
        ({"post_data": {"n": "a"}}, {}, "fail"),
        ({"post_data": {"n": None}}, {"form": "m=1"}, "pass"),
        ({"post_data": {"$.a.b[0]": 1}}, {"sent": {"a": {"b": [1, 2]}}}, "pass"),
        ({"post_data": {"$.a[*].b": [1, 2]}}, {"sent": {"a": [{"b": 2}, {"b": 1}]}}, "pass"),
        (
            {"post_data": {"$.a[?(@.id == 7)].b": "x"}},
            {"sent": {"a": [{"id": 6, "b": "y"}, {"id": 7, "b": "x"}]}},
            "pass",
        ),
        ({"post_data": {"$..b": "x"}}, {"sent": {"a": '{"b": "X"}'}}, "fail"),
        ({"post_data": {"$.a.b": "x"}}, {"sent": {"a": '{"b": "X"}'}}, "pass"),
        ({"post_data": {"a": {"b": 1}}}, {"sent": {"a": {"b": 1, "c": 2}}}, "pass"),
        ({"post_data": {r"$.^n_\d+$": "x"}}, {"form": "n_12=x"}, "pass"),
        ({"post_data": {"n": "none"}}, {"form": "m=1"}, "fail"),
        ({"post_data": {"n": None}}, {"form": "n=None"}, "fail"),
        (
            {"post_data": {"$.a[?(@.session == 'am')].b": "x"}},
            {"sent": {"a": [{"session": "[redacted]", "b": "x"}, {"session": "pm", "b": "x"}]}},
            "error",
        ),
        ({"post_data": {"$.a[?(@.session == 'am')].b": "x"}}, {"sent": {"a": [{"session": "pm", "b": "x"}]}}, "fail"),
        ({"post_data": {"$.session.b": "x"}}, {"sent": {"session": "[redacted]"}}, "error"),
        ({"post_data": {"n": "a", "token": "t"}}, {"form": "n=a&token=[redacted]"}, "error"),
        (
            {"post_data": {"n": "a", "token": "t"}, "ignored_post_data_params_patterns": ["^token$"]},
            {"form": "n=a"},
            "pass",
        ),
        (
            {"headers": {"x-requested-with": "xmlhttprequest"}},
            {"headers": {"X-Requested-With": "XMLHttpRequest"}},
            "pass",
        ),
        ({"headers": {"x-requested-with": "a"}}, {}, "fail"),
        ({"headers": {"Cookie": "a=1"}}, {"headers": {"Cookie": "[redacted]"}}, "error"),
        ({"headers": {"referer": "__SHOP__/r?b=2&a=1"}}, {"headers": {"Referer": f"{SHOP}/R/?a=1&b=2"}}, "pass"),
        ({"headers": {"referer": ["__SHOP__/q", "__SHOP__/r"]}}, {"headers": {"Referer": f"{SHOP}/r"}}, "pass"),
        ({"headers": {"referer": "__SHOP__/r"}}, {"headers": {"Referer": f"{SHOP}/r?a=1"}}, "fail"),
        ({"headers": {"referer": "__SHOP__/r?key=k"}}, {"headers": {"Referer": f"{SHOP}/r?key=[redacted]"}}, "error"),
        ({"headers": {"referer": "__SHOP__/r"}}, {"headers": {"Referer": f"{SHOP}/s?key=[redacted]"}}, "fail"),
        ({"response_content": {"$.cart.items": 1}}, {"received": {"cart": {"items": "1"}}}, "pass"),
        ({"response_content": {"items": 1}}, {"received": {"items": 2}}, "fail"),
        ({"response_content": {"items": 1}}, {}, "error"),
        ({"response_cookies": {"seen": "1"}}, {}, "error"),
    ],
)
def test_what_was_sent_and_answered(keys, fields, expected):
    event = entry("/api", **{"method": "POST", **fields})
    assert outcome({"url": "__SHOP__/api", "event_type": "mutation", **keys}, event) == expected


def test_what_must_not_be_there_is_looked_for_among_all_events_with_all_that_is_written():
    check = {"url": "__SHOP__/checkout", "http_method": "POST", "response_status": 200, "should_not_exist": True}

    assert outcome(check, HOME, CART) == "pass"
    assert outcome(check, entry("/checkout", "POST"), HOME) == "fail"
    assert outcome(check, entry("/checkout", "POST", 400), HOME) == "pass"
    secret = {**check, "post_data": {"card": "1"}}
    assert outcome(secret, entry("/checkout", "POST", form="card=[redacted]")) == "error"


@pytest.mark.parametrize(
    ("keys", "event", "expected"),
    [
        ({}, entry("/cart/add?id=7", headers=XHR), "fail"),
        ({"query_params": {"id": 7}}, entry("/cart/add?id=7&from=list", headers=XHR), "fail"),
        ({"query_params": {"id": 7}}, entry("/cart/add?id=8&id=7", headers=XHR), "fail"),
        ({"query_params": {"id": 7}}, entry("/cart/add?id=8", headers=XHR), "pass"),
        ({"query_params": {"id": 7}}, entry("/cart/add", headers=XHR), "pass"),
        ({"query_params": {"key": "k"}}, entry("/cart/add?key=[redacted]&x=1", headers=XHR), "error"),
        ({}, entry("/cart/add", status=500), "fail"),
        ({"url": "__SHOP__/reset/abc"}, entry("/reset/[redacted]"), "error"),
        ({"url": r"^__SHOP__/c\?session=am$"}, entry("/c?session=[redacted]"), "error"),
        ({"url": r"^__SHOP__/c\?session=am$"}, entry("http://ads.example/?token=[redacted]"), "pass"),
        ({"url": "__SHOP__/c#session=am"}, entry("/c#session=[redacted]"), "error"),
        ({"url": "__SHOP__/buy.gif"}, entry("/buy.gif?order=1", headers=XHR), "fail"),
        ({"headers": {"x-a": "1"}}, entry("/cart/add", headers={"Sec-Fetch-Dest": "image", "X-A": "1"}), "error"),
    ],
)
def test_nothing_that_is_not_written_makes_another_event_of_a_forbidden_one(keys, event, expected):
    assert outcome({"url": "__SHOP__/cart/add", "should_not_exist": True, **keys}, HOME, event) == expected


def test_what_a_page_is_drawn_with_is_looked_at_where_its_address_is_expected():
    check = {"url": "__SHOP__/pixel.gif", "query_params": {"order": 1}, "last_event_only": False}

    assert outcome(check, entry("/pixel.gif?order=1", headers=XHR), HOME) == "pass"
    assert outcome({**check, "url": r"^__SHOP__/pixel\.gif$"}, entry("/pixel.gif?order=1", headers=XHR)) == "pass"
    assert outcome(check, entry("/pixel.gif?order=2", headers=XHR), HOME) == "fail"


@pytest.mark.parametrize("status", [400, 404, 500, 0, -1])
def test_a_page_that_did_not_come_is_none_that_was_reached(status):
    failed = entry("/c/tablets", status=status)

    found = result(TABLETS, HOME, failed)
    assert found.result == "fail"
    assert "expected is below 400" in found.message
    assert outcome({**TABLETS, "response_status": status or -1}, failed) == "pass"
    assert outcome(TABLETS, entry("/c/tablets", status=304)) == "pass"
    assert outcome({**TABLETS, "http_method": "POST"}, entry("/c/tablets", "POST", status)) == "pass"


def test_the_final_navigation_is_the_last_one_in_time_wherever_it_is_listed():
    late, early = entry("/c/tablets", second=5), entry("/", second=1)

    found = result(TABLETS, late, early)
    assert (found.result, found.event.index) == ("pass", 0)
    assert outcome(TABLETS, early, late) == "pass"
    assert outcome(TABLETS, entry("/", second=2), entry("/c/tablets", second=2)) == "pass"


def test_a_page_that_is_loaded_ahead_is_no_navigation():
    ahead = entry("/next", headers={**NAVIGATES, "Sec-Purpose": "prefetch;prerender"})
    assert outcome(TABLETS, entry("/c/tablets"), ahead) == "pass"


@pytest.mark.parametrize("method", ["HEAD", "OPTIONS"])
def test_a_request_of_any_method_can_be_asked_for(method):
    check = {"url": "__SHOP__/api", "http_method": method}

    assert outcome(check, entry("/api", method, headers=XHR), HOME) == "pass"
    assert outcome(check, entry("/api", headers=XHR), HOME) == "fail"


def test_a_failure_shows_the_nearest_event_field_by_field_and_says_what_differs():
    check = {**TABLETS, "query_params": {"sort": "newest", "rating": 4.5}, "last_event_only": False}
    found = result(check, HOME, entry("/c/tablets?sort=price&rating=4.5"), entry("/c/phones?sort=newest"), CART)

    assert (found.result, found.event.index, found.candidates) == ("fail", 1, 4)
    assert [(one.field, one.equal) for one in found.differences] == [
        ("url", True),
        ("query_params.rating", True),
        ("query_params.sort", False),
    ]
    assert found.message == (
        "None of 4 events matches; the nearest is event 1, "
        "GET http://shop.example/c/tablets?sort=price&rating=4.5: query_params.sort is price, expected is newest."
    )


def test_a_trace_without_events_fails_in_words():
    assert result(TABLETS).message == "The trace has no event to compare."


def test_a_site_that_nobody_gave_an_address_is_an_error():
    from judges.scorers.network_trace import checks, matching
    from judges.tests.network import trace

    found = checks.parse("sites: {shop: []}\nchecks: [{url: __SHOP__/a}]")
    outcome_ = matching.run_check(found.checks[0], trace(HOME), {})
    assert (outcome_.result, "site shop is not known" in outcome_.message) == ("error", True)


def test_a_pattern_that_takes_too_long_is_an_error_and_not_a_failure():
    check = {"url": "^" + ".*" * 150 + "x$"}
    found = result(check, entry("/" + "a" * 15_000))
    assert (found.result, "takes too long" in found.message) == ("error", True)


def test_all_events_of_a_check_have_their_steps_together(monkeypatch):
    from judges.scorers.network_trace import patterns

    check, events = {"url": "^" + ".*" * 20 + "x$"}, [entry(f"/{number}") for number in range(60)]
    assert outcome(check | {"last_event_only": False}, *events) == "fail"
    monkeypatch.setattr(patterns, "MOST_TOGETHER", 100_000)
    found = result(check | {"last_event_only": False}, *events)
    assert (found.result, "on so many texts" in found.message) == ("error", True)


def test_a_pattern_that_takes_too_long_on_an_answer_is_an_error():
    from judges.scorers.network_trace import agent_response
    from judges.scorers.network_trace.model import AnswerCheck

    check = AnswerCheck(name="one", fields={"^" + ".*" * 150 + "x$": 1})
    found = agent_response.run_check(check, {"a" * 15_000: 1})
    assert (found.result, "takes too long" in found.message) == ("error", True)


def test_a_large_trace_is_compared_in_seconds():
    import time

    entries = [entry(f"/item/{number}?page={number}", headers=NAVIGATES) for number in range(3_000)]
    check = {"url": "__SHOP__/item/7", "query_params": {"page": 8}, "last_event_only": False}
    started = time.process_time()

    assert result(check, *entries).event.index == 7
    assert time.process_time() - started < 10


def test_what_was_left_out_on_import_cannot_be_told():
    event = entry("/api", "POST")
    event["request"]["postData"] = {"mimeType": "application/json", "comment": LEFT_OUT}

    found = result({"url": "__SHOP__/api", "http_method": "POST", "post_data": {"a": 1}}, event)
    assert (found.result, "import stored only its beginning" in found.message) == ("error", True)
