"""Actions of pages and the API that are more than one transition.

Parked labels whose time has come are submitted before an action that needs them, and people get their e-mail.
"""

from __future__ import annotations

from contextlib import suppress

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet
from django.http import Http404

from annotation import access, catalogue, mail, parked, queue, reminders, workflow
from annotation.models import Assignment, KeyPoint, Membership, Person, SpotCheckDraw, Submission, Task, Trajectory
from annotation.workflow import Conflict, passwords

Role = Membership.Role


def claim_next(person: Person, submission: Submission) -> Assignment | None:
    """Reserve the next trajectory of an annotator, or return the reserved one; None if nothing is left."""
    parked.submit_due(submission)
    return workflow.claim(person, submission)


def open_next(person: Person, submission: Submission, kind: queue.Kind | None = None) -> Trajectory | None:
    """Open the hardest trajectory in an adjudicator's queue, only of this kind if given; None if there is none."""
    for trajectory in queue.next_to_adjudicate(person, submission, kind or ""):
        with suppress(Conflict):  # another adjudicator has opened it first
            workflow.open_adjudication(person, trajectory)
            return trajectory
    return None


def draw_spot_checks(person: Person, submission: Submission) -> SpotCheckDraw:
    parked.submit_due(submission)
    return workflow.draw_spot_checks(person, submission)


def freeze(person: Person, submission: Submission) -> Submission:
    parked.submit_due(submission)
    return workflow.freeze(person, submission)


# --- people -----------------------------------------------------------------------------------------------------------


def add_member(actor: Person, submission: Submission, person: Person, role: Membership.Role) -> Membership:
    """Give a person with an account a role, and write to them."""
    with transaction.atomic():
        member = workflow.add_member(actor, submission, person, role)
        mail.write_invitation(member.person, member)
        return member


def invite(
    actor: Person, submission: Submission, username: str, email: str, role: Membership.Role
) -> tuple[Membership, str]:
    """Create an account without a password and its role, write to the person, and return the path of the join link."""
    with transaction.atomic():
        person = Person.objects.create_user(username, email)
        member = add_member(actor, submission, person, role)
        return member, passwords.create_link_path(actor, person)


def invite_again(actor: Person, person: Person) -> tuple[str, bool]:
    """Return the path of a new link, and whether the person gets an e-mail: not if they have joined already.

    Only operators create a link for a person who has joined and has forgotten the password.
    """
    if person.erased_at is not None:
        raise Conflict("This person was erased and cannot take part again.")
    if not passwords.may_create_link(actor, person):
        raise Conflict(f"{person} has already joined. Ask an operator to create a link for a new password.")
    path, again = passwords.create_link_path(actor, person), not passwords.has_joined(person)
    if again:
        mail.write_invitation(person)
    return path, again and mail.can_mail(person)


def remind(submission: Submission, role: Membership.Role) -> tuple[int, int]:
    """Remind all members with this role by e-mail; return how many were reminded, and how many were not."""
    if not settings.EMAIL_HOST:
        raise Conflict("This site sends no e-mail. Remind people yourself; their addresses are on the page People.")
    members = submission.memberships.filter(role=role, deactivated_at__isnull=True).select_related("person")
    return reminders.remind_members(members.order_by("pk"))


def deactivate(actor: Person, submission: Submission, person: Person) -> Membership:
    parked.submit_due(submission)
    return workflow.deactivate_member(actor, submission, person)


def reactivate(actor: Person, former: Membership) -> Membership:
    return workflow.add_member(actor, former.submission, former.person, Role(former.role))


# --- key points -------------------------------------------------------------------------------------------------------


def add_key_points(task: Task, texts: list[str]) -> list[KeyPoint]:
    parked.submit_due()
    return catalogue.add_key_points(task, texts)


def accept_key_point(point: KeyPoint) -> None:
    parked.submit_due()
    catalogue.accept_key_point(point)


def retire_key_point(point: KeyPoint) -> None:
    parked.submit_due()
    catalogue.retire_key_point(point)


def find_key_point(person: Person, pk: int) -> KeyPoint:
    """Return a key point or proposal that the person may see and change; Http404 otherwise."""
    found = access.key_point_for(person, pk)
    if not find_key_points(person, found.task).filter(pk=pk).exists():
        raise Http404("No such key point.")
    return found


def find_key_points(person: Person, task: Task) -> QuerySet[KeyPoint]:
    """Return all key points and proposals of a task from `task_for`, to annotators of the benchmark no proposals.

    They must not see what other annotators propose, or that they have.
    """
    blind = access.annotates(person, task.benchmark)
    return task.key_points.filter(accepted_at__isnull=False) if blind else task.key_points.all()
