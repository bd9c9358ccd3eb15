import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

from annotation.models import triggers


def begin_checks(apps, schema_editor):
    """What was found when a bundle was opened is its first check; what was given then, nobody has written down."""
    checks = apps.get_model("evaluations", "AuditCheck").objects
    for audit in apps.get_model("evaluations", "Audit").objects.order_by("pk").iterator(chunk_size=20):
        checks.create(
            audit_id=audit.pk,
            checked_by_id=audit.opened_by_id,
            checked_at=audit.opened_at,
            given=None,
            key_id=audit.key_id,
            key_trusted=audit.key_trusted,
            findings=audit.findings,
        )


def keep_the_newest(apps, schema_editor):
    """An audit has room for one check there, and that is the present state."""
    audits = apps.get_model("evaluations", "Audit").objects
    for check in apps.get_model("evaluations", "AuditCheck").objects.order_by("checked_at", "pk").iterator(chunk_size=20):
        columns = {"key_id": check.key_id, "key_trusted": check.key_trusted, "findings": check.findings}
        audits.filter(pk=check.audit_id).update(**columns)


class Migration(migrations.Migration):
    dependencies = [
        ("evaluations", "0003_bundle_uploads"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="AuditCheck",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("checked_at", models.DateTimeField()),
                ("given", models.JSONField(null=True)),
                ("key_id", models.CharField(blank=True, max_length=16)),
                ("key_trusted", models.BooleanField()),
                ("findings", models.JSONField()),
                (
                    "audit",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="checks", to="evaluations.audit"
                    ),
                ),
                (
                    "checked_by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
            ],
            options={"ordering": ["checked_at", "pk"]},
        ),
        # With defaults, so that the way back can make the columns before they are filled.
        migrations.AlterField("audit", "findings", models.JSONField(default=list)),
        migrations.AlterField("audit", "key_id", models.CharField(blank=True, default="", max_length=16)),
        migrations.RunPython(begin_checks, keep_the_newest),
        migrations.RemoveField("audit", "findings"),
        migrations.RemoveField("audit", "key_id"),
        migrations.RemoveField("audit", "key_trusted"),
        migrations.AddField("bundleupload", "again", models.BooleanField(default=False)),
        migrations.RunPython(triggers.install, migrations.RunPython.noop),
    ]
