"""One judge a module or package; no Django, no rows: a record and a model client in, a score out."""

from judges.scorers import agent_trek, autonomous_eval, single_call, web_voyager, webjudge  # noqa: F401 - fills the registry
