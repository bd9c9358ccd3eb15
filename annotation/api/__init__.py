"""The REST API of the annotation floor, below /api/v1/: for the scripts of maintainers, and everybody's own things."""
