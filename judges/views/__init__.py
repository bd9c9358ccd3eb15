"""The pages of judges, one module a subject; all text of agents and models is inert."""
