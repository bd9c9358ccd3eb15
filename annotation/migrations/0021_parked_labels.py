from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('annotation', '0020_comments_and_questions'),
    ]

    operations = [
        migrations.AddField(
            model_name='assignment',
            name='submit_at',
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddIndex(
            model_name='assignment',
            index=models.Index(models.F('submit_at'), condition=models.Q(('submit_at__isnull', False)), name='assignment_parked'),
        ),
    ]
