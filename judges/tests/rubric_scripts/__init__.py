"""Rubric scripts in the style of Mind2Web-2, in our own words: what its scripts import and call, these do too."""
