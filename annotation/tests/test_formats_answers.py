"""Answers of Mind2Web-2: what becomes of a folder of them, and that a mistake in one is said and nothing is lost."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from annotation.formats import answer_text, cached_pages, pdf_text
from annotation.formats.answer_text import normal, read_answer
from annotation.formats.registry import open_packages
from annotation.records import ImportReport
from annotation.tests.formats_builders import link, read_all, write_zip
from annotation.tests.testing import pdf, write_answers, write_pages, write_submission


def nothing(done: int, total: int) -> None:
    pass


def converted(path: Path, agent: str = "") -> tuple[list[list[str]], ImportReport]:
    """The task ids of each package, read back without a problem, and the report."""
    report = ImportReport()
    with open_packages(path, report, nothing, agent) as packages:
        readings = [read_all(package.path) for package in packages]
    assert all(not problems for reading in readings for _, _, problems, _ in reading), readings
    return [[task_id for task_id, *_ in reading] for reading in readings], report


def problems(report: ImportReport) -> dict[str, list[str]]:
    return {task_id: [problem.code for problem in found] for task_id, found in report.rejected.items()}


def warnings(report: ImportReport) -> set[tuple[str, str]]:
    return {(task_id, warning.code) for task_id, warning in report.warnings}


def test_every_answer_of_a_task_goes_into_a_package_of_its_own(tmp_path):
    packages, report = converted(write_answers(tmp_path, tasks=2, answers=3))

    assert packages == [["task_0000", "task_0001"]] * 3
    assert (report.rejected, report.warnings) == ({}, [])


def test_an_answer_keeps_its_text_and_its_pages(tmp_path):
    report = ImportReport()
    with open_packages(write_answers(tmp_path, tasks=1, answers=2), report, nothing) as (_, second):
        ((_, record, _, found),) = read_all(second.path)
    assert "This is answer 2." in (record.final_answer or "")
    assert (record.task_text, record.steps, found) == ("", (), [])
    assert len(record.attachments) == 4


def test_an_ordinary_package_stays_as_it_is(tmp_path):
    package = write_submission(tmp_path, 1)
    with open_packages(package, ImportReport(), nothing) as packages:
        assert [each.path for each in packages] == [package]
    with open_packages(tmp_path / "none.zip", ImportReport(), nothing) as packages:
        assert [each.path for each in packages] == [tmp_path / "none.zip"]


def test_a_zip_with_a_folder_around_it_is_read_alike(tmp_path):
    folder = write_answers(tmp_path / "answers", tasks=2)
    members = [(f"wrap/{file.relative_to(folder)}", file.read_bytes()) for file in folder.rglob("*") if file.is_file()]
    packages, report = converted(write_zip(tmp_path / "package.zip", members))

    assert packages == [["task_0000", "task_0001"]]
    assert (report.rejected, report.warnings) == ({}, [])


def test_of_several_agents_one_is_chosen_by_its_name(tmp_path):
    for name in ("alpha", "beta"):
        write_answers(tmp_path / name, tasks=1)
        shutil.rmtree(tmp_path / name / "cache")
    packages, report = converted(tmp_path)
    assert (packages, problems(report)) == ([], {"": ["several_agents"]})
    assert "alpha, beta" in report.rejected[""][0].message

    write_pages(tmp_path / "cache" / "beta" / "task_0000", {"https://shop.example/": "web"})
    packages, report = converted(tmp_path, "beta")
    assert packages == [["task_0000"]]
    assert warnings(report) == {("", "other_agents")}


def test_a_task_with_fewer_answers_is_said_to_have_fewer(tmp_path):
    write_answers(tmp_path, tasks=2, answers=2)
    (tmp_path / "task_0001" / "answer_2.md").unlink()
    packages, report = converted(tmp_path)

    assert packages == [["task_0000", "task_0001"], ["task_0000"]]
    assert warnings(report) == {("task_0001", "answers_uneven")}


BROKEN: dict[str, tuple[str, bytes, str]] = {
    "empty": ("answer_1.md", b" \n\t", "answer_empty"),
    "not UTF-8": ("answer_1.md", b"caf\xe9", "not_utf8"),
    "NUL": ("answer_1.md", b"one\x00two", "nul_character"),
    "too long": ("answer_1.md", b"x" * 1_000_001, "text_too_long"),
    "far too long": ("answer_1.md", b"x" * 4_000_001, "file_too_large"),
    "no number": ("answer_last.md", b"x", "answer_number"),
    "number 0": ("answer_0.md", b"x", "answer_number"),
    "there twice": ("answer_01.md", b"x", "answer_twice"),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_answer_keeps_its_task_out_and_no_other(tmp_path, kind):
    name, data, code = BROKEN[kind]
    write_answers(tmp_path, tasks=2)
    (tmp_path / "task_0001" / name).write_bytes(data)
    packages, report = converted(tmp_path)

    assert problems(report) == {"task_0001": [code]}
    assert packages == [["task_0000"]]
    (problem,) = report.rejected["task_0001"]
    assert name in problem.message
    assert problem.where.startswith("task_0001/answer_")


def test_a_folder_that_is_no_task_is_refused(tmp_path):
    write_answers(tmp_path, tasks=1)
    shutil.copytree(tmp_path / "task_0000", tmp_path / "a task")
    packages, report = converted(tmp_path)

    assert problems(report) == {"a task": ["task_id_invalid"]}
    assert packages == [["task_0000"]]


@pytest.mark.parametrize(
    ("index", "code"), [(b"[]", "pages_index_invalid"), (b"{", "json_invalid"), (b"\xff", "not_utf8")]
)
def test_a_broken_index_keeps_the_task_out(tmp_path, index, code):
    write_answers(tmp_path, tasks=1)
    (tmp_path / "cache" / "task_0000" / "index.json").write_bytes(index)
    packages, report = converted(tmp_path)

    assert problems(report) == {"task_0000": [code]}
    assert packages == []


def test_a_page_whose_file_is_gone_is_left_out_as_if_it_was_not_kept(tmp_path):
    write_answers(tmp_path, tasks=1)
    lost = cached_pages.files_of("https://shop0.example/laptops", "web")[1]
    (tmp_path / "cache" / "task_0000" / lost).unlink()
    report = ImportReport()
    with open_packages(tmp_path, report, nothing) as (package,):
        ((_, record, _, _),) = read_all(package.path)
    assert warnings(report) == {("task_0000", "page_missing")}
    assert "https://shop0.example/laptops" in report.warnings[0][1].message
    assert len(record.attachments) == 2  # the index and the PDF


def test_answers_without_pages_are_taken_with_a_warning(tmp_path):
    shutil.rmtree(write_answers(tmp_path, tasks=1) / "cache")
    packages, report = converted(tmp_path)

    assert (packages, warnings(report)) == ([["task_0000"]], {("task_0000", "pages_missing")})


def test_links_and_paths_that_lead_outside_are_refused(tmp_path):
    good = ("task_0000/answer_1.md", b"An answer.")
    package = write_zip(tmp_path / "a.zip", [good, (link("task_0000/answer_2.md"), b"/etc/passwd"), ("../x.md", b"x")])
    packages, report = converted(package)

    assert packages == []
    assert problems(report) == {"": ["path_outside"], "task_0000": ["symlink"]}


def test_files_that_nobody_reads_are_named(tmp_path):
    write_answers(tmp_path, tasks=1)
    (tmp_path / "README.txt").write_text("x")
    (tmp_path / "task_0000" / "notes.md").write_text("x")
    _, report = converted(tmp_path)

    assert warnings(report) == {("", "leftover_file")}
    assert "README.txt" in report.warnings[0][1].message
    assert "notes.md" in report.warnings[0][1].message


def test_pages_that_answers_share_take_their_room_once(tmp_path):
    with open_packages(write_answers(tmp_path, 1, answers=3), ImportReport(), nothing) as packages:
        files = [next(package.path.rglob("*.pdf")) for package in packages]
        assert len({file.stat().st_ino for file in files}) == 1


# --- the text of an answer ---------------------------------------------------------------------------------------


def cited(text: str) -> list[str]:
    return [citation.address for citation in read_answer(text).citations]


def test_addresses_are_found_as_links_as_they_stand_and_through_definitions():
    text = (
        "See [a list](https://a.example/list), https://b.example/x_(y), <https://c.example/> and [that one][1].\n\n"
        "[1]: https://d.example/ 'Sheet'\n[2]: https://e.example/unused\n"
    )
    said = read_answer(text)
    assert [citation.address for citation in said.citations] == [
        "https://a.example/list",
        "https://b.example/x_(y)",
        "https://c.example/",
        "https://d.example/",
        "https://e.example/unused",
    ]
    assert said.citations[0].titles == ("a list",)
    assert said.citations[3].titles == ("that one", "Sheet")


@pytest.mark.parametrize(
    ("sentence", "address"),
    [
        ("It is at https://a.example/x.", "https://a.example/x"),
        ("(see https://a.example/x)", "https://a.example/x"),
        ("https://a.example/x_(y)!", "https://a.example/x_(y)"),
        ('"https://a.example/x?b=1&c=2"', "https://a.example/x?b=1&c=2"),
        ("**https://a.example/x**", "https://a.example/x"),
        ("| https://a.example/x | 3 |\n|-|-|", "https://a.example/x"),
    ],
)
def test_an_address_ends_before_the_marks_of_its_sentence(sentence, address):
    assert cited(sentence) == [address]


def test_one_page_under_several_addresses_is_cited_once():
    same = [
        "https://www.a.example/x/",
        "http://a.example/x#top",
        "https://a.example/x?utm_source=y",
        "https://A.example/x",
    ]
    assert len({normal(one) for one in same}) == 1
    assert cited(" ".join(same)) == same[:1]
    assert normal("https://a.example/x?b=1") != normal("https://a.example/x?b=2")
    assert normal("https://a.example:99/x") != normal("https://a.example/x")
    assert normal("http://[broken") == "http://[broken"


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "[a](javascript:alert(1))",
        "[a](data:text/html;base64,PHNjcmlwdD4=)",
        "![a](data:image/png;base64,xx)",
        "[a](vbscript:x)",
        "[a](file:///etc/passwd)",
        '[a]( https://x.example/" onmouseover="alert(1) )',
        "<javascript:alert(1)>",
        "| a |\n|:-:|\n| <b style='x'>b</b> |",
        '```js"><script>\nalert(1)\n```',
    ],
)
def test_nothing_of_an_answer_is_more_than_text_and_links(text):
    from lxml import html

    tree = html.fragment_fromstring(f"<div>{read_answer(text).html}</div>")
    for element in tree.iter():
        assert element.tag in {"div", "p", "a", "sup", "table", "thead", "tbody", "tr", "th", "td", "pre", "code"}
        assert set(element.attrib) <= {"href", "rel", "target", "class", "data-page"}
        href = element.get("href", "#")
        assert href.startswith(("#", "https://", "http://")), href


def test_pictures_become_links_and_headings_stand_below_those_of_the_page():
    said = read_answer("# One\n\n##### Five\n\n![a lamp](https://a.example/lamp.png)").html
    assert "<h3>One</h3>" in said
    assert "<h4>Five</h4>" in said
    assert "<img" not in said
    assert (
        '<a href="https://a.example/lamp.png" rel="nofollow noreferrer noopener" target="_blank">[image: a lamp]'
        in said
    )


@pytest.mark.parametrize("above", ["- ", "> ", "1. ", "> - "])
@pytest.mark.parametrize("times", [1, 8, 9, 10, 11, 19, 20, 21, 200])
def test_nothing_vanishes_however_deep_it_lies(above, times):
    said = read_answer(f"{above * times}deep words https://a.example/x\n\nand after it")
    assert "deep words" in said.html
    assert "and after it" in said.html
    assert [one.address for one in said.citations] == ["https://a.example/x"]


def test_lists_stay_lists_where_nothing_would_vanish():
    assert read_answer("- " * 9 + "words").html.count("<ul>") == 9
    assert "<ul>" not in read_answer("- " * 10 + "words").html


def test_a_long_answer_is_cut_and_says_by_how_much():
    said = read_answer("word " * answer_text.LONGEST_SHOWN)
    assert said.left_out == 4 * answer_text.LONGEST_SHOWN
    assert len(said.html) < 2 * answer_text.LONGEST_SHOWN


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.text(alphabet="[]()<>!*_`#|-\\ \n:\"'&;~^aH/.?=1" + "\u202e\u00e9", max_size=200))
def test_whatever_an_agent_writes_is_read(text):
    said = read_answer(f"{text} https://a.example/ {text}")
    assert "<script" not in said.html
    assert all(citation.address.lower().startswith("http") for citation in said.citations)


# --- PDF ---------------------------------------------------------------------------------------------------------


def test_the_text_of_a_pdf_is_read():
    assert "Price 499 EUR" in pdf_text.text_of(pdf("Price 499 EUR"))


@pytest.mark.parametrize("data", [b"", b"%PDF-1.7\nbroken", pdf("x")[:200]])
def test_a_pdf_that_cannot_be_read_says_why(data):
    with pytest.raises(pdf_text.NoText, match="damaged or needs a password"):
        pdf_text.text_of(data)


def test_the_process_that_reads_a_pdf_knows_nothing_of_ours(monkeypatch, tmp_path):
    monkeypatch.setenv("SECRET_KEY", "a secret")
    spy = tmp_path / "spy.py"
    spy.write_text("import os; print(sorted(os.environ), os.getcwd())")
    monkeypatch.setattr(pdf_text, "COMMAND", [*pdf_text.COMMAND[:-1], str(spy)])
    assert "SECRET_KEY" not in (said := pdf_text.text_of(b""))
    assert said.endswith("/\n")


def test_a_process_that_writes_without_end_fills_no_memory(monkeypatch, tmp_path):
    endless = tmp_path / "endless.py"
    endless.write_text(
        f"import sys; sys.path.insert(0, {str(Path(pdf_text.__file__).parent)!r})\n"
        "import pdf_text; pdf_text._limited()\nwhile True: print('x' * 9999)"
    )
    monkeypatch.setattr(pdf_text, "COMMAND", [*pdf_text.COMMAND[:-1], str(endless)])
    with pytest.raises(pdf_text.NoText):
        pdf_text.text_of(b"")
