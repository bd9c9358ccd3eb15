from django.db import migrations, models
from django.db.models import OuterRef, Subquery

from annotation.models import triggers


def name_originals(apps, schema_editor):
    """Redactions made here were known by their screenshot only."""
    screenshots = apps.get_model("annotation", "Screenshot").objects.filter(pk=OuterRef("screenshot"))
    require_writable = apps.get_model("annotation", "Redaction").objects.filter(screenshot__isnull=False)
    require_writable.update(original=Subquery(screenshots.values("sha256")[:1]))


def name_screenshots(apps, schema_editor):
    screenshots = apps.get_model("annotation", "Screenshot").objects.filter(sha256=OuterRef("original"))
    require_writable = apps.get_model("annotation", "Redaction").objects.filter(submission__audited=False)
    require_writable.update(screenshot=Subquery(screenshots.values("pk")[:1]), original="")


class Migration(migrations.Migration):

    dependencies = [
        ('annotation', '0007_audits_and_privacy'),
    ]

    operations = [
        migrations.RunPython(triggers.remove, triggers.install),
        migrations.RemoveConstraint(
            model_name='redaction',
            name='redaction_revision_once',
        ),
        migrations.RemoveConstraint(
            model_name='redaction',
            name='bundled_redaction_revision_once',
        ),
        migrations.RemoveConstraint(
            model_name='redaction',
            name='redaction_of_one_picture',
        ),
        migrations.RunPython(name_originals, name_screenshots),
        migrations.AlterField(
            model_name='redaction',
            name='original',
            field=models.CharField(max_length=64),
        ),
        migrations.RemoveField(
            model_name='redaction',
            name='screenshot',
        ),
        migrations.AddConstraint(
            model_name='redaction',
            constraint=models.UniqueConstraint(fields=('submission', 'original', 'revision'), name='redaction_revision_once'),
        ),
        migrations.AddConstraint(
            model_name='redaction',
            constraint=models.CheckConstraint(condition=models.Q(('original', ''), _negated=True), name='redaction_of_a_picture'),
        ),
        migrations.RunPython(triggers.install, triggers.remove),
    ]
