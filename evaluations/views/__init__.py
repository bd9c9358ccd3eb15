"""The pages of evaluations, one module a subject; names of agents and all text of them are inert."""
