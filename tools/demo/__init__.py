"""Two demo sites, two agents that use them, and the recorder of the committed demo data."""
