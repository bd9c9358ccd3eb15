"""Publishing the heads of chains outside of this instance, so that a chain that is rewritten later is found out."""

from evaluations.anchoring.publishing import places, publish, waiting
