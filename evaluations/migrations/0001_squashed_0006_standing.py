"""Create the schema of a new database in one step. Databases of earlier versions run the replaced migrations."""

import django.db.models.deletion
import uuid
from django.conf import settings
from django.db import migrations, models

from annotation.models import triggers


class Migration(migrations.Migration):
    replaces = [
        ("evaluations", "0001_keys_anchors_audits"),
        ("evaluations", "0002_audit_nonce"),
        ("evaluations", "0003_bundle_uploads"),
        ("evaluations", "0004_audit_checks"),
        ("evaluations", "0005_database_defaults"),
        ("evaluations", "0006_standing"),
    ]

    initial = True

    dependencies = [
        ("annotation", "0001_squashed_0015_source_formats_from_the_registry"),
    ]

    operations = [
        migrations.CreateModel(
            name="Audit",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("file_name", models.CharField(max_length=255)),
                ("manifest", models.CharField(max_length=64, unique=True)),
                ("opened_at", models.DateTimeField()),
                ("seed", models.CharField(blank=True, max_length=64)),
                ("nonce", models.CharField(blank=True, db_default="", default="", max_length=64)),
                ("size", models.PositiveIntegerField(blank=True, null=True)),
                ("drawn_at", models.DateTimeField(blank=True, null=True)),
                (
                    "opened_by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
                (
                    "submission",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT, related_name="audit", to="annotation.submission"
                    ),
                ),
            ],
            options={
                "ordering": ["-opened_at", "-pk"],
            },
        ),
        migrations.CreateModel(
            name="AuditCheck",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("checked_at", models.DateTimeField()),
                ("given", models.JSONField(null=True)),
                ("key_id", models.CharField(blank=True, max_length=16)),
                ("key_trusted", models.BooleanField()),
                ("findings", models.JSONField()),
                (
                    "audit",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="checks", to="evaluations.audit"
                    ),
                ),
                (
                    "checked_by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
            ],
            options={
                "ordering": ["checked_at", "pk"],
            },
        ),
        migrations.CreateModel(
            name="BundleUpload",
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
                ("given", models.TextField(blank=True)),
                ("refused", models.TextField(blank=True)),
                ("findings", models.JSONField(blank=True, default=list)),
                ("again", models.BooleanField(db_default=False, default=False)),
                (
                    "audit",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="evaluations.audit",
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
            name="SigningKey",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("key_id", models.CharField(max_length=16, unique=True)),
                ("public", models.CharField(max_length=64, unique=True)),
                ("sealed", models.TextField()),
                ("created_at", models.DateTimeField()),
                ("retired_at", models.DateTimeField(blank=True, null=True)),
            ],
            options={
                "ordering": ["created_at", "pk"],
                "constraints": [
                    models.UniqueConstraint(
                        models.Value(1), condition=models.Q(("retired_at__isnull", True)), name="one_active_signing_key"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Standing",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("key", models.CharField(blank=True, max_length=64)),
                ("claims", models.JSONField(default=list)),
                ("named", models.JSONField(default=list)),
                ("requested_at", models.DateTimeField()),
                ("computed_at", models.DateTimeField(blank=True, null=True)),
                (
                    "submission",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="annotation.submission"
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Anchor",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "method",
                    models.CharField(
                        choices=[("file", "File"), ("webhook", "Webhook"), ("rfc3161", "time stamp")], max_length=10
                    ),
                ),
                ("sequence", models.PositiveBigIntegerField()),
                ("head", models.CharField(max_length=64)),
                ("target", models.CharField(max_length=300)),
                ("token", models.TextField(blank=True)),
                ("error", models.CharField(blank=True, max_length=500)),
                ("published_at", models.DateTimeField()),
                (
                    "submission",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="anchors", to="annotation.submission"
                    ),
                ),
            ],
            options={
                "ordering": ["sequence", "method"],
                "constraints": [
                    models.UniqueConstraint(fields=("submission", "method", "sequence"), name="anchor_once_per_head"),
                    models.CheckConstraint(
                        condition=models.Q(("method__in", ["file", "webhook", "rfc3161"])), name="anchor_method_known"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="AuditDecision",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "outcome",
                    models.CharField(
                        choices=[("accept", "accepted"), ("query", "queried"), ("reject", "rejected")], max_length=10
                    ),
                ),
                ("reason", models.TextField()),
                ("decided_at", models.DateTimeField()),
                (
                    "audit",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="decisions", to="evaluations.audit"
                    ),
                ),
                (
                    "decided_by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
            ],
            options={
                "ordering": ["decided_at", "pk"],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("reason", ""), _negated=True), name="audit_decision_has_a_reason"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("outcome__in", ["accept", "query", "reject"])), name="audit_outcome_known"
                    ),
                ],
            },
        ),
        migrations.RunPython(
            triggers.install,
            migrations.RunPython.noop,
        ),
    ]
