from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("judges", "0003_bundled_judges")]

    operations = [
        migrations.CreateModel(
            name="EndpointAddress",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=40, unique=True)),
                ("address", models.TextField()),
            ],
        ),
    ]
