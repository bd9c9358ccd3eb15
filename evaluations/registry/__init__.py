"""A benchmark's intake and public registry.

`chain` appends the events of an entry to its chain. `published` finds what anybody may read. `scoring` computes rates
and rows from the opened bundle. `checks` examines a new entry. `entries` has the actions of submitters and owners.
"""
