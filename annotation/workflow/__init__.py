"""The only place where a state changes.

Every verb locks the row it works on and then the chain of its submission, guards (PermissionDenied for a missing
right, `Conflict` for a wrong state, `Incomplete` for a label that lacks something), writes, and appends an event,
in one transaction. Drafts and activity are no decisions: they have no event. Locks are always taken in this order, as
far as a verb needs them: account, benchmark, membership, trajectories by their keys, submission.
"""

from annotation.workflow.adjudicating import (
    choose,
    decide,
    draw_spot_checks,
    leave_adjudication,
    open_adjudication,
)
from annotation.workflow.annotating import (
    claim,
    claim_ahead,
    claim_this,
    flag,
    hold_again,
    release,
    return_expired_leases,
    revise,
    submit,
    was_there_at_a_draw,
)
from annotation.workflow.configuring import configure, fixed
from annotation.workflow.erasing import LastMaintainer, erase, maintained_alone
from annotation.workflow.ground import (
    LABEL_SUBMITTED,
    Conflict,
    Incomplete,
    StaleDraft,
    asked_of,
    decision_fields,
    found,
    key_points_of,
)
from annotation.workflow.informed import change, keep, look
from annotation.workflow.maintaining import (
    add_member,
    deactivate_member,
    freeze,
    offer_again,
    open_results,
    reopen,
    reopen_submission,
)
from annotation.workflow.named import NamedInTexts, naming
from annotation.workflow.redacting import redact
from annotation.workflow.training import answer_practice, known_answer_refusal, set_known_answer
from annotation.workflow.working import record_activity, report, save_draft, settle_report

__all__ = [
    "LABEL_SUBMITTED",
    "Conflict",
    "Incomplete",
    "LastMaintainer",
    "NamedInTexts",
    "StaleDraft",
    "add_member",
    "answer_practice",
    "asked_of",
    "change",
    "choose",
    "claim",
    "claim_ahead",
    "claim_this",
    "configure",
    "deactivate_member",
    "decide",
    "decision_fields",
    "draw_spot_checks",
    "erase",
    "fixed",
    "flag",
    "found",
    "freeze",
    "hold_again",
    "keep",
    "key_points_of",
    "known_answer_refusal",
    "leave_adjudication",
    "look",
    "maintained_alone",
    "naming",
    "offer_again",
    "open_adjudication",
    "open_results",
    "record_activity",
    "redact",
    "release",
    "reopen",
    "reopen_submission",
    "report",
    "return_expired_leases",
    "revise",
    "save_draft",
    "set_known_answer",
    "settle_report",
    "submit",
    "was_there_at_a_draw",
]
