import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models
from django.db.migrations.exceptions import IrreversibleError

from annotation.models import triggers

FEW = 5  # that are named where this is not undone


def refuse_with_bundled_judges(apps, schema_editor):
    """Without their submission they would be judges of the instance, or the second of their name."""
    came = apps.get_model("judges", "Judge").objects.filter(came_with__isnull=False).order_by("pk")
    if number := came.count():
        named = ", ".join(f"{row.name}@{row.version} of submission {row.came_with_id}" for row in came[:FEW])
        more = f" and {number - FEW} more" if number > FEW else ""
        raise IrreversibleError(
            f"judges.0003_bundled_judges cannot be undone: judges came in evidence bundles ({named}{more}), and before "
            "it there is no place for them."
        )


class Migration(migrations.Migration):

    dependencies = [
        ('annotation', '0007_audits_and_privacy'),
        ('judges', '0002_expectations'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.RunPython(triggers.remove, triggers.install),
        migrations.RemoveConstraint(
            model_name='judge',
            name='judge_version_once',
        ),
        migrations.AddField(
            model_name='judge',
            name='came_with',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='bundled_judges', to='annotation.submission'),
        ),
        migrations.AddField(
            model_name='judge',
            name='stated',
            field=models.CharField(blank=True, max_length=64),
        ),
        migrations.AddConstraint(
            model_name='judge',
            constraint=models.UniqueConstraint(condition=models.Q(('came_with__isnull', True)), fields=('name', 'version'), name='judge_version_once'),
        ),
        migrations.AddConstraint(
            model_name='judge',
            constraint=models.UniqueConstraint(condition=models.Q(('came_with__isnull', False)), fields=('came_with', 'name', 'version'), name='bundled_judge_version_once'),
        ),
        migrations.AddConstraint(
            model_name='judge',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('came_with__isnull', True), ('stated', '')), models.Q(('came_with__isnull', False), models.Q(('stated', ''), _negated=True)), _connector='OR'), name='bundled_judge_as_stated'),
        ),
        migrations.RunPython(triggers.install, triggers.remove),
        migrations.RunPython(migrations.RunPython.noop, refuse_with_bundled_judges),
    ]
