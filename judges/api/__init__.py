"""Judges, runs and judgments for the scripts of maintainers, below /api/v1/."""
