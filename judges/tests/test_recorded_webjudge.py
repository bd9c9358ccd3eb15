"""Real replies of WebJudge, replayed: upstream's mode gives every recorded verdict, the default mode differs only
where upstream's reading is known to be wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from django.conf import settings

from annotation.records import Verdict
from judges.scorers import reading, upstream
from judges.tests.webjudging import POINTS, V1, VERDICT, judge, judged, sent, subject

pytestmark = pytest.mark.slow

REAL = Path(settings.BASE_DIR).parent / "shared" / "data" / "real_trajectories"


def rows(name):
    path = REAL / name
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


RUNS, FINAL, LOOKS = rows("recorded_webjudge.jsonl"), rows("parse_cases.jsonl"), rows("score_parse_cases.jsonl")


@pytest.fixture(autouse=True)
def shared_data():
    if not REAL.is_dir():
        pytest.skip(f"the folder shared/data/{REAL.name} is not beside the checkout")


def test_the_recorded_data_is_all_there():
    assert (len(RUNS), len(FINAL), len(LOOKS)) == (45, 48, 24)


def test_every_real_final_message_has_the_official_label_in_upstreams_reading():
    read = [upstream.read_verdict(row["final_response"]).value for row in FINAL]

    assert read == [row["label_by_official_rule"] for row in FINAL]


def test_the_default_reading_of_real_final_messages_is_their_last_status():
    read = [reading.find_verdict(row["final_response"]) for row in FINAL]

    assert read == [Verdict(row["label_by_last_status"]) for row in FINAL]
    differ = [row["task_id"] for row, label in zip(FINAL, read, strict=True) if row["label_by_official_rule"] != label]
    assert differ == ["webarena_677"]


def recorded_scale(row):
    """The rule that the scores of a recorded run were read with: the 7B runs have the form of the other variant."""
    return upstream.read_image_score if "7B" in row["model"] else upstream.read_general_image_score


def test_real_replies_on_images_have_the_recorded_score_in_upstreams_reading():
    assert [recorded_scale(row)(row["response"]) for row in LOOKS] == [row["recorded_score"] for row in LOOKS]


def test_the_default_reading_of_real_replies_on_images_differs_only_where_upstream_misses_the_form():
    differ = [row for row in LOOKS if reading.find_relevance(row["response"]) != (row["recorded_score"] or None)]

    assert [row["form"] for row in differ] == ["other_zero_webjudge_o4_mini"] * 4
    assert all(row["response"].rstrip().endswith("\nScore: 1") for row in differ)  # upstream wants "### Score"


def replayed(fake, run, kind, **parameters):
    """A trajectory of as many screenshots as were recorded, judged with the recorded replies."""
    steps = range(len(run["images"]))
    fake.says(
        {"match": POINTS, "reply": f"**Key Points**:{run['key_points']}"},
        {"match": VERDICT, "reply": run["final_response"]},
        *({"match": sent(n), "reply": run["images"][n]["response"]} for n in steps),
    )
    about = subject(list(steps), [f"click('{n}')" for n in steps], source_format=V1, task_text=run["task"])
    return judged(fake, judge(kind, **parameters), about, output="text")


def named(run):
    return f"{run['run']}-{run['agent']}-{run['task_id']}"


@pytest.mark.parametrize("run", RUNS, ids=named)
def test_a_recorded_run_replayed_in_upstreams_mode_has_the_recorded_verdict_and_scores(fake, run):
    score = replayed(fake, run, "webjudge-general", mode="upstream")

    assert score.verdict == run["predicted_label"]
    assert fake.counts()["calls"] == len(run["images"]) + 2
    assert "\n".join(one.text for one in score.key_points).split() == _points(run["key_points"])
    if "7B" not in run["model"]:
        assert [(one.relevance, one.kept) for one in score.steps] == recorded_looks(run)


@pytest.mark.parametrize("run", [run for run in RUNS if "7B" in run["model"]], ids=named)
def test_a_run_of_webjudge_7b_has_its_recorded_scores_with_its_parameters(fake, run):
    """Its replies say "**Score**: 3", which the general variant reads as 0 without these parameters."""
    score = replayed(fake, run, "webjudge-general", mode="upstream", image_replies="webjudge-7b")

    assert score.verdict == run["predicted_label"]
    assert [(one.relevance, one.kept) for one in score.steps] == recorded_looks(run)


@pytest.mark.parametrize("run", RUNS, ids=named)
def test_a_recorded_run_replayed_in_the_default_mode_has_the_recorded_verdict(fake, run):
    score = replayed(fake, run, "webjudge-general")

    assert score.verdict == run["predicted_label"]
    read = [(one.relevance or 0, one.kept) for one in score.steps]
    assert [n for n, both in enumerate(zip(read, recorded_looks(run), strict=True)) if both[0] != both[1]] == []
    assert score.explanation
    assert len(score.key_points) >= 1


def recorded_looks(run):
    return [(look["score"], look["passed_threshold"]) for look in run["images"]]


def _points(text):
    return [word for line in text.split("\n") for word in line.lstrip("0123456789. ").split()]
