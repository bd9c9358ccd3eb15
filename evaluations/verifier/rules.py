"""The rules of the human protocol against which a bundle is checked. They do not come from the bundle.

A test checks that they equal the rules of the product.
"""

from __future__ import annotations

import re
from typing import Any

CLAIMS = {
    "coverage": "Every task of the catalogue has a trajectory",
    "annotators": "At least three different annotators labelled every trajectory",
    "roles": "Nobody has two roles, and no annotator adjudicated",
    "disputes": "Every trajectory whose labels differ was adjudicated",
    "draws": "Every draw is the choice of the seed that was fixed before it",
    "spot_checks": "Everything drawn or flagged was judged, the first time blind",
    "blind_order": "No label was created or changed by somebody who could have seen another one",
    "reasons": "Every label and adjudication is complete, as the protocol asks",
    "fixed_labels": "No label was created or changed after an adjudication was opened or a draw over it",
    "final_verdicts": "Every final verdict follows from labels, draws, flags and adjudications",
    "export": "The submission JSON and the event of the freeze state these final verdicts",
    "imported": "Trajectories and import report are those of the import",
    "complete_record": "Every row has its event, every event its row, and nothing else is recorded",
    "chain": "The chain of events is unbroken",
    "frozen": "The submission is frozen, and nothing that counts happened after",
    "times": "Times are plausible for people who read",
    "exceptions": "Exceptions and their reasons",
}

# Checks of whole documents, in addition to the claims, and all other checks.
OF_DOCUMENTS = {
    "stated_claims": "claims.json states what the documents show",
    "protocol": "protocol.json is the protocol of the stated version, word for word",
    "pictures": "Screenshots and attachments are those of the trajectories",
    "agreement": "reports/agreement.json has the figures of these labels",
    "comparison": "reports/comparison.json has the figures of these judgments",
    "judgments": "Judgments are those that the chain recorded when their runs ended",
    "sample_plan": "The labelled trajectories are the draw of a plan from before the first label",
    "estimate": "reports/estimate.json follows from the plan, the verdicts and the judge's verdicts",
    "robustness": "Robustness figures follow from the judgments that the chain recorded",
    "report_page": "reports/report.html is the page of these figures",
    "companions": "README, metadata and schemas match these documents",
    "tasks": "Every task of the given list has a trajectory",
    "anchors": "Published heads of the chain",
}
OTHER_CHECKS = OF_DOCUMENTS | {
    "manifest": "Every file is the one that the manifest lists",
    "signature": "The manifest was signed by a key of the submitter",
    "shapes": "Every document has the shape that the format gives it",
    "supersedes": "The bundle that this one replaces",
    "revocations": "The submitter revoked neither the bundle nor its key",
    "other_bundle": "The other bundle of this submission has the same verdicts",
    "redacted": "Screenshots with covered parts",
    "chain_id": "The bundle has the given chain id",
    "kept_heads": "Saved heads are in the chain",
    "attestation": "The given attestation is of this bundle, signed by a known key",
    "verifier": "The verify.py in the bundle is the program that checked it",
    "internal": "Every check finished",
    "limits": "What no check can prove",
}

# Version of the changes of failures that test a judge. A sound judge keeps its verdict on the first ones, and adds no
# success on the others.
CHANGES_VERSION = 1
KEEPS_VERDICT = frozenset(
    {"injection-action", "injection-answer", "injection-screenshot", "injection-url", "key-points-reordered"}
    | {"screenshots-encoded", "screenshots-scaled", "steps-duplicated", "task-reworded", "thoughts-claim"}
    | {"thoughts-removed"}
)
ADDS_NO_SUCCESS = frozenset(
    {"answer-forged", "nothing-done", "run-truncated", "screenshot-dropped", "screenshot-swapped"}
)

# Stated wherever a bundle is explained, and by every check.
NOT_PROVED = (
    "that the people behind the pseudonyms exist and are several",
    "that they looked at what they opened",
    "that the submitter showed all submissions they made",
    "that nobody had seen labels of the same trajectories elsewhere, in another submission or on another instance",
    "that tasks, key points and seeds of draws were not chosen to suit: the operator can try seeds before one is fixed",
    "that judges said what is stated of them: the chain covers runs that ended, and no verdict rests on any",
    "that the verdicts are right: people who follow the same guideline can be wrong together",
    "that nothing was changed before it was signed, beyond what the chain of events and its published heads rule out",
)
PROVED = (
    "nothing was changed since it was signed, the records agree with each other and with the chain of events, and the "
    "rules of the protocol were kept"
)

# SHA-256 of the canonical JSON of protocol.json by version: a bundle has the exact wording that people read.
PROTOCOL_DIGESTS = {
    1: "cf548245d75248b379b5b88e2a5f95e49bc5a04e3c69f9a7da185a31d9ce3cdf",
    2: "7d7d583ac1e6a525bde78d03131cd04f258fb85fdff0ce7815dcff955ca4db58",
}
MINIMUM_LABELS = 3
USUAL_RATE = 0.1  # of spot checks
MOST_SLOTS = 99  # of a trajectory in a replay; the product creates no submission with more
REASONING_LIMIT = 10_000
FAILURE, SUCCESS, NOT_EXECUTABLE = VERDICTS = (0, 1, 2)
FINDINGS = frozenset(["met", "unmet", "unclear"])

FAILURE_TYPES = frozenset(
    {"filter_missing", "range_not_exact", "superlative_by_search", "search_for_filter", "not_submitted", "wrong_item"}
    | {"wrong_answer", "hallucination", "extra_action", "loop", "other"}
)
CAUSES = frozenset(["blocked", "site_down", "task_outdated", "agent_bug", "system_error"])
CRITERIA = frozenset(
    {"filter_effect", "exact_range", "superlative", "filter_required", "submission", "empty_result"}
    | {"already_satisfied", "hallucination"}
)
DECIDING = CRITERIA | {"key_point", "not_executable", "other"}
PROCESS_LABELS = frozenset(["wrong", "unnecessary", "side_effect"])  # marks on steps; the others are right
NOT_COMPARABLE = "not_comparable"
PATHS = frozenset(["as_short", "longer", "hack", "not_solved", NOT_COMPARABLE])
TERMS = {  # of protocol.json
    "criteria": CRITERIA,
    "failure_types": FAILURE_TYPES,
    "causes": CAUSES,
    "deciding": DECIDING,
    "paths": PATHS,
}

# States of a trajectory, in the order in which the rules are applied.
IN_REVIEW, REOPENED, ADJUDICATED, DISPUTE = "in review", "reopened", "adjudicated", "dispute"
FLAGGED, SPOT_CHECK, UNANIMOUS, AGREED = "flagged", "spot check", "unanimous", "agreed"
NOT_DRAWN = "not drawn"  # it is not in the sample of the plan
LEAST_OF_STRATUM = 2  # labels that a plan draws of a stratum, unless it has fewer trajectories
FIXED, ANYTIME, AUDIT = "fixed", "anytime", "audit"  # stopping rules of a plan
RUNS, AGENT = ESTIMANDS = ("runs", "agent")
FINAL_STATES = (ADJUDICATED, UNANIMOUS)
TO_ADJUDICATE = (DISPUTE, FLAGGED, SPOT_CHECK, REOPENED)
# Problem codes of `check_submission` for states without a final verdict.
NOT_FINAL = {
    IN_REVIEW: "labels_missing",
    DISPUTE: "dispute_open",
    FLAGGED: "flag_open",
    SPOT_CHECK: "spot_check_open",
    REOPENED: "reopened",
    AGREED: "spot_checks_not_drawn",
}

ANNOTATOR, ADJUDICATOR, MAINTAINER = "annotator", "adjudicator", "maintainer"
LETTERS = {ANNOTATOR: "A", ADJUDICATOR: "Q", MAINTAINER: "M"}
NOBODY = ""  # actor of events without a member: the import, the end of judge runs, and operators

RUNS_ENDED = ("judge_run_finished", "judge_run_stopped")  # without a person
RUNS_BY_HAND = tuple(f"judge_run_{verb}" for verb in ("started", "paused", "resumed", "cancelled", "retried"))
JUDGE_RUNS = RUNS_BY_HAND + RUNS_ENDED
ARCHIVING = ("submission_archived", "submission_restored")  # an archived submission stays as it is
DELETED = "submission_deleted"  # ends the chain of a submission without a single label
IMPORTED_RUN = "imported"  # the state of an entry that represents imported judgments

# All kinds of events, with the roles of their actors.
ACTORS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("imported", "password_link_created", "password_set", *RUNS_ENDED), (NOBODY,)),
    **dict.fromkeys(("member_added", "member_deactivated", "member_reactivated", "configured"), (MAINTAINER,)),
    **dict.fromkeys(("known_answer_set", "slot_returned", "offered_again", "report_settled"), (MAINTAINER,)),
    **dict.fromkeys(("adjudication_returned", "reopened", "frozen", "results_opened"), (MAINTAINER,)),
    **dict.fromkeys(("sample_planned", "sampling_stopped"), (MAINTAINER,)),
    **dict.fromkeys(("submission_reopened", "screenshot_redacted", *ARCHIVING, DELETED, *RUNS_BY_HAND), (MAINTAINER,)),
    **dict.fromkeys(("practice_passed", "claimed", "lease_expired", "released", "label_submitted"), (ANNOTATOR,)),
    **dict.fromkeys(("label_revised", "flagged", "judgments_shown", "informed_decided"), (ANNOTATOR,)),
    **dict.fromkeys(("adjudication_opened", "adjudication_left", "adjudication_expired"), (ADJUDICATOR,)),
    **dict.fromkeys(("adjudication_decided", "network_evidence_seen"), (ADJUDICATOR,)),
    "reported": (ANNOTATOR, ADJUDICATOR),
    "spot_checks_drawn": (MAINTAINER, ADJUDICATOR),
}
# Recorded in the name of a person who may have left, without an action of theirs.
WITHOUT_ACT = ("lease_expired", "adjudication_expired")
SLOT_LEFT = ("lease_expired", "slot_returned", "released")
# All other events belong to a trajectory, and name its task.
OF_NO_TASK = frozenset(
    {"imported", "member_added", "member_deactivated", "member_reactivated", "configured", "practice_passed"}
    | {"spot_checks_drawn", "frozen", "results_opened", "submission_reopened", "screenshot_redacted", *JUDGE_RUNS}
    | {"sample_planned", "sampling_stopped"}
    | {*ARCHIVING, DELETED, "password_link_created", "password_set"}
)
# Events that are allowed while a submission is frozen: they do not affect verdicts or what these depend on.
WHILE_FROZEN = frozenset(
    {"results_opened", "submission_reopened", "member_added", "member_deactivated", "member_reactivated"}
    | {"report_settled", "network_evidence_seen", "screenshot_redacted", *ARCHIVING, *JUDGE_RUNS}
)

TOLERANCE = 30.0  # seconds between a row and its event: they are written together, but a busy machine is slow
CLOCKS_APART = 300.0  # seconds by which the clocks of a worker and of the machine that writes an event may differ
DATED = re.compile(r"_(0[1-9]|1[0-2])(0[1-9]|[12][0-9]|3[01])([0-9]{2})\Z")


def strip_date(task_id: str) -> str:
    """Return the id without the ``_MMDDYY`` date of a replaced task."""
    return DATED.sub("", task_id)


def is_imported_run(line: dict[str, Any]) -> bool:
    """Return whether a line of judges/runs.jsonl represents imported judgments; these have no events and no times."""
    return line["state"] == IMPORTED_RUN
