from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("annotation", "0016_boxes"),
    ]

    operations = [
        migrations.AddField(
            model_name="assignment",
            name="put_off_until",
            field=models.DateTimeField(blank=True, null=True),
        ),
    ]
