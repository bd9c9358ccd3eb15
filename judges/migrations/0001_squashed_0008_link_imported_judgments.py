"""Create the schema of a new database in one step. Databases of earlier versions run the replaced migrations."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

from annotation.models import triggers


class Migration(migrations.Migration):
    replaces = [
        ("judges", "0001_judges_and_runs"),
        ("judges", "0002_expectations"),
        ("judges", "0003_bundled_judges"),
        ("judges", "0004_endpoint_addresses"),
        ("judges", "0005_status_not_stated"),
        ("judges", "0006_database_defaults"),
        ("judges", "0007_failed_items_again"),
        ("judges", "0008_link_imported_judgments"),
    ]

    initial = True

    dependencies = [
        ("annotation", "0001_squashed_0015_source_formats_from_the_registry"),
    ]

    operations = [
        migrations.CreateModel(
            name="EndpointAddress",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=40, unique=True)),
                ("address", models.TextField()),
            ],
        ),
        migrations.CreateModel(
            name="RateWindow",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=300, unique=True)),
                ("left", models.FloatField()),
                ("at", models.FloatField(help_text="Unix time of `left`, in seconds.")),
            ],
        ),
        migrations.CreateModel(
            name="Judge",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.SlugField(max_length=64)),
                ("version", models.PositiveIntegerField(default=1)),
                ("description", models.CharField(blank=True, max_length=500)),
                ("scorer", models.CharField(max_length=40)),
                ("scorer_version", models.PositiveIntegerField(default=1)),
                ("endpoint", models.CharField(default="default", max_length=40)),
                ("model", models.CharField(blank=True, max_length=200)),
                ("prompts", models.CharField(blank=True, max_length=100)),
                ("prompts_digest", models.CharField(blank=True, max_length=64)),
                ("parameters", models.JSONField(default=dict)),
                ("generation", models.JSONField(default=dict)),
                ("concurrency", models.PositiveIntegerField(default=16)),
                ("timeout", models.FloatField(default=120.0)),
                ("attempts", models.PositiveIntegerField(default=6)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("frozen_at", models.DateTimeField(blank=True, null=True)),
                ("stated", models.CharField(blank=True, db_default="", default="", max_length=64)),
                (
                    "came_with",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="bundled_judges",
                        to="annotation.submission",
                    ),
                ),
                (
                    "created_by",
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
                "ordering": ["name", "-version"],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("came_with__isnull", True)),
                        fields=("name", "version"),
                        name="judge_version_once",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("came_with__isnull", False)),
                        fields=("came_with", "name", "version"),
                        name="bundled_judge_version_once",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("came_with__isnull", True), ("stated", "")),
                            models.Q(("came_with__isnull", False), models.Q(("stated", ""), _negated=True)),
                            _connector="OR",
                        ),
                        name="bundled_judge_as_stated",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="JudgeRun",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("selection", models.JSONField(default=dict)),
                ("repetitions", models.PositiveIntegerField(default=1)),
                ("test", models.BooleanField(default=False)),
                ("fresh", models.BooleanField(default=False)),
                ("max_cost", models.DecimalField(blank=True, decimal_places=4, max_digits=12, null=True)),
                ("estimate", models.JSONField(default=dict)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("started_at", models.DateTimeField(blank=True, null=True)),
                ("paused_at", models.DateTimeField(blank=True, null=True)),
                ("cancelled_at", models.DateTimeField(blank=True, null=True)),
                ("finished_at", models.DateTimeField(blank=True, null=True)),
                ("stopped", models.CharField(blank=True, max_length=500)),
                ("called_at", models.DateTimeField(blank=True, null=True)),
                ("retried_at", models.DateTimeField(blank=True, null=True)),
                (
                    "created_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "judge",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="runs", to="judges.judge"
                    ),
                ),
                (
                    "submission",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="judge_runs",
                        to="annotation.submission",
                    ),
                ),
            ],
            options={
                "ordering": ["-created_at", "-pk"],
                "indexes": [
                    models.Index(
                        models.F("id"),
                        condition=models.Q(("cancelled_at__isnull", True), ("finished_at__isnull", True)),
                        name="judge_run_open",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="ModelTerms",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("endpoint", models.CharField(default="default", max_length=40)),
                ("model", models.CharField(max_length=200)),
                ("input_price", models.DecimalField(blank=True, decimal_places=6, max_digits=12, null=True)),
                ("cached_price", models.DecimalField(blank=True, decimal_places=6, max_digits=12, null=True)),
                ("output_price", models.DecimalField(blank=True, decimal_places=6, max_digits=12, null=True)),
                ("requests_per_minute", models.PositiveIntegerField(blank=True, null=True)),
                ("tokens_per_minute", models.PositiveIntegerField(blank=True, null=True)),
                ("changed_at", models.DateTimeField(auto_now=True)),
                (
                    "changed_by",
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
                "verbose_name_plural": "model terms",
                "ordering": ["endpoint", "model"],
                "constraints": [
                    models.UniqueConstraint(fields=("endpoint", "model"), name="model_terms_once"),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("input_price__lt", 0), _negated=True),
                            models.Q(("cached_price__lt", 0), _negated=True),
                            models.Q(("output_price__lt", 0), _negated=True),
                        ),
                        name="model_prices_not_negative",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("requests_per_minute", 0), _negated=True),
                            models.Q(("tokens_per_minute", 0), _negated=True),
                        ),
                        name="model_limits_positive",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="PromptSet",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.SlugField(max_length=64)),
                ("digest", models.CharField(max_length=64)),
                ("texts", models.JSONField()),
                ("source", models.CharField(blank=True, max_length=500)),
                ("loaded_at", models.DateTimeField(auto_now_add=True)),
                (
                    "loaded_by",
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
                "ordering": ["name", "-loaded_at"],
                "constraints": [models.UniqueConstraint(fields=("name", "digest"), name="prompt_set_once")],
            },
        ),
        migrations.CreateModel(
            name="RunItem",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("repetition", models.PositiveIntegerField(default=1)),
                ("attempt", models.PositiveIntegerField(default=0)),
                ("worker", models.CharField(blank=True, max_length=40)),
                ("taken_at", models.DateTimeField(blank=True, null=True)),
                ("heartbeat_at", models.DateTimeField(blank=True, null=True)),
                ("done_at", models.DateTimeField(blank=True, null=True)),
                ("failed_at", models.DateTimeField(blank=True, null=True)),
                ("error", models.TextField(blank=True)),
                ("passing", models.BooleanField(db_default=False, default=False)),
                (
                    "run",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="items", to="judges.judgerun"
                    ),
                ),
                (
                    "trajectory",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to="annotation.trajectory"
                    ),
                ),
            ],
            options={
                "ordering": ["pk"],
                "indexes": [
                    models.Index(
                        models.F("run"),
                        models.F("id"),
                        condition=models.Q(("done_at__isnull", True), ("failed_at__isnull", True)),
                        name="run_item_to_do",
                    )
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("run", "trajectory", "repetition"), name="run_item_once"),
                    models.CheckConstraint(
                        condition=models.Q(("done_at__isnull", True), ("failed_at__isnull", True), _connector="OR"),
                        name="run_item_done_or_failed",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="ModelCall",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("attempt", models.PositiveIntegerField()),
                ("number", models.PositiveIntegerField(blank=True, null=True)),
                ("stage", models.CharField(max_length=40)),
                ("step", models.PositiveIntegerField(blank=True, null=True)),
                ("key", models.CharField(max_length=64)),
                ("sample", models.CharField(default="1", max_length=40)),
                ("request", models.JSONField(blank=True, null=True)),
                ("reply", models.TextField(blank=True, null=True)),
                ("hit", models.BooleanField(default=False)),
                ("model", models.CharField(blank=True, max_length=200)),
                ("finish", models.CharField(blank=True, max_length=40)),
                ("prompt_tokens", models.PositiveIntegerField(blank=True, null=True)),
                ("cached_tokens", models.PositiveIntegerField(blank=True, null=True)),
                ("completion_tokens", models.PositiveIntegerField(blank=True, null=True)),
                ("reasoning_tokens", models.PositiveIntegerField(blank=True, null=True)),
                ("cost", models.DecimalField(blank=True, decimal_places=8, max_digits=14, null=True)),
                ("latency", models.PositiveIntegerField(blank=True, null=True)),
                ("retries", models.PositiveSmallIntegerField(default=0)),
                ("error", models.TextField(blank=True)),
                ("pruned_at", models.DateTimeField(blank=True, null=True)),
                ("made_at", models.DateTimeField()),
                (
                    "hit_of",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="hits",
                        to="judges.modelcall",
                    ),
                ),
                (
                    "item",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="calls",
                        to="judges.runitem",
                    ),
                ),
            ],
            options={
                "ordering": ["pk"],
                "indexes": [
                    models.Index(
                        models.F("key"),
                        models.F("sample"),
                        condition=models.Q(("reply__isnull", False)),
                        name="model_call_reply",
                    ),
                    models.Index(
                        fields=["item", "hit", "cost", "prompt_tokens", "completion_tokens"], name="model_call_paid"
                    ),
                ],
                "constraints": [models.UniqueConstraint(fields=("item", "attempt", "number"), name="model_call_once")],
            },
        ),
        migrations.CreateModel(
            name="Judgment",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("fingerprint", models.CharField(max_length=64)),
                ("repetition", models.PositiveIntegerField(default=1)),
                (
                    "verdict",
                    models.PositiveSmallIntegerField(
                        blank=True, choices=[(0, "failure"), (1, "success"), (2, "not executable")], null=True
                    ),
                ),
                ("unscored", models.CharField(blank=True, max_length=500)),
                ("score", models.FloatField(blank=True, null=True)),
                ("explanation", models.TextField(blank=True)),
                ("evidence", models.JSONField(default=dict)),
                ("response", models.TextField(blank=True)),
                ("model", models.CharField(blank=True, max_length=200)),
                ("tokens", models.PositiveIntegerField(blank=True, null=True)),
                ("cost", models.DecimalField(blank=True, decimal_places=8, max_digits=14, null=True)),
                ("imported", models.JSONField(blank=True, null=True)),
                ("status_not_stated", models.BooleanField(db_default=False, default=False)),
                ("made_at", models.DateTimeField()),
                (
                    "agent",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to="annotation.agent"
                    ),
                ),
                (
                    "judge",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="judgments", to="judges.judge"
                    ),
                ),
                (
                    "task",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to="annotation.task"
                    ),
                ),
                (
                    "trajectory",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="judgments",
                        to="annotation.trajectory",
                    ),
                ),
                (
                    "item",
                    models.OneToOneField(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="judgment",
                        to="judges.runitem",
                    ),
                ),
            ],
            options={
                "ordering": ["-made_at", "-pk"],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("verdict__isnull", True), ("verdict__in", [0, 1, 2]), _connector="OR"),
                        name="judgment_verdict_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("verdict__isnull", True), ("unscored", ""), _connector="XOR"),
                        name="judgment_verdict_or_unscored",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("item__isnull", True), ("imported__isnull", True), _connector="XOR"),
                        name="judgment_made_here_or_imported",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("item__isnull", True)),
                        fields=("judge", "task", "agent", "repetition"),
                        name="imported_judgment_once",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Expectation",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "kind",
                    models.CharField(
                        choices=[("network_checks", "network checks"), ("rubric", "rubric")], max_length=20
                    ),
                ),
                ("version", models.PositiveIntegerField()),
                ("text", models.TextField(blank=True)),
                ("digest", models.CharField(max_length=64)),
                ("why", models.CharField(blank=True, max_length=500)),
                ("written_at", models.DateTimeField(auto_now_add=True)),
                (
                    "task",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="expectations", to="annotation.task"
                    ),
                ),
                (
                    "written_by",
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
                "ordering": ["task", "kind", "-version"],
                "constraints": [
                    models.UniqueConstraint(fields=("task", "kind", "version"), name="expectation_version_once"),
                    models.CheckConstraint(
                        condition=models.Q(("kind__in", ["network_checks", "rubric"])), name="expectation_kind_known"
                    ),
                ],
            },
        ),
        migrations.RunPython(
            triggers.install,
            migrations.RunPython.noop,
        ),
    ]
