import re

from django.db import migrations, models

from annotation.models import triggers

# As judges.scorers.upstream and judges.judgment_rows read replies at this version.
BY_STATUS = ("webjudge", "webjudge-general", "autonomous-eval", "agenttrek")
BY_CAPITALS = "webvoyager"
STATES = re.compile("success|fail")
STATUS = re.compile(r"[\s*#\"']{0,6}\bstatus\W{0,4}:", re.IGNORECASE)
FAILURE = 0


def mark(apps, schema_editor):
    """Mark earlier judgments by their replies; judgments from a bundle have no replies."""
    judgments = apps.get_model("judges", "Judgment").objects.order_by().filter(verdict__isnull=False)
    upstream = judgments.filter(item__isnull=False, judge__parameters__mode="upstream").exclude(response="")
    imported = judgments.filter(imported__shape="webjudge", verdict=FAILURE)
    rows = upstream.values_list("pk", "judge__scorer", "response").iterator(chunk_size=500)
    _mark(judgments, (pk for pk, scorer, reply in rows if not _stated(scorer, reply)))
    rows = imported.values_list("pk", "response").iterator(chunk_size=500)
    _mark(judgments, (pk for pk, reply in rows if not STATUS.search(reply)))


def _stated(scorer, reply):
    if scorer == BY_CAPITALS:
        return "FAILURE" in reply or "SUCCESS" in reply
    between = reply.lower().split("status:")[1:2]
    return scorer not in BY_STATUS or bool(between and STATES.search(between[0]))


def _mark(judgments, found):
    pks = list(found)
    for start in range(0, len(pks), 500):
        judgments.filter(pk__in=pks[start : start + 500]).update(status_not_stated=True)


class Migration(migrations.Migration):
    dependencies = [("judges", "0004_endpoint_addresses")]

    operations = [
        migrations.RunPython(triggers.remove, triggers.install),
        migrations.AddField(
            model_name="judgment",
            name="status_not_stated",
            field=models.BooleanField(db_default=False, default=False),
        ),
        migrations.RunPython(mark, migrations.RunPython.noop),
        migrations.RunPython(triggers.install, triggers.remove),
    ]
