"""Task lists: strict types, every problem with its place, and ids that are written a little differently."""

from __future__ import annotations

import io
import json
import zipfile

import pytest

from annotation.formats.labels_csv import read_labels
from annotation.formats.tasks import base_task_id, nearest, read_tasks
from annotation.records import TaskRecord
from annotation.tests.formats_builders import codes, said
from annotation.tests.testing import task


def read_bytes(data):
    problems = []
    return list(read_tasks(io.BytesIO(data), "tasks.json", problems)), problems


def zip_of(name):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr(name, bytes(range(256)))
    return packed.getvalue()


def read(*entries):
    return read_bytes(json.dumps(entries).encode())


def test_tasks_are_read_in_their_order():
    tasks, problems = read(task(2), task(1))

    assert problems == []
    assert [entry.task_id for entry in tasks] == ["task_0002", "task_0001"]
    assert tasks[0].key_points == ("at least 16 GB", "cheapest by sorting")
    assert (tasks[0].reference_length, tasks[0].level) == (4, "easy")


def test_task_list_names_the_expected_file_when_it_is_a_zip():
    tasks, problems = read_bytes(zip_of("tasks.json"))

    assert tasks == []
    assert [(each.code, each.message) for each in problems] == [
        ("not_utf8", "tasks.json: is a zip; a JSON list of tasks is expected.")
    ]


def test_labels_name_the_expected_file_when_they_are_a_zip():
    labels, problems, warnings = read_labels(zip_of("labels.csv"), "labels.csv")

    assert (labels, warnings) == ([], [])
    assert [(each.code, each.message) for each in problems] == [
        ("not_utf8", "labels.csv: is a zip; a CSV file is expected.")
    ]


@pytest.mark.parametrize(
    ("key", "meant"),
    [("levl", "level"), ("web_site", "website"), ("reference_lenght", "reference_length"), ("keypoints", "key_points")],
)
def test_task_list_warns_of_a_key_when_it_is_misspelt(key, meant):
    warnings = []
    source = io.BytesIO(json.dumps([{"task_id": "a", "confirmed_task": "Do it.", key: None}]).encode())

    assert list(read_tasks(source, "tasks.json", [], warnings)) == [TaskRecord("a", "Do it.")]
    ((task_id, warning),) = warnings
    assert (task_id, warning.code, warning.where) == ("a", "unknown_property", "tasks.json: [0]")
    assert warning.message == f"tasks.json: [0] (task a): the key {key} is ignored (did you mean {meant}?)."


def test_task_list_warns_once_of_a_key_when_many_tasks_have_it():
    warnings = []
    entries = [{"task_id": f"a{n}", "confirmed_task": "Do it.", "levl": "easy"} for n in range(3)]

    assert len(list(read_tasks(io.BytesIO(json.dumps(entries).encode()), "tasks.json", [], warnings))) == 3
    assert [task_id for task_id, _ in warnings] == ["a0"]


@pytest.mark.parametrize(
    "entry",
    [
        {"task_id": "a", "confirmed_task": "Do it.", "domain": "Shopping", "date": "2025", "annotation_id": "x"},
        {"task_id": "a", "confirmed_task": "Do it.", "level": "easy", "levels": 2},
        {"task_id": 1, "intent": "Do it.", "intent_template": "x", "intent_template_id": 1, "eval": [], "revision": 2},
    ],
    ids=["other_words", "the_right_key_is_there", "webarena"],
)
def test_task_list_does_not_warn_of_further_keys(entry):
    warnings = []

    assert len(list(read_tasks(io.BytesIO(json.dumps([entry]).encode()), "tasks.json", [], warnings))) == 1
    assert warnings == []


def test_only_id_and_text_are_needed_and_unknown_keys_are_let_be():
    tasks, problems = read(
        {"task_id": "a", "confirmed_task": "Do it.", "reference_length": None, "level": None, "x": 1}
    )

    assert problems == []
    assert tasks == [TaskRecord("a", "Do it.")]


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"task_id": "a b"}, "task_id"),
        ({"task_id": None}, "task_id"),
        ({"confirmed_task": " "}, "confirmed_task"),
        ({"confirmed_task": 5}, "confirmed_task"),
        ({"confirmed_task": "a" * 1_000_001}, "confirmed_task"),
        ({"website": 5}, "website"),
        ({"website": "w" * 501}, "website"),
        ({"level": 3}, "level"),
        ({"level": "l" * 41}, "level"),
        ({"reference_length": True}, "reference_length"),
        ({"reference_length": 5.0}, "reference_length"),
        ({"reference_length": -1}, "reference_length"),
        ({"reference_length": 2**31}, "reference_length"),
        ({"key_points": "one"}, "key_points"),
        ({"key_points": ["one", ""]}, "key_points"),
        ({"key_points": [1]}, "key_points"),
    ],
)
def test_a_wrong_field_is_named_with_its_place(fields, named):
    tasks, problems = read(task(1), task(2) | fields)

    assert len(tasks) == 1
    assert [problem.where for problem in problems] == ["tasks.json: [1]"]
    assert named in problems[0].message


def test_the_longest_texts_that_the_database_takes_are_read():
    tasks, problems = read(task(1) | {"website": "w" * 500, "level": "l" * 40})

    assert problems == []
    assert (len(tasks[0].website), len(tasks[0].level)) == (500, 40)


WEBARENA = {
    "sites": ["shop", "forum"],
    "task_id": 0,
    "intent_template_id": 7,
    "start_urls": ["__SHOP__/lamps", "__FORUM__"],
    "intent": "Find a lamp and post its price.",
    "intent_template": "Find a {{thing}} and post its price.",
    "instantiation_dict": {"thing": "lamp"},
    "eval": [{"evaluator": "AgentResponseEvaluator", "expected": {"task_type": "mutate", "status": "SUCCESS"}}],
    "revision": 2,
}


def test_tasks_of_webarena_verified_are_read_by_their_number_and_intent():
    tasks, problems = read(WEBARENA, WEBARENA | {"task_id": 811, "start_urls": []}, {"task_id": "x-1", "intent": "Go."})

    assert problems == []
    assert tasks == [
        TaskRecord("0", "Find a lamp and post its price.", website="__SHOP__/lamps"),
        TaskRecord("811", "Find a lamp and post its price.", website="shop"),
        TaskRecord("x-1", "Go."),
    ]


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"task_id": True}, "task_id must be text or a whole number from 0"),
        ({"task_id": None}, "task_id must be text or a whole number from 0"),
        ({"task_id": -1}, "task_id must be text or a whole number from 0"),
        ({"task_id": 1.0}, "task_id must be text or a whole number from 0"),
        ({"task_id": 2**31}, "task_id must be text or a whole number from 0"),
        ({"task_id": "a b"}, "task_id 'a b' may only contain letters"),
        ({"intent": " "}, "(task 0): intent is empty"),
        ({"intent": 5}, "(task 0): intent must be text, not a whole number"),
        ({"start_urls": "__SHOP__"}, "start_urls must be a list of texts"),
        ({"start_urls": False}, "start_urls must be a list of texts"),
        ({"sites": [1]}, "sites must be a list of texts"),
        ({"start_urls": ["w" * 501]}, "start_urls has a text of more than 500 characters"),
    ],
)
def test_a_wrong_field_of_a_task_of_webarena_verified_is_named_with_its_place(fields, says):
    tasks, problems = read(WEBARENA | fields, WEBARENA | {"task_id": 1})

    assert [entry.task_id for entry in tasks] == ["1"]
    assert [problem.where for problem in problems] == ["tasks.json: [0]"]
    assert says in problems[0].message


def test_a_task_of_webarena_verified_without_an_id_says_so():
    assert "task_id is missing" in said(read({"intent": "Go."})[1])


def test_a_number_is_no_id_in_our_own_lists():
    assert "task_id must be text, not a whole number" in said(read(task(1) | {"task_id": 7})[1])


@pytest.mark.parametrize("key", ["task_id", "confirmed_task"])
def test_a_missing_key_is_named(key):
    entry = task(1)
    del entry[key]

    assert f"{key} is missing" in said(read(entry)[1])


def test_all_problems_are_listed():
    assert len(read({}, 5, task(1) | {"level": 1, "website": 2})[1]) == 5


def test_a_task_that_is_there_twice_word_for_word_counts_once():
    tasks, problems = read(task(1), task(1))

    assert (len(tasks), problems) == (1, [])


def test_a_task_that_is_there_twice_with_different_content_is_refused():
    _, problems = read(task(1), task(1) | {"level": "hard"})

    assert codes(problems) == {"duplicate_task"}
    assert "task_0001" in said(problems)


@pytest.mark.parametrize("data", [b"", b"{}", b"[NaN]", b"null", "[]".encode("utf-16")])
def test_something_else_than_a_list_of_tasks_is_refused(data):
    tasks, problems = read_bytes(data)

    assert tasks == []
    assert "tasks.json" in said(problems)


HASH = "fb7b4f784cfde003e2548fdf4e8d6b4f"
OTHER = "0a0fa834d4d4dd8dbee5a5ed0a2bc9e4"


@pytest.mark.parametrize(
    ("task_id", "base"),
    [(f"{HASH}_110325", HASH), (HASH, HASH), ("webarena_629", "webarena_629"), ("a_991399", "a_991399")],
)
def test_a_date_suffix_is_no_part_of_the_base(task_id, base):
    assert base_task_id(task_id) == base


@pytest.mark.parametrize(
    ("task_id", "known", "expected"),
    [
        (f"{HASH}_110325", [OTHER, HASH], HASH),
        (HASH, [OTHER, f"{HASH}_110325"], f"{HASH}_110325"),
        (HASH, [f"{HASH}_120125", f"{HASH}_010226"], f"{HASH}_010226"),
        (HASH.replace("784", "748"), [OTHER, HASH], HASH),
        (HASH[:-1], [OTHER, HASH], HASH),
        (HASH, [OTHER], None),
        (HASH, [], None),
        ("x" * 100_000, ["x" * 128], None),
    ],
)
def test_the_nearest_known_id_is_another_date_or_a_slip_of_the_pen(task_id, known, expected):
    assert nearest(task_id, known) == expected
