"""Automatic judges: definitions, runs, and one module per scorer in `scorers`."""
