from django.db import migrations, models

from annotation.models import triggers


class Migration(migrations.Migration):
    dependencies = [
        ("annotation", "0022_put_off_adjudications"),
    ]

    operations = [
        migrations.RunPython(triggers.remove, triggers.install),  # SQLite rebuilds the tables
        migrations.AddField(
            model_name="adjudication",
            name="process",
            field=models.JSONField(blank=True, db_default=[], default=list),
        ),
        migrations.AddField(
            model_name="label",
            name="process",
            field=models.JSONField(blank=True, db_default=[], default=list),
        ),
        migrations.AddField(
            model_name="submission",
            name="process_labels",
            field=models.BooleanField(db_default=False, default=False),
        ),
        migrations.AddField(
            model_name="upload",
            name="process_labels",
            field=models.BooleanField(db_default=False, default=False),
        ),
        migrations.RunPython(triggers.install, triggers.remove),
    ]
