"""Parser of the network checks that maintainers write: YAML to `Checks`, every mistake with its line.

```yaml
sites:
  shop: [http://shop.example]          # written as __SHOP__
checks:
  - name: Shows the tablets, newest first
    key_point: Sorted by newest first
    url: __SHOP__/c/tablets
    query_params: {sort: newest, rating: 4.5}
    query_params_schema: {rating: {type: number}}
```
docs/judges-network-trace.md explains every key. The keys may also be arranged as in WebArena-Verified, with the
expectations under ``expected``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from annotation.formats.documents import MOST_PROBLEMS, FormatError
from annotation.formats.printable import printable
from annotation.formats.yaml_text import Place, parse_yaml
from judges.scorers.network_trace.addresses import parse_address
from judges.scorers.network_trace.check_reader import LONGEST_NAME, CheckReader
from judges.scorers.network_trace.model import ANSWER, NETWORK, NOT_GIVEN, AnswerCheck, Checks, NetworkCheck
from judges.scorers.network_trace.patterns import is_pattern
from judges.scorers.network_trace.trace import MUTATING

MOST_CHECKS = 200
MOST_SITES = 50
# Characters that JSON accepts, but YAML refuses or takes for the end of a line.
BREAKING = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
TOP_KEYS = ("sites", "task_type", "checks")
SHARED_KEYS = ("name", "key_point", "evaluator")
METHODS = ("get", "head", "post", "put", "patch", "delete", "options", "connect", "trace")
EVENT_TYPES = ("navigation", "mutation", "other")
# Readers of the value of each key, in the order in which problems are reported. Schemas come before their values.
NETWORK_READERS: dict[str, tuple[Any, ...]] = {
    "query_params_schema": (CheckReader.read_schemas,),
    "post_data_schema": (CheckReader.read_schemas,),
    "query_params": (CheckReader.read_parameters,),
    "http_method": (CheckReader.read_word, METHODS),
    "url": (CheckReader.read_urls,),
    "event_type": (CheckReader.read_word, EVENT_TYPES),
    "response_status": (CheckReader.read_statuses,),
    "last_event_only": (CheckReader.read_flag,),
    "should_not_exist": (CheckReader.read_flag,),
    "ignored_query_params": (CheckReader.read_texts,),
    "ignored_query_params_patterns": (CheckReader.read_patterns,),
    "decode_base64_query": (CheckReader.read_flag,),
    "post_data": (CheckReader.read_values,),
    "ignored_post_data_params_patterns": (CheckReader.read_patterns,),
    "headers": (CheckReader.read_values,),
    "response_content": (CheckReader.read_values,),
    "response_cookies": (CheckReader.read_values,),
}
NETWORK_KEYS = (*SHARED_KEYS, *NETWORK_READERS)
ANSWER_KEYS = (
    *SHARED_KEYS, "task_type", "status", "retrieved_data", "results_schema", "ordered", "fields", "fields_schema",
)  # fmt: skip
EXPECTED_KEYS = {
    NETWORK: ("url", "headers", "query_params", "post_data", "response_content", "response_cookies", "response_status",
              "http_method", "event_type"),
    ANSWER: ("task_type", "status", "retrieved_data", "fields"),
}  # fmt: skip
EVALUATORS = {
    NETWORK: NETWORK, ANSWER: ANSWER, "networkeventevaluator": NETWORK, "agentresponseevaluator": ANSWER,
}  # fmt: skip
TASK_TYPES = ("retrieve", "navigate", "mutate")

Given = dict[str, tuple[Place, Any]]
START = (
    "# One check for each key point of the task. Enter the address of the request that proves it, and "
    "remove\n# the #. Delete the checks that no request proves."
)


def parse(text: str, name: str = "checks") -> Checks:
    """Return the checks in ``text``; messages call it ``name``.

    Raises FormatError with all problems: invalid YAML, unknown keys (with the nearest known one), wrong types, bad
    patterns and paths, values that do not fit their schema, unknown sites, contradictions. Each Problem's
    ``where`` is ``line <n>``.
    """
    document = parse_yaml(text, name)
    reading = CheckReader(document, name)
    value = {"checks": document.value} if isinstance(document.value, list) else document.value
    root: Place = () if isinstance(document.value, list) else ("checks",)
    found = _read_checks(reading, value, root)
    if reading.problems:
        raise FormatError(*reading.problems[:MOST_PROBLEMS])
    return found


def write_from_key_points(points: Sequence[str]) -> str:
    """Return a first draft: a commented check for each key point, because no key point names the request to check."""
    lines = [START, "checks:"]
    for number, point in enumerate(points, start=1):
        named = BREAKING.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(point, ensure_ascii=False))
        lines += [f"  # - name: Key point {number}", f"  #   key_point: {named}", "  #   url: https://shop.example/..."]
    return "\n".join(lines) + "\n"


def _read_checks(reading: CheckReader, value: object, root: Place) -> Checks:
    head = reading.read_mapping((), value)
    reading.refuse_unknown_keys((), head, "a key of a set of checks", TOP_KEYS)
    listed = head.get("checks")
    if not isinstance(listed, list) or not 1 <= len(listed) <= MOST_CHECKS:
        reading.refuse(root, "no_checks", f"a list `checks` of 1 to {MOST_CHECKS} checks is required.")
        return Checks(())
    reading.sites = _read_sites(reading, head.get("sites"))
    checks = tuple(_read_check(reading, (*root, number), one) for number, one in enumerate(listed))
    _refuse_same_names(reading, root, checks)
    task_type = reading.read_word(("task_type",), head.get("task_type", ""), TASK_TYPES)
    return Checks(checks, reading.sites, task_type)


def _read_sites(reading: CheckReader, value: object) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    given = reading.read_mapping(("sites",), value)
    if len(given) > MOST_SITES:
        reading.refuse(("sites",), "too_many", f"at most {MOST_SITES} sites are allowed.")
        return {}
    for name, urls in given.items():
        place = ("sites", name)
        plain = name.strip("_").lower()
        if not plain.replace("_", "").isalnum() or not plain.isascii():
            reading.refuse(
                place, "wrong_value", f"{printable(name, 60)} is not a valid site name: use letters, digits and _."
            )
        texts = reading.read_texts(place, urls) if urls is not None else ()
        for text in texts:
            parts = parse_address(text)
            if parts.scheme not in {"http", "https"} or not parts.host or parts.parameters:
                reading.refuse(
                    place,
                    "bad_url",
                    f"{printable(text, 80)} is not the address of a site, such as https://shop.example.",
                )
        found[plain] = texts
    return found


def _read_check(reading: CheckReader, place: Place, value: object) -> NetworkCheck | AnswerCheck:
    if not isinstance(value, dict):
        reading.refuse_type((*place,), "a check, an object with keys such as url", value)
        value = {"url": "http://none.invalid"}
    stated = str(value.get("evaluator", NETWORK)).lower()
    evaluator = EVALUATORS.get(stated, "")
    if not evaluator:
        reading.refuse_unknown_key((*place, "evaluator", str(value["evaluator"])), "an evaluator", (NETWORK, ANSWER))
        evaluator = NETWORK
    given = _flatten(reading, place, value, evaluator)
    return (_read_answer_check if evaluator == ANSWER else _read_network_check)(reading, place, given)


def _flatten(reading: CheckReader, place: Place, value: dict[str, Any], evaluator: str) -> Given:
    """Return the keys of a check with their places; those under ``expected`` are merged with the others."""
    known = NETWORK_KEYS if evaluator == NETWORK else ANSWER_KEYS
    found: Given = {}
    for key, inner in value.items():
        if key == "expected":
            continue
        if key not in known:
            reading.refuse_unknown_key((*place, key), "a key of a check", (*known, "expected"))
        found[key] = ((*place, key), inner)
    for key, inner in reading.read_mapping((*place, "expected"), value.get("expected")).items():
        where = (*place, "expected", key)
        if key not in EXPECTED_KEYS[evaluator]:
            reading.refuse_unknown_key(where, "a key of what is expected", EXPECTED_KEYS[evaluator])
        elif key in found:
            reading.refuse(where, "duplicate_key", f"{key} occurs beside `expected` and inside it; remove one of them.")
        found.setdefault(key, (where, inner))
    # null means that a key is not given, except for a key in which null is a value.
    return {key: one for key, one in found.items() if one[1] is not None or key == "retrieved_data"}


def _read_shared(reading: CheckReader, place: Place, given: Given) -> dict[str, Any]:
    name = reading.read_text(*given["name"], LONGEST_NAME).strip() if "name" in given else ""
    where, point = given.get("key_point", (place, ""))
    if isinstance(point, bool) or not isinstance(point, str | int):
        reading.refuse_type(where, "a key point's text, or its number from 1", point)
        point = ""
    number = place[-1] + 1 if isinstance(place[-1], int) else 1
    return {"name": name or f"check {number}", "key_point": point}


def _read_network_check(reading: CheckReader, place: Place, given: Given) -> NetworkCheck:
    if "url" not in given and not reading.is_misspelt(place, "url"):
        reading.refuse(place, "no_url", "a network check needs a `url`.")
    found: dict[str, Any] = {}
    for key, (read, *more) in NETWORK_READERS.items():
        if key in given:
            schemas = (
                [found.get(f"{key}_schema", {})]
                if read in (CheckReader.read_values, CheckReader.read_parameters)
                else []
            )
            found[key] = read(reading, *given[key], *more, *schemas)
    params = found.pop("query_params", {})
    check = NetworkCheck(
        **_read_shared(reading, place, given),
        urls=found.pop("url", ()),
        http_method=found.pop("http_method", "").upper(),
        response_statuses=found.pop("response_status", ()),
        query_params={name: tuple(one) if isinstance(one, list) else (one,) for name, one in params.items()},
        **found,
    )
    _refuse_contradictions(reading, place, check, given)
    in_url = partial(parse_address, decode_base64=check.decode_base64_query)
    in_urls = [name for url in check.urls if not is_pattern(url) for name, _ in in_url(url).parameters]
    _refuse_schemas_of_nothing(reading, place, given, "query_params", [*check.query_params, *in_urls])
    _refuse_schemas_of_nothing(reading, place, given, "post_data", check.post_data)
    return check


def _read_answer_check(reading: CheckReader, place: Place, given: Given) -> AnswerCheck:
    schema = reading.read_schema(*given["results_schema"]) if "results_schema" in given else None
    fields_schema = reading.read_schemas(*given["fields_schema"]) if "fields_schema" in given else {}
    for key in ("task_type", "status"):
        if key in given:
            reading.read_text(*given[key], LONGEST_NAME)
    if not {"task_type", "status", "retrieved_data", "fields"} & set(given):
        reading.refuse(place, "nothing_expected", "an answer check needs task_type, status, retrieved_data or fields.")
    data = given["retrieved_data"][1] if "retrieved_data" in given else NOT_GIVEN
    items = schema.items if schema and schema.kind == "array" else schema
    if data is not NOT_GIVEN:
        for number, one in enumerate(data if isinstance(data, list) else [data]):
            reading.check_value((*given["retrieved_data"][0], number), one, items or _ANY)
    fields = reading.read_values(*given["fields"], fields_schema) if "fields" in given else {}
    _refuse_schemas_of_nothing(reading, place, given, "fields", fields)
    return AnswerCheck(
        **_read_shared(reading, place, given),
        task_type=str(given["task_type"][1]) if "task_type" in given else "",
        status=str(given["status"][1]) if "status" in given else "",
        retrieved_data=data,
        results_schema=items or _ANY,
        ordered=reading.read_flag(*given["ordered"]) if "ordered" in given else False,
        fields=fields,
        fields_schema=fields_schema,
    )


def _refuse_contradictions(reading: CheckReader, place: Place, check: NetworkCheck, given: Given) -> None:
    method, about = check.http_method, check.event_type
    if about == "navigation" and method not in {"", "GET"}:
        reading.refuse(given["event_type"][0], "contradiction", f"a navigation is a GET, and http_method is {method}.")
    if about == "mutation" and method not in {"", *MUTATING}:
        reading.refuse(given["event_type"][0], "contradiction", f"a {method} is not a mutation.")
    if check.post_data and (about == "navigation" or method in {"GET", "HEAD"}):
        says = f"http_method is {method}" if method in {"GET", "HEAD"} else "a navigation has none"
        reading.refuse(given["post_data"][0], "contradiction", f"post_data is expected, and {says}.")
    for name in check.query_params:
        if name in check.ignored_query_params:
            where = (*given["query_params"][0], name)
            reading.refuse(
                where, "contradiction", f"{printable(name, 60)} is both expected and ignored; remove one of them."
            )
        for url in check.urls:
            _refuse_two_values(reading, given["query_params"][0], name, url)


def _refuse_schemas_of_nothing(
    reading: CheckReader, place: Place, given: Given, key: str, expected: Iterable[str]
) -> None:
    if f"{key}_schema" in given and not reading.is_misspelt(place, key):
        reading.refuse_unexpected(*given[f"{key}_schema"], expected)


def _refuse_two_values(reading: CheckReader, place: Place, name: str, url: str) -> None:
    if is_pattern(url):
        if r"\?" in url:
            says = "the pattern of the url contains the parameters (\\?); remove query_params."
            reading.refuse(place, "contradiction", says)
    elif name in parse_address(url).by_name:
        says = f"{printable(name, 60)} occurs in the url and in query_params; remove one of them."
        reading.refuse((*place, name), "contradiction", says)


def _refuse_same_names(reading: CheckReader, root: Place, checks: tuple[NetworkCheck | AnswerCheck, ...]) -> None:
    seen = set()
    for number, check in enumerate(checks):
        if check.name in seen:
            says = f"two checks have the name {printable(check.name, 60)}."
            reading.refuse((*root, number, "name"), "same_name", says)
        seen.add(check.name)


_ANY = AnswerCheck(name="").results_schema
