"""All stored data of a person, as one document.

It contains every row that refers to the person: those of `SAID_HERE` as the functions below return them, and those of
all other models, also in the apps above this one, with their own columns (`_elsewhere`). docs/privacy.md lists all
places with data about people. `workflow.erase` erases a person.
"""

from __future__ import annotations

from typing import Any

from allauth.mfa.models import Authenticator
from django.contrib.admin.models import LogEntry
from django.db.models import Model, QuerySet

from annotation import access, sign_ins
from annotation.models import (
    Activity,
    Adjudication,
    Affiliation,
    Assignment,
    Comment,
    Draft,
    Event,
    Flag,
    FlagAnswer,
    InformedRevision,
    KeyPoint,
    KnownAnswer,
    MailOptOut,
    Membership,
    Person,
    PracticeAnswer,
    Question,
    Redaction,
    Release,
    Reopening,
    Report,
    ResumableUpload,
    Submission,
    Upload,
    Webhook,
)
from annotation.models.events import instant
from annotation.models.people import references, referring
from annotation.workflow.facts import adjudication_facts, label_facts
from annotation.workflow.passwords import changes_by_others
from annotation.workflow.training import KNOWN_FIELDS

FORMAT = "webverdict-person-1"

Entry = dict[str, Any]

# Columns that refer to a person and have a function here, which leaves out data about other people.
SAID_HERE = frozenset(
    [
        "account.EmailAddress.user",  # this program writes none
        "admin.LogEntry.user",
        "annotation.Activity.person",
        "annotation.Adjudication.adjudicator",
        "annotation.Affiliation.person",
        "annotation.ApiToken.person",
        "annotation.Assignment.annotator",
        "annotation.Comment.author",
        "annotation.Draft.author",
        "annotation.Event.actor",
        "annotation.Flag.annotator",
        "annotation.FlagAnswer.answered_by",
        "annotation.KeyPoint.proposed_by",
        "annotation.KnownAnswer.author",
        "annotation.MailOptOut.person",
        "annotation.Membership.person",
        "annotation.Message.person",
        "annotation.Phrase.person",
        "annotation.PracticeAnswer.person",
        "annotation.Question.answered_by",
        "annotation.Question.asker",
        "annotation.Redaction.redacted_by",
        "annotation.Release.annotator",
        "annotation.Reopening.reopened_by",
        "annotation.Report.reporter",
        "annotation.Report.settled_by",
        "annotation.ResumableUpload.uploaded_by",
        "annotation.Upload.uploaded_by",
        "annotation.Webhook.owner",  # whose column `sealed` has the secret
        "mfa.Authenticator.user",  # whose column `data` has secrets
    ]
)
JSON = (str, int, float, bool, list, dict, type(None))  # types that JSON can represent
SESSION_FIELDS = ("device", "signed_in_at", "used_at")
TOKEN_FIELDS = ("name", "scope", "created_at", "lifetime_days", "last_used_at", "revoked_at")
MESSAGE_FIELDS = ("kind", "subject", "text", "link", "address", "created_at", "sent_at", "attempts", "error")
OF_MACHINES = frozenset(["estimate", "findings", "stopped"])  # columns with results of the program


def data_of(person: Person) -> dict[str, Any]:
    """Return all stored data of a person for JSON: account, actions and texts, without data of other people.

    Times are UTC, ISO 8601. Trajectories are named by submission number and task id. Numbers of rows and slots are
    left out, because they reveal how many people came before; so are answers and decisions of other people.
    """
    of_submission = {"benchmark": "submission__benchmark__slug", "agent": "submission__agent__name"}
    proposals = {"benchmark": "task__benchmark__slug", "task_id": "task__external_id"}
    answer = (*KNOWN_FIELDS, "findings", "explanation", "saved_at")
    return {
        "format": FORMAT,
        "account": _account(person),
        "memberships": _rows(
            Membership.objects.filter(person=person).order_by("joined_at", "pk"),
            *("submission", "role", "pseudonym", "joined_at", "deactivated_at"),
            **of_submission,
        ),
        "labels": _labels(person),
        "informed": _informed(person),
        "adjudications": _adjudications(person),
        "drafts": _of(Draft.objects.filter(author=person), "content", "saved_at"),
        "claims": _of(Assignment.objects.filter(annotator=person), "claimed_at", "lease_expires_at", "submit_at"),
        "flags": _of(Flag.objects.filter(annotator=person), "note", "flagged_at"),
        "flag_answers": _of(FlagAnswer.objects.filter(answered_by=person), "text", "answered_at"),
        "reports": _of(Report.objects.filter(reporter=person), "kind", "note", "reported_at"),
        "answers": _of(Report.objects.filter(settled_by=person), "kind", "answer", "settled_at"),
        "comments": _of(Comment.objects.filter(author=person), "step", "text", "written_at"),
        # Without the answers, which are another person's.
        "questions": _rows(Question.objects.filter(asker=person), "submission", "text", "asked_at"),
        "guideline_answers": _rows(
            Question.objects.filter(answered_by=person), "submission", "answer", "answered_at", "private"
        ),
        "releases": _of(Release.objects.filter(annotator=person), "reason", "released_at"),
        "reopenings": _of(Reopening.objects.filter(reopened_by=person), "reason", "reopened_at"),
        "activity": _of(Activity.objects.filter(person=person), "seconds", "steps", "last_at"),
        "practice": _of(
            PracticeAnswer.objects.filter(person=person), "round", "content", "verdict", "right", "answered_at"
        ),
        "known_answers": _of(KnownAnswer.objects.filter(author=person), *answer),
        # Without their outcome, which a maintainer decided.
        "proposed_key_points": _rows(KeyPoint.objects.filter(proposed_by=person).order_by("pk"), "text", **proposals),
        "redactions": _rows(
            Redaction.objects.filter(redacted_by=person).order_by("redacted_at", "pk"),
            *("submission", "original", "boxes", "reason", "redacted_at"),
        ),
        "affiliations": _rows(
            Affiliation.objects.filter(person=person).order_by("pk"), "organisation", "declared_at", "ended_at"
        ),
        "phrases": _rows(access.phrases_of(person).order_by("pk"), "text", "made_at"),
        "messages": _rows(access.messages_of(person), *MESSAGE_FIELDS),
        "no_mail_about": _rows(MailOptOut.objects.filter(person=person).order_by("group"), "group"),
        "tokens": _rows(access.tokens_of(person).order_by("pk"), *TOKEN_FIELDS),
        "uploads": _rows(
            Upload.objects.filter(uploaded_by=person).order_by("pk"),
            *("agent_name", "file_name", "created_at", "finished_at"),
        ),
        "webhooks": _rows(
            Webhook.objects.filter(owner=person).order_by("created_at", "pk"),
            *("submission", "url", "events", "created_at", "disabled_at", "reason"),
            benchmark="benchmark__slug",
        ),
        "resumable_uploads": _rows(
            ResumableUpload.objects.filter(uploaded_by=person).order_by("pk"),
            *("agent_name", "file_name", "length", "offset", "created_at", "expires_at"),
        ),
        "elsewhere": _elsewhere(person),
        "administration": _administration(person),
        # Without the payload, which may be about other people.
        "acts": _rows(Event.objects.filter(actor=person).order_by("at", "pk"), "submission", "kind", "at"),
        "sign_ins": _sign_ins(person),
    }


def _encode(value: Any) -> Any:
    return instant(value) if _is_time(value) else value


def _rows(rows: QuerySet, *fields: str, **paths: str) -> list[Entry]:
    """Return columns of the rows; ``paths`` are columns by their name in the document."""
    columns = paths | {name: name for name in fields}
    found = rows.values(*columns.values())
    return [{name: _encode(row[column]) for name, column in columns.items()} for row in found]


def _of(rows: QuerySet, *fields: str) -> list[Entry]:
    """Return `_rows` for rows that belong to a trajectory."""
    return _rows(
        rows.order_by("pk"), *fields, submission="trajectory__submission", task_id="trajectory__task__external_id"
    )


def _account(person: Person) -> Entry:
    plain = ("username", "first_name", "last_name", "email", "is_active", "is_staff", "is_superuser")
    times = ("date_joined", "last_login", "erased_at")
    rights = person.user_permissions.order_by("pk").values_list("codename", flat=True)
    return {name: _encode(getattr(person, name)) for name in plain + times} | {
        "groups": list(person.groups.order_by("name").values_list("name", flat=True)),
        "rights": list(rights),
    }


def _labels(person: Person) -> list[Entry]:
    rows = access.labels_by(person).select_related(
        "assignment__trajectory__task", "assignment__trajectory__submission", "attempt"
    )
    rows = rows.defer("assignment__trajectory__submission__import_report")
    entries = []
    for row in rows.prefetch_related("findings").order_by("created_at", "pk"):
        facts = {name: value for name, value in label_facts(row).items() if name != "slot"}
        claimed = instant(row.assignment.claimed_at)
        entries.append({"submission": row.assignment.trajectory.submission_id, "claimed_at": claimed} | facts)
    return entries


def _informed(person: Person) -> list[Entry]:
    """Return their opinions after seeing judges' evidence, and the verdicts they were shown."""
    of = "label__assignment__trajectory"
    entries = _rows(
        InformedRevision.objects.filter(label__assignment__annotator=person).order_by("shown_at", "pk"),
        *("shown_at", "verdict", "reason", "decided_at"),
        submission=f"{of}__submission",
        task_id=f"{of}__task__external_id",
        shown="judgments",
    )
    for entry in entries:
        entry["shown"] = [{name: shown.get(name) for name in ("judge", "verdict")} for shown in entry["shown"]]
    return entries


def _adjudications(person: Person) -> list[Entry]:
    rows = Adjudication.objects.filter(adjudicator=person).select_related("trajectory__task")
    entries = []
    for row in rows.prefetch_related("findings").order_by("opened_at", "pk"):
        place = {"submission": row.trajectory.submission_id, "task_id": row.trajectory.task.external_id}
        facts = adjudication_facts(row) if row.decided_at else {}
        entries.append(place | {"opened_at": instant(row.opened_at), "decided_at": instant(row.decided_at)} | facts)
    return entries


def _elsewhere(person: Person) -> dict[str, list[Entry]]:
    """Return all other rows that refer to the person, by model and column, such as ``judges.Judge.created_by``."""
    further = {name: field for name, field in references().items() if name not in SAID_HERE}
    found = {name: [_columns(row) for row in referring(field, person)] for name, field in further.items()}
    return {name: rows for name, rows in found.items() if rows}


def _columns(row: Model) -> Entry:
    """Return a row without its primary key and people; related objects by name, submissions by number."""
    entry = {}
    for field in row._meta.concrete_fields:
        if field.primary_key or field.related_model is Person or field.name in OF_MACHINES:
            continue
        value = _encode(getattr(row, field.name))
        value = value.pk if isinstance(value, Submission) else value
        entry[field.name] = value if isinstance(value, JSON) else str(value)
    return entry


def _is_time(value: Any) -> bool:
    return hasattr(value, "astimezone")


def _administration(person: Person) -> list[Entry]:
    """Return times and kinds of their changes in the administration; the changed objects may be other people's."""
    rows = LogEntry.objects.filter(user=person).order_by("action_time", "pk")
    entries = _rows(rows, at="action_time", changed="content_type__model", how="action_flag")
    for entry in entries:
        entry["how"] = {1: "added", 2: "changed", 3: "deleted"}.get(entry["how"], str(entry["how"]))
    return entries


def _sign_ins(person: Person) -> Entry:
    rows = sign_ins.sessions_of(person.pk)
    held = [row.get_decoded() for row in rows]
    return {
        "signed_in_until": instant(max((row.expire_date for row in rows), default=None)),
        "sessions": [{name: each[name] for name in SESSION_FIELDS} for each in held if "device" in each],
        "password_set_by_others": [
            {"at": instant(event.at), "way": event.payload["way"]} for event in changes_by_others(person.pk)
        ],
        "second_factors": _rows(
            Authenticator.objects.filter(user=person).order_by("pk"), "type", "created_at", "last_used_at"
        ),
        "failed": [
            {"at": instant(row.attempt_time), "address": row.ip_address, "browser": row.user_agent}
            for row in sign_ins.attempts_of(person).order_by("attempt_time")
        ],
    }
