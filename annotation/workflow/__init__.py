"""The only place where a state changes.

Every verb locks the row it works on and then the chain of its submission, guards (PermissionDenied for a missing
right, `Conflict` for a wrong state, `Incomplete` for a label that lacks something), writes, and appends an event,
in one transaction. The order of the locks is always the same: membership, trajectory, submission.
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
    claim_this,
    flag,
    release,
    return_expired_leases,
    revise,
    save_draft,
    submit,
)
from annotation.workflow.ground import Conflict, Incomplete, StaleDraft, decision_fields, found, key_points_of
from annotation.workflow.maintaining import (
    add_member,
    deactivate_member,
    freeze,
    open_results,
    reopen,
    reopen_submission,
)

__all__ = [
    "Conflict",
    "Incomplete",
    "StaleDraft",
    "add_member",
    "choose",
    "claim",
    "claim_this",
    "deactivate_member",
    "decide",
    "decision_fields",
    "draw_spot_checks",
    "flag",
    "found",
    "freeze",
    "key_points_of",
    "leave_adjudication",
    "open_adjudication",
    "open_results",
    "release",
    "reopen",
    "reopen_submission",
    "return_expired_leases",
    "revise",
    "save_draft",
    "submit",
]
