"""What was judged and what came of it, changed by somebody with the signing key."""

from __future__ import annotations

from evaluations.tests.forgeries.ground import AGAINST, DISPUTE, OUTDATED, PLAIN, forgery, unanimous
from evaluations.tests.forging import Forged
from evaluations.tests.hand_made_bundle import picture, sha256
from evaluations.verifier.canonical import digest
from evaluations.verifier.documents import summary


@forgery("coverage")
def a_task_is_missing(forged: Forged) -> None:
    forged.drop_task(unanimous(forged))
    forged.refreeze()


@forgery("coverage", Forged.covered)
def a_task_is_missing_in_the_catalogue_too(forged: Forged) -> None:
    task = unanimous(forged)
    forged.drop_task(task)
    catalogue = forged.event("frozen")["payload"]["catalogue"]
    forged["catalogue"][:] = [row for row in forged["catalogue"] if row["task_id"] != task]
    forged.refreeze()
    forged.event("frozen")["payload"]["catalogue"] = catalogue


@forgery("coverage")
def a_key_point_is_said_to_be_older_than_a_label_that_lacks_it(forged: Forged) -> None:
    forged["catalogue"][0]["key_points"][0]["accepted_at"] = "2020-01-01T00:00:00.000000+00:00"


@forgery("coverage")
def a_key_point_is_retired_afterwards(forged: Forged) -> None:
    point = forged["catalogue"][0]["key_points"][0]
    point["retired_at"] = point["accepted_at"]


@forgery("imported")
def an_action_is_reworded(forged: Forged) -> None:
    forged["trajectories"][1]["steps"][0]["action"] = "coords(1, 1) -> CLICK -> the right thing | SUCCESS"


@forgery("imported")
def an_answer_is_mended_with_its_digests(forged: Forged) -> None:
    row = forged["trajectories"][1]
    row["final_answer"] = "The cheapest one."
    row["digest"] = summary(row)["computed"]
    left = sorted([each["task_id"], each["digest"]] for each in forged["trajectories"])
    forged["submission"]["digest"] = digest(left)


@forgery("imported")
def a_screenshot_is_replaced_in_the_records_too(forged: Forged) -> None:
    shown = forged["trajectories"][1]["steps"][0]["screenshot"]
    data = picture(99)
    del forged.files[f"screenshots/{shown['sha256']}.png"]
    shown.update(sha256=sha256(data), size=len(data))
    forged.files[f"screenshots/{sha256(data)}.png"] = data


@forgery("imported")
def the_import_report_is_another_one(forged: Forged) -> None:
    forged["import-report"]["warnings"].append({"task_id": PLAIN, "code": "x", "message": "x", "where": "x"})


@forgery("imported")
def the_import_report_is_said_to_be_older_than_such_reports(forged: Forged) -> None:
    forged.documents["import-report.json"] = None


@forgery("imported")
def the_import_report_leaves_out_what_was_refused(forged: Forged) -> None:
    """A trajectory that the import refused is put among those that it took."""
    report = forged["import-report"]
    report["accepted"].remove(PLAIN)
    report["rejected"].append({"task_id": PLAIN, "problems": []})
    forged.event("imported")["payload"]["report"] = digest(report)


@forgery("reasons")
def a_label_has_reasoning_that_nobody_can_see(forged: Forged) -> None:
    forged.refact(forged.label(PLAIN), "label", reasoning="\u200b\u2060\ufeff")


@forgery("reasons")
def a_label_lost_its_reasoning(forged: Forged) -> None:
    forged.refact(forged.label(PLAIN), "label", reasoning="  ")


@forgery("reasons")
def a_failure_has_no_failure_point(forged: Forged) -> None:
    forged.refact(forged.label(PLAIN), "label", failure_step=None)


@forgery("reasons")
def a_failure_is_of_a_type_that_there_is_not(forged: Forged) -> None:
    forged.refact(forged.label(PLAIN), "label", failure_type="bad_luck")


@forgery("reasons")
def a_key_point_has_no_finding(forged: Forged) -> None:
    row = forged.label(PLAIN)
    forged.refact(row, "label", findings=row["facts"]["findings"][1:])


@forgery("reasons")
def a_success_with_an_unmet_key_point_has_no_reason(forged: Forged) -> None:
    row = forged.label(DISPUTE, slot=1)
    point, _, step = row["facts"]["findings"][0]
    forged.refact(row, "label", findings=[[point, "unmet", step], *row["facts"]["findings"][1:]])


@forgery("reasons")
def a_trajectory_that_could_not_be_executed_has_no_cause(forged: Forged) -> None:
    forged.refact(forged.label(OUTDATED), "label", cause="")


@forgery("final_verdicts", Forged.covered)
def a_final_verdict_is_turned(forged: Forged) -> None:
    row = next(row for row in forged["final-verdicts"] if row["task_id"] == AGAINST)
    row["verdict"] = 1 - row["verdict"]


@forgery("export", Forged.covered)
def the_submission_states_another_verdict(forged: Forged) -> None:
    stated = next(row for row in forged["human-label"] if row["task_id"] == DISPUTE)
    stated[next(name for name in stated if name.endswith("_human_label"))] = "1"


@forgery("export")
def the_freeze_recorded_other_verdicts(forged: Forged) -> None:
    forged.event("frozen")["payload"]["verdicts"] = "0" * 64


@forgery("frozen")
def the_freeze_is_made_up(forged: Forged) -> None:
    forged.drop_event(forged.event("frozen"))


@forgery("frozen")
def a_label_is_made_after_the_freeze(forged: Forged) -> None:
    frozen = forged.event("frozen")
    submitted = forged.event("label_submitted", task_id=unanimous(forged), slot=3)
    forged.move_event(frozen, before=submitted)


@forgery("frozen")
def the_freeze_is_dated_back(forged: Forged) -> None:
    early = "2020-01-01T00:00:00.000000+00:00"
    forged.event("frozen")["at"] = early
    forged["submission"].update(frozen_at=early)


@forgery("frozen")
def something_is_missing_that_there_is_not(forged: Forged) -> None:
    problem = {"code": "nothing_of_note", "message": "", "where": ""}
    labels = forged["human-label"]
    forged["submission"].update(partial=True, missing=[problem])
    forged.documents["human-label.json"] = {"partial": True, "missing": [problem], "labels": labels}


@forgery("agreement")
def the_agreement_is_better(forged: Forged) -> None:
    forged["reports/agreement"]["alpha"]["value"] = 0.99


@forgery("agreement")
def an_interval_is_narrower(forged: Forged) -> None:
    alpha = forged["reports/agreement"]["alpha"]
    alpha["low"] = alpha["value"] - 0.01


@forgery("agreement")
def fewer_disputes_are_counted(forged: Forged) -> None:
    forged["reports/agreement"]["adjudications"]["disputes"] -= 1


@forgery("comparison")
def the_judge_is_more_precise(forged: Forged) -> None:
    forged["reports/comparison"]["judges"][0]["rows"][0]["precision"] = 1.0


@forgery("comparison")
def a_judgment_says_something_else(forged: Forged) -> None:
    row = next(row for row in forged["judges/judgments"] if row["counts"] and row["verdict"] == 0)
    row["verdict"] = 1


@forgery("report_page", Forged.sealed)
def the_page_shows_other_figures(forged: Forged) -> None:
    shown = forged.files["reports/report.html"]
    forged.files["reports/report.html"] = shown.replace(b"</body>", b"<p>alpha 0.99</p></body>")


@forgery("stated_claims", Forged.sealed)
def a_claim_is_stated_otherwise(forged: Forged) -> None:
    stated = next(claim for claim in forged["claims"]["claims"] if claim["name"] == "exceptions")
    stated.update(result="pass", says="There are none.", places=[])


@forgery("shapes", Forged.sealed)
def a_verdict_is_a_word(forged: Forged) -> None:
    forged.label(PLAIN)["facts"]["verdict"] = "success"


@forgery("shapes", Forged.sealed)
def a_document_is_no_json(forged: Forged) -> None:
    forged.files["people.json"] = b"{'people': []}"
