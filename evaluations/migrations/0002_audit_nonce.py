from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("evaluations", "0001_keys_anchors_audits"),
    ]

    operations = [
        migrations.AddField(
            model_name="audit",
            name="nonce",
            field=models.CharField(blank=True, max_length=64, default=""),
            preserve_default=False,
        ),
    ]
