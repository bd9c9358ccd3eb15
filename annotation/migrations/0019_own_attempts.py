from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("annotation", "0018_flag_answers"),
    ]

    operations = [
        migrations.AddField(
            model_name="humanattempt",
            name="seconds",
            field=models.PositiveIntegerField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="upload",
            name="protocol_version",
            field=models.PositiveSmallIntegerField(db_default=1, default=1),
        ),
    ]
