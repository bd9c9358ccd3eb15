"""Transitions by maintainers, and the settings of a submission."""

from __future__ import annotations

from typing import Any

from django.db import transaction

from annotation import access, blinding, clock
from annotation.models import (
    Adjudication,
    Assignment,
    Benchmark,
    Event,
    Membership,
    Person,
    PracticeAnswer,
    Release,
    Reopening,
    SamplePlan,
    Submission,
    Trajectory,
)
from annotation.models.events import digest
from annotation.models.plans import find_to_label
from annotation.models.states import FINAL, final_verdict, state_of, with_state
from annotation.protocol import MINIMUM_LABELS
from annotation.records import Problem
from annotation.workflow import integrity
from annotation.workflow.facts import catalogue_facts
from annotation.workflow.guards import (
    TRY_LATER,
    Conflict,
    Incomplete,
    Role,
    join,
    lock_departure,
    lock_submission,
    lock_trajectory,
    record,
    record_for,
    require_member,
    require_reason,
    require_unfrozen,
)
from annotation.workflow.passwords import record_since_freeze


def reopen(person: Person, trajectory: Trajectory, reason: str) -> Reopening:
    """Ask the adjudicators for a new decision on a final trajectory."""
    with lock_trajectory(trajectory) as (row, submission):
        member = require_member(person, submission, Role.MAINTAINER)
        require_unfrozen(submission)
        if state_of(row) not in FINAL:
            raise Conflict("Only a trajectory with a final verdict can be reopened.")
        reopening = Reopening.objects.create(
            trajectory=row,
            reopened_by=person,
            reason=require_reason(reason, "reopening"),
            revision=row.adjudications.filter(decided_at__isnull=False).count() + 1,
            reopened_at=clock.now(),
        )
        record_for(member, "reopened", row, reason=reopening.reason)
        return reopening


def freeze(person: Person, submission: Submission) -> Submission:
    """Close a submission if all its trajectories to label have a final verdict; from then on nothing in it changes."""
    with transaction.atomic():
        # Without this lock, a task or key point could be committed after the freeze with a time before it.
        Benchmark.objects.select_for_update(no_key=True).get(pk=submission.benchmark_id)
        submission = lock_submission(submission.pk)
        member = require_member(person, submission, Role.MAINTAINER)
        require_unfrozen(submission)
        trajectories = list(find_to_label(with_state(submission.trajectories.select_related("task"))))
        if Assignment.objects.filter(trajectory__submission=submission, submit_at__isnull=False).exists():
            raise Conflict(f"A label was just submitted, and can still be undone. {TRY_LATER}")
        if not trajectories:
            raise Conflict("This submission has no trajectories, so it cannot be frozen. Import a complete package.")
        unfinished = [t for t in trajectories if t.state not in FINAL or t.adjudicating]
        if unfinished:
            first = unfinished[0]
            raise Conflict(
                f"{len(unfinished)} of {len(trajectories)} trajectories have no final verdict yet, the first is "
                f"{first.task.external_id} ({'opened by an adjudicator' if first.adjudicating else first.state})."
            )
        if doubts := integrity.problems(submission):
            raise Conflict(f"The data does not match the event log: {doubts[0].message} Nothing was frozen.")
        submission.frozen_at = clock.now()
        submission.save(update_fields=["frozen_at"])
        verdicts = {t.task.external_id: final_verdict(t) for t in trajectories}
        catalogue = digest(catalogue_facts(submission.benchmark, submission.frozen_at))
        record(submission, member, "frozen", trajectories=len(verdicts), verdicts=digest(verdicts), catalogue=catalogue)
        return submission


def open_results(person: Person, submission: Submission) -> Submission:
    """Show the annotators of a frozen submission the labels of the others; this cannot be undone."""
    with transaction.atomic():
        submission = lock_submission(submission.pk)
        member = require_member(person, submission, Role.MAINTAINER)
        if submission.frozen_at is None:
            raise Conflict("Only a frozen submission can be opened to its annotators.")
        if submission.opened_at is None:
            submission.opened_at = clock.now()
            submission.save(update_fields=["opened_at"])
            record(submission, member, "results_opened")
        return submission


def reopen_submission(person: Person, submission: Submission, reason: str) -> Submission:
    """Unfreeze a submission, unless people have been shown, or could read, the labels of others."""
    with transaction.atomic():
        submission = lock_submission(submission.pk)
        member = require_member(person, submission, Role.MAINTAINER)
        if submission.frozen_at is None:
            raise Conflict("The submission is not frozen.")
        if submission.sample_of_id is not None:
            raise Conflict("The results of the audit sample could be read: new labels would not be blind.")
        if submission.opened_at is not None:
            raise Conflict("The annotators have seen each other's labels; new ones would not be independent.")
        frozen_at, submission.frozen_at = submission.frozen_at, None
        submission.save(update_fields=["frozen_at"])
        record(submission, member, "submission_reopened", reason=require_reason(reason, "reopening a submission"))
        record_since_freeze(submission, frozen_at)
        return submission


def add_member(actor: Person, submission: Submission, person: Person, role: Membership.Role) -> Membership:
    """Give a person their one role in a submission, or reactivate a deactivated member with the same role."""
    with transaction.atomic():
        existing = Membership.objects.select_for_update().filter(submission=submission, person=person).first()
        submission = lock_submission(submission.pk)
        member = require_member(actor, submission, Role.MAINTAINER)
        if existing is None:  # created while this transaction waited for the lock
            existing = Membership.objects.filter(submission=submission, person=person).first()
        if person.is_superuser and role != Role.MAINTAINER and _could_read(submission):
            raise Conflict(
                f"{person} is an operator of this instance and could read labels or known answers of this submission."
            )
        _may_have(person, submission, role)
        if existing is None:
            joined = join(submission, person, role)
            record(submission, member, "member_added", member=joined.pseudonym, role=joined.role)
            return joined
        if existing.role != role:
            raise Conflict(f"{person} is already {existing.role} here; a person has one role per submission.")
        if existing.deactivated_at is not None:
            existing.deactivated_at = None
            existing.save(update_fields=["deactivated_at"])
            record(submission, member, "member_reactivated", member=existing.pseudonym)
        return existing


def _may_have(person: Person, submission: Submission, role: Membership.Role) -> None:
    """Raise Conflict for erased and stand-in accounts, auditors, and people whom the role would unblind."""
    if person.erased_at is not None:
        raise Conflict("This person was erased and cannot take part again.")
    if person.stand_in:
        raise Conflict(f"{person} represents a pseudonym of an evidence bundle and cannot join.")
    if role == Role.AUDITOR:
        raise Conflict("Only submissions from evidence bundles have auditors.")
    if blinding.is_hidden(person, submission):
        raise Conflict(f"{person} labels a sample of the same trajectories blind. Add them after it is frozen.")
    built_by = submission.organisation
    if role != Role.MAINTAINER and blinding.has_conflict(person, built_by):
        raise Conflict(
            f"{person} declares an affiliation with {built_by}, which built this agent.", "conflict_of_interest"
        )
    audited = submission.sample_of
    if audited is not None and role != Role.MAINTAINER and blinding.has_taken_part(person, audited):
        raise Conflict(f"{person} has read, or could have read, the labels that this sample is compared with.")


def _could_read(submission: Submission) -> bool:
    """Return whether a superuser without a role could ever see something that annotators must not know."""
    events = Event.objects.filter(submission=submission, kind__in=["frozen", "known_answer_set"])
    return events.exists() or submission.practice_set_id is not None


def offer_again(person: Person, trajectory: Trajectory, reason: str) -> int:
    """Offer a trajectory again to the annotators who declined it; return their number. Their reasons stay stored."""
    with lock_trajectory(trajectory) as (row, submission):
        member = require_member(person, submission, Role.MAINTAINER)
        require_unfrozen(submission)
        given = require_reason(reason, "offering a trajectory again")
        lifted = Release.objects.filter(trajectory=row, lifted_at__isnull=True).update(lifted_at=clock.now())
        if lifted == 0:
            raise Conflict("No annotator has declined this trajectory.")
        record_for(member, "offered_again", row, reason=given, releases=lifted)
        return lifted


def deactivate_member(actor: Person, submission: Submission, person: Person) -> Membership:
    """End a person's part in a submission; their labels stay, their unlabelled assignments return to the queue."""
    with transaction.atomic():
        require_member(actor, submission, Role.MAINTAINER)
        leaving, held, undecided = lock_departure(submission, person)
        submission = leaving.submission
        member = require_member(actor, submission, Role.MAINTAINER)
        if leaving == member:
            raise Conflict("You cannot deactivate yourself. Ask another maintainer.")
        if leaving.deactivated_at is None:
            leaving.deactivated_at = clock.now()
            leaving.save(update_fields=["deactivated_at"])
            record(submission, member, "member_deactivated", member=leaving.pseudonym)
            _return_all(member, leaving, held, undecided)
        return leaving


def _return_all(member: Membership, leaving: Membership, held: list[Assignment], undecided: list[Adjudication]) -> None:
    """Return the reserved work of a deactivated member to the queues, with an event for each."""
    for assignment in held:
        assignment.delete()
        record_for(member, "slot_returned", assignment.trajectory, slot=assignment.slot, held_by=leaving.pseudonym)
    for adjudication in undecided:
        adjudication.delete()
        record_for(
            member,
            "adjudication_returned",
            adjudication.trajectory,
            revision=adjudication.revision,
            held_by=leaving.pseudonym,
        )


# --- settings ---------------------------------------------------------------------------------------------------------


MOST_LABELS = 9
# Settings of labels: fixed as soon as a trajectory is reserved.
FIXED_BY_WORK = ("protocol_version", "required_labels", "process_labels", "practice")
# The second stage does not change blind labels, so it can be switched on and off until the freeze.
SETTINGS = (*FIXED_BY_WORK, "spot_check_rate", "practice_set", "pass_mark", "second_stage")


def configure(person: Person, submission: Submission, **changes: Any) -> Submission:
    """Change any of `SETTINGS`: save all ``changes``, or raise Conflict or Incomplete and save nothing.

    ``spot_check_rate`` and ``pass_mark`` are fractions; ``practice_set`` is a Submission; None turns the last two off.
    Values equal to the current ones change nothing and are never refused.
    """
    if unknown := set(changes) - set(SETTINGS):
        raise TypeError(f"These settings do not exist: {', '.join(sorted(unknown))}.")
    with transaction.atomic():
        submission = _lock_configured(submission, changes)
        member = require_member(person, submission, Role.MAINTAINER)
        require_unfrozen(submission)
        old = {name: getattr(submission, name) for name in SETTINGS}
        changed = {name: value for name, value in changes.items() if value != old[name]}
        _require_changeable(submission, changed)
        _validate(person, submission, old | changed, changed)
        _write(submission, changed)
        if changed:
            record(
                submission, member, "configured", **{n: [_describe(old[n]), _describe(v)] for n, v in changed.items()}
            )
        return submission


def _lock_configured(submission: Submission, changes: dict[str, Any]) -> Submission:
    """Lock and return the submission; also lock its new practice set, so that what is checked of it stays true."""
    practice_set = changes.get("practice_set") or submission
    locked = {}
    for pk in sorted({submission.pk, practice_set.pk}):
        if pk == submission.pk and "required_labels" in changes:
            # Before the submission, as everywhere: otherwise a claim that has locked a row would deadlock with this.
            list(Trajectory.objects.filter(submission=pk).order_by("pk").select_for_update(no_key=True))
        locked[pk] = lock_submission(pk)
    return locked[submission.pk]


def find_fixed_settings(submission: Submission) -> dict[str, str]:
    if submission.frozen_at is not None:
        return dict.fromkeys(SETTINGS, "The submission is frozen.")
    reasons = {}
    if Assignment.objects.filter(trajectory__submission=submission).exists():
        reasons = dict.fromkeys(FIXED_BY_WORK, "A trajectory is already reserved or labelled.")
    elif Submission.objects.filter(practice_set=submission).exists():
        reasons["practice"] = "Another submission uses it as its practice set."
    elif PracticeAnswer.objects.filter(trajectory__submission=submission).exists():
        # These people have seen the right answers, so their labels would not be independent.
        reasons["practice"] = "A person has already practised on it."
    if SamplePlan.objects.filter(submission=submission).exists():
        reasons["practice"] = "A sample of it is planned."
    if submission.spot_check_draws.exists():
        reasons["spot_check_rate"] = "Spot checks have already been drawn."
    return reasons


def _require_changeable(submission: Submission, changed: dict[str, Any]) -> None:
    reasons = find_fixed_settings(submission)
    refused = [
        f"The {name.replace('_', ' ')} cannot be changed. {reasons[name]}" for name in changed if name in reasons
    ]
    if refused:
        raise Conflict(" ".join(refused))


def _validate(person: Person, submission: Submission, after: dict[str, Any], changed: dict[str, Any]) -> None:
    rate, mark, practice_set = after["spot_check_rate"], after["pass_mark"], after["practice_set"]
    rules = {
        "protocol_version": (after["protocol_version"] in (1, 2), "The protocol has the versions 1 and 2."),
        "required_labels": (
            MINIMUM_LABELS <= after["required_labels"] <= MOST_LABELS,
            f"The number of labels must be {MINIMUM_LABELS} to {MOST_LABELS}.",
        ),
        "spot_check_rate": (0 <= rate <= 1, "The spot check rate must be 0 to 100%."),
        "pass_mark": (mark is None or 0 <= mark <= 1, "The pass mark must be 0 to 100%."),
    }
    problems = [Problem(f"{name}_unusable", says, name) for name, (good, says) in rules.items() if not good]
    if after["practice"] and (practice_set is not None or mark is not None):
        message = "A practice set cannot have its own practice set or pass mark."
        problems.append(Problem("practice_of_practice", message, "practice_set"))
    elif mark is not None and practice_set is None:
        problems.append(Problem("practice_set_missing", "Choose a practice set for the pass mark.", "practice_set"))
    if changed.get("practice_set") is not None and not _is_usable(person, submission, practice_set):
        message = "Choose a practice submission that you maintain."
        problems.append(Problem("practice_set_unusable", message, "practice_set"))
    if problems:
        raise Incomplete(problems)


def _is_usable(person: Person, submission: Submission, practice_set: Submission) -> bool:
    """Return whether the person maintains this practice submission, which is locked."""
    mine = access.submissions_maintained_by(person).filter(practice=True, archived_at=None).exclude(pk=submission.pk)
    return mine.filter(pk=practice_set.pk).exists()


def _write(submission: Submission, changed: dict[str, Any]) -> None:
    if not changed:
        return
    for name, value in changed.items():
        setattr(submission, name, value)
    submission.save(update_fields=list(changed))
    if "required_labels" in changed:
        # No slot is reserved or filled: see `find_fixed_settings`.
        find_to_label(submission.trajectories.all()).update(open_slots=changed["required_labels"])


def _describe(value: Any) -> Any:
    """Return a value as the event stores it; a submission by names, which have a meaning on other instances."""
    return f"{value.benchmark.slug}: {value}" if isinstance(value, Submission) else value
