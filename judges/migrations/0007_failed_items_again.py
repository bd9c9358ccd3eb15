from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("judges", "0006_database_defaults")]

    operations = [
        migrations.AddField(
            model_name="judgerun", name="retried_at", field=models.DateTimeField(blank=True, null=True)
        ),
        migrations.AddField(
            model_name="runitem", name="passing", field=models.BooleanField(db_default=False, default=False)
        ),
    ]
