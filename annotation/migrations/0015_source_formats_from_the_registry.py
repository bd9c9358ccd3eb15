from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("annotation", "0014_state_snapshots"),
    ]

    operations = [
        migrations.AlterField(
            model_name="trajectory",
            name="source_format",
            field=models.CharField(max_length=32),
        ),
    ]
