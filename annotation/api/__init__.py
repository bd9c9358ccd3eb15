"""The REST API of the annotation app, below /api/v1/: for scripts of maintainers, and for everybody's own data."""
