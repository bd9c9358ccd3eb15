"""The report page of a bundle: complete, safe whatever the bundle says, and the same every time."""

from __future__ import annotations

import argparse
import json
import re
from copy import deepcopy
from dataclasses import fields
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from playwright.sync_api import Page

from annotation.tests.shared_rows import shared_rows
from evaluations.evidence import bundle as figures
from evaluations.evidence.companions import CHECK_COMMAND, TO_CHECK
from evaluations.evidence.documents import documents
from evaluations.evidence.report.page import render_report
from evaluations.tests.whole_review import TRAJECTORIES, task_id, whole_review
from evaluations.verifier.documents import Bundle
from evaluations.verifier.figures import agreement_finding, comparison_finding
from evaluations.verifier.findings import Finding, Result, failed, noted
from evaluations.verifier.main import add_known_options

EVIL = "<script>alert(1)</script><img src=x onerror=alert(1)>\"'&"
VOID = ("meta", "line", "rect", "circle")


@cache
def made_once() -> Bundle:
    with TemporaryDirectory() as folder:
        submission = whole_review(Path(folder) / "package")
        bundle = documents(submission)
        bundle.agreement = json.loads(json.dumps(figures.agreement(submission)))
        bundle.comparison = json.loads(json.dumps(figures.comparison(submission)))
    found = [failed("draws", "One is not.", ["task_0003"]), noted("times", "Quick.")]
    found += [agreement_finding(bundle), comparison_finding(bundle)]
    bundle.claims = [finding.as_json() for finding in found]
    return bundle


@shared_rows
def bundle() -> Bundle:
    """One and the same for all: it is plain values, and outlives its rows."""
    return deepcopy(made_once())


class Read(HTMLParser):
    """``tags`` with their attributes, the ``text``, and what was ``open`` at the end."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.pieces: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "td":
            self.pieces.append(" ")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.pieces.append(data)

    @property
    def text(self) -> str:
        return " ".join("".join(self.pieces).split())


def everywhere(value: Any, text: str) -> Any:
    """The same value with ``text`` for every text in it but keys."""
    if isinstance(value, dict):
        return {key: everywhere(each, text) for key, each in value.items()}
    if isinstance(value, list):
        return [everywhere(each, text) for each in value]
    return text if isinstance(value, str) else value


def replaced(bundle: Bundle, text: str) -> Bundle:
    return Bundle(**{each.name: everywhere(getattr(bundle, each.name), text) for each in fields(bundle)})


# --- what it says ----------------------------------------------------------------------------------------------------


def test_it_has_all_sections_in_their_order(bundle: Bundle):
    page = render_report(bundle)
    headings = [line.removeprefix("<h2>").partition("</h2>")[0] for line in page.splitlines() if "<h2>" in line]
    assert headings == [
        "Outcome", "Claims", "Agreement of the annotators", "Adjudications and spot checks", "People",
        "Judges beside people", "Decided again, given back, reported, covered", "How to check it",
        "What it cannot prove", "All trajectories",
    ]  # fmt: skip


def test_it_gives_the_outcome_with_its_interval(bundle: Bundle):
    verdicts = [line["verdict"] for line in bundle.final_verdicts]
    for line, verdict in zip(bundle.final_verdicts, verdicts, strict=True):
        line["verdict"] = verdict if verdict == 2 else 1
    text = Read(render_report(bundle)).text
    # 9 of 10, and 9 of 9 without the one that could not be executed; Wilson 1927: 9.8/13.84 = 0.596 to 0.982
    assert "90.0% success rate: 9 of 10 59.6 to 98.2%" in text
    assert "Without them: 100.0% (9 of 9, 70.1 to 100.0%)" in text


def test_it_names_every_claim_with_its_result(bundle: Bundle):
    read = Read(render_report(bundle))
    for claim in bundle.claims:
        assert f"{claim['result'].upper()} {claim['title']}{claim['says']}" in read.text
    assert "2 PASS, 1 FAIL, 1 NOTE" in read.text  # agreement and comparison pass


def test_it_shows_people_exceptions_and_judges(bundle: Bundle):
    text = Read(render_report(bundle)).text
    for person in bundle.people:
        assert f"{person['pseudonym']} {person['role']}" in text
    for line in [*bundle.reopenings, *bundle.releases]:
        assert line["reason"] in text
    assert "careful-judge@1" in text
    assert bundle.draws[0]["facts"]["seed"] in text
    assert f"{bundle.agreement['alpha']['value']:.3f}".replace("-", "−") in text


def row_of(bundle: Bundle, number: int) -> str:
    """What the table says of a trajectory, in one line."""
    rows = render_report(bundle).partition("<h2>All trajectories</h2>")[2].partition("</table>")[0].split("<tr>")
    (row,) = [row for row in rows if f"<code>{task_id(number)}</code>" in row]
    return Read(f"<table>{row.partition('</tr>')[0]}</table>").text


def test_it_lists_every_trajectory_with_its_labels_and_what_decided(bundle: Bundle):
    """As `whole_review` says: 0 is unanimous, 3 a dispute, 7 has a correction."""
    page = render_report(bundle)
    listed = re.findall("<tr><td><code>(.*?)</code>", page)
    assert listed == [line["task_id"] for line in bundle.final_verdicts]
    assert len(listed) == TRAJECTORIES
    decided = {
        line["facts"]["task_id"]: f"{line['adjudicator']}: {line['facts']['reasoning']}"
        for line in bundle.adjudications
    }
    for line in bundle.final_verdicts:
        if line["by"] == "unanimous":
            assert line["task_id"] not in decided
            decided[line["task_id"]] = "unanimous"
    names = {1: "success", 0: "failure", 2: "not executable"}
    final = {line["task_id"]: names[line["verdict"]] for line in bundle.final_verdicts}
    for number, said in ((0, "A1 1, A2 1, A3 1"), (3, "A1 0, A2 1, A3 2"), (6, "A1 2, A2 2, A3 2")):
        expected = f"{task_id(number)} {final[task_id(number)]} {said} {decided[task_id(number)]}"
        assert row_of(bundle, number) == expected
    assert "A1 1, A2 1, A3 1 (1 revision)" in row_of(bundle, 7)


def test_the_list_takes_the_newest_revisions_and_marks_what_was_overruled(bundle: Bundle):
    """By their numbers, in whatever order they come."""
    task, facts = task_id(2), {"task_id": task_id(2)}
    bundle.final_verdicts = [{"task_id": task, "state": "adjudicated", "verdict": 0, "by": "adjudication"}]
    bundle.labels = [
        {"annotator": name, "facts": facts | {"slot": slot, "revision": revision, "verdict": verdict}}
        for name, slot, revision, verdict in (("A3", 3, 2, 1), ("A3", 3, 1, 0), ("A1", 1, 1, 0), ("A2", 2, 1, 2))
    ]
    bundle.adjudications = [
        {"adjudicator": name, "facts": facts | {"revision": revision, "reasoning": reason}}
        for name, revision, reason in (("Q2", 2, "The later one."), ("Q1", 1, "The earlier one."))
    ]
    assert row_of(bundle, 2) == f"{task} failure A1 0, A2 2, A3 1 (1 revision) Q2: The later one. (2 decisions)"
    assert "A1&nbsp;0, <b>A2&nbsp;2</b>, <b>A3&nbsp;1</b>" in render_report(bundle)


def test_a_trajectory_without_a_final_verdict_is_listed_with_its_state(bundle: Bundle):
    bundle.final_verdicts[2] |= {"verdict": None, "by": None, "state": "dispute"}
    assert row_of(bundle, 2) == f"{task_id(2)} without a final verdict A1 1, A2 0, A3 1 dispute"
    bundle.labels, bundle.final_verdicts[2]["state"] = [], "in review"
    assert row_of(bundle, 2).endswith("without a final verdict – in review")


def test_the_list_is_light_and_its_reasons_are_short(bundle: Bundle):
    for line in bundle.adjudications:
        line["facts"]["reasoning"] = "because " * 1000
    assert row_of(bundle, 3).endswith(f"Q1: {('because ' * 1000)[:159]}…")
    before, kept = len(render_report(bundle)), list(bundle.final_verdicts)
    for number in range(30):
        bundle.final_verdicts += [line | {"task_id": f"{line['task_id']}_{number}"} for line in kept]
        for lines in (bundle.labels, bundle.adjudications):
            lines += [
                line | {"facts": line["facts"] | {"task_id": f"{line['facts']['task_id']}_{number}"}}
                for line in lines
                if line["facts"]["task_id"] in {each["task_id"] for each in kept}
            ]
    assert len(render_report(bundle)) - before < 300 * 600


def test_it_names_the_command_of_the_readme(bundle: Bundle):
    assert f'<code class="command">{CHECK_COMMAND}</code>' in render_report(bundle)
    assert f"    {CHECK_COMMAND}\n" in TO_CHECK
    assert CHECK_COMMAND == "python3 -I verify.py . --keys ../webverdict-keys.json"


def test_the_readme_names_everything_that_a_check_can_be_given():
    parser = argparse.ArgumentParser()
    add_known_options(parser)
    options = [option for action in parser._actions for option in action.option_strings if option.startswith("--")]
    assert [option for option in options if f"`{option} " not in TO_CHECK and f" {option} " not in TO_CHECK] == [
        "--help"
    ]
    assert "export_submission --format trajectories-v2" in TO_CHECK


def test_a_figure_without_a_value_says_why(bundle: Bundle):
    bundle.agreement["alpha"] = {
        "value": None,
        "low": None,
        "high": None,
        "n": 3,
        "undefined": "all labels are the same",
    }
    assert "Krippendorff alpha all labels are the same 3" in Read(render_report(bundle)).text


def test_a_partial_bundle_says_so(bundle: Bundle):
    bundle.submission |= {
        "partial": True,
        "missing": [{"code": "x", "message": "A label lacks.", "where": "task_0001"}],
    }
    text = Read(render_report(bundle)).text
    assert "This bundle is partial: the review was not finished. task_0001 A label lacks." in text


@pytest.mark.parametrize("absent", ["claims", "agreement", "comparison"])
def test_what_is_not_there_is_left_out(bundle: Bundle, absent: str):
    setattr(bundle, absent, None)
    says = {"claims": "states no claims", "agreement": "no figures of agreement", "comparison": "How to check it"}
    text = Read(render_report(bundle)).text
    assert says[absent] in text
    assert ("Judges beside people" in text) is (absent != "comparison")


def test_nothing_decided_is_no_rate(bundle: Bundle):
    for line in bundle.final_verdicts:
        line["verdict"] = None
    assert "Nothing is decided yet" in render_report(bundle)


# --- what it is ------------------------------------------------------------------------------------------------------


def test_the_same_bundle_gives_the_same_page(bundle: Bundle):
    again = Bundle(**json.loads(json.dumps({each.name: getattr(bundle, each.name) for each in fields(bundle)})))
    assert render_report(bundle) == render_report(again)


def test_it_needs_nothing_else(bundle: Bundle):
    page = render_report(bundle)
    read = Read(page)
    assert not read.open
    assert not {"script", "link", "img", "iframe", "object", "base", "form", "a"} & {tag for tag, _ in read.tags}
    assert not {"src", "href", "style", "srcset"} & {name for _, attributes in read.tags for name in attributes}
    assert "url(" not in page
    assert "@import" not in page


def test_nothing_of_the_bundle_becomes_markup(bundle: Bundle):
    plain, evil = Read(render_report(replaced(bundle, "word"))), Read(render_report(replaced(bundle, EVIL)))
    assert [tag for tag, _ in plain.tags] == [tag for tag, _ in evil.tags]
    assert [sorted(attributes) for _, attributes in plain.tags] == [sorted(attributes) for _, attributes in evil.tags]
    assert evil.text.count("<script>alert(1)</script>") >= 20


@pytest.mark.parametrize("text", ["\ud800", "\u202egnorw", "x\x00\x1b[2J", "a\nb\u2028c", "y" * 100_000])
def test_a_text_that_cannot_be_shown_is_made_harmless(bundle: Bundle, text: str):
    page = render_report(replaced(bundle, text))
    page.encode()
    assert not {"\u202e", "\x00", "\x1b", "\u2028"} & set(page)
    assert "y" * 1000 not in page


@pytest.mark.parametrize("nonsense", [None, [], {}, "x", 1e300, -1, True, [None], [[1]], {"judges": 3, "pairs": "no"}])
def test_figures_that_make_no_sense_do_not_break_it(bundle: Bundle, nonsense: Any):
    bundle.comparison = {"judges": [{"judge": nonsense, "rows": [{"n": nonsense, "intervals": nonsense}]}]}
    for key in bundle.agreement:
        bundle.agreement[key] = nonsense
    assert not Read(render_report(bundle)).open


# --- how it looks ----------------------------------------------------------------------------------------------------


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 400, 1280])
def test_it_is_readable_at_any_width_in_light_and_dark(page: Page, html: Path, width: int, scheme: Any):
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(html.as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    background, ink = page.evaluate(
        "[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color]"
    )
    assert (brightness(background) > brightness(ink)) is (scheme == "light")
    assert page.evaluate("parseFloat(getComputedStyle(document.querySelector('td')).fontSize)") >= 14


@pytest.fixture
def html(tmp_path: Path) -> Path:
    """The page in a file, made without a database: a browser runs in a loop of its own."""
    texts = dict.fromkeys(("agent", "benchmark", "benchmark_name", "digest", "created_at", "frozen_at"), "text")
    counts = {"attempt": 1, "required_labels": 3, "protocol_version": 1, "trajectories": 3}
    told = {**texts, **counts, "partial": False, "missing": [], "chain": {"head": "a" * 64}, "contents": {}}
    empty = {each.name: [] for each in fields(Bundle)}
    bundle = Bundle(**(empty | {"submission": told, "protocol": {}, "agreement": None, "comparison": None}))
    bundle.final_verdicts = [
        {"task_id": f"{number}" * 90, "state": "adjudicated", "verdict": verdict, "by": "adjudication"}
        for number, verdict in enumerate((0, 1, 1, 2, None))
    ]
    facts = {"task_id": "1" * 90, "slot": 1, "revision": 1, "verdict": 0, "reasoning": "word" * 100}
    bundle.labels = [{"annotator": "A1", "facts": facts | {"slot": slot}} for slot in range(9)]
    bundle.adjudications = [{"adjudicator": "Q1", "facts": facts}]
    bundle.claims = [
        Finding("times", "A title " * 20, Result.NOTE, "A sentence " * 40, ("task_" + "x" * 300,)).as_json()
    ]
    bundle.reopenings = [
        {"task_id": "task_" + "x" * 80, "reopened_by": "M1", "reason": "word " * 100, "reopened_at": None}
    ]
    measure = {"value": 0.5, "low": 0.4, "high": 0.6, "n": 30, "hits": 15}
    pair = {"first": "A1", "second": "A2", "n": 30, "raw_agreement": 0.5, "kappa": measure, "alpha": measure}
    bundle.agreement = {"alpha": measure, "ac1": measure, "fleiss_kappa": measure, "pairs": [pair]}
    path = tmp_path / "report.html"
    path.write_text(render_report(bundle), encoding="utf-8")
    return path


def brightness(color: str) -> int:
    return sum(int(part) for part in color.removeprefix("rgb(").removesuffix(")").split(","))
