"""Scripts that were written for mind2web2, run as they are on this engine."""

from __future__ import annotations

import asyncio
import importlib
import json
import logging
import sys
from pathlib import Path

import pytest

from judges.scorers.rubric import alias, engine
from judges.scorers.rubric.engine import DualSemaphore
from judges.scorers.rubric.pages import CacheFileSys
from judges.tests.rubric_fakes import Model, install_temporarily, picture

SCRIPTS = Path(__file__).parent / "rubric_scripts"
LOGGER = logging.getLogger("a.script")
TIMETABLE = "https://rail.example/timetable"
GREEN, RED = "https://shop.example/green", "https://shop.example/red"

LAMPS = {
    "lamps": [{"name": "Fern", "price": "30", "urls": [GREEN, RED]}, {"name": "Moss", "price": "35", "urls": [RED]}]
}
LINE = {"people": ["Anna", "Berta", "Karl", "Dora"], "years": [1900, 1980]}
ENTRY = "async def evaluate_answer(client, answer, agent_name, answer_name, cache, semaphore, logger"


@pytest.fixture
def cache(tmp_path):
    found = CacheFileSys(tmp_path / "pages")
    for url in (TIMETABLE, GREEN, RED):
        found.put_web(url, url, picture())
    return found


def run(name, client, cache=None, **settings):
    """Summary of a script of ours, and the evaluator that it made."""
    path = name if isinstance(name, Path) else SCRIPTS / f"{name}.py"
    given = {"answer": "The answer.", "agent_name": "agent", "answer_name": "answer_1", "model": "o4-mini"}
    with install_temporarily(), engine.open_engine(**settings) as opened:
        script = alias.load_script(path)
        summary = asyncio.run(
            alias.evaluate(script, client=client, cache=cache, semaphore=DualSemaphore(), logger=LOGGER, **given)
        )
    (evaluator,) = opened.evaluators
    assert json.loads(json.dumps(summary)) == summary
    return summary, evaluator


def statuses(summary):
    found = {}

    def below(node):
        found[node["id"]] = node["status"]
        for child in node["children"]:
            below(child)

    below(summary["eval_breakdown"][0]["verification_tree"])
    return found


# --- the scripts ---


def test_lamps_are_checked_each_by_itself(cache):
    client = Model(rule=lambda claim, url, vote: "Fern" in claim and url == GREEN, extracts={"Lamps": LAMPS})
    summary, evaluator = run("lamps", client, cache)
    assert summary["final_score"] == 0.5
    assert statuses(summary)["lamp_1"] == "passed"
    assert statuses(summary)["lamp_2_colour"] == "skipped"  # the price before it had failed, and is critical
    assert summary["eval_breakdown"][0]["info"] == [{"lamps": LAMPS}, {"prices": {"most": 40}}]
    assert [one["url"] for one in evaluator.details()["pages"]] == [GREEN, RED]


def test_lamps_that_nobody_named_score_nothing_and_ask_nothing(cache):
    client = Model(extracts={"Lamps": {"lamps": []}})
    summary, _ = run("lamps", client, cache)
    assert summary["final_score"] == 0.0
    assert len(client.calls) == 1
    assert statuses(summary)["lamp_1_price"] == "skipped"


def test_a_journey_passes_only_as_far_as_its_first_gap(cache, caplog):
    caplog.set_level(logging.INFO)
    extracts = {"Journey": {"departure": "09:28", "url": TIMETABLE}, "Platform": {"platform": "7"}}
    client = Model(rule=lambda claim, url, vote: "price" not in claim, extracts=extracts)
    summary, _ = run("journey", client, cache)
    assert summary["final_score"] == 0.75  # the train, and half of the details
    assert summary["eval_breakdown"][0]["info"][-1] == {"platform_of_the_page": {"platform": "7"}}
    assert "The journey is judged." in caplog.text
    assert any(call.instruction == "The platform is 7." for call in client.calls)

    extracts["Journey"] = {"departure": "08:28", "url": TIMETABLE}
    summary, _ = run("journey", client, cache)
    assert summary["final_score"] == 0.0
    assert statuses(summary)["leaves"] == "skipped"
    assert statuses(summary)["details"] == "skipped"


@pytest.mark.parametrize("right", range(6))
def test_a_lineage_scores_a_fifth_for_every_link(right):
    known = ["Anna", "Berta", "Carl", "Dora", "Emil"]
    people = known[:right] + ["somebody"] * (5 - right)
    extracts = {"Line": {"people": people, "years": []}}
    client = Model(rule=lambda claim, *_: claim.split(" and ")[0] in known, extracts=extracts)
    summary, _ = run("lineage", client)
    assert summary["final_score"] == pytest.approx(right / 5)
    assert "given_4" in statuses(summary)


async def a_walk(what, start, end, mode):
    assert (start, mode) == ("Museum", "walking")
    return {"distance": 900 if end == "Garden" else "no way", "travel_time": 700}[what]


def test_the_maps_tool_answers_where_somebody_does():
    client = Model(extracts={"Parks": {"names": ["Garden", "Moon"]}})
    summary, evaluator = run("parks", client, maps=a_walk)
    assert summary["final_score"] == 0.5
    assert any("takes 700 seconds" in call.claim for call in client.calls)
    assert evaluator.infrastructure_errors == []


def test_without_maps_the_tool_is_made_and_asking_it_is_an_error_of_the_judge():
    with pytest.raises(alias.NoMaps, match="it is not available here"):
        run("parks", Model(extracts={"Parks": {"names": ["Garden"]}}))
    summary, _ = run("parks", Model(extracts={"Parks": {"names": []}}))
    assert summary["final_score"] == 0.0


def test_a_script_that_catches_the_error_of_its_tool_is_still_found_out(tmp_path):
    file = tmp_path / "catching.py"
    source = (SCRIPTS / "parks.py").read_text()
    file.write_text(
        source.replace('await maps.calculate_distance("Museum", name, "walking")', "await tried(maps, name)")
        + "\n\nasync def tried(maps, name):\n    try:\n        return await maps.calculate_distance(name, name)\n"
        "    except Exception:\n        return None\n"
    )
    with pytest.raises(alias.NoMaps):
        run(file, Model(extracts={"Parks": {"names": ["Garden"]}}))
    file.write_text(
        file.read_text()
        .replace("await maps.calculate_travel_time(", "str(")
        .replace('address1="Museum", address2=name, mode="walking"', "7")
    )
    summary, evaluator = run(file, Model(extracts={"Parks": {"names": ["Garden"]}}))
    assert summary["final_score"] == 0.0
    assert [fault.kind for fault in evaluator.infrastructure_errors] == ["tool"]
    assert evaluator.score_bounds() == (0.0, 1.0)


def test_an_error_of_a_script_comes_through_and_is_no_score():
    broken = {"Line": LINE | {"years": [1900, None]}}
    with pytest.raises(TypeError):
        run("lineage", Model(extracts=broken))


def test_an_error_of_the_model_is_no_error_of_the_script():
    client = Model(rule=lambda *_: OSError("gone"), extracts={"Line": LINE})
    summary, evaluator = run("lineage", client)
    assert summary["final_score"] == 0.0
    assert {fault.kind for fault in evaluator.infrastructure_errors} == {"call"}
    assert evaluator.score_bounds() == (0.0, 0.8)  # one of five was not even named


# --- the alias ---


def test_the_nine_modules_are_there_only_while_they_are_installed():
    names = [
        "mind2web2",
        "mind2web2.evaluator",
        "mind2web2.verification_tree",
        "mind2web2.utils",
        "mind2web2.utils.cache_filesys",
        "mind2web2.llm_client",
        "mind2web2.llm_client.base_client",
        "mind2web2.api_tools",
        "mind2web2.api_tools.tool_googlemap",
    ]
    with install_temporarily() as made:
        assert list(made) == names
        for name in names:
            assert importlib.import_module(name) is made[name]
        assert made["mind2web2"].api_tools.tool_googlemap.GoogleMapsTool is alias.GoogleMapsTool
        with pytest.raises(ModuleNotFoundError, match=r"mind2web2\.runner"):
            importlib.import_module("mind2web2.runner")
    assert not [name for name in sys.modules if name.startswith("mind2web2")]


def test_what_went_by_the_name_before_is_put_back(monkeypatch):
    before = object()
    monkeypatch.setitem(sys.modules, "mind2web2", before)
    with install_temporarily():
        assert sys.modules["mind2web2"] is not before
        with install_temporarily():
            pass
        assert "mind2web2.evaluator" in sys.modules
    assert sys.modules["mind2web2"] is before


def test_every_script_is_loaded_under_a_name_of_its_own():
    with install_temporarily():
        one, other = (alias.load_script(SCRIPTS / "lamps.py") for _ in range(2))
    assert one.__name__ != other.__name__
    assert one.Lamp is not other.Lamp
    assert sys.modules[one.__name__] is one


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("x = 1", "has no function evaluate_answer"),
        (f"{ENTRY.removeprefix('async ')}):\n    pass", "must be a coroutine"),
        ("async def evaluate_answer(client, answer):\n    pass", "agent_name, answer_name, cache, semaphore, logger"),
        (f"{ENTRY}, extra):\n    pass", "unknown required parameters: extra"),
        ("def broken(:", "SyntaxError in line 1"),
        ("x = 1\ny = 1 / 0", "ZeroDivisionError in line 2"),
        ("import mind2web2.runner", "ModuleNotFoundError in line 1"),
        ("from mind2web2 import Nothing", "Nothing"),
        ("x = '\x00'", "cannot be loaded"),
    ],
)
def test_a_script_that_cannot_be_used_is_refused_with_a_reason(source, says, tmp_path):
    file = tmp_path / "script.py"
    file.write_text(source)
    before = set(sys.modules)
    with install_temporarily(), pytest.raises(alias.ScriptError, match=r"script\.py") as refused:
        alias.load_script(file)
    assert says in str(refused.value)
    assert not [name for name in set(sys.modules) - before if name.startswith("rubric_script")]


def test_a_script_that_is_not_there_or_too_long_is_refused(tmp_path):
    with pytest.raises(alias.ScriptError, match="cannot be read"):
        alias.load_script(tmp_path / "nobody.py")
    with pytest.raises(alias.ScriptError, match="cannot be read"):
        alias.load_script(tmp_path)
    (tmp_path / "long.py").write_text("#" * 2_000_001)
    with pytest.raises(alias.ScriptError, match=r"2,000,001 bytes"):
        alias.load_script(tmp_path / "long.py")


@pytest.mark.parametrize(
    ("parameters", "given"), [("", False), (", model", True), (", model='m', *, other=1", True), (", **more", True)]
)
def test_a_model_is_given_only_to_scripts_that_take_one(parameters, given, tmp_path):
    file = tmp_path / "script.py"
    file.write_text(f"{ENTRY}{parameters}):\n    return sorted(locals())")
    script = alias.load_script(file)
    names = asyncio.run(alias.evaluate(script, model="o4-mini", **dict.fromkeys(alias.REQUIRED)))
    assert ("model" in names or "more" in names) is given
