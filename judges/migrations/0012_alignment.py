import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

from annotation.models import triggers


class Migration(migrations.Migration):
    dependencies = [
        ("annotation", "0030_resumable_uploads"),
        ("judges", "0011_indexes_of_batches"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="AlignmentSplit",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("seed", models.PositiveBigIntegerField()),
                ("digest", models.CharField(max_length=64)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "benchmark",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="alignment_split",
                        to="annotation.benchmark",
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
        ),
        migrations.CreateModel(
            name="Alignment",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("optimiser", models.CharField(max_length=40)),
                ("rounds", models.PositiveIntegerField()),
                ("max_cost", models.DecimalField(blank=True, decimal_places=4, max_digits=12, null=True)),
                ("max_calls", models.PositiveIntegerField(blank=True, null=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("finished_at", models.DateTimeField(blank=True, null=True)),
                ("finished", models.CharField(blank=True, max_length=500)),
                ("cancelled_at", models.DateTimeField(blank=True, null=True)),
                ("stopped", models.CharField(blank=True, max_length=500)),
                ("worker", models.CharField(blank=True, max_length=40)),
                ("heartbeat_at", models.DateTimeField(blank=True, null=True)),
                (
                    "created_by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
                (
                    "judge",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="alignments", to="judges.judge"
                    ),
                ),
                ("submissions", models.ManyToManyField(related_name="alignments", to="annotation.submission")),
                ("written", models.ManyToManyField(related_name="+", to="judges.judge")),
                (
                    "split",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="alignments",
                        to="judges.alignmentsplit",
                    ),
                ),
            ],
            options={
                "ordering": ["-created_at", "-pk"],
            },
        ),
        migrations.CreateModel(
            name="AlignmentTask",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("external_id", models.CharField(max_length=128)),
                (
                    "part",
                    models.CharField(
                        choices=[("train", "training"), ("development", "development"), ("test", "test")], max_length=20
                    ),
                ),
                ("texts", models.JSONField(default=list)),
                (
                    "split",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="tasks", to="judges.alignmentsplit"
                    ),
                ),
            ],
            options={
                "ordering": ["pk"],
            },
        ),
        migrations.CreateModel(
            name="AlignmentVersion",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("number", models.PositiveIntegerField()),
                ("figures", models.JSONField(null=True)),
                ("accepted", models.BooleanField(null=True)),
                ("reason", models.CharField(blank=True, max_length=500)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "alignment",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="versions", to="judges.alignment"
                    ),
                ),
                (
                    "judge",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="alignment_versions",
                        to="judges.judge",
                    ),
                ),
                (
                    "parent",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="children",
                        to="judges.alignmentversion",
                    ),
                ),
            ],
            options={
                "ordering": ["alignment", "number"],
            },
        ),
        migrations.CreateModel(
            name="AlignmentRun",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("replaced", models.BooleanField(default=False)),
                (
                    "part",
                    models.CharField(
                        choices=[("train", "training"), ("development", "development"), ("test", "test")], max_length=20
                    ),
                ),
                (
                    "run",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE, related_name="alignment_run", to="judges.judgerun"
                    ),
                ),
                (
                    "submission",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to="annotation.submission"
                    ),
                ),
                (
                    "version",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="runs", to="judges.alignmentversion"
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="DisagreementMark",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("right", models.CharField(choices=[("people", "people"), ("judge", "judge")], max_length=10)),
                ("marked_at", models.DateTimeField(auto_now_add=True)),
                (
                    "judgment",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="marks", to="judges.judgment"
                    ),
                ),
                (
                    "person",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
            ],
            options={
                "ordering": ["pk"],
            },
        ),
        migrations.CreateModel(
            name="LookAtTest",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("looked_at", models.DateTimeField(auto_now_add=True)),
                ("report", models.JSONField(null=True)),
                (
                    "person",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
                (
                    "version",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="looks", to="judges.alignmentversion"
                    ),
                ),
            ],
            options={
                "ordering": ["pk"],
            },
        ),
        migrations.AddConstraint(
            model_name="alignment",
            constraint=models.CheckConstraint(condition=models.Q(("rounds__gte", 1)), name="alignment_has_rounds"),
        ),
        migrations.AddConstraint(
            model_name="alignmenttask",
            constraint=models.UniqueConstraint(fields=("split", "external_id"), name="alignment_task_once"),
        ),
        migrations.AddConstraint(
            model_name="alignmenttask",
            constraint=models.CheckConstraint(
                condition=models.Q(("part__in", ["train", "development", "test"])), name="alignment_part_known"
            ),
        ),
        migrations.AddConstraint(
            model_name="alignmentversion",
            constraint=models.UniqueConstraint(fields=("alignment", "number"), name="alignment_version_once"),
        ),
        migrations.AddConstraint(
            model_name="alignmentversion",
            constraint=models.CheckConstraint(
                condition=models.Q(("number", 0), ("parent__isnull", False), _connector="XOR"),
                name="alignment_version_has_parent",
            ),
        ),
        migrations.AddConstraint(
            model_name="alignmentversion",
            constraint=models.CheckConstraint(
                condition=models.Q(("judge__isnull", False), ("accepted", False), _connector="OR"),
                name="alignment_version_without_text_lost",
            ),
        ),
        migrations.AddConstraint(
            model_name="alignmentrun",
            constraint=models.UniqueConstraint(
                condition=models.Q(("replaced", False)),
                fields=("version", "part", "submission"),
                name="alignment_run_once",
            ),
        ),
        migrations.AddConstraint(
            model_name="alignmentrun",
            constraint=models.CheckConstraint(
                condition=models.Q(("part__in", ["train", "development", "test"])), name="alignment_run_part_known"
            ),
        ),
        migrations.AddConstraint(
            model_name="disagreementmark",
            constraint=models.CheckConstraint(
                condition=models.Q(("right__in", ["people", "judge"])), name="mark_right_known"
            ),
        ),
        migrations.RunPython(triggers.install, triggers.install),
    ]
