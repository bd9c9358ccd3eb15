"""The pages of evaluations, one module for each subject; names and all texts of agents are escaped."""
