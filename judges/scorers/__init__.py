"""One judge a module or package; no Django, no rows: a record and a model client in, a score out."""
