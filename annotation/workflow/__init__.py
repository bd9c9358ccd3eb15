"""Transitions: the only code that changes a state.

In one transaction, each transition locks its row and then the chain of the submission, checks, writes and appends an
event. The checks raise PermissionDenied (missing right), `Conflict` (wrong state) or `Incomplete` (incomplete label).
Drafts and activity are not decisions and have no event. All code takes its locks in this order: account, benchmark,
membership, trajectories, submission, with rows of one table by primary key; see docs/architecture.md.
"""

from annotation.workflow.adjudicating import (
    answer_flags,
    choose,
    decide,
    draw_spot_checks,
    leave_adjudication,
    open_adjudication,
    put_off_adjudication,
)
from annotation.workflow.annotating import (
    claim,
    claim_ahead,
    claim_this,
    flag,
    hold_again,
    put_off,
    release,
    return_expired_leases,
    revise,
    submit,
    was_in_draw,
)
from annotation.workflow.archiving import archive, archive_benchmark, lock_benchmark, restore, restore_benchmark
from annotation.workflow.deleting import delete_benchmark, delete_submission
from annotation.workflow.discussing import answer_question, ask_question, delete_comment, write_comment
from annotation.workflow.erasing import (
    LastMaintainer,
    NamedInTexts,
    erase,
    find_named_places,
    find_solely_maintained,
    lock_account,
)
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
from annotation.workflow.parking import park, submit_parked, undo_submit
from annotation.workflow.redacting import redact
from annotation.workflow.sampling import (
    FIXED,
    PlanTerms,
    describe_earlier,
    find_earlier_plans,
    make_plan,
    read_earlier,
    require_plannable,
)
from annotation.workflow.stopping import ANYTIME, AUDIT, describe_progress, may_stop, read_labels, stop_sampling
from annotation.workflow.training import answer_practice, known_answer_refusal, set_known_answer
from annotation.workflow.working import (
    delete_old_drafts,
    has_submitted,
    record_activity,
    report,
    save_draft,
    settle_report,
)
