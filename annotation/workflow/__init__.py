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
    was_in_draw,
)
from annotation.workflow.erasing import LastMaintainer, NamedInTexts, erase, find_named_places, find_solely_maintained
from annotation.workflow.guards import (
    LABEL_SUBMITTED,
    Conflict,
    Incomplete,
    StaleDraft,
    asked_of,
    decision_fields,
    join_as_maintainer,
    key_points_of,
)
from annotation.workflow.informed import change_verdict, keep_verdict, show_judgments
from annotation.workflow.maintaining import (
    add_member,
    configure,
    deactivate_member,
    find_fixed_settings,
    freeze,
    offer_again,
    open_results,
    reopen,
    reopen_submission,
)
from annotation.workflow.redacting import redact
from annotation.workflow.training import answer_practice, known_answer_refusal, set_known_answer
from annotation.workflow.working import record_activity, report, save_draft, settle_report
