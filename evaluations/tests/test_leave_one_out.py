"""People against the other people: both ceilings, errors of people, and a judge in place of an annotator."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.urls import reverse
from django.utils import timezone

from annotation.models import Benchmark, KnownAnswer, Person, Submission, Trajectory
from annotation.models.states import State
from annotation.records import Verdict
from annotation.tests.shared_rows import shared_rows
from annotation.tests.test_api_submissions import get as api
from evaluations import access, cases, people_tables
from evaluations.agreement import agreement
from evaluations.cases import BlindLabel, Case, InformedOpinion, Rules
from evaluations.comparison import Label2, Row, ceiling, ceiling_left_out, compare
from evaluations.comparison.judges import People, compare_judges, with_ceiling
from evaluations.evidence import bundle as figures
from evaluations.human_error import human_error
from evaluations.tests import builders as results
from evaluations.tests import hand_made
from evaluations.tests.test_comparison_pages import csv_rows, get, page, text
from judges.models import Judge
from judges.tests import rows


def labelled(number: int, *verdicts: int | None, final: int | None = None, **fields: Any) -> Case:
    """A reviewed case with labels of A1, A2, A3 ...; None is no label."""
    said = tuple(BlindLabel(f"A{n}", Verdict(one)) for n, one in enumerate(verdicts, 1) if one is not None)
    return hand_made.case(number, final, labels=said, trajectory=number + 1, **({"state": State.UNANIMOUS} | fields))


def agreed(rows: list[Row], rule: Label2 = Label2.NOT_SUCCESS) -> dict[str, tuple[int | None, int]]:
    chosen = [row for row in rows if row.human_label_2 is rule]
    return {row.name: (row.measures["agreement"].hits, row.n) for row in chosen}


# --- ceiling without the own label -----------------------------------------------------------------------------------


def test_a_label_is_compared_with_the_majority_of_the_others() -> None:
    found = ceiling_left_out(
        [labelled(0, 1, 1, 1, final=1), labelled(1, 0, 1, 1, final=0, adjudicated=Verdict.FAILURE)]
    )
    # Case 1: A1 against two successes: wrong, although the adjudicator followed A1. The others of A2 differ, and so do
    # those of A3: the adjudication, which a dispute needs whatever the third label says, is a failure.
    assert agreed(found) == {"A1": (1, 2), "A2": (1, 2), "A3": (1, 2), "people": (3, 6)}
    assert agreed(ceiling([labelled(1, 0, 1, 1, final=0)]))["A1"] == (1, 1)  # compared with its own verdict


def test_a_blind_adjudication_comes_before_the_majority() -> None:
    checked = labelled(0, 1, 1, 1, final=0, adjudicated=Verdict.FAILURE, adjudicated_blind=Verdict.FAILURE)
    assert agreed(ceiling_left_out([checked]))["people"] == (0, 3)


def test_labels_without_a_verdict_of_others_are_left_out() -> None:
    found = [labelled(0, 1, 0, final=None), labelled(1, 1, 0, 1, final=None), labelled(2, 1, final=1)]
    assert agreed(ceiling_left_out(found)) == {"A2": (0, 1), "people": (0, 1)}  # only A2 of case 1 faces a majority
    (first, _) = ceiling_left_out([])
    assert first.measures["agreement"].undefined == "nothing was reviewed"


def test_imported_labels_take_part() -> None:
    imported = replace(labelled(0, 1, 1, 0), state=None, trajectory=None)
    assert agreed(ceiling_left_out([imported])) == {"A3": (0, 1), "people": (0, 1)}
    assert agreed(ceiling([imported]))["people"] == (None, 0)


def test_human_label_2_counts_by_both_rules() -> None:
    found = ceiling_left_out([labelled(0, 2, 2, 2, final=2), labelled(1, 1, 1, 1, final=1)])
    assert agreed(found)["people"] == (6, 6)
    assert agreed(found, Label2.EXCLUDED)["people"] == (3, 3)


def test_people_who_guess_have_a_ceiling_that_their_own_labels_raise() -> None:
    """Every combination of three labels twice: 4 of 16 are unanimous, the others are decided once each way."""
    every = [(a, b, c, decided) for a in (0, 1) for b in (0, 1) for c in (0, 1) for decided in (0, 1)]
    found = [
        labelled(n, *said, final=said[0])
        if len(set(said)) == 1
        else labelled(n, *said, final=decided, adjudicated=Verdict(decided))
        for n, (*said, decided) in enumerate(every)
    ]
    own = ceiling(found)[-1].measures["agreement"].value
    left_out = ceiling_left_out(found)[-1].measures["agreement"].value
    assert own == pytest.approx((12 + 18) / 48)  # all 12 labels of the unanimous ones, 18 of the 36 others
    # All 12 of the unanimous ones; of the others, the 12 that are alone never, and 12 of the 24 with one other label.
    assert left_out == pytest.approx((12 + 0 + 12) / 48)  # chance


# --- errors of people ------------------------------------------------------------------------------------------------


def informed(number: int, blind: int, opinion: int | None, name: str = "A1") -> Case:
    said = InformedOpinion((), None if opinion is None else Verdict(opinion))
    return hand_made.case(number, blind, labels=(BlindLabel(name, Verdict(blind), informed=said),))


def test_leniency_and_severity_are_shares_of_known_non_successes_and_successes() -> None:
    found = human_error([informed(0, 1, 0), informed(1, 0, 0), informed(2, 2, 0), informed(3, 0, 1), informed(4, 1, 1)])
    assert [(each.source, each.annotator, each.n) for each in found] == [
        ("second stage", "people", 5),
        ("second stage", "A1", 5),
    ]
    people = found[0]
    assert (people.leniency.hits, people.leniency.n) == (1, 3)  # of three known failures, one called a success
    assert (people.severity.hits, people.severity.n) == (1, 2)
    assert people.severity.value == 0.5
    assert people.severity.low is not None
    assert people.severity.low < 0.5 < people.severity.high
    assert people.bias.value == 0.0  # 2 of 5 blind successes, 2 of 5 known ones
    assert people.severity.low + people.severity.high == pytest.approx(1.0)  # Wilson's of 1 of 2 is symmetric


def test_each_annotator_has_errors_of_their_own() -> None:
    found = {each.annotator: each for each in human_error([informed(0, 1, 0), informed(1, 0, 1, "A2")])}
    assert (found["A1"].bias.value, found["A2"].bias.value, found["people"].bias.value) == (1.0, -1.0, 0.0)
    assert found["A1"].severity.undefined == "no case is a success"
    assert found["A2"].leniency.undefined == "every case is a success"


def test_without_a_known_verdict_there_are_no_errors() -> None:
    assert human_error([informed(0, 1, None), hand_made.case(1, 1)]) == []


def test_known_answers_of_gold_items_are_a_source_of_their_own() -> None:
    gold = [replace(labelled(n, 1, 0), known=Verdict.SUCCESS) for n in range(3)]
    found = human_error(gold)
    assert [(each.source, each.annotator, each.severity.hits, each.severity.n) for each in found] == [
        ("gold items", "people", 3, 6),
        ("gold items", "A1", 0, 3),
        ("gold items", "A2", 3, 3),
    ]


# --- where they are shown --------------------------------------------------------------------------------------------


@shared_rows
def benchmark() -> Benchmark:
    """One agent at 40 tasks, labelled by three people; "strict" judges all."""
    made = results.reviewed(agents=1, tasks=40, seed=3)
    results.judged(made, "strict", 0.95, unscored=0.0)
    return made


@shared_rows
def mira(benchmark: Benchmark) -> Person:
    return Person.objects.get(username="mira")


@shared_rows
def gold(benchmark: Benchmark) -> Trajectory:
    """The first trajectory, as a gold item whose known answer is not executable."""
    found = Trajectory.objects.earliest("pk")
    author = Person.objects.get(username="mira")
    KnownAnswer.objects.create(
        trajectory=found, verdict=2, explanation="The site was down.", author=author, saved_at=timezone.now()
    )
    return found


def test_gold_items_are_loaded_with_their_answer(gold: Trajectory) -> None:
    found = cases.of_submission(gold.submission)
    assert [(case.trajectory, case.known) for case in found if case.known is not None] == [
        (gold.pk, Verdict.NOT_EXECUTABLE)
    ]


def test_page_shows_both_ceilings_the_errors_and_the_test(benchmark: Benchmark, mira: Person, gold: Trajectory) -> None:
    answer = get(mira, page("benchmark-comparison"), judge="strict")
    shown = text(answer)
    for heading in ("The human ceiling", "The human ceiling, own label left out", "Errors of people"):
        assert heading in shown
    assert "May this judge replace an annotator?" in shown
    assert len(answer.content) < 200_000
    files = [
        csv_rows(get(mira, page("benchmark-comparison"), judge="strict", csv=name))
        for name in ("ceiling-left-out", "human-error", "alternative-test", "alternative-annotators", "scores")
    ]
    assert [len(rows) for rows in files] == [8, 4, 1, 3, 2]
    assert files[2][0]["epsilon"] == "0.15"


def test_api_and_command_give_the_same_figures_and_keep_the_old_ones(
    benchmark: Benchmark, mira: Person, gold: Trajectory, capsys: Any
) -> None:
    address = "/benchmarks/reviewed/comparison?judge=strict&epsilon=0.3"
    answer = api(mira, address)
    assert answer.status_code == 200
    call_command("compare", "--benchmark", "reviewed", "--judge", "strict", "--epsilon", "0.3", "--json")
    printed = json.loads(capsys.readouterr().out)
    for key in ("ceiling", "ceiling_leave_one_out", "human_error", "alternative_test", "scores"):
        assert answer.json()[key] == printed[key]
    found = printed["alternative_test"]
    assert (found["epsilon"], found["level"], found["passed"], found["missing"]) == (0.3, 0.05, True, "")
    assert [each["judge"]["n"] for each in found["annotators"]] == [40] * 3
    assert printed["human_error"][0]["annotator"] == "people"
    assert api(mira, "/benchmarks/reviewed/comparison?judge=strict&epsilon=1.5").status_code == 400


def test_epsilon_outside_its_range_is_refused(benchmark: Benchmark) -> None:
    with pytest.raises(CommandError, match=r"1\.5 is not a number from 0 to 1"):
        call_command("compare", "--benchmark", "reviewed", "--judge", "strict", "--epsilon", "1.5")


def test_too_few_items_say_what_is_missing(mira: Person) -> None:
    found = compare(
        Judge.objects.get(name="strict"), access.benchmark_cases(mira, "reviewed")[1][:12], "", benchmark="reviewed"
    )
    [whole, each] = people_tables.alternative_test(found)
    assert dict(zip([column.name for column in whole.columns], whole.rows[0], strict=True))[
        "May replace an annotator"
    ] == ("cannot be said")
    assert whole.rows[0][-1] == (
        "needs 3 annotators with 30 tasks each that the judge and others labelled too; 0 of 3 have them"
    )
    assert len(each.rows) == 3


@pytest.mark.parametrize("who", ["alice", "carol", "dave"])
def test_people_who_label_never_see_the_test(frozen: Submission, people: dict[str, Person], who: str) -> None:
    rows.imported_row(Trajectory.objects.earliest("pk"))
    asked = {"judge": "elsewhere"}
    pages = [reverse("comparison", args=[frozen.pk]), page("benchmark-comparison", "shops")]
    for address in pages:
        for query in (asked, asked | {"csv": "alternative-test"}, asked | {"csv": "human-error"}):
            answer = get(people[who], address, **query)
            assert answer.status_code in (403, 404)
            assert b"replace an annotator" not in answer.content
    assert api(people[who], f"/submissions/{frozen.pk}/comparison?judge=elsewhere").status_code in (403, 404)


def test_errors_of_people_are_part_of_the_agreement_and_of_no_bundle(gold: Trajectory) -> None:
    found = agreement(cases.of_submission(gold.submission), "").as_json()
    assert found["human_error"][0]["annotator"] == "people"
    assert set(found["specific_agreement"]) == {"positive", "negative"}
    bundled = figures.agreement(gold.submission)
    assert not {"human_error", "specific_agreement"} & bundled.keys()


def test_comparison_of_several_judges_has_the_same_people(mira: Person, gold: Trajectory) -> None:
    every = access.benchmark_cases(mira, "reviewed")[1]
    judge = Judge.objects.get(name="strict")
    one = with_ceiling(compare(judge, every, "", benchmark="reviewed"), People.of(every, Rules.DEFAULT))
    several = compare_judges([judge], every, "", benchmark="reviewed").as_json()
    for key in ("ceiling", "ceiling_leave_one_out", "human_error"):
        assert one[key] == several[key]
