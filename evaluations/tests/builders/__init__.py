"""Builders for tests, benchmarks and looking at pages: whole benchmarks with labels and judgments, made in bulk.

The rows satisfy every constraint, but no verb has made them: there are no events, so nothing of it can be exported,
and screenshots are rows without files. Small material that goes through the verbs is in `annotation.tests.testing`.
"""

from evaluations.tests.builders.judging import judged
from evaluations.tests.builders.labelling import labelled_elsewhere
from evaluations.tests.builders.reviewing import reviewed

__all__ = ["judged", "labelled_elsewhere", "reviewed"]
