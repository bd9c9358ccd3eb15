"""API endpoints for every user: their own tokens and labels."""

from __future__ import annotations

from django.db.models import QuerySet
from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.response import Response

from annotation import access, privacy
from annotation.api.base import Listing, Request, View
from annotation.api.serializers import OwnLabelSerializer, TokenSerializer
from annotation.api_tokens import Scope
from annotation.models import ApiToken, Label


class Tokens(Listing):
    """List the caller's tokens. Only the account page creates tokens, so a stolen one cannot create another."""

    scopes = {"GET": Scope.READ}
    tag = "Account"
    operation_ids = {"GET": "list_tokens"}
    serializer_class = TokenSerializer

    def get_queryset(self) -> QuerySet[ApiToken]:
        self.chosen()
        return access.tokens_of(self.request.user).order_by("pk")


class TokenRevocation(View):
    """Revoke one of the caller's tokens."""

    scopes = {"DELETE": Scope.ADMIN}
    tag = "Account"
    operation_ids = {"DELETE": "revoke_token"}
    serializer_class = TokenSerializer

    @extend_schema(request=None, responses={204: None})
    def delete(self, request: Request, pk: int) -> Response:
        """Revoke a token at once. This cannot be undone."""
        token = access.token_for(request.user, pk)
        ApiToken.objects.filter(pk=token.pk, revoked_at__isnull=True).update(revoked_at=timezone.now())
        return Response(status=status.HTTP_204_NO_CONTENT)


class OwnData(View):
    """Everything that is stored about the caller; docs/privacy.md lists the parts."""

    scopes = {"GET": Scope.ADMIN}
    tag = "Account"
    operation_ids = {"GET": "get_own_data"}

    @extend_schema(responses={200: OpenApiTypes.OBJECT})
    def get(self, request: Request) -> Response:
        self.chosen()
        return Response(privacy.data_of(request.user))


class OwnLabels(Listing):
    """The caller's own labels with all revisions, oldest first."""

    scopes = {"GET": Scope.READ}
    tag = "Annotation"
    operation_ids = {"GET": "list_own_labels"}
    serializer_class = OwnLabelSerializer

    def get_queryset(self) -> QuerySet[Label]:
        self.chosen()
        return (
            access.labels_by(self.request.user)
            .select_related("assignment__trajectory__task", "attempt")
            .prefetch_related("findings")
            .order_by("created_at", "pk")
        )
