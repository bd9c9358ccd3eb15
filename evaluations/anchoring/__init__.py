"""Publish the heads of event chains outside of this instance, so that a later rewrite of a chain is detected."""

from evaluations.anchoring.publishing import places, publish, waiting
