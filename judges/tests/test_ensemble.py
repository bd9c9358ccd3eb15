"""The rules of an ensemble, computed by hand, and the text that names its members."""

from __future__ import annotations

from decimal import Decimal

import pytest
from django.template.loader import render_to_string

from annotation.records import Verdict
from judges.scorer import ParameterError, Vote
from judges.scorers.ensemble import EnsembleParameters, Member, combine, read_details
from judges.tests.voting import FINGERPRINTS, combined

SUCCESS, FAILURE, NOT = 1, 0, 2


@pytest.mark.parametrize(
    ("votes", "verdict"),
    [
        ([1, 1, 0], SUCCESS),
        ([0, 1, 0], FAILURE),
        ([2, 2, 1], NOT),
        ([1, 0], None),  # a tie
        ([1, 0, 2], None),
        ([1, 1, None], SUCCESS),  # two of three expected votes
        ([1, 1, None, None], None),  # only half of the expected votes
        ([1, None], None),
        ([1], SUCCESS),
        ([None, None], None),
    ],
)
def test_majority_needs_more_than_half_of_all_expected_votes(votes, verdict):
    assert combined(*votes).verdict == verdict


@pytest.mark.parametrize(
    ("votes", "verdict"),
    [
        ([1, 1, 1], SUCCESS),
        ([1, 0, 1], FAILURE),
        ([0, None, 2], FAILURE),
        ([1, None, 1], None),
        ([2, 2], NOT),
        ([1, 2], None),
        ([None], None),
    ],
)
def test_unanimous_success_needs_every_vote_and_one_failure_decides(votes, verdict):
    assert combined(*votes, rule="unanimous").verdict == verdict


@pytest.mark.parametrize(
    ("votes", "weights", "verdict"),
    [
        ([1, 0, 0], (3, 1, 1), SUCCESS),  # 3 of 5
        ([1, 0, 0], (2, 1, 1), None),  # 2 of 4
        ([1, 0, 0], (1.9, 1, 1), FAILURE),  # 2 of 3.9
        ([1, None, 0], (2, 2, 1), None),  # 2 of 5: a missing vote counts as expected
        ([1, 1, 0], (0.1, 0.2, 0.3), None),  # exactly half, which binary fractions would miss
    ],
)
def test_weights_decide_if_their_sum_is_more_than_half(votes, weights, verdict):
    assert combined(*votes, weights=weights, rule="weighted").verdict == verdict


def test_judge_votes_with_the_majority_of_its_repetitions():
    made = combined([1, 1, 0], [0, 0, 0], [1, None, 1], votes="judge")
    assert made.verdict == SUCCESS
    assert [member["verdict"] for member in made.details["members"]] == [1, 0, 1]
    assert made.explanation == "Majority: 2 success and 1 failure, of 3 votes."


def test_each_repetition_votes_if_asked():
    """5 of 9 votes are failure, though two of three judges say success."""
    said = ([1, 1, 0], [0, 0, 0], [1, 1, 0])
    assert combined(*said, votes="judge").verdict == SUCCESS
    assert combined(*said, votes="repetition").verdict == FAILURE


def test_judge_whose_repetitions_are_split_has_no_vote():
    made = combined([1, 0], 1, 1, votes="judge", rule="unanimous")
    assert made.verdict is None
    assert made.unscored == "The rule unanimous gives no verdict: 2 success and 1 without a verdict, of 3 votes."
    (split, *_) = made.details["members"]
    assert split["unscored"] == "No verdict has more than half of its 2 repetitions."


def test_repetitions_of_one_judge_make_an_ensemble():
    assert combined([1, 1, 1], votes="repetition", rule="unanimous").verdict == SUCCESS
    assert combined([1, 0, 1], votes="repetition", rule="unanimous").verdict == FAILURE


def test_member_without_any_judgment_is_a_missing_vote():
    made = combined([], 1, votes="repetition")
    assert made.verdict is None
    assert made.details["members"][0]["unscored"] == "It has no judgment of this trajectory."
    assert made.details["sums"] == {"success": 1.0, "failure": 0.0, "not executable": 0.0, "none": 1.0}


def test_score_is_the_share_of_success_among_the_votes_with_a_verdict():
    assert combined(1, 1, 0, None).score == pytest.approx(2 / 3)
    assert combined(1, 0, weights=(3, 1), rule="weighted").score == 0.75
    assert combined(None).score is None


def test_weighted_sums_are_told_as_weights():
    made = combined(1, 0, weights=(2.5, 1), rule="weighted")
    assert made.explanation == "Weighted: 2.5 success and 1 failure, of a total weight of 3.5."


def test_cost_of_zero_with_many_digits_is_shown():
    votes = [Vote("a@1", FINGERPRINTS[0], 1, 7, 3, Verdict.SUCCESS, "", Decimal("0E-8"))]
    made = combine(EnsembleParameters(members="a@1", fingerprints=FINGERPRINTS[0]), votes)
    assert made.details["members"][0]["votes"][0]["cost"] == "0.00000000"
    assert read_details(made.details).cost == 0


def test_judgment_with_another_fingerprint_is_no_vote_of_the_member():
    votes = [Vote("a@1", FINGERPRINTS[1], 1, 7, 3, Verdict.SUCCESS, "", None)]
    made = combine(EnsembleParameters(members="a@1", fingerprints=FINGERPRINTS[0]), votes)
    assert made.verdict is None
    assert made.details["members"][0]["votes"] == []


def test_page_shows_a_dash_for_a_weight_that_is_not_known():
    members = [{"judge": "a@1", "weight": weight, "votes": []} for weight in (None, 2.5)]
    data = read_details({"rule": "weighted", "members": members})
    page = render_to_string("judges/details/ensemble.html", {"data": data})
    assert '<td class="r">–</td>' in page
    assert '<td class="r">2.500</td>' in page


# --- the text of the members -----------------------------------------------------------------------------------------


def test_members_have_a_version_and_a_weight():
    found = EnsembleParameters(members=" careful@2=1.50 ,strict ", rule="weighted").parse_members()
    assert [(one.name, one.version) for one in found] == [("careful", 2), ("strict", None)]
    assert [str(one) for one in found] == ["careful@2=1.5", "strict"]
    assert found[1].weight == 1
    assert found[0] == Member("careful", 2, found[0].weight)


@pytest.mark.parametrize(
    ("members", "rule", "says"),
    [
        ("careful@x", "majority", "careful@x is not NAME, NAME@VERSION or NAME@VERSION=WEIGHT."),
        ("careful@0", "majority", "careful@0 is not NAME"),
        ("careful,,strict", "majority", "An empty name is not NAME"),
        ("careful=-1", "weighted", "careful=-1 is not NAME"),
        ("careful=1e9", "weighted", "careful=1e9 is not NAME"),
        ("careful=0.0", "weighted", "The weight of careful must be above 0."),
        ("careful@1, careful@1", "majority", "careful@1 is named twice. Give it a weight instead."),
        ("careful@1=2", "majority", "Weights need the rule weighted."),
        (", ".join(f"j{n}" for n in range(21)), "majority", "An ensemble has at most 20 judges; these are 21."),
    ],
)
def test_wrong_members_are_refused_with_the_reason(members, rule, says):
    with pytest.raises(ParameterError) as refused:
        EnsembleParameters(members=members, rule=rule)
    assert says in str(refused.value)
    assert refused.value.name == "members"


# --- the details -----------------------------------------------------------------------------------------------------


def test_costs_of_the_votes_are_added_unless_one_is_unknown():
    def details(*costs):
        votes = [{"judgment": number, "cost": cost} for number, cost in enumerate(costs, 1)]
        return read_details({"members": [{"votes": votes}, {"votes": [{"judgment": None, "cost": None}]}]})

    assert str(details("0.25", "0.50").cost) == "0.75"
    assert details("0.25", None).cost is None
    assert details("0.25", "much").cost is None
    assert details().cost is None
