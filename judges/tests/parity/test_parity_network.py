"""The compatible mode gives the results of webarena-verified on network checks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from judges.tests.parity.differences import DIFFERENCES, FORM, SHOP, Difference, network_check
from judges.tests.parity.oracle import SITES, Case, entry, upstream_says, we_say
from judges.tests.parity.synthesis import fitting, variants

A, OTHER = f"{SHOP}/a", entry(f"{SHOP}/other")
DATES = {"type": "object", "properties": {"d": {"type": "array", "items": {"type": "string", "format": "date"}}}}
PLAIN_DATES = {"type": "object", "properties": {"d": {"type": "string", "format": "date"}}}
USER = {"Accept": "text/html", "Sec-Fetch-User": "?1", "Sec-Fetch-Dest": "document", "Sec-Fetch-Mode": "navigate"}


def post(data: str, media: str = FORM, **fields: Any) -> dict[str, Any]:
    return entry(A, "POST", sent=(media, data), **fields)


def posted(**data: Any) -> dict[str, Any]:
    return network_check(http_method="POST", post_data=data)


ARRAY = network_check(
    http_method="POST",
    post_data={"n": ["lamp"]},
    post_data_schema={"type": "object", "properties": {"n": {"type": "array", "items": {"type": "string"}}}},
)
MULTIPART = '--b\r\nContent-Disposition: form-data; name="n"\r\n\r\nLamp\r\n--b--\r\n'

CASES: dict[str, tuple[dict[str, Any], list[dict[str, Any]]]] = {
    "the same": (network_check(), [entry(A)]),
    "nothing": (network_check(), []),
    "case and slash": (network_check(), [entry(f"{SHOP}/A/")]),
    "a default port": (network_check(), [entry("http://shop.local:7770/a")]),
    "another port": (network_check(), [entry("http://shop.local/a")]),
    "another scheme": (network_check(), [entry("https://shop.local:7770/a")]),
    "www": (network_check(), [entry("http://www.shop.local:7770/a")]),
    "a fragment there": (network_check(), [entry(f"{A}#top")]),
    "a fragment expected": (network_check(url="__SHOPPING__/a#top"), [entry(A)]),
    "a fragment on both sides": (network_check(url="__SHOPPING__/a#top"), [entry(f"{A}#top")]),
    "dot segments": (network_check(), [entry(f"{SHOP}/b/../a")]),
    "encodings": (network_check(url="__SHOPPING__/a b"), [entry(f"{SHOP}/a%20b")]),
    "alternatives": (network_check(url=["__SHOPPING__/x", "__SHOPPING__/a"]), [entry(A)]),
    "none of the alternatives": (network_check(url=["__SHOPPING__/x", "__SHOPPING__/y"]), [entry(A)]),
    "a pattern": (network_check(url=r"^__SHOPPING__/\w+/\d+$"), [entry(f"{SHOP}/item/12")]),
    "a pattern of another case": (network_check(url="^__SHOPPING__/Item$"), [entry(f"{SHOP}/item")]),
    "a pattern and parameters": (network_check(url="^__SHOPPING__/a$"), [entry(f"{A}?b=1")]),
    "parameters in another order": (network_check(url="__SHOPPING__/a?b=1&c=2"), [entry(f"{A}?c=2&b=1")]),
    "an extra parameter": (network_check(), [entry(f"{A}?b=1")]),
    "an empty parameter": (network_check(), [entry(f"{A}?b=")]),
    "a missing parameter": (network_check(url="__SHOPPING__/a?b=1"), [entry(A)]),
    "query_params": (network_check(query_params={"b": ["1"]}), [entry(f"{A}?b=1")]),
    "query_params in place of those of the url": (
        network_check(url="__SHOPPING__/a", query_params={"b": ["2"]}),
        [entry(f"{A}?b=1")],
    ),
    "several values, of which the first is compared": (
        network_check(query_params={"b": ["1", "3"]}),
        [entry(f"{A}?b=2&b=1")],
    ),
    "case and space of a value": (network_check(query_params={"b": ["USB  Wifi"]}), [entry(f"{A}?b=usb++wifi")]),
    "a pattern of a value": (network_check(query_params={"b": ["^(opened|)$"]}), [entry(A)]),
    "a pattern that does not match": (network_check(query_params={"b": ["^(opened|)$"]}), [entry(f"{A}?b=closed")]),
    "ignored": (network_check(ignored_query_params=["b"]), [entry(f"{A}?b=1")]),
    "ignored, of another case": (network_check(ignored_query_params=["B"]), [entry(f"{A}?b=1")]),
    "ignored by pattern": (network_check(ignored_query_params_patterns=["^PAG"]), [entry(f"{A}?paging=1")]),
    "ignored by pattern, not the one": (
        network_check(ignored_query_params_patterns=["^(?!q$).+$"]),
        [entry(f"{A}?q=1")],
    ),
    "dates": (
        network_check(query_params={"d": ["08/5/2022"]}, query_params_schema=DATES),
        [entry(f"{A}?d=2022-08-05")],
    ),
    "other dates": (
        network_check(query_params={"d": ["08/5/2022"]}, query_params_schema=DATES),
        [entry(f"{A}?d=2022-05-08")],
    ),
    "dates, plain": (
        network_check(query_params={"d": ["2022-08-05"]}, query_params_schema=PLAIN_DATES),
        [entry(f"{A}?d=x")],
    ),
    "dates, plain, and no event": (
        network_check(query_params={"d": ["2022-08-05"]}, query_params_schema=PLAIN_DATES),
        [],
    ),
    "dates, plain, in the address, and no event": (
        network_check(url="__SHOPPING__/a?d=2022-08-05", query_params_schema=PLAIN_DATES),
        [],
    ),
    "base64": (
        network_check(url="__SHOPPING__/a?b=1&c=2", decode_base64_query=True),
        [entry(f"{SHOP}/a/Yj0xJmM9Mg==")],
    ),
    "base64 that is none": (network_check(url="__SHOPPING__/a", decode_base64_query=True), [entry(f"{SHOP}/a/abcd")]),
    "status": (network_check(), [entry(A, status=302)]),
    "status expected": (network_check(response_status=302), [entry(A, status=302)]),
    "no response": (network_check(response_status=-1), [entry(A, status=-1)]),
    "method": (network_check(http_method="POST"), [entry(A)]),
    "a header": (
        network_check(headers={"X-Requested-With": "xmlhttprequest"}),
        [entry(A, headers={"x-requested-with": "XMLHttpRequest"})],
    ),
    "a missing header": (network_check(headers={"X-A": "1"}), [entry(A)]),
    "a header by pattern": (network_check(headers={"X-A": "^.*two.*$"}), [entry(A, headers={"X-A": "one Two"})]),
    "a referer": (
        network_check(headers={"referer": "__SHOPPING__/r?x=1"}),
        [entry(A, headers={"Referer": f"{SHOP}/R/?x=1"})],
    ),
    "another referer": (
        network_check(headers={"referer": "__SHOPPING__/r"}),
        [entry(A, headers={"Referer": f"{SHOP}/s"})],
    ),
    "a referer with a parameter": (
        network_check(headers={"referer": "__SHOPPING__/r"}),
        [entry(A, headers={"Referer": f"{SHOP}/r?x=1"})],
    ),
    "no referer": (network_check(headers={"referer": "__SHOPPING__/r"}), [entry(A)]),
    "a form": (posted(n="lamp"), [post("n=Lamp&x=1")]),
    "a form, another value": (posted(n="lamp"), [post("n=lantern")]),
    "a form, missing": (posted(n="lamp"), [post("x=1")]),
    "a form, several values": (posted(n="a"), [post("n=a&n=b")]),
    "nothing sent": (posted(n="a"), [entry(A, "POST")]),
    "a number in a form": (posted(n=20), [post("n=20")]),
    "zero, which is nothing": (posted(n="0"), [post('{"n": 0}', "application/json")]),
    "alternatives of a value": (posted(n=["a", "b"]), [post("n=b")]),
    "one alternative": (posted(n=["a"]), [post("n=a")]),
    "marks around a value": (posted(n="lamp"), [post("n=%22Lamp.%22")]),
    "accents": (posted(n="cafe"), [post("n=Caf%C3%A9")]),
    "hyphens": (posted(n="red lamp"), [post("n=red-lamp")]),
    "trade marks": (posted(n="Lumaflex"), [post("n=Lumaflex%E2%84%A2")]),
    "a list of one value": (posted(n=["lamp"]), [post("x=1")]),
    "a list of one value, and no event": (posted(n=["lamp"]), []),
    "a list of one value that is ignored": (
        network_check(http_method="POST", post_data={"n": ["a"], "k": "1"}, ignored_post_data_params_patterns=["^n$"]),
        [post("k=1")],
    ),
    "an array, and a value": (ARRAY, [post("n=lamp")]),
    "an array, and an array": (ARRAY, [post("n=%5B%22lamp%22%5D")]),
    "null, and other fields": (posted(n=None), [post("x=1")]),
    "null, and nothing sent": (posted(n=None), [entry(A, "POST")]),
    "json": (posted(n="lamp"), [post('{"n": "Lamp"}', "application/json; charset=utf-8")]),
    "json by path": (posted(**{"$.a.n[1]": "lamp"}), [post('{"a": {"n": ["x", "lamp"]}}', "application/json")]),
    "json by path, not there": (posted(**{"$.a.b": "lamp"}), [post('{"a": 1}', "application/json")]),
    "json inside of json": (posted(**{"$.a.b": "lamp"}), [post('{"a": "{\\"b\\": \\"lamp\\"}"}', "application/json")]),
    "json that is a list": (posted(n="lamp"), [post('["lamp"]', "application/json")]),
    "a key by pattern": (posted(**{r"$.^n_\d+$": "lamp"}), [post("n_12=lamp")]),
    "multipart": (posted(n="lamp"), [post(MULTIPART, "multipart/form-data; boundary=b")]),
    "ignored keys": (
        network_check(http_method="POST", post_data={"n": "a", "k": "1"}, ignored_post_data_params_patterns=["^k$"]),
        [post("n=a&k=2")],
    ),
    "an answer": (
        network_check(response_content={"n": 1}),
        [entry(A, received=("application/json", '{"n": 1, "m": 2}'))],
    ),
    "an answer of another case": (
        network_check(response_content={"n": "A"}),
        [entry(A, received=("application/json", '{"n": "a"}'))],
    ),
    "an answer by path": (
        network_check(response_content={"$.i[0].n": "A"}),
        [entry(A, received=("application/json", '{"i": [{"n": "A"}]}'))],
    ),
    "an answer that is no json": (network_check(response_content={"n": 1}), [entry(A, received=("text/html", "<p>"))]),
    "the last one is another": (network_check(query_params={"b": ["1"]}), [entry(f"{A}?b=1"), entry(f"{A}?b=2")]),
    "any of them": (
        network_check(query_params={"b": ["1"]}, last_event_only=False),
        [entry(f"{A}?b=1"), entry(f"{A}?b=2")],
    ),
    "none of them": (
        network_check(query_params={"b": ["3"]}, last_event_only=False),
        [entry(f"{A}?b=1"), entry(f"{A}?b=2")],
    ),
    "must not exist, and does": (network_check(should_not_exist=True), [entry(A)]),
    "must not exist, nor does": (network_check(should_not_exist=True), [OTHER]),
    "must not exist, with another value": (
        network_check(should_not_exist=True, http_method="POST", post_data={"n": "a"}),
        [post("n=b")],
    ),
    "assets": (network_check(url="__SHOPPING__/a.js"), [entry(f"{SHOP}/a.js")]),
    "another host in the trace": (
        network_check(),
        [entry("https://stats.example/a"), entry("data:text/html,x"), entry(A)],
    ),
    "an address of no site": (network_check(url="https://elsewhere.example/a"), [entry(A)]),
    "sec-fetch headers": (
        network_check(),
        [entry(A, headers=USER), entry(f"{SHOP}/b", headers=USER | {"Sec-Fetch-Dest": "iframe"})],
    ),
}


@pytest.mark.parametrize("task_type", ["retrieve", "navigate", "mutate"])
@pytest.mark.parametrize("name", CASES)
def test_crafted_cases_agree(name: str, task_type: str) -> None:
    check, entries = CASES[name]
    for trace in (entries, [OTHER, *entries], [*entries, OTHER]):
        case = Case(check, tuple(trace), task_type=task_type)
        assert we_say(case) == upstream_says(case), [one["request"]["url"] for one in trace]


def test_the_crafted_cases_have_all_results() -> None:
    assert {upstream_says(Case(check, tuple(entries))) for check, entries in CASES.values()} == {
        "pass",
        "fail",
        "error",
    }


@pytest.mark.parametrize("one", DIFFERENCES, ids=lambda one: one.name)
def test_intended_differences_are_as_they_are_listed(one: Difference) -> None:
    assert (upstream_says(one.case), we_say(one.case)) == (one.theirs, one.ours)


def shipped_file() -> Path:
    import webarena_verified

    return Path(webarena_verified.__file__).parent / "assets" / "dataset" / "webarena-verified.json"


def shipped_tasks() -> list[dict[str, Any]]:
    tasks: list[dict[str, Any]] = json.loads(shipped_file().read_text(encoding="utf-8"))
    return tasks


def test_checks_of_the_shipped_tasks_agree_on_events_that_fit_and_that_almost_fit() -> None:
    """Every network check, with some fifteen events each; both results occur often."""
    pairs = [
        (task, one) for task in shipped_tasks() for one in task["eval"] if one["evaluator"] == "NetworkEventEvaluator"
    ]
    found: dict[str, int] = {}
    for task, check in pairs:
        if "response_cookies" in check["expected"] or "Cookie" in (check["expected"].get("headers") or {}):
            continue  # an intended difference
        sites = tuple(task["sites"])
        task_type = task["eval"][0]["expected"]["task_type"]
        for name, event in variants(fitting(check, sites)):
            case = Case(check, (entry(f"{SITES[sites[0]][0]}/elsewhere"), entry(**event)), sites, task_type)
            theirs = upstream_says(case)
            assert we_say(case) == theirs, (task["task_id"], name, event)
            found[theirs] = found.get(theirs, 0) + 1
    assert min(found["pass"], found["fail"]) > 3_000
