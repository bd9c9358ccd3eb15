"""Documents that nobody who means well would write: each ends in a finding or a refusal, in little memory."""

from __future__ import annotations

import copy
import json
import random
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from annotation.records import AttachmentKind
from evaluations.evidence.report.page import render_report
from evaluations.tests.checks import check
from evaluations.tests.hand_made_bundle import HandMade, signed, zipped
from evaluations.tests.raw_zip import Entry, raw_zip
from evaluations.verifier import canonical, documents
from evaluations.verifier.canonical import mismatches
from evaluations.verifier.checking import claims
from evaluations.verifier.documents import IF_ANY, LINES, OF_JUDGES, VALUES, Shapeless, read_bundle
from evaluations.verifier.figures import agreement_finding
from evaluations.verifier.findings import Finding, Result
from evaluations.verifier.main import main
from evaluations.verifier.package import open_package
from evaluations.verifier.rules import CLAIMS
from evaluations.verifier.shapes import ATTACHMENT_KINDS, SCHEMAS

pytestmark = pytest.mark.slow

MIB = 1 << 20


@pytest.fixture(scope="module")
def entries() -> dict[str, bytes]:
    return HandMade().complete().entries()


@pytest.fixture
def shapes(entries: dict[str, bytes], tmp_path: Path) -> Callable[..., str]:
    """What is said of the shapes when this document of a sound, signed bundle holds these bytes."""

    def said(name: str, data: bytes) -> str:
        path = tmp_path / "bundle.zip"
        path.write_bytes(zipped(signed(entries | {name: data}, sound=entries)))
        findings = {finding.name: finding for finding in check(str(path))}
        assert "internal" not in findings
        assert findings["manifest"].result is Result.PASS
        assert findings["shapes"].result is Result.FAIL
        assert findings["chain"].result is Result.NOTE
        assert findings["pictures"].says == "Not checked, because a document is missing or has another format."
        return findings["shapes"].says

    return said


Said = Callable[[str, bytes], str]


def lines(entries: dict[str, bytes], name: str = "labels.jsonl") -> list[Any]:
    return [json.loads(line) for line in entries[name].splitlines()]


def written(values: list[Any]) -> bytes:
    return "".join(
        json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False) + "\n" for value in values
    ).encode()


@pytest.mark.parametrize("name", sorted({*LINES, *VALUES} - {*OF_JUDGES, *IF_ANY}))
def test_a_document_that_is_missing_is_named(name: str, entries: dict[str, bytes], tmp_path: Path) -> None:
    path = tmp_path / "bundle.zip"
    left = {other: data for other, data in entries.items() if other != name}
    path.write_bytes(zipped(signed(left, sound=entries)))
    findings = {finding.name: finding for finding in check(str(path))}
    assert findings["shapes"].says == f"{name} is missing."
    assert findings["shapes"].places == (name,)


@pytest.mark.parametrize("name", sorted({*LINES, *VALUES} - {*OF_JUDGES, *IF_ANY}))
@pytest.mark.parametrize("text", ["7", "[]", "{}", "[[1]]", '"text"', "", "nul"])
def test_a_value_of_another_kind_fails_and_breaks_nothing(
    name: str, text: str, entries: dict[str, bytes], tmp_path: Path
) -> None:
    """Where it happens to be a shape that fits, as an empty list of labels, what rests on it fails or not, soundly."""
    path = tmp_path / "bundle.zip"
    path.write_bytes(zipped(signed(entries | {name: text.encode() + b"\n"}, sound=entries)))
    findings = check(str(path))
    assert any(finding.result is Result.FAIL for finding in findings)
    assert "internal" not in [finding.name for finding in findings]


def test_the_line_and_the_place_are_named(entries: dict[str, bytes], shapes: Said) -> None:
    labels = lines(entries)
    labels[4]["facts"]["verdict"] = 7
    assert shapes("labels.jsonl", written(labels)) == "labels.jsonl line 5: facts.verdict is 7, not one of 0, 1, 2."


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity"])
def test_numbers_that_json_has_not_are_refused(value: str, shapes: Said) -> None:
    assert f"has {value}, which JSON does not allow" in shapes("submission.json", f'{{"attempt": {value}}}'.encode())


@pytest.mark.parametrize("value", ["9" * 100_000, "1e999", "-1e999", "0." + "1" * 100_000])
def test_endless_numbers_are_refused(value: str, shapes: Said) -> None:
    assert "number" in shapes("submission.json", f'{{"attempt": {value}}}'.encode())


@pytest.mark.parametrize("value", [2**53 + 1, -1, 10**29, 1e300])
def test_large_numbers_are_refused(value: float, entries: dict[str, bytes], shapes: Said) -> None:
    labels = lines(entries)
    labels[0]["facts"]["active_seconds"] = value
    assert "facts.active_seconds" in shapes("labels.jsonl", written(labels))


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, "[" * 61 + "]" * 61])
def test_deep_nesting_is_refused(text: str, shapes: Said) -> None:
    assert "nested too deeply" in shapes("submission.json", text.encode())
    assert "nested too deeply" in shapes("events.jsonl", text.encode() + b"\n")


def test_a_doubled_key_is_refused(entries: dict[str, bytes], shapes: Said) -> None:
    first = entries["labels.jsonl"].replace(b'"annotator":"A1"', b'"annotator":"A1","annotator":"A2"', 1)
    assert "labels.jsonl line 1 has the key 'annotator' twice" in shapes("labels.jsonl", first)


@pytest.mark.parametrize(
    ("old", "new"),
    [(b'"slot":1', b'"slot": 1'), (b'"slot":1', b'"slot":1.0'), (b"picture", b"\\u0070icture"), (b"}\n", b"}\r\n")],
)
def test_a_line_in_another_spelling_is_refused(old: bytes, new: bytes, entries: dict[str, bytes], shapes: Said) -> None:
    says = shapes("labels.jsonl", entries["labels.jsonl"].replace(old, new, 1))
    assert says.startswith("labels.jsonl line 1")
    assert "canonical" in says or "not of type integer" in says


def test_half_a_character_is_refused(entries: dict[str, bytes], shapes: Said) -> None:
    halved = entries["labels.jsonl"].replace(b"The last picture", b"\\ud800", 1)
    assert "labels.jsonl line 1 has a lone surrogate" in shapes("labels.jsonl", halved)
    halved = entries["submission.json"].replace(b"Walker", b"\\ud800", 1)
    assert "submission.json has a lone surrogate" in shapes("submission.json", halved)


@pytest.mark.parametrize("data", [b"\xff\xfe\n", b"\xc0\xaf\n", b"\xed\xa0\x80\n"])
def test_what_is_no_utf_8_is_refused(data: bytes, shapes: Said) -> None:
    assert shapes("flags.jsonl", data) == "flags.jsonl line 1 is not UTF-8 at byte 0."


def test_a_last_line_without_end_is_refused(entries: dict[str, bytes], shapes: Said) -> None:
    assert shapes("labels.jsonl", entries["labels.jsonl"][:-1]) == "labels.jsonl does not end with a line feed."


def test_empty_lines_are_refused(entries: dict[str, bytes], shapes: Said) -> None:
    assert "labels.jsonl line 1 is not JSON" in shapes("labels.jsonl", b"\n" + entries["labels.jsonl"])


def test_at_most_five_places_of_a_document_are_told(entries: dict[str, bytes], shapes: Said) -> None:
    says = shapes("labels.jsonl", written([{"x": 1}] * 1000))
    assert says.count("labels.jsonl line") == 5


def test_text_of_a_bundle_reaches_no_terminal_as_it_is(
    entries: dict[str, bytes], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "bundle.zip"
    hostile = written([{"\x1b[2J\u202e": "\x07", "annotator": "\x9b31m"}])
    path.write_bytes(zipped(signed(entries | {"labels.jsonl": hostile})))
    assert main([str(path)]) == 1
    out = capsys.readouterr().out
    assert out.isascii()
    assert all(line.isprintable() for line in out.splitlines())
    assert "\\x1b[2J" in out


def peak_of(path: Path) -> tuple[int, list[Finding]]:
    tracemalloc.start()
    findings = check(str(path))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak, findings


def test_an_endless_line_takes_no_endless_memory(entries: dict[str, bytes], tmp_path: Path) -> None:
    path = tmp_path / "bundle.zip"
    noise = bytes(range(35, 92)) * (100 * MIB // 57)
    files = entries | {"labels.jsonl": b'"' + noise}
    path.write_bytes(raw_zip(*(Entry(name.encode(), data) for name, data in signed(files, sound=entries).items())))
    peak, findings = peak_of(path)
    assert peak < 60 * MIB
    assert "has a line of more than" in next(finding.says for finding in findings if finding.name == "shapes")


@pytest.mark.parametrize("item", [b"[]", b"0", b"{}", b'""'])
def test_a_line_of_countless_values_is_not_parsed(item: bytes, entries: dict[str, bytes], tmp_path: Path) -> None:
    path = tmp_path / "bundle.zip"
    text = b"[" + b",".join([item] * (canonical.MOST_VALUES_AT_ONCE + 1)) + b"]\n"
    files = entries | {"events.jsonl": text}
    path.write_bytes(raw_zip(*(Entry(name.encode(), data) for name, data in signed(files, sound=entries).items())))
    peak, findings = peak_of(path)
    assert peak < 60 * MIB
    assert "holds more than 2,000,000 values" in next(f.says for f in findings if f.name == "shapes")


def test_a_key_that_is_there_twice_is_found_at_the_end_of_a_huge_object() -> None:
    keys = "".join(f'"{number}":0,' for number in range(200_000))
    started = time.process_time()
    with pytest.raises(canonical.Malformed, match="has the key '199999' twice"):
        canonical.parse_json("{" + keys + '"199999":1}')
    assert time.process_time() - started < 20  # of minutes, where every key is looked up among all before it


def test_a_manifest_of_countless_values_is_not_parsed(entries: dict[str, bytes], tmp_path: Path) -> None:
    path = tmp_path / "bundle.zip"
    files = signed(entries) | {"MANIFEST.json": b"[" + b"[]," * 2_000_000 + b"[]]\n"}
    path.write_bytes(raw_zip(*(Entry(name.encode(), data) for name, data in files.items())))
    assert "holds more than 2,000,000 values" in next(f.says for f in check(str(path)) if f.name == "manifest")


@pytest.mark.parametrize("at", ["2026-13-01", "2026-02-30", "2026-00-10", "0000-01-01"])
def test_a_time_that_no_calendar_shows_is_found(at: str, entries: dict[str, bytes], shapes: Said) -> None:
    line = lines(entries, "labels.jsonl")[0]
    line["claimed_at"] = f"{at}T10:00:00.000000+00:00"
    assert "claimed_at is" in shapes("labels.jsonl", written([line]))
    line["claimed_at"] = "2026-01-05T24:00:00.000000+00:00"
    assert "not a valid date and time" in shapes("labels.jsonl", written([line]))


def test_a_step_with_another_index_than_its_place_is_found(entries: dict[str, bytes], shapes: Said) -> None:
    line = lines(entries, "trajectories.jsonl")[0]
    line["steps"][1]["index"] = 5
    assert "the index of step 1 differs from its place" in shapes("trajectories.jsonl", written([line]))


def test_an_attachment_is_of_a_known_kind(entries: dict[str, bytes], shapes: Said) -> None:
    line = lines(entries, "trajectories.jsonl")[0]
    line["attachments"][0]["kind"] = "diary"
    assert "kind is" in shapes("trajectories.jsonl", written([line]))
    assert set(ATTACHMENT_KINDS) == set(AttachmentKind)


def test_judges_are_in_the_bundle_as_it_says(entries: dict[str, bytes], shapes: Said) -> None:
    assert "judges/runs.jsonl is there" in shapes("judges/runs.jsonl", b"")
    submission = json.loads(entries["submission.json"])
    submission["contents"]["judges"] = True
    assert "judges/runs.jsonl is missing" in shapes("submission.json", json.dumps(submission).encode())


def test_countless_lines_are_not_all_kept(
    entries: dict[str, bytes], shapes: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(documents, "MOST_VALUES_KEPT", 2000)
    assert "the documents hold more than 2,000 values" in shapes("events.jsonl", entries["events.jsonl"] * 50)


def test_only_summaries_of_trajectories_are_kept(entries: dict[str, bytes], tmp_path: Path) -> None:
    line = lines(entries, "trajectories.jsonl")[0]
    for step in line["steps"]:
        step["thought"] = "x" * MIB
    path = tmp_path / "bundle.zip"
    files = signed(entries | {"trajectories.jsonl": written([line] * 20)})
    path.write_bytes(raw_zip(*(Entry(name.encode(), data) for name, data in files.items())))
    tracemalloc.start()
    with open_package(str(path)) as package:
        bundle = read_bundle(package)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(bundle.trajectories) == 20
    assert peak < 25 * MIB


def test_reading_a_bundle_that_is_malformed_names_the_places(entries: dict[str, bytes], tmp_path: Path) -> None:
    path = tmp_path / "bundle.zip"
    path.write_bytes(zipped(entries | {"people.json": b"[]"}))
    with open_package(str(path)) as package, pytest.raises(Shapeless) as error:
        read_bundle(package)
    assert error.value.places == ["people.json: it is a list, not of type object"]


# --- shapes that are right, and values that make no sense ------------------------------------------------------------

STRANGE = (
    *(None, True, False, 0, 1, 2, 99, 2**53, 0.5, "", "A1", "A9", "Q1", "M1", "task_a", "nowhere", "0" * 64, [], {}),
    *("9999-99-99T99:99:99.999999+00:00", "0001-01-01T00:00:00.000000+00:00", "claimed", "frozen", "imported"),
    *("spot_checks_drawn", "adjudication_opened", "member_added", "configured", "judgments_shown", [[1, 2]], {"A1": 0}),
)


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every container in a value with every key or index of it."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in list(inner):
        yield value, key
        yield from places(each)


def disturb(documents: dict[str, Any], generator: random.Random) -> None:
    """Change one thing of one document, unless it would lose its shape."""
    name = generator.choice([name for name, value in documents.items() if value] + ["events.jsonl"] * 8)
    before = copy.deepcopy(documents[name])
    container, key = generator.choice(list(places(documents[name])))
    deed = generator.random()
    if deed < 0.2:
        del container[key]
    elif deed < 0.4 and isinstance(container, list):
        container.append(copy.deepcopy(generator.choice(container)))
    elif deed < 0.5 and isinstance(container, list):
        generator.shuffle(container)
    else:
        container[key] = copy.deepcopy(generator.choice(STRANGE))
    values = documents[name] if name in LINES else [documents[name]]
    if any(mismatches(value, SCHEMAS[name]) for value in values):
        documents[name] = before


@pytest.mark.parametrize("seed", range(4))
def test_values_that_make_no_sense_break_no_claim_and_no_page(seed: int) -> None:
    generator, made = random.Random(seed), HandMade().complete()
    sound = made.documents
    for _ in range(40):
        made.documents = copy.deepcopy(sound)
        for _ in range(generator.choice((1, 1, 2, 4))):
            disturb(made.documents, generator)
        if made.documents["events.jsonl"] and generator.random() < 0.5:
            made.rechain()
        bundle = made.bundle()
        assert [finding.name for finding in claims(bundle)] == list(CLAIMS)
        assert render_report(bundle).startswith("<!DOCTYPE html>")


def test_figures_of_values_that_make_no_sense_break_nothing() -> None:
    generator, made = random.Random(7), HandMade().complete()
    sound = made.documents
    for _ in range(6):
        made.documents = copy.deepcopy(sound)
        for _ in range(4):
            disturb(made.documents, generator)
        assert agreement_finding(made.bundle()).name == "agreement"
