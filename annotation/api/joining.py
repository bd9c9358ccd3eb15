"""Joining with an invitation, for scripts: the link sets the password, and a token comes back."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.auth.forms import SetPasswordForm
from django.contrib.auth.tokens import default_token_generator
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.urls import Resolver404, resolve
from django.utils.http import urlsafe_base64_decode
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.response import Response

from annotation import second_factor, sign_ins
from annotation.api.base import Request, View
from annotation.api_tokens import Scope
from annotation.models import ApiToken, Person
from annotation.models.people import DEFAULT_LIFETIME, LONGEST_LIFETIME, PasswordWay, lock_with_operators
from annotation.problem_details import Refused
from annotation.records import Problem
from annotation.workflow import passwords


class JoinSerializer(serializers.Serializer):
    link = serializers.CharField(max_length=500, help_text="The link of the invitation.")
    password = serializers.CharField(
        max_length=4096, trim_whitespace=False, help_text="The new password, to sign in on the pages."
    )
    name = serializers.CharField(max_length=100, help_text="What the token is for.")
    scope = serializers.ChoiceField(
        choices=[Scope.READ, Scope.WRITE], default=Scope.WRITE, help_text="A token with admin is created in a browser."
    )
    days = serializers.IntegerField(min_value=1, max_value=LONGEST_LIFETIME, default=DEFAULT_LIFETIME)


class JoinedSerializer(serializers.Serializer):
    """The person, and a token, which only this response has."""

    username = serializers.CharField(source="person.username")
    scope = serializers.CharField()
    expires_at = serializers.DateTimeField()
    token = serializers.CharField(source="secret")


class Join(View):
    """An invitation of a person who has not joined yet; no token is needed."""

    authentication_classes = []
    permission_classes = []
    scopes = {"POST": None}
    tag = "Account"
    operation_ids = {"POST": "join_with_invitation"}
    serializer_class = JoinSerializer

    @extend_schema(request=JoinSerializer, responses={201: JoinedSerializer}, auth=[])
    def post(self, request: Request) -> Response:
        """Set the password with the link of an invitation, and get a token. The link works once.

        People who have joined, or need a second factor, create their tokens in a browser.
        """
        if not settings.LOCAL_SIGN_IN:
            raise PermissionDenied("Passwords are switched off on this site. Use single sign-on.")
        given = self.given()
        with transaction.atomic():
            person = _find_invited(given["link"])
            if second_factor.is_required(person):
                raise PermissionDenied("You need a second factor here. Open the link in a browser.")
            form = SetPasswordForm(person, dict.fromkeys(("new_password1", "new_password2"), given["password"]))
            if not form.is_valid():
                faults = [Problem("password_invalid", str(said), "password") for said in form.errors["new_password2"]]
                raise Refused("Choose another password.", faults)
            person.password_way = PasswordWay.FIRST
            form.save()
            sign_ins.log_sign_in(request._request, person, [{"method": "link"}])
            made: Any
            made, secret = ApiToken.issue(person, given["name"], given["scope"], given["days"])
        made.secret = secret
        return Response(JoinedSerializer(made).data, status.HTTP_201_CREATED)


def _find_invited(link: str) -> Person:
    """Return the locked row of the invited person. Raises Refused."""
    says = "This link is not an invitation, was used, or has expired. Ask for a new one."
    invalid = Refused(says, [Problem("link_invalid", says, "link")])
    try:
        match = resolve(urlsplit(link).path)
        key = urlsafe_base64_decode(match.kwargs["uidb64"]).decode() if match.url_name == "join" else ""
    except (Resolver404, ValueError) as error:
        raise invalid from error
    people = Person.objects.filter(is_active=True, erased_at=None)
    person = people.filter(pk=key).first() if key.isdecimal() and len(key) < 19 else None
    if person is None:
        raise invalid
    lock_with_operators(person)  # before its row alone, in the order of every change of an account
    person.refresh_from_db()
    if passwords.has_joined(person) or not person.is_active or person.erased_at is not None:
        raise invalid
    if not default_token_generator.check_token(person, match.kwargs["token"]):
        raise invalid
    return person
