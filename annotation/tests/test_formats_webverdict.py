"""The package of our own: what it may hold, and that everything else is refused with its place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from annotation.formats import cached_pages
from annotation.records import AttachmentKind, StepRecord
from annotation.tests.formats_builders import codes, read_one, said
from annotation.tests.testing import jpeg, png, result_v2, write_pages

SHOP = "https://shop.example/laptops"


def result(**fields: Any) -> dict[str, Any]:
    """Two steps, one without a picture, as rows become."""
    steps = [
        {"action": "CLICK [button] Sort", "thought": None, "url": "https://shop.example/", "screenshot": "0.png"},
        {"action": "TYPE [textbox] Search", "thought": "Now.", "url": None, "screenshot": None},
    ]
    return {
        "schema_version": "webverdict-1",
        "source_format": "multimodal-mind2web",
        "task_id": "task_0001",
        "task": "Find the cheapest laptop.",
        "final_answer": None,
        "reference_length": 2,
        "steps": steps,
    } | fields


def answer(**fields: Any) -> dict[str, Any]:
    about = {"source_format": "mind2web-2", "task": None, "reference_length": None, "steps": []}
    return result(**(about | {"final_answer": "It is the [blue one](https://shop.example/laptops)."} | fields))


def write(folder: Path, document: Any, files: dict[str, bytes] | None = None) -> Path:
    home = folder / "task_0001"
    home.mkdir(parents=True)
    (home / "result.json").write_text(json.dumps(document))
    for name, data in (files or {}).items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_bytes(data)
    return folder


PICTURES = {"trajectory/0.png": png()}


def test_steps_are_read_with_their_reference_steps(tmp_path):
    files = PICTURES | {"reference/0.json": b'{"operation": {"op": "CLICK"}}', "reference/1.json": b"{}"}
    task_id, record, problems, warnings = read_one(write(tmp_path, result(), files))

    assert (task_id, problems, warnings) == ("task_0001", [], [])
    assert record.source_format == "multimodal-mind2web"
    assert record.reference_length == 2
    assert record.steps == (
        StepRecord(0, "CLICK [button] Sort", None, "https://shop.example/", screenshot="0.png"),
        StepRecord(1, "TYPE [textbox] Search", "Now."),
    )
    assert [(one.kind, one.path) for one in record.attachments] == [
        (AttachmentKind.REFERENCE_STEP, "reference/0.json"),
        (AttachmentKind.REFERENCE_STEP, "reference/1.json"),
    ]


def test_an_answer_is_read_with_its_pages(tmp_path):
    write(tmp_path, answer())
    write_pages(tmp_path / "task_0001" / "pages", {SHOP: "web", "https://shop.example/sheet.pdf": "pdf"})
    _, record, problems, warnings = read_one(tmp_path)

    assert (problems, warnings) == ([], [])
    assert (record.steps, record.task_text) == ((), "")
    names = cached_pages.files_of(SHOP, "web") + cached_pages.files_of("https://shop.example/sheet.pdf", "pdf")
    assert {one.path for one in record.attachments} == {"pages/index.json", *(f"pages/{name}" for name in names)}
    assert {one.kind for one in record.attachments} == {AttachmentKind.CACHED_PAGE}


@pytest.mark.parametrize(
    ("document", "code", "place"),
    [
        (result(source_format="webarena"), "source_format_unknown", "source_format"),
        (result(source_format=3), "source_format_unknown", "source_format"),
        ({k: v for k, v in result().items() if k != "steps"}, "field_missing", "steps"),
        ({k: v for k, v in result().items() if k != "final_answer"}, "field_missing", "final_answer"),
        (result(extra=1), "unknown_property", "extra"),
        (result(task=None), "wrong_type", "task"),
        (result(task_id="../x"), "task_id_invalid", "task_id"),
        (result(reference_length=-1), "wrong_type", "reference_length"),
        (result(reference_length=2.5), "wrong_type", "reference_length"),
        (result(final_answer=3), "wrong_type", "final_answer"),
        (result(steps=[]), "no_steps", "steps"),
        (result(steps="CLICK"), "wrong_type", "steps"),
        (result(steps=["CLICK"]), "wrong_type", "steps[0]"),
        (result(steps=[{"action": "CLICK", "thought": None, "url": None}]), "field_missing", "steps[0].screenshot"),
        (
            result(steps=[{"action": None, "thought": None, "url": None, "screenshot": None}]),
            "wrong_type",
            "steps[0].action",
        ),
        (
            result(steps=[{"action": "a", "thought": 1, "url": None, "screenshot": None}]),
            "wrong_type",
            "steps[0].thought",
        ),
        (
            result(steps=[{"action": "a", "thought": None, "url": None, "screenshot": "../0.png"}]),
            "screenshot_path",
            "steps[0].screenshot",
        ),
        (
            result(steps=[{"action": "a", "thought": None, "url": None, "screenshot": "9.png"}]),
            "screenshot_missing",
            "steps[0].screenshot",
        ),
        (
            result(steps=[{"action": "a", "thought": None, "url": None, "screenshot": None, "step": 0}]),
            "unknown_property",
            "steps[0].step",
        ),
        (answer(final_answer=None), "answer_missing", "final_answer"),
        (answer(final_answer=" \n"), "answer_missing", "final_answer"),
        (answer(task=7), "wrong_type", "task"),
    ],
)
def test_a_document_that_is_not_of_this_format_is_refused(tmp_path, document, code, place):
    _, _, problems, _ = read_one(write(tmp_path, document, PICTURES))

    assert [problem.where for problem in problems if problem.code == code] == [f"task_0001/result.json: {place}"]


@pytest.mark.parametrize(
    ("files", "code", "place"),
    [
        ({"reference/2.json": b"{}"}, "reference_step_unknown", "reference/2.json"),
        ({"reference/0.json": b"[1]"}, "wrong_type", "reference/0.json"),
        ({"reference/0.json": b"{"}, "json_invalid", "reference/0.json"),
        ({"reference/0.json": b'{"a": NaN}'}, "number_not_finite", "reference/0.json"),
    ],
)
def test_a_reference_step_that_cannot_be_one_is_refused(tmp_path, files, code, place):
    _, _, problems, _ = read_one(write(tmp_path, result(), PICTURES | files))

    assert [(problem.code, problem.where) for problem in problems] == [(code, f"task_0001/{place}")]
    assert "::" not in said(problems)


def pages(index: bytes, files: dict[str, bytes]) -> dict[str, bytes]:
    return {"pages/index.json": index, **{f"pages/{name}": data for name, data in files.items()}}


WEB = dict(zip(cached_pages.files_of(SHOP, "web"), (b"A list.", jpeg()), strict=True))
TEXT, PICTURE = WEB
SHEET = "https://shop.example/sheet.pdf"
(PDF,) = cached_pages.files_of(SHEET, "pdf")
INDEX = json.dumps({SHOP: "web"}).encode()


@pytest.mark.parametrize(
    ("files", "code"),
    [
        (pages(b"[]", {}), "pages_index_invalid"),
        (pages(b"{", {}), "json_invalid"),
        (pages(b'{"https://a.example/": "video"}', {}), "pages_index_invalid"),
        (pages(b'{"": "web"}', {}), "pages_index_invalid"),
        (pages(json.dumps({"https://a.example/" + "x" * 9000: "web"}).encode(), {}), "pages_index_invalid"),
        (pages(json.dumps({f"https://a.example/{n}": "web" for n in range(2001)}).encode(), {}), "pages_index_invalid"),
        (pages(json.dumps({SHOP: "web", SHOP + "#top": "pdf"}).encode(), {}), "pages_index_invalid"),
        (pages(b'{"javascript:alert(1)//": "web"}', {}), "pages_index_invalid"),
        (pages(b'{"/sign-out": "web"}', {}), "pages_index_invalid"),
        (pages(b'{"data:text/html,x": "web"}', {}), "pages_index_invalid"),
        (pages(b'{"https:/\\\\shop.example/": "web"}', {}), "pages_index_invalid"),
        (pages(INDEX, {TEXT: b"A list."}), "page_missing"),
        (pages(INDEX, WEB | {TEXT: b"\xff\xfe broken"}), "not_utf8"),
        (pages(INDEX, WEB | {TEXT: b"one\x00two"}), "nul_character"),
        (pages(json.dumps({SHEET: "pdf"}).encode(), {PDF: b"<html>no PDF</html>"}), "page_not_pdf"),
    ],
)
def test_pages_that_cannot_be_shown_are_refused(tmp_path, files, code):
    _, _, problems, _ = read_one(write(tmp_path, answer(), files))

    assert code in codes(problems)
    assert all(problem.where.startswith("task_0001/pages/") for problem in problems), problems


def test_addresses_that_share_their_files_are_one_page(tmp_path):
    index = json.dumps({SHOP: "web", SHOP + "#top": "web", SHOP + "/": "web"}).encode()
    _, record, problems, _ = read_one(write(tmp_path, answer(), pages(index, WEB)))

    assert problems == []
    assert len(record.attachments) == 3


def test_what_no_index_names_is_left_out_with_a_warning(tmp_path):
    stray = {"pages/" + "0" * 32 + ".txt": b"x", "reference/x.json": b"{}"}
    _, record, problems, warnings = read_one(write(tmp_path, answer(), pages(INDEX, WEB) | stray))

    assert problems == []
    assert codes(warnings) == {"unknown_file"}
    assert len(record.attachments) == 3


def test_the_other_formats_know_neither_pages_nor_reference_steps(tmp_path):
    files = {f"trajectory/{n:04d}.png": png(n) for n in range(3)} | pages(INDEX, WEB) | {"reference/0.json": b"{}"}
    _, record, problems, warnings = read_one(write(tmp_path, result_v2(1), files))

    assert problems == []
    assert record.attachments == ()
    assert codes(warnings) == {"unknown_file"}


def test_a_file_is_named_after_its_address_as_mind2web_2_names_it():
    # Fragment, escapes and the last slash do not count; `printf 'https://shop.example/a b' | md5sum` says the same.
    names = {cached_pages.stem(one) for one in ("https://shop.example/a%20b/", "https://shop.example/a b#x")}
    assert names == {"787288986cf1f05d5946258ba2a6c2fd"}


@pytest.mark.parametrize(
    "address",
    ["https://shop.example/list?#top", "HTTPS://shop.example/a#x", "https://shop.example/a;#x", SHOP + "/%41"],
)
def test_files_are_found_under_either_name_that_an_address_may_have(tmp_path, address):
    for number, stem in enumerate(cached_pages.stems(address)):
        files = pages(json.dumps({address: "pdf"}).encode(), {f"{stem}.pdf": b"%PDF-1.7"})
        _, record, problems, _ = read_one(write(tmp_path / str(number), answer(), files))
        assert problems == []
        assert {one.path for one in record.attachments} == {"pages/index.json", f"pages/{stem}.pdf"}


def test_a_broken_page_is_read_once_however_many_addresses_share_it(tmp_path):
    index = json.dumps({f"{SHOP}#{number}": "web" for number in range(50)}).encode()
    _, _, problems, _ = read_one(write(tmp_path, answer(), pages(index, WEB | {TEXT: b"\xff\xfe broken"})))

    assert len(problems) == 1
