"""Scorers, one per module or package: they take a record and a model client, and return a score. No Django, no rows."""

from judges.scorers import (  # noqa: F401 - fills the registry
    action_selection,
    agent_trek,
    autonomous_eval,
    ensemble,
    network_trace,
    single_call,
    web_voyager,
    webarena,
    webjudge,
)
from judges.scorers.rubric import judge  # noqa: F401
from judges.scorers.verifier import judge as verifier  # noqa: F401
