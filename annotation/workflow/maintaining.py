"""The verbs of maintainers."""

from __future__ import annotations

from django.db import transaction
from django.utils import timezone

from annotation import blinding
from annotation.models import (
    Adjudication,
    Assignment,
    Benchmark,
    Event,
    Membership,
    Person,
    Release,
    Reopening,
    Submission,
    Trajectory,
)
from annotation.models.events import digest
from annotation.models.states import FINAL, final_verdict, state_of, with_state
from annotation.workflow import integrity
from annotation.workflow.facts import catalogue_facts
from annotation.workflow.guards import (
    Conflict,
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
            reopened_at=timezone.now(),
        )
        record_for(member, "reopened", row, reason=reopening.reason)
        return reopening


def freeze(person: Person, submission: Submission) -> Submission:
    """Close a submission whose every trajectory has a final verdict; nothing changes in it from here on."""
    with transaction.atomic():
        # No task or key point is on its way in then, which would be there later with an earlier time than the freeze.
        Benchmark.objects.select_for_update(no_key=True).get(pk=submission.benchmark_id)
        submission = lock_submission(submission.pk)
        member = require_member(person, submission, Role.MAINTAINER)
        require_unfrozen(submission)
        trajectories = list(with_state(submission.trajectories.select_related("task")))
        unfinished = [t for t in trajectories if t.state not in FINAL or t.adjudicating]
        if unfinished:
            first = unfinished[0]
            raise Conflict(
                f"{len(unfinished)} of {len(trajectories)} trajectories have no final verdict yet, the first is "
                f"{first.task.external_id} ({'opened by an adjudicator' if first.adjudicating else first.state})."
            )
        if doubts := integrity.problems(submission):
            raise Conflict(f"The rows are not what the events say: {doubts[0].message} Nothing was frozen.")
        submission.frozen_at = timezone.now()
        submission.save(update_fields=["frozen_at"])
        verdicts = {t.task.external_id: final_verdict(t) for t in trajectories}
        catalogue = digest(catalogue_facts(submission.benchmark, submission.frozen_at))
        record(submission, member, "frozen", trajectories=len(verdicts), verdicts=digest(verdicts), catalogue=catalogue)
        return submission


def open_results(person: Person, submission: Submission) -> Submission:
    """Show the annotators of a frozen submission what the others said; there is no way back from this."""
    with transaction.atomic():
        submission = lock_submission(submission.pk)
        member = require_member(person, submission, Role.MAINTAINER)
        if submission.frozen_at is None:
            raise Conflict("Only a frozen submission can be opened to its annotators.")
        if submission.opened_at is None:
            submission.opened_at = timezone.now()
            submission.save(update_fields=["opened_at"])
            record(submission, member, "results_opened")
        return submission


def reopen_submission(person: Person, submission: Submission, reason: str) -> Submission:
    """Take the freeze back, as long as nobody has been shown the labels of others."""
    with transaction.atomic():
        submission = lock_submission(submission.pk)
        member = require_member(person, submission, Role.MAINTAINER)
        if submission.frozen_at is None:
            raise Conflict("The submission is not frozen.")
        if submission.sample_of_id is not None:
            raise Conflict("What the sample says of the audited labels could be read: no new label would be blind.")
        if submission.opened_at is not None:
            raise Conflict("The annotators have seen each other's labels; new ones would not be independent.")
        frozen_at, submission.frozen_at = submission.frozen_at, None
        submission.save(update_fields=["frozen_at"])
        record(submission, member, "submission_reopened", reason=require_reason(reason, "reopening a submission"))
        record_since_freeze(submission, frozen_at)
        return submission


def add_member(actor: Person, submission: Submission, person: Person, role: Membership.Role) -> Membership:
    """Give a person their one role in a submission, or let a deactivated member of the same role back in."""
    with transaction.atomic():
        existing = Membership.objects.select_for_update().filter(submission=submission, person=person).first()
        submission = lock_submission(submission.pk)
        member = require_member(actor, submission, Role.MAINTAINER)
        if existing is None:  # made while we waited for the lock
            existing = Membership.objects.filter(submission=submission, person=person).first()
        if person.is_superuser and role != Role.MAINTAINER and _could_read(submission):
            raise Conflict(f"{person} is an operator of this instance and could read labels or known answers here.")
        _may_have(person, submission, role)
        if existing is None:
            joined = join(submission, person, role)
            record(submission, member, "member_added", member=joined.pseudonym, role=joined.role)
            return joined
        if existing.role != role:
            raise Conflict(f"{person} already is {existing.role} here; a person has one role in a submission.")
        if existing.deactivated_at is not None:
            existing.deactivated_at = None
            existing.save(update_fields=["deactivated_at"])
            record(submission, member, "member_reactivated", member=existing.pseudonym)
        return existing


def _may_have(person: Person, submission: Submission, role: Membership.Role) -> None:
    """Refuse roles that are not given here, people who label a sample blind, and accounts that nobody uses."""
    if person.erased_at is not None:
        raise Conflict("This person was erased and cannot take part again.")
    if person.stand_in:
        raise Conflict(f"{person} stands for a pseudonym of an evidence bundle and is nobody who could work.")
    if role == Role.AUDITOR:
        raise Conflict("An auditor reads a submission that came in an evidence bundle; here is nothing of that kind.")
    if blinding.labels_again(person, submission):
        raise Conflict(f"{person} labels a sample of the same trajectories blind; they can be added when it is frozen.")
    audited = submission.sample_of
    if audited is not None and role != Role.MAINTAINER and blinding.had_a_part(person, audited):
        raise Conflict(f"{person} has, or could have, read the labels that this sample is compared with.")


def _could_read(submission: Submission) -> bool:
    """Whether there was ever something that a superuser without a role is shown, and an annotator must not know."""
    events = Event.objects.filter(submission=submission, kind__in=["frozen", "known_answer_set"])
    return events.exists() or submission.practice_set_id is not None


def offer_again(person: Person, trajectory: Trajectory, reason: str) -> int:
    """Let the annotators who gave a trajectory back have it again; returns how many. Their reasons stay on record."""
    with lock_trajectory(trajectory) as (row, submission):
        member = require_member(person, submission, Role.MAINTAINER)
        require_unfrozen(submission)
        given = require_reason(reason, "offering a trajectory again")
        lifted = Release.objects.filter(trajectory=row, lifted_at__isnull=True).update(lifted_at=timezone.now())
        if lifted == 0:
            raise Conflict("Nobody has given this trajectory back.")
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
            raise Conflict("You cannot deactivate yourself; another maintainer can.")
        if leaving.deactivated_at is None:
            leaving.deactivated_at = timezone.now()
            leaving.save(update_fields=["deactivated_at"])
            record(submission, member, "member_deactivated", member=leaving.pseudonym)
            _return_all(member, leaving, held, undecided)
        return leaving


def _return_all(member: Membership, leaving: Membership, held: list[Assignment], undecided: list[Adjudication]) -> None:
    """What somebody who left was working on goes back into the queues; each has its event."""
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
