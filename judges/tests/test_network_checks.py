"""Checks are read as they are meant, or refused with the line and how to mend it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from annotation.formats.documents import FormatError
from annotation.formats.yaml_text import written
from judges.scorers.network_trace import checks, matching
from judges.scorers.network_trace.model import NOT_GIVEN, AnswerCheck, NetworkCheck
from judges.scorers.network_trace.task_files import read_task_file
from judges.tests.network import SHOP, entry, trace

FLAT = """
sites:
  shop: [http://shop.example, https://shop.example]
checks:
  - name: sorted
    key_point: Sorted by newest first
    url: [__SHOP__/c/tablets, "^__SHOP__/s/.*$"]
    http_method: get
    response_status: [200, 304]
    query_params: {sort: newest, memory: [32, 64], from: 3/4/2024}
    query_params_schema: {from: {type: string, format: date, date_format: M/D/YYYY}}
    ignored_query_params: page
    ignored_query_params_patterns: [^utm_]
  - evaluator: agent_response
    status: SUCCESS
    retrieved_data: [1, 2]
    results_schema: {type: array, items: {type: number}}
"""
UPSTREAM = """
sites: {shop: [http://shop.example, https://shop.example]}
checks:
  - name: sorted
    key_point: Sorted by newest first
    evaluator: NetworkEventEvaluator
    expected:
      url: [__SHOP__/c/tablets, "^__SHOP__/s/.*$"]
      http_method: get
      response_status: [200, 304]
      query_params: {sort: newest, memory: [32, 64], from: 3/4/2024}
    query_params_schema: {from: {type: string, format: date, date_format: M/D/YYYY}}
    ignored_query_params: page
    ignored_query_params_patterns: [^utm_]
  - evaluator: AgentResponseEvaluator
    expected: {status: SUCCESS, retrieved_data: [1, 2]}
    results_schema: {type: array, items: {type: number}}
"""


def test_both_ways_to_write_a_check_are_read_as_the_same():
    found = checks.parse(FLAT)

    one, two = found.checks
    assert isinstance(one, NetworkCheck)
    assert isinstance(two, AnswerCheck)
    assert (one.name, one.key_point, one.http_method, one.response_statuses) == (
        "sorted",
        "Sorted by newest first",
        "GET",
        (200, 304),
    )
    assert one.query_params == {"sort": ("newest",), "memory": (32, 64), "from": ("3/4/2024",)}
    assert two.name == "check 2"
    assert found == checks.parse(UPSTREAM)


def test_a_list_of_checks_will_do():
    assert checks.parse("- url: http://shop.example/\n").checks[0].name == "check 1"


def in_a_check(text):
    return f"sites: {{shop: [http://shop.example]}}\nchecks:\n- url: __SHOP__/a\n  {text}\n"


@pytest.mark.parametrize(
    ("text", "code", "line", "says"),
    [
        ("- urll: http://a.example\n  url: http://a.example", "unknown_key", 1, "did you mean `url`?"),
        (in_a_check("query_parms: {a: 1}"), "unknown_key", 4, "did you mean `query_params`?"),
        (in_a_check("expected: {post_dat: {a: 1}}"), "unknown_key", 4, "did you mean `post_data`?"),
        (in_a_check("zzzzzzzzz: 1"), "unknown_key", 4, "known are name"),
        (in_a_check("status: 200"), "unknown_key", 4, "response_status"),
        ("site: {}\nchecks:\n- url: http://a.example", "unknown_key", 1, "did you mean `sites`?"),
        ("- evaluator: network\n  url: http://a.example", "unknown_key", 1, "network_event"),
        (in_a_check("expected: {url: http://a.example}"), "duplicate_key", 4, "remove one of them"),
        ("- name: x", "no_url", 1, "needs a `url`"),
        ("checks: []", "no_checks", 1, "1 to 200"),
        ("checks: 7", "no_checks", 1, "1 to 200"),
        ("7", "wrong_type", 1, "an object"),
        ("- 7", "wrong_type", 1, "a check"),
        (in_a_check("last_event_only: 1"), "wrong_type", 4, "true or false"),
        (in_a_check("response_status: ok"), "wrong_type", 4, "whole number"),
        (in_a_check("response_status: 20"), "wrong_value", 4, "not an HTTP status"),
        (in_a_check("http_method: FETCH"), "wrong_value", 4, "one of"),
        (in_a_check("event_type: click"), "wrong_value", 4, "navigation"),
        (in_a_check("query_params: [a]"), "wrong_type", 4, "an object"),
        (in_a_check("query_params: {a: {b: 1}}"), "wrong_type", 4, "a value"),
        (in_a_check("query_params: {a: [['1', '2']]}"), "wrong_type", 4, "not a list"),
        (in_a_check("event_type: mutation\n  http_method: OPTIONS"), "contradiction", 4, "not a mutation"),
        (in_a_check("key_point: [1]"), "wrong_type", 4, "key point"),
        (in_a_check("name: 7"), "wrong_type", 4, "a text"),
        ("- url: shop/a", "bad_url", 1, "not an address"),
        ("- url: []", "wrong_value", 1, "at least one"),
        ("- url: __SHOP__/a", "unknown_site", 1, "write it under sites"),
        ("sites: {shop: []}\nchecks:\n- url: __SHIP__/a", "unknown_site", 3, "did you mean __SHOP__?"),
        ("sites: {shop: ftp://a}\nchecks:\n- url: http://a.example", "bad_url", 1, "address of a site"),
        ("sites: {a b: []}\nchecks:\n- url: http://a.example", "wrong_value", 1, "not a valid site name"),
        ("- url: ^http://(a$", "bad_pattern", 1, "not a regular expression"),
        (in_a_check(r"ignored_query_params_patterns: ['(a)\1']"), "bad_pattern", 4, "reference to a group"),
        (in_a_check("headers: {a: '^(a$'}"), "bad_pattern", 4, "not a regular expression"),
        (in_a_check("http_method: post\n  post_data: {'$.a[': 1}"), "bad_path", 5, "not supported"),
        (in_a_check("query_params_schema: {a: {type: text}}"), "wrong_value", 4, "type must be"),
        (in_a_check("query_params_schema: {a: {format: dates}}"), "unknown_key", 4, "did you mean `date`?"),
        (in_a_check("query_params_schema: {a: {kind: date}}"), "unknown_key", 4, "key of a schema"),
        (
            in_a_check("query_params: {rating: 4}\n  query_params_schema: {raiting: {type: number}}"),
            "unknown_key",
            5,
            "`raiting` has a schema, but the check expects no value with that name; did you mean `rating`?",
        ),
        (
            in_a_check("query_params: {Rating: 4}\n  query_params_schema: {RATING: {type: number}}"),
            "unknown_key",
            5,
            "did you mean `Rating`?",
        ),
        (
            in_a_check("query_params_schema: {type: object, properties: {zz: {type: number}}}"),
            "unknown_key",
            4,
            "`zz` has a schema, but the check expects no value with that name.",
        ),
        (
            in_a_check("http_method: post\n  post_data: {total: 4}\n  post_data_schema: {totl: {type: number}}"),
            "unknown_key",
            6,
            "did you mean `total`?",
        ),
        (
            "- evaluator: agent_response\n  fields: {total: 4}\n  fields_schema: {totl: {type: number}}",
            "unknown_key",
            3,
            "did you mean `total`?",
        ),
        (in_a_check("query_params_schema: {a: {format: date, date_format: DD/MM}}"), "wrong_value", 4, "needs a year"),
        (
            in_a_check("query_params: {a: 3/4/2024}\n  query_params_schema: {a: {format: date}}"),
            "wrong_value",
            4,
            "ambiguous",
        ),
        (
            in_a_check("query_params: {a: x}\n  query_params_schema: {a: {type: number}}"),
            "wrong_value",
            4,
            "not a number",
        ),
        (in_a_check("query_params: {a: 1}\n  ignored_query_params: [a]"), "contradiction", 4, "expected and ignored"),
        ("- url: http://a.example/?a=1\n  query_params: {a: 2}", "contradiction", 2, "remove one of them"),
        ("- url: '^http://a.example/\\?a=1$'\n  query_params: {a: 2}", "contradiction", 2, "remove query_params"),
        (in_a_check("event_type: navigation\n  http_method: POST"), "contradiction", 4, "a navigation is a GET"),
        (in_a_check("event_type: mutation\n  http_method: GET"), "contradiction", 4, "not a mutation"),
        (in_a_check("http_method: GET\n  post_data: {a: 1}"), "contradiction", 5, "post_data is expected"),
        ("- url: http://a.example\n  name: x\n- url: http://a.example\n  name: x", "same_name", 4, "two checks"),
        ("- evaluator: agent_response", "nothing_expected", 1, "needs task_type"),
        ("- evaluator: agent_response\n  url: http://a.example\n  status: x", "unknown_key", 2, "key of a check"),
        ("task_type: buy\nchecks:\n- url: http://a.example", "wrong_value", 1, "retrieve"),
    ],
)
def test_a_mistake_is_refused_with_its_line_and_how_to_mend_it(text, code, line, says):
    with pytest.raises(FormatError) as refused:
        checks.parse(text)

    found = [one for one in refused.value.problems if one.code == code]
    assert found, refused.value.problems
    assert (found[0].where, says in found[0].message) == (f"line {line}", True), found[0].message


def test_all_mistakes_are_told_at_once():
    with pytest.raises(FormatError) as refused:
        checks.parse("- url: a\n  quer: 1\n- url: http://a.example\n  response_status: x\n")
    assert [one.code for one in refused.value.problems] == ["unknown_key", "bad_url", "wrong_type"]


def test_parameters_that_stand_in_the_address_may_have_a_schema():
    found = checks.parse(
        "- url: [http://a.example/, 'http://a.example/?n=4']\n  query_params_schema: {n: {type: number}}"
    )
    assert list(found.checks[0].query_params_schema) == ["n"]


def test_a_misspelt_key_is_told_without_the_schemas_that_belong_to_it():
    with pytest.raises(FormatError) as refused:
        checks.parse(in_a_check("query_parms: {a: 1}\n  query_params_schema: {a: {type: number}}"))
    assert [one.message for one in refused.value.problems] == [
        "checks, line 4: `query_parms` is not a key of a check; did you mean `query_params`?"
    ]


@settings(deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda one: (
            st.lists(one, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    [
                        "url",
                        "query_params",
                        "expected",
                        "evaluator",
                        "post_data",
                        "sites",
                        "checks",
                        "results_schema",
                        "items",
                        "type",
                        "x",
                    ]
                ),
                one,
                max_size=4,
            )
        ),
    )
)
def test_whatever_is_written_is_read_or_refused(value):
    for text in (
        written(value),
        written([value]),
        written({"checks": [value]}),
        written({"checks": [{"url": "http://a.example/", "post_data": value}]}),
    ):
        try:
            found = checks.parse(text)
        except FormatError:
            continue
        assert checks.parse(text) == found


TASK = {"task_id": 7, "checks": [{"url": "http://a.example/"}]}
WEBARENA = {
    "task_id": 44,
    "sites": ["gitlab"],
    "intent": "x",
    "revision": 2,
    "eval": [
        {
            "evaluator": "AgentResponseEvaluator",
            "results_schema": {"type": "null"},
            "expected": {"task_type": "navigate", "status": "SUCCESS", "retrieved_data": None},
        },
        {
            "evaluator": "NetworkEventEvaluator",
            "query_params_schema": {
                "type": "object",
                "properties": {"d": {"type": "array", "items": {"type": "string", "format": "date"}}},
            },
            "expected": {"url": "__GITLAB__/todos", "query_params": {"d": ["08/5/2022"]}},
        },
        {"evaluator": "NetworkEventEvaluator", "expected": {"url": "__GITLAB__/notes", "post_data": {"a": 1}}},
    ],
}


@pytest.mark.parametrize(
    "data",
    [
        json.dumps([TASK, TASK | {"task_id": "b"}]).encode(),
        (json.dumps(TASK) + "\n\n" + json.dumps(TASK | {"task_id": "b"}) + "\n").encode(),
        b"- task_id: 7\n  checks: [{url: http://a.example/}]\n- task_id: b\n  checks: [{url: http://a.example/}]\n",
    ],
)
def test_a_file_of_checks_is_json_json_lines_or_yaml(data):
    found = read_task_file(data, "checks")

    assert [task_id for task_id, _ in found] == ["7", "b"]
    assert checks.parse(found[0][1]).checks[0].urls == ("http://a.example/",)


def test_a_task_of_webarena_verified_says_what_it_took_for_granted():
    ((task_id, text),) = read_task_file(json.dumps(WEBARENA, indent=1).encode(), "tasks.json")
    answer, opened, sent = checks.parse(text).checks

    assert (task_id, answer.task_type) == ("44", "navigate")
    assert (opened.http_method, opened.response_statuses) == ("GET", (200,))
    assert opened.query_params_schema["d"].items.formats == ("MM/DD/YYYY",)
    assert (sent.http_method, sent.response_statuses) == ("", (200,))
    assert checks.parse(text).sites == {"gitlab": ()}


def test_a_schema_of_nothing_that_a_task_of_webarena_verified_has_is_left_out_as_the_package_does():
    schema = {"type": "object", "properties": {"n": {"type": "number"}, "idle": {"type": "number"}}}
    expected = {"url": "__SHOPPING__/a", "http_method": "POST", "post_data": {"n": 4}}
    check = {"evaluator": "NetworkEventEvaluator", "post_data_schema": schema, "expected": expected}
    assert list(imported(check).post_data_schema) == ["n"]

    wrong = {"url": "__SHOPPING__/a", "query_params": {"rating": ["4"]}}
    with pytest.raises(FormatError, match=r"`raiting` has a schema.*did you mean `rating`\?"):
        imported(
            {
                "evaluator": "NetworkEventEvaluator",
                "query_params_schema": {"type": "object", "properties": {"raiting": {"type": "array"}}},
                "expected": wrong,
            }
        )


def test_a_key_of_a_task_that_is_none_is_told_with_the_nearest():
    with pytest.raises(
        FormatError, match=r"`chekcs` is not a key of a task \(did you mean checks\?\); known are task_id"
    ):
        read_task_file(b'{"task_id": 1, "chekcs": []}', "file")


def imported(check):
    task = {"task_id": 528, "sites": ["shopping"], "eval": [check]}
    ((_, text),) = read_task_file(json.dumps(task).encode(), "tasks.json")
    return checks.parse(text).checks[0]


def test_what_must_not_be_there_is_imported_without_a_status_that_nobody_wrote():
    expected = {"url": "__SHOPPING__/contact/post", "http_method": "POST"}
    check = imported({"evaluator": "NetworkEventEvaluator", "should_not_exist": True, "expected": expected})

    assert (check.should_not_exist, check.http_method, check.response_statuses) == (True, "POST", ())
    sent = trace(entry("/contact/post", "POST", 302, form="a=1"))
    assert matching.run_check(check, sent, {"shopping": (SHOP,)}).result == "fail"


@pytest.mark.parametrize(("task_type", "compared"), [("retrieve", True), ("mutate", False), ("navigate", False)])
def test_no_data_is_expected_of_those_tasks_alone_that_retrieve_some(task_type, compared):
    expected = {"task_type": task_type, "status": "SUCCESS", "retrieved_data": None}
    check = imported({"evaluator": "AgentResponseEvaluator", "expected": expected})

    assert (check.retrieved_data is not NOT_GIVEN) is compared


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"[]", "no_tasks"),
        (b"7", "wrong_type"),
        (b'{"checks": []}', "no_task_id"),
        (b'{"task_id": true, "checks": []}', "no_task_id"),
        (b'{"task_id": 1, "check": []}', "unknown_key"),
        (b'{"task_id": 1, "checks": []}', "no_checks"),
        (b'{"task_id": 1, "eval": 7}', "wrong_type"),
        (json.dumps([TASK, TASK]).encode(), "task_twice"),
        (b"[1, 2", "json_invalid"),
        (b"\xff\xfe", "not_utf8"),
    ],
)
def test_a_file_that_is_none_is_refused(data, code):
    with pytest.raises(FormatError) as refused:
        read_task_file(data, "file")
    assert refused.value.problems[0].code == code
