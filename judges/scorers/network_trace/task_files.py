"""Reader of check files for many tasks, and of tasks of WebArena-Verified: pairs of a task id and a text of checks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from annotation.formats.documents import MOST_PROBLEMS, FormatError, decode_text, kind_of, parse_json
from annotation.formats.printable import printable
from annotation.formats.yaml_text import did_you_mean, parse_yaml, written
from annotation.records import Problem
from judges.scorers.network_trace.checks import parse

MOST_TASKS = 20_000
TASK_KEYS = ("task_id", "checks", "sites", "task_type")


def read_task_file(data: bytes, name: str) -> list[tuple[str, str]]:
    """Return pairs of a task id and its checks as YAML, in the order of the file.

    The file is JSON (a list, or one task), JSON Lines, or YAML, of objects ``{task_id, checks, sites?, task_type?}``
    or tasks of WebArena-Verified (``task_id``, ``sites``, ``eval``). The defaults of WebArena-Verified (GET,
    status 200 of an event that must exist) are written out; the addresses of its sites are left to the judge. Raises
    FormatError with all problems.
    """
    problems: list[Problem] = []
    found: dict[str, str] = {}
    for where, value in _find_tasks(data, name):
        try:
            task_id, text = _read_pair(value, where)
            parse(text, f"{name}: task {printable(task_id, 60)}")
        except FormatError as error:
            problems += error.problems
            continue
        if task_id in found:
            problems.append(Problem("task_twice", f"{where}: task {printable(task_id, 60)} is listed twice.", where))
        found[task_id] = text
    if not found and not problems:
        problems.append(Problem("no_tasks", f"{name}: has no tasks.", name))
    if problems:
        raise FormatError(*problems[:MOST_PROBLEMS])
    return list(found.items())


def _find_tasks(data: bytes, name: str) -> Iterator[tuple[str, Any]]:
    value = _parse_document(data, name)
    listed = value if isinstance(value, list) else [value]
    if len(listed) > MOST_TASKS:
        raise FormatError(Problem("too_many", f"{name}: has more than {MOST_TASKS:,} tasks.", name))
    for number, one in enumerate(listed):
        yield f"{name}: [{number}]" if isinstance(value, list) else name, one


def _parse_document(data: bytes, name: str) -> Any:
    start = data.removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
    if start not in {b"[", b"{"}:
        return parse_yaml(decode_text(data, name), name).value
    lines = [line for line in data.splitlines() if line.strip()]
    if start == b"{" and len(lines) > 1 and _closes(lines[0]):
        return [parse_json(line, f"{name}: line {number}") for number, line in enumerate(lines[: MOST_TASKS + 1], 1)]
    return parse_json(data, name)


def _closes(line: bytes) -> bool:
    try:
        return isinstance(parse_json(line, ""), dict)
    except FormatError:
        return False


def _read_pair(value: Any, where: str) -> tuple[str, str]:
    if not isinstance(value, dict):
        raise FormatError(Problem("wrong_type", f"{where}: a task must be an object, not {kind_of(value)}.", where))
    task_id = value.get("task_id")
    if isinstance(task_id, bool) or not isinstance(task_id, str | int) or task_id == "":
        raise FormatError(Problem("no_task_id", f"{where}: task_id must be text or a number.", where))
    if "eval" in value:
        return str(task_id), written(convert_webarena(value, where))
    unknown = [key for key in value if key not in TASK_KEYS]
    if unknown:
        hint = did_you_mean(unknown[0], TASK_KEYS)
        message = (
            f"{where}: `{printable(unknown[0], 60)}` is not a key of a task{hint}; known are {', '.join(TASK_KEYS)}."
        )
        raise FormatError(Problem("unknown_key", message, where))
    return str(task_id), written({key: value[key] for key in ("sites", "task_type", "checks") if key in value})


def convert_webarena(task: dict[str, Any], where: str) -> dict[str, Any]:
    sites, evaluators = task.get("sites"), task["eval"]
    if (
        not isinstance(sites, list)
        or not isinstance(evaluators, list)
        or not all(isinstance(one, str) for one in sites)
    ):
        message = f"{where}: a task of WebArena-Verified must have the lists `sites` and `eval`."
        raise FormatError(Problem("wrong_type", message, where))
    return {
        "sites": {name.strip("_").lower(): [] for name in sites},
        "checks": [_make_explicit(one) for one in evaluators],
    }


def _make_explicit(check: Any) -> Any:
    """Return a check of WebArena-Verified with its default values written out, and with its date format: month
    first."""
    if not isinstance(check, dict):
        return check
    check = {key: _month_first(value) if key.endswith("_schema") else value for key, value in check.items()}
    expected = check.get("expected")
    if not isinstance(expected, dict):
        return check
    check = _drop_idle_schemas(check, expected.get("post_data"))
    if check.get("evaluator") == "AgentResponseEvaluator":
        return check | {"expected": _convert_expected(expected)}
    if check.get("evaluator") != "NetworkEventEvaluator":
        return check
    taken: dict[str, Any] = {} if expected.get("post_data") else {"http_method": "GET"}  # nothing is sent with a GET
    if not check.get("should_not_exist"):  # an event that must not exist must not exist with another status either
        taken["response_status"] = 200
    return check | {"expected": expected | {key: value for key, value in taken.items() if key not in expected}}


def _drop_idle_schemas(check: dict[str, Any], sent: Any) -> dict[str, Any]:
    """Return the check without schemas of fields that have no expected value: some tasks have them, unused."""
    schema = check.get("post_data_schema")
    if not isinstance(schema, dict) or not isinstance(schema.get("properties"), dict) or not isinstance(sent, dict):
        return check
    properties = schema["properties"]
    return check | {"post_data_schema": schema | {"properties": {k: v for k, v in properties.items() if k in sent}}}


def _convert_expected(expected: dict[str, Any]) -> dict[str, Any]:
    """Drop a null as the data of a task that retrieves nothing: it is not compared."""
    if expected.get("retrieved_data") is not None or str(expected.get("task_type", "")).lower() == "retrieve":
        return expected
    return {key: value for key, value in expected.items() if key != "retrieved_data"}


def _month_first(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_month_first(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    found = {key: _month_first(value) for key, value in schema.items()}
    return found | {"date_format": "MM/DD/YYYY"} if found.get("format") == "date" else found
