"""Our Celery application with a scheduler that looks for lost runs every second.

Nothing else is different: the jobs, the queues and the settings are those of the application.
"""

from config.celery import app

app.conf.beat_schedule = {"resume-runs": {"task": "judges.jobs.resume_runs", "schedule": 1.0}}
