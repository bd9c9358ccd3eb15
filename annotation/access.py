"""Access rules: each function loads something that a person may see, or refuses.

People outside a submission get 404 for unknown and forbidden objects, so that they cannot probe; a member with the
wrong role gets 403. Independence rule: no function here gives an annotator what another annotator has entered. For
people who label an audit sample, further rules apply: see `annotation.blinding`.
"""

from __future__ import annotations

from typing import Any, TypeVar

from django.core.exceptions import PermissionDenied
from django.db.models import Exists, Model, OuterRef, Q, QuerySet
from django.http import Http404

from annotation import blinding, clock, redactions
from annotation.models import (
    Adjudication,
    ApiToken,
    Attachment,
    Benchmark,
    Comment,
    Flag,
    FlagAnswer,
    KeyPoint,
    Label,
    Membership,
    Message,
    Person,
    Phrase,
    Question,
    Report,
    ResumableUpload,
    Screenshot,
    Step,
    Submission,
    Task,
    Trajectory,
    Upload,
)
from annotation.models.states import State, state_of
from annotation.records import AttachmentKind

Role = Membership.Role
READERS = (Role.MAINTAINER, Role.AUDITOR)  # of pages on a whole submission; maintainers see less before the freeze


Row = TypeVar("Row", bound=Model)


def _find(rows: QuerySet[Row], refusal: str) -> Row:
    found = rows.first()
    if found is None:
        raise Http404(refusal)
    return found


def role_in(person: Person, submission: Submission) -> Membership.Role | None:
    """Return the role of a person in a submission; None for outsiders and deactivated members.

    A superuser without a role counts as maintainer, or as auditor if the submission came in an evidence bundle.
    People who label an audit sample have no role in the audited submission meanwhile, nor in any other submission
    with the same trajectories.
    """
    memberships: QuerySet[Any] = Membership.objects.filter(person=person, submission=submission)
    membership = memberships.annotate(blind_somewhere=Exists(blinding.find_open_samples(person))).first()
    if membership is None and not person.is_superuser:
        return None
    # Members who label no sample need no second query.
    if (membership is None or membership.blind_somewhere) and blinding.is_hidden(person, submission):
        return None
    if membership is not None:
        return Role(membership.role) if membership.deactivated_at is None else None
    return Role.AUDITOR if submission.audited else Role.MAINTAINER


def require(person: Person, submission: Submission, *roles: Membership.Role) -> Membership.Role:
    """Return the person's role if it is one of ``roles``; Http404 for outsiders, PermissionDenied for other members."""
    role = role_in(person, submission)
    if role is None:
        raise Http404("No such submission.")
    if role not in roles:
        raise PermissionDenied(f"This is for the {' or '.join(roles)} of the submission.")
    return role


def memberships_of(person: Person) -> QuerySet[Any]:
    """Return the person's active memberships, except in submissions from evidence bundles and hidden ones."""
    own = Membership.objects.filter(person=person, deactivated_at__isnull=True, submission__audited=False)
    hidden = Submission.objects.filter(blinding.match_hidden(person), pk=OuterRef("submission"))
    shown = own.exclude(Exists(hidden)).select_related("submission__agent", "submission__benchmark")
    return shown.defer("submission__import_report")


def audits_something(person: Person) -> bool:
    return Membership.objects.filter(person=person, role=Role.AUDITOR, deactivated_at__isnull=True).exists()


def submissions_maintained_by(person: Person) -> QuerySet[Submission]:
    """Return the submissions that the person maintains, newest first, except those whose sample they label."""
    return _filter_by_role(person, Role.MAINTAINER, audited=False).select_related("agent", "benchmark")


def submissions_audited_by(person: Person) -> QuerySet[Submission]:
    """Return the imported submissions that the person audits, newest first, as `role_in` defines it."""
    return _filter_by_role(person, Role.AUDITOR, audited=True)


def _filter_by_role(person: Person, role: Membership.Role, audited: bool) -> QuerySet[Submission]:
    parts = Membership.objects.filter(person=person)
    own = Q(pk__in=parts.filter(role=role, deactivated_at__isnull=True).values("submission"))
    if person.is_superuser:
        own |= ~Q(pk__in=parts.values("submission")) & Q(audited=audited)
    return Submission.objects.filter(own).exclude(blinding.match_hidden(person))


def submission_for(person: Person, pk: int, *roles: Membership.Role) -> Submission:
    """Return a submission for a member with one of ``roles``; in one query, because every page starts here."""
    # submission__id, because a number too large for the column must give 404 and not an error (500).
    membership = memberships_of(person).filter(submission__id=pk, role__in=roles).first()
    if membership is not None:
        return membership.submission
    submission = _find(Submission.objects.select_related("agent", "benchmark").filter(pk=pk), "No such submission.")
    require(person, submission, *roles)
    return submission


def may_create_submissions(person: Person) -> bool:
    return bool(person.is_active and (person.is_staff or person.is_superuser))


def require_creator(person: Person) -> None:
    if not may_create_submissions(person):
        raise PermissionDenied("Only maintainers of the instance may do this.")


def require_superuser(person: Person) -> None:
    """Raise Http404 for everybody but the operators of the instance."""
    if not (person.is_active and person.is_superuser):
        raise Http404("No such page.")


def upload_for(person: Person, pk: Any) -> Upload:
    """Return an upload with its report, for the person who uploaded it and for superusers."""
    uploads = Upload.objects.select_related("benchmark", "submission").defer("submission__import_report")
    return _find(uploads.filter(pk=pk).filter(Q() if person.is_superuser else Q(uploaded_by=person)), "No such upload.")


def resumable_upload_for(person: Person, pk: Any) -> ResumableUpload:
    """Return an upload in parts that has not expired, for the person who started it."""
    own = ResumableUpload.objects.filter(uploaded_by=person, expires_at__gt=clock.now()).select_related("benchmark")
    return _find(own.filter(pk=pk), "No such upload, or it has expired. Start again.")


def trajectory_for(person: Person, pk: int, *roles: Membership.Role) -> Trajectory:
    """Return a trajectory for a member with one of ``roles``.

    An annotator sees only trajectories that they have reserved, labelled, drafted or worked on; others would let them
    prepare a verdict outside an assignment. Earlier work counts, so that an expired lease does not block typing.
    """
    # In the same query, because every request for a screenshot or a step starts here.
    rows = Trajectory.objects.select_related("submission__agent", "submission__benchmark", "task")
    mine = Exists(_worked_on_by(person).filter(pk=OuterRef("pk")))
    trajectory: Any = rows.defer("submission__import_report").annotate(mine=mine).filter(pk=pk).first()
    if trajectory is None:
        raise Http404("No such trajectory.")
    role = require(person, trajectory.submission, *roles)
    if role is Role.ANNOTATOR and not trajectory.mine:
        raise Http404("You have not reserved this trajectory.")
    return trajectory


def has_worked_on(person: Person, trajectory: Trajectory) -> bool:
    return _worked_on_by(person).filter(pk=trajectory.pk).exists()


def _worked_on_by(person: Person) -> QuerySet[Trajectory]:
    mine = Q(assignments__annotator=person) | Q(drafts__author=person) | Q(activities__person=person)
    return Trajectory.objects.filter(mine)


def own_labels(person: Person, trajectory: Trajectory) -> QuerySet[Label]:
    return Label.objects.filter(assignment__trajectory=trajectory, assignment__annotator=person)


def may_see_labels(person: Person, trajectory: Trajectory) -> bool:
    """Return whether the person may see all labels of a trajectory.

    Adjudicators may after they open a dispute (labels are fixed from then on), and after the blind judgement of a
    spot check; maintainers after the freeze; annotators after the maintainer opens the results; auditors always,
    because nobody labels what they read.
    """
    role = role_in(person, trajectory.submission)
    if role is Role.ADJUDICATOR:
        shown = Q(decided_at__isnull=False) | Q(adjudicator=person, blind=False)
        return trajectory.adjudications.filter(shown).exists()
    if role in READERS:
        return role is Role.AUDITOR or trajectory.submission.frozen_at is not None
    return role is Role.ANNOTATOR and trajectory.submission.opened_at is not None


def judged_blind(trajectory: Trajectory) -> bool:
    """Return whether the next adjudication of a trajectory is blind: all except disputes, once."""
    if trajectory.adjudications.filter(decided_at__isnull=False).exists():
        return False
    return state_of(trajectory) is not State.DISPUTE


def labels_for(person: Person, trajectory: Trajectory) -> QuerySet[Label]:
    if not may_see_labels(person, trajectory):
        return own_labels(person, trajectory)
    return Label.objects.filter(assignment__trajectory=trajectory)


def practice_for(person: Person, pk: int) -> Submission:
    """Return a submission that has a practice set, or is one, for its annotators."""
    found = submission_for(person, pk, Role.ANNOTATOR)
    if found.played_set is None:
        raise Http404("This submission has no practice set.")
    return found


def practice_trajectory_for(person: Person, pk: int, trajectory_pk: int) -> tuple[Submission, Trajectory]:
    """Return the submission of `practice_for`, and an item of its practice set.

    Items have a known answer; all other trajectories of the practice submission stay hidden.
    """
    submission = practice_for(person, pk)
    items = _practice_items().filter(pk=trajectory_pk, submission=submission.played_set)
    return submission, _find(items, "No such trajectory in the practice set.")


def _practice_items() -> QuerySet[Trajectory]:
    items = Trajectory.objects.filter(submission__practice=True, known_answer__isnull=False)
    return items.select_related("submission__agent", "submission__benchmark", "task").defer("submission__import_report")


def visible_trajectory_for(person: Person, pk: int) -> Trajectory:
    """Return a trajectory whose steps, screenshots and files the person may view: as a member, or to practise.

    Use it only to show what the agent did; labels and known answers have their own access rules.
    """
    try:
        return trajectory_for(person, pk, Role.ANNOTATOR, Role.ADJUDICATOR, *READERS)
    except Http404:
        joined = memberships_of(person).filter(role=Role.ANNOTATOR)
        sets = Q(submission__in=joined.filter(submission__practice=True).values("submission"))
        sets |= Q(submission__in=joined.exclude(submission__practice_set=None).values("submission__practice_set"))
        item = _practice_items().filter(sets, pk=pk).first()
        if item is None:
            raise
        return item


def opened_memberships_of(person: Person) -> QuerySet[Any]:
    """Return the person's memberships as a reviewer in submissions whose results are open to their members."""
    roles = (Role.ANNOTATOR, Role.ADJUDICATOR)
    shown = Q(submission__opened_at__isnull=False, submission__practice=False)
    return memberships_of(person).filter(shown, role__in=roles)


def readable_trajectory_for(person: Person, pk: int) -> Trajectory:
    """Return a trajectory whose steps and screenshots the person may view, including all with open results.

    People who only read it, because they have not worked on it, get redacted screenshots covered and no files.
    """
    try:
        return visible_trajectory_for(person, pk)
    except Http404:
        opened = Trajectory.objects.select_related("submission__agent", "submission__benchmark", "task")
        opened = opened.defer("submission__import_report")
        trajectory = opened.filter(pk=pk, submission__in=opened_memberships_of(person).values("submission")).first()
        if trajectory is None:
            raise
        trajectory.only_read = True  # type: ignore[attr-defined]
        return trajectory


def _only_reads(trajectory: Trajectory) -> bool:
    return getattr(trajectory, "only_read", False)


def _show(trajectory: Trajectory, steps: QuerySet[Step]) -> list[Screenshot | None]:
    """Return the screenshots of steps, in order; redacted ones covered if the person only reads the trajectory."""
    shown = [step.screenshot for step in steps.select_related("screenshot").order_by("index")]
    if not _only_reads(trajectory):
        return shown
    covered = redactions.find_current(trajectory.submission, [each.sha256 for each in shown if each])
    return [redactions.cover(each, covered.get(each.sha256)) if each else None for each in shown]


def screenshot_for(person: Person, trajectory_pk: int, step: int) -> tuple[Screenshot, bool]:
    """Return the screenshot of a step, and whether a redaction may replace it, as for readers."""
    trajectory = readable_trajectory_for(person, trajectory_pk)
    shown = _show(trajectory, trajectory.steps.filter(index=step))
    if not shown or shown[0] is None:
        raise Http404("This step has no screenshot.")
    return shown[0], _only_reads(trajectory)


def page_picture_for(person: Person, trajectory_pk: int, attachment_pk: int) -> Screenshot:
    """Return the screenshot of a page that is stored for an answer, for people who may see the answer."""
    file = attachment_for(person, trajectory_pk, attachment_pk)
    kept = file.kind == AttachmentKind.CACHED_PAGE
    found = Screenshot.objects.filter(sha256=file.sha256).first() if kept else None
    if found is None:
        raise Http404("This screenshot does not exist.")
    return found


def screenshots_for(person: Person, trajectory_pk: int, first: int, count: int) -> tuple[list[Screenshot | None], bool]:
    """Return screenshots of ``count`` steps from ``first``, and whether redactions may replace them.

    None for a step without a screenshot; fewer at the trajectory's end.
    """
    trajectory = readable_trajectory_for(person, trajectory_pk)
    shown = _show(trajectory, trajectory.steps.filter(index__gte=first, index__lt=first + count))
    if not shown:
        raise Http404("This step does not exist.")
    return shown, _only_reads(trajectory)


def may_edit_catalogue(person: Person, benchmark: Benchmark) -> bool:
    """Return whether the person may change a benchmark's tasks and key points: its maintainers and the instance's.

    Nobody may change a benchmark that came in an evidence bundle.
    """
    if benchmark.bundled_as:
        return False
    return may_create_submissions(person) or submissions_maintained_by(person).filter(benchmark=benchmark).exists()


def annotates(person: Person, benchmark: Benchmark) -> bool:
    return reviews(person, benchmark, Role.ANNOTATOR)


def reviews(person: Person, benchmark: Benchmark, role: Membership.Role) -> bool:
    """Return whether the person has or had this role in an unfrozen submission of the benchmark.

    Earlier roles count, because a deactivated member can be reactivated and must not look in the meantime.
    """
    open_ones = Q(submission__benchmark=benchmark, submission__frozen_at__isnull=True)
    return Membership.objects.filter(open_ones, person=person, role=role).exists()


def benchmark_for(person: Person, slug: str) -> Benchmark:
    found = Benchmark.objects.filter(slug=slug).first()
    if found is None or not may_edit_catalogue(person, found):
        raise Http404("No such benchmark.")
    return found


def task_for(person: Person, pk: int) -> Task:
    found = Task.objects.select_related("benchmark").filter(pk=pk).first()
    if found is None or not may_edit_catalogue(person, found.benchmark):
        raise Http404("No such task.")
    return found


def key_point_for(person: Person, pk: int) -> KeyPoint:
    found = KeyPoint.objects.select_related("task__benchmark").filter(pk=pk).first()
    if found is None or not may_edit_catalogue(person, found.task.benchmark):
        raise Http404("No such key point.")
    return found


def attachment_for(person: Person, trajectory_pk: int, pk: int) -> Attachment:
    trajectory = visible_trajectory_for(person, trajectory_pk)
    found = _find(trajectory.attachments.filter(pk=pk), "No such attachment.")
    if found.withheld:
        raise Http404("The evidence bundle has only the digest of this file.")
    return found


def require_maintainer(person: Person) -> None:
    """Raise PermissionDenied for people who maintain nothing; for pages that cover several submissions."""
    if not may_create_submissions(person) and not submissions_maintained_by(person).exists():
        raise PermissionDenied("This is for maintainers.")


def benchmarks_for(person: Person) -> QuerySet[Benchmark]:
    """Return the benchmarks whose catalogue the person may read and edit; see `may_edit_catalogue`."""
    editable = Benchmark.objects.filter(bundled_as="")
    if may_create_submissions(person):
        return editable
    return editable.filter(submissions__in=submissions_maintained_by(person)).distinct()


def may_see_all_labels(person: Person, submission: Submission) -> bool:
    """Return whether the person may see every label: maintainers once the submission is frozen, and auditors."""
    role = role_in(person, submission)
    return role is Role.AUDITOR or (role is Role.MAINTAINER and submission.frozen_at is not None)


def labels_of(person: Person, submission: Submission) -> QuerySet[Label]:
    """Return all revisions of all labels of a submission; nothing for people who may not see them."""
    if not may_see_all_labels(person, submission):
        return Label.objects.none()
    return Label.objects.filter(assignment__trajectory__submission=submission)


def adjudications_of(person: Person, submission: Submission) -> QuerySet[Adjudication]:
    """Return all decided adjudications of a submission; nothing for people who may not see them."""
    if not may_see_all_labels(person, submission):
        return Adjudication.objects.none()
    return Adjudication.objects.filter(trajectory__submission=submission, decided_at__isnull=False)


def labels_by(person: Person) -> QuerySet[Label]:
    return Label.objects.filter(assignment__annotator=person)


def tokens_of(person: Person) -> QuerySet[ApiToken]:
    return ApiToken.objects.filter(person=person)


def token_for(person: Person, pk: int) -> ApiToken:
    return _find(tokens_of(person).filter(pk=pk), "No such token.")


def messages_of(person: Person) -> QuerySet[Message]:
    return Message.objects.filter(person=person)


def phrases_of(person: Person) -> QuerySet[Phrase]:
    return Phrase.objects.filter(person=person)


def phrase_for(person: Person, pk: int) -> Phrase:
    return _find(phrases_of(person).filter(pk=pk), "No such phrase.")


def flag_answers_of(person: Person, submission: Submission) -> QuerySet[FlagAnswer]:
    """Return the answers to the person's own flags: those that were written after the flag."""
    own = Flag.objects.filter(trajectory=OuterRef("trajectory"), annotator=person)
    own = own.filter(flagged_at__lte=OuterRef("answered_at"))
    return FlagAnswer.objects.filter(Exists(own), trajectory__submission=submission)


def reports_of(person: Person, submission: Submission) -> QuerySet[Report]:
    """Return all reports about a submission to its maintainers and auditors; nothing to other people."""
    if role_in(person, submission) not in READERS:
        return Report.objects.none()
    return Report.objects.filter(trajectory__submission=submission)


def report_for(person: Person, pk: int) -> Report:
    found = _find(Report.objects.select_related("trajectory__submission__agent").filter(pk=pk), "No such report.")
    require(person, found.trajectory.submission, Role.MAINTAINER)
    return found


def may_discuss(person: Person, trajectory: Trajectory) -> bool:
    """Return whether the person may read and write comments on a trajectory: members who may see its labels.

    Only while the submission is frozen, and annotators and adjudicators only after the maintainer opened the results.
    Nobody may in an audited submission, which is read-only.
    """
    submission = trajectory.submission
    if submission.frozen_at is None or submission.audited:
        return False
    # A superuser without a role would join by writing, which is an event in a frozen chain.
    if not Membership.objects.filter(person=person, submission=submission, deactivated_at__isnull=True).exists():
        return False
    if submission.opened_at is None and role_in(person, submission) is not Role.MAINTAINER:
        return False
    return may_see_labels(person, trajectory)


def comments_for(person: Person, trajectory: Trajectory) -> QuerySet[Comment] | None:
    """Return the comments on a trajectory; None for people who may not read them."""
    return Comment.objects.filter(trajectory=trajectory) if may_discuss(person, trajectory) else None


def comment_for(person: Person, pk: int) -> Comment:
    """Return a comment that the person may delete: their own, or any in a submission that they maintain."""
    found = _find(Comment.objects.filter(pk=pk).select_related("trajectory__submission"), "No such comment.")
    if found.author_id != person.pk and role_in(person, found.trajectory.submission) is not Role.MAINTAINER:
        raise Http404("No such comment.")
    return found


def questions_for(person: Person, submission: Submission) -> QuerySet[Question]:
    """Return the questions about the guidelines that the person may read.

    Maintainers read all; annotators and adjudicators their own, and what was answered to everybody.
    """
    questions = Question.objects.filter(submission=submission)
    role = role_in(person, submission)
    if role is Role.MAINTAINER:
        return questions
    if role in (Role.ANNOTATOR, Role.ADJUDICATOR):
        return questions.filter(Q(asker=person) | Q(answered_at__isnull=False, private=False))
    return questions.none()


def question_for(person: Person, pk: int) -> Question:
    found = _find(Question.objects.select_related("submission").filter(pk=pk), "No such question.")
    require(person, found.submission, Role.MAINTAINER)
    return found
