import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

from annotation.models import triggers


class Migration(migrations.Migration):

    dependencies = [
        ('annotation', '0031_planned_samples'),
    ]

    operations = [
        migrations.RunPython(migrations.RunPython.noop, triggers.install),
        migrations.CreateModel(
            name='SampleStop',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('labelled', models.PositiveIntegerField()),
                ('stopped_at', models.DateTimeField()),
                ('plan', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, related_name='stop', to='annotation.sampleplan')),
                ('stopped_by', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'constraints': [models.CheckConstraint(condition=models.Q(('labelled__gt', 0)), name='stopped_after_a_label')],
            },
        ),
        migrations.RunPython(triggers.install, triggers.remove),
    ]
