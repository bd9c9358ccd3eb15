"""Action selection on Multimodal-Mind2Web: which action a model would do next, held against what a person did."""

from judges.scorers.action_selection.judge import KIND, ActionSelectionParameters

__all__ = ["KIND", "ActionSelectionParameters"]
