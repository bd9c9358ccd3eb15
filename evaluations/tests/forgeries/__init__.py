"""Forgeries of a bundle of `whole_review`, each changing one thing; by name, with the check that has to catch it."""

from evaluations.tests.forgeries import beside, chain, files, judges, outcome, people
from evaluations.tests.forgeries.ground import FORGERIES, Forgery

__all__ = ["FORGERIES", "Forgery", "beside", "chain", "files", "judges", "outcome", "people"]
