from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("annotation", "0021_parked_labels"),
    ]

    operations = [
        migrations.AddField(
            model_name="adjudication",
            name="put_off_until",
            field=models.DateTimeField(blank=True, null=True),
        ),
    ]
