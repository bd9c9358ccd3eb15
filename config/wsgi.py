"""The web application, as gunicorn serves it."""

import gc
import os

from django.core.wsgi import get_wsgi_application
from django.urls import get_resolver

from annotation.formats import scratch

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
application = get_wsgi_application()

scratch.sweep()  # uploads of killed web servers

# Every page is loaded before the first request, which would wait for it. What is loaded stays for good: the collector
# need not look at it again, nor run every 700 objects, when a report of thousands of trajectories makes a hundred
# thousand; that was a quarter of its time.
len(get_resolver().url_patterns)
gc.freeze()
gc.set_threshold(50_000, 20, 20)
