from django.db import migrations

from annotation.models import triggers


class Migration(migrations.Migration):
    dependencies = [("annotation", "0001_initial")]

    operations = [migrations.RunPython(triggers.install, triggers.remove)]
