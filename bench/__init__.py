"""Measurements that take minutes. Run one with `python -m bench.<module>`."""

import os

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django.setup()
