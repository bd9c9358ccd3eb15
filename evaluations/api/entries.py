"""API endpoints of entries: submit, read, and the actions of owners and submitters."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from django.urls import reverse
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_field
from rest_framework import serializers, status
from rest_framework.parsers import JSONParser, MultiPartParser
from rest_framework.response import Response

from annotation.api.base import Listing, Request, View, report_stopped_import
from annotation.api_tokens import Scope
from annotation.forms import check_package_size
from annotation.models import Person
from annotation.workflow.guards import LONGEST_NOTE, REASON_TOO_LONG
from evaluations import jobs
from evaluations.api.exporting import ClaimSerializer
from evaluations.auditing import reference_data
from evaluations.models import Entry, EntryEvent, Intake
from evaluations.registry import chain, checks, entries, lookups
from evaluations.registry.chain import Kind, State
from evaluations.registry_forms import DESCRIPTION, LEFT_OUT, MOST_CHANGES, VERDICTS, IntakeForm, build_changes

OWNER_ACTIONS = {
    "accept": entries.accept,
    "query": entries.query,
    "reject": entries.reject,
    "remove": entries.remove,
    "restore": entries.restore,
}
SUBMITTER_ACTIONS = {"withdraw": entries.withdraw, "appeal": entries.appeal}
ACTIONS = (*OWNER_ACTIONS, *SUBMITTER_ACTIONS, "answer", "rescore", "embargo", "decide_appeal", "take_down")


class EntryEventSerializer(serializers.ModelSerializer):
    class Meta:
        model = EntryEvent
        fields = ("sequence", "kind", "role", "at", "reason", "facts", "previous", "hash")

    def to_representation(self, instance: EntryEvent) -> dict[str, Any]:
        """Leave out the checks, which `EntryDetailSerializer` states as far as the reader may see them."""
        stated = super().to_representation(instance)
        return stated | {"facts": {}} if instance.kind == Kind.CHECKED else stated


class EntrySerializer(serializers.ModelSerializer):
    """An entry for the owners of the benchmark and the submitter. ``audit`` is the owners' audit of the bundle.
    ``submission`` has the imported trajectories if they were sent without labels."""

    benchmark = serializers.CharField(source="benchmark.slug", read_only=True)
    state = serializers.SerializerMethodField()

    class Meta:
        model = Entry
        fields = ["key", "benchmark", "state", *DESCRIPTION, "submitted_at", "embargo_until", "audit", "submission"]

    @extend_schema_field(serializers.ChoiceField(choices=State.choices))
    def get_state(self, entry: Entry) -> str:
        return chain.state_of(entry)


class EntryDetailSerializer(EntrySerializer):
    """Also has the newest checks (empty until a worker has run them) and all events."""

    checks = serializers.SerializerMethodField()
    events = EntryEventSerializer(many=True)

    class Meta(EntrySerializer.Meta):
        fields = [*EntrySerializer.Meta.fields, "checks", "events"]

    @extend_schema_field(ClaimSerializer(many=True))
    def get_checks(self, entry: Entry) -> list[dict[str, Any]]:
        last = entry.events.filter(kind=Kind.CHECKED).order_by("-sequence").first()
        stated = last.facts["checks"] if last else []
        if self.context.get("role") is not EntryEvent.Role.OWNER:
            stated = checks.hide_others(stated)
        return [each | {"places": []} for each in stated]


class NewEntrySerializer(serializers.ModelSerializer):
    """The description, and one file: ``bundle`` or ``package``."""

    bundle = serializers.FileField(
        required=False,
        max_length=255,
        validators=[reference_data.check_bundle_size],
        help_text="An evidence bundle as a zip.",
    )
    package = serializers.FileField(
        required=False,
        max_length=255,
        validators=[check_package_size],
        help_text="Trajectories without labels, if the intake takes them.",
    )

    class Meta:
        model = Entry
        fields = (*DESCRIPTION, "embargo_until", "bundle", "package")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if ("bundle" in attrs) == ("package" in attrs):
            raise serializers.ValidationError({"bundle": ["Send one file: bundle or package."]})
        return attrs


class EntryActionSerializer(serializers.Serializer):
    """An action with its reason. ``file`` is for answer, ``tasks`` for rescore, ``until`` for embargo, ``upheld`` for
    decide_appeal, ``sequence`` for take_down."""

    action = serializers.ChoiceField(choices=ACTIONS)
    reason = serializers.CharField(max_length=LONGEST_NOTE, error_messages={"max_length": REASON_TOO_LONG})
    file = serializers.FileField(
        required=False,
        max_length=255,
        validators=[reference_data.check_bundle_size],
        help_text="A file of the same kind that replaces the earlier one. The request must then be multipart.",
    )
    tasks = serializers.DictField(
        child=serializers.ChoiceField(choices=[*VERDICTS, LEFT_OUT, "in"]),
        required=False,
        help_text="By task id: the verdict that counts, out to leave it out, or in to count the submitted one again.",
    )
    until = serializers.DateTimeField(required=False, allow_null=True, help_text="Null ends the embargo.")
    upheld = serializers.BooleanField(required=False)
    sequence = serializers.IntegerField(
        required=False,
        min_value=0,
        max_value=1_000_000,
        help_text="Number of the event whose text is taken down; if empty, the description.",
    )

    def validate_tasks(self, tasks: dict[str, str]) -> dict[str, str]:
        if len(tasks) > MOST_CHANGES:
            raise serializers.ValidationError(f"Change at most {MOST_CHANGES:,} tasks at once.")
        return tasks


class IntakeSerializer(serializers.ModelSerializer):
    """The intake of a benchmark. ``owners`` are account names; ``open`` is whether it takes entries now."""

    owners = serializers.SerializerMethodField()
    open = serializers.SerializerMethodField()

    class Meta:
        model = Intake
        fields = [*IntakeForm.Meta.fields, "owners", "open"]

    @extend_schema_field(serializers.ListField(child=serializers.CharField()))
    def get_owners(self, intake: Intake) -> list[str]:
        return [str(each) for each in intake.benchmark.owners.select_related("person")]

    def get_open(self, intake: Intake) -> bool:
        return lookups.is_open(intake)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        saved = {name: getattr(self.instance, name, None) for name in ("opens_at", "closes_at")}
        opens, closes = (attrs.get(name, saved[name]) for name in saved)
        if opens and closes and closes <= opens:
            raise serializers.ValidationError({"closes_at": ["Enter a time after the opening time."]})
        return attrs


class BenchmarkIntake(View):
    """The intake of a benchmark, for its owners."""

    scopes = {"GET": Scope.READ, "PUT": Scope.ADMIN}
    tag = "Entries"
    operation_ids = {"GET": "get_intake", "PUT": "save_intake"}
    serializer_class = IntakeSerializer

    def get(self, request: Request, slug: str) -> Response:
        self.chosen()
        benchmark = lookups.owned_benchmark(request.user, slug)
        return Response(IntakeSerializer(get_object_or_404(Intake, benchmark=benchmark)).data)

    def put(self, request: Request, slug: str) -> Response:
        """Save the settings. The first call opens the intake: the caller, a maintainer of the instance, becomes the
        first owner."""
        benchmark = entries.configurable_benchmark(request.user, slug)
        given = IntakeSerializer(Intake.objects.filter(benchmark=benchmark).first(), data=request.data)
        given.is_valid(raise_exception=True)
        return Response(IntakeSerializer(entries.configure(request.user, benchmark, **given.validated_data)).data)


class OwnerSerializer(serializers.Serializer):
    username = serializers.CharField(max_length=150)


class Owners(View):
    """The owners of a benchmark."""

    scopes = {"POST": Scope.ADMIN, "DELETE": Scope.ADMIN}
    tag = "Entries"
    operation_ids = {"POST": "add_owner", "DELETE": "remove_owner"}
    serializer_class = OwnerSerializer

    @extend_schema(request=OwnerSerializer, responses={201: OwnerSerializer})
    def post(self, request: Request, slug: str) -> Response:
        """Add an owner: an account that may create submissions."""
        benchmark = lookups.owned_benchmark(request.user, slug)
        given = OwnerSerializer(data=request.data)
        given.is_valid(raise_exception=True)
        entries.add_owner(request.user, benchmark, _find_person(given.validated_data["username"]))
        return Response(given.validated_data, status.HTTP_201_CREATED)

    @extend_schema(
        request=None, responses={204: None}, parameters=[OpenApiParameter("username", str, OpenApiParameter.QUERY)]
    )
    def delete(self, request: Request, slug: str) -> Response:
        """Remove the owner ``username``. 409 for the last owner."""
        benchmark = lookups.owned_benchmark(request.user, slug)
        entries.remove_owner(request.user, benchmark, _find_person(request.query_params.get("username", "")))
        return Response(status=status.HTTP_204_NO_CONTENT)


def _find_person(username: str) -> Person:
    person = Person.objects.filter(is_active=True, username=username).first()
    if person is None:
        raise serializers.ValidationError({"username": ["No account here has this name."]})
    return person


class Entries(Listing):
    """The caller's own entries, newest first."""

    scopes = {"GET": Scope.READ}
    tag = "Entries"
    operation_ids = {"GET": "list_own_entries"}
    serializer_class = EntrySerializer

    def get_queryset(self) -> QuerySet[Entry]:
        return lookups.own_entries(self.request.user)


class BenchmarkEntries(Listing):
    """The entries of a benchmark."""

    scopes = {"GET": Scope.READ, "POST": Scope.WRITE}
    tag = "Entries"
    operation_ids = {"GET": "list_entries", "POST": "submit_entry"}
    serializer_class = EntrySerializer
    parser_classes = [MultiPartParser]

    def get_queryset(self) -> QuerySet[Entry]:
        return lookups.entries_of(lookups.owned_benchmark(self.request.user, self.kwargs["slug"]))

    @extend_schema(
        request={"multipart/form-data": NewEntrySerializer},
        responses={202: EntryDetailSerializer},
        parameters=[OpenApiParameter("Location", str, OpenApiParameter.HEADER, response=[202])],
    )
    def post(self, request: Request, slug: str) -> Response:
        """Submit an evidence bundle as an entry. A worker checks it; the header Location has the entry's address.

        Anybody with an account may submit while the intake is open (409 if it is not).
        """
        given = NewEntrySerializer(data=request.data)
        given.is_valid(raise_exception=True)
        sent = dict(given.validated_data)
        intake = lookups.find_intake(slug)
        is_package = "package" in sent
        file = entries.SentFile(sent.pop("package" if is_package else "bundle"), is_package)
        with report_stopped_import("package" if is_package else "bundle"):
            made = entries.submit(request.user, intake, sent, file, jobs.choose_for_entry(is_package=is_package))
        where = request.build_absolute_uri(reverse("api-entry", args=[made.key]))
        return Response(EntryDetailSerializer(made).data, status.HTTP_202_ACCEPTED, headers={"Location": where})


class EntryDetail(View):
    """One entry, for the owners of the benchmark and its submitter."""

    scopes = {"GET": Scope.READ}
    tag = "Entries"
    operation_ids = {"GET": "get_entry"}
    serializer_class = EntryDetailSerializer

    def get(self, request: Request, key: str) -> Response:
        self.chosen()
        found, role = entries.entry_for(request.user, key)
        return Response(EntryDetailSerializer(found, context={"role": role}).data)


class EntryActions(View):
    """Actions on an entry."""

    scopes = {"POST": Scope.ADMIN}
    tag = "Entries"
    operation_ids = {"POST": "act_on_entry"}
    serializer_class = EntryActionSerializer
    parser_classes = [JSONParser, MultiPartParser]

    @extend_schema(
        request={"application/json": EntryActionSerializer, "multipart/form-data": EntryActionSerializer},
        responses={201: EntryDetailSerializer},
    )
    def post(self, request: Request, key: str) -> Response:
        """Take an action, which appends an event. 403 if it is for the other role, 409 if the state forbids it."""
        found, role = entries.entry_for(request.user, key)
        given = EntryActionSerializer(data=request.data)
        given.is_valid(raise_exception=True)
        _take(request, found, given.validated_data)
        return Response(
            EntryDetailSerializer(entries.entry_for(request.user, key)[0], context={"role": role}).data,
            status.HTTP_201_CREATED,
        )


def _take(request: Request, found: Entry, given: dict[str, Any]) -> None:
    person, action, reason = request.user, given["action"], given["reason"]
    if simple := (OWNER_ACTIONS | SUBMITTER_ACTIONS).get(action):
        simple(person, found, reason)
    elif action == "answer":
        is_package = entries.sends_trajectories(found)
        file = entries.SentFile(given["file"], is_package) if "file" in given else None
        with report_stopped_import("file"):
            entries.answer(person, found, reason, file, jobs.choose_for_entry(is_package=is_package))
    elif action == "rescore":
        entries.rescore(person, found, build_changes(_need(given, "tasks"), reason), reason)
    elif action == "embargo":
        entries.change_embargo(person, found, _need(given, "until"), reason)
    elif action == "decide_appeal":
        entries.decide_appeal(person, found, reason, upheld=_need(given, "upheld"))
    else:
        entries.take_down(person, found, reason, given.get("sequence"))


def _need(given: dict[str, Any], name: str) -> Any:
    if name not in given:
        raise serializers.ValidationError({name: [f"The action {given['action']} needs this field."]})
    return given[name]
