"""The rubric judge: a tree of claims about an answer or a trajectory, checked one by one, and its engine."""
