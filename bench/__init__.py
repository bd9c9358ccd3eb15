"""Measurements that take minutes, run by hand as `python -m bench.<module>`."""

import os

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django.setup()
