"""Create the schema of a new database in one step. Databases of earlier versions run the replaced migrations."""

import annotation.models.trajectories
import annotation.records
import django.contrib.auth.models
import django.contrib.auth.validators
import django.db.models.deletion
import django.utils.timezone
import uuid
from django.conf import settings
from django.db import migrations, models

from annotation.models import triggers


class Migration(migrations.Migration):
    replaces = [
        ("annotation", "0001_initial"),
        ("annotation", "0002_triggers"),
        ("annotation", "0003_the_desk"),
        ("annotation", "0004_reopenings_and_releases"),
        ("annotation", "0005_the_informed_second_stage"),
        ("annotation", "0006_answers_and_references"),
        ("annotation", "0007_audits_and_privacy"),
        ("annotation", "0008_redactions_by_original"),
        ("annotation", "0009_tries_of_uploads"),
        ("annotation", "0010_api_token_scopes"),
        ("annotation", "0011_stored_files"),
        ("annotation", "0012_database_defaults"),
        ("annotation", "0013_chain_checks"),
        ("annotation", "0014_state_snapshots"),
        ("annotation", "0015_source_formats_from_the_registry"),
    ]

    initial = True

    dependencies = [
        ("auth", "0012_alter_user_first_name_max_length"),
    ]

    operations = [
        migrations.CreateModel(
            name="Agent",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=200, unique=True)),
            ],
        ),
        migrations.CreateModel(
            name="Benchmark",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("slug", models.SlugField(max_length=64, unique=True)),
                ("name", models.CharField(max_length=200)),
                ("bundled_as", models.CharField(blank=True, db_default="", default="", max_length=200)),
            ],
        ),
        migrations.CreateModel(
            name="Screenshot",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("sha256", models.CharField(max_length=64, unique=True)),
                ("media_type", models.CharField(max_length=20)),
                ("width", models.PositiveIntegerField()),
                ("height", models.PositiveIntegerField()),
                ("size", models.PositiveBigIntegerField()),
                ("damaged_at", models.DateTimeField(blank=True, null=True)),
            ],
        ),
        migrations.CreateModel(
            name="StoreCheck",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("started_at", models.DateTimeField()),
                ("finished_at", models.DateTimeField(blank=True, null=True)),
                ("heartbeat_at", models.DateTimeField(blank=True, null=True)),
                ("position", models.CharField(blank=True, max_length=64)),
                ("total", models.PositiveIntegerField()),
                ("files", models.PositiveIntegerField(default=0)),
                ("size", models.PositiveBigIntegerField(default=0)),
                ("problems", models.JSONField(default=list)),
            ],
            options={
                "ordering": ["-started_at", "-pk"],
            },
        ),
        migrations.CreateModel(
            name="Person",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("password", models.CharField(max_length=128, verbose_name="password")),
                ("last_login", models.DateTimeField(blank=True, null=True, verbose_name="last login")),
                (
                    "is_superuser",
                    models.BooleanField(
                        default=False,
                        help_text="Designates that this user has all permissions without explicitly assigning them.",
                        verbose_name="superuser status",
                    ),
                ),
                (
                    "username",
                    models.CharField(
                        error_messages={"unique": "A user with that username already exists."},
                        help_text="Required. 150 characters or fewer. Letters, digits and @/./+/-/_ only.",
                        max_length=150,
                        unique=True,
                        validators=[django.contrib.auth.validators.UnicodeUsernameValidator()],
                        verbose_name="username",
                    ),
                ),
                ("first_name", models.CharField(blank=True, max_length=150, verbose_name="first name")),
                ("last_name", models.CharField(blank=True, max_length=150, verbose_name="last name")),
                ("email", models.EmailField(blank=True, max_length=254, verbose_name="email address")),
                (
                    "is_staff",
                    models.BooleanField(
                        default=False,
                        help_text="Designates whether the user can log into this admin site.",
                        verbose_name="staff status",
                    ),
                ),
                (
                    "is_active",
                    models.BooleanField(
                        default=True,
                        help_text="Designates whether this user should be treated as active. Unselect this instead of deleting accounts.",
                        verbose_name="active",
                    ),
                ),
                ("date_joined", models.DateTimeField(default=django.utils.timezone.now, verbose_name="date joined")),
                ("stand_in", models.BooleanField(db_default=False, default=False)),
                ("erased_at", models.DateTimeField(blank=True, null=True)),
                (
                    "groups",
                    models.ManyToManyField(
                        blank=True,
                        help_text="The groups this user belongs to. A user will get all permissions granted to each of their groups.",
                        related_name="user_set",
                        related_query_name="user",
                        to="auth.group",
                        verbose_name="groups",
                    ),
                ),
                (
                    "user_permissions",
                    models.ManyToManyField(
                        blank=True,
                        help_text="Specific permissions for this user.",
                        related_name="user_set",
                        related_query_name="user",
                        to="auth.permission",
                        verbose_name="user permissions",
                    ),
                ),
            ],
            options={
                "db_table": "annotation_person",
            },
            managers=[
                ("objects", django.contrib.auth.models.UserManager()),
            ],
        ),
        migrations.CreateModel(
            name="ApiToken",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=100)),
                ("digest", models.CharField(max_length=64, unique=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("last_used_at", models.DateTimeField(blank=True, null=True)),
                ("revoked_at", models.DateTimeField(blank=True, null=True)),
                (
                    "scope",
                    models.CharField(
                        choices=[
                            ("read", "read"),
                            ("write", "write: also upload, import, redact and run judges"),
                            ("admin", "admin: also see names, decide audits, revoke tokens"),
                        ],
                        db_default="read",
                        max_length=10,
                    ),
                ),
                ("lifetime_days", models.PositiveSmallIntegerField(db_default=90)),
                (
                    "person",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="api_tokens",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Assignment",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("slot", models.PositiveSmallIntegerField()),
                ("claimed_at", models.DateTimeField()),
                ("lease_expires_at", models.DateTimeField(blank=True, null=True)),
                (
                    "annotator",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="assignments",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="KeyPoint",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("position", models.PositiveIntegerField()),
                ("text", models.CharField(max_length=500)),
                ("accepted_at", models.DateTimeField(blank=True, null=True)),
                ("retired_at", models.DateTimeField(blank=True, null=True)),
                (
                    "proposed_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ["position", "pk"],
            },
        ),
        migrations.CreateModel(
            name="Label",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "verdict",
                    models.PositiveSmallIntegerField(choices=[(0, "Failure"), (1, "Success"), (2, "Not executable")]),
                ),
                ("reasoning", models.TextField()),
                ("failure_step", models.PositiveIntegerField(blank=True, null=True)),
                ("failure_type", models.CharField(blank=True, max_length=40)),
                ("further_failure_types", models.JSONField(blank=True, db_default=[], default=list)),
                ("cause", models.CharField(blank=True, max_length=40)),
                ("exception_reason", models.TextField(blank=True)),
                ("evidence_missing", models.JSONField(blank=True, db_default=[], default=list)),
                ("active_seconds", models.PositiveIntegerField(blank=True, null=True)),
                ("steps_seen", models.JSONField(blank=True, null=True)),
                ("revision", models.PositiveIntegerField(default=1)),
                ("revision_reason", models.TextField(blank=True)),
                ("created_at", models.DateTimeField()),
                (
                    "assignment",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="labels", to="annotation.assignment"
                    ),
                ),
            ],
            options={
                "ordering": ["revision"],
                "constraints": [
                    models.CheckConstraint(condition=models.Q(("verdict__in", [0, 1, 2])), name="label_verdict_known"),
                    models.CheckConstraint(
                        condition=models.Q(("reasoning", ""), _negated=True), name="label_reasoning_given"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("verdict", annotation.records.Verdict["FAILURE"]), _negated=True),
                            models.Q(("failure_type", ""), _negated=True),
                            _connector="OR",
                        ),
                        name="label_failure_explained",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("verdict", annotation.records.Verdict["NOT_EXECUTABLE"]), _negated=True),
                            models.Q(("cause", ""), _negated=True),
                            _connector="OR",
                        ),
                        name="label_cause_given",
                    ),
                    models.UniqueConstraint(fields=("assignment", "revision"), name="label_revision_once"),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("revision", 1), models.Q(("revision_reason", ""), _negated=True), _connector="OR"
                        ),
                        name="label_revision_has_a_reason",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="KeyPointFinding",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "finding",
                    models.CharField(
                        choices=[("met", "met"), ("unmet", "unmet"), ("unclear", "unclear")], max_length=8
                    ),
                ),
                ("step", models.PositiveIntegerField(blank=True, null=True)),
                (
                    "key_point",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="findings", to="annotation.keypoint"
                    ),
                ),
                (
                    "label",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="findings", to="annotation.label"
                    ),
                ),
            ],
            options={
                "ordering": ["key_point__position", "key_point_id"],
                "constraints": [
                    models.UniqueConstraint(fields=("label", "key_point"), name="finding_once_per_label"),
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "finding__in",
                                [
                                    annotation.records.Finding["MET"],
                                    annotation.records.Finding["UNMET"],
                                    annotation.records.Finding["UNCLEAR"],
                                ],
                            )
                        ),
                        name="finding_known",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="InformedRevision",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("judgments", models.JSONField()),
                ("shown_at", models.DateTimeField()),
                (
                    "verdict",
                    models.PositiveSmallIntegerField(
                        blank=True, choices=[(0, "Failure"), (1, "Success"), (2, "Not executable")], null=True
                    ),
                ),
                ("reason", models.TextField(blank=True)),
                ("decided_at", models.DateTimeField(blank=True, null=True)),
                (
                    "label",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT, related_name="informed", to="annotation.label"
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("decided_at__isnull", True), ("reason", ""), ("verdict__isnull", True)),
                            models.Q(
                                ("decided_at__isnull", False), ("verdict__in", [0, 1, 2]), ("verdict__isnull", False)
                            ),
                            _connector="OR",
                        ),
                        name="informed_decided_with_a_verdict",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="HumanAttempt",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("steps", models.PositiveIntegerField(blank=True, null=True)),
                ("notes", models.TextField()),
                ("link", models.CharField(blank=True, max_length=500)),
                ("path", models.CharField(max_length=20)),
                (
                    "label",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT, related_name="attempt", to="annotation.label"
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(condition=models.Q(("notes", ""), _negated=True), name="attempt_noted")
                ],
            },
        ),
        migrations.CreateModel(
            name="Phrase",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("text", models.CharField(max_length=500)),
                ("made_at", models.DateTimeField(auto_now_add=True)),
                (
                    "person",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="phrases", to=settings.AUTH_USER_MODEL
                    ),
                ),
            ],
            options={
                "ordering": ["pk"],
                "constraints": [models.UniqueConstraint(fields=("person", "text"), name="phrase_once_per_person")],
            },
        ),
        migrations.CreateModel(
            name="PictureChange",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("boxes", models.JSONField(null=True)),
                ("share", models.FloatField(null=True)),
                (
                    "after",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="annotation.screenshot"
                    ),
                ),
                (
                    "before",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="annotation.screenshot"
                    ),
                ),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("before", "after"), name="change_once_per_pair")],
            },
        ),
        migrations.CreateModel(
            name="Submission",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("attempt", models.PositiveIntegerField(default=1)),
                ("digest", models.CharField(max_length=64)),
                ("protocol_version", models.PositiveSmallIntegerField(default=1)),
                ("required_labels", models.PositiveSmallIntegerField(default=3)),
                ("spot_check_rate", models.FloatField(default=0.1)),
                ("spot_check_seed", models.CharField(default=annotation.models.trajectories.new_seed, max_length=64)),
                ("practice", models.BooleanField(db_default=False, default=False)),
                ("pass_mark", models.FloatField(blank=True, null=True)),
                ("second_stage", models.BooleanField(db_default=False, default=False)),
                ("import_report", models.JSONField(blank=True, null=True)),
                ("audited", models.BooleanField(db_default=False, default=False)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("frozen_at", models.DateTimeField(blank=True, null=True)),
                ("opened_at", models.DateTimeField(blank=True, null=True)),
                (
                    "agent",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="submissions", to="annotation.agent"
                    ),
                ),
                (
                    "benchmark",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="submissions",
                        to="annotation.benchmark",
                    ),
                ),
                (
                    "practice_set",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="annotation.submission",
                    ),
                ),
                (
                    "sample_of",
                    models.OneToOneField(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="sample",
                        to="annotation.submission",
                    ),
                ),
            ],
            options={
                "ordering": ["-created_at", "-pk"],
                "constraints": [
                    models.UniqueConstraint(fields=("benchmark", "agent", "attempt"), name="submission_attempt_once"),
                    models.UniqueConstraint(
                        condition=models.Q(("sample_of__isnull", True)),
                        fields=("benchmark", "agent", "digest"),
                        name="submission_bytes_once",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("spot_check_rate__gte", 0), ("spot_check_rate__lte", 1)),
                        name="spot_check_rate_is_a_fraction",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("opened_at__isnull", True), ("frozen_at__isnull", False), _connector="OR"),
                        name="opened_only_when_frozen",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("pass_mark__isnull", True),
                            models.Q(("pass_mark__gte", 0), ("pass_mark__lte", 1)),
                            _connector="OR",
                        ),
                        name="pass_mark_is_a_fraction",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("protocol_version__in", [1, 2])), name="protocol_version_known"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="StateSnapshot",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("sequence", models.PositiveBigIntegerField()),
                ("hash", models.CharField(max_length=64)),
                ("states", models.BinaryField()),
                ("computed_at", models.DateTimeField()),
                (
                    "submission",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="state_snapshot",
                        to="annotation.submission",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="SpotCheckDraw",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("number", models.PositiveIntegerField()),
                ("seed", models.CharField(max_length=80)),
                ("rate", models.FloatField()),
                ("population", models.JSONField()),
                ("drawn", models.JSONField()),
                ("drawn_at", models.DateTimeField()),
                (
                    "submission",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="spot_check_draws",
                        to="annotation.submission",
                    ),
                ),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("submission", "number"), name="draw_number_once")],
            },
        ),
        migrations.CreateModel(
            name="Redaction",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("original", models.CharField(max_length=64)),
                ("revision", models.PositiveIntegerField(default=1)),
                ("boxes", models.JSONField()),
                ("reason", models.TextField()),
                ("redacted", models.CharField(blank=True, max_length=64)),
                ("size", models.PositiveBigIntegerField(default=0)),
                ("redacted_at", models.DateTimeField()),
                (
                    "redacted_by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
                (
                    "submission",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="redactions",
                        to="annotation.submission",
                    ),
                ),
            ],
            options={
                "ordering": ["revision"],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("submission", "original", "revision"), name="redaction_revision_once"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("original", ""), _negated=True), name="redaction_of_a_picture"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("reason", ""), _negated=True), name="redaction_has_a_reason"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Membership",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "role",
                    models.CharField(
                        choices=[
                            ("annotator", "Annotator"),
                            ("adjudicator", "Adjudicator"),
                            ("maintainer", "Maintainer"),
                            ("auditor", "Auditor"),
                        ],
                        max_length=12,
                    ),
                ),
                ("pseudonym", models.CharField(max_length=12)),
                ("joined_at", models.DateTimeField(auto_now_add=True)),
                ("deactivated_at", models.DateTimeField(blank=True, null=True)),
                (
                    "person",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="memberships",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "submission",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="memberships",
                        to="annotation.submission",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("submission", "person"), name="one_role_per_person_and_submission"),
                    models.UniqueConstraint(fields=("submission", "pseudonym"), name="pseudonym_once"),
                    models.CheckConstraint(
                        condition=models.Q(("role__in", ["annotator", "adjudicator", "maintainer", "auditor"])),
                        name="role_known",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Event",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("sequence", models.PositiveBigIntegerField()),
                ("kind", models.CharField(max_length=40)),
                ("actor_pseudonym", models.CharField(blank=True, max_length=12)),
                ("at", models.DateTimeField()),
                ("payload", models.JSONField()),
                ("previous", models.CharField(max_length=64)),
                ("hash", models.CharField(max_length=64)),
                (
                    "actor",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "submission",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="events",
                        to="annotation.submission",
                    ),
                ),
            ],
            options={
                "ordering": ["sequence"],
                "constraints": [
                    models.UniqueConstraint(fields=("submission", "sequence"), name="event_sequence_once"),
                    models.UniqueConstraint(
                        condition=models.Q(("submission__isnull", True)),
                        fields=("sequence",),
                        name="instance_event_sequence_once",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="ChainCheck",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("sequence", models.PositiveBigIntegerField()),
                ("hash", models.CharField(max_length=64)),
                ("checked_at", models.DateTimeField()),
                ("broken", models.PositiveBigIntegerField(blank=True, null=True)),
                (
                    "submission",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="chain_check",
                        to="annotation.submission",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Task",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("external_id", models.CharField(max_length=128)),
                ("version", models.PositiveIntegerField(default=1)),
                ("text", models.TextField()),
                ("website", models.CharField(blank=True, max_length=500)),
                ("reference_length", models.PositiveIntegerField(blank=True, null=True)),
                ("level", models.CharField(blank=True, max_length=40)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "benchmark",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="tasks", to="annotation.benchmark"
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("benchmark", "external_id", "version"), name="task_version_once")
                ],
            },
        ),
        migrations.AddField(
            model_name="keypoint",
            name="task",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE, related_name="key_points", to="annotation.task"
            ),
        ),
        migrations.CreateModel(
            name="ImportedLabel",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("annotator", models.CharField(max_length=200)),
                ("position", models.PositiveIntegerField()),
                (
                    "verdict",
                    models.PositiveSmallIntegerField(choices=[(0, "Failure"), (1, "Success"), (2, "Not executable")]),
                ),
                ("reasoning", models.TextField(blank=True)),
                ("failure_step", models.PositiveIntegerField(blank=True, null=True)),
                ("failure_type", models.CharField(blank=True, max_length=100)),
                (
                    "agent",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="imported_labels",
                        to="annotation.agent",
                    ),
                ),
                (
                    "benchmark",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="imported_labels",
                        to="annotation.benchmark",
                    ),
                ),
                (
                    "task",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="imported_labels",
                        to="annotation.task",
                    ),
                ),
            ],
            options={
                "ordering": ["position"],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("benchmark", "task", "agent", "annotator"), name="imported_label_once_per_annotator"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("verdict__in", [0, 1, 2])), name="imported_label_verdict_known"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Trajectory",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("position", models.PositiveIntegerField()),
                ("task_text", models.TextField(help_text="As the agent's files state it.")),
                ("final_answer", models.TextField(blank=True, null=True)),
                ("reference_length", models.PositiveIntegerField(blank=True, null=True)),
                ("source_format", models.CharField(max_length=32)),
                ("digest", models.CharField(max_length=64)),
                ("warnings", models.JSONField(default=list)),
                ("open_slots", models.PositiveSmallIntegerField()),
                (
                    "submission",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="trajectories",
                        to="annotation.submission",
                    ),
                ),
                (
                    "task",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="trajectories", to="annotation.task"
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "trajectories",
                "ordering": ["position"],
                "indexes": [
                    models.Index(
                        models.F("submission"),
                        models.F("open_slots"),
                        models.F("position"),
                        condition=models.Q(("open_slots__gt", 0)),
                        name="trajectory_open",
                    )
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("submission", "task"), name="trajectory_once_per_task"),
                    models.UniqueConstraint(fields=("submission", "position"), name="trajectory_position_once"),
                    models.CheckConstraint(
                        condition=models.Q(("open_slots__gte", 0)), name="no_more_labels_than_required"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Step",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("index", models.PositiveIntegerField()),
                ("action", models.TextField(blank=True)),
                ("thought", models.TextField(blank=True, null=True)),
                ("url", models.TextField(blank=True)),
                ("status", models.CharField(blank=True, max_length=10)),
                ("withheld", models.JSONField(blank=True, null=True)),
                ("file_name", models.CharField(blank=True, max_length=255)),
                ("click_x", models.FloatField(blank=True, null=True)),
                ("click_y", models.FloatField(blank=True, null=True)),
                ("warnings", models.JSONField(default=list)),
                (
                    "screenshot",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="steps",
                        to="annotation.screenshot",
                    ),
                ),
                (
                    "trajectory",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="steps", to="annotation.trajectory"
                    ),
                ),
            ],
            options={
                "ordering": ["index"],
                "constraints": [models.UniqueConstraint(fields=("trajectory", "index"), name="step_index_once")],
            },
        ),
        migrations.CreateModel(
            name="SpotCheck",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("selected", models.BooleanField()),
                (
                    "draw",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="members",
                        to="annotation.spotcheckdraw",
                    ),
                ),
                (
                    "trajectory",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="spot_check",
                        to="annotation.trajectory",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Report",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "kind",
                    models.CharField(
                        choices=[("task_outdated", "task outdated"), ("guideline_unclear", "guideline unclear")],
                        max_length=20,
                    ),
                ),
                ("note", models.TextField()),
                ("reported_at", models.DateTimeField()),
                ("settled_at", models.DateTimeField(blank=True, null=True)),
                ("answer", models.TextField(blank=True)),
                (
                    "reporter",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="reports", to=settings.AUTH_USER_MODEL
                    ),
                ),
                (
                    "settled_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "trajectory",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="reports", to="annotation.trajectory"
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("trajectory", "reporter", "kind"), name="reported_once"),
                    models.CheckConstraint(condition=models.Q(("note", ""), _negated=True), name="report_has_a_note"),
                ],
            },
        ),
        migrations.CreateModel(
            name="Reopening",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("reason", models.TextField()),
                ("revision", models.PositiveIntegerField()),
                ("reopened_at", models.DateTimeField()),
                (
                    "reopened_by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
                (
                    "trajectory",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="reopenings",
                        to="annotation.trajectory",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Release",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("reason", models.TextField()),
                ("released_at", models.DateTimeField()),
                ("lifted_at", models.DateTimeField(blank=True, null=True)),
                (
                    "annotator",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="releases",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "trajectory",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="releases", to="annotation.trajectory"
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("lifted_at__isnull", True)),
                        fields=("trajectory", "annotator"),
                        name="released_once",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="PracticeAnswer",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("round", models.PositiveIntegerField(default=1)),
                ("content", models.JSONField(default=dict)),
                (
                    "verdict",
                    models.PositiveSmallIntegerField(choices=[(0, "Failure"), (1, "Success"), (2, "Not executable")]),
                ),
                ("right", models.BooleanField()),
                ("answered_at", models.DateTimeField()),
                (
                    "person",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="practice_answers",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "trajectory",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="practice_answers",
                        to="annotation.trajectory",
                    ),
                ),
            ],
            options={
                "ordering": ["round", "answered_at"],
                "constraints": [
                    models.UniqueConstraint(fields=("trajectory", "person", "round"), name="practised_once_a_round"),
                    models.CheckConstraint(
                        condition=models.Q(("verdict__in", [0, 1, 2])), name="practice_verdict_known"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="KnownAnswer",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "verdict",
                    models.PositiveSmallIntegerField(choices=[(0, "Failure"), (1, "Success"), (2, "Not executable")]),
                ),
                ("failure_step", models.PositiveIntegerField(blank=True, null=True)),
                ("failure_type", models.CharField(blank=True, max_length=40)),
                ("cause", models.CharField(blank=True, max_length=40)),
                ("findings", models.JSONField(default=dict)),
                ("explanation", models.TextField()),
                ("saved_at", models.DateTimeField()),
                (
                    "author",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
                (
                    "trajectory",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="known_answer",
                        to="annotation.trajectory",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(condition=models.Q(("verdict__in", [0, 1, 2])), name="answer_verdict_known"),
                    models.CheckConstraint(
                        condition=models.Q(("explanation", ""), _negated=True), name="answer_explained"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Flag",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("note", models.TextField(blank=True)),
                ("flagged_at", models.DateTimeField()),
                (
                    "annotator",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="flags", to=settings.AUTH_USER_MODEL
                    ),
                ),
                (
                    "trajectory",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="flags", to="annotation.trajectory"
                    ),
                ),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("trajectory", "annotator"), name="flagged_once")],
            },
        ),
        migrations.CreateModel(
            name="Draft",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("content", models.JSONField(default=dict)),
                ("version", models.PositiveIntegerField(default=1)),
                ("saved_at", models.DateTimeField()),
                (
                    "author",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="drafts", to=settings.AUTH_USER_MODEL
                    ),
                ),
                (
                    "trajectory",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="drafts", to="annotation.trajectory"
                    ),
                ),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("trajectory", "author"), name="one_draft_per_author")],
            },
        ),
        migrations.CreateModel(
            name="Attachment",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("network_trace", "network_trace"),
                            ("agent_response", "agent_response"),
                            ("input_image", "input_image"),
                            ("reference_step", "reference_step"),
                            ("cached_page", "cached_page"),
                        ],
                        max_length=20,
                    ),
                ),
                ("name", models.CharField(max_length=255)),
                ("sha256", models.CharField(max_length=64)),
                ("size", models.PositiveBigIntegerField()),
                ("withheld", models.BooleanField(db_default=False, default=False)),
                (
                    "trajectory",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="attachments",
                        to="annotation.trajectory",
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["sha256"], name="attachment_sha256")],
                "constraints": [models.UniqueConstraint(fields=("trajectory", "name"), name="attachment_name_once")],
            },
        ),
        migrations.AddField(
            model_name="assignment",
            name="trajectory",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT, related_name="assignments", to="annotation.trajectory"
            ),
        ),
        migrations.CreateModel(
            name="Adjudication",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("failure_step", models.PositiveIntegerField(blank=True, null=True)),
                ("failure_type", models.CharField(blank=True, max_length=40)),
                ("further_failure_types", models.JSONField(blank=True, db_default=[], default=list)),
                ("cause", models.CharField(blank=True, max_length=40)),
                ("exception_reason", models.TextField(blank=True)),
                ("evidence_missing", models.JSONField(blank=True, db_default=[], default=list)),
                ("active_seconds", models.PositiveIntegerField(blank=True, null=True)),
                ("steps_seen", models.JSONField(blank=True, null=True)),
                ("revision", models.PositiveIntegerField(default=1)),
                ("revision_reason", models.TextField(blank=True)),
                ("blind", models.BooleanField()),
                ("opened_at", models.DateTimeField()),
                ("decided_at", models.DateTimeField(blank=True, null=True)),
                (
                    "verdict",
                    models.PositiveSmallIntegerField(
                        blank=True, choices=[(0, "Failure"), (1, "Success"), (2, "Not executable")], null=True
                    ),
                ),
                ("reasoning", models.TextField(blank=True)),
                ("criterion", models.CharField(blank=True, db_default="", default="", max_length=40)),
                (
                    "adjudicator",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="adjudications",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "trajectory",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="adjudications",
                        to="annotation.trajectory",
                    ),
                ),
            ],
            options={
                "ordering": ["revision"],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("decided_at__isnull", True), ("verdict__in", [0, 1, 2]), _connector="OR"),
                        name="adjudication_verdict_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("decided_at__isnull", True), models.Q(("reasoning", ""), _negated=True), _connector="OR"
                        ),
                        name="adjudication_reasoning_given",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("decided_at__isnull", True),
                            models.Q(("verdict", annotation.records.Verdict["FAILURE"]), _negated=True),
                            models.Q(("failure_type", ""), _negated=True),
                            _connector="OR",
                        ),
                        name="adjudication_failure_explained",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("decided_at__isnull", True),
                            models.Q(("verdict", annotation.records.Verdict["NOT_EXECUTABLE"]), _negated=True),
                            models.Q(("cause", ""), _negated=True),
                            _connector="OR",
                        ),
                        name="adjudication_cause_given",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("decided_at__isnull", True), ("verdict__isnull", True)),
                            models.Q(("decided_at__isnull", False), ("verdict__isnull", False)),
                            _connector="OR",
                        ),
                        name="adjudication_decided_with_a_verdict",
                    ),
                    models.UniqueConstraint(fields=("trajectory", "revision"), name="adjudication_revision_once"),
                    models.UniqueConstraint(
                        condition=models.Q(("decided_at__isnull", True)),
                        fields=("trajectory",),
                        name="one_open_adjudication",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Activity",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("seconds", models.FloatField(default=0)),
                ("steps", models.JSONField(default=list)),
                ("last_at", models.DateTimeField()),
                (
                    "person",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="activities",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "trajectory",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="activities",
                        to="annotation.trajectory",
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["last_at"], name="activity_last_at")],
                "constraints": [
                    models.UniqueConstraint(fields=("trajectory", "person"), name="one_activity_per_person")
                ],
            },
        ),
        migrations.CreateModel(
            name="Upload",
            fields=[
                ("id", models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ("file_name", models.CharField(max_length=255)),
                ("stored_as", models.CharField(max_length=255)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("started_at", models.DateTimeField(blank=True, null=True)),
                ("finished_at", models.DateTimeField(blank=True, null=True)),
                ("heartbeat_at", models.DateTimeField(blank=True, null=True)),
                ("tries", models.PositiveSmallIntegerField(db_default=0, default=0)),
                ("done", models.PositiveIntegerField(default=0)),
                ("total", models.PositiveIntegerField(blank=True, null=True)),
                ("agent_name", models.CharField(max_length=200)),
                ("keep_valid", models.BooleanField(default=False)),
                ("dry_run", models.BooleanField(default=False)),
                ("report", models.JSONField(blank=True, null=True)),
                ("error", models.TextField(blank=True)),
                (
                    "benchmark",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to="annotation.benchmark"
                    ),
                ),
                (
                    "submission",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="uploads",
                        to="annotation.submission",
                    ),
                ),
                (
                    "uploaded_by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
            ],
            options={
                "ordering": ["-created_at"],
                "abstract": False,
            },
        ),
        migrations.CreateModel(
            name="AdjudicationFinding",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "finding",
                    models.CharField(
                        choices=[("met", "met"), ("unmet", "unmet"), ("unclear", "unclear")], max_length=8
                    ),
                ),
                ("step", models.PositiveIntegerField(blank=True, null=True)),
                (
                    "adjudication",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="findings",
                        to="annotation.adjudication",
                    ),
                ),
                (
                    "key_point",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to="annotation.keypoint"
                    ),
                ),
            ],
            options={
                "ordering": ["key_point__position", "key_point_id"],
                "constraints": [
                    models.UniqueConstraint(fields=("adjudication", "key_point"), name="finding_once_per_adjudication"),
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "finding__in",
                                [
                                    annotation.records.Finding["MET"],
                                    annotation.records.Finding["UNMET"],
                                    annotation.records.Finding["UNCLEAR"],
                                ],
                            )
                        ),
                        name="adjudication_finding_known",
                    ),
                ],
            },
        ),
        migrations.AddConstraint(
            model_name="keypoint",
            constraint=models.UniqueConstraint(
                condition=models.Q(("accepted_at__isnull", False), ("retired_at__isnull", True)),
                fields=("task", "text"),
                name="key_point_once_per_task",
            ),
        ),
        migrations.AddConstraint(
            model_name="keypoint",
            constraint=models.UniqueConstraint(
                condition=models.Q(("accepted_at__isnull", True), ("retired_at__isnull", True)),
                fields=("task", "text", "proposed_by"),
                name="key_point_proposed_once_per_person",
            ),
        ),
        migrations.AddIndex(
            model_name="assignment",
            index=models.Index(
                models.F("lease_expires_at"),
                condition=models.Q(("lease_expires_at__isnull", False)),
                name="assignment_leases",
            ),
        ),
        migrations.AddConstraint(
            model_name="assignment",
            constraint=models.UniqueConstraint(fields=("trajectory", "slot"), name="slot_given_once"),
        ),
        migrations.AddConstraint(
            model_name="assignment",
            constraint=models.UniqueConstraint(fields=("trajectory", "annotator"), name="one_slot_per_annotator"),
        ),
        migrations.AddConstraint(
            model_name="assignment",
            constraint=models.CheckConstraint(condition=models.Q(("slot__gte", 1)), name="slots_count_from_one"),
        ),
        migrations.RunPython(
            triggers.install,
            migrations.RunPython.noop,
        ),
    ]
