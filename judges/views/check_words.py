"""Network checks in plain words, as somebody reads them who has never seen their YAML."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from judges.scorers.network_trace.model import NOT_GIVEN, AnswerCheck, Checks, NetworkCheck
from judges.scorers.network_trace.values import Schema

LONGEST = 2_000  # characters of one fact
Fact = tuple[str, str]


@dataclass(frozen=True, slots=True)
class CheckDescription:
    """``summary`` is what must have happened, ``facts`` are a title and a text each."""

    name: str
    key_point: str
    should_not_exist: bool
    summary: str
    facts: list[Fact]


def describe_checks(found: Checks) -> list[CheckDescription]:
    return [
        _describe_answer(check) if isinstance(check, AnswerCheck) else _describe_network(check)
        for check in found.checks
    ]


def list_sites(found: Checks) -> list[tuple[str, str]]:
    return [
        (f"__{name.upper()}__", " or ".join(urls) or "whatever the judge says") for name, urls in found.sites.items()
    ]


# --- requests --------------------------------------------------------------------------------------------------------


def _describe_network(check: NetworkCheck) -> CheckDescription:
    what = {"navigation": "page opened", "mutation": "request that changes something", "other": "request"}
    kind = what.get(check.about, "request")
    method = f" by {check.http_method}" if check.http_method else ""
    urls = " or ".join(f"the pattern {url}" if url.startswith("^") else url for url in check.urls)
    if check.should_not_exist:
        summary = f"There must be no {kind}{method}: {urls}"
    elif check.only_the_last:
        summary = f"The last {kind}{method} must be {urls}"
    else:
        summary = f"There must be a {kind}{method}: {urls}"
    return CheckDescription(
        check.name,
        str(check.key_point),
        check.should_not_exist,
        _cut(summary),
        [_build_fact(*one) for one in _list_facts(check)],
    )


def _list_facts(check: NetworkCheck) -> Iterator[Fact]:
    if check.response_statuses:
        yield "Status", " or ".join("no response" if one == -1 else str(one) for one in check.response_statuses)
    for name, values in check.query_params.items():
        yield (
            f"Parameter {name}",
            ", ".join(map(_format_value, values)) + _describe_schema(check.query_params_schema.get(name)),
        )
    ignored = [*check.ignored_query_params, *(f"those like {one}" for one in check.ignored_query_params_patterns)]
    if ignored:
        yield "Parameters that do not matter", ", ".join(ignored)
    if check.decode_base64_query:
        yield "Parameters", "are decoded from base64 first"
    for name, value in check.post_data.items():
        yield f"Sent {name}", _format_value(value) + _describe_schema(check.post_data_schema.get(name))
    if check.ignored_post_data_params_patterns:
        yield "Sent fields that do not matter", ", ".join(check.ignored_post_data_params_patterns)
    yield from _name_check("Header", check.headers)
    yield from _name_check("Answer", check.response_content)
    yield from _name_check("Cookie", check.response_cookies)


def _name_check(title: str, values: Mapping[str, Any]) -> Iterator[Fact]:
    yield from ((f"{title} {name}", _format_value(value)) for name, value in values.items())


# --- the agent's answer ----------------------------------------------------------------------------------------------


def _describe_answer(check: AnswerCheck) -> CheckDescription:
    order = "in this order" if check.ordered else "in any order"
    facts: list[Fact] = []
    if check.task_type:
        facts.append(("Kind of task", check.task_type))
    if check.status:
        facts.append(("Status", check.status))
    if check.retrieved_data is not NOT_GIVEN:
        several = isinstance(check.retrieved_data, list) and len(check.retrieved_data) > 1
        facts.append(
            (
                "Data",
                _format_value(check.retrieved_data)
                + _describe_schema(check.results_schema)
                + (f", {order}" if several else ""),
            )
        )
    facts += [(f"Field {name}", _format_value(value)) for name, value in check.fields.items()]
    summary = "The agent's structured answer must say this"
    return CheckDescription(check.name, str(check.key_point), False, summary, [_build_fact(*one) for one in facts])


def _describe_schema(schema: Schema | None) -> str:
    while schema is not None and schema.kind == "array" and schema.items is not None:
        schema = schema.items
    return f" (compared as {schema.kind})" if schema is not None and schema.kind not in ("", "string") else ""


def _format_value(value: Any) -> str:
    if isinstance(value, str):
        return f"the pattern {value}" if value.startswith("^") else value or '""'
    if isinstance(value, list) and all(isinstance(one, str | int | float) for one in value):
        return ", ".join(map(_format_value, value))
    return json.dumps(value, ensure_ascii=False)


def _build_fact(title: str, text: str) -> Fact:
    return _cut(title), _cut(text)


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
