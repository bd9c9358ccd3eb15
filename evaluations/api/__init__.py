"""Exports and figures for the scripts of maintainers, below /api/v1/."""
