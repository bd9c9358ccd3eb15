"""Labels as CSV: strict values, names cleaned with a warning, and every row that is left out is named."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotation.formats.labels_csv import read_labels
from annotation.records import ImportedLabelRecord, Verdict
from annotation.tests.formats_builders import codes, said

HEADER = "annotator,task_id,agent,label\n"


def read(text, header=HEADER):
    labels, problems, warnings = read_labels((header + text).encode(), "labels.csv")
    return labels, problems, [warning for _, warning in warnings]


def test_labels_are_read_with_their_row_numbers():
    labels, problems, warnings = read("A,t1,X,1\nB,t1,X,0\nC,t1,X,2\n")

    assert (problems, warnings) == ([], [])
    assert [(label.row, label.annotator, label.verdict) for label in labels] == [
        (2, "A", Verdict.SUCCESS),
        (3, "B", Verdict.FAILURE),
        (4, "C", Verdict.NOT_EXECUTABLE),
    ]


def test_reasons_are_read_where_they_are_given():
    header = "label,agent,task_id,annotator,failure_type,failure_step,reasoning\n"

    labels, problems, _ = read('0,X,t1,A,loop,3,"first, second\nthird"\n0,X,t2,A,,,\n', header)

    assert problems == []
    assert labels[0] == ImportedLabelRecord(2, "A", "t1", "X", Verdict.FAILURE, "first, second\nthird", 3, "loop")
    assert (labels[1].row, labels[1].failure_step, labels[1].reasoning) == (4, None, "")


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_byte_order_marks_and_line_ends_of_spreadsheets_are_fine(mark, newline):
    data = mark + (HEADER + "A,t1,X,1\n\n").replace("\n", newline).encode()

    labels, problems, warnings = read_labels(data, "labels.csv")

    assert (len(labels), problems, warnings) == (1, [], [])


def test_a_missing_column_is_named():
    _, problems, _ = read("A,t1,1\n", "annotator,task_id,label\n")

    assert [(problem.code, "agent" in problem.message) for problem in problems] == [("column_missing", True)]


@pytest.mark.parametrize(("mark", "word"), [(";", "semicolons"), ("\t", "tabs")])
def test_another_separator_is_called_by_its_name_with_the_columns_that_are_missing(mark, word):
    _, problems, _ = read("", HEADER.replace(",", mark))

    assert codes(problems) == {"csv_separator"}
    assert all(part in said(problems) for part in (word, "commas", "annotator", "task_id", "agent", "label"))


def test_an_empty_file_lacks_all_columns():
    assert "annotator, task_id, agent, label" in said(read("", "")[1])


def test_a_column_that_is_there_twice_is_refused():
    assert codes(read("", "annotator,task_id,agent,label,label\n")[1]) == {"column_twice"}


def test_unknown_columns_are_warned_of():
    labels, problems, warnings = read("A,t1,X,1,yes\n", "annotator,task_id,agent,label,looping\n")

    assert (len(labels), problems) == (1, [])
    assert "looping" in said(warnings)


def test_spaces_around_names_are_taken_off_with_one_warning_per_spelling():
    labels, problems, warnings = read("H,t1,X,1\n H,t2,X,1\n H,t3,X,1\n")

    assert problems == []
    assert {label.annotator for label in labels} == {"H"}
    assert codes(warnings) == {"name_trimmed"}
    assert len(warnings) == 1
    assert "' H'" in said(warnings)


@pytest.mark.parametrize("value", ["Unsure", "unsure", "UNSURE", " Unsure "])
def test_an_unsure_row_is_left_out_with_a_warning(value):
    labels, problems, warnings = read_labels((HEADER + f"A,t1,X,{value}\n").encode(), "labels.csv")

    assert (labels, problems) == ([], [])
    assert [(task_id, warning.code) for task_id, warning in warnings] == [("t1", "label_unsure")]
    assert "line 2" in warnings[0][1].message
    assert "unsure" in warnings[0][1].message.lower()


@pytest.mark.parametrize("value", ["3", "-1", "1.0", "yes", "banana", "٣", "True"])
def test_another_label_is_refused_with_row_and_value(value):
    _, problems, _ = read(f"A,t1,X,1\nB,t1,X,{value}\n")

    assert codes(problems) == {"label_unknown"}
    assert "line 3" in said(problems)
    assert value in said(problems)


@pytest.mark.parametrize("row", [",t1,X,1", "A,,X,1", "A,t1,,1", "A,t1,X,", "A, ,X,1"])
def test_an_empty_field_is_refused(row):
    assert codes(read(row + "\n")[1]) == {"field_empty"}


@pytest.mark.parametrize("row", ["A,t1,X", "A,t1,X,1,2"])
def test_a_row_of_another_length_is_refused(row):
    assert codes(read(row + "\n")[1]) == {"row_length"}


@pytest.mark.parametrize("step", ["-1", "1.5", "x", "9" * 5000, "²", "100001"])
def test_a_failure_step_is_a_step_number(step):
    _, problems, _ = read(f"A,t1,X,0,{step}\n", "annotator,task_id,agent,label,failure_step\n")

    assert codes(problems) == {"failure_step_invalid"}


@pytest.mark.parametrize("row", [f"{'a' * 129},t1,X,1", f"A,{'t' * 129},X,1", f"A,t1,{'x' * 201},1"])
def test_a_name_that_no_column_of_a_database_takes_is_refused(row):
    assert codes(read(row + "\n")[1]) == {"field_too_long"}


def test_the_same_label_twice_counts_once_with_a_warning():
    labels, problems, warnings = read("A,t1,X,1\nA,t1,X,1\n")

    assert (len(labels), problems) == (1, [])
    assert codes(warnings) == {"label_repeated"}


def test_two_labels_of_one_person_that_differ_are_refused():
    _, problems, _ = read("A,t1,X,1\nA,t1,X,0\n")

    assert codes(problems) == {"label_conflict"}
    assert "line 2" in said(problems)


def test_names_that_are_one_after_cleaning_are_one_person():
    assert codes(read("A,t1,X,1\n A,t1,X,0\n")[1]) == {"label_conflict"}


def test_a_field_that_is_too_large_is_refused_not_raised():
    assert codes(read("A,t1,X,1," + "a" * 200_000 + "\n", HEADER.strip() + ",reasoning\n")[1]) == {"csv_invalid"}


def test_an_open_quote_is_refused_not_raised():
    assert codes(read('A,t1,X,"1\n')[1]) == {"csv_invalid"}


@pytest.mark.parametrize("data", [HEADER.encode("utf-16"), b"annotator,\xe9", HEADER.encode() + b"A\x00,t,X,1\n"])
def test_text_that_is_not_plain_utf8_is_refused(data):
    labels, problems, _ = read_labels(data, "labels.csv")

    assert labels == []
    assert codes(problems) <= {"not_utf8", "nul_character"}


def test_all_problems_are_listed_and_many_are_counted():
    assert len(read("A,t1,X,7\nB,,X,8\n")[1]) == 3
    _, problems, _ = read("A,t1,X,7\n" * 500)
    assert len(problems) == 201
    assert "300 more" in problems[-1].message


@given(st.binary(max_size=200) | st.text(max_size=100).map(lambda text: (HEADER + text).encode()))
def test_any_bytes_are_labels_or_problems(data):
    labels, problems, _ = read_labels(data, "labels.csv")

    assert labels or problems or data.decode("utf-8-sig").lower().count("label")
    assert all(problem.message.isprintable() for problem in problems)
