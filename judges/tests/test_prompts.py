"""The project's own prompt sets: named, complete, and never changed once released."""

from __future__ import annotations

import pytest

from annotation.models.events import digest
from judges import prompts
from judges.scorer import REGISTRY, Prompts, parameters_from

# A set that judgments were made with never changes: a change is a new folder, and a new line here.
RELEASED = {
    "alignment/1": "9993d11e27f1ca4fe8b61f142f5c1ea8d91542a00c2b0bb642b501a50afb97c5",
    "action-selection/1": "604e8d42b2f7ff83cd380d0d6beebabb6cee5103824e7aea8956bc585e7f8a0e",
    "agenttrek/1": "60183dcdffee4a466a9aa220abe59e77abf5198828f2e187c481acadedd5c8b2",
    "autonomous-eval/1": "af7e0fb231e56dd7b701328a370f6709520b56dcc09607e5bed3eff993b6eb84",
    "rubric/1": "d6d1b537fee4a9cc28a3caba34c524fc55530832ab556dd743f72902b7d30c9e",
    "rubric-verifier/1": "1d6fefb383377214278c58a1101ee849aa2756b597d4436ceefad323f269c243",
    "single-call/1": "cd1d7a360fc5a8c17bf95098cf2a2437a3ec38a0f3bf7cf78cd04c2220457e25",
    "webjudge-general/1": "8b6181192a70812bad4077b3ebe9d2a1ba6097c5e01d21cc0cae8c434729473a",
    "webjudge/1": "508d3b6341afa4b96c901396ffbef26fa8f53b5c5f82ca35d900e965b88f6134",
    "webvoyager/1": "4bdfb2d927cb87630c7547f0da25fb5039e3ab9c50e5352dfa4dac5db341528b",
}


def test_released_sets_are_as_they_were():
    found = {name: prompts.load_builtin(name).digest for name in RELEASED}

    assert found == RELEASED, "A released prompt set was changed: make the next version instead."


def test_every_set_is_in_the_list_of_released_ones():
    assert sorted(RELEASED) == prompts.list_names()


@pytest.mark.parametrize("name", prompts.list_names())
def test_every_text_has_a_stage_and_a_part_and_says_something(name):
    for key, text in prompts.load_builtin(name).texts.items():
        stage, dot, part = key.partition(".")
        assert (bool(stage), dot, bool(part), "." in part) == (True, ".", True, False), key
        assert text.strip() == text
        assert len(text) > 20 or part == "user", key


def test_the_digest_is_that_of_canonical_json_as_everywhere():
    one = prompts.load_builtin("webjudge/1")

    assert one.digest == digest(dict(one.texts)) == prompts.compute_digest(dict(reversed(one.texts.items())))
    assert one.digest != prompts.compute_digest({**one.texts, "verdict.user": "other"})


@pytest.mark.parametrize("name", ["", "webjudge", "webjudge/99", "../models", "webjudge/1/verdict.user.md", "/etc"])
def test_an_unknown_set_is_refused_and_the_known_ones_are_named(name):
    with pytest.raises(LookupError, match="webjudge/1"):
        prompts.load_builtin(name)


@pytest.mark.parametrize("name", ["webjudge", "webjudge-general"])
@pytest.mark.parametrize("mode", ["default", "upstream"])
def test_a_judge_is_built_from_its_own_set_in_both_modes(name, mode):
    kind = REGISTRY[name]
    assert kind.build(parameters_from(kind.parameters, {"mode": mode}), prompts.load_builtin(kind.prompts))


def test_every_scorer_names_a_set_that_there_is():
    assert {kind.prompts for kind in REGISTRY.values() if kind.asks} <= set(prompts.list_names())


def test_values_are_filled_in_one_pass_and_never_looked_at():
    template = "{task} {key_points} {unknown} {} {0} {task!r} {{task}} {task.x}"

    filled = prompts.fill(template, task="{key_points}\\1\\g<0>", key_points="{task}")

    assert filled == "{key_points}\\1\\g<0> {task} {unknown} {} {0} {task!r} {{key_points}\\1\\g<0>} {task.x}"


def test_criteria_stand_in_the_system_text_of_their_stage():
    texts = {"a.system": "Judge.\n{criteria}\n{other}", "a.criteria": "Be {criteria}.", "b.system": "{criteria}."}
    one = Prompts("x", "", texts)

    assert prompts.build_system_text(one, "a") == "Judge.\nBe {criteria}.\n{other}"
    assert prompts.build_system_text(one, "b") == "{criteria}."  # a loaded text that means its braces


@pytest.mark.parametrize("name", ["webjudge/1", "webjudge-general/1"])
def test_no_placeholder_of_ours_is_misspelt(name):
    one = prompts.load_builtin(name)
    known = dict.fromkeys(("task", "key_points", "last_actions", "thoughts", "record", "criteria"), "")
    for key, text in one.texts.items():
        assert "{" not in prompts.fill(text, **known), key
