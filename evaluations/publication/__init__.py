"""A frozen submission in the formats of others: a dataset, results, telemetry events and reward-model sets."""
