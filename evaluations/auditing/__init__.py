"""Audits: import another instance's bundle as ordinary rows, label a sample of it again, and compare the verdicts."""
