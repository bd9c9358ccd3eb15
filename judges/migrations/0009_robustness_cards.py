import django.db.models.deletion
from django.db import migrations, models

from annotation.models import triggers


class Migration(migrations.Migration):
    dependencies = [("annotation", "0030_resumable_uploads"), ("judges", "0008_link_imported_judgments")]

    operations = [
        migrations.AddField(
            model_name="judgerun", name="robustness", field=models.JSONField(blank=True, null=True)
        ),
        migrations.CreateModel(
            name="RobustnessCard",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("fingerprint", models.CharField(max_length=64)),
                ("operators_version", models.PositiveIntegerField()),
                ("seed", models.PositiveBigIntegerField()),
                ("report", models.JSONField()),
                ("made_at", models.DateTimeField(auto_now_add=True)),
                (
                    "judge",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="robustness_cards",
                        to="judges.judge",
                    ),
                ),
                (
                    "run",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT, related_name="card", to="judges.judgerun"
                    ),
                ),
                (
                    "submission",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to="annotation.submission"
                    ),
                ),
            ],
            options={"ordering": ["-made_at", "-pk"]},
        ),
        migrations.RunPython(triggers.install, triggers.install),
    ]
