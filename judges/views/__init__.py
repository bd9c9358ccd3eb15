"""The pages of judges, one module per subject; all text of agents and models is inert."""
