from django.db import migrations

from annotation.models import triggers


class Migration(migrations.Migration):
    dependencies = [("judges", "0007_failed_items_again")]

    operations = [migrations.RunPython(triggers.install, triggers.install)]
