"""The Celery application: `celery --app config worker`. Jobs are in the modules `jobs` of the apps."""

import os
import sys
from pathlib import Path

from celery import Celery

from config.heartbeats import WorkerHeartbeat

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

app = Celery("webverdict")
# Celery has put the current folder first, whose files could hide modules. Our own folder belongs there.
sys.path[0] = str(Path(__file__).parents[1])
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(related_name="jobs")
app.steps["worker"].add(WorkerHeartbeat)
