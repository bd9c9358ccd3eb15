import django.db.models.deletion
from django.db import migrations, models

from annotation.models import triggers


class Migration(migrations.Migration):
    dependencies = [("annotation", "0004_reopenings_and_releases")]

    operations = [
        migrations.RunPython(triggers.remove, triggers.install),
        migrations.AddField("submission", "second_stage", models.BooleanField(default=False)),
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
        migrations.RunPython(triggers.install, migrations.RunPython.noop),
    ]
