from typing import Any

from django.db import migrations, models

from annotation.models import triggers


def number_reopenings(apps: Any, schema_editor: Any) -> None:
    """The decision that a reopening asked for is the one after those that were made before it."""
    adjudications = apps.get_model("annotation", "Adjudication").objects
    for reopening in apps.get_model("annotation", "Reopening").objects.all():
        before = adjudications.filter(trajectory=reopening.trajectory_id, decided_at__lt=reopening.reopened_at)
        reopening.revision = before.count() + 1
        reopening.save(update_fields=["revision"])


class Migration(migrations.Migration):
    dependencies = [("annotation", "0003_the_desk")]

    operations = [
        migrations.RunPython(triggers.remove, triggers.install),
        migrations.AddField("release", "lifted_at", models.DateTimeField(blank=True, null=True)),
        migrations.RemoveConstraint("release", "released_once"),
        migrations.AddConstraint(
            "release",
            models.UniqueConstraint(
                condition=models.Q(("lifted_at__isnull", True)), fields=("trajectory", "annotator"), name="released_once"
            ),
        ),
        migrations.AddField("reopening", "revision", models.PositiveIntegerField(default=1), preserve_default=False),
        migrations.RunPython(number_reopenings, migrations.RunPython.noop),
        migrations.RunPython(triggers.install, migrations.RunPython.noop),
    ]
