"""Invite the people of a CSV file: all of them, or nobody. The same file again changes nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from django.contrib.auth.validators import UnicodeUsernameValidator
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.db.models.functions import Lower

from annotation import access, mail, workflow
from annotation.formats.people_csv import PeopleReader, PersonLine
from annotation.formats.printable import printable
from annotation.formats.spreadsheets import csv_text
from annotation.models import Membership, Person
from annotation.records import Problem
from annotation.workflow import Conflict, passwords

# Without auditors, who read only submissions from evidence bundles: see `Membership.Role`.
GIVEN_ROLES = [pair for pair in Membership.Role.choices if pair[0] != Membership.Role.AUDITOR]
AT_ONCE = "Somebody else just created one of these accounts. Nobody was invited. Upload the file again."


@dataclass(frozen=True, slots=True)
class Outcome:
    """The membership of a line; ``done`` is "invited" (a new account), "added" (an existing one) or "unchanged"."""

    line: int
    member: Membership
    done: str


@dataclass(slots=True)
class Report:
    """``outcomes`` in the order of the lines; none if there are problems."""

    problems: list[Problem] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)
    outcomes: list[Outcome] = field(default_factory=list)

    @property
    def summary(self) -> str:
        counts = Counter(outcome.done for outcome in self.outcomes)
        return f"{counts['invited']} invited, {counts['added']} added to a submission, {counts['unchanged']} unchanged."

    @property
    def without_mail(self) -> list[Person]:
        """Return the people who need a link: they have not joined, and get no e-mail."""
        people = {outcome.member.person_id: outcome.member.person for outcome in self.outcomes}
        return [each for each in people.values() if not passwords.has_joined(each) and not mail.can_mail(each)]


def invite_all(actor: Person, data: bytes, name: str, *, dry_run: bool = False) -> Report:
    """Create accounts and memberships, and write the invitations; nothing of it if a line has a problem.

    Raises PermissionDenied, and Conflict if somebody creates one of the accounts meanwhile.
    """
    access.require_creator(actor)
    file = PeopleReader(data, name)
    _check_fields(file)
    try:
        with transaction.atomic():
            accounts, created = _find_accounts(file)
            outcomes = _add_members(actor, file, accounts, created)
            if file.problems or dry_run:
                transaction.set_rollback(True)
            else:
                _write_invitations(outcomes)
    except IntegrityError as error:
        raise Conflict(AT_ONCE) from error
    warnings = [warning for _, warning in file.warnings]
    return Report(file.problems, warnings, [] if file.problems else outcomes)


def _check_fields(file: PeopleReader) -> None:
    """Remove the lines whose name, address or role cannot be used."""
    roles, usable = [role for role, _ in GIVEN_ROLES], []
    for line in file.lines:
        named, reached = _is_valid(UnicodeUsernameValidator(), line.username), _is_valid(validate_email, line.email)
        if not named:
            says = f"name is '{printable(line.username)}'; use only letters, digits, spaces and @ . + - _"
            file.refuse("name_invalid", line.line, says)
        if not reached:
            file.refuse("email_invalid", line.line, f"e-mail is '{printable(line.email)}', not an address")
        if line.role not in roles:
            says = f"role is '{printable(line.role)}'; enter {', '.join(roles[:-1])} or {roles[-1]}"
            file.refuse("role_unknown", line.line, says)
        if named and reached and line.role in roles:
            usable.append(line)
    file.lines = usable


def _is_valid(validate: Any, value: str) -> bool:
    try:
        validate(value)
    except ValidationError:
        return False
    return True


def _find_accounts(file: PeopleReader) -> tuple[dict[str, Person], set[int]]:
    """Return the account of each usable address (in lower case), and the keys of those created now.

    An account is used only if its name is given too: everybody can change their own address.
    """
    wanted = {line.email.lower(): line for line in reversed(file.lines)}
    people: QuerySet[Any] = Person.objects.annotate(address=Lower("email"), lowered=Lower("username")).order_by("pk")
    by_address: dict[str, list[Person]] = {}
    for person in people.filter(address__in=wanted, erased_at=None, stand_in=False):
        by_address.setdefault(person.address, []).append(person)
    names = {line.username.lower() for line in file.lines}
    taken = set(people.filter(lowered__in=names).values_list("lowered", flat=True))
    found: dict[str, Person] = {}
    new: list[PersonLine] = []
    for address, line in wanted.items():
        same = by_address.get(address, [])
        person = next((each for each in same if each.username.lower() == line.username.lower()), None)
        if person is not None and person.is_active:
            found[address] = person
        elif person is not None:
            file.refuse("account_closed", line.line, f"the account {person} is closed; ask an operator to reopen it")
        elif same:
            says = f"the account {same[0]} has this e-mail address; enter its name, or correct the address"
            file.refuse("address_taken", line.line, says)
        elif line.username.lower() in taken:
            says = f"{line.username} has another address or none; add this account under People, or choose another name"
            file.refuse("name_taken", line.line, says)
        else:
            new.append(line)
    # Accounts before submissions, and in this order, as everywhere: two uploads at once do not deadlock.
    for line in sorted(new, key=lambda line: line.username):
        found[line.email.lower()] = Person.objects.create_user(line.username, line.email)
    return found, {found[line.email.lower()].pk for line in new}


def _add_members(actor: Person, file: PeopleReader, accounts: dict[str, Person], created: set[int]) -> list[Outcome]:
    """Give each person the role of their lines; the submissions are locked in the order of their numbers."""
    maintained = access.submissions_maintained_by(actor).in_bulk({line.submission for line in file.lines})
    existing = {
        (member.submission_id, member.person_id): member
        for member in Membership.objects.filter(submission__in=maintained, person__in=accounts.values())
    }
    outcomes = []
    for line in sorted(file.lines, key=lambda line: (line.submission, line.line)):
        person = accounts.get(line.email.lower())
        submission = maintained.get(line.submission)
        if submission is None:
            says = f"submission {line.submission} does not exist, or you do not maintain it"
            file.refuse("submission_unknown", line.line, says)
        if person is None or submission is None:
            continue
        member, done = existing.get((submission.pk, person.pk)), "unchanged"
        if member is not None and member.deactivated_at is not None:
            says = f"{person} was deactivated in this submission; reactivate them under People, or remove the line"
            file.refuse("member_deactivated", line.line, says)
            continue
        if member is None or member.role != line.role:
            try:
                member = workflow.add_member(actor, submission, person, Membership.Role(line.role))
            except Conflict as error:
                says = f"{person} cannot be added: {str(error).removesuffix('.')}"
                file.refuse("member_refused", line.line, says)
                continue
            done = "invited" if person.pk in created else "added"
        member.person, member.submission = person, submission
        outcomes.append(Outcome(line.line, member, done))
    return sorted(outcomes, key=lambda outcome: outcome.line)


def _write_invitations(outcomes: list[Outcome]) -> None:
    """Write one message to each person with a new role."""
    parts: dict[Person, list[Membership]] = {}
    for outcome in outcomes:
        if outcome.done != "unchanged":
            parts.setdefault(outcome.member.person, []).append(outcome.member)
    for person, members in parts.items():
        mail.write_invitation(person, *members)


def find_invited(actor: Person, people: Iterable[int]) -> QuerySet[Person]:
    """Return those of ``people`` for whom ``actor`` may create a join link: members of submissions they maintain."""
    maintained = access.submissions_maintained_by(actor)
    members = Membership.objects.filter(submission__in=maintained.order_by().values("pk"), deactivated_at=None)
    found = Person.objects.filter(pk__in=people).filter(pk__in=members.values("person")).order_by("username")
    joined = [each.pk for each in found if passwords.has_joined(each) or not passwords.may_create_link(actor, each)]
    return found.exclude(pk__in=joined)


def create_links(actor: Person, people: Iterable[Person], site: str) -> list[tuple[Person, str]]:
    """Return each person with a link, which works once, for PASSWORD_RESET_TIMEOUT."""
    return [(each, site + passwords.create_link_path(actor, each)) for each in people]


def write_links(actor: Person, people: Iterable[Person], site: str) -> str:
    """Return the links of `create_links` as CSV."""
    rows = [[each.username, each.email, link] for each, link in create_links(actor, people, site)]
    return csv_text([["name", "e-mail", "link"], *rows])
