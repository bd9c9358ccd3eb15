from django.db import migrations, models
from django.db.migrations.exceptions import IrreversibleError

from annotation.models import triggers

FAILURE = models.Q(("verdict", 0), _negated=True) | models.Q(("failure_type", ""), _negated=True)


FEW = 5  # submissions that are named where this is not undone


def refuse_failures_without_a_step(apps, schema_editor):
    """Before this migration every failure named its step; labels and decisions are never changed to make them fit."""
    rows = {"Label": "assignment__trajectory__submission", "Adjudication": "trajectory__submission"}
    lacking = set()
    for name, submission in rows.items():
        model = apps.get_model("annotation", name)
        lacking |= set(model.objects.filter(verdict=0, failure_step=None).values_list(submission, flat=True))
    if lacking:
        named = ", ".join(map(str, sorted(lacking)[:FEW])) + (", and more" if len(lacking) > FEW else "")
        raise IrreversibleError(
            f"annotation.0006_answers_and_references cannot be undone: submissions {named} have failures without a "
            "step, because answers have no steps, and before it every failure named one. Nothing of this migration was "
            "undone. Run migrate to have the newest version again."
        )


class Migration(migrations.Migration):
    dependencies = [("annotation", "0005_the_informed_second_stage")]

    operations = [
        migrations.AlterField(
            model_name="attachment",
            name="kind",
            field=models.CharField(
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
        migrations.AlterField(
            model_name="trajectory",
            name="source_format",
            field=models.CharField(
                choices=[
                    ("online-mind2web-v1", "online-mind2web-v1"),
                    ("online-mind2web-v2", "online-mind2web-v2"),
                    ("multimodal-mind2web", "multimodal-mind2web"),
                    ("mind2web-2", "mind2web-2"),
                ],
                max_length=32,
            ),
        ),
        # That a failure names its step is held by triggers from here on: an answer has no steps.
        migrations.RunPython(triggers.remove, triggers.install),
        migrations.RemoveConstraint("adjudication", "adjudication_failure_explained"),
        migrations.RemoveConstraint("label", "label_failure_explained"),
        migrations.AddConstraint(
            "adjudication",
            models.CheckConstraint(
                condition=models.Q(("decided_at__isnull", True)) | FAILURE, name="adjudication_failure_explained"
            ),
        ),
        migrations.AddConstraint("label", models.CheckConstraint(condition=FAILURE, name="label_failure_explained")),
        migrations.RunPython(triggers.install, migrations.RunPython.noop),
        # The last one, so the first on the way back.
        migrations.RunPython(migrations.RunPython.noop, refuse_failures_without_a_step),
    ]
