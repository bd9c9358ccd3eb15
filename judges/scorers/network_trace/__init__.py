"""The judge that holds the network trace of a trajectory against written checks."""

from judges.scorers.network_trace import judge  # noqa: F401 - fills the registry
