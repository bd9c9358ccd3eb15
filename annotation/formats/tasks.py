"""Read task lists of a benchmark (JSON), and find a task by a similar id."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterator
from typing import Any, BinaryIO, TypeGuard

from annotation.formats.documents import FormatError, kind_of, read_list
from annotation.formats.printable import printable
from annotation.records import Problem, TaskRecord

TASK_ID = re.compile(r"[A-Za-z0-9_-]+")
OPTIONAL_KEYS = ("website", "reference_length", "level", "key_points")
OPTIONAL_WEBARENA_KEYS = ("start_urls", "sites")
KEYS = frozenset({"task_id", "confirmed_task", "website", "reference_length", "level", "key_points", "intent"})
LONGEST_TASK_ID = 128
LONGEST_TEXT = 1_000_000
LONGEST = {"website": 500, "level": 40}  # limits of the columns; every other field is a long text
LARGEST_LENGTH = 2**31 - 1
DATE_SUFFIX = re.compile(r"_(0[1-9]|1[0-2])(0[1-9]|[12][0-9]|3[01])([0-9]{2})\Z")
MOST_PROBLEMS = 1_000
MOST_KEYS = 100  # limit of the search for a misspelt key
MISSPELT = 0.75  # minimum similarity; lists may have their own keys
CLOSE_ENOUGH = 0.85  # two unrelated 32 digit hashes reach about 0.6


def task_id_problem(value: object) -> str | None:
    """Return the problem of a task id, or None."""
    if not isinstance(value, str):
        return f"task_id must be text, not {kind_of(value)}"
    if len(value) > LONGEST_TASK_ID:
        return f"task_id has {len(value):,} characters; the limit is {LONGEST_TASK_ID}"
    if not TASK_ID.fullmatch(value):
        return f"task_id '{printable(value)}' may only contain letters, digits, _ and -"
    return None


def is_count(value: object) -> TypeGuard[int]:
    """Return whether ``value`` is a whole number from 0 that fits a database column; true and 5.0 are not."""
    return type(value) is int and 0 <= value <= LARGEST_LENGTH


def read_tasks(
    source: BinaryIO, name: str, problems: list[Problem], warnings: list[tuple[str, Problem]] | None = None
) -> Iterator[TaskRecord]:
    """Yield the tasks of a JSON list of objects, and add its problems to ``problems``.

    ``warnings`` gets one warning with its task id for each key that looks like a misspelt optional one.

    Keys: task_id, confirmed_task, website, reference_length, level, optional key_points (list of texts); or those of
    WebArena-Verified: task_id (a number), intent, start_urls and sites (the first of both is the website). Identical
    entries count once. Memory contains the ids and one entry.
    """
    name = printable(name)
    hashes: dict[str, int] = {}
    checked_keys: set[str] = set()
    left_out = 0
    try:
        for index, (entry, wrong) in enumerate(read_list(source, name)):
            task, found = (None, wrong) if wrong else _read_task(entry, f"{name}: [{index}]")
            if task is not None and task.task_id not in hashes:
                hashes[task.task_id] = hash(task)
                if warnings is not None:
                    where = f"{name}: [{index}]"
                    warnings += [(task.task_id, each) for each in _misspelt_keys(entry, task, where, checked_keys)]
                yield task
            elif task is not None and hashes[task.task_id] != hash(task):
                message = f"[{index}] task_id {task.task_id} occurs twice with different content. Remove one of them."
                found = [Problem("duplicate_task", message, f"{name}: [{index}]")]
            room = max(0, MOST_PROBLEMS - len(problems))
            problems += found[:room]
            left_out += len(found[room:])
    except FormatError as error:
        problems += error.problems
    if left_out:
        problems.append(Problem("more_problems", f"{name}: and {left_out:,} more problems.", name))


def base_task_id(task_id: str) -> str:
    """Return ``task_id`` without the ``_MMDDYY`` date of a task that replaces another."""
    return DATE_SUFFIX.sub("", task_id)


def nearest(task_id: str, known: Collection[str]) -> str | None:
    """Return the known id that was probably meant (another date of the same task, or a similar id), or None."""
    if len(task_id) > LONGEST_TASK_ID:
        return None
    base = base_task_id(task_id)
    generations = [other for other in known if base_task_id(other) == base]
    if generations:
        return max(generations, key=task_date)
    close = difflib.get_close_matches(task_id, known, n=1, cutoff=CLOSE_ENOUGH)
    return close[0] if close else None


def task_date(task_id: str) -> tuple[str, ...]:
    """Return year, month and day of the suffix, or an empty tuple, which sorts first."""
    found = DATE_SUFFIX.search(task_id)
    return (found[3], found[1], found[2]) if found else ()


def _read_task(entry: object, where: str) -> tuple[TaskRecord | None, list[Problem]]:
    if not isinstance(entry, dict):
        return None, [Problem("wrong_type", f"{where} must be an object, not {kind_of(entry)}.", where)]
    is_webarena = "intent" in entry and "confirmed_task" not in entry
    says = _check_webarena(entry) if is_webarena else _check_listed(entry)
    task_id = entry.get("task_id")
    who = f" (task {printable(str(task_id))})" if isinstance(task_id, str) or is_count(task_id) else ""
    problems = [Problem("task_invalid", f"{where}{who}: {text}.", where) for text in says if text]
    if problems:
        return None, problems
    if is_webarena:
        places = [*(entry.get("start_urls") or ()), *(entry.get("sites") or ())]
        return TaskRecord(str(task_id), entry["intent"], website=next(filter(None, places), "")), []
    return TaskRecord(
        task_id=entry["task_id"],
        text=entry["confirmed_task"],
        website=entry.get("website") or "",
        reference_length=entry.get("reference_length"),
        level=entry.get("level") or "",
        key_points=tuple(entry.get("key_points") or ()),
    ), []


def _check_listed(entry: dict[str, Any]) -> Iterator[str | None]:
    yield task_id_problem(entry["task_id"]) if "task_id" in entry else _missing(entry, "task_id")
    yield _check_text(entry, "confirmed_task", required=True)
    yield from (_check_text(entry, key) for key in ("website", "level"))
    length, points = entry.get("reference_length"), entry.get("key_points")
    if length is not None and not is_count(length):
        yield "reference_length must be a whole number or null"
    if points is not None and not _are_key_points(points):
        yield "key_points must be a list of texts"


def _check_webarena(entry: dict[str, Any]) -> Iterator[str | None]:
    task_id = entry.get("task_id")
    if "task_id" not in entry:
        yield _missing(entry, "task_id")
    elif isinstance(task_id, str):
        yield task_id_problem(task_id)
    elif not is_count(task_id):
        yield "task_id must be text or a whole number from 0"
    yield _check_text(entry, "intent", required=True)
    for key in OPTIONAL_WEBARENA_KEYS:
        value = [] if entry.get(key) is None else entry[key]
        if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
            yield f"{key} must be a list of texts"
        elif any(len(each) > LONGEST["website"] for each in value):
            yield f"{key} has a text of more than {LONGEST['website']:,} characters"


def _check_text(entry: dict[str, object], key: str, *, required: bool = False) -> str | None:
    value, longest = entry.get(key), LONGEST.get(key, LONGEST_TEXT)
    if value is None and not required:
        return None
    if not isinstance(value, str):
        return f"{key} must be text, not {kind_of(value)}" if key in entry else _missing(entry, key)
    if len(value) > longest:
        return f"{key} is longer than {longest:,} characters"
    return f"{key} is empty" if required and not value.strip() else None


def _are_key_points(points: object) -> bool:
    return isinstance(points, list) and all(
        isinstance(point, str) and 0 < len(point.strip()) <= LONGEST_TEXT for point in points
    )


def _missing(entry: dict[str, Any], key: str) -> str:
    others = [other for other in list(entry)[:MOST_KEYS] if other not in KEYS and len(other) < LONGEST_TASK_ID]
    near = difflib.get_close_matches(key, others, n=1)
    return f"{key} is missing; {near[0]} looks like a misspelling of it" if near else f"{key} is missing"


def _misspelt_keys(entry: Any, task: TaskRecord, where: str, checked: set[str]) -> list[Problem]:
    """Return a warning for each key that looks like a missing optional one; ``checked`` has the keys seen before."""
    optional = OPTIONAL_KEYS if "confirmed_task" in entry else OPTIONAL_WEBARENA_KEYS
    absent = [key for key in optional if key not in entry]
    found = []
    for key in entry:
        if key in KEYS or key in OPTIONAL_WEBARENA_KEYS or key in checked or len(key) > LONGEST_TASK_ID:
            continue
        if len(checked) == MOST_KEYS:
            break
        checked.add(key)
        if near := difflib.get_close_matches(key.lower(), absent, n=1, cutoff=MISSPELT):
            says = f"{where} (task {task.task_id}): the key {printable(key)} is ignored (did you mean {near[0]}?)."
            found.append(Problem("unknown_property", says, where))
    return found
