"""The judge that compares the network trace of a trajectory with written checks."""

from judges.scorers.network_trace import judge  # noqa: F401 - fills the registry
