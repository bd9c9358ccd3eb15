"""Measurements that take minutes. Run one with `python -m bench.<module>`. Not part of the image."""
