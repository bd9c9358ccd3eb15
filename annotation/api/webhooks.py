"""Webhooks of the caller. All changes need the scope `admin`: a webhook stays when the token expires."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.response import Response

from annotation import access, webhook_access, webhooks
from annotation.api.base import Listing, Request, View
from annotation.api_tokens import Scope
from annotation.models import Benchmark, Membership, Submission, Webhook, WebhookDelivery, WebhookEvent

ALL = "Empty: all events, also those that are added later."


class WebhookSerializer(serializers.ModelSerializer):
    benchmark: Any = serializers.SlugRelatedField(read_only=True, slug_field="slug", allow_null=True)
    events = serializers.ListField(child=serializers.ChoiceField(choices=WebhookEvent.choices), help_text=ALL)
    enabled = serializers.SerializerMethodField()

    class Meta:
        model = Webhook
        fields = ["id", "submission", "benchmark", "url", "events", "enabled", "reason", "created_at", "former_until"]
        extra_kwargs = {
            "reason": {"help_text": "Why the webhook is switched off."},
            "former_until": {
                "help_text": "Until then messages are also signed with the secret before the current one."
            },
        }

    def get_enabled(self, webhook: Webhook) -> bool:
        return webhook.disabled_at is None


class SecretSerializer(WebhookSerializer):
    secret = serializers.SerializerMethodField(help_text="It cannot be read again.")

    class Meta(WebhookSerializer.Meta):
        fields = [*WebhookSerializer.Meta.fields, "secret"]

    def get_secret(self, webhook: Webhook) -> str:
        return str(self.context["secret"])


class ChangeWebhookSerializer(serializers.Serializer):
    url = serializers.CharField(max_length=webhooks.LONGEST_URL, required=False)
    events = serializers.ListField(
        child=serializers.ChoiceField(choices=WebhookEvent.choices), required=False, help_text=ALL
    )
    enabled = serializers.BooleanField(
        required=False, help_text="false: nothing is sent, also nothing that waits. true also after an answer 410."
    )


class NewWebhookSerializer(serializers.Serializer):
    submission = serializers.IntegerField(required=False, help_text="Either this or `benchmark`.")
    benchmark = serializers.SlugField(required=False, help_text="All its submissions that you maintain.")
    url = serializers.CharField(max_length=webhooks.LONGEST_URL)
    events = serializers.ListField(
        child=serializers.ChoiceField(choices=WebhookEvent.choices), required=False, help_text=ALL
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if ("submission" in attrs) == ("benchmark" in attrs):
            raise serializers.ValidationError("Name either a submission or a benchmark.")
        return attrs


class DeliverySerializer(serializers.ModelSerializer):
    id = serializers.UUIDField(help_text="The `webhook-id` of all attempts.")
    # Not a choice: the schema would give the existing "state" of other responses another name.
    state = serializers.CharField(help_text="`waiting`, `retrying`, `delivered` or `failed`.")
    status = serializers.IntegerField(allow_null=True, help_text="HTTP status of the last answer.")

    class Meta:
        model = WebhookDelivery
        fields = ["id", "type", "data", "state", "status", "error", "attempts", "created_at", "attempted_at", "due_at"]
        extra_kwargs = {"due_at": {"help_text": "The next attempt."}}


class Webhooks(Listing):
    """The caller's webhooks, oldest first."""

    scopes = {"GET": Scope.READ, "POST": Scope.ADMIN}
    tag = "Webhooks"
    operation_ids = {"GET": "list_webhooks", "POST": "create_webhook"}
    serializer_class = WebhookSerializer

    def get_queryset(self) -> QuerySet[Webhook]:
        self.chosen()
        return webhook_access.webhooks_of(self.request.user).order_by("created_at", "pk")

    @extend_schema(request=NewWebhookSerializer, responses={201: SecretSerializer})
    def post(self, request: Request) -> Response:
        """Create a webhook for a submission, or for all submissions of a benchmark that the caller maintains."""
        given = NewWebhookSerializer(data=request.data)
        given.is_valid(raise_exception=True)
        asked = dict(given.validated_data)
        of: Submission | Benchmark
        if "submission" in asked:
            of = access.submission_for(request.user, asked.pop("submission"), Membership.Role.MAINTAINER)
        else:
            of = access.benchmark_for(request.user, asked.pop("benchmark"))
        webhook, secret = webhooks.create(request.user, of, **asked)
        return Response(SecretSerializer(webhook, context={"secret": secret}).data, status=status.HTTP_201_CREATED)


class WebhookDetail(View):
    """One of the caller's webhooks."""

    scopes = {"GET": Scope.READ, "PATCH": Scope.ADMIN, "DELETE": Scope.ADMIN}
    tag = "Webhooks"
    operation_ids = {"GET": "get_webhook", "PATCH": "change_webhook", "DELETE": "delete_webhook"}
    serializer_class = WebhookSerializer

    def get(self, request: Request, pk: UUID) -> Response:
        self.chosen()
        return Response(WebhookSerializer(webhook_access.webhook_for(request.user, pk)).data)

    @extend_schema(request=ChangeWebhookSerializer)
    def patch(self, request: Request, pk: UUID) -> Response:
        """Change the fields that are given."""
        webhook = webhook_access.webhook_for(request.user, pk)
        given = ChangeWebhookSerializer(data=request.data)
        given.is_valid(raise_exception=True)
        return Response(WebhookSerializer(webhooks.change(webhook, **given.validated_data)).data)

    @extend_schema(request=None, responses={204: None})
    def delete(self, request: Request, pk: UUID) -> Response:
        """Delete a webhook and its messages."""
        webhooks.delete(webhook_access.webhook_for(request.user, pk))
        return Response(status=status.HTTP_204_NO_CONTENT)


class Rotation(View):
    """A new secret of a webhook."""

    scopes = {"POST": Scope.ADMIN}
    tag = "Webhooks"
    operation_ids = {"POST": "rotate_webhook_secret"}
    serializer_class = SecretSerializer

    @extend_schema(request=None, responses={200: SecretSerializer})
    def post(self, request: Request, pk: UUID) -> Response:
        """Replace the secret. For 24 hours messages are signed with both."""
        webhook = webhook_access.webhook_for(request.user, pk)
        secret = webhooks.rotate(webhook)
        webhook.refresh_from_db()
        return Response(SecretSerializer(webhook, context={"secret": secret}).data)


class Test(View):
    """A message of the type `webhook.test`."""

    scopes = {"POST": Scope.ADMIN}
    tag = "Webhooks"
    operation_ids = {"POST": "test_webhook"}
    serializer_class = serializers.Serializer

    @extend_schema(request=None, responses={202: None})
    def post(self, request: Request, pk: UUID) -> Response:
        """Queue a test message."""
        webhooks.test(webhook_access.webhook_for(request.user, pk))
        return Response(status=status.HTTP_202_ACCEPTED)


class Deliveries(Listing):
    """The messages of a webhook, newest first."""

    scopes = {"GET": Scope.READ}
    tag = "Webhooks"
    operation_ids = {"GET": "list_webhook_deliveries"}
    serializer_class = DeliverySerializer

    def get_queryset(self) -> QuerySet[WebhookDelivery]:
        self.chosen()
        webhook = webhook_access.webhook_for(self.request.user, self.kwargs["pk"])
        return webhook_access.deliveries_of(self.request.user, webhook).order_by("-created_at", "-pk")


class Replay(View):
    """One message, again."""

    scopes = {"POST": Scope.ADMIN}
    tag = "Webhooks"
    operation_ids = {"POST": "replay_webhook_delivery"}
    serializer_class = serializers.Serializer

    @extend_schema(request=None, responses={202: None})
    def post(self, request: Request, pk: UUID, delivery_pk: UUID) -> Response:
        """Queue a message again, with the same id; no effect during an attempt."""
        webhooks.replay(webhook_access.delivery_for(request.user, pk, delivery_pk))
        return Response(status=status.HTTP_202_ACCEPTED)
