"""The web application that gunicorn serves."""

import gc
import logging
import os

from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.urls import get_resolver

from annotation.formats import scratch

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
application = get_wsgi_application()

if settings.PRODUCTION and not settings.BEHIND_PROXY:
    logging.getLogger(__name__).warning(
        "BEHIND_PROXY is 0. Without a proxy that only passes on complete requests, slow clients can "
        "block every thread: see docs/operator.md, Large and slow requests."
    )

scratch.sweep()  # uploads of killed web servers

# Load every page now, so that the first request does not wait. Loaded objects are permanent: the garbage collector need
# not check them again. It need not run every 700 objects either: a report of thousands of trajectories creates 100,000,
# and collection took a quarter of its time.
len(get_resolver().url_patterns)
gc.freeze()
gc.set_threshold(50_000, 20, 20)
