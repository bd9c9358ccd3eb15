"""What a trajectory of a task is held against: network checks and checks of the agent's answer."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from judges.scorers.network_trace.trace import MUTATING
from judges.scorers.network_trace.values import Schema

NETWORK, ANSWER = "network_event", "agent_response"
Compat = Literal["", "webarena-verified"]
WEBARENA: Compat = "webarena-verified"
NOT_GIVEN: Any = object()
# What YAML takes for the end of a line, or does not take at all, and JSON does.
BREAKING = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """What every check has. ``key_point`` is a key point's text, its number from 1, or ""; ``given`` are the keys as
    they were written, in the flat form; ``line`` is where."""

    name: str
    key_point: str | int = ""
    given: Mapping[str, Any] = field(default_factory=dict)
    line: int = field(default=1, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkCheck(Check):
    """An event that must be in the trace, or (``should_not_exist``) must not. What is empty is not compared.

    ``urls`` and ``response_statuses`` are alternatives. ``query_params`` has all values of each parameter.
    ``last_event_only`` is None where nothing was written.
    """

    urls: tuple[str, ...]
    http_method: str = ""
    event_type: str = ""
    response_statuses: tuple[int, ...] = ()
    last_event_only: bool | None = None
    should_not_exist: bool = False
    query_params: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    query_params_schema: Mapping[str, Schema] = field(default_factory=dict)
    ignored_query_params: tuple[str, ...] = ()
    ignored_query_params_patterns: tuple[str, ...] = ()
    decode_base64_query: bool = False
    post_data: Mapping[str, Any] = field(default_factory=dict)
    post_data_schema: Mapping[str, Schema] = field(default_factory=dict)
    ignored_post_data_params_patterns: tuple[str, ...] = ()
    headers: Mapping[str, Any] = field(default_factory=dict)
    response_content: Mapping[str, Any] = field(default_factory=dict)
    response_cookies: Mapping[str, Any] = field(default_factory=dict)

    @property
    def about(self) -> str:
        """The type of event that the check is about: what was written, else what its other keys say."""
        if self.event_type:
            return self.event_type
        if self.http_method not in {"", "GET", *MUTATING}:
            return "other"
        return "mutation" if self.post_data or self.http_method in MUTATING else "navigation"

    @property
    def only_the_last(self) -> bool:
        return not self.should_not_exist if self.last_event_only is None else self.last_event_only


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerCheck(Check):
    """What the agent's structured answer must say. ``retrieved_data`` is `NOT_GIVEN` where it is not compared;
    ``fields`` are other parts of the answer by name or path."""

    task_type: str = ""
    status: str = ""
    retrieved_data: Any = NOT_GIVEN
    results_schema: Schema = field(default_factory=Schema)
    ordered: bool = False
    fields: Mapping[str, Any] = field(default_factory=dict)
    fields_schema: Mapping[str, Schema] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Checks:
    """The checks of a task. ``sites`` has the addresses of each site that a placeholder may name; none where they are
    left to the judge. ``task_type`` is that of an answer check, or was written: upstream's rules depend on it."""

    checks: tuple[NetworkCheck | AnswerCheck, ...]
    sites: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    task_type: str = ""

    @property
    def need_trace(self) -> bool:
        return any(isinstance(one, NetworkCheck) for one in self.checks)

    def as_json(self) -> dict[str, Any]:
        """The checks as they are written, in the flat form; `checks.parse` reads it as the same."""
        head: dict[str, Any] = {"sites": {name: list(urls) for name, urls in self.sites.items()}} if self.sites else {}
        if self.task_type:
            head["task_type"] = self.task_type
        return head | {"checks": [dict(check.given) for check in self.checks]}

    def canonical(self) -> str:
        """The same text for the same checks, however they were written."""
        text = json.dumps(self.as_json(), ensure_ascii=False, sort_keys=True, separators=(",", ":"))
        return BREAKING.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
