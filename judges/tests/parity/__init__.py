"""`compat="webarena-verified"` beside webarena-verified 1.2.3 itself, where the extra is installed."""
