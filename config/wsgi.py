"""The web application, as gunicorn serves it."""

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
        "BEHIND_PROXY is 0. Without a proxy that passes on complete requests, slow clients can hold every thread: see "
        "docs/operator.md, Large and slow requests."
    )

scratch.sweep()  # uploads of killed web servers

# Every page is loaded before the first request, which would wait for it. What is loaded stays for good: the collector
# need not look at it again, nor run every 700 objects, when a report of thousands of trajectories makes a hundred
# thousand; that was a quarter of its time.
len(get_resolver().url_patterns)
gc.freeze()
gc.set_threshold(50_000, 20, 20)
