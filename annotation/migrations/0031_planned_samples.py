import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

from annotation.models import triggers


class Migration(migrations.Migration):

    dependencies = [
        ('annotation', '0030_resumable_uploads'),
    ]

    operations = [
        migrations.RunPython(migrations.RunPython.noop, triggers.install),
        migrations.CreateModel(
            name='SamplePlan',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('goal', models.JSONField()),
                ('judge', models.JSONField()),
                ('labels', models.JSONField()),
                ('estimand', models.CharField(choices=[('runs', 'Runs'), ('agent', 'Agent')], max_length=8)),
                ('rule', models.JSONField()),
                ('secret', models.CharField(max_length=80)),
                ('seed', models.CharField(max_length=64)),
                ('planned_at', models.DateTimeField()),
                ('planned_by', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('submission', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, related_name='sample_plan', to='annotation.submission')),
            ],
        ),
        migrations.CreateModel(
            name='PlannedItem',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('stratum', models.CharField(max_length=200)),
                ('judged', models.PositiveSmallIntegerField(blank=True, null=True)),
                ('probability', models.FloatField()),
                ('position', models.PositiveIntegerField(blank=True, null=True)),
                ('trajectory', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, related_name='planned_item', to='annotation.trajectory')),
                ('plan', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='items', to='annotation.sampleplan')),
            ],
        ),
        migrations.AddConstraint(
            model_name='sampleplan',
            constraint=models.CheckConstraint(condition=models.Q(('estimand__in', ['runs', 'agent'])), name='plan_estimand_known'),
        ),
        migrations.AddConstraint(
            model_name='planneditem',
            constraint=models.UniqueConstraint(fields=('plan', 'position'), name='planned_position_once'),
        ),
        migrations.AddConstraint(
            model_name='planneditem',
            constraint=models.CheckConstraint(condition=models.Q(('probability__gt', 0), ('probability__lte', 1)), name='planned_with_a_chance'),
        ),
        migrations.AddConstraint(
            model_name='planneditem',
            constraint=models.CheckConstraint(condition=models.Q(('stratum', ''), _negated=True), name='planned_in_a_stratum'),
        ),
        migrations.RunPython(triggers.install, triggers.remove),
    ]
