"""Forgeries of a planned sample, by somebody with the signing key, who computes everything else again."""

from __future__ import annotations

import copy
import shutil
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from django.test import override_settings
from pytest_django.plugin import DjangoDbBlocker

from annotation.tests.shared_rows import rolled_back
from evaluations.evidence import writing
from evaluations.tests.forging import Forged, Line, failures
from evaluations.tests.planned_review import planned_review
from evaluations.verifier.canonical import digest
from evaluations.verifier.estimates import collect, explain_waiting, recompute_estimate
from evaluations.verifier.findings import Result
from evaluations.verifier.sampling import draw_again, plan_facts, sample_findings

pytestmark = [pytest.mark.django_db, pytest.mark.once]


@pytest.fixture(scope="module")
def honest(
    django_db_setup: None, django_db_blocker: DjangoDbBlocker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[bytes]:
    folder = tmp_path_factory.mktemp("planned")
    made = folder / "bundle.zip"
    with override_settings(MEDIA_ROOT=folder / "images"), rolled_back(django_db_blocker):
        planned_review(folder / "abandoned", frozen=False, steps=1)
        writing.write(writing.prepare(planned_review(folder / "package")), made)
    yield Forged(made.read_bytes()).sealed()
    shutil.rmtree(folder)


def covered(forged: Forged) -> bytes:
    """Every trace covered: the plan in its event, the freeze and the estimate."""
    plan = forged["sample-plan"]
    for event in forged.events_of("sample_planned"):
        event["payload"] |= {
            "plan": digest(plan_facts(forged.bundle())),
            "secret": plan["secret"],
            "trajectories": len(forged["sample-items"]),
            "labels": sum(plan["labels"].values()),
        }
    forged.refreeze()
    made = forged.bundle()
    forged["reports/estimate"].clear()
    forged["reports/estimate"].update(recompute_estimate(collect(made), plan["estimand"], explain_waiting(made)))
    return forged.covered()


def only_signed(forged: Forged) -> bytes:
    return forged.covered()


def test_verdicts_of_the_plan_are_those_of_the_judgments(honest: bytes) -> None:
    bundle = Forged(honest).bundle()
    assert bundle.sample_plan is not None
    before, judge = bundle.sample_plan["planned_at"], {"fingerprint": bundle.sample_plan["judge"]["fingerprint"]}
    given = [item for item in bundle.sample_items or () if item["judged"] is not None]
    lines = [judge | {"task_id": item["task_id"], "verdict": item["judged"], "judged_at": before} for item in given]
    bundle.judgments = lines
    assert sample_findings(bundle)[0].result is Result.PASS
    for forged in ({"verdict": 1 - lines[0]["verdict"]}, {"judged_at": "2999-01-01T00:00:00.000000+00:00"}):
        bundle.judgments = [lines[0] | forged, *lines[1:]]
        found = sample_findings(bundle)[0]
        assert (found.result, found.places) == (Result.FAIL, (lines[0]["task_id"],))
    bundle.judgments = [line | {"verdict": 1 - line["verdict"], "judged_at": "2999-01-01T00:00:00Z"} for line in lines]
    assert len(sample_findings(bundle)[0].places) == len(lines)
    # A task without a judgment proves nothing, and clocks of two machines may differ.
    soon = (datetime.fromisoformat(before) + timedelta(seconds=60)).isoformat()
    bundle.judgments = [line | {"judged_at": soon} for line in lines[1:]]
    assert sample_findings(bundle)[0].result is Result.PASS
    # Labels 2 of a judge are no success, as 0 is in the plan.
    bundle.judgments = [line | {"verdict": 2} if line["verdict"] == 0 else line for line in lines]
    assert sample_findings(bundle)[0].result is Result.PASS


FORGERIES: dict[str, tuple[Callable[[Forged], None], str, Callable[[Forged], bytes]]] = {}


def forgery(
    caught_by: str, cover: Callable[[Forged], bytes] = covered
) -> Callable[[Callable[[Forged], None]], Callable[[Forged], None]]:
    def register(change: Callable[[Forged], None]) -> Callable[[Forged], None]:
        FORGERIES[change.__name__] = (change, caught_by, cover)
        return change

    return register


def drawn(forged: Forged) -> list[Line]:
    """The items of the sample in the order of the plan."""
    items = [item for item in forged["sample-items"] if item["position"] is not None]
    return sorted(items, key=lambda item: int(item["position"]))


def left_out(forged: Forged) -> Line:
    item: Line = next(item for item in forged["sample-items"] if item["position"] is None)
    return item


def count_probabilities(forged: Forged) -> None:
    """The probabilities and places that follow from the numbers and the places that are there."""
    for stratum, number in forged["sample-plan"]["labels"].items():
        of_stratum = [item for item in forged["sample-items"] if item["stratum"] == stratum]
        for item in of_stratum:
            item["probability"] = number / len(of_stratum)
    for place, item in enumerate(drawn(forged)):
        item["position"] = place


def drop_work(forged: Forged, task_id: str) -> None:
    """Everything that people did with a trajectory, which stays in the bundle."""
    for name in ("labels", "adjudications", "final-verdicts", "flags"):
        forged[name][:] = [
            row for row in forged[name] if task_id not in (row.get("task_id"), row.get("facts", {}).get("task_id"))
        ]
    forged["human-label"]["labels"][:] = [row for row in forged["human-label"]["labels"] if row["task_id"] != task_id]
    forged["events"][:] = [event for event in forged["events"] if event["payload"].get("task_id") != task_id]


@forgery("sample_plan")
def the_sample_is_drawn_again_with_another_seed(forged: Forged) -> None:
    plan = forged["sample-plan"]
    plan["seed"] = "0" * 64
    again = draw_again(forged["sample-items"], plan["labels"], plan["seed"])
    for item in forged["sample-items"]:
        item["probability"], item["position"] = again[item["task_id"]]


@forgery("draws")
def another_secret_is_stated(forged: Forged) -> None:
    forged["sample-plan"]["secret"] = "a secret that suits"


@forgery("sample_plan")
def the_seed_is_changed(forged: Forged) -> None:
    forged["sample-plan"]["seed"] = "1" * 64


@forgery("sample_plan")
def an_unlucky_trajectory_is_dropped_from_the_sample(forged: Forged) -> None:
    unlucky = drawn(forged)[0]
    forged["sample-plan"]["labels"][unlucky["stratum"]] -= 1
    unlucky["position"] = None
    drop_work(forged, unlucky["task_id"])
    count_probabilities(forged)


@forgery("sample_plan")
def a_trajectory_is_added_to_the_sample(forged: Forged) -> None:
    added = left_out(forged)
    forged["sample-plan"]["labels"][added["stratum"]] += 1
    added["position"] = len(drawn(forged))
    count_probabilities(forged)


@forgery("sample_plan")
def a_drawn_trajectory_is_exchanged_for_another_of_its_stratum(forged: Forged) -> None:
    one = drawn(forged)[0]
    other = next(i for i in forged["sample-items"] if i["position"] is None and i["stratum"] == one["stratum"])
    one["position"], other["position"] = None, one["position"]


@forgery("sample_plan")
def a_probability_is_changed(forged: Forged) -> None:
    drawn(forged)[0]["probability"] = 0.9


@forgery("sample_plan")
def a_trajectory_is_put_into_another_stratum(forged: Forged) -> None:
    item = left_out(forged)
    item["stratum"] = "hard" if item["stratum"] == "easy" else "easy"
    count_probabilities(forged)


@forgery("sample_plan")
def a_verdict_of_the_judge_is_turned(forged: Forged) -> None:
    item = next(item for item in forged["sample-items"] if item["judged"] == 0 and item["position"] is None)
    item["judged"] = 1


@forgery("sample_plan")
def the_number_of_labels_is_changed(forged: Forged) -> None:
    forged["sample-plan"]["labels"]["hard"] = 5
    count_probabilities(forged)


@forgery("sample_plan")
def the_goal_is_changed_afterwards(forged: Forged) -> None:
    forged["sample-plan"]["goal"] = {"half_width": 0.3}


@forgery("sample_plan")
def another_estimand_is_stated(forged: Forged) -> None:
    forged["sample-plan"]["estimand"] = "agent"


@forgery("sample_plan")
def the_stopping_rule_is_changed(forged: Forged) -> None:
    forged["sample-plan"]["rule"] = {"rule": "when the maintainer likes the result"}


@forgery("sample_plan")
def the_order_is_changed(forged: Forged) -> None:
    first, second = drawn(forged)[:2]
    first["position"], second["position"] = second["position"], first["position"]


@forgery("sample_plan")
def the_plan_is_made_after_all_labels(forged: Forged) -> None:
    forged.move_event(forged.event("sample_planned"), forged.event("frozen"))


@forgery("sample_plan")
def one_trajectory_is_labelled_before_the_plan(forged: Forged) -> None:
    task_id = drawn(forged)[0]["task_id"]
    label = forged.event("label_submitted", task_id=task_id)
    planned = forged.event("sample_planned")
    forged.move_event(forged.event("claimed", task_id=task_id, slot=label["payload"]["slot"]), planned)
    forged.move_event(label, planned)


@forgery("sample_plan")
def a_trajectory_outside_of_the_draw_is_labelled(forged: Forged) -> None:
    task_id, row = left_out(forged)["task_id"], copy.deepcopy(forged["labels"][-1])
    last = forged.event("label_submitted", label=digest(row["facts"]))
    row["facts"] |= {"task_id": task_id, "slot": 1}
    forged["labels"].append(row)
    claimed = forged.add_event(last, "claimed", row["annotator"], task_id=task_id, slot=1)
    forged.add_event(claimed, "label_submitted", row["annotator"], task_id=task_id, slot=1, label=digest(row["facts"]))


@forgery("sample_plan", only_signed)
def the_plan_is_removed_from_the_bundle(forged: Forged) -> None:
    for name in ("sample-plan.json", "sample-items.jsonl", "reports/estimate.json"):
        del forged.documents[name], forged.files[name]
    for name in ("sample-plan", "sample-items", "estimate"):
        forged.files.pop(f"schemas/{name}.schema.json")


@forgery("sample_plan")
def the_event_of_the_plan_is_removed(forged: Forged) -> None:
    forged.drop_event(forged.event("sample_planned"))


@forgery("sample_plan")
def a_second_plan_is_recorded(forged: Forged) -> None:
    planned = forged.event("sample_planned")
    forged.add_event(planned, "sample_planned", planned["actor"], **copy.deepcopy(planned["payload"]))


@forgery("sample_plan", only_signed)
def the_event_has_the_digest_of_another_plan(forged: Forged) -> None:
    forged.event("sample_planned")["payload"]["plan"] = "2" * 64


@forgery("sample_plan")
def an_earlier_sample_is_removed_from_the_plan(forged: Forged) -> None:
    assert forged["sample-plan"].pop("earlier")


@forgery("sample_plan")
def an_earlier_sample_is_exchanged(forged: Forged) -> None:
    forged["sample-plan"]["earlier"][0]["terms"] = "3" * 64


@forgery("roles")
def an_annotator_made_the_plan(forged: Forged) -> None:
    forged["sample-plan"]["planned_by"] = forged.event("sample_planned")["actor"] = "A1"


@forgery("estimate", only_signed)
def the_estimate_is_changed(forged: Forged) -> None:
    forged["reports/estimate"]["combined"]["value"] = 0.95


@forgery("estimate", only_signed)
def an_end_of_the_interval_is_changed(forged: Forged) -> None:
    forged["reports/estimate"]["people"]["low"] += 0.05


@forgery("estimate", only_signed)
def the_number_of_labelled_trajectories_is_changed(forged: Forged) -> None:
    forged["reports/estimate"]["n_labelled"] = 10


@forgery("estimate", only_signed)
def the_estimate_of_people_alone_is_embellished(forged: Forged) -> None:
    figures = forged["reports/estimate"]
    figures["people"] = figures["combined"] | {"value": 1.0, "low": 1.0, "high": 1.0}


def test_the_honest_bundle_with_a_plan_passes(honest: bytes, tmp_path: Path) -> None:
    assert failures(honest, tmp_path) == {}


def test_what_forgers_do_to_cover_traces_changes_nothing(honest: bytes, tmp_path: Path) -> None:
    assert failures(covered(Forged(honest)), tmp_path) == {}


@pytest.mark.parametrize("name", FORGERIES)
def test_forgery_of_a_plan_is_caught_by_the_check_that_is_there_for_it(
    name: str, honest: bytes, tmp_path: Path
) -> None:
    change, caught_by, cover = FORGERIES[name]
    forged = Forged(honest)
    change(forged)
    found = failures(cover(forged), tmp_path)
    assert caught_by in found, found
