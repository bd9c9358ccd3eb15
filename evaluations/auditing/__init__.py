"""The auditor's desk: somebody's bundle as ordinary rows, a sample of it labelled again, and what came of it."""
