"""Task lists of any length: read element by element, written in batches, all or nothing."""

from __future__ import annotations

import io
import json
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext

from annotation import catalogue
from annotation.formats.documents import CHUNK, LARGEST_ELEMENT, MOST_VALUES, FormatError, read_list
from annotation.formats.tasks import read_tasks
from annotation.models import Benchmark, KeyPoint, Task
from annotation.tests import testing


class Generated(io.RawIOBase):
    """A stream of bytes that are made while they are read."""

    def __init__(self, parts: Iterator[bytes]) -> None:
        self._parts, self._left = parts, b""

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        while len(self._left) < size and (part := next(self._parts, b"")):
            self._left += part
        given, self._left = self._left[:size], self._left[size:]
        return given


def listed(count: int, **fields: Any) -> Iterator[bytes]:
    for number in range(count):
        yield (b"[" if number == 0 else b",\n") + json.dumps(testing.task(number, **fields)).encode()
    yield b"]"


def elements(data: bytes, name: str = "list.json") -> list[Any]:
    return [value for value, _ in read_list(io.BytesIO(data), name)]


def refused(data: bytes) -> FormatError:
    with pytest.raises(FormatError) as raised:
        elements(data)
    return raised.value


# --- reading ----------------------------------------------------------------------------------------------------------


def test_list_of_more_values_than_a_document_may_have_is_read() -> None:
    count = MOST_VALUES // 1000 + 100
    problems: list[Any] = []
    tasks = list(read_tasks(Generated(listed(count, other=[0] * 1000)), "tasks.json", problems))

    assert problems == []
    assert [tasks[0].task_id, tasks[-1].task_id] == ["task_0000", f"task_{count - 1}"]


@pytest.mark.slow
def test_reading_a_long_list_takes_the_memory_of_a_chunk() -> None:
    """40 MB of tasks, each with an unknown key of 10,000 characters: what is held is some chunks of 1 MiB."""
    problems: list[Any] = []
    tracemalloc.start()
    count = sum(1 for _ in read_tasks(Generated(listed(4_000, other="x" * 10_000)), "tasks.json", problems))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert (count, problems) == (4_000, [])
    assert peak < 12 * CHUNK


@pytest.mark.parametrize("shift", range(0, 40, 3))
def test_values_are_whole_wherever_a_chunk_ends(shift: int) -> None:
    values = [{"é\n": [-12.5e3, None, True], "ü": '\\"\u2028😀'}, 1234567890, False, -0.25, "x", [], {}]
    data = json.dumps([" " * (CHUNK - 30 - shift), *values]).encode()

    assert elements(data)[1:] == values
    raw = json.dumps([" " * (CHUNK - 30 - shift), *values], ensure_ascii=False, indent=9).encode()
    assert elements(raw)[1:] == values


@pytest.mark.parametrize(
    ("data", "code", "says"),
    [
        (b"", "json_invalid", "line 1 column 1: Expecting value"),
        (b'{"tasks": []}', "not_a_list", "must be a list of tasks, not an object"),
        (b"5", "not_a_list", "not a whole number"),
        (b"[1,\n 2 3]", "json_invalid", "line 2 column 4: Expecting ',' delimiter"),
        (b"[1,]", "json_invalid", "line 1 column 4: Expecting value"),
        (b"[1", "json_invalid", "line 1 column 3: Expecting ',' delimiter"),
        (b"[1] 2", "json_invalid", "line 1 column 5: Extra data"),
        (b'["a', "json_invalid", "Unterminated string"),
        (
            b"[" + b"\n" * CHUNK + b"[1, x, " + b" " * 99,
            "json_invalid",
            f"line {CHUNK + 1:,} column 5: Expecting value",
        ),
        (b'["' + b"a" * CHUNK + b'", tru', "json_invalid", f"column {CHUNK + 6:,}: Expecting value"),
        (b'["\xff"]', "not_utf8", "byte 2, line 1"),
        (b"[\n" + b" " * CHUNK + b'"\xff"]', "not_utf8", f"byte {CHUNK + 3:,}, line 2"),
        ("[]".encode("utf-16"), "not_utf8", "UTF-16"),
        (b"[\n\x00]", "nul_character", "line 2"),
        (b"[" + b"[" * 200_000, "json_invalid", "nested too deeply"),
        (b"[1" + b"0" * 5000 + b"]", "json_invalid", "thousands of digits"),
        (b'["' + b"a" * (LARGEST_ELEMENT + 3 * CHUNK) + b'"]', "json_too_large", "an element"),
        (b"[[" + b"0," * (MOST_VALUES + CHUNK), "json_too_large", "an element"),
    ],
)
def test_list_that_is_no_json_is_refused_with_the_place(data: bytes, code: str, says: str) -> None:
    (problem,) = refused(data).problems

    assert problem.code == code
    assert says in problem.message


def test_byte_order_mark_is_no_part_of_a_list() -> None:
    assert elements(b"\xef\xbb\xbf [ 1 , 2 ] \n") == [1, 2]
    assert elements(b"[]") == []


def test_value_that_cannot_be_stored_is_reported_with_its_element() -> None:
    data = b'[{"a": 1}, {"b": "\\ud800", "c": NaN, "c": 1}]'
    (_, none), (_, problems) = read_list(io.BytesIO(data), "list.json")

    assert none == []
    assert [problem.code for problem in problems] == ["duplicate_key", "text_unstorable"]
    assert problems[1].where == "list.json: [1].b"


def test_misspelt_key_of_a_task_is_named() -> None:
    problems: list[Any] = []
    data = json.dumps([{"task_id": "a", "confirmd_task": "Do it."}]).encode()

    assert list(read_tasks(io.BytesIO(data), "tasks.json", problems)) == []
    assert "confirmed_task is missing; confirmd_task looks like a misspelling of it" in problems[0].message


def test_problems_of_a_long_list_are_cut_short_and_counted() -> None:
    problems: list[Any] = []
    list(read_tasks(io.BytesIO(b"[" + b"5," * 1_500 + b"5]"), "tasks.json", problems))

    assert len(problems) == 1_001
    assert problems[-1].message == "tasks.json: and 501 more problems."


# --- writing ----------------------------------------------------------------------------------------------------------


def load(count: int, **fields: Any) -> Any:
    return catalogue.import_task_list(Generated(listed(count, **fields)), "tasks.json", benchmark_slug="shops")


@pytest.mark.django_db
def test_queries_grow_with_batches_and_not_with_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogue, "BATCH", 50)
    load(1)
    costs = []
    for count in (50, 200):
        Task.objects.all().delete()
        with CaptureQueriesContext(connection) as asked:
            load(count)
        with CaptureQueriesContext(connection) as asked_again:
            load(count)
        costs.append((len(asked), len(asked_again)))

    assert (Task.objects.count(), KeyPoint.objects.count()) == (200, 400)
    (first, again), (of_four, again_of_four) = costs
    assert of_four - first <= 3 * 6  # a query for known tasks, two inserts of two savepoints each
    assert again_of_four - again <= 3 * 2


@pytest.mark.django_db
def test_problem_in_the_last_batch_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogue, "BATCH", 10)
    tasks = [testing.task(number) for number in range(35)] + [{"task_id": "a b"}]
    report = catalogue.import_tasks(json.dumps(tasks).encode(), "tasks.json", benchmark_slug="shops")

    assert {problem.where for problem in report.rejected[""]} == {"tasks.json: [35]"}
    assert report.accepted == []
    assert not Benchmark.objects.exists()
    assert not Task.objects.exists()


@pytest.mark.django_db
def test_changed_task_in_a_batch_becomes_a_version_with_its_own_key_points() -> None:
    load(3)
    tasks = [
        testing.task(0),
        testing.task(1, confirmed_task="Another text."),
        testing.task(2, key_points=["A new one"]),
    ]
    report = catalogue.import_tasks(json.dumps(tasks).encode(), "tasks.json", benchmark_slug="shops")

    assert [(task_id, warning.code) for task_id, warning in report.warnings] == [("task_0001", "task_changed")]
    changed = Task.objects.get(external_id="task_0001", version=2)
    assert list(changed.key_points.values_list("position", "text")) == [
        (0, "at least 16 GB"),
        (1, "cheapest by sorting"),
    ]
    added = Task.objects.get(external_id="task_0002").key_points.order_by("position")
    assert list(added.values_list("position", "text"))[2:] == [(2, "A new one")]


@pytest.mark.django_db
def test_command_reads_a_list_in_parts_and_names_a_file_that_is_not_there(tmp_path: Path, capsys: Any) -> None:
    file = tmp_path / "tasks.json"
    file.write_bytes(b"".join(listed(3)))
    call_command("import_tasks", str(file), benchmark="shops")
    assert "3 tasks accepted, 0 warnings." in capsys.readouterr().out
    with pytest.raises(CommandError, match="cannot be read: No such file"):
        call_command("import_tasks", str(tmp_path / "none.json"), benchmark="shops")
