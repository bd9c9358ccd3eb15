"""Actions on entries: submit, check, ask, decide, appeal, correct, score again, remove.

Each action is one transaction: it locks the entry, checks state and person, writes, and appends an event to the chain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import Exists, OuterRef, Q
from django.http import Http404

from annotation import access, arrivals, blinding, clock
from annotation.models import Affiliation, Benchmark, Person, Submission, Task, Upload
from annotation.models import Membership as Member
from annotation.records import Problem
from annotation.workflow import Conflict, Incomplete
from annotation.workflow.erasing import lock_account
from annotation.workflow.guards import Role as Membership
from annotation.workflow.guards import join, require_reason
from evaluations.auditing.reference_data import encode_reference_data
from evaluations.auditing.results import find_related_bundles
from evaluations.models import (
    BundleUpload,
    Entry,
    EntryEvent,
    EntryVersion,
    Intake,
    Owner,
    Relationship,
    Takedown,
)
from evaluations.registry import chain, checks
from evaluations.registry.chain import Kind, Role, State
from evaluations.registry.checks import Check
from evaluations.registry.lookups import is_open, own_entries, owned_benchmark, owns
from evaluations.registry.publishing import publish
from evaluations.registry.scoring import Change
from evaluations.verifier.checking import Given
from evaluations.verifier.rules import PROTOCOL_DIGESTS
from evaluations.verifier.signature import BadKeys, parse_keys
from judges.working.call_log import make_storable

WAITING = (State.RECEIVED, State.QUERIED)
MOST_WAITING = 5  # entries of one person: each bundle is read whole
MOST_A_DAY = 20  # with those that were withdrawn
NOT_CHECKED = "The file of this entry is not checked yet. Wait for its checks."
RELATED = ("benchmark", "upload", "package", "submission", "audit__submission")
MOST_PROBLEMS = 5  # of an import, shown in the checks


class SentFile(NamedTuple):
    """An uploaded evidence bundle, or a package of trajectories without labels."""

    content: Any
    is_package: bool = False

    @property
    def kind(self) -> str:
        """Return the kind for the chain, without the file's name, which can be a person's."""
        return "trajectories" if self.is_package else "bundle"


# --- owners and intake -----------------------------------------------------------------------------------------------


def configurable_benchmark(person: Person, slug: str) -> Benchmark:
    """Return a benchmark for its owners; one without an intake also for maintainers of the instance."""
    fresh = Benchmark.objects.filter(slug=slug, bundled_as="", intake=None).first()
    if fresh is not None and access.may_create_submissions(person):
        return fresh
    return owned_benchmark(person, slug)


def add_owner(actor: Person, benchmark: Benchmark, person: Person) -> Owner:
    """Add an owner; adding the same person again changes nothing. Owners open audits, so they must be staff."""
    _require_owner(actor, benchmark)
    if not access.may_create_submissions(person):
        message = f"{person} cannot be an owner: owners open bundles, which only maintainers of the instance may do."
        raise Incomplete([Problem("owner_may_not_open_bundles", message, "person")])
    with transaction.atomic():
        made, _ = Owner.objects.get_or_create(
            benchmark=benchmark, person=person, defaults={"added_by": actor, "added_at": clock.now()}
        )
        for entry in Entry.objects.filter(benchmark=benchmark, audit__isnull=False).select_related(*RELATED):
            _admit_owners(entry)
    return made


def remove_owner(actor: Person, benchmark: Benchmark, person: Person) -> None:
    with transaction.atomic():
        Benchmark.objects.select_for_update(no_key=True).get(pk=benchmark.pk)
        _require_owner(actor, benchmark)
        owners = Owner.objects.filter(benchmark=benchmark)
        if not owners.exclude(person=person).filter(person__is_active=True).exists():
            raise Conflict("A benchmark with an intake needs an owner. Add another owner first.")
        owners.filter(person=person).delete()
        read = Member.objects.filter(person=person, role=Membership.AUDITOR, deactivated_at=None)
        audited = Entry.objects.filter(benchmark=benchmark, audit__isnull=False).values("audit__submission")
        read.filter(submission__in=audited).update(deactivated_at=clock.now())


def configure(actor: Person, benchmark: Benchmark, **values: Any) -> Intake:
    """Save the settings of the intake; the first save opens it, and its actor becomes the first owner.

    That is for maintainers of the instance. Incomplete for keys that cannot be read.
    """
    if (keys := values.get("trusted_keys", "")).strip():
        _parse_keys(keys)
    with transaction.atomic():
        Benchmark.objects.select_for_update(no_key=True).get(pk=benchmark.pk)
        if not Intake.objects.filter(benchmark=benchmark).exists():
            access.require_creator(actor)
            Owner.objects.get_or_create(
                benchmark=benchmark, person=actor, defaults={"added_by": actor, "added_at": clock.now()}
            )
        _require_owner(actor, benchmark)
        made, _ = Intake.objects.update_or_create(benchmark=benchmark, defaults=values)
    return made


def _parse_keys(text: str) -> None:
    try:
        parse_keys(text)
    except BadKeys as error:
        raise Incomplete([Problem("keys_unusable", f"The keys cannot be read: {error}", "trusted_keys")]) from error


def _require_owner(person: Person, benchmark: Benchmark) -> None:
    if not owns(person, benchmark):
        raise PermissionDenied("Only owners of the benchmark can do this.")


# --- finding ---------------------------------------------------------------------------------------------------------


def entry_for(person: Person, key: str) -> tuple[Entry, EntryEvent.Role]:
    """Return an entry and the person's role: owner or submitter. Http404 for everybody else."""
    rows = chain.with_state(Entry.objects.select_related(*RELATED))
    found = rows.filter(key=key).first()
    if found is not None and owns(person, found.benchmark):
        return found, Role.OWNER
    if found is None or found.submitted_by_id != person.pk:
        raise Http404("No such entry.")
    return found, Role.SUBMITTER


# --- submitting ------------------------------------------------------------------------------------------------------


def submit(
    person: Person, intake: Intake, description: Mapping[str, Any], file: SentFile, send: Callable[[str], Any]
) -> Entry:
    """Store a bundle or a package as a new entry; raises as `arrivals.receive`. Conflict if the intake is closed."""
    with transaction.atomic():
        lock_account(person)
        waiting = own_entries(person).filter(Q(deciding_kind__in=[str(Kind.SUBMITTED), str(Kind.ANSWERED)]))
        if waiting.count() >= MOST_WAITING:
            raise Conflict(f"{MOST_WAITING} of your entries wait for the owners. Withdraw one, or wait.")
        lately = Entry.objects.filter(submitted_by=person, submitted_at__gt=clock.now() - timedelta(days=1))
        if lately.count() >= MOST_A_DAY:
            raise Conflict(f"You have submitted {MOST_A_DAY} entries within a day. Try again tomorrow.")
        entry = Entry(benchmark=intake.benchmark, submitted_by=person, submitted_at=clock.now(), **description)
        _receive(entry, intake, file, send)
        entry.save(force_insert=True)
        _declare_interest(entry, file)
        chain.append(entry, Kind.SUBMITTED, Role.SUBMITTER, person, facts={"file": file.kind})
    return entry


def _declare_interest(entry: Entry, file: SentFile) -> None:
    """Declare the submitter's affiliation, unless the labels are by people who are independent of the agent."""
    independent = entry.relationship == Relationship.THIRD_PARTY and not file.is_package
    if not independent and not blinding.has_conflict(entry.submitted_by, entry.organisation):
        Affiliation.objects.create(person=entry.submitted_by, organisation=entry.organisation)


def _receive(entry: Entry, intake: Intake, file: SentFile, send: Callable[[str], Any]) -> None:
    """Store the file of an entry. An owner counts as its uploader, and gets the audit or the submission."""
    if not is_open(intake):
        raise Conflict("This benchmark takes no entries now.")
    owner = next(iter(_find_impartial_owners(entry, intake.benchmark)), None)
    if owner is None:
        raise Conflict("This benchmark has no impartial owner who could open the file. Ask its contact.")
    if file.is_package and not intake.takes_trajectories:
        raise Conflict("This benchmark takes no trajectories without labels. Send an evidence bundle.")
    entry.upload = entry.package = entry.audit = entry.submission = None
    if file.is_package:
        entry.package = Upload(uploaded_by=owner, benchmark=intake.benchmark, agent_name=entry.agent)
        entry.package.protocol_version = max(PROTOCOL_DIGESTS)
        arrivals.receive(entry.package, file.content, send)
        return
    keys = parse_keys(intake.trusted_keys) if intake.trusted_keys.strip() else None
    given = Given(keys=keys, tasks=list_tasks(intake.benchmark) or None)
    entry.upload = BundleUpload(uploaded_by=owner, given=encode_reference_data(given))
    arrivals.receive(entry.upload, file.content, send)


def list_tasks(benchmark: Benchmark) -> list[dict[str, Any]]:
    """Return the newest version of every task, as `coverage.tasks_finding` compares them with a bundle."""
    rows = Task.objects.filter(benchmark=benchmark).order_by("external_id", "version")
    newest = {row.external_id: row for row in rows}
    return [{"task_id": name, "confirmed_task": row.text} for name, row in newest.items()]


def answer(person: Person, entry: Entry, reason: str, file: SentFile | None, send: Callable[[str], Any]) -> None:
    """Answer a query, or replace a file that could not be opened. Another file is optional for a query."""
    with _change(entry) as (row, state):
        _require_submitter(person, row)
        if state not in WAITING or (row.arrival is not None and row.arrival.finished_at is None):
            raise Conflict("You can answer only after the file was checked and before the entry is decided.")
        facts = {}
        if file is not None:
            _receive(row, Intake.objects.get(benchmark=row.benchmark_id), file, send)
            row.save(update_fields=["upload", "package", "audit", "submission"])
            facts["file"] = file.kind
        said = require_reason(reason, "an answer")
        chain.append(row, Kind.ANSWERED, Role.SUBMITTER, person, reason=said, facts=facts)


def find_unchecked() -> list[str]:
    """Return the finished uploads of entries whose checks are not recorded."""
    checks_made = EntryEvent.objects.filter(entry=OuterRef("pk"), kind=Kind.CHECKED)
    found: list[str] = []
    for name in ("upload", "package"):
        checked = checks_made.filter(at__gte=OuterRef(f"{name}__finished_at"))
        done = Entry.objects.filter(~Exists(checked), **{f"{name}__finished_at__isnull": False})
        found += map(str, done.values_list(name, flat=True))
    return found


def sends_trajectories(entry: Entry) -> bool:
    """Return whether the newest file of an entry has trajectories without labels; its record may be deleted."""
    sent = entry.events.filter(kind__in=(Kind.SUBMITTED, Kind.ANSWERED)).order_by("-sequence")
    kinds = (event.facts["file"] for event in sent if "file" in event.facts)
    return next(kinds, "") == SentFile(None, is_package=True).kind


def _checked_upload(entry: Entry) -> str | None:
    last = entry.events.filter(kind=Kind.CHECKED).order_by("-sequence").first()
    return last.facts.get("upload") if last else None


def record_checks(upload_id: str) -> None:
    """Record the checks of an entry's finished upload. Other uploads and repeated calls change nothing."""
    found = Entry.objects.filter(Q(upload__pk=upload_id) | Q(package__pk=upload_id)).first()
    if found is None:
        return
    with _change(found) as (row, _):
        if row.arrival is None or row.arrival.finished_at is None or _checked_upload(row) == upload_id:
            return
        made = _check_bundle(row) if row.upload else _check_package(row)
        row.save(update_fields=["audit", "submission"])
        _record_organisation(row)
        facts = {"upload": upload_id} | make_storable(checks.as_facts(made))
        chain.append(row, Kind.CHECKED, Role.SYSTEM, facts=facts)


def _check_bundle(entry: Entry) -> list[Check]:
    assert entry.upload is not None  # noqa: S101 - the caller has checked it
    entry.audit = entry.upload.audit
    if entry.audit is None:
        return checks.check_refused(entry.upload.refused)
    _admit_owners(entry)
    return checks.check(entry, entry.audit)


def _check_package(entry: Entry) -> list[Check]:
    assert entry.package is not None  # noqa: S101 - the caller has checked it
    entry.submission = entry.package.submission
    if entry.submission is None:
        return checks.check_refused(_describe_report(entry.package.report or {}))
    return checks.check_imported(entry, entry.submission)


def _describe_report(report: Mapping[str, Any]) -> str:
    """Return the first problems of an import report in one text."""
    rejected = report.get("rejected", [])
    found = [f"{each['task_id']}: {one['message']}" for each in rejected for one in each["problems"]]
    more = f" And {len(found) - MOST_PROBLEMS} more." if len(found) > MOST_PROBLEMS else ""
    return "Nothing was imported. " + " ".join(found[:MOST_PROBLEMS]) + more


def _admit_owners(entry: Entry) -> None:
    """Let all impartial owners read the audit."""
    assert entry.audit is not None  # noqa: S101 - the caller has checked it
    submission = entry.audit.submission
    present = {each.person_id: each for each in submission.memberships.all()}
    for person in _find_impartial_owners(entry, entry.benchmark):
        member = present.get(person.pk)
        if member is not None and member.deactivated_at is not None:
            member.deactivated_at = None
            member.save(update_fields=["deactivated_at"])
        elif member is None and not blinding.is_hidden(person, submission):
            join(submission, person, Membership.AUDITOR)


def _find_impartial_owners(entry: Entry, benchmark: Benchmark) -> list[Person]:
    """Return the owners who may audit an entry: neither its submitter nor of its organisation."""
    owners = Owner.objects.filter(benchmark=benchmark, person__is_active=True).exclude(person=entry.submitted_by_id)
    people = [owner.person for owner in owners.select_related("person")]
    return [person for person in people if not blinding.has_conflict(person, entry.organisation)]


def _record_organisation(entry: Entry) -> None:
    """Keep people of the agent's organisation from labelling its trajectories, also in a sample."""
    if entry.reviewed is not None:
        both = Q(pk=entry.reviewed.pk) | Q(sample_of=entry.reviewed.pk)
        Submission.objects.filter(both).update(organisation=entry.organisation)


# --- deciding --------------------------------------------------------------------------------------------------------


def query(person: Person, entry: Entry, reason: str) -> None:
    with _change(entry) as (row, state):
        _require_decidable(person, row, state, WAITING)
        chain.append(row, Kind.QUERIED, Role.OWNER, person, reason=require_reason(reason, "a query"))


def accept(person: Person, entry: Entry, reason: str) -> EntryVersion:
    """Accept an entry, which publishes its first version after the embargo."""
    with _change(entry) as (row, state):
        _require_decidable(person, row, state, (*WAITING, State.REJECTED))
        if row.reviewed is not None and row.reviewed.frozen_at is None:
            says = "The labels of this entry could still change. Freeze its submission first."
            raise Conflict(says, "entry_not_frozen")
        _require_no_open_sample(row)
        return publish(row, Kind.ACCEPTED, person, require_reason(reason, "accepting"))


def reject(person: Person, entry: Entry, reason: str) -> None:
    with _change(entry) as (row, state):
        _require_decidable(person, row, state, WAITING)
        chain.append(row, Kind.REJECTED, Role.OWNER, person, reason=require_reason(reason, "rejecting"))


def withdraw(person: Person, entry: Entry, reason: str) -> None:
    """Withdraw an entry that is not decided; a published one is removed by the owners, with a reason."""
    with _change(entry) as (row, state):
        _require_submitter(person, row)
        _require_state(state, WAITING)
        chain.append(row, Kind.WITHDRAWN, Role.SUBMITTER, person, reason=require_reason(reason, "withdrawing"))


def appeal(person: Person, entry: Entry, reason: str) -> None:
    with _change(entry) as (row, state):
        _require_submitter(person, row)
        _require_state(state, (State.ACCEPTED, State.REJECTED, State.REMOVED))
        if is_appealed(row):
            raise Conflict("The owners have not decided your last appeal yet.")
        chain.append(row, Kind.APPEALED, Role.SUBMITTER, person, reason=require_reason(reason, "an appeal"))


def is_appealed(entry: Entry) -> bool:
    """Return whether an appeal waits for a decision."""
    last = entry.events.filter(kind__in=(Kind.APPEALED, Kind.APPEAL_DECIDED)).order_by("-sequence").first()
    return last is not None and last.kind == Kind.APPEALED


def decide_appeal(person: Person, entry: Entry, reason: str, *, upheld: bool) -> None:
    """Decide an appeal. Its consequences, such as another score, are separate events."""
    with _change(entry) as (row, _):
        _require_impartial(person, row)
        if not is_appealed(row):
            raise Conflict("There is no appeal to decide.")
        said = require_reason(reason, "deciding an appeal")
        chain.append(row, Kind.APPEAL_DECIDED, Role.OWNER, person, reason=said, facts={"upheld": upheld})


def rescore(person: Person, entry: Entry, changes: Mapping[str, Change], reason: str) -> EntryVersion:
    """Publish another version in which some tasks have another verdict or are left out.

    Changes of earlier versions stay unless they are changed again. Incomplete for an unknown task.
    """
    with _change(entry) as (row, state):
        _require_decidable(person, row, state, (State.ACCEPTED,))
        _require_no_open_sample(row)
        return publish(row, Kind.RESCORED, person, require_reason(reason, "scoring again"), changes)


def remove(person: Person, entry: Entry, reason: str) -> None:
    """Take an entry off the leaderboard; its page, figures and chain stay, with the reason."""
    with _change(entry) as (row, state):
        _require_impartial(person, row)
        _require_state(state, (State.ACCEPTED,))
        chain.append(row, Kind.REMOVED, Role.OWNER, person, reason=require_reason(reason, "removing"))


def restore(person: Person, entry: Entry, reason: str) -> None:
    with _change(entry) as (row, state):
        _require_decidable(person, row, state, (State.REMOVED,))
        chain.append(row, Kind.RESTORED, Role.OWNER, person, reason=require_reason(reason, "restoring"))


def correct(person: Person, entry: Entry, description: Mapping[str, Any], reason: str) -> None:
    """Correct the description; the event states the earlier values, without the contact."""
    with _change(entry) as (row, _):
        _require_impartial(person, row)
        before = {name: str(getattr(row, name) or "") for name in description if name != "contact"}
        for name, value in description.items():
            setattr(row, name, value)
        _require_impartial(person, row)
        row.save(update_fields=list(description))
        _record_organisation(row)
        changed = {name: old for name, old in before.items() if old != str(getattr(row, name) or "")}
        said = require_reason(reason, "a correction")
        chain.append(row, Kind.CORRECTED, Role.OWNER, person, reason=said, facts={"before": changed})


def change_embargo(person: Person, entry: Entry, until: datetime | None, reason: str) -> None:
    """Set or end the embargo; what was public stays public."""
    with _change(entry) as (row, state):
        _require_impartial(person, row)
        now = clock.now()
        if state in (State.ACCEPTED, State.REMOVED) and (row.embargo_until is None or row.embargo_until <= now):
            raise Conflict("This entry is public already, so it cannot be put under an embargo.")
        row.embargo_until = until
        row.save(update_fields=["embargo_until"])
        said = require_reason(reason, "changing an embargo")
        chain.append(row, Kind.EMBARGO_CHANGED, Role.OWNER, person, reason=said)


def take_down(person: Person, entry: Entry, reason: str, sequence: int | None = None) -> Takedown:
    """Stop showing the text of an event, or the description of the entry; the chain keeps its digest.

    The event that records it has {"event": ``sequence``} as its facts.
    """
    with _change(entry) as (row, _):
        _require_impartial(person, row)
        event = None if sequence is None else row.events.filter(sequence=sequence).first()
        if sequence is not None and event is None:
            raise Incomplete([Problem("event_unknown", f"This entry has no event {sequence}.", "sequence")])
        said = require_reason(reason, "taking a text down")
        made, new = Takedown.objects.get_or_create(
            entry=row, event=event, defaults={"reason": said[:500], "decided_by": person, "decided_at": clock.now()}
        )
        if new:
            chain.append(row, Kind.TAKEN_DOWN, Role.OWNER, person, reason=made.reason, facts={"event": sequence})
        return made


# --- guards ----------------------------------------------------------------------------------------------------------


@contextmanager
def _change(entry: Entry) -> Iterator[tuple[Entry, State]]:
    with transaction.atomic():
        rows = Entry.objects.select_for_update(no_key=True, of=("self",))
        row = rows.select_related(*RELATED).get(pk=entry.pk)
        yield row, chain.state_of(row)


def _require_submitter(person: Person, entry: Entry) -> None:
    if entry.submitted_by_id != person.pk:
        raise PermissionDenied("Only the person who submitted the entry can do this.")


def _require_state(state: State, allowed: tuple[State, ...]) -> None:
    if state not in allowed:
        raise Conflict(f"The entry is {state.value}, so this action is not possible.", "entry_state")


def _require_impartial(person: Person, entry: Entry) -> None:
    """Refuse everybody but owners, and owners who submitted the entry or are affiliated with its organisation."""
    _require_owner(person, entry.benchmark)
    if entry.submitted_by_id == person.pk:
        raise PermissionDenied("You submitted this entry, so another owner has to decide about it.")
    if blinding.has_conflict(person, entry.organisation):
        says = f"You declare an affiliation with {entry.organisation}. Another owner has to decide about this entry."
        raise PermissionDenied(says)


def _require_no_open_sample(entry: Entry) -> None:
    """Refuse to publish verdicts while people label a sample of the same trajectories blind."""
    if entry.audit is None:
        return
    related = [entry.audit, *find_related_bundles(entry.audit).others]
    if any(each.sample is not None and each.sample.frozen_at is None for each in related):
        says = "People still label a sample of it blind, and would see these verdicts. Freeze the sample first."
        raise Conflict(says, "sample_open")


def _require_decidable(person: Person, entry: Entry, state: State, allowed: tuple[State, ...]) -> None:
    _require_impartial(person, entry)
    _require_state(state, allowed)
    if entry.reviewed is None:
        opened = entry.arrival is None or entry.arrival.finished_at is not None
        raise Conflict(
            "The file of this entry could not be opened. Ask the submitter for another one." if opened else NOT_CHECKED,
            "entry_unchecked",
        )
