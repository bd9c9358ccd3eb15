"""The agreement of people: every figure of the small material is computed by hand beside it."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from annotation import catalogue, workflow
from annotation.models import Benchmark, Person, Submission
from annotation.records import Verdict
from annotation.tests import testing
from evaluations import cases
from evaluations.agreement import GROUPS, Agreement, agreement, people
from evaluations.cases import BlindLabel, Case, Rules
from evaluations.tests.labelled import SAID, case, checked, elsewhere, of, tasks, unchecked, undefined

REAL = Path(settings.BASE_DIR).parent / "shared" / "data" / "real_trajectories"
FOUR = {"task_0000": [1, 1, 1], "task_0001": [0, 0, 0], "task_0002": [1, 1, 0], "task_0003": [0, 1, 2]}


@pytest.fixture
def four(db: Any, tmp_path: Path) -> Submission:
    """Labelled as in FOUR; nobody has been drawn, and the disputes are adjudicated as successes."""
    submission = testing.submission(tmp_path / "package", trajectories=4)
    people = testing.cast(submission)
    Submission.objects.filter(pk=submission.pk).update(spot_check_rate=0.0)
    testing.label_all(people, submission, FOUR)
    workflow.draw_spot_checks(people["mira"], submission)
    testing.adjudicate_all(people["carol"], submission)
    return workflow.freeze(people["mira"], submission)


@pytest.fixture
def found(four: Submission) -> Agreement:
    return agreement(cases.of_submission(four), "four")


# --- all cases -------------------------------------------------------------------------------------------------------


def test_the_coefficients_are_those_computed_by_hand(found: Agreement) -> None:
    # Labels: six 1, five 0, one 2. Pairs that agree on each item: 1, 1, 1/3, 0.
    overall = found.overall
    assert (overall.n_items, overall.n_complete, overall.n_pairable) == (4, 4, 4)
    assert overall.raw_agreement.value == pytest.approx(7 / 12)
    # D_o = (2 + 3) / 12, D_e = (12^2 - 6^2 - 5^2 - 1) / (12 * 11)
    assert overall.coefficients["alpha"].value == pytest.approx(1 - (5 / 12) / (82 / 132))
    # p_e = (36 + 25 + 1) / 144
    assert overall.coefficients["fleiss_kappa"].value == pytest.approx((84 - 62) / (144 - 62))
    # p_e = (1 - 62 / 144) / 2
    assert overall.coefficients["ac1"].value == pytest.approx((84 - 41) / (144 - 41))


def test_every_verdict_has_its_own_alpha_against_the_other_two(found: Agreement) -> None:
    # Differing pairs of 0 and 1 against the rest: two items with 2 each. Of 2: one item with 2, D_e = 22 / 132.
    alphas = {verdict: measure.value for verdict, measure in found.overall.per_label.items()}
    assert alphas == {
        Verdict.FAILURE: pytest.approx(1 - (4 / 12) / (70 / 132)),
        Verdict.SUCCESS: pytest.approx(1 - (4 / 12) / (72 / 132)),
        Verdict.NOT_EXECUTABLE: pytest.approx(0),
    }


def test_labels_fall_unanimous_two_to_one_or_three_ways(found: Agreement) -> None:
    shares = (found.overall.outcomes.unanimous, found.overall.outcomes.majority, found.overall.outcomes.split)
    assert [(share.hits, share.n) for share in shares] == [(2, 4), (1, 4), (1, 4)]


@pytest.mark.parametrize(
    ("verdicts", "outcome"),
    [
        ((1, 1), "unanimous"),
        ((0, 1), "split"),
        ((0, 0, 1), "majority"),
        ((0, 1, 2), "split"),
        ((0, 0, 1, 1), "split"),
        ((0, 0, 1, 2), "split"),
        ((0, 0, 0, 1), "majority"),
        ((0, 0, 1, 1, 2), "split"),
        ((0, 0, 0, 1, 1), "majority"),
    ],
)
def test_a_majority_is_more_than_half_however_many_labels_there_are(verdicts: tuple[int, ...], outcome: str) -> None:
    overall = of(case(*verdicts, expected=len(verdicts))).overall
    shares = {name: getattr(overall.outcomes, name).hits for name in ("unanimous", "majority", "split")}
    assert shares == {"unanimous": 0, "majority": 0, "split": 0} | {outcome: 1}


def test_labels_of_an_incomplete_trajectory_count_as_an_item_that_is_not_complete() -> None:
    overall = of(case(1, 1, 1), case(0, 1), case(1), case()).overall
    assert (overall.n_items, overall.n_complete, overall.n_pairable) == (3, 1, 2)
    assert overall.raw_agreement.value == pytest.approx(1 / 2)
    assert overall.outcomes.unanimous.n == 1


def test_an_interval_holds_its_value_and_is_the_same_every_time(four: Submission) -> None:
    given = cases.of_submission(four)
    once, again = agreement(given, "four"), agreement(given, "four")
    assert once == again
    for measure in (
        once.overall.coefficients["alpha"],
        once.overall.coefficients["ac1"],
        once.overall.coefficients["fleiss_kappa"],
        once.overall.raw_agreement,
    ):
        assert measure.value is not None
        assert measure.low is not None
        assert measure.high is not None
        assert measure.low < measure.value < measure.high


def test_the_order_of_the_cases_does_not_matter(four: Submission) -> None:
    given = cases.of_submission(four)
    assert agreement(given[::-1], "four") == agreement(given, "four")


def test_where_all_say_the_same_alpha_is_undefined_in_words_and_raw_agreement_is_not() -> None:
    overall = of(case(1, 1, 1), case(1, 1, 1)).overall
    assert overall.raw_agreement.value == 1
    assert undefined(overall.coefficients["alpha"]) == "all labels are the same"


def test_nothing_at_all_is_undefined_and_never_a_number() -> None:
    empty = of(case(), case())
    assert undefined(empty.overall.raw_agreement) == "no labels"
    assert undefined(empty.overall.outcomes.unanimous) == "no cases"
    assert (empty.pairs, empty.annotators, empty.adjudications, empty.undecided) == ([], [], None, 0)


# --- groups ----------------------------------------------------------------------------------------------------------


def test_levels_stand_in_their_order_and_names_with_numbers_in_theirs() -> None:
    levels = ("hard", "odd", "easy", "medium")
    given = [case(1, 1, 0, level=level, agent=f"Agent {10 - n}") for n, level in enumerate(levels)]
    groups = of(*given).groups
    assert [group.name for group in groups["level"]] == ["easy", "medium", "hard", "odd"]
    assert [group.name for group in groups["agent"]] == ["Agent 7", "Agent 8", "Agent 9", "Agent 10"]
    assert tuple(groups) == GROUPS


def test_a_group_has_the_agreement_of_its_own_cases() -> None:
    groups = of(case(1, 1, 1), case(0, 0, 1, website="v"), case(0, 0, 0, website="v")).groups["website"]
    assert [(group.name, group.n_items) for group in groups] == [("v", 2), ("w", 1)]
    assert [group.raw_agreement.value for group in groups] == [pytest.approx(2 / 3), 1]


def test_a_later_attempt_of_an_agent_is_a_group_of_its_own() -> None:
    groups = of(case(1, 1, 0), case(1, 1, 1), case(0, 0, 0, attempt=2)).groups["agent"]
    assert [(group.name, group.n_items) for group in groups] == [("X", 2), ("X (attempt 2)", 1)]


def test_a_level_that_nobody_states_is_called_not_known_and_stands_last() -> None:
    groups = of(case(1, 1, 0, level=""), case(1, 1, 1, level="odd"), case(1, 1, 1, website="")).groups
    assert [group.name for group in groups["level"]] == ["easy", "odd", "not known"]
    assert [group.name for group in groups["website"]] == ["w", "not known"]


def test_only_the_largest_groups_have_intervals() -> None:
    small = [case(*labels, website=f"w{n}") for n in range(60) for labels in ((1, 1, 0), (0, 0, 0), (1, 1, 1))]
    large = [case(*labels, website="w60") for labels in ((1, 1, 0), (0, 0, 0), (1, 1, 1), (0, 1, 1))]
    groups = of(*small, *large).groups["website"]
    assert len(groups) == 61
    with_interval = [group.name for group in groups if group.raw_agreement.low is not None]
    assert len(with_interval) == 50
    assert "w60" in with_interval
    assert [group.outcomes.unanimous.low is None for group in groups] == [
        group.name not in with_interval for group in groups
    ]
    assert [group.raw_agreement.value for group in groups[:60]] == [pytest.approx(7 / 9)] * 60


def test_agreement_by_failure_type_is_raw_because_the_cases_are_chosen_by_what_was_said() -> None:
    first, second, third = case(0, 0, 1).labels
    named = case(labels=(replace(first, failure_types=("odd",)), second, third))
    [group] = of(named, case(1, 1, 1)).groups["failure type"]
    assert group.raw_agreement.value == pytest.approx(1 / 3)
    why = "chosen by what was said: a correction for chance would mislead"
    assert {
        undefined(one)
        for one in (group.coefficients["alpha"], group.coefficients["ac1"], group.coefficients["fleiss_kappa"])
    } == {why}
    assert {undefined(one) for one in group.per_label.values()} == {why}


def test_a_case_stands_under_every_failure_type_that_a_blind_label_names() -> None:
    first, second, third = case(0, 0, 1).labels
    labels = (replace(first, failure_types=("range_not_exact", "odd")), replace(second, failure_types=("odd",)), third)
    named = case(labels=labels, failure_type="wrong_item")
    wrong = case(labels=(replace(first, failure_types=("wrong_item",)), second, third))
    decided = case(0, 0, 0, failure_type="not_submitted")  # by an adjudicator, who saw the labels
    groups = of(named, wrong, decided, case(1, 1, 1)).groups["failure type"]
    # In the order of the protocol, others last.
    assert [(group.name, group.n_items) for group in groups] == [("range_not_exact", 1), ("wrong_item", 1), ("odd", 1)]


# --- annotators ------------------------------------------------------------------------------------------------------


def test_every_two_annotators_have_their_table_and_kappa(found: Agreement) -> None:
    first, second, third = found.pairs
    assert [(pair.first, pair.second) for pair in found.pairs] == [("A1", "A2"), ("A1", "A3"), ("A2", "A3")]
    # A1 says 1 0 1 0 and A2 says 1 0 1 1: p_o = 3/4, p_e = (2 * 1 + 2 * 3) / 16.
    assert first.table == ((1, 1, 0), (0, 2, 0), (0, 0, 0))
    assert first.kappa.value == pytest.approx(0.5)
    assert (first.raw_agreement.hits, first.raw_agreement.n) == (3, 4)
    # Eight labels, three of them 0: D_o = 2 / 8 and D_e = 2 * 3 * 5 / (8 * 7).
    assert first.alpha.value == pytest.approx(1 - (2 / 8) / (30 / 56))
    assert second.table == ((1, 0, 1), (1, 1, 0), (0, 0, 0))
    assert third.raw_agreement.hits == 2


def test_two_annotators_without_a_common_case_are_no_pair_and_larger_pairs_come_first() -> None:
    a, b, c = case(1, 1, 0).labels
    given = [case(labels=(a, b)), case(labels=(c, b)), case(labels=(b, c)), case(labels=(a,))]
    pairs = of(*given).pairs
    assert [(pair.first, pair.second, pair.raw_agreement.n) for pair in pairs] == [("A2", "A3", 2), ("A1", "A2", 1)]
    assert pairs[0].table == ((0, 0, 0), (2, 0, 0), (0, 0, 0))


def test_of_very_many_pairs_the_largest_are_kept_and_the_rest_is_counted() -> None:
    many = [case(1, 1, 0), case(*[1] * 33)]  # 33 * 32 / 2 pairs, three of them with two cases
    found = of(*many)
    assert (len(found.pairs), found.pairs_left_out) == (people.MOST_PAIRS, 528 - people.MOST_PAIRS)
    assert [pair.raw_agreement.low is None for pair in found.pairs] == [False] * 100 + [True] * 400
    assert [pair.raw_agreement.n for pair in found.pairs[:4]] == [2, 2, 2, 1]


def test_annotators_are_measured_against_the_final_verdicts(found: Agreement) -> None:
    # The final verdicts are 1 0 1 1; A1 said 1 0 1 0, A2 said 1 0 1 1, A3 said 1 0 0 2. The last two were adjudicated.
    one, two, three = found.annotators
    hits = [(each.name, each.labels, each.agreement.hits, each.agreement.n) for each in found.annotators]
    assert hits == [("A1", 4, 3, 4), ("A2", 4, 4, 4), ("A3", 4, 2, 4)]
    overturned = [(each.overturned.hits, each.overturned.n) for each in found.annotators]
    assert overturned == [(1, 2), (0, 2), (2, 2)]
    assert one.confusion == ((1, 1, 0), (0, 2, 0), (0, 0, 0))
    assert two.confusion == ((1, 0, 0), (0, 3, 0), (0, 0, 0))
    assert three.confusion == ((1, 1, 0), (0, 1, 0), (0, 1, 0))


def test_the_time_of_an_annotator_is_the_median_of_what_was_measured() -> None:
    timed = [BlindLabel("A1", Verdict.SUCCESS, seconds=seconds) for seconds in (30, None, 90, 40)]
    found = of(*(case(labels=(label, BlindLabel("A2", Verdict.SUCCESS))) for label in timed))
    assert [annotator.seconds for annotator in found.annotators] == [40, None]


def test_labels_made_elsewhere_are_not_measured_against_themselves() -> None:
    [first, _] = of(elsewhere(1, 1, final=Verdict.SUCCESS)).annotators
    assert undefined(first.agreement) == "no reviewed case of theirs has a final verdict"
    assert undefined(first.overturned) == "no case of theirs was adjudicated"
    assert first.confusion == ((0, 0, 0),) * 3


def test_labels_made_elsewhere_stay_so_on_the_trajectory_that_they_are_about() -> None:
    placed = of(elsewhere(1, 0, trajectory=7, submission=3, final=Verdict.SUCCESS), rules=Rules.PUBLISHED)
    assert placed.adjudications is None
    assert placed.first_against_second is not None
    assert undefined(placed.annotators[0].agreement)


def said_by(*names: str, verdict: int = 1) -> Case:
    return case(labels=tuple(BlindLabel(name, Verdict(verdict)) for name in names))


def hints(found: Agreement) -> dict[str, tuple[str, str]]:
    """Why an annotator has none; empty for those who have one."""
    return {each.name: (each.competence.undefined, each.trust.undefined) for each in found.annotators}


def test_only_labels_on_shared_cases_count_for_a_hint() -> None:
    shared = [case(truth, truth, truth) for truth in (0, 1)] * 10
    few = [said_by("A1", "A2", "A3", "A4", verdict=n % 2) for n in range(9)]
    alone = [said_by("A4", verdict=n % 2) for n in range(40)]
    found = hints(of(*shared, *few, *alone))
    assert found == {
        "A1": ("", ""),
        "A2": ("", ""),
        "A3": ("", ""),
        "A4": ("fewer than 10 labels on shared cases",) * 2,
    }
    assert hints(of(*shared, *few, said_by("A1", "A2", "A4"), *alone))["A4"] == ("", "")


def test_two_people_whom_no_shared_case_joins_with_a_third_have_no_hint() -> None:
    three = [case(truth, truth, truth) for truth in (0, 1)] * 10
    two = [said_by("B1", "B2", verdict=n % 2) for n in range(20)]
    found = hints(of(*three, *two, *[said_by("C1")] * 20))
    assert found["A1"] == ("", "")
    assert found["B1"] == found["B2"] == ("fewer than three annotators share cases",) * 2
    assert found["C1"] == ("shares no case with anybody",) * 2
    joined = hints(of(*three, *two, said_by("B2", "A1")))
    assert joined["B1"] == ("", "")


def test_a_hint_does_not_depend_on_people_whom_no_case_joins_with_one() -> None:
    ours = [case(*SAID[n % 8]) for n in range(40)]
    names = {"A1": "B1", "A2": "B2", "A3": "B3"}
    others = [
        replace(each, labels=tuple(BlindLabel(names[label.annotator], Verdict.SUCCESS) for label in each.labels[:2]))
        for each in ours
    ] + [said_by("B2", "B3", verdict=0)] * 5
    alone = {each.name: each for each in of(*ours).annotators}
    together = {each.name: each for each in of(*ours, *others).annotators}
    for name in names:
        assert (together[name].competence, together[name].trust) == (alone[name].competence, alone[name].trust)


def test_who_contradicts_everybody_is_the_least_competent_and_few_labels_give_no_hint() -> None:
    verdicts = [(truth, truth, truth, 1 - truth) for truth in (0, 1)] * 20
    found = of(*(case(*each, expected=4) for each in verdicts), said_by("A9", "A1"))
    competence = {each.name: each.competence for each in found.annotators}
    trust = {each.name: each.trust for each in found.annotators}
    for hints in (competence, trust):
        assert undefined(hints["A9"]) == "fewer than 10 labels on shared cases"
        good, bad = [hints[f"A{n}"].value for n in (1, 2, 3)], hints["A4"].value
        assert bad is not None
        assert all(value is not None and value > bad for value in good)


# --- what QA changed: more in test_agreement_qa.py -------------------------------------------------------------------


def test_a_decision_against_the_majority_is_a_change_and_one_between_three_is_not(found: Agreement) -> None:
    qa = found.adjudications
    assert qa is not None
    assert (qa.adjudicated, qa.disputes, qa.drawn, qa.unchecked) == (2, 2, 0, 2)
    assert (qa.changed.hits, qa.changed.n) == (0, 1)  # 1 1 0 became 1; 0 1 2 has no majority
    assert undefined(qa.missed) == undefined(qa.expected_missed) == "no drawn spot check was judged blind"
    changed = of(case(1, 1, 0, adjudicated=Verdict.FAILURE), case(1, 1, 1, adjudicated=Verdict.FAILURE))
    assert changed.adjudications is not None
    assert (changed.adjudications.changed.hits, changed.adjudications.changed.n) == (2, 2)


# --- published -------------------------------------------------------------------------------------------------------


def doubly(table: dict[tuple[int, int], int]) -> list[Case]:
    """Imported cases, so many of each pair of a first and a second listed label, by changing people."""
    given = [elsewhere(*said) for said, times in table.items() for _ in range(times)]
    names = [names for names in product(("B", "D", "H"), repeat=2) if names[0] != names[1]]
    return [
        replace(each, labels=tuple(map(lambda label, name: replace(label, annotator=name), each.labels, names[n % 6])))
        for n, each in enumerate(given)
    ]


def test_the_published_agreement_of_agentrewardbench_comes_out() -> None:
    # n 105, raw .8857, Cohen kappa .7552, alpha .7564: only 60, 33, 6 and 6 give these. One more was labelled once.
    cells = {(0, 0): 60, (1, 1): 33, (0, 1): 6, (1, 0): 6}
    found = of(*doubly(cells), elsewhere(1), rules=Rules.PUBLISHED)
    assert (found.overall.n_complete, found.overall.n_items) == (105, 106)
    assert (found.overall.raw_agreement.value, found.overall.coefficients["alpha"].value) == (0.8857, 0.7564)
    assert found.first_against_second is not None
    assert (found.first_against_second.kappa.value, found.first_against_second.raw_agreement.n) == (0.7552, 105)


def test_only_published_figures_are_rounded() -> None:
    given = doubly({(0, 0): 5, (1, 1): 3, (0, 1): 1})
    assert of(*given).overall.raw_agreement.value == 8 / 9
    published = of(*given, rules=Rules.PUBLISHED)
    assert published.overall.raw_agreement.value == 0.8889
    assert published.as_json()["rules"] == "published"
    assert published.groups["agent"][0].raw_agreement.value == 0.8889


def test_published_figures_have_no_intervals_and_keep_their_keys() -> None:
    given = [*doubly({(0, 0): 5, (1, 1): 3, (0, 1): 1}), *tasks(1), *[checked(False)] * 4, *unchecked(9)]
    assert of(*given).overall.coefficients["alpha"].low is not None
    told = of(*given, rules=Rules.PUBLISHED).as_json()
    assert (told["alpha"]["low"], told["alpha"]["high"], told["raw_agreement_interval"]) == (None, None, None)
    ends = re.findall(r'"(?:low|high)": (\w+)', json.dumps(told))
    assert set(ends) == {"null"}
    assert len(ends) > 50


def real_benchmark() -> Benchmark:
    if not REAL.is_dir():
        pytest.skip("the folder shared/data/real_trajectories is not beside the checkout")
    report = catalogue.import_tasks((REAL / "tasks.json").read_bytes(), "tasks.json", benchmark_slug="real")
    assert not report.rejected
    made = Benchmark.objects.get(slug="real")
    report = catalogue.import_labels((REAL / "human_labels.csv").read_bytes(), "human_labels.csv", benchmark=made)
    assert not report.rejected
    return made


def test_the_real_double_labels_give_the_expected_figures(db: Any) -> None:
    expected = json.loads((REAL / "expected_dev.json").read_text())["inter_annotator"] if REAL.is_dir() else {}
    found = agreement(cases.of_imported(real_benchmark(), Rules.PUBLISHED), "real", Rules.PUBLISHED).as_json()
    assert found["n_complete"] == found["first_against_second"]["n"] == expected["n"]
    assert found["raw_agreement"] == expected["raw"]
    assert found["first_against_second"]["kappa"]["value"] == expected["cohen_kappa"]
    assert found["alpha"]["value"] == expected["krippendorff_alpha_nominal"]


# --- JSON ------------------------------------------------------------------------------------------------------------


def test_the_json_has_the_figures_that_scripts_expect(found: Agreement) -> None:
    told = json.loads(json.dumps(found.as_json(), allow_nan=False))
    assert (told["scope"], told["rules"]) == ("four", "default")
    assert (told["n_items"], told["n_complete"], told["n_pairable"], told["undecided"]) == (4, 4, 4, 0)
    assert told["raw_agreement"] == pytest.approx(7 / 12)
    assert told["raw_agreement_interval"] == [found.overall.raw_agreement.low, found.overall.raw_agreement.high]
    assert told["alpha"] == found.overall.coefficients["alpha"].as_json()
    assert {"value", "low", "high"} <= set(told["ac1"]) & set(told["fleiss_kappa"])
    assert set(told["per_label"]) == {"0", "1", "2"}
    assert told["outcomes"]["unanimous"]["hits"] == 2
    pair = told["pairs"][0]
    assert (pair["first"], pair["second"], pair["n"]) == ("A1", "A2", 4)
    assert pair["table"] == [[1, 1, 0], [0, 2, 0], [0, 0, 0]]
    assert set(told["groups"]) == set(GROUPS)
    assert told["groups"]["agent"][0]["name"] == "Careful Agent"
    assert told["annotators"][0]["confusion"] == [[1, 1, 0], [0, 2, 0], [0, 0, 0]]
    assert told["adjudications"]["disputes"] == 2
    assert (told["adjudications"]["unanimous"], told["adjudications"]["unknown"]) == (2, 2)
    assert set(told["adjudications"]["changed_of"]) == {"disputes", "drawn", "flagged"}
    assert (told["first_against_second"], told["undefined"]) == (None, {})


def test_the_json_says_in_words_what_is_undefined() -> None:
    told = of(case(1, 1, 1), case(1)).as_json()
    assert told["alpha"]["value"] is None
    assert told["undefined"]["alpha"] == told["alpha"]["undefined"] == "all labels are the same"
    per_label = {"per_label.0", "per_label.1", "per_label.2"}
    assert set(told["undefined"]) == {"alpha", "fleiss_kappa", "specific_agreement.negative"} | per_label
    assert of(case()).as_json()["raw_agreement"] is None


def test_people_are_pseudonyms_in_everything_that_is_told(four: Submission) -> None:
    told = json.dumps(agreement(cases.of_submission(four), "four").as_json())
    assert not [name for name in Person.objects.values_list("username", flat=True) if name in told]
