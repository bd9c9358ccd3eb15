"""Python client of WebVerdict."""
