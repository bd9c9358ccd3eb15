"""The rubric judge: a tree of claims about an answer or a trajectory, checked one by one, and its engine.

Mind2Web-2 differs from this judge as follows:

- An exception, an unreadable reply and a missing page count as not supported. Here the item fails, or is unscored;
  ``missing_pages=unsupported`` counts pages as published.
- Success is a score of 1. Here ``pass_score`` decides, 1.0 by default.
- The runner fixes the model, with temperature 0 for names without an o. Here the judge's model and settings.
- Votes repeat the same request. Here each vote has its own seed.
- Pages are loaded while judging, partly without checking certificates. Here only stored pages are read.
- Scripts run in the evaluator's process. Here they are confined.
- Prompts contain pages and answers. Here these are a marked record.
- Distances come from Google. Here they come from the endpoint ``maps``, and are stored like replies; without it the
  item fails.
"""
