"""Action selection on Multimodal-Mind2Web: the next action that a model chooses, compared with a person's action."""

from judges.scorers.action_selection.judge import KIND, ActionSelectionParameters

__all__ = ["KIND", "ActionSelectionParameters"]
