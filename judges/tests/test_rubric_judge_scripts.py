"""The rubric judge with installed scripts, over a model that answers over real HTTP."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from annotation.formats.cached_pages import stem
from annotation.models import Submission
from annotation.records import Verdict
from judges.llm import CallFailed
from judges.scorer import parameters_from
from judges.tests.builders import Fake, MemoryCallLog
from judges.tests.rubric_subjects import CITED, KIND, about, file, one, says
from judges.tests.test_rubric_pdf import document
from judges.tests.webjudging import judge, judged
from judges.working.subjects import load_subject

pytestmark = pytest.mark.slow

SCRIPT = """\
from mind2web2 import Evaluator

async def evaluate_answer(client, answer, agent_name, answer_name, cache, semaphore, logger, model="o4-mini"):
    evaluator = Evaluator()
    root = evaluator.initialize(
        task_id="t", agent_name=agent_name, answer_name=answer_name, client=client, task_description="Buy a lamp.",
        answer=answer, global_cache=cache, global_semaphore=semaphore, logger=logger, default_model=model)
    named = evaluator.add_leaf(id="named", desc="It is named.", parent=root, critical=False)
    await evaluator.verify(claim="It is named.", node=named)
    page = evaluator.add_leaf(id="page", desc="The page shows it.", parent=root, critical=False)
    await evaluator.verify(claim="The page shows it.", node=page, sources="%s")
    return evaluator.get_summary()
"""


@pytest.fixture
def installed(tmp_path) -> Path:
    """The folder of installed scripts, with one for the task ``t``."""
    (tmp_path / "t.py").write_text(SCRIPT % CITED, encoding="utf-8")
    return tmp_path


def test_an_installed_script_judges(fake: Fake, installed: Path):
    fake.says(says("It is named.", True), says("The page shows it.", False), record=True)
    call_log, subject = MemoryCallLog(), about(one(), pages={CITED: "A lamp"}, scripts=installed)

    score = judged(fake, judge("rubric", pass_score="0.5"), subject, call_log=call_log)

    assert (score.verdict, score.score) == (Verdict.SUCCESS, 0.5)
    digest = hashlib.sha256((SCRIPT % CITED).encode()).hexdigest()
    assert score.details["source"] == {"kind": "script", "name": "t.py", "version": None, "digest": digest}
    assert score.notes["rubric"]["digest"] == digest
    assert [(node["id"], node["status"]) for node in score.details["tree"]["children"]] == [
        ("named", "passed"),
        ("page", "failed"),
    ]
    assert score.details["pages"] == [{"url": CITED, "stored": "web"}]
    assert [one.call.stage for one in call_log.outcomes] == ["verify_answer"] * 2 + ["verify_page"] * 2
    assert '"url":"data:image"' in fake.counts()["bodies"][2]


def test_a_script_reads_a_pdf_that_was_read_for_it(fake: Fake, installed: Path):
    fake.says(says("It is named.", True), says("The page shows it.", True), record=True)
    files = (
        file("pages/index.json", json.dumps({CITED: "pdf"}).encode()),
        file(f"pages/{stem(CITED)}.pdf", document("Lamps from 20 dollars")),
    )

    score = judged(fake, judge("rubric"), replace(about(scripts=installed), files=files))

    assert score.verdict is Verdict.SUCCESS
    assert "Lamps from 20 dollars" in fake.counts()["bodies"][2]


def test_a_page_that_a_script_misses_is_unscored(fake: Fake, installed: Path):
    fake.says(says("It is named.", True))

    assert CITED in judged(fake, judge("rubric"), about(scripts=installed)).unscored


def test_the_source_says_where_the_rubric_comes_from(fake: Fake, installed: Path):
    fake.says(says("It is so.", True))

    given = about(one(), scripts=installed)
    assert judged(fake, judge("rubric", source="written"), given).details["source"]["kind"] == "written"
    other = about(one(), scripts=installed, task_id="other")
    assert judged(fake, judge("rubric"), other).details["source"]["kind"] == "written"
    assert judged(fake, judge("rubric", source="script"), other).verdict is None


def test_a_scripts_exception_fails_the_item(fake: Fake, installed: Path):
    (installed / "t.py").write_text((SCRIPT % CITED).replace("return ev", "[][0]; return ev"), encoding="utf-8")
    fake.says(says("It is named.", True), says("The page shows it.", True))

    with pytest.raises(CallFailed, match=r"line 12 of t\.py.*IndexError: list index out of range"):
        judged(fake, judge("rubric"), about(pages={CITED: "A lamp"}, scripts=installed))


@pytest.mark.parametrize("score", ["2", "'1'", "None", "float('inf')", "True", "-0.1"])
def test_a_score_that_is_none_fails_the_item(fake: Fake, installed: Path, score):
    text = (SCRIPT % CITED).replace("return evaluator.get_summary()", f"return {{'final_score': {score}}}")
    (installed / "t.py").write_text(text, encoding="utf-8")
    fake.says(says("It is named.", True), says("The page shows it.", True))

    with pytest.raises(CallFailed, match=r"final_score|ValueError"):
        judged(fake, judge("rubric"), about(pages={CITED: "A lamp"}, scripts=installed))


def test_the_setting_says_where_scripts_are_installed(submission: Submission, installed: Path, settings: Any):
    trajectory = submission.trajectories.earliest("position")
    (installed / "t.py").rename(installed / f"{trajectory.task.external_id}.py")
    foreseen = partial(KIND.calls, parameters_from(KIND.parameters, {"source": "script"}))

    assert foreseen(load_subject(trajectory)) == []
    settings.RUBRIC_SCRIPTS = str(installed)
    assert foreseen(load_subject(trajectory))


def test_the_calls_of_a_script_are_guessed_without_running_it(installed: Path):
    (installed / "t.py").write_text("raise SystemExit\nawait evaluator.verify(a)\nx.extract(b)", encoding="utf-8")

    foreseen = KIND.calls(parameters_from(KIND.parameters, {}), about(scripts=installed))

    assert (foreseen.count(("extract_answer", 0)), foreseen.count(("verify_page", 1))) == (1, 6)
