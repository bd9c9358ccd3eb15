"""Forgeries of a planned sample that stopped early, by somebody with the signing key, who covers every trace."""

from __future__ import annotations

import copy
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.test import override_settings
from pytest_django.plugin import DjangoDbBlocker

from annotation.tests.shared_rows import rolled_back
from evaluations.evidence import writing
from evaluations.tests.forging import Forged, failures
from evaluations.tests.planned_review import stopped_review
from evaluations.tests.test_sample_plan_forgeries import drawn, drop_work
from evaluations.verifier.canonical import digest
from evaluations.verifier.deviations import exceptions_claim
from evaluations.verifier.estimates import collect, recompute_estimate, recompute_planned
from evaluations.verifier.replay import replay_events
from evaluations.verifier.sampling import TERMS, derive_seed, draw_again, plan_facts

pytestmark = [pytest.mark.django_db, pytest.mark.once]


@pytest.fixture(scope="module")
def honest(
    django_db_setup: None, django_db_blocker: DjangoDbBlocker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[bytes]:
    folder = tmp_path_factory.mktemp("stopped")
    made = folder / "bundle.zip"
    with override_settings(MEDIA_ROOT=folder / "images"), rolled_back(django_db_blocker):
        writing.write(writing.prepare(stopped_review(folder / "package", steps=1)), made)
    yield Forged(made.read_bytes()).sealed()
    shutil.rmtree(folder)


def covered(forged: Forged) -> bytes:
    """The plan in its event, the stop in its event if there is one, the freeze and the estimate."""
    plan = forged["sample-plan"]
    forged.event("sample_planned")["payload"]["plan"] = digest(plan_facts(forged.bundle()))
    for event in forged.events_of("sampling_stopped"):
        if "stopped" in plan:
            event["payload"]["labelled"] = plan["stopped"]["labelled"]
    forged.refreeze()
    figures = recompute_planned(forged.bundle(), plan)
    forged["reports/estimate"].clear()
    forged["reports/estimate"].update(figures)
    return forged.covered()


def only_signed(forged: Forged) -> bytes:
    return forged.covered()


FORGERIES: dict[str, tuple[Callable[[Forged], None], str, str, Callable[[Forged], bytes]]] = {}


def forgery(
    caught_by: str, says: str, cover: Callable[[Forged], bytes] = covered
) -> Callable[[Callable[[Forged], None]], Callable[[Forged], None]]:
    def register(change: Callable[[Forged], None]) -> Callable[[Forged], None]:
        FORGERIES[change.__name__] = (change, caught_by, says, cover)
        return change

    return register


@forgery("sample_plan", "stops labelling 1 time,")
def the_stop_is_removed_from_the_plan(forged: Forged) -> None:
    del forged["sample-plan"]["stopped"]


@forgery("annotators", "3 of 8 trajectories")
def the_stop_is_removed_with_its_event(forged: Forged) -> None:
    del forged["sample-plan"]["stopped"]
    forged.drop_event(forged.event("sampling_stopped"))


@forgery("sample_plan", "stops labelling 0 times,", only_signed)
def the_event_of_the_stop_is_removed(forged: Forged) -> None:
    forged.drop_event(forged.event("sampling_stopped"))


@forgery("sample_plan", "with 5 places of the order started")
def an_unlucky_trajectory_is_left_out_by_an_earlier_stop(forged: Forged) -> None:
    """Its reservation at the stop is still there."""
    events = copy.deepcopy(forged["events"])
    drop_work(forged, drawn(forged)[4]["task_id"])
    forged["events"][:] = events
    forged["sample-plan"]["stopped"]["labelled"] = 4


@forgery("sample_plan", "the event states 6, the plan 6")
def the_place_of_the_stop_is_changed(forged: Forged) -> None:
    forged["sample-plan"]["stopped"]["labelled"] = 6


@forgery("sample_plan", "but is not in the sample")
def a_trajectory_behind_the_stop_is_labelled(forged: Forged) -> None:
    task_id, row = drawn(forged)[5]["task_id"], copy.deepcopy(forged["labels"][-1])
    last = forged.event("label_submitted", label=digest(row["facts"]))
    row["facts"] |= {"task_id": task_id, "slot": 1}
    forged["labels"].append(row)
    claimed = forged.add_event(last, "claimed", row["annotator"], task_id=task_id, slot=1)
    forged.add_event(claimed, "label_submitted", row["annotator"], task_id=task_id, slot=1, label=digest(row["facts"]))


@forgery("complete_record", "it is not in the sample")
def a_trajectory_behind_the_stop_is_reserved_after_it(forged: Forged) -> None:
    stopped = forged.event("sampling_stopped")
    claimed = forged.add_event(stopped, "claimed", "A1", task_id=drawn(forged)[6]["task_id"], slot=1)
    forged.add_event(claimed, "released", "A1", task_id=drawn(forged)[6]["task_id"], slot=1, reason="I know it.")


@forgery("sample_plan", "does not follow from its secret")
def the_half_width_of_the_rule_is_changed(forged: Forged) -> None:
    forged["sample-plan"]["rule"]["half_width"] = 0.45


@forgery("sample_plan", "has a label or decision, but is not in the sample")
def the_rule_is_changed_with_the_seed_and_the_draw(forged: Forged) -> None:
    """Everything follows from the new rule, so other trajectories would have been drawn."""
    plan = forged["sample-plan"]
    plan["rule"]["half_width"] = 0.45
    items = [[item["task_id"], item["stratum"], item["judged"]] for item in forged["sample-items"]]
    plan["seed"] = derive_seed(plan["secret"], {name: plan[name] for name in TERMS} | {"items": items})
    places = draw_again(forged["sample-items"], plan["labels"], plan["seed"])
    for item in forged["sample-items"]:
        item["probability"], item["position"] = places[item["task_id"]]


@forgery("sample_plan", "which the rule of the plan does not allow")
def a_sample_of_fixed_size_is_stopped(forged: Forged) -> None:
    forged["sample-plan"]["rule"] = {"rule": "fixed"}


@forgery("sample_plan", "rule of the plan is not known here")
def the_rule_is_not_well_formed(forged: Forged) -> None:
    forged["sample-plan"]["rule"]["half_width"] = 0.5


@forgery("sample_plan", "needs one stratum and the rate of these runs")
def the_rate_of_the_agent_is_estimated(forged: Forged) -> None:
    forged["sample-plan"]["estimand"] = "agent"


@forgery("sample_plan", "stops labelling 2 times,")
def labelling_stops_twice(forged: Forged) -> None:
    stopped = forged.event("sampling_stopped")
    forged.add_event(stopped, "sampling_stopped", stopped["actor"], labelled=5)


@forgery("sample_plan", "before the plan")
def labelling_stops_before_the_plan(forged: Forged) -> None:
    forged.move_event(forged.event("sampling_stopped"), forged.event("sample_planned"))


@forgery("sample_plan", "the event states 4, the plan 5", only_signed)
def the_event_states_another_place(forged: Forged) -> None:
    forged.event("sampling_stopped")["payload"]["labelled"] = 4


@forgery("roles", "A1")
def an_annotator_stopped_labelling(forged: Forged) -> None:
    forged["sample-plan"]["stopped"]["stopped_by"] = forged.event("sampling_stopped")["actor"] = "A1"


@forgery("complete_record", "No event records this")
def another_maintainer_is_stated(forged: Forged) -> None:
    forged["sample-plan"]["stopped"]["stopped_by"] = "M9"


@forgery("estimate", "people.low", only_signed)
def the_interval_is_that_of_a_fixed_number_of_labels(forged: Forged) -> None:
    figures = recompute_estimate(collect(forged.bundle()), "runs")
    forged["reports/estimate"].update(people=figures["people"])


@forgery("estimate", "method", only_signed)
def the_estimate_is_combined_with_the_judge(forged: Forged) -> None:
    forged["reports/estimate"].update(method="stratified", reason="")


def test_the_honest_bundle_with_a_stop_passes(honest: bytes, tmp_path: Path) -> None:
    assert failures(honest, tmp_path) == {}
    assert failures(covered(Forged(honest)), tmp_path) == {}


def test_stop_before_the_interval_was_narrow_enough_is_an_exception(honest: bytes, tmp_path: Path) -> None:
    """Everything that happened with two trajectories is removed: only published heads of the chain could show it."""
    forged = Forged(honest)
    for item in drawn(forged)[3:]:
        drop_work(forged, item["task_id"])
    forged["sample-plan"]["stopped"]["labelled"] = 3
    told = forged.bundle()
    says = exceptions_claim(told, replay_events(told)).says
    assert "1 sample stopped at a wider interval than its rule" in says
    assert "after 3 labelled trajectories" in says
    told = Forged(honest).bundle()
    assert "wider interval" not in exceptions_claim(told, replay_events(told)).says


@pytest.mark.parametrize("name", FORGERIES)
def test_forgery_of_a_stop_is_caught_by_the_check_that_is_there_for_it(
    name: str, honest: bytes, tmp_path: Path
) -> None:
    change, caught_by, says, cover = FORGERIES[name]
    forged = Forged(honest)
    change(forged)
    found = failures(cover(forged), tmp_path)
    assert says in found[caught_by], found
