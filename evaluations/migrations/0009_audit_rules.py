from django.conf import settings
from django.db import migrations, models

from annotation.models import triggers


class Migration(migrations.Migration):

    dependencies = [
        ('annotation', '0032_sample_stops'),
        ('evaluations', '0008_registry'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.RunPython(migrations.RunPython.noop, triggers.install),
        migrations.AddField(
            model_name='audit',
            name='tolerance',
            field=models.FloatField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name='auditdecision',
            name='rule_said',
            field=models.CharField(blank=True, db_default='', default='', max_length=10),
        ),
        migrations.AddConstraint(
            model_name='audit',
            constraint=models.CheckConstraint(condition=models.Q(('tolerance__gt', 0), ('tolerance__lt', 1)), name='audit_tolerance_is_a_share'),
        ),
        migrations.RunPython(triggers.install, migrations.RunPython.noop),
    ]
