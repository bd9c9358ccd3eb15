"""Where the compatible mode and webarena-verified 1.2.3 differ on purpose: each with its reason, and a case."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from judges.tests.parity.oracle import Case, entry

SHOP = "http://shop.local:7770"
FORM = "application/x-www-form-urlencoded"


@dataclass(frozen=True)
class Difference:
    name: str
    why: str
    case: Case
    theirs: str
    ours: str


def network_check(**keys: Any) -> dict[str, Any]:
    beside = {key: keys.pop(key) for key in list(keys) if key not in EXPECTED}
    return {"evaluator": "NetworkEventEvaluator", "expected": {"url": "__SHOPPING__/a"} | keys} | beside


EXPECTED = (
    "url",
    "headers",
    "query_params",
    "post_data",
    "response_content",
    "response_cookies",
    "response_status",
    "http_method",
    "event_type",
)


@dataclass(frozen=True)
class AnswerDifference:
    name: str
    why: str
    check: dict[str, Any]
    answer: Any
    theirs: str
    ours: str


DIFFERENCES = [
    Difference(
        "unknown keys are refused",
        "a typo inside of `expected` would pass unnoticed",
        Case(
            network_check() | {"expected": {"url": "__SHOPPING__/a", "query_parms": {"a": ["1"]}}},
            (entry(f"{SHOP}/a"),),
        ),
        "pass",
        "refused",
    ),
    Difference(
        "cookies cannot be compared",
        "they are secrets, and are blanked on import",
        Case(network_check(response_cookies={"m": "^.*added.*$"}), (entry(f"{SHOP}/a", cookies={"m": "added it"}),)),
        "pass",
        "error",
    ),
    Difference(
        "the path of a site's own address is compared regardless of case",
        "the rest of the path is, too",
        Case(
            network_check(url="__SHOPPING_ADMIN__/a"),
            (entry("http://shop.local:7780/Admin/a", headers={}),),
            ("shopping_admin",),
        ),
        "fail",
        "pass",
    ),
    Difference(
        "addresses in parameters are compared as they are written",
        "upstream puts the placeholder into the event's parameter and not into the expected one",
        Case(
            network_check(query_params={"to": [f"{SHOP}/x"]}),
            (entry(f"{SHOP}/a?to=http%3A%2F%2Fshop.local%3A7770%2Fx"),),
        ),
        "fail",
        "pass",
    ),
    Difference(
        "numbers are not read from words",
        "`two` for 2 needs a library for one language",
        Case(
            network_check(
                http_method="POST",
                post_data={"n": 2},
                post_data_schema={"type": "object", "properties": {"n": {"type": "number"}}},
            ),
            (entry(f"{SHOP}/a", "POST", sent=(FORM, "n=two")),),
        ),
        "pass",
        "fail",
    ),
    Difference(
        "letters of other scripts are not transliterated",
        "accents are left out, but Greek is not written with Latin letters",
        Case(
            network_check(http_method="POST", post_data={"n": "αβγ"}),
            (entry(f"{SHOP}/a", "POST", sent=(FORM, "n=abg")),),
        ),
        "pass",
        "fail",
    ),
    Difference(
        "durations, distances, places and coordinates are an error",
        "they need the libraries of the package; the judge webarena-verified has them",
        Case(
            network_check(
                http_method="POST",
                post_data={"n": "30min"},
                post_data_schema={"type": "object", "properties": {"n": {"type": "string", "format": "duration"}}},
            ),
            (entry(f"{SHOP}/a", "POST", sent=(FORM, "n=30min")),),
        ),
        "pass",
        "error",
    ),
    Difference(
        "what an agent sends is no pattern",
        "a body or header ^.*$ of the agent would be as good as any that is expected",
        Case(
            network_check(http_method="POST", post_data={"n": "lamp"}),
            (entry(f"{SHOP}/a", "POST", sent=(FORM, "n=%5E.*%24")),),
        ),
        "pass",
        "fail",
    ),
]


def answer_check(**expected: Any) -> dict[str, Any]:
    texts = {"type": "array", "items": {"type": "string"}}
    return {
        "evaluator": "AgentResponseEvaluator",
        "results_schema": texts,
        "expected": {"task_type": "retrieve"} | expected,
    }


ANSWER_DIFFERENCES = [
    AnswerDifference(
        "what an agent answers is no pattern",
        "the answer ^.*$ would be right for every task that retrieves texts",
        answer_check(status="SUCCESS", retrieved_data=["lamp"]),
        {"task_type": "RETRIEVE", "status": "SUCCESS", "retrieved_data": ["^.*$"]},
        "pass",
        "fail",
    ),
    AnswerDifference(
        "where retrieved_data is not written, it is not compared",
        "upstream misses a key that no answer can have: none passes, as in task 319",
        answer_check(status="NOT_FOUND_ERROR"),
        {"task_type": "RETRIEVE", "status": "NOT_FOUND_ERROR", "retrieved_data": None},
        "fail",
        "pass",
    ),
]
