"""Rows of Multimodal-Mind2Web into a package of reference trajectories, and into tasks."""

from __future__ import annotations

import gzip
import json
import random
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from annotation import catalogue, ingest
from annotation.formats.documents import FormatError
from annotation.formats.external import multimodal_mind2web
from annotation.formats.external.multimodal_mind2web import converting, reading
from annotation.formats.external.multimodal_mind2web.parquet import ROOT, Row
from annotation.models import Attachment, Benchmark, Task, Trajectory
from annotation.records import AttachmentKind, ImportReport, TaskRecord
from annotation.tests.formats_builders import read_all
from annotation.tests.mind2web_builders import ACTIONS, PAGE, jpeg, json_lines, parquet, row, rows

pytestmark = pytest.mark.slow

FORMS = {"parquet": (parquet, "r.parquet"), "lines": (json_lines, "r.jsonl"), "packed": (json_lines, "r.jsonl.gz")}


def converted(tmp_path, made, write=json_lines, name="rows.jsonl"):
    """The report and the folder of a conversion."""
    path = write(tmp_path / name, made)
    folder, report = tmp_path / "package", ImportReport()
    folder.mkdir()
    multimodal_mind2web.convert_rows(path, folder, report)
    return report, folder


def result(folder, task="task-1"):
    return json.loads((folder / task / "result.json").read_text())


def reference(folder, step, task="task-1"):
    return multimodal_mind2web.parse_reference((folder / task / "reference" / f"{step}.json").read_bytes(), "step")


@pytest.mark.parametrize("form", FORMS)
def test_rows_become_a_package_that_the_reader_of_packages_takes(tmp_path, form):
    write, name = FORMS[form]
    report, folder = converted(tmp_path, rows(2), write, name)

    assert (report.rejected, report.warnings) == ({}, [])
    readings = read_all(folder)
    assert [(task_id, problems, warnings) for task_id, _, problems, warnings in readings] == [
        ("task-1", [], []),
        ("task-2", [], []),
    ]
    record = readings[0][1]
    assert [step.action for step in record.steps] == list(ACTIONS)
    assert [step.screenshot for step in record.steps] == ["0000.jpg", "0001.jpg", "0002.jpg"]
    assert record.reference_length == 3
    assert [(one.kind, one.path) for one in record.attachments] == [
        (AttachmentKind.REFERENCE_STEP, f"reference/{step}.json") for step in range(3)
    ]


@pytest.mark.parametrize("form", FORMS)
def test_a_step_keeps_every_field_but_the_picture_and_the_raw_page(tmp_path, form):
    write, name = FORMS[form]
    _, folder = converted(tmp_path, rows(), write, name)
    data = (folder / "task-1" / "reference" / "0.json").read_bytes()

    assert b"raw" not in data
    document = json.loads(data)
    assert document["cleaned_html"] == PAGE
    assert document["operation"] == {"op": "TYPE", "value": "O'Brien's lamp", "original_op": "ENTER"}
    assert document["neg_candidates"][1]["backend_node_id"] == "14"
    assert (document["domain"], document["subdomain"], document["action_uid"]) == ("Shopping", "Lighting", "task-1-0")
    assert reference(folder, 2).operation.original == "HOVER"
    assert reference(folder, 0).picture == (64, 48)
    assert (folder / "task-1" / "trajectory" / "0000.jpg").read_bytes() == jpeg()


def test_rows_of_one_task_need_not_be_neighbours_nor_in_order(tmp_path):
    made = rows(2)
    _, folder = converted(tmp_path, [made[2], made[4], made[0], made[3], made[1], made[5]])

    assert [step["action"] for step in result(folder)["steps"]] == list(ACTIONS)
    assert [reference(folder, step).index for step in range(3)] == [0, 1, 2]


def test_numbers_and_objects_are_read_as_well_as_texts_of_them(tmp_path):
    plain = row(0) | {
        "target_action_index": 0,
        "operation": {"op": "CLICK", "value": "", "original_op": "CLICK"},
        "pos_candidates": [{"tag": "a", "backend_node_id": 10}],
        "action_reprs": json.dumps(["[a] x -> CLICK"]),
        "target_action_reprs": None,
    }
    report, folder = converted(tmp_path, [plain])

    assert report.rejected == {}
    assert reference(folder, 0).positives[0]["backend_node_id"] == "10"


def test_a_step_without_a_row_is_warned_of_and_the_others_know_their_place(tmp_path):
    report, folder = converted(tmp_path, [row(0), row(2)])

    assert [(task, one.code) for task, one in report.warnings] == [("task-1", "steps_missing")]
    assert "1 of 3 steps have no row: 1." in report.warnings[0][1].message
    assert [step["action"] for step in result(folder)["steps"]] == [ACTIONS[0], ACTIONS[2]]
    assert reference(folder, 1).index == 2


@pytest.mark.parametrize("empty", [None, {"bytes": None, "path": None}, ""])
def test_a_row_without_a_picture_is_taken_with_a_warning(tmp_path, empty):
    report, folder = converted(tmp_path, [row(0) | {"screenshot": empty}, row(1), row(2)])

    assert [one.code for _, one in report.warnings] == ["screenshot_missing"]
    assert result(folder)["steps"][0]["screenshot"] is None


def test_the_part_of_the_data_set_is_in_the_name_of_its_file(tmp_path):
    _, folder = converted(tmp_path, rows(), parquet, "test_website-00000-of-00003.parquet")

    assert reference(folder, 0).split == "test_website"


BROKEN = [
    ("operation_invalid", {"operation": "CLICK the button"}),
    ("operation_invalid", {"operation": "{}"}),
    ("operation_invalid", {"operation": None}),
    ("operation_invalid", {"operation": json.dumps({"op": "DRAG", "value": ""})}),
    ("operation_invalid", {"operation": json.dumps({"op": "TYPE", "value": ""})}),
    ("operation_invalid", {"operation": json.dumps({"op": "TYPE", "value": 5})}),
    ("target_index_invalid", {"target_action_index": None}),
    ("target_index_invalid", {"target_action_index": "one"}),
    ("target_index_invalid", {"target_action_index": True}),
    ("target_index_invalid", {"target_action_index": 1.0}),
    ("target_index_outside", {"target_action_index": "3"}),
    ("target_index_outside", {"target_action_index": -1}),
    ("target_action_differs", {"target_action_reprs": "[a] Something else -> CLICK"}),
    ("wrong_type", {"cleaned_html": None}),
    ("empty", {"cleaned_html": " \n"}),
    ("wrong_type", {"confirmed_task": 7}),
    ("wrong_type", {"action_reprs": []}),
    ("wrong_type", {"pos_candidates": None}),
    ("candidate_invalid", {"pos_candidates": [json.dumps({"tag": "a"})]}),
    ("pos_candidates_invalid", {"pos_candidates": ["{"]}),
    ("screenshot_undecodable", {"screenshot": {"bytes": jpeg()[:300]}}),
    ("screenshot_undecodable", {"screenshot": {"bytes": jpeg(640, 480)[:-400]}}),
    ("screenshot_undecodable", {"screenshot": "no base64!"}),
    ("screenshot_undecodable", {"screenshot": {"bytes": b"<svg></svg>"}}),
    ("screenshot_not_embedded", {"screenshot": {"bytes": None, "path": "/etc/passwd"}}),
    ("task_text_differs", {"confirmed_task": "Buy a chair"}),
    ("task_differs", {"website": "other"}),
    ("actions_differ", {"action_reprs": [ACTIONS[0], ACTIONS[1], "x"]}),
    ("duplicate_step", {"target_action_index": "0", "target_action_reprs": ACTIONS[0]}),
]


@pytest.mark.parametrize(("code", "fields"), BROKEN)
def test_a_broken_row_is_listed_with_its_number_and_its_task_is_refused(tmp_path, code, fields):
    made = [row(0), row(0, "task-2"), row(1) | fields, row(2), row(1, "task-2"), row(2, "task-2")]
    report, folder = converted(tmp_path, made)

    ((task, (problem, *others)),) = report.rejected.items()
    assert (task, problem.code, problem.where, others) == ("task-1", code, "row 3", [])
    assert problem.message.startswith("row 3: ")
    assert not (folder / "task-1").exists()
    assert len(result(folder, "task-2")["steps"]) == 3


def test_a_line_that_is_no_json_belongs_to_no_task(tmp_path):
    report, folder = converted(tmp_path, [row(0), '{"annotation_id": "task-1", "cleaned', row(1), row(2)])

    assert [(task, one.code, one.where) for task, found in report.rejected.items() for one in found] == [
        ("", "json_invalid", "row 2")
    ]
    assert len(result(folder)["steps"]) == 3


def test_a_task_whose_only_row_is_broken_is_refused(tmp_path):
    report, folder = converted(tmp_path, [row(0) | {"operation": "?"}])

    assert list(report.rejected) == ["task-1"]
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("task_id", ["../../etc", "a/b", "", None, 5, "x" * 200])
def test_an_id_that_is_no_name_for_a_folder_is_refused(tmp_path, task_id):
    report, folder = converted(tmp_path, [row(0) | {"annotation_id": task_id}])

    assert [one.code for one in report.rejected[""]] == ["task_id_invalid"]
    assert list(folder.iterdir()) == []


def test_a_parquet_file_without_a_column_is_refused_and_the_column_named(tmp_path):
    made = [{name: value for name, value in row(0).items() if name != "cleaned_html"}]
    report, _ = converted(tmp_path, made, parquet, "r.parquet")

    ((problem,),) = report.rejected.values()
    assert (problem.code, "no column cleaned_html" in problem.message) == ("column_missing", True)


@pytest.mark.parametrize("cut", [100, 2_000, -200])
def test_a_file_that_cannot_be_read_to_its_end_gives_nothing(tmp_path, cut):
    parquet(tmp_path / "whole", rows(40), row_group_size=10)
    json_lines(tmp_path / "whole.gz", rows(40))
    for name in ("whole", "whole.gz"):
        (tmp_path / name).write_bytes((tmp_path / name).read_bytes()[:cut])
        folder, report = tmp_path / f"of-{name}", ImportReport()
        folder.mkdir()
        multimodal_mind2web.convert_rows(tmp_path / name, folder, report)

        assert {one.code for one in report.rejected[""]} <= {"parquet_damaged", "rows_damaged"}
        assert list(folder.iterdir()) == []


def test_a_damaged_text_of_a_parquet_file_is_a_broken_row(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.Table.from_pylist(rows())
    bad = pa.array([b"fine", b"\xff\xfe\xfd", b"fine"]).cast(pa.binary()).view(pa.string())
    pq.write_table(table.set_column(table.schema.get_field_index("cleaned_html"), "cleaned_html", bad), tmp_path / "r")
    report = ImportReport()
    multimodal_mind2web.convert_rows(tmp_path / "r", tmp_path / "package", report)

    assert [(one.code, one.where) for one in report.rejected["task-1"]] == [("value_unreadable", "row 2")]


def test_more_than_a_package_may_hold_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(converting, "MOST_BYTES", 5_000)
    report, folder = converted(tmp_path, rows(3))

    assert [one.code for one in report.rejected[""]] == ["package_too_large"]
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    ("limit", "value", "code"), [("LONGEST_ROW", 1_000, "row_too_long"), ("MOST_ROWS", 2, "too_many_rows")]
)
def test_lines_and_files_have_a_greatest_length(tmp_path, monkeypatch, limit, value, code):
    monkeypatch.setattr(reading, limit, value)
    report, _ = converted(tmp_path, rows())

    assert [one.code for one in report.rejected[""]] == [code]


def test_the_report_of_many_broken_rows_stays_short(tmp_path, monkeypatch):
    monkeypatch.setattr(converting, "MOST_PROBLEMS", 4)
    made = [row(index, f"t-{number}") | {"operation": "?"} for number in range(5) for index in range(3)]
    report, _ = converted(tmp_path, made)

    assert sorted(report.rejected) == [f"t-{number}" for number in range(5)]
    assert sum(len(found) for found in report.rejected.values()) == 4 + 3


@pytest.mark.parametrize(
    ("content", "is_one"),
    [
        (b'{"annotation_id": "x"}\n', True),
        (gzip.compress(b'{"website": "x", "annotation_id": "x"}\n', mtime=0), True),
        (b"PAR1....", True),
        (b'[{"annotation_id": "x"}]', False),
        (b'{"task_id": "x", "verdict": 1}\n', False),
        (b"PK\x03\x04", False),
        (b"\x1f\x8bdamaged", True),  # and reading it says what it has
        (b"", False),
    ],
)
def test_rows_are_told_by_their_content(tmp_path, content, is_one):
    (tmp_path / "package.zip").write_bytes(content)

    assert multimodal_mind2web.is_rows(tmp_path / "package.zip") is is_one
    assert not multimodal_mind2web.is_rows(tmp_path)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.data())
def test_no_row_whatever_is_in_it_ends_a_conversion(tmp_path, data):
    values = st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.binary(max_size=20),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
        max_leaves=8,
    )
    broken = Row(1, row(0) | {name: data.draw(values) for name in data.draw(st.sets(st.sampled_from(list(row()))))})
    conversion = converting._Conversion(tmp_path, ImportReport(), None)
    conversion.take(broken)
    conversion.finish()

    assert len(conversion.report.rejected) in (0, 1)


# --- tasks and rows, into the database


def test_tasks_are_each_there_once_with_the_number_of_their_actions(tmp_path):
    made = rows(2)
    path = parquet(tmp_path / "r.parquet", [made[3], made[0], made[1], made[4]])

    assert list(multimodal_mind2web.read_tasks(path, [])) == [
        TaskRecord("task-2", made[3]["confirmed_task"], "shop", 3),
        TaskRecord("task-1", made[0]["confirmed_task"], "shop", 3),
    ]


def test_rows_that_tell_one_task_differently_are_refused(tmp_path):
    path = json_lines(tmp_path / "r.jsonl", [row(0), row(1) | {"confirmed_task": "Buy a chair"}])

    with pytest.raises(FormatError) as refused:
        list(multimodal_mind2web.read_tasks(path, []))
    assert [(one.code, one.where) for one in refused.value.problems] == [("task_text_differs", "row 2")]


@pytest.mark.django_db
def test_refused_task_rows_leave_nothing_behind(tmp_path):
    path = json_lines(tmp_path / "r.jsonl", [row(0), row(1) | {"confirmed_task": "Buy a chair"}])
    report = catalogue.import_task_path(path, benchmark_slug="rows")

    assert (report.accepted, list(report.rejected)) == ([], [""])
    assert not Benchmark.objects.exists()


@pytest.mark.django_db
def test_a_row_that_tells_no_task_is_warned_of(tmp_path):
    path = json_lines(tmp_path / "r.jsonl", [row(0), row(1) | {"annotation_id": None}])
    report = catalogue.import_task_path(path, benchmark_slug="rows")

    assert report.accepted == ["task-1"]
    assert [(task, one.where) for task, one in report.warnings] == [("", "row 2")]


@pytest.mark.django_db
@pytest.mark.parametrize("form", FORMS)
def test_rows_are_imported_as_tasks_and_then_as_a_submission_of_references(tmp_path, form):
    write, name = FORMS[form]
    path = write(tmp_path / name, rows(2))
    catalogue.import_task_path(path, benchmark_slug="rows")
    report, made = ingest.import_all(
        path, benchmark=Benchmark.objects.get(slug="rows"), agent_name="Reference", keep_valid=False
    )

    assert report.rejected == {}
    assert len(made) == 1
    assert list(Task.objects.values_list("external_id", "website", "reference_length")) == [
        ("task-1", "shop", 3),
        ("task-2", "shop", 3),
    ]
    trajectory = Trajectory.objects.filter(submission=made[0]).first()
    assert trajectory.source_format == "multimodal-mind2web"
    assert trajectory.steps.filter(screenshot__isnull=False).count() == 3
    assert Attachment.objects.filter(kind="reference_step").count() == 6


@pytest.mark.django_db
def test_with_a_broken_row_nothing_is_imported_but_by_wish_the_other_tasks(tmp_path):
    path = json_lines(tmp_path / "r.jsonl", [*rows(2), row(0, "task-3") | {"operation": "?"}])
    catalogue.import_task_path(path, benchmark_slug="rows")
    benchmark = Benchmark.objects.get(slug="rows")

    report, made = ingest.import_all(path, benchmark=benchmark, agent_name="Reference", keep_valid=False)
    assert (made, list(report.rejected)) == ([], ["task-3"])
    report, made = ingest.import_all(path, benchmark=benchmark, agent_name="Reference", keep_valid=True)
    assert sorted(report.accepted) == ["task-1", "task-2"]
    assert len(made) == 1


@pytest.mark.parametrize("column", ["pos_candidates", "action_reprs"])
def test_a_small_parquet_file_that_unpacks_to_gigabytes_is_refused(tmp_path, column):
    path, count = tmp_path / "bomb.parquet", 4_000
    once = pa.DictionaryArray.from_arrays(pa.array([0] * count, pa.int32()), pa.array(["x" * 1_000_000]))
    texts = {name: pa.array(["a"]) for name in converting.REQUIRED} | {"website": pa.array(["a"])}
    pq.write_table(pa.table(texts | {column: pa.ListArray.from_arrays([0, count], once)}), path, compression="zstd")
    assert path.stat().st_size < 10_000
    report = ImportReport()
    (tmp_path / "out").mkdir()
    converting.convert_rows(path, tmp_path / "out", report)
    assert [problem.code for problem in report.rejected[""]] == ["parquet_too_large"]
    if column == "action_reprs":
        with pytest.raises(FormatError, match="memory"):
            list(converting.read_tasks(path, []))


@pytest.mark.parametrize("items", [{"whole": 1_000_001}, {"part": 600_000}])
def test_a_list_of_more_nulls_than_anybody_needs_is_a_broken_row(tmp_path, items):
    path = tmp_path / "nulls.parquet"
    nulls = pa.nulls(sum(items.values()), pa.int8())
    value = pa.ListArray.from_arrays([0, len(nulls)], nulls)
    if "part" in items:  # twice in a list of lists, which counts together
        value = pa.ListArray.from_arrays([0, 2], pa.concat_arrays([value, value]))
    texts = {name: pa.array(["a"]) for name in converting.REQUIRED}
    pq.write_table(pa.table(texts | {"neg_candidates": value}), path)
    assert path.stat().st_size < 10_000
    rows = list(reading.read_rows(path, converting.COLUMNS, converting.REQUIRED))
    assert [(one.code, one.where) for one in rows[0].problems] == [("value_too_long", "row 1")]
    assert "neg_candidates" not in rows[0].values


def test_a_date_in_a_column_of_texts_is_a_broken_row(tmp_path):
    path = tmp_path / "dates.parquet"
    columns = {name: pa.array(["a"]) for name in converting.REQUIRED} | {"website": pa.array([0], pa.date32())}
    pq.write_table(pa.table(columns), path)
    report = ImportReport()
    (tmp_path / "out").mkdir()
    converting.convert_rows(path, tmp_path / "out", report)
    assert "value_unreadable" in [problem.code for problem in report.rejected["a"]]


# --- memory

HEAVY = 50_000  # bytes of a page, of which nothing is alike, so that no reader keeps one for several
FEW, MANY = 42, 420  # rows, three of each task
SHARE = 0.2  # of the bytes of more rows by which the peak may grow: it takes 0.05, and 1 to 3 where all are kept
CONVERT = """
import resource, sys
from pathlib import Path
from annotation.formats.external import multimodal_mind2web
from annotation.records import ImportReport

report = ImportReport()
multimodal_mind2web.convert_rows(Path(sys.argv[1]), Path(sys.argv[2]), report)
assert not report.rejected, report.rejected
status = Path("/proc/self/status").read_text(encoding="ascii")
reader = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
print((int(status.partition("VmHWM:")[2].split()[0]) + reader) * 1024)
"""


def heavy(number):
    page = PAGE.replace("</body>", f"<p>{random.Random(number).randbytes(HEAVY // 2).hex()}</p></body>")
    return row(number % 3, f"task-{number // 3}", cleaned_html=page)


def peak(path, tasks):
    """The most memory in bytes that converting the rows takes: of a process of its own, and of the one that reads."""
    folder = path.with_suffix(".package")
    folder.mkdir()
    command = [sys.executable, "-c", CONVERT, str(path), str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert len(list(folder.iterdir())) == tasks
    return int(done.stdout)


@pytest.mark.skipif(sys.platform != "linux", reason="the peak of a process is read in /proc, which is Linux")
@pytest.mark.parametrize("form", FORMS)
def test_memory_does_not_grow_with_the_rows(tmp_path, form):
    write, name = FORMS[form]
    options = {"row_group_size": FEW} if form == "parquet" else {}
    few, many = (
        peak(write(tmp_path / f"{count}-{name}", [heavy(number) for number in range(count)], **options), count // 3)
        for count in (FEW, MANY)
    )
    assert many - few < (MANY - FEW) * HEAVY * SHARE, f"{few:,} and {many:,} bytes"
