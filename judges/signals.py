"""Signals of judge runs, for packages that judges must not import."""

from django.dispatch import Signal

#: Sent with ``run`` in the transaction that finishes a judge run; an error in a receiver rolls it back.
run_finished = Signal()
