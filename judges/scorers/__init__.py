"""One judge a module or package; no Django, no rows: a record and a model client in, a score out."""

from judges.scorers import (  # noqa: F401 - fills the registry
    action_selection,
    agent_trek,
    autonomous_eval,
    network_trace,
    single_call,
    web_voyager,
    webarena,
    webjudge,
)
from judges.scorers.rubric import judge  # noqa: F401
