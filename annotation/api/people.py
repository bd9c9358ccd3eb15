"""People of a submission: add, invite, remind, deactivate and reactivate them. Tokens need the scope admin."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.validators import UnicodeUsernameValidator
from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.parsers import MultiPartParser
from rest_framework.response import Response

from annotation import access, invitations, mail, operations
from annotation.access import Role
from annotation.api.base import Request, View
from annotation.api.serializers import MemberSerializer, ProblemSerializer
from annotation.api_tokens import Scope
from annotation.forms import check_people_file_size
from annotation.invitations import GIVEN_ROLES
from annotation.models import Membership, Person
from annotation.problem_details import Refused
from annotation.workflow import Conflict, passwords

REVIEWERS = [pair for pair in GIVEN_ROLES if pair[0] != Role.MAINTAINER]


class NewInvitationSerializer(serializers.Serializer):
    username = serializers.CharField(max_length=150, validators=[UnicodeUsernameValidator()])
    email = serializers.EmailField(max_length=254, required=False, default="", allow_blank=True)
    role = serializers.ChoiceField(choices=GIVEN_ROLES)

    def validate_username(self, value: str) -> str:
        name = str(Person.normalize_username(value))
        if Person.objects.filter(username__iexact=name).exists():
            raise serializers.ValidationError("An account with this name exists; add that person as a member instead.")
        return name


class InvitationSerializer(serializers.Serializer):
    """An invited person. ``link`` works once, and only this response has it; ``mailed``: they also get it by e-mail."""

    username = serializers.CharField()
    pseudonym = serializers.CharField()
    link = serializers.CharField()
    mailed = serializers.BooleanField()


def _describe(request: Request, member: Membership, path: str, mailed: bool) -> dict[str, Any]:
    link = request.build_absolute_uri(path)
    return {"username": member.person.username, "pseudonym": member.pseudonym, "link": link, "mailed": mailed}


class Invitations(View):
    """Invitations to a submission."""

    scopes = {"POST": Scope.ADMIN}
    tag = "People"
    operation_ids = {"POST": "invite_person"}
    serializer_class = NewInvitationSerializer

    @extend_schema(request=NewInvitationSerializer, responses={201: InvitationSerializer})
    def post(self, request: Request, pk: int) -> Response:
        """Create an account and its role, and return the link to join; for people who may create submissions."""
        found = access.submission_for(request.user, pk, Role.MAINTAINER)
        access.require_creator(request.user)
        member, path = operations.invite(request.user, found, **self.given())
        mailed = mail.can_mail(member.person)
        return Response(_describe(request, member, path, mailed), status.HTTP_201_CREATED)


class OfMember(View):
    """A view of one member, found by the pseudonym, for maintainers."""

    scopes = {"POST": Scope.ADMIN}
    tag = "People"
    serializer_class: Any = MemberSerializer

    def member(self) -> Membership:
        submission = access.submission_for(self.request.user, self.kwargs["pk"], Role.MAINTAINER)
        found = submission.memberships.filter(pseudonym=self.kwargs["pseudonym"]).select_related("person").first()
        if found is None:
            raise Http404("No such member.")
        found.submission = submission
        return found


class InviteAgain(OfMember):
    """Another invitation of a member."""

    operation_ids = {"POST": "invite_person_again"}
    serializer_class = InvitationSerializer

    @extend_schema(request=None, responses={200: InvitationSerializer})
    def post(self, request: Request, pk: int, pseudonym: str) -> Response:
        """Return a new link for a member who has not joined. Links for forgotten passwords are made on the page."""
        member = self.member()
        access.require_creator(request.user)
        if passwords.has_joined(member.person):
            raise Conflict("This person has joined. A link for a new password is made on the page People.")
        return Response(_describe(request, member, *operations.invite_again(request.user, member.person)))


class Deactivate(OfMember):
    """Deactivate a member."""

    operation_ids = {"POST": "deactivate_member"}

    @extend_schema(request=None, responses={200: MemberSerializer})
    def post(self, request: Request, pk: int, pseudonym: str) -> Response:
        """Deactivate a member. Their labels stay, and what they have reserved returns to the queue."""
        member = self.member()
        made = operations.deactivate(request.user, member.submission, member.person)
        return Response(MemberSerializer(made).data)


class Reactivate(OfMember):
    """Reactivate a member."""

    operation_ids = {"POST": "reactivate_member"}

    @extend_schema(request=None, responses={200: MemberSerializer})
    def post(self, request: Request, pk: int, pseudonym: str) -> Response:
        """Let a deactivated person take part again, in the same role."""
        return Response(MemberSerializer(operations.reactivate(request.user, self.member())).data)


class RoleSerializer(serializers.Serializer):
    role = serializers.ChoiceField(choices=REVIEWERS)


class RemindedSerializer(serializers.Serializer):
    """``others`` were not reminded: no work, no address, no wish, or active or reminded in the last day."""

    reminded = serializers.IntegerField()
    others = serializers.IntegerField()


class Reminders(View):
    """Reminders of a submission."""

    scopes = {"POST": Scope.ADMIN}
    tag = "People"
    operation_ids = {"POST": "remind_members"}
    serializer_class = RoleSerializer

    @extend_schema(request=RoleSerializer, responses={200: RemindedSerializer})
    def post(self, request: Request, pk: int) -> Response:
        """Remind the annotators or the adjudicators by e-mail of everything that waits for them."""
        found = access.submission_for(request.user, pk, Role.MAINTAINER)
        reminded, others = operations.remind(found, Role(self.given()["role"]))
        return Response({"reminded": reminded, "others": others})


# --- many at once -----------------------------------------------------------------------------------------------------


class PeopleFileSerializer(serializers.Serializer):
    file = serializers.FileField(
        validators=[check_people_file_size], help_text="CSV with the columns name, e-mail, role, submission."
    )
    dry_run = serializers.BooleanField(default=False, help_text="Check and report; invite nobody.")


class OutcomeSerializer(serializers.Serializer):
    line = serializers.IntegerField()
    submission = serializers.IntegerField(source="member.submission_id")
    username = serializers.CharField(source="member.person.username")
    pseudonym = serializers.CharField(source="member.pseudonym")
    role = serializers.CharField(source="member.role")
    done = serializers.ChoiceField(choices=["invited", "added", "unchanged"])


class PeopleReportSerializer(serializers.Serializer):
    """The outcome of each line. ``without_mail``: user names of people who need a link."""

    outcomes = OutcomeSerializer(many=True)
    warnings = ProblemSerializer(many=True)
    without_mail = serializers.SerializerMethodField()

    def get_without_mail(self, report: invitations.Report) -> list[str]:
        return [person.username for person in report.without_mail]


class PeopleFile(View):
    """Invitations of many people."""

    scopes = {"POST": Scope.ADMIN}
    tag = "People"
    operation_ids = {"POST": "invite_people"}
    serializer_class = PeopleFileSerializer
    parser_classes = [MultiPartParser]

    @extend_schema(request={"multipart/form-data": PeopleFileSerializer}, responses={200: PeopleReportSerializer})
    def post(self, request: Request) -> Response:
        """Invite the people of a CSV file to submissions: all of them, or nobody."""
        access.require_creator(request.user)
        given = self.given()
        report = invitations.invite_all(
            request.user, given["file"].read(), given["file"].name, dry_run=given["dry_run"]
        )
        if report.problems:
            raise Refused("The file was rejected; nobody was invited.", report.problems)
        return Response(PeopleReportSerializer(report).data)


class NamesSerializer(serializers.Serializer):
    usernames = serializers.ListField(child=serializers.CharField(max_length=150), max_length=1000)


class LinkSerializer(serializers.Serializer):
    username = serializers.CharField()
    email = serializers.CharField(allow_blank=True)
    link = serializers.CharField()


class InvitationLinks(View):
    """Links to join for several people."""

    scopes = {"POST": Scope.ADMIN}
    tag = "People"
    operation_ids = {"POST": "create_invitation_links"}
    serializer_class = NamesSerializer
    pagination_class = None  # type: ignore[assignment]

    @extend_schema(request=NamesSerializer, responses={200: LinkSerializer(many=True)})
    def post(self, request: Request) -> Response:
        """Return links for those who have not joined, in submissions that the caller maintains; others are left out."""
        access.require_creator(request.user)
        people = Person.objects.filter(username__in=self.given()["usernames"]).values_list("pk", flat=True)
        found = invitations.find_invited(request.user, people)
        site = request.build_absolute_uri("/").rstrip("/")
        return Response(
            [
                {"username": person.username, "email": person.email, "link": link}
                for person, link in invitations.create_links(request.user, found, site)
            ]
        )
