"""What waits for a person in each of their roles: for the first page and for reminders."""

from __future__ import annotations

from dataclasses import dataclass

from django.urls import reverse

from annotation import progress, queue, stages, training
from annotation.models import Membership, Person, Report, Submission
from annotation.models.states import State

Role = Membership.Role
START = {Role.ANNOTATOR: "work", Role.ADJUDICATOR: "adjudicate", Role.MAINTAINER: "submission"}


@dataclass(frozen=True, slots=True)
class Work:
    """What waits in a submission: ``count`` of it, and the ``action`` at ``address``, a form if it ``posts``.

    What is optional has an action and the count 0. Without an action nothing waits; ``note`` says why. ``urgency`` is
    smallest for what comes first. ``done`` and ``total`` are the progress that this person may see, if any.
    """

    membership: Membership
    note: str
    address: str
    action: str = ""
    count: int = 0
    posts: bool = False
    urgency: int = 9
    done: int | None = None
    total: int | None = None


def find_work(person: Person, membership: Membership) -> Work:
    """Return what waits for a person by one of their memberships."""
    submission = membership.submission
    start = reverse(START[Role(membership.role)], args=[submission.pk])
    if submission.frozen_at is not None:
        if membership.role == Role.MAINTAINER and (asked := _to_answer(membership, reports=0)):
            return asked
        return Work(membership, f"frozen on {submission.frozen_at:%Y-%m-%d}", start)
    if submission.practice:
        return _to_practise(person, membership, start)
    find = {Role.ANNOTATOR: _to_annotate, Role.ADJUDICATOR: _to_adjudicate, Role.MAINTAINER: _to_maintain}
    return find[Role(membership.role)](person, membership, start)


def _to_annotate(person: Person, membership: Membership, start: str) -> Work:
    submission = membership.submission
    done, total = queue.count_own(person, submission)
    following = reverse("next-trajectory", args=[submission.pk])
    held = queue.find_held(person, submission)
    left = queue.find_candidates(person, submission).count()
    put_off = queue.find_put_off(person, submission).count()
    if held is not None:
        until = f"reserved until {held.lease_expires_at:%H:%M} UTC"
        note = f"“{held.trajectory.task.short_text}” · {until}"
        return Work(membership, note, following, "Continue", left + 1, True, 0, done, total)
    if submission.practice_set_id and not training.is_admitted(person, submission):
        practice = training.load_practice(person, submission)
        note = f"practice first: {practice.answered} of {len(practice.items)} answered"
        address = reverse("practice", args=[submission.pk])
        return Work(membership, note, address, "Practise", max(len(practice.items) - practice.answered, 1), urgency=4)
    if left:
        note = _count_out(left, "to label") + (f", {put_off} put off by you" if put_off else "")
        return Work(membership, note, following, "Next trajectory", left, True, 2, done, total)
    if put_off:
        return Work(
            membership,
            _count_out(put_off, "put off by you"),
            start,
            "Resume",
            put_off,
            urgency=2,
            done=done,
            total=total,
        )
    return Work(membership, f"your queue is empty: {done} of {total} labelled", start)


def _to_practise(person: Person, membership: Membership, start: str) -> Work:
    """Return the practice set's own practice, which is optional: it comes last and is not counted."""
    if membership.role != Role.ANNOTATOR:
        return Work(membership, "practice set", start)
    practice = training.load_practice(person, membership.submission)
    if not practice.items or practice.over or practice.number > 1:
        return Work(membership, "practice set", start)
    note = f"optional practice: {practice.answered} of {len(practice.items)} answered"
    address = reverse("practice", args=[membership.submission_id])
    return Work(membership, note, address, "Practise", urgency=8)


def _to_adjudicate(person: Person, membership: Membership, start: str) -> Work:
    submission = membership.submission
    mine, waiting, put_off = queue.count_waiting(person, submission)
    address = reverse("open-next", args=[submission.pk])
    if mine:
        return Work(membership, _count_out(mine, "opened by you"), start, "Continue", mine + waiting, urgency=0)
    if waiting:
        return Work(membership, _count_out(waiting, "to adjudicate"), address, "Open the hardest", waiting, True, 1)
    if put_off:
        return Work(membership, _count_out(put_off, "put off by you"), start, "Resume", put_off, urgency=2)
    return Work(membership, "none waiting for adjudication", start)


def _to_maintain(person: Person, membership: Membership, start: str) -> Work:
    submission = membership.submission
    reports = Report.objects.filter(trajectory__submission=submission, settled_at__isnull=True).count()
    if asked := _to_answer(membership, reports):
        return asked
    lacking = _find_lacking_people(submission)
    if lacking:
        return Work(membership, lacking, reverse("people", args=[submission.pk]), "Add people", 1, urgency=1)
    done = progress.count_done([submission.pk])[submission.pk]
    standing = progress.count_states(submission, done["trajectories"])
    if standing.final == done["to_label"] and not standing.opened:
        return Work(membership, "every trajectory has a final verdict", start, "Review and freeze", 1, urgency=0)
    states = dict(standing.states)
    if states.get(State.AGREED) and not any(states.get(state) for state in (State.IN_REVIEW, *stages.BY_ADJUDICATORS)):
        note = _count_out(states[State.AGREED], "agreed and not drawn yet")
        return Work(membership, note, start, "Draw spot checks", 1, urgency=1)
    labels = f"{done['labels']} of {done['to_label'] * submission.required_labels} labels"
    return Work(membership, f"{labels}, {standing.final} of {done['to_label']} final", start)


def _to_answer(membership: Membership, reports: int) -> Work | None:
    """Return the work of answering reports and questions. Questions stay after the freeze until they are answered."""
    submission = membership.submission
    questions = submission.questions.filter(answered_at__isnull=True).count()
    if not reports and not questions:
        return None
    found = [(reports, "report"), (questions, "question")]
    what = " and ".join(f"{count} {name}{'' if count == 1 else 's'}" for count, name in found if count)
    note, address = f"{what} from annotators and adjudicators", reverse("reports", args=[submission.pk])
    return Work(membership, note, address, "Answer", reports + questions, urgency=1)


def _count_out(count: int, what: str) -> str:
    return f"{count} {'trajectory' if count == 1 else 'trajectories'} {what}"


def _find_lacking_people(submission: Submission) -> str:
    roles = list(submission.memberships.filter(deactivated_at__isnull=True).values_list("role", flat=True))
    annotators = roles.count(Role.ANNOTATOR)
    if annotators < submission.required_labels:
        return f"{annotators} of {submission.required_labels} annotators: labels cannot be completed"
    return "" if Role.ADJUDICATOR in roles else "no adjudicator: disputes cannot be decided"
