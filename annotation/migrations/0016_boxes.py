from django.db import migrations, models

from annotation.models import triggers


class Migration(migrations.Migration):
    dependencies = [
        ("annotation", "0001_squashed_0015_source_formats_from_the_registry"),
    ]

    operations = [
        migrations.RunPython(triggers.remove, triggers.install),  # SQLite rebuilds the tables
        migrations.AddField(
            model_name="adjudication",
            name="boxes",
            field=models.JSONField(blank=True, db_default=[], default=list),
        ),
        migrations.AddField(
            model_name="label",
            name="boxes",
            field=models.JSONField(blank=True, db_default=[], default=list),
        ),
        migrations.RunPython(triggers.install, triggers.remove),
    ]
