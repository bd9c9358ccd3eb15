"""Rewrite the criteria of a judge so that it agrees with people, and measure it on tasks that it has not learned from.

The optimiser sees training tasks, and development decides what it proposes. Only `looks` reads the test split.
"""
