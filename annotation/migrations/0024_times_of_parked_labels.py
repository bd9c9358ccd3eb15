from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('annotation', '0023_process_labels'),
    ]

    operations = [
        migrations.AddField(
            model_name='label',
            name='submitted_at',
            field=models.DateTimeField(blank=True, null=True),
        ),
    ]
